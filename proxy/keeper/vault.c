#include "proxy/keeper/vault.h"

#include <stdlib.h>

#include "common/msg.h"
#include "common/crypto/seal.h"
#include "proxy/keeper/files.h"
#include "proxy/keeper/value.h"

#define FILE_NAME "secrets.sealed"
#define MAGIC     SPAN("countersign secrets 2\n")
#define MAGIC_1   SPAN("countersign secrets 1\n") /* had no moment at which earlier values are dropped */

enum { SEALED_MAX = VALUE_MAX + SEAL_EXTRA };

struct blob {
    uint8_t *p;
    size_t n;
};

struct item {
    char name[VAULT_NAME_MAX];
    size_t nname;
    uint64_t created_ms, changed_ms, used_ms;
    uint64_t drop_ms; /* its earlier values; 0: not by a clock */
    struct blob now;  /* n 0: removed since the start, kept for what it had before */
    struct blob previous[VAULT_PREVIOUS];
};

struct vault {
    int dir;
    struct secret *key;
    struct item item[VAULT_MAX];
    size_t n;
    uint64_t next_ms; /* that something is dropped; 0: nothing */
};

bool vault_name_ok(struct span name)
{
    if (name.n == 0 || name.n > VAULT_NAME_MAX || name.p[0] == '.' || name.p[0] == '-')
        return false;
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '.' && c != '_' &&
            c != '-')
            return false;
    }
    return true;
}

static struct span item_name(const struct item *i)
{
    return span_of(i->name, i->nname);
}

static struct item *find(const struct vault *v, struct span name)
{
    for (size_t i = 0; i < v->n; i++)
        if (span_eq(item_name(&v->item[i]), name))
            return (struct item *)&v->item[i];
    return NULL;
}

static int blob_copy(struct blob *b, struct span s)
{
    b->p = s.n ? malloc(s.n) : NULL;
    b->n = b->p ? s.n : 0;
    if (b->n)
        memcpy(b->p, s.p, s.n);
    return b->n == s.n ? 0 : -1;
}

static void item_free(struct item *i)
{
    free(i->now.p);
    for (size_t k = 0; k < VAULT_PREVIOUS; k++)
        free(i->previous[k].p);
    *i = (struct item){.nname = 0};
}

void vault_free(struct vault **v)
{
    if (v == NULL || *v == NULL)
        return;
    for (size_t i = 0; i < (*v)->n; i++)
        item_free(&(*v)->item[i]);
    secret_free(&(*v)->key);
    free(*v);
    *v = NULL;
}

/* Of every value, not only of those asked for: a store that cannot be opened must be known at the start. */
static int opens(const struct vault *v, const struct item *i, struct span sealed)
{
    struct secret *s = seal_open_secret(v->key, item_name(i), sealed);
    int r = s ? 0 : -1;
    secret_free(&s);
    return r;
}

/* The next moment of all. */
static void plan(struct vault *v)
{
    v->next_ms = 0;
    for (size_t i = 0; i < v->n; i++)
        if (v->item[i].drop_ms && (v->next_ms == 0 || v->item[i].drop_ms < v->next_ms))
            v->next_ms = v->item[i].drop_ms;
}

static void drop_previous(struct item *i)
{
    for (size_t k = 0; k < VAULT_PREVIOUS; k++) {
        free(i->previous[k].p);
        i->previous[k] = (struct blob){NULL, 0};
    }
    i->drop_ms = 0;
}

static int item_read(struct vault *v, struct msg_in *m, bool dated)
{
    struct item *it = &v->item[v->n];
    struct span name = msg_get_span(m, VAULT_NAME_MAX);
    if (!vault_name_ok(name) || find(v, name) != NULL)
        return -1;
    memcpy(it->name, name.p, name.n);
    it->nname = name.n;
    v->n++;
    it->created_ms = msg_get_u64(m);
    it->changed_ms = msg_get_u64(m);
    it->drop_ms = dated ? msg_get_u64(m) : 0;
    struct span sealed = msg_get_span(m, SEALED_MAX);
    if (blob_copy(&it->now, sealed) != 0 || opens(v, it, sealed) != 0)
        return -1;
    size_t n = msg_get_u8(m);
    if (n > VAULT_PREVIOUS)
        return -1;
    for (size_t k = 0; k < n; k++) {
        sealed = msg_get_span(m, SEALED_MAX);
        if (blob_copy(&it->previous[k], sealed) != 0 || opens(v, it, sealed) != 0)
            return -1;
    }
    return m->bad ? -1 : 0;
}

