/* What the ledger has the keeper ask a gate, and what comes back of it. */
#include "tests/unit/keeper/keeper_world.h"

static void ask_gate(const struct id *ticket, const struct digest *of)
{
    struct dynbuf *b = chan_begin(ledger, M_GATE, 1); /* as each ledger numbers its first */
    msg_put_id(b, ticket);
    msg_put_digest(b, of);
    msg_put_span(b, SPAN("scan"));
    msg_put_span(b, SPAN("{\"input\":1}"));
    assert_int_equal(chan_commit(ledger), 0);
}

/* What the ledger is told is of this ticket. */
static uint8_t gated(size_t i, const struct id *ticket)
{
    struct msg_in m = msg_in(payload(i));
    struct id of;
    assert_int_equal(got[i].type, M_GATED);
    assert_int_equal(got[i].id, 1);
    msg_get_id(&m, &of);
    assert_memory_equal(&of, ticket, sizeof(of));
    assert_true(span_eq(msg_get_span(&m, 256), SPAN("scan")));
    uint8_t said = msg_get_u8(&m);
    (void)msg_get_span(&m, 512);
    assert_int_equal(msg_end(&m), 0);
    return said;
}

static void a_gate_that_cannot_be_asked_now_may_be_later(void **state)
{
    const struct id one = {{1}};
    struct digest before = scan;
    ask_gate(&one, &scan);
    await(1);
    assert_int_equal(gated(0, &one), GATE_NOT_ASKED); /* there is no fetcher */
    fetcher = introduce(ROLE_FETCHER);
    settle();
    send_image_of("  - { id: b, match: { host: b.example, effect: read }, decide: allow }\n", "/bin/scan");
    await(1);
    assert_int_equal(got[0].type, M_SECRETS);
    ask_gate(&one, &before); /* another policy, the same gate */
    await(1);
    assert_int_equal(got[0].type, M_FETCH);
    assert_true(says(0, SPAN("--strict")) && says(0, SPAN("{\"input\":1}")));
    not_begun(got[0].id, SPAN("too many values are being fetched"));
    await(1);
    assert_int_equal(gated(0, &one), GATE_NOT_ASKED); /* nobody's store that hangs decides for it */
    send_image_of("", "/bin/scan2");
    await(1);
    ask_gate(&one, &before); /* a gate of the same name: another program would run */
    await(1);
    assert_int_equal(gated(0, &one), GATE_NOT_ASKED);
}

static void what_a_gate_said_is_of_the_ticket_it_was_asked_about(void **state)
{
    const struct id one = {{1}}, two = {{2}};
    fetcher = introduce(ROLE_FETCHER);
    settle();
    ask_gate(&one, &scan);
    await(1);
    assert_int_equal(got[0].type, M_FETCH);
    uint64_t first = got[0].id;
    chan_free(&ledger);
    await(1); /* the parent hears that it is lost */
    ledger = introduce(ROLE_LEDGER);
    await(1);
    assert_int_equal(got[0].type, M_DATA_KEY);
    ask_gate(&two, &scan);
    await(1);
    assert_int_equal(got[0].type, M_FETCH);
    assert_int_not_equal(got[0].id, first);
    uint64_t second = got[0].id;
    fetched(first, span_of((const uint8_t[]){GATE_DENY}, 1), SPAN_NONE); /* nobody there asked it */
    fetched(second, span_of((const uint8_t[]){GATE_ALLOW}, 1), SPAN_NONE);
    await(1);
    assert_int_equal(gated(0, &two), GATE_ALLOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FRESH(a_gate_that_cannot_be_asked_now_may_be_later),
                                       FRESH(what_a_gate_said_is_of_the_ticket_it_was_asked_about)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
