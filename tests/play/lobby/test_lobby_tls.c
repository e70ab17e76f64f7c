/* TLS to the proxy itself: handshake, identity by certificate, and the relay to the front. */
#include "tests/play/lobby/lobby_kit.h"

#include <openssl/pem.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/net/certs.h"
#include "common/net/tls_in.h"
#include "proxy/lobby/relay.h"

static struct {
    EVP_PKEY *ca_key, *key, *client_key;
    X509 *ca, *cert, *other_ca;
    struct tls_client *client;
    struct conn *c; /* the client's end */
    unsigned seen[CONN_TIMEOUT + 1];
    struct dynbuf got;
    bool hold; /* read nothing */
    char why[160];
} t;

static struct wire_listener w;

#define TOKEN "Basic YWdlbnQ6dG9rZW4tMQ==" /* agent:token-1 */
#define HEAD  "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nProxy-Authorization: " TOKEN "\r\n\r\n"

static int file_of(struct span text)
{
    int fd = memfd_create("pem", MFD_CLOEXEC);
    assert_int_equal(write(fd, text.p, text.n), text.n);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static int cert_file(X509 *x)
{
    struct span pem = cert_pem(x);
    int fd = file_of(pem);
    free((void *)pem.p);
    return fd;
}

static int key_file(EVP_PKEY *key)
{
    char *text;
    BIO *b = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL), 1);
    long n = BIO_get_mem_data(b, &text);
    int fd = file_of(span_of(text, (size_t)n));
    BIO_free(b);
    return fd;
}

static X509 *client_cert(const char *san, const char *eku, EVP_PKEY *signer, const X509 *issuer)
{
    struct cert_wish wish = {.san = san, .eku = eku};
    return cert_make(&wish, t.client_key, issuer, signer);
}

static void new_client(X509 *cert)
{
    struct err e = {{0}};
    struct span pem = cert_pem(t.ca);
    tls_client_free(&t.client);
    t.client = tls_client_new(&(struct tls_trust){.roots_pem = pem}, &e);
    free((void *)pem.p);
    assert_non_null(t.client);
    if (cert != NULL) {
        assert_int_equal(SSL_CTX_use_certificate(t.client->ctx, cert), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(t.client->ctx, t.client_key), 1);
    }
}

static int keys_open(void **state)
{
    struct cert_wish ca = {.cn = "ca", .basic = "critical,CA:TRUE", .usage = "critical,keyCertSign"};
    struct cert_wish leaf = {.san = "DNS:gw.test", .eku = "serverAuth"};
    (void)state;
    t.ca_key = cert_key_ec("P-256");
    t.key = cert_key_rsa(2048);
    t.client_key = cert_key_ec("P-256");
    t.ca = cert_make(&ca, t.ca_key, NULL, t.ca_key);
    t.cert = cert_make(&leaf, t.key, t.ca, t.ca_key);
    ca.cn = "other";
    t.other_ca = cert_make(&ca, t.client_key, NULL, t.client_key);
    return 0;
}

static int keys_close(void **state)
{
    (void)state;
    X509_free(t.ca);
    X509_free(t.cert);
    X509_free(t.other_ca);
    EVP_PKEY_free(t.ca_key);
    EVP_PKEY_free(t.key);
    EVP_PKEY_free(t.client_key);
    return 0;
}

static int tls_open(void **state)
{
    dynbuf_init(&t.got, 16 * 1024 * 1024);
    t.hold = false;
    return stage_open(state);
}

static int tls_close(void **state)
{
    conn_free(&t.c);
    settle(); /* who lingers until its peer has gone */
    tls_client_free(&t.client);
    dynbuf_free(&t.got);
    return stage_close(state);
}

