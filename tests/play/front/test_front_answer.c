/* The front: answers, where they end, how fast they flow, and in which order. */
#include "tests/play/front/front_peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define GET_OF(path) "GET http://a.test" path " HTTP/1.1\r\nHost: a.test\r\n\r\n"

static uint8_t filler[4 * 1024 * 1024];

static uint64_t ask_for(struct stage *s, struct cl *c, const char *text)
{
    SAY(c, text);
    return take_request(s).id;
}

static const struct {
    const char *ask;
    unsigned status;
    enum http_framing framing;
    uint64_t length;
    const char *body, *want; /* want: behind X-From */
    bool end, closes;
} shapes[] = {
    {GET_OF("/"), 200, HTTP_LENGTH, 3, "abc", "Content-Length: 3\r\n\r\nabc", true, false},
    {GET_OF("/"), 200, HTTP_LENGTH, 3, "abc", "Content-Length: 3\r\n\r\nabc", false, false},
    {GET_OF("/"), 200, HTTP_LENGTH, 0, "", "Content-Length: 0\r\n\r\n", true, false},
    {GET_OF("/"), 200, HTTP_CHUNKED, 0, "abc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", false,
     false},
    {GET_OF("/"), 200, HTTP_CHUNKED, 0, "abc", "Content-Length: 3\r\n\r\nabc", true, false},
    {GET_OF("/"), 200, HTTP_CHUNKED, 0, "", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false, false},
    {GET_OF("/"), 200, HTTP_NO_BODY, 0, "", "Content-Length: 0\r\n\r\n", true, false},
    {GET_OF("/"), 204, HTTP_NO_BODY, 0, "", "\r\n", true, false},
    {GET_OF("/"), 304, HTTP_NO_BODY, 0, "", "\r\n", true, false},
    {GET_OF("/"), 304, HTTP_LENGTH, 9, "", "\r\n", true, false},
    {"HEAD http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 200, HTTP_LENGTH, 9, "", "Content-Length: 9\r\n\r\n",
     true, false},
    {"HEAD http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 200, HTTP_CHUNKED, 0, "",
     "Transfer-Encoding: chunked\r\n\r\n", false, false},
    {"HEAD http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 200, HTTP_NO_BODY, 0, "", "\r\n", true, false},
    {"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", 200, HTTP_LENGTH, 3, "abc",
     "Connection: close\r\nContent-Length: 3\r\n\r\nabc", false, true},
    {"GET http://a.test/ HTTP/1.0\r\n\r\n", 200, HTTP_LENGTH, 3, "abc",
     "Connection: close\r\nContent-Length: 3\r\n\r\nabc", false, true},
    {"GET http://a.test/ HTTP/1.0\r\n\r\n", 200, HTTP_CHUNKED, 0, "abc", "Connection: close\r\n\r\nabc", false, true},
    {"GET http://a.test/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, HTTP_CHUNKED, 0, "abc",
     "Connection: close\r\n\r\nabc", false, true},
    {"GET http://a.test/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, HTTP_CHUNKED, 0, "abc",
     "Connection: keep-alive\r\nContent-Length: 3\r\n\r\nabc", true, false},
};

static void each_answer_says_where_it_ends(void **state)
{
    char want[300];
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        cl_open(&s, &c);
        uint64_t id = ask_for(&s, &c, shapes[i].ask);
        give_answer(&s, id, shapes[i].status, shapes[i].framing, shapes[i].length, shapes[i].end,
                    span_str(shapes[i].body));
        if (!shapes[i].end)
            give_end(&s, id, true);
        snprintf(want, sizeof(want), "HTTP/1.1 %u OK\r\nX-From: upstream\r\n%s", shapes[i].status, shapes[i].want);
        if (shapes[i].closes) {
            assert_int_equal(cl_end(&c), END_FIN);
        } else {
            uint64_t next = ask_for(&s, &c, GET_OF("/next")); /* it ended, and the connection did not */
            give_reply(&s, next, 200, "", false);
            snprintf(want + strlen(want), sizeof(want) - strlen(want),
                     "HTTP/1.1 200 Said so\r\nContent-Length: 0\r\n\r\n");
        }
        cl_is(&c, want);
        cl_close(&c);
    }
    assert_int_equal(s.f->nclients, 0);
    stage_close(&s);
}

