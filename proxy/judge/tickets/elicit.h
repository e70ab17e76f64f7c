/* What the gateway asks the person at an agent's own client, by MCP's Multi Round-Trip (2026-07-28): a call that is
 * held is answered with an "input_required" that leads to the ticket's page, and comes again with that person's word.
 * The word comes from a sandbox: it takes back what was asked, and never approves. The client says in each call what
 * it can show; one that says nothing gets an error, as before. Pure. */
#ifndef PROXY_JUDGE_ELICIT_H
#define PROXY_JUDGE_ELICIT_H

#include "common/arena.h"
#include "proxy/wire.h"

/* A longer body has no round that is ours; a call of more than half of it is answered with an error, so that with a
 * round it is none. */
enum { ELICIT_BODY_MAX = 64 * 1024 };
/* So often a call comes again by itself (its client counts, too); then an error says that it is held, as to others.
 */
enum { ELICIT_ROUNDS = 8 };
/* Bytes of why they take it back; what is longer is cut. As of the field Countersign-Reason. */
enum { ELICIT_REASON_MAX = 500 };

enum elicit_by {
    ELICIT_NO = 0, /* the client cannot, or was asked often enough: an error says it */
    ELICIT_URL,    /* it opens a page for its user */
    ELICIT_FORM,   /* it shows a text and a form: whether it is taken back, and why */
    ELICIT_AGAIN   /* its user was asked: the call comes again by itself */
};

struct elicit {
    enum elicit_by by;
    bool declined;      /* its user was asked, and takes the call back */
    struct span reason; /* with declined, what they said of it in the form, or empty; printable; in the arena. It
                           comes from a sandbox */
    unsigned round;     /* of the answer to this call: it decides about words alone */
    bool own;           /* it has our state: body is the call without it, and without the answers */
    struct span body;   /* with own; in the arena */
};

/* Our state: which gateway it is of (by the address of its page: what another one behind it asks is not ours to
 * answer), the round, and the ticket's id for who reads a log. Empty: no memory. */
struct span elicit_state(struct span desk_url, unsigned round, struct span ticket, struct arena *a);
/* Of a whole body. What is not such a call beyond doubt is none: *out is all zero. So is one that its client signed
 * or made a digest of: with a round it would not be what was signed. -1: no memory. */
int elicit_read(const struct wire_request *r, struct span body, struct span desk_url, struct arena *a,
                struct elicit *out) MUSTCHECK;

#endif
