#include "proxy/keeper/passkey/passkeys.h"

#include <stdlib.h>
#include <string.h>

#include "common/crypto/seal.h"
#include "proxy/keeper/files.h"

#define FILE_NAME "passkeys.sealed"
enum { FILE_VERSION = 1 };

struct item {
    char name[PASSKEYS_NAME + 1];
    uint8_t id[WEBAUTHN_ID_MAX], spki[WEBAUTHN_SPKI_MAX];
    size_t nid, nspki;
    uint32_t count;
    uint64_t created_ms;
};

struct passkeys {
    int dir;
    struct secret *key;
    const struct webauthn_site *site;
    struct item *item;
    size_t n;
    struct {
        struct digest code;
        char name[PASSKEYS_NAME + 1];
        uint64_t until_ms; /* 0: free */
    } code[PASSKEYS_CODES];
};

/* --- the file ------------------------------------------------------------------ */

static int save(const struct passkeys *p, struct err *e)
{
    struct dynbuf plain, sealed;
    int r = -1;
    dynbuf_init(&plain, PASSKEYS_FILE_MAX);
    dynbuf_init(&sealed, PASSKEYS_FILE_MAX + SEAL_EXTRA);
    msg_put_u8(&plain, FILE_VERSION);
    msg_put_u16(&plain, (uint16_t)p->n);
    for (size_t i = 0; i < p->n; i++) {
        const struct item *t = &p->item[i];
        msg_put_span(&plain, span_str(t->name));
        msg_put_span(&plain, span_of(t->id, t->nid));
        msg_put_span(&plain, span_of(t->spki, t->nspki));
        msg_put_u32(&plain, t->count);
        msg_put_u64(&plain, t->created_ms);
    }
    uint8_t *room = malloc(plain.n + SEAL_EXTRA);
    if (!dynbuf_ok(&plain) || room == NULL || seal_bytes(p->key, SPAN(FILE_NAME), dynbuf_span(&plain), room) != 0)
        err_set(e, "the passkeys cannot be sealed");
    else
        r = files_replace(p->dir, FILE_NAME, span_of(room, plain.n + SEAL_EXTRA), e);
    free(room);
    dynbuf_free(&plain);
    dynbuf_free(&sealed);
    return r;
}

static int take(struct item *t, struct msg_in *m)
{
    struct span name = msg_get_span(m, PASSKEYS_NAME), id = msg_get_span(m, WEBAUTHN_ID_MAX);
    struct span spki = msg_get_span(m, WEBAUTHN_SPKI_MAX);
    if (m->bad || name.n == 0 || id.n == 0 || spki.n == 0)
        return -1;
    memcpy(t->name, name.p, name.n);
    t->name[name.n] = '\0';
    memcpy(t->id, id.p, t->nid = id.n);
    memcpy(t->spki, spki.p, t->nspki = spki.n);
    t->count = msg_get_u32(m);
    t->created_ms = msg_get_u64(m);
    return m->bad ? -1 : 0;
}

static int load(struct passkeys *p, struct err *e)
{
    struct dynbuf file;
    int bad = 0;
    dynbuf_init(&file, PASSKEYS_FILE_MAX + SEAL_EXTRA);
    int found = files_read(p->dir, FILE_NAME, &file, e);
    uint8_t *plain = found > 0 && file.n > SEAL_EXTRA ? malloc(file.n) : NULL;
    if (found > 0 && (plain == NULL || seal_open(p->key, SPAN(FILE_NAME), dynbuf_span(&file), plain) != 0))
        bad = err_set(e, "keeper/" FILE_NAME " is damaged, or was sealed under another master key; restore both from "
                         "one backup");
    if (found > 0 && bad == 0) {
        struct msg_in m = msg_in(span_of(plain, file.n - SEAL_EXTRA));
        uint8_t version = msg_get_u8(&m);
        size_t n = msg_get_u16(&m);
        for (bad = version != FILE_VERSION || n > PASSKEYS_MAX; bad == 0 && p->n < n; p->n++)
            bad = take(&p->item[p->n], &m) != 0;
        bad = bad || msg_end(&m) != 0 ? err_set(e, "keeper/" FILE_NAME " is of another version of this program") : 0;
    }
    free(plain);
    dynbuf_free(&file);
    return found < 0 ? -1 : bad;
}

