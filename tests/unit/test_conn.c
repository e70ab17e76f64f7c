/* common/net/conn: streams, limits, ends; TLS against itself, with certificates right and wrong.
 * attacks.md: A39 C4 C6 C26 D17 D18 D19 F2 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "certs.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "common/net/tls_in.h"

enum { IN_MAX = 64 * 1024, EVENTS = CONN_TIMEOUT + 1 };

struct side {
    struct loop *l;
    struct conn *c;
    unsigned seen[EVENTS];
    char order[64]; /* one letter an event */
    struct dynbuf got;
    size_t stop_at;   /* bytes after which the loop stops */
    unsigned stop_on; /* bit of events */
    unsigned free_on;
    bool keep; /* leave the input where it is */
    size_t largest;
    char why[160];
};

static void on_event(void *arg, struct conn *c, enum conn_event ev)
{
    static const char letters[] = "FCRDETLW";
    struct side *s = arg;
    size_t n = strlen(s->order);
    s->seen[ev]++;
    if (n + 1 < sizeof(s->order) && (n == 0 || s->order[n - 1] != letters[ev]))
        s->order[n] = letters[ev];
    if (ev == CONN_FAILED)
        snprintf(s->why, sizeof(s->why), "%s", conn_why(c));
    struct span in = conn_input(c);
    if (in.n > s->largest)
        s->largest = in.n;
    if (ev == CONN_DATA && !s->keep) {
        assert_int_equal(dynbuf_add(&s->got, in), 0);
        conn_consume(c, in.n);
        if (s->stop_at > 0 && s->got.n >= s->stop_at)
            loop_stop(s->l);
    }
    if (s->stop_on & 1u << ev)
        loop_stop(s->l);
    if (s->free_on & 1u << ev)
        conn_free(&s->c);
}

struct world {
    struct loop *l;
    struct side a, b;
    int fd[2];
};

static void side_init(struct side *s, struct loop *l)
{
    *s = (struct side){.l = l};
    dynbuf_init(&s->got, 16 * 1024 * 1024);
}

static void open_world(struct world *w)
{
    w->l = loop_new();
    assert_non_null(w->l);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w->fd), 0);
    side_init(&w->a, w->l);
    side_init(&w->b, w->l);
    w->a.c = conn_new(w->l, w->fd[0], IN_MAX, on_event, &w->a);
    w->b.c = conn_new(w->l, w->fd[1], IN_MAX, on_event, &w->b);
    assert_non_null(w->a.c);
    assert_non_null(w->b.c);
}

static void close_world(struct world *w)
{
    conn_free(&w->a.c);
    conn_free(&w->b.c);
    dynbuf_free(&w->a.got);
    dynbuf_free(&w->b.got);
    loop_free(&w->l);
}

static void too_long(void *arg)
{
    (void)arg;
    fail_msg("the loop did not end in time");
}

static void run(struct loop *l)
{
    struct timer *t = timer_new(l, too_long, NULL);
    timer_set(t, 20000);
    assert_int_equal(loop_run(l), 0);
    timer_free(&t);
}

struct turns {
    struct loop *l;
    int left;
};

static void turn(void *arg)
{
    struct turns *t = arg;
    if (t->left-- == 0)
        loop_stop(t->l);
    else
        assert_int_equal(loop_defer(t->l, turn, t), 0);
}

static void settle(struct loop *l)
{
    struct turns t = {l, 40};
    assert_int_equal(loop_defer(l, turn, &t), 0);
    assert_int_equal(loop_run(l), 0);
}

static unsigned open_fds(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

/* ---- plain ---- */

/* Send `total` bytes of a known pattern through a conn whose output is capped, refilling when it drains. */
static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 7 + (i >> 11));
}

static void fill(struct conn *c, size_t *sent, size_t total)
{
    static uint8_t block[48 * 1024];
    while (*sent < total && conn_queued(c) < CONN_OUT_MAX / 2) {
        size_t n = total - *sent < sizeof(block) ? total - *sent : sizeof(block);
        for (size_t i = 0; i < n; i++)
            block[i] = pattern(*sent + i);
        assert_int_equal(conn_write(c, span_of(block, n)), 0);
        *sent += n;
    }
}

