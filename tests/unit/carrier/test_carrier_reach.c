/* Where addresses decide what a sandbox may reach, none of the others is dialled, nor used again. */
#include "tests/unit/carrier/carrier_world.h"

#include "common/net/addr.h"

static void resolved(struct world *w, uint64_t id, const char *one, const char *two)
{
    const char *const text[] = {one, two};
    (void)world_wait(w, ROLE_RESOLVER, M_RESOLVE, id);
    struct dynbuf *b = chan_begin(w->peer[ROLE_RESOLVER], M_ADDRESSES, id);
    assert_non_null(b);
    msg_put_u8(b, two ? 2 : 1);
    for (size_t i = 0; i < (two ? 2 : 1); i++) {
        struct addr a;
        assert_int_equal(addr_parse(span_str(text[i]), &a), 0);
        msg_put_u8(b, (uint8_t)a.family);
        msg_put_span(b, span_of(a.b, addr_bytes(&a)));
    }
    assert_int_equal(chan_commit(w->peer[ROLE_RESOLVER]), 0);
}

static void of_an_address_that_the_policy_says(void **state)
{
    struct world *w = world_new();
    world_forward(w, XID(1), (struct request){.path = "/1", .reach = SPAN("-a 127.0.0.0/8\n")});
    expect_code(w, XID(1), OUTCOME_NOT_SENT, "network-denied");
    world_forward(w, XID(2), (struct request){.path = "/2", .reach = SPAN("+a 10.0.0.0/8\n")});
    expect_code(w, XID(2), OUTCOME_NOT_SENT, "network-denied");
    world_forward(w, XID(3), (struct request){.path = "/3", .reach = SPAN("+n up.test\n-a not/an address\n")});
    expect_code(w, XID(3), OUTCOME_NOT_SENT, "network-denied");
    world_forward(w, XID(4), (struct request){.path = "/4", .reach = SPAN("+n up.test\n-a 10.0.0.0/8\n")});
    world_wait_up(w, 0, "GET /4");
    world_answer(w, 0, OK5);
    expect_answer(w, XID(4), "hello", true);
    assert_int_equal(w->nups, 1);
    world_free(&w);
}

/* A name's addresses change, and a connection waits that leads to one of them. */
static void of_a_name_whose_addresses_change(void **state)
{
    const struct span without = SPAN("-a 127.0.0.1/32\n");
    struct world *w = world_new();
    world_upstream(w, 2, "", false, true);
    world_forward(w, XID(1), (struct request){.path = "/1", .upstream = 2});
    resolved(w, 1, "127.0.0.1", NULL);
    world_wait_up(w, 0, "GET /1");
    world_answer(w, 0, OK5);
    expect_answer(w, XID(1), "hello", true);
    assert_int_equal(w->carrier->pool.n, 1);
    /* Of two addresses it may reach the one at which nobody listens. */
    world_forward(w, XID(2), (struct request){.path = "/2", .upstream = 2, .once = true, .reach = without});
    resolved(w, 2, "127.0.0.1", "127.0.0.2");
    expect_code(w, XID(2), OUTCOME_NOT_SENT, "connect-failed");
    world_forward(w, XID(3), (struct request){.path = "/3", .upstream = 2, .reach = SPAN("-a 127.0.0.0/8\n")});
    expect_code(w, XID(3), OUTCOME_NOT_SENT, "network-denied"); /* as they are remembered */
    world_forward(w, XID(4), (struct request){.path = "/4", .upstream = 2, .once = true, .reach = without});
    resolved(w, 3, "127.0.0.1", NULL);
    expect_code(w, XID(4), OUTCOME_NOT_SENT, "network-denied");
    assert_int_equal(w->carrier->pool.n, 1); /* for those that may */
    world_forward(w, XID(5), (struct request){.path = "/5", .upstream = 2, .reach = SPAN("+a 127.0.0.1/32\n")});
    world_wait_up(w, 0, "GET /5");
    world_answer(w, 0, OK5);
    expect_answer(w, XID(5), "hello", true);
    assert_int_equal(w->nups, 1);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_an_address_that_the_policy_says),
        cmocka_unit_test(of_a_name_whose_addresses_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
