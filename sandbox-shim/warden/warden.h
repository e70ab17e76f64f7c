/* The warden: which sandboxes run, what runs in them, and when they end. It starts nothing itself and opens nothing:
 * the parent starts a process for it (M_BOX), the first one inside (countersign-shim) runs what it is told to.
 *
 *   asked ──M_BOX_STARTED──► starting ──hello──► runs ──► ending ──M_BOX_GONE──► forgotten
 *                               └─► ready, until it is claimed: pool/; both ways lead on from there
 *                               └─► filling ──────┤ the files of a checkpoint are put into it
 *                                                 ▲ └─► pausing ──M_BOX_PAUSED──► paused ─┐
 *                                                 └──────M_BOX_PAUSED── resuming ◄────────┘
 *
 * A sandbox ends when it is destroyed, when its time is over, when its first process does, and when that says what it
 * may not; each time by a kill from outside, which nothing in it can hinder. */
#ifndef SANDBOX_SHIM_WARDEN_WARDEN_H
#define SANDBOX_SHIM_WARDEN_WARDEN_H

#include "common/net/chan.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"
#include "sandbox-shim/warden/flow.h"
#include "sandbox-shim/warden/idle/idle.h"
#include "sandbox-shim/warden/ring.h"
#include "sandbox-shim/warden/talk.h"
#include "sandbox-shim/warden/wire_box.h"

enum {
    WARDEN_BOXES_MAX =
        512, /* sandboxes, those that wait among them; the parent has room for those that end meanwhile */
    BOX_TIMEOUT_MAX_MS = 7 * 86400 * 1000,
    BOX_START_MS = 20 * 1000, /* from being asked for to its first word */
    BOX_FILL_MS = 10 * 60 * 1000,
    RUN_TIMEOUT_MAX_MS = 86400 * 1000,
    RUN_KILL_MS = 5 * 1000,             /* from a command's kill to its end; then its sandbox ends */
    RUN_WORDS_MAX = 512,                /* bytes of a command's words that are listed */
    RUNS_KEPT_MAX = 16,                 /* detached commands of a sandbox, those that have ended with them */
    WARDEN_KEPT_MAX = 256,              /* of all sandboxes, but for the first of each */
    FILES_ANSWER_MAX = 4 * 1024 * 1024, /* bytes that come of what is done with files, unless it says how many may */
    FILES_WORDS_MAX = 64 * 1024,        /* and of words of what went wrong */
};

enum box_state {
    BOX_NONE = 0,
    BOX_ASKED,
    BOX_STARTING,
    BOX_READY,
    BOX_FILLING,
    BOX_RUNS,
    BOX_PAUSING,
    BOX_PAUSED,
    BOX_RESUMING,
    BOX_ENDING,
    BOX_STATES
};

/* One command. */
struct run {
    struct run *next;
    struct box *box;
    uint32_t id;              /* ours, in the sandbox */
    uint64_t asker, since_ms; /* asker: the desk's; 0: nobody waits for it; unless it is kept, it is killed */
    struct kept *kept;        /* NULL: it is not detached */
    struct cell *cell;        /* cell/; NULL: it runs among the others */
    struct record *record;    /* record.h; NULL: of what is done with files, or its end is told */
    uint64_t most, said, cut; /* bytes of its output: that may be said, that were, that were not */
    uint32_t open;            /* bytes that were said and are not taken yet */
    struct flow flow;
    uint32_t unfed; /* bytes of its input that were said to it and that it was not given yet */
    bool input;     /* more of it may come */
    bool terminal, files, late, killed;
    bool due;        /* its timer was over while its sandbox stood still */
    uint64_t may[2]; /* files: bytes that may come yet of what is read, and of words */
    struct timer *timer;
    size_t nwords; /* bytes of them */
    bool more_words;
    char words[RUN_WORDS_MAX], lane[BOX_NAME_MAX + 1]; /* its first arguments, each with a NUL; its own, or empty */
};

struct box_from { /* the checkpoint that one is started from; which empty: none */
    char tenant[257], which[BOX_NAME_MAX + 1];
    bool here; /* it is in no checkpoint store, nor looked for there */
};
struct box {
    struct box *next;
    struct warden *warden;
    enum box_state state;
    uint64_t id, asker; /* asker: the desk's number, until it is answered */
    char name[BOX_NAME_MAX + 1], image[BOX_NAME_MAX + 1], digest[BOX_DIGEST_MAX + 1], lane[BOX_NAME_MAX + 1];
    uint8_t extras[BOX_EXTRAS_MAX];
    struct wire_box is;                                        /* its words are these */
    uint64_t generation, born, timeout_ms, since_ms, until_ms; /* born: the generation of its start */
    unsigned version;  /* of its cgroup; 0: its limits are those of each process */
    int fd;            /* our end of its socket, until it is ordered; -1 */
    struct conn *conn; /* the same from then on */
    struct timer *timer;
    enum pause_way way; /* it stands still */
    struct box_idle idle;
    struct box_from from;
    bool waits;                    /* for who asks for one: nobody's yet, without a name (pool/) */
    bool strict;                   /* what it was asked for as, also of that one */
    uint64_t cpu_percent, used_ms; /* used_ms: when a command ended in it, or it came up */
    bool bound;                    /* it ends with the desk that asked for it */
    bool moment;         /* it stands still, or is to, only for what is done with it; the desk lets it go on */
    bool saves;          /* its files are being read for a checkpoint, or put back (undo.h) */
    struct steps *steps; /* undo.h; NULL: it never had one that can be undone */
    uint64_t pauser;     /* the desk's number, until it is answered whether it does, or goes on */
    struct run *runs;    /* the last one first */
    size_t nruns;        /* those that run */
    uint32_t last_run;
    struct flow_turn turn;
};

