/* What a real carrier makes of answers that are odd, early, cut short or not taken: A44, A45, A47, A48, D19. */
#include "proxy/carrier/exchange.h"
#include "tests/unit/carrier/carrier_world.h"

#include <stdio.h>
#include <stdlib.h>

/* A45 */
static void interim(void **state)
{
    struct world *w = world_new();
    struct dynbuf b;
    dynbuf_init(&b, 10000);
    for (int i = 0; i < 8; i++)
        dynbuf_addf(&b, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    dynbuf_addf(&b, OK5 "%c", 0);
    world_get(w, 1, 0, (const char *)b.p, "hello");
    dynbuf_reset(&b);
    for (int i = 0; i < 9; i++)
        dynbuf_addf(&b, "HTTP/1.1 100 Continue\r\n\r\n");
    dynbuf_addf(&b, OK5 "%c", 0);
    world_forward(w, XID(2), (struct request){.path = "/2"});
    world_wait_up(w, 0, "GET /2");
    world_answer(w, 0, (const char *)b.p);
    expect_code(w, XID(2), OUTCOME_UNKNOWN, "bad-answer");
    dynbuf_free(&b);
    const char *bad[] = {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
                         "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
                         "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx",
                         "220 ftp\r\n\r\n"};
    for (size_t i = 0; i < 4; i++) {
        world_forward(w, XID(10 + i), (struct request){.path = "/x"});
        world_wait_up(w, 1 + i, "GET /x");
        world_answer(w, 1 + i, bad[i]);
        expect_code(w, XID(10 + i), OUTCOME_UNKNOWN, "bad-answer");
        assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER, XID(10 + i)), 0);
        world_wait_closed(w, 1 + i);
    }
    world_free(&w);
}

/* A44: what is said on several lines is one, however it comes; the body is not touched. */
static void folded(void **state)
{
    struct world *w = world_new();
    const char *parts[] = {"HTTP/1.1 200 OK\r\nX-A: one\r", "\n\ttwo\r\n", " three\r\nContent-Length: 6\r\n\r\na\r\n",
                           " bc"};
    world_forward(w, XID(1), (struct request){.path = "/1"});
    world_wait_up(w, 0, "GET /1");
    for (size_t i = 0; i < 4; i++) {
        world_answer(w, 0, parts[i]);
        world_settle(w);
    }
    struct answer a;
    world_front_answer(w, XID(1), &a);
    assert_true(a.ok && span_eq(dynbuf_span(&a.body), SPAN("a\r\n bc")));
    assert_int_equal(a.head.nfields, 1);
    assert_true(span_eq(a.head.field[0].value, SPAN("one two three")));
    dynbuf_free(&a.body);
    world_close_up(w, 0);
    world_settle(w);
    const char *bad[] = {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 0\r\n\r\n0123456789",
                         "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
                         "HTTP/1.1 200 OK\r\n X-A: one\r\n\r\n",
                         "HTTP/1.1 200 OK\r\nX-A: one\r\n two\rthree\r\n\r\n"};
    for (size_t i = 0; i < 4; i++) {
        world_forward(w, XID(10 + i), (struct request){.path = "/x"});
        world_wait_up(w, 1 + i, "GET /x");
        world_answer(w, 1 + i, bad[i]);
        expect_code(w, XID(10 + i), OUTCOME_UNKNOWN, "bad-answer");
        world_wait_closed(w, 1 + i);
    }
    world_free(&w);
}

