/* Gates are asked by way of the keeper: what it answers counts for what was asked, and is not lost. */
#include "tests/unit/ledger/peers.h"

static struct wire_ticket ticket;

static void hold(uint64_t xid)
{
    struct dynbuf *b = chan_begin(judge, M_TICKET_OPEN, xid);
    fix_gates = (struct wire_gates){.n = 1, .name = {SPAN("scan")}, .of = {fix_digest(7)}};
    fix_ticket(&ticket, "s1", (unsigned)xid, (unsigned)xid);
    wire_put_ticket(b, &ticket);
    wire_put_limits(b, &fix_limits);
    msg_put_u64(b, 4);
    msg_put_span(b, SPAN("body"));
    assert_int_equal(chan_commit(judge), 0);
    (void)until(M_TICKET);
}

/* The next question, of which ticket. */
static struct got asked(struct id *of)
{
    struct got g = *until(M_GATE);
    struct msg_in m = msg_in(span_of(g.payload, g.n));
    struct digest gate, want = fix_digest(7);
    msg_get_id(&m, of);
    msg_get_digest(&m, &gate);
    assert_memory_equal(&gate, &want, sizeof(gate));
    assert_true(span_eq(msg_get_span(&m, 256), SPAN("scan")));
    assert_true(span_find(m.rest, SPAN("Ym9keQ==")) < m.rest.n); /* the body */
    return g;
}

static void answer(uint64_t number, const struct id *of, struct span name, uint8_t said)
{
    struct dynbuf *b = chan_begin(keeper, M_GATED, number);
    msg_put_id(b, of);
    msg_put_span(b, name);
    msg_put_u8(b, said);
    msg_put_span(b, SPAN("words"));
    assert_int_equal(chan_commit(keeper), 0);
}

static void state_is(const char *state, int64_t n)
{
    char sql[128];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM gate WHERE state='%s'", state);
    assert_int_equal(fix_count(sql), n);
}

static void an_answer_counts_for_what_it_names(void **state)
{
    struct id one, two;
    keeper = connect_as(ROLE_KEEPER);
    hold(1);
    struct got first = asked(&one);
    hold(2);
    struct got second = asked(&two);
    answer(second.id, &one, SPAN("scan"), GATE_DENY); /* of a ledger before this one, which numbered from 1 as well */
    answer(first.id, &one, SPAN("other"), GATE_DENY);
    answer(99, &one, SPAN("scan"), GATE_DENY);
    answer(second.id, &two, SPAN("scan"), GATE_DENY);
    (void)until(M_TICKET_CHANGED);
    state_is("denied", 1);
    state_is("asked", 1);
    assert_int_equal(fix_count("SELECT count(*) FROM ticket WHERE state='denied'"), 1);
    answer(first.id, &one, SPAN("scan"), GATE_DENY);
    (void)until(M_TICKET_CHANGED);
    state_is("denied", 2);
}

/* After a start the keeper is there before the key of what is held: no gate is shown half of it. */
static void what_is_due_waits_for_the_key(void **state)
{
    struct id of;
    hold(1);
    store_data_key(l.store, NULL);
    keeper = connect_as(ROLE_KEEPER);
    (void)until(M_LEDGER_KEY);
    hold(1); /* joined: a turn of its own */
    state_is("due", 1);
    struct dynbuf *b = chan_begin(keeper, M_DATA_KEY, 0);
    msg_put_span(b, secret_bytes(fix_key));
    assert_int_equal(chan_commit(keeper), 0);
    (void)asked(&of);
}

static void what_could_not_be_asked_is_asked_again(void **state)
{
    struct id of;
    keeper = connect_as(ROLE_KEEPER);
    hold(1);
    struct got g = asked(&of);
    answer(g.id, &of, SPAN("scan"), GATE_NOT_ASKED);
    struct got again = asked(&of); /* in a second or two */
    assert_int_not_equal(again.id, g.id);
    answer(again.id, &of, SPAN("scan"), GATE_DENY);
    (void)until(M_TICKET_CHANGED);
    state_is("denied", 1);
}

static void a_no_outlives_a_store_that_fails(void **state)
{
    sqlite3 *other = NULL;
    struct id of;
    keeper = connect_as(ROLE_KEEPER);
    hold(1);
    struct got g = asked(&of);
    while (fix_count("SELECT count(*) FROM gate WHERE state='asked'") == 0)
        (void)until(M_EVENT);
    assert_int_equal(sqlite3_open(fix_path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    answer(g.id, &of, SPAN("scan"), GATE_DENY);
    assert_int_equal(until(M_STORE)->payload[0], 0);
    sqlite3_close(other);
    (void)until(M_TICKET_CHANGED);
    state_is("denied", 1);
}

/* Nobody can approve what is being asked for ever. */
static void what_nobody_is_asked_about_has_failed(void **state)
{
    hold(1);
    assert_int_equal(fix_sql("UPDATE gate SET state='asked'"), SQLITE_OK);
    while (fix_count("SELECT count(*) FROM gate WHERE state='failed' AND words<>''") == 0)
        (void)until(M_EVENT); /* within a second */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LOOP(an_answer_counts_for_what_it_names), WITH_LOOP(what_is_due_waits_for_the_key),
        WITH_LOOP(what_could_not_be_asked_is_asked_again), WITH_LOOP(a_no_outlives_a_store_that_fails),
        WITH_LOOP(what_nobody_is_asked_about_has_failed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
