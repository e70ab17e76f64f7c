/* A WebSocket through a real carrier: its own key, the one answer that switches, messages searched (A45, B42, D1). */
#include "tests/unit/carrier/carrier_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/http/ws.h"
#include "common/id.h"

#define UP101 "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"

/* The accept that belongs to the key this carrier sent. */
static void accept_of(struct world *w, size_t up, char out[WS_ACCEPT_TEXT + 1])
{
    struct span got = dynbuf_span(&w->up[up].got), name = SPAN("Sec-WebSocket-Key: ");
    size_t at = span_find(got, name);
    assert_true(at < got.n);
    assert_int_equal(websocket_accept(span_first(span_from(got, at + name.n), WS_KEY_TEXT), out), 0);
}

static void ask(struct world *w, uint64_t n, size_t up, bool once)
{
    char path[32], line[48];
    snprintf(path, sizeof(path), "/%llu", (unsigned long long)n);
    snprintf(line, sizeof(line), "GET /%llu HTTP/1.1\r\n", (unsigned long long)n);
    world_forward(w, XID(n), (struct request){.path = path, .upgrade = true, .once = once});
    world_wait_up(w, up, line);
    world_wait_up(w, up, "Connection: Upgrade\r\n\r\n");
}

static void answer(struct world *w, size_t up, const char *more)
{
    char text[1024], accept[WS_ACCEPT_TEXT + 1];
    accept_of(w, up, accept);
    snprintf(text, sizeof(text), UP101 "Sec-WebSocket-Accept: %s\r\n%s\r\n", accept, more);
    world_answer(w, up, text);
}

static void frames(struct world *w, size_t up, struct span bytes)
{
    assert_int_equal(conn_write(w->up[up].conn, bytes), 0);
    world_settle(w);
}

static struct msg_in message(struct world *w, uint64_t n, size_t nth)
{
    for (size_t i = 0; i < w->nseen; i++)
        if (w->seen[i].at == ROLE_FRONT && w->seen[i].type == M_ANSWER_MESSAGE && w->seen[i].id == XID(n) &&
            nth-- == 0)
            return msg_in(dynbuf_span(&w->seen[i].payload));
    fail_msg("there is no such message");
    return msg_in(SPAN_NONE);
}

static void is_message(struct world *w, uint64_t n, size_t nth, uint8_t op, bool last, uint16_t code,
                       const char *text)
{
    struct msg_in m = message(w, n, nth);
    assert_int_equal(msg_get_u8(&m), op);
    assert_int_equal(msg_get_bool(&m), last);
    assert_int_equal(msg_get_u16(&m), code);
    if (span_find(m.rest, span_str(text)) == m.rest.n && text[0])
        fail_msg("\"%.*s\" is not \"%s\"", SPAN_FMT(m.rest), text);
}

static void say(struct world *w, uint64_t n, uint8_t op, uint16_t code, const char *text)
{
    struct dynbuf b;
    dynbuf_init(&b, 1000);
    msg_put_u8(&b, op);
    msg_put_u16(&b, code);
    dynbuf_add(&b, span_str(text));
    world_say(w, ROLE_JUDGE, M_MESSAGE, XID(n), dynbuf_span(&b));
    dynbuf_free(&b);
    world_settle(w);
}

static void ended(struct world *w, uint64_t n, uint64_t out, uint64_t in, uint16_t code)
{
    struct msg_in m = msg_in(dynbuf_span(&world_wait(w, ROLE_JUDGE, M_WS_ENDED, XID(n))->payload));
    assert_int_equal(msg_get_u64(&m), out);
    assert_int_equal(msg_get_u64(&m), in);
    assert_int_equal(msg_get_u16(&m), code);
    assert_int_equal(msg_end(&m), 0);
}

/* What came upstream behind the head, unmasked. */
static void sent(struct world *w, size_t up, struct ws_reader *r, uint8_t op, uint16_t code, const char *text)
{
    struct span got = dynbuf_span(&w->up[up].got);
    static size_t at;
    struct ws_message m;
    uint16_t bad;
    size_t used;
    if (r->side == 0) {
        ws_reader_init(r, WS_FROM_CLIENT, 100000);
        at = span_find(got, SPAN("\r\n\r\n")) + 4;
    }
    assert_int_equal(ws_read(r, span_from(got, at), &used, &m, &bad), WS_OK);
    at += used;
    assert_int_equal(m.op, op);
    assert_int_equal(m.code, code);
    assert_true(span_eq(m.data, span_str(text)));
}

