/* common/net/conn over TLS against itself: names, offers, ends, limits. attacks.tsv: A39 C4 C6 C26 D19 */
#include "tests/unit/net/conn_world.h"

#include <unistd.h>

#include "common/net/conn_in.h"

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

/* A peer that has said its own end still hears ours. */
static void test_both_ends(void **state)
{
    struct world w;
    (void)state;
    struct tls_leaf *leaf = leaf_for(&good_leaf);
    shake(&w, keys.client, leaf, "a.test", "a.test");
    conn_end(w.a.c);
    w.b.stop_on = 1u << CONN_EOF;
    run(w.l);
    conn_finish(&w.b.c);
    w.a.stop_on = 1u << CONN_EOF | 1u << CONN_TRUNCATED;
    run(w.l);
    assert_int_equal(w.a.seen[CONN_EOF], 1);
    close_world(&w);
    tls_leaf_free(&leaf);
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

/* D19: keys may change, and data goes on; a peer that does nothing but change them is not listened to for ever. */
static void test_key_updates(void **state)
{
    struct tls_leaf *leaf = leaf_for(&good_leaf);
    (void)state;
    for (int flood = 0; flood < 2; flood++) {
        struct world w;
        shake(&w, keys.client, leaf, "a.test", "a.test");
        for (int i = 0; i < (flood ? 1000 : 20) && w.a.seen[CONN_FAILED] == 0; i++) {
            assert_int_equal(SSL_key_update(w.b.c->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
            assert_int_equal(conn_write(w.b.c, flood ? SPAN("") : SPAN("x")), 0);
            if (flood) {
                assert_int_equal(SSL_do_handshake(w.b.c->ssl), 1);
                task_flush(w.l, &w.b.c->flush);
                conn_tls_pump(w.b.c, SPAN_NONE);
            }
            settle(w.l);
        }
        assert_int_equal(w.a.seen[CONN_FAILED], flood);
        if (flood)
            assert_non_null(strstr(w.a.why, "keys"));
        else
            assert_int_equal(w.a.got.n, 20);
        close_world(&w);
    }
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
    struct tls_client *t = tls_client_new(&(struct tls_trust){.roots_pem = keys.ca_pem}, &e);
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
    t = tls_client_new(&(struct tls_trust){.roots_pem = keys.ca_pem}, &e);
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

/* What is large is sealed at once and never queued in the clear; what is queued before it leaves before it. */
static void test_large_writes(void **state)
{
    static uint8_t big[200 * 1024];
    struct world w;
    (void)state;
    struct tls_leaf *leaf = leaf_for(&good_leaf);
    memset(big, 'b', sizeof(big));
    shake(&w, keys.client, leaf, "a.test", "a.test");
    assert_int_equal(conn_write(w.a.c, SPAN("first")), 0);
    assert_int_equal(conn_write(w.a.c, span_of(big, sizeof(big))), 0);
    settle(w.l);
    assert_int_equal(w.b.got.n, 5 + sizeof(big));
    assert_int_equal(conn_write(w.a.c, span_of(big, CONN_THROUGH)), 0);
    assert_int_equal(w.a.c->out.n, 0);
    assert_int_equal(conn_write(w.a.c, SPAN("last")), 0);
    assert_true(w.a.c->out.n > 0);
    settle(w.l);
    assert_int_equal(w.b.got.n, 5 + sizeof(big) + CONN_THROUGH + 4);
    assert_memory_equal(w.b.got.p, "firstbbb", 8);
    assert_memory_equal(w.b.got.p + w.b.got.n - 7, "bbblast", 7);
    w.b.keep = true; /* until neither it nor the socket takes more: the rest waits, and goes on behind */
    size_t asked = w.b.got.n, more;
    for (more = 0; conn_queued(w.a.c) == 0 && more < 64; more++)
        assert_int_equal(conn_write(w.a.c, span_of(big, sizeof(big))), 0);
    assert_true(conn_queued(w.a.c) > 0);
    w.b.keep = false;
    w.b.stop_at = asked + more * sizeof(big);
    run(w.l);
    assert_int_equal(w.b.got.n, asked + more * sizeof(big));
    conn_free(&w.b.c);
    assert_int_equal(conn_write(w.a.c, span_of(big, sizeof(big))),
                     0); /* what the peer said before may still be read */
    assert_int_equal(conn_queued(w.a.c), 0);
    assert_int_equal(conn_write(w.a.c, SPAN("x")), -1);
    close_world(&w);
    tls_leaf_free(&leaf);
}

/* D19: a peer that makes us answer its key updates and never reads runs into a limit, not into our memory. */
static void test_key_update_flood(void **state)
{
    struct world w;
    (void)state;
    struct tls_leaf *leaf = leaf_for(&good_leaf);
    shake(&w, keys.client, leaf, "a.test", "a.test");
    assert_int_equal(SSL_version(w.a.c->ssl), TLS1_3_VERSION);
    conn_pause(w.a.c, true);
    for (int i = 0; i < 60000 && !w.b.seen[CONN_FAILED]; i++) {
        assert_int_equal(SSL_key_update(w.a.c->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        assert_int_equal(conn_write(w.a.c, SPAN("x")), 0); /* the update leaves before it */
        if (i % 50 == 0)
            settle(w.l);
        else
            conn_flush(w.a.c);
    }
    assert_int_equal(w.b.seen[CONN_FAILED], 1);
    assert_non_null(strstr(w.b.why, "more than it reads"));
    close_world(&w);
    tls_leaf_free(&leaf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_both_ends),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_key_updates),
        cmocka_unit_test(test_sni),
        cmocka_unit_test(test_offers),
        cmocka_unit_test(test_hello_in_pieces),
        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_free_inside),
        cmocka_unit_test(test_tls_input_cap),
        cmocka_unit_test(test_large_writes),
        cmocka_unit_test(test_key_update_flood),
    };
    return cmocka_run_group_tests(tests, keys_new, keys_free);
}
