#include "proxy/keeper/sources/parked.h"

#include <stdlib.h>

struct parked {
    struct parked *next;
    uint64_t wait, xid;
    struct caller *caller; /* NULL: a release */
    size_t n;
    uint8_t payload[];
};

static int add(struct keeper *k, uint64_t wait, uint64_t xid, struct span payload, struct caller *c)
{
    size_t of_front = 0, bytes = payload.n;
    for (const struct parked *p = k->parked; p != NULL; p = p->next)
        if (p->caller == NULL && p->xid >> XID_FRONT_SHIFT == xid >> XID_FRONT_SHIFT) {
            of_front++;
            bytes += p->n;
        }
    if (k->nparked == PARKED_MAX || of_front >= PARKED_A_FRONT || bytes > PARKED_BYTES_A_FRONT ||
        k->parked_bytes + payload.n > PARKED_BYTES_MAX)
        return -1;
    struct parked *p = malloc(sizeof(*p) + payload.n);
    if (p == NULL)
        return -1;
    *p = (struct parked){.next = k->parked, .wait = wait, .xid = xid, .caller = c, .n = payload.n};
    if (payload.n)
        memcpy(p->payload, payload.p, payload.n);
    k->parked = p;
    k->nparked++;
    k->parked_bytes += p->n;
    return 0;
}

int parked_add(struct keeper *k, uint64_t wait, uint64_t xid, struct span payload)
{
    return add(k, wait, xid, payload, NULL);
}

int parked_add_caller(struct keeper *k, uint64_t wait, struct caller *c)
{
    return add(k, wait, 0, SPAN_NONE, c);
}

static struct parked *cut(struct keeper *k, struct parked **at)
{
    struct parked *p = *at;
    *at = p->next;
    k->nparked--;
    k->parked_bytes -= p->n;
    return p;
}

void parked_drop(struct keeper *k, const struct caller *c)
{
    for (struct parked **at = &k->parked; *at != NULL;)
        if ((*at)->caller == c)
            free(cut(k, at));
        else
            at = &(*at)->next;
}

/* First those that wait for it are taken out, since one that is asked again may be parked again. */
void parked_wake(struct keeper *k, uint64_t wait)
{
    struct parked *ready = NULL, *p;
    for (struct parked **at = &k->parked; *at != NULL;)
        if (wait == 0 || (*at)->wait == wait) {
            p = cut(k, at);
            p->next = ready;
            ready = p;
        } else {
            at = &(*at)->next;
        }
    while ((p = ready) != NULL) {
        ready = p->next;
        if (p->caller != NULL)
            keeper_caller_told(p->caller);
        else
            keeper_release(k, p->xid, span_of(p->payload, p->n));
        free(p);
    }
}
