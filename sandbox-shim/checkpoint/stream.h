/* Between who reads or writes a workspace, as its sandbox's user, and who keeps checkpoints: a tar stream over a
 * socket that blocks. Who keeps them says first what is to be done.
 *
 *   frame: u32 n | n bytes of the tar stream; n 0: its end, and u32 errno | u32 entries left out | u16 n | words;
 *          n 0x80000001: the next file has the bytes of the one with this mark, and its header says it has none
 *
 * Who keeps them says behind a STREAM_PACK with which key marks are made and which it knows, key | u32 n | marks
 * (mark.h). Numbers are big-endian. What a workspace's user says may be anything; every length has its bound. */
#ifndef SANDBOX_SHIM_CHECKPOINT_STREAM_H
#define SANDBOX_SHIM_CHECKPOINT_STREAM_H

#include "sandbox-shim/checkpoint/mark.h"

enum { STREAM_PIECE = 64 * 1024, STREAM_WORDS = 300, STREAM_MARKS_MAX = 128 * 1024 };

enum stream_what {
    STREAM_NOTHING = 0,
    STREAM_PACK = 1,
    STREAM_UNPACK = 2,
    STREAM_REPLACE = 3 /* what is there goes before */
};

enum stream_got {
    STREAM_BROKE = -1,
    STREAM_ENDED = 0,
    STREAM_BYTES = 1,
    STREAM_SAME = 2 /* a mark: the next file has the bytes of the one with it */
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
/* Behind all bytes that came before. */
int stream_same_put(struct stream *s, const uint8_t mark[MARK]) MUSTCHECK;
/* marks: n of them, in a row; at most STREAM_MARKS_MAX. */
int stream_marks_put(int fd, const uint8_t key[MARK], const uint8_t *marks, size_t n) MUSTCHECK;
/* *marks: *n of them, the caller's to free, also after -1; NULL if there are none. */
int stream_marks_get(int fd, uint8_t key[MARK], uint8_t **marks, size_t *n) MUSTCHECK;
/* STREAM_BYTES: *n of them are in `in`; a mark: it is in `in`; STREAM_ENDED: its end, *e; STREAM_BROKE: it broke off,
 * or is no stream. */
enum stream_got stream_get(int fd, uint8_t in[STREAM_PIECE], size_t *n, struct stream_end *e) MUSTCHECK;

#endif
