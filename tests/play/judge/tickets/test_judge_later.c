/* Approve and execute later: what the judge does with what nobody waits for. */
#include "tests/play/judge/play.h"

#include "proxy/judge/tickets/digest.h"
#include "proxy/judge/tickets/later.h"

#define HOLDS "hold write POST /w rule=writes cred=1\n"
#define LATER ((uint64_t)XID_LATER << XID_FRONT_SHIFT | 77)
#define ASYNC                                                                                                        \
    (&(struct ask){.method = "POST", .path = "/w", .header = "Prefer", .value = "respond-async", .body = "hello"})

/* As the ledger kept it: the request of ASYNC. */
static void told_of(struct play *p, uint8_t n, uint64_t xid, const char *sandbox, const char *session)
{
    struct wire_review w = {.ticket = {{n}},
                            .sandbox = span_str(sandbox),
                            .session = span_str(session),
                            .code = SPAN("hold"),
                            .has_body = true,
                            .request = {.method = SPAN("POST"),
                                        .scheme = SPAN("https"),
                                        .host = SPAN("api.example"),
                                        .port = 443,
                                        .path = SPAN("/w"),
                                        .nfields = 1}};
    struct wire_later l = {.asked = true};
    w.request.field[0] = (struct http_field){SPAN("Prefer"), SPAN("respond-async")};
    struct dynbuf *b = from(p);
    wire_put_review(b, &w);
    wire_put_later(b, &l);
    msg_put_u64(b, 5);
    msg_put_span(b, SPAN("hello"));
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_TICKET_LATER, xid, -1), 0);
}

/* The digest under which it was held. */
static struct digest begin(struct play *p, const char *policy)
{
    play_all(p, policy);
    give_request(p, XID(1), ASYNC);
    struct wire_ticket t = expect_ticket_open(p, XID(1));
    struct digest d = t.record.request;
    assert_true(t.later.asked);
    give_ticket(p, XID(1), 1, TICKET_PENDING);
    struct wire_reply r = expect_reply(p, XID(1), 202, "the gateway sends it");
    assert_true(r.head.status == 202);
    expect_audit(p, XID(1), "hold", "held");
    return d;
}

static void what_was_approved_is_claimed_and_sent_and_its_answer_kept(void **state)
{
    struct play p;
    struct span body;
    struct digest d = begin(&p, HOLDS);
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect_nothing(&p);
    told_of(&p, 1, LATER, "sb", "ses");
    expect(&p, ROLE_LEDGER, M_CLAIM, LATER);
    told_of(&p, 1, LATER + 1, "sb", "ses"); /* said again: one is on its way */
    expect_nothing(&p);
    give_claimed(&p, LATER, ASYNC, &d);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, LATER);
    (void)expect_forward(&p, LATER, &body);
    assert_true(span_eq(body, SPAN("hello")));
    struct wire_answer a = {.status = 201, .reason = SPAN("Created")};
    struct dynbuf *b = from(&p);
    wire_put_answer(b, &a);
    msg_put_u64(b, 2);
    msg_put_span(b, SPAN("ok"));
    assert_int_equal(give(&p, ROLE_CARRIER, 0, M_KEPT, LATER, -1), 0);
    give_result(&p, LATER, OUTCOME_ANSWERED, 201, false, "");
    assert_int_equal(expect_outcome(&p, LATER, true), OUTCOME_ANSWERED);
    play_close(&p);
}

static void the_policy_of_now_wins(void **state)
{
    static const char *const now[] = {"deny write POST /w rule=no\n", "allow write POST /w rule=yes cred=1\n"};
    for (size_t i = 0; i < 2; i++) { /* what is allowed by now was not approved like this either */
        struct play p;
        (void)begin(&p, HOLDS);
        play_policy(&p, now[i]);
        told_of(&p, 1, LATER, "sb", "ses");
        expect(&p, ROLE_LEDGER, M_TICKET_VOID, LATER);
        expect(&p, ROLE_LEDGER, M_AUDIT, LATER);
        play_close(&p);
    }
}

static void a_policy_between_claim_and_grant_wins(void **state)
{
    struct play p;
    struct digest d = begin(&p, HOLDS);
    told_of(&p, 1, LATER, "sb", "ses");
    expect(&p, ROLE_LEDGER, M_CLAIM, LATER);
    play_policy(&p, "deny write POST /w rule=no\n");
    give_claimed(&p, LATER, ASYNC, &d);
    assert_int_equal(expect_outcome(&p, LATER, true), OUTCOME_NOT_SENT);
    play_close(&p);
}

static void what_cannot_be_now_is_not_tried(void **state)
{
    struct play p;
    (void)begin(&p, HOLDS);
    told_of(&p, 1, LATER, "sb", "another"); /* a session that is not there */
    expect_nothing(&p);
    give_bool(&p, ROLE_LEDGER, M_FREEZE, 0, true);
    told_of(&p, 1, LATER, "sb", "ses");
    expect_nothing(&p);
    give_bool(&p, ROLE_LEDGER, M_FREEZE, 0, false);
    play_gone(&p, ROLE_CARRIER, 0);
    told_of(&p, 1, LATER, "sb", "ses");
    expect_nothing(&p);
    play_close(&p);
}

