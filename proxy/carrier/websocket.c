/* After a verified 101: messages both ways. What the server says is searched whole, as one stream of all its
 * messages: none of them is passed on that completes a secret (SCRUB.md). */
#include <stdlib.h>

#include "common/http/ws.h"
#include "common/log.h"
#include "common/state.h"
#include "proxy/carrier/exchange.h"

enum { WORDS_MAX = 123 }; /* of a close frame */

enum websocket_state {
    WEBSOCKET_ASKED = 0,
    WEBSOCKET_OPEN,
    WEBSOCKET_CLOSED_IN,  /* a close of the server came */
    WEBSOCKET_CLOSED_OUT, /* one was written to it */
    WEBSOCKET_CLOSED      /* both */
};
static const struct state_row websocket_states[] = {
    [WEBSOCKET_ASKED] = {"asked", STATE(WEBSOCKET_OPEN)},
    [WEBSOCKET_OPEN] = {"open", STATE(WEBSOCKET_CLOSED_IN) | STATE(WEBSOCKET_CLOSED_OUT)},
    [WEBSOCKET_CLOSED_IN] = {"closed by the server", STATE(WEBSOCKET_CLOSED)},
    [WEBSOCKET_CLOSED_OUT] = {"closed by us", STATE(WEBSOCKET_CLOSED)},
    [WEBSOCKET_CLOSED] = {"closed", 0},
};

struct websocket {
    char key[WS_KEY_TEXT + 4], accept[WS_ACCEPT_TEXT + 1];
    enum websocket_state state;
    struct ws_reader reader;
    /* A message on its way to the front, as far as its credit goes. */
    enum ws_op op; /* WS_NONE: none waits */
    uint16_t code;
    size_t given;
    struct dynbuf message;
    /* The search. */
    struct scrub_stream seen, aside; /* messages; pings, pongs and close reasons */
    size_t owed;                     /* written, not yet credited */
    uint64_t messages_out, messages_in;
    /* How it ends. */
    uint16_t say, ended, to_server;
    size_t nwords;
    uint8_t words[WORDS_MAX];
};

int carry_websocket_begin(struct exchange *x)
{
    struct websocket *s = calloc(1, sizeof(*s));
    struct id id;
    if (s == NULL)
        return -1;
    x->websocket = s;
    dynbuf_init(&s->message, WS_ANSWER_MAX);
    ws_reader_init(&s->reader, WS_FROM_SERVER, WS_ANSWER_MAX);
    if (!span_eq(x->f.request.method, SPAN("GET")) || x->f.body != BODY_NONE || id_new(&id) != 0)
        return -1;
    if (base64_encode(span_of(id.b, sizeof(id.b)), s->key) != WS_KEY_TEXT)
        return -1;
    return websocket_accept(carry_websocket_key(s), s->accept);
}

void carry_websocket_free(struct websocket **s)
{
    if (*s == NULL)
        return;
    ws_reader_free(&(*s)->reader);
    dynbuf_wipe(&(*s)->message);
    scrub_end(&(*s)->seen);
    scrub_end(&(*s)->aside);
    free(*s);
    *s = NULL;
}

struct span carry_websocket_key(const struct websocket *s)
{
    return span_of(s->key, WS_KEY_TEXT);
}

bool carry_websocket_is_on(const struct websocket *s)
{
    return s->state != WEBSOCKET_ASKED;
}

static bool closed_in(const struct websocket *s)
{
    return s->state == WEBSOCKET_CLOSED_IN || s->state == WEBSOCKET_CLOSED;
}

static bool closed_out(const struct websocket *s)
{
    return s->state == WEBSOCKET_CLOSED_OUT || s->state == WEBSOCKET_CLOSED;
}

static void change(struct exchange *x, enum websocket_state to)
{
    struct websocket *s = x->websocket;
    if (to != WEBSOCKET_OPEN && s->state != WEBSOCKET_OPEN && s->state != to)
        to = WEBSOCKET_CLOSED;
    if (carry_may(x, STATE_KIND("WebSocket", websocket_states), s->state, to))
        s->state = to;
}

/* ---- the handshake ---- */

static bool offered(const struct exchange *x, struct span protocol)
{
    const struct wire_request *r = &x->f.request;
    for (size_t i = 0; i < r->nfields; i++) {
        struct span item, rest = r->field[i].value;
        bool more = span_ieq(r->field[i].name, SPAN("sec-websocket-protocol"));
        while (more) {
            more = span_cut(rest, ',', &item, &rest);
            if (span_eq(span_trim(item), protocol))
                return true;
        }
    }
    return false;
}