struct passkeys *passkeys_open(int dir, const struct secret *master, const struct webauthn_site *site, struct err *e)
{
    struct passkeys *p = calloc(1, sizeof(*p));
    if (p != NULL) {
        p->dir = dir;
        p->site = site;
        p->item = calloc(PASSKEYS_MAX, sizeof(*p->item));
        p->key = seal_key_derive(master, SPAN("countersign passkeys 1"));
    }
    if (p == NULL || p->item == NULL || p->key == NULL)
        err_set(e, "out of memory");
    else if (load(p, e) == 0)
        return p;
    passkeys_free(&p);
    return NULL;
}

void passkeys_free(struct passkeys **p)
{
    if (*p == NULL)
        return;
    secret_free(&(*p)->key);
    free((*p)->item);
    free(*p);
    *p = NULL;
}

/* --- a new one ------------------------------------------------------------------- */

static bool name_ok(struct span name)
{
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-')
            return false;
    }
    return name.n > 0 && name.n <= PASSKEYS_NAME;
}

int passkeys_code(struct passkeys *p, struct span name, uint64_t now_ms, char code[ID_TEXT + 1], struct err *e)
{
    struct id id;
    size_t at = 0;
    if (!name_ok(name))
        return err_set(e, "that is nobody's name");
    if (p->site->rp.n == 0)
        return err_set(e, "the page has no name that a passkey can be for: give it https: with name:, or http: "
                          "localhost");
    if (id_new(&id) != 0)
        return err_set(e, "the system has no randomness to give");
    for (size_t i = 1; i < PASSKEYS_CODES; i++)
        if (p->code[i].until_ms < p->code[at].until_ms)
            at = i;
    id_text(&id, code);
    digest_of(span_of(code, ID_TEXT), &p->code[at].code);
    memcpy(p->code[at].name, name.p, name.n);
    p->code[at].name[name.n] = '\0';
    p->code[at].until_ms = now_ms + PASSKEYS_CODE_MS;
    return 0;
}

void passkeys_challenge(struct span name, struct span code, struct digest *out)
{
    struct digest_ctx *d = digest_begin();
    digest_add_field(d, SPAN("countersign passkey 1"));
    digest_add_field(d, name);
    digest_add_field(d, code);
    digest_end(d, out);
}

/* Where it lies, PASSKEYS_CODES: nowhere. */
static size_t code_at(const struct passkeys *p, struct span name, struct span code, uint64_t now_ms)
{
    struct digest d;
    size_t at = PASSKEYS_CODES;
    digest_of(code, &d);
    for (size_t i = 0; i < PASSKEYS_CODES; i++)
        if (p->code[i].until_ms > now_ms && span_eq(span_str(p->code[i].name), name) &&
            span_eq_consttime(span_of(p->code[i].code.b, DIGEST_BYTES), span_of(d.b, DIGEST_BYTES)))
            at = i;
    return code.n == ID_TEXT ? at : PASSKEYS_CODES;
}

static struct item *by_id(const struct passkeys *p, struct span id)
{
    for (size_t i = 0; i < p->n; i++)
        if (span_eq(span_of(p->item[i].id, p->item[i].nid), id))
            return &p->item[i];
    return NULL;
}

static size_t of_one(const struct passkeys *p, struct span name)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += span_eq(span_str(p->item[i].name), name);
    return n;
}

