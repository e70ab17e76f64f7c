#include "proxy/keeper/sources/tokens.h"

#include <stdlib.h>

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
};

struct tokens *tokens_new(void)
{
    return calloc(1, sizeof(struct tokens));
}

static struct token **place_of(struct tokens *t, const struct id *lease)
{
    return &t->bucket[lease->b[0] % TOKENS_BUCKETS];
}

/* Those of xid (0: any) that have ended by now_ms, and those of xid that have not when all. */
static void take_out(struct tokens *t, uint64_t xid, uint64_t now_ms, bool all)
{
    for (size_t i = 0; i < TOKENS_BUCKETS; i++)
        for (struct token **at = &t->bucket[i], *k; (k = *at) != NULL;) {
            if ((xid != 0 && k->xid != xid) || (!all && k->expires_ms > now_ms)) {
                at = &k->next;
                continue;
            }
            *at = k->next;
            secret_free(&k->value);
            free(k);
            t->n--;
        }
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
        tokens_expire(t, now_ms);
    struct token *k = t->n < TOKENS_MAX && value != NULL ? calloc(1, sizeof(*k)) : NULL;
    if (k == NULL) {
        secret_free(&value);
        return -1;
    }
    struct token **at = place_of(t, lease);
    *k = (struct token){
        .next = *at, .xid = xid, .expires_ms = expires_ms, .lease = *lease, .meaning = *meaning, .value = value};
    *at = k;
    t->n++;
    return 0;
}

const struct secret *tokens_find(const struct tokens *t, const struct id *lease, const struct digest *meaning,
                                 uint64_t now_ms)
{
    const struct token *k = t->bucket[lease->b[0] % TOKENS_BUCKETS];
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

void tokens_expire(struct tokens *t, uint64_t now_ms)
{
    take_out(t, 0, now_ms, false);
}
