#include "proxy/keeper/mint.h"

#include <stdlib.h>

#include "common/id.h"

enum { BUCKETS = 2 * MINT_CACHE, DAY = 86400 };

struct entry {
    struct digest key;
    uint8_t *der;
    size_t n;
    int64_t until;
    struct entry *chain;         /* same bucket */
    struct entry *newer, *older; /* by last use */
};

struct mint {
    const struct ca *ca;
    struct entry *bucket[BUCKETS];
    struct entry *newest, *oldest;
    size_t count;
    uint64_t filled_ms, tokens; /* thousandths of a leaf */
    struct dynbuf out;
};

struct mint *mint_new(const struct ca *ca)
{
    struct mint *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return NULL;
    m->ca = ca;
    m->tokens = 1000u * MINT_BURST;
    dynbuf_init(&m->out, CA_DER_MAX);
    return m;
}

static struct entry **slot(struct mint *m, const struct digest *key)
{
    uint32_t h;
    memcpy(&h, key->b, sizeof(h)); /* a digest is as good a hash as any */
    struct entry **at = &m->bucket[h % BUCKETS];
    while (*at != NULL && memcmp(&(*at)->key, key, sizeof(*key)) != 0)
        at = &(*at)->chain;
    return at;
}

static void unlink_use(struct mint *m, struct entry *e)
{
    *(e->newer ? &e->newer->older : &m->newest) = e->older;
    *(e->older ? &e->older->newer : &m->oldest) = e->newer;
    e->newer = e->older = NULL;
}

static void link_use(struct mint *m, struct entry *e)
{
    e->older = m->newest;
    *(m->newest ? &m->newest->newer : &m->oldest) = e;
    m->newest = e;
}

static void drop(struct mint *m, struct entry *e)
{
    *slot(m, &e->key) = e->chain;
    unlink_use(m, e);
    m->count--;
    free(e->der);
    free(e);
}

void mint_free(struct mint **m)
{
    if (m == NULL || *m == NULL)
        return;
    while ((*m)->newest != NULL)
        drop(*m, (*m)->newest);
    dynbuf_free(&(*m)->out);
    free(*m);
    *m = NULL;
}

static bool may_make_one(struct mint *m, uint64_t ms)
{
    uint64_t gone = ms > m->filled_ms ? ms - m->filled_ms : 0;
    m->filled_ms = ms;
    m->tokens = gone > 1000u * MINT_BURST / MINT_PER_SECOND ? 1000u * MINT_BURST : m->tokens + gone * MINT_PER_SECOND;
    if (m->tokens > 1000u * MINT_BURST)
        m->tokens = 1000u * MINT_BURST;
    if (m->tokens < 1000)
        return false;
    m->tokens -= 1000;
    return true;
}

/* Keeping it is a favour: without memory the leaf is used once and forgotten. */
static void keep(struct mint *m, const struct digest *key, int64_t until)
{
    struct entry *e = calloc(1, sizeof(*e));
    uint8_t *der = malloc(m->out.n);
    if (e == NULL || der == NULL) {
        free(e);
        free(der);
        return;
    }
    if (m->count == MINT_CACHE)
        drop(m, m->oldest);
    memcpy(der, m->out.p, m->out.n);
    *e = (struct entry){.key = *key, .der = der, .n = m->out.n, .until = until};
    *slot(m, key) = e;
    link_use(m, e);
    m->count++;
}

enum mint_result mint_leaf(struct mint *m, struct span host, struct span spki, int64_t now, uint64_t ms,
                           struct span *leaf)
{
    struct digest key;
    struct digest_ctx *d = digest_begin();
    digest_add_field(d, host);
    digest_add_field(d, spki);
    digest_end(d, &key);
    struct entry *e = *slot(m, &key);
    if (e != NULL && e->until - now > DAY && e->until - now <= (int64_t)CA_LEAF_DAYS * DAY) {
        unlink_use(m, e);
        link_use(m, e);
        *leaf = span_of(e->der, e->n);
        return MINT_OK;
    }
    if (e != NULL)
        drop(m, e); /* nearly over, or the clock went back */
    if (!may_make_one(m, ms))
        return MINT_TOO_FAST;
    int64_t until = 0;
    dynbuf_free(&m->out);
    if (ca_mint(m->ca, host, spki, now, &m->out, &until) != 0)
        return MINT_REFUSED;
    keep(m, &key, until);
    *leaf = dynbuf_span(&m->out);
    return MINT_OK;
}

size_t mint_cached(const struct mint *m)
{
    return m->count;
}