/* A44, A47, D19: an answer that breaks off or goes wrong is cut, not ended. */
static void cut_short(void **state)
{
    struct world *w = world_new();
    world_forward(w, XID(1), (struct request){.path = "/1"});
    world_wait_up(w, 0, "GET /1");
    world_answer(w, 0, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
    (void)world_wait(w, ROLE_FRONT, M_ANSWER, XID(1));
    world_close_up(w, 0);
    expect_code(w, XID(1), OUTCOME_ANSWERED, "answer-cut");
    expect_answer(w, XID(1), "hello", false);
    world_forward(w, XID(2), (struct request){.path = "/2"});
    world_wait_up(w, 1, "GET /2");
    world_answer(w, 1, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n");
    expect_code(w, XID(2), OUTCOME_ANSWERED, "bad-answer");
    assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER, XID(2)), 0);
    /* until-close is an end, and is told as one of unknown length */
    world_forward(w, XID(3), (struct request){.path = "/3"});
    world_wait_up(w, 2, "GET /3");
    world_answer(w, 2, "HTTP/1.1 200 OK\r\n\r\nall of it");
    conn_finish(&w->up[2].conn);
    expect_answer(w, XID(3), "all of it", true);
    /* HEAD has no body whatever it says */
    world_forward(w, XID(4), (struct request){.path = "/4", .method = "HEAD"});
    world_wait_up(w, 3, "HEAD /4");
    world_answer(w, 3, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n");
    expect_answer(w, XID(4), "", true);
    world_free(&w);
}

/* What came of an answer is handed on even if its end is there at once, and is marked as not all. */
static void cut_at_once(void **state)
{
    static const struct {
        const char *answer, *body;
    } rows[] = {{"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\nhello", "hello"},
                {"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n", ""},
                {"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3\r\na", "helloa"}};
    struct world *w = world_new();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t id = XID(1 + i);
        world_forward(w, id, (struct request){.path = "/1", .method = "POST", .once = true});
        world_wait_up(w, i, "POST /1");
        world_answer(w, i, rows[i].answer);
        conn_finish(&w->up[i].conn);
        expect_code(w, id, OUTCOME_ANSWERED, "answer-cut");
        assert_true(world_result(w, id).relayed);
        expect_answer(w, id, rows[i].body, false);
    }
    world_free(&w);
}

/* More than the client has taken when its end comes: it gets the rest, and then the mark. */
static void cut_behind_the_credit(void **state)
{
    struct world *w = world_new();
    struct dynbuf answer;
    static const uint8_t more[4] = {0, 64, 64, 0};
    dynbuf_init(&answer, 1024 * 1024);
    (void)dynbuf_add(&answer, SPAN("HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n"));
    for (size_t i = 0; i < ANSWER_WINDOW + 5000; i++)
        (void)dynbuf_add_byte(&answer, 'a');
    (void)dynbuf_add_byte(&answer, 0);
    world_forward(w, XID(1), (struct request){.path = "/1"});
    world_wait_up(w, 0, "GET /1");
    world_answer(w, 0, (const char *)answer.p);
    conn_finish(&w->up[0].conn);
    (void)world_wait(w, ROLE_FRONT, M_ANSWER, XID(1));
    world_settle(w);
    assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER_END, XID(1)), 0);
    world_say(w, ROLE_FRONT, M_ANSWER_CREDIT, XID(1), span_of(more, sizeof(more)));
    struct answer got;
    expect_code(w, XID(1), OUTCOME_ANSWERED, "answer-cut");
    world_settle(w);
    world_front_answer(w, XID(1), &got);
    assert_int_equal(got.body.n, ANSWER_WINDOW + 5000);
    assert_false(got.ok);
    dynbuf_free(&got.body);
    dynbuf_free(&answer);
    world_free(&w);
}

