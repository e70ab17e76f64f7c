/* Objects of the store elsewhere, sealed and opened, each bound to its place. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crypto/aead.h"
#include "common/file.h"
#include "sandbox-shim/checkpoint/away/away_in.h"

static int no_memory(struct err *e)
{
    return err_set(e, "there is no memory for it");
}

/* --- keys ------------------------------------------------------------------------------ */

int key_for(const struct away *a, const char *purpose, struct span of, uint8_t out[AWAY_KEY])
{
    uint8_t info[16 + FORM_OWNER_MAX];
    size_t n = 0, at = span_str(purpose).n;

    if (at + 1 + of.n > sizeof(info))
        return -1;
    memcpy(info, purpose, at);
    info[at++] = ' ';
    if (of.n > 0)
        memcpy(info + at, of.p, of.n);
    return EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, a->key, AWAY_KEY, info, at + of.n, out, AWAY_KEY, &n) !=
                       NULL &&
                   n == AWAY_KEY
               ? 0
               : -1;
}

int folder_of(const struct away *a, const char *purpose, struct span of, char folder[AWAY_FOLDER + 1], struct err *e)
{
    uint8_t k[AWAY_KEY];

    if (key_for(a, purpose, of, k) != 0)
        return no_memory(e);
    hex_text(span_of(k, AWAY_FOLDER / 2), folder);
    return 0;
}

int part_of(const struct away *a, const struct shelf *s, const char *name, struct part *p, struct err *e)
{
    *p = (struct part){.n = 1};
    (void)snprintf(p->tenant, sizeof(p->tenant), "%s", s->there);
    (void)snprintf(p->name, sizeof(p->name), "%s", name);
    return folder_of(a, "folder", span_str(s->name), p->folder, e);
}

int tmp_name(char tmp[AWAY_TMP + 1])
{
    char text[ID_TEXT + 1];
    struct id fresh;

    if (id_new(&fresh) != 0)
        return -1;
    id_text(&fresh, text);
    (void)snprintf(tmp, AWAY_TMP + 1, "tmp-%s", text);
    return 0;
}

/* --- names ------------------------------------------------------------------------------- */

void part_key(const struct part *p, char key[AWAY_KEY_MAX])
{
    (void)snprintf(key, AWAY_KEY_MAX, "%s/%s/%s.%u-%u", p->tenant, p->folder, p->name, p->i, p->n);
}

static int number_of(struct span s, unsigned *out)
{
    uint64_t v;
    int rc = span_u64(s, AWAY_PARTS_MAX, &v);

    *out = rc == 0 ? (unsigned)v : 0;
    return rc;
}

/* What a listing says is the store's: whatever is not exactly of this form is no part. */
static bool part_read(const char *key, struct part *p)
{
    char again[AWAY_KEY_MAX];
    struct span all = span_str(key), tenant, folder, name, i, n;
    size_t dot = 0;

    if (!span_cut(all, '/', &tenant, &all) || tenant.n != AWAY_FOLDER || !span_cut(all, '/', &folder, &all) ||
        folder.n != AWAY_FOLDER)
        return false;
    for (size_t at = 0; at < all.n; at++)
        if (all.p[at] == '.')
            dot = at;
    name = span_first(all, dot);
    if (dot == 0 || !span_cut(span_from(all, dot + 1), '-', &i, &n) || number_of(i, &p->i) != 0 ||
        number_of(n, &p->n) != 0 || p->n == 0 || p->i >= p->n)
        return false;
    bool pack = span_ends(name, SPAN(".pack"));
    if (!span_eq(name, SPAN("key")) && !form_is_id(pack ? span_first(name, name.n - 5) : name))
        return false;
    (void)snprintf(p->tenant, sizeof(p->tenant), "%.*s", SPAN_FMT(tenant));
    (void)snprintf(p->folder, sizeof(p->folder), "%.*s", SPAN_FMT(folder));
    (void)snprintf(p->name, sizeof(p->name), "%.*s", SPAN_FMT(name));
    part_key(p, again);
    return strcmp(again, key) == 0;
}

