/* Which files of a workspace need not be told again for a checkpoint: those whose bytes are the same.
 *
 * Nothing but its bytes says whether a file has changed: what is written through a mapping changes none of its times,
 * and of that nothing is left behind. So each file is read, and a mark is made of its bytes: their GMAC (NIST
 * SP 800-38D) under a key of the keeper's, which nobody inside knows, so that nobody can make another file with the
 * same one. That is some ten times as fast as all else that becomes of a file which is told: the way over the stream,
 * the name of each piece (HMAC-SHA256), and its search. */
#ifndef SANDBOX_SHIM_WORKSPACE_MARKS_H
#define SANDBOX_SHIM_WORKSPACE_MARKS_H

#include "sandbox-shim/checkpoint/stream.h"
#include "sandbox-shim/inside/shim_tree.h"

enum {
    MARKS_LEAST = 16 * 1024, /* bytes of a file: smaller ones are told as quickly */
    MARKS_READ = 256 * 1024
};

struct evp_cipher_ctx_st;
struct marks {
    struct tree_known known; /* for struct pack */
    struct stream *to;
    struct evp_cipher_ctx_st *gcm;
    uint64_t told; /* bytes of the file that is being told */
    uint8_t *given, (*slot)[STREAM_MARK];
    bool *taken;
    size_t n, nslots;
    uint8_t in[MARKS_READ];
};

/* Reads from `from` with which key, and which there are already; tells of files to `to`. 0, or -1: it broke off, or
 * there is no memory. marks_end is right after both. */
int marks_begin(struct marks *m, int from, struct stream *to) MUSTCHECK;
void marks_end(struct marks *m);

#endif