/* A48: an answer before the body is through is relayed; then the connection is of no more use. */
static void early_answer(void **state)
{
    struct world *w = world_new();
    world_forward(w, XID(1),
                  (struct request){.path = "/1", .method = "POST", .body = BODY_STREAM, .size = UINT64_MAX});
    world_say(w, ROLE_JUDGE, M_BODY, XID(1), SPAN("first"));
    world_wait_up(w, 0, "5\r\nfirst\r\n");
    world_answer(w, 0, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
    expect_answer(w, XID(1), "no", true);
    world_say(w, ROLE_JUDGE, M_BODY, XID(1), SPAN("second"));
    world_wait_closed(w, 0);
    assert_false(world_up_has(w, 0, "second"));
    expect_code(w, XID(1), OUTCOME_ANSWERED, "");
    world_free(&w);
}

static struct span kept(struct seen *s, uint64_t *size)
{
    struct wire_answer a;
    struct msg_in m = msg_in(dynbuf_span(&s->payload));
    assert_int_equal(wire_get_answer(&m, &a), 0);
    assert_int_equal(a.framing, HTTP_LENGTH);
    *size = msg_get_u64(&m);
    assert_int_equal(a.length, *size);
    struct span body = msg_get_span(&m, BODY_INLINE_MAX);
    assert_int_equal(msg_end(&m), 0);
    return body;
}

/* A write that was sent is seen to its end though nobody waits any more; a read is not. */
static void answer_kept(void **state)
{
    struct world *w = world_new();
    uint64_t size;
    struct request post = {.path = "/p", .method = "POST", .once = true, .body = BODY_INLINE, .data = SPAN("x")};
    world_forward(w, XID(1), post);
    world_wait_up(w, 0, "\r\n\r\nx");
    world_say(w, ROLE_JUDGE, M_CANCEL, XID(1), SPAN_NONE);
    world_settle(w);
    world_answer(w, 0, "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    struct result r = world_result(w, XID(1));
    assert_int_equal(r.status, 201);
    assert_false(r.relayed);
    assert_true(span_eq(kept(world_wait(w, ROLE_JUDGE, M_KEPT, XID(1)), &size), SPAN("abc")));
    assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER, XID(1)), 0);
    world_free(&w);
}