/* Nobody's front goes with it; and no other sandbox of its session stands in for it. */
static void what_waits_to_be_sent_ends_with_its_sandbox(void **state)
{
    struct play p;
    struct digest d = begin(&p, HOLDS);
    play_sandbox(&p, "next", "ses", NULL, false);
    told_of(&p, 1, LATER, "sb", "ses");
    expect(&p, ROLE_LEDGER, M_CLAIM, LATER);
    give_claimed(&p, LATER, ASYNC, &d);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, LATER);
    (void)expect_forward(&p, LATER, NULL); /* the carrier waits for its credential, or for a connection */
    play_sandbox(&p, "sb", "ses", NULL, true);
    (void)expect(&p, ROLE_CARRIER, M_CANCEL, LATER);
    give_result(&p, LATER, OUTCOME_NOT_SENT, 0, false, "cancelled");
    assert_int_equal(expect_outcome(&p, LATER, true), OUTCOME_NOT_SENT);
    told_of(&p, 2, LATER + 1, "sb", "ses");
    expect_nothing(&p);
    play_close(&p);
}

static void a_client_that_claimed_it_first_sends_it(void **state)
{
    struct play p;
    (void)begin(&p, HOLDS);
    give_request(
        &p, XID(2),
        &(struct ask){
            .method = "POST", .path = "/w", .header = "Prefer", .value = "respond-async, wait=9", .body = "hello"});
    (void)expect_ticket_open(&p, XID(2));
    give_ticket(&p, XID(2), 1, TICKET_APPROVED);
    expect(&p, ROLE_LEDGER, M_CLAIM, XID(2));
    told_of(&p, 1, LATER, "sb", "ses");
    expect_nothing(&p); /* not even a try that would be written down as one that was refused */
    play_close(&p);
}

/* By the time that it could be sent, nobody knows any more which lane its command had. */
static void of_a_command_with_a_lane_of_its_own_somebody_waits(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    play_peer(&p, ROLE_FRONT, FRONT, "sb web 2.7");
    give_request(&p, XID(1), ASYNC);
    assert_false(expect_ticket_open(&p, XID(1)).later.asked);
    play_close(&p);
}

static void it_is_of_no_front(void **state)
{
    struct play p;
    struct wire_review w = {.ticket = {{1}}, .sandbox = SPAN("sb"), .session = SPAN("ses")};
    struct wire_later l = {.asked = true};
    play_all(&p, HOLDS);
    struct dynbuf *b = from(&p);
    wire_put_review(b, &w);
    wire_put_later(b, &l);
    msg_put_u64(b, 0);
    msg_put_span(b, SPAN_NONE);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET_LATER, XID(9), -1), -1);
    play_close(&p);
}

static void bytes_that_were_not_approved_do_not_leave(void **state)
{
    static const struct ask other = {
        .method = "POST", .path = "/w", .header = "Prefer", .value = "respond-async", .body = "hellp"};
    struct play p;
    struct digest d = begin(&p, HOLDS);
    told_of(&p, 1, LATER, "sb", "ses");
    expect(&p, ROLE_LEDGER, M_CLAIM, LATER);
    give_claimed(&p, LATER, &other, &d);
    assert_int_equal(expect_outcome(&p, LATER, true), OUTCOME_NOT_SENT);
    play_close(&p);
}

static void one_sandbox_leaves_room_for_its_neighbour(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    play_sandbox(&p, "other", "o", NULL, false);
    for (uint8_t i = 0; i < LATER_EACH; i++) {
        told_of(&p, i + 1, LATER + i, "sb", "ses");
        expect(&p, ROLE_LEDGER, M_CLAIM, LATER + i);
    }
    told_of(&p, LATER_EACH + 1, LATER + LATER_EACH, "sb", "ses");
    expect_nothing(&p);
    told_of(&p, LATER_EACH + 2, LATER + LATER_EACH + 1, "other", "o");
    expect(&p, ROLE_LEDGER, M_CLAIM, LATER + LATER_EACH + 1);
    covers("F36");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_approved_is_claimed_and_sent_and_its_answer_kept),
        cmocka_unit_test(the_policy_of_now_wins),
        cmocka_unit_test(a_policy_between_claim_and_grant_wins),
        cmocka_unit_test(what_cannot_be_now_is_not_tried),
        cmocka_unit_test(what_waits_to_be_sent_ends_with_its_sandbox),
        cmocka_unit_test(a_client_that_claimed_it_first_sends_it),
        cmocka_unit_test(of_a_command_with_a_lane_of_its_own_somebody_waits),
        cmocka_unit_test(it_is_of_no_front),
        cmocka_unit_test(one_sandbox_leaves_room_for_its_neighbour),
        cmocka_unit_test(bytes_that_were_not_approved_do_not_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
