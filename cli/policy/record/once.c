#include "cli/policy/record/once.h"

uint64_t once_hash(uint64_t h, struct span s)
{
    size_t i = 0;
    h ^= s.n * 0x9e3779b97f4a7c15u;
    for (; s.n - i >= 8; i += 8) {
        uint64_t x;
        memcpy(&x, s.p + i, 8);
        h = (h ^ x) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    for (; i < s.n; i++)
        h = (h ^ s.p[i]) * 0x100000001b3u;
    h = (h ^ h >> 29) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 32;
}

static uint64_t *slot(struct once *o, uint64_t h)
{
    uint64_t *at = &o->open[h >> 1 & (ONCE_SLOTS - 2)]; /* two to look into */
    if (at[0] != h && at[1] == h)
        return at + 1;
    return at[0] != h && at[0] != 0 && at[1] == 0 ? at + 1 : at;
}

/* Was it open? open: from now on it is. */
static bool open_now(struct once *o, struct span what, bool open)
{
    uint64_t h = once_hash(1, what) | 1, *at = slot(o, h);
    bool was = *at == h;
    *at = open ? h : was ? 0 : *at;
    return was;
}

static bool is_open(struct once *o, struct span what)
{
    uint64_t h = once_hash(1, what) | 1;
    return *slot(o, h) == h;
}

bool once_ends(struct once *o, struct span exchange)
{
    return exchange.n && open_now(o, exchange, false);
}

enum once_is once_ask(struct once *o, const struct record *r)
{
    bool was;
    if (span_eq(r->kind, SPAN("ticket-opened"))) {
        (void)open_now(o, r->request, true);
        return ONCE_NEW;
    }
    if (span_eq(r->kind, SPAN("intent"))) {
        was = open_now(o, r->exchange, true);
        return was || (r->ticket.n && is_open(o, r->request)) ? ONCE_AGAIN : ONCE_NEW;
    }
    /* Of an exchange that is open: a message on its WebSocket. Of a ticket that was opened: it waited, or came again.
     */
    if (span_eq(r->kind, SPAN("denied")))
        return is_open(o, r->exchange) || (span_eq(r->verdict, SPAN("hold")) && is_open(o, r->request)) ? ONCE_AGAIN
                                                                                                        : ONCE_NEW;
    if (!span_eq(r->kind, SPAN("result")) && !span_eq(r->kind, SPAN("websocket")))
        return ONCE_OTHER;
    was = open_now(o, r->exchange, false);
    return was || (r->ticket.n && is_open(o, r->request)) ? ONCE_AGAIN : ONCE_NEW;
}
