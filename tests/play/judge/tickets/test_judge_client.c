/* Who waits for a decision, as the judge tells it: A34 E30. */
#include "tests/play/judge/play.h"

#define HOLDS "hold write POST /w rule=writes cred=1\n"

static void expect_client(struct play *p, uint64_t xid, bool waits, uint64_t ms)
{
    struct id ticket;
    struct msg_in m = expect(p, ROLE_LEDGER, M_TICKET_CLIENT, xid);
    msg_get_id(&m, &ticket);
    assert_int_equal(ticket.b[0], 1);
    assert_int_equal(msg_get_bool(&m), waits);
    assert_true(msg_get_u64(&m) == ms);
    assert_int_equal(msg_end(&m), 0);
}

static void asks(struct play *p, uint64_t n)
{
    give_request(p, XID(n), POST("/w", "hello"));
    (void)expect_ticket_open(p, XID(n));
    give_ticket(p, XID(n), 1, TICKET_PENDING);
}

static void begin(struct play *p)
{
    play_all(p, HOLDS);
    p->clients = true;
    asks(p, 1);
    expect_client(p, XID(1), true, 50000);
    expect_nothing(p);
}

static void leaves(struct play *p, uint64_t n)
{
    assert_int_equal(give(p, ROLE_FRONT, FRONT, M_CANCEL, XID(n), (from(p), -1)), 0);
}

static void a_client_that_hangs_up_is_told(void **state)
{
    struct play p;
    begin(&p);
    leaves(&p, 1);
    expect_client(&p, XID(1), false, 0);
    asks(&p, 2); /* and comes back */
    expect_client(&p, XID(2), true, 50000);
    expect_nothing(&p);
    leaves(&p, 2);
    expect_client(&p, XID(2), false, 0);
    covers("A34");
    play_close(&p);
}

static void the_last_of_them_counts(void **state)
{
    struct play p;
    begin(&p);
    play_time(&p, 2000);
    asks(&p, 2);
    expect_client(&p, XID(2), true, 50000);
    leaves(&p, 1);
    expect_nothing(&p); /* the second still waits */
    leaves(&p, 2);
    expect_client(&p, XID(2), false, 0);
    play_close(&p);
}

static void who_was_told_to_ask_again_waits_no_more(void **state)
{
    struct play p;
    begin(&p);
    play_time(&p, 50000);
    expect_reply(&p, XID(1), 403, "\"code\":\"held\"");
    expect_audit(&p, XID(1), "hold", "held");
    expect_client(&p, XID(1), false, 0);
    play_close(&p);
}

/* Another policy, under which it is held as before: nothing is said, for nothing changed. */
static void who_goes_on_waiting_is_not_told_again(void **state)
{
    struct play p;
    begin(&p);
    play_policy(&p, HOLDS "# the same\n");
    expect_nothing(&p);
    play_gone(&p, ROLE_FRONT, FRONT);
    expect_client(&p, XID(1), false, 0);
    play_close(&p);
}

static void who_may_not_wait_is_told_to_be_gone(void **state)
{
    struct play p;
    play_all(&p, "hold write POST /w rule=writes wait=0\n");
    p.clients = true;
    asks(&p, 1);
    expect_reply(&p, XID(1), 403, "\"code\":\"held\"");
    expect_audit(&p, XID(1), "hold", "held");
    expect_client(&p, XID(1), false, 0);
    play_close(&p);
}

static void who_left_before_the_ticket_came_is_missed(void **state)
{
    struct play p;
    play_all(&p, HOLDS);
    p.clients = true;
    give_request(&p, XID(1), POST("/w", "hello"));
    (void)expect_ticket_open(&p, XID(1));
    leaves(&p, 1);
    expect_nothing(&p);
    give_ticket(&p, XID(1), 1, TICKET_PENDING);
    expect_client(&p, 0, false, 0);
    play_close(&p);
}

static void a_decision_ends_the_waiting_without_a_word(void **state)
{
    struct play p;
    begin(&p);
    give_changed(&p, 1, TICKET_DENIED, "ada", "no");
    expect_reply(&p, XID(1), 403, "Denied by ada: no");
    expect_audit(&p, XID(1), "hold", "ticket-denied");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_hangs_up_is_told),
        cmocka_unit_test(the_last_of_them_counts),
        cmocka_unit_test(who_was_told_to_ask_again_waits_no_more),
        cmocka_unit_test(who_goes_on_waiting_is_not_told_again),
        cmocka_unit_test(who_may_not_wait_is_told_to_be_gone),
        cmocka_unit_test(who_left_before_the_ticket_came_is_missed),
        cmocka_unit_test(a_decision_ends_the_waiting_without_a_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