static void pump(struct world *w, size_t total)
{
    size_t sent = 0;
    unsigned drained = 0;
    while (sent < total) {
        fill(w->a.c, &sent, total);
        w->a.stop_on = sent < total ? 1u << CONN_DRAINED : 0;
        w->b.stop_at = total;
        run(w->l);
        drained = w->a.seen[CONN_DRAINED];
    }
    w->a.stop_on = 0;
    if (w->b.got.n < total)
        run(w->l);
    assert_true(drained > 0);
    assert_int_equal(w->b.got.n, total);
    for (size_t i = 0; i < total; i++)
        if (w->b.got.p[i] != pattern(i))
            fail_msg("byte %zu differs", i);
    assert_true(w->b.largest <= IN_MAX);
}

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

/* ---- TLS ---- */

struct keys {
    EVP_PKEY *ca_key;
    X509 *ca;
    struct span ca_der, ca_pem;
    struct tls_key *key;
    struct tls_server *server;
    struct tls_client *client;
} keys;

static const struct cert_wish good_ca = {
    .cn = "test CA", .basic = "critical,CA:TRUE", .usage = "critical,keyCertSign,cRLSign"};
static const struct cert_wish good_leaf = {
    .san = "DNS:a.test", .eku = "serverAuth", .usage = "critical,digitalSignature", .basic = "critical,CA:FALSE"};

static EVP_PKEY *pub_of(const struct tls_key *k)
{
    return k->pkey;
}

static struct tls_leaf *leaf_for(const struct cert_wish *w)
{
    X509 *x = cert_make(w, pub_of(keys.key), keys.ca, keys.ca_key);
    struct span der = cert_der(x);
    struct tls_leaf *leaf = tls_leaf_new(keys.key, der, keys.ca_der);
    assert_non_null(leaf);
    OPENSSL_free((void *)der.p);
    X509_free(x);
    return leaf;
}

static int keys_new(void **state)
{
    struct err e;
    (void)state;
    keys.ca_key = cert_key_ec("P-256");
    keys.ca = cert_make(&good_ca, keys.ca_key, NULL, keys.ca_key);
    keys.ca_der = cert_der(keys.ca);
    keys.ca_pem = cert_pem(keys.ca);
    keys.key = tls_key_new();
    keys.server = tls_server_new(&e);
    keys.client = tls_client_new(keys.ca_pem, &e);
    return keys.key != NULL && keys.server != NULL && keys.client != NULL ? 0 : -1;
}

static int keys_free(void **state)
{
    (void)state;
    EVP_PKEY_free(keys.ca_key);
    X509_free(keys.ca);
    OPENSSL_free((void *)keys.ca_der.p);
    free((void *)keys.ca_pem.p);
    tls_key_free(&keys.key);
    tls_server_free(&keys.server);
    tls_client_free(&keys.client);
    return 0;
}

/* a is the client, b the server; until both are ready or one has failed. */
static void shake(struct world *w, struct tls_client *t, struct tls_leaf *leaf, const char *asked, const char *served)
{
    unsigned ends = 1u << CONN_TLS_READY | 1u << CONN_FAILED;
    open_world(w);
    w->a.stop_on = w->b.stop_on = ends;
    assert_int_equal(conn_tls_accept(w->b.c, keys.server, leaf, span_str(served)), 0);
    assert_int_equal(conn_tls_connect(w->a.c, t, span_str(asked)), 0);
    for (int i = 0; i < 2 && !(w->a.seen[CONN_FAILED] || w->b.seen[CONN_FAILED]); i++)
        if (!w->a.seen[CONN_TLS_READY] || !w->b.seen[CONN_TLS_READY])
            run(w->l);
    settle(w->l);
    w->a.stop_on = w->b.stop_on = 0;
}

static void test_tls(void **state)
{
    (void)state;
    unsigned before = open_fds();
    struct tls_leaf *leaf = leaf_for(&good_leaf);
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        struct world w;
        SSL_CTX_set_max_proto_version(keys.client->ctx, version);
        shake(&w, keys.client, leaf, "a.test", "a.test");
        assert_int_equal(w.a.seen[CONN_TLS_READY], 1);
        assert_int_equal(w.b.seen[CONN_TLS_READY], 1);
        pump(&w, 5 * 1024 * 1024);
        assert_int_equal(conn_write(w.b.c, SPAN("bye")), 0);
        conn_finish(&w.b.c); /* close_notify */
        w.a.stop_on = 1u << CONN_EOF;
        run(w.l);
        assert_memory_equal(w.a.got.p, "bye", 3);
        assert_int_equal(w.a.seen[CONN_TRUNCATED], 0);
        assert_string_equal(w.a.order + strlen(w.a.order) - 2, "DE");
        conn_free(&w.a.c);
        settle(w.l); /* the server side lingers until it sees that */
        close_world(&w);
    }
    SSL_CTX_set_max_proto_version(keys.client->ctx, 0);
    tls_leaf_free(&leaf);
    assert_int_equal(open_fds(), before);
}

