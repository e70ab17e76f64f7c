/* Signatures whose form is a policy's own (template.h): the text is put together of what was decided, an HMAC is made
 * over it, and its fields are written. Pure; the caller owns the key. */
#ifndef COMMON_SIGN_HMAC_H
#define COMMON_SIGN_HMAC_H

#include "common/dynbuf.h"
#include "common/http/http.h"
#include "common/sign/template.h"

enum { SIGN_HMAC_KEY_MAX = 8 * 1024 };

/* What the parts stand for. */
struct sign_facts {
    struct span method, path, query; /* as they leave; query: with its '?', or empty */
    struct span host;                /* as the Host field has it */
    struct span body;                /* of PART_BODY */
    const struct http_field *given;  /* values of the parts that are named otherwise, by what is in their braces */
    size_t ngiven;
    uint64_t now_ms; /* Unix, before the year 10000 */
    struct span id, token, signature;
};

/* text with its parts in their places, appended to out. -1: a part that there is not, or of which nothing is given;
 * out's limit. */
int sign_expand(struct span text, const struct sign_facts *f, struct dynbuf *out) MUSTCHECK;
/* The value of a part that is made of the body alone, appended to out. -1: it is none of these; no memory. */
int sign_body_part(enum sign_part_kind k, struct span body, struct dynbuf *out) MUSTCHECK;

/* A key as its secret is written: out has SIGN_HMAC_KEY_MAX bytes. -1: it is not written so, or empty, or longer. */
int sign_hmac_key(enum sign_coding c, struct span text, uint8_t *out, size_t *n) MUSTCHECK;
/* The HMAC of data, written as c says (base64url without '='), appended to out. -1: no memory, or out's limit. */
int sign_hmac(enum sign_hash h, struct span key, struct span data, enum sign_coding c, struct dynbuf *out) MUSTCHECK;

#endif
