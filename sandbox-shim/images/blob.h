/* A blob of an OCI layout, which is what its digest says or nothing: its size is compared before the first byte is
 * read, and its SHA-256 with the last one. */
#ifndef SANDBOX_SHIM_IMAGES_BLOB_H
#define SANDBOX_SHIM_IMAGES_BLOB_H

#include "common/dynbuf.h"
#include "common/err.h"
#include "common/id.h"

enum { BLOB_DOCUMENT_MAX = 4 * 1024 * 1024 }; /* an index, a manifest, a configuration */

/* What names one: a descriptor of the layout. */
struct blob_name {
    struct digest digest;
    uint64_t size;
};

struct blob {
    int fd;
    uint64_t left;
    struct blob_name is;
    struct digest_ctx *hash;
};

/* "sha256:HEX", in small letters. -1: it is not that. */
int blob_digest(struct span text, struct digest *to) MUSTCHECK;
/* layout: the folder of the layout, open. -1 in words: it is not there, no regular file, or of another size. */
int blob_open(struct blob *b, int layout, const struct blob_name *is, struct err *e) MUSTCHECK;
/* Some of it; *n 0: that was all, and it was what its digest says. -1 in words. */
int blob_read(struct blob *b, uint8_t *to, size_t room, size_t *n, struct err *e) MUSTCHECK;
/* Right at any time, also after a failed blob_open. */
void blob_close(struct blob *b);
/* All of it, into a buffer that is born here. -1 in words; the buffer is to be freed in either case. */
int blob_document(int layout, const struct blob_name *is, struct dynbuf *to, struct err *e) MUSTCHECK;
/* A small file of the layout that no digest names. */
int blob_plain(int layout, const char *name, struct dynbuf *to, struct err *e) MUSTCHECK;

#endif