static void listen_tls(enum listener_identity identity, enum way way)
{
    bool mutual = identity == IDENTITY_CERTIFICATE;
    int file[] = {cert_file(t.cert), key_file(t.key), cert_file(t.ca)};
    w = (struct wire_listener){.way = way, .identity = identity, .tls = true};
    if (mutual) {
        w.nsources = 2;
        w.source[0].key = SPAN("vm1.example");
        w.source[0].sandbox = SPAN("vm1");
        w.source[1].key = SPAN("vm2.example");
        w.source[1].sandbox = SPAN("vm2");
    }
    size_t before = s->lobby.ndoors;
    listen_as("tls", &w, file, mutual ? 3 : 2);
    for (int i = 0; i < 3; i++)
        close(file[i]);
    assert_int_equal(s->lobby.ndoors, before + 1);
}

static void on_client(void *arg, struct conn *c, enum conn_event ev)
{
    (void)arg;
    t.seen[ev]++;
    if (ev == CONN_FAILED)
        snprintf(t.why, sizeof(t.why), "%s", conn_why(c));
    if (ev == CONN_DATA && !t.hold) {
        assert_int_equal(dynbuf_add(&t.got, conn_input(c)), 0);
        conn_consume(c, conn_input(c).n);
    }
}

/* Until the handshake has come to an end on this side. */
static void knock(void)
{
    conn_free(&t.c);
    memset(t.seen, 0, sizeof(t.seen));
    dynbuf_reset(&t.got);
    t.c = conn_new(s->l, dial(), 64 * 1024, on_client, NULL);
    assert_int_equal(conn_tls_connect(t.c, t.client, SPAN("gw.test")), 0);
    UNTIL(t.seen[CONN_TLS_READY] || t.seen[CONN_FAILED]);
}

static bool heard(const char *text)
{
    return span_find(dynbuf_span(&t.got), span_str(text)) < t.got.n;
}

static size_t relays(void)
{
    return relay_count(&s->lobby, SPAN_NONE);
}

static int front_of(const char *sandbox, const char *auth)
{
    was_given(sandbox, auth, "");
    assert_int_equal(relays(), 1);
    return s->given.fd;
}

static void the_wrapped_proxy_asks_for_a_token(void **state)
{
    (void)state;
    listen_tls(IDENTITY_TOKEN, WAY_HTTP);
    new_client(NULL);
    knock();
    assert_int_equal(conn_write(t.c, SPAN("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")), 0);
    UNTIL(heard("407 Proxy Authentication Required"));
    assert_int_equal(conn_write(t.c, SPAN(HEAD)), 0);
    answer(next_asked("token-1"), IDENTITY_KNOWN, "ci-7");
    int front = front_of("ci-7", TOKEN);
    char in[512];
    ssize_t n = -1;
    UNTIL((n = read(front, in, sizeof(in))) > 0);
    assert_true(span_eq(span_of(in, (size_t)n), SPAN(HEAD)));
    assert_int_equal(write(front, "HTTP/1.1 200 OK\r\n\r\n", 19), 19);
    UNTIL(heard("200 OK\r\n\r\n"));
    assert_int_equal(conn_write(t.c, SPAN("hello")), 0);
    UNTIL((n = read(front, in, sizeof(in))) > 0);
    assert_true(span_eq(span_of(in, (size_t)n), SPAN("hello")));
    conn_end(t.c);
    UNTIL(read(front, in, 1) == 0); /* a half-close goes through */
    assert_int_equal(write(front, "bye", 3), 3);
    close(front);
    UNTIL(heard("bye") && t.seen[CONN_EOF]);
    assert_int_equal(t.seen[CONN_TRUNCATED], 0);
    UNTIL(relays() == 0);
    assert_int_equal(s->lobby.npending, 0);
    covers("D32");
}

