/* States that cannot follow each other: whatever got there, the exchange is given up, and nothing more leaves for it.
 * And what a record says of whose it is. */
#include "proxy/judge/exchange/exchange.h"
#include "tests/play/judge/play.h"

#define HOLDS "hold write POST /w rule=writes cred=1\nallow write POST /a cred=1\nallow read GET / ws send=1\n"

static void client(struct exchange *x)
{
    exchange_client(x, CLIENT_WAITS);
    assert_int_equal(x->client, CLIENT_WAITS);
}

static void upload(struct exchange *x)
{
    exchange_upload(x, UPLOAD_STREAMS);
    assert_int_equal(x->upload, UPLOAD_WHOLE);
}

static void claim(struct exchange *x)
{
    exchange_claim(x, CLAIM_GRANTED);
    assert_int_equal(x->claim, CLAIM_TICKET);
}

static void intent(struct exchange *x)
{
    exchange_intent(x, INTENT_WRITTEN);
    assert_int_equal(x->intent, INTENT_NONE);
}

static void delivery(struct exchange *x)
{
    exchange_delivery(x, DELIVERY_FORWARDED);
    assert_int_equal(x->delivery, DELIVERY_NONE);
}

static void websocket(struct exchange *x)
{
    exchange_websocket(x, WEBSOCKET_ENDING);
    assert_int_equal(x->websocket, WEBSOCKET_NONE);
}

static void wait(struct exchange *x)
{
    exchange_wait(x, X_RESULT, 0);
    assert_int_equal(x->wait, X_PARKED);
}

static struct digest park(struct play *p, uint64_t n)
{
    give_request(p, XID(n), POST("/w", "hello"));
    struct digest d = expect_ticket_open(p, XID(n)).record.request;
    give_ticket(p, XID(n), 1, TICKET_PENDING);
    expect_nothing(p);
    return d;
}

static void turn(struct play *p)
{
    give_bool(p, ROLE_LEDGER, M_STORE, 0, true);
}

static void of_each_kind_one_that_cannot_be(void **state)
{
    static void (*const breaks[])(struct exchange *) = {client, upload, claim, intent, delivery, websocket, wait};
    struct play p;
    play_all(&p, HOLDS);
    for (uint64_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
        park(&p, 2 * i + 1);
        park(&p, 2 * i + 2);
        breaks[i](exchange_find(p.j, XID(2 * i + 1)));
        expect_nothing(&p);
        turn(&p);
        expect_reply(&p, XID(2 * i + 1), 503, "internal");
        expect_audit(&p, XID(2 * i + 1), "hold", "internal");
        expect_nothing(&p);
        give_changed(&p, 1, TICKET_DENIED, "ada", "no"); /* the other one is none the worse for it */
        expect_reply(&p, XID(2 * i + 2), 403, "ticket-denied");
        expect_audit(&p, XID(2 * i + 2), "hold", "ticket-denied");
    }
    play_close(&p);
}

/* It was never to be handed to the carrier: an approval does not change that. */
static void nothing_is_released_in_an_impossible_state(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    struct digest d = park(&p, 1);
    exchange_delivery(exchange_find(p.j, XID(1)), DELIVERY_OFFERED);
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect(&p, ROLE_LEDGER, M_CLAIM, XID(1));
    give_claimed(&p, XID(1), POST("/w", "hello"), &d);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_reply(&p, XID(1), 503, "internal");
    assert_int_equal(expect_outcome(&p, XID(1), true), OUTCOME_NOT_SENT);
    expect_nothing(&p);
    play_close(&p);
}

static void no_step_runs_for_a_broken_one(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    park(&p, 1);
    exchange_intent(exchange_find(p.j, XID(1)), INTENT_WRITTEN);
    give_changed(&p, 1, TICKET_APPROVED, "ada", ""); /* in the same turn: it is not claimed */
    expect_reply(&p, XID(1), 503, "internal");
    expect_audit(&p, XID(1), "hold", "internal");
    play_close(&p);
}

static void what_the_carrier_has_is_cancelled_there(void **state)
{
    struct span body;
    struct play p;
    play_all(&p, HOLDS);
    give_request(&p, XID(1), POST("/a", "hello"));
    expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_forward(&p, XID(1), &body);
    exchange_delivery(exchange_find(p.j, XID(1)), DELIVERY_CLOSED);
    turn(&p);
    expect(&p, ROLE_CARRIER, M_CANCEL, XID(1));
    expect_reply(&p, XID(1), 409, "outcome-unknown");
    expect_nothing(&p);
    give_result(&p, XID(1), OUTCOME_UNKNOWN, 0, false, "cancelled");
    assert_int_equal(expect_outcome(&p, XID(1), false), OUTCOME_UNKNOWN);
    play_close(&p);
}