static void our_own_answers_fit_the_request(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    give_reply(&s, ask_for(&s, &c, "HEAD http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"), 403, "words", false);
    cl_is(&c, "HTTP/1.1 403 Said so\r\nContent-Length: 5\r\n\r\n");
    give_reply(&s, ask_for(&s, &c, GET_OF("/")), 204, "", false);
    cl_is(&c, "HTTP/1.1 204 Said so\r\n\r\n");
    give_reply(&s, ask_for(&s, &c, GET_OF("/")), 503, "words", true);
    cl_is(&c, "HTTP/1.1 503 Said so\r\nConnection: close\r\nContent-Length: 5\r\n\r\nwords");
    assert_int_equal(cl_end(&c), END_FIN);
    cl_close(&c);
    stage_close(&s);
}

/* The upstream's side of a relay with as much credit as the front gave. */
struct flow {
    uint64_t id;
    size_t sent, total, credit, most;
};

static void flow_on(struct stage *s, struct flow *w)
{
    while (s->carrier.first != NULL) {
        struct got g = take(s, &s->carrier, M_ANSWER_CREDIT);
        struct msg_in m = msg_in(g.payload);
        assert_int_equal(g.id, w->id);
        w->credit += msg_get_u32(&m);
    }
    while (w->credit > 0 && w->sent < w->total) {
        size_t n = w->credit < 16384 ? w->credit : 16384;
        n = n < w->total - w->sent ? n : w->total - w->sent;
        give_body(s, w->id, span_of(filler + w->sent, n));
        w->sent += n;
        w->credit -= n;
    }
    settle(s);
    size_t queued = s->f->clients ? conn_queued(s->f->clients->conn) : 0;
    w->most = queued > w->most ? queued : w->most;
}

/* What is not all must not look like all. */
static void a_cut_answer_is_seen_to_be_cut(void **state)
{
    static const struct {
        enum http_framing framing;
        uint64_t length;
        const char *more;
        bool ok;
    } cuts[] = {{HTTP_CHUNKED, 0, "", false},
                {HTTP_LENGTH, 9, "", false},
                {HTTP_LENGTH, 9, "", true},
                {HTTP_LENGTH, 4, "more", false},
                {HTTP_CHUNKED, 0, "x", false}};
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (size_t i = 0; i < 2 * sizeof(cuts) / sizeof(cuts[0]); i++) {
        bool tls = i % 2;
        if (tls)
            cl_tunnel(&s, &c, "a.test");
        else
            cl_open(&s, &c);
        uint64_t id = ask_for(&s, &c, tls ? "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n" : GET_OF("/"));
        give_answer(&s, id, 200, cuts[i / 2].framing, cuts[i / 2].length, false, SPAN("abc"));
        cl_expect(&c, "abc");
        if (cuts[i / 2].more[0])
            give_body(&s, id, span_str(cuts[i / 2].more));
        settle(&s);
        give_end(&s, id, cuts[i / 2].ok);
        enum ending how = cl_end(&c);
        assert_int_equal(how, tls ? END_CUT : END_FIN);
        assert_false(cl_has(&c, "0\r\n\r\n"));
        if (cuts[i / 2].length)
            assert_true(cl_has(&c, "\r\n\r\nabc") && !cl_has(&c, "abcmore"));
        assert_int_equal(take(&s, &s.judge, M_CANCEL).id, id); /* it was not delivered */
        cl_close(&c);
    }
    /* Where only the end of the connection says so, it is no proper end. */
    cl_open(&s, &c);
    uint64_t id = ask_for(&s, &c, "GET http://a.test/ HTTP/1.0\r\n\r\n");
    give_answer(&s, id, 200, HTTP_CHUNKED, 0, false, SPAN("abc"));
    cl_expect(&c, "abc");
    give_end(&s, id, false);
    assert_int_equal(cl_end(&c), END_RESET);
    cl_close(&c);
    stage_close(&s);
}

