#include "proxy/keeper/sources/tokens.h"

#include <stdlib.h>

#include "proxy/msgs.h"

struct token {
    struct token *next;
    uint64_t xid, expires_ms;
    struct id lease;
    struct digest meaning;
    struct secret *value;
};

struct tokens {
    struct token *bucket[TOKENS_BUCKETS];
    size_t n;
    uint64_t swept_ms;
};

struct tokens *tokens_new(void)
{
    return calloc(1, sizeof(struct tokens));
}

static size_t bucket_of(const struct id *lease)
{
    return (lease->b[0] | (size_t)lease->b[1] << 8) % TOKENS_BUCKETS;
}

static void take_one(struct tokens *t, struct token **at)
{
    struct token *k = *at;
    *at = k->next;
    secret_free(&k->value);
    free(k);
    t->n--;
}

/* Those of xid (0: any) that have ended by now_ms, and those of xid that have not when all. */
static void take_out(struct tokens *t, uint64_t xid, uint64_t now_ms, bool all)
{
    for (size_t i = 0; i < TOKENS_BUCKETS; i++)
        for (struct token **at = &t->bucket[i], *k; (k = *at) != NULL;) {
            if ((xid != 0 && k->xid != xid) || (!all && k->expires_ms > now_ms))
                at = &k->next;
            else
                take_one(t, at);
        }
}

/* A front is of one sandbox. */
static bool has_share(const struct tokens *t, uint64_t xid, uint64_t now_ms)
{
    size_t n = 0;
    for (size_t i = 0; i < TOKENS_BUCKETS; i++)
        for (const struct token *k = t->bucket[i]; k != NULL; k = k->next)
            n += k->xid >> XID_FRONT_SHIFT == xid >> XID_FRONT_SHIFT && k->expires_ms > now_ms;
    return n < TOKENS_EACH;
}

void tokens_free(struct tokens **t)
{
    if (*t != NULL)
        take_out(*t, 0, 0, true);
    free(*t);
    *t = NULL;
}

int tokens_put(struct tokens *t, uint64_t xid, const struct id *lease, const struct digest *meaning,
               struct secret *value, uint64_t expires_ms, uint64_t now_ms)
{
    if (t->n == TOKENS_MAX)
        take_out(t, 0, now_ms, false);
    bool fits = value != NULL && t->n < TOKENS_MAX && has_share(t, xid, now_ms);
    struct token *k = fits ? calloc(1, sizeof(*k)) : NULL;
    if (k == NULL) {
        secret_free(&value);
        return -1;
    }
    struct token **at = &t->bucket[bucket_of(lease)];
    *k = (struct token){
        .next = *at, .xid = xid, .expires_ms = expires_ms, .lease = *lease, .meaning = *meaning, .value = value};
    *at = k;
    t->n++;
    return 0;
}

const struct secret *tokens_find(const struct tokens *t, const struct id *lease, const struct digest *meaning,
                                 uint64_t now_ms)
{
    const struct token *k = t->bucket[bucket_of(lease)];
    while (k != NULL && !id_eq(&k->lease, lease))
        k = k->next;
    return k != NULL && k->expires_ms > now_ms && memcmp(&k->meaning, meaning, sizeof(*meaning)) == 0 ? k->value
                                                                                                      : NULL;
}

void tokens_drop(struct tokens *t, uint64_t xid)
{
    if (xid != 0)
        take_out(t, xid, 0, true);
}

void tokens_end(struct tokens *t, const struct id *lease)
{
    for (struct token **at = &t->bucket[bucket_of(lease)]; *at != NULL; at = &(*at)->next)
        if (id_eq(&(*at)->lease, lease)) {
            take_one(t, at);
            return;
        }
}

void tokens_expire(struct tokens *t, uint64_t now_ms)
{
    bool lately = t->swept_ms != 0 && now_ms >= t->swept_ms && now_ms - t->swept_ms < TOKENS_SWEEP_MS;
    if (lately) /* it is asked before every release */
        return;
    t->swept_ms = now_ms;
    take_out(t, 0, now_ms, false);
}
