/* What the TLS connections of a process share. See tls.h. */
/* The key stands on a legacy EC_KEY: with a provider's key, handing it to a certificate costs five times as much. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "common/net/addr.h"
#include "common/net/conn_in.h"
#include "common/net/tls_in.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

const char *tls_words(void)
{
    unsigned long e = ERR_peek_last_error();
    const char *words = e == 0 ? NULL : ERR_reason_error_string(e);
    ERR_clear_error();
    return words != NULL ? words : "failed without a reason";
}

/* No configuration file and no environment variable has a say. */
static int start(void)
{
    return OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1 ? 0 : -1;
}

struct tls_key *tls_key_new(void)
{
    struct tls_key *k = calloc(1, sizeof(*k));
    EC_KEY *ec = start() == 0 ? EC_KEY_new_by_curve_name(NID_X9_62_prime256v1) : NULL;
    if (k == NULL || ec == NULL || EC_KEY_generate_key(ec) != 1)
        goto fail;
    k->pkey = EVP_PKEY_new();
    if (k->pkey == NULL || EVP_PKEY_assign_EC_KEY(k->pkey, ec) != 1)
        goto fail;
    ec = NULL;
    int n = i2d_PUBKEY(k->pkey, &k->spki);
    if (n <= 0)
        goto fail;
    k->n = (size_t)n;
    k->ca = calloc(1, sizeof(*k->ca));
    if (k->ca == NULL)
        goto fail;
    dynbuf_init(&k->ca->der, TLS_CHAIN_BYTES);
    return k;
fail:
    EC_KEY_free(ec);
    tls_key_free(&k);
    return NULL;
}

struct span tls_key_spki(const struct tls_key *k)
{
    return span_of(k->spki, k->n);
}

void tls_key_free(struct tls_key **kp)
{
    struct tls_key *k = *kp;
    *kp = NULL;
    if (k == NULL)
        return;
    if (k->ca != NULL) {
        X509_free(k->ca->cert);
        dynbuf_free(&k->ca->der);
    }
    free(k->ca);
    EVP_PKEY_free(k->pkey);
    OPENSSL_free(k->spki);
    free(k);
}

/* Exactly one certificate and nothing after it. */
static X509 *from_der(struct span der)
{
    const unsigned char *p = der.p;
    if (der.n == 0 || der.n > TLS_CHAIN_BYTES)
        return NULL;
    X509 *x = d2i_X509(NULL, &p, (long)der.n);
    if (x != NULL && p != der.p + der.n) {
        X509_free(x);
        return NULL;
    }
    return x;
}

/* A reference of the caller's own, or NULL. */
static X509 *ca_of(struct tls_ca *last, struct span der)
{
    if (last->cert == NULL || !span_eq(dynbuf_span(&last->der), der)) {
        X509_free(last->cert);
        dynbuf_reset(&last->der);
        last->cert = dynbuf_add(&last->der, der) == 0 ? from_der(der) : NULL;
    }
    if (last->cert != NULL)
        X509_up_ref(last->cert);
    return last->cert;
}

static bool has_key(const X509 *x, struct span spki)
{
    unsigned char *der = NULL;
    int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x), &der);
    bool same = n > 0 && span_eq(span_of(der, (size_t)n), spki);
    OPENSSL_free(der);
    return same;
}

struct tls_leaf *tls_leaf_new(const struct tls_key *k, struct span leaf_der, struct span ca_der)
{
    struct tls_leaf *leaf = calloc(1, sizeof(*leaf));
    X509 *ca = ca_of(k->ca, ca_der);
    if (leaf == NULL || ca == NULL)
        goto fail;
    leaf->cert = from_der(leaf_der);
    leaf->chain = sk_X509_new_null();
    if (leaf->cert == NULL || leaf->chain == NULL || !has_key(leaf->cert, tls_key_spki(k)) ||
        sk_X509_push(leaf->chain, ca) <= 0)
        goto fail;
    ca = NULL;
    EVP_PKEY_up_ref(k->pkey);
    leaf->pkey = k->pkey;
    return leaf;
fail:
    X509_free(ca);
    ERR_clear_error();
    tls_leaf_free(&leaf);
    return NULL;
}