/* Nor if much of it is still queued, and the client ends its own side. */
static void a_cut_answer_does_not_end_properly_later(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    s.f->limits.close_ms = 20;
    cl_open(&s, &c);
    struct flow w = {.total = sizeof(filler), .credit = sizeof(filler)};
    w.id = ask_for(&s, &c, "GET http://a.test/ HTTP/1.0\r\n\r\n");
    give_answer(&s, w.id, 200, HTTP_CHUNKED, 0, false, SPAN("abc"));
    while (conn_queued(s.f->clients->conn) == 0) {
        w.credit = 64 * 1024;
        flow_on(&s, &w);
    }
    give_end(&s, w.id, false);
    UNTIL(&s, s.f->clients->state == CLIENT_CLOSING);
    shutdown(c.fd, SHUT_WR);
    UNTIL(&s, s.f->clients->eof);
    assert_int_equal(cl_end(&c), END_RESET);
    while (s.carrier.first != NULL)
        take(&s, &s.carrier, M_ANSWER_CREDIT);
    cl_close(&c);
    stage_close(&s);
}

/* A change of state that cannot be: nothing more is passed on, and the client does not take it for an end. */
static void an_impossible_change_cuts_the_connection(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    s.f->limits.close_ms = 20;
    cl_open(&s, &c);
    uint64_t id = ask_for(&s, &c, GET_OF("/"));
    client_change(s.f->clients, CLIENT_TUNNEL);
    assert_int_equal(s.f->clients->state, CLIENT_CLOSING);
    give_answer(&s, id, 200, HTTP_LENGTH, 3, true, SPAN("abc"));
    assert_int_equal(cl_end(&c), END_RESET);
    assert_int_equal(c.in.n, 0);
    assert_int_equal(take(&s, &s.judge, M_CANCEL).id, id);
    cl_close(&c);
    stage_close(&s);
}

static void nonsense_of_the_carrier_ends_the_connection(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    for (int i = 0; i < 5; i++) {
        cl_open(&s, &c);
        uint64_t id = ask_for(&s, &c, GET_OF("/"));
        if (i == 0)
            give_body(&s, id, SPAN("before its head"));
        else if (i == 1)
            give_end(&s, id, true);
        else if (i == 2)
            give_answer(&s, id, 103, HTTP_NO_BODY, 0, false, SPAN_NONE);
        else if (i == 3)
            assert_int_equal(chan_send(s.carrier.chan, M_ANSWER, id, SPAN("x")), 0);
        else {
            give_answer(&s, id, 200, HTTP_LENGTH, 3, false, SPAN("abc"));
            give_answer(&s, id, 200, HTTP_LENGTH, 3, true, SPAN("abc"));
        }
        assert_true(cl_end(&c));
        assert_true(!cl_has(&c, "abcHTTP") && !cl_has(&c, "before"));
        assert_int_equal(take(&s, &s.judge, M_CANCEL).id, id);
        cl_close(&c);
    }
    stage_close(&s);
}

static void requests_in_one_segment_are_decided_in_turn(void **state)
{
    enum { MANY = 100 };
    struct stage s;
    struct cl c;
    struct dynbuf all;
    char path[20];
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    dynbuf_init(&all, 64 * 1024);
    for (int i = 0; i < MANY; i++)
        (void)dynbuf_addf(&all, "%s http://a.test/%d HTTP/1.1\r\nHost: a.test\r\n\r\n", i % 2 ? "DELETE" : "GET", i);
    dynbuf_add(&all, SPAN("garbage\r\n\r\n"));
    cl_say(&c, dynbuf_span(&all));
    dynbuf_free(&all);
    for (int i = 0; i < MANY; i++) {
        struct ask a = take_request(&s);
        snprintf(path, sizeof(path), "/%d", i);
        assert_true(span_eq(a.r.path, span_str(path)));
        silent(&s, &s.judge); /* the next one waits for this one's answer */
        give_reply(&s, a.id, 200, path, false);
        cl_expect(&c, path);
    }
    cl_expect(&c, "HTTP/1.1 400 ");
    assert_int_equal(cl_end(&c), END_FIN);
    cl_close(&c);
    stage_close(&s);
    covers("A31 A33");
}

