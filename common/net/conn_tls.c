/* TLS on a connection. OpenSSL reads from and writes to a BIO of ours, so that
 * one system call a turn moves all records, and bytes that came before TLS began are not lost. */
#include "common/net/addr.h"
#include "common/net/conn_in.h"
#include "common/net/tls_in.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    DECRYPT_STEP = 16 * 1024,
    ENCRYPT_ROUND = 64 * 1024,
    NAME_MAX_DNS = 253,
    LATER_MAX = 32, /* tickets and changes of keys; a peer that says nothing else is not waited for (D19) */
};

static int bio_read(BIO *b, char *to, size_t n, size_t *got)
{
    struct conn *c = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    *got = n < c->raw_now.n ? n : c->raw_now.n;
    if (*got == 0) {
        BIO_set_retry_read(b);
        return 0;
    }
    memcpy(to, c->raw_now.p, *got);
    c->raw_now = span_from(c->raw_now, *got);
    return 1;
}

/* Send what one piece of work has produced. */
static void out_send(struct conn *c)
{
    struct loop *l = c->loop;
    size_t n = l->out_n;
    l->out_n = 0;
    if (n > 0 && conn_raw_write(c, span_of(l->out, n)) == 0 && conn_raw_queued(c) > 0)
        event_want(&c->wr, true);
}

static int bio_write(BIO *b, const char *from, size_t n, size_t *put)
{
    struct conn *c = BIO_get_data(b);
    struct loop *l = c->loop;
    BIO_clear_retry_flags(b);
    *put = n;
    if (LOOP_OUT_BYTES - l->out_n < n)
        out_send(c);
    if (n > LOOP_OUT_BYTES)
        return conn_raw_write(c, span_of(from, n)) == 0;
    memcpy(l->out + l->out_n, from, n);
    l->out_n += n;
    return 1;
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
    (void)b, (void)num, (void)ptr;
    return cmd == BIO_CTRL_FLUSH || cmd == BIO_CTRL_DUP ? 1 : 0;
}

static BIO *bio_new(struct conn *c)
{
    static BIO_METHOD *method; /* one a process, for its whole life */
    if (method == NULL) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "conn");
        if (method == NULL)
            return NULL;
        BIO_meth_set_read_ex(method, bio_read);
        BIO_meth_set_write_ex(method, bio_write);
        BIO_meth_set_ctrl(method, bio_ctrl);
    }
    BIO *b = BIO_new(method);
    if (b != NULL) {
        BIO_set_data(b, c);
        BIO_set_init(b, 1);
    }
    return b;
}

/* What SSL_get_error would trip over. Emptying what is empty takes longer than a look. */
static void no_errors(void)
{
    if (ERR_peek_error() != 0)
        ERR_clear_error();
}

static const char *code_of(int reason)
{
    switch (reason) {
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION: return "tls-version";
    case SSL_R_NO_APPLICATION_PROTOCOL: return "tls-alpn";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN: return "ca-not-trusted";
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST: return "plaintext-in-tunnel";
    default: return "tls-failed";
    }
}

const char *conn_tls_code(const struct conn *c)
{
    return c->tls_code != NULL ? c->tls_code : "tls-closed";
}

static void fail_words(struct conn *c, const char *doing)
{
    char text[sizeof(c->why)];
    if (c->tls_code == NULL)
        c->tls_code = code_of(ERR_GET_REASON(ERR_peek_last_error()));
    long verdict = SSL_get_verify_result(c->ssl);
    const char *words = tls_words();
    if (SSL_is_server(c->ssl) && strcmp(c->tls_code, "tls-alpn") == 0)
        words = "no application protocol: the client offers HTTP/2 or another, and not http/1.1";
    if (c->cert_why != NULL)
        words = c->cert_why;
    else if (verdict != X509_V_OK)
        words = X509_verify_cert_error_string(verdict);
    snprintf(text, sizeof(text), "%s: %s", doing, words);
    out_send(c); /* the alert that says so */
    conn_fail(c, text);
}

static bool alpn_right(const struct conn *c)
{
    const unsigned char *p;
    unsigned n;
    SSL_get0_alpn_selected(c->ssl, &p, &n);
    return n == 0 || span_eq(span_of(p, n), SPAN("http/1.1"));
}

