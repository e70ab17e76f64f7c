/* Races at the claim, not at the intent: what changes after an approval's claim was sent and before it is granted;
 * and what an approval is for. */
#include "tests/play/judge/play.h"

#include "proxy/judge/tickets/digest.h"

#define HOLDS "hold write POST /w rule=writes cred=1\n"

/* Parked and approved: its claim has gone out, and is not granted yet. The digest that was approved. */
static struct digest claiming(struct play *p, const char *policy)
{
    struct wire_ticket t;
    play_all(p, policy);
    give_request(p, XID(1), POST("/w", "hello"));
    t = expect_ticket_open(p, XID(1));
    struct digest d = t.record.request;
    give_ticket(p, XID(1), 1, TICKET_PENDING);
    give_changed(p, 1, TICKET_APPROVED, "ada", "");
    expect(p, ROLE_LEDGER, M_CLAIM, XID(1));
    expect_nothing(p);
    return d;
}

static void granted_and_not_sent(struct play *p, const struct digest *d, unsigned status, const char *words)
{
    give_claimed(p, XID(1), POST("/w", "hello"), d);
    expect_reply(p, XID(1), status, words);
    assert_int_equal(expect_outcome(p, XID(1), true), OUTCOME_NOT_SENT);
    play_close(p);
}

static void a_freeze_between_claim_and_grant_wins(void **state)
{
    struct play p;
    struct digest d = claiming(&p, HOLDS);
    give_bool(&p, ROLE_LEDGER, M_FREEZE, 0, true);
    granted_and_not_sent(&p, &d, 403, "frozen");
    covers("E6");
}

static void a_policy_between_claim_and_grant_wins(void **state)
{
    struct play p;
    struct digest d = claiming(&p, HOLDS);
    play_policy(&p, "deny write POST /w rule=no say=Never_again\n");
    granted_and_not_sent(&p, &d, 403, "Never again");
    d = claiming(&p, HOLDS);
    play_policy(&p, "hold write POST /w rule=writes cred=2\n"); /* with another credential it is another request */
    granted_and_not_sent(&p, &d, 403, "policy-changed");
    d = claiming(&p, HOLDS);
    play_policy(&p, "hold write POST /w rule=others cred=1\n"); /* nobody approved it for that rule */
    granted_and_not_sent(&p, &d, 403, "policy-changed");
}

static void a_client_that_goes_between_claim_and_grant_sends_nothing(void **state)
{
    struct play p;
    struct digest d = claiming(&p, HOLDS);
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CANCEL, XID(1), (from(&p), -1)), 0);
    give_claimed(&p, XID(1), POST("/w", "hello"), &d);
    assert_int_equal(expect_outcome(&p, XID(1), true), OUTCOME_NOT_SENT);
    play_close(&p);
}

/* The grant names another digest than the one that was asked about, or the bytes of another request. */
static void a_grant_is_for_the_bytes_that_were_approved(void **state)
{
    static const struct ask others[] = {
        {.method = "POST", .path = "/w", .body = "hellp"},
        {.method = "POST", .path = "/w/x", .body = "hello"},
        {.method = "POST", .path = "/w", .query = "", .body = "hello"},
        {.method = "POST", .path = "/w", .header = "X-A", .value = "1", .body = "hello"}};
    struct play p;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct digest d = claiming(&p, HOLDS);
        give_claimed(&p, XID(1), &others[i], &d);
        expect_reply(&p, XID(1), 503, "internal");
        assert_int_equal(expect_outcome(&p, XID(1), true), OUTCOME_NOT_SENT);
        play_close(&p);
    }
}

/* The one of its name that comes later has not been approved anything. */
static void a_session_that_ended_claims_nothing(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    p.up[ROLE_PARENT] = true;
    give_request(&p, XID(1), POST("/w", "hello"));
    expect_ticket_open(&p, XID(1));
    give_ticket(&p, XID(1), 1, TICKET_PENDING);
    play_sandbox(&p, "sb", "another", NULL, false);
    while (p.first != p.n && p.out[p.first].to == ROLE_PARENT)
        expect(&p, ROLE_PARENT, p.out[p.first].type, p.out[p.first].id);
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect_reply(&p, XID(1), 403, "unknown-sandbox");
    expect_audit(&p, XID(1), "hold", "unknown-sandbox");
    play_close(&p);
}

