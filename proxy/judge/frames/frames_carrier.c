#include "common/log.h"
#include "proxy/judge/frames/frames.h"
#include "proxy/judge/exchange/record.h"
#include "proxy/judge/leases/swap.h"
#include "proxy/judge/replies/refuse.h"
#include "proxy/judge/steps/steps.h"

/* What the client is told of a failure upstream is coarse: no port scan through our codes. */
static enum refuse_why told(const struct exchange *x, struct span code)
{
    if (x->cancel == CANCEL_FROZEN && x->outcome == OUTCOME_NOT_SENT)
        return REFUSE_FROZEN;
    if (x->cancel == CANCEL_POLICY && x->outcome == OUTCOME_NOT_SENT)
        return REFUSE_POLICY_CHANGED;
    if (x->cancel == CANCEL_LEASE && (x->outcome == OUTCOME_NOT_SENT || !exchange_in_doubt(x)))
        return span_eq(x->cause, SPAN("lease-misplaced")) ? REFUSE_LEASE_MISPLACED : REFUSE_LEASE_ENDED;
    if (span_eq(code, SPAN("network-denied")))
        return REFUSE_REACH;
    if (span_eq(code, SPAN("egress-limit")))
        return REFUSE_EGRESS;
    if (span_eq(code, SPAN("store-unavailable")) && x->outcome == OUTCOME_NOT_SENT)
        return REFUSE_STORE;
    if (span_eq(code, SPAN("credential-unavailable")))
        return REFUSE_CREDENTIAL;
    if (span_eq(code, SPAN("range-refused")))
        return REFUSE_RANGE;
    if (span_eq(code, SPAN("part-encoded")))
        return REFUSE_PART;
    /* It was answered, and the answer cannot be passed on: no doubt about the outcome. */
    if (span_eq(code, SPAN("answer-refused")) || span_eq(code, SPAN("answer-encoded")) ||
        span_eq(code, SPAN("secret-in-answer")) || span_eq(code, SPAN("token-unswapped")))
        return REFUSE_ANSWER;
    if (exchange_in_doubt(x))
        return REFUSE_OUTCOME_UNKNOWN;
    return span_find(code, SPAN("timeout")) < code.n ? REFUSE_UPSTREAM_SLOW : REFUSE_UPSTREAM;
}

static bool is_upstreams(enum refuse_why why)
{
    return why == REFUSE_UPSTREAM || why == REFUSE_UPSTREAM_SLOW;
}

static int result(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint8_t outcome = msg_get_u8(&m);
    uint16_t status = msg_get_u16(&m);
    uint64_t out = msg_get_u64(&m), in = msg_get_u64(&m), egress = msg_get_u64(&m);
    bool relayed = msg_get_bool(&m);
    struct span code = msg_get_span(&m, 64), why = msg_get_span(&m, 1024);
    struct span range = msg_get_span(&m, 96);
    if (msg_end(&m) != 0 || outcome > OUTCOME_ANSWERED || x->delivery >= DELIVERY_FINISHED)
        return -1;
    exchange_delivery(x, x->delivery == DELIVERY_SWITCHED ? DELIVERY_CLOSED
                         : relayed                        ? DELIVERY_RELAYED
                                                          : DELIVERY_FINISHED);
    x->outcome = outcome;
    x->status = status;
    x->bytes_out = out;
    x->bytes_in = in;
    egress_spent(x, egress);
    x->range_sent = arena_copy(&x->arena, range);
    /* What we cancelled ourselves ended for our reason, known before. */
    if (x->cancel == CANCEL_FROZEN && span_eq(code, SPAN("cancelled")))
        x->cause = SPAN("frozen");
    else if (x->cancel == CANCEL_POLICY && span_eq(code, SPAN("cancelled")))
        x->cause = SPAN("policy-changed");
    else if (x->cancel == CANCEL_LEASE && span_eq(code, SPAN("cancelled")) && x->cause.n == 0)
        x->cause = SPAN("lease-ended");
    else if (x->cause.n == 0 || !span_eq(code, SPAN("cancelled")))
        x->cause = arena_copy(&x->arena, code);
    /* Its client is told less, so what is wrong with an upstream stands where the operator looks. */
    bool upstream = is_upstreams(told(x, code)) && !span_eq(code, SPAN("cancelled"));
    if (code.n)
        log_exchange(upstream ? LOG_INFO : LOG_DEBUG, x->xid, "%.*s:%u: %.*s (%.*s, %s)", SPAN_FMT(x->request.host),
                     x->request.port, SPAN_FMT(why), SPAN_FMT(code), outcome_name((enum outcome)outcome));
    if (x->delivery == DELIVERY_FINISHED && x->client != CLIENT_ANSWERED && x->kept_answer.n == 0)
        refuse_now(x, told(x, code));
    else
        exchange_resume(x->judge, x->xid);
    return 0;
}

