/* JSON, strictly RFC 8259: yajl's SAX parser behind a guard that refuses what
 * yajl lets pass (bad UTF-8, duplicate keys, lone surrogates, NUL in a key, depth, size).
 * Numbers stay text. */
#ifndef COMMON_JSON_JSON_H
#define COMMON_JSON_JSON_H

#include "common/arena.h"
#include "common/dynbuf.h"

enum { JSON_DEPTH_MAX = 64, JSON_NODES_MAX = 100000 };

enum json_type { JSON_BAD = 0, JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_type type;
    bool truth;
    bool twice;       /* an object of json_parse_twice: a name stands more than once */
    struct span text; /* a string's bytes (unescaped), a number's digits; a zero byte follows if there are any */
    struct span key;  /* when it is an object's member */
    const struct json *child; /* first member or element */
    const struct json *next;
    size_t count; /* members or elements */
};

/* The whole text as one tree in the arena (its strings are copied there), or NULL:
 * not JSON, over a limit, or out of memory. At most JSON_DEPTH_MAX nested, JSON_NODES_MAX values. */
const struct json *json_parse(struct span text, struct arena *a) MUSTCHECK;
/* The same, with the reason for NULL. JSON_OVER_LIMIT: also out of memory. */
enum json_fault { JSON_MALFORMED = 0, JSON_BYTES, JSON_KEY_TWICE, JSON_OVER_LIMIT };
const struct json *json_parse_or(struct span text, struct arena *a, enum json_fault *why) MUSTCHECK;
/* The same for showing alone: what has a name twice is no fault, and all members are there. */
const struct json *json_parse_twice(struct span text, struct arena *a, enum json_fault *why) MUSTCHECK;
/* A member by name; NULL if absent or not an object. */
const struct json *json_get(const struct json *j, struct span key);
/* RFC 6901; "" is the whole. NULL if it leads nowhere. */
const struct json *json_pointer(const struct json *j, struct span pointer);
/* Text of a string member, else empty. */
struct span json_text(const struct json *j, struct span key);
/* A non-negative integer member up to 2^53; 0, or -1 */
int json_u64(const struct json *j, struct span key, uint64_t *out) MUSTCHECK;

/* Writing. Strings may hold any bytes: what is not UTF-8 becomes U+FFFD. Commas
 * and nesting are kept by the writer; errors (more than 63 nested, an end without its
 * begin, a full buffer) stick in the buffer: check dynbuf_ok at the end. */
struct jsonw {
    struct dynbuf *out;
    unsigned depth;
    uint64_t comma; /* bit per depth */
};
void jsonw_begin(struct jsonw *w, struct dynbuf *out);
void jsonw_object(struct jsonw *w);
void jsonw_array(struct jsonw *w);
void jsonw_end_object(struct jsonw *w);
void jsonw_end_array(struct jsonw *w);
void jsonw_key(struct jsonw *w, const char *key);
/* The same of a name that somebody else chose. */
void jsonw_name(struct jsonw *w, struct span key);
void jsonw_string(struct jsonw *w, struct span s);
void jsonw_u64(struct jsonw *w, uint64_t v);
void jsonw_bool(struct jsonw *w, bool v);
/* A value as it was parsed: its members in their order, its numbers to the digit. */
void jsonw_tree(struct jsonw *w, const struct json *value);
/* Already JSON, one value: copied as it is. */
void jsonw_raw(struct jsonw *w, struct span json);
/* Key and value in one; of an object or an array, its begin. */
void jsonw_kv(struct jsonw *w, const char *key, struct span s);
void jsonw_kv_u64(struct jsonw *w, const char *key, uint64_t v);
void jsonw_kv_bool(struct jsonw *w, const char *key, bool v);
void jsonw_kv_raw(struct jsonw *w, const char *key, struct span json);
void jsonw_kv_object(struct jsonw *w, const char *key);
void jsonw_kv_array(struct jsonw *w, const char *key);

#endif
