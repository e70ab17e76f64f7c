/* The lines of a recording: what a turn's machine (broker/loop) heard, when, and what it did then. A line has
 * numbers, names of calls' classes, of tools and of models, and no word of a person, a model or a tool. */
#ifndef BROKER_REPLAY_TAPE_H
#define BROKER_REPLAY_TAPE_H

#include "broker/loop/loop.h"
#include "common/arena.h"
#include "common/err.h"

enum {
    TAPE_LINE_MAX = 32 * 1024,  /* bytes of a line */
    TAPE_NAME_MAX = 128,        /* of a tool's name, a model's */
    TAPE_DID_MAX = 4096,        /* of what was done, as text */
    TAPE_TREE_MAX = 1024 * 1024 /* of memory to read a line */
};
#define TAPE_NUMBER_MAX (UINT64_C(1) << 53) /* larger ones are written as this */

enum tape_kind {
    TAPE_NONE = 0,
    TAPE_BEGIN, /* a worker took the turn; found: what it found */
    TAPE_HEARD,
    TAPE_SPENT /* used: what an attempt has cost of which nothing is kept */
};

struct tape_row {
    enum tape_kind kind;
    uint64_t t;          /* ms since the turn was begun first */
    struct loop_event e; /* TAPE_HEARD; now_ms is not looked at */
    struct loop_found
        found; /* TAPE_BEGIN: epoch, settled, attempts, cancelled, planned, summary, cut, ends, used, asked, end, n
                */
    struct used used;        /* TAPE_SPENT */
    uint64_t same;           /* of a begin or an answer: so many steps in a row asked for the same by then */
    const struct span *tool; /* the names of its calls */
    struct span model, did;  /* did: tape_did of what the machine wanted then */
};

/* One more line, with its end; a failed buffer is as it was before. What of a number is too large is cut. */
void tape_put(struct dynbuf *out, const struct tape_row *row);
/* A line, without its end. What comes back lives in the arena, which also gives what is needed to read it. -1 with
 * the reason: it is none, or another version's. */
int tape_get(struct span line, struct arena *a, struct tape_row *row, struct err *e) MUSTCHECK;
/* "plan 2", "run 0, run 1": what the machine wants to be done, the same text for the same actions. */
void tape_did(struct dynbuf *out, const struct loop_actions *actions);
/* Is this done there? ord: which call, SIZE_MAX: it is about none. */
bool tape_did_has(struct span did, const char *verb, size_t ord);
/* "begin", "answer", "no-answer" ...; "spent" */
const char *tape_heard_name(const struct tape_row *row);

#endif
