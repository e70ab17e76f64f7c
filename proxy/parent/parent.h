/* The parent: reads the configuration, binds, starts and restarts the roles and
 * hands over descriptors. It reads nothing from the network and no secret. */
#ifndef PROXY_PARENT_PARENT_H
#define PROXY_PARENT_PARENT_H

#include "common/err.h"
#include "common/id.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "common/role/cgroup.h"
#include "proxy/msgs.h"
#include "proxy/parent/config/config.h"
#include "proxy/parent/listeners.h"
#include "proxy/parent/in_force.h"
#include "proxy/parent/observe/observe.h"
#include "proxy/parent/programs/has.h"
#include "proxy/refusals.h"

enum { LISTENERS_MAX = 64 + LANES_MAX + CELLS_MAX, PARENT_NEEDS = 256, JOBS_MAX = 46, BOXES_MAX = 640 };
/* Above the roles' and the jobs': who keeps checkpoints is one user, each sandbox another. */
enum { STORE_USER = 80, BOX_USERS = 100, STORES_MAX = 20 /* checkpoints at once */ };

/* A program that a role had started, with a process group of its own. pid 0: none. */
struct running_job {
    int pid;
    uint64_t whose, id; /* whose: enum role_id; id: theirs */
};

/* A sandbox of the warden's. id 0: this place is free; pid 0: it has ended, and its cgroup not yet. */
struct running_box {
    int pid;
    uint64_t id, generation, lane; /* lane: 1, it has a listener of its own (programs/lanes.c) */
    char name[64];
    struct box_has has;
    struct cgroup cgroup;
    int image; /* the folder of its image, held for it: its descriptor plus one; 0: the machine's own files */
    enum pause_way way;            /* of its being paused; until it is, so many looks are left */
    unsigned looks, ordered, gone; /* ordered: 1, its warden has written its end down; gone: 1, and was told of it */
};

/* Checkpoints: who keeps them and who is at a workspace (0: has ended). id 0: this place is free. */
struct running_store {
    int pid[2];
    uint64_t id, box;
};

/* The keeper's master key, on its way to the next keeper (secrets/master.c). */
struct master {
    struct timer *patience;
    int pid, fd; /* pid 0: no program runs; fd -1: nothing is to be handed over */
    bool late;   /* the program was ended for it */
};

/* One running (or to be restarted) process of a role. */
struct child {
    enum role_id role;
    uint64_t instance; /* 0; for fronts their number, never reused; for the broker's processes theirs */
    int pid;           /* 0: not running */
    struct chan *chan;
    bool ready, leaving, awaited, welcomed; /* awaited: acts not yet on the last reload; welcomed: by the ledger */
    char info[256], own[CELL_OWN];          /* a front's sandbox, and which command of it alone (programs/cells.h) */
    uint64_t adopted;                       /* connections handed to a front */
    unsigned fails;
    uint64_t started_ms;
    struct timer *again, *end;                     /* end: of a front that was told to go */
    bool trace_awaited;                            /* has not said yet what it remembers */
    bool asked;                                    /* M_SYNC is on its way, for a sign of life */
    uint64_t silent_ms, cpu_ms;                    /* alive.c */
    uint64_t link[ROLE_COUNT], broken[ROLE_COUNT]; /* to that standing role: the last channel, and one that ended */
    struct parent *parent;
    struct child *next;
};

struct parent {
    struct loop *loop;
    struct config *config;
    struct config_args args;
    struct child *children;
    uint64_t next_instance;
    struct listener listeners[LISTENERS_MAX];
    size_t nlisteners;
    struct compiled policy; /* in force */
    struct pin pin;
    char from[STORED_HEX + 1]; /* what was in force before; empty: not known */
    struct dynbuf notes;       /* for the audit, until the ledger is there */
    struct {
        char how[16], by[300], why[700];
        uint64_t when_ms;
    } refused_change; /* of the policy, the last one, for the page; how empty: it was not refused */
    int keeper_dir, uid_base, ready_fd, exit_status;
    int stage, told; /* of stopping */
    bool stopping, announced, quiet, locked;
    bool new_state; /* nothing of a gateway was in the state directory; until the first ledger is told */
    char boot[33], exe_dir[512], signin[520];
    char needs_restart[PARENT_NEEDS]; /* keys of the configuration that changed and are not in force */
    uint64_t started_ms, in_force_ms; /* since when, and since when this policy; by the wall clock */
    struct refusals refused;          /* summed since the start */
    struct dynbuf secrets, ca;        /* last M_SECRETS, for the desk; last M_CA, PEM, for the broker */
    struct observe observe;
    struct running_job jobs[JOBS_MAX];
    struct running_box boxes[BOXES_MAX];
    struct running_store stores[STORES_MAX];
    struct running_cell cells[CELLS_MAX];
    struct master master;
    struct timer *grace, *rest, *look, *heal, *boxes_rest, *boxes_look;
    uint64_t looks, links;
    struct reloading { /* the desk is answered once the roles have what it asked for */
        struct timer *patience;
        uint64_t sync, desk_id; /* desk_id 0: nobody waits */
        char said[512];
    } reloading;
};

/* parent.c */
void parent_stop(struct parent *p);
void parent_restart_later(struct parent *p, struct child *c);
struct child *parent_child(struct parent *p, enum role_id role, uint64_t instance);
/* spawn.c: fork, exec, configure; links it with its peers and gives it what is its own. A keeper whose master key is
 * waited for, or cannot be had, is not started yet: that is no failure here (secrets/master.c). */
