/* TLS settings shared by the connections of a process. One SSL_CTX each,
 * certificates set per connection (a context costs 137 us and 14 KB). */
#ifndef COMMON_NET_TLS_H
#define COMMON_NET_TLS_H

#include "common/err.h"

struct tls_key;    /* a front's own P-256 leaf key, made at start */
struct tls_leaf;   /* a certificate with its chain, for that key */
struct tls_server; /* interception: ALPN http/1.1, tickets off, no client certificates, early data refused */
struct tls_client; /* upstream: verification always on; no environment variable is read */

struct tls_key *tls_key_new(void) MUSTCHECK;
/* SubjectPublicKeyInfo, DER; what the keeper signs. Valid as long as the key. */
struct span tls_key_spki(const struct tls_key *k);
void tls_key_free(struct tls_key **k);

/* DER of the leaf and of the CA that issued it. The key must match. Reference counted by connections. */
struct tls_leaf *tls_leaf_new(const struct tls_key *k, struct span leaf_der, struct span ca_der) MUSTCHECK;
/* For one more who keeps it, and frees it. */
struct tls_leaf *tls_leaf_keep(struct tls_leaf *leaf) MUSTCHECK;
void tls_leaf_free(struct tls_leaf **leaf);

struct tls_server *tls_server_new(struct err *e) MUSTCHECK;
void tls_server_free(struct tls_server **s);

/* The other kind of server: the proxy itself, to clients that wrap what they say to it in TLS. PEM: its chain, leaf
 * first, and the leaf's key, without a passphrase. clients_pem: the CAs that clients' certificates come from, and
 * then everybody must have one; empty: nobody is asked. */
struct tls_server *tls_server_own(struct span chain_pem, struct span key_pem, struct span clients_pem,
                                  struct err *e) MUSTCHECK;

/* Whom to trust. Beyond OpenSSL's own checks the leaf must carry a SAN that matches without CN fallback or partial
 * wildcard, EKU serverAuth, be v3, not a CA and without name constraints; the chain's keys are RSA of 2048 bits, EC
 * of 224 or Edwards ones, or larger. */
enum { TLS_PINS_MAX = 16, TLS_PIN_BYTES = 32 };
struct tls_trust {
    struct span
        roots_pem; /* all of it: the role read the system bundle before it was confined, or the policy named it */
    struct span crl_pem; /* not empty: every certificate of a chain needs a current list of its issuer */
    struct span
        pin[TLS_PINS_MAX]; /* SHA-256 of a SubjectPublicKeyInfo; with any, one of the verified chain must fit */
    size_t npins;
    bool only_13; /* TLS 1.3, not 1.2 */
    /* Can anybody have a name below this one? A wildcard over it then vouches for nobody. NULL: not asked. */
    bool (*public_suffix)(struct span name);
};
/* Chains are held to RFC 5280 to the letter (X509_V_FLAG_X509_STRICT) below a root that keeps to it itself; below one
 * that does not none would pass, and they are held to the rest. Do all of these roots keep to it? -1: one does not,
 * or cannot be read; *e names it and says why. */
int tls_roots_strict(struct span roots_pem, struct err *e) MUSTCHECK;
struct tls_client *tls_client_new(const struct tls_trust *t, struct err *e) MUSTCHECK;
void tls_client_free(struct tls_client **t);

/* For a library that makes SSL_CTX of its own: whom it trusts, by what checks, for this one name. Each connection of
 * such a context is held to what one of ours is. All of it must outlive the context. */
struct tls_lent {
    const struct tls_client *client;
    struct span name; /* of the server: a DNS name or an address */
    const char *why; /* the certificate that came last was refused for this; NULL: it was not, or OpenSSL knows why */
};
/* ssl_ctx: an SSL_CTX, set to this whatever it was before. -1: it must not be used. */
int tls_client_lend(struct tls_lent *l, void *ssl_ctx) MUSTCHECK;

#endif