/* --- one object ----------------------------------------------------------------------------- */

int part_put(const struct away *a, const uint8_t k[AWAY_KEY], const struct part *p, struct span plain, uint8_t *room,
             struct err *e)
{
    char key[AWAY_KEY_MAX];

    part_key(p, key);
    if (aead_seal(span_of(k, AWAY_KEY), span_str(key), plain, room) != 0)
        return err_set(e, "what is kept elsewhere cannot be sealed");
    return a->by->put(a->by->arg, key, span_of(room, plain.n + AEAD_EXTRA), e);
}

int part_get(const struct away *a, const uint8_t k[AWAY_KEY], const struct part *p, struct dynbuf *out, struct err *e)
{
    char key[AWAY_KEY_MAX];
    struct dynbuf sealed;

    part_key(p, key);
    dynbuf_init(&sealed, AWAY_PART + AEAD_EXTRA);
    int rc = a->by->get(a->by->arg, key, &sealed, e);
    size_t n = sealed.n >= AEAD_EXTRA ? sealed.n - AEAD_EXTRA : 0;
    bool fits = n < out->max - out->n; /* else it is another object's */
    uint8_t *room = rc == 0 && fits ? dynbuf_room(out, n + 1) : NULL;
    if (rc == 0 && fits && room == NULL)
        rc = no_memory(e);
    else if (rc == 0 && (!fits || aead_open(span_of(k, AWAY_KEY), span_str(key), dynbuf_span(&sealed), room) != 0))
        rc = err_set(e, "what lies in the checkpoint store as %s is damaged, or of another key than store-key",
                     p->name);
    else if (rc == 0)
        dynbuf_grew(out, n);
    dynbuf_free(&sealed);
    return rc;
}

/* --- a file ------------------------------------------------------------------------------- */

/* From its last part to its first: where the first one is, all of them are. */
static int parts_up(const struct away *a, const uint8_t k[AWAY_KEY], struct part *p, int fd, struct err *e)
{
    uint8_t *plain = malloc(a->part), *room = malloc(a->part + AEAD_EXTRA);
    int rc = plain != NULL && room != NULL ? 0 : no_memory(e);

    for (unsigned i = p->n; rc == 0 && i-- > 0;) {
        ssize_t n = pread(fd, plain, a->part, (off_t)i * a->part);
        p->i = i;
        rc = n >= 0 ? part_put(a, k, p, span_of(plain, (size_t)n), room, e) : err_errno(e, "%s", p->name);
    }
    free(plain);
    free(room);
    return rc;
}

unsigned parts_in(const struct away *a, off_t bytes)
{
    return bytes > 0 ? (unsigned)((bytes + a->part - 1) / a->part) : 1;
}

int file_up(const struct away *a, const struct shelf *s, const char *file, const char *name, struct err *e)
{
    uint8_t k[AWAY_KEY];
    struct part p;
    struct stat st;
    int rc = -1, fd = openat(s->dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0)
        (void)err_errno(e, "%s", name);
    else if (st.st_size > (off_t)a->part * AWAY_PARTS_MAX)
        (void)err_set(e, "%s is larger than what can be kept in the checkpoint store", name);
    else if (key_for(a, "seal", span_str(s->name), k) != 0)
        (void)no_memory(e);
    else if (part_of(a, s, name, &p, e) == 0) {
        p.n = parts_in(a, st.st_size);
        rc = parts_up(a, k, &p, fd, e);
    }
    explicit_bzero(k, sizeof(k));
    if (fd >= 0)
        close(fd);
    return rc;
}

