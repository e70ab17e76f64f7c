/* The broker's store as the broker sees it, whatever database is below. Each function is one transaction by itself.
 * Spans that come back live in the arena that was given. What a worker changes needs a claim that still stands. */
#ifndef BROKER_STORE_STORE_H
#define BROKER_STORE_STORE_H

#include "broker/store/records.h"
#include "broker/turn.h"
#include "common/arena.h"
#include "common/err.h"

enum {
    BSTORE_KEY_MAX = 255,               /* of an idempotency key of POST /chat */
    BSTORE_BODY_MAX = 1024 * 1024,      /* of a message, an answer, arguments, a result, each part of a checkpoint */
    BSTORE_PRIVATE_MAX = 16 * 1024,     /* of the names of models that may see a conversation */
    BSTORE_REF_MAX = 1024,              /* of what names something that lies elsewhere */
    BSTORE_EVENT_MAX = 64 * 1024,       /* of one event of the log */
    BSTORE_EVENTS_MAX = 256,            /* events written at once */
    BSTORE_MESSAGES_MAX = 128,          /* messages written at once */
    BSTORE_CONVERSATIONS_EACH = 200000, /* of a tenant */
    BSTORE_TURNS_EACH = 1024,           /* of a tenant, not ended yet */
    BSTORE_TALK_MAX = 16,               /* of a conversation, not ended yet */
    BSTORE_KEYS_EACH = 65536,           /* idempotency keys of a tenant that are remembered */
    BSTORE_LOG_MAX = 20000,             /* events of a conversation */
    BSTORE_LOG_BYTES_MAX = 32 << 20,    /* and their bytes */
    BSTORE_FORK_MAX = 4096,             /* messages that a fork begins with */
    BSTORE_FORK_BYTES_MAX = 32 << 20,   /* and their bytes */
    BSTORE_READ_MAX = 256,              /* rows of one answer */
    BSTORE_DAY_MAX = 100 * 366,         /* of bstore_usage_ask */
    BSTORE_LATELY_MAX = 100,            /* conversations of bstore_lately */
    BSTORE_READ_BYTES_MAX = 4 << 20,    /* after the row that reaches it, no more */
    BSTORE_LOST_MAX = 2,                /* workers that end at one step, and the turn is set aside */
    BSTORE_PART_MAX = 64 * 1024,        /* of a recording, written at once */
    BSTORE_PARTS_MAX = 4096,            /* of one turn */
    BSTORE_RECORD_MAX = 1 << 20,        /* bytes of a turn's recording; what is past that is not kept */
    BSTORE_RECORDED_EACH = 32 << 20,    /* bytes of a tenant's recordings; past that its oldest turns' go */
};
/* How long a key is remembered, how long a claim may be, in ms. */
#define BSTORE_KEY_AGE_MAX UINT64_C(86400000)
#define BSTORE_CLAIM_MAX   UINT64_C(600000)
/* Tokens, and millionths, that one answer may have cost. */
#define BSTORE_SPENT_MAX (UINT64_C(1) << 53)

enum bstore_result {
    BS_FAIL = 0, /* the database said no, or is away; bstore_why. Nothing is changed, unless that says that it is not
                    known */
    BS_OK,
    BS_AGAIN,    /* the same was done before; nothing is changed, and what came of it is told */
    BS_NONE,     /* there is none, or it is another tenant's */
    BS_FENCED,   /* the claim does not stand any more: stop */
    BS_CONFLICT, /* it is not what was said before, or not the time for it */
    BS_FULL,     /* over a bound */
    BS_LOST,     /* the log has nothing there any more: begin again from its state */
    BS_PRIVATE,  /* the conversation is private, and this model is not among those that may see it */
    BS_SPENT     /* a budget of the tenant is used up: bstore_budgets says which */
};

struct bstore {
    const struct bstore_ops *ops;
    const struct budgets *budgets; /* of tenants; NULL: there are none. Who shares a store has to have the same */
    uint64_t share;                /* so many turns of one tenant run at once, whatever else waits; 0: any number */
    uint64_t patience_ms; /* so long a call waits for a database that is away; 0: as long as is usual there */
    /* Instead of poll(2) of one descriptor (-1: of none) for at most so many ms, for who serves others meanwhile; it
     * may return before that, and while it waits nobody else uses this store. NULL: poll. */
    void (*wait)(void *arg, int fd, short events, uint64_t ms);
    void *wait_arg;
    /* The gateway that its workers' calls are run by, where several have one store: an id, or empty. */
    char home[ID_TEXT + 1];
};

