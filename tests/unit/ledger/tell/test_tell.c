/* The outbox of what is told outside the page: written with what it tells of, the same at each try, given up in the
 * end; floods are one message, charged to who floods. */
#include <string.h>

#include "common/dynbuf.h"
#include "proxy/ledger/store/tell/told.h"
#include "tests/unit/ledger/ledger_fix.h"

#define PATIENCE 100000u

static struct tell_targets targets;
static struct store_tell got;
static uint8_t kept_id[TELL_ID_MAX], kept_body[TELL_BODY_MAX];
static size_t kept_nid, kept_nbody;

static void told_by(size_t n)
{
    targets = (struct tell_targets){.n = n, .desk = SPAN("https://gate.example")};
    for (size_t i = 0; i < n; i++)
        targets.target[i] = (struct wire_tell_target){.name = i == 0 ? SPAN("ops") : SPAN("team"),
                                                      .kind = i == 0 ? TELL_WEBHOOK : TELL_MAIL,
                                                      .of = fix_digest(70 + (unsigned)i),
                                                      .events = TELL_EVENTS - 1,
                                                      .give_up_ms = PATIENCE};
    fix_config.tell = &targets;
    fix_reopen();
}

static int next(size_t target)
{
    int n = store_tell_next(fix, &targets.target[target], &got);
    if (n == 1) {
        assert_true(got.id.n <= sizeof(kept_id) && got.body.n <= sizeof(kept_body));
        memcpy(kept_id, got.id.p, kept_nid = got.id.n);
        memcpy(kept_body, got.body.p, kept_nbody = got.body.n);
    }
    assert_int_equal(store_commit(fix), 0);
    return n;
}

static bool says(const char *what)
{
    return span_find(span_of(kept_body, kept_nbody), span_str(what)) < kept_nbody;
}

static void became(enum tell_outcome what, const char *words)
{
    assert_int_equal(store_told(fix, span_of(kept_id, kept_nid), what, span_str(words)), 0);
    assert_int_equal(store_commit(fix), 0);
}

static void it_is_written_with_what_it_tells_of(void **state)
{
    told_by(2);
    struct wire_ticket_state st = fix_hold("s1", 1, 1, SPAN("secret body"));
    assert_int_equal(next(0), 1);
    assert_true(says("\"type\":\"ticket.waiting\"") && says("\"sandbox\":\"s1\""));
    assert_true(says("https://gate.example/tickets/"));
    assert_false(says("secret body"));
    became(TELL_TOLD, "it answered 204");
    assert_int_equal(next(0), 0);
    assert_int_equal(next(1), 1);
    assert_true(says("\nOpen: https://gate.example/tickets/"));
    became(TELL_TOLD, "its relay took it");
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_int_equal(next(0), 1);
    assert_true(says("ticket.approved"));
    became(TELL_TOLD, "");
    assert_true(fix_claim(&st.ticket, 5, NULL));
    assert_int_equal(next(0), 0); /* that it is on its way is no news */
    fix_outcome(&st.ticket, 5, OUTCOME_UNKNOWN, false, SPAN_NONE);
    assert_int_equal(next(0), 1);
    assert_true(says("ticket.unknown"));
}

