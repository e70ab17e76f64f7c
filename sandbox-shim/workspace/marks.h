/* Which files of a workspace need not be read again for a checkpoint: those of which nobody can have changed a byte.
 *
 * A mark is made of a file's number, size and times, to the nanosecond. The time of its last change is the kernel's,
 * and nobody inside can set it; but in memory (tmpfs), where workspaces lie, what is written through a mapping
 * changes no time at all. A mapping has two traces: while it lasts, the file is open for writing, of which a lease
 * (fcntl(2), F_SETLEASE) tells; and when it is made, the file counts as read, which is written down as long as the
 * file has not been read since its last change (mount(8), relatime). So a file is marked only if nobody had it open
 * for writing before and after its bytes were read, if the next reading of it will be written down, and if its times
 * are older than the clock that they are taken from can err. All others are read each time, and so is whatever lies
 * elsewhere. */
#ifndef SANDBOX_SHIM_WORKSPACE_MARKS_H
#define SANDBOX_SHIM_WORKSPACE_MARKS_H

#include "sandbox-shim/checkpoint/stream.h"
#include "sandbox-shim/inside/shim_tree.h"

enum {
    MARKS_LEAST = 16 * 1024, /* bytes of a file: smaller ones are read as quickly */
    MARKS_CLOCK_MS = 50      /* what the times of files may be behind by, and more: the kernel's tick */
};

struct marks {
    struct tree_known known; /* for struct pack */
    struct stream *to;
    uint64_t young_ms; /* MARKS_CLOCK_MS: what changed less than so long ago is not marked */
    bool any;          /* files are where marks can be had */
    uint64_t dev;      /* of the workspace */
    uint8_t *given, (*slot)[STREAM_MARK];
    bool *taken;
    size_t nslots;
    bool alone; /* of the file that is being told: nobody had it open for writing */
};

/* Of the workspace that dir is; reads from `from` which there are already, and tells others to `to`. SIGIO has to be
 * ignored: whoever opens a file just then for writing is waited for. 0, or -1: it broke off. marks_end is right after
 * both. */
int marks_begin(struct marks *m, int dir, int from, struct stream *to) MUSTCHECK;
void marks_end(struct marks *m);

#endif
