/* What the gateway asks the person at an agent's own client, by MCP's Multi Round-Trip (2026-07-28): a call that is
 * held is answered with an "input_required" that leads to the ticket's page, and comes again with that person's word.
 * The word comes from a sandbox: it takes back what was asked, and never approves. The client says in each call what
 * it can show; one that says nothing gets an error, as before. Pure. */
#ifndef PROXY_JUDGE_ELICIT_H
#define PROXY_JUDGE_ELICIT_H

#include "common/arena.h"
#include "proxy/wire.h"

/* Our state is this and the ticket's id. It is for who reads a log: nothing is decided by it. */
#define ELICIT_STATE "countersign:"
/* A longer body has no round that is ours; a call of more than half of it is answered with an error, so that with a
 * round it is none. */
enum { ELICIT_BODY_MAX = 64 * 1024 };

enum elicit_by {
    ELICIT_NO = 0, /* the client cannot, or was asked already: an error says it */
    ELICIT_URL,    /* it opens a page for its user */
    ELICIT_FORM,   /* it shows a text, with yes and no */
    ELICIT_AGAIN   /* its user was asked: the call comes again by itself */
};

struct elicit {
    enum elicit_by by;
    bool declined;    /* its user was asked, and takes the call back */
    bool own;         /* it has our state: body is the call without it, and without the answers */
    struct span body; /* in the arena */
};

/* Of a whole body. What is not such a call beyond doubt is none: *out is all zero. -1: no memory. */
int elicit_read(const struct wire_request *r, struct span body, struct arena *a, struct elicit *out) MUSTCHECK;

#endif