static int parse(struct vault *v, struct span file)
{
    bool dated = span_starts(file, MAGIC);
    if (file.n < MAGIC.n + SEAL_EXTRA || (!dated && !span_starts(file, MAGIC_1)))
        return -1;
    struct span body = span_first(file, file.n - SEAL_EXTRA);
    uint8_t none[1];
    if (seal_open(v->key, body, span_from(file, body.n), none) != 0)
        return -1;
    struct msg_in m = msg_in(span_from(body, MAGIC.n));
    size_t n = msg_get_u32(&m);
    if (n > VAULT_MAX)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (item_read(v, &m, dated) != 0)
            return -1;
    plan(v);
    return msg_end(&m);
}

static void item_write(struct dynbuf *b, const struct item *it)
{
    size_t n = 0;
    while (n < VAULT_PREVIOUS && it->previous[n].n)
        n++;
    msg_put_span(b, item_name(it));
    msg_put_u64(b, it->created_ms);
    msg_put_u64(b, it->changed_ms);
    msg_put_u64(b, it->drop_ms);
    msg_put_span(b, span_of(it->now.p, it->now.n));
    msg_put_u8(b, (uint8_t)n);
    for (size_t k = 0; k < n; k++)
        msg_put_span(b, span_of(it->previous[k].p, it->previous[k].n));
}

static int save(const struct vault *v, bool first, struct err *e)
{
    struct dynbuf b;
    uint32_t n = 0;
    int r = -1;
    dynbuf_init(&b, VAULT_FILE_MAX);
    for (size_t i = 0; i < v->n; i++)
        n += v->item[i].now.n != 0;
    dynbuf_add(&b, MAGIC);
    msg_put_u32(&b, n);
    for (size_t i = 0; i < v->n; i++)
        if (v->item[i].now.n)
            item_write(&b, &v->item[i]);
    uint8_t *tag = dynbuf_room(&b, SEAL_EXTRA);
    if (tag == NULL || seal_bytes(v->key, dynbuf_span(&b), SPAN_NONE, tag) != 0) {
        err_set(e, "cannot seal the secret store: it is full, or out of memory");
        goto out;
    }
    dynbuf_grew(&b, SEAL_EXTRA);
    r = first ? files_create(v->dir, FILE_NAME, dynbuf_span(&b), e)
              : files_replace(v->dir, FILE_NAME, dynbuf_span(&b), e);
out:
    dynbuf_free(&b);
    return r;
}

struct vault *vault_open(int dir, const struct secret *master, bool first, struct err *e)
{
    struct dynbuf b;
    struct vault *v = calloc(1, sizeof(*v));
    dynbuf_init(&b, VAULT_FILE_MAX);
    int bad = -1;
    if (v == NULL || (v->key = seal_key_derive(master, SPAN("countersign secrets 1"))) == NULL) {
        err_set(e, "cannot derive the key of the secret store");
        goto out;
    }
    v->dir = dir;
    if (first) {
        bad = save(v, true, e);
        goto out;
    }
    int found = files_read(dir, FILE_NAME, &b, e);
    if (found == 0)
        err_set(e, "keeper/" FILE_NAME " is missing; restore it from a backup");
    if (found <= 0)
        goto out;
    if (parse(v, dynbuf_span(&b)) != 0)
        err_set(e, "keeper/" FILE_NAME " is damaged, or was sealed under another master key; restore both from one "
                   "backup");
    else
        bad = 0;
out:
    dynbuf_free(&b);
    if (bad)
        vault_free(&v);
    return v;
}

struct secret *vault_get(const struct vault *v, struct span name)
{
    const struct item *it = find(v, name);
    return it && it->now.n ? seal_open_secret(v->key, name, span_of(it->now.p, it->now.n)) : NULL;
}

struct secret *vault_previous(const struct vault *v, struct span name, size_t i)
{
    const struct item *it = find(v, name);
    if (it == NULL || i >= VAULT_PREVIOUS || it->previous[i].n == 0)
        return NULL;
    return seal_open_secret(v->key, name, span_of(it->previous[i].p, it->previous[i].n));
}

/* The value of now becomes the newest of the previous ones. */
static void push(struct item *to, struct blob now)
{
    free(to->previous[VAULT_PREVIOUS - 1].p);
    memmove(&to->previous[1], &to->previous[0], sizeof(to->previous) - sizeof(to->previous[0]));
    to->previous[0] = to->now;
    to->now = now;
}

/* What push did, undone; the value that fell off the end is gone, which costs a scrub pattern and no secret. */
static void pop(struct item *to)
{
    free(to->now.p);
    to->now = to->previous[0];
    memmove(&to->previous[0], &to->previous[1], sizeof(to->previous) - sizeof(to->previous[0]));
    to->previous[VAULT_PREVIOUS - 1] = (struct blob){NULL, 0};
}

