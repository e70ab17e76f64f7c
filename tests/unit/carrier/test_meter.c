/* What is metered: nothing passes that the judge has not let pass, and what is past it ends in words or as no
 * success. */
#include "tests/unit/carrier/carrier_world.h"

static void let(struct world *w, uint64_t xid, uint64_t n, const char *code)
{
    struct dynbuf b;
    dynbuf_init(&b, 128);
    msg_put_u64(&b, n);
    msg_put_span(&b, span_str(code));
    world_say(w, ROLE_JUDGE, M_EGRESS_GIVE, xid, dynbuf_span(&b));
    dynbuf_free(&b);
}

/* The n-th time it asks: for so many more. */
static void expect_ask(struct world *w, uint64_t xid, size_t n, uint64_t want)
{
    while (world_count(w, ROLE_JUDGE, M_EGRESS_ASK, xid) < n)
        world_settle(w);
    size_t k = 0;
    for (size_t i = 0; i < w->nseen; i++)
        if (w->seen[i].at == ROLE_JUDGE && w->seen[i].type == M_EGRESS_ASK && w->seen[i].id == xid && ++k == n) {
            struct msg_in m = msg_in(dynbuf_span(&w->seen[i].payload));
            assert_int_equal(msg_get_u64(&m), want);
            assert_int_equal(msg_end(&m), 0);
        }
    assert_int_equal(k, n);
}

static size_t head_bytes(const struct world *w)
{
    return w->up[0].got.n;
}

static void nothing_leaves_before_it_may(void **state)
{
    struct world *w = world_new();
    world_forward(w, XID(1), (struct request){.path = "/1", .metered = true});
    world_settle(w);
    assert_true(w->nups == 0 || w->up[0].got.n == 0);
    let(w, XID(1), 1000, "");
    world_wait_up(w, 0, "GET /1");
    world_answer(w, 0, OK5);
    expect_answer(w, XID(1), "hello", true);
    assert_int_equal(world_count(w, ROLE_JUDGE, M_EGRESS_ASK, XID(1)), 0);
    world_forward(w, XID(2), (struct request){.path = "/2", .metered = true, .once = true});
    let(w, XID(2), 0, "egress-limit");
    expect_code(w, XID(2), OUTCOME_NOT_SENT, "egress-limit");
    assert_false(world_up_has(w, 0, "/2"));
    world_free(&w);
}

/* Of what says how long it is, all or nothing. */
static void all_of_an_answer_or_nothing(void **state)
{
    struct world *w = world_new();
    world_forward(w, XID(1), (struct request){.path = "/1", .metered = true});
    let(w, XID(1), 200, "");
    world_wait_up(w, 0, "GET /1");
    uint64_t left = 200 - head_bytes(w);
    world_answer(w, 0, "HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n0123456789");
    expect_ask(w, XID(1), 1, 300 - left);
    let(w, XID(1), 10, "");
    expect_ask(w, XID(1), 2, 300 - left - 10);
    assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER, XID(1)), 0);
    let(w, XID(1), 0, "egress-limit");
    expect_code(w, XID(1), OUTCOME_ANSWERED, "egress-limit");
    assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER, XID(1)), 0);
    world_free(&w);
}

