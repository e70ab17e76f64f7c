/* A WebSocket on the client's side: the handshake, then messages to the judge and frames to the client. */
#include "common/log.h"
#include "proxy/front/client.h"

/* How many fields of this name there are; *first is the first. */
static size_t count(const struct http_head *h, struct span name, struct span *first)
{
    size_t n = 0;
    for (size_t i = 0; i < h->nfields; i++)
        if (span_ieq(h->field[i].name, name) && n++ == 0)
            *first = h->field[i].value;
    return n;
}

/* Every subprotocol that is offered is a token. */
static bool offers_ok(const struct http_head *h)
{
    for (size_t i = 0; i < h->nfields; i++) {
        struct span item, rest = h->field[i].value;
        bool more = span_ieq(h->field[i].name, SPAN("sec-websocket-protocol"));
        while (more) {
            more = span_cut(rest, ',', &item, &rest);
            if (!http_is_token(span_trim(item)))
                return false;
        }
    }
    return true;
}

bool front_websocket_asked(const struct http_head *h, char accept[WS_ACCEPT_TEXT + 1])
{
    struct span upgrade = SPAN_NONE, key = SPAN_NONE, version = SPAN_NONE;
    uint8_t raw[18];
    size_t n = 0;
    accept[0] = '\0';
    if (!h->upgrade || h->minor != 1 || h->framing != HTTP_NO_BODY || !span_eq(h->method, SPAN("GET")))
        return false;
    if (count(h, SPAN("upgrade"), &upgrade) != 1 || !span_ieq(upgrade, SPAN("websocket")) ||
        !http_lists(h->field, h->nfields, SPAN("connection"), SPAN("upgrade")))
        return false;
    if (count(h, SPAN("sec-websocket-version"), &version) != 1 || !span_eq(version, SPAN("13")) ||
        count(h, SPAN("sec-websocket-key"), &key) != 1)
        return false;
    if (key.n != WS_KEY_TEXT || base64_decode(key, raw, &n) != 0 || n != 16 || !offers_ok(h))
        return false;
    return websocket_accept(key, accept) == 0;
}

/* Extensions are not negotiated; the carrier makes a key of its own. '_' counts as '-' here too. */
void front_websocket_free(struct websocket *s)
{
    ws_reader_free(&s->reader);
}

static int write_101(struct client *c, const struct wire_answer *a)
{
    struct dynbuf *out = &c->front->out;
    dynbuf_reset(out);
    if (http_write_status_line(out, 101, SPAN("Switching Protocols")) != 0)
        return -1;
    for (size_t i = 0; i < a->nfields; i++)
        if (http_write_field(out, a->field[i].name, a->field[i].value) != 0)
            return -1;
    if (http_write_field(out, SPAN("Upgrade"), SPAN("websocket")) != 0 ||
        http_write_field(out, SPAN("Connection"), SPAN("Upgrade")) != 0 ||
        http_write_field(out, SPAN("Sec-WebSocket-Accept"), span_str(c->x.websocket.accept)) != 0 ||
        http_write_end(out, HTTP_NO_BODY, 0) != 0)
        return -1;
    return client_write(c, dynbuf_span(out));
}

/* M_SWITCH: from here on the connection is this WebSocket's, to its end. */
void front_switch(struct client *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct wire_answer a;
    struct websocket *s = &c->x.websocket;
    if (wire_get_answer(&m, &a) != 0 || msg_end(&m) != 0 || a.status != 101 || client_answered(c) ||
        s->accept[0] == '\0') {
        log_exchange(LOG_ERROR, c->x.xid, "the carrier switches protocols where nobody asked");
        client_cut(c);
        return;
    }
    client_exchange_change(c, EXCHANGE_SWITCHED);
    c->x.close_out = true;
    s->credit = BODY_WINDOW;
    ws_reader_init(&s->reader, WS_FROM_CLIENT, WS_MESSAGE_MAX);
    client_wait(c, WAIT_WRITE);
    if (write_101(c, &a) != 0)
        client_cut(c);
    else
        client_go_on(c);
}

