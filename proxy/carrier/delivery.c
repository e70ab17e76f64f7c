/* Answers to the front, within its credit; and for a write whose client is gone, to the judge. */
#include "proxy/carrier/exchange.h"

enum { CREDIT_MAX = 16 * 1024 * 1024 };

/* The answer's head with the fields that a covered body would prove wrong taken out (D38), or with a length of its
 * own. */
static int write_head_again(struct exchange *x, struct dynbuf *out, bool digests_go, bool own_length, uint64_t length)
{
    struct wire_answer a, b;
    struct msg_in m = msg_in(dynbuf_span(&x->head));
    if (wire_get_answer(&m, &a) != 0)
        return -1;
    b = a;
    b.nfields = 0;
    for (size_t i = 0; i < a.nfields; i++) {
        if (!digests_go || !answer_is_digest(a.field[i].name))
            b.field[b.nfields++] = a.field[i];
    }
    if (own_length && b.framing != HTTP_NO_BODY) {
        b.framing = HTTP_LENGTH;
        b.length = length;
    }
    wire_put_answer(out, &b);
    return dynbuf_ok(out) ? 0 : -1;
}

int delivery_new_length(struct exchange *x, uint64_t length)
{
    struct dynbuf again;
    dynbuf_init(&again, x->head.max);
    if (write_head_again(x, &again, true, true, length) != 0) {
        dynbuf_free(&again);
        return -1;
    }
    dynbuf_free(&x->head);
    x->head = again;
    x->covered = false;
    return 0;
}

static int send_head(struct exchange *x, bool end)
{
    struct chan *front = x->front->chan;
    struct dynbuf *b = chan_begin(front, M_ANSWER, x->xid);
    size_t n = x->ready.n < x->credit ? x->ready.n : (size_t)x->credit;
    n = n < CHAN_PAYLOAD_MAX - 2 * HTTP_ANSWER_HEAD_MAX ? n : CHAN_PAYLOAD_MAX - 2 * HTTP_ANSWER_HEAD_MAX;
    if (b == NULL)
        return -1;
    if (x->covered)
        (void)write_head_again(x, b, true, false, 0);
    else
        (void)dynbuf_add(b, dynbuf_span(&x->head));
    bool all = end && x->answer != ANSWER_CUT && n == x->ready.n;
    msg_put_u8(b, all);
    msg_put_span(b, span_of(x->ready.p, n));
    if (chan_commit(front) != 0)
        return -1;
    carry_delivery(x, DELIVERY_BEGUN);
    if (all)
        carry_delivery(x, DELIVERY_ENDED);
    x->credit -= n;
    meter_pass(x, n);
    dynbuf_drop(&x->ready, n);
    return 0;
}

int delivery_ready(struct exchange *x, bool end)
{
    struct chan *front = x->front->chan;
    if (front == NULL)
        return -1;
    /* The head waits for the first bytes of a body of known length: one frame, one write (speed). */
    if (x->delivery == DELIVERY_NONE && !end && !x->flows && x->ready.n == 0)
        return 0;
    if (x->delivery == DELIVERY_NONE && send_head(x, end) != 0)
        return -1;
    size_t done = 0;
    while (done < x->ready.n && x->credit > 0) {
        size_t n = x->ready.n - done < x->credit ? x->ready.n - done : (size_t)x->credit;
        n = n < PIECE ? n : PIECE;
        if (chan_send(front, M_ANSWER_BODY, x->xid, span_of(x->ready.p + done, n)) != 0)
            return -1;
        x->credit -= n;
        meter_pass(x, n);
        done += n;
    }
    if (done == x->ready.n)
        dynbuf_reset(&x->ready); /* what the client was given is no secret: not overwritten */
    else
        dynbuf_drop(&x->ready, done);
    if (!end || x->delivery == DELIVERY_ENDED || x->ready.n > 0)
        return 0;
    const uint8_t whole = x->answer != ANSWER_CUT;
    if (chan_send(front, M_ANSWER_END, x->xid, span_of(&whole, 1)) != 0)
        return -1;
    carry_delivery(x, DELIVERY_ENDED);
    return 0;
}

void delivery_cut(struct exchange *x)
{
    static const uint8_t no = 0;
    carry_delivery(x, DELIVERY_ENDED);
    if (x->front->chan != NULL)
        (void)chan_send(x->front->chan, M_ANSWER_END, x->xid, span_of(&no, 1));
}

void delivery_credit(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint32_t more = msg_get_u32(&m);
    if (msg_end(&m) != 0 || x->delivery == DELIVERY_NOBODY)
        return;
    x->credit = x->credit + more < CREDIT_MAX ? x->credit + more : CREDIT_MAX;
    if (x->step == WALK_SCRUB)
        carry_resume(x);
}

void delivery_kept(struct exchange *x)
{
    struct chan *judge = x->carrier->judge;
    struct dynbuf *b = !dynbuf_ok(&x->kept) || judge == NULL ? NULL : chan_begin(judge, M_KEPT, x->xid);
    if (b == NULL)
        return;
    (void)write_head_again(x, b, x->covered, true, x->kept.n);
    msg_put_u64(b, x->kept.n);
    msg_put_span(b, dynbuf_span(&x->kept));
    (void)chan_commit(judge);
}
