/* What a service wants signed that has a scheme of its own, and the fields that say so: texts of a policy with
 * placeholders in braces (`inject: { hmac: ... }`). Pure, and without a key: hmac.h puts the parts together. */
#ifndef COMMON_SIGN_TEMPLATE_H
#define COMMON_SIGN_TEMPLATE_H

#include "common/span.h"
#include "common/sign/scheme.h"

enum {
    SIGN_TEMPLATE_MAX = 1024,
    SIGN_FORMAT_MAX = 256, /* of one field */
    SIGN_FIELDS_OUT = 4    /* fields of one signature */
};

/* Where a placeholder may stand: in what is signed, in a field. */
enum { IN_TEMPLATE = 1, IN_FIELD = 2 };

/* name, as it is written, where it may stand */
#define SIGN_PARTS(X)                                                                                                \
    X(METHOD, "method", IN_TEMPLATE)                                                                                 \
    X(PATH, "path", IN_TEMPLATE)                                                                                     \
    X(QUERY, "query", IN_TEMPLATE)               /* without '?' */                                                   \
    X(SORTED_QUERY, "sorted_query", IN_TEMPLATE) /* sign_canonical_query */                                          \
    X(TARGET, "target", IN_TEMPLATE)             /* path, and the query with its '?' */                              \
    X(HOST, "host", IN_TEMPLATE)                 /* with the port where it is not the usual one */                   \
    X(HEADER, "header.", IN_TEMPLATE)            /* and the name of a field that the client sends */                 \
    X(BODY, "body", IN_TEMPLATE)                 /* at the end */                                                    \
    X(BODY_SHA256, "body_sha256", IN_TEMPLATE | IN_FIELD)                                                            \
    X(BODY_SHA256_BASE64, "body_sha256_base64", IN_TEMPLATE | IN_FIELD)                                              \
    X(BODY_SHA512, "body_sha512", IN_TEMPLATE | IN_FIELD)                                                            \
    X(BODY_SHA512_BASE64, "body_sha512_base64", IN_TEMPLATE | IN_FIELD)                                              \
    X(TIME, "time", IN_TEMPLATE | IN_FIELD)         /* Unix seconds */                                               \
    X(TIME_MS, "time_ms", IN_TEMPLATE | IN_FIELD)   /* Unix milliseconds */                                          \
    X(DATE, "date", IN_TEMPLATE | IN_FIELD)         /* Mon, 23 Nov 2026 09:00:00 GMT */                              \
    X(ISO_TIME, "iso_time", IN_TEMPLATE | IN_FIELD) /* 2026-11-23T09:00:00Z */                                       \
    X(ID, "id", IN_TEMPLATE | IN_FIELD)             /* of a secret that is ID:KEY or ID:KEY:TOKEN */                 \
    X(TOKEN, "token", IN_FIELD)                                                                                      \
    X(SIGNATURE, "signature", IN_FIELD)

enum sign_part_kind {
    PART_TEXT = 0,
#define X(id, word, where) PART_##id,
    SIGN_PARTS(X)
#undef X
};

struct sign_part {
    enum sign_part_kind kind;
    struct span text;  /* what stands there: of PART_TEXT the text, else what is in the braces */
    struct span field; /* of PART_HEADER: its name, in lower case */
};

/* The part at the beginning of rest, which is taken off it. 1; 0: there is none left; -1: a brace that is no
 * placeholder's, or one that there is not. */
int sign_part_next(struct span *rest, struct sign_part *out) MUSTCHECK;
/* Does any part of text stand for the body, or its digest? */
bool sign_part_of_body(enum sign_part_kind k);
/* Is this kind among the parts of a good text? */
bool sign_template_has(struct span text, enum sign_part_kind k);
/* NULL, or why it is no text to sign (where: IN_TEMPLATE), or none of a field (IN_FIELD), as the end of a sentence.
 */
const char *sign_template_wrong(struct span text, unsigned where);
/* The first placeholder of a good text behind which nothing tells where it ends, so that requests which differ can be
 * signed alike; empty: there is none. */
struct span sign_template_open_end(struct span text);

#endif
