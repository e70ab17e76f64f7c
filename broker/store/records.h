/* What goes into the store and what comes out of it. Spans that come back live in the arena that was given. */
#ifndef BROKER_STORE_RECORDS_H
#define BROKER_STORE_RECORDS_H

#include "broker/budgets.h"
#include "broker/turn.h"
#include "common/span.h"

enum { BSTORE_NAME_MAX = 128 }; /* bytes of a tenant, a tool, a kind, a role, a type */

/* A worker's right to change a turn, until its time is over. */
struct claim {
    char tenant[BSTORE_NAME_MAX + 1]; /* as bytes: tenant_n of them */
    size_t tenant_n;
    struct id turn, conversation, worker;
    uint64_t epoch;
};

struct bstore_chat {
    struct span tenant, key; /* key: empty, none */
    struct digest request;   /* what the key stands for */
    struct id conversation;  /* none: a new one */
    struct span body;        /* the person's message, JSON */
    struct span private;     /* of a new one: which models may see it, a name a line; empty: all. Never said again */
    struct budget budget;
};
struct bstore_chatted {
    struct id conversation, turn;
    uint64_t log_epoch, log_seq; /* of the last event before the turn's own */
};

/* A turn that has ended, done once more by one model and real tools. */
struct bstore_live {
    struct span tenant, key; /* as of bstore_chat */
    struct digest request;
    struct id turn;
    struct span model;           /* the one that is asked, and no other: 1 to BSTORE_NAME_MAX bytes */
    uint64_t cost_most, wall_ms; /* bounds beside the turn's own; 0: those alone */
};

struct bstore_event {
    struct span type, body; /* body: JSON */
};
struct bstore_message {
    struct span role, body;
};
struct bstore_call {
    struct span tool, args;
    enum call_class class;
};
/* A question to a model, as it is metered: by what the table of models calls it, for which task of that, and tokens
 * of each kind. A name of more than BSTORE_NAME_MAX bytes is cut, one that is empty is "unknown". */
struct bstore_asked {
    struct span model, task;
    uint64_t input, output, cache_read, cache_write;
};
/* The answer of the model that a step got, with the calls in it. */
struct bstore_plan {
    struct span answer;
    struct used used; /* for it; steps is not looked at */
    const struct bstore_call *call;
    size_t n; /* at most TURN_CALLS_MAX */
    struct bstore_asked asked;
};
struct bstore_settled {
    enum call_end end;
    struct span result, effect; /* effect: how the gateway's record calls it, or empty */
};
/* What a turn goes on from. */
struct bstore_checkpoint {
    struct span message_state, filesystem_state_ref, execution_state, effect_log;
};
struct bstore_settle {
    struct bstore_checkpoint checkpoint;
    struct span phase; /* coding, building, deploying, completed; empty: as it was */
    const struct bstore_message *message;
    size_t messages;
    const struct bstore_event *event;
    size_t events;
    struct span record; /* as of bstore_record */
};

struct bstore_found_call {
    struct bstore_call call;
    struct digest key;
    struct bstore_settled settled; /* CALL_OPEN: not yet */
    uint64_t intent_ms;            /* when it was written down */
};
/* A turn as it was left. */
struct bstore_turn {
    uint64_t now_ms, started_ms, lost;
    bool cancelled;
    struct budget budget;
    struct used used;
    struct span private; /* of its conversation, as of bstore_chat */
    bool replays;        /* its calls give what those of an earlier turn gave: bstore_replayed */
    struct span live;    /* of a live replay: the model that is asked, and no other; else empty */
    uint64_t settled;    /* the number of the last settled step; 0: none */
    struct bstore_checkpoint checkpoint;
    uint64_t open; /* the number of a step that is not settled; 0: none */
    uint64_t attempts;
    struct span kind;        /* its kind, as of bstore_step */
    bool planned, elsewhere; /* elsewhere: its calls were written down by a worker of another gateway (bstore.home) */
    struct span answer;
    struct bstore_found_call *call;
    size_t calls;
};

struct bstore_read_event {
    uint64_t seq, turn_epoch;
    struct id turn;
    struct span type, body;
};
struct bstore_log {
    uint64_t epoch, first, next; /* seqs first .. next - 1 are there */
    struct bstore_read_event *event;
    size_t n;
    bool busy; /* a turn of it has not ended */
};
struct bstore_read_message {
    uint64_t seq;
    struct id turn;
    struct span role, body;
};
struct bstore_messages {
    struct bstore_read_message *message;
    size_t n;
};
struct bstore_conversation {
    struct id id;
    uint64_t created_ms, changed_ms, turns, messages;
    struct span phase, private; /* private: as of bstore_chat */
    bool busy, replay;          /* replay: it was begun for one */
    struct span first;          /* of bstore_lately: the body of its first message; or empty */
};
struct bstore_conversations {
    struct bstore_conversation *row;
    size_t n;
};
struct bstore_turn_row {
    struct id conversation;
    struct span state; /* queued, running, done, aside */
    enum turn_end end;
    struct span why;
    struct used used;
    struct span replays; /* of a replay: of which turn, and behind a space, of a live one, the model; else empty */
};
/* What was recorded of a turn: parts of lines, in their order. */
struct bstore_recorded {
    struct id conversation;
    struct span state; /* as of bstore_turn_row */
    enum turn_end end;
    struct used used;
    struct budget budget;
    bool cut; /* there was more of it than is kept */
    struct span *part;
    size_t n;
};
/* What a call gave then; CALL_OPEN: there was none like it. */
struct bstore_replayed {
    enum call_end end;
    struct span result;
};
struct bstore_turn_of {
    uint64_t nth; /* in its conversation */
    struct id id;
    struct span state;
    enum turn_end end;
    bool recorded;
};
struct bstore_turns {
    struct bstore_turn_of *row;
    size_t n;
};
/* How the queue of all tenants stands: turns that a worker could have taken for some time and none did, the first of
 * them since when; and those that are run now. */
struct bstore_waiting {
    uint64_t turns, since_ms, running;
};

/* What was asked of one model for one task in one conversation on one day; each sum stands still at INT64_MAX. */
struct bstore_usage_row {
    uint64_t day; /* of UTC, from 1970-01-01 */
    struct id conversation;
    struct bstore_asked asked; /* the names, and sums of tokens */
    uint64_t times, cost_micro;
};
struct bstore_usage_ask {
    uint64_t from, to;      /* days, both with */
    struct id conversation; /* none: all of them */
    /* The row that was read last, or NULL; with a conversation it is one of that. */
    const struct bstore_usage_row *after;
};
struct bstore_usage {
    struct bstore_usage_row *row;
    size_t n; /* BSTORE_READ_MAX: there may be more */
};

#endif
