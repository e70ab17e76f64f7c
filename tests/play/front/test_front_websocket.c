/* The front: which requests are upgrades, and what follows a 101. */
#include "tests/play/front/front_peers.h"

#include <stdio.h>
#include <stdlib.h>

#define KEY    "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
#define HEAD   "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n"
#define UP     "Upgrade: websocket\r\n"
#define CONN   "Connection: keep-alive, Upgrade\r\n"
#define WSKEY  "Sec-WebSocket-Key: " KEY "\r\n"
#define V13    "Sec-WebSocket-Version: 13\r\n"
#define FULL   HEAD UP CONN WSKEY V13

static bool is_upgrade(const struct wire_request *r)
{
    for (size_t i = 0; i < r->nfields; i++)
        if (span_ieq(r->field[i].name, SPAN("upgrade")))
            return true;
    return false;
}

static const struct {
    const char *ask;
    bool upgrade;
} heads[] = {
    {FULL "\r\n", true},
    {HEAD "upgrade: WebSocket\r\nconnection: UPGRADE\r\nsec-websocket-key: " KEY "\r\n" V13 "\r\n", true},
    {FULL "Sec-WebSocket-Protocol: a, b\r\nSec-WebSocket-Protocol: c\r\n\r\n", true},
    {HEAD UP WSKEY V13 "\r\n", false}, /* A38: Upgrade without Connection */
    {HEAD UP "Connection: notupgrade\r\n" WSKEY V13 "\r\n", false},
    {HEAD CONN WSKEY V13 "\r\n", false},
    {HEAD "Upgrade: h2c\r\n" CONN WSKEY V13 "\r\n", false},
    {HEAD "Upgrade: websocket, h2c\r\n" CONN WSKEY V13 "\r\n", false},
    {HEAD UP UP CONN WSKEY V13 "\r\n", false},
    {HEAD UP CONN V13 "\r\n", false},
    {HEAD UP CONN WSKEY WSKEY V13 "\r\n", false},
    {HEAD UP CONN "Sec-WebSocket-Key: c2hvcnQ=\r\n" V13 "\r\n", false},
    {HEAD UP CONN "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==\r\n" V13 "\r\n", false},
    {HEAD UP CONN WSKEY "\r\n", false},
    {HEAD UP CONN WSKEY "Sec-WebSocket-Version: 8\r\n\r\n", false},
    {HEAD UP CONN WSKEY V13 V13 "\r\n", false},
    {FULL "Content-Length: 0\r\n\r\n", false},
    {FULL "Sec-WebSocket-Protocol: a,,b\r\n\r\n", false},
    {FULL "Sec-WebSocket-Protocol: a b\r\n\r\n", false},
    {"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\n" UP CONN WSKEY V13 "Content-Length: 0\r\n\r\n", false},
    {"GET http://a.test/ HTTP/1.0\r\nHost: a.test\r\n" UP CONN WSKEY V13 "\r\n", false},
};

static void only_a_proper_upgrade_is_one(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        cl_open(&s, &c);
        SAY(&c, heads[i].ask);
        struct ask a = take_request(&s);
        if (is_upgrade(&a.r) != heads[i].upgrade)
            fail_msg("row %zu", i);
        give_reply(&s, a.id, 403, "no", false);
        cl_expect(&c, "no");
        cl_close(&c);
    }
    stage_close(&s);
    covers("A38");
}

static void the_handshake_is_not_passed_on(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    SAY(&c, FULL "X-Kept: 1\r\nSec-WebSocket-Protocol: a, b\r\nSec-WebSocket-Extensions: permessage-deflate\r\n"
                 "Sec_WebSocket_Protocol: token\r\nSec-WebSocket-Accept: x\r\n\r\n");
    struct ask a = take_request(&s);
    assert_int_equal(a.r.nfields, 3);
    assert_true(span_eq(a.r.field[0].name, SPAN("X-Kept")));
    assert_true(span_eq(a.r.field[1].name, SPAN("Sec-WebSocket-Protocol")));
    assert_true(span_eq(a.r.field[2].name, SPAN("Upgrade")) && span_eq(a.r.field[2].value, SPAN("websocket")));
    give_reply(&s, a.id, 403, "no", false);
    cl_expect(&c, "no");
    SAY(&c, "GET http://a.test/next HTTP/1.1\r\nHost: a.test\r\n\r\n"); /* no 101, no tunnel */
    a = take_request(&s);
    assert_false(is_upgrade(&a.r));
    give_reply(&s, a.id, 200, "", false);
    cl_close(&c);
    stage_close(&s);
    covers("A38 B42 D34");
}

static void give_switch(struct stage *s, uint64_t id)
{
    struct wire_answer a = {.status = 101, .reason = SPAN("Switching"), .framing = HTTP_NO_BODY, .nfields = 1};
    a.field[0] = (struct http_field){SPAN("Sec-WebSocket-Protocol"), SPAN("a")};
    struct dynbuf *b = chan_begin(s->carrier.chan, M_SWITCH, id);
    wire_put_answer(b, &a);
    assert_int_equal(chan_commit(s->carrier.chan), 0);
}

