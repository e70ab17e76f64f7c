/* Writing HTTP/1.1 messages from a model, never from foreign bytes passed through.
 * Each function refuses (-1, nothing written) what the parser would refuse: a bad
 * method, target, name, or a value with a control byte. It also fails when the
 * buffer is full (then the buffer is failed, see dynbuf.h). The caller decides the
 * fields; framing fields are written by http_write_end and nowhere else. */
#ifndef COMMON_HTTP_WRITE_H
#define COMMON_HTTP_WRITE_H

#include "common/http/http.h"

int http_write_request_line(struct dynbuf *out, struct span method, struct span target) MUSTCHECK;
/* status: 100 to HTTP_STATUS_MAX. */
int http_write_status_line(struct dynbuf *out, unsigned status, struct span reason) MUSTCHECK;
/* White space around the value is dropped. Content-Length and Transfer-Encoding are refused. */
int http_write_field(struct dynbuf *out, struct span name, struct span value) MUSTCHECK;
/* The framing field if any, and the empty line. */
int http_write_end(struct dynbuf *out, enum http_framing framing, uint64_t length) MUSTCHECK;
/* Empty data writes nothing: an empty chunk would end the body. */
int http_write_chunk(struct dynbuf *out, struct span data) MUSTCHECK;

#endif