/* D19: the end of the socket is not the end of the message. */
static void test_truncated(void **state)
{
    struct world w;
    (void)state;
    struct tls_leaf *leaf = leaf_for(&good_leaf);
    shake(&w, keys.client, leaf, "a.test", "a.test");
    assert_int_equal(conn_write(w.b.c, SPAN("half")), 0);
    settle(w.l);
    conn_free(&w.b.c);
    w.a.stop_on = 1u << CONN_TRUNCATED | 1u << CONN_EOF;
    run(w.l);
    assert_int_equal(w.a.seen[CONN_TRUNCATED], 1);
    assert_int_equal(w.a.seen[CONN_EOF], 0);
    assert_int_equal(w.a.got.n, 4);
    close_world(&w);
    tls_leaf_free(&leaf);
}

/* C4, C26: the name that was decided, or an alert. */
static void test_sni(void **state)
{
    static const struct {
        const char *asked, *served;
        bool fine;
    } rows[] = {
        {"a.test", "a.test", true},
        {"A.Test", "a.test", true},
        {"b.test", "a.test", false},
        {"a.test.", "a.test", false},
        {"a.tes", "a.test", false},
        {"a.testx", "a.test", false},
        {"127.0.0.1", "a.test", false} /* sends none */,
        {"127.0.0.1", "127.0.0.1", true},
        {"a.test", "127.0.0.1", false},
    };
    struct cert_wish wish = good_leaf;
    (void)state;
    wish.san = "DNS:a.test,DNS:b.test,DNS:a.tes,DNS:a.testx,IP:127.0.0.1";
    struct tls_leaf *leaf = leaf_for(&wish);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct world w;
        shake(&w, keys.client, leaf, rows[i].asked, rows[i].served);
        if (rows[i].fine != (w.b.seen[CONN_TLS_READY] == 1))
            fail_msg("SNI of %s where %s is served: %s", rows[i].asked, rows[i].served, w.a.why);
        if (!rows[i].fine)
            assert_non_null(strstr(w.a.why, "unrecognized name"));
        close_world(&w);
    }
    tls_leaf_free(&leaf);
}

