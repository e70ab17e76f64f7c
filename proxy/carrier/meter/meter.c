#include "proxy/carrier/exchange.h"

#include <stdio.h>

#include "common/log.h"

void meter_begin(struct exchange *x)
{
    x->meter = (struct meter){.on = x->f.metered, .asked = x->f.metered};
}

size_t meter_room(const struct exchange *x, size_t n)
{
    if (!x->meter.on)
        return n;
    return x->meter.left <= 0 ? 0 : (uint64_t)x->meter.left < n ? (size_t)x->meter.left : n;
}

void meter_pass(struct exchange *x, uint64_t n)
{
    if (x->meter.on && n <= INT64_MAX / 4) {
        x->meter.left -= (int64_t)n;
        x->meter.passed += n;
    }
}

static void ask(struct exchange *x, uint64_t n)
{
    struct chan *judge = x->carrier->judge;
    struct dynbuf *b = judge == NULL || x->meter.asked ? NULL : chan_begin(judge, M_EGRESS_ASK, x->xid);
    if (b == NULL)
        return;
    msg_put_u64(b, n);
    x->meter.asked = chan_commit(judge) == 0;
}

/* A stream that ends without its end looks to its client like any broken connection. One line end alone: an event
 * that was cut becomes a part of this one, and is none by itself. */
static void say_why(struct exchange *x)
{
    const struct span words =
        SPAN("\nevent: error\ndata: {\"error\":{\"type\":\"egress-limit\",\"message\":\"countersign: the stream ends "
             "here: the egress of this sandbox is used up\"}}\n\n");
    if (x->meter.events && x->delivery == DELIVERY_BEGUN && x->credit >= words.n && x->ready.n == 0 &&
        x->front->chan != NULL)
        (void)chan_send(x->front->chan, M_ANSWER_BODY, x->xid, words);
}

static enum walk_next over(struct exchange *x)
{
    bool limit = span_eq(span_str(x->meter.code), SPAN("egress-limit"));
    if (limit)
        say_why(x);
    return carry_fail(x, limit ? "egress-limit" : "store-unavailable",
                      limit ? "its sandbox, or its tenant, may not send or be sent more"
                            : "how much its sandbox has sent cannot be written down");
}

static enum walk_next wait_for(struct exchange *x, uint64_t n)
{
    if (x->meter.code[0] != '\0')
        return over(x);
    ask(x, n);
    return WALK_WAIT;
}

enum walk_next meter_wait(struct exchange *x)
{
    return !x->meter.on || x->meter.left > 0 ? WALK_NEXT : wait_for(x, (uint64_t)-x->meter.left);
}

enum walk_next meter_need(struct exchange *x, uint64_t n)
{
    uint64_t left = x->meter.left > 0 ? (uint64_t)x->meter.left : 0;
    return !x->meter.on || n <= left ? WALK_NEXT : wait_for(x, n - left);
}

enum walk_next meter_whole(struct exchange *x)
{
    const struct meter *m = &x->meter;
    uint64_t left = m->left > 0 ? (uint64_t)m->left : 0;
    /* Of one that is packed the length tells of its bytes, which may hold a secret; of any other what is passed on
     * does. */
    if (!m->on || x->decode != NULL || x->delivery != DELIVERY_NONE || x->answer != ANSWER_HEAD ||
        x->in.framing != HTTP_LENGTH || x->in.left <= left)
        return WALK_NEXT;
    return wait_for(x, x->in.left - left);
}

void meter_given(struct exchange *x, struct span payload)
{
    struct msg_in m = msg_in(payload);
    uint64_t n = msg_get_u64(&m);
    struct span code = msg_get_span(&m, sizeof(x->meter.code) - 1);
    if (msg_end(&m) != 0 || !x->meter.on || n > INT64_MAX / 2 || (n == 0 && code.n == 0)) {
        log_exchange(LOG_ERROR, x->xid, "what the judge says of its egress cannot be understood");
        n = 0;
        code = SPAN("store-unavailable");
    }
    x->meter.asked = false;
    x->meter.left += (int64_t)n;
    if (n == 0)
        (void)snprintf(x->meter.code, sizeof(x->meter.code), "%.*s", SPAN_FMT(code));
    if (x->step == WALK_SCRUB || (x->step == WALK_FORWARD && x->link >= LINK_UP))
        carry_resume(x);
}
