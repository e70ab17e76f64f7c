/* What else is asked before a person may approve: once, bound to its ticket; its no denies, nothing but its no does.
 */
#include "common/arena.h"
#include "common/json/json.h"
#include "proxy/ledger/store/gates/asked.h"
#include "tests/unit/ledger/ledger_fix.h"

static struct dynbuf input, body;
static bool complete;

static struct wire_ticket_state held(unsigned join, struct span bytes)
{
    fix_gates =
        (struct wire_gates){.n = 2, .name = {SPAN("risk"), SPAN("scan")}, .of = {fix_digest(1), fix_digest(2)}};
    return fix_hold("s1", join, join, bytes);
}

static int next(struct span name)
{
    struct store_gate g = {.each = 3, .input = &input, .body = &body};
    dynbuf_free(&input);
    dynbuf_free(&body);
    dynbuf_init(&input, 1024 * 1024);
    dynbuf_init(&body, 1024 * 1024);
    int got = store_gate_next(fix, &g);
    complete = g.complete;
    if (got == 1) {
        assert_true(span_eq(g.name, name));
        struct digest of = fix_digest(span_eq(name, SPAN("risk")) ? 1 : 2);
        assert_memory_equal(&g.of, &of, sizeof(of));
        assert_true(dynbuf_ok(&input));
    }
    assert_int_equal(store_commit(fix), 0);
    return got;
}

static void answer(const struct id *id, struct span name, enum gate_said said, const char *words)
{
    assert_int_equal(store_gate_answered(fix, id, name, said, span_str(words)), 0);
    assert_int_equal(store_commit(fix), 0);
}

static void all_are_asked_before_a_yes_counts(void **state)
{
    struct wire_ticket_state st = held(1, SPAN_NONE);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_GATES);
    assert_int_equal(next(SPAN("risk")), 1);
    answer(&st.ticket, SPAN("scan"), GATE_ALLOW, ""); /* it was not asked yet */
    assert_int_equal(next(SPAN("scan")), 1);
    assert_int_equal(next(SPAN_NONE), 0);
    answer(&st.ticket, SPAN("risk"), GATE_ALLOW, "");
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_GATES);
    assert_false(fix_claim(&st.ticket, 5, NULL)); /* what they say approves nothing */
    answer(&st.ticket, SPAN("scan"), GATE_ALLOW, "clean");
    assert_false(fix_claim(&st.ticket, 5, NULL));
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&st.ticket, 6, NULL));
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='gate-answered' AND json LIKE '%\"of\":\"%'"),
                     2);
}

static void a_no_denies_with_its_words(void **state)
{
    struct wire_ticket_state st = held(1, SPAN_NONE);
    assert_int_equal(next(SPAN("risk")), 1);
    answer(&st.ticket, SPAN("risk"), GATE_DENY, "too much money");
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='denied' AND decided_by='gate risk' AND "
                               "decided_channel='gate' AND decided_reason='too much money'"),
                     1);
    assert_int_equal(next(SPAN_NONE), 0); /* what is denied need not be asked about */
    answer(&st.ticket, SPAN("risk"), GATE_ALLOW, "after all");
    assert_int_equal(fix_count("SELECT count(*) FROM gate WHERE name='risk' AND state='denied'"), 1);
    assert_false(fix_claim(&st.ticket, 5, NULL));
}

