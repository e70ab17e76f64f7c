/* What a command in a sandbox says, on its way to the client that follows it: as server-sent events, chunk by chunk,
 * and no faster than the client reads. server.c has the client, api/api_started.c the words. */
#ifndef WEB_APPROVAL_STREAMS_FOLLOW_H
#define WEB_APPROVAL_STREAMS_FOLLOW_H

#include "web-approval/streams/share.h"

struct conn;
struct frame;

enum {
    FOLLOW_REST_MS = 60 * 60 * 1000
}; /* without progress, of a command that has ended: its client may be a pager */

struct follow {
    struct follow *next; /* of the desk's */
    struct desk *desk;
    struct share share;
    struct conn *conn;      /* the client's; it ends before this does, or with it */
    uint64_t id;            /* the number that the warden knows it by; 0: it has ended */
    struct dynbuf waits[2]; /* its two outputs, that the client does not read yet; SB_WINDOW of both */
    struct {
        uint64_t bytes; /* that are not kept any more; 0: none. Of each output one is enough (M_SB_CUT) */
        size_t behind;  /* so many of those that wait come before */
    } cut[2];
    bool input, terminal; /* input: it may be given more */
    bool raw;             /* its output alone is the answer, as it comes */
    bool rests;           /* which need not come */
    uint32_t unfed, fed; /* bytes of input that it was not given yet; that it was, of which the client was not told */
    uint64_t heard;      /* raw: bytes of its output */
    size_t rest;         /* after its end: bytes that were unread when the client's patience began */
};

/* The head of the answer is written. */
void follow_begin(struct follow *f, struct desk *d, struct conn *c, const struct exchange *x);
/* If it runs, the warden kills it. One that never began is fine. */
void follow_free(struct follow *f);
/* What the warden says of it; the warden has ended. -1: the client cannot be told. */
int follow_hear(struct follow *f, struct frame *m) MUSTCHECK;
int follow_lost(struct follow *f) MUSTCHECK;
/* Its output is the answer, it runs, and nothing of it has moved for so long that its place is another's. */
bool follow_stands_still(struct follow *f, uint64_t now_ms);
/* The client reads again. -1: as above. */
int follow_drained(struct follow *f) MUSTCHECK;
/* It has ended, and the client has all of it. */
bool follow_done(const struct follow *f);
/* The client's patience is over: does it go on, because something was read meanwhile? */
bool follow_waits(struct follow *f);

/* Events, as one chunk of an answer that stays open, or is over with it. */
int stream_chunk(struct conn *c, const struct dynbuf *event, bool last) MUSTCHECK;

#endif