static int part_down(const struct away *a, const uint8_t k[AWAY_KEY], const struct part *p, int fd, struct err *e)
{
    struct dynbuf plain;

    dynbuf_init(&plain, a->part + 1);
    int rc = part_get(a, k, p, &plain, e);
    if (rc == 1)
        rc = err_set(e, "what lies in the checkpoint store as %s is damaged: a part of it is missing", p->name);
    else if (rc == 0 && p->i + 1 < p->n && plain.n != a->part)
        rc = err_set(e, "what lies in the checkpoint store as %s is damaged", p->name);
    if (rc == 0 && file_write_fd(fd, dynbuf_span(&plain)) != 0)
        rc = err_errno(e, "what comes from the checkpoint store cannot be written");
    dynbuf_free(&plain);
    return rc;
}

/* Whoever removes it meanwhile says so before, or finds it. */
static int name_it(const struct away *a, const struct shelf *s, const char *tmp, const char *name, struct err *e)
{
    int lock = shelf_names_lock(a->store), dead = lock >= 0 ? is_dead(s, name) : -1;
    int rc = dead;

    if (dead == 0)
        rc = renameat(s->dir, tmp, s->dir, name) == 0 && fsync(s->dir) == 0 ? 0 : -1;
    if (rc < 0)
        (void)err_errno(e, "what comes from the checkpoint store cannot be written");
    if (lock >= 0)
        close(lock);
    return rc;
}

int file_down(const struct away *a, const struct shelf *s, const struct part *of, struct err *e)
{
    char tmp[AWAY_TMP + 1];
    uint8_t k[AWAY_KEY];
    struct part p = *of;

    if ((uint64_t)p.n * a->part > a->most + a->part)
        return err_set(e, "%s in the checkpoint store is larger than what is kept for one owner", p.name);
    if (key_for(a, "seal", span_str(s->name), k) != 0 || tmp_name(tmp) != 0)
        return no_memory(e);
    int fd = openat(s->dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = fd >= 0 ? 0 : err_errno(e, "what comes from the checkpoint store cannot be written");
    for (p.i = 0; rc == 0 && p.i < p.n; p.i++)
        rc = part_down(a, k, &p, fd, e);
    if (rc == 0 && fsync(fd) != 0)
        rc = err_errno(e, "what comes from the checkpoint store cannot be written");
    if (rc == 0)
        rc = name_it(a, s, tmp, p.name, e);
    if (fd >= 0)
        close(fd);
    if (rc != 0)
        (void)unlinkat(s->dir, tmp, 0);
    explicit_bzero(k, sizeof(k));
    return rc;
}

/* --- what there is ---------------------------------------------------------------------- */

/* What was not asked for is passed over. */
static int list_one(void *arg, const char *key)
{
    struct listing *l = arg;

    l->heard += strlen(key);
    if (!span_starts(span_str(key), span_str(l->begins)))
        return l->heard > AWAY_LISTED_MAX ? -1 : 0;
    return dynbuf_add(&l->names, span_of(key, strlen(key) + 1)) == 0 ? 0 : -1;
}

int list_all(const struct away *a, const char *begins, struct listing *l, struct err *e)
{
    l->heard = 0;
    dynbuf_init(&l->names, AWAY_LISTED_MAX);
    (void)snprintf(l->begins, sizeof(l->begins), "%s", begins);
    return a->by->list(a->by->arg, begins, list_one, l, e);
}

int list_of(const struct away *a, const struct shelf *s, struct listing *l, struct err *e)
{
    char begins[2 * (AWAY_FOLDER + 1) + 1];
    struct part p;

    dynbuf_init(&l->names, AWAY_LISTED_MAX);
    if (part_of(a, s, "", &p, e) != 0)
        return -1;
    (void)snprintf(begins, sizeof(begins), "%s/%s/", p.tenant, p.folder);
    return list_all(a, begins, l, e);
}

bool list_next(struct span *rest, struct part *p)
{
    while (rest->n > 0) {
        const char *key = (const char *)rest->p;
        *rest = span_from(*rest, strlen(key) + 1);
        if (part_read(key, p))
            return true;
    }
    return false;
}