int passkeys_add(struct passkeys *p, struct span name, struct span code, struct span json, struct span object,
                 uint64_t now_ms, struct err *e)
{
    struct webauthn_key k;
    struct digest challenge;
    size_t at = code_at(p, name, code, now_ms);
    if (at == PASSKEYS_CODES)
        return err_set(e, "the link lets nobody add a passkey any more: `countersign operator link` prints another");
    passkeys_challenge(name, code, &challenge);
    if (webauthn_made(p->site, &challenge, json, object, &k, e) != 0)
        return -1;
    if (p->n == PASSKEYS_MAX || of_one(p, name) >= PASSKEYS_OF_ONE || by_id(p, k.id) != NULL)
        return err_set(e, "there are as many passkeys as may be, or this one is there");
    struct item *t = &p->item[p->n];
    *t = (struct item){.nid = k.id.n, .nspki = k.nspki, .count = k.count, .created_ms = now_ms};
    memcpy(t->name, name.p, name.n);
    memcpy(t->id, k.id.p, k.id.n);
    memcpy(t->spki, k.spki, k.nspki);
    p->n++;
    if (save(p, e) != 0) {
        p->n--;
        return -1;
    }
    p->code[at].until_ms = 0;
    return 0;
}

/* --- what one signed ---------------------------------------------------------------- */

int passkeys_check(struct passkeys *p, struct span name, const struct digest *challenge, struct span proof,
                   bool again, struct span *whose, struct err *e)
{
    struct msg_in m = msg_in(proof);
    struct webauthn_signed w;
    uint32_t count = 0;
    struct span id = msg_get_span(&m, WEBAUTHN_ID_MAX);
    w.json = msg_get_span(&m, WEBAUTHN_JSON_MAX);
    w.data = msg_get_span(&m, WEBAUTHN_OBJECT_MAX);
    w.signature = msg_get_span(&m, WEBAUTHN_SIGNATURE_MAX);
    if (msg_end(&m) != 0 || p->site->rp.n == 0)
        return err_set(e, "what the browser says of the passkey cannot be read");
    struct item *t = by_id(p, id);
    if (t == NULL || (name.n > 0 && !span_eq(span_str(t->name), name)))
        return err_set(e, "it is a passkey that nobody has, or somebody else");
    if (webauthn_signed_by(p->site, challenge, &w, span_of(t->spki, t->nspki), &count, e) != 0)
        return -1;
    *whose = span_str(t->name);
    if (again)
        return 0;
    /* A device that counts says more each time: less is a copy of it. */
    if ((count != 0 || t->count != 0) && count <= t->count)
        return err_set(e, "the passkey was used elsewhere since: it may have been copied; remove it");
    uint32_t was = t->count;
    t->count = count;
    if (count == was || save(p, e) == 0)
        return 0;
    t->count = was;
    return -1;
}

int passkeys_remove(struct passkeys *p, struct span name, struct err *e)
{
    size_t n = 0, was = p->n;
    struct item *kept = calloc(PASSKEYS_MAX, sizeof(*kept));
    if (kept == NULL)
        return err_set(e, "out of memory");
    for (size_t i = 0; i < was; i++)
        if (!span_eq(span_str(p->item[i].name), name))
            kept[n++] = p->item[i];
    for (size_t i = 0; i < PASSKEYS_CODES; i++)
        if (span_eq(span_str(p->code[i].name), name))
            p->code[i].until_ms = 0;
    struct item *before = p->item;
    p->item = kept;
    p->n = n;
    if (n != was && save(p, e) != 0) {
        p->item = before;
        p->n = was;
        free(kept);
        return -1;
    }
    free(before);
    return (int)(was - n);
}

void passkeys_list(const struct passkeys *p, struct dynbuf *out)
{
    msg_put_u16(out, (uint16_t)p->n);
    for (size_t i = 0; i < p->n; i++) {
        msg_put_span(out, span_str(p->item[i].name));
        msg_put_span(out, span_of(p->item[i].id, p->item[i].nid));
        msg_put_u64(out, p->item[i].created_ms);
    }
}
