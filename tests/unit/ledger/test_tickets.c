/* The life of tickets: E3 E4 E6 E7 E8 E21 E24 E25 E28 E29, with a clock set by hand. */
#include "tests/unit/ledger/ledger_fix.h"

static const struct span no_body;

static void a_ticket_is_held_approved_executed_and_done(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, SPAN("body"));
    assert_int_equal(st.state, TICKET_PENDING);
    assert_false(st.joined);
    assert_true(st.expires_ms == T0 + STORE_EXPIRES_MS);
    assert_false(fix_claim(&st.ticket, 5, NULL)); /* not approved */
    struct digest d = fix_digest(1);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, &d), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 5, NULL));
    fix_outcome(&st.ticket, 5, OUTCOME_ANSWERED, true, no_body);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='done' AND status=200 AND delivered=1"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM effect WHERE state='answered'"), 1);
    assert_int_equal(fix_told[TICKET_PENDING] + fix_told[TICKET_APPROVED] + fix_told[TICKET_EXECUTING] +
                         fix_told[TICKET_DONE],
                     5); /* and that it waits, to whom the claim that came too early was said to be granted */
    /* A second, deliberate write is a second ticket. */
    struct wire_ticket_state again = fix_hold("s1", 1, 1, SPAN("body"));
    assert_int_equal(again.state, TICKET_PENDING);
    assert_false(id_eq(&again.ticket, &st.ticket));
}

static void e3_a_decision_is_taken_once(void **state)
{
    static const enum decide verbs[] = {DECIDE_APPROVE, DECIDE_DENY, DECIDE_CANCEL};
    for (unsigned i = 0; i < 3; i++) {
        struct wire_ticket_state st = fix_hold("s1", i, i, no_body);
        assert_int_equal(fix_decide(&st.ticket, verbs[i], NULL), DECIDED_DONE);
        assert_int_equal(fix_decide(&st.ticket, verbs[i], NULL), DECIDED_NOT_PENDING);
        if (i != 0)
            assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_NOT_PENDING);
    }
    struct wire_ticket_state st = fix_hold("s1", 9, 9, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 7, NULL));
    uint8_t s;
    assert_false(fix_claim(&st.ticket, 8, &s)); /* consumed once */
    assert_int_equal(s, TICKET_EXECUTING);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_DENY, NULL), DECIDED_NOT_PENDING);
    assert_int_equal(fix_count("SELECT count(*) FROM effect"), 1);
}

static void an_approval_may_be_taken_back_until_it_is_used(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_CANCEL, NULL), DECIDED_DONE);
    assert_false(fix_claim(&st.ticket, 7, NULL));
    st = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_int_equal(store_void(fix, &st.ticket, SPAN("the policy denies it now")), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_false(fix_claim(&st.ticket, 7, NULL));
    assert_int_equal(fix_count("SELECT count(*) FROM effect"), 0);
}

static void e4_expiry_and_approval_meet(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    fix_time(STORE_EXPIRES_MS - 1);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    fix_time(1); /* approved, and over before it was used: no tick has run yet */
    uint8_t s;
    assert_false(fix_claim(&st.ticket, 7, &s));
    assert_int_equal(s, TICKET_EXPIRED);
    st = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(st.state, TICKET_PENDING);
    fix_time(STORE_EXPIRES_MS);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_EXPIRED);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_EXPIRED);
    assert_false(fix_claim(&st.ticket, 8, NULL));
    assert_int_equal(fix_told[TICKET_EXPIRED], 2);
}

static void expiry_is_seen_by_the_tick_and_by_a_retry(void **state)
{
    struct wire_ticket_state a = fix_hold("s1", 1, 1, no_body), b = fix_hold("s1", 2, 2, no_body);
    fix_time(STORE_EXPIRES_MS);
    struct wire_ticket_state again = fix_hold("s1", 2, 2, no_body);
    assert_int_equal(again.state, TICKET_PENDING);
    assert_false(id_eq(&again.ticket, &b.ticket));
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_told[TICKET_EXPIRED], 2);
    assert_int_equal(fix_decide(&a.ticket, DECIDE_DENY, NULL), DECIDED_EXPIRED);
}