static void what_one_side_does_not_read_stops_the_other(void **state)
{
    enum { BLOCK = 64 * 1024, MANY = 160 };
    static uint8_t block[BLOCK];
    size_t sent = 0;
    (void)state;
    listen_tls(IDENTITY_TOKEN, WAY_HTTP);
    new_client(NULL);
    knock();
    assert_int_equal(conn_write(t.c, SPAN(HEAD)), 0);
    answer(next_asked("token-1"), IDENTITY_KNOWN, "ci-7");
    int front = front_of("ci-7", TOKEN);
    UNTIL(read(front, block, BLOCK) > 0);
    t.hold = true;
    for (int idle = 0; idle < 200 && sent < (size_t)MANY * BLOCK;) {
        ssize_t n = write(front, block, BLOCK);
        idle = n > 0 ? 0 : idle + 1;
        sent += n > 0 ? (size_t)n : 0;
        turn();
    }
    assert_true(sent < (size_t)MANY * BLOCK); /* and not everything lies in the lobby */
    t.hold = false;
    assert_int_equal(dynbuf_add(&t.got, conn_input(t.c)), 0);
    conn_consume(t.c, conn_input(t.c).n);
    UNTIL(t.got.n == sent);
    close(front);
    UNTIL(t.seen[CONN_EOF]);
    UNTIL(relays() == 0);
}

/* A client of its own, outside the loop: it reads when it is told to, and what the lobby holds meanwhile stays there.
 */
static SSL *slow_client(SSL_CTX *ctx)
{
    const int little = 8 * 1024; /* the kernel keeps little for it: the rest waits in the lobby */
    assert_int_equal(setsockopt(s->listener, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)), 0);
    int fd = dial(), rc;
    SSL *ssl = SSL_new(ctx);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
    assert_non_null(ssl);
    assert_int_equal(SSL_set_fd(ssl, fd), 1);
    UNTIL((rc = SSL_connect(ssl)) == 1);
    assert_int_equal(SSL_write(ssl, HEAD, sizeof(HEAD) - 1), sizeof(HEAD) - 1);
    return ssl;
}

static size_t taken(SSL *ssl, size_t at_most)
{
    static uint8_t in[16 * 1024];
    int n = SSL_read(ssl, in, (int)(at_most < sizeof(in) ? at_most : sizeof(in)));
    return n > 0 ? (size_t)n : 0;
}

/* The relay goes when nothing of an answer's end is in this process any more, however slowly it is read. */
static void the_end_of_an_answer_waits_for_a_slow_client(void **state)
{
    enum { BLOCK = 64 * 1024 };
    static uint8_t block[BLOCK];
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    size_t sent = 0, got = 0, n;
    (void)state;
    listen_tls(IDENTITY_TOKEN, WAY_HTTP);
    SSL *ssl = slow_client(ctx);
    struct pollfd p = {.fd = SSL_get_fd(ssl), .events = POLLIN};
    answer(next_asked("token-1"), IDENTITY_KNOWN, "ci-7");
    int front = front_of("ci-7", TOKEN);
    UNTIL(read(front, block, BLOCK) > 0);
    for (int idle = 0; idle < 200; turn()) {
        ssize_t more = write(front, block, BLOCK);
        idle = more > 0 ? 0 : idle + 1;
        sent += more > 0 ? (size_t)more : 0;
    }
    close(front);
    s->lobby.limits.close_ms = 1; /* how often it is looked at, not for how long */
    UNTIL((got += taken(ssl, 4096), relays() == 0));
    do { /* from here on the lobby does nothing */
        n = taken(ssl, SIZE_MAX);
        got += n;
    } while (n > 0 || (SSL_get_error(ssl, -1) == SSL_ERROR_WANT_READ && poll(&p, 1, 300000) == 1));
    assert_int_equal(got, sent);
    assert_true(SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN);
    close(p.fd);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    settle();
}

static void who_leaves_without_a_word_takes_the_front_along(void **state)
{
    char in[512];
    (void)state;
    listen_tls(IDENTITY_TOKEN, WAY_HTTP);
    new_client(NULL);
    knock();
    assert_int_equal(conn_write(t.c, SPAN(HEAD)), 0);
    answer(next_asked("token-1"), IDENTITY_KNOWN, "ci-7");
    int front = front_of("ci-7", TOKEN);
    conn_reset(&t.c);
    UNTIL(relays() == 0);
    UNTIL(read(front, in, sizeof(in)) == 0);
    close(front);
}

