/* The front: its limits, each at the limit and one past it, its clocks, and what is left behind. */
#include "tests/play/front/front_peers.h"

#include "tests/play/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void wait_ms(struct stage *s, uint64_t ms)
{
    for (uint64_t until = now_ms() + ms; now_ms() < until;)
        turn(s);
}

/* One byte at a time, each soon after the last, until the front has had enough. */
static uint64_t drip(struct stage *s, struct cl *c)
{
    uint64_t start = now_ms();
    while (!c->ended && now_ms() < start + 5000) {
        if (c->ssl != NULL) {
            size_t n;
            (void)SSL_write_ex(c->ssl, "G", 1, &n);
        } else {
            ssize_t n = write(c->fd, "G", 1);
            if (n < 0)
                break;
        }
        wait_ms(s, 3);
        cl_read(c);
    }
    cl_end(c);
    return now_ms() - start;
}

static void a_head_has_its_time_and_no_more(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    s.f->limits.head_ms = 60;
    cl_open(&s, &c);
    assert_true(drip(&s, &c) < 3000);
    assert_true(cl_has(&c, "HTTP/1.1 408 Request Timeout"));
    assert_int_equal(c.ended, END_FIN);
    cl_close(&c);

    cl_open(&s, &c); /* not a byte: no words for who did not ask */
    assert_int_equal(cl_end(&c), END_FIN);
    assert_int_equal(c.in.n, 0);
    cl_close(&c);

    cl_tunnel(&s, &c, "a.test");
    wait_ms(&s, 130); /* idle before its first request */
    SAY(&c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    give_reply(&s, take_request(&s).id, 200, "ok", false);
    cl_expect(&c, "ok");
    wait_ms(&s, 130); /* and between two */
    assert_int_equal(s.f->nclients, 1);
    assert_true(drip(&s, &c) < 3000);
    assert_int_equal(c.ended, END_NOTIFY);
    assert_true(cl_has(&c, "HTTP/1.1 408 "));
    cl_close(&c);
    UNTIL(&s, s.f->nclients == 0);
    stage_close(&s);
    covers("F1 A40");
}

static void heads_past_the_limit_are_refused(void **state)
{
    enum { HEAD = HTTP_HEAD_MAX };
    static const char begin[] = "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n";
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (size_t past = 0; past < 2; past++) {
        struct dynbuf b;
        dynbuf_init(&b, 2 * HEAD);
        (void)dynbuf_add(&b, span_str(begin));
        for (int i = 0; i < 3; i++) {
            (void)dynbuf_addf(&b, "X-%d: ", i);
            size_t n = i < 2 ? 10000 : HEAD + past - b.n - 4;
            memset(dynbuf_room(&b, n), 'x', n);
            dynbuf_grew(&b, n);
            (void)dynbuf_add(&b, SPAN("\r\n"));
        }
        (void)dynbuf_add(&b, SPAN("\r\n"));
        assert_int_equal(b.n, HEAD + past);
        cl_open(&s, &c);
        cl_say(&c, dynbuf_span(&b));
        dynbuf_free(&b);
        if (past == 0)
            give_reply(&s, take_request(&s).id, 200, "ok", false);
        cl_expect(&c, past ? "HTTP/1.1 431 " : "HTTP/1.1 200 ");
        cl_close(&c);
    }
    silent(&s, &s.judge);
    stage_close(&s);
    covers("A40");
}

static void a_handshake_has_its_time_and_no_more(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    s.f->limits.tls_ms = 60;
    s.f->limits.leaf_ms = 40;
    cl_open(&s, &c);
    SAY(&c, "CONNECT a.test:443 HTTP/1.0\r\n\r\n");
    give_leaf(&s, take_connect(&s, "a.test", 443), "a.test");
    cl_expect(&c, "established\r\n\r\n");
    uint64_t start = now_ms();
    static const uint8_t hello[] = {22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3}; /* the beginning of one */
    for (size_t i = 0; s.f->nclients > 0 && now_ms() < start + 5000; i++) {
        ssize_t n = write(c.fd, &hello[i < sizeof(hello) ? i : sizeof(hello) - 1], 1);
        if (n < 0)
            break;
        wait_ms(&s, 5);
    }
    assert_int_equal(s.f->nclients, 0);
    assert_true(now_ms() - start < 3000);
    cl_close(&c);

    cl_open(&s, &c); /* a judge that does not answer */
    SAY(&c, "CONNECT a.test:443 HTTP/1.0\r\n\r\n");
    uint64_t id = take_connect(&s, "a.test", 443);
    cl_expect(&c, "HTTP/1.1 503 ");
    assert_int_equal(take(&s, &s.judge, M_CANCEL).id, id);
    assert_int_equal(cl_end(&c), END_FIN);
    give_leaf(&s, id, "a.test");
    settle(&s);
    cl_close(&c);

    cl_open(&s, &c); /* a leaf for another key */
    SAY(&c, "CONNECT a.test:443 HTTP/1.0\r\n\r\n");
    id = take_connect(&s, "a.test", 443);
    struct dynbuf *b = chan_begin(s.judge.chan, M_LEAF, id);
    msg_put_span(b, SPAN("no certificate"));
    msg_put_span(b, SPAN("no certificate"));
    assert_int_equal(chan_commit(s.judge.chan), 0);
    cl_expect(&c, "HTTP/1.1 503 ");
    cl_close(&c);
    stage_close(&s);
    covers("F1 C6");
}

/* One host more than are kept: each handshake still gets its own host's leaf, and a new one for an old host counts.
 */
static void leafs_are_kept_up_to_a_limit(void **state)
{
    char host[32];
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (int i = 0; i < FRONT_LEAFS_MAX + 1; i++) {
        snprintf(host, sizeof(host), "h%d.test", i);
        cl_open(&s, &c);
        SAY(&c, "CONNECT ");
        SAY(&c, host);
        SAY(&c, ":443 HTTP/1.0\r\n\r\n");
        give_leaf(&s, take_connect(&s, host, 443), host);
        cl_expect(&c, "established\r\n\r\n");
        cl_forget(&c);
        if (i % 16 == 0) /* the client checks the name in it */
            assert_true(cl_tls(&c, host, NULL));
        cl_close(&c);
        assert_true(s.f->nleafs <= FRONT_LEAFS_MAX);
    }
    assert_int_equal(s.f->nleafs, FRONT_LEAFS_MAX);
    cl_tunnel(&s, &c, "h0.test");
    cl_close(&c);
    cl_tunnel(&s, &c, "h128.test"); /* signed anew: other bytes, the same host */
    cl_close(&c);
    assert_int_equal(s.f->nleafs, FRONT_LEAFS_MAX);
    stage_close(&s);
}

static void idle_connections_end_properly(void **state)
{
    struct stage s;
    struct cl plain, tunnel;
    (void)state;
    stage_open(&s);
    s.f->limits.idle_ms = 40;
    cl_open(&s, &plain);
    SAY(&plain, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    uint64_t id = take_request(&s).id;
    wait_ms(&s, 90); /* who is held is not idle */
    assert_int_equal(s.f->nclients, 1);
    give_reply(&s, id, 200, "ok", false);
    cl_expect(&plain, "ok");
    cl_tunnel(&s, &tunnel, "a.test");
    assert_int_equal(cl_end(&tunnel), END_NOTIFY);
    assert_int_equal(cl_end(&plain), END_FIN);
    assert_int_equal(tunnel.in.n, 0);
    cl_close(&plain);
    cl_close(&tunnel);
    silent(&s, &s.judge);
    stage_close(&s);
}

static double cpu_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void stop_loop(void *arg)
{
    loop_stop(arg);
}

/* The loop as it runs in life, for so long; how much of that it was at work. */
static double at_work(struct stage *s, uint64_t ms)
{
    struct timer *t = timer_new(s->l, stop_loop, s->l);
    double before = cpu_seconds();
    clock_waits();
    timer_set(t, ms);
    assert_int_equal(loop_run(s->l), 0);
    timer_free(&t);
    return (cpu_seconds() - before) * 1000 / (double)ms;
}

static void so_many_connections_and_no_more(void **state)
{
    enum { MANY = 4 };
    struct stage s;
    struct cl c[MANY], late[2], extra;
    (void)state;
    stage_open(&s);
    s.f->limits.clients = MANY;
    for (int i = 0; i < MANY; i++)
        cl_open(&s, &c[i]);
    cl_dial(&s, &late[0]);
    cl_dial(&s, &late[1]);
    SAY(&late[0], "GET http://a.test/late HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_int_equal(s.f->nclients, MANY);
    silent(&s, &s.judge);
    if (at_work(&s, 100) > 0.3)
        fail_msg("a full front spins");
    cl_adopt(&s, &extra, "", SPAN("GET http://a.test/extra HTTP/1.1\r\nHost: a.test\r\n\r\n"));
    cl_expect(&extra, "HTTP/1.1 503 ");
    cl_expect(&extra, "too-many-connections");
    assert_true(cl_end(&extra));
    cl_close(&extra);
    if (at_work(&s, 100) > 0.3)
        fail_msg("a full front spins after a hand-over");
    SAY(&c[0], "GET http://a.test/0 HTTP/1.1\r\nHost: a.test\r\n\r\n"); /* who is in is served */
    give_reply(&s, take_request(&s).id, 200, "ok", false);
    cl_expect(&c[0], "ok");
    cl_close(&c[1]);
    UNTIL(&s, s.judge.first != NULL); /* one goes, one comes */
    assert_true(span_eq(take_request(&s).r.path, SPAN("/late")));
    assert_int_equal(s.f->nclients, MANY);
    cl_close(&c[0]);
    cl_close(&c[2]);
    cl_close(&c[3]);
    cl_close(&late[0]);
    cl_close(&late[1]);
    UNTIL(&s, s.f->nclients == 0);
    stage_close(&s);
    covers("F7");
}

static void without_descriptors_nothing_spins(void **state)
{
    struct stage s;
    struct cl c;
    struct rlimit was, few;
    int hole;
    (void)state;
    stage_open(&s);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    cl_dial(&s, &c);
    hole = fcntl(c.fd, F_DUPFD, 0); /* the next free number */
    close(hole);
    few = was;
    few.rlim_cur = (rlim_t)hole;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    UNTIL(&s, s.f->resting);
    assert_int_equal(s.f->nclients, 0);
    double share = at_work(&s, 250);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    if (share > 0.3)
        fail_msg("the front spins without descriptors: %.0f %%", share * 100);
    UNTIL(&s, s.f->nclients == 1); /* and it recovers */
    SAY(&c, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    give_reply(&s, take_request(&s).id, 200, "ok", false);
    cl_expect(&c, "ok");
    cl_close(&c);
    stage_close(&s);
    covers("F7");
}

static uint64_t take_idle(struct stage *s)
{
    struct got g = take(s, &s->parent, M_IDLE);
    struct msg_in m = msg_in(g.payload);
    return msg_get_u64(&m);
}

static void an_idle_front_asks_to_go(void **state)
{
    struct stage s;
    struct cl c, d;
    (void)state;
    stage_open(&s);
    s.f->limits.gone_ms = 30;
    cl_open(&s, &c);
    wait_ms(&s, 80);
    silent(&s, &s.parent); /* somebody is here */
    cl_close(&c);
    assert_int_equal(take_idle(&s), 0);
    cl_dial(&s, &c);
    wait_ms(&s, 10);
    assert_int_equal(s.f->nclients, 0); /* it may be told to stop at any moment: that one is left to the next front */
    cl_adopt(&s, &d, "", SPAN_NONE);    /* but it is not: somebody was on his way */
    UNTIL(&s, s.f->nclients == 2);
    cl_close(&c);
    cl_close(&d);
    while (s.parent.first != NULL)
        take_idle(&s);
    assert_int_equal(take_idle(&s), 1);
    stage_close(&s);
}

static void mishap(struct stage *s, int kind)
{
    struct cl c;
    uint64_t id;
    switch (kind) {
    case 0: /* refused */
        cl_open(s, &c);
        SAY(&c, "nonsense\r\n\r\n");
        cl_end(&c);
        break;
    case 1: /* gone while held, with a body in a memfd */
        cl_open(s, &c);
        SAY(&c, "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n60000\r\n");
        id = take_request(s).id;
        give_wanted(s, id, 2, UINT64_MAX);
        for (int i = 0; i < 300; i++) {
            static uint8_t zeros[1024];
            cl_say(&c, span_of(zeros, sizeof(zeros)));
        }
        assert_true(s->f->clients->x.memfd >= 0);
        break;
    case 2: /* TLS that never comes about */
        cl_open(s, &c);
        SAY(&c, "CONNECT a.test:443 HTTP/1.0\r\n\r\n");
        give_leaf(s, take_connect(s, "a.test", 443), "a.test");
        cl_expect(&c, "established\r\n\r\n");
        assert_false(cl_tls(&c, "b.test", NULL));
        break;
    case 3: /* an answer that is cut */
        cl_tunnel(s, &c, "a.test");
        SAY(&c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        id = take_request(s).id;
        give_answer(s, id, 200, HTTP_CHUNKED, 0, false, SPAN("x"));
        give_end(s, id, false);
        cl_end(&c);
        break;
    default: /* a tunnel that is left */ cl_tunnel(s, &c, "a.test"); break;
    }
    cl_close(&c);
    UNTIL(s, s->f->nclients == 0);
    while (s->judge.first != NULL)
        take(s, &s->judge, M_CANCEL);
}

static void nothing_is_left_behind(void **state)
{
    struct stage s;
    unsigned before = 0;
    (void)state;
    stage_open(&s);
    for (int i = 0; i < 60; i++) {
        if (i == 10)
            before = open_fds();
        mishap(&s, i % 5);
    }
    assert_int_equal(open_fds(), before);
    for (size_t i = 0; i < FRONT_SLOTS; i++)
        assert_null(s.f->by_slot[i]);
    stage_close(&s);
    covers("F8");
}

/* Each kind of frame from a judge or a carrier, cut short and at a wrong time: whatever happens, it is not a crash.
 */
static void frames_at_the_wrong_time_do_no_harm(void **state)
{
    static const uint16_t types[] = {M_LEAF, M_REPLY, M_BODY_WANTED, M_BODY_CREDIT, M_CONNECT, M_CANCEL};
    static const uint8_t junk[40] = {1, 0, 0, 0, 0, 0, 0, 1};
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        for (size_t n = 0; n < sizeof(junk); n += 3)
            for (int where = 0; where < 3; where++) {
                uint64_t id;
                cl_open(&s, &c);
                if (where == 0) {
                    SAY(&c, "CONNECT a.test:443 HTTP/1.0\r\n\r\n");
                    id = take_connect(&s, "a.test", 443);
                } else {
                    SAY(&c, where == 1 ? "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"
                                       : "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\n");
                    id = take_request(&s).id;
                }
                assert_int_equal(chan_send(s.judge.chan, types[i], id, span_of(junk, n)), 0);
                settle(&s);
                cl_close(&c);
                UNTIL(&s, s.f->nclients == 0);
                while (s.judge.first != NULL)
                    take(&s, &s.judge, s.judge.first->type);
            }
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_has_its_time_and_no_more),
        cmocka_unit_test(heads_past_the_limit_are_refused),
        cmocka_unit_test(a_handshake_has_its_time_and_no_more),
        cmocka_unit_test(leafs_are_kept_up_to_a_limit),
        cmocka_unit_test(idle_connections_end_properly),
        cmocka_unit_test(so_many_connections_and_no_more),
        cmocka_unit_test(without_descriptors_nothing_spins),
        cmocka_unit_test(an_idle_front_asks_to_go),
        cmocka_unit_test(nothing_is_left_behind),
        cmocka_unit_test(frames_at_the_wrong_time_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
