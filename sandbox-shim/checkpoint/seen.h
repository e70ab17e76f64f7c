/* What a sandbox's last checkpoint knows its files by: marks (stream.h), and of which pieces the file with one is. A
 * file that has one of them still is not told again.
 *
 *   seen-N: "CSSEEN1\n" | span sandbox | u64 born | u32 n | n times: mark 16 | u64 size | the names of its
 * pieces | MAC of all before
 *
 * N is of the sandbox's name, SEEN_FILES in all for one owner: whoever else has the same takes its place. It is of no
 * worth to a later boot, and its loss costs a reading; so it is nowhere but here, and not written to the disk at
 * once.
 */
#ifndef SANDBOX_SHIM_CHECKPOINT_SEEN_H
#define SANDBOX_SHIM_CHECKPOINT_SEEN_H

#include "sandbox-shim/checkpoint/pack.h"
#include "sandbox-shim/checkpoint/stream.h"

enum { SEEN_FILES = 8, SEEN_BYTES_MAX = 8 * 1024 * 1024 /* of one; files that it does not hold are read again */ };
#define FORM_SEEN SPAN("CSSEEN1\n")

struct seen_file {
    uint8_t mark[STREAM_MARK];
    uint64_t size;
    struct span pieces;
};

struct seen {
    struct dynbuf file; /* of before; files borrow from it */
    struct seen_file *all;
    uint8_t *marks; /* the same, in a row */
    size_t n;
    struct dynbuf next;
    size_t nnext;
};

/* Those of that sandbox and boot whose pieces are all there, by their marks. What is of another one, damaged or
 * missing is none. seen_end is right in any case. -1: no memory. */
int seen_begin(struct seen *s, const struct shelf *shelf, const struct pieces *pieces, struct span sandbox,
               uint64_t born) MUSTCHECK;
void seen_end(struct seen *s);
/* NULL: none has it. */
const struct seen_file *seen_find(const struct seen *s, const uint8_t mark[STREAM_MARK]);
/* For the next checkpoint. */
void seen_add(struct seen *s, const struct seen_file *f);
/* Instead of what was there. What fails is logged: the next one reads all. */
void seen_write(const struct seen *s, const struct shelf *shelf, struct span sandbox, uint64_t born);

#endif
