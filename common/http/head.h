/* What requests and responses share: lines, fields, framing fields. Inside this room only. */
#ifndef COMMON_HTTP_HEAD_H
#define COMMON_HTTP_HEAD_H

#include "common/http/http.h"

/* Fields that the parser gives a meaning to, or that may occur once at most. */
enum http_known {
    KNOWN_NONE = 0,
    KNOWN_HOST,
    KNOWN_LENGTH,
    KNOWN_CODING, /* Transfer-Encoding */
    KNOWN_CONNECTION,
    KNOWN_EXPECT,
    KNOWN_UPGRADE,
    KNOWN_MAX_FORWARDS,
    KNOWN_CONTENT_TYPE,
    KNOWN_CONTENT_ENCODING,
    KNOWN_CONTENT_RANGE,
    KNOWN_AUTHORIZATION,
    KNOWN_PROXY_AUTHORIZATION,
    KNOWN_COOKIE,
    KNOWN_ORIGIN,
    KNOWN_RANGE,
    KNOWN_AMZ_TARGET,
    KNOWN_COUNT
};

struct http_seen {
    const struct http_field *first[KNOWN_COUNT];
    bool close, keep_alive; /* named in Connection */
};

/* Which side is parsed: how a start line is read, how much there may be, what is said on refusal. */
struct http_side {
    enum http_result (*start)(struct span line, struct http_head *h, struct http_err *e);
    size_t bytes, fields; /* at most, of a head */
    bool response;
};

/* Fill *e and give HTTP_BAD. */
enum http_result http_refuse(struct http_err *e, unsigned status, const char *code, const char *why);
/* Everything up to the empty line: syntax only. As http_parse_request. */
enum http_result http_head_scan(struct span in, const struct http_side *side, size_t *seen, struct http_head *h,
                                size_t *used, struct http_err *e) MUSTCHECK;
/* Sort the fields: duplicates, look-alikes, Connection; those of a request that have a meaning here are ASCII. Of an
 * answer, a Content-Length or Content-Type that is said again in the same bytes is taken out. */
enum http_result http_head_fields(struct http_head *h, bool response, struct http_seen *k,
                                  struct http_err *e) MUSTCHECK;
/* Content-Length and Transfer-Encoding against each other. Leaves HTTP_NO_BODY when neither is there. */
enum http_result http_head_framing(struct http_head *h, bool response, const struct http_seen *k,
                                   struct http_err *e) MUSTCHECK;
void http_head_reset(struct http_head *h);

#endif