/* A39, C6: what is offered. */
static void test_offers(void **state)
{
    static const unsigned char h2[] = "\x02h2", both[] = "\x02h2\x08http/1.1";
    struct err e;
    struct world w;
    (void)state;
    struct tls_leaf *leaf = leaf_for(&good_leaf);
    struct tls_client *t = tls_client_new(keys.ca_pem, &e);
    assert_non_null(t);

    SSL_CTX_set_alpn_protos(t->ctx, h2, sizeof(h2) - 1);
    shake(&w, t, leaf, "a.test", "a.test");
    assert_int_equal(w.b.seen[CONN_FAILED], 1);
    assert_non_null(strstr(w.a.why, "no application protocol"));
    close_world(&w);

    SSL_CTX_set_alpn_protos(t->ctx, both, sizeof(both) - 1);
    shake(&w, t, leaf, "a.test", "a.test");
    assert_int_equal(w.a.seen[CONN_TLS_READY], 1);
    close_world(&w);

    SSL_CTX_set_alpn_protos(t->ctx, NULL, 0);
    shake(&w, t, leaf, "a.test", "a.test");
    assert_int_equal(w.a.seen[CONN_TLS_READY], 1);
    close_world(&w);

    SSL_CTX_set_security_level(t->ctx, 0);
    SSL_CTX_set_cipher_list(t->ctx, "ALL");
    SSL_CTX_set_min_proto_version(t->ctx, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(t->ctx, TLS1_1_VERSION);
    shake(&w, t, leaf, "a.test", "a.test");
    assert_int_equal(w.b.seen[CONN_FAILED], 1);
    close_world(&w);
    tls_client_free(&t);

    /* The server asks for a client certificate: it gets none, and that is all. */
    t = tls_client_new(keys.ca_pem, &e);
    SSL_CTX_set_verify(keys.server->ctx, SSL_VERIFY_PEER, NULL);
    shake(&w, t, leaf, "a.test", "a.test");
    assert_int_equal(w.a.seen[CONN_TLS_READY], 1);
    close_world(&w);
    SSL_CTX_set_verify(keys.server->ctx, SSL_VERIFY_NONE, NULL);
    tls_client_free(&t);
    tls_leaf_free(&leaf);
}

/* C6: the hello comes byte by byte, or has come before TLS was begun. */
static void test_hello_in_pieces(void **state)
{
    (void)state;
    struct tls_leaf *leaf = leaf_for(&good_leaf);
    for (int before = 0; before < 2; before++) {
        struct world w;
        uint8_t hello[4096];
        open_world(&w);
        conn_free(&w.b.c);
        /* A client whose words are carried by hand. */
        int fd[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
        w.b.c = conn_new(w.l, fd[0], IN_MAX, on_event, &w.b);
        assert_non_null(w.b.c);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w.fd), 0);
        conn_free(&w.a.c);
        w.a.c = conn_new(w.l, w.fd[0], IN_MAX, on_event, &w.a);
        assert_int_equal(conn_tls_connect(w.a.c, keys.client, SPAN("a.test")), 0);
        settle(w.l);
        ssize_t n = read(w.fd[1], hello, sizeof(hello));
        assert_true(n > 100);
        if (before) {
            w.b.keep = true;
            assert_int_equal(write(fd[1], hello, (size_t)n), n);
            settle(w.l);
            assert_int_equal(conn_input(w.b.c).n, n);
            w.b.keep = false;
            assert_int_equal(conn_write(w.b.c, SPAN("HTTP/1.1 200 \r\n\r\n")), 0); /* in the clear, first */
            assert_int_equal(conn_tls_accept(w.b.c, keys.server, leaf, SPAN("a.test")), 0);
            assert_int_equal(conn_input(w.b.c).n, 0);
            settle(w.l);
            char first[17];
            assert_int_equal(read(fd[1], first, 17), 17);
            assert_memory_equal(first, "HTTP/1.1 200 \r\n\r\n", 17);
        } else {
            assert_int_equal(conn_tls_accept(w.b.c, keys.server, leaf, SPAN("a.test")), 0);
            for (ssize_t i = 0; i < n; i++) {
                assert_int_equal(write(fd[1], hello + i, 1), 1);
                settle(w.l);
            }
        }
        uint8_t flight[16 * 1024];
        n = read(fd[1], flight, sizeof(flight));
        assert_true(n > 500);
        for (ssize_t i = 0; i < n; i += 97)
            assert_true(write(w.fd[1], flight + i, n - i < 97 ? (size_t)(n - i) : 97) > 0);
        settle(w.l);
        assert_int_equal(w.a.seen[CONN_TLS_READY], 1);
        close(fd[1]);
        close(w.fd[1]);
        close_world(&w);
    }
    tls_leaf_free(&leaf);
}

/* Neither side speaks TLS, or speaks rubbish after a good start. */
static void test_rubbish(void **state)
{
    static const char *const rows[] = {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff", "\x80\x2e\x01\x00\x02",
                                       "\x16\x03\x01\x00\x05\x01\xff\xff\xff\xff"};
    (void)state;
    struct tls_leaf *leaf = leaf_for(&good_leaf);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct world w;
        open_world(&w);
        assert_int_equal(conn_tls_accept(w.b.c, keys.server, leaf, SPAN("a.test")), 0);
        assert_int_equal(conn_write(w.a.c, span_of(rows[i], i == 2 ? 5 : strlen(rows[i]))), 0);
        settle(w.l);
        conn_free(&w.a.c);
        if (!w.b.seen[CONN_FAILED]) {
            w.b.stop_on = 1u << CONN_FAILED;
            run(w.l);
        }
        assert_int_equal(w.b.seen[CONN_FAILED], 1);
        assert_int_equal(w.b.seen[CONN_TLS_READY], 0);
        close_world(&w);
    }
    tls_leaf_free(&leaf);
}

struct bad {
    const char *what;
    struct cert_wish w;
    const char *why; /* words to be found; NULL: any */
    const char *name;
};

#define LEAF .eku = "serverAuth", .usage = "critical,digitalSignature"