static void a_ticket_may_live_shorter_and_never_longer_than_the_cap(void **state)
{
    static struct wire_ticket t;
    struct wire_ticket_state st;
    struct store_bytes kept = {.head = {NULL, 0}};
    static const uint64_t lives[][2] = {{1000, 1000}, {UINT64_MAX, STORE_EXPIRES_MAX_MS}, {0, STORE_EXPIRES_MS}};
    for (unsigned i = 0; i < 3; i++) {
        fix_ticket(&t, "s1", 50 + i, i);
        t.within_ms = lives[i][0];
        assert_int_equal(store_ticket_open(fix, &t, &fix_limits, no_body, &st, &kept, &fix_over), 0);
        assert_true(st.expires_ms == T0 + lives[i][1]);
    }
    assert_int_equal(store_commit(fix), 0);
}

static void e28_a_clock_that_jumps_lengthens_nothing(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    fix_wall -= 86400000; /* the wall clock goes back a day; the boot clock goes on, suspend included */
    fix_time(STORE_EXPIRES_MS - 1);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(fix_told[TICKET_EXPIRED], 0);
    fix_time(1);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_told[TICKET_EXPIRED], 1);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_EXPIRED);
    st = fix_hold("s1", 2, 2, no_body);
    fix_wall += 86400000; /* forward: it ends early, which costs a retry and no safety */
    fix_time(0);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_EXPIRED);
}

static void e28_over_a_restart_and_a_reboot(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    fix_wall -= 3600000; /* the same kernel: its clock still counts */
    fix_boot += STORE_EXPIRES_MS;
    fix_reopen();
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_EXPIRED);
    fix_wall = T0 + 5000;
    fix_time(0);
    st = fix_hold("s1", 2, 2, no_body); /* a reboot with a sane clock: what is left is left */
    fix_wall += 60000;
    fix_boot = 10;
    fix_config.kernel_boot = SPAN("kernel2");
    fix_reopen();
    fix_time(STORE_EXPIRES_MS - 60001);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    fix_wall -= 3600000;
    fix_time(1);
    assert_false(fix_claim(&st.ticket, 3, NULL));
    fix_wall += 3600000;
    fix_time(0);
    st = fix_hold("s1", 3, 3, no_body); /* a reboot with a clock behind the last record: nothing open survives */
    fix_wall -= 3600000;
    fix_config.kernel_boot = SPAN("kernel3");
    fix_reopen();
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_EXPIRED);
}

static void e8_ids_are_random_and_a_wrong_one_says_nothing(void **state)
{
    struct wire_ticket_state a = fix_hold("s1", 1, 1, no_body), b = fix_hold("s1", 2, 2, no_body);
    int differ = 0;
    for (int i = 0; i < ID_BYTES; i++)
        differ += a.ticket.b[i] != b.ticket.b[i];
    assert_true(differ > 8);
    struct id wrong = a.ticket;
    wrong.b[15] ^= 1;
    uint8_t s = 9;
    assert_int_equal(fix_decide(&wrong, DECIDE_APPROVE, NULL), DECIDED_NO_TICKET);
    assert_false(fix_claim(&wrong, 3, &s));
    assert_int_equal(s, TICKET_NONE);
    memset(&wrong, 0, sizeof(wrong));
    assert_int_equal(fix_decide(&wrong, DECIDE_APPROVE, NULL), DECIDED_NO_TICKET);
}

