/* What is held: tickets, waits, claims, and the bytes that leave. */
#include "tests/play/judge/play.h"

#define HOLDS "hold write POST /w rule=writes cred=1\n"

/* A write comes in and is parked; returns the digest its ticket was opened with. */
static struct digest park(struct play *p, uint64_t n, const char *path, const char *body)
{
    give_request(p, XID(n), POST(path, body));
    struct digest d = expect_ticket_open(p, XID(n)).record.request;
    give_ticket(p, XID(n), 1, TICKET_PENDING);
    expect_nothing(p);
    return d;
}

static void expect_claim(struct play *p, uint64_t xid)
{
    struct id ticket;
    struct msg_in m = expect(p, ROLE_LEDGER, M_CLAIM, xid);
    msg_get_id(&m, &ticket);
    assert_int_equal(ticket.b[0], 1);
    assert_true(span_eq(msg_get_span(&m, 64), SPAN("cred1")));
    assert_true(span_eq(msg_get_span(&m, 64), SPAN("api.example")));
}

/* The release carries the ledger's word for this digest, and only then the request goes. */
static struct span expect_sending(struct play *p, uint64_t xid, bool first)
{
    struct digest d;
    struct span body;
    if (first)
        expect(p, ROLE_CARRIER, M_UPSTREAM, 0);
    struct msg_in m = expect(p, ROLE_KEEPER, M_RELEASE, xid);
    assert_true(span_eq(msg_get_span(&m, 64), SPAN("cred1")));
    (void)msg_get_span(&m, 5);
    (void)msg_get_span(&m, 64);
    (void)msg_get_u16(&m);
    (void)msg_get_span(&m, 64);
    assert_true(msg_get_bool(&m));
    msg_get_digest(&m, &d);
    struct span signature = msg_get_span(&m, 64);
    msg_get_digest(&m, &d); /* of what the policy binds to the place */
    assert_int_equal(msg_get_u64(&m), 0);
    struct id lease;
    msg_get_id(&m, &lease);
    assert_true(id_is_none(&lease));
    assert_false(msg_get_bool(&m)); /* nothing to sign */
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(signature.n, 64);
    assert_int_equal(signature.p[0], 42);
    struct wire_forward f = expect_forward(p, xid, &body);
    assert_false(f.repeatable);
    assert_int_equal(f.release, RELEASE_COMES);
    return body;
}

static void approved_in_time_is_sent_once(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    struct digest d = park(&p, 1, "/w", "hello");
    play_time(&p, 10000);
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect_claim(&p, XID(1));
    expect_nothing(&p);
    give_claimed(&p, XID(1), POST("/w", "hello"), &d);
    assert_true(span_eq(expect_sending(&p, XID(1), true), SPAN("hello")));
    assert_int_equal(give(&p, ROLE_CARRIER, 0, M_SENT, XID(1), (from(&p), -1)), 0);
    expect(&p, ROLE_LEDGER, M_SENT_MARK, XID(1));
    give_result(&p, XID(1), OUTCOME_ANSWERED, 201, true, "");
    assert_int_equal(expect_outcome(&p, XID(1), true), OUTCOME_ANSWERED);
    play_close(&p);
}

/* E42: nothing that was held is repeated, whatever its effect; and its end is in doubt when it is not known. */
static void a_held_read_is_sent_once(void **state)
{
    struct play p;
    play_all(&p, "hold read POST /w rule=reads cred=1\n");
    struct digest d = park(&p, 1, "/w", "hello");
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect_claim(&p, XID(1));
    give_claimed(&p, XID(1), POST("/w", "hello"), &d);
    expect_sending(&p, XID(1), true); /* not repeatable */
    give_result(&p, XID(1), OUTCOME_UNKNOWN, 0, false, "upstream-closed");
    expect_reply(&p, XID(1), 409, "outcome-unknown");
    assert_int_equal(expect_outcome(&p, XID(1), true), OUTCOME_UNKNOWN);
    play_close(&p);
}