enum walk_next carry_websocket_verify(struct exchange *x, const struct http_head *h)
{
    unsigned upgrades = 0, accepts = 0, protocols = 0;
    bool good = h->minor == 1 && http_lists(h->field, h->nfields, SPAN("connection"), SPAN("upgrade"));
    for (size_t i = 0; i < h->nfields; i++) {
        const struct http_field *f = &h->field[i];
        if (span_ieq(f->name, SPAN("upgrade"))) {
            upgrades++;
            good &= span_ieq(f->value, SPAN("websocket"));
        } else if (span_ieq(f->name, SPAN("sec-websocket-accept"))) {
            accepts++;
            good &= span_eq(f->value, span_str(x->websocket->accept));
        } else if (span_ieq(f->name, SPAN("sec-websocket-extensions"))) {
            return carry_fail(x, "bad-answer", "the upstream wants a WebSocket extension that nobody offered");
        } else if (span_ieq(f->name, SPAN("sec-websocket-protocol"))) {
            protocols++;
            good &= offered(x, f->value);
        }
    }
    if (good && upgrades == 1 && accepts == 1 && protocols <= 1)
        return WALK_NEXT;
    return carry_fail(x, "bad-answer", "the upstream's answer is not that to this WebSocket upgrade");
}

enum walk_next carry_websocket_switch(struct exchange *x)
{
    struct websocket *s = x->websocket;
    struct dynbuf *b =
        x->delivery != DELIVERY_NOBODY && x->front->chan ? chan_begin(x->front->chan, M_SWITCH, x->xid) : NULL;
    if (b == NULL)
        return carry_fail(x, "cancelled", "the client is gone");
    (void)dynbuf_add(b, dynbuf_span(&x->head));
    if (chan_send(x->carrier->judge, M_SWITCHED, x->xid, SPAN_NONE) != 0 || chan_commit(x->front->chan) != 0)
        return carry_fail(x, "cancelled", "the client is gone");
    if (!scrub_is_empty(x->scrub.set)) {
        scrub_begin(&s->seen, x->scrub.set);
        scrub_begin(&s->aside, x->scrub.set);
    }
    change(x, WEBSOCKET_OPEN);
    carry_delivery(x, DELIVERY_BEGUN);
    return WALK_NEXT;
}

/* ---- from the server ---- */

static void say(struct websocket *s, uint16_t code, struct span words)
{
    s->say = code;
    s->nwords = words.n < WORDS_MAX ? words.n : WORDS_MAX;
    if (s->nwords)
        memcpy(s->words, words.p, s->nwords);
}

/* Does it complete a secret, with what came before it? Nothing short of a whole one may show: an end that depended on
 * the beginning of a secret would confirm guesses of it. -1: it cannot be searched. */
static int search(struct websocket *s, const struct ws_message *m)
{
    if (s->seen.set == NULL || m->data.n == 0)
        return 0;
    struct scrub_stream *stream = m->op == WS_TEXT || m->op == WS_BINARY ? &s->seen : &s->aside;
    return scrub_watch(stream, m->data) == 0 ? stream->found > 0 : -1;
}

static enum walk_next take_message(struct exchange *x, const struct ws_message *m)
{
    struct websocket *s = x->websocket;
    if (search(s, m) != 0) {
        say(s, WS_INTERNAL, SPAN("countersign: a secret stood in what the server sent; it was not passed on"));
        return carry_fail(x, "secret-in-message", "a secret stood in a message of the server");
    }
    dynbuf_reset(&s->message);
    if (dynbuf_add(&s->message, m->data) != 0)
        return carry_fail(x, "answer-refused", "no memory for a message");
    s->messages_in += m->op == WS_TEXT || m->op == WS_BINARY;
    s->op = m->op;
    s->code = m->code;
    s->given = 0;
    if (m->op == WS_CLOSE) {
        change(x, WEBSOCKET_CLOSED_IN);
        s->ended = s->ended ? s->ended : m->code;
    }
    return WALK_NEXT;
}

static int send_piece(struct exchange *x, enum ws_op op, bool last, uint16_t code, struct span piece)
{
    struct chan *front = x->front->chan;
    struct dynbuf *b = front ? chan_begin(front, M_ANSWER_MESSAGE, x->xid) : NULL;
    if (b == NULL)
        return -1;
    msg_put_u8(b, (uint8_t)op);
    msg_put_u8(b, last);
    msg_put_u16(b, code);
    (void)dynbuf_add(b, piece);
    return chan_commit(front);
}