static void e21_a_flood_is_capped_and_a_denial_stands_as_long_as_its_ticket(void **state)
{
    struct wire_ticket_state st;
    for (unsigned i = 0; i < STORE_PENDING_MAX; i++)
        assert_int_equal(fix_hold("s1", i, i, no_body).state, TICKET_PENDING);
    st = fix_hold("s1", 1000, 1000, no_body);
    assert_int_equal(st.state, TICKET_NONE);
    assert_true(span_eq(st.words, SPAN("too-many-pending")));
    assert_int_equal(fix_hold("s1", 7, 7, no_body).state, TICKET_PENDING); /* joining is no new ticket */
    st = fix_hold("s1", 7, 7, no_body);
    assert_true(st.joined);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_DENY, NULL), DECIDED_DONE);
    struct id denied = st.ticket;
    st = fix_hold("s1", 7, 7, no_body);
    assert_int_equal(st.state, TICKET_DENIED);
    assert_true(st.joined && id_eq(&st.ticket, &denied));
    assert_int_equal(fix_hold("s1", 7, 8, no_body).state, TICKET_DENIED); /* nor do other bytes of the same help */
    fix_time(st.expires_ms - fix_wall - 1);
    assert_int_equal(fix_hold("s1", 7, 7, no_body).state, TICKET_DENIED);
    fix_time(1);
    assert_int_equal(fix_hold("s1", 7, 7, no_body).state, TICKET_PENDING);
    assert_int_equal(fix_count("SELECT repeats FROM ticket WHERE state='denied' ORDER BY created_ms, repeats DESC"),
                     5);
}

/* F33 */
static void facts_are_wanted_for_a_new_ticket_alone(void **state)
{
    fix_no_facts = true;
    assert_true(span_eq(fix_hold("s1", 1, 1, no_body).words, SPAN("facts-wanted")));
    assert_int_equal(fix_count("SELECT count(*) FROM ticket"), 0);
    fix_no_facts = false;
    assert_int_equal(fix_hold("s1", 1, 1, no_body).state, TICKET_PENDING);
    fix_no_facts = true;
    assert_true(fix_hold("s1", 1, 1, no_body).joined);
}

static void e24_an_approval_carries_what_was_shown(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    struct digest other = fix_digest(2), right = fix_digest(1);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, &other), DECIDED_OTHER_DIGEST);
    assert_false(fix_claim(&st.ticket, 3, NULL));
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, &right), DECIDED_DONE);
}