static void the_words_of_a_denial_reach_the_client(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    park(&p, 1, "/w", "hello");
    give_changed(&p, 1, TICKET_DENIED, "ada", "Ask me on Monday");
    expect_reply(&p, XID(1), 403, "Denied by ada: Ask me on Monday");
    expect_audit(&p, XID(1), "hold", "ticket-denied");
    struct wire_ticket_state t = {.ticket = {{1}},
                                  .state = TICKET_DENIED,
                                  .expires_ms = 1767229200000u,
                                  .by = SPAN("uid 1000"), /* who has no other name */
                                  .words = SPAN("Ask me on Monday"),
                                  .joined = true};
    give_request(&p, XID(2), POST("/w", "hello")); /* and a retry, whom the ledger gives the same */
    expect_ticket_open(&p, XID(2));
    wire_put_ticket_state(from(&p), &t);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET, XID(2), -1), 0);
    expect_reply(&p, XID(2), 403, "Denied by an operator: Ask me on Monday");
    struct span said = dynbuf_span(&p.got.payload);
    assert_true(span_find(said, SPAN("\"retry\":false")) < said.n);
    assert_true(span_find(said, SPAN("until 2026-01-01T01:00:00Z the answer is the same")) < said.n);
    expect_audit(&p, XID(2), "hold", "ticket-denied");
    play_close(&p);
}

static void the_inline_wait_ends_in_a_refusal(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    park(&p, 1, "/w", "hello");
    play_time(&p, 49999);
    expect_nothing(&p);
    play_time(&p, 1);
    expect_reply(&p, XID(1), 403, "\"code\":\"held\"");
    assert_true(span_find(dynbuf_span(&p.got.payload), SPAN("2026-01-01T01:00:00Z")) < p.got.payload.n);
    assert_true(span_find(dynbuf_span(&p.got.payload), SPAN("Repeat the same request")) < p.got.payload.n);
    expect_audit(&p, XID(1), "hold", "held");
    assert_int_equal(judge_exchanges(p.j), 0);
    give_changed(&p, 1, TICKET_APPROVED, "ada", ""); /* nobody waits: nothing is sent */
    covers("E31");
    play_close(&p);
}

static void a_rule_can_shorten_the_wait(void **state)
{
    struct play p;
    play_all(&p, "hold write POST /w rule=writes wait=0\n");
    give_request(&p, XID(1), POST("/w", "x"));
    expect_ticket_open(&p, XID(1));
    give_ticket(&p, XID(1), 1, TICKET_PENDING);
    expect_reply(&p, XID(1), 403, "held");
    expect_audit(&p, XID(1), "hold", "held");
    play_close(&p);
}

static void a_request_without_words_is_named_by_its_target(void **state)
{
    struct play p;
    char path[300] = "/w/";
    play_all(&p, "hold write POST /w rule=writes wait=0 wordless\n");
    give_request(&p, XID(1), POST("/w/things", "x"));
    assert_true(span_eq(expect_ticket_open(&p, XID(1)).summary, SPAN("POST api.example/w/things")));
    give_ticket(&p, XID(1), 1, TICKET_PENDING);
    expect_reply(&p, XID(1), 403, "POST api.example/w/things: a person must approve it");
    expect_audit(&p, XID(1), "hold", "held");
    for (size_t n = 104; n <= 105; n++) { /* 120 bytes with "POST api.example", and one more */
        memset(path + 3, 'a', n - 3);
        path[n] = '\0';
        give_request(&p, XID(n), POST(path, "x"));
        struct span s = expect_ticket_open(&p, XID(n)).summary;
        assert_int_equal(s.n, 120);
        assert_int_equal(span_ends(s, SPAN("aaa...")), n == 105);
        give_ticket(&p, XID(n), 1, TICKET_DENIED);
        expect_reply(&p, XID(n), 403, NULL);
        expect_audit(&p, XID(n), "hold", "ticket-denied");
    }
    play_close(&p);
}

/* E30: the client goes, the ticket stays; approval waits for the same request, which sends the bytes first held. */
static void approved_after_the_client_had_gone(void **state)
{
    struct play p;
    play_all(&p, "hold write POST /w rule=writes cred=1 join=3\n");
    struct digest d = park(&p, 1, "/w", "abc-first");
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CANCEL, XID(1), (from(&p), -1)), 0);
    assert_int_equal(judge_exchanges(p.j), 0);
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect_nothing(&p);

    give_request(&p, XID(2), POST("/w", "abc-second"));
    expect_ticket_open(&p, XID(2));
    give_ticket(&p, XID(2), 1, TICKET_APPROVED);
    expect_claim(&p, XID(2));
    give_claimed(&p, XID(2), POST("/w", "abc-first"), &d);
    assert_true(span_eq(expect_sending(&p, XID(2), true), SPAN("abc-first")));
    give_result(&p, XID(2), OUTCOME_ANSWERED, 201, true, "");
    expect_outcome(&p, XID(2), true);
    covers("A34 E30 INV6");
    play_close(&p);
}