static void what_says_nothing_leaves_it_to_the_people(void **state)
{
    struct wire_ticket_state st = held(1, SPAN_NONE);
    assert_int_equal(next(SPAN("risk")), 1);
    assert_int_equal(next(SPAN("scan")), 1);
    answer(&st.ticket, SPAN("risk"), GATE_FAILED, "it ended with status 3");
    answer(&st.ticket, SPAN("scan"), GATE_ABSTAIN, "");
    assert_false(fix_claim(&st.ticket, 5, NULL));
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='pending'"), 1);
    assert_int_equal(fix_decide(&st.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
}

static void it_is_asked_once_over_joins_and_restarts(void **state)
{
    struct wire_ticket_state st = held(1, SPAN_NONE);
    assert_int_equal(next(SPAN("risk")), 1);
    assert_true(held(1, SPAN_NONE).joined);
    fix_reopen();
    assert_int_equal(fix_count("SELECT count(*) FROM gate WHERE name='risk' AND state='failed' AND words<>''"), 1);
    assert_int_equal(next(SPAN("scan")), 1);
    assert_int_equal(next(SPAN_NONE), 0);
    answer(&st.ticket, SPAN("risk"), GATE_ALLOW, "late");
    assert_int_equal(fix_count("SELECT count(*) FROM gate WHERE state='agreed'"), 0);
}

static void what_cannot_be_asked_is_due_again_later_and_not_for_ever(void **state)
{
    struct wire_ticket_state st = held(1, SPAN_NONE);
    for (uint64_t wait = 1000, i = 0; i <= 6; i++, wait *= 2) {
        assert_int_equal(next(SPAN("risk")), 1);
        if (i == 0)
            assert_int_equal(next(SPAN("scan")), 1);
        assert_int_equal(store_gate_later(fix, &st.ticket, SPAN("risk"), SPAN("no fetcher")), 0);
        assert_int_equal(store_commit(fix), 0);
        fix_time(wait - 1);
        assert_int_equal(next(SPAN_NONE), 0);
        fix_time(1);
        assert_int_equal(fix_count("SELECT count(*) FROM gate WHERE state='failed' AND words='no fetcher'"), i == 6);
    }
    assert_int_equal(next(SPAN_NONE), 0);
    assert_int_equal(
        fix_count("SELECT count(*) FROM audit WHERE kind='gate-answered' AND json LIKE '%\"asked\":7,%'"), 1);
}

/* And they lose nothing by it: each has all of its tries before it. */
static void who_has_no_room_for_one_has_none_for_the_others(void **state)
{
    struct wire_ticket_state one = held(1, SPAN_NONE);
    fix_time(1);
    struct wire_ticket_state two = held(2, SPAN_NONE);
    assert_int_equal(next(SPAN("risk")), 1);
    assert_int_equal(store_gate_later(fix, &one.ticket, SPAN("risk"), SPAN("status 429")), 0);
    assert_int_equal(store_commit(fix), 0);
    assert_int_equal(next(SPAN("scan")), 1); /* another one has */
    assert_int_equal(next(SPAN("scan")), 1);
    answer(&one.ticket, SPAN("scan"), GATE_ALLOW, "");
    answer(&two.ticket, SPAN("scan"), GATE_ALLOW, "");
    fix_time(999);
    assert_int_equal(next(SPAN_NONE), 0);
    fix_time(1);
    assert_int_equal(next(SPAN("risk")), 1);
    assert_int_equal(next(SPAN("risk")), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM gate WHERE name='risk' AND tries=0"), 1);
}

static void it_is_told_the_facts_and_the_body_or_that_there_is_more(void **state)
{
    static uint8_t large[64 * 1024 + 1];
    struct arena a;
    for (size_t i = 0; i < 3; i++) {
        static const struct span end = SPAN("}}"); /* which is the keeper's to say, with the body or without */
        held((unsigned)i + 1, i == 0 ? SPAN("hello") : span_of(large, i == 1 ? sizeof(large) : 0));
        assert_int_equal(next(SPAN("risk")), 1);
        arena_init(&a, 4 * 1024 * 1024);
        assert_int_equal(dynbuf_add(&input, end), 0);
        const struct json *all = json_parse(dynbuf_span(&input), &a);
        assert_non_null(all);
        assert_true(span_eq(json_text(all, SPAN("method")), SPAN("POST")));
        assert_true(span_eq(json_text(all, SPAN("sandbox")), SPAN("s1")));
        assert_int_equal(json_text(all, SPAN("digest")).n, 64);
        const struct json *b = json_get(all, SPAN("body"));
        assert_int_equal(complete, i != 1);
        assert_null(json_get(b, SPAN("base64")));
        assert_true(span_eq(dynbuf_span(&body), i == 0 ? SPAN("aGVsbG8=") : SPAN_NONE));
        assert_true(i == 2 || json_text(b, SPAN("sha256")).n == 64);
        arena_free(&a);
        dynbuf_free(&input);
        fix_sql("UPDATE gate SET state='failed'");
    }
}

/* What one sandbox waits for does not use up all the places, nor go before the first of another. */
static void a_neighbour_is_asked_about_too(void **state)
{
    for (unsigned i = 1; i <= 3; i++)
        held(i, SPAN_NONE);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(next(i % 2 ? SPAN("scan") : SPAN("risk")), 1);
    assert_int_equal(next(SPAN_NONE), 0);
    fix_gates = (struct wire_gates){.n = 1, .name = {SPAN("scan")}, .of = {fix_digest(2)}};
    struct wire_ticket_state st = fix_hold("s2", 7, 7, SPAN_NONE);
    assert_int_equal(next(SPAN("scan")), 1);
    answer(&st.ticket, SPAN("scan"), GATE_ALLOW, "");
    fix_gates = (struct wire_gates){.n = 1, .name = {SPAN("scan")}, .of = {fix_digest(2)}};
    fix_time(1);
    (void)fix_hold("s2", 8, 8, SPAN_NONE);
    fix_sql("UPDATE gate SET state='failed' WHERE state='asked' AND name='scan'");
    assert_int_equal(next(SPAN("scan")), 1); /* of s2, though those of s1 are older */
    assert_int_equal(fix_count("SELECT count(*) FROM gate g JOIN ticket t ON t.id=g.ticket WHERE g.state='asked' AND "
                               "t.sandbox='s2'"),
                     1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FRESH(all_are_asked_before_a_yes_counts),
                                       FRESH(a_no_denies_with_its_words),
                                       FRESH(what_says_nothing_leaves_it_to_the_people),
                                       FRESH(it_is_asked_once_over_joins_and_restarts),
                                       FRESH(what_cannot_be_asked_is_due_again_later_and_not_for_ever),
                                       FRESH(who_has_no_room_for_one_has_none_for_the_others),
                                       FRESH(it_is_told_the_facts_and_the_body_or_that_there_is_more),
                                       FRESH(a_neighbour_is_asked_about_too)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    dynbuf_free(&input);
    dynbuf_free(&body);
    return rc;
}
