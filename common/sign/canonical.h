/* A request in the canonical form that AWS Signature Version 4 hashes, and Tencent's TC3 with it. Pure, and without a
 * key: the judge makes the parts, the keeper puts them together.
 *
 *   METHOD \n path \n query \n name:value\n (each field, names in lower case, sorted) \n name;name... \n payload */
#ifndef COMMON_SIGN_CANONICAL_H
#define COMMON_SIGN_CANONICAL_H

#include "common/arena.h"
#include "common/http/http.h"
#include "common/id.h"

/* Of a client, and those that are added: host, date, token. */
enum { SIGN_FIELDS_MAX = HTTP_FIELDS_MAX + 4, SIGN_QUERY_MAX = 256 };

struct sign_request {
    struct span method, path, query; /* path and query in their canonical forms */
    struct http_field field[SIGN_FIELDS_MAX];
    size_t nfields;      /* names in lower case, sorted, none of them twice; values in their canonical form */
    struct span payload; /* what x-amz-content-sha256 says, or the body's SHA-256 in hex */
};

/* How a service wants the path. */
enum sign_path {
    SIGN_PATH_AS_SENT = 0, /* Tencent */
    SIGN_PATH_ONCE,        /* S3: each byte in one spelling, slashes and dots left where they are */
    SIGN_PATH_TWICE        /* other services of AWS: empty and dot segments removed, then encoded once more */
};

/* path: as it is sent, beginning with '/'. -1: no memory, out's limit, or no path. */
int sign_canonical_path(struct span path, enum sign_path how, struct dynbuf *out) MUSTCHECK;
/* query: as it is sent, without '?'. Names and values in one spelling ('+' is a space), sorted by name, then value.
 * Not for Tencent, which signs it as sent. -1: more than SIGN_QUERY_MAX parts, out's limit, a broken escape. */
int sign_canonical_query(struct span query, struct dynbuf *out) MUSTCHECK;
/* Does the query itself carry a signature (a presigned URL, of any of AWS's versions)? Names in any spelling. */
bool sign_is_presigned(struct span query);

/* The field in its place; a second one of its name is joined to the first with a comma, as HTTP lets a recipient do.
 * The texts live in a. -1: no room, no memory, or a name that is none. */
int sign_add_field(struct sign_request *r, struct arena *a, struct span name, struct span value) MUSTCHECK;
/* Must a signature cover this field of a client's (canonical name)? Content-Type, Content-MD5 and X-Amz-*, without
 * those the signer writes itself. */
bool sign_covers(struct span name);

/* "host;x-amz-date", appended to out. */
int sign_names(const struct sign_request *r, struct dynbuf *out) MUSTCHECK;
/* SHA-256 of the canonical request. */
void sign_canonical(const struct sign_request *r, struct digest *out);

#endif
