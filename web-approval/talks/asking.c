#include "web-approval/talks/talks.h"

#include <stdlib.h>

#include "common/log.h"
#include "common/net/loop.h"
#include "proxy/errand/errand.h"
#include "web-approval/ask.h"

/* One question. */
struct asking {
    struct talks *of;
    struct exchange *x;
    struct errand *errand;
    talks_fn *fn;
    uint64_t until_ms;
    bool news;
    struct asking *next;
};

struct talks {
    struct errands errands;
    struct asking *list;
};

/* A page that nobody waits for any more, or whose reader has signed out meanwhile, is not made. What a form did is
 * done, and is written down whoever is there. */
static bool is_over(struct exchange *x)
{
    struct desk *d = x->desk;

    if (!span_eq(x->head.method, SPAN("GET")) ||
        (!x->left && guard_session(&d->guard, &x->head, x->now_ms) == x->session))
        return false;
    page_problem(x, 403, "Signed out", "You signed out before the broker had answered. Sign in again.");
    return true;
}

/* Hand the answer on; the question is gone before that. */
static void over(struct asking *q, unsigned status, struct span body)
{
    struct exchange *x = q->x;
    talks_fn *fn = q->fn;

    for (struct asking **at = &q->of->list; *at; at = &(*at)->next)
        if (*at == q) {
            *at = q->next;
            break;
        }
    errand_free(&q->errand);
    free(q);
    x->now_ms = loop_now(x->desk->loop);
    x->wall_ms = loop_wall(x->desk->loop);
    if (!is_over(x))
        fn(x, status, body);
    if (x->status != 0 || x->transfer)
        exchange_answered(x);
}

/* Something happened: an event with an id, or one that says that events were lost. Heartbeats have none. */
static bool is_news(struct span data)
{
    return span_find(data, SPAN("id: ")) < data.n || span_find(data, SPAN("session_lost")) < data.n;
}

static void heard(void *arg, struct errand *e, enum errand_event ev)
{
    struct asking *q = arg;

    switch (ev) {
    case ERRAND_DATA:
        if (!q->news)
            over(q, e->status, e->data.n ? arena_copy(&q->x->arena, e->data) : SPAN_NONE);
        else if (e->status != 200 || is_news(e->data))
            over(q, e->status, SPAN_NONE);
        break;
    case ERRAND_END: over(q, e->status, SPAN_NONE); break;
    case ERRAND_NONE:
        log_warn("the broker did not answer what was asked on the page: %s", e->why ? e->why : "no reason");
        over(q, 0, SPAN_NONE);
        break;
    default: break;
    }
}

/* Is there a place? Each operator has so many, so that none keeps the others out. */
static bool is_free(const struct talks *t, const struct exchange *x, bool news)
{
    size_t all = 0, own = 0;

    for (const struct asking *q = t->list; q; q = q->next) {
        all += q->news == news;
        own += q->news == news && span_eq(span_str(q->x->operator), span_str(x->operator));
    }
    return news ? all < TALKS_WAITS && own < TALKS_WAITS_EACH : all < TALKS_ASKS && own < TALKS_ASKS_EACH;
}

static bool asks(struct exchange *x, const struct talks_ask *what, talks_fn *fn, const char **why)
{
    struct talks *t = x->desk->talks;
    const struct errand_ask a = {.tenant = SPAN(TALKS_TENANT),
                                 .who = span_str(x->operator),
                                 .once = what->once,
                                 .method = what->method,
                                 .target = what->target,
                                 .json = what->json,
                                 .whole = !what->news};
    struct asking *q;

    *why = "the broker does not run at the moment; try again";
    if (!t || !t->errands.desk || a.target.n == 0)
        return false;
    *why = "as much is asked of the broker as may be at once; try again in a moment";
    if (!is_free(t, x, what->news) || !(q = calloc(1, sizeof(*q))))
        return false;
    *q = (struct asking){.of = t,
                         .x = x,
                         .fn = fn,
                         .news = what->news,
                         .until_ms = x->now_ms + (what->news ? TALKS_WAIT_MS : TALKS_MS),
                         .next = t->list};
    if (!(q->errand = errand_new(&t->errands, &a, heard, q))) {
        free(q);
        return false;
    }
    t->list = q;
    return true;
}

static void due(struct desk *d, uint64_t now)
{
    struct asking *q = d->talks ? d->talks->list : NULL;

    while (q) {
        if (q->until_ms > now) {
            q = q->next;
            continue;
        }
        over(q, q->news ? 200 : 0, SPAN_NONE); /* which may have ended others: from the first again */
        q = d->talks->list;
    }
}

void talks_peer(struct desk *d, struct chan *c)
{
    if (!d->talks && (!c || !(d->talks = calloc(1, sizeof(*d->talks)))))
        return;
    d->talks->errands.loop = d->loop;
    d->talks->errands.most = TALKS_ASKS + TALKS_WAITS;
    d->talks->errands.desk = c;
    talks_asks = asks;
    talks_due = due;
    if (!c)
        errands_lost(&d->talks->errands);
}