static void handshake(struct conn *c)
{
    int rc = SSL_do_handshake(c->ssl);
    if (rc != 1) {
        if (SSL_get_error(c->ssl, rc) != SSL_ERROR_WANT_READ)
            fail_words(c, "TLS handshake");
        return;
    }
    if (!SSL_is_server(c->ssl) &&
        (SSL_get_verify_result(c->ssl) != X509_V_OK || SSL_get0_peer_certificate(c->ssl) == NULL)) {
        fail_words(c, "TLS handshake");
        return;
    }
    if (!alpn_right(c)) {
        conn_fail(c, "TLS handshake: the peer chose a protocol that was not offered");
        return;
    }
    if (!SSL_is_server(c->ssl))
        SSL_certs_clear(c->ssl); /* the key of a client certificate has done its work */
    c->mode = CONN_TLS;
    c->tell_ready = true;
    task_flush(c->loop, &c->flush);
}

static void decrypt(struct conn *c)
{
    for (;;) {
        /* Room at once for all that came and what SSL has of a record: growing by steps copies at each. */
        size_t got, step = DECRYPT_STEP + (c->raw_now.n > DECRYPT_STEP ? c->raw_now.n : 0);
        size_t room = c->paused ? 0 : conn_in_room(c, step);
        if (room == 0) {
            c->stalled = c->mode != CONN_BROKEN;
            return;
        }
        if (SSL_read_ex(c->ssl, c->in + c->in_n, room, &got) == 1) {
            c->in_n += got;
            c->later = 0;
            continue;
        }
        if (c->later > LATER_MAX) {
            conn_fail(c, "TLS: the peer changes its keys without end");
            return;
        }
        int why = SSL_get_error(c->ssl, 0);
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_ZERO_RETURN)
            fail_words(c, "TLS");
        return;
    }
}

void conn_tls_pump(struct conn *c, struct span fresh)
{
    bool kept = c->raw_in.n > 0;
    if (kept && dynbuf_add(&c->raw_in, fresh) != 0) {
        conn_fail(c, "no memory for input");
        return;
    }
    c->raw_now = kept ? dynbuf_span(&c->raw_in) : fresh;
    c->stalled = false;
    no_errors();
    if (c->mode == CONN_HANDSHAKE)
        handshake(c);
    if (c->mode == CONN_TLS)
        decrypt(c);
    out_send(c);
    if (!c->stalled)
        dynbuf_free(&c->raw_in);
    else if (kept)
        dynbuf_drop(&c->raw_in, c->raw_in.n - c->raw_now.n);
    else if (dynbuf_add(&c->raw_in, c->raw_now) != 0)
        conn_fail(c, "no memory for input");
    c->raw_now = SPAN_NONE;
}

/* Seal and send as much as the socket takes, a round at a time. How much of s it was. */
size_t conn_tls_through(struct conn *c, struct span s)
{
    size_t done, all = 0;
    no_errors();
    while (c->mode == CONN_TLS && !c->write_lost && all < s.n && conn_raw_queued(c) == 0) {
        for (size_t round = all + ENCRYPT_ROUND; all < s.n && all < round; all += done)
            if (SSL_write_ex(c->ssl, s.p + all, s.n - all < ENCRYPT_ROUND ? s.n - all : ENCRYPT_ROUND, &done) != 1) {
                fail_words(c, "TLS");
                return all;
            }
        out_send(c);
    }
    return all;
}

void conn_tls_flush(struct conn *c)
{
    if (c->mode != CONN_TLS)
        return;
    size_t done = conn_tls_through(c, span_from(dynbuf_span(&c->out), c->out_off));
    if (c->mode != CONN_TLS || c->write_lost) /* nothing is queued any more */
        return;
    dynbuf_drop(&c->out, c->out_off + done);
    c->out_off = 0;
    if (c->out.n == 0 && c->out.cap > CONN_KEEP)
        dynbuf_free(&c->out);
}

void conn_tls_end(struct conn *c)
{
    ERR_clear_error();
    (void)SSL_shutdown(c->ssl);
    ERR_clear_error();
    out_send(c);
}

bool conn_tls_peer_ended(const struct conn *c)
{
    return SSL_get_shutdown(c->ssl) & SSL_RECEIVED_SHUTDOWN;
}

void conn_tls_free(struct conn *c)
{
    SSL_free(c->ssl);
    dynbuf_free(&c->raw_in);
    free((void *)c->name.p);
    free(c->pin);
}

static void on_message(int sent, int version, int type, const void *bytes, size_t n, SSL *ssl, void *arg)
{
    struct conn *c = arg;
    (void)version, (void)bytes, (void)n, (void)ssl;
    c->later += !sent && type == SSL3_RT_HANDSHAKE && c->mode == CONN_TLS;
}