static const struct bad bads[] = {
    {"good", {.san = "DNS:a.test", LEAF}, "", NULL},
    {"good wildcard", {.san = "DNS:*.test.example", LEAF}, "", "a.test.example"},
    {"good address", {.san = "IP:127.0.0.1", LEAF}, "", "127.0.0.1"},
    {"expired", {.san = "DNS:a.test", LEAF, .from = -86400, .to = -3600}, "expired", NULL},
    {"not yet", {.san = "DNS:a.test", LEAF, .from = 3600, .to = 86400}, "not yet", NULL},
    {"another host", {.san = "DNS:b.test", LEAF}, "mismatch", NULL},
    {"address as DNS name", {.san = "DNS:127.0.0.1", LEAF}, "mismatch", "127.0.0.1"},
    {"CN only, no SAN", {.cn = "a.test", LEAF}, NULL, NULL},
    {"CN right, SAN wrong", {.cn = "a.test", .san = "DNS:b.test", LEAF}, "mismatch", NULL},
    {"CN right, SAN of another kind", {.cn = "a.test", .san = "email:x@a.test", LEAF}, "mismatch", NULL},
    {"no EKU", {.san = "DNS:a.test", .usage = "digitalSignature"}, "serverAuth", NULL},
    {"EKU clientAuth", {.san = "DNS:a.test", .eku = "clientAuth"}, NULL, NULL},
    {"EKU any only", {.san = "DNS:a.test", .eku = "anyExtendedKeyUsage"}, NULL, NULL},
    {"a CA as leaf",
     {.san = "DNS:a.test", .eku = "serverAuth", .usage = "digitalSignature,keyCertSign", .basic = "critical,CA:TRUE"},
     "CA's",
     NULL},
    {"version 1", {.cn = "a.test", .v1 = true}, NULL, NULL},
    {"partial wildcard", {.san = "DNS:f*.x.example", LEAF}, "mismatch", "foo.x.example"},
    {"wildcard in the middle", {.san = "DNS:f*o.x.example", LEAF}, "mismatch", "foo.x.example"},
    {"wildcard of a top domain", {.san = "DNS:*.com", LEAF}, "mismatch", "foo.com"},
    {"wildcard, two labels", {.san = "DNS:*.x.example", LEAF}, "mismatch", "a.b.x.example"},
    {"wildcard, apex", {.san = "DNS:*.x.example", LEAF}, "mismatch", "x.example"},
    {"double wildcard", {.san = "DNS:*.*.example", LEAF}, "mismatch", "a.b.example"},
    {"serial 0", {.san = "DNS:a.test", LEAF, .serial = "0"}, "serial", NULL},
    {"serial negative", {.san = "DNS:a.test", LEAF, .serial = "-5"}, "serial", NULL},
    {"serial of 21 bytes",
     {.san = "DNS:a.test", LEAF, .serial = "374144419156711147060143317175368453031918731001857"},
     "serial",
     NULL},
    {"AIA that is none", {.san = "DNS:a.test", LEAF, .odd = "\x30\x05nonsense"}, "authority information", NULL},
};

static void expect(const struct bad *b, struct world *w)
{
    bool good = b->why != NULL && b->why[0] == '\0';
    if (good != (w->a.seen[CONN_TLS_READY] == 1 && w->a.seen[CONN_FAILED] == 0))
        fail_msg("%s: %s", b->what, w->a.why);
    if (b->why != NULL && strstr(w->a.why, b->why) == NULL)
        fail_msg("%s: said \"%s\", not \"%s\"", b->what, w->a.why, b->why);
    assert_int_equal(w->b.got.n, 0);
}

/* D17, D18: no byte of a request leaves towards a peer that is not proven. */
static void test_certificates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bads) / sizeof(*bads); i++) {
        struct world w;
        const char *name = bads[i].name != NULL ? bads[i].name : "a.test";
        struct tls_leaf *leaf = leaf_for(&bads[i].w);
        shake(&w, keys.client, leaf, name, name);
        expect(&bads[i], &w);
        close_world(&w);
        tls_leaf_free(&leaf);
    }
}