/* Who opens a store closes it here; *s is NULL after. */
void bstore_close(struct bstore **s);
/* Why it said BS_FAIL; until the next call. */
const char *bstore_why(struct bstore *s);

#define BSTORE_CALL enum bstore_result MUSTCHECK
/* A message of a person: a turn of it on the queue. BS_AGAIN: the key had the same request. Which models may see a
 * conversation is said when it begins: of one that is there it is BS_CONFLICT. BS_SPENT, as those that ask a
 * turn once more may answer, too. */
BSTORE_CALL bstore_chat(struct bstore *s, const struct bstore_chat *in, struct bstore_chatted *out);
/* The next turn that may run, for ms; BS_NONE: there is none now. One of a tenant that has its share of turns running
 * waits, so that somebody else's does not. */
BSTORE_CALL bstore_claim(struct bstore *s, const struct id *worker, uint64_t ms, struct claim *out);
/* The process that was this worker has ended for certain: its claims are over now, as if their time were. */
BSTORE_CALL bstore_ended(struct bstore *s, const struct id *worker);
BSTORE_CALL bstore_extend(struct bstore *s, const struct claim *c);
/* Give it back, for somebody to take in so many ms: no worker was lost. */
BSTORE_CALL bstore_release(struct bstore *s, const struct claim *c, uint64_t after_ms);
BSTORE_CALL bstore_load(struct bstore *s, const struct claim *c, struct arena *a, struct bstore_turn *out);
/* Step n, which follows the last settled one; BS_AGAIN: it was begun before, by *attempts of this one too,
 * and is of this kind now. BS_CONFLICT: it has its calls, or is not the next. */
BSTORE_CALL bstore_step(struct bstore *s, const struct claim *c, uint64_t n, struct span kind, uint64_t *attempts);
/* Before any of its calls runs. BS_AGAIN: as it was planned before. */
BSTORE_CALL bstore_plan(struct bstore *s, const struct claim *c, uint64_t n, const struct bstore_plan *p);
/* A question to a model is to leave for step n, which is open, and may come to so much: may it, by the budgets of its
 * tenant? BS_OK: it may, and that it is asked is written down until its step is planned, or its turn does not run any
 * more; word: as its kind was begun with, which stays. BS_FULL: others are asked now that may take what is left: ask
 * again when they are through. BS_SPENT. most: NULL, nothing is asked any more for it, whatever was before; so it is
 * after BS_FULL. */
BSTORE_CALL bstore_ask(struct bstore *s, const struct claim *c, uint64_t n, struct span word,
                       const struct used *most);
/* What stands of them. */
BSTORE_CALL bstore_budgets(struct bstore *s, struct span tenant, struct budgets_stand *out);
/* What an answer cost that is not kept, and what it was asked for. */
BSTORE_CALL bstore_spent(struct bstore *s, const struct claim *c, const struct used *used,
                         const struct bstore_asked *asked);
/* A call's class may only become stricter; a laxer one changes nothing. */
BSTORE_CALL bstore_class(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord, enum call_class class);
/* BS_AGAIN: settled so before; BS_CONFLICT: otherwise. */
BSTORE_CALL bstore_call(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                        const struct bstore_settled *how);
/* The step, its checkpoint, its messages and events. BS_CONFLICT: a call of it is open, or it is not begun. */
BSTORE_CALL bstore_settle(struct bstore *s, const struct claim *c, uint64_t n, const struct bstore_settle *what);
/* What a reader sees of this attempt, many at once. *seq: of the last. */
BSTORE_CALL bstore_log(struct bstore *s, const struct claim *c, const struct bstore_event *event, size_t n,
                       uint64_t *seq);
/* The turn is over; the log says so. BS_CONFLICT: a step of it has calls that are open,
 * unless it is set aside, which tells the next turn's model of them. */