static void a_turn_that_fails_tells_nobody(void **state)
{
    told_by(1);
    assert_int_equal(store_freeze(fix, true, SPAN("alice"), SPAN("now")), 0);
    store_fail(fix, "the disk is full");
    assert_int_not_equal(store_commit(fix), 0);
    assert_int_equal(next(0), 0);
    assert_int_equal(store_freeze(fix, true, SPAN("alice"), SPAN("now")), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(next(0), 1);
    assert_true(says("writes.frozen") && says("alice") && !says("tickets/"));
}

static void it_is_the_same_at_each_try_and_later_each_time(void **state)
{
    uint8_t id[TELL_ID_MAX], body[TELL_BODY_MAX];
    told_by(1);
    fix_hold("s1", 1, 1, SPAN_NONE);
    assert_int_equal(next(0), 1);
    memcpy(id, kept_id, kept_nid);
    memcpy(body, kept_body, kept_nbody);
    size_t n = kept_nbody;
    for (unsigned wait = TELL_BACKOFF_MS; wait <= 16000; wait *= 2) {
        became(TELL_NOT_NOW, "it answered 500");
        fix_reopen(); /* as after a kill */
        fix_time(wait - 1);
        assert_int_equal(next(0), 0);
        fix_time(1);
        assert_int_equal(next(0), 1);
        assert_true(span_eq(span_of(id, kept_nid), span_of(kept_id, kept_nid)));
        assert_true(span_eq(span_of(body, n), span_of(kept_body, kept_nbody)));
    }
    fix_time(PATIENCE);
    assert_int_equal(next(0), 1);
    became(TELL_NOT_NOW, "it answered 500");
    assert_int_equal(next(0), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='not-told' AND json LIKE '%it answered 500%'"),
                     1);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE state='given-up' AND body=''"), 1);
    fix_chain();
}

static void the_last_try_is_as_its_time_is_over(void **state)
{
    told_by(1);
    targets.target[0].give_up_ms = 5000;
    fix_hold("s1", 1, 1, SPAN_NONE);
    for (unsigned i = 0; i < 3; i++) { /* at 0, 2 and 5 s */
        assert_int_equal(next(0), 1);
        became(TELL_NOT_NOW, "no");
        fix_time(i == 0 ? 2000 : 3000);
    }
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE state='given-up' AND tries=3"), 1);
}

static void what_must_not_be_told_again_is_given_up_at_once(void **state)
{
    told_by(1);
    fix_hold("s1", 1, 1, SPAN_NONE);
    assert_int_equal(next(0), 1);
    became(TELL_NEVER, "it answered 410");
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE state='given-up'"), 1);
    became(TELL_TOLD, "late"); /* of one that is over nothing more is heard */
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE state='given-up'"), 1);
}

static void a_flood_is_one_message_and_hides_nobody_and_no_operator(void **state)
{
    told_by(1);
    targets.target[0].events = TELL_WAITING | TELL_FROZEN;
    for (unsigned i = 0; i < 60; i++)
        fix_hold("noisy", i + 1, i + 1, SPAN_NONE);
    fix_hold("calm", 99, 99, SPAN_NONE);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE sandbox='noisy'"), TELL_SANDBOX_MINUTE);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE sandbox='calm'"), 1);
    assert_int_equal(fix_count("SELECT count FROM tell WHERE event='many'"), 50);
    for (unsigned k = 0; k < 3; k++)
        for (unsigned i = 0; i < 12; i++)
            fix_hold(k == 0 ? "b" : k == 1 ? "c" : "d", 1000 + 100 * k + i, 1000 + 100 * k + i, SPAN_NONE);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE event<>'many'"), TELL_MINUTE + 1);
    fix_hold("e", 2000, 2000, SPAN_NONE); /* a neighbour is heard all the same, once */
    fix_hold("e", 2001, 2001, SPAN_NONE);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE sandbox='e'"), 1);
    assert_int_equal(store_freeze(fix, true, SPAN("alice"), SPAN_NONE), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE event='writes.frozen'"), 1);
    for (unsigned i = 0; i < TELL_MINUTE + 3; i++) {
        assert_int_equal(next(0), 1);
        became(TELL_TOLD, "");
    }
    assert_int_equal(next(0), 0);
    fix_time(TELL_MANY_MS);
    assert_int_equal(next(0), 1);
    assert_true(says("tickets.many") && says("\"waiting\":\"99\"") && says("\"noisy\":60") && says("\"d\":12"));
    became(TELL_NOT_NOW, "no");
    fix_hold("noisy", 500, 500, SPAN_NONE); /* what was sent says the same again, and one more collects */
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE event='many'"), 2);
    fix_time(TELL_MANY_MS);
    assert_int_equal(next(0), 1);
    assert_true(says("\"waiting\":\"99\""));
    became(TELL_NOT_NOW, "no");
    fix_time(3000);
    assert_int_equal(next(0), 0); /* the other waits for it: there are never more than these two */
}

