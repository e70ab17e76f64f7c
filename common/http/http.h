/* HTTP/1.1 (RFC 9110, 9112), sans-io and strict: what the RFCs let a recipient
 * refuse is refused. Nothing here allocates, reads a socket or knows a policy.
 * Spans point into the caller's bytes, which must stay put while they are used.
 * Including this file gives the whole room: body.h, write.h and uri.h come with it. */
#ifndef COMMON_HTTP_HTTP_H
#define COMMON_HTTP_HTTP_H

#include "common/dynbuf.h"

enum {
    HTTP_METHOD_MAX = 32,
    HTTP_HEAD_MAX = 32 * 1024,        /* of a request: start line and fields with their line ends */
    HTTP_ANSWER_HEAD_MAX = 64 * 1024, /* servers say more than clients */
    HTTP_TARGET_MAX = 16 * 1024,
    HTTP_FIELDS_MAX = 100, /* of a request */
    HTTP_ANSWER_FIELDS_MAX = 256,
    HTTP_REASON_MAX = 1024, /* that is passed on; it means nothing */
    HTTP_TRAILERS_MAX = 8 * 1024,
    HTTP_EXTENSIONS_MAX = 4 * 1024, /* of all chunks of a body together */
    HTTP_HOST_MAX = 253,            /* of a host name, RFC 1035 section 2.3.4 */
    HTTP_CHUNK_MAX = 0x7fffffff,    /* of one chunk; longer bodies come in more chunks */
    HTTP_STATUS_MAX = 999,          /* three digits; what lies above 599 means nothing, but some servers say it */
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
    size_t nfields;
    enum http_framing framing;
    uint64_t length; /* with HTTP_LENGTH; 0 with HTTP_LENGTH is a body of no bytes that was declared */
    bool keep_alive; /* after this message, as far as the sender goes */
    bool expect_continue;
    bool upgrade;                                    /* an Upgrade field was there */
    struct http_field field[HTTP_ANSWER_FIELDS_MAX]; /* last: behind nfields nothing counts */
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

/* For an answer that was refused: some old servers fold long fields (RFC 9112 section 5.2). In what is here of its
 * head, the n bytes at head up to the empty line, each fold that is here whole becomes one blank, and what is over
 * lies behind the value; not in framing fields, nor behind the status line. False: there was none. */
bool http_unfold(uint8_t *head, size_t n);

/* The value of a field, or NULL if absent. ASCII case of the name is ignored. */
const struct http_field *http_find(const struct http_head *h, struct span name);
/* Do the fields of this name, read as lists, have the item? ASCII case of both is ignored. */
bool http_lists(const struct http_field *field, size_t n, struct span name, struct span item);

#include "common/http/body.h"
#include "common/http/uri.h"
#include "common/http/write.h"

#endif
