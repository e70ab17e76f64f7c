/* common/net/conn: plain streams, limits, ends. attacks.tsv: F2 */
#include "tests/unit/net/conn_world.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

static void test_plain(void **state)
{
    struct world w;
    (void)state;
    unsigned before = open_fds();
    open_world(&w);
    pump(&w, 5 * 1024 * 1024);
    conn_end(w.a.c); /* half: the other way still works */
    w.b.stop_on = 1u << CONN_EOF;
    run(w.l);
    assert_int_equal(conn_write(w.a.c, SPAN("x")), -1);
    assert_int_equal(conn_write(w.b.c, SPAN("answer")), 0);
    w.a.stop_at = 6;
    run(w.l);
    assert_memory_equal(w.a.got.p, "answer", 6);
    close_world(&w);
    assert_int_equal(open_fds(), before);
}

static void test_input_cap(void **state)
{
    struct world w;
    (void)state;
    open_world(&w);
    static uint8_t big[CONN_OUT_MAX];
    assert_int_equal(conn_write(w.a.c, span_of(big, sizeof(big))), 0);
    assert_int_equal(conn_write(w.a.c, SPAN("x")), -1); /* one past the limit; what was queued stays */
    w.b.keep = true;
    settle(w.l);
    assert_int_equal(conn_input(w.b.c).n, IN_MAX);
    unsigned events = w.b.seen[CONN_DATA];
    settle(w.l);
    assert_int_equal(w.b.seen[CONN_DATA], events);
    w.b.keep = false;
    w.b.stop_at = sizeof(big) - IN_MAX;
    conn_consume(w.b.c, IN_MAX);
    run(w.l);
    close_world(&w);
}

static void test_pause_unread_release(void **state)
{
    struct world w;
    struct dynbuf rest;
    (void)state;
    open_world(&w);
    dynbuf_init(&rest, 1024);
    w.b.keep = true;
    conn_pause(w.b.c, true);
    assert_int_equal(conn_write(w.a.c, SPAN(" world")), 0);
    settle(w.l);
    assert_int_equal(w.b.seen[CONN_DATA], 0);
    assert_int_equal(conn_unread(w.b.c, SPAN("hello")), 0);
    conn_pause(w.b.c, false);
    settle(w.l);
    assert_true(w.b.seen[CONN_DATA] > 0);
    assert_true(span_eq(conn_input(w.b.c), SPAN("hello world")));
    int fd = conn_release(&w.b.c, &rest);
    assert_true(fd >= 0);
    assert_null(w.b.c);
    assert_true(span_eq(dynbuf_span(&rest), SPAN("hello world")));
    assert_int_equal(conn_write(w.a.c, SPAN("more")), 0);
    settle(w.l);
    char more[8];
    assert_int_equal(read(fd, more, sizeof(more)), 4);
    close(fd);
    dynbuf_free(&rest);
    close_world(&w);
}

static void test_deadline(void **state)
{
    struct world w;
    (void)state;
    open_world(&w);
    w.a.stop_on = 1u << CONN_TIMEOUT;
    conn_deadline(w.a.c, 5);
    conn_deadline(w.a.c, 20); /* later: the timer is moved when it goes off */
    uint64_t from = loop_now(w.l);
    run(w.l);
    assert_true(loop_now(w.l) - from >= 20);
    assert_int_equal(w.a.seen[CONN_TIMEOUT], 1);
    conn_deadline(w.a.c, 1);
    conn_deadline(w.a.c, 0);
    settle(w.l);
    assert_int_equal(w.a.seen[CONN_TIMEOUT], 1);
    close_world(&w);
}

static void test_finish(void **state)
{
    struct world w;
    static uint8_t big[512 * 1024];
    (void)state;
    unsigned before = open_fds();
    open_world(&w);
    assert_int_equal(conn_write(w.b.c, SPAN("what nobody reads")), 0);
    assert_int_equal(conn_write(w.a.c, span_of(big, sizeof(big))), 0);
    conn_finish(&w.a.c);
    assert_null(w.a.c);
    w.b.stop_on = 1u << CONN_EOF;
    run(w.l);
    assert_int_equal(w.b.got.n, sizeof(big));
    assert_int_equal(w.a.seen[CONN_DATA], 0); /* nothing is told any more */
    conn_finish(&w.b.c);
    settle(w.l);
    close_world(&w);
    assert_int_equal(open_fds(), before);
}

/* A peer that neither reads nor closes costs two seconds, no more. */
static void test_finish_is_bounded(void **state)
{
    struct world w;
    static uint8_t big[CONN_OUT_MAX];
    (void)state;
    open_world(&w);
    unsigned before = open_fds();
    conn_pause(w.b.c, true);
    assert_int_equal(conn_write(w.a.c, span_of(big, sizeof(big))), 0);
    conn_finish(&w.a.c);
    w.b.stop_on = 1u << CONN_TIMEOUT;
    conn_deadline(w.b.c, 2100);
    run(w.l);
    assert_int_equal(open_fds(), before - 1);
    close_world(&w);
}

static void test_dial(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    struct side s;
    (void)state;
    struct loop *l = loop_new();
    side_init(&s, l);
    int fd = listen_tcp("127.0.0.1:0");
    assert_true(fd >= 0);
    a.sin_port = htons((uint16_t)listen_port(fd));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s.c = conn_dial(l, (struct sockaddr *)&a, sizeof(a), IN_MAX, on_event, &s);
    assert_non_null(s.c);
    s.stop_on = 1u << CONN_CONNECTED;
    assert_int_equal(conn_write(s.c, SPAN("early")), 0); /* waits for the connection */
    run(l);
    int peer = listen_accept(fd);
    assert_true(peer >= 0);
    settle(l);
    char b[8];
    assert_int_equal(read(peer, b, sizeof(b)), 5);
    close(peer);
    conn_free(&s.c);
    close(fd);
    s.stop_on = 1u << CONN_FAILED; /* nobody listens there now */
    s.c = conn_dial(l, (struct sockaddr *)&a, sizeof(a), IN_MAX, on_event, &s);
    assert_non_null(s.c);
    run(l);
    assert_string_equal(s.why, "connecting: Connection refused");
    conn_free(&s.c);
    dynbuf_free(&s.got);
    loop_free(&l);
}

/* An early answer is heard although the rest of the request could not be delivered. */
static void test_early_answer(void **state)
{
    struct world w;
    (void)state;
    open_world(&w);
    assert_int_equal(write(w.fd[1], "413", 3), 3);
    conn_free(&w.b.c);
    assert_int_equal(conn_write(w.a.c, SPAN("a long body")), 0);
    w.a.stop_on = 1u << CONN_FAILED | 1u << CONN_EOF;
    run(w.l);
    assert_int_equal(w.a.got.n, 3);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_input_cap),
        cmocka_unit_test(test_pause_unread_release),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_finish),
        cmocka_unit_test(test_finish_is_bounded),
        cmocka_unit_test(test_dial),
        cmocka_unit_test(test_early_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