static void so_many_wait_and_no_more(void **state)
{
    told_by(1);
    targets.target[0].events = TELL_CANCELLED;
    targets.target[0].give_up_ms = 7ull * 24 * 3600 * 1000;
    for (unsigned i = 0; i < 30 * 12; i++) {
        struct wire_ticket_state st = fix_hold(i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "c", i + 1, i + 1, SPAN_NONE);
        assert_int_equal(fix_decide(&st.ticket, DECIDE_CANCEL, NULL), DECIDED_DONE);
        if (i % 30 == 29)
            fix_time(61000);
    }
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE state='due' AND event<>'many'"), TELL_QUEUE);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE event='many'"), 1);
    for (unsigned i = 0; i < 2 * TELL_FIRST; i++) { /* of each that has none there yet one, up to a bound */
        char name[16];
        (void)snprintf(name, sizeof(name), "n%u", i);
        struct wire_ticket_state st = fix_hold(name, 5000 + i, 5000 + i, SPAN_NONE);
        assert_int_equal(fix_decide(&st.ticket, DECIDE_CANCEL, NULL), DECIDED_DONE);
    }
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE state='due' AND event<>'many'"),
                     TELL_QUEUE + TELL_FIRST);
}

/* However often it is tested whether somebody is told, and frozen, while nobody answers. */
static void tests_hide_no_thaw_and_what_waits_of_an_operator_is_bounded(void **state)
{
    const char *why = NULL;
    told_by(1);
    targets.target[0].events = TELL_FROZEN;
    targets.target[0].give_up_ms = 7ull * 24 * 3600 * 1000;
    for (unsigned i = 0; why == NULL; i++) {
        assert_true(i <= TELL_SANDBOX_MINUTE);
        assert_int_equal(store_tell_test(fix, SPAN("ops"), SPAN("alice"), &why), 0);
        assert_int_equal(store_commit(fix), 0);
    }
    assert_int_equal(store_freeze(fix, true, SPAN("alice"), SPAN_NONE), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE event='writes.frozen'"), 1);
    for (unsigned i = 0; i < 2 * TELL_QUEUE; i++) {
        assert_int_equal(store_freeze(fix, i % 2 == 1, SPAN("alice"), SPAN_NONE), 0);
        assert_int_equal(store_commit(fix), 0);
        fix_time(10000);
    }
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE event LIKE 'writes.%'"), TELL_QUEUE);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE event='many'"), 1);
}

/* However often it is given up, and whatever the clock does meanwhile. */
static void the_last_that_were_given_up_are_kept(void **state)
{
    const char *why;
    told_by(1);
    targets.target[0].give_up_ms = 5000;
    for (unsigned i = 0; i < TELL_GIVEN_UP + 30; i++) {
        assert_int_equal(store_tell_test(fix, SPAN("ops"), SPAN("alice"), &why), 0);
        assert_null(why);
        assert_int_equal(store_commit(fix), 0);
        assert_int_equal(next(0), 1);
        became(TELL_NEVER, "it answered 410");
        fix_time(7000);
    }
    assert_int_equal(fix_count("SELECT count(*) FROM tell"), TELL_GIVEN_UP);
}

static void a_clock_that_is_set_back_gives_nothing_up_at_once(void **state)
{
    told_by(1);
    fix_hold("s1", 1, 1, SPAN_NONE);
    assert_int_equal(next(0), 1);
    fix_wall -= 1000;
    fix_time(0);
    became(TELL_NOT_NOW, "no");
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE state='due' AND tries=1"), 1);
    fix_wall -= 3600 * 1000; /* it would be tried for an hour more than it may */
    fix_time(0);
    became(TELL_NOT_NOW, "no");
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE state='given-up'"), 1);
}