static void behind_a_held_request_little_is_read(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    uint64_t id = ask_for(&s, &c, GET_OF("/held"));
    size_t sent = 0, before;
    do {
        before = sent;
        for (int i = 0; i < 20; i++) {
            ssize_t n = write(c.fd, filler, sizeof(filler));
            sent += n > 0 ? (size_t)n : 0;
            turn(&s);
        }
    } while (sent > before);
    assert_int_equal(conn_input(s.f->clients->conn).n, FRONT_INPUT_MAX);
    silent(&s, &s.judge);
    give_reply(&s, id, 200, "decided", false);
    cl_expect(&c, "decided");
    cl_expect(&c, "HTTP/1.1 400 ");
    silent(&s, &s.judge);
    cl_close(&c);
    stage_close(&s);
    covers("A31");
}

static void a_slow_reader_holds_the_upstream_back(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    for (size_t i = 0; i < sizeof(filler); i++)
        filler[i] = (uint8_t)('a' + i * 7 % 26);
    stage_open(&s);
    for (int tls = 0; tls < 2; tls++) {
        if (tls)
            cl_tunnel(&s, &c, "a.test");
        else
            cl_open(&s, &c);
        struct flow w = {.total = sizeof(filler), .credit = ANSWER_WINDOW};
        w.id = ask_for(&s, &c, tls ? "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n" : GET_OF("/"));
        give_answer(&s, w.id, 200, HTTP_LENGTH, w.total, false, SPAN_NONE);
        for (size_t before = 1; before != w.sent;) { /* until nothing moves: the client reads nothing */
            before = w.sent;
            for (int i = 0; i < 20; i++)
                flow_on(&s, &w);
        }
        assert_true(w.sent < w.total);
        for (uint64_t until = now_ms() + 20000; c.in.n < w.total && now_ms() < until; cl_read(&c))
            flow_on(&s, &w);
        assert_true(w.most < CONN_OUT_LOW + ANSWER_WINDOW + 32 * 1024);
        size_t head = span_find(dynbuf_span(&c.in), SPAN("\r\n\r\n")) + 4;
        give_end(&s, w.id, true);
        UNTIL(&s, (cl_read(&c), c.in.n == head + w.total));
        assert_true(span_eq(span_from(dynbuf_span(&c.in), head), span_of(filler, w.total)));
        cl_forget(&c);
        give_reply(&s, ask_for(&s, &c, tls ? "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n" : GET_OF("/")), 200, "on",
                   false);
        cl_expect(&c, "on");
        while (s.carrier.first != NULL)
            take(&s, &s.carrier, M_ANSWER_CREDIT);
        cl_close(&c);
    }
    stage_close(&s);
    covers("F2");
}

static void answers_that_are_not_read_hold_the_next_request_back(void **state)
{
    enum { MANY = 40, EACH = 200 * 1024 };
    struct stage s;
    struct cl c;
    size_t asked = 0;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    for (int i = 0; i < MANY; i++)
        SAY(&c, GET_OF("/"));
    for (int quiet = 0; quiet < 50; quiet++) {
        settle(&s);
        if (s.judge.first == NULL)
            continue;
        uint64_t id = take_request(&s).id;
        give_answer(&s, id, 200, HTTP_LENGTH, EACH, true, span_of(filler, EACH));
        asked++;
        quiet = 0;
    }
    assert_true(asked < MANY);
    assert_true(conn_queued(s.f->clients->conn) < 512 * 1024);
    uint64_t until = now_ms() + 20000;
    while (c.in.n < (size_t)MANY * EACH && now_ms() < until) {
        cl_read(&c);
        settle(&s);
        if (s.judge.first == NULL)
            continue;
        uint64_t id = take_request(&s).id;
        give_answer(&s, id, 200, HTTP_LENGTH, EACH, true, span_of(filler, EACH));
    }
    UNTIL(&s, (cl_read(&c), c.in.n > (size_t)MANY * EACH));
    assert_int_equal(c.ended, END_NOT_YET);
    cl_close(&c);
    stage_close(&s);
    covers("A31 F2");
}