/* The server's ends are closed too, so that nothing lingers. */
static void leave(struct world *w)
{
    for (size_t i = 0; i < w->nups; i++)
        conn_free(&w->up[i].conn);
    world_settle(w);
    world_free(&w);
}

static void both_ways(void **state)
{
    struct world *w = world_new();
    struct ws_reader r = {.side = 0};
    (void)state;
    ask(w, 1, 0, true);
    assert_true(world_up_has(w, 0, "Sec-WebSocket-Version: 13\r\n"));
    answer(w, 0, "X-Kept: 1\r\n");
    struct wire_answer a;
    struct msg_in m = msg_in(dynbuf_span(&world_wait(w, ROLE_FRONT, M_SWITCH, XID(1))->payload));
    assert_int_equal(wire_get_answer(&m, &a), 0);
    assert_true(a.status == 101 && a.nfields == 1 && span_eq(a.field[0].name, SPAN("X-Kept")));
    (void)world_wait(w, ROLE_JUDGE, M_SWITCHED, XID(1));
    say(w, 1, WS_TEXT, 0, "hello");
    say(w, 1, WS_PING, 0, "");
    sent(w, 0, &r, WS_TEXT, 0, "hello");
    sent(w, 0, &r, WS_PING, 0, "");
    frames(w, 0, SPAN("\x01\x01h\x89\x01p\x80\x01i\x82\x00"));
    is_message(w, 1, 0, WS_PING, true, 0, "p");
    is_message(w, 1, 1, WS_TEXT, true, 0, "hi");
    is_message(w, 1, 2, WS_BINARY, true, 0, "");
    say(w, 1, WS_CLOSE, 1000, "bye");
    sent(w, 0, &r, WS_CLOSE, 1000, "bye");
    frames(w, 0, SPAN("\x88\x02\x03\xe8"));
    is_message(w, 1, 3, WS_CLOSE, true, 1000, "");
    ended(w, 1, 1, 2, 1000);
    struct result res = world_result(w, XID(1));
    assert_true(res.outcome == OUTCOME_ANSWERED && res.status == 101 && res.relayed && res.code.n == 0);
    world_wait_closed(w, 0);
    ws_reader_free(&r);
    leave(w);
}

/* A45: another accept, an extension, a subprotocol nobody offered, not asked at all. */
static void only_its_own_answer(void **state)
{
    static const char *const more[] = {"Sec-WebSocket-Extensions: permessage-deflate\r\n",
                                       "Sec-WebSocket-Protocol: x\r\n",
                                       "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", "Upgrade: h2c\r\n"};
    struct world *w = world_new();
    size_t up = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++, up++) {
        ask(w, i + 1, up, i & 1);
        answer(w, up, more[i]);
        expect_code(w, XID(i + 1), OUTCOME_UNKNOWN, "bad-answer");
        assert_int_equal(world_count(w, ROLE_FRONT, M_SWITCH, XID(i + 1)), 0);
    }
    ask(w, 8, up, false);
    world_answer(w, up++, UP101 "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
    expect_code(w, XID(8), OUTCOME_UNKNOWN, "bad-answer");
    world_forward(w, XID(9), (struct request){.path = "/9"});
    world_wait_up(w, up, "GET /9");
    world_answer(w, up, UP101 "\r\n");
    expect_code(w, XID(9), OUTCOME_UNKNOWN, "bad-answer");
    ask(w, 10, ++up, false);
    world_answer(w, up, OK5);
    expect_answer(w, XID(10), "hello", true);
    leave(w);
}