BSTORE_CALL bstore_finish(struct bstore *s, const struct claim *c, enum turn_end end, struct span why);
/* A turn that nobody has begun ends at once; one that runs is told (bstore_load, bstore_cancelled). */
BSTORE_CALL bstore_cancel(struct bstore *s, struct span tenant, const struct id *turn);
/* BS_OK with *cancelled; the claim is extended. */
BSTORE_CALL bstore_cancelled(struct bstore *s, const struct claim *c, bool *cancelled);
BSTORE_CALL bstore_turn(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                        struct bstore_turn_row *out);
/* Events after one, of this epoch of the log; epoch 0: from the first that is there. */
BSTORE_CALL bstore_events(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t epoch,
                          uint64_t after, struct arena *a, struct bstore_log *out);
BSTORE_CALL bstore_messages(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t after,
                            struct arena *a, struct bstore_messages *out);
/* What is asked of it by turns that have not begun, in their order, which seq is here; none of it is in a prompt yet.
 */
BSTORE_CALL bstore_queued(struct bstore *s, struct span tenant, const struct id *conversation, struct arena *a,
                          struct bstore_messages *out);
/* Those of a tenant, by their ids, from the one after `after` (none: from the first). */
BSTORE_CALL bstore_conversations(struct bstore *s, struct span tenant, const struct id *after, struct arena *a,
                                 struct bstore_conversations *out);
/* Those in which something was asked or ended last, the newest first, at most BSTORE_LATELY_MAX, with the message
 * that each began with, as far as BSTORE_READ_BYTES_MAX of these go; or this one alone (BS_NONE: there is none). */
BSTORE_CALL bstore_lately(struct bstore *s, struct span tenant, const struct id *only, struct arena *a,
                          struct bstore_conversations *out);
/* A new conversation that begins with the first so many messages of this one, and is as private. BS_CONFLICT: calls
 * would be cut from their results there, or it has not so many. BS_FULL: it may not copy so many. */
BSTORE_CALL bstore_fork(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t messages,
                        struct id *out);
/* Lines of what the turn's machine heard and did, at the end of its recording. More than is kept is left out, and the
 * turn's recording says so: BS_OK. */
BSTORE_CALL bstore_record(struct bstore *s, const struct claim *c, struct span lines);
BSTORE_CALL bstore_recorded(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                            struct bstore_recorded *out);
/* A turn that has ended is asked once more: in a new conversation that begins as its own did, by a turn of which
 * calls give what they gave then, and nothing is run. BS_CONFLICT: it has not ended, or is a replay itself. */
BSTORE_CALL bstore_replay(struct bstore *s, struct span tenant, const struct id *turn, struct bstore_chatted *out);
/* Of a call of such a turn, which is written down already. The n-th of those alike is the n-th of those then. */
BSTORE_CALL bstore_replayed(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                            const struct bstore_call *call, struct arena *a, struct bstore_replayed *out);
/* A turn that has ended is done once more, live: in a new conversation that begins as its own did, by this model
 * alone and with real tools, in a sandbox of its own. BS_CONFLICT, BS_AGAIN: as of bstore_replay, of bstore_chat;
 * BS_LOST: it went on with files of which nothing is kept. BS_PRIVATE: the model may not see it. */
BSTORE_CALL bstore_live(struct bstore *s, const struct bstore_live *in, struct bstore_chatted *out);
/* The turns of a conversation, in their order, from the one after the nth. */
BSTORE_CALL bstore_turns(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t after,
                         struct arena *a, struct bstore_turns *out);
/* What models were asked for a tenant, as bstore_plan and bstore_spent have counted it: by day, conversation, model
 * and task, in this order. */
BSTORE_CALL bstore_usage(struct bstore *s, struct span tenant, const struct bstore_usage_ask *ask, struct arena *a,
                         struct bstore_usage *out);
/* The tenant whose name comes after this one's in the order of their bytes; after: empty, the first. BS_NONE: there
 * is none. */
BSTORE_CALL bstore_tenant(struct bstore *s, struct span after, struct arena *a, struct span *out);
/* Another number when somebody else has changed something since it was asked last; of what is done through s itself
 * it need not tell. A hint that costs next to nothing: who misses one looks again a little later. */
uint64_t bstore_pulse(struct bstore *s);
/* Of turns that could be taken for so many ms. */
BSTORE_CALL bstore_waiting(struct bstore *s, uint64_t ms, struct bstore_waiting *out);
/* Forget keys that are old. */
BSTORE_CALL bstore_sweep(struct bstore *s);

#endif