static void wait_ms(struct stage *s, uint64_t ms)
{
    for (uint64_t until = now_ms() + ms; now_ms() < until;)
        turn(s);
}

static void only_who_does_not_read_is_cut(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    s.f->limits.write_ms = 25;
    cl_open(&s, &c);
    uint64_t id = ask_for(&s, &c, GET_OF("/events"));
    give_answer(&s, id, 200, HTTP_CHUNKED, 0, false, SPAN("first"));
    cl_expect(&c, "first");
    wait_ms(&s, 90); /* the upstream is silent: nobody's fault */
    give_body(&s, id, SPAN("second"));
    cl_expect(&c, "second");
    wait_ms(&s, 60);
    struct flow w = {.id = id, .total = sizeof(filler), .credit = ANSWER_WINDOW};
    for (uint64_t until = now_ms() + 5000; s.f->nclients > 0 && now_ms() < until;)
        flow_on(&s, &w);
    assert_int_equal(s.f->nclients, 0);
    assert_true(w.sent < w.total);
    cl_end(&c);
    assert_false(cl_has(&c, "\r\n0\r\n\r\n"));
    while (s.carrier.first != NULL)
        take(&s, &s.carrier, M_ANSWER_CREDIT);
    assert_int_equal(take(&s, &s.judge, M_CANCEL).id, id);
    cl_close(&c);
    stage_close(&s);
    covers("F2");
}

/* The last bytes of a connection that ends are given as much time as any. */
static void a_slow_reader_gets_the_end_too(void **state)
{
    enum { SIZE = 700 * 1024 };
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    s.f->limits.close_ms = 10;
    cl_open(&s, &c);
    struct flow w = {.total = SIZE, .credit = ANSWER_WINDOW};
    w.id = ask_for(&s, &c, "GET http://a.test/ HTTP/1.0\r\n\r\n");
    give_answer(&s, w.id, 200, HTTP_CHUNKED, 0, false, SPAN_NONE);
    while (w.sent < w.total) {
        uint8_t some[8192];
        flow_on(&s, &w);
        if (w.credit == 0) {
            ssize_t n = read(c.fd, some, sizeof(some));
            if (n > 0)
                dynbuf_add(&c.in, span_of(some, (size_t)n));
        }
    }
    give_end(&s, w.id, true);
    wait_ms(&s, 50);
    assert_int_equal(s.f->nclients, 1); /* still there, and counted */
    assert_int_equal(cl_end(&c), END_FIN);
    size_t head = span_find(dynbuf_span(&c.in), SPAN("\r\n\r\n")) + 4;
    assert_true(span_eq(span_from(dynbuf_span(&c.in), head), span_of(filler, SIZE)));
    while (s.carrier.first != NULL)
        take(&s, &s.carrier, M_ANSWER_CREDIT);
    UNTIL(&s, s.f->nclients == 0);
    cl_close(&c);

    s.f->limits.write_ms = 30; /* and who never reads is let go */
    cl_open(&s, &c);
    struct flow v = {.total = sizeof(filler), .credit = sizeof(filler)};
    v.id = ask_for(&s, &c, "GET http://a.test/ HTTP/1.0\r\n\r\n");
    give_answer(&s, v.id, 200, HTTP_CHUNKED, 0, false, SPAN_NONE);
    for (int i = 0; i < 20 && conn_queued(s.f->clients->conn) == 0; i++) {
        give_body(&s, v.id, span_of(filler, 256 * 1024));
        settle(&s);
    }
    give_end(&s, v.id, true);
    UNTIL(&s, s.f->nclients == 0);
    cl_close(&c);
    stage_close(&s);
    covers("F2");
}

