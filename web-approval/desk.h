/* The desk: the approval page, the operator API, the control socket.
 *
 *   server.c   bytes of a client <-> one struct exchange at a time
 *   route.c    which handler, and what a caller must bring to reach it
 *   api/       /api/v1, page/ the pages; both fill in the exchange's answer
 *   ask.c      questions to the ledger and the parent; the answer comes back by id
 *   store.c    the ledger's store, read only */
#ifndef WEB_APPROVAL_DESK_H
#define WEB_APPROVAL_DESK_H

#include "common/arena.h"
#include "common/err.h"
#include "common/json/json.h"
#include "web-approval/guard.h"
#include "web-approval/people/password.h"
#include "web-approval/store/store.h"
#include "web-approval/tasks/kinds.h"

struct chan;
struct chore;
struct client;
struct frame;
struct loop;
struct policy;
struct server;

enum {
    DESK_BODY_MAX = 64 * 1024,
    DESK_ANSWER_MAX = 24 * 1024 * 1024,
    DESK_ARENA_MAX = 32 * 1024 * 1024,
    DESK_ASKS = 192,       /* questions to other roles at once */
    DESK_DOCK_ASKS = 144,  /* of these, for callers of the dock */
    DESK_TENANT_ASKS = 72, /* and for those of one tenant */
    DESK_ASK_MS = 10 * 1000,
    DESK_RELOAD_MS = 40 * 1000, /* compiling a policy and running its tests may take 30 s */
    DESK_START_MS = 25 * 1000,  /* longer than the warden waits for a sandbox (BOX_START_MS); a pause has to wait for
                                   all of one to stand still */
    DESK_TEXT = 512,
    DESK_FOLLOWS = 32, /* commands in sandboxes that are followed, or read to their end: a client each (server.h) */
    DESK_SHORT = 16,   /* what is done with files that has no content; a client each, too */
    DESK_DOCK_FOLLOWS = 192, /* the same of the dock's callers, which have places of their own */
    DESK_DOCK_SHORT = 32,
};

/* Of which of these a place is held (share.h). */
enum share_of {
    SHARE_FOLLOW = 0,
    SHARE_SHORT,
    SHARE_DOCK_FOLLOW /* the same, of the dock's callers */,
    SHARE_DOCK_SHORT,
    SHARES
};

enum desk_place { PLACE_NONE = 0, PLACE_PAGE = 1, PLACE_CONTROL = 2, PLACE_DOCK = 16 };

enum ask_whom { ASK_NOBODY = 0, ASK_LEDGER, ASK_PARENT, ASK_WARDEN, ASK_KEEPER };
struct exchange;
/* The answer of another role; f is NULL when none came. */
typedef void ask_fn(struct exchange *x, struct frame *f);

struct ask {
    uint64_t id; /* 0: free */
    uint64_t until_ms;
    enum ask_whom whom;
    uint16_t want;
    struct exchange *x;
    ask_fn *fn;
};

/* Who speaks through the dock: what its token says. */
enum { CALLER_KEY = 40, CALLER_TENANT = 64, CALLER_BOX = 64, COOKIE_MAX = 192 };
struct caller {
    char key[CALLER_KEY + 1], tenant[CALLER_TENANT + 1];
    char box[CALLER_BOX]; /* it opens this sandbox alone; empty: all of its tenant's, and it may start them */
    uint64_t restored;    /* of box: so often when this was let in; another number, and it opens it no more */
    bool broker;          /* the broker itself, for a turn of this tenant's (broker/broker.h); key is empty */
};

struct idler;  /* idle/idle.h */
struct follow; /* follow.h */
struct share;  /* share.h */
struct tls_server;
struct task;        /* task.h */
struct transfer_of; /* transfer.h */

/* Who the operator of an exchange is (people/who.h). */
enum { WHO_GROUPS = 512 };
struct who {
    bool known, person; /* known: the store said so, or that it has no such person */
    char uid[24];       /* "uid 1000": the user of this machine they are; or empty */
    char groups[WHO_GROUPS + 1];
    uint64_t generation;
};

