/* What a signature is for and when, and what a client says of its own. Pure, and without a key: sign.h has those. */
#ifndef COMMON_SIGN_CLAIM_H
#define COMMON_SIGN_CLAIM_H

#include <stdint.h>

#include "common/span.h"
#include "common/sign/scheme.h"

enum { SIGN_TEXT = 64 /* of a signature, in lower-case hex */, SIGN_STAMP_MAX = 20, SIGN_DAY_MAX = 10 };

/* What differs between the schemes; NULL: there is no such scheme. */
struct sign_words {
    struct span algorithm, prefix, end;
    bool region;
};
const struct sign_words *sign_words(enum sign_scheme s);

/* What a key is for and when. Texts without '/', ',' or line ends (sign_scope_ok). */
struct sign_scope {
    enum sign_scheme scheme;
    char stamp[SIGN_STAMP_MAX + 1]; /* 20260102T030405Z; of TC3 Unix seconds */
    char day[SIGN_DAY_MAX + 1];     /* 20260102; of TC3 2026-01-02, in UTC */
    struct span region, service;    /* TC3 has no region */
};

/* A scope of now (Unix seconds, from the year 1970 to 9999). -1: out of range, or names that cannot stand in one. */
int sign_scope_at(enum sign_scheme scheme, int64_t now, struct span region, struct span service,
                  struct sign_scope *out) MUSTCHECK;
/* The same of a stamp that a client wrote. */
int sign_scope_of(enum sign_scheme scheme, struct span stamp, struct span region, struct span service,
                  struct sign_scope *out) MUSTCHECK;
/* When that is, in Unix seconds. -1: there is no such time. */
int64_t sign_scope_time(const struct sign_scope *s) MUSTCHECK;

/* A client's Authorization taken apart; it borrows from the value. */
struct sign_claim {
    enum sign_scheme scheme;
    struct span id, day, region, service;
    struct span names;     /* "host;x-amz-date" */
    struct span signature; /* SIGN_TEXT characters of lower-case hex */
};
/* -1: not of these schemes, or not exactly of their form. */
int sign_claim_read(struct span authorization, struct sign_claim *out) MUSTCHECK;
/* Is name among those of the claim? */
bool sign_claims(const struct sign_claim *c, struct span name);

#endif
