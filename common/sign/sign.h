/* Signatures over canonical requests (canonical.h): AWS Signature Version 4 and Tencent Cloud's TC3-HMAC-SHA256,
 * which differ by a few words. Pure; the caller says the time and owns the key. */
#ifndef COMMON_SIGN_SIGN_H
#define COMMON_SIGN_SIGN_H

#include "common/sign/canonical.h"
#include "common/sign/scheme.h"

enum {
    SIGN_KEY = 32,
    SIGN_TEXT = 64 /* of a signature, in lower-case hex */,
    SIGN_STAMP_MAX = 20,
    SIGN_DAY_MAX = 10
};

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

/* The key of that day, region and service. -1: no memory. The caller wipes it, and may keep it for the day. */
int sign_key(const struct sign_scope *s, struct span secret, uint8_t key[SIGN_KEY]) MUSTCHECK;
/* The signature and a NUL. -1: no memory. */
int sign_request(const struct sign_scope *s, const uint8_t key[SIGN_KEY], const struct sign_request *r,
                 char out[SIGN_TEXT + 1]) MUSTCHECK;
/* The value of Authorization, appended to out. */
int sign_authorization(const struct sign_scope *s, struct span id, const struct sign_request *r,
                       const char signature[SIGN_TEXT + 1], struct dynbuf *out) MUSTCHECK;

/* The next chunk of a signed body: previous is the signature before it (of the request, to begin with). */
int sign_chunk(const struct sign_scope *s, const uint8_t key[SIGN_KEY], const char previous[SIGN_TEXT + 1],
               const struct digest *data, char out[SIGN_TEXT + 1]) MUSTCHECK;
/* Its trailer; fields: SHA-256 of "name:value\n" of each, in order. */
int sign_trailer(const struct sign_scope *s, const uint8_t key[SIGN_KEY], const char previous[SIGN_TEXT + 1],
                 const struct digest *fields, char out[SIGN_TEXT + 1]) MUSTCHECK;

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