/* What waits goes on, as far as the front's credit reaches. */
static int give(struct exchange *x)
{
    struct websocket *s = x->websocket;
    while (s->op != WS_NONE && x->credit > WS_COST) {
        struct span rest = span_from(dynbuf_span(&s->message), s->given);
        size_t room = (size_t)(x->credit - WS_COST), n = rest.n < room ? rest.n : room;
        n = n < PIECE ? n : PIECE;
        bool last = n == rest.n;
        if (!last && s->op >= WS_CLOSE) /* a control frame has no pieces (RFC 6455 section 5.5) */
            break;
        if (send_piece(x, s->given > 0 ? WS_NONE : s->op, last, s->code, span_first(rest, n)) != 0)
            return -1;
        x->credit -= n + WS_COST;
        s->given += n;
        if (last)
            s->op = WS_NONE;
    }
    return 0;
}

/* What the judge may send again, once the server takes it. */
static void give_credit(struct exchange *x)
{
    struct websocket *s = x->websocket;
    struct chan *judge = x->carrier->judge;
    if (meter_wait(x) != WALK_NEXT || s->owed == 0 || judge == NULL || x->conn == NULL ||
        conn_queued(x->conn) >= CONN_OUT_LOW)
        return;
    struct dynbuf *b = chan_begin(judge, M_BODY_CREDIT, x->xid);
    if (b == NULL)
        return;
    msg_put_u32(b, (uint32_t)s->owed);
    (void)chan_commit(judge);
    s->owed = 0;
}

static enum walk_next bad_frame(struct exchange *x, uint16_t code)
{
    struct websocket *s = x->websocket;
    bool big = code == WS_TOO_BIG;
    s->to_server = code;
    say(s, WS_INTERNAL,
        big ? SPAN("countersign: a message of the server is larger than this gateway passes on")
            : SPAN("countersign: the server broke the WebSocket protocol"));
    return carry_fail(x, "bad-answer", big ? "a message of the server is too large" : "a frame is malformed");
}

static enum walk_next take_input(struct exchange *x)
{
    struct websocket *s = x->websocket;
    for (;;) {
        struct span in = conn_input(x->conn);
        struct ws_message m = {.op = WS_NONE};
        uint16_t code = WS_PROTOCOL;
        size_t used = 0;
        if (give(x) != 0)
            return carry_fail(x, "cancelled", "the client is gone");
        if (s->op != WS_NONE || closed_in(s) || in.n == 0 || x->front->held_back)
            return WALK_NEXT;
        if (meter_wait(x) != WALK_NEXT) /* if there is no more, the judge ends it in words */
            return x->code ? WALK_FAIL : WALK_NEXT;
        enum ws_result r = ws_read(&s->reader, in, &used, &m, &code);
        if (r == WS_BAD)
            return bad_frame(x, code);
        if (r == WS_OK && take_message(x, &m) != WALK_NEXT)
            return WALK_FAIL;
        x->in_bytes += used;
        meter_pass(x, used);
        conn_consume(x->conn, used);
        if (r == WS_MORE && used == 0)
            return WALK_NEXT;
    }
}

enum walk_next carry_websocket_go(struct exchange *x)
{
    struct websocket *s = x->websocket;
    if (take_input(x) != WALK_NEXT)
        return WALK_FAIL;
    give_credit(x);
    bool waits = s->op != WS_NONE || x->front->held_back || meter_room(x, 1) == 0, lost = x->link == LINK_LOST;
    if (closed_in(s) && s->op == WS_NONE && (closed_out(s) || lost))
        return WALK_DONE;
    if (lost && !waits)
        return carry_fail(x, "answer-cut", "the upstream cut the WebSocket");
    if (!lost) {
        conn_pause(x->conn, waits);
        if (s->state == WEBSOCKET_OPEN)
            conn_deadline(x->conn, WEBSOCKET_SILENT_MS);
    }
    return WALK_WAIT;
}

/* ---- to the server ---- */

