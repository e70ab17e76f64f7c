/* Writes frozen by an operator, and the mode that blocks nothing. */
#include "tests/play/judge/play.h"

#define RULES "allow read GET /free rule=r\nhold write POST /w rule=writes\nallow write POST /a rule=a\n"

static void frozen(struct play *p, bool on)
{
    give_bool(p, ROLE_LEDGER, M_FREEZE, 0, on);
}

/* Forwarded, and not all of it has left: waiting for a connection, or a body in the middle. */
static void a_freeze_stops_what_is_on_its_way(void **state)
{
    struct play p;
    (void)state;
    play_all(&p, "allow read POST /free rule=r\nallow write POST /a rule=a\n");
    for (uint64_t n = 1; n <= 4; n++) {
        struct ask a = {.method = "POST", .path = n == 4 ? "/free" : "/a", .kind = 2, .declared = 100};
        give_request(&p, XID(n), &a);
        if (n < 4) {
            expect(&p, ROLE_LEDGER, M_INTENT, XID(n));
            give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(n), true);
        }
        if (n == 1)
            expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
        expect_forward(&p, XID(n), NULL);
        expect(&p, ROLE_FRONT, M_BODY_WANTED, XID(n));
        if (n == 1 || n == 4)
            continue; /* it is not sent: not even its head, or a read */
        assert_int_equal(give(&p, ROLE_CARRIER, 0, M_SENT, XID(n), -1), 0);
        expect(&p, ROLE_LEDGER, M_SENT_MARK, XID(n));
    }
    give_bool(&p, ROLE_FRONT, M_BODY_END, XID(3), true); /* all of this one has left */
    expect(&p, ROLE_CARRIER, M_BODY_END, XID(3));
    frozen(&p, true);
    expect(&p, ROLE_CARRIER, M_CANCEL, XID(1));
    expect(&p, ROLE_CARRIER, M_CANCEL, XID(2));
    frozen(&p, true);
    expect_nothing(&p);
    give_result(&p, XID(1), OUTCOME_NOT_SENT, 0, false, "cancelled");
    expect_reply(&p, XID(1), 403, "frozen");
    assert_int_equal(expect_outcome(&p, XID(1), false), OUTCOME_NOT_SENT);
    give_result(&p, XID(2), OUTCOME_UNKNOWN, 0, false, "cancelled");
    expect_reply(&p, XID(2), 409, "outcome-unknown");
    assert_int_equal(expect_outcome(&p, XID(2), false), OUTCOME_UNKNOWN);
    for (uint64_t n = 3; n <= 4; n++) {
        give_result(&p, XID(n), OUTCOME_ANSWERED, 200, true, "");
        assert_int_equal(expect_outcome(&p, XID(n), false), OUTCOME_ANSWERED);
    }
    play_close(&p);
}

static void frozen_writes_are_refused_and_reads_go_on(void **state)
{
    struct play p;
    (void)state;
    play_all(&p, RULES);
    frozen(&p, true);
    give_request(&p, XID(1), POST("/a", "data"));
    expect_reply(&p, XID(1), 403, "frozen");
    expect_audit(&p, XID(1), "allow", "frozen");
    give_request(&p, XID(2), POST("/w", "data"));
    expect_reply(&p, XID(2), 403, "frozen");
    expect_audit(&p, XID(2), "hold", "frozen");
    give_request(&p, XID(3), POST("/elsewhere", "data")); /* denied is denied */
    expect_reply(&p, XID(3), 403, "denied");
    expect_audit(&p, XID(3), "deny", "no-rule");
    give_request(&p, XID(4), GET("/free"));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(&p, XID(4), NULL);
    give_result(&p, XID(4), OUTCOME_ANSWERED, 200, true, "");
    assert_int_equal(expect_outcome(&p, XID(4), false), OUTCOME_ANSWERED);
    frozen(&p, false);
    give_request(&p, XID(5), POST("/a", "data"));
    expect(&p, ROLE_LEDGER, M_INTENT, XID(5));
    frozen(&p, true); /* between the intent and its first byte */
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(5), true);
    expect_reply(&p, XID(5), 403, "frozen");
    assert_int_equal(expect_outcome(&p, XID(5), false), OUTCOME_NOT_SENT);
    play_close(&p);
}

