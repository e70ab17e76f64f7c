/* FORWARD. The request on the wire: a head written from the model, then the body as fast as the upstream takes it. */
#include "proxy/carrier/exchange.h"
#include "proxy/carrier/credential/inject.h"

static bool is_any_of(struct span method, const char *a, const char *b, const char *c)
{
    return span_eq(method, span_str(a)) || span_eq(method, span_str(b)) || span_eq(method, span_str(c));
}

static void framing(const struct exchange *x, struct inject *in)
{
    in->framing = HTTP_LENGTH;
    in->length = x->size;
    if (slot_in_body(in->slot))
        in->length += in->value.n - slot_mark_bytes(in->name);
    if (x->f.body == BODY_NONE && !is_any_of(x->f.request.method, "POST", "PUT", "PATCH"))
        in->framing = HTTP_NO_BODY;
    if (x->f.body == BODY_STREAM && x->size == UINT64_MAX)
        in->framing = HTTP_CHUNKED;
}

/* What it is counted as: without what the credential is, also in the digits of the length that it adds to. */
static int plain_bytes(const struct exchange *x, const struct inject *in, uint64_t *n)
{
    struct inject plain = {.request = in->request,
                           .framing = in->framing,
                           .length = x->size,
                           .range = in->range,
                           .ws_key = in->ws_key,
                           .identity = in->identity};
    struct dynbuf out;
    dynbuf_init(&out, INJECT_HEAD_MAX);
    int rc = inject_head(&out, &plain) == 0 && dynbuf_ok(&out) ? 0 : -1;
    *n = out.n;
    dynbuf_free(&out);
    return rc;
}

/* All of it, if its length is known: no part of a write leaves that could be seen not to fit. */
static enum walk_next may_leave(struct exchange *x, uint64_t head)
{
    uint64_t body = x->f.body == BODY_STREAM ? x->size : x->whole.n;
    return meter_need(x, body < INT64_MAX / 4 ? head + body : head + 1);
}

static enum walk_next write_head(struct exchange *x)
{
    uint64_t plain = 0;
    struct inject in = {.request = &x->f.request, .identity = !scrub_is_empty(x->scrub.set)};
    struct dynbuf out;
    enum walk_next next = WALK_FAIL;
    dynbuf_init(&out, INJECT_HEAD_MAX);
    const struct cred *c = x->cred;
    if (c != NULL && (c->value != NULL || c->nsignature > 0)) {
        in.name = c->name;
        in.slot = c->slot;
        in.slot_at = x->f.slot_at;
        in.header = c->header;
        in.value = c->value ? secret_bytes(c->value) : SPAN_NONE;
        for (; in.nsignature < c->nsignature; in.nsignature++)
            in.signature[in.nsignature] = (struct http_field){c->signature[in.nsignature].name,
                                                              secret_bytes(c->signature[in.nsignature].value)};
        in.identity = true;
    }
    if (part_ask(x, &in.range) != WALK_NEXT)
        goto out;
    framing(x, &in);
    if (x->websocket != NULL)
        in.ws_key = carry_websocket_key(x->websocket);
    if (conn_input(x->conn).n != 0) { /* bytes for a request that was not made yet (A46) */
        (void)carry_fail(x, "bad-answer", "the upstream spoke before it was asked");
        goto out;
    }
    if (inject_head(&out, &in) != 0 || !dynbuf_ok(&out)) {
        (void)carry_fail(x, "bad-request", "the request cannot be written as HTTP/1.1");
        goto out;
    }
    if (x->meter.on && plain_bytes(x, &in, &plain) != 0) {
        (void)carry_fail(x, "bad-request", "the request cannot be written as HTTP/1.1");
        goto out;
    }
    if ((next = may_leave(x, plain)) != WALK_NEXT)
        goto out;
    next = WALK_FAIL;
    if (!x->f.repeatable && chan_send(x->carrier->judge, M_SENT, x->xid, SPAN_NONE) != 0)
        goto out;
    carry_sent(x, SENT_HEAD);
    if (conn_write(x->conn, dynbuf_span(&out)) != 0) {
        (void)carry_fail(x, "upstream-closed", "the upstream's connection broke while the request was sent");
        goto out;
    }
    x->out_bytes += out.n;
    meter_pass(x, plain);
    conn_deadline(x->conn, x->carrier->settings.idle_ms);
    next = WALK_NEXT;
out:
    dynbuf_wipe(&out); /* the rendered credential */
    return next;
}

/* With the signatures of this piece in place of the client's. */
static int write_signed(struct exchange *x, struct span piece)
{
    struct dynbuf copy;
    dynbuf_init(&copy, PIECE);
    int rc = dynbuf_add(&copy, piece);
    if (rc == 0) {
        cred_sign_piece(x->cred, x->body_out, copy.p, copy.n);
        rc = conn_write(x->conn, dynbuf_span(&copy));
    }
    dynbuf_free(&copy);
    return rc;
}

static int write_piece(struct exchange *x, struct span piece)
{
    if (x->f.body != BODY_STREAM && x->cred != NULL && x->cred->nchunks > 0)
        return write_signed(x, piece);
    if (x->f.body != BODY_STREAM || x->size != UINT64_MAX)
        return conn_write(x->conn, piece);
    struct dynbuf chunk;
    dynbuf_init(&chunk, PIECE + 1024);
    int rc = http_write_chunk(&chunk, piece);
    if (rc == 0)
        rc = conn_write(x->conn, dynbuf_span(&chunk));
    dynbuf_free(&chunk);
    return rc;
}

