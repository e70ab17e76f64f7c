/* The proxy's own certificate, and the names in those of its clients. See tls.h and conn.h. */
#include "common/net/conn_in.h"
#include "common/net/tls_in.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

static BIO *reader(struct span pem)
{
    return pem.n > 0 && pem.n <= INT32_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
}

static int use_chain(SSL_CTX *ctx, struct span pem, struct err *e)
{
    int n = 0;
    X509 *x;
    BIO *b = reader(pem);
    while (b != NULL && (x = PEM_read_bio_X509(b, NULL, tls_no_password, NULL)) != NULL) {
        int ok = n++ == 0 ? SSL_CTX_use_certificate(ctx, x) : SSL_CTX_add1_chain_cert(ctx, x);
        X509_free(x);
        if (ok != 1 || n > TLS_CHAIN_DEPTH) {
            BIO_free(b);
            return err_set(e, "certificate %d of the chain cannot be used: %s", n, tls_words());
        }
    }
    BIO_free(b);
    bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    const char *words = tls_words();
    if (n == 0)
        return err_set(e, "there is no PEM certificate in the certificate file");
    return at_end ? 0 : err_set(e, "certificate %d of the chain cannot be read: %s", n + 1, words);
}

static int use_key(SSL_CTX *ctx, struct span pem, struct err *e)
{
    BIO *b = reader(pem);
    EVP_PKEY *key = b ? PEM_read_bio_PrivateKey(b, NULL, tls_no_password, NULL) : NULL;
    BIO_free(b);
    int bad = 0;
    if (key == NULL)
        bad = err_set(e, "the key file has no private key that can be read without a passphrase: %s", tls_words());
    else if (SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
        bad = err_set(e, "the private key is not that of the first certificate: %s", tls_words());
    EVP_PKEY_free(key);
    return bad;
}

/* Everybody has a certificate of these CAs, or does not get through the handshake. */
static int want_clients(SSL_CTX *ctx, struct span pem, struct err *e)
{
    X509 *x;
    if (tls_add_roots(SSL_CTX_get_cert_store(ctx), pem, e) != 0)
        return -1;
    BIO *b = reader(pem);
    while (b != NULL && (x = PEM_read_bio_X509(b, NULL, tls_no_password, NULL)) != NULL) {
        (void)SSL_CTX_add_client_CA(ctx, x); /* a hint for the client's choice */
        X509_free(x);
    }
    BIO_free(b);
    ERR_clear_error();
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_verify_depth(ctx, TLS_CHAIN_DEPTH);
    return SSL_CTX_set_purpose(ctx, X509_PURPOSE_SSL_CLIENT) == 1 ? 0 : err_set(e, "TLS: %s", tls_words());
}

struct tls_server *tls_server_own(struct span chain_pem, struct span key_pem, struct span clients_pem, struct err *e)
{
    struct tls_server *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_set(e, "no memory for TLS");
        return NULL;
    }
    s->ctx = tls_ctx_new(TLS_server_method(), e);
    if (s->ctx == NULL || use_chain(s->ctx, chain_pem, e) != 0 || use_key(s->ctx, key_pem, e) != 0 ||
        (clients_pem.n > 0 && want_clients(s->ctx, clients_pem, e) != 0)) {
        tls_server_free(&s);
        return NULL;
    }
    if (clients_pem.n == 0)
        SSL_CTX_set_verify(s->ctx, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_num_tickets(s->ctx, 0);
    SSL_CTX_set_max_early_data(s->ctx, 0);
    SSL_CTX_set_alpn_select_cb(s->ctx, tls_on_alpn, NULL);
    return s;
}

bool conn_peer_named(const struct conn *c, struct span name)
{
    X509 *x = c->mode == CONN_TLS ? SSL_get0_peer_certificate(c->ssl) : NULL;
    bool found = false;
    if (x == NULL || SSL_get_verify_result(c->ssl) != X509_V_OK)
        return false;
    GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(names) && !found; i++) {
        const GENERAL_NAME *n = sk_GENERAL_NAME_value(names, i);
        if (n->type != GEN_DNS)
            continue;
        struct span said = span_of(ASN1_STRING_get0_data(n->d.dNSName), (size_t)ASN1_STRING_length(n->d.dNSName));
        found = name.n > 0 && span_ieq(said, name);
    }
    GENERAL_NAMES_free(names);
    ERR_clear_error();
    return found;
}
