/* What a lease looks like: a text in the form of a provider's own credential, which means something to this gateway
 * alone. One row of LEASE_FORMATS for each form. Pure: who makes a lease gives the random-looking bytes.
 *
 *   text     prefix, LEASE_TAG characters that are the same in every lease of one gateway, the rest of the body
 *            from `stream`, and a checksum where the provider has one
 *   secret   the second half of a pair (AWS, Tencent), from `stream` as well
 *
 * The tag has its own alphabet, which lies in that of every form: one search finds any lease of a gateway in bytes of
 * any kind. How long the real credential is plays no part anywhere. */
#ifndef COMMON_LEASE_LEASE_H
#define COMMON_LEASE_LEASE_H

#include "common/span.h"

enum {
    LEASE_TAG = 6,          /* characters of A-Z and 2-7 */
    LEASE_BODY_MAX = 96,    /* after the prefix, with tag and checksum */
    LEASE_TEXT_MAX = 128,   /* of a text or a secret */
    LEASE_STREAM = 2 * 256, /* bytes that lease_text and lease_secret are given: two for a character */
};

enum lease_alphabet { LEASE_BASE62 = 0, LEASE_BASE32, LEASE_URL, LEASE_BASE64 };
enum lease_checksum {
    LEASE_PLAIN = 0,
    LEASE_CRC62 /* CRC-32 of what stands before it, in base 62, six characters */
};

/* name, prefix, alphabet, characters after the prefix, checksum, characters of the secret (0: there is none), its
 * alphabet. Numbers are kept in policy images: new rows go to the end. */
#define LEASE_FORMATS(X)                                                                                             \
    X(GENERIC, "generic", "cs_", LEASE_BASE62, 40, LEASE_PLAIN, 0, LEASE_BASE62)                                     \
    X(GITHUB, "github", "ghp_", LEASE_BASE62, 36, LEASE_CRC62, 0, LEASE_BASE62)                                      \
    X(GITHUB_APP, "github-app", "ghs_", LEASE_BASE62, 36, LEASE_CRC62, 0, LEASE_BASE62)                              \
    X(NPM, "npm", "npm_", LEASE_BASE62, 36, LEASE_CRC62, 0, LEASE_BASE62)                                            \
    X(AWS, "aws", "AKIA", LEASE_BASE32, 16, LEASE_PLAIN, 40, LEASE_BASE64)                                           \
    X(TENCENT, "tencent", "AKID", LEASE_BASE62, 32, LEASE_PLAIN, 32, LEASE_BASE62)                                   \
    X(ANTHROPIC, "anthropic", "sk-ant-api03-", LEASE_URL, 95, LEASE_PLAIN, 0, LEASE_BASE62)                          \
    X(OPENAI, "openai", "sk-", LEASE_BASE62, 48, LEASE_PLAIN, 0, LEASE_BASE62)                                       \
    X(STRIPE, "stripe", "rk_live_", LEASE_BASE62, 24, LEASE_PLAIN, 0, LEASE_BASE62)                                  \
    X(GITLAB, "gitlab", "glpat-", LEASE_URL, 20, LEASE_PLAIN, 0, LEASE_BASE62)                                       \
    X(PYPI, "pypi", "pypi-AgEIcHlwaS5vcmc", LEASE_URL, 80, LEASE_PLAIN, 0, LEASE_BASE62)                             \
    X(SLACK, "slack", "xoxb-1000000000-1000000000-", LEASE_BASE62, 24, LEASE_PLAIN, 0, LEASE_BASE62)

enum lease_format {
    LEASE_NONE = 0,
#define X(id, name, prefix, alphabet, n, checksum, secret, secret_alphabet) LEASE_##id,
    LEASE_FORMATS(X)
#undef X
        LEASE_FORMAT_COUNT
};

/* "github" or NULL. */
const char *lease_format_name(enum lease_format f);
/* LEASE_NONE: there is none of that name. */
enum lease_format lease_format_named(struct span name);
/* Does it come with a secret of its own? */
bool lease_is_pair(enum lease_format f);

/* tag: LEASE_TAG characters, from lease_tag. stream: LEASE_STREAM bytes that nobody can guess. Writes at most
 * LEASE_TEXT_MAX characters; returns how many, 0 when f is no format or has no secret. */
size_t lease_text(enum lease_format f, const char *tag, const uint8_t *stream, char *out);
size_t lease_secret(enum lease_format f, const uint8_t *stream, char *out);
/* A tag from five random-looking bytes; writes LEASE_TAG characters and a NUL. */
void lease_tag(const uint8_t seed[5], char out[LEASE_TAG + 1]);
/* The whole text around the tag that was found at s.p + at: one prefix stands before it and the characters that
 * belong to that form behind it. Empty when it is no lease's. A longer run of the same characters is still that text
 * and something behind it. */
struct span lease_around(struct span s, size_t at);
/* The form that this is a whole text of, and where its tag begins; LEASE_NONE: of none. */
enum lease_format lease_format_of(struct span text, size_t *tag);

#endif
