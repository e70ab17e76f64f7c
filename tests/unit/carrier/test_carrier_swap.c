/* Answers with tokens through a real carrier: what the front gets has leases in their places, once they are written
 * down, and whatever is in doubt gives it nothing. */
#include "tests/unit/carrier/carrier_world.h"

#include "proxy/lease/wire_swap.h"

#define JWT       "eyJhbGciOiJFUzI1NiJ9.e30.c2lnbmF0dXJl"
#define LEASE     "cs_0123456789ABCDEF"
#define GOOD      "{\"token\":\"" JWT "\",\"expires_in\":60,\"refresh_token\":\"r-0123456789\"}"
#define HEAD(n)   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " #n "\r\n"
#define STARS     "****************************************" /* as long as TOKEN */
#define GOOD_HEAD HEAD(96)

static const struct id lease_id = {{1, 2}};

static void ask(struct world *w, uint64_t xid, bool once)
{
    static uint8_t room[512];
    struct wire_swap what = {.credential = SPAN("token"),
                             .expires = SPAN("/expires_in"),
                             .lifetime_ms = 300000,
                             .ntoken = 1,
                             .token = {SPAN("/token")}};
    struct dynbuf b;
    dynbuf_init(&b, sizeof(room));
    msg_put_u8(&b, 1);
    wire_put_swap(&b, &what);
    memcpy(room, b.p, b.n);
    world_forward(w, xid,
                  (struct request){.method = once ? "POST" : "GET",
                                   .path = "/token",
                                   .credential = "c",
                                   .release = RELEASE_COMES,
                                   .once = once,
                                   .swaps = span_of(room, b.n)});
    dynbuf_free(&b);
    world_credential(w, xid, 0, "up.test", "c", "Basic " TOKEN);
}

/* What the carrier gave the keeper. */
static void expect_given(struct world *w, uint64_t xid)
{
    struct msg_in m = msg_in(dynbuf_span(&world_wait(w, ROLE_KEEPER, M_SWAP, xid)->payload));
    assert_int_equal(msg_get_u8(&m), 1);
    assert_true(span_eq(msg_get_span(&m, 64), SPAN("token")));
    assert_true(span_eq(msg_get_span(&m, 64), SPAN(JWT)));
    assert_int_equal(msg_get_span(&m, 64).n + msg_get_span(&m, 64).n, 0);
    assert_int_equal(msg_get_u64(&m), 60000);
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER, xid), 0);
}

static void keeper_says(struct world *w, uint64_t xid, bool kept)
{
    struct wire_swapped is = {
        .credential = SPAN("token"), .lease = lease_id, .tag = SPAN("ABCDEF"), .expires_ms = 1000000};
    struct dynbuf b;
    dynbuf_init(&b, 1024);
    msg_put_u8(&b, kept);
    msg_put_span(&b, kept ? SPAN_NONE : SPAN("it is too short"));
    if (kept) {
        wire_put_swapped(&b, &is);
        msg_put_span(&b, SPAN(LEASE));
        msg_put_span(&b, SPAN_NONE);
    }
    world_say(w, ROLE_KEEPER, M_SWAPPED, xid, dynbuf_span(&b));
    dynbuf_free(&b);
}

static void judge_says(struct world *w, uint64_t xid, bool ok)
{
    struct dynbuf b;
    struct msg_in m = msg_in(dynbuf_span(&world_wait(w, ROLE_JUDGE, M_SWAP_TAKE, xid)->payload));
    struct wire_swapped is;
    assert_int_equal(msg_get_u8(&m), 1);
    assert_int_equal(wire_get_swapped(&m, &is), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_true(id_eq(&is.lease, &lease_id) && is.expires_ms == 1000000);
    assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER, xid), 0);
    dynbuf_init(&b, 64);
    msg_put_u8(&b, ok);
    msg_put_span(&b, ok ? SPAN_NONE : SPAN("this sandbox has as many leases as it may have"));
    world_say(w, ROLE_JUDGE, M_SWAP_TAKE, xid, dynbuf_span(&b));
    dynbuf_free(&b);
}

static void nothing_of_it(const struct world *w)
{
    for (size_t i = 0; i < w->nseen; i++)
        if (w->seen[i].at != ROLE_KEEPER)
            assert_int_equal(span_find(dynbuf_span(&w->seen[i].payload), SPAN(JWT)), w->seen[i].payload.n);
}