static void ws(struct world *w, uint64_t n, size_t up)
{
    char path[32], value[8192];
    snprintf(path, sizeof(path), "/%llu", (unsigned long long)n);
    snprintf(value, sizeof(value), "Bearer %s", w->secret);
    world_credential(w, XID(n), 0, "up.test", "c", value);
    world_forward(w, XID(n),
                  (struct request){.path = path, .upgrade = true, .credential = "c", .release = RELEASE_COMES});
    world_wait_up(w, up, "Connection: Upgrade\r\n\r\n");
    answer(w, up, "");
    (void)world_wait(w, ROLE_FRONT, M_SWITCH, XID(n));
}

static void text_frames(struct world *w, size_t up, struct span text, size_t each)
{
    for (size_t i = 0; i < text.n; i += each) {
        struct span part = span_first(span_from(text, i), each);
        uint8_t head[2] = {0x81, (uint8_t)part.n};
        assert_int_equal(conn_write(w->up[up].conn, span_of(head, 2)), 0);
        assert_int_equal(conn_write(w->up[up].conn, part), 0);
    }
    world_settle(w);
}

/* D1 over frames: never a message that completes a secret. */
static void secrets(void **state)
{
    static const size_t each[] = {125, 39, 20, 7, 1};
    const struct span token = SPAN("so: " TOKEN " is it");
    struct world *w = world_new();
    (void)state;
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        uint64_t n = i + 1;
        ws(w, n, i);
        text_frames(w, i, token, each[i]);
        struct result r = world_result(w, XID(n));
        assert_true(span_eq(r.code, SPAN("secret-in-message")) && r.outcome == OUTCOME_ANSWERED);
        size_t last = world_count(w, ROLE_FRONT, M_ANSWER_MESSAGE, XID(n)) - 1, shown = 0;
        is_message(w, n, last, WS_CLOSE, true, WS_INTERNAL, "secret");
        for (size_t k = 0; k < last; k++)
            shown += message(w, n, k).rest.n - 4;
        assert_true(shown < 4 + sizeof(TOKEN) - 1);
        world_wait_closed(w, i);
    }
    ws(w, 6, 5);
    frames(w, 5, SPAN("\x89\x28" TOKEN)); /* in a ping */
    expect_code(w, XID(6), OUTCOME_ANSWERED, "secret-in-message");
    leave(w);
}

/* D1: beside a long secret, too, of which much waits in an answer, the message that completes it does not go on. */
static void long_secrets(void **state)
{
    enum { LONG = 4000, FILL = 6000, EACH = 125 };
    char text[FILL + LONG + 1];
    struct world *w = world_new();
    unsigned seed = 11;
    (void)state;
    for (size_t i = 0; i < FILL + LONG; i++) {
        seed = seed * 1103515245 + 12345;
        text[i] = (char)('a' + (seed >> 16) % 26);
    }
    text[FILL + LONG] = 0;
    w->secret = text + FILL;
    ws(w, 1, 0);
    text_frames(w, 0, span_of(text, FILL + LONG), EACH);
    expect_code(w, XID(1), OUTCOME_ANSWERED, "secret-in-message");
    world_settle(w);
    assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER_MESSAGE, XID(1)), (FILL + LONG) / EACH - 1 + 1);
    is_message(w, 1, (FILL + LONG) / EACH - 1, WS_CLOSE, true, WS_INTERNAL, "secret");
    world_wait_closed(w, 0);
    leave(w);
}

/* D41: a message that ends in the beginning of a secret goes on as any other does, in the same frames. */
static void beginnings(void **state)
{
    static const char *const text[] = {TOKEN, "zhp_16C7e42F292c6912E7710c838347Ae178B4a"};
    struct world *w = world_new();
    (void)state;
    ws(w, 1, 0);
    ws(w, 2, 1);
    for (size_t n = 1; n < sizeof(TOKEN) - 1; n++) {
        for (size_t v = 0; v < 2; v++) {
            text_frames(w, v, span_first(span_str(text[v]), n), n);
            text_frames(w, v, SPAN("!"), 1);
        }
        is_message(w, 1, 2 * n - 2, WS_TEXT, true, 0, "");
        is_message(w, 2, 2 * n - 2, WS_TEXT, true, 0, "");
        assert_int_equal(message(w, 1, 2 * n - 2).rest.n, 4 + n);
        assert_int_equal(message(w, 2, 2 * n - 2).rest.n, 4 + n);
    }
    leave(w);
}