/* Whose lease is dead: an answer that has begun ends for both sides, and what came of the write is known. */
static void answer_cut(void **state)
{
    struct world *w = world_new();
    struct request post = {.path = "/p", .method = "POST", .once = true, .body = BODY_INLINE, .data = SPAN("x")};
    world_forward(w, XID(1), post);
    world_wait_up(w, 0, "\r\n\r\nx");
    world_answer(w, 0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    (void)world_wait(w, ROLE_FRONT, M_ANSWER, XID(1));
    world_say(w, ROLE_JUDGE, M_CANCEL, XID(1), SPAN("\1"));
    struct result r = world_result(w, XID(1));
    assert_int_equal(r.status, 200);
    assert_true(r.relayed);
    (void)world_wait(w, ROLE_FRONT, M_ANSWER_END, XID(1));
    assert_int_equal(world_count(w, ROLE_JUDGE, M_KEPT, XID(1)), 0);
    world_free(&w);
}

/* Part of an answer of this size was relayed, then the front died. */
static struct world *front_dies_in(size_t size)
{
    struct world *w = world_new();
    struct request post = {.path = "/p", .method = "POST", .once = true, .body = BODY_INLINE, .data = SPAN("x")};
    char head[80], *rest = calloc(1, size - 5 + 1);
    assert_non_null(rest);
    world_forward(w, XID(1), post);
    world_wait_up(w, 0, "POST /p HTTP/1.1\r\n");
    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\nbegin", size);
    world_answer(w, 0, head);
    (void)world_wait(w, ROLE_FRONT, M_ANSWER, XID(1));
    chan_free(&w->peer[ROLE_FRONT]);
    world_settle(w);
    memset(rest, 'r', size - 5);
    world_answer(w, 0, rest);
    free(rest);
    struct result r = world_result(w, XID(1));
    assert_int_equal(r.outcome, OUTCOME_ANSWERED);
    assert_false(r.relayed);
    return w;
}

/* All of it is kept, at the limit; one past it nothing is, for half an answer helps nobody. */
static void answer_kept_up_to_a_limit(void **state)
{
    uint64_t size;
    struct world *w = front_dies_in(ANSWER_KEPT_MAX);
    struct span body = kept(world_wait(w, ROLE_JUDGE, M_KEPT, XID(1)), &size);
    assert_int_equal(size, ANSWER_KEPT_MAX);
    assert_int_equal(body.n, ANSWER_KEPT_MAX);
    assert_true(span_starts(body, SPAN("beginrrr")));
    world_free(&w);
    w = front_dies_in(ANSWER_KEPT_MAX + 1);
    assert_int_equal(world_count(w, ROLE_JUDGE, M_KEPT, XID(1)), 0);
    world_free(&w);
}

/* No more than the front asked for is given to it, and the upstream is slowed down. */
static void backpressure(void **state)
{
    struct world *w = world_new();
    struct answer a;
    size_t total = 900 * 1024;
    char *big = malloc(total + 1);
    assert_non_null(big);
    memset(big, 'b', total);
    big[total] = '\0';
    world_forward(w, XID(1), (struct request){.path = "/1"});
    world_wait_up(w, 0, "GET /1");
    world_answer(w, 0, "HTTP/1.1 200 OK\r\nContent-Length: 921600\r\n\r\n");
    world_answer(w, 0, big);
    (void)world_wait(w, ROLE_FRONT, M_ANSWER, XID(1));
    world_settle(w);
    world_front_answer(w, XID(1), &a);
    assert_int_equal(a.body.n, ANSWER_WINDOW);
    assert_false(a.ended);
    dynbuf_free(&a.body);
    for (int i = 0; i < 3; i++) {
        world_say(w, ROLE_FRONT, M_ANSWER_CREDIT, XID(1), span_of("\0\4\0\0", 4));
        world_settle(w);
    }
    big[total] = '\0';
    expect_answer(w, XID(1), big, true);
    free(big);
    world_free(&w);
}

/* A change of state that cannot be is not made, and what follows is a refusal, not an answer. */
static void an_impossible_change_ends_it(void **state)
{
    struct world *w = world_new();
    (void)state;
    world_forward(w, XID(1), (struct request){.path = "/1"});
    world_wait_up(w, 0, "GET /1");
    struct exchange *x = carry_find(w->carrier, XID(1));
    carry_answer(x, ANSWER_WHOLE);
    assert_int_equal(x->answer, ANSWER_NONE);
    world_answer(w, 0, OK5);
    expect_code(w, XID(1), OUTCOME_UNKNOWN, "upstream-failed");
    assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER, XID(1)), 0);
    world_wait_closed(w, 0); /* and its connection serves nobody else */
    world_free(&w);
}

/* The carrier's clock, as a test turns it: so much passes with each look. */
static uint64_t clock_us, clock_step;

static uint64_t turned_clock(void)
{
    return clock_us += clock_step;
}

static bool other_has(struct world *w, uint64_t n, const char *part)
{
    for (size_t i = 0; i < w->nseen; i++)
        if (w->seen[i].at == ROLE_FRONT && w->seen[i].type == M_ANSWER_BODY && w->seen[i].id == OTHER(n) &&
            span_find(dynbuf_span(&w->seen[i].payload), span_str(part)) < w->seen[i].payload.n)
            return true;
    return false;
}

