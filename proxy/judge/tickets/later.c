#include "proxy/judge/tickets/later.h"

#include "common/log.h"
#include "proxy/judge/accounts/turn.h"
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/steps/steps.h"
#include "proxy/judge/tickets/prefer.h"
#include "proxy/judge/tickets/review.h"

enum { HELD_MAX = 1024 * 1024 * 1024 };

void later_wanted(struct exchange *x)
{
    x->later.asked = x->lane.n == 0 && !x->now.d.upgrade && prefer_async(&x->request, &x->later.wait_ms);
}

void later_wire(const struct exchange *x, struct wire_later *l)
{
    *l = (struct wire_later){.asked = x->later.asked, .lease = x->lease, .narrowed = x->narrowed};
}

struct count {
    const struct id *ticket;
    const struct account *of;
    size_t all, its;
    bool same; /* of this ticket one is on its way */
};

static void count(struct exchange *x, void *arg)
{
    struct count *c = arg;
    c->same |= x->claim >= CLAIM_MADE && id_eq(&x->ticket.ticket, c->ticket);
    if (x->client != CLIENT_LATER)
        return;
    c->all++;
    c->its += x->sandbox->account == c->of;
    c->same |= id_eq(&x->ticket.ticket, c->ticket);
}

/* Whether it can be done now, so that nothing need be written down of a try that would be none. */
static bool can_be(struct judge *j, struct sandbox *s, const struct id *ticket)
{
    struct count c = {.ticket = ticket, .of = s ? s->account : NULL};
    if (s == NULL || s->frozen || !j->thawed || j->image == NULL || j->config.shadow || j->ending || !j->carrier ||
        !j->keeper || !judge_store_ok(j))
        return false;
    exchange_each(j, count, &c);
    return !c.same && c.all < LATER_MAX && c.its < LATER_EACH;
}

/* The request and the bytes that were held; spans into the exchange's own copy. */
static int take(struct exchange *x, const struct wire_review *w, const struct wire_later *l, struct msg_in *m, int fd)
{
    uint64_t size = msg_get_u64(m);
    struct span bytes = msg_get_span(m, BODY_INLINE_MAX);
    if (fd >= 0)
        x->body = body_of_memfd(fd, size, HELD_MAX);
    if (msg_end(m) != 0 || (fd < 0 && bytes.n != size) || (fd >= 0 && x->body == NULL))
        return -1;
    wire_copy_request(&x->request, &w->request);
    x->lease = l->lease;
    x->narrowed = l->narrowed;
    x->ticket = (struct wire_ticket_state){.ticket = w->ticket, .state = TICKET_APPROVED};
    if (!w->has_body && size == 0)
        return 0;
    exchange_upload(x, UPLOAD_WHOLE);
    if (fd < 0)
        x->body = body_inline(bytes);
    return x->body != NULL && exchange_reserve(x, size) ? 0 : -1;
}

/* The words of a limit are the policy's, which may be another one before it is sent. */
static int own_words(struct arena *a, struct exceeded *over)
{
    int bad = 0;
    for (size_t i = 0; i < over->n; i++) {
        struct limit *l = &over->past[i];
        const struct span rule = l->rule, measure = l->measure;
        l->rule = arena_copy(a, rule);
        l->measure = arena_copy(a, measure);
        bad |= l->rule.n != rule.n || l->measure.n != measure.n;
    }
    return bad ? -1 : 0;
}

/* Of what was held for being past a limit the policy says so only where it is known which one was. */
static void decide(struct exchange *x, const struct wire_review *w)
{
    exchange_evaluate(x, &x->now);
    if (x->now.d.verdict != VERDICT_ALLOW || !span_eq(w->code, SPAN("over-limit")))
        return;
    struct exceeded *over = arena_alloc(&x->arena, sizeof(*over));
    struct request r = exchange_asks(x);
    if (over == NULL || !review_past(x->judge, x->sandbox, &r, &x->now, w, over) || own_words(&x->arena, over) != 0)
        return;
    x->exceeded = over;
    evaluation_drop(&x->now);
    exchange_evaluate(x, &x->now);
}

static void run(struct exchange *x, const struct wire_review *w)
{
    decide(x, w);
    x->step = WALK_HOLD; /* it was asked for, and all before it looked at, by the client that asked */
    walk_run(x);
}

int later_begin(struct judge *j, struct frame *f)
{
    static struct wire_review w; /* too large for a stack */
    struct wire_later l;
    struct msg_in m = msg_in(f->payload);
    if (f->id >> XID_FRONT_SHIFT < XID_LATER || wire_get_review(&m, &w) != 0 || wire_get_later(&m, &l) != 0)
        return -1;
    struct sandbox *s = sandbox_still(j, w.sandbox, w.session);
    turn_for(j, s);
    if (!can_be(j, s, &w.ticket))
        return 0;
    struct exchange *x = exchange_new_later(j, s, f->id);
    struct span own = x ? arena_copy(&x->arena, f->payload) : SPAN_NONE;
    if (x == NULL || own.n != f->payload.n) {
        if (x != NULL)
            exchange_end(x, "no memory");
        return 0;
    }
    m = msg_in(own);
    int bad = wire_get_review(&m, &w) != 0 || wire_get_later(&m, &l) != 0 ? -1 : 0;
    if (bad == 0 && take(x, &w, &l, &m, frame_take_fd(f, 0)) == 0) {
        log_exchange(LOG_INFO, x->xid, "is sent now, for nobody waits for it");
        run(x, &w);
        return 0;
    }
    exchange_end(x, "what was held cannot be taken now");
    return bad;
}