static void e25_a_ticket_belongs_to_its_session(void **state)
{
    struct wire_ticket_state a = fix_hold("s1", 1, 1, no_body), b = fix_hold("s2", 1, 1, no_body);
    assert_false(b.joined);
    assert_false(id_eq(&a.ticket, &b.ticket));
    assert_int_equal(fix_decide(&a.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_int_equal(fix_hold("s2", 1, 1, no_body).state, TICKET_PENDING);
    assert_false(fix_claim(&b.ticket, 3, NULL));
}

static void a_claim_names_what_was_approved(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    struct store_claim good = {.xid = 3,
                               .ticket = st.ticket,
                               .credential = SPAN("demo"),
                               .host = SPAN("git.example"),
                               .port = 443,
                               .terms = fix_terms},
                       bad[4] = {good, good, good, good};
    struct store_bytes req = {.head = {NULL, 0}};
    struct digest d;
    uint8_t s;
    bool ok = true;
    bad[0].credential = SPAN("other");
    bad[1].host = SPAN("evil.example");
    bad[2].port = 80;
    bad[3].xid = 0;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(store_claim(fix, &bad[i], &ok, &s, &d, &req), 0);
        assert_false(ok);
        assert_int_equal(s, TICKET_APPROVED);
    }
    assert_int_equal(store_claim(fix, &good, &ok, &s, &d, &req), 0);
    assert_true(ok);
    struct digest want = fix_digest(1);
    assert_memory_equal(&d, &want, sizeof(d));
    assert_int_equal(store_commit(fix), 0);
}

static void what_is_claimed_is_what_was_first_held(void **state)
{
    static struct wire_request back;
    struct wire_ticket_state st = fix_hold("s1", 1, 1, SPAN("the first bytes"));
    struct wire_ticket_state joined = fix_hold("s1", 1, 2, SPAN("others, under the same join key"));
    assert_true(id_eq(&joined.ticket, &st.ticket));
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    struct store_claim c = {.xid = 3,
                            .ticket = st.ticket,
                            .credential = SPAN("demo"),
                            .host = SPAN("git.example"),
                            .port = 443,
                            .terms = fix_terms};
    struct store_bytes req = {.head = {NULL, 0}};
    struct digest d, want = fix_digest(1);
    uint8_t s;
    bool ok;
    dynbuf_init(&req.body, 1000);
    assert_int_equal(store_claim(fix, &c, &ok, &s, &d, &req), 0);
    assert_true(ok);
    assert_true(span_eq(dynbuf_span(&req.body), SPAN("the first bytes")));
    struct msg_in m = msg_in(req.head);
    assert_int_equal(wire_get_request(&m, &back), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_true(span_eq(back.host, SPAN("git.example")));
    assert_int_equal(back.nfields, 1);
    assert_memory_equal(&d, &want, sizeof(d));
    dynbuf_free(&req.body);
    assert_int_equal(store_commit(fix), 0);
}

static void e29_retries_join_and_one_send_comes_of_them(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    for (int i = 0; i < 5; i++) {
        struct wire_ticket_state j = fix_hold("s1", 1, 1, no_body);
        assert_true(j.joined && id_eq(&j.ticket, &st.ticket));
    }
    assert_int_equal(fix_count("SELECT repeats FROM ticket"), 5);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    int claimed = 0;
    for (uint64_t x = 10; x < 15; x++)
        claimed += fix_claim(&st.ticket, x, NULL);
    assert_int_equal(claimed, 1);
    assert_int_equal(fix_hold("s1", 1, 1, no_body).state, TICKET_EXECUTING);
    fix_outcome(&st.ticket, 10, OUTCOME_ANSWERED, false, SPAN("answer body"));
    /* Nobody took the answer: the next one gets it, once. */
    static struct wire_ticket t;
    struct wire_ticket_state got;
    struct store_bytes kept = {.head = {NULL, 0}};
    struct wire_answer a;
    dynbuf_init(&kept.body, ANSWER_KEPT_MAX + 1);
    fix_ticket(&t, "s1", 1, 1);
    assert_int_equal(store_ticket_open(fix, &t, &fix_limits, no_body, &got, &kept, &fix_over), 0);
    assert_int_equal(got.state, TICKET_DONE);
    assert_true(got.joined && got.has_answer);
    assert_true(span_eq(dynbuf_span(&kept.body), SPAN("answer body")));
    struct msg_in m = msg_in(kept.head);
    assert_int_equal(wire_get_answer(&m, &a), 0);
    assert_int_equal(a.status, 200);
    dynbuf_free(&kept.body);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_hold("s1", 1, 1, no_body).state, TICKET_PENDING);
}

/* Nobody took it and it was too large: whoever asks again is told once that it was done, and opens nothing. */
static void an_answer_that_was_not_kept_is_told_once(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 10, NULL));
    fix_outcome(&st.ticket, 10, OUTCOME_ANSWERED, false, no_body);
    struct wire_ticket_state again = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(again.state, TICKET_DONE);
    assert_true(again.joined && !again.has_answer && id_eq(&again.ticket, &st.ticket));
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE json LIKE '%answer-collected%'"), 0);
    assert_int_equal(fix_hold("s1", 1, 1, no_body).state, TICKET_PENDING);
}

