/* The ledger as a process: channels in, operations on the store, one transaction a
 * turn, replies out. desk.c, judge.c: what each peer may ask. */
#ifndef PROXY_LEDGER_LEDGER_H
#define PROXY_LEDGER_LEDGER_H

#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/ledger/heard.h"
#include "proxy/ledger/store/ops.h"
#include "proxy/ledger/outbox.h"
#include "proxy/ledger/store/sign.h"
#include "proxy/ledger/store/tell/told.h"
#include "proxy/msgs.h"

enum {
    BACKLOG_BYTES = 8 * 1024 * 1024,
    REFUSED_EVERY_MS = 250,
    LATER_MS = 30, /* the longest a record nobody waits for stays out of the store ... */
    LATER_RECORDS = 512,
    LATER_BYTES = 1024 * 1024,   /* ... and how many of them there may be */
    LEASES_ASKED = 32,           /* leases that wait for the keeper at once, for people ... */
    GATES_ASKED = 4,             /* gates at once: each is a process for a while */
    GATES_ASKED_EACH = 3,        /* of one sandbox, however many it waits for: another one finds a place */
    GATE_INPUT_MAX = 224 * 1024, /* FETCH_INPUT_MAX of the fetcher */
    STUBS_ASKED = 64,            /* ... and for sandboxes, of which each waits for one */
};

struct asked_lease {
    uint64_t number, id; /* of the question to the keeper; the asker's own. number 0: free */
    bool there;          /* it is in the store already: its text alone is wanted */
    struct dynbuf said;  /* the lease, as wire_put_lease wrote it */
};

struct asked_gate {
    uint64_t number, since; /* number 0: free */
    bool asking, answered;  /* that it was asked, or what it said, is not committed yet */
    struct id ticket;
    size_t nname;
    uint8_t name[256];
};

struct sent_tell {
    uint64_t number, since; /* number 0: free */
    bool asking, answered;  /* as of asked_gate */
    size_t nid;
    uint8_t id[TELL_ID_MAX];
};

struct review {
    uint64_t number; /* of the judge's policy */
    struct id *ids;
    size_t n, at;
    bool asked, large;
};

struct ledger {
    struct loop *loop;
    struct store *store;
    struct signer *signer;
    struct chan *peer[ROLE_COUNT];
    struct outbox out;
    struct heard heard;
    struct dynbuf scratch;
    struct dynbuf turn, backlog; /* frames that must be written down: of this turn; while the store fails */
    struct timer *second, *later;
    unsigned waiting; /* records in the open transaction that nobody waits for */
    bool scheduled, lost;
    bool ending;
    bool judge_spoke;      /* since the last second: it waits for a sign of life */
    bool patient;          /* the frame at hand is such a record */
    bool refused;          /* there is a record of what was refused or not sent that the desk was not told of */
    uint64_t refused_next; /* when it may be told */
    struct review review;
    struct {
        uint64_t number;
        struct asked_lease asked[LEASES_ASKED + STUBS_ASKED]; /* those behind LEASES_ASKED are the judge's */
    } leases;
    struct {
        uint64_t number;
        uint64_t look_until; /* each second: one may be due again by then */
        bool due, again;     /* there may be one to ask; the store failed when it was looked for */
        struct asked_gate asked[GATES_ASKED];
    } gates;
    struct {
        struct tell_targets targets;
        struct dynbuf said; /* which they borrow from */
        uint64_t number;
        bool due;
        struct sent_tell sent[TELL_TARGETS_MAX]; /* of each target */
    } tells;
    bool later_due;      /* something was approved that the gateway sends itself */
    uint64_t last_later; /* later.c: the lower half of the last exchange that it was told to begin */
    bool owed_welcome;   /* a judge came, and what it was told is not committed yet */
};

/* Needs loop, store and signer. */
int ledger_start(struct ledger *l) MUSTCHECK;
void ledger_peer(struct ledger *l, unsigned role, int fd);
/* True: all that the judge had to say was heard. Else the loop is stopped when it has been. */
bool ledger_end(struct ledger *l) MUSTCHECK;
void ledger_parent_frame(struct ledger *l, struct frame *f);
/* Commit what there is, at the end. */
void ledger_stop(struct ledger *l);

