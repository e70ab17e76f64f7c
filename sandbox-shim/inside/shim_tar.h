/* Tar streams: ustar, with pax records and GNU's long names. Nothing here opens a file: bytes in, members out, and
 * the other way round. What is read may be anything; a name that could lead out of where it is unpacked is refused.
 */
#ifndef SANDBOX_SHIM_INSIDE_TAR_H
#define SANDBOX_SHIM_INSIDE_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TAR_BLOCK = 512,
    TAR_NAME_MAX = 4095,
    TAR_EXTRA_MAX = 16 * 1024,     /* of pax records, or a long name */
    TAR_HEAD_MAX = 20 * TAR_BLOCK, /* of what tar_head writes: two such names in records, and two headers */
};

enum tar_type {
    TAR_NONE = 0,
    TAR_FILE,
    TAR_FOLDER,
    TAR_LINK,
    TAR_HARD_LINK,
    TAR_OTHER /* a device, a pipe, unknown */
};

struct tar_member {
    enum tar_type type;
    unsigned mode; /* 0 to 07777 */
    uint64_t size; /* of a file; 0 of anything else */
    int64_t mtime;
    /* Neither absolute nor with `..`, without `.` and empty parts; empty: the folder itself. */
    char name[TAR_NAME_MAX + 1];
    char target[TAR_NAME_MAX + 1]; /* of a hard link the same; of a symbolic one anything but empty */
};

enum tar_got { TAR_BAD = 0, TAR_MORE, TAR_MEMBER, TAR_DATA, TAR_END };

struct tar {
    struct tar_member member; /* the last one */
    const uint8_t *data;      /* of TAR_DATA: the next bytes of its content, which point into what was given */
    size_t ndata;
    const char *why; /* of TAR_BAD, in words */
    /* Set before the first step: refused is what others, npm's reader above all, take for something else. */
    bool strict;
    bool odd; /* of TAR_BAD: it is that, and not damaged */
    /* inside */
    uint64_t left, pad; /* of what comes behind the last header, and to the end of its block */
    unsigned extra;     /* type of what comes in place of a name: x, L, K; 0: nothing */
    size_t nblock, nextra;
    bool ended, has_name, has_target, has_size, has_mtime;
    uint64_t size;
    int64_t mtime;
    uint8_t block[TAR_BLOCK], bytes[TAR_EXTRA_MAX + 1];
    char name[TAR_NAME_MAX + 1], target[TAR_NAME_MAX + 1];
};

/* One step; begin with a struct that is all zero. *used: what was taken of `in`, to be left out of the next.
 * TAR_MORE: all was taken. TAR_MEMBER: a header; TAR_DATA: part of its content. TAR_END: nothing that comes is read
 * any more. */
enum tar_got tar_step(struct tar *t, const uint8_t *in, size_t n, size_t *used);

/* The header of a member, with what its names need; its content follows, to a whole block (tar_pad), and behind the
 * last one two blocks of zero. Bytes, or 0: a name is longer than TAR_NAME_MAX. */
size_t tar_head(uint8_t out[TAR_HEAD_MAX], const struct tar_member *m);
size_t tar_pad(uint64_t size);

#endif