static void what_the_ledger_gives_is_what_was_approved_or_nothing(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    struct digest d = park(&p, 1, "/w", "hello");
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect_claim(&p, XID(1));
    give_claimed(&p, XID(1), POST("/w", "HELLO"), &d);
    expect_reply(&p, XID(1), 503, "internal");
    assert_int_equal(expect_outcome(&p, XID(1), true), OUTCOME_NOT_SENT);
    covers("E1 E2");
    play_close(&p);
}

static void two_wait_and_one_sends(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    struct digest d = park(&p, 1, "/w", "hello");
    park(&p, 2, "/w", "hello");
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect_claim(&p, XID(1));
    expect_reply(&p, XID(2), 409, "executing");
    expect_audit(&p, XID(2), "hold", "executing");
    give_changed(&p, 1, TICKET_APPROVED, "bob", ""); /* a second approval changes nothing */
    expect_nothing(&p);
    give_claimed(&p, XID(1), POST("/w", "hello"), &d);
    expect_sending(&p, XID(1), true);
    give_claimed(&p, XID(1), POST("/w", "hello"), &d); /* nor does a second grant */
    expect_nothing(&p);
    give_result(&p, XID(1), OUTCOME_ANSWERED, 201, true, "");
    expect_outcome(&p, XID(1), true);
    covers("E3 E29");
    play_close(&p);
}

static void a_claim_that_is_lost_is_told(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    park(&p, 1, "/w", "hello");
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect_claim(&p, XID(1));
    give_claimed(&p, XID(1), NULL, NULL);
    expect_reply(&p, XID(1), 409, "executing");
    expect_audit(&p, XID(1), "hold", "executing");
    play_close(&p);
}

static const struct {
    enum ticket_state state;
    unsigned status;
    const char *code;
} states[] = {
    {TICKET_DENIED, 403, "ticket-denied"},
    {TICKET_EXPIRED, 403, "ticket-expired"},
    {TICKET_CANCELLED, 403, "ticket-cancelled"},
    {TICKET_EXECUTING, 409, "executing"},
    {TICKET_DONE, 409, "executed"},
    {TICKET_FAILED, 502, "not-sent"},
    {TICKET_UNKNOWN, 409, "outcome-unknown"},
    {TICKET_NONE, 503, "store-unavailable"},
};

static void every_state_of_a_joined_ticket_has_its_answer(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        give_request(&p, XID(i + 1), POST("/w", "x"));
        expect_ticket_open(&p, XID(i + 1));
        give_ticket(&p, XID(i + 1), 1, states[i].state);
        expect_reply(&p, XID(i + 1), states[i].status, states[i].code);
        expect_audit(&p, XID(i + 1), "hold", states[i].code);
    }
    covers("E6 E4");
    play_close(&p);
}

static void too_many_pending_is_a_429(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    struct wire_ticket_state t = {.words = SPAN("too-many-pending")};
    give_request(&p, XID(1), POST("/w", "x"));
    expect_ticket_open(&p, XID(1));
    wire_put_ticket_state(from(&p), &t);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET, XID(1), -1), 0);
    expect_reply(&p, XID(1), 429, "too-many-pending");
    expect_audit(&p, XID(1), "hold", "too-many-pending");
    covers("E21");
    play_close(&p);
}

static void a_kept_answer_is_given_to_the_retry(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    struct wire_ticket_state t = {.ticket = {{1}}, .state = TICKET_DONE, .has_answer = true};
    struct wire_answer a = {.status = 201, .reason = SPAN("Created")};
    give_request(&p, XID(1), POST("/w", "x"));
    expect_ticket_open(&p, XID(1));
    struct dynbuf *b = from(&p);
    wire_put_ticket_state(b, &t);
    wire_put_answer(b, &a);
    msg_put_u64(b, 6);
    msg_put_span(b, SPAN("made it"));
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET, XID(1), -1), 0);
    expect_reply(&p, XID(1), 409, "executed"); /* a size that lies is no answer */
    expect_audit(&p, XID(1), "hold", "executed");

    give_request(&p, XID(2), POST("/w", "x"));
    expect_ticket_open(&p, XID(2));
    b = from(&p);
    wire_put_ticket_state(b, &t);
    wire_put_answer(b, &a);
    msg_put_u64(b, 7);
    msg_put_span(b, SPAN("made it"));
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET, XID(2), -1), 0);
    expect_reply(&p, XID(2), 201, "made it");
    expect_audit(&p, XID(2), "hold", "answer-kept");
    play_close(&p);
}