static void fill(struct world *w, size_t up, size_t n)
{
    static const uint8_t zeros[60000];
    uint8_t head[4] = {0x82, 126, (uint8_t)(n >> 8), (uint8_t)n};
    assert_int_equal(conn_write(w->up[up].conn, span_of(head, sizeof(head))), 0);
    frames(w, up, span_of(zeros, n));
}

/* Its credit is nearly used up: a message goes on in pieces, a control frame when there is room for all of it. */
static void a_control_frame_is_never_in_pieces(void **state)
{
    enum { BIG = 60000, LEFT = WS_COST + 10 };
    struct world *w = world_new();
    struct dynbuf b;
    uint8_t pong[2 + 125] = {0x8a, 125};
    (void)state;
    ask(w, 1, 0, true);
    answer(w, 0, "");
    (void)world_wait(w, ROLE_FRONT, M_SWITCH, XID(1));
    for (size_t i = 0; i < 4; i++)
        fill(w, 0, BIG);
    fill(w, 0, ANSWER_WINDOW - 4 * (BIG + WS_COST) - WS_COST - LEFT);
    is_message(w, 1, 4, WS_BINARY, true, 0, "");
    frames(w, 0, span_of(pong, sizeof(pong)));
    assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER_MESSAGE, XID(1)), 5);
    dynbuf_init(&b, 100);
    msg_put_u32(&b, 125 - 10);
    world_say(w, ROLE_FRONT, M_ANSWER_CREDIT, XID(1), dynbuf_span(&b));
    dynbuf_free(&b);
    world_settle(w);
    is_message(w, 1, 5, WS_PONG, true, 0, "");
    assert_int_equal(message(w, 1, 5).rest.n, 4 + 125);
    leave(w);
}

static void it_is_ended(void **state)
{
    struct dynbuf b;
    struct world *w = world_new();
    (void)state;
    ask(w, 1, 0, true);
    answer(w, 0, "");
    (void)world_wait(w, ROLE_FRONT, M_SWITCH, XID(1));
    dynbuf_init(&b, 100);
    msg_put_u16(&b, WS_POLICY);
    msg_put_span(&b, SPAN("enough"));
    world_say(w, ROLE_JUDGE, M_WS_CLOSE, XID(1), dynbuf_span(&b)); /* by the judge */
    dynbuf_free(&b);
    ended(w, 1, 0, 0, WS_POLICY);
    is_message(w, 1, 0, WS_CLOSE, true, WS_POLICY, "enough");
    world_wait_closed(w, 0);
    ask(w, 2, 1, true); /* because its client is gone */
    answer(w, 1, "");
    (void)world_wait(w, ROLE_FRONT, M_SWITCH, XID(2));
    world_say(w, ROLE_JUDGE, M_CANCEL, XID(2), SPAN_NONE);
    ended(w, 2, 0, 0, 0);
    world_wait_closed(w, 1);
    ask(w, 3, 2, true); /* by a frame that is none */
    answer(w, 2, "");
    (void)world_wait(w, ROLE_FRONT, M_SWITCH, XID(3));
    frames(w, 2, SPAN("\xc1\x01x"));
    expect_code(w, XID(3), OUTCOME_ANSWERED, "bad-answer");
    is_message(w, 3, 0, WS_CLOSE, true, WS_INTERNAL, "protocol");
    ask(w, 4, 3, true); /* by the server, without a word */
    answer(w, 3, "");
    (void)world_wait(w, ROLE_FRONT, M_SWITCH, XID(4));
    conn_free(&w->up[3].conn);
    w->up[3].ended = true;
    expect_code(w, XID(4), OUTCOME_ANSWERED, "answer-cut");
    assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER_MESSAGE, XID(4)), 0);
    leave(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_ways),
                                       cmocka_unit_test(only_its_own_answer),
                                       cmocka_unit_test(secrets),
                                       cmocka_unit_test(long_secrets),
                                       cmocka_unit_test(beginnings),
                                       cmocka_unit_test(it_is_ended),
                                       cmocka_unit_test(a_control_frame_is_never_in_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
