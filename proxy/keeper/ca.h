/* The deployment's certificate authority and the leafs it signs (RFC 5280).
 *
 *   CA    EC P-256, self-signed, CA:TRUE pathlen:0, keyCertSign and cRLSign, 10 years
 *   leaf  one host, as SAN only; serverAuth; 30 days, never past the CA
 *
 * Times are Unix seconds. The private key never leaves this file but sealed. */
#ifndef PROXY_KEEPER_CA_H
#define PROXY_KEEPER_CA_H

#include "common/dynbuf.h"
#include "common/err.h"
#include "common/crypto/secret.h"

enum { CA_DER_MAX = 4096, CA_PEM_MAX = 8192, CA_SPKI = 91, CA_LEAF_DAYS = 30, CA_YEARS = 10 };

struct ca;

struct ca *ca_new(int64_t now, struct err *e) MUSTCHECK;
/* From what ca_key_der and ca_pem wrote. The two must belong together and still be what ca_new makes. */
struct ca *ca_load(const struct secret *key_der, struct span pem, int64_t now, struct err *e) MUSTCHECK;
void ca_free(struct ca **ca);
struct secret *ca_key_der(const struct ca *ca) MUSTCHECK;
int ca_pem(const struct ca *ca, struct dynbuf *out) MUSTCHECK;
struct span ca_der(const struct ca *ca);

/* A leaf for host (canonical: what http_canonical_host leaves as it is) and this public key (SubjectPublicKeyInfo of
 * an uncompressed P-256 point, DER), appended to out. *until: its notAfter. -1: host or key is not what it must be.
 */
int ca_mint(const struct ca *ca, struct span host, struct span spki, int64_t now, struct dynbuf *out,
            int64_t *until) MUSTCHECK;

#endif
