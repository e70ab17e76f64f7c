/* The front: what a TLS client may try beyond a handshake: old sessions, early data, a second handshake, old hellos.
 */
#include "tests/play/front/front_ways.h"

#include <openssl/err.h>
#include <stdio.h>
#include <unistd.h>

static void tunnel_to_be(struct stage *s, struct cl *c, const char *host)
{
    char head[200];
    cl_open(s, c);
    snprintf(head, sizeof(head), "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n", host, host);
    SAY(c, head);
    give_leaf(s, take_connect(s, host, 443), host);
    cl_expect(c, "\r\n\r\n");
    cl_forget(c);
}

/* The client side of a handshake, by hand: with a session to resume. */
static bool handshake(struct cl *c, const char *sni, SSL_SESSION *old)
{
    c->ssl = SSL_new(c->s->tls);
    assert_non_null(c->ssl);
    SSL_set_fd(c->ssl, c->fd);
    SSL_set_connect_state(c->ssl);
    SSL_set_tlsext_host_name(c->ssl, sni);
    if (old != NULL)
        assert_int_equal(SSL_set_session(c->ssl, old), 1);
    return cl_tls_end(c);
}

static void asked(struct stage *s, struct cl *c, const char *head)
{
    SAY(c, head);
    struct ask a = take_request(s);
    give_reply(s, a.id, 200, "fine", false);
    cl_expect(c, "fine");
    cl_forget(c);
}

/* A session of one host is not taken for another; there are none. */
static void no_session_outlives_its_connection(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    SSL_CTX_set_session_cache_mode(s.tls, SSL_SESS_CACHE_CLIENT);
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        SSL_CTX_set_max_proto_version(s.tls, version);
        tunnel_to_be(&s, &c, "a.test");
        assert_true(handshake(&c, "a.test", NULL));
        asked(&s, &c, GET_A); /* a ticket would have come by now */
        SSL_SESSION *old = SSL_get1_session(c.ssl);
        assert_false(SSL_SESSION_has_ticket(old));
        unsigned n = 0;
        (void)SSL_SESSION_get_id(old, &n);
        assert_int_equal(version == TLS1_2_VERSION ? n : 0, 0);
        cl_close(&c);
        tunnel_to_be(&s, &c, "b.test");
        assert_true(handshake(&c, "b.test", old));
        assert_false(SSL_session_reused(c.ssl));
        cl_close(&c);
        SSL_SESSION_free(old);
    }
    stage_close(&s);
    covers("C26");
}

/* One handshake of two SSL in memory. */
static void pump(SSL *a, SSL *b)
{
    for (int i = 0; i < 8; i++) {
        char more[16];
        (void)SSL_do_handshake(a);
        (void)SSL_do_handshake(b);
        (void)SSL_read(a, more, sizeof(more)); /* the tickets */
    }
    ERR_clear_error();
}

static int takes_any_name(SSL *ssl, int *alert, void *arg)
{
    (void)ssl, (void)alert, (void)arg;
    return SSL_TLSEXT_ERR_OK;
}

/* A session with a ticket that allows early data, from a server that gives one. */
static SSL_SESSION *session_with_early_data(struct stage *s)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    SSL *client = SSL_new(s->tls), *server;
    BIO *one, *other;
    SSL_CTX_use_certificate(ctx, s->ca);
    SSL_CTX_use_PrivateKey(ctx, s->ca_key);
    SSL_CTX_set_max_early_data(ctx, 16384);
    SSL_CTX_set_tlsext_servername_callback(ctx, takes_any_name);
    server = SSL_new(ctx);
    assert_int_equal(BIO_new_bio_pair(&one, 64 * 1024, &other, 64 * 1024), 1);
    SSL_set_verify(client, SSL_VERIFY_NONE, NULL);
    SSL_set_bio(client, one, one);
    SSL_set_bio(server, other, other);
    SSL_set_connect_state(client);
    SSL_set_accept_state(server);
    SSL_set_tlsext_host_name(client, "a.test");
    pump(client, server);
    SSL_SESSION *got = SSL_get1_session(client);
    SSL_set_shutdown(client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* else it is thought to be broken */
    SSL_free(client);
    SSL_free(server);
    SSL_CTX_free(ctx);
    return got;
}

static void early_data_is_no_request(void **state)
{
    struct stage s;
    struct cl c;
    size_t n;
    (void)state;
    stage_open(&s);
    SSL_SESSION *old = session_with_early_data(&s);
    assert_int_equal(SSL_SESSION_get_max_early_data(old), 16384);
    tunnel_to_be(&s, &c, "a.test");
    c.ssl = SSL_new(s.tls);
    SSL_set_fd(c.ssl, c.fd);
    SSL_set_connect_state(c.ssl);
    SSL_set_tlsext_host_name(c.ssl, "a.test");
    assert_int_equal(SSL_set_session(c.ssl, old), 1);
    assert_int_equal(SSL_write_early_data(c.ssl, GET_A, sizeof(GET_A) - 1, &n), 1);
    assert_true(cl_tls_end(&c));
    assert_int_equal(SSL_get_early_data_status(c.ssl), SSL_EARLY_DATA_REJECTED);
    silent(&s, &s.judge);
    asked(&s, &c, GET_A);
    silent(&s, &s.judge); /* once */
    cl_close(&c);
    SSL_SESSION_free(old);
    stage_close(&s);
    covers("C6");
}

static void there_is_one_handshake(void **state)
{
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    SSL_CTX_set_max_proto_version(s.tls, TLS1_2_VERSION);
    tunnel_to_be(&s, &c, "a.test");
    assert_true(handshake(&c, "a.test", NULL));
    asked(&s, &c, GET_A);
    ERR_clear_error();
    assert_int_equal(SSL_renegotiate(c.ssl), 1);
    (void)SSL_do_handshake(c.ssl); /* sends a ClientHello, inside */
    settle(&s);
    char none[16];
    assert_true(SSL_read(c.ssl, none, sizeof(none)) <= 0);
    assert_int_equal(SSL_num_renegotiations(c.ssl), 1); /* asked for; */
    assert_int_not_equal(SSL_get_error(c.ssl, -1), SSL_ERROR_NONE);
    silent(&s, &s.judge);
    cl_close(&c);
    stage_close(&s);
    covers("C6");
}

/* An SSL 2 hello has no place for a name, and no client of today sends one. */
static void an_old_hello_is_refused(void **state)
{
    static const char hello[] =
        "\x80\x2e\1\3\3\0\x15\0\0\0\x10\0\xc0\x2f\0\xc0\x30\0\0\x9c\0\0\x9d\0\0\x2f\0\0\x35\0\0\xff"
        "0123456789abcdef";
    struct stage s;
    struct cl c;
    (void)state;
    stage_open(&s);
    tunnel_to_be(&s, &c, "a.test");
    cl_say(&c, span_of(hello, sizeof(hello) - 1));
    cl_end(&c);
    struct got g = take(&s, &s.books, M_FRONT_REFUSED);
    assert_true(g.payload.n > 0);
    cl_close(&c);
    cl_adopt_way(&s, &c, WAY_CAPTURED, 443, "", span_of(hello, sizeof(hello) - 1));
    cl_end(&c);
    assert_true(cl_has(&c, "\"code\":\"not-http\""));
    cl_close(&c);
    silent(&s, &s.judge);
    stage_close(&s);
    covers("C6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_session_outlives_its_connection),
        cmocka_unit_test(early_data_is_no_request),
        cmocka_unit_test(there_is_one_handshake),
        cmocka_unit_test(an_old_hello_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