struct tls_leaf *tls_leaf_keep(struct tls_leaf *leaf)
{
    leaf->more++;
    return leaf;
}

void tls_leaf_free(struct tls_leaf **lp)
{
    struct tls_leaf *leaf = *lp;
    *lp = NULL;
    if (leaf == NULL || leaf->more-- > 0)
        return;
    X509_free(leaf->cert);
    sk_X509_pop_free(leaf->chain, X509_free);
    EVP_PKEY_free(leaf->pkey);
    free(leaf);
}

/* Runs with and without the extension. An address has no SNI (RFC 6066 section 3). */
static int on_servername(SSL *ssl, int *alert, void *arg)
{
    struct conn *c = SSL_get_app_data(ssl);
    const char *said = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    struct addr a;
    (void)arg;
    bool right = addr_parse(c->name, &a) == 0 ? said == NULL : said != NULL && span_ieq(span_str(said), c->name);
    if (right)
        return SSL_TLSEXT_ERR_OK;
    c->tls_code = "sni-mismatch";
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

int tls_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *outlen, const unsigned char *in, unsigned n,
                void *arg)
{
    struct span rest = span_of(in, n);
    (void)ssl, (void)arg;
    while (rest.n > 0 && rest.n > rest.p[0]) {
        struct span one = span_of(rest.p + 1, rest.p[0]);
        if (span_eq(one, SPAN("http/1.1"))) {
            *out = one.p;
            *outlen = (unsigned char)one.n;
            return SSL_TLSEXT_ERR_OK;
        }
        rest = span_from(rest, 1 + one.n);
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

/* What both sides have in common. */
SSL_CTX *tls_ctx_new(const SSL_METHOD *method, struct err *e)
{
    SSL_CTX *ctx = start() == 0 ? SSL_CTX_new(method) : NULL;
    if (ctx == NULL) {
        err_set(e, "TLS cannot be set up: %s", tls_words());
        return NULL;
    }
    SSL_CTX_set_security_level(ctx, 2);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ctx,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_max_cert_list(ctx, TLS_CHAIN_BYTES);
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 && SSL_CTX_set_cipher_list(ctx, CIPHERS) == 1)
        return ctx;
    err_set(e, "TLS cannot be set up: %s", tls_words());
    SSL_CTX_free(ctx);
    return NULL;
}

struct tls_server *tls_server_new(struct err *e)
{
    struct tls_server *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_set(e, "no memory for TLS");
        return NULL;
    }
    s->ctx = tls_ctx_new(TLS_server_method(), e);
    if (s->ctx == NULL) {
        free(s);
        return NULL;
    }
    SSL_CTX_set_verify(s->ctx, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_num_tickets(s->ctx, 0);
    SSL_CTX_set_max_early_data(s->ctx, 0);
    SSL_CTX_set_tlsext_servername_callback(s->ctx, on_servername);
    SSL_CTX_set_alpn_select_cb(s->ctx, tls_on_alpn, NULL);
    return s;
}

void tls_server_free(struct tls_server **sp)
{
    struct tls_server *s = *sp;
    *sp = NULL;
    if (s == NULL)
        return;
    SSL_CTX_free(s->ctx);
    free(s);
}

/* Errors that only the strict reading has, below a root that fails it itself, are none. */
static int where_strict(int ok, X509_STORE_CTX *x)
{
    STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(x);
    if (ok || chain == NULL || sk_X509_num(chain) == 0)
        return ok;
    switch (X509_STORE_CTX_get_error(x)) {
    case X509_V_ERR_PATHLEN_INVALID_FOR_NON_CA:
    case X509_V_ERR_PATHLEN_WITHOUT_KU_KEY_CERT_SIGN:
    case X509_V_ERR_KU_KEY_CERT_SIGN_INVALID_FOR_NON_CA:
    case X509_V_ERR_CA_BCONS_NOT_CRITICAL:
    case X509_V_ERR_CA_CERT_MISSING_KEY_USAGE:
    case X509_V_ERR_ISSUER_NAME_EMPTY:
    case X509_V_ERR_SUBJECT_NAME_EMPTY:
    case X509_V_ERR_EMPTY_SUBJECT_ALT_NAME:
    case X509_V_ERR_EMPTY_SUBJECT_SAN_NOT_CRITICAL:
    case X509_V_ERR_SIGNATURE_ALGORITHM_INCONSISTENCY:
    case X509_V_ERR_AUTHORITY_KEY_IDENTIFIER_CRITICAL:
    case X509_V_ERR_SUBJECT_KEY_IDENTIFIER_CRITICAL:
    case X509_V_ERR_MISSING_AUTHORITY_KEY_IDENTIFIER:
    case X509_V_ERR_MISSING_SUBJECT_KEY_IDENTIFIER: break;
    case X509_V_ERR_INVALID_CA: /* version 1 without extensions */
        if (X509_check_ca(X509_STORE_CTX_get_current_cert(x)) != 0 &&
            X509_STORE_CTX_get_error_depth(x) == sk_X509_num(chain) - 1)
            break;
        return 0;
    default: return 0;
    }
    if (tls_ca_fault(sk_X509_value(chain, sk_X509_num(chain) - 1)) == NULL)
        return 0;
    X509_STORE_CTX_set_error(x, X509_V_OK);
    return 1;
}

/* In place of OpenSSL's own: its verdict first, then ours, before a byte of a request can leave. */
static int verify(X509_STORE_CTX *x, struct span name, bool (*public_suffix)(struct span),
                  const uint8_t (*pin)[TLS_PIN_BYTES], size_t npins, const char **why)
{
    *why = NULL;
    X509_STORE_CTX_set_verify_cb(x, where_strict);
    if (X509_verify_cert(x) != 1)
        return 0;
    *why = tls_leaf_fault(X509_STORE_CTX_get0_chain(x), name, public_suffix);
    if (*why == NULL)
        *why = tls_pin_fault(X509_STORE_CTX_get0_chain(x), pin, npins);
    if (*why == NULL)
        return 1;
    X509_STORE_CTX_set_error(x, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
}

static int on_verify(X509_STORE_CTX *x, void *arg)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(x, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct conn *c = SSL_get_app_data(ssl);
    (void)arg;
    return verify(x, c->name, c->public_suffix, (const uint8_t(*)[TLS_PIN_BYTES])c->pin, c->npins, &c->cert_why);
}

static int on_verify_lent(X509_STORE_CTX *x, void *arg)
{
    struct tls_lent *l = arg;
    const struct tls_client *t = l->client;
    return verify(x, l->name, t->public_suffix, t->pin, t->npins, &l->why);
}

int tls_no_password(char *to, int n, int writing, void *arg)
{
    (void)to, (void)n, (void)writing, (void)arg;
    return -1;
}

int tls_add_roots(X509_STORE *store, struct span pem, struct err *e)
{
    int n = 0;
    X509 *x;
    BIO *b = pem.n > 0 && pem.n <= INT32_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
    if (b == NULL)
        return err_set(e, "no certificates to trust were given");
    while ((x = PEM_read_bio_X509(b, NULL, tls_no_password, NULL)) != NULL) {
        int ok = X509_STORE_add_cert(store, x);
        X509_free(x);
        n++;
        if (ok != 1) {
            BIO_free(b);
            return err_set(e, "certificate %d of the trusted ones cannot be used: %s", n, tls_words());
        }
    }
    BIO_free(b);
    bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    const char *words = tls_words();
    if (!at_end)
        return err_set(e, "certificate %d of the trusted ones cannot be read: %s", n + 1, words);
    return n > 0 ? 0 : err_set(e, "no certificate in the PEM text to trust");
}

/* Every certificate of a chain is looked up, the root's own too; a list that is missing or too old refuses (D17). */
static int add_crls(X509_STORE *store, struct span pem, struct err *e)
{
    int n = 0;
    X509_CRL *list;
    BIO *b = pem.n <= INT32_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
    if (b == NULL)
        return err_set(e, "no memory for revocation lists");
    while ((list = PEM_read_bio_X509_CRL(b, NULL, tls_no_password, NULL)) != NULL) {
        int ok = X509_STORE_add_crl(store, list);
        X509_CRL_free(list);
        n++;
        if (ok != 1) {
            BIO_free(b);
            return err_set(e, "revocation list %d cannot be used: %s", n, tls_words());
        }
    }
    BIO_free(b);
    bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    const char *words = tls_words();
    if (!at_end)
        return err_set(e, "revocation list %d cannot be read: %s", n + 1, words);
    if (n == 0 || X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) != 1)
        return err_set(e, "no revocation list in the PEM text");
    return 0;
}

static int add_pins(struct tls_client *c, const struct tls_trust *t, struct err *e)
{
    for (size_t i = 0; i < t->npins; i++) {
        if (i == TLS_PINS_MAX || t->pin[i].n != TLS_PIN_BYTES)
            return err_set(e, "a pin is no SHA-256, or there are more than %d", TLS_PINS_MAX);
        memcpy(c->pin[c->npins++], t->pin[i].p, TLS_PIN_BYTES);
    }
    return 0;
}

struct tls_client *tls_client_new(const struct tls_trust *trust, struct err *e)
{
    static const unsigned char alpn[] = "\x08http/1.1";
    struct tls_client *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        err_set(e, "no memory for TLS");
        return NULL;
    }
    t->ctx = tls_ctx_new(TLS_client_method(), e);
    if (t->ctx == NULL || tls_add_roots(SSL_CTX_get_cert_store(t->ctx), trust->roots_pem, e) != 0 ||
        (trust->crl_pem.n > 0 && add_crls(SSL_CTX_get_cert_store(t->ctx), trust->crl_pem, e) != 0) ||
        add_pins(t, trust, e) != 0)
        goto fail;
    t->public_suffix = trust->public_suffix;
    if (X509_STORE_set_flags(SSL_CTX_get_cert_store(t->ctx), X509_V_FLAG_X509_STRICT) != 1)
        goto fail;
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_verify_depth(t->ctx, TLS_CHAIN_DEPTH);
    SSL_CTX_set_cert_verify_callback(t->ctx, on_verify, NULL);
    if ((trust->only_13 && SSL_CTX_set_min_proto_version(t->ctx, TLS1_3_VERSION) != 1) ||
        SSL_CTX_set_purpose(t->ctx, X509_PURPOSE_SSL_SERVER) != 1 ||
        SSL_CTX_set_alpn_protos(t->ctx, alpn, sizeof(alpn) - 1) != 0) {
        err_set(e, "TLS cannot be set up: %s", tls_words());
        goto fail;
    }
    return t;
fail:
    tls_client_free(&t);
    return NULL;
}

