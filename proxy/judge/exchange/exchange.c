#include "proxy/judge/exchange/exchange.h"

#include <stdlib.h>

#include "common/log.h"
#include "common/trace.h"
#include "proxy/judge/accounts/account.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/steps/steps.h"
#include "proxy/judge/stubs/stub.h"
#include "proxy/judge/accounts/turn.h"
#include "proxy/judge/tickets/client.h"

/* An exchange holds at most a request, the request first held and a kept answer, each one frame. */
enum { ARENA_MAX = 3 * 1024 * 1024 };

struct exchange *exchange_find(struct judge *j, uint64_t xid)
{
    struct exchange *x = j->by_xid[xid % XID_BUCKETS];
    while (x != NULL && x->xid != xid)
        x = x->next_xid;
    return x;
}

static struct exchange *make(struct judge *j, struct sandbox *s, uint64_t xid)
{
    if (exchange_find(j, xid) != NULL)
        return NULL;
    struct exchange *x = malloc(sizeof(*x));
    if (x == NULL)
        return NULL;
    memset(x, 0, offsetof(struct exchange, request.field)); /* the fields are set as they are read */
    x->xid = xid;
    x->judge = j;
    x->sandbox = s ? sandbox_ref(s) : NULL;
    x->step = WALK_EVALUATE;
    x->client = CLIENT_WAITS;
    arena_init(&x->arena, ARENA_MAX);
    x->next_xid = j->by_xid[xid % XID_BUCKETS];
    j->by_xid[xid % XID_BUCKETS] = x;
    j->nexchanges++;
    return x;
}

struct exchange *exchange_new(struct judge *j, struct front *f, uint64_t xid)
{
    struct exchange *x = make(j, f->sandbox, xid);
    if (x == NULL)
        return NULL;
    x->lane = arena_copy(&x->arena, f->lane);
    if (x->lane.n != f->lane.n) { /* without it, it would be judged as the sandbox's own */
        exchange_end(x, "no memory");
        return NULL;
    }
    x->front = f;
    f->nexchanges++;
    if (x->sandbox)
        x->sandbox->account->exchanges++;
    return x;
}

void exchange_front_over(struct exchange *x)
{
    if (x->front == NULL)
        return;
    x->front->nexchanges--;
    if (x->sandbox)
        x->sandbox->account->exchanges--;
    x->front = NULL;
}

struct exchange *exchange_new_later(struct judge *j, struct sandbox *s, uint64_t xid)
{
    struct exchange *x = make(j, s, xid);
    if (x == NULL)
        return NULL;
    x->client = CLIENT_LATER;
    x->claim = CLAIM_TICKET;
    return x;
}

void exchange_resume(struct judge *j, uint64_t xid)
{
    struct exchange *x = exchange_find(j, xid);
    if (x == NULL) {
        log_exchange(LOG_DEBUG, xid, "resumed, but it is over");
        return;
    }
    turn_for(j, x->sandbox);
    exchange_wait(x, X_RUNS, 0);
    walk_run(x);
}

static void untime(struct exchange *x)
{
    struct exchange **at = &x->judge->timed;
    while (*at != NULL && *at != x)
        at = &(*at)->next_timed;
    if (*at == x)
        *at = x->next_timed;
    x->next_timed = NULL;
    x->deadline = 0;
}

void exchange_wait(struct exchange *x, enum x_wait w, uint64_t ms)
{
    struct judge *j = x->judge;
    if (!exchange_wait_may(x, w))
        return;
    if (x->deadline != 0)
        untime(x);
    if (w != X_RUNS)
        evaluation_pack(&x->now);
    x->wait = w;
    if (ms == 0)
        return;
    uint64_t now = j->ports.now(j->ports.arg);
    x->deadline = now + ms;
    x->next_timed = j->timed;
    j->timed = x;
    judge_wake_in(j, ms);
}

void exchange_end(struct exchange *x, const char *why)
{
    struct judge *j = x->judge;
    struct exchange **at = &j->by_xid[x->xid % XID_BUCKETS];
    trace_step(x->xid, "end", why);
    if (x->deadline != 0)
        untime(x);
    while (*at != x)
        at = &(*at)->next_xid;
    *at = x->next_xid;
    j->nexchanges--;
    exchange_front_over(x);
    egress_end(x);
    if (x->stub.asks)
        stub_settle(x);
    ticket_client_over(x);
    if (x->sandbox)
        x->sandbox->body_bytes -= x->body_reserved;
    sandbox_unref(x->sandbox);
    upstream_ref_drop(x->upstream);
    evaluation_drop(&x->now);
    body_unref(&x->body);
    arena_free(&x->arena);
    free(x);
}