/* The front may send as much again as was written. */
static void give_credit(struct exchange *x, size_t n)
{
    struct chan *judge = x->carrier->judge;
    x->owed += n;
    if (x->owed < BODY_WINDOW / 4 || x->body_ended || judge == NULL)
        return;
    struct dynbuf *b = chan_begin(judge, M_BODY_CREDIT, x->xid);
    if (b == NULL)
        return;
    msg_put_u32(b, (uint32_t)x->owed);
    (void)chan_commit(judge);
    x->owed = 0;
}

/* Of a body with a slot: what stands before it, the credential's value in place of the mark, what stands behind. */
static struct span slotted_piece(const struct exchange *x)
{
    struct span value = secret_bytes(x->cred->value);
    size_t out = (size_t)x->body_out, at = x->f.slot_at;
    if (out < at)
        return span_first(span_from(x->whole, out), at - out < PIECE ? at - out : PIECE);
    if (out - at < value.n)
        return span_from(value, out - at);
    return span_first(span_from(x->whole, out - value.n + slot_mark_bytes(x->cred->name)), PIECE);
}

/* Is the next piece the credential's? Then it is not counted. */
static bool is_secret_piece(const struct exchange *x)
{
    return x->f.body != BODY_STREAM && slot_in_body(x->f.slot) && x->body_out >= x->f.slot_at &&
           x->body_out - x->f.slot_at < secret_bytes(x->cred->value).n;
}

static struct span piece_of(const struct exchange *x)
{
    if (x->f.body == BODY_STREAM)
        return span_first(dynbuf_span(&x->stream), PIECE);
    if (slot_in_body(x->f.slot))
        return slotted_piece(x);
    return span_first(span_from(x->whole, (size_t)x->body_out), PIECE);
}

static enum walk_next broken(struct exchange *x)
{
    return carry_fail(x, "upstream-closed", "the upstream's connection broke while the body was sent");
}

static enum walk_next write_body(struct exchange *x)
{
    while (x->sent != SENT_ALL && conn_queued(x->conn) < CONN_OUT_LOW) {
        struct span piece = piece_of(x);
        bool secret = piece.n > 0 && is_secret_piece(x);
        if (piece.n == 0 && !x->body_ended)
            return WALK_NEXT; /* more will come */
        if (piece.n == 0) {
            if (x->f.body == BODY_STREAM && x->size != UINT64_MAX && x->body_out != x->size)
                return carry_fail(x, "body-cut", "the request's body ended before its declared length");
            if (x->f.body == BODY_STREAM && x->size == UINT64_MAX && conn_write(x->conn, SPAN("0\r\n\r\n")) != 0)
                return broken(x);
            carry_sent(x, SENT_ALL);
            conn_deadline(x->conn, x->carrier->settings.first_byte_ms);
            return WALK_NEXT;
        }
        if (!secret)
            piece = span_first(piece, meter_room(x, piece.n));
        if (piece.n == 0)
            return meter_wait(x) == WALK_FAIL ? WALK_FAIL : WALK_NEXT;
        if (write_piece(x, piece) != 0)
            return broken(x);
        x->body_out += piece.n;
        x->out_bytes += piece.n;
        meter_pass(x, secret ? 0 : piece.n);
        conn_deadline(x->conn, x->carrier->settings.idle_ms);
        if (x->f.body == BODY_STREAM) {
            dynbuf_drop(&x->stream, piece.n);
            give_credit(x, piece.n);
        }
    }
    return WALK_NEXT;
}

static enum walk_next send_go(struct exchange *x)
{
    enum walk_next may = x->sent < SENT_HEAD ? meter_wait(x) : WALK_NEXT;
    if (may != WALK_NEXT)
        return may;
    if (x->sent < SENT_HEAD && (may = write_head(x)) != WALK_NEXT)
        return may;
    return x->link == LINK_LOST ? WALK_NEXT : write_body(x);
}

static void end_body(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    bool whole = msg_get_bool(&m);
    x->body_ended = true;
    if (msg_end(&m) == 0 && whole)
        return;
    (void)carry_fail(x, "body-cut", "the client's body was cut short or malformed");
}

void send_body_frame(struct exchange *x, struct frame *f)
{
    if (x->f.body != BODY_STREAM || x->body_ended || x->answer >= ANSWER_HEAD)
        return; /* after an early answer nobody reads it any more (A48) */
    if (f->type == M_BODY_END) {
        end_body(x, f);
    } else {
        x->body_came += f->payload.n;
        if (x->body_came > x->size)
            (void)carry_fail(x, "body-cut", "the request's body is longer than it was declared");
        else if (dynbuf_add(&x->stream, f->payload) != 0)
            (void)carry_fail(x, "body-cut", "the request's body came faster than it was allowed to");
    }
    if (x->code != NULL)
        carry_end(x);
    else if (x->link >= LINK_UP)
        carry_resume(x);
}

enum walk_next step_forward(struct exchange *x)
{
    enum walk_next next = dial_go(x);
    if (next == WALK_NEXT)
        next = send_go(x);
    return next == WALK_NEXT ? answer_head(x) : next;
}
