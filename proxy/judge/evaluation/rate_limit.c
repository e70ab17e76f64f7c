#include "proxy/judge/evaluation/rate_limit.h"

#include <stdio.h>

#include "proxy/judge/leases/check.h"
#include "proxy/judge/tickets/ticket.h"

/* A limit that did not fit the wire would not be counted. */
_Static_assert((int)WIRE_LIMITS_MAX == (int)LIMITS_MAX, "limits of a request");

void rate_limit_wire(struct exchange *x, struct wire_limits *out)
{
    const struct decision *d = &x->now.d;
    out->n = 0;
    if (x->judge->config.shadow)
        return;
    for (; out->n < d->nlimits && out->n < WIRE_LIMITS_MAX; out->n++) {
        const struct limit *l = &d->limits[out->n];
        out->limit[out->n] = (struct wire_limit){.rule = l->rule,
                                                 .measure = l->measure,
                                                 .per = (uint8_t)l->per,
                                                 .max = l->max,
                                                 .window_ms = l->window_ms,
                                                 .amount = l->amount,
                                                 .uncountable = l->uncountable};
    }
    lease_limits(x, out);
}

void rate_limit_join(struct exchange *x, struct digest *join)
{
    bool all[LIMITS_MAX];
    struct decision held = x->now.d;
    struct request r = exchange_asks(x);
    *join = (struct digest){{0}};
    for (size_t i = 0; i < LIMITS_MAX; i++)
        all[i] = true;
    if (held.nlimits == 0 || x->judge->config.shadow)
        return;
    policy_past_limits(x->now.image->policy, &r, all, x->now.at_ms, &x->now.facts, &held);
    if (held.verdict == VERDICT_HOLD)
        ticket_join(x, &held, join);
}

int rate_limit_take(struct exchange *x, const struct wire_over *said)
{
    static struct wire_limits asked; /* too large for a stack */
    const struct decision *d = &x->now.d;
    struct exceeded *o = arena_alloc(&x->arena, sizeof(*o));
    rate_limit_wire(x, &asked);
    if (o == NULL || said->n != asked.n)
        return -1;
    *o = (struct exceeded){.room_ms = said->room_ms};
    for (size_t i = 0; i < d->nlimits; i++) {
        struct limit *l = &o->past[o->n];
        if (!said->past[i])
            continue;
        *l = d->limits[i];
        l->rule = arena_copy(&x->arena, l->rule);
        l->measure = arena_copy(&x->arena, l->measure);
        if (l->rule.n != d->limits[i].rule.n || l->measure.n != d->limits[i].measure.n)
            return -1;
        o->n++;
    }
    if (o->n == 0)
        return -1;
    x->exceeded = o;
    return 0;
}

bool rate_limit_of_lease(const struct exchange *x, const struct wire_over *said)
{
    for (size_t i = x->now.d.nlimits; i < said->n; i++)
        if (said->past[i])
            return true;
    return false;
}

/* 86400000 -> "1 day", 5400000 -> "90 minutes" */
static void window_words(uint64_t ms, char *to, size_t n)
{
    static const struct {
        uint64_t ms;
        const char *name;
    } unit[] = {{86400000, "day"}, {3600000, "hour"}, {60000, "minute"}, {1000, "second"}};
    size_t i = 0;
    while (i < 3 && ms % unit[i].ms != 0)
        i++;
    unsigned long long count = ms / unit[i].ms;
    (void)snprintf(to, n, "%llu %s%s", count, unit[i].name, count == 1 ? "" : "s");
}

struct span rate_limit_words(struct exchange *x)
{
    static const char *const per[] = {
        [WIRE_PER_SANDBOX] = "", [WIRE_PER_SESSION] = " of this session", [WIRE_PER_ALL] = " of all sandboxes"};
    char text[600], window[40];
    struct span kind, field;
    int n;
    if (x->exceeded == NULL || x->exceeded->n == 0)
        return SPAN_NONE;
    const struct limit *l = &x->exceeded->past[0];
    const char *whose = l->per <= WIRE_PER_ALL ? per[l->per] : "";
    window_words(l->window_ms, window, sizeof(window));
    bool sum = span_cut(l->measure, ':', &kind, &field);
    field = span_first(field, 200);
    unsigned long long max = l->max, amount = l->amount;
    if (!sum && l->uncountable)
        n = snprintf(text, sizeof(text),
                     "for how many requests it stands cannot be seen, so that it is past the limit of %llu in %s%s",
                     max, window, whose);
    else if (!sum && amount > 1)
        n = snprintf(text, sizeof(text), "the limit of %llu requests in %s%s has no room for the %llu it stands for",
                     max, window, whose, amount);
    else if (!sum)
        n = snprintf(text, sizeof(text), "the limit of %llu request%s in %s%s is used up", max,
                     l->max == 1 ? "" : "s", window, whose);
    else if (l->uncountable)
        n = snprintf(text, sizeof(text),
                     "\"%.*s\" must be one whole number to count against the limit of %llu in %s%s, and it is not",
                     SPAN_FMT(field), max, window, whose);
    else
        n = snprintf(text, sizeof(text), "the limit of %llu in %s%s for \"%.*s\" has no room for %llu more", max,
                     window, whose, SPAN_FMT(field), amount);
    return arena_copy(&x->arena, span_of(text, n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1));
}

unsigned rate_limit_wait(const struct exchange *x)
{
    uint64_t now = x->judge->ports.wall(x->judge->ports.arg), room = x->exceeded ? x->exceeded->room_ms : 0;
    if (room == 0)
        return 0;
    uint64_t s = room > now ? (room - now + 999) / 1000 : 1;
    return s > 31 * 86400 ? 0 : (unsigned)s;
}