/* The sandbox was removed, or its name is another session's by now: what was asked for in the old one does not leave
 * because the ledger's word was on its way. */
static void a_session_that_ends_before_the_grant_sends_nothing(void **state)
{
    struct play p;
    struct digest d = claiming(&p, HOLDS);
    play_sandbox(&p, "sb", "another", NULL, false);
    granted_and_not_sent(&p, &d, 403, "unknown-sandbox");
    d = claiming(&p, HOLDS);
    play_sandbox(&p, "sb", "ses", NULL, true);
    granted_and_not_sent(&p, &d, 403, "unknown-sandbox");
    for (int gone = 0; gone < 2; gone++) {
        play_all(&p, "allow write POST /a rule=a\n");
        give_request(&p, XID(1), POST("/a", "x"));
        expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
        play_sandbox(&p, "sb", gone ? "ses" : "another", NULL, gone);
        give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
        expect_reply(&p, XID(1), 403, "unknown-sandbox");
        assert_int_equal(expect_outcome(&p, XID(1), false), OUTCOME_NOT_SENT);
        play_close(&p);
    }
    covers("E45");
}

/* Between the two words of a ticket that is opened (the second one with what its pack holds) the policy may change:
 * what is allowed by then is written down and counted as whatever was allowed from the beginning. */
static void what_is_allowed_before_its_ticket_is_there_is_written_down(void **state)
{
    struct play p;
    struct wire_ticket_state wanted = {.words = SPAN("facts-wanted")};
    play_all(&p, "hold write POST / rule=w dialect=2 join=1\n");
    give_request(&p, XID(1), POST("/w", "0PACK of so many bytes"));
    expect_ticket_open(&p, XID(1));
    play_policy(&p, "allow write POST / rule=w dialect=2 join=1 cred=1\n");
    wire_put_ticket_state(from(&p), &wanted);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET, XID(1), -1), 0);
    expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_forward(&p, XID(1), NULL);
    give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    assert_int_equal(expect_outcome(&p, XID(1), false), OUTCOME_ANSWERED);
    play_close(&p);
    covers("E45");
}

/* The ticket that a request joins is approved already, and writes were frozen while it was asked for. */
static void a_freeze_before_the_claim_wins(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    give_request(&p, XID(1), POST("/w", "hello"));
    expect_ticket_open(&p, XID(1));
    give_bool(&p, ROLE_LEDGER, M_FREEZE, 0, true);
    if (p.first == p.n)
        give_ticket(&p, XID(1), 1, TICKET_APPROVED);
    expect_reply(&p, XID(1), 403, "frozen");
    expect_audit(&p, XID(1), "hold", "frozen");
    play_close(&p);
}

/* Its credential is fetched, which may take a while, or its connection is made. */
static void a_policy_before_the_first_byte_wins(void **state)
{
    static const char *const others[] = {"deny write POST /a rule=no\n", "allow write POST /a rule=a cred=2\n",
                                         "hold write POST /a rule=a cred=1\n"};
    for (size_t i = 0; i <= sizeof(others) / sizeof(others[0]); i++) {
        struct play p;
        play_all(&p, "allow write POST /a rule=a cred=1\n");
        give_request(&p, XID(1), POST("/a", "x"));
        expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
        give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
        expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
        expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
        assert_int_equal(expect_forward(&p, XID(1), NULL).release, RELEASE_COMES);
        play_policy(&p, "allow write POST /a rule=a cred=1\nallow read GET /b rule=b\n"); /* not about it */
        expect_nothing(&p);
        bool sent = i == sizeof(others) / sizeof(others[0]);
        if (sent) { /* what has left is not called back */
            assert_int_equal(give(&p, ROLE_CARRIER, 0, M_SENT, XID(1), (from(&p), -1)), 0);
            expect(&p, ROLE_LEDGER, M_SENT_MARK, XID(1));
        }
        play_policy(&p, sent ? others[0] : others[i]);
        if (!sent)
            expect(&p, ROLE_CARRIER, M_CANCEL, XID(1));
        expect_nothing(&p);
        give_result(&p, XID(1), sent ? OUTCOME_ANSWERED : OUTCOME_NOT_SENT, sent ? 200 : 0, sent,
                    sent ? "" : "cancelled");
        if (!sent)
            expect_reply(&p, XID(1), 403, "policy-changed");
        assert_int_equal(expect_outcome(&p, XID(1), false), sent ? OUTCOME_ANSWERED : OUTCOME_NOT_SENT);
        play_close(&p);
    }
}