/* Of one that the gateway started each record says which generation of it that was; others have none. */
static void the_record_names_the_generation_of_a_started_sandbox(void **state)
{
    for (unsigned started = 0; started < 2; started++) {
        const struct wire_sandbox s = {.name = SPAN("sb"),
                                       .session = SPAN("ses"),
                                       .kind = started ? SPAN("started") : SPAN("token"),
                                       .generation = 7};
        struct wire_record r;
        struct play p;
        play_all(&p, "");
        p.up[ROLE_PARENT] = true;
        struct dynbuf *b = from(&p);
        wire_put_sandbox(b, &s);
        msg_put_u8(b, false);
        assert_int_equal(give(&p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
        if (started)
            (void)expect(&p, ROLE_PARENT, M_FRONT_OVER, 0);
        play_peer(&p, ROLE_FRONT, FRONT, "sb");
        give_request(&p, XID(1), GET("/x"));
        expect_reply(&p, XID(1), 403, "\"code\"");
        struct msg_in m = expect(&p, ROLE_LEDGER, M_AUDIT, XID(1));
        assert_int_equal(wire_get_record(&m, &r), 0);
        assert_true(span_eq(r.sandbox, SPAN("sb")));
        assert_int_equal(r.generation, started ? 7 : 0);
        expect_nothing(&p);
        play_close(&p);
    }
}

static void front_says_step(struct play *p, uint64_t xid, struct wire_step by)
{
    wire_put_step(from(p), &by);
    assert_int_equal(give(p, ROLE_FRONT, FRONT, M_STEP, xid, -1), 0);
}

/* Which command of a started sandbox it is of, is of the one question that follows, and of no other. */
static void a_step_is_of_what_is_said_next_of_its_id(void **state)
{
    static const struct wire_step want[] = {{2, 7}, {0, 0}, {0, 0}};
    struct play p;
    struct wire_record r;
    play_all(&p, "");
    for (unsigned i = 1; i <= 3; i++) {
        if (i < 3)
            front_says_step(&p, i == 1 ? XID(1) : XID(9), (struct wire_step){2, 7});
        struct dynbuf *b = from(&p);
        msg_put_u8(b, WALK_PARSE);
        msg_put_span(b, SPAN("bad-method"));
        msg_put_span(b, SPAN("http"));
        msg_put_span(b, SPAN("api.example"));
        msg_put_u16(b, 80);
        assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_FRONT_REFUSED, XID(i), -1), 0);
        struct msg_in m = expect(&p, ROLE_LEDGER, M_AUDIT, XID(i));
        assert_int_equal(wire_get_record(&m, &r), 0);
        assert_true(r.by.born == want[i - 1].born && r.by.number == want[i - 1].number);
    }
    front_says_step(&p, XID(4), (struct wire_step){2, 8});
    give_request(&p, XID(4), &(struct ask){.method = "DELETE", .path = "/unheard-of"});
    expect(&p, ROLE_FRONT, M_REPLY, XID(4));
    struct msg_in m = expect(&p, ROLE_LEDGER, M_AUDIT, XID(4));
    assert_int_equal(wire_get_record(&m, &r), 0);
    assert_true(r.by.born == 2 && r.by.number == 8);
    play_close(&p);
}

/* The parent's word: one that serves one command alone is of that, in its lane, whatever the sandbox says of itself;
 * and one of which that cannot be read is nobody's. */
static void a_front_of_one_command_speaks_for_that_alone(void **state)
{
    static const struct ask inside = {.host = "countersign.internal", .method = "GET", .path = "/v1/whoami"};
    static const char *const bad[] = {"sb ", "sb web", "sb web 0.7", "sb web 7.0", "sb web 7", "sb  2.7"};
    struct play p;
    struct wire_record r;
    play_all(&p, "");
    struct dynbuf *b = from(&p);
    wire_put_sandbox(b, &(struct wire_sandbox){.name = SPAN("sb"),
                                               .session = SPAN("ses"),
                                               .nlabels = 2,
                                               .label = {{SPAN("lane"), SPAN("docs")}, {SPAN("team"), SPAN("a")}}});
    msg_put_u8(b, false);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
    play_peer(&p, ROLE_FRONT, FRONT, "sb web 2.7");
    give_request(&p, XID(1), &inside);
    expect_reply(&p, XID(1), 200,
                 "\"labels\":[{\"key\":\"team\",\"value\":\"a\"},{\"key\":\"lane\",\"value\":\"web\"}]");
    front_says_step(&p, XID(2), (struct wire_step){2, 8});
    give_request(&p, XID(2), &(struct ask){.method = "DELETE", .path = "/unheard-of"});
    expect(&p, ROLE_FRONT, M_REPLY, XID(2));
    struct msg_in m = expect(&p, ROLE_LEDGER, M_AUDIT, XID(2));
    assert_int_equal(wire_get_record(&m, &r), 0);
    assert_true(span_eq(r.sandbox, SPAN("sb")) && r.by.born == 2 && r.by.number == 7);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        play_peer(&p, ROLE_FRONT, FRONT, bad[i]);
        play_sandbox(&p, "sb", "ses", "token-of-sb", false); /* and stays so */
        give_request(&p, XID(3 + i), &inside);
        expect_reply(&p, XID(3 + i), 403, "unknown-sandbox");
    }
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_of_what_is_said_next_of_its_id),
        cmocka_unit_test(a_front_of_one_command_speaks_for_that_alone),
        cmocka_unit_test(of_each_kind_one_that_cannot_be),
        cmocka_unit_test(nothing_is_released_in_an_impossible_state),
        cmocka_unit_test(no_step_runs_for_a_broken_one),
        cmocka_unit_test(what_the_carrier_has_is_cancelled_there),
        cmocka_unit_test(the_record_names_the_generation_of_a_started_sandbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
