/* Steps of one request that another one takes as well: a start, a pause and its end, and checkpoints, which need all
 * of them. */
#ifndef WEB_APPROVAL_API_STEPS_H
#define WEB_APPROVAL_API_STEPS_H

#include "sandbox-shim/checkpoint/order.h"
#include "web-approval/api/api.h"

/* Longer than the warden gives who keeps checkpoints. */
enum { CHECKPOINT_MS = 16 * 60 * 1000 };

/* One that is being paused, or goes on: x->arg. */
struct pausing {
    void (*then)(struct exchange *x);  /* when it is so, instead of the answer */
    void (*still)(struct exchange *x); /* when it stands still: it answers, or has its leases end */
    uint64_t generation;
    unsigned way;
};
/* x->step is one. Where x->moment it is paused for a moment, and goes on whatever becomes of x (api_moment.c).
 * Answered, unless it goes well and there is a `then`. */
void api_pause_go(struct exchange *x);
void api_pause_ends_leases(struct exchange *x);
void api_resume_go(struct exchange *x);
/* Something that had a sandbox stand still for a moment is over, or may be: let go on what does still. */
void api_moment_look(struct desk *d);
/* Do so, if that is due by now. */
void api_moment_due(struct desk *d, uint64_t now_ms);
/* A request of the desk's own, whom nobody waits for; NULL: no memory. Once it is asked with, or has a status, it
 * ends as any other does. */
struct exchange *api_own(struct desk *d, uint64_t now_ms) MUSTCHECK;

/* One that is being started. */
struct starting {
    char name[BOX_NAME_MAX + 1], image[BOX_NAME_MAX + 1], digest[BOX_DIGEST_MAX + 1], lane[BOX_NAME_MAX + 1];
    struct span session, from; /* from: a checkpoint; empty: none */
    struct span found;         /* which that is, by its id, whatever its name means later */
    struct span reach;         /* what of the policy's it may reach (proxy/reach/); empty: all */
    struct span tenant;        /* whose it will be, and whose `from` is */
    struct span wanted;        /* the digest that its image must have; empty: any */
    struct wire_box box;
    uint64_t cpu_percent, timeout_s, generation;
    bool bound;           /* it ends with this process, should nobody end it before */
    bool strict, borrows; /* borrows: `from` is of no use to anybody once that is over */
    bool of_step;         /* `from` is of before a step: of no use but to who named the step */
    bool wakes;           /* it is idle, and restored: `from` and `owner` are its own */
    bool another;         /* its image is not there any more, and its name means this one */
    struct span owner;
    bool asked;                       /* the warden was */
    void (*then)(struct exchange *x); /* when it runs, instead of the answer */
    struct digest access;             /* of PLACE_DOCK: what it is opened with, and what is to be known of it */
    struct span note;
};
/* As when nothing is asked for. */
void api_start_begin(const struct desk *d, struct starting *s);
/* What it may reach of what the policy lets it, if that is given. -1, answered. */
int api_reach_take(struct exchange *x, struct starting *s, const struct json *given) MUSTCHECK;
/* The audit's record of a start, with what it may reach. */
void api_reach_note(struct exchange *x, const struct starting *s);
/* And no more than this. -1, answered. */
int api_reach_narrow(struct exchange *x, struct starting *s, struct span more) MUSTCHECK;
/* How much it may send and be sent, if that is given. -1, answered. */
int api_egress_take(struct exchange *x, struct starting *s, const struct json *given) MUSTCHECK;
/* Its name, session, limits and timeout, as far as they are given. -1, answered. */
int api_start_take(struct exchange *x, struct starting *s, const struct member *name, const struct member *session,
                   const struct member *limits, const struct member *timeout) MUSTCHECK;
