/* A multipart/form-data body (RFC 7578) in pieces of any size: its parts one after the other, each with its head
 * whole and its content as it comes. Pure; keeps nothing but where it is. As strict as common/text/multipart.h:
 * nothing stands before the first delimiter, and none is padded. */
#ifndef PROXY_DOCK_PARSE_FORM_H
#define PROXY_DOCK_PARSE_FORM_H

#include "common/dynbuf.h"
#include "common/text/multipart.h"

enum { FORM_HEAD_MAX = 8 * 1024, FORM_PARTS_MAX = 1024 };

enum form_state { FORM_FAILED = 0, FORM_BEGIN, FORM_HEAD, FORM_CONTENT, FORM_AFTER, FORM_OVER, FORM_DONE };
struct form {
    enum form_state state;
    uint8_t delimiter[4 + MULTIPART_BOUNDARY_MAX]; /* CR LF - - boundary */
    size_t ndelimiter;
    unsigned parts;
};

/* What the bytes at hand say. */
enum form_got {
    FORM_BAD = 0, /* it is no such body, or one of more parts or longer heads than may be */
    FORM_MORE,    /* more bytes are needed (of those used none are wanted any more) */
    FORM_PART,    /* a part begins: its name and its file's */
    FORM_DATA,    /* bytes of its content */
    FORM_PART_END,
    FORM_END,
};
struct form_step {
    struct span name, file; /* of FORM_PART: as they are written, between their quotes; file empty: none is said */
    struct span data;       /* of FORM_DATA */
};

/* content_type: the whole value of that field. -1: it is no multipart/form-data with one boundary. */
int form_begin(struct form *f, struct span content_type) MUSTCHECK;
/* One step: consumes *used bytes of in; the spans of *out point into it. */
enum form_got form_step(struct form *f, struct span in, struct form_step *out, size_t *used) MUSTCHECK;

#endif
