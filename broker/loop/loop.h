/* One turn as a machine: (state, event) -> (state, actions). It has no clock, no database and nobody to talk to:
 * whoever holds the claim does what it asks for, and tells it what came of that. Nothing of it is lost with the
 * process: it begins anew from what the store found. */
#ifndef BROKER_LOOP_LOOP_H
#define BROKER_LOOP_LOOP_H

#include "broker/turn.h"
#include "common/dynbuf.h"

enum {
    LOOP_ATTEMPTS_MAX = 8, /* how often one step asks the model */
    LOOP_RUNS_MAX = 3,     /* how often one worker sends a call that may be repeated */
    LOOP_ACTIONS_MAX = TURN_CALLS_MAX + 2,
    LOOP_KEPT_MAX = 512 /* bytes of what a checkpoint keeps of it */
};

/* What is known of a call that was written down and has no end. */
enum known {
    KNOWN_NOTHING = 0, /* nobody can say: as if it had been sent */
    KNOWN_SENT,        /* it left, and no answer is recorded */
    KNOWN_NOT_SENT,    /* provably not, and it cannot be any more */
    KNOWN_ANSWERED,    /* its answer is recorded */
    KNOWN_GOING        /* it runs, and can be waited for */
};

enum loop_state {
    LOOP_NONE = 0,
    LOOP_REVOKING,  /* the lane of the worker before is being ended */
    LOOP_BEGINNING, /* a step is being begun */
    LOOP_THINKING,  /* the model is asked */
    LOOP_PLANNING,  /* its answer is being written down */
    LOOP_ACTING,    /* calls run, are asked about and settled */
    LOOP_SETTLING,  /* the step is being settled */
    LOOP_ENDING,    /* the end is being written down */
    LOOP_OVER,
    LOOP_STOPPED, /* this worker has nothing to do with it any more */
    LOOP_STATES
};

enum loop_heard {
    HEARD_NOTHING = 0,
    HEARD_REVOKED,
    HEARD_BEGUN,     /* attempts, summary */
    HEARD_ANSWER,    /* asked, n, used: the model's; n is what it asked for, even if that is too much */
    HEARD_NO_ANSWER, /* retry, after_ms */
    HEARD_BUDGET,    /* nothing was asked: a budget of its tenant is used up */
    HEARD_PLANNED,
    HEARD_DONE,    /* ord, end: a call that ran or was waited for; CALL_UNKNOWN: cut off */
    HEARD_KNOWN,   /* ord, known, end */
    HEARD_LOOKED,  /* ord, known, end: what it would have changed was looked at */
    HEARD_SETTLED, /* ord */
    HEARD_STEP,    /* the step is settled */
    HEARD_ENDED,
    HEARD_LONG, /* the step is begun once more: as a summary of what is older, where what is to be asked has no room,
                 * or without one, where none is to be had. used: what this step has wasted by then */
    HEARD_CANCEL,
    HEARD_TICK,
    HEARD_FENCED, /* the claim does not stand any more */
    HEARD_FAILED  /* the store failed, or something else that only a new beginning mends */
};

/* What came of asking a model. */
static inline bool heard_of_model(enum loop_heard h)
{
    return h == HEARD_ANSWER || h == HEARD_NO_ANSWER || h == HEARD_BUDGET || h == HEARD_LONG;
}

/* A call that the model asked for: what it does, and what it is (agent_call_digest). */
struct loop_asked {
    enum call_class class;
    struct digest what;
};

struct loop_event {
    enum loop_heard heard;
    uint64_t now_ms; /* always */
    uint64_t ord, attempts, after_ms;
    enum known known;
    enum call_end end;
    bool retry;
    bool summary; /* HEARD_BEGUN: what the step asks for is a summary of older messages, and no call */
    bool cut;     /* HEARD_ANSWER without calls: it is not complete */
    struct used used;
    const struct loop_asked *asked;
    size_t n;
};

enum loop_do {
    DO_NOTHING = 0,
    DO_REVOKE,     /* end every lane of this turn's earlier claims, and wait until they are: HEARD_REVOKED */
    DO_BEGIN,      /* step: HEARD_BEGUN */
    DO_THINK,      /* ask the model: what heard_of_model knows */
    DO_NOT_THINK,  /* give up asking it */
    DO_PLAN,       /* write down the answer with its first `n` calls: HEARD_PLANNED */
    DO_RUN,        /* ord, with the key that is written down: HEARD_DONE */
    DO_ABORT,      /* ord: HEARD_DONE comes all the same */
    DO_WAIT,       /* ord goes on by itself: HEARD_DONE */
    DO_ASK,        /* ord: the gateway's record, or the warden: HEARD_KNOWN */
    DO_LOOK,       /* ord: whether it happened, in what it changes: HEARD_LOOKED */
    DO_SETTLE,     /* ord, as end: HEARD_SETTLED */
    DO_CHECKPOINT, /* step, with what agent_save keeps: HEARD_STEP. rewind: of some call it is not known what came of
                      it, and that is said beside the results that came */
    DO_FINISH,     /* turn: HEARD_ENDED */
    DO_GIVE_BACK   /* after_ms: the turn to the queue */
};

struct loop_action {
    enum loop_do what;
    uint64_t step, ord, after_ms;
    size_t n;
    enum call_end end;
    enum turn_end turn;
    bool rewind;
};
struct loop_actions {
    struct loop_action a[LOOP_ACTIONS_MAX];
    size_t n;
};

struct loop_call {
    struct loop_asked asked;
    enum { AT_REST = 0, AT_RUN, AT_ASKED, AT_LOOKED, AT_SETTLING, AT_END } at;
    enum call_end end;
    unsigned runs;
    bool looked, aborted, found; /* found: another worker may have sent it */
};

struct agent {
    enum loop_state state;
    struct budget budget;
    struct used used;
    uint64_t started_ms, step, attempts, same;
    struct digest last;   /* what the step before asked for; none: nothing */
    enum turn_end wanted; /* once the step is settled */
    bool cut;             /* nothing more is run */
    bool planned;         /* it was found so */
    bool summary;         /* the step is one */
    struct loop_call call[TURN_CALLS_MAX];
    size_t calls;
};

/* A turn as the store found it. */
struct loop_found {
    uint64_t epoch, now_ms, started_ms, settled, attempts;
    bool cancelled, planned; /* planned: step settled + 1 has its calls */
    bool summary;            /* it is a summary, and has none */
    bool cut;                /* it has none, and its answer is not complete */
    enum turn_end ends;      /* END_NONE; or it is to end so, and nothing more is run */
    struct budget budget;
    struct used used;
    struct span kept; /* execution_state of the last settled step of this turn */
    const struct loop_asked *asked;
    const enum call_end *end;
    size_t n;
};

/* Begins; out is what to do first. */
void agent_begin(struct agent *l, const struct loop_found *f, struct loop_actions *out);
/* False: it did not wait for this; nothing is changed, and nothing is to do. */
bool agent_hear(struct agent *l, const struct loop_event *e, struct loop_actions *out) MUSTCHECK;
/* What the checkpoint of the step that is being settled keeps. */
void agent_save(const struct agent *l, struct dynbuf *out);
void agent_call_digest(struct span tool, struct span args, struct digest *out);
/* "revoking" ... */
const char *agent_state_name(enum loop_state s);

#endif