static void each_hears_of_its_tenants_alone(void **state)
{
    told_by(2);
    targets.target[0].ntenants = 1;
    targets.target[0].tenant[0] = SPAN("acme");
    fix_hold("s1", 1, 1, SPAN_NONE);
    assert_int_equal(next(0), 0);
    assert_int_equal(next(1), 1);
    assert_int_equal(fix_sql("UPDATE ticket SET tenant='acme'"), 0);
    for (unsigned i = 0; i < 12; i++)
        fix_hold("s2", 10 + i, 10 + i, SPAN_NONE);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE target='ops'"), 0);
}

static void what_was_for_another_of_that_name_is_not_told(void **state)
{
    told_by(1);
    fix_hold("s1", 1, 1, SPAN_NONE);
    targets.target[0].of = fix_digest(99);
    assert_int_equal(next(0), 0);
    fix_reopen();
    assert_int_equal(fix_count("SELECT count(*) FROM tell"), 0);
    targets.n = 0;
    fix_hold("s1", 2, 2, SPAN_NONE);
    assert_int_equal(fix_count("SELECT count(*) FROM tell"), 0);
}

static void what_the_start_mends_is_told(void **state)
{
    told_by(1);
    targets.target[0].events = TELL_UNKNOWN;
    struct wire_ticket_state st = fix_hold("s1", 1, 1, SPAN_NONE);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 5, NULL));
    assert_int_equal(fix_sql("UPDATE effect SET state='sent',sent_ms=1"), 0);
    fix_reopen();
    assert_int_equal(next(0), 1);
    assert_true(says("ticket.unknown"));
}

/* Of more than somebody can look at in an hour: in one message, and each of them waits as before. */
static void past_a_budget_one_message_stands_for_the_rest(void **state)
{
    told_by(1);
    targets.target[0].events = TELL_WAITING;
    targets.target[0].budget = 4;
    for (unsigned i = 0; i < 5; i++) {
        fix_hold("noisy", i + 1, i + 1, SPAN_NONE);
        fix_time(60000);
    }
    for (unsigned i = 0; i < 3; i++)
        fix_hold("calm", i + 100, i + 100, SPAN_NONE);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE event='ticket.waiting' AND sandbox='noisy'"), 2);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE event='ticket.waiting' AND sandbox='calm'"), 2);
    assert_int_equal(fix_count("SELECT count FROM tell WHERE event='many'"), 4);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='pending'"), 8); /* nothing is lost */
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(next(0), 1);
        became(TELL_TOLD, "");
    }
    assert_int_equal(next(0), 0); /* not yet */
    fix_time(TELL_DIGEST_MS);
    assert_int_equal(next(0), 1);
    assert_true(says("tickets.many") && says("\"messages\":\"4\"") && says("\"waiting\":\"8\""));
    became(TELL_TOLD, "");
    fix_time(TELL_BUDGET_MS);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    fix_hold("noisy", 900, 900, SPAN_NONE);
    assert_int_equal(next(0), 1);
    assert_true(says("ticket.waiting")); /* another hour */
}

/* Whose first word would else come after ten minutes, and what nobody has decided for long as late. */
static void a_budget_that_others_used_up_hides_no_first_word_and_no_escalation(void **state)
{
    told_by(1);
    targets.target[0].events = TELL_WAITING;
    targets.target[0].budget = 2;
    fix_people = (struct wire_people){.quorum = 1, .escalate = {.n = 1, .step = {{120 * 1000, SPAN("leads")}}}};
    for (unsigned i = 0; i < 4; i++)
        fix_hold(i & 1 ? "noisy1" : "noisy2", i + 1, i + 1, SPAN_NONE);
    fix_hold("calm", 100, 100, SPAN_NONE);
    fix_hold("calm", 101, 101, SPAN_NONE); /* the second waits with the others */
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE event='ticket.waiting' AND sandbox='calm'"), 1);
    assert_int_equal(fix_count("SELECT count FROM tell WHERE event='many'"), 3);
    fix_time(120 * 1000);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(DISTINCT sandbox) FROM tell WHERE event='ticket.escalated'"), 3);
    fix_people = (struct wire_people){.quorum = 1};
    for (unsigned i = 0; i < 2 * TELL_FIRST; i++) { /* and that has an end, too */
        char name[16];
        snprintf(name, sizeof(name), "one%u", i);
        fix_hold(name, 200 + i, 200 + i, SPAN_NONE);
        if (i % 20 == 19)
            fix_time(60 * 1000);
    }
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE event='ticket.waiting'"), 2 + TELL_FIRST);
}