/* The largest that is kept fits into one reply with the largest head; past it the retry is told, and nothing is sent.
 */
static void the_largest_kept_answer_is_given_too(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    struct wire_ticket_state t = {.ticket = {{1}}, .state = TICKET_DONE, .joined = true, .has_answer = true};
    struct wire_answer a = {.status = 201, .reason = SPAN("Created"), .nfields = 4};
    static uint8_t body[ANSWER_KEPT_MAX], value[HTTP_ANSWER_HEAD_MAX / 4];
    memset(body, 'b', sizeof(body));
    memset(value, 'v', sizeof(value));
    for (size_t i = 0; i < a.nfields; i++)
        a.field[i] = (struct http_field){SPAN("X-Large"), span_of(value, sizeof(value) - 9)};
    give_request(&p, XID(1), POST("/w", "x"));
    expect_ticket_open(&p, XID(1));
    struct dynbuf *b = from(&p);
    wire_put_ticket_state(b, &t);
    wire_put_answer(b, &a);
    msg_put_u64(b, sizeof(body));
    msg_put_span(b, span_of(body, sizeof(body)));
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET, XID(1), -1), 0);
    expect_reply(&p, XID(1), 201, "bbbbbb");
    assert_true(p.got.payload.n > sizeof(body) + 4 * (sizeof(value) - 9));
    expect_audit(&p, XID(1), "hold", "answer-kept");
    t.has_answer = false; /* what the ledger says of one it could not keep */
    give_request(&p, XID(2), POST("/w", "x"));
    expect_ticket_open(&p, XID(2));
    wire_put_ticket_state(from(&p), &t);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET, XID(2), -1), 0);
    expect_reply(&p, XID(2), 409, "too large to keep");
    expect_audit(&p, XID(2), "hold", "executed");
    play_close(&p);
}

/* B52, INV6: what is held is decided again at once, and once more when it is used. */
static void a_new_policy_decides_what_is_held_again(void **state)
{
    static const struct {
        const char *policy, *words, *verdict, *code;
    } changes[] = {
        {"deny write POST /w rule=writes say=No_more\n", "No more", "deny", "rule"},
        {"hold write POST /w rule=others cred=1\n", "policy-changed", "hold", "policy-changed"},
        {"hold write POST /w rule=writes cred=2\n", "policy-changed", "hold", "policy-changed"},
        {"hold write POST /w rule=writes cred=1 op=else\n", "policy-changed", "hold", "policy-changed"},
        {"allow write POST /w rule=writes cred=1\n", "policy-changed", "allow", "policy-changed"},
        {"hold write POST /w rule=writes cred=1 by=leads\n", "policy-changed", "hold", "policy-changed"},
        {"hold write POST /w rule=writes cred=1 reasoned\n", "policy-changed", "hold", "policy-changed"},
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct play p;
        play_all(&p, HOLDS);
        park(&p, 1, "/w", "hello");
        play_policy(&p, HOLDS "deny read GET /x rule=more\n"); /* still held by the same rule */
        expect_nothing(&p);
        play_policy(&p, changes[i].policy);
        expect(&p, ROLE_LEDGER, M_TICKET_VOID, XID(1));
        expect_reply(&p, XID(1), 403, changes[i].words);
        expect_audit(&p, XID(1), changes[i].verdict, changes[i].code);
        play_close(&p);
    }
    covers("B52 E2 E41 INV6");
}

static void a_policy_that_came_between_claim_and_grant_wins(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    struct digest d = park(&p, 1, "/w", "hello");
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect_claim(&p, XID(1));
    play_policy(&p, "deny write POST /w rule=stop\n");
    give_claimed(&p, XID(1), POST("/w", "hello"), &d);
    expect_reply(&p, XID(1), 403, "denied");
    assert_int_equal(expect_outcome(&p, XID(1), true), OUTCOME_NOT_SENT);
    play_close(&p);
}