/* F33: who has spent more than its share of the carrier's time waits while another asks, and for no longer. */
static void a_neighbour_is_served_first(void **state)
{
    struct world *w = world_new();
    (void)state;
    clock_us = 1000 * 1000;
    clock_step = 0;
    w->carrier->clock = turned_clock;
    world_other_front(w);
    world_forward(w, OTHER(1), (struct request){.path = "/dear"});
    world_wait_up(w, 0, "GET /dear");
    world_answer(w, 0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    (void)world_wait(w, ROLE_FRONT, M_ANSWER, OTHER(1));
    clock_step = TIMESHARE_BURST_US; /* nobody else is there: it goes on, whatever it costs */
    for (const char *piece = "1\r\nb\r\n1\r\nc\r\n"; *piece; piece += 6) {
        char one[7] = {piece[0], piece[1], piece[2], piece[3], piece[4], piece[5], 0}, letter[2] = {piece[3], 0};
        world_answer(w, 0, one);
        world_settle(w);
        assert_true(other_has(w, 1, letter));
    }
    clock_step = 0;
    world_get(w, 1, 1, OK5, "hello");
    clock_step = TIMESHARE_BURST_US;
    world_answer(w, 0, "1\r\nd\r\n"); /* the last that it may spend */
    world_settle(w);
    clock_step = 0;
    for (uint64_t n = 2; n < 6; n++) {
        world_answer(w, 0, "1\r\ne\r\n");
        world_get(w, n, 1, OK5, "hello");
        assert_false(other_has(w, 1, "e"));
    }
    clock_us += TIMESHARE_NEIGHBOUR_MS * UINT64_C(1000); /* it is alone again */
    while (!other_has(w, 1, "e"))
        world_settle(w);
    world_answer(w, 0, "0\r\n\r\n");
    assert_true(world_result(w, OTHER(1)).relayed);
    world_free(&w);
}

/* JSON-RPC to a retry: of any length, cut anywhere, whole or as events; and what is kept has the id it came with. */
static void the_id_of_the_retry(void **state)
{
    struct world *w = world_new();
    const char *parts[][3] = {
        {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: \"a\"\r\nContent-Length: 19\r\n\r\n{\"id\":1,",
         "\"resu", "lt\":7}"},
        {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nETag: \"a\"\r\nConnection: close\r\n\r\ndata: {\"id",
         "\":1,\"result", "\":7}\n\n"},
        {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 19\r\n\r\n{\"id\":1,", "\"result", "\":7}"},
        {"HTTP/1.1 204 No Content\r\nContent-Type: application/json\r\n\r\n", "", ""}};
    const char *bodies[] = {"{\"id\":\"second\",\"result\":7}", "data: {\"id\":\"second\",\"result\":7}\n\n",
                            "{\"id\":1,\"result\":7}", ""};
    for (size_t i = 0; i < 4; i++) {
        struct answer a;
        world_forward(
            w, XID(1 + i),
            (struct request){.method = "POST", .path = "/x", .once = true, .answer_id = SPAN("\"second\"")});
        world_wait_up(w, i, "POST /x");
        for (size_t k = 0; k < 3; k++) {
            world_answer(w, i, parts[i][k]);
            world_settle(w);
        }
        if (i == 1)
            world_close_up(w, i);
        (void)world_result(w, XID(1 + i));
        world_settle(w);
        world_front_answer(w, XID(1 + i), &a);
        assert_true(a.ok && span_eq(dynbuf_span(&a.body), span_str(bodies[i])));
        assert_int_equal(a.head.nfields, 1);
        dynbuf_free(&a.body);
        if (i != 1)
            world_close_up(w, i);
        world_settle(w);
    }
    uint64_t size;
    world_forward(w, XID(5), (struct request){.method = "POST", .path = "/x", .once = true, .answer_id = SPAN("2")});
    world_wait_up(w, 4, "POST /x");
    world_say(w, ROLE_JUDGE, M_CANCEL, XID(5), SPAN_NONE);
    world_settle(w);
    world_answer(w, 4, parts[0][0]);
    world_answer(w, 4, "\"result\":7}");
    (void)world_result(w, XID(5));
    assert_true(span_eq(kept(world_wait(w, ROLE_JUDGE, M_KEPT, XID(5)), &size), SPAN("{\"id\":1,\"result\":7}")));
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interim),
        cmocka_unit_test(folded),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(cut_at_once),
        cmocka_unit_test(an_impossible_change_ends_it),
        cmocka_unit_test(a_neighbour_is_served_first),
        cmocka_unit_test(cut_behind_the_credit),
        cmocka_unit_test(early_answer),
        cmocka_unit_test(answer_kept),
        cmocka_unit_test(answer_cut),
        cmocka_unit_test(answer_kept_up_to_a_limit),
        cmocka_unit_test(backpressure),
        cmocka_unit_test(the_id_of_the_retry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