static int write_frame(struct exchange *x, enum ws_op op, uint16_t code, struct span data)
{
    struct dynbuf out;
    struct id mask;
    int rc = -1;
    dynbuf_init(&out, WS_MESSAGE_MAX + 64);
    if (id_new(&mask) != 0)
        goto out;
    rc = op == WS_CLOSE ? ws_write_close(&out, code, data, mask.b) : ws_write(&out, op, data, mask.b);
    if (rc == 0)
        rc = conn_write(x->conn, dynbuf_span(&out));
    x->out_bytes += rc == 0 ? out.n : 0;
    meter_pass(x, rc == 0 ? out.n : 0);
out:
    dynbuf_free(&out);
    return rc;
}

static void message(struct exchange *x, struct msg_in m)
{
    struct websocket *s = x->websocket;
    uint8_t op = msg_get_u8(&m);
    uint16_t code = msg_get_u16(&m);
    bool data = op == WS_TEXT || op == WS_BINARY;
    if (s->state == WEBSOCKET_ASKED || closed_out(s) || x->link == LINK_LOST)
        return;
    if (m.bad || m.rest.n > WS_MESSAGE_MAX || !(data || op == WS_CLOSE || op == WS_PING || op == WS_PONG)) {
        log_exchange(LOG_ERROR, x->xid, "the judge's message cannot be understood");
        return;
    }
    if (write_frame(x, (enum ws_op)op, code, m.rest) != 0) {
        (void)carry_fail(x, "upstream-closed", "the upstream's connection broke while a message was sent");
        carry_end(x);
        return;
    }
    s->messages_out += data;
    s->owed += m.rest.n + WS_COST;
    if (op == WS_CLOSE) {
        change(x, WEBSOCKET_CLOSED_OUT);
        s->ended = s->ended ? s->ended : code;
        conn_deadline(x->conn, WEBSOCKET_CLOSE_MS);
    }
    carry_resume(x);
}

void carry_websocket_frame(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    if (x->websocket == NULL) {
        log_exchange(LOG_ERROR, x->xid, "the judge has messages for what is no WebSocket");
        return;
    }
    if (f->type == M_MESSAGE) {
        message(x, m);
        return;
    }
    uint16_t code = msg_get_u16(&m);
    struct span words = msg_get_span(&m, WORDS_MAX);
    say(x->websocket, msg_end(&m) == 0 && code ? code : WS_INTERNAL, words);
    if (x->websocket->state == WEBSOCKET_ASKED)
        (void)carry_fail(x, "cancelled", "the gateway ended it before it was answered");
    carry_end(x);
}

void carry_websocket_timeout(struct exchange *x)
{
    struct websocket *s = x->websocket;
    if (s->state == WEBSOCKET_OPEN) {
        say(s, WS_GOING, SPAN("countersign: nothing came either way for too long"));
        (void)carry_fail(x, "upstream-timeout", "the WebSocket was silent for too long");
    }
    carry_end(x);
}

/* ---- the end ---- */

static void end_front(struct exchange *x)
{
    struct websocket *s = x->websocket;
    uint8_t ok = closed_in(s) && s->op == WS_NONE;
    if (x->delivery != DELIVERY_BEGUN || x->front->chan == NULL)
        return;
    if (!ok && s->say) /* a close may stand between the pieces of a message */
        ok = send_piece(x, WS_CLOSE, true, s->say, span_of(s->words, s->nwords)) == 0;
    (void)chan_send(x->front->chan, M_ANSWER_END, x->xid, span_of(&ok, 1));
    carry_delivery(x, DELIVERY_ENDED);
}

static void end_server(struct exchange *x)
{
    struct websocket *s = x->websocket;
    if (x->conn == NULL || x->link == LINK_LOST)
        return;
    if (!closed_out(s) && write_frame(x, WS_CLOSE, s->to_server ? s->to_server : WS_GOING, SPAN_NONE) != 0)
        return;
    conn_finish(&x->conn);
}

void carry_websocket_over(struct exchange *x)
{
    struct websocket *s = x->websocket;
    struct chan *judge = x->carrier->judge;
    if (s->state == WEBSOCKET_ASKED)
        return;
    if (judge == NULL)
        say(s, WS_GOING, SPAN("countersign: the gateway is restarting"));
    end_front(x);
    end_server(x);
    struct dynbuf *b = judge ? chan_begin(judge, M_WS_ENDED, x->xid) : NULL;
    if (b == NULL)
        return;
    msg_put_u64(b, s->messages_out);
    msg_put_u64(b, s->messages_in);
    msg_put_u16(b, s->say ? s->say : s->ended);
    (void)chan_commit(judge);
}
