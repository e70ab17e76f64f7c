/* Answers on their way to the client: the upstream's, relayed by the carrier, and the gateway's own. */
#include "common/log.h"
#include "common/trace.h"
#include "proxy/front/client.h"

#include <stdio.h>

/* A body that was declared but not read must not become the next request. */
static bool must_close(const struct client *c)
{
    return !c->x.keep_alive || c->x.mode != BODY_MODE_DONE || c->eof;
}

static void finished(struct client *c)
{
    bool close_it = c->x.close_out;
    client_exchange_end(c, "answered");
    if (close_it) {
        client_finish(c);
        return;
    }
    client_wait(c, WAIT_IDLE);
    client_go_on(c);
}

/* How the client learns where the answer ends. */
static enum http_framing frame(struct exchange *x, const struct wire_answer *a)
{
    enum http_framing framing = a->framing;
    x->out = HTTP_NO_BODY;
    if (a->status == 204 || a->status == 304)
        return HTTP_NO_BODY;
    if (framing == HTTP_NO_BODY && !x->is_head)
        framing = HTTP_LENGTH; /* of none: without a word the client would wait for more */
    if (framing == HTTP_CHUNKED && x->old_client) {
        framing = HTTP_UNTIL_CLOSE;
        x->close_out = true;
    }
    if (!x->is_head)
        x->out = framing;
    x->left = a->framing == HTTP_LENGTH ? a->length : 0;
    return framing;
}

static int write_head(struct client *c, const struct wire_answer *a)
{
    struct exchange *x = &c->x;
    struct dynbuf *out = &c->front->out;
    enum http_framing framing = frame(x, a);
    dynbuf_reset(out);
    if (http_write_status_line(out, a->status, a->reason) != 0)
        return -1;
    for (size_t i = 0; i < a->nfields; i++)
        if (http_write_field(out, a->field[i].name, a->field[i].value) != 0)
            return -1;
    if (x->close_out && http_write_field(out, SPAN("Connection"), SPAN("close")) != 0)
        return -1;
    if (!x->close_out && x->old_client && http_write_field(out, SPAN("Connection"), SPAN("keep-alive")) != 0)
        return -1;
    uint64_t length = a->framing == HTTP_LENGTH ? a->length : 0;
    if (http_write_end(out, framing == HTTP_UNTIL_CLOSE ? HTTP_NO_BODY : framing, length) != 0)
        return -1;
    return client_write(c, dynbuf_span(out));
}

/* M_REPLY: the gateway's own answer, complete. */
void front_reply(struct client *c, struct span payload)
{
    struct msg_in m = msg_in(payload);
    struct wire_reply r;
    bool bad = wire_get_reply(&m, &r) != 0 || msg_end(&m) != 0;
    if (bad)
        log_exchange(LOG_ERROR, c->x.xid, "the judge's reply cannot be passed on");
    if (bad || client_answered(c)) { /* an answer has begun, and its carrier is gone */
        client_cut(c);
        return;
    }
    trace_step(c->x.xid, "reply", "next");
    client_exchange_change(c, EXCHANGE_ANSWERING);
    c->x.close_out = r.close || must_close(c) || c->state == CLIENT_LEAF;
    r.head.framing = HTTP_LENGTH;
    r.head.length = r.body.n;
    if (write_head(c, &r.head) != 0 || (c->x.out != HTTP_NO_BODY && client_write(c, r.body) != 0))
        client_cut(c);
    else
        finished(c);
}

static void give_credit(struct client *c)
{
    if (c->x.owed == 0 || c->front->carrier == NULL)
        return;
    struct dynbuf *b = chan_begin(c->front->carrier, M_ANSWER_CREDIT, c->x.xid);
    if (b == NULL)
        return;
    msg_put_u32(b, (uint32_t)c->x.owed);
    (void)chan_commit(c->front->carrier);
    c->x.owed = 0;
}

void front_drained(struct client *c)
{
    if (!client_asks(c))
        client_go_on(c); /* the next request waited for this */
    else if (client_answered(c))
        give_credit(c);
}

void front_owe(struct client *c, size_t n)
{
    c->x.owed += n;
    if (conn_queued(c->conn) < CONN_OUT_LOW && c->x.owed > ANSWER_WINDOW / 4)
        give_credit(c);
}

/* -1: it cannot be relayed; what the client has must not pass for the whole. */
static int relay(struct client *c, struct span data)
{
    struct exchange *x = &c->x;
    char size[20];
    if (data.n == 0 || x->out == HTTP_NO_BODY)
        return 0;
    bool sized = x->out == HTTP_LENGTH, chunked = x->out == HTTP_CHUNKED;
    int n = chunked ? snprintf(size, sizeof(size), "%zx\r\n", data.n) : 0;
    if (sized && data.n > x->left)
        return -1;
    x->left -= sized ? data.n : 0;
    if ((chunked && client_write(c, span_of(size, (size_t)n)) != 0) || client_write(c, data) != 0 ||
        (chunked && client_write(c, SPAN("\r\n")) != 0))
        return -1;
    front_owe(c, data.n);
    return 0;
}

static int relay_end(struct client *c)
{
    if (c->x.out == HTTP_LENGTH && c->x.left != 0)
        return -1;
    return c->x.out == HTTP_CHUNKED ? client_write(c, SPAN("0\r\n\r\n")) : 0;
}

/* M_ANSWER: the upstream's head, and perhaps all of it. */
void front_answer(struct client *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_answer a UNZEROED;
    bool known = wire_get_answer(&m, &a) == 0, end = msg_get_bool(&m);
    struct span first = msg_get_span(&m, CHAN_PAYLOAD_MAX);
    if (client_answered(c) || !known || msg_end(&m) != 0 || a.status < 200) {
        log_exchange(LOG_ERROR, c->x.xid, "the carrier's answer cannot be passed on");
        client_cut(c);
        return;
    }
    client_exchange_change(c, EXCHANGE_ANSWERING);
    c->x.close_out = must_close(c);
    if (end && a.framing == HTTP_CHUNKED && !c->x.is_head) { /* all there is: its length is known after all */
        a.framing = HTTP_LENGTH;
        a.length = first.n;
    }
    client_wait(c, WAIT_WRITE);
    if (write_head(c, &a) != 0 || relay(c, first) != 0 || (end && relay_end(c) != 0))
        client_cut(c);
    else if (end)
        finished(c);
}

void front_answer_body(struct client *c, struct span data)
{
    if (!client_answered(c) || relay(c, data) != 0)
        client_cut(c);
}

/* M_ANSWER_END: false means what was relayed is not all; the client must see a cut, not an end. */
void front_answer_end(struct client *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    bool ok = msg_get_bool(&m);
    if (msg_end(&m) == 0 && c->x.state == EXCHANGE_SWITCHED) {
        client_exchange_end(c, "the WebSocket ended");
        client_finish(c); /* without a close frame nobody takes it for a proper end */
        return;
    }
    if (msg_end(&m) != 0 || !ok || !client_answered(c) || relay_end(c) != 0)
        client_cut(c);
    else
        finished(c);
}
