#include "proxy/carrier/credential/cred.h"

#include <stdlib.h>

#include "common/msg.h"
#include "proxy/outbound.h"

enum { CRED_NAMES_MAX = 4096, CRED_VALUE_MAX = SCRUB_SECRET_MAX };

static struct cred *cred_ref(struct cred *c)
{
    c->refs++;
    return c;
}

void cred_unref(struct cred **c)
{
    if (c == NULL || *c == NULL)
        return;
    struct cred *d = *c;
    *c = NULL;
    if (d->refs > 1) {
        d->refs--;
        return;
    }
    secret_free(&d->value);
    secret_free(&d->pem);
    for (size_t i = 0; i < d->nsignature; i++)
        secret_free(&d->signature[i].value);
    free(d->chunks);
    scrub_unref(&d->set);
    arena_free(&d->a);
    free(d);
}

/* What an upstream may echo: the secrets, the whole value, and the value behind its scheme word ("Bearer "). One of
 * the secrets is in each of these, so whether to refuse is said by it. */
static struct scrub *patterns(struct origins *origins, const struct cred *c, struct scrub_secret *secret, size_t n,
                              struct span value, struct err *e)
{
    struct span word, rest;
    if (value.n)
        secret[n++].bytes = value;
    if (value.n && span_cut(value, ' ', &word, &rest) && rest.n >= SCRUB_SECRET_MIN)
        secret[n++].bytes = rest;
    return origins_give(origins, c->scheme, c->host, c->port, secret, n, e);
}

static void read_names(struct cred *c, struct msg_in *m)
{
    c->scheme = arena_copy(&c->a, msg_get_span(m, 5));
    c->host = arena_copy(&c->a, msg_get_span(m, HTTP_HOST_MAX));
    c->port = msg_get_u16(m);
    msg_get_digest(m, &c->bound);
    c->name = arena_copy(&c->a, msg_get_span(m, 256));
    uint8_t slot = msg_get_u8(m);
    m->bad |= slot >= SLOT_KINDS || (slot != SLOT_HEADER && !slot_is_marked((enum slot_kind)slot));
    c->slot = (enum slot_kind)slot;
    c->header = arena_copy(&c->a, msg_get_span(m, 256));
}

static uint64_t place_of(const uint8_t *chunk)
{
    struct msg_in m = msg_in(span_of(chunk, WIRE_CHUNK_SIGNED));
    return msg_get_u64(&m);
}

/* Fields of a signature, each of which may stand in a head, and the chunks' own: all that were made. */
static bool read_signature(struct cred *c, struct msg_in *m, struct span chunks)
{
    size_t n = msg_get_u8(m);
    bool ok = n <= CRED_SIGNATURE_MAX;
    for (size_t i = 0; ok && i < n; i++) {
        struct span name = msg_get_span(m, 256);
        c->signature[i].name = arena_copy(&c->a, name);
        c->signature[i].value = secret_new(msg_get_span(m, CRED_VALUE_MAX));
        c->nsignature = i + 1;
        ok = outbound_slot_ok(c->signature[i].name) && c->signature[i].value != NULL;
    }
    ok = msg_get_u32(m) == chunks.n && chunks.n % WIRE_CHUNK_SIGNED == 0 && ok && (n > 0 || chunks.n == 0);
    if (!ok || chunks.n == 0)
        return ok;
    c->chunks = malloc(chunks.n);
    if (c->chunks == NULL)
        return false;
    memcpy(c->chunks, chunks.p, chunks.n);
    c->nchunks = chunks.n / WIRE_CHUNK_SIGNED;
    for (size_t i = 1; ok && i < c->nchunks; i++) {
        const uint8_t *one = c->chunks + i * WIRE_CHUNK_SIGNED;
        ok = place_of(one) >= place_of(one - WIRE_CHUNK_SIGNED) + WIRE_CHUNK_TEXT;
    }
    return ok;
}