static void who_leaves_in_the_middle_is_cancelled(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    cl_open(&s, &c);
    uint64_t id = ask_for(&s, &c, GET_OF("/"));
    give_answer(&s, id, 200, HTTP_CHUNKED, 0, false, SPAN("some"));
    cl_expect(&c, "some");
    cl_close(&c);
    assert_int_equal(take(&s, &s.judge, M_CANCEL).id, id);
    assert_int_equal(s.f->nclients, 0);
    /* Gone so quickly that the answer's first write fails. */
    cl_open(&s, &c);
    id = ask_for(&s, &c, GET_OF("/"));
    struct linger none = {1, 0};
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    give_answer(&s, id, 200, HTTP_LENGTH, 8, false, SPAN("some"));
    give_body(&s, id, SPAN("more"));
    give_end(&s, id, true);
    cl_close(&c);
    UNTIL(&s, s.f->nclients == 0);
    while (s.judge.first != NULL)
        take(&s, &s.judge, M_CANCEL);
    /* What was answered before the end of the client's side is still delivered. */
    cl_open(&s, &c);
    id = ask_for(&s, &c, GET_OF("/"));
    give_answer(&s, id, 200, HTTP_LENGTH, 8, true, SPAN("complete"));
    shutdown(c.fd, SHUT_WR);
    while (s.judge.first != NULL)
        take(&s, &s.judge, M_CANCEL);
    cl_end(&c);
    cl_close(&c);
    stage_close(&s);
    covers("A34");
}

/* When the judge ends nobody here knows whether a request was sent; what has a 5xx many clients send again. */
static void a_write_that_may_have_left_is_not_to_be_repeated(void **state)
{
    static const struct {
        const char *ask, *status, *body;
    } rows[] = {
        {GET_OF("/r"), "HTTP/1.1 503 ", "\"retry\":true"},
        {"HEAD http://a.test/r HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.1 503 ", "\r\n\r\n"},
        {"DELETE http://a.test/w HTTP/1.1\r\nHost: a.test\r\n\r\n", "HTTP/1.1 409 ", "\"retry\":false"},
        {"POST http://a.test/w HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\na", "HTTP/1.1 409 ",
         "\"retry\":false"},
    };
    enum { ROWS = sizeof(rows) / sizeof(*rows) };
    struct stage s;
    struct cl c[ROWS];
    (void)state;
    stage_open(&s);
    for (size_t i = 0; i < ROWS; i++) {
        cl_open(&s, &c[i]);
        ask_for(&s, &c[i], rows[i].ask);
    }
    stage_peer(&s, ROLE_JUDGE);
    for (size_t i = 0; i < ROWS; i++) {
        cl_expect(&c[i], rows[i].status);
        cl_expect(&c[i], rows[i].body);
        assert_int_equal(cl_end(&c[i]), END_FIN);
        cl_close(&c[i]);
    }
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_says_where_it_ends),
        cmocka_unit_test(our_own_answers_fit_the_request),
        cmocka_unit_test(a_cut_answer_is_seen_to_be_cut),
        cmocka_unit_test(a_cut_answer_does_not_end_properly_later),
        cmocka_unit_test(an_impossible_change_cuts_the_connection),
        cmocka_unit_test(nonsense_of_the_carrier_ends_the_connection),
        cmocka_unit_test(requests_in_one_segment_are_decided_in_turn),
        cmocka_unit_test(behind_a_held_request_little_is_read),
        cmocka_unit_test(a_slow_reader_holds_the_upstream_back),
        cmocka_unit_test(answers_that_are_not_read_hold_the_next_request_back),
        cmocka_unit_test(only_who_does_not_read_is_cut),
        cmocka_unit_test(a_slow_reader_gets_the_end_too),
        cmocka_unit_test(who_leaves_in_the_middle_is_cancelled),
        cmocka_unit_test(a_write_that_may_have_left_is_not_to_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
