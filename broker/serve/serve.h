/* Where conversations are had: HTTP and server-sent events. It runs nothing and asks no model; what it is told it
 * puts into the store, and what it shows is what the store has.
 *
 *   door.c    bytes of a caller <-> one struct call at a time; whose key that is, the desk knows
 *   routes.c  which handler · talk.c chat, cancel, history, fork · stream.c what happens, as it happens
 *   known.c callers without a key · view.c what a page shows of it, at once
 *   recorded.c what a turn heard and did, for a replay · live.c turns that are one
 *   usage.c what models were asked, and its cost · health.c whether anybody runs turns
 *   watch.c readers are told · lanes.c handlers that wait */
#ifndef BROKER_SERVE_SERVE_H
#define BROKER_SERVE_SERVE_H

#include "broker/store/store.h"
#include "common/http/http.h"
#include "common/json/json.h"

struct caller;
struct chan;
struct conn;
struct frame;
struct loop;
struct timer;
struct door;

enum {
    SERVE_CLIENTS = 2048,
    SERVE_OWN_CLIENTS = 32,      /* more for the operator, whoever else is there */
    SERVE_DESK_CLIENTS = 64,     /* more than both for those whom the desk brings */
    SERVE_TENANT_CLIENTS = 1536, /* of one tenant: some are left to the others */
    SERVE_BODY_MAX = 1024 * 1024 + 64 * 1024,
    SERVE_ARENA_MAX = 48 * 1024 * 1024,
    SERVE_REQUEST_MS = 30 * 1000,
    SERVE_IDLE_MS = 75 * 1000,
    SERVE_SEND_MS = 60 * 1000, /* without progress of who is being answered */
    SERVE_HEART_MS = 15 * 1000,
    SERVE_WHO_MS = 30 * 1000,     /* so long what the desk said of a key is believed while a stream is open */
    SERVE_UNSURE_MS = 120 * 1000, /* and so long a stream goes on without that anybody said yes to its key */
    SERVE_KEY_MAX = 256,
    SERVE_LANES = 4,               /* handlers that wait for a database at once, each with a connection of its own */
    SERVE_LANES_ASKED = 2,         /* of these, for what is no stream: readers are never behind all that is asked */
    SERVE_LANE_BYTES = 512 * 1024, /* of a handler's stack */
    SERVE_LATE_MS = 5 * 1000,      /* a turn that nobody has taken by then: who could would have within a second */
    SERVE_LATE_LOOKS = 2,          /* so often in a row no turn was run, and it is said */
    SERVE_PULSE_MS = 20            /* how often it is looked whether something was written, while somebody watches */
};

/* What a key lets do. */
enum { MAY_CHAT = 1, MAY_READ = 2 };

struct call;
typedef void call_fn(struct call *x);
struct call {
    struct serve *serve;
    struct caller *client;
    struct dynbuf raw, body;
    struct http_head head;
    struct arena arena;
    struct span arg; /* the {id} of the path */
    call_fn *fn;
    unsigned needs; /* MAY_* */
    bool own;       /* the operator asks, on the socket of this machine */
    bool streams;   /* a stream of events: its head has left */
    struct id conversation;
    uint64_t epoch, after; /* the last event that was sent */
    bool replays;          /* what is sent was there before it asked */
    uint64_t until;        /* events up to here were */
    unsigned status;
    struct dynbuf out;
    const char *type;
    struct lane *lane; /* where a handler of it is, or NULL */
    call_fn *todo;     /* that waits for one, or NULL */
    bool again;        /* it is to run once more when it is through */
    struct call *next; /* of those that wait */
};

struct serve {
    struct loop *loop;
    struct bstore *store, *more[SERVE_LANES - 1]; /* more: NULL where calls of the store wait for nothing */
    struct lane *lanes;
    struct call *waiting;
    bool deferred, sweeps;
    uint64_t pulses;
    struct chan *desk;
    unsigned owner;
    struct caller *callers;
    size_t ncallers;
    uint64_t asked;
    struct timer *pulse, *heart;
    uint64_t last_pulse;
    bool watched;
    const struct span *model; /* the names of those that there are: a live replay asks one of them, a private
                                 conversation lists some */
    size_t models;
    const struct span *answer; /* of these, whom turns ask: without one of them a list is of no use to any turn */
    size_t answers;
    uint64_t workers;    /* processes of this gateway that run turns */
    unsigned idle_looks; /* so often in a row turns waited and none was run */
    bool says_idle;      /* and that was said */
};

