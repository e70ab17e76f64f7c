/* What the first process of a sandbox says, taken apart, and what it is told: the warden's side of
 * sandbox-shim/inside/shim_talk.h. It runs beside what the sandbox runs, so nothing of it is trusted: every length
 * has its bound, every type its shape, and what breaks it is the end of the sandbox. */
#ifndef SANDBOX_SHIM_WARDEN_TALK_H
#define SANDBOX_SHIM_WARDEN_TALK_H

#include "common/dynbuf.h"
#include "sandbox-shim/inside/shim_talk.h"

enum talk_got { TALK_BAD = 0, TALK_MORE, TALK_FRAME };

/* What came: one of TALK_HELLO, TALK_OUT, TALK_ERR (1 to TALK_PIECE_MAX bytes), TALK_FED and TALK_END. */
struct talk {
    enum talk_type type;
    uint32_t run;
    struct span bytes; /* of TALK_OUT and TALK_ERR; borrowed */
    uint32_t fed;      /* of TALK_FED: 1 to TALK_IN_WINDOW */
    /* of TALK_END */
    enum talk_how how;
    unsigned code; /* status 0 to 255, or signal 1 to 64 */
    uint64_t user_us, system_us, memory_kib;
    struct span why; /* of TALK_FAILED: the sandbox's own words, at most TALK_WHY_MAX bytes of anything; borrowed */
};

/* The first frame of `in`; *used: its bytes. TALK_MORE: it is not all there yet, and `in` is shorter than
 * TALK_IN_MAX. */
enum { TALK_IN_MAX = TALK_HEAD + TALK_PIECE_MAX };
enum talk_got talk_take(struct span in, struct talk *t, size_t *used) MUSTCHECK;

/* A command: arguments, variables (NAME=VALUE), each without NUL, and where it runs (empty: where the shim does). */
struct talk_command {
    const struct span *arg, *variable;
    size_t nargs, nvariables;
    struct span dir;
    enum talk_input input;  /* none: /dev/null */
    uint16_t rows, columns; /* of TALK_TERMINAL, and then not 0; else both are */
};
/* -1, and nothing was added: none or too many words, a NUL in one, a variable without a name, a terminal without a
 * size or a size without one, or more than TALK_PAYLOAD_MAX in all. */
int talk_put_run(struct dynbuf *b, uint32_t run, const struct talk_command *c) MUSTCHECK;
/* What is done with files: paths of at most TALK_PATH_MAX bytes without NUL, other also empty. */
struct talk_files {
    enum talk_file what;
    uint16_t mode; /* to 0777, or TALK_MODE_NONE */
    bool whole;
    uint64_t from, most;
    struct span path, other;
};
/* -1, and nothing was added: one of these is not so. */
int talk_put_files(struct dynbuf *b, uint32_t run, const struct talk_files *f) MUSTCHECK;
/* By what the gateway knows its commands; not 0. */
int talk_put_born(struct dynbuf *b, uint64_t born) MUSTCHECK;
int talk_put_signal(struct dynbuf *b, uint32_t run, unsigned signo) MUSTCHECK;
/* Of its input, at most TALK_IN_WINDOW bytes; none: its end. */
int talk_put_input(struct dynbuf *b, uint32_t run, struct span bytes) MUSTCHECK;
/* Of its terminal; neither is 0. */
int talk_put_size(struct dynbuf *b, uint32_t run, uint16_t rows, uint16_t columns) MUSTCHECK;
int talk_put_name(struct dynbuf *b, struct span name) MUSTCHECK;
int talk_put_credit(struct dynbuf *b, uint32_t run, uint32_t bytes) MUSTCHECK;

#endif