static int kept(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_answer a;
    if (x->kept_answer.n != 0 || wire_get_answer(&m, &a) != 0)
        return -1;
    uint64_t size = msg_get_u64(&m);
    struct span bytes = msg_get_span(&m, ANSWER_KEPT_MAX);
    if (msg_end(&m) != 0 || bytes.n != size)
        return -1;
    x->kept_answer = arena_copy(&x->arena, f->payload);
    return 0;
}

static int credit(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint32_t more = msg_get_u32(&m);
    if (msg_end(&m) != 0)
        return -1;
    x->body_credit += more;
    x->socket.credit += more;
    if (x->front == NULL || x->client == CLIENT_GONE)
        return 0;
    msg_put_u32(post_begin(x->judge, ROLE_FRONT, x->front->instance, M_BODY_CREDIT, x->xid), more);
    post_send(x->judge, "credit could not be passed on");
    return 0;
}

void frames_no_other(struct exchange *x)
{
    x->renews = false;
    (void)post_begin(x->judge, ROLE_CARRIER, 0, M_NEED_RELEASE, x->xid);
    post_send(x->judge, "that there is no other credential could not be said to the carrier");
}

static int need_release(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint64_t refused = msg_get_u64(&m);
    if (msg_end(&m) != 0 || (refused != 0 && !exchange_is_repeatable(x)))
        return -1;
    if (x->now.d.credential < 0 && !(x->upstream && x->upstream->bound))
        return -1;
    if (refused != 0 && !x->judge->config.shadow && !exchange_would_still(x)) { /* it is about to leave once more */
        exchange_cancel(x, CANCEL_POLICY);
        return 0;
    }
    if (x->upstream && x->claim < CLAIM_ASKED)
        upstream_set_live(x->judge, x->upstream, x->now.d.credential, true);
    x->renews = refused != 0;
    if (release_ask(x, refused) == 0)
        return 0;
    if (x->renews) {
        frames_no_other(x);
    } else {
        x->cause = SPAN("credential-unavailable");
        exchange_cancel(x, CANCEL_CREDENTIAL);
        refuse_now(x, REFUSE_CREDENTIAL);
    }
    return 0;
}

int frames_carrier(struct judge *j, struct frame *f)
{
    struct exchange *x = exchange_find(j, f->id);
    if (x == NULL || x->delivery < DELIVERY_FORWARDED)
        return x == NULL ? 0 : -1;
    switch (f->type) {
    case M_NEED_RELEASE: return need_release(x, f);
    case M_SENT:
        exchange_delivery(x, DELIVERY_SENT);
        record_sent(x);
        return 0;
    case M_RESULT: return result(x, f);
    case M_KEPT: return kept(x, f);
    case M_EGRESS_ASK: return egress_more(x, f->payload);
    case M_SWAP_TAKE: return swap_take(x, f->payload);
    case M_BODY_CREDIT: return credit(x, f);
    case M_SWITCHED:
    case M_WS_ENDED: return websocket_frame(x, f);
    default: return -1;
    }
}