static void give_message(struct stage *s, uint64_t id, uint8_t op, bool last, uint16_t code, struct span data)
{
    struct dynbuf *b = chan_begin(s->carrier.chan, M_ANSWER_MESSAGE, id);
    msg_put_u8(b, op);
    msg_put_u8(b, last);
    msg_put_u16(b, code);
    dynbuf_add(b, data);
    assert_int_equal(chan_commit(s->carrier.chan), 0);
}

static void expect_message(struct stage *s, uint8_t op, uint16_t code, struct span data)
{
    struct got g = take(s, &s->judge, M_MESSAGE);
    struct msg_in m = msg_in(g.payload);
    assert_int_equal(msg_get_u8(&m), op);
    assert_int_equal(msg_get_u16(&m), code);
    assert_true(span_eq(m.rest, data));
}

static uint64_t opened(struct stage *s, struct cl *c)
{
    cl_open(s, c);
    SAY(c, FULL "\r\n");
    uint64_t id = take_request(s).id;
    give_switch(s, id);
    cl_expect(c, "\r\n\r\n");
    cl_is(c, "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Protocol: a\r\nUpgrade: websocket\r\n"
             "Connection: Upgrade\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n");
    return id;
}

static void messages_pass_both_ways(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    uint64_t id = opened(&s, &c);
    const uint8_t frames[] = "\x01\x81\x01\x02\x03\x04"
                             "i"
                             "\x89\x81\0\0\0\0"
                             "p"
                             "\x80\x81\0\0\0\0"
                             "i";
    for (size_t i = 0; i < sizeof(frames) - 1; i++) {
        cl_say(&c, span_of(frames + i, 1));
        turn(&s);
    }
    expect_message(&s, WS_PING, 0, SPAN("p"));
    expect_message(&s, WS_TEXT, 0, SPAN("hi"));
    give_message(&s, id, WS_TEXT, false, 0, SPAN("one"));
    give_message(&s, id, WS_NONE, true, 0, SPAN("two"));
    give_message(&s, id, WS_PING, true, 0, SPAN_NONE);
    give_message(&s, id, WS_CLOSE, true, 1000, SPAN("ok"));
    cl_expect(&c, "ok");
    static const uint8_t want[] = "\x01\x03one\x80\x03two\x89\0\x88\x04\x03\xe8"
                                  "ok";
    assert_true(span_eq(dynbuf_span(&c.in), span_of(want, sizeof(want) - 1)));
    cl_forget(&c);
    cl_say(&c, SPAN("\x88\x82\0\0\0\0\x03\xe8"));
    expect_message(&s, WS_CLOSE, 1000, SPAN_NONE);
    give_end(&s, id, true);
    assert_int_equal(cl_end(&c), END_FIN);
    cl_close(&c);
    stage_close(&s);
    covers("B42");
}

static void what_is_no_frame_is_refused(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    (void)opened(&s, &c);
    SAY(&c, "GET / HTTP/1.1\r\n\r\n");
    expect_message(&s, WS_NONE, WS_PROTOCOL, SPAN_NONE);
    take(&s, &s.judge, M_CANCEL);
    cl_expect(&c, "not proper");
    assert_int_equal(cl_end(&c), END_FIN);
    cl_close(&c);
    (void)opened(&s, &c); /* who leaves without a word */
    cl_close(&c);
    take(&s, &s.judge, M_CANCEL);
    stage_close(&s);
    covers("B42");
}

static void credit_is_kept(void **state)
{
    static uint8_t frame[14 + WS_MESSAGE_MAX] = {0x82, 0xff, 0, 0, 0, 0, 0, WS_MESSAGE_MAX >> 16, 0, 0};
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    uint64_t id = opened(&s, &c);
    for (int i = 0; i < 3; i++)
        cl_say(&c, span_of(frame, sizeof(frame)));
    expect_message(&s, WS_BINARY, 0, span_of(frame + 14, WS_MESSAGE_MAX));
    expect_message(&s, WS_BINARY, 0, span_of(frame + 14, WS_MESSAGE_MAX));
    settle(&s);
    silent(&s, &s.judge);
    give_body_credit(&s, id, 2 * (WS_MESSAGE_MAX + WS_COST) - BODY_WINDOW);
    settle(&s);
    silent(&s, &s.judge); /* none yet: what was overdrawn comes first */
    give_body_credit(&s, id, 1);
    expect_message(&s, WS_BINARY, 0, span_of(frame + 14, WS_MESSAGE_MAX));
    give_body_credit(&s, id, 2 * WS_MESSAGE_MAX); /* who is not read is not seen to leave */
    settle(&s);
    cl_close(&c);
    take(&s, &s.judge, M_CANCEL);
    stage_close(&s);
    covers("B42");
}

static void a_switch_nobody_asked_for_cuts(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    SAY(&c, HEAD "\r\n");
    give_switch(&s, take_request(&s).id);
    take(&s, &s.judge, M_CANCEL);
    (void)cl_end(&c);
    cl_is(&c, "");
    cl_close(&c);
    stage_close(&s);
    covers("A45");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_proper_upgrade_is_one),
        cmocka_unit_test(the_handshake_is_not_passed_on),
        cmocka_unit_test(messages_pass_both_ways),
        cmocka_unit_test(what_is_no_frame_is_refused),
        cmocka_unit_test(credit_is_kept),
        cmocka_unit_test(a_switch_nobody_asked_for_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
