#include "proxy/carrier/credential/origins.h"

#include <stdlib.h>

struct origin {
    struct origin *next;          /* in its bucket */
    struct origin *newer, *older; /* by when it was given something */
    struct arena a;
    struct span scheme, host;
    uint16_t port;
    struct scrub *set;
};

static size_t bucket_of(struct span host, uint16_t port)
{
    size_t h = port;
    for (size_t i = 0; i < host.n; i++)
        h = h * 31 + host.p[i];
    return h % ORIGINS_BUCKETS;
}

static struct origin *find(const struct origins *s, struct span scheme, struct span host, uint16_t port)
{
    struct origin *p = s->bucket[bucket_of(host, port)];
    while (p != NULL && !(p->port == port && span_eq(p->host, host) && span_eq(p->scheme, scheme)))
        p = p->next;
    return p;
}

static void unlink_age(struct origins *s, struct origin *p)
{
    *(p->newer ? &p->newer->older : &s->newest) = p->older;
    *(p->older ? &p->older->newer : &s->oldest) = p->newer;
}

static void link_newest(struct origins *s, struct origin *p)
{
    p->newer = NULL;
    p->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = p;
    s->newest = p;
}

static void forget(struct origins *s, struct origin *p)
{
    struct origin **at = &s->bucket[bucket_of(p->host, p->port)];
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    unlink_age(s, p);
    s->n--;
    scrub_unref(&p->set);
    arena_free(&p->a);
    free(p);
}

static struct origin *add(struct origins *s, struct span scheme, struct span host, uint16_t port)
{
    struct origin *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    if (s->n == ORIGINS_MAX)
        forget(s, s->oldest);
    arena_init(&p->a, 1024);
    p->scheme = arena_copy(&p->a, scheme);
    p->host = arena_copy(&p->a, host);
    p->port = port;
    if (p->scheme.n != scheme.n || p->host.n != host.n) {
        arena_free(&p->a);
        free(p);
        return NULL;
    }
    struct origin **at = &s->bucket[bucket_of(host, port)];
    p->next = *at;
    *at = p;
    link_newest(s, p);
    s->n++;
    return p;
}

/* Of a secret that is given twice: does any of them say refuse? */
static bool refuses(const struct scrub_secret *secret, size_t n, struct span bytes)
{
    for (size_t i = 0; i < n; i++)
        if (secret[i].refuse && span_eq(secret[i].bytes, bytes))
            return true;
    return false;
}

/* Is the set of all these, and are they refused as it says? */
static bool has_all(const struct scrub *set, const struct scrub_secret *secret, size_t n)
{
    struct scrub_secret same;
    for (size_t i = 0; i < n; i++) {
        /* mostly they come in the order in which they came before */
        if (!(scrub_secret(set, i, &same) && span_eq(same.bytes, secret[i].bytes)) &&
            !scrub_find(set, secret[i].bytes, &same))
            return false;
        if (same.refuse != secret[i].refuse && same.refuse != refuses(secret, n, secret[i].bytes))
            return false;
    }
    return true;
}

/* These, and behind them what the origin was given before; of that the oldest give way where the forms of all would
 * be too many (long tokens that change often), for what is new must not be refused for what is old. */
static struct scrub *both(const struct scrub_secret *secret, size_t n, const struct scrub *before, struct err *e)
{
    struct scrub_secret all[2 * SCRUB_SECRETS_MAX], old;
    size_t total = n;
    if (n > SCRUB_SECRETS_MAX)
        return scrub_new(secret, n, e); /* which says so */
    if (n > 0)
        memcpy(all, secret, n * sizeof(all[0]));
    for (size_t i = 0; total < SCRUB_SECRETS_MAX && scrub_secret(before, i, &old); i++) {
        size_t k = 0;
        while (k < total && !span_eq(all[k].bytes, old.bytes))
            k++;
        if (k == total)
            all[total++] = old;
    }
    struct scrub *set = scrub_new(all, total, e);
    while (set == NULL && total > n) {
        total = n + (total - n) / 2;
        set = scrub_new(all, total, e);
    }
    return set;
}

/* Many origins are given the same (a credential for all hosts below a name): one set serves them. */
static struct scrub *shared(const struct origins *s, const struct scrub_secret *secret, size_t n)
{
    struct scrub_secret past;
    for (const struct origin *p = s->newest; p != NULL; p = p->older)
        if (has_all(p->set, secret, n) && !scrub_secret(p->set, n, &past))
            return scrub_ref(p->set);
    return NULL;
}

struct scrub *origins_give(struct origins *s, struct span scheme, struct span host, uint16_t port,
                           const struct scrub_secret *secret, size_t n, struct err *e)
{
    struct origin *p = find(s, scheme, host, port);
    struct scrub *set = NULL;
    if (p == NULL && n == 0)
        return scrub_new(secret, 0, e);
    if (p != NULL && has_all(p->set, secret, n))
        set = scrub_ref(p->set);
    else if (p == NULL)
        set = shared(s, secret, n);
    if (set == NULL)
        set = both(secret, n, p ? p->set : NULL, e);
    if (set == NULL)
        return NULL;
    if (p == NULL && (p = add(s, scheme, host, port)) == NULL) {
        err_set(e, "no memory for what its origin is given");
        scrub_unref(&set);
        return NULL;
    }
    if (p->set != set) {
        scrub_unref(&p->set);
        p->set = scrub_ref(set);
    }
    unlink_age(s, p);
    link_newest(s, p);
    return set;
}

struct scrub *origins_find(const struct origins *s, const struct upstream *u)
{
    struct origin *p = find(s, u->scheme, u->host, u->port);
    return p ? p->set : NULL;
}

/* p is given what this set is of as well. NULL: e says why. */
static struct scrub *join(struct origin *p, struct scrub *set, struct err *e)
{
    struct scrub_secret secret[SCRUB_SECRETS_MAX];
    size_t n = 0;
    while (n < SCRUB_SECRETS_MAX && scrub_secret(set, n, &secret[n]))
        n++;
    if (has_all(p->set, secret, n))
        return p->set;
    struct scrub *all = both(secret, n, p->set, e);
    if (all == NULL)
        return NULL;
    scrub_unref(&p->set);
    p->set = all;
    return all;
}

struct scrub *origins_since(struct origins *s, const struct upstream *u, struct scrub *set, struct err *e)
{
    struct origin *p = find(s, u->scheme, u->host, u->port);
    return p == NULL || p->set == set ? set : join(p, set, e);
}

void origins_clear(struct origins *s)
{
    while (s->oldest != NULL)
        forget(s, s->oldest);
}