/* For the files below. The turn will be committed. */
void ledger_touch(struct ledger *l);
/* An empty buffer for a payload. */
struct dynbuf *ledger_scratch(struct ledger *l);
/* What scratch holds, when committed; else fail. fd: taken, or -1. */
void ledger_reply(struct ledger *l, enum outbox_to to, uint16_t type, uint64_t id, int fd, const struct span *fail);
/* A body in a message: size, inline or descriptor. map: to be released with memfd_unmap. */
int ledger_get_body(struct msg_in *m, struct frame *f, uint64_t max, struct span *body, struct span *map) MUSTCHECK;
/* The same out: inline or the returned descriptor (-1 none, -2 failed). */
int ledger_put_body(struct dynbuf *b, struct span body);

/* judge.c, desk.c: 0, or -1 when the message is none. A store that fails is not their business. */
int ledger_judge(struct ledger *l, struct frame *f) MUSTCHECK;
int ledger_desk(struct ledger *l, struct frame *f, enum role_id from) MUSTCHECK;
void ledger_tell(void *arg, enum store_change what, uint64_t sequence, const struct wire_ticket_state *ticket,
                 const struct wire_sandbox *sandbox);
void ledger_welcome_judge(struct ledger *l);
/* lease.c: the desk's questions about leases, the judge's word of a leak and of tokens in an answer, the keeper's
 * answer, and that it has gone; what the judge is told. */
int ledger_lease(struct ledger *l, struct frame *f) MUSTCHECK;
int ledger_lease_take(struct ledger *l, struct frame *f) MUSTCHECK;
int ledger_lease_leak(struct ledger *l, struct frame *f) MUSTCHECK;
int ledger_lease_stub(struct ledger *l, struct frame *f) MUSTCHECK;
int ledger_lease_made(struct ledger *l, struct frame *f) MUSTCHECK;
void ledger_lease_keeper_gone(struct ledger *l);
/* The desk that asked has gone: what it asked for is not made. */
void ledger_lease_desk_gone(struct ledger *l);
void ledger_lease_changed(void *arg, uint64_t sequence, const struct wire_lease *lease);
int ledger_lease_welcome(struct ledger *l) MUSTCHECK;
/* gates.c: ask those that are due, as far as there is room; a turn is over; what one said; who asks them has gone, or
 * has come; a second is over. */
void ledger_gates_next(struct ledger *l);
void ledger_gates_turn(struct ledger *l, bool committed);
int ledger_gated(struct ledger *l, struct frame *f) MUSTCHECK;
void ledger_gates_keeper_gone(struct ledger *l);
void ledger_gates_tick(struct ledger *l);
/* tell.c: the targets, as the parent put them (proxy/parent/secrets/places.h), before the store is opened; the rest
 * as of gates. */
int ledger_tell_targets(struct ledger *l, struct span said) MUSTCHECK;
void ledger_tells_next(struct ledger *l);
void ledger_tells_turn(struct ledger *l, bool committed);
int ledger_told(struct ledger *l, struct frame *f) MUSTCHECK;
void ledger_tells_keeper_gone(struct ledger *l);
void ledger_tells_tick(struct ledger *l);
/* later.c: tell the judge what it is to send itself; what a sandbox asks of its ticket. */
void ledger_later(struct ledger *l);
int ledger_asked(struct ledger *l, struct frame *f) MUSTCHECK;
/* runs.c: what the warden says of what runs. */
bool ledger_is_of_runs(uint16_t type);
int ledger_runs(struct ledger *l, struct frame *f) MUSTCHECK;
/* review.c */
int review_begin(struct ledger *l, struct frame *f) MUSTCHECK;
int review_answered(struct ledger *l, struct frame *f) MUSTCHECK;
void review_next(struct ledger *l);
void review_stop(struct review *r);
/* Must it be written down even if not now? */
bool ledger_must_keep(uint16_t type);

#endif
