/* A JWT that a source is asked with, signed here: the key never leaves the keeper. What is to be in it the policy
 * says in settings that begin with "jwt.":
 *
 *   jwt.key       a private key in PEM
 *   jwt.kid       what the header calls it; "*": its thumbprint; not there: nothing
 *   jwt.iss jwt.sub jwt.aud (one or more) jwt.claim.NAME
 *   jwt.ttl       ms; default MINTED_MS
 *   jwt.as        the setting that takes their place; default "assertion"
 */
#ifndef PROXY_KEEPER_MINTED_H
#define PROXY_KEEPER_MINTED_H

#include "common/crypto/secret.h"
#include "common/err.h"
#include "proxy/fetcher/wire_fetch.h"

enum {
    MINTED_MS = 5 * 60 * 1000,
    MINTED_BEFORE_S = 60, /* so old it is said to be, for those whose clocks are behind */
    MINTED_CLAIMS_MAX = 5 * 1024
};

/* now: Unix seconds. Puts the JWT in the place of w's settings "jwt."; *jwt is what the new one borrows from, NULL
 * when there are none of them. 0, or -1 with words that hold no secret. */
int minted_jwt(struct wire_fetch *w, int64_t now, struct secret **jwt, struct err *e) MUSTCHECK;
/* How long one of these settings is good for, in ms; before minted_jwt. */
uint64_t minted_ms(const struct wire_fetch *w);

#endif