static void the_largest_kept_answer(void **state)
{
    static uint8_t body[ANSWER_KEPT_MAX];
    static struct wire_ticket t;
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body), got;
    struct store_bytes kept = {.head = {NULL, 0}};
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 10, NULL));
    fix_outcome(&st.ticket, 10, OUTCOME_ANSWERED, false, span_of(body, sizeof(body)));
    dynbuf_init(&kept.body, ANSWER_KEPT_MAX + 1);
    fix_ticket(&t, "s1", 1, 1);
    assert_int_equal(store_ticket_open(fix, &t, &fix_limits, no_body, &got, &kept, &fix_over), 0);
    assert_true(got.has_answer && kept.body.n == sizeof(body));
    dynbuf_free(&kept.body);
    assert_int_equal(store_commit(fix), 0);
}

static void a_kept_answer_is_for_ten_minutes_and_its_session(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 10, NULL));
    fix_outcome(&st.ticket, 10, OUTCOME_ANSWERED, false, SPAN("answer body"));
    assert_int_equal(fix_hold("s2", 1, 1, no_body).state, TICKET_PENDING);
    fix_time(STORE_ANSWER_MS);
    assert_int_equal(fix_hold("s1", 1, 1, no_body).state, TICKET_PENDING);
    fix_time(60000);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM answer"), 0);
}

static void a_write_that_was_not_sent_failed_and_can_be_asked_for_again(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 10, NULL));
    fix_outcome(&st.ticket, 10, OUTCOME_NOT_SENT, false, no_body);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='failed'"), 1);
    assert_false(fix_claim(&st.ticket, 11, NULL)); /* the approval was used up */
    st = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(st.state, TICKET_PENDING);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 12, NULL));
    assert_int_equal(store_sent(fix, 12), 0);
    fix_outcome(&st.ticket, 12, OUTCOME_NOT_SENT, false, no_body); /* against the mark that it was */
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='unknown'"), 1);
}