struct desk {
    struct loop *loop; /* NULL in tests of the handlers */
    struct server *server;
    struct desk_store *store;
    struct guard guard;
    struct attempts attempts, known;            /* of anybody; of browsers in which somebody has signed in */
    struct attempts oidc_strangers, oidc_known; /* the same of sign-ins by way of the provider */
    struct {
        char issuer[1024], client[DESK_TEXT], claim[32], authorization[1024], name[96];
    } oidc;                 /* the provider; issuer empty: there is none */
    struct tls_server *tls; /* of the page; NULL: without */
    struct chan *ledger, *parent, *warden, *keeper;
    struct dock_link *docks;    /* dock_peer.c */
    struct broker_tally *tally; /* broker/tally.h; NULL: the broker has said nothing yet */
    struct talks *talks;        /* what is asked of the broker (talks/); NULL: there is none */
    struct dynbuf passkeys;     /* payload of the last M_PASSKEYS */
    struct ask asks[DESK_ASKS];
    uint64_t last_id;
    size_t held[SHARES]; /* of DESK_FOLLOWS, of DESK_SHORT */
    struct share *shares;
    struct follow *following;
    struct pictures *pictures; /* pictures.h */
    struct diffs *diffs;       /* diffs/diffs.h */
    struct glances *glances;   /* glance/glance.h; NULL until a list was shown */
    bool diffs_again;          /* the store could not be read when it was asked which are wanted */
    struct chore *chores;      /* chore.h */
    struct task_kinds kinds;   /* of tasks */
    struct task *tasks;        /* that run (tasks/task.h) */
    uint64_t moment_at;        /* when the warden is asked who stands still for a moment (api_moment.c); 0: not */
    unsigned moment_turn;
    struct idler *idlers;            /* that are put aside, or restored, now (idle/) */
    uint64_t idle_at, idle_sweep_at; /* when it is looked who is to be, and for what nobody needs; 0: not */
    uint64_t idle_ms;                /* of what is started with no time of its own; 0: none is put aside */
    unsigned idle_turn;              /* which of those that are due is looked at first */
    bool idle_sweeps;                /* that is looked for just now */
    unsigned idle_fence;             /* idle_lost when it began */
    unsigned idle_lost, idle_fenced; /* answers of the ledger that did not come: all, and before the last sweep */
    bool idle_none, idle_unsure;     /* none is idle; what the ledger did not say may come yet */
    char desk_url[DESK_TEXT], proxy_url[DESK_TEXT], socks_url[DESK_TEXT], db[DESK_TEXT], boot[64];
    char desk_tls[8]; /* the page speaks TLS itself; empty: it does not */
    char ca[DESK_TEXT], bundle[DESK_TEXT], truststore[DESK_TEXT];
    char proxy_why[DESK_TEXT]; /* what to do when there is no URL to give */
    char audit_key[65];        /* hex, as the ledger said it; empty until then */
    char mode[16];             /* enforce or shadow */
    char dock_lanes[4096];     /* "TENANT LANE\n" each: by which lane what the dock starts for it sends */
    char dock_mounts[8192];    /* "TENANT NAME PLACE\n" each: what it has mounted where */
    char notify[1024];         /* "NAME KIND[ signing]\n" each: who is told outside the page */
    char broker_lanes[4096], broker_people[4096]; /* the same of what the broker starts; who talks: "NAME\n" each */
    char broker_only[16], broker_image[64];       /* what it does alone; of what its sandboxes are; or empty */
    char diff_lane[64];  /* by which lane it is found out what a request changes; empty: by none, it is not */
    char diff_image[64]; /* and in what */
    uint64_t owner_uid;
    uint64_t egress_requests, egress_bytes; /* of what is started with no limit of its own; 0: none */
    struct dynbuf secrets;                  /* payload of the last M_SECRETS */
    struct dynbuf notice;                   /* payload of the last M_POLICY_NOTICE */
    struct policy *policy;
    struct span image;
};

/* One request and its answer. Lives until it is answered, also when its client has gone. */
struct exchange {
    struct desk *desk;
    struct client *client; /* NULL: gone */
    enum desk_place place;
    char operator[GUARD_OPERATOR];
    struct who who;
    struct span passkey;           /* what one signed for the decision; in the arena */
    struct span instead_of;        /* whose deputy they approve as; empty: in their own name */
    const struct session *session; /* on the page: signed in */
    struct caller caller;          /* of PLACE_DOCK */
    bool slack;                    /* x->operator pressed a button there (deciding/slack.h); nobody waits for it */
    bool moment;                   /* the sandbox that x->arg names stands still for it, and then goes on */
    uint64_t woke;                 /* the sandbox was idle, and has its files again: as this generation; 0: no */
    bool another;                  /* and another image than it had, which is not there any more */
    bool keeps;                    /* it has to do with checkpoints, of which few are written or read at once */
    uint64_t now_ms, wall_ms;
    struct dynbuf raw; /* head and body; the spans below point into it */
    struct http_head head;
    struct span body, arg; /* arg: the {id} of the path */
    struct span mapped;    /* a held body that is longer than what is read of it, or empty */
    struct arena arena;
    uint8_t *parts; /* of an answer that is longer than a frame: what came of it, in the arena */
    size_t nparts;
    void *step;                       /* of a handler that asked others first; in the arena */
    void *holds;                      /* of one that goes on for long; in the arena */
    void (*over)(struct exchange *x); /* before it is freed: what is held is given back; or NULL */
    bool ends;                        /* what it began ends with its client, which is gone when it sends no more */
    bool left;                        /* its client has gone */
    /* the answer; status 0: not there yet */
    unsigned status;
    const char *type;
    struct dynbuf out;
    char location[96], cookie[COOKIE_MAX], browser[COOKIE_MAX], flow[COOKIE_MAX], download[64];
    const char *away; /* an address elsewhere that the browser is sent to, in the arena; or NULL */
    bool onward;      /* the page leads to the list by itself */
    bool inert;       /* nothing in it may act, whatever it is */
    bool stream;      /* an event stream begins after the head */
    uint64_t follow;  /* what it is of: a command that the warden was told to run by this number; 0: of events */
    bool input;       /* which is given one */
    bool terminal;    /* which has one */
    const struct transfer_of *transfer; /* `follow` is what is done with files, and this what is made of it */
    int file;                           /* a descriptor to send after `out`, or -1; owned */
    uint64_t file_size;
};

#endif