/* What waits for ten minutes takes along nothing that is told of after ten seconds. */
static void a_flood_past_a_digest_is_told_of_in_its_time(void **state)
{
    told_by(1);
    targets.target[0].budget = 1;
    fix_hold("s1", 1, 1, SPAN_NONE);
    fix_hold("s1", 2, 2, SPAN_NONE);
    assert_int_equal(fix_count("SELECT next_ms-at_ms FROM tell WHERE event='many'"), TELL_DIGEST_MS);
    struct wire_ticket_state st = fix_hold("s2", 3, 3, SPAN_NONE);
    for (unsigned i = 0; i < TELL_SANDBOX_MINUTE; i++) {
        assert_int_equal(fix_decide(&st.ticket, DECIDE_DENY, NULL), DECIDED_DONE);
        st = fix_hold("s2", 10 + i, 10 + i, SPAN_NONE);
    }
    while (next(0) == 1)
        became(TELL_TOLD, "");
    fix_time(TELL_MANY_MS);
    assert_int_equal(next(0), 1);
    assert_true(says("tickets.many"));
    became(TELL_TOLD, "");
    fix_decide(&st.ticket, DECIDE_DENY, NULL);
    assert_int_equal(
        fix_count("SELECT count(*) FROM tell WHERE event='many' AND state='due' AND next_ms>at_ms+10000"), 0);
}

static void what_is_over_is_forgotten(void **state)
{
    const char *why;
    told_by(1);
    assert_int_equal(store_tell_test(fix, SPAN("nobody"), SPAN("alice"), &why), 0);
    assert_non_null(why);
    assert_int_equal(store_tell_test(fix, SPAN("ops"), SPAN("alice"), &why), 0);
    assert_null(why);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(next(0), 1);
    assert_true(says("\"type\":\"test\""));
    became(TELL_TOLD, "it answered 200");
    fix_time(TELL_TOLD_MS);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM tell"), 1);
    fix_time(1);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM tell"), 0);
    for (unsigned i = 0; i < TELL_SANDBOX_MINUTE; i++)
        assert_int_equal(store_tell_test(fix, SPAN("ops"), SPAN("alice"), &why), 0);
    assert_null(why);
    assert_int_equal(store_tell_test(fix, SPAN("ops"), SPAN("alice"), &why), 0);
    assert_non_null(why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FRESH(it_is_written_with_what_it_tells_of),
                                       FRESH(a_turn_that_fails_tells_nobody),
                                       FRESH(it_is_the_same_at_each_try_and_later_each_time),
                                       FRESH(the_last_try_is_as_its_time_is_over),
                                       FRESH(what_must_not_be_told_again_is_given_up_at_once),
                                       FRESH(past_a_budget_one_message_stands_for_the_rest),
                                       FRESH(a_budget_that_others_used_up_hides_no_first_word_and_no_escalation),
                                       FRESH(a_flood_past_a_digest_is_told_of_in_its_time),
                                       FRESH(a_flood_is_one_message_and_hides_nobody_and_no_operator),
                                       FRESH(so_many_wait_and_no_more),
                                       FRESH(tests_hide_no_thaw_and_what_waits_of_an_operator_is_bounded),
                                       FRESH(the_last_that_were_given_up_are_kept),
                                       FRESH(a_clock_that_is_set_back_gives_nothing_up_at_once),
                                       FRESH(each_hears_of_its_tenants_alone),
                                       FRESH(what_was_for_another_of_that_name_is_not_told),
                                       FRESH(what_the_start_mends_is_told),
                                       FRESH(what_is_over_is_forgotten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
