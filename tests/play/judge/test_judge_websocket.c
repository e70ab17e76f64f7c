/* After the upgrade: every message is asked about (B42), and what changes the answer ends the connection. */
#include "common/http/ws.h"
#include "proxy/msgs.h"
#include "tests/play/judge/play.h"

#define RULES                                                                                                        \
    "allow read GET /feed rule=feed ws\nallow write GET /talk rule=talk ws send=1 max=10 total=16\n"                 \
    "allow write GET /both rule=both ws send=3 say=ask_us_first within=5000\nhold write GET /held rule=held ws "     \
    "send=1\n"                                                                                                       \
    "allow read GET / rule=plain\n"
#define WS(p) (&(struct ask){.method = "GET", .path = (p), .header = "Upgrade", .value = "websocket"})

static void say(struct play *p, uint64_t xid, enum ws_op op, uint16_t code, struct span data, int rc)
{
    struct dynbuf *b = from(p);
    msg_put_u8(b, (uint8_t)op);
    msg_put_u16(b, code);
    dynbuf_add(b, data);
    assert_int_equal(give(p, ROLE_FRONT, FRONT, M_MESSAGE, xid, -1), rc);
}

static void passes(struct play *p, uint64_t xid, enum ws_op op, struct span data)
{
    say(p, xid, op, 0, data, 0);
    struct msg_in m = expect(p, ROLE_CARRIER, M_MESSAGE, xid);
    assert_int_equal(msg_get_u8(&m), op);
    assert_int_equal(msg_get_u16(&m), 0);
    assert_true(span_eq(m.rest, data));
}

static void expect_close(struct play *p, uint64_t xid, uint16_t code, const char *words)
{
    struct msg_in m = expect(p, ROLE_CARRIER, M_WS_CLOSE, xid);
    assert_int_equal(msg_get_u16(&m), code);
    struct span said = msg_get_span(&m, 123);
    assert_int_equal(msg_end(&m), 0);
    if (span_find(said, span_str(words)) == said.n && words[0])
        fail_msg("\"%s\" is not in \"%.*s\"", words, SPAN_FMT(said));
}

/* Its end, as the carrier tells it and the ledger keeps it. */
static void ends(struct play *p, uint64_t xid, const char *code)
{
    struct wire_record r;
    struct dynbuf *b = from(p);
    msg_put_u64(b, 3);
    msg_put_u64(b, 4);
    msg_put_u16(b, 1000);
    assert_int_equal(give(p, ROLE_CARRIER, 0, M_WS_ENDED, xid, -1), 0);
    give_result(p, xid, OUTCOME_ANSWERED, 101, true, "");
    struct msg_in m = expect(p, ROLE_LEDGER, M_WEBSOCKET, xid);
    assert_int_equal(wire_get_record(&m, &r), 0);
    if (!span_eq(r.code, span_str(code)))
        fail_msg("\"%.*s\" is not \"%s\"", SPAN_FMT(r.code), code);
    assert_int_equal(msg_get_u64(&m), 3);
    assert_int_equal(msg_get_u64(&m), 4);
    (void)msg_get_u64(&m);
    (void)msg_get_u64(&m);
    assert_int_equal(msg_get_u16(&m), 1000);
    assert_int_equal(msg_end(&m), 0);
    expect_nothing(p);
}

static void switched(struct play *p, uint64_t xid)
{
    from(p);
    assert_int_equal(give(p, ROLE_CARRIER, 0, M_SWITCHED, xid, -1), 0);
    assert_int_equal(expect_outcome(p, xid, false), OUTCOME_ANSWERED);
}

static void open_read(struct play *p, uint64_t xid, const char *path)
{
    give_request(p, xid, WS(path));
    if (xid == XID(1))
        expect(p, ROLE_CARRIER, M_UPSTREAM, 0);
    struct wire_forward f = expect_forward(p, xid, NULL);
    assert_true(f.request.nfields == 1 && span_eq(f.request.field[0].name, SPAN("Upgrade")));
    switched(p, xid);
}