static void one_sandbox_fills_no_place_but_its_own(void **state)
{
    enum { EACH = LOBBY_RELAYS_EACH };
    struct conn *c[EACH];
    int pair[2], end[EACH];
    (void)state;
    for (int i = 0; i < EACH; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
        assert_true(relay_room(&s->lobby, SPAN("ci-7")));
        c[i] = conn_new(s->l, pair[0], 4096, NULL, NULL);
        close(relay_new(&s->lobby, SPAN("ci-7"), &c[i]));
        end[i] = pair[1];
    }
    assert_false(relay_room(&s->lobby, SPAN("ci-7")));
    assert_true(relay_room(&s->lobby, SPAN("ci-8")));
    for (int i = 0; i < EACH; i++)
        close(end[i]);
    UNTIL(relays() == 0);
    settle();
}

static void the_certificate_names_the_sandbox(void **state)
{
    static const struct {
        const char *san, *eku;
        bool other_ca;
        const char *sandbox; /* NULL: refused */
        const char *code;
    } cases[] = {
        {"DNS:vm1.example", "clientAuth", false, "vm1", NULL},
        {"DNS:other.example,DNS:VM2.example", "clientAuth", false, "vm2", NULL},
        {"DNS:vm3.example", "clientAuth", false, NULL, "unknown-certificate"},
        {"DNS:*.example", "clientAuth", false, NULL, "unknown-certificate"},
        {"DNS:vm1.example,DNS:vm2.example", "clientAuth", false, NULL, "unknown-certificate"},
        {"URI:vm1.example", "clientAuth", false, NULL, "unknown-certificate"},
        {"DNS:vm1.example", "serverAuth", false, NULL, "tls-failed"},
        {"DNS:vm1.example", "clientAuth", true, NULL, "tls-failed"},
        {NULL, NULL, false, NULL, "tls-failed"}, /* none at all */
    };
    (void)state;
    listen_tls(IDENTITY_CERTIFICATE, WAY_HTTP);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t before = cases[i].code ? refused("tls", cases[i].code) : 0;
        X509 *x = cases[i].san == NULL
                      ? NULL
                      : client_cert(cases[i].san, cases[i].eku, cases[i].other_ca ? t.client_key : t.ca_key,
                                    cases[i].other_ca ? t.other_ca : t.ca);
        new_client(x);
        X509_free(x);
        knock();
        if (cases[i].sandbox != NULL) {
            close(front_of(cases[i].sandbox, ""));
            UNTIL(relays() == 0);
        } else {
            UNTIL(refused("tls", cases[i].code) == before + 1);
            assert_int_equal(s->ngiven, 0);
        }
    }
    covers("D32");
}

static void socks_in_tls(void **state)
{
    char in[64];
    ssize_t n = -1;
    (void)state;
    listen_tls(IDENTITY_TOKEN, WAY_SOCKS);
    new_client(NULL);
    knock();
    assert_int_equal(conn_write(t.c, SPAN("\x05\x01\x02\x01\x01u\x07token-1\x05\x01\x00")), 0);
    answer(next_asked("token-1"), IDENTITY_KNOWN, "ci-7");
    UNTIL(t.got.n == 4);
    assert_memory_equal(t.got.p, "\x05\x02\x01\x00", 4);
    int front = front_of("ci-7", "");
    assert_int_equal(s->given.way, WAY_SOCKS);
    UNTIL((n = read(front, in, sizeof(in))) > 0);
    assert_true(span_eq(span_of(in, (size_t)n), SPAN("\x05\x01\x00")));
    close(front);
}