/* The same of a write whose approval was just made use of. */
static void a_policy_between_grant_and_the_first_byte_wins(void **state)
{
    struct play p;
    struct digest d = claiming(&p, HOLDS);
    give_claimed(&p, XID(1), POST("/w", "hello"), &d);
    while (p.first < p.n && p.out[p.first].to != ROLE_CARRIER)
        expect(&p, p.out[p.first].to, p.out[p.first].type, p.out[p.first].id);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    while (p.first < p.n && p.out[p.first].type != M_FORWARD)
        expect(&p, p.out[p.first].to, p.out[p.first].type, p.out[p.first].id);
    (void)expect_forward(&p, XID(1), NULL);
    play_policy(&p, HOLDS "allow read GET /b rule=b\n"); /* not about it */
    expect_nothing(&p);
    play_policy(&p, "deny write POST /w rule=no\n");
    expect(&p, ROLE_CARRIER, M_CANCEL, XID(1));
    give_result(&p, XID(1), OUTCOME_NOT_SENT, 0, false, "cancelled");
    expect_reply(&p, XID(1), 403, "policy-changed");
    assert_int_equal(expect_outcome(&p, XID(1), true), OUTCOME_NOT_SENT);
    play_close(&p);
}

/* A credential that was released a moment ago is not used for what needs an approval. */
static void each_held_write_is_released_by_its_own_approval(void **state)
{
    struct play p;
    play_all(&p, HOLDS "allow write POST /a rule=a cred=1\n");
    give_request(&p, XID(9), POST("/a", "x"));
    expect(&p, ROLE_LEDGER, M_INTENT, XID(9));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(9), true);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(9));
    assert_int_equal(expect_forward(&p, XID(9), NULL).release, RELEASE_COMES);
    give_request(&p, XID(1), POST("/w", "hello"));
    struct digest d = expect_ticket_open(&p, XID(1)).record.request;
    give_ticket(&p, XID(1), 1, TICKET_APPROVED);
    expect(&p, ROLE_LEDGER, M_CLAIM, XID(1));
    give_claimed(&p, XID(1), POST("/w", "hello"), &d);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    assert_int_equal(expect_forward(&p, XID(1), NULL).release, RELEASE_COMES);
    give_result(&p, XID(9), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(&p, XID(9), false);
    give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(&p, XID(1), true);
    play_close(&p);
}

/* What the carrier may repeat is a read, and nothing else. */
static void what_is_no_plain_read_is_sent_once(void **state)
{
    static const struct {
        const char *policy, *method;
        bool once;
    } rows[] = {{"allow read GET /x rule=r\n", "GET", false},
                {"allow read POST /x rule=r\n", "POST", false},
                {"allow write PUT /x rule=r\n", "PUT", true},
                {"allow delete DELETE /x rule=r\n", "DELETE", true},
                {"allow write GET /x rule=r\n", "GET", true},
                {"allow read GET /x rule=r limit=9/1000\n", "GET", true}}; /* it was counted */
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct play p;
        play_all(&p, rows[i].policy);
        give_request(&p, XID(1), &(struct ask){.method = rows[i].method, .path = "/x"});
        if (rows[i].once) {
            expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
            give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
        }
        expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
        assert_int_equal(expect_forward(&p, XID(1), NULL).repeatable, !rows[i].once);
        give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
        assert_int_equal(expect_outcome(&p, XID(1), false), OUTCOME_ANSWERED);
        play_close(&p);
    }
}

/* The ticket names who may approve it, whether a reason is required, and for how long it stands. */
static void a_ticket_carries_what_its_hold_says(void **state)
{
    struct play p;
    play_all(&p, "hold delete DELETE /w rule=writes cred=1 by=leads reason stands=7000 wait=0\n");
    give_request(&p, XID(1), &(struct ask){.method = "DELETE", .path = "/w"});
    struct wire_ticket t = expect_ticket_open(&p, XID(1));
    assert_true(span_eq(t.approve_by, SPAN("leads")));
    assert_true(t.reason_required);
    assert_int_equal(t.within_ms, 7000);
    assert_true(span_eq(t.record.effect, SPAN("delete")));
    give_ticket(&p, XID(1), 1, TICKET_PENDING);
    expect_reply(&p, XID(1), 403, "held");
    expect_audit(&p, XID(1), "hold", "held");
    play_close(&p);
}

