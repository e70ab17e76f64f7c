/* The streaming answer of a model, read as it comes: bytes in, cut anywhere; out go pieces for whoever watches, and
 * at its end one message, its calls and what it cost. Only an answer that says itself that it is whole is complete: a
 * stream that ends before that is cut, and nothing of it is taken but what it has counted. */
#ifndef BROKER_MODELS_ANSWER_ANSWER_H
#define BROKER_MODELS_ANSWER_ANSWER_H

#include "broker/models/fault.h"
#include "broker/models/message.h"

enum {
    ANSWER_EVENT_MAX = 4 * 1024 * 1024, /* bytes of one event: the last one of Responses has all of it once more */
    ANSWER_BYTES_MAX = 8 * 1024 * 1024, /* bytes of an answer that are kept */
    ANSWER_CALLS_MAX = 64,
    ANSWER_PIECES_MAX = 256, /* texts, calls and opaque blocks */
    ANSWER_ID_MAX = 256,     /* bytes of a provider's id, and of a model's name; the rest is cut */
    ANSWER_PREFIX_MAX = CALL_ID_MAX - 4
};

enum answer_end {
    ANSWER_OPEN = 0, /* it goes on */
    ANSWER_COMPLETE,
    ANSWER_FAILED /* result.fault says how: FAULT_CUT, FAULT_BROKEN, FAULT_TOO_LARGE, or what the provider said */
};

enum answer_stop {
    STOP_NONE = 0,
    STOP_TURN,    /* it is done */
    STOP_CALLS,   /* it waits for results */
    STOP_LENGTH,  /* at its own limit, or at that of its context */
    STOP_REFUSAL, /* it, or a filter of its provider, will not */
    STOP_PAUSE,   /* it wants to be asked to go on */
    STOP_OTHER    /* a word that we do not know: none of its calls is run */
};
const char *answer_stop_name(enum answer_stop s); /* "turn", "calls", ... */

/* For display alone. Text is whole characters. */
enum delta_kind { DELTA_NONE = 0, DELTA_TEXT, DELTA_REASONING, DELTA_CALL, DELTA_ARGUMENTS };
struct answer_delta {
    enum delta_kind kind;
    size_t piece;     /* which of the answer's pieces grows */
    struct span text; /* DELTA_CALL: the tool's name; else what is added */
};
typedef void answer_delta_fn(void *ctx, const struct answer_delta *d);

struct answer_call {
    const struct block *block; /* in the message; its arguments are {} where they were no object */
    struct span foreign;       /* the provider's id */
    const char *broken; /* NULL: it may be run. Else what the model is told in place of a result; it is not run */
};

struct answer_result {
    enum answer_end end;
    enum answer_stop stop;
    bool shown;                 /* something went to fn */
    struct model_usage usage;   /* as far as it was told, also of an answer that failed */
    struct span foreign, model; /* as the provider names the answer and itself */
    struct message message;     /* the rest only of ANSWER_COMPLETE */
    const struct answer_call *call;
    size_t ncalls;
    struct fault fault;
};

struct answer;
/* origin tags what is opaque. Ids of calls are PREFIX-0, PREFIX-1 ...: prefix has at most ANSWER_PREFIX_MAX
 * characters that a call's id may have. fn may be NULL. Both are copied. NULL: no memory, or one of them is not fit.
 */
struct answer *answer_begin(enum model_protocol p, const struct model_origin *origin, struct span prefix,
                            answer_delta_fn *fn, void *ctx) MUSTCHECK;
/* False once it has ended; what comes then is not looked at. */
bool answer_feed(struct answer *a, struct span bytes);
/* No more bytes come. What is returned lives as long as the answer. */
const struct answer_result *answer_finish(struct answer *a);
void answer_free(struct answer **a);

#endif