static void a_lost_ledger_refuses_what_waits(void **state)
{
    struct play p;
    play_all(&p, HOLDS "allow write POST /ok rule=ok\n");
    park(&p, 1, "/w", "a");
    give_request(&p, XID(2), POST("/w", "b"));
    expect_ticket_open(&p, XID(2));
    give_request(&p, XID(3), POST("/ok", "c"));
    expect(&p, ROLE_LEDGER, M_INTENT, XID(3));
    play_gone(&p, ROLE_LEDGER, 0);
    expect_reply(&p, XID(1), 503, "store-unavailable");
    expect_reply(&p, XID(2), 503, "store-unavailable");
    expect_reply(&p, XID(3), 503, "store-unavailable");
    expect_nothing(&p);
    give_request(&p, XID(4), POST("/w", "a"));
    expect_reply(&p, XID(4), 503, "store-unavailable");

    play_peer(&p, ROLE_LEDGER, 0, ""); /* the records that had no ledger follow */
    expect_audit(&p, XID(1), "hold", "store-unavailable");
    expect_audit(&p, XID(2), "hold", "store-unavailable");
    assert_int_equal(expect_outcome(&p, XID(3), false), OUTCOME_NOT_SENT);
    expect_audit(&p, XID(4), "deny", "store-unavailable");
    give_request(&p, XID(5), POST("/w", "a")); /* E7: the ticket was not touched */
    expect_ticket_open(&p, XID(5));
    give_ticket(&p, XID(5), 1, TICKET_PENDING);
    expect_nothing(&p);
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CANCEL, XID(5), (from(&p), -1)), 0);
    covers("E6 E7 INV7");
    play_close(&p);
}

/* F17: who waits is told, nobody new is let in, what is with the carrier may end. */
static void the_end_tells_who_waits(void **state)
{
    struct play p;
    play_all(&p, HOLDS "allow write POST /ok rule=ok\n");
    park(&p, 1, "/w", "a");
    give_request(&p, XID(2), POST("/ok", "b"));
    expect(&p, ROLE_LEDGER, M_INTENT, XID(2));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(2), true);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(2));
    expect_forward(&p, XID(2), NULL);
    give_request(&p, XID(3), POST("/w", "c"));
    expect_ticket_open(&p, XID(3));
    judge_end(p.j);
    expect_reply(&p, XID(1), 503, "gateway-ending");
    expect_audit(&p, XID(1), "hold", "gateway-ending");
    give_ticket(&p, XID(3), 3, TICKET_PENDING);
    expect_reply(&p, XID(3), 503, "gateway-ending");
    expect_audit(&p, XID(3), "hold", "gateway-ending");
    give_request(&p, XID(4), POST("/ok", "d"));
    expect_reply(&p, XID(4), 503, "gateway-ending");
    expect_audit(&p, XID(4), "deny", "gateway-ending");
    assert_int_equal(judge_exchanges(p.j), 1);
    give_result(&p, XID(2), OUTCOME_ANSWERED, 200, true, "");
    assert_int_equal(expect_outcome(&p, XID(2), false), OUTCOME_ANSWERED);
    assert_int_equal(judge_exchanges(p.j), 0);
    play_close(&p);
}

static void a_slow_ledger_does_not_send_behind_the_clients_back(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    struct digest d = park(&p, 1, "/w", "a");
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect_claim(&p, XID(1));
    play_time(&p, 20000);
    expect_reply(&p, XID(1), 503, "store-unavailable");
    expect_nothing(&p);
    give_claimed(&p, XID(1), POST("/w", "a"), &d);
    assert_int_equal(expect_outcome(&p, XID(1), true), OUTCOME_NOT_SENT);
    covers("E4");
    play_close(&p);
}

static void a_lost_carrier_leaves_a_write_unknown(void **state)
{
    struct play p;
    play_all(&p, HOLDS "allow read GET /free rule=reads\n");
    struct digest d = park(&p, 1, "/w", "hello");
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect_claim(&p, XID(1));
    give_claimed(&p, XID(1), POST("/w", "hello"), &d);
    expect_sending(&p, XID(1), true);
    play_gone(&p, ROLE_CARRIER, 0);
    expect_reply(&p, XID(1), 409, "outcome-unknown");
    assert_int_equal(expect_outcome(&p, XID(1), true), OUTCOME_UNKNOWN);
    give_request(&p, XID(2), GET("/free"));
    expect_reply(&p, XID(2), 503, "gateway-restarting");
    expect_audit(&p, XID(2), "allow", "gateway-restarting");
    play_peer(&p, ROLE_CARRIER, 0, "");
    give_request(&p, XID(3), GET("/free"));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0); /* a new carrier is told again */
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(3));
    expect_forward(&p, XID(3), NULL);
    give_result(&p, XID(3), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(&p, XID(3), false);
    covers("E5");
    play_close(&p);
}