/* The join key of a request that is held for being past a limit, when these may approve it. */
static struct digest join_when_past(const char *by)
{
    struct wire_over o = {.n = 1, .past = {true}};
    char policy[300];
    struct play p;
    int n = snprintf(policy, sizeof(policy),
                     "allow write POST /pay rule=small limit=20/86400000 over=large cred=1\n"
                     "hold write POST /large rule=large cred=2 wait=0 by=%s\n",
                     by);
    assert_true(n > 0 && (size_t)n < sizeof(policy));
    play_all(&p, policy);
    give_request(&p, XID(1), POST("/pay", "x"));
    expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
    wire_put_over(from(&p), &o);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_INTENT_OVER, XID(1), -1), 0);
    struct digest join = expect_ticket_open(&p, XID(1)).join;
    give_ticket(&p, XID(1), 1, TICKET_PENDING);
    expect_reply(&p, XID(1), 403, "held");
    expect_audit(&p, XID(1), "hold", "held");
    play_close(&p);
    return join;
}

static void other_approvers_are_another_ticket(void **state)
{
    struct digest a = join_when_past("leads"), again = join_when_past("leads"), b = join_when_past("owners");
    assert_memory_equal(&a, &again, sizeof(a));
    assert_memory_not_equal(&a, &b, sizeof(a));
}

/* ---- every member of what an approval covers ---- */

enum { MEMBERS = 16 };

static void change(struct digest_input *in, struct wire_request *r, size_t i)
{
    switch (i) {
    case 0: in->session = SPAN("other"); break;
    case 1: in->credential = SPAN("other"); break;
    case 2: r->method = SPAN("PUT"); break;
    case 3: r->scheme = SPAN("http"); break;
    case 4: r->host = SPAN("b.example"); break;
    case 5: r->port = 444; break;
    case 6: r->path = SPAN("/b"); break;
    case 7: r->query = SPAN("b=2"); break;
    case 8:
        r->query = SPAN_NONE;
        r->has_query = true; /* "/a?" is not "/a" */
        break;
    case 9: r->field[0].value = SPAN("2"); break;
    case 10: r->field[0].name = SPAN("X-Other"); break;
    case 11: r->nfields = 0; break;
    case 12: in->body = SPAN("other"); break;
    case 13: in->rule = SPAN("other"); break;
    case 14: in->op = SPAN("other"); break;
    default: in->approve_by = SPAN("other"); break;
    }
}

static void nothing_is_missing_from_a_digest(void **state)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        struct wire_request r = {.method = SPAN("POST"),
                                 .scheme = SPAN("https"),
                                 .host = SPAN("a.example"),
                                 .port = 443,
                                 .path = SPAN("/a"),
                                 .nfields = 1};
        r.field[0] = (struct http_field){SPAN("X-A"), SPAN("1")};
        struct digest_input in = {.session = SPAN("ses"),
                                  .credential = SPAN("cred"),
                                  .request = &r,
                                  .body = SPAN("body"),
                                  .rule = SPAN("rule"),
                                  .op = SPAN("op"),
                                  .approve_by = SPAN("leads")};
        struct digest was[2], is[2];
        request_digest(&in, &was[0]);
        request_join_key(&in, &was[1]);
        assert_memory_not_equal(&was[0], &was[1], sizeof(was[0]));
        change(&in, &r, i);
        request_digest(&in, &is[0]);
        request_join_key(&in, &is[1]);
        if ((memcmp(&was[0], &is[0], sizeof(is[0])) != 0) != (i < 13))
            fail_msg("member %zu and the digest of a request", i);
        if (memcmp(&was[1], &is[1], sizeof(is[1])) == 0)
            fail_msg("member %zu is missing from the join key", i);
    }
}

/* Which header fields count: for the bytes that are approved, and for what makes a retry the same request. */
static const struct {
    const char *name;
    bool digest, join;
} header_fields[] = {
    {"X-Any", true, true},
    {"Content-Type", true, true},
    {"Sec-WebSocket-Protocol", true, true},
    {"Cookie", true, true},
    {"Authorization", true, true},
    {"X-Amz-Security-Token", true, true},
    {"Idempotency-Key", true, false},
    {"Content-MD5", true, false},
    {"Content-Digest", true, false},
    {"User-Agent", false, false},
    {"Sec-Fetch-Mode", false, false},
    {"Accept", false, false},
    {"X-Request-Id", false, false},
    {"Traceparent", false, false},
};