static void a_token_is_swapped(void **state)
{
    struct world *w = world_new();
    struct answer a;
    ask(w, XID(1), false);
    world_wait_up(w, 0, "GET /token");
    world_answer(w, 0, GOOD_HEAD "ETag: \"x\"\r\nVary: Bearer " JWT "\r\nX-Refresh: r-0123456789\r\n\r\n" GOOD);
    expect_given(w, XID(1));
    keeper_says(w, XID(1), true);
    judge_says(w, XID(1), true);
    expect_answer(w, XID(1), "{\"token\":\"" LEASE "\",\"expires_in\":60}", true);
    world_front_answer(w, XID(1), &a);
    assert_int_equal(a.head.framing, HTTP_LENGTH);
    assert_int_equal(a.head.length, a.body.n);
    assert_int_equal(a.head.nfields, 2); /* Content-Type and Vary */
    assert_true(span_ends(a.head.field[1].value, SPAN("****")));
    dynbuf_free(&a.body);
    nothing_of_it(w);
    assert_int_equal(world_count(w, ROLE_KEEPER, M_SWAP_DROP, XID(1)), 0);
    /* In pieces, without a length, and of what is sent once: kept for nobody, for the client is there. */
    ask(w, XID(2), true);
    world_wait_up(w, 0, "POST /token");
    world_answer(w, 0,
                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1f\r\n{\"token\":\"eyJhbGciOiJFUzI1NiJ9.");
    world_settle(w);
    world_answer(w, 0, "\r\n12\r\ne30.c2lnbmF0dXJl\"}\r\n0\r\n\r\n");
    (void)world_wait(w, ROLE_KEEPER, M_SWAP, XID(2));
    keeper_says(w, XID(2), true);
    judge_says(w, XID(2), true);
    expect_answer(w, XID(2), "{\"token\":\"" LEASE "\"}", true);
    nothing_of_it(w);
    world_free(&w);
}

/* A token that begins with what is the length of a text before it: that one stays, and so does the text. */
static void a_length_is_no_part_of_a_token(void **state)
{
#define REST "abcdefghijklmnopqrstuvwxyz0123456" /* 33 bytes, and 33 is '!' */
    struct world *w = world_new();
    struct answer a;
    ask(w, XID(1), false);
    world_wait_up(w, 0, "GET /token");
    world_answer(w, 0, HEAD(46) "Vary: " REST "\r\n\r\n{\"token\":\"!" REST "\"}");
    (void)world_wait(w, ROLE_KEEPER, M_SWAP, XID(1));
    keeper_says(w, XID(1), true);
    judge_says(w, XID(1), true);
    expect_answer(w, XID(1), "{\"token\":\"" LEASE "\"}", true);
    world_front_answer(w, XID(1), &a);
    assert_true(a.head.nfields == 2 && span_eq(a.head.field[1].value, SPAN(REST)));
    dynbuf_free(&a.body);
    world_free(&w);
}

/* It was given to the same place before, so answers from there are searched for it; and is what it was. */
static void the_same_token_once_more(void **state)
{
    struct world *w = world_new();
    w->secret = JWT;
    ask(w, XID(1), false);
    world_wait_up(w, 0, "GET /token");
    world_answer(w, 0, GOOD_HEAD "\r\n" GOOD);
    expect_given(w, XID(1));
    keeper_says(w, XID(1), true);
    judge_says(w, XID(1), true);
    expect_answer(w, XID(1), "{\"token\":\"" LEASE "\",\"expires_in\":60}", true);
    world_free(&w);
}

/* Another secret in it is covered, or refuses it. */
static void other_secrets_are_looked_for(void **state)
{
    for (unsigned refuse = 0; refuse < 2; refuse++) {
        struct world *w = world_new();
        w->refuse = refuse;
        ask(w, XID(1), false);
        world_wait_up(w, 0, "GET /token");
        world_answer(w, 0, HEAD(116) "\r\n{\"token\":\"" JWT "\",\"expires_in\":60,\"scope\":\"" TOKEN "\"}");
        expect_given(w, XID(1));
        keeper_says(w, XID(1), true);
        judge_says(w, XID(1), true);
        if (refuse)
            expect_code(w, XID(1), OUTCOME_ANSWERED, "token-unswapped");
        else
            expect_answer(w, XID(1), "{\"token\":\"" LEASE "\",\"expires_in\":60,\"scope\":\"" STARS "\"}", true);
        world_free(&w);
    }
}

/* An error has no token, and says what is wrong. */
static void an_error_goes_on(void **state)
{
    struct world *w = world_new();
    ask(w, XID(1), false);
    world_wait_up(w, 0, "GET /token");
    world_answer(w, 0, "HTTP/1.1 401 No\r\nContent-Length: 5\r\n\r\nhello");
    expect_answer(w, XID(1), "hello", true);
    assert_int_equal(world_count(w, ROLE_KEEPER, M_SWAP, XID(1)), 0);
    world_free(&w);
}

static void what_cannot_be_swapped_is_refused(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 49\r\n\r\n{\"other\":\"" JWT "\"}",
        "HTTP/1.1 200 OK\r\nContent-Length: 37\r\n\r\n" JWT,
        GOOD_HEAD "Content-Encoding: gzip\r\n\r\n" GOOD,
        "HTTP/1.1 206 Part\r\nContent-Length: 49\r\n\r\n{\"token\":\"" JWT "\"}",
        "HTTP/1.1 204 None\r\nX-Token: " JWT "\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: /?token=" JWT "\r\nContent-Length: 0\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct world *w = world_new();
        ask(w, XID(1), i % 2);
        world_wait_up(w, 0, " /token");
        world_answer(w, 0, answers[i]);
        struct result r = world_result(w, XID(1));
        if (!span_eq(r.code, SPAN("token-unswapped")) && !span_eq(r.code, SPAN("bad-answer")))
            fail_msg("%zu: %.*s: %.*s", i, SPAN_FMT(r.code), SPAN_FMT(r.why));
        assert_int_equal(r.relayed, false);
        assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER, XID(1)), 0);
        assert_int_equal(world_count(w, ROLE_JUDGE, M_KEPT, XID(1)), 0);
        nothing_of_it(w);
        world_free(&w);
    }
}

