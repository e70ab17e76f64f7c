/* What is to be told is sent by way of the keeper: what it answers counts for the message that was meant, nobody
 * holds up another, and nothing is lost with a peer or a store that fails. */
#include "tests/unit/ledger/peers.h"

static struct wire_ticket ticket;
static struct tell_targets *targets;

/* Two of them, who want to hear of what waits. */
static void told_by_two(void)
{
    targets = &l.tells.targets;
    *targets = (struct tell_targets){.n = 2, .desk = SPAN("https://gate.example")};
    for (size_t i = 0; i < 2; i++)
        targets->target[i] = (struct wire_tell_target){.name = i == 0 ? SPAN("ops") : SPAN("team"),
                                                       .kind = TELL_WEBHOOK,
                                                       .of = fix_digest(70 + (unsigned)i),
                                                       .events = TELL_WAITING,
                                                       .give_up_ms = 3600 * 1000};
    fix_config.tell = targets;
    store_close(&l.store);
    l.store = store_open(&fix_config, fix_wall, fix_boot, &fix_err);
    assert_non_null(l.store);
    store_data_key(l.store, secret_new(secret_bytes(fix_key)));
}

static void hold(uint64_t xid)
{
    struct dynbuf *b = chan_begin(judge, M_TICKET_OPEN, xid);
    fix_ticket(&ticket, "s1", (unsigned)xid, (unsigned)xid);
    wire_put_ticket(b, &ticket);
    wire_put_limits(b, &fix_limits);
    msg_put_u64(b, 0);
    msg_put_span(b, SPAN_NONE);
    assert_int_equal(chan_commit(judge), 0);
    (void)until(M_TICKET);
}

/* The next one that is sent: to whom, and which. */
static struct got sent(const char *name, char id[TELL_ID_MAX + 1])
{
    struct got g = *until(M_TELL);
    struct msg_in m = msg_in(span_of(g.payload, g.n));
    struct digest of;
    assert_true(span_eq(msg_get_span(&m, TELL_NAME_MAX), span_str(name)));
    msg_get_digest(&m, &of);
    struct span is = msg_get_span(&m, TELL_ID_MAX);
    snprintf(id, TELL_ID_MAX + 1, "%.*s", SPAN_FMT(is));
    return g;
}

static void told(uint64_t number, const char *id, enum tell_outcome what)
{
    struct dynbuf *b = chan_begin(keeper, M_TOLD, number);
    msg_put_span(b, span_str(id));
    msg_put_u8(b, (uint8_t)what);
    msg_put_span(b, SPAN("words"));
    assert_int_equal(chan_commit(keeper), 0);
}

static void each_has_one_on_its_way_and_waits_for_no_other(void **state)
{
    char one[TELL_ID_MAX + 1], two[TELL_ID_MAX + 1], next[TELL_ID_MAX + 1];
    told_by_two();
    keeper = connect_as(ROLE_KEEPER);
    hold(1);
    struct got first = sent("ops", one);
    (void)sent("team", two);
    hold(2);
    told(first.id + 99, one, TELL_TOLD); /* nobody's number */
    told(first.id, two, TELL_TOLD);      /* of a ledger before this one, which numbered from 1 as well */
    told(first.id, one, TELL_TOLD);
    struct got second = sent("ops", next); /* team has not answered, and keeps ops from nothing */
    assert_string_not_equal(one, next);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE state='told'"), 1);
    told(second.id, next, TELL_NEVER);
    hold(3);
    (void)sent("ops", next);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE state='given-up'"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE target='team' AND state='due'"), 3);
}

static void what_was_on_its_way_with_the_keeper_is_sent_again(void **state)
{
    char one[TELL_ID_MAX + 1], again[TELL_ID_MAX + 1];
    told_by_two();
    targets->n = 1;
    hold(1); /* before there is a keeper */
    keeper = connect_as(ROLE_KEEPER);
    (void)sent("ops", one);
    chan_free(&keeper);
    keeper = connect_as(ROLE_KEEPER);
    (void)sent("ops", again); /* two seconds later */
    assert_string_equal(one, again);
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE tries=1 AND words LIKE '%keeper%'"), 1);
}

static void that_it_was_told_outlives_a_store_that_fails(void **state)
{
    char one[TELL_ID_MAX + 1];
    sqlite3 *other = NULL;
    told_by_two();
    targets->n = 1;
    keeper = connect_as(ROLE_KEEPER);
    hold(1);
    struct got g = sent("ops", one);
    assert_int_equal(sqlite3_open(fix_path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    told(g.id, one, TELL_TOLD);
    assert_int_equal(until(M_STORE)->payload[0], 0);
    sqlite3_close(other);
    while (until(M_STORE)->payload[0] == 0)
        ; /* what came meanwhile is heard before it is said to be back */
    assert_int_equal(fix_count("SELECT count(*) FROM tell WHERE state='told'"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_LOOP(each_has_one_on_its_way_and_waits_for_no_other),
                                       WITH_LOOP(what_was_on_its_way_with_the_keeper_is_sent_again),
                                       WITH_LOOP(that_it_was_told_outlives_a_store_that_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