/* By which lane it sends, if that is given: what policies know as its label `lane`. -1, answered. */
int api_lane_take(struct exchange *x, struct starting *s, const struct member *lane) MUSTCHECK;
/* What else it has: of e what is not its tenant and session, which s says. -1, answered. */
struct wire_extras;
int api_extras_give(struct exchange *x, struct starting *s, const struct wire_extras *e) MUSTCHECK;
/* The same as before, of the tenant that it has by now. -1, answered. */
int api_extras_again(struct exchange *x, struct starting *s) MUSTCHECK;
/* Its mounts, where they are given, and the dock's. -1, answered. */
int api_mounts_take(struct exchange *x, struct starting *s, const struct member *mounts) MUSTCHECK;
/* A member that says how much that is, and what of it is used, if there is a limit. */
void api_egress_put(struct exchange *x, struct jsonw *w, const struct wire_box *b);
/* Members that say it, if there is any. */
void api_extras_put(struct jsonw *w, const struct wire_box *b);
/* x->step is one; its answer is x's. */
void api_start_go(struct exchange *x);
/* Whether one of this name is being started, from the first question to the last one: it has no row yet that says so,
 * and the warden lists it when it runs. */
bool api_starts_already(const struct desk *d, struct span name);

/* x->arg is to be ended, with all that is in it. Answered, unless it is so and there is a `then`. */
void api_destroy_go(struct exchange *x, void (*then)(struct exchange *x));

/* The id or name of a checkpoint, where it is given. -1, answered. */
int api_checkpoint_named(struct exchange *x, const struct json *given, struct span *to) MUSTCHECK;
/* Of a start (x->step): which its `from` is, and what may be reached with those files, before anything of it is
 * there; then api_start_go. What is asked for so: api_checkpoint_looked. */
void api_checkpoint_look(struct exchange *x);
void api_checkpoint_looked(struct exchange *x, struct frame *f);
/* What the warden says of one that is saved, listed or removed; spans are borrowed. STORE_FAILED also if it says
 * nothing. */
enum store_end api_checkpoint_heard(struct frame *f, struct span *why, struct span *rest);
/* Something is to be done with them; nothing is waited for. */
void api_checkpoint_tell(struct desk *d, enum order_what what, struct span tenant, struct span which);
/* Nobody needs it any more; nothing is waited for. */
void api_checkpoint_forget(struct desk *d, struct span tenant, struct span id);
/* When it meets the warden: what a desk before left behind goes. Nothing is waited for. */
void api_checkpoints_sweep(struct desk *d);
/* Whose sandboxes and checkpoints a caller has to do with, unless it names one that is there. */
struct span api_tenant(const struct exchange *x);
/* What may be reached with the files of a sandbox. -1: the store cannot be read. */
struct sandbox_row;
int api_checkpoint_reach(struct exchange *x, const struct sandbox_row *row, struct span *reach) MUSTCHECK;
/* The answer, if it is not STORE_DONE; before: words before why. */
void api_checkpoint_not_done(struct exchange *x, enum store_end how, const char *before, struct span why);

/* A command that can be undone, of these words: its sandbox's files are kept, then fn is heard of it (api_undo.c). */
void api_step_keep(struct exchange *x, const struct json *argv, ask_fn *fn);
/* The number of the step. -1, answered: they were not kept. */
int api_step_kept(struct exchange *x, struct frame *f, uint64_t *step) MUSTCHECK;
/* Which can be undone; and the checkpoint of before one of these (0: the last). -1, answered: there is none. */
void api_steps_ask(struct exchange *x, ask_fn *fn);
int api_step_checkpoint(struct exchange *x, struct frame *f, uint64_t step, struct span *id) MUSTCHECK;
/* The number of one, if it is given, else 0. -1, answered. */
int api_step_take(struct exchange *x, const struct member *given, uint64_t *step) MUSTCHECK;
/* Of the few places that there are for what is done with checkpoints, one for x. -1, answered. */
int api_checkpoint_place(struct exchange *x) MUSTCHECK;
bool api_checkpoint_has_place(const struct exchange *x);
void api_checkpoint_note(struct exchange *x, const char *kind, struct span sandbox, struct span checkpoint);

#endif
