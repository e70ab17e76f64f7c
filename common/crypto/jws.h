/* JSON Web Signatures in their compact form (RFC 7515), RS256 or ES256 by the kind of the key, and the public half of
 * a key for those who verify them (RFC 7517). Only what is made here: nothing of somebody else's is read. */
#ifndef COMMON_CRYPTO_JWS_H
#define COMMON_CRYPTO_JWS_H

#include "common/dynbuf.h"
#include "common/err.h"

enum { JWS_RSA_BITS = 2048 /* at least */, JWS_RSA_BITS_MAX = 4096, JWS_KID = 43, JWS_MAX = 12 * 1024 };

struct jws_key;

/* A private key as PEM, without a passphrase: RSA, or EC on P-256. NULL with words that hold nothing of it. */
struct jws_key *jws_key_new(struct span pem, struct err *e) MUSTCHECK;
void jws_key_free(struct jws_key **k);
/* Its thumbprint (RFC 7638). */
const char *jws_kid(const struct jws_key *k);
/* header.claims.signature, appended to out; kid: what the header calls the key, letters that JSON takes as they are,
 * or empty; claims: a JSON object. -1: out's limit, or no memory. */
int jws_sign(const struct jws_key *k, struct span kid, struct span claims, struct dynbuf *out) MUSTCHECK;
/* The public key as one JWK, appended to out. */
int jws_public(const struct jws_key *k, struct dynbuf *out) MUSTCHECK;

#endif
