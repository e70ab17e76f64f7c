/* Signatures over canonical requests (canonical.h): AWS Signature Version 4 and Tencent Cloud's TC3-HMAC-SHA256,
 * which differ by a few words. Pure; the caller owns the key. When and for what it is: claim.h. */
#ifndef COMMON_SIGN_SIGN_H
#define COMMON_SIGN_SIGN_H

#include "common/sign/canonical.h"
#include "common/sign/claim.h"

enum { SIGN_KEY = 32 };

/* The key of that day, region and service. -1: no memory. The caller wipes it, and may keep it for the day. */
int sign_key(const struct sign_scope *s, struct span secret, uint8_t key[SIGN_KEY]) MUSTCHECK;
/* The signature and a NUL. -1: no memory. */
int sign_request(const struct sign_scope *s, const uint8_t key[SIGN_KEY], const struct sign_request *r,
                 char out[SIGN_TEXT + 1]) MUSTCHECK;
/* The same where only the SHA-256 of the canonical request is here. */
int sign_digest(const struct sign_scope *s, const uint8_t key[SIGN_KEY], const struct digest *canonical,
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

#endif