static void nobody_keeps_it(void **state)
{
    struct world *w = world_new();
    ask(w, XID(1), false);
    world_wait_up(w, 0, " /token");
    world_answer(w, 0, GOOD_HEAD "\r\n" GOOD);
    expect_given(w, XID(1));
    keeper_says(w, XID(1), false);
    expect_code(w, XID(1), OUTCOME_ANSWERED, "token-unswapped");
    ask(w, XID(2), false);
    world_wait_up(w, 1, " /token");
    world_answer(w, 1, GOOD_HEAD "\r\n" GOOD);
    expect_given(w, XID(2));
    keeper_says(w, XID(2), true);
    judge_says(w, XID(2), false);
    expect_code(w, XID(2), OUTCOME_ANSWERED, "token-unswapped");
    (void)world_wait(w, ROLE_KEEPER, M_SWAP_DROP, XID(2));
    nothing_of_it(w);
    w->carrier->settings.release_ms = 20;
    ask(w, XID(3), false);
    world_wait_up(w, 2, " /token");
    world_answer(w, 2, GOOD_HEAD "\r\n" GOOD);
    expect_given(w, XID(3));
    expect_code(w, XID(3), OUTCOME_ANSWERED, "token-unswapped");
    w->carrier->settings.release_ms = 30000;
    ask(w, XID(4), false);
    world_wait_up(w, 3, " /token");
    world_answer(w, 3, GOOD_HEAD "\r\n" GOOD);
    expect_given(w, XID(4));
    chan_free(&w->peer[ROLE_KEEPER]);
    expect_code(w, XID(4), OUTCOME_ANSWERED, "token-unswapped");
    nothing_of_it(w);
    world_free(&w);
}

/* An answer that nobody waits for is kept for a retry; one with a token is not. */
static void the_client_is_gone(void **state)
{
    struct world *w = world_new();
    ask(w, XID(1), true);
    world_wait_up(w, 0, "POST /token");
    world_answer(w, 0, GOOD_HEAD "\r\n{");
    world_settle(w);
    world_say(w, ROLE_JUDGE, M_CANCEL, XID(1), SPAN("\0"));
    world_settle(w);
    world_answer(w, 0, &GOOD[1]);
    (void)world_result(w, XID(1));
    assert_int_equal(world_count(w, ROLE_JUDGE, M_KEPT, XID(1)), 0);
    assert_int_equal(world_count(w, ROLE_KEEPER, M_SWAP, XID(1)), 0);
    nothing_of_it(w);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_swapped),       cmocka_unit_test(a_length_is_no_part_of_a_token),
        cmocka_unit_test(the_same_token_once_more), cmocka_unit_test(other_secrets_are_looked_for),
        cmocka_unit_test(an_error_goes_on),         cmocka_unit_test(what_cannot_be_swapped_is_refused),
        cmocka_unit_test(nobody_keeps_it),          cmocka_unit_test(the_client_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