/* A server with a key of its own, issued by `ca` (or by itself). */
static void shake_key(const struct bad *b, EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key)
{
    struct world w;
    struct tls_leaf leaf = {.pkey = key, .chain = sk_X509_new_null()};
    leaf.cert = cert_make(&b->w, key, ca, ca_key);
    if (ca != NULL)
        sk_X509_push(leaf.chain, ca);
    SSL_CTX_set_security_level(keys.server->ctx, 0);
    SSL_CTX_set_cipher_list(keys.server->ctx, "ALL");
    const char *name = b->name != NULL ? b->name : "a.test";
    shake(&w, keys.client, &leaf, name, name);
    expect(b, &w);
    close_world(&w);
    SSL_CTX_set_security_level(keys.server->ctx, 2);
    sk_X509_free(leaf.chain);
    X509_free(leaf.cert);
    EVP_PKEY_free(key);
}

static void test_keys_and_issuers(void **state)
{
    static const struct cert_wish leaf = {.san = "DNS:a.test", LEAF};
    (void)state;
    shake_key(&(struct bad){"RSA 2048", leaf, "", NULL}, cert_key_rsa(2048), keys.ca, keys.ca_key);
    shake_key(&(struct bad){"RSA 1024", leaf, NULL, NULL}, cert_key_rsa(1024), keys.ca, keys.ca_key);
    shake_key(&(struct bad){"RSA 2052", leaf, "size", NULL}, cert_key_rsa(2052), keys.ca, keys.ca_key);
    shake_key(&(struct bad){"P-384", leaf, "", NULL}, cert_key_ec("P-384"), keys.ca, keys.ca_key);
    shake_key(&(struct bad){"secp256k1", leaf, NULL, NULL}, cert_key_ec("secp256k1"), keys.ca, keys.ca_key);
    EVP_PKEY *key = cert_key_ec("P-256");
    EVP_PKEY_up_ref(key);
    shake_key(&(struct bad){"self-signed", leaf, "self", NULL}, key, NULL, key);
    EVP_PKEY_free(key);

    struct cert_wish sha1 = leaf;
    sha1.md = EVP_sha1();
    shake_key(&(struct bad){"SHA-1", sha1, NULL, NULL}, cert_key_ec("P-256"), keys.ca, keys.ca_key);

    /* Another root of the same name. */
    EVP_PKEY *other_key = cert_key_ec("P-256");
    X509 *other = cert_make(&good_ca, other_key, NULL, other_key);
    shake_key(&(struct bad){"another CA", leaf, NULL, NULL}, cert_key_ec("P-256"), other, other_key);
    X509_free(other);

    /* Name constraints of an issuer below the root. */
    struct cert_wish wish = good_ca;
    wish.cn = "constrained";
    wish.nc = "excluded;DNS:bar.x.example";
    other = cert_make(&wish, other_key, keys.ca, keys.ca_key);
    struct cert_wish wild = {.san = "DNS:*.x.example", LEAF};
    shake_key(&(struct bad){"wildcard, not excluded", wild, "", "foo.x.example"}, cert_key_ec("P-256"), other,
              other_key);
    shake_key(&(struct bad){"wildcard, excluded", wild, "vouch", "bar.x.example"}, cert_key_ec("P-256"), other,
              other_key);
    struct cert_wish plain = {.san = "DNS:bar.x.example", LEAF};
    shake_key(&(struct bad){"excluded", plain, NULL, "bar.x.example"}, cert_key_ec("P-256"), other, other_key);
    X509_free(other);

    /* An issuer that is no CA. */
    other = cert_make(&leaf, other_key, keys.ca, keys.ca_key);
    shake_key(&(struct bad){"issued by a leaf", leaf, NULL, NULL}, cert_key_ec("P-256"), other, other_key);
    X509_free(other);
    EVP_PKEY_free(other_key);
}

/* D18: what the environment says is of no interest. */
static void test_environment(void **state)
{
    struct err e;
    struct world w;
    char path[] = "/tmp/conn-roots-XXXXXX";
    (void)state;
    EVP_PKEY *k = cert_key_ec("P-256");
    X509 *other = cert_make(&good_ca, k, NULL, k);
    struct span pem = cert_pem(other);
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, keys.ca_pem.p, keys.ca_pem.n) == (ssize_t)keys.ca_pem.n);
    close(fd);
    setenv("SSL_CERT_FILE", path, 1);
    setenv("OPENSSL_CONF", path, 1);
    struct tls_client *t = tls_client_new(pem, &e);
    assert_non_null(t);
    struct tls_leaf *leaf = leaf_for(&good_leaf);
    shake(&w, t, leaf, "a.test", "a.test");
    assert_int_equal(w.a.seen[CONN_FAILED], 1);
    close_world(&w);
    unsetenv("SSL_CERT_FILE");
    unsetenv("OPENSSL_CONF");
    unlink(path);
    tls_leaf_free(&leaf);
    tls_client_free(&t);
    free((void *)pem.p);
    X509_free(other);
    EVP_PKEY_free(k);
}

