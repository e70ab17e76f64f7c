/* What a body is made of, between diff_body.c, diff_graphql.c, diff_jsonrpc.c and diff_multipart.c. */
#ifndef CLI_POLICY_DIFF_DIFF_BODY_H
#define CLI_POLICY_DIFF_DIFF_BODY_H

#include "cli/policy/diff/diff_parts.h"
#include "common/json/json.h"

enum { DIFF_FIELDS_MAX = 16 };

/* What stands at a key that conditions ask about: a pointer with its value as JSON, a field of a form, or another key
 * of policy/body/parsers.h with a name or text. second: what stands there too, or p NULL. */
struct stands {
    struct span key, text, second;
};

/* An object of pointers with their values. -1: two of them cannot stand in one document. */
int diff_write_json(struct jsonw *w, const struct stands *v, size_t n, unsigned depth) MUSTCHECK;
/* A request with one operation, arguments as variables; with a second type two requests. -1: it cannot be. */
int diff_write_graphql(struct dynbuf *b, const struct stands *v, size_t n) MUSTCHECK;
/* A message of JSON-RPC, with a second method or tool a list of two. -1: it cannot be. */
int diff_write_jsonrpc(struct dynbuf *b, const struct stands *v, size_t n) MUSTCHECK;
/* The body of a type with diff_multipart_type. -1: it cannot be. */
int diff_write_multipart(struct dynbuf *b, const struct stands *v, size_t n) MUSTCHECK;
extern const struct span diff_multipart_type;
/* Can it be what this key of GraphQL asks about, or this one of a form with files? */
bool diff_graphql_can_be(struct span key, struct span text);
bool diff_multipart_can_be(struct span key, struct span text);

#endif