int parent_spawn(struct parent *p, struct child *c) MUSTCHECK;
/* `countersign-NAME` beside ours, with fd as its descriptor 3, only this environment, and in this cgroup (NULL: in
 * ours); and (_in) at dir, in a session of its own, so that nobody may give it a group first. Its pid, or -1. */
int parent_execute(struct parent *p, const char *name, int fd, char *const envp[],
                   const struct cgroup *into) MUSTCHECK;
int parent_execute_in(struct parent *p, int dir, const char *name, int fd, char *const envp[],
                      const struct cgroup *into) MUSTCHECK;
/* programs/jobs.c: of fetcher and desk; did one die? All of a role, or (ROLE_NONE) of all. */
void parent_job_start(struct parent *p, struct child *of, struct frame *f);
void parent_job_end(struct parent *p, const struct child *of, struct frame *f);
bool parent_job_died(struct parent *p, int pid);
void parent_jobs_end(struct parent *p, enum role_id whose);
/* programs/boxes.c: what the warden asks for; a sandbox that died: was it one? All, when warden or gateway ends; what
 * an earlier gateway on this state directory left behind. */
void parent_box_start(struct parent *p, struct frame *f);
void parent_box_end(struct parent *p, struct frame *f);
void parent_box_claimed(struct parent *p, struct frame *f);
bool parent_box_died(struct parent *p, int pid);
void parent_boxes_end(struct parent *p, const char *why);
void parent_boxes_sweep(const struct parent *p);
void parent_box_pause(struct parent *p, struct frame *f);
/* programs/images.c: which image a name means. The folder of one, as M_BOX names it: held from now on, or 0 of the
 * machine's own; its path for who starts it. Why not, or NULL. */
void parent_image_find(struct parent *p, struct frame *f);
const char *parent_image_hold(struct parent *p, struct span digest, int *held, char *path, size_t room);
void parent_boxes_meter(struct parent *p, struct frame *f);
struct child *parent_child_new(struct parent *p, enum role_id role, const char *info);
void parent_child_free(struct parent *p, struct child **c);
/* secrets/sources.c: a file, or a credential of systemd, that holds a secret: open and unread. -1: words. */
int parent_open_secret(enum source_kind kind, struct span where, struct err *e) MUSTCHECK;
void parent_send_sources(struct parent *p, struct child *keeper);
/* secrets/master.c: is the master key there that the keeper is started with? If not, it is asked for, and the keeper
 * started when it is there; if it cannot be had, that was said and the restart or the end arranged. */
bool parent_master_ready(struct parent *p, struct child *keeper) MUSTCHECK;
/* A program that ended: was it the one that is asked for the key? Its end, when the gateway ends. */
bool parent_master_died(struct parent *p, int pid, int status);
void parent_master_end(struct parent *p);
/* It was handed over, or nobody is there to take it. */
void parent_master_drop(struct parent *p);
/* links.c: the table of who talks to whom. */
void parent_link_all(struct parent *p, struct child *c);
/* One side has lost its channel to the other: another one, if both live. */
void parent_link_lost(struct parent *p, struct child *c, struct frame *f);
/* alive.c: roles that do not answer any more are ended, so that they are started anew. */
int parent_look_after(struct parent *p) MUSTCHECK;
/* An answer to M_SYNC: was it asked for that? */
bool parent_sign_of_life(struct child *c, uint64_t sync);
/* settings.c: M_CONFIG of each role; to the desk, all kinds of tasks that there are; to the warden, its pool. */
void parent_configure(struct parent *p, struct child *c);
void parent_give_tasks(const struct parent *p, struct child *desk);
void parent_give_pool(const struct parent *p, struct child *warden);
/* fronts.c */
void parent_handover(struct parent *p, struct frame *f);
void parent_front_idle(struct parent *p, struct child *c, struct frame *f);
/* Told to go, and ended when it has not gone a second later. Nobody is given to it any more. */
void parent_front_leave(struct child *c);
void parent_front_over(struct parent *p, struct frame *f);
void parent_front_died(struct parent *p, struct child *c);
int parent_sandbox_open(struct parent *p, struct span name, bool captured, char *path, size_t cap,
                        struct err *e) MUSTCHECK;
void parent_sandbox_close(struct parent *p, struct span name);
void parent_poll(struct listener *l);
/* A sandbox's own Unix listener at this path. */
int parent_sandbox_bind(struct parent *p, const char *name, const char *path, unsigned kind,
                        const struct config_listener *conf, struct err *e) MUSTCHECK;
/* To the ledger: which sandboxes the configuration names. */
void parent_say_sandboxes(struct parent *p, struct child *ledger);
/* boot.c: folders, sockets, files. */
int parent_prepare(struct parent *p, struct err *e) MUSTCHECK;
void parent_sweep(struct parent *p);
int parent_write_public(struct parent *p, struct span ca_pem) MUSTCHECK;
/* synced.c: answer the desk's question about a reload once all roles have acted on it. */
void parent_await(struct parent *p, uint64_t desk_id, const char *said);
void parent_synced(struct parent *p, struct child *c, uint64_t sync);
void parent_sync_gone(struct parent *p, struct child *c);
/* status.c: answer the desk's question. */
void parent_status(struct parent *p, struct child *c, struct frame *f);
void parent_give_ca(struct parent *p, struct child *broker); /* control.c, like what roles tell the parent: */
void parent_frame(void *arg, struct chan *ch, struct frame *f);

#endif
