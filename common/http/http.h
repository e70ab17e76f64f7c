/* HTTP/1.1 (RFC 9110, 9112), sans-io and strict: what the RFCs let a recipient
 * refuse is refused. Nothing here allocates, reads a socket or knows a policy.
 * Spans point into the caller's bytes, which must stay put while they are used. */
#ifndef COMMON_HTTP_HTTP_H
#define COMMON_HTTP_HTTP_H

#include "common/dynbuf.h"

enum {
    HTTP_HEAD_MAX = 32 * 1024, /* start line and fields with their line ends */
    HTTP_TARGET_MAX = 16 * 1024,
    HTTP_FIELDS_MAX = 100,
    HTTP_TRAILERS_MAX = 8 * 1024,
    HTTP_HOST_MAX = 253, /* of a host name, RFC 1035 section 2.3.4 */
};

enum http_result { HTTP_BAD = 0, HTTP_MORE, HTTP_OK };

struct http_field {
    struct span name, value; /* name as sent; value without surrounding white space */
};

enum http_form { HTTP_FORM_NONE = 0, HTTP_ORIGIN, HTTP_ABSOLUTE, HTTP_AUTHORITY, HTTP_ASTERISK };
enum http_framing { HTTP_NO_BODY = 0, HTTP_LENGTH, HTTP_CHUNKED, HTTP_UNTIL_CLOSE };

struct http_head {
    /* request */
    struct span method, target;
    enum http_form form;
    struct span scheme;      /* of an absolute target, else empty */
    struct span host;        /* authority of the target if it has one, else of Host; as sent, no port */
    uint16_t port;           /* 0 when none was named */
    struct span path, query; /* path begins with '/'; query without '?' */
    bool has_query;
    /* response */
    unsigned status;
    struct span reason;
    /* both */
    unsigned minor; /* HTTP/1.minor, 0 or 1 */
    struct http_field field[HTTP_FIELDS_MAX];
    size_t nfields;
    enum http_framing framing;
    uint64_t length; /* with HTTP_LENGTH; 0 with HTTP_LENGTH is a body of no bytes that was declared */
    bool keep_alive; /* after this message, as far as the sender goes */
    bool expect_continue;
    bool upgrade; /* an Upgrade field was there */
};

/* Why a message was refused: a status to answer with, a stable code such as
 * "bad-content-length", and one sentence. */
struct http_err {
    unsigned status;
    const char *code;
    const char *why;
};

/* What the request parser is listening for. In a tunnel only origin-form is
 * taken; on a proxy port only CONNECT and absolute-form http://. The desk and
 * the control socket are HTTP_ORIGIN_SERVER. */
enum http_place { HTTP_IN_TUNNEL = 1, HTTP_ON_PROXY_PORT, HTTP_ORIGIN_SERVER };

/* Parse one request head from the start of in. HTTP_OK: *used bytes are the
 * head. HTTP_MORE: not complete yet, nothing wrong so far; call again with more.
 * `seen` (start it at 0) makes repeated calls linear. HTTP_BAD: *e says why.
 * One empty line (CRLF) before the request line is allowed (RFC 9112 section 2.2). */
enum http_result http_parse_request(struct span in, enum http_place place, size_t *seen, struct http_head *h,
                                    size_t *used, struct http_err *e) MUSTCHECK;
/* Parse one response head. `method`: of the request it answers (HEAD and CONNECT change the framing). */
enum http_result http_parse_response(struct span in, struct span method, size_t *seen, struct http_head *h,
                                     size_t *used, struct http_err *e) MUSTCHECK;

/* The value of a field, or NULL if absent. ASCII case of the name is ignored. */
const struct http_field *http_find(const struct http_head *h, struct span name);

/* Reading a body: feed bytes, get data spans that point into them. */
struct http_body {
    enum http_framing framing;
    uint64_t left; /* in this length or chunk */
    unsigned state;
    unsigned digits;
    size_t trailer;
    struct http_err err;
};

void http_body_begin(struct http_body *b, const struct http_head *h);
/* One step: consumes *used bytes of in and may give some as *data. HTTP_OK: the
 * body is complete (this call may still give data). HTTP_MORE: call again with
 * what is left, or wait for more when *used is 0. HTTP_BAD: b->err says why.
 * Chunk extensions are refused; trailer fields are checked and dropped. */
enum http_result http_body_step(struct http_body *b, struct span in, size_t *used, struct span *data) MUSTCHECK;
/* The peer closed: HTTP_OK if that ends the body properly, else HTTP_BAD. */
enum http_result http_body_eof(struct http_body *b) MUSTCHECK;

/* Writing. Each refuses (-1, nothing usable written) what the parser would refuse:
 * a bad method, target, name, or a value with CR, LF or NUL. The caller decides
 * the fields; framing fields are written here and nowhere else. */
int http_write_request_line(struct dynbuf *out, struct span method, struct span target) MUSTCHECK;
int http_write_status_line(struct dynbuf *out, unsigned status, struct span reason) MUSTCHECK;
int http_write_field(struct dynbuf *out, struct span name, struct span value) MUSTCHECK;
/* The framing field if any, and the empty line. */
int http_write_end(struct dynbuf *out, enum http_framing framing, uint64_t length) MUSTCHECK;
int http_write_chunk(struct dynbuf *out, struct span data) MUSTCHECK; /* empty data writes nothing */
int http_write_last_chunk(struct dynbuf *out) MUSTCHECK;

/* Field classes (RFC 9110 section 7.6.1 and the house list). */
bool http_is_hop_by_hop(const struct http_head *h, struct span name); /* static list and what Connection names */
bool http_is_framing(struct span name);                               /* Content-Length, Transfer-Encoding, Host */
bool http_is_forwarding(struct span name); /* Via, Forwarded, X-Forwarded-*, X-Original-URL and their like */
bool http_is_token(struct span s);         /* RFC 9110 section 5.6.2 */

/* A host name of LDH labels, or a bracketed IPv6 literal, or a dotted quad; lower-cased into
 * dst (HTTP_HOST_MAX + 1 bytes), one trailing dot removed. -1: anything else, among them
 * every exotic spelling of an address (a name whose last label is numeric). */
int http_canonical_host(struct span host, char *dst, size_t *n) MUSTCHECK;
/* RFC 3986: percent-encoded unreserved characters decoded, hex upper-cased, nothing else
 * changed. -1 on %00, %2F, %5C, dot segments, a leading "//", control or raw non-ASCII bytes,
 * and a broken escape. keep_slash: let %2F pass as it is. */
int http_canonical_path(struct span path, bool keep_slash, struct dynbuf *out) MUSTCHECK;
int http_canonical_query(struct span query, struct dynbuf *out) MUSTCHECK;

#endif