static void e7_a_restart_keeps_what_waits_and_owns_up_to_what_it_cannot_know(void **state)
{
    struct wire_ticket_state pending = fix_hold("s1", 1, 1, SPAN("held bytes")),
                             approved = fix_hold("s1", 2, 2, no_body), sent = fix_hold("s1", 3, 3, no_body);
    assert_int_equal(fix_decide(&approved.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_int_equal(fix_decide(&sent.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&sent.ticket, 10, NULL));
    fix_config.boot = SPAN("boot2");
    fix_reopen();
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='unknown'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM effect WHERE state='unknown'"), 1);
    struct wire_ticket_state j = fix_hold("s1", 1, 1, SPAN("held bytes"));
    assert_true(j.joined && id_eq(&j.ticket, &pending.ticket));
    struct dynbuf body;
    bool ok;
    dynbuf_init(&body, 100);
    assert_int_equal(store_body(fix, &pending.ticket, &ok, &body), 0);
    assert_true(ok && span_eq(dynbuf_span(&body), SPAN("held bytes")));
    dynbuf_free(&body);
    j = fix_hold("s1", 2, 2, no_body);
    assert_int_equal(j.state, TICKET_APPROVED);
    assert_true(fix_claim(&approved.ticket, 10, NULL)); /* the same number, in another boot */
    j = fix_hold("s1", 3, 3, no_body);
    assert_int_equal(j.state, TICKET_PENDING); /* a person decides again */
    assert_false(id_eq(&j.ticket, &sent.ticket));
    fix_outcome(&sent.ticket, 10, OUTCOME_ANSWERED, true, no_body); /* of this boot: not that exchange */
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='unknown'"), 1);
}

static void f13_a_judge_that_dies_leaves_unknown_and_a_late_word_settles_it(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    static struct wire_ticket t;
    bool ok;
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 10, NULL));
    fix_ticket(&t, "s1", 5, 5);
    assert_int_equal(store_intent(fix, 11, &t.record, &t.join, &fix_limits, &ok, &fix_over), 0);
    assert_true(ok);
    assert_int_equal(store_intent(fix, 11, &t.record, &t.join, &fix_limits, &ok, &fix_over), 0);
    assert_false(ok); /* an exchange has one intent */
    assert_int_equal(store_intent(fix, 0, &t.record, &t.join, &fix_limits, &ok, &fix_over), 0);
    assert_false(ok);
    assert_int_equal(store_judge_came(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM effect WHERE state='unknown'"), 2);
    assert_int_equal(fix_told[TICKET_UNKNOWN], 1);
    fix_outcome(&st.ticket, 10, OUTCOME_ANSWERED, true, no_body);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='done'"), 1);
    fix_outcome(&st.ticket, 10, OUTCOME_NOT_SENT, true, no_body); /* it is done, whoever says otherwise */
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='done'"), 1);
}

static void an_outcome_ends_only_its_own_ticket(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, no_body);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    fix_outcome(&st.ticket, 10, OUTCOME_ANSWERED, true, no_body);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='approved'"), 1);
    assert_true(fix_claim(&st.ticket, 10, NULL));
    fix_outcome(&st.ticket, 11, OUTCOME_ANSWERED, true, no_body);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='executing'"), 1);
}

static void a_required_reason_is_required(void **state)
{
    static struct wire_ticket t;
    struct wire_ticket_state st;
    struct store_bytes kept = {.head = {NULL, 0}};
    enum decided r;
    uint8_t s;
    fix_ticket(&t, "s1", 1, 1);
    t.reason_required = true;
    assert_int_equal(store_ticket_open(fix, &t, &fix_limits, no_body, &st, &kept, &fix_over), 0);
    struct id id = st.ticket;
    assert_int_equal(fix_say(&id, DECIDE_APPROVE, "ann", "  ", UNSEEN, &r, &s), 0);
    assert_int_equal(r, DECIDED_NO_REASON);
    assert_int_equal(fix_say(&id, DECIDE_APPROVE, "", "x", UNSEEN, &r, &s), 0);
    assert_int_equal(r, DECIDED_NOT_PENDING); /* nobody is no operator */
    assert_int_equal(fix_say(&id, DECIDE_NONE, "ann", "x", UNSEEN, &r, &s), 0);
    assert_int_equal(r, DECIDED_NOT_PENDING);
    assert_int_equal(fix_say(&id, DECIDE_APPROVE, "ann", "x", UNSEEN, &r, &s), 0);
    assert_int_equal(r, DECIDED_DONE);
    assert_int_equal(store_commit(fix), 0);
}

static void bodies_go_after_a_day_and_the_ticket_stays(void **state)
{
    struct wire_ticket_state st = fix_hold("s1", 1, 1, SPAN("held bytes")), open = fix_hold("s1", 2, 2, SPAN("more"));
    struct dynbuf body;
    bool ok;
    assert_int_equal(fix_decide(&st.ticket, DECIDE_DENY, NULL), DECIDED_DONE);
    fix_time(STORE_BODIES_MS);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM body"), 2); /* the other expired just now */
    fix_time(60001);
    assert_int_equal(store_tick(fix), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM body"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket"), 2);
    dynbuf_init(&body, 100);
    assert_int_equal(store_body(fix, &st.ticket, &ok, &body), 0);
    assert_false(ok);
    assert_int_equal(store_body(fix, &open.ticket, &ok, &body), 0);
    assert_true(ok);
    dynbuf_free(&body);
}

static void without_the_keepers_key_no_body_is_held(void **state)
{
    store_data_key(fix, NULL);
    struct wire_ticket_state st = fix_hold("s1", 1, 1, SPAN("bytes"));
    assert_int_equal(st.state, TICKET_NONE);
    assert_true(span_eq(st.words, SPAN("store")));
    assert_int_equal(fix_hold("s1", 2, 2, no_body).state, TICKET_PENDING);
}

