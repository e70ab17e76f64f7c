/* A worker: it claims one turn at a time, runs it to its end, and takes the next. What it may do is the claim's, and
 * the lane's that it was given with it; a worker that dies leaves both, and whoever takes the turn over ends them.
 *
 *   work.c    claims · task.c one turn: what the agent asks for (broker/loop) and what came of it
 *   desk.c    questions to the desk · lane.c the conversation's identity, its leases and its sandbox
 *   think.c   one question to a model · question/ to which · prompt.c what it is asked · wire.c the way there
 *   summary/  a step that summarises what is older
 *   tools.c   which tools there are · run.c, command.c, files.c what they do · recall.c what became of a call
 *   servers/  MCP servers, with more tools: their begin, and those over HTTP
 *   show.c    what readers see, written down in groups · cut.c what is too long · taped.c for a replay
 *   seen/     what was done, as spans and in numbers, told outside */
#ifndef BROKER_WORK_WORK_H
#define BROKER_WORK_WORK_H

#include "broker/loop/loop.h"
#include "broker/mcp/table/table.h"
#include "broker/models/route/route.h"
#include "broker/store/store.h"
#include "broker/work/desk.h"
#include "broker/work/seen/call.h"
#include "broker/work/show.h"
#include "common/arena.h"
#include "common/json/json.h"
#include "proxy/errand/errand.h"

struct attach;
struct loop;
struct prompt;
struct servers;
struct task;
struct think;
struct timer;
struct tls_client;
struct wants;
struct wish;

enum {
    WORK_CLAIM_MS = 15 * 1000, /* a claim; each tick, and all that is written down, extends it */
    WORK_TICK_MS = 1000,
    WORK_SILENCE_MS = 10 * 60 * 1000, /* of a model; a lease of which less is left is not shown to one */
    WORK_LOOK_MS = 100,               /* how often it is looked whether there may be a turn */
    WORK_TRY_MS = 1000,               /* and how often one is asked for, though nobody has written anything */
    WORK_TURN_BYTES = 256 << 20, /* of memory that one turn may take; the process has as much and a little more */
    WORK_STEP_BYTES = 64 << 20,
    WORK_TODO_MAX = 256,
    WORK_RESULT_MAX = 48 * 1024, /* of a result that the model is told */
    WORK_COMMANDS = 8,           /* of a turn that run at once; a sandbox keeps twice as many (RUNS_KEPT_MAX) */
    WORK_WISHES_MAX = 96,
    WORK_LANE_MAX = 64,
    WORK_LEASES_MAX = 8,
    WORK_LEASE_MAX = 4096,
    WORK_WHY_MAX = 256
};

struct work {
    struct loop *loop;
    struct errands errands;
    struct bstore *store;
    struct id id;
    struct route_table models;
    struct mcp_table tools;
    struct arena models_arena, tools_arena;
    uint64_t down[ROUTE_MODELS_MAX];   /* until when one is not to be asked, ms */
    struct tls_client *tls;            /* whom the gateway is, NULL: it has not said yet */
    char proxy[128];                   /* its host:port */
    unsigned number;                   /* which of the gateway's workers it is, from 1 */
    struct export *spans, *metrics;    /* export.c; NULL: none are sent */
    char telemetry[WORK_LANE_MAX + 1]; /* the identity that sends them; empty: there is none yet */
    struct timer *look;
    uint8_t refused[64];            /* by a turn's id: how often in a row the gateway gave it no identity */
    uint64_t pulse, try_ms, say_ms; /* of the store when it was looked last; asked even so; said to be away again */
    struct task *task;
    bool stopping;
};
/* A call of the step, and what came of it. */
struct work_call {
    struct bstore_call call;
    struct digest key;
    uint64_t intent_ms; /* when it was written down, before it could be sent */
    enum call_end end;  /* CALL_OPEN: not yet */
    struct span result, effect;
    struct dynbuf said;     /* while it runs */
    uint64_t cut;           /* bytes that were not kept */
    struct attach *follows; /* a command */
    bool command, waits;    /* command: it is one of those that may run at once; waits: until it may be */
    bool abort, blind;      /* blind: the record has a command of which it does not say what it was */
    size_t since;           /* recall.c: commands that the record has begun since its intent */
    uint64_t shown;         /* bytes of its output that readers were shown */
    uint64_t size;          /* files.c: of the file that is read, in all */
    struct seen_of_call seen;
};

struct task_lease {
    struct span credential;
    uint64_t expires_ms;
    char text[WORK_LEASE_MAX + 1];
};

/* What stands in place of the first `upto` messages of the conversation; upto 0: they stand there themselves. asked:
 * which of them says what a turn was for; or 0. */
struct summed {
    struct span text;
    uint64_t upto, asked;
};