static void each_field_counts_as_it_should(void **state)
{
    for (size_t i = 0; i < sizeof(header_fields) / sizeof(header_fields[0]); i++) {
        struct digest d[2][2];
        for (unsigned k = 0; k < 2; k++) {
            struct wire_request r = {.method = SPAN("POST"), .path = SPAN("/a"), .nfields = 1};
            struct digest_input in = {.request = &r};
            r.field[0] = (struct http_field){span_str(header_fields[i].name), k ? SPAN("1") : SPAN("2")};
            request_digest(&in, &d[k][0]);
            request_join_key(&in, &d[k][1]);
        }
        if ((memcmp(&d[0][0], &d[1][0], sizeof(d[0][0])) != 0) != header_fields[i].digest ||
            (memcmp(&d[0][1], &d[1][1], sizeof(d[0][0])) != 0) != header_fields[i].join)
            fail_msg("%s", header_fields[i].name);
    }
}

/* A reload tells every sandbox anew. */
static void connect_to(struct play *p, uint64_t n)
{
    char host[32];
    int len = snprintf(host, sizeof(host), "h%u.example", (unsigned)n);
    struct dynbuf *b = from(p);
    msg_put_span(b, SPAN("https"));
    msg_put_span(b, span_of(host, (size_t)len));
    msg_put_u16(b, 443);
    assert_int_equal(give(p, ROLE_FRONT, FRONT, M_CONNECT, XID(n), -1), 0);
}

static void a_reload_fills_no_budget(void **state)
{
    struct play p;
    uint64_t n = 0;
    play_all(&p, "");
    msg_put_span(from(&p), SPAN("the front's key"));
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_FRONT_KEY, 0, -1), 0);
    for (connect_to(&p, ++n); p.out[p.first].to == ROLE_KEEPER; connect_to(&p, ++n)) {
        expect(&p, ROLE_KEEPER, M_MINT, XID(n));
        struct dynbuf *b = from(&p);
        msg_put_span(b, SPAN("leaf"));
        msg_put_span(b, SPAN("ca"));
        assert_int_equal(give(&p, ROLE_KEEPER, 0, M_MINTED, XID(n), -1), 0);
        expect(&p, ROLE_FRONT, M_LEAF, XID(n));
    }
    for (unsigned i = 0; i < 3; i++, connect_to(&p, ++n)) {
        assert_int_equal(p.out[p.first].to, ROLE_FRONT); /* the budget is spent: no leaf, and a line in the audit */
        expect(&p, ROLE_FRONT, M_LEAF, XID(n));
        expect(&p, ROLE_LEDGER, M_AUDIT, XID(n));
        if (i == 0)
            play_sandbox(&p, "sb", "ses", NULL, false);
        else
            play_policy(&p, "allow read GET /x\n");
    }
    expect(&p, ROLE_FRONT, M_LEAF, XID(n));
    expect(&p, ROLE_LEDGER, M_AUDIT, XID(n));
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_freeze_between_claim_and_grant_wins),
        cmocka_unit_test(a_policy_between_claim_and_grant_wins),
        cmocka_unit_test(a_client_that_goes_between_claim_and_grant_sends_nothing),
        cmocka_unit_test(a_grant_is_for_the_bytes_that_were_approved),
        cmocka_unit_test(what_is_no_plain_read_is_sent_once),
        cmocka_unit_test(a_ticket_carries_what_its_hold_says),
        cmocka_unit_test(other_approvers_are_another_ticket),
        cmocka_unit_test(nothing_is_missing_from_a_digest),
        cmocka_unit_test(a_reload_fills_no_budget),
        cmocka_unit_test(a_session_that_ended_claims_nothing),
        cmocka_unit_test(a_session_that_ends_before_the_grant_sends_nothing),
        cmocka_unit_test(what_is_allowed_before_its_ticket_is_there_is_written_down),
        cmocka_unit_test(a_freeze_before_the_claim_wins),
        cmocka_unit_test(a_policy_before_the_first_byte_wins),
        cmocka_unit_test(a_policy_between_grant_and_the_first_byte_wins),
        cmocka_unit_test(each_held_write_is_released_by_its_own_approval),
        cmocka_unit_test(each_field_counts_as_it_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