static void an_unknown_outcome_is_said_and_not_repeated(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    struct digest d = park(&p, 1, "/w", "hello");
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect_claim(&p, XID(1));
    give_claimed(&p, XID(1), POST("/w", "hello"), &d);
    expect_sending(&p, XID(1), true);
    give_result(&p, XID(1), OUTCOME_UNKNOWN, 0, false, "upstream-reset");
    expect_reply(&p, XID(1), 409, "Check at the upstream");
    assert_int_equal(expect_outcome(&p, XID(1), true), OUTCOME_UNKNOWN);
    covers("E5");
    play_close(&p);
}

static void a_sessions_end_ends_what_it_holds(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    park(&p, 1, "/w", "hello");
    play_sandbox(&p, "sb", "ses", NULL, false); /* news of it alone end nothing */
    expect_nothing(&p);
    play_sandbox(&p, "sb", "another", NULL, false);
    expect_reply(&p, XID(1), 403, "unknown-sandbox");
    expect_audit(&p, XID(1), "hold", "unknown-sandbox");
    play_sandbox(&p, "sb", "another", NULL, true);
    give_request(&p, XID(2), POST("/w", "hello"));
    expect_reply(&p, XID(2), 403, "unknown-sandbox");
    expect_audit(&p, XID(2), "deny", "unknown-sandbox");
    covers("E25");
    play_close(&p);
}

static void the_agents_word_is_outside_the_digest(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    struct ask a = {.method = "POST", .path = "/w", .body = "x", .reason = "because"};
    give_request(&p, XID(1), &a);
    struct wire_ticket t = expect_ticket_open(&p, XID(1));
    assert_true(span_eq(t.agent_reason, SPAN("because")));
    assert_true(span_eq(t.record.session, SPAN("ses")));
    assert_true(span_eq(t.record.credential, SPAN("cred1")));
    assert_int_equal(t.within_ms, 30 * 60 * 1000);
    struct digest first = t.record.request;
    give_ticket(&p, XID(1), 1, TICKET_DENIED);
    expect_reply(&p, XID(1), 403, NULL);
    expect_audit(&p, XID(1), "hold", "ticket-denied");
    a.reason = "other words";
    give_request(&p, XID(2), &a);
    t = expect_ticket_open(&p, XID(2));
    assert_memory_equal(&first, &t.record.request, sizeof(first));
    give_ticket(&p, XID(2), 1, TICKET_DENIED);
    expect_reply(&p, XID(2), 403, NULL);
    expect_audit(&p, XID(2), "hold", "ticket-denied");
    play_close(&p);
}

static void git_is_told_in_a_push_result(void **state)
{
    struct play p;
    play_all(&p, "hold write POST /w rule=writes dialect=2\n");
    park(&p, 1, "/w", "pack");
    give_changed(&p, 1, TICKET_DENIED, "ada", "not today");
    expect_reply(&p, XID(1), 200, "ng refs/heads/main Denied by ada: not today\n");
    expect_audit(&p, XID(1), "hold", "ticket-denied");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(approved_in_time_is_sent_once),
        cmocka_unit_test(a_held_read_is_sent_once),
        cmocka_unit_test(the_words_of_a_denial_reach_the_client),
        cmocka_unit_test(the_inline_wait_ends_in_a_refusal),
        cmocka_unit_test(a_rule_can_shorten_the_wait),
        cmocka_unit_test(a_request_without_words_is_named_by_its_target),
        cmocka_unit_test(approved_after_the_client_had_gone),
        cmocka_unit_test(what_the_ledger_gives_is_what_was_approved_or_nothing),
        cmocka_unit_test(two_wait_and_one_sends),
        cmocka_unit_test(a_claim_that_is_lost_is_told),
        cmocka_unit_test(every_state_of_a_joined_ticket_has_its_answer),
        cmocka_unit_test(too_many_pending_is_a_429),
        cmocka_unit_test(a_kept_answer_is_given_to_the_retry),
        cmocka_unit_test(the_largest_kept_answer_is_given_too),
        cmocka_unit_test(a_new_policy_decides_what_is_held_again),
        cmocka_unit_test(a_policy_that_came_between_claim_and_grant_wins),
        cmocka_unit_test(a_lost_ledger_refuses_what_waits),
        cmocka_unit_test(the_end_tells_who_waits),
        cmocka_unit_test(a_slow_ledger_does_not_send_behind_the_clients_back),
        cmocka_unit_test(a_lost_carrier_leaves_a_write_unknown),
        cmocka_unit_test(an_unknown_outcome_is_said_and_not_repeated),
        cmocka_unit_test(a_sessions_end_ends_what_it_holds),
        cmocka_unit_test(the_agents_word_is_outside_the_digest),
        cmocka_unit_test(git_is_told_in_a_push_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