static void test_settings_refused(void **state)
{
    struct err e = {""};
    (void)state;
    assert_null(tls_client_new(SPAN(""), &e));
    assert_null(tls_client_new(SPAN("no certificate in here\n"), &e));
    assert_non_null(strstr(e.text, "no certificate"));
    assert_null(tls_client_new(SPAN("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), &e));
    assert_non_null(strstr(e.text, "certificate 1"));
    /* A leaf for another key, cut short, or with something after it. */
    struct tls_key *k = tls_key_new();
    X509 *x = cert_make(&good_leaf, pub_of(keys.key), keys.ca, keys.ca_key);
    struct span der = cert_der(x);
    struct tls_leaf *leaf = tls_leaf_new(k, der, keys.ca_der);
    assert_null(leaf);
    assert_null(tls_leaf_new(keys.key, span_first(der, der.n - 1), keys.ca_der));
    assert_null(tls_leaf_new(keys.key, der, SPAN("")));
    uint8_t more[4096] = {0};
    memcpy(more, der.p, der.n);
    assert_null(tls_leaf_new(keys.key, span_of(more, der.n + 1), keys.ca_der));
    OPENSSL_free((void *)der.p);
    X509_free(x);
    tls_key_free(&k);
}

/* Freed inside each of its own events. */
static void test_free_inside(void **state)
{
    static const enum conn_event when[] = {CONN_TLS_READY, CONN_DATA, CONN_EOF, CONN_TRUNCATED, CONN_FAILED};
    (void)state;
    unsigned before = open_fds();
    struct tls_leaf *leaf = leaf_for(&good_leaf);
    for (size_t i = 0; i < sizeof(when) / sizeof(*when); i++) {
        struct world w;
        open_world(&w);
        w.a.free_on = 1u << when[i];
        assert_int_equal(conn_tls_accept(w.b.c, keys.server, leaf, SPAN("a.test")), 0);
        assert_int_equal(
            conn_tls_connect(w.a.c, keys.client, when[i] == CONN_FAILED ? SPAN("b.test") : SPAN("a.test")), 0);
        assert_int_equal(conn_write(w.b.c, SPAN("data")), 0);
        settle(w.l);
        if (when[i] == CONN_EOF)
            conn_finish(&w.b.c);
        else
            conn_free(&w.b.c);
        settle(w.l);
        assert_int_equal(w.a.seen[when[i]], 1);
        assert_null(w.a.c);
        close_world(&w);
    }
    tls_leaf_free(&leaf);
    assert_int_equal(open_fds(), before);
}

/* The limit of the input holds for decrypted bytes, and what waits inside is not forgotten. */
static void test_tls_input_cap(void **state)
{
    struct world w;
    static uint8_t big[CONN_OUT_MAX];
    (void)state;
    struct tls_leaf *leaf = leaf_for(&good_leaf);
    shake(&w, keys.client, leaf, "a.test", "a.test");
    w.b.keep = true;
    assert_int_equal(conn_write(w.a.c, span_of(big, sizeof(big))), 0);
    settle(w.l);
    assert_int_equal(conn_input(w.b.c).n, IN_MAX);
    unsigned events = w.b.seen[CONN_DATA];
    settle(w.l);
    assert_int_equal(w.b.seen[CONN_DATA], events);
    conn_end(w.a.c); /* the end waits behind the data */
    settle(w.l);
    assert_int_equal(w.b.seen[CONN_EOF], 0);
    w.b.keep = false;
    w.b.stop_on = 1u << CONN_EOF;
    conn_consume(w.b.c, IN_MAX);
    run(w.l);
    assert_int_equal(w.b.got.n, sizeof(big) - IN_MAX);
    close_world(&w);
    tls_leaf_free(&leaf);
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
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_sni),
        cmocka_unit_test(test_offers),
        cmocka_unit_test(test_hello_in_pieces),
        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_certificates),
        cmocka_unit_test(test_keys_and_issuers),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_settings_refused),
        cmocka_unit_test(test_free_inside),
        cmocka_unit_test(test_tls_input_cap),
    };
    return cmocka_run_group_tests(tests, keys_new, keys_free);
}