static int tell(struct client *c, enum ws_op op, uint16_t code, struct span data)
{
    struct dynbuf *b = c->front->judge ? chan_begin(c->front->judge, M_MESSAGE, c->x.xid) : NULL;
    if (b == NULL)
        return -1;
    msg_put_u8(b, (uint8_t)op);
    msg_put_u16(b, code);
    (void)dynbuf_add(b, data);
    c->x.websocket.credit -= (int64_t)data.n + WS_COST;
    return chan_commit(c->front->judge);
}

static int write_close(struct client *c, uint16_t code, struct span words)
{
    struct dynbuf *out = &c->front->out;
    dynbuf_reset(out);
    c->x.websocket.closed_out = true;
    return ws_write_close(out, code, words, NULL) == 0 ? client_write(c, dynbuf_span(out)) : -1;
}

/* Close from this side, and have the judge end it on the other. */
static void refuse(struct client *c, uint16_t code, const char *words)
{
    bool told = tell(c, WS_NONE, code, SPAN_NONE) == 0;
    log_exchange(LOG_INFO, c->x.xid, "a WebSocket to the sandbox is closed with %u: %s", code, words);
    if (!c->x.websocket.closed_out)
        told = write_close(c, code, span_str(words)) == 0 && told;
    if (told)
        client_finish(c);
    else
        client_cut(c);
}

static const char *words_of(uint16_t code)
{
    switch (code) {
    case WS_TOO_BIG: return "countersign: a message is larger than this gateway takes";
    case WS_NOT_UTF8: return "countersign: a text message is not UTF-8";
    default: return "countersign: what came is not proper WebSocket framing";
    }
}

void front_websocket_go_on(struct client *c)
{
    struct websocket *s = &c->x.websocket;
    while (!s->closed_in) {
        struct ws_message m = {.op = WS_NONE};
        struct span in = conn_input(c->conn);
        uint16_t code = WS_PROTOCOL;
        size_t used = 0;
        conn_pause(c->conn, s->credit <= 0);
        if (in.n == 0 || s->credit <= 0)
            return;
        enum ws_result r = ws_read(&s->reader, in, &used, &m, &code);
        if (r == WS_BAD) {
            refuse(c, code, words_of(code));
            return;
        }
        if (r == WS_OK && tell(c, m.op, m.code, m.data) != 0) {
            refuse(c, WS_INTERNAL, "countersign: the gateway is restarting");
            return;
        }
        s->closed_in |= r == WS_OK && m.op == WS_CLOSE;
        conn_consume(c->conn, used);
        if (r == WS_MORE && used == 0)
            return;
    }
    conn_consume(c->conn, conn_input(c->conn).n); /* nothing counts after a close */
}

void front_websocket_credit(struct client *c, uint32_t more)
{
    c->x.websocket.credit += more;
    front_websocket_go_on(c);
}

/* M_ANSWER_MESSAGE: a message of the server, or a piece of one, which becomes a frame. */
void front_websocket_message(struct client *c, struct span payload)
{
    struct msg_in m = msg_in(payload);
    struct websocket *s = &c->x.websocket;
    uint8_t op = msg_get_u8(&m), head[WS_HEADER_MAX];
    bool last = msg_get_bool(&m);
    uint16_t code = msg_get_u16(&m);
    struct span data = m.rest;
    bool known =
        op == WS_NONE || op == WS_TEXT || op == WS_BINARY || op == WS_CLOSE || op == WS_PING || op == WS_PONG;
    if (c->x.state != EXCHANGE_SWITCHED || m.bad || !known) {
        log_exchange(LOG_ERROR, c->x.xid, "the carrier's message cannot be passed on");
        client_cut(c);
        return;
    }
    if (s->closed_out)
        return;
    int rc;
    if (op == WS_CLOSE) {
        rc = write_close(c, code, data);
    } else {
        rc = client_write(c, span_of(head, ws_frame_header(head, (enum ws_op)op, last, data.n, NULL)));
        rc = rc == 0 && data.n ? client_write(c, data) : rc;
    }
    if (rc != 0)
        client_cut(c);
    else
        front_owe(c, data.n + WS_COST);
}