static void a_stream_ends_where_the_limit_is(void **state)
{
    struct world *w = world_new();
    struct answer a;
    world_forward(w, XID(1), (struct request){.path = "/1", .metered = true});
    let(w, XID(1), 200, "");
    world_wait_up(w, 0, "GET /1");
    uint64_t left = 200 - head_bytes(w);
    assert_true(left > 20 && left < 192);
    world_answer(w, 0,
                 "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "c0\r\n"
                 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n");
    expect_ask(w, XID(1), 1, 0);
    let(w, XID(1), 0, "egress-limit");
    struct result r = world_result(w, XID(1));
    assert_true(r.outcome == OUTCOME_ANSWERED && r.relayed && span_eq(r.code, SPAN("egress-limit")));
    assert_int_equal(r.in + r.out, 200);
    world_front_answer(w, XID(1), &a);
    assert_false(a.ok);
    struct span body = dynbuf_span(&a.body);
    assert_true(body.n > left && span_starts(span_from(body, left), SPAN("\nevent: error\ndata: {")));
    dynbuf_free(&a.body);
    world_free(&w);
}

/* No part of a write leaves that could be seen not to fit. */
static void all_of_a_request_or_nothing(void **state)
{
    struct world *w = world_new();
    const struct request post = {.path = "/1",
                                 .method = "POST",
                                 .once = true,
                                 .body = BODY_INLINE,
                                 .data = SPAN("0123456789"),
                                 .metered = true};
    world_forward(w, XID(1), post);
    let(w, XID(1), 1, "");
    struct msg_in m = msg_in(dynbuf_span(&world_wait(w, ROLE_JUDGE, M_EGRESS_ASK, XID(1))->payload));
    uint64_t need = msg_get_u64(&m);
    let(w, XID(1), need - 1, "");
    expect_ask(w, XID(1), 2, 1);
    assert_true(w->nups == 0 || head_bytes(w) == 0);
    assert_int_equal(world_count(w, ROLE_JUDGE, M_SENT, XID(1)), 0);
    let(w, XID(1), 1, "");
    world_wait_up(w, 0, "0123456789");
    assert_int_equal(head_bytes(w), need + 1);
    world_answer(w, 0, OK5);
    expect_ask(w, XID(1), 3, 5); /* of the answer as well */
    let(w, XID(1), 5, "");
    expect_answer(w, XID(1), "hello", true);
    world_forward(w, XID(2), post);
    let(w, XID(2), need, "");
    expect_ask(w, XID(2), 1, 1);
    let(w, XID(2), 0, "egress-limit");
    expect_code(w, XID(2), OUTCOME_NOT_SENT, "egress-limit");
    assert_int_equal(world_count(w, ROLE_JUDGE, M_SENT, XID(2)), 0);
    world_free(&w);
}

/* How much it is counted as says nothing of the credential: D41. */
static void what_is_counted_is_the_same_for_every_secret(void **state)
{
    static const char *const value[] = {TOKEN, TOKEN TOKEN TOKEN TOKEN TOKEN TOKEN TOKEN TOKEN TOKEN};
    uint64_t asked[2][2], egress[2];
    for (size_t i = 0; i < 2; i++) {
        struct world *w = world_new();
        struct request r = {.path = "/1",
                            .method = "POST",
                            .once = true,
                            .body = BODY_INLINE,
                            .data = SPAN("{\"a\":\"~c~\"}"),
                            .credential = "c",
                            .release = RELEASE_COMES,
                            .metered = true};
        for (uint64_t k = 0; k < 2; k++) { /* in a field; in the body, whose length it adds to */
            world_forward(w, XID(k + 1), r);
            world_credential(w, XID(k + 1), 0, "up.test", "c", value[i]);
            let(w, XID(k + 1), 1, "");
            struct msg_in m = msg_in(dynbuf_span(&world_wait(w, ROLE_JUDGE, M_EGRESS_ASK, XID(k + 1))->payload));
            asked[i][k] = msg_get_u64(&m);
            let(w, XID(k + 1), asked[i][k] + 5, "");
            world_wait_up(w, 0, "\"}");
            world_answer(w, 0, OK5);
            egress[i] = world_result(w, XID(k + 1)).egress;
            w->slot = r.slot = SLOT_JSON;
            r.slot_at = 6;
        }
        world_free(&w);
    }
    assert_true(asked[0][0] == asked[1][0] && asked[0][1] == asked[1][1] && egress[0] == egress[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_leaves_before_it_may),
        cmocka_unit_test(all_of_an_answer_or_nothing),
        cmocka_unit_test(a_stream_ends_where_the_limit_is),
        cmocka_unit_test(all_of_a_request_or_nothing),
        cmocka_unit_test(what_is_counted_is_the_same_for_every_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
