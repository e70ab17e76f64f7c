/* Inside common/net only: what stands behind the opaque types of tls.h. */
#ifndef COMMON_NET_TLS_IN_H
#define COMMON_NET_TLS_IN_H

#include <openssl/ssl.h>

#include "common/dynbuf.h"
#include "common/net/tls.h"

/* The CA of the last leaf, decoded once: it is the same for all of them, and decoding costs as much as a signature.
 */
struct tls_ca {
    X509 *cert;
    struct dynbuf der;
};

struct tls_key {
    EVP_PKEY *pkey;
    uint8_t *spki;
    size_t n;
    struct tls_ca *ca;
};

struct tls_leaf {
    X509 *cert;
    STACK_OF(X509) * chain;
    EVP_PKEY *pkey;
    unsigned more; /* who keeps it besides the first */
};

struct tls_server {
    SSL_CTX *ctx;
};

struct tls_client {
    SSL_CTX *ctx;
    uint8_t pin[TLS_PINS_MAX][TLS_PIN_BYTES];
    size_t npins;
    bool (*public_suffix)(struct span name);
};

enum { TLS_CHAIN_DEPTH = 8, TLS_CHAIN_BYTES = 64 * 1024 };

/* What every context of ours has in common; NULL with *e set. */
SSL_CTX *tls_ctx_new(const SSL_METHOD *method, struct err *e) MUSTCHECK;
/* Server side: http/1.1 or nothing. */
int tls_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *outlen, const unsigned char *in, unsigned n,
                void *arg);
/* For whatever reads PEM: nothing is asked about an encrypted text, for there is nobody to type. */
int tls_no_password(char *to, int n, int writing, void *arg);
int tls_add_roots(X509_STORE *store, struct span pem, struct err *e) MUSTCHECK;

/* Which name a certificate must be for, by none but its subject alternative names. */
int tls_verify_name(X509_VERIFY_PARAM *p, struct span name) MUSTCHECK;
/* What the library says of its last error, in words of its own; clears the queue. */
const char *tls_words(void);
/* Checks of a server's leaf beyond OpenSSL's: NULL when it passes, else what is wrong with it.
 * chain: as verified, leaf first; name: the name it must serve (a DNS name or an IP literal); public_suffix: NULL, or
 * as in tls_trust. */
const char *tls_leaf_fault(STACK_OF(X509) * chain, struct span name, bool (*public_suffix)(struct span));
/* What a strict reading of RFC 5280 finds wrong with a CA, by itself; NULL: nothing. */
const char *tls_ca_fault(X509 *x);
/* Is the key of one of the chain's certificates among the pins? NULL: it is, or there are none. */
const char *tls_pin_fault(STACK_OF(X509) * chain, const uint8_t (*pin)[TLS_PIN_BYTES], size_t npins);

#endif
