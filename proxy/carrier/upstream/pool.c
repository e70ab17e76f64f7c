#include "proxy/carrier/upstream/pool.h"

#include <stdlib.h>

enum { FRONTS = 256 };

struct pooled {
    struct pooled *next;
    struct pool *pool;
    struct conn *conn;
    struct upstream *upstream; /* a reference */
    uint64_t front, since;
    struct addr addr;
    struct dynbuf credential;
};

void pool_init(struct pool *p, struct loop *l)
{
    *p = (struct pool){.loop = l};
}

/* Unlink and free the entry; its connection too unless it was taken. */
static void drop(struct pool *p, struct pooled **at)
{
    struct pooled *d = *at;
    *at = d->next;
    p->n--;
    conn_free(&d->conn);
    upstream_unref(&d->upstream);
    dynbuf_free(&d->credential);
    free(d);
}

static void unasked(void *arg, struct conn *c, enum conn_event ev)
{
    struct pooled *d = arg;
    struct pool *p = d->pool;
    if (ev == CONN_DRAINED)
        return;
    for (struct pooled **at = &p->first; *at != NULL; at = &(*at)->next)
        if (*at == d) {
            drop(p, at);
            return;
        }
}

static bool same(const struct pooled *d, const struct pool_key *k)
{
    return d->front == k->front && d->upstream == k->upstream && span_eq(dynbuf_span(&d->credential), k->credential);
}

/* The pool is everybody's: of the front that has most of it, the one that has waited longest. */
static struct pooled **who_goes(struct pool *p)
{
    uint16_t of[FRONTS] = {0};
    struct pooled **goes = &p->first;
    for (const struct pooled *d = p->first; d != NULL; d = d->next)
        of[d->front % FRONTS]++;
    for (struct pooled **at = &p->first; *at != NULL; at = &(*at)->next)
        if (of[(*at)->front % FRONTS] >= of[(*goes)->front % FRONTS])
            goes = at;
    return goes;
}

/* Not the one that comes: what is sent once takes only what was used a moment ago. */
static void make_room(struct pool *p, const struct pool_key *k)
{
    size_t each = 0;
    struct pooled **oldest = NULL;
    for (struct pooled **at = &p->first; p->n >= POOL_EACH && *at != NULL; at = &(*at)->next)
        if (same(*at, k)) {
            each++;
            oldest = at;
        }
    if (each >= POOL_EACH)
        drop(p, oldest);
    else if (p->n >= POOL_MAX)
        drop(p, who_goes(p));
}

void pool_put(struct pool *p, const struct pool_key *k, struct upstream *u, struct conn **c)
{
    struct pooled *d = conn_input(*c).n == 0 && conn_queued(*c) == 0 ? calloc(1, sizeof(*d)) : NULL;
    if (d == NULL) {
        conn_free(c);
        return;
    }
    dynbuf_init(&d->credential, 256);
    if (dynbuf_add(&d->credential, k->credential) != 0) {
        free(d);
        conn_free(c);
        return;
    }
    make_room(p, k);
    d->pool = p;
    d->conn = *c;
    d->front = k->front;
    d->addr = k->addr;
    d->since = loop_now(p->loop);
    d->upstream = u;
    u->refs++;
    *c = NULL;
    d->next = p->first;
    p->first = d;
    p->n++;
    conn_deadline(d->conn, 0);
    conn_pause(d->conn, false);
    conn_set_callback(d->conn, unasked, d);
}

struct conn *pool_take(struct pool *p, const struct pool_key *k, uint64_t max_idle, struct addr *addr)
{
    uint64_t now = loop_now(p->loop);
    for (struct pooled **at = &p->first; *at != NULL; at = &(*at)->next) {
        struct pooled *d = *at;
        if (!same(d, k) || now - d->since > max_idle || !addr_among(&d->addr, k->to, k->nto))
            continue;
        struct conn *c = d->conn;
        *addr = d->addr;
        d->conn = NULL;
        drop(p, at);
        return c;
    }
    return NULL;
}

void pool_expire(struct pool *p, uint64_t max_idle)
{
    uint64_t now = loop_now(p->loop);
    for (struct pooled **at = &p->first; *at != NULL;)
        if (now - (*at)->since > max_idle)
            drop(p, at);
        else
            at = &(*at)->next;
}

void pool_front_gone(struct pool *p, uint64_t front)
{
    for (struct pooled **at = &p->first; *at != NULL;)
        if ((*at)->front == front)
            drop(p, at);
        else
            at = &(*at)->next;
}

void pool_clear(struct pool *p)
{
    while (p->first != NULL)
        drop(p, &p->first);
}
