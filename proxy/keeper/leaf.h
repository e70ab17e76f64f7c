/* One leaf certificate, unsigned: built without ever making an EVP_PKEY of its
 * public key, which would be four fifths of the cost. */
#ifndef PROXY_KEEPER_LEAF_H
#define PROXY_KEEPER_LEAF_H

#include <openssl/x509.h>

#include "common/span.h"

struct leaf_parts; /* extensions that every leaf of a CA shares */

struct leaf_parts *leaf_parts_new(X509 *ca) MUSTCHECK;
void leaf_parts_free(struct leaf_parts **p);
/* 16 random bytes as a positive serial number, and a copy of them. */
int leaf_serial(ASN1_INTEGER *to, uint8_t copy[16]) MUSTCHECK;
/* NULL when host or spki is not acceptable, or memory is out. now, end: Unix seconds. */
X509 *leaf_new(const struct leaf_parts *p, const X509 *ca, struct span host, struct span spki, int64_t now,
               int64_t end) MUSTCHECK;

#endif
