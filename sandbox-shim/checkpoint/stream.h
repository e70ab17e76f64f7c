/* Between who reads or writes a workspace, as its sandbox's user, and who keeps checkpoints: a tar stream over a
 * socket that blocks. Who keeps them says first what is to be done.
 *
 *   frame: u32 n | n bytes of the tar stream; n 0: its end, and u32 errno | u32 entries left out | u16 n | words
 *
 * Numbers are big-endian. What a workspace's user says may be anything; every length has its bound. */
#ifndef SANDBOX_SHIM_CHECKPOINT_STREAM_H
#define SANDBOX_SHIM_CHECKPOINT_STREAM_H

#include "common/span.h"

enum { STREAM_PIECE = 64 * 1024, STREAM_WORDS = 300 };

enum stream_what {
    STREAM_NOTHING = 0,
    STREAM_PACK = 1,
    STREAM_UNPACK = 2,
    STREAM_REPLACE = 3 /* what is there goes before */
};

/* How it ended. code 0: well, else an errno, and where: any bytes. */
struct stream_end {
    unsigned code, left_out;
    size_t nwords;
    char words[STREAM_WORDS];
};

struct stream {
    int fd;
    size_t n;
    uint8_t out[STREAM_PIECE];
};

/* All: 0, or -1 if the other side has gone. most: bytes of a tar stream that may come. */
int stream_ask(int fd, enum stream_what what, uint64_t most) MUSTCHECK;
int stream_asked(int fd, enum stream_what *what, uint64_t *most) MUSTCHECK;
/* Bytes of the stream; they leave when there are many, or by stream_end_put. */
int stream_put(struct stream *s, const uint8_t *p, size_t n) MUSTCHECK;
int stream_end_put(struct stream *s, const struct stream_end *e) MUSTCHECK;
/* 1: bytes, *n of them in `in`; 0: its end, *e; -1: it broke off, or is no stream. */
int stream_get(int fd, uint8_t in[STREAM_PIECE], size_t *n, struct stream_end *e) MUSTCHECK;

#endif