int serve_begin(struct serve *s) MUSTCHECK;
/* own: a Unix socket, whose callers are the operator if the kernel says so. */
int serve_listen(struct serve *s, int fd, bool own) MUSTCHECK;
/* The channel to the desk, or NULL. */
void serve_desk(struct serve *s, struct chan *desk);
/* What it says: whose a key is, or that somebody who is signed in there has something to ask. Only from that
 * channel. */
void serve_frame(struct serve *s, struct frame *f);

/* --- door.c --- */
struct span call_tenant(const struct call *x);
/* The operator who asks; empty: a key does. Is it one who is signed in at the desk? */
struct span call_who(const struct call *x);
bool call_from_page(const struct call *x);
/* The answer: x->status, type, out. x is gone after it. */
void call_answer(struct call *x);
/* The head of a stream of events; -1: the caller has gone, and x with it. */
int call_stream(struct call *x) MUSTCHECK;
int call_piece(struct call *x, struct span s) MUSTCHECK;
void call_stream_end(struct call *x);
/* It ends in the middle, and x with it: who reads comes back with its last id. */
void call_cut(struct call *x);
/* Does it read what it is sent? */
bool call_reads(const struct call *x);
void reply_json(struct call *x, unsigned status, struct jsonw *w);
void reply_no(struct call *x, unsigned status, const char *fmt, ...) PRINTF(3, 4);

/* Its handler is through: what was kept of a caller that had gone goes, too. */
void call_over(struct call *x);

/* --- lanes.c --- Where the store is a database that is asked over a connection (serve.more), a handler has a stack
 * and a connection of its own while it runs, and gives way to all others as long as an answer takes: a database that
 * is slow holds up who waits for it. Else a handler is called, and that is all. */
int lanes_begin(struct serve *s) MUSTCHECK;
/* Is a handler in one? None is when they end. */
bool lanes_busy(const struct serve *s);
void lanes_end(struct serve *s);
/* fn(x), as soon as there is a lane. A handler of x that runs already is run once more after that. x may be gone. */
void lanes_run(struct call *x, call_fn *fn);
/* A handler of it waits: x has to stay. */
bool lanes_hold(const struct call *x);
void lanes_forget(struct call *x);
/* What the handler that runs asks. */
struct bstore *call_store(const struct call *x);
/* As bstore_pulse. */
uint64_t lanes_pulse(struct serve *s);
/* What is to be done now and then, as soon as nothing else is: bstore_sweep, and a look at who runs turns. */
void lanes_sweep(struct serve *s);

/* --- routes.c --- by x->head: x->fn, arg and needs. False: answered. */
bool route_find(struct call *x) MUSTCHECK;
/* MAY_*: what the note of a key lets it do. */
unsigned route_scopes(struct span note, struct arena *a);

/* A parameter of the query, as it stands there; false: it has none, or it is empty. */
bool call_query(const struct call *x, struct span name, struct span *out);

/* --- talk.c --- what the store did not do, in words; the id of the path, or answered; an id as a member */
void talk_unable(struct call *x, enum bstore_result r);
bool talk_id(struct call *x, struct id *id);
void talk_put_id(struct jsonw *w, const char *key, const struct id *id);
/* 202, with the turn and where it is shown. */
void talk_accepted(struct call *x, const struct bstore_chatted *c);
/* What is misspelt would be as if it were not there: an object has members of these names alone, the last NULL. of:
 * what stands before a name in words. False, answered. */
bool talk_known(struct call *x, const struct json *j, const char *of, const char *const *name) MUSTCHECK;
/* Which models may see a conversation, as a member `private`; nothing of one that all may. */
void talk_put_private(struct jsonw *w, struct span names);
/* Who began a conversation, by what it began with: the body of its first message or, as long as none is there, of the
 * first that waits; copied into a. Empty: a key did, or nothing of it is there any more. */
struct span talk_begun_by(struct span first, const struct bstore_messages *queued, struct arena *a);

call_fn talk_chat, talk_cancel, talk_turn, talk_list, talk_history, talk_fork, stream_open;
call_fn recorded_turn, recorded_turns, talk_replay, live_turn;
/* --- usage.c, health.c --- */
call_fn usage_list, health_tell;
/* BS_SPENT of what was asked for the tenant: which of its budgets is used up, how much, and when it begins anew. */
void usage_spent(struct call *x, struct span tenant);
/* --- view.c --- what a page shows: one conversation; those of which something happened last */
call_fn view_one, view_lately;

/* --- recorded.c --- whose it is: a key sees its own tenant; the operator of this machine says which. */
struct span call_whose(const struct call *x);
/* live.c: is there a model of this name? */
bool live_has_model(const struct serve *s, struct span name) MUSTCHECK;
/* More of what happened, as much as is read. */
void stream_more(struct call *x);
void stream_heart(struct call *x);

#endif
