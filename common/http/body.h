/* Reading a message body (RFC 9112 sections 6 and 7): feed bytes, get data spans
 * that point into them; nothing is copied or kept. */
#ifndef COMMON_HTTP_BODY_H
#define COMMON_HTTP_BODY_H

#include "common/http/http.h"

struct http_body {
    enum http_framing framing;
    uint64_t left; /* in this length or chunk */
    unsigned state;
    unsigned digits;
    size_t trailer, extension; /* bytes of each so far */
    bool response;
    struct http_err err;
};

/* h: a head that the parser accepted. A head that is not one gives a body that is refused. */
void http_body_begin(struct http_body *b, const struct http_head *h);
/* One step: consumes *used bytes of in and may give some as *data. HTTP_OK: the
 * body is complete (this call may still give data). HTTP_MORE: call again with
 * what is left, or wait for more when *used is 0. HTTP_BAD: b->err says why.
 * Chunk extensions and trailer fields are checked and dropped. A chunk
 * size in a request has no leading zero; some servers pad theirs, so a response may. */
enum http_result http_body_step(struct http_body *b, struct span in, size_t *used, struct span *data) MUSTCHECK;
/* The peer closed: HTTP_OK if that ends the body properly, else HTTP_BAD. */
enum http_result http_body_eof(struct http_body *b) MUSTCHECK;

#endif
