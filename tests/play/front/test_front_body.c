/* The front: request bodies, inline, whole, piped, refused, cut and slow. */
#include "tests/play/front/front_peers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define POST_TO "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\n"

static uint8_t filler[2 * 1024 * 1024];

static void fill(void)
{
    for (size_t i = 0; i < sizeof(filler); i++)
        filler[i] = (uint8_t)('a' + i % 23);
}

/* A head and n bytes of body behind it. */
static void post(struct cl *c, const char *fields, size_t length, size_t now)
{
    struct dynbuf b;
    dynbuf_init(&b, sizeof(filler) + 1024);
    (void)dynbuf_addf(&b, POST_TO "%sContent-Length: %zu\r\n\r\n", fields, length);
    (void)dynbuf_add(&b, span_of(filler, now));
    cl_say(c, dynbuf_span(&b));
    dynbuf_free(&b);
}

static void a_small_body_goes_with_its_head(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    for (size_t n = 0; n <= FRONT_INLINE_MAX / 2; n += FRONT_INLINE_MAX / 4) {
        post(&c, n ? "Expect: 100-continue\r\n" : "", n, n);
        struct ask a = take_request(&s);
        assert_int_equal(a.body, 1);
        assert_int_equal(a.declared, n);
        assert_true(span_eq(a.inlined, span_of(filler, n)));
        give_reply(&s, a.id, 200, "ok", false);
        cl_expect(&c, "\r\n\r\nok");
        assert_false(cl_has(&c, "100 Continue"));
        cl_forget(&c);
    }
    cl_close(&c);
    for (size_t n = FRONT_INLINE_MAX; n <= FRONT_INLINE_MAX + 1; n++) {
        struct dynbuf b;
        dynbuf_init(&b, 20000);
        (void)dynbuf_addf(&b, POST_TO "Content-Length: %zu\r\n\r\n", n);
        (void)dynbuf_add(&b, span_of(filler, n));
        cl_adopt(&s, &c, "", dynbuf_span(&b));
        dynbuf_free(&b);
        struct ask a = take_request(&s);
        assert_int_equal(a.body, n == FRONT_INLINE_MAX ? 1 : 2);
        assert_int_equal(a.inlined.n, n == FRONT_INLINE_MAX ? n : 0);
        give_reply(&s, a.id, 200, "ok", false);
        cl_expect(&c, "\r\n\r\nok");
        cl_close(&c);
    }
    cl_open(&s, &c);
    /* One byte more, or one byte missing: it is asked for. */
    post(&c, "", FRONT_INLINE_MAX + 1, FRONT_INLINE_MAX + 1);
    struct ask a = take_request(&s);
    assert_int_equal(a.body, 2);
    assert_int_equal(a.inlined.n, 0);
    give_wanted(&s, a.id, 2, FRONT_INLINE_MAX + 1);
    struct got g = take(&s, &s.judge, M_BODY_WHOLE);
    assert_int_equal(g.payload.n, 8 + 4 + FRONT_INLINE_MAX + 1);
    give_reply(&s, a.id, 200, "ok", false);
    cl_expect(&c, "\r\n\r\nok");
    post(&c, "", 9, 8);
    a = take_request(&s);
    assert_int_equal(a.body, 2);
    SAY(&c, "!");
    give_wanted(&s, a.id, 2, 9);
    g = take(&s, &s.judge, M_BODY_WHOLE);
    assert_true(span_eq(span_from(g.payload, 12), SPAN("abcdefgh!")));
    give_reply(&s, a.id, 200, "ok", false);
    cl_forget(&c);
    SAY(&c, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    a = take_request(&s);
    assert_int_equal(a.body, 0);
    assert_true(a.declared == UINT64_MAX);
    cl_close(&c);
    stage_close(&s);
    covers("A36");
}

static void what_follows_a_body_is_another_request(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    SAY(&c, POST_TO "Content-Length: 3\r\n\r\nabcDELETE http://a.test/2 HTTP/1.1\r\nHost: a.test\r\n\r\n");
    struct ask a = take_request(&s);
    assert_true(span_eq(a.inlined, SPAN("abc")));
    silent(&s, &s.judge);
    give_reply(&s, a.id, 200, "one", false);
    a = take_request(&s);
    assert_true(span_eq(a.r.method, SPAN("DELETE")));
    give_reply(&s, a.id, 200, "two", false);
    SAY(&c, POST_TO "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
                    "GET http://a.test/4 HTTP/1.1\r\nHost: a.test\r\n\r\n");
    a = take_request(&s);
    assert_int_equal(a.body, 2);
    give_wanted(&s, a.id, 1, UINT64_MAX);
    assert_true(span_eq(take(&s, &s.judge, M_BODY).payload, SPAN("abc")));
    assert_true(span_eq(take(&s, &s.judge, M_BODY_END).payload, SPAN("\x01")));
    silent(&s, &s.judge);
    give_answer(&s, a.id, 200, HTTP_LENGTH, 0, true, SPAN_NONE);
    a = take_request(&s);
    assert_true(span_eq(a.r.path, SPAN("/4")));
    cl_close(&c);
    stage_close(&s);
    covers("A31 A32");
}

static void check_memfd(struct got *g, size_t n)
{
    struct stat st;
    assert_true(g->fd >= 0);
    assert_int_equal(g->payload.n, 12);
    assert_int_equal(fcntl(g->fd, F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    assert_int_equal(fstat(g->fd, &st), 0);
    assert_int_equal(st.st_size, n);
    void *p = mmap(NULL, n, PROT_READ, MAP_SHARED, g->fd, 0);
    assert_true(p != MAP_FAILED);
    assert_true(span_eq(span_of(p, n), span_of(filler, n)));
    munmap(p, n);
}

static uint64_t size_in(const struct got *g)
{
    struct msg_in m = msg_in(g->payload);
    return msg_get_u64(&m);
}

static void a_whole_body_is_inline_or_sealed(void **state)
{
    static const size_t sizes[] = {20000, BODY_INLINE_MAX, BODY_INLINE_MAX + 1, sizeof(filler)};
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        post(&c, "", sizes[i], 10);
        struct ask a = take_request(&s);
        assert_int_equal(a.declared, sizes[i]);
        give_wanted(&s, a.id, 2, sizes[i]); /* the limit itself is allowed */
        cl_say(&c, span_of(filler + 10, sizes[i] - 10));
        struct got g = take(&s, &s.judge, M_BODY_WHOLE);
        assert_int_equal(size_in(&g), sizes[i]);
        if (sizes[i] <= BODY_INLINE_MAX)
            assert_true(span_eq(span_from(g.payload, 12), span_of(filler, sizes[i])) && g.fd < 0);
        else
            check_memfd(&g, sizes[i]);
        give_reply(&s, a.id, 200, "ok", false);
        cl_expect(&c, "\r\n\r\nok");
        cl_forget(&c);
    }
    cl_close(&c);
    stage_close(&s);
}

static void chunks_are_joined_at_every_split(void **state)
{
    static const struct span body = SPAN("3\r\nabc\r\n1\r\nd\r\nA\r\n0123456789\r\n0\r\nX-T: v\r\n\r\n");
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    for (uint8_t mode = 1; mode <= 2; mode++)
        for (size_t k = 0; k < body.n; k++) {
            struct dynbuf came;
            dynbuf_init(&came, 100);
            SAY(&c, POST_TO "Transfer-Encoding: chunked\r\n\r\n");
            struct ask a = take_request(&s);
            assert_true(a.body == 2 && a.declared == UINT64_MAX);
            give_wanted(&s, a.id, mode, 14);
            cl_say(&c, span_first(body, k));
            cl_say(&c, span_from(body, k));
            UNTIL(&s, s.judge.last != NULL && s.judge.last->type != M_BODY);
            while (s.judge.first->type == M_BODY)
                dynbuf_add(&came, take(&s, &s.judge, M_BODY).payload);
            struct got g = take(&s, &s.judge, mode == 1 ? M_BODY_END : M_BODY_WHOLE);
            if (mode == 2)
                dynbuf_add(&came, span_from(g.payload, 12));
            assert_true(span_eq(dynbuf_span(&came), SPAN("abcd0123456789")));
            dynbuf_free(&came);
            give_reply(&s, a.id, 200, "ok", false);
            cl_expect(&c, "\r\n\r\nok");
            cl_forget(&c);
        }
    cl_close(&c);
    stage_close(&s);
    covers("A41");
}

/* Past the limit the rest of the body is not the next request, whatever the reply says about closing. */
static void a_body_over_the_limit_ends_the_connection(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (int declared = 0; declared < 2; declared++) {
        cl_open(&s, &c);
        SAY(&c, declared ? POST_TO "Content-Length: 200\r\nExpect: 100-continue\r\n\r\n"
                         : POST_TO "Transfer-Encoding: chunked\r\n\r\n65\r\n");
        struct ask a = take_request(&s);
        give_wanted(&s, a.id, 2, 100);
        if (!declared)
            cl_say(&c, span_of(filler, 101));
        struct got g = take(&s, &s.judge, M_BODY_WHOLE);
        assert_int_equal(size_in(&g), declared ? 200 : 101);
        assert_true(g.payload.n == 12 && g.fd < 0);
        SAY(&c, "\r\nDELETE http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"); /* still body */
        silent(&s, &s.judge);
        give_reply(&s, a.id, 413, "too large", false);
        cl_is(&c, "HTTP/1.1 413 Said so\r\nConnection: close\r\nContent-Length: 9\r\n\r\ntoo large");
        SAY(&c, "DELETE http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_int_equal(cl_end(&c), END_FIN);
        silent(&s, &s.judge);
        cl_close(&c);
    }
    stage_close(&s);
    covers("A32");
}

static void a_malformed_body_is_refused(void **state)
{
    static const char *const bodies[] = {
        "x\r\n",        "3\r\nabcd",    "3;=b\r\nabc\r\n", "3\nabc", "0\r\nbad trailer\r\n\r\n",
        "80000000\r\n", "03\r\nabc\r\n"};
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (uint8_t mode = 1; mode <= 2; mode++)
        for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
            cl_open(&s, &c);
            SAY(&c, POST_TO "Transfer-Encoding: chunked\r\n\r\n");
            struct ask a = take_request(&s);
            SAY(&c, bodies[i]);
            give_wanted(&s, a.id, mode, 1000);
            UNTIL(&s, s.judge.last != NULL && s.judge.last->type != M_BODY);
            while (s.judge.first->type == M_BODY)
                take(&s, &s.judge, M_BODY);
            assert_true(span_eq(take(&s, &s.judge, M_BODY_END).payload, SPAN("\0")));
            assert_int_equal(take(&s, &s.judge, M_CANCEL).id, a.id);
            cl_expect(&c, "HTTP/1.1 400 ");
            assert_int_equal(cl_end(&c), END_FIN);
            cl_close(&c);
        }
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) { /* with its head: nobody is asked about it */
        char whole[300];
        cl_open(&s, &c);
        snprintf(whole, sizeof(whole), POST_TO "Transfer-Encoding: chunked\r\n\r\n%s", bodies[i]);
        SAY(&c, whole);
        cl_expect(&c, "HTTP/1.1 400 ");
        assert_int_equal(cl_end(&c), END_FIN);
        cl_close(&c);
        silent(&s, &s.judge);
    }
    /* After the upstream has begun to answer there is no room for a refusal. */
    cl_open(&s, &c);
    SAY(&c, POST_TO "Transfer-Encoding: chunked\r\n\r\n");
    struct ask a = take_request(&s);
    give_wanted(&s, a.id, 1, UINT64_MAX);
    give_answer(&s, a.id, 200, HTTP_CHUNKED, 0, false, SPAN("early"));
    cl_expect(&c, "early");
    SAY(&c, "x\r\n");
    assert_true(cl_end(&c));
    assert_false(cl_has(&c, "400"));
    assert_false(cl_has(&c, "\r\n0\r\n"));
    cl_close(&c);
    stage_close(&s);
    covers("A32");
}

static size_t take_bodies(struct stage *s)
{
    size_t n = 0;
    settle(s);
    while (s->judge.first != NULL && s->judge.first->type == M_BODY) {
        struct got g = take(s, &s->judge, M_BODY);
        assert_true(span_eq(g.payload, span_first(span_of(filler + n, sizeof(filler) - n), g.payload.n)));
        n += g.payload.n;
    }
    return n;
}

static void a_piped_body_stays_within_its_credit(void **state)
{
    struct stage s;
    struct cl c;
    size_t sent = 0, n;
    (void)state;
    stage_open(&s);
    s.f->limits.body_ms = 20; /* who is not read is not slow */
    cl_open(&s, &c);
    post(&c, "", sizeof(filler), 0);
    struct ask a = take_request(&s);
    give_wanted(&s, a.id, 1, UINT64_MAX);
    for (uint64_t until = now_ms() + 60; sent < sizeof(filler) && now_ms() < until;) {
        ssize_t w = write(c.fd, filler + sent, sizeof(filler) - sent);
        sent += w > 0 ? (size_t)w : 0;
        turn(&s);
    }
    assert_int_equal(take_bodies(&s), BODY_WINDOW);
    give_body_credit(&s, a.id, 1);
    UNTIL(&s, s.judge.first != NULL);
    struct got g = take(&s, &s.judge, M_BODY);
    assert_int_equal(g.payload.n, 1);
    silent(&s, &s.judge);
    assert_int_equal(conn_input(s.f->clients->conn).n <= FRONT_INPUT_MAX, true);
    s.f->limits.body_ms = 60000;
    n = BODY_WINDOW + 1;
    for (uint64_t until = now_ms() + 5000; n < sizeof(filler) && now_ms() < until;) {
        give_body_credit(&s, a.id, 100 * 1000);
        ssize_t w = write(c.fd, filler + sent, sizeof(filler) - sent);
        sent += w > 0 ? (size_t)w : 0;
        settle(&s);
        while (s.judge.first != NULL && s.judge.first->type == M_BODY) {
            g = take(&s, &s.judge, M_BODY);
            assert_true(span_eq(g.payload, span_of(filler + n, g.payload.n)));
            n += g.payload.n;
        }
    }
    assert_int_equal(n, sizeof(filler));
    assert_true(span_eq(take(&s, &s.judge, M_BODY_END).payload, SPAN("\x01")));
    give_answer(&s, a.id, 200, HTTP_LENGTH, 2, true, SPAN("ok"));
    cl_expect(&c, "ok");
    assert_int_equal(s.f->nclients, 1);
    cl_close(&c);
    stage_close(&s);
}

static void continue_is_said_when_the_body_is_wanted(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    for (uint8_t mode = 1; mode <= 2; mode++) {
        post(&c, "Expect: 100-Continue\r\n", 3, 0);
        struct ask a = take_request(&s);
        assert_int_equal(a.r.nfields, 0);
        cl_is(&c, "");
        give_wanted(&s, a.id, mode, 10);
        cl_is(&c, "HTTP/1.1 100 Continue\r\n\r\n");
        SAY(&c, "abc");
        take(&s, &s.judge, mode == 1 ? M_BODY : M_BODY_WHOLE);
        if (mode == 1)
            take(&s, &s.judge, M_BODY_END);
        give_reply(&s, a.id, 200, "ok", false);
        cl_is(&c, "HTTP/1.1 200 Said so\r\nContent-Length: 2\r\n\r\nok");
    }
    /* Sent without waiting: no word is needed. */
    post(&c, "Expect: 100-continue\r\n", 30000, 10);
    struct ask a = take_request(&s);
    give_wanted(&s, a.id, 2, 30000);
    cl_is(&c, "");
    cl_say(&c, span_of(filler + 10, 29990));
    take(&s, &s.judge, M_BODY_WHOLE);
    give_reply(&s, a.id, 200, "ok", false);
    cl_is(&c, "HTTP/1.1 200 Said so\r\nContent-Length: 2\r\n\r\nok");
    /* Refused before: the final answer alone. */
    post(&c, "Expect: 100-continue\r\n", 3, 0);
    give_reply(&s, take_request(&s).id, 403, "no", false);
    cl_is(&c, "HTTP/1.1 403 Said so\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno");
    assert_int_equal(cl_end(&c), END_FIN);
    cl_close(&c);
    stage_close(&s);
    covers("A35");
}

/* The words arrive although the client is still talking: no reset takes them away. */
static void an_early_refusal_is_read_by_who_still_sends(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (int tls = 0; tls < 2; tls++) {
        if (tls) {
            cl_tunnel(&s, &c, "a.test");
            SAY(&c, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3000000\r\n\r\n");
        } else {
            cl_open(&s, &c);
            post(&c, "", 3000000, 0);
        }
        uint64_t id = take_request(&s).id;
        if (!tls) { /* in a tunnel, OpenSSL would have to be asked again with the same bytes */
            size_t sent = 0;
            for (int i = 0; i < 200; i++) {
                ssize_t w = write(c.fd, filler, sizeof(filler));
                sent += w > 0 ? (size_t)w : 0;
                turn(&s);
            }
            assert_true(sent > FRONT_INPUT_MAX);
        } else {
            cl_say(&c, span_of(filler, 16 * 1024));
        }
        give_reply(&s, id, 403, "this is why", false);
        settle(&s);
        cl_say(&c, span_of(filler, tls ? 100 * 1024 : 1000 * 1000)); /* taken, and dropped */
        cl_expect(&c, "this is why");
        assert_int_equal(cl_end(&c), tls ? END_NOTIFY : END_FIN);
        silent(&s, &s.judge);
        cl_close(&c);
        UNTIL(&s, s.f->nclients == 0);
    }
    stage_close(&s);
    covers("A34");
}

static void who_leaves_is_cancelled(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (int i = 0; i < 6; i++) {
        bool half = i % 2;
        cl_open(&s, &c);
        post(&c, "", 100, i < 2 ? 100 : 50);
        uint64_t id = take_request(&s).id;
        if (i >= 4) {
            give_wanted(&s, id, 1, 100);
            take(&s, &s.judge, M_BODY);
        }
        if (half)
            shutdown(c.fd, SHUT_WR);
        else
            cl_close(&c);
        assert_int_equal(take(&s, &s.judge, M_CANCEL).id, id);
        assert_int_equal(s.f->nclients, 0);
        give_reply(&s, id, 200, "late", false);
        give_wanted(&s, id, 2, 100);
        give_body_credit(&s, id, 100);
        settle(&s);
        if (half) {
            assert_true(cl_end(&c));
            assert_int_equal(c.in.n, 0);
            cl_close(&c);
        }
    }
    stage_close(&s);
    covers("A34");
}

static void a_slow_body_is_refused(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    s.f->limits.body_ms = 150;
    cl_open(&s, &c);
    post(&c, "", 100000, 0);
    uint64_t id = take_request(&s).id, start = now_ms();
    while (now_ms() < start + 200) /* not wanted yet: no clock runs */
        turn(&s);
    give_wanted(&s, id, 2, 100000);
    for (int i = 0; i < 3; i++) { /* fast enough */
        cl_say(&c, span_of(filler, FRONT_BODY_BYTES));
        for (start = now_ms(); now_ms() < start + 151;)
            turn(&s);
        if (s.f->nclients == 0)
            fail_msg("given up on although it got on");
        cl_say(&c, span_of(filler, FRONT_BODY_BYTES));
    }
    start = now_ms();
    while (s.judge.first == NULL && now_ms() < start + 5000) { /* a byte now and then is not enough */
        cl_say(&c, span_of(filler, 1));
        for (uint64_t then = now_ms(); now_ms() < then + 10 && s.judge.first == NULL;)
            turn(&s);
    }
    assert_true(span_eq(take(&s, &s.judge, M_BODY_END).payload, SPAN("\0")));
    assert_int_equal(take(&s, &s.judge, M_CANCEL).id, id);
    cl_expect(&c, "HTTP/1.1 408 ");
    assert_int_equal(cl_end(&c), END_FIN);
    cl_close(&c);
    stage_close(&s);
    covers("F1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_body_goes_with_its_head),
        cmocka_unit_test(what_follows_a_body_is_another_request),
        cmocka_unit_test(a_whole_body_is_inline_or_sealed),
        cmocka_unit_test(chunks_are_joined_at_every_split),
        cmocka_unit_test(a_body_over_the_limit_ends_the_connection),
        cmocka_unit_test(a_malformed_body_is_refused),
        cmocka_unit_test(a_piped_body_stays_within_its_credit),
        cmocka_unit_test(continue_is_said_when_the_body_is_wanted),
        cmocka_unit_test(an_early_refusal_is_read_by_who_still_sends),
        cmocka_unit_test(who_leaves_is_cancelled),
        cmocka_unit_test(a_slow_body_is_refused),
    };
    fill();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