static void open_write(struct play *p, uint64_t xid, const char *path)
{
    give_request(p, xid, WS(path));
    expect(p, ROLE_LEDGER, M_INTENT, xid);
    give_bool(p, ROLE_LEDGER, M_INTENT_OK, xid, true);
    if (xid == XID(1))
        expect(p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(p, xid, NULL);
    switched(p, xid);
}

static void without_terms_nothing_is_passed_on(void **state)
{
    struct play p;
    (void)state;
    play_all(&p, RULES);
    open_read(&p, XID(1), "/feed");
    passes(&p, XID(1), WS_PING, SPAN("p"));
    say(&p, XID(1), WS_TEXT, 0, SPAN("x"), 0);
    expect_audit(&p, XID(1), "deny", "message-not-allowed");
    expect_close(&p, XID(1), WS_POLICY, "lets nothing be sent");
    say(&p, XID(1), WS_TEXT, 0, SPAN("again"), 0); /* behind its end: dropped, and said once */
    expect_nothing(&p);
    ends(&p, XID(1), "message-not-allowed");
    play_close(&p);
    covers("B42 B30");
}

static void terms_are_kept_to_the_byte(void **state)
{
    static const uint8_t ten[11];
    struct play p;
    (void)state;
    play_all(&p, RULES);
    open_write(&p, XID(1), "/talk");
    passes(&p, XID(1), WS_TEXT, span_of(ten, 10));
    passes(&p, XID(1), WS_TEXT, SPAN_NONE);
    passes(&p, XID(1), WS_TEXT, span_of(ten, 6));
    passes(&p, XID(1), WS_TEXT, SPAN_NONE);
    say(&p, XID(1), WS_TEXT, 0, SPAN("x"), 0);
    expect_audit(&p, XID(1), "deny", "messages-spent");
    expect_close(&p, XID(1), WS_POLICY, "all that the policy lets");
    ends(&p, XID(1), "messages-spent");
    open_write(&p, XID(2), "/talk");
    say(&p, XID(2), WS_TEXT, 0, span_of(ten, 11), 0);
    expect_audit(&p, XID(2), "deny", "message-too-large");
    expect_close(&p, XID(2), WS_TOO_BIG, "larger");
    ends(&p, XID(2), "message-too-large");
    open_write(&p, XID(3), "/talk");
    say(&p, XID(3), WS_BINARY, 0, SPAN("x"), 0);
    expect_audit(&p, XID(3), "deny", "message-not-allowed");
    expect_close(&p, XID(3), WS_POLICY, "no binary");
    ends(&p, XID(3), "message-not-allowed");
    open_write(&p, XID(4), "/talk");
    say(&p, XID(4), WS_NONE, WS_NOT_UTF8, SPAN_NONE, 0); /* what the front could not read */
    expect_audit(&p, XID(4), "deny", "message-not-utf8");
    expect_close(&p, XID(4), WS_GOING, "");
    ends(&p, XID(4), "message-not-utf8");
    play_close(&p);
    covers("B42");
}

static void its_time_has_an_end(void **state)
{
    struct play p;
    (void)state;
    play_all(&p, RULES);
    open_write(&p, XID(1), "/both");
    play_time(&p, 4999);
    passes(&p, XID(1), WS_BINARY, SPAN("x"));
    play_time(&p, 2);
    expect_close(&p, XID(1), WS_POLICY, "time");
    ends(&p, XID(1), "websocket-time");
    give_bool(&p, ROLE_LEDGER, M_STORE, 0, true);
    open_read(&p, XID(2), "/feed"); /* where nothing is sent there is none */
    play_time(&p, 24 * 3600 * 1000);
    expect_nothing(&p);
    passes(&p, XID(2), WS_PONG, SPAN_NONE);
    ends(&p, XID(2), "");
    play_close(&p);
    covers("B42");
}

static void another_policy_may_end_it(void **state)
{
    struct play p;
    (void)state;
    play_all(&p, RULES);
    open_write(&p, XID(1), "/both");
    open_write(&p, XID(2), "/talk");
    play_policy(&p, "allow write GET /other rule=renamed ws\nallow write GET /both rule=renamed ws send=1 max=2\n");
    expect_close(&p, XID(2), WS_POLICY, "policy");
    passes(&p, XID(1), WS_TEXT, SPAN("ab")); /* by its new terms */
    say(&p, XID(1), WS_TEXT, 0, SPAN("abc"), 0);
    expect_audit(&p, XID(1), "deny", "message-too-large");
    expect_close(&p, XID(1), WS_TOO_BIG, "");
    ends(&p, XID(1), "message-too-large");
    ends(&p, XID(2), "policy-changed");
    play_close(&p);
    covers("B42");
}

static void freeze_and_farewell_end_it(void **state)
{
    struct play p;
    (void)state;
    play_all(&p, RULES);
    open_write(&p, XID(1), "/talk");
    open_read(&p, XID(2), "/feed");
    give_bool(&p, ROLE_LEDGER, M_FREEZE, 0, true);
    expect_close(&p, XID(1), WS_POLICY, "frozen");
    ends(&p, XID(1), "frozen");
    play_sandbox(&p, "sb", "another", NULL, false);
    expect_close(&p, XID(2), WS_POLICY, "no longer known");
    ends(&p, XID(2), "unknown-sandbox");
    play_close(&p);
}

/* What a leaked lease does to the sandboxes it concerns: only writes, and only theirs. */
static void the_freeze_of_a_sandbox_ends_its_own(void **state)
{
    struct play p;
    struct wire_sandbox s = {.name = SPAN("sb"), .session = SPAN("ses"), .frozen = SPAN("a lease was leaked")};
    (void)state;
    play_all(&p, RULES);
    play_sandbox(&p, "neighbour", "its", NULL, false);
    play_peer(&p, ROLE_FRONT, OTHER_FRONT, "neighbour");
    open_write(&p, XID(1), "/talk");
    open_read(&p, XID(2), "/feed");
    open_write(&p, OTHER(1), "/talk");
    struct dynbuf *b = from(&p);
    wire_put_sandbox(b, &s);
    msg_put_u8(b, false);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
    expect_close(&p, XID(1), WS_POLICY, "this sandbox are frozen");
    say(&p, XID(1), WS_TEXT, 0, SPAN("x"), 0);
    ends(&p, XID(1), "frozen");
    passes(&p, XID(2), WS_PING, SPAN("p"));
    b = from(&p);
    msg_put_u8(b, WS_TEXT);
    msg_put_u16(b, 0);
    dynbuf_add(b, SPAN("x"));
    assert_int_equal(give(&p, ROLE_FRONT, OTHER_FRONT, M_MESSAGE, OTHER(1), -1), 0);
    expect(&p, ROLE_CARRIER, M_MESSAGE, OTHER(1));
    ends(&p, XID(2), "");
    ends(&p, OTHER(1), "");
    play_close(&p);
}

static void what_breaks_the_contract_ends_the_channel(void **state)
{
    static const uint8_t big[WS_MESSAGE_MAX + 1];
    struct play p;
    (void)state;
    play_all(&p, RULES);
    give_request(&p, XID(1), GET("/"));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(&p, XID(1), NULL);
    say(&p, XID(1), WS_TEXT, 0, SPAN("no upgrade"), -1);
    open_read(&p, XID(2), "/feed");
    say(&p, XID(2), (enum ws_op)3, 0, SPAN("x"), -1);
    say(&p, XID(2), WS_TEXT, 0, span_of(big, sizeof(big)), -1);
    for (int i = 0; i < 256 * 1024 / (125 + WS_COST) + 1; i++)
        passes(&p, XID(2), WS_PING, span_of(big, 125));
    say(&p, XID(2), WS_PING, 0, SPAN_NONE, -1); /* beyond the credit */
    expect_nothing(&p);
    say(&p, XID(9), WS_TEXT, 0, SPAN("late"), 0);
    ends(&p, XID(2), "");
    give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    assert_int_equal(expect_outcome(&p, XID(1), false), OUTCOME_ANSWERED);
    play_close(&p);
    covers("B42");
}

/* Before its 101 it is a request as any other: refused, it has a result and no end. */
static void an_answer_that_is_no_101_is_an_answer(void **state)
{
    struct play p;
    (void)state;
    play_all(&p, RULES);
    give_request(&p, XID(1), WS("/feed"));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(&p, XID(1), NULL);
    give_result(&p, XID(1), OUTCOME_UNKNOWN, 0, false, "bad-answer");
    expect_reply(&p, XID(1), 502, "upstream-failed");
    assert_int_equal(expect_outcome(&p, XID(1), false), OUTCOME_UNKNOWN);
    open_read(&p, XID(2), "/feed");
    play_gone(&p, ROLE_CARRIER, 0);
    struct msg_in m = expect(&p, ROLE_LEDGER, M_WEBSOCKET, XID(2));
    struct wire_record r;
    assert_int_equal(wire_get_record(&m, &r), 0);
    assert_true(span_eq(r.code, SPAN("carrier-lost")));
    play_close(&p);
    covers("A45");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_terms_nothing_is_passed_on),
        cmocka_unit_test(terms_are_kept_to_the_byte),
        cmocka_unit_test(its_time_has_an_end),
        cmocka_unit_test(another_policy_may_end_it),
        cmocka_unit_test(freeze_and_farewell_end_it),
        cmocka_unit_test(the_freeze_of_a_sandbox_ends_its_own),
        cmocka_unit_test(what_breaks_the_contract_ends_the_channel),
        cmocka_unit_test(an_answer_that_is_no_101_is_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