void cred_sign_piece(const struct cred *c, uint64_t at, uint8_t *piece, size_t n)
{
    size_t lo = 0, hi = c->nchunks;
    while (lo < hi) { /* the first that ends behind at */
        size_t mid = lo + (hi - lo) / 2;
        if (place_of(c->chunks + mid * WIRE_CHUNK_SIGNED) + WIRE_CHUNK_TEXT <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < c->nchunks; lo++) {
        const uint8_t *one = c->chunks + lo * WIRE_CHUNK_SIGNED;
        uint64_t place = place_of(one);
        if (place >= at + n)
            break;
        for (size_t i = 0; i < WIRE_CHUNK_TEXT; i++)
            if (place + i >= at && place + i < at + n)
                piece[place + i - at] = one[8 + i];
    }
}

struct cred *cred_read(struct origins *origins, struct span payload, struct span chunks, uint32_t *ttl)
{
    struct msg_in m = msg_in(payload);
    struct scrub_secret secret[SCRUB_SECRETS_MAX + 2] = {0};
    struct cred *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->refs = 1;
    arena_init(&c->a, CRED_NAMES_MAX);
    *ttl = msg_get_u32(&m);
    read_names(c, &m);
    struct span value = msg_get_span(&m, CRED_VALUE_MAX), pem = msg_get_span(&m, CRED_VALUE_MAX);
    size_t n = msg_get_u16(&m);
    m.bad |= n > SCRUB_SECRETS_MAX;
    for (size_t i = 0; !m.bad && i < n; i++) {
        secret[i].bytes = msg_get_span(&m, SCRUB_SECRET_MAX);
        secret[i].refuse = msg_get_bool(&m);
    }
    bool signature = read_signature(c, &m, chunks), signs = c->nsignature > 0;
    c->version = msg_get_u64(&m);
    bool field = value.n > 0 && !slot_is_marked(c->slot);
    bool whole = (c->name.n > 0) == (value.n > 0 || pem.n > 0 || signs);
    whole &= signature && (!signs || (value.n == 0 && c->slot == SLOT_HEADER));
    whole &= field ? outbound_slot_ok(c->header) : c->header.n == 0;
    if (msg_end(&m) != 0 || !whole || c->host.n == 0 || c->scheme.n == 0) {
        err_set(&c->bad, "the keeper's message cannot be understood, or names a field no credential may go into");
        return c;
    }
    /* An escaped value is a form of the secret itself; a key is not shown. */
    c->set = patterns(origins, c, secret, n, field ? value : SPAN_NONE, &c->bad);
    if (c->set == NULL)
        return c;
    c->bad.text[0] = '\0';
    c->value = value.n > 0 ? secret_new(value) : NULL;
    c->pem = pem.n > 0 ? secret_new(pem) : NULL;
    if ((c->value == NULL && value.n > 0) || (c->pem == NULL && pem.n > 0))
        err_set(&c->bad, "no locked memory for it");
    return c;
}

bool cred_fits(const struct cred *c, const struct upstream *u, struct span name)
{
    return span_eq(c->name, name) && span_eq(c->scheme, u->scheme) && span_eq(c->host, u->host) &&
           c->port == u->port && memcmp(&c->bound, &u->bound, sizeof(c->bound)) == 0;
}

static bool same_place(const struct cred *a, const struct cred *b)
{
    return span_eq(a->name, b->name) && span_eq(a->scheme, b->scheme) && span_eq(a->host, b->host) &&
           a->port == b->port;
}

struct cred_slot {
    struct cred_slot *next;
    struct cred *cred;
    uint64_t until, of; /* of: the exchange it was released for, or, while it is live, the front */
};

static void take_out(struct cred_list *l, struct cred_slot **at)
{
    struct cred_slot *gone = *at;
    *at = gone->next;
    l->n--;
    cred_unref(&gone->cred);
    free(gone);
}

static void put(struct cred_list *l, struct cred *c, uint64_t of, uint64_t until)
{
    struct cred_slot *s = l->n < CREDS_MAX ? malloc(sizeof(*s)) : NULL;
    if (s == NULL) /* not remembered: it is asked for again, or missed and refused */
        return;
    *s = (struct cred_slot){.next = l->first, .cred = cred_ref(c), .until = until, .of = of};
    l->first = s;
    l->n++;
}

void creds_live(struct creds *s, struct cred *c, uint64_t front, uint64_t until)
{
    for (struct cred_slot **at = &s->live.first; *at != NULL; at = &(*at)->next)
        if ((*at)->of == front && same_place((*at)->cred, c)) {
            take_out(&s->live, at);
            break;
        }
    put(&s->live, c, front, until);
}

struct cred *creds_find(struct creds *s, const struct upstream *u, struct span name, uint64_t front, uint64_t now)
{
    for (struct cred_slot *at = s->live.first; at != NULL; at = at->next)
        if (at->until > now && at->of == front && cred_fits(at->cred, u, name))
            return cred_ref(at->cred);
    return NULL;
}

void creds_keep(struct creds *s, struct cred *c, uint64_t xid, uint64_t until)
{
    put(&s->unclaimed, c, xid, until);
}

struct cred *creds_claim(struct creds *s, uint64_t xid)
{
    for (struct cred_slot **at = &s->unclaimed.first; *at != NULL; at = &(*at)->next)
        if ((*at)->of == xid) {
            struct cred *c = cred_ref((*at)->cred);
            take_out(&s->unclaimed, at);
            return c;
        }
    return NULL;
}

static void expire(struct cred_list *l, uint64_t now)
{
    for (struct cred_slot **at = &l->first; *at != NULL;)
        if ((*at)->until <= now)
            take_out(l, at);
        else
            at = &(*at)->next;
}

void creds_expire(struct creds *s, uint64_t now)
{
    expire(&s->live, now);
    expire(&s->unclaimed, now);
}

void creds_clear(struct creds *s)
{
    creds_expire(s, UINT64_MAX);
}
