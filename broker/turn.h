/* The words that the rooms of the broker share. Zero is the careful value of each. */
#ifndef BROKER_TURN_H
#define BROKER_TURN_H

#include "common/dynbuf.h"
#include "common/id.h"

/* What repeating a tool call can do. A class is declared when the call is written down, and may only become stricter:
 * of two, the smaller one. */
enum call_class {
    CALL_UNSAFE = 0,   /* never sent twice by us */
    CALL_RECONCILABLE, /* whether it happened can be asked, of what it changed */
    CALL_IDEMPOTENT,   /* may be sent again, with the same key */
    CALL_READ,         /* may be repeated */
    CALL_CLASSES
};

/* What became of a call. Each is settled once, as one of these. */
enum call_end {
    CALL_OPEN = 0,
    CALL_DONE,    /* it answered */
    CALL_ERROR,   /* it answered that it failed */
    CALL_UNKNOWN, /* it was sent, and nobody knows what came of it */
    CALL_NOT_RUN, /* it was never sent, and will not be */
    CALL_ENDS
};

/* How a turn ended: each is told to the reader in its words. */
enum turn_end {
    END_NONE = 0,
    END_COMPLETED,
    END_CUT, /* the model's last answer stopped before its end */
    END_CANCELLED,
    END_STEPS,      /* so many steps */
    END_TOKENS,     /* so many tokens */
    END_COST,       /* so much money */
    END_TIME,       /* so long */
    END_SAME_CALLS, /* the model asked for the same again and again */
    END_MODEL,      /* the model did not answer */
    END_BAD_MODEL,  /* what the model asked for is over a limit */
    END_STUCK,      /* what was written down of it cannot be read */
    END_SET_ASIDE,  /* it ended two workers at one step */
    END_REFUSED,    /* the gateway gives it no identity */
    END_BUDGET,     /* a budget of its tenant is used up */
    TURN_ENDS
};

/* The bounds of a turn; 0 of one: none of this kind (but steps and calls alike always have one). */
struct budget {
    uint64_t steps, tokens, cost_micro, wall_ms, same_calls;
};
/* What of them is used. */
struct used {
    uint64_t steps, tokens, cost_micro;
};

enum { TURN_STEPS_MAX = 1000, TURN_CALLS_MAX = 64, TURN_SAME_MAX = 16, TURN_SAME_DEFAULT = 5 };

/* "unsafe", "reconcilable", "idempotent", "read" */
const char *call_class_name(enum call_class c);
/* "open", "done", "error", "unknown", "not-run" */
const char *call_end_name(enum call_end e);
/* "completed", "cancelled", ... "budget" */
const char *turn_end_name(enum turn_end e);
/* A sentence for the reader. */
const char *turn_end_words(enum turn_end e);
/* What the model is told of a call, besides its result; "" of one that is done. */
const char *call_end_words(enum call_end e);
/* What a model is told in place of a step of which not all is known: recalled_begin once, then each of its n calls,
 * whose arguments and result are quoted, line by line: they are nothing that a person says.
 */
#define RECALLED_WORDS                                                                                               \
    "The last step was cut off. Some of its calls may have had their effect though nothing came back: confirm the "  \
    "state before you go on, and repeat nothing blindly."
void recalled_begin(struct dynbuf *b);
void recalled_call(struct dynbuf *b, struct span tool, struct span args, enum call_end end, struct span result);
enum {
    RECALLED_ARGS = 512,
    RECALLED_RESULT = 36 * 1024
}; /* bytes that are told of one's arguments; of all results */
/* Names back; CALL_UNSAFE, CALL_OPEN and END_NONE of what is none. */
enum call_class call_class_of(struct span name);
enum call_end call_end_of(struct span name);
enum turn_end turn_end_of(struct span name);

/* The stricter of two. */
static inline enum call_class call_stricter(enum call_class a, enum call_class b)
{
    return a < b ? a : b;
}

/* The key of one logical operation: made once, when it is written down, and read back ever after. It depends on the
 * place of the call in its turn and on what is asked, never on an id of the model's. */
void call_key(const struct id *turn, uint64_t step, uint64_t ord, struct span tool, struct span args,
              struct digest *out);

#endif
