/* Bodies of Content-Encoding: aws-chunked, taken apart. Pure; the whole body is there.
 *
 *   SIZE[;chunk-signature=64 hex] CRLF data CRLF  ...  0[;chunk-signature=...] CRLF  [name:value CRLF ...] CRLF
 *
 * With a signed trailer its last field is x-amz-trailer-signature. Strict: what is not exactly this is refused, but
 * for one line feed at the end of a trailer's value, which some clients write before the CRLF. */
#ifndef COMMON_SIGN_AWS_CHUNKED_H
#define COMMON_SIGN_AWS_CHUNKED_H

#include "common/id.h"
#include "common/http/http.h"

/* What x-amz-content-sha256 says of the body. */
enum aws_payload {
    AWS_PAYLOAD_UNKNOWN = 0,      /* nothing that is understood: not to be signed for */
    AWS_PAYLOAD_HASH,             /* SHA-256 of the body, in lower-case hex */
    AWS_PAYLOAD_UNSIGNED,         /* UNSIGNED-PAYLOAD */
    AWS_PAYLOAD_UNSIGNED_TRAILER, /* STREAMING-UNSIGNED-PAYLOAD-TRAILER */
    AWS_PAYLOAD_CHUNKS,           /* STREAMING-AWS4-HMAC-SHA256-PAYLOAD */
    AWS_PAYLOAD_CHUNKS_TRAILER    /* the same with a signed trailer */
};
enum aws_payload aws_payload_of(struct span value);

enum { AWS_TRAILERS_MAX = 16, AWS_SIZE_DIGITS = 8 };

struct aws_chunked {
    struct span body;
    size_t at;
    bool chunks_signed, trailer_signed, trailer_wanted;
    bool ended;       /* the last chunk was given */
    uint64_t decoded; /* bytes of data so far */
    struct http_field trailer[AWS_TRAILERS_MAX];
    size_t ntrailer;
    size_t trailer_signature; /* where its hex begins; 0: there is none */
};

struct aws_chunk {
    struct span data;
    size_t signature; /* where its hex begins in the body; 0: there is none */
};

/* -1: that payload has no chunks. */
int aws_chunked_begin(struct aws_chunked *c, enum aws_payload payload, struct span body) MUSTCHECK;
/* 1 and the next chunk, the last one of size 0; 0 after it: all of the body was read, trailers are filled in; -1: the
 * body is not of this form, and stays so. */
int aws_chunked_next(struct aws_chunked *c, struct aws_chunk *out) MUSTCHECK;
/* Of the trailers "name:value\n" each, without the signature: what sign_trailer takes. */
void aws_chunked_trailer_digest(const struct aws_chunked *c, struct digest *out);

#endif
