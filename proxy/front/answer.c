/* Answers on their way to the client: the upstream's, relayed by the carrier, and the gateway's own. */
#include "proxy/front/front.h"

#include <stdio.h>

enum { ANSWER_HEAD_MAX = 128 * 1024, UNREAD_OK = 64 * 1024 };

/* A body that was declared but not read must not become the next request. */
static bool must_close(const struct client *c)
{
    return !c->x.keep_alive || c->x.mode != BODY_MODE_DONE || c->eof || c->front->leaving;
}

static void finished(struct client *c)
{
    bool close_it = c->x.close_out;
    exchange_end(c, "answered");
    if (close_it) {
        client_finish(c);
        return;
    }
    conn_deadline(c->conn, IDLE_MS);
    client_go_on(c);
}

static int write_head(struct client *c, const struct wire_answer *a, enum http_framing framing, uint64_t length)
{
    struct exchange *x = &c->x;
    struct dynbuf out;
    int bad = -1;
    dynbuf_init(&out, ANSWER_HEAD_MAX);
    if (framing == HTTP_CHUNKED && x->old_client) {
        framing = HTTP_UNTIL_CLOSE;
        x->close_out = true;
    }
    x->chunked_out = framing == HTTP_CHUNKED && !x->is_head;
    if (http_write_status_line(&out, a->status, a->reason) != 0)
        goto out;
    for (size_t i = 0; i < a->nfields; i++)
        if (http_write_field(&out, a->field[i].name, a->field[i].value) != 0)
            goto out;
    if (x->close_out && http_write_field(&out, SPAN("Connection"), SPAN("close")) != 0)
        goto out;
    if (!x->close_out && x->old_client && http_write_field(&out, SPAN("Connection"), SPAN("keep-alive")) != 0)
        goto out;
    if (http_write_end(&out, framing == HTTP_UNTIL_CLOSE ? HTTP_NO_BODY : framing, length) != 0)
        goto out;
    bad = conn_write(c->conn, dynbuf_span(&out));
out:
    dynbuf_free(&out);
    return bad;
}

/* M_REPLY: the gateway's own answer, complete. */
void front_reply(struct client *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_reply r;
    if (c->x.answering || wire_get_reply(&m, &r) != 0 || msg_end(&m) != 0) {
        client_free(c);
        return;
    }
    c->x.answering = true;
    c->x.close_out = r.close || must_close(c) || c->state == CLIENT_LEAF;
    if (write_head(c, &r.head, HTTP_LENGTH, r.body.n) != 0 ||
        (!c->x.is_head && r.body.n && conn_write(c->conn, r.body) != 0)) {
        client_free(c);
        return;
    }
    finished(c);
}

static bool has_no_body(const struct client *c, unsigned status)
{
    return c->x.is_head || status == 204 || status == 304;
}

/* M_ANSWER: the upstream's head, and perhaps all of it. */
void front_answer(struct client *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_answer a;
    if (c->x.answering || wire_get_answer(&m, &a) != 0) {
        client_free(c);
        return;
    }
    bool end = msg_get_bool(&m);
    struct span first = msg_get_span(&m, CHAN_PAYLOAD_MAX);
    if (msg_end(&m) != 0) {
        client_free(c);
        return;
    }
    c->x.answering = true;
    c->x.close_out = must_close(c);
    enum http_framing framing = a.framing;
    if (end && framing == HTTP_CHUNKED && !c->x.is_head) { /* all there is: its length is known after all */
        framing = HTTP_LENGTH;
        a.length = first.n;
    }
    if (a.status == 204 || a.status == 304)
        framing = HTTP_NO_BODY;
    if (write_head(c, &a, framing, a.length) != 0) {
        client_free(c);
        return;
    }
    conn_deadline(c->conn, WRITE_MS);
    if (first.n && !has_no_body(c, a.status))
        front_answer_body(c, first);
    if (end && c->on) {
        c->x.chunked_out = false;
        finished(c);
    }
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
    conn_deadline(c->conn, WRITE_MS);
}

void front_drained(struct client *c)
{
    if (c->on && c->x.answering)
        give_credit(c);
}

void front_answer_body(struct client *c, struct span data)
{
    char size[20];
    int n = snprintf(size, sizeof(size), "%zx\r\n", data.n);
    if (!c->x.answering || data.n == 0)
        return;
    bool chunk = c->x.chunked_out;
    if ((chunk && conn_write(c->conn, span_of(size, (size_t)n)) != 0) || conn_write(c->conn, data) != 0 ||
        (chunk && conn_write(c->conn, SPAN("\r\n")) != 0)) {
        client_free(c);
        return;
    }
    c->x.owed += data.n;
    if (conn_queued(c->conn) < CONN_OUT_LOW && c->x.owed > ANSWER_WINDOW / 4)
        give_credit(c);
}

/* M_ANSWER_END: false means what was relayed is not all; the client must see a cut, not an end. */
void front_answer_end(struct client *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    bool ok = msg_get_bool(&m);
    if (msg_end(&m) != 0 || !ok || !c->x.answering) {
        exchange_end(c, "the answer was cut");
        client_free(c);
        return;
    }
    if (c->x.chunked_out && conn_write(c->conn, SPAN("0\r\n\r\n")) != 0) {
        client_free(c);
        return;
    }
    finished(c);
}

void front_refuse(struct client *c, unsigned status, const char *code, const char *why)
{
    char body[512], out[1024];
    const char *phrase = status == 407   ? "Proxy Authentication Required"
                         : status == 503 ? "Service Unavailable"
                         : status == 421 ? "Misdirected Request"
                         : status == 431 ? "Request Header Fields Too Large"
                         : status == 405 ? "Method Not Allowed"
                         : status == 417 ? "Expectation Failed"
                         : status == 414 ? "URI Too Long"
                         : status == 501 ? "Not Implemented"
                         : status == 505 ? "HTTP Version Not Supported"
                                         : "Bad Request";
    int n = snprintf(body, sizeof(body),
                     "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%u,\"code\":\"%s\",\"error\":\"%s\","
                     "\"message\":\"%s\",\"detail\":\"%s\",\"retry\":%s}\n",
                     phrase, status, code, why, why, why, status == 503 ? "true" : "false");
    int head =
        snprintf(out, sizeof(out),
                 "HTTP/1.1 %u %s\r\nContent-Type: application/problem+json\r\nCountersign-Decision: refused\r\n"
                 "%sConnection: close\r\nContent-Length: %d\r\n\r\n",
                 status, phrase, status == 407 ? "Proxy-Authenticate: Basic realm=\"countersign\"\r\n" : "", n);
    if (conn_write(c->conn, span_of(out, (size_t)head)) != 0 || conn_write(c->conn, span_of(body, (size_t)n)) != 0) {
        client_free(c);
        return;
    }
    client_finish(c);
}