/* What is no TLS, or an older one, ends in the handshake. */
static void what_is_no_handshake_is_refused(void **state)
{
    (void)state;
    listen_tls(IDENTITY_TOKEN, WAY_HTTP);
    int fd = dial();
    say(fd, HEAD);
    (void)hear(fd, NULL);
    close(fd);
    UNTIL(refused("tls", "tls-failed") == 1);
    new_client(NULL);
    SSL_CTX_set_security_level(t.client->ctx, 0);
    SSL_CTX_set_min_proto_version(t.client->ctx, 0);
    SSL_CTX_set_max_proto_version(t.client->ctx, TLS1_1_VERSION);
    SSL_CTX_set_cipher_list(t.client->ctx, "ALL:@SECLEVEL=0");
    knock();
    assert_int_equal(t.seen[CONN_TLS_READY], 0);
    UNTIL(refused("tls", "tls-failed") == 2);
    static const unsigned char h2[] = "\x02h2";
    new_client(NULL);
    SSL_CTX_set_alpn_protos(t.client->ctx, h2, 3);
    knock();
    UNTIL(refused("tls", "tls-failed") == 3);
    covers("A52 A39");
}

/* With files that are not what they should be the listener stays shut, and nobody is asked for a passphrase. */
static void with_wrong_files_it_stays_shut(void **state)
{
    char *text;
    size_t before = s->lobby.ndoors;
    (void)state;
    BIO *b = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PrivateKey(b, t.key, EVP_aes_128_cbc(), (unsigned char *)"pass", 4, NULL, NULL),
                     1);
    long n = BIO_get_mem_data(b, &text);
    struct {
        int cert, key, ca;
        enum listener_identity identity;
    } cases[] = {
        {cert_file(t.cert), key_file(t.client_key), -1, IDENTITY_TOKEN},
        {cert_file(t.cert), file_of(span_of(text, (size_t)n)), -1, IDENTITY_TOKEN},
        {cert_file(t.cert), file_of(SPAN("no key\n")), -1, IDENTITY_TOKEN},
        {file_of(SPAN("")), key_file(t.key), -1, IDENTITY_TOKEN},
        {file_of(SPAN("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")), key_file(t.key), -1,
         IDENTITY_TOKEN},
        {cert_file(t.cert), key_file(t.key), file_of(SPAN("")), IDENTITY_CERTIFICATE},
        {cert_file(t.cert), key_file(t.key), file_of(SPAN("no certificate\n")), IDENTITY_CERTIFICATE},
        {cert_file(t.cert), key_file(t.key), -1, IDENTITY_CERTIFICATE},
    };
    BIO_free(b);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int file[] = {cases[i].cert, cases[i].key, cases[i].ca};
        w = (struct wire_listener){.way = WAY_HTTP, .identity = cases[i].identity, .tls = true};
        if (cases[i].identity == IDENTITY_CERTIFICATE) {
            w.nsources = 1;
            w.source[0].key = SPAN("vm1.example");
            w.source[0].sandbox = SPAN("vm1");
        }
        listen_as("tls", &w, file, file[2] >= 0 ? 3 : 2);
        if (s->lobby.ndoors != before)
            fail_msg("case %zu was opened", i);
        for (int k = 0; k < 3; k++)
            if (file[k] >= 0)
                close(file[k]);
    }
}

#define TLS_PLAY(f) cmocka_unit_test_setup_teardown(f, tls_open, tls_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS_PLAY(the_wrapped_proxy_asks_for_a_token),
        TLS_PLAY(what_one_side_does_not_read_stops_the_other),
        TLS_PLAY(the_end_of_an_answer_waits_for_a_slow_client),
        TLS_PLAY(who_leaves_without_a_word_takes_the_front_along),
        TLS_PLAY(one_sandbox_fills_no_place_but_its_own),
        TLS_PLAY(the_certificate_names_the_sandbox),
        TLS_PLAY(socks_in_tls),
        TLS_PLAY(with_wrong_files_it_stays_shut),
        TLS_PLAY(what_is_no_handshake_is_refused),
    };
    return cmocka_run_group_tests(tests, keys_open, keys_close);
}