struct request exchange_asks(const struct exchange *x)
{
    const struct wire_request *r = &x->request;
    return (struct request){
        .scheme = r->scheme,
        .host = r->host,
        .method = r->method,
        .path = r->path,
        .query = r->query,
        .port = r->port,
        .has_query = r->has_query,
        .fields = r->field,
        .nfields = r->nfields,
        .has_body = x->upload != UPLOAD_NONE,
        .body_complete = x->upload < UPLOAD_TO_COME,
        .body = body_bytes(x->body),
    };
}

void exchange_evaluate(struct exchange *x, struct evaluation *out)
{
    struct request r = exchange_asks(x);
    evaluation_make(x->judge, x->sandbox, x->lane, &r, x->body, x->exceeded, out);
}

/* *v: the decision of now. */
static bool decided_alike(struct exchange *x, enum verdict verdict, struct evaluation *v)
{
    exchange_evaluate(x, v);
    return v->d.verdict == verdict && !v->d.need_body && evaluation_terms_same(v, &x->now) &&
           evaluation_counts_same(&v->d, &x->now.d);
}

bool exchange_would_still(struct exchange *x)
{
    struct evaluation v;
    bool same = decided_alike(x, x->now.d.verdict, &v);
    evaluation_drop(&v);
    return same;
}

bool exchange_each_judged(const struct exchange *x, bool (*fn)(const struct judged *j, void *arg), void *arg)
{
    struct request r = exchange_asks(x);
    return evaluation_each_judged(&x->now, x->sandbox, x->lane, &r, fn, arg);
}

bool exchange_still(struct exchange *x, enum verdict verdict)
{
    struct evaluation v;
    bool same = decided_alike(x, verdict, &v);
    evaluation_drop(&x->now);
    x->now = v;
    return same;
}

static void end_broken(struct exchange *x, void *arg)
{
    if (!x->broken)
        return;
    bool on_its_way = x->delivery >= DELIVERY_FORWARDED && x->delivery < DELIVERY_FINISHED;
    if (on_its_way)
        exchange_cancel(x, CANCEL_BROKEN);
    refuse_now(x, on_its_way && exchange_in_doubt(x) ? REFUSE_OUTCOME_UNKNOWN : REFUSE_INTERNAL);
}

void exchange_end_broken(struct judge *j)
{
    bool any = j->broken;
    j->broken = false;
    if (any)
        exchange_each(j, end_broken, NULL);
}

void exchange_each(struct judge *j, void (*fn)(struct exchange *x, void *arg), void *arg)
{
    for (size_t i = 0; i < XID_BUCKETS; i++)
        for (struct exchange *x = j->by_xid[i], *next; x != NULL; x = next) {
            next = x->next_xid;
            fn(x, arg);
        }
}

bool exchange_session_lives(const struct exchange *x)
{
    const struct sandbox *now = x->front ? x->front->sandbox : NULL;
    if (x->client == CLIENT_LATER)
        now = sandbox_still(x->judge, x->sandbox->name, x->sandbox->session);
    return now != NULL && x->sandbox != NULL && span_eq(now->session, x->sandbox->session);
}

bool exchange_is_frozen(const struct exchange *x)
{
    return (!x->judge->thawed || (x->sandbox && x->sandbox->frozen)) && x->now.d.effect != EFFECT_READ;
}

bool exchange_is_repeatable(const struct exchange *x)
{
    return x->now.d.effect == EFFECT_READ && x->claim < CLAIM_ASKED && x->intent < INTENT_ASKED;
}

bool exchange_owes_outcome(const struct exchange *x)
{
    return x->intent >= INTENT_ASKED || x->claim >= CLAIM_MADE;
}

bool exchange_in_doubt(const struct exchange *x)
{
    return x->outcome != OUTCOME_NOT_SENT && (x->now.d.effect != EFFECT_READ || x->claim >= CLAIM_ASKED);
}

bool exchange_reserve(struct exchange *x, uint64_t bytes)
{
    uint64_t others = x->sandbox->body_bytes - x->body_reserved, max = SANDBOX_BODIES_MAX;
    if (max < x->judge->config.body_max)
        max = x->judge->config.body_max; /* one of the largest always fits */
    if (bytes > max || others > max - bytes)
        return false;
    x->sandbox->body_bytes = others + bytes;
    x->body_reserved = bytes;
    return true;
}
