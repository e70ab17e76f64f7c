/* What is done with the files of a started sandbox, until its answer can begin: the request's body goes there as far
 * as it is taken, and what comes back is kept until it is the answer, or the first of it. server.c has the client,
 * api/api_files.c the words, follow.c what is given out from then on. */
#ifndef WEB_APPROVAL_STREAMS_TRANSFER_H
#define WEB_APPROVAL_STREAMS_TRANSFER_H

#include "web-approval/streams/share.h"

struct conn;
struct frame;

enum { TRANSFER_SAID_MAX = 8 * 1024 * 1024, TRANSFER_WORDS_MAX = 512 };

/* How it ended, or that its output begins. */
struct transfer_end {
    unsigned how, code; /* enum sb_end; an errno */
    struct span said, words, why;
};

/* Of each kind; a handler sets x->transfer to one of these when it has asked the warden (x->follow). */
struct transfer_of {
    const char *gives; /* the type of its output, which is the answer; NULL: `done` makes one of it */
    bool takes;        /* the request's body is its input */
    bool rests;        /* it may have nothing to say for as long as it likes */
    bool all;          /* it is not done before it was given all of its input, whatever the sandbox says */
    enum share_of share;
    void (*done)(struct exchange *x, const struct transfer_end *e); /* answers x before it returns */
};

struct transfer {
    struct conn *conn;
    struct exchange *x; /* NULL: there is none */
    struct share share;
    bool runs; /* the warden has it to do */
    bool all;  /* of the body has been read */
    struct http_body body;
    uint32_t unfed; /* bytes of it that were not taken yet */
    uint64_t moved; /* bytes that were sent, taken and said */
    struct dynbuf said, words;
};

/* ANSWERED: x has its answer, and nothing runs any more. GIVES: it has the head and the first of one that follow.c
 * goes on with. Of both the transfer is over, and has to be freed. */
enum transfer_next { TRANSFER_WAITS = 0, TRANSFER_ANSWERED, TRANSFER_GIVES };

/* x's head is read, and nothing of its body. */
void transfer_begin(struct transfer *t, struct conn *c, struct exchange *x);
/* If it runs, the warden kills it. x is the caller's. One that never began is fine. */
void transfer_free(struct transfer *t);
/* The client has sent more. */
enum transfer_next transfer_read(struct transfer *t);
/* Time has passed. Of content, nothing of which moved for SHARE_STILL_MS, no more is waited for. */
enum transfer_next transfer_tick(struct transfer *t, uint64_t now_ms);
/* What the warden says of it; the warden has ended. */
enum transfer_next transfer_hear(struct transfer *t, const struct frame *f);
enum transfer_next transfer_lost(struct transfer *t);

#endif