/* What was queued in plain text leaves as such; what was already read is the beginning of the handshake. */
static int begin(struct conn *c, SSL_CTX *ctx, struct span name)
{
    if (c->mode != CONN_PLAIN || c->ssl != NULL || name.n == 0 || name.n > NAME_MAX_DNS)
        return -1;
    uint8_t *copy = malloc(name.n + 1);
    BIO *bio = bio_new(c);
    c->ssl = SSL_new(ctx);
    if (copy == NULL || bio == NULL || c->ssl == NULL)
        goto fail;
    memcpy(copy, name.p, name.n);
    copy[name.n] = '\0';
    c->name = span_of(copy, name.n);
    SSL_set_bio(c->ssl, bio, bio);
    bio = NULL;
    copy = NULL;
    SSL_set_app_data(c->ssl, c);
    SSL_set_msg_callback(c->ssl, on_message);
    SSL_set_msg_callback_arg(c->ssl, c);
    if (dynbuf_add(&c->raw_out, span_from(dynbuf_span(&c->out), c->out_off)) != 0 ||
        dynbuf_add(&c->raw_in, conn_input(c)) != 0)
        goto fail;
    dynbuf_free(&c->out);
    c->out_off = 0;
    conn_consume(c, conn_input(c).n);
    c->more = false;
    c->mode = CONN_HANDSHAKE;
    c->stalled = true; /* until the pump has looked at raw_in */
    task_later(c->loop, &c->news);
    task_flush(c->loop, &c->flush);
    return 0;
fail:
    BIO_free(bio);
    free(copy);
    conn_fail(c, "no memory for TLS");
    return -1;
}

int conn_tls_accept(struct conn *c, struct tls_server *s, struct tls_leaf *leaf, struct span name)
{
    if (begin(c, s->ctx, name) != 0)
        return -1;
    SSL_set_accept_state(c->ssl);
    if (SSL_use_cert_and_key(c->ssl, leaf->cert, leaf->pkey, leaf->chain, 1) == 1)
        return 0;
    fail_words(c, "setting the certificate");
    return -1;
}

int conn_tls_accept_own(struct conn *c, struct tls_server *s)
{
    if (begin(c, s->ctx, SPAN("proxy")) != 0)
        return -1;
    SSL_set_accept_state(c->ssl);
    return 0;
}

int conn_tls_connect(struct conn *c, struct tls_client *t, struct span name)
{
    struct addr a;
    if (begin(c, t->ctx, name) != 0)
        return -1;
    if (t->npins > 0) {
        c->pin = malloc(sizeof(t->pin));
        if (c->pin == NULL) {
            conn_fail(c, "no memory for TLS");
            return -1;
        }
        memcpy(c->pin, t->pin, sizeof(t->pin));
        c->npins = t->npins;
    }
    c->public_suffix = t->public_suffix;
    const char *host = (const char *)c->name.p;
    SSL_set_connect_state(c->ssl);
    if (tls_verify_name(SSL_get0_param(c->ssl), c->name) == 0 &&
        (addr_parse(name, &a) == 0 || SSL_set_tlsext_host_name(c->ssl, host) == 1))
        return 0;
    fail_words(c, "setting the name to verify");
    return -1;
}

int conn_tls_certificate(struct conn *c, struct span pem, struct err *e)
{
    BIO *keys = BIO_new_mem_buf(pem.p, (int)pem.n), *certs = BIO_new_mem_buf(pem.p, (int)pem.n);
    STACK_OF(X509) *chain = sk_X509_new_null();
    EVP_PKEY *key = keys == NULL ? NULL : PEM_read_bio_PrivateKey(keys, NULL, tls_no_password, NULL);
    X509 *leaf = certs == NULL ? NULL : PEM_read_bio_X509(certs, NULL, tls_no_password, NULL), *more = NULL;
    bool ok = key != NULL && leaf != NULL && chain != NULL;
    while (ok && sk_X509_num(chain) < 8 && (more = PEM_read_bio_X509(certs, NULL, tls_no_password, NULL)) != NULL)
        ok = sk_X509_push(chain, more) > 0;
    ok = ok && SSL_use_cert_and_key(c->ssl, leaf, key, chain, 1) == 1;
    if (!ok)
        err_set(e, "the client certificate cannot be used: no key without a password, no certificate, or the one is "
                   "not the other's");
    ERR_clear_error(); /* words of the library could tell something of the key */
    sk_X509_pop_free(chain, X509_free);
    X509_free(leaf);
    EVP_PKEY_free(key);
    BIO_free(keys);
    BIO_free(certs);
    return ok ? 0 : -1;
}