void tls_client_free(struct tls_client **tp)
{
    struct tls_client *t = *tp;
    *tp = NULL;
    if (t == NULL)
        return;
    SSL_CTX_free(t->ctx);
    free(t);
}

int tls_verify_name(X509_VERIFY_PARAM *p, struct span name)
{
    struct addr a;
    X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (addr_parse(name, &a) == 0)
        return X509_VERIFY_PARAM_set1_ip(p, a.b, addr_bytes(&a)) == 1 ? 0 : -1;
    return name.n > 0 && X509_VERIFY_PARAM_set1_host(p, (const char *)name.p, name.n) == 1 ? 0 : -1;
}

int tls_client_lend(struct tls_lent *l, void *ssl_ctx)
{
    SSL_CTX *to = ssl_ctx, *from = l->client->ctx;
    SSL_CTX_set_security_level(to, SSL_CTX_get_security_level(from));
    SSL_CTX_set_options(to, SSL_CTX_get_options(from));
    SSL_CTX_set_session_cache_mode(to, SSL_SESS_CACHE_OFF); /* a session that is resumed is not verified */
    SSL_CTX_set_max_cert_list(to, SSL_CTX_get_max_cert_list(from));
    SSL_CTX_set1_cert_store(to, SSL_CTX_get_cert_store(from));
    SSL_CTX_set_verify(to, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_verify_depth(to, TLS_CHAIN_DEPTH);
    SSL_CTX_set_cert_verify_callback(to, on_verify_lent, l);
    return SSL_CTX_set_min_proto_version(to, (int)SSL_CTX_get_min_proto_version(from)) == 1 &&
                   SSL_CTX_set_cipher_list(to, CIPHERS) == 1 &&
                   SSL_CTX_set_purpose(to, X509_PURPOSE_SSL_SERVER) == 1 &&
                   tls_verify_name(SSL_CTX_get0_param(to), l->name) == 0
               ? 0
               : -1;
}
