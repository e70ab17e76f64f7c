/* One decoder for all codings (zlib, brotli, zstd): bytes in, decoded bytes out, and where the encoded bytes may be
 * cut. Pure.
 *
 * A cut lies where nothing of what was fed so far says anything of what comes behind it. A block of deflate and a
 * frame of zstd begin with tables of the bytes that are in them, so a cut is behind one; of brotli its library does
 * not tell where a block ends, so the end of all is the one cut. */
#ifndef CARRIER_SCRUB_CODER_H
#define CARRIER_SCRUB_CODER_H

#include "common/span.h"

/* The largest window of zstd, as RFC 9659 has it for HTTP; brotli's is 16 MiB by its format. */
enum { CODER_ZSTD_WINDOW_LOG = 23 };

enum coding { CODING_UNKNOWN = 0, CODING_IDENTITY, CODING_GZIP, CODING_DEFLATE, CODING_BR, CODING_ZSTD };
/* CODING_DEFLATE is taken with zlib's wrapper and bare. */
/* Of the value of a Content-Encoding field. */
enum coding coding_of(struct span value);
/* Does its decoder keep megabytes, and wait for the end of what may be long? */
bool coding_is_large(enum coding c);

struct coder;
/* NULL: not a coding that can be decoded, or no memory. */
struct coder *coder_new(enum coding c) MUSTCHECK;
void coder_free(struct coder **c);

struct coder_step {
    struct span in; /* left of what was fed */
    size_t made;    /* bytes written */
    bool cut;       /* a cut is possible, behind all that was taken but the last `back` bytes */
    size_t back;
};

/* Decode some of in to out; call again while any of it is left, or while out was filled. False: it is not that
 * coding, needs what is not there (a dictionary), or more memory than is given. */
bool coder_step(struct coder *c, struct span in, uint8_t *out, size_t room, struct coder_step *step) MUSTCHECK;
/* Is the stream complete, or one member of several? */
bool coder_ended(const struct coder *c);
/* Bytes follow its end: begin another member. False: the coding has none. */
bool coder_again(struct coder *c) MUSTCHECK;

#endif
