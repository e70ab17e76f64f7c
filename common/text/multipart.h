/* Bodies of parts (multipart/..., RFC 2046 section 5.1), strictly: nothing stands before the first delimiter, none is
 * padded, behind the last is a line end at most, and the boundary is nowhere else; so no reader cuts one in another
 * place, be it at bare line feeds or at what only begins with the boundary. Pure. */
#ifndef COMMON_TEXT_MULTIPART_H
#define COMMON_TEXT_MULTIPART_H

#include "common/span.h"

enum { MULTIPART_BOUNDARY_MAX = 70, MULTIPART_OTHERS_MAX = 8 };

struct multipart_type {
    struct span type;                        /* "multipart/form-data", as it is written */
    struct span boundary;                    /* without its quotes */
    struct span other[MULTIPART_OTHERS_MAX]; /* the other parameters: "charset=utf-8" */
    size_t nothers;
};
/* Of the value of a Content-Type, which has to outlive it. -1: it is no multipart type, or does not say one boundary
 * in one way. */
int multipart_type(struct span value, struct multipart_type *out) MUSTCHECK;

/* To begin with: the boundary, and the body as rest; both have to outlive it. */
struct multipart {
    struct span boundary, rest; /* rest at the end: "--" or "--\r\n" */
    bool begun;
};
enum multipart_next { MULTIPART_BAD = 0, MULTIPART_PART, MULTIPART_END };
/* *part: the next one, its head and content, between the line ends of its delimiters. All parts of a body take time
 * that grows as its length. */
enum multipart_next multipart_next(struct multipart *m, struct span *part) MUSTCHECK;

#endif