/* E41: who approved did so on the terms of then; on others nothing is joined, and nothing is claimed. */
static void on_other_terms_it_is_another_ticket(void **state)
{
    struct wire_ticket_state pending = fix_hold("s1", 1, 1, SPAN("x")), approved = fix_hold("s1", 2, 2, SPAN("x"));
    uint8_t s;
    fix_decide(&approved.ticket, DECIDE_APPROVE, NULL);
    fix_terms = fix_digest(43);
    struct wire_ticket_state again = fix_hold("s1", 1, 1, SPAN("x"));
    assert_int_equal(again.state, TICKET_PENDING);
    assert_false(again.joined || id_eq(&again.ticket, &pending.ticket));
    assert_false(fix_claim(&approved.ticket, 7, &s));
    assert_int_equal(s, TICKET_CANCELLED);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='cancelled' AND decided_by='policy'"), 2);
    again = fix_hold("s1", 1, 1, SPAN("x"));
    assert_true(again.joined);
    fix_sql("UPDATE ticket SET terms=NULL WHERE state='pending'"); /* of an earlier version of the store */
    again = fix_hold("s1", 1, 1, SPAN("x"));
    assert_false(again.joined);
    fix_decide(&again.ticket, DECIDE_APPROVE, NULL);
    assert_true(fix_claim(&again.ticket, 8, &s));
    fix_terms = fix_digest(44);
    again = fix_hold("s1", 1, 1, SPAN("x"));
    assert_true(again.joined && again.state == TICKET_EXECUTING); /* what is on its way is not asked for again */
    fix_outcome(&again.ticket, 8, OUTCOME_ANSWERED, false, SPAN("kept"));
    again = fix_hold("s1", 1, 1, SPAN("x"));
    assert_true(again.joined && again.state == TICKET_DONE);
    again = fix_hold("s1", 3, 3, no_body);
    fix_decide(&again.ticket, DECIDE_DENY, NULL);
    fix_terms = fix_digest(45);
    assert_int_equal(fix_hold("s1", 3, 3, no_body).state, TICKET_PENDING); /* of others, others may decide */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(on_other_terms_it_is_another_ticket),
        FRESH(a_ticket_is_held_approved_executed_and_done),
        FRESH(e3_a_decision_is_taken_once),
        FRESH(an_approval_may_be_taken_back_until_it_is_used),
        FRESH(e4_expiry_and_approval_meet),
        FRESH(expiry_is_seen_by_the_tick_and_by_a_retry),
        FRESH(a_ticket_may_live_shorter_and_never_longer_than_the_cap),
        FRESH(e28_a_clock_that_jumps_lengthens_nothing),
        FRESH(e28_over_a_restart_and_a_reboot),
        FRESH(e8_ids_are_random_and_a_wrong_one_says_nothing),
        FRESH(e21_a_flood_is_capped_and_a_denial_stands_as_long_as_its_ticket),
        FRESH(facts_are_wanted_for_a_new_ticket_alone),
        FRESH(e24_an_approval_carries_what_was_shown),
        FRESH(e25_a_ticket_belongs_to_its_session),
        FRESH(a_claim_names_what_was_approved),
        FRESH(what_is_claimed_is_what_was_first_held),
        FRESH(e29_retries_join_and_one_send_comes_of_them),
        FRESH(an_answer_that_was_not_kept_is_told_once),
        FRESH(the_largest_kept_answer),
        FRESH(a_kept_answer_is_for_ten_minutes_and_its_session),
        FRESH(a_write_that_was_not_sent_failed_and_can_be_asked_for_again),
        FRESH(e7_a_restart_keeps_what_waits_and_owns_up_to_what_it_cannot_know),
        FRESH(f13_a_judge_that_dies_leaves_unknown_and_a_late_word_settles_it),
        FRESH(an_outcome_ends_only_its_own_ticket),
        FRESH(a_required_reason_is_required),
        FRESH(bodies_go_after_a_day_and_the_ticket_stays),
        FRESH(without_the_keepers_key_no_body_is_held),
    };
    return cmocka_run_group_tests_name("tickets", tests, NULL, NULL);
}
