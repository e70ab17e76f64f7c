/* Which files of a workspace need not be told again for a checkpoint: those whose bytes are kept already.
 *
 * Nothing but its bytes says whether a file has changed: what is written through a mapping changes none of its times,
 * and of that nothing need be left behind. So each file is read, and its mark is looked for. */
#ifndef SANDBOX_SHIM_WORKSPACE_MARKS_H
#define SANDBOX_SHIM_WORKSPACE_MARKS_H

#include "sandbox-shim/checkpoint/mark.h"
#include "sandbox-shim/checkpoint/stream.h"
#include "sandbox-shim/inside/shim_tree.h"

enum { MARKS_READ = 256 * 1024 };

struct marks {
    struct tree_known known; /* for struct pack */
    struct stream *to;
    struct mark mark;
    uint8_t *given, (*slot)[MARK];
    bool *taken;
    size_t n, nslots;
    uint8_t in[MARKS_READ];
};

/* Reads from `from` with which key, and which there are; tells of files to `to`. 0, or -1: it broke off, or there is
 * no memory. marks_end is right after both. */
int marks_begin(struct marks *m, int from, struct stream *to) MUSTCHECK;
void marks_end(struct marks *m);

#endif