struct task {
    struct work *w;
    struct claim claim;
    char conversation[ID_TEXT + 1], turn[ID_TEXT + 1];
    char box[2 + ID_TEXT + 1];      /* the name of its sandbox */
    char lane[WORK_LANE_MAX + 1];   /* empty: it has none yet */
    struct arena arena, step_arena; /* of the turn; of the step */
    struct bstore_turn found;
    struct model_privacy privacy; /* who may see the conversation; nobody, until it is known */
    struct summed summed;         /* as the last settled step left it */
    struct agent agent;
    struct loop_action todo[WORK_TODO_MAX];
    size_t at, ntodo;
    bool pumping, over, fenced, given_back, starting, box_up, dropping, files_lost; /* and the model was not told */
    enum turn_end ending;
    char why[WORK_WHY_MAX + 1];     /* the last thing that went wrong, for the turn's end */
    char files_ref[BSTORE_REF_MAX]; /* filesystem_state_ref: "c-ID.GENERATION" of its sandbox; or empty */
    /* the step */
    uint64_t step;
    struct span answer;          /* the model's message, as it is kept; of a summary what it leaves (summary/) */
    const struct prompt *prompt; /* what the model is asked, once it was read */
    struct summed summing;       /* the summary that is asked for, of at most so many bytes */
    uint64_t summing_most;
    bool long_now;               /* what was to be asked had no room: the step is begun once more, as a summary */
    uint64_t unsummed, narrow;   /* step for which none was to be had last; smallest window said to be too small */
    struct used used, wasted;    /* for it; for attempts of this step of which nothing is kept */
    struct bstore_asked metered; /* what `used` is metered as */
    struct work_call call[TURN_CALLS_MAX + 1];
    size_t calls;
    struct think *think;
    uint64_t tried, anew;             /* models that this step is not to ask again; how often it was begun anew */
    unsigned all_tries, halved, ends; /* halved: what a summary is made of; ends: of a sandbox that starts */
    const struct route_model *asked;  /* last; NULL: none yet by this worker */
    struct servers *servers;          /* servers.c; NULL: there are none */
    struct taped *taped;              /* taped.c */
    struct wish *wishes;
    struct wants *starts; /* lane.c: who waits for the sandbox */
    struct timer *start;
    struct task_lease lease[WORK_LEASES_MAX];
    size_t nwishes, nleases;
    /* show.c */
    struct bstore_event event[BSTORE_EVENTS_MAX];
    size_t events, event_bytes;
    struct arena event_arena;
    struct dynbuf delta; /* text that grows, of one piece */
    const char *delta_type;
    uint64_t delta_piece;
    struct timer *tick, *flush;
};

void work_begin(struct work *w);
/* Somebody may have put a turn on the queue, or a task is over. */
void work_look(void *arg);

/* --- task.c --- */
void task_begin(struct work *w, const struct claim *c);
/* Something came of what was asked for. It may end the task, which is freed later in this turn of the loop. */
void task_tell(struct task *t, struct loop_event e);
/* A call's end, with what the model is told; then HEARD_DONE. */
void task_done(struct task *t, uint64_t ord, enum call_end end, struct span result);
void task_why(struct task *t, struct span words);
/* 201: it has its lane: begin. Else it has none: it ends, if that is for good or it is to end anyway, or waits. */
void task_ready(struct task *t, unsigned status);
/* What the store said; false: it is over for this worker. */
bool task_passed(struct task *t, enum bstore_result r) MUSTCHECK;
/* Nothing more can be sent for it: its end is written down. */
void task_finish(struct task *t);
/* The process is to end: the turn goes back to the queue. */
void task_leave(struct task *t);

/* --- lane.c --- */
void lane_take(struct task *t);
void lane_drop(struct task *t);
/* fn(t, arg, 200) once the sandbox runs; else a status and words. */
void box_need(struct task *t, told_fn *fn, uint64_t arg);
/* Ask for its start once more, or for its end, of a task. */
void box_start(void *arg);
/* A lease of the credential; fn hears 200 and the lease itself. */
void lease_need(struct task *t, struct span credential, told_fn *fn, uint64_t arg);

void think_begin(struct task *t);
void think_end(struct task *t);
void think_stop(struct task *t); /* in the middle: what it has cost by then is counted */

/* --- run.c; run_next: a command has ended, and one that waits may run --- */
void run_call(struct task *t, uint64_t ord);
/* It leaves now, for whoever runs it: from here on it is told of (seen/). */
void run_begins(struct task *t, uint64_t ord);
void run_next(struct task *t);
void run_abort(struct task *t, uint64_t ord);
void recall_ask(struct task *t, uint64_t ord);
void recall_look(struct task *t, uint64_t ord);
void recall_wait(struct task *t, uint64_t ord);

#endif