/* Room for a name: a new place, or one whose secret was removed since the start. */
static struct item *place(struct vault *v)
{
    if (v->n < VAULT_MAX)
        return &v->item[v->n++];
    for (size_t i = 0; i < v->n; i++)
        if (v->item[i].now.n == 0) {
            item_free(&v->item[i]);
            return &v->item[i];
        }
    return NULL;
}

int vault_set(struct vault *v, struct span name, const struct secret *value, uint64_t until_ms, uint64_t now_ms,
              struct err *e)
{
    struct span plain = secret_bytes(value);
    struct blob sealed = {NULL, plain.n + SEAL_EXTRA};
    if (!vault_name_ok(name))
        return err_set(e, "a secret's name is up to %d of A-Z a-z 0-9 . _ -", VAULT_NAME_MAX);
    if (plain.n == 0 || plain.n > VALUE_MAX)
        return err_set(e, "the value is empty or too long");
    if ((sealed.p = malloc(sealed.n)) == NULL || seal_bytes(v->key, name, plain, sealed.p) != 0) {
        free(sealed.p);
        return err_set(e, "cannot seal the value: out of memory");
    }
    struct item *it = find(v, name);
    if (it == NULL && (it = place(v)) == NULL) {
        free(sealed.p);
        return err_set(e, "the store holds %d secrets already; remove one", VAULT_MAX);
    }
    bool was = it->now.n != 0;
    uint64_t created = it->created_ms, changed = it->changed_ms, drop = it->drop_ms;
    memcpy(it->name, name.p, name.n);
    it->nname = name.n;
    it->created_ms = was ? created : now_ms;
    it->used_ms = was ? it->used_ms : 0;
    it->changed_ms = now_ms;
    if (was)
        push(it, sealed);
    else
        it->now = sealed;
    it->drop_ms = it->previous[0].n ? until_ms : 0;
    plan(v);
    if (save(v, false, e) == 0)
        return 0;
    if (was) {
        pop(it);
    } else {
        free(it->now.p);
        it->now = (struct blob){NULL, 0};
    }
    it->created_ms = created;
    it->changed_ms = changed;
    it->drop_ms = drop;
    plan(v);
    return -1;
}

int vault_earlier_until(struct vault *v, struct span name, uint64_t until_ms, uint64_t now_ms, struct err *e)
{
    struct item *it = find(v, name);
    if (it == NULL || it->now.n == 0)
        return 0;
    struct item before = *it;
    it->drop_ms = until_ms;
    if (until_ms != 0 && until_ms <= now_ms) /* kept until it is on disk that they are gone */
        memset(it->previous, 0, sizeof(it->previous));
    if (it->previous[0].n == 0)
        it->drop_ms = 0;
    int r = save(v, false, e) == 0 ? 1 : -1;
    if (r < 0)
        *it = before;
    else if (it->previous[0].n == 0)
        drop_previous(&before);
    plan(v);
    return r;
}

int vault_expire(struct vault *v, uint64_t now_ms, struct err *e)
{
    if (v->next_ms == 0 || now_ms < v->next_ms)
        return 0;
    for (size_t i = 0; i < v->n; i++)
        if (v->item[i].drop_ms && v->item[i].drop_ms <= now_ms)
            drop_previous(&v->item[i]);
    plan(v);
    return save(v, false, e);
}

int vault_remove(struct vault *v, struct span name, struct err *e)
{
    struct item *it = find(v, name);
    if (it == NULL || it->now.n == 0)
        return 0;
    uint64_t drop = it->drop_ms;
    push(it, (struct blob){NULL, 0}); /* still scrubbed until the end of this process */
    it->drop_ms = 0;
    int r = save(v, false, e) == 0 ? 1 : -1;
    if (r < 0) {
        pop(it);
        it->drop_ms = drop;
    }
    plan(v);
    return r;
}

void vault_use(struct vault *v, struct span name, uint64_t now_ms)
{
    struct item *it = find(v, name);
    if (it != NULL)
        it->used_ms = now_ms;
}

uint64_t vault_used(const struct vault *v, struct span name)
{
    const struct item *it = find(v, name);
    return it ? it->used_ms : 0;
}

bool vault_at(const struct vault *v, size_t i, struct span *name, uint64_t *created_ms, uint64_t *changed_ms)
{
    for (size_t k = 0; k < v->n; k++) {
        const struct item *it = &v->item[k];
        if (it->now.n == 0 || i-- > 0)
            continue;
        *name = item_name(it);
        *created_ms = it->created_ms;
        *changed_ms = it->changed_ms;
        return true;
    }
    return false;
}

size_t vault_earlier(const struct vault *v, struct span name, uint64_t *until_ms)
{
    const struct item *it = find(v, name);
    size_t n = 0;
    while (it != NULL && n < VAULT_PREVIOUS && it->previous[n].n)
        n++;
    *until_ms = it != NULL ? it->drop_ms : 0;
    return n;
}