struct warden {
    struct loop *loop;
    struct chan *parent, *desk, *ledger;
    struct box *boxes;
    size_t nboxes; /* those that end are not counted, nor those that wait */
    struct pool *pool;
    uint64_t last_box, last_record, last_task, last_cell;
    bool known;                   /* the ledger has heard which sandboxes run: from then on others may be started */
    int waiting;                  /* until then: the desk's socket, plus one; 0: none */
    struct destroyer *destroyers; /* warden.c */
    struct task *tasks;           /* checkpoint.c */
    size_t nkept;                 /* detached commands */
};

/* warden.c: what the desk and the parent say. */
void warden_desk(struct warden *w, int fd);
void warden_ledger(struct warden *w, int fd);
void warden_parent_frame(struct warden *w, struct frame *f);
/* Answer the desk: M_SB_STARTED. b NULL: it was not even begun. */
void warden_tell_started(struct warden *w, uint64_t asker, const struct box *b, const char *why);

/* M_SB_START, with the files of a checkpoint (from NULL: with none). -1: it cannot be read. */
int warden_start(struct warden *w, uint64_t asker, struct span payload, const struct box_from *from) MUSTCHECK;
/* One is forgotten: tell those who waited for that. */
void warden_tell_destroyed(struct warden *w, struct span name);

/* What is asked for. */
struct box_order {
    struct wire_box is;
    uint64_t generation, cpu_percent, timeout_ms;
    bool strict, bound, waits;
    struct box_from from;
};
/* box.c. NULL: begun, and the desk will be told; else why not. Of one that waits, nobody is. */
const char *box_start(struct warden *w, uint64_t asker, const struct box_order *o) MUSTCHECK;
/* One that waited is what is asked for from now on. */
void box_claim(struct box *b, uint64_t asker, const struct box_order *o);
/* False: it may not become this, which is a fault of ours, and logged. */
bool box_set(struct box *b, enum box_state to) MUSTCHECK;
/* It has come up and does not end yet, whether or not it stands still. */
bool box_is_up(const struct box *b);
/* What became of it, in our own words, for the audit. */
void box_note(const struct box *b, const char *kind, const char *why);
/* One that has not begun to end; or NULL. */
struct box *box_named(struct warden *w, struct span name);
struct box *box_numbered(struct warden *w, uint64_t id);
/* Does one of this name end? */
bool box_ends(const struct warden *w, struct span name);
void box_started(struct box *b, unsigned version);
/* The files it is started from are in it. */
void box_filled(struct box *b);
/* It was not started (gone false), or nothing is left of it: forget it. */
void box_forget(struct box *b);
/* End it now. why: our own words, for the record and for who waits for its commands. */
void box_end(struct box *b, const char *why);
/* To its first process. */
void box_say(struct box *b, const struct dynbuf *frame);

/* run.c. Why not, or NULL: begun. */
struct run_order {
    struct talk_command command;
    struct talk_files files; /* unless it is TALK_FILE_NONE, this and no command */
    uint64_t timeout_ms, most;
    uint64_t detacher; /* who is told when it is begun, if it is detached, or why it is not later on */
    bool detached;     /* asker is 0, and most of no meaning */
    struct span lane;  /* its own; empty: its sandbox's */
};
const char *run_begin(struct box *b, uint64_t asker, const struct run_order *o) MUSTCHECK;
/* What a sandbox, or who is behind the walls of one (from), said of it. -1: it may not say that. */
int run_heard(struct box *b, const struct cell *from, const struct talk *t) MUSTCHECK;
/* The desk took bytes of it; nobody waits for it any more; the desk is gone. */
void run_taken(struct warden *w, uint64_t asker, uint32_t bytes);
void run_kill(struct warden *w, uint64_t asker);
/* The desk has input for it; none: its end. -1: more than it may have, or the end of a terminal's. */
int run_input(struct warden *w, uint64_t asker, struct span bytes) MUSTCHECK;
/* So large is its terminal now. -1: it has none, or of no size. */
int run_resize(struct warden *w, uint64_t asker, uint16_t rows, uint16_t columns) MUSTCHECK;
/* A signal to its process group. -1: there is none of this number. */
int run_tell(struct warden *w, uint64_t asker, unsigned signo) MUSTCHECK;
void runs_desk_gone(struct warden *w);
/* Its sandbox goes on: what was due meanwhile is done. */
void runs_go_on(struct box *b);
/* Its sandbox ends: tell who waits. */
void runs_end(struct box *b, const char *why);
void run_free(struct run *r);
/* M_SB_EXIT, if somebody waits for it; of one that never began. */
void run_tell_exit(const struct run *r, enum sb_end how, const struct talk *t);
void run_tell_none(struct warden *w, uint64_t asker, enum sb_end how, const char *why);

#endif