static void what_is_parked_is_told_and_its_approval_waits(void **state)
{
    struct play p;
    (void)state;
    play_all(&p, RULES);
    give_request(&p, XID(1), POST("/w", "data"));
    expect_ticket_open(&p, XID(1));
    give_ticket(&p, XID(1), 1, TICKET_PENDING);
    expect_nothing(&p);
    frozen(&p, true);
    expect_reply(&p, XID(1), 403, "frozen");
    expect_audit(&p, XID(1), "hold", "frozen");
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    give_request(&p, XID(2), POST("/w", "data")); /* approved, and still it does not leave: no claim, no void */
    expect_reply(&p, XID(2), 403, "frozen");
    expect_audit(&p, XID(2), "hold", "frozen");
    expect_nothing(&p);
    play_close(&p);
}

static void a_new_ledger_says_first_whether_writes_may_leave(void **state)
{
    struct play p;
    (void)state;
    play_all(&p, RULES);
    play_gone(&p, ROLE_LEDGER, 0);
    p.up[ROLE_LEDGER] = true;
    judge_peer(p.j, ROLE_LEDGER, 0, SPAN_NONE);
    give_request(&p, XID(1), POST("/a", "data"));
    expect_reply(&p, XID(1), 503, "store-unavailable"); /* nobody froze them: it is worth another try */
    expect_audit(&p, XID(1), "allow", "store-unavailable");
    frozen(&p, true);
    give_request(&p, XID(2), POST("/a", "data"));
    expect_reply(&p, XID(2), 403, "frozen");
    expect_audit(&p, XID(2), "allow", "frozen");
    play_close(&p);
}

static bool enforced_not(struct play *p, uint64_t xid, uint16_t type, const char *verdict)
{
    struct msg_in m = expect(p, ROLE_LEDGER, type, xid);
    struct wire_record r;
    assert_int_equal(wire_get_record(&m, &r), 0);
    assert_true(span_eq(r.verdict, span_str(verdict)));
    return r.shadow;
}

static void shadow_lets_pass_without_credentials_and_writes_down_what_would_be(void **state)
{
    struct play p;
    struct msg_in m;
    (void)state;
    play_all(&p, "hold write POST /w rule=writes cred=1\n");
    assert_int_equal(judge_config(p.j, SPAN("mode"), SPAN("shadow")), 0);
    give_request(&p, XID(1), POST("/w", "data")); /* would be held */
    assert_true(enforced_not(&p, XID(1), M_INTENT, "hold"));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    m = expect(&p, ROLE_KEEPER, M_RELEASE, XID(1)); /* what to scrub, and no credential */
    assert_int_equal(msg_get_span(&m, 64).n, 0);
    assert_int_equal(expect_forward(&p, XID(1), NULL).credential.n, 0);
    give_result(&p, XID(1), OUTCOME_ANSWERED, 201, true, "");
    assert_true(enforced_not(&p, XID(1), M_OUTCOME, "hold"));
    give_request(&p, XID(2), POST("/elsewhere", "")); /* would be denied */
    assert_true(enforced_not(&p, XID(2), M_INTENT, "deny"));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(2), true);
    expect_forward(&p, XID(2), NULL);
    give_result(&p, XID(2), OUTCOME_ANSWERED, 200, true, "");
    assert_true(enforced_not(&p, XID(2), M_OUTCOME, "deny"));
    frozen(&p, true); /* an operator's word holds in every mode */
    give_request(&p, XID(3), POST("/elsewhere", ""));
    expect_reply(&p, XID(3), 403, "frozen");
    expect_audit(&p, XID(3), "deny", "frozen");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_freeze_stops_what_is_on_its_way),
        cmocka_unit_test(frozen_writes_are_refused_and_reads_go_on),
        cmocka_unit_test(what_is_parked_is_told_and_its_approval_waits),
        cmocka_unit_test(a_new_ledger_says_first_whether_writes_may_leave),
        cmocka_unit_test(shadow_lets_pass_without_credentials_and_writes_down_what_would_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
