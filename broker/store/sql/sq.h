/* The store in tables: what the files here share, and what a database below has to do. Each statement stands once
 * (sql.h); a database may say some of them in its own words. */
#ifndef BROKER_STORE_SQL_SQ_H
#define BROKER_STORE_SQL_SQ_H

#include "broker/store/hooks.h"
#include "broker/store/ops.h"
#include "broker/store/sql/sql.h"
#include "broker/store/state.h"
#include "common/err.h"

enum sq_result { SQ_FAIL = 0, SQ_ROW, SQ_DONE };
enum sq_kind {
    SQ_NONE = 0,
    SQ_INT,
    SQ_TEXT,  /* a word of ours: ids, states */
    SQ_BYTES, /* a name or words that somebody else chose: a database may want another type for them than for ours */
    SQ_BLOB
};
struct sq_value {
    enum sq_kind kind;
    bool null; /* of this kind, and not there */
    uint64_t number;
    struct span bytes; /* lives until the statement has run */
};
enum { SQ_VALUES_MAX = 32 };

/* A statement: its values, and after sq_step the row it stands at. One of each; sq_get begins it anew. */
struct sq_stmt {
    struct sq *of;
    enum sql_id id;
    struct sq_value value[SQ_VALUES_MAX];
    size_t values;
    bool ran;
    uint64_t changes; /* rows, of one that has run to its end */
    int row;
    void *native; /* the database's */
};

/* A database. Where one fails it calls sq_doom. */
struct sq_base {
    void (*close)(struct sq *l);
    /* Sets l->now, and for what changes something, keeps other writers away as far as sql.h does not. */
    int (*begin)(struct sq *l, bool reads);
    int (*commit)(struct sq *l);
    void (*rollback)(struct sq *l);
    /* What failed may go well if it is done once more, now: the connection broke, two waited for each other. */
    bool (*again)(struct sq *l);
    /* A statement that is empty here is SQ_DONE at once. */
    enum sq_result (*step)(struct sq_stmt *q);
    void (*reset)(struct sq_stmt *q);
    struct span (*col)(struct sq_stmt *q, int at);
    uint64_t (*col_int)(struct sq_stmt *q, int at);
    bool (*col_null)(struct sq_stmt *q, int at);
    /* In a transaction: from its end on the store is in this state. */
    int (*mark)(struct sq *l, enum bstore_state state);
    uint64_t (*pulse)(struct sq *l);
};

struct sq {
    struct bstore face; /* first: what the others hold */
    const struct sq_base *base;
    const struct bstore_test *test;
    struct sq_stmt stmt[SQL_COUNT];
    uint64_t now;     /* of this transaction, ms */
    uint64_t started; /* when the database was started last, if it can be that workers waited for it; else 0 */
    bool doomed;      /* nothing of this transaction is kept */
    bool told;        /* it changes what others wait for */
    bool again;
    struct err doom; /* of the first failure */
    char why[512];   /* of the last that failed */
};

static inline struct sq *sq_of(struct bstore *s)
{
    return (struct sq *)s;
}

/* All but its memory, which is the base's. */
void sq_init(struct sq *l, const struct sq_base *base, const struct bstore_test *test);
/* From now on nothing of the transaction is kept. Returns -1. */
int sq_doom(struct sq *l, const char *why);

/* A transaction, and its time. sq_end keeps it if what came of it is BS_OK, else nothing; what it returns is what
 * the caller is told, unless sq_again says that all of it is to be done once more. */
int sq_begin(struct sq *l) MUSTCHECK;
int sq_begin_read(struct sq *l) MUSTCHECK;
enum bstore_result sq_end(struct sq *l, enum bstore_result r) MUSTCHECK;
bool sq_again(struct sq *l) MUSTCHECK;

/* Of these a database that has writers beside each other needs one, in this order: the tenant's row, the turn's, its
 * conversation's, when the tenant was served, the size of its recordings. Who has one waits for none before it. */
enum bstore_result sq_lock_tenant(struct sq *l, unsigned sql, struct span tenant) MUSTCHECK;

/* An id as it stands in the tables, which is bound until the statement has run: as long as the text. */
struct sq_id {
    char text[ID_TEXT + 1];
};
struct sq_id sq_id(const struct id *id);
/* The statement, without values; NULL: it cannot be had, and the transaction is doomed. */
struct sq_stmt *sq_get(struct sq *l, unsigned sql) MUSTCHECK;
/* The same; ?1 is the tenant, ?2 the id. */
struct sq_stmt *sq_stmt(struct sq *l, unsigned sql, struct span tenant, const struct sq_id *id) MUSTCHECK;
/* An id of a row; none, and doomed, if it is not one. */
struct id sq_col_id(struct sq *l, struct sq_stmt *q, int at);
void sq_int(struct sq_stmt *q, unsigned at, uint64_t v);
void sq_text(struct sq_stmt *q, unsigned at, struct span v);
void sq_bytes(struct sq_stmt *q, unsigned at, struct span v);
void sq_blob(struct sq_stmt *q, unsigned at, struct span v);
/* What was bound there is NULL instead. */
void sq_null(struct sq_stmt *q, unsigned at);
enum sq_result sq_step(struct sq_stmt *q) MUSTCHECK;
/* To its end; 0, or -1. */
int sq_run(struct sq_stmt *q) MUSTCHECK;
void sq_reset(struct sq_stmt *q);
/* Of the row; what is found there lives until the statement is reset or begun anew. */
struct span sq_col(struct sq_stmt *q, int at);
uint64_t sq_col_int(struct sq_stmt *q, int at);
bool sq_col_null(struct sq_stmt *q, int at);
bool sq_col_digest(struct sq_stmt *q, int at, struct digest *d);
/* One number of one row; 0, -1 the database, 1 no row. */
int sq_number(struct sq *l, struct sq_stmt *q, uint64_t *out) MUSTCHECK;
/* Run to its end; BS_OK if it changed a row, else `none`. */
enum bstore_result sq_change(struct sq *l, struct sq_stmt *q, enum bstore_result none) MUSTCHECK;

/* Does the claim stand? If so it is extended. BS_OK, BS_FENCED, BS_FAIL. */
enum bstore_result sq_fence(struct sq *l, const struct claim *c, bool *cancelled) MUSTCHECK;
/* Begins the transaction of a worker's change, with the fence in it. */
enum bstore_result sq_begin_fenced(struct sq *l, const struct claim *c) MUSTCHECK;

/* At the end of a conversation's log, of a turn and the epoch of its claim. *seq: the last one's. */
enum bstore_result sq_append(struct sq *l, const struct claim *c, const struct bstore_event *event, size_t n,
                             uint64_t *seq) MUSTCHECK;
enum bstore_result sq_message(struct sq *l, const struct claim *c, const struct bstore_message *m,
                              uint64_t *seq) MUSTCHECK;
/* The turn of a claim is over, in the tables and in the log. */
enum bstore_result sq_over(struct sq *l, const struct claim *c, enum turn_end end, struct span why) MUSTCHECK;

/* The same of one that ended too many workers; the next turn's model is told what its calls may have done. */
enum bstore_result sq_set_aside(struct sq *l, const struct claim *c) MUSTCHECK;

enum bstore_result sq_chat(struct bstore *s, const struct bstore_chat *in, struct bstore_chatted *out);
enum bstore_result sq_claim(struct bstore *s, const struct id *worker, uint64_t ms, struct claim *out);
enum bstore_result sq_ended(struct bstore *s, const struct id *worker);
enum bstore_result sq_extend(struct bstore *s, const struct claim *c, bool *cancelled);
enum bstore_result sq_release(struct bstore *s, const struct claim *c, uint64_t after_ms);
enum bstore_result sq_finish(struct bstore *s, const struct claim *c, enum turn_end end, struct span why);
enum bstore_result sq_cancel(struct bstore *s, struct span tenant, const struct id *turn);
enum bstore_result sq_load(struct bstore *s, const struct claim *c, struct arena *a, struct bstore_turn *out);
enum bstore_result sq_step_begin(struct bstore *s, const struct claim *c, uint64_t n, struct span kind,
                                 uint64_t *attempts);
enum bstore_result sq_plan(struct bstore *s, const struct claim *c, uint64_t n, const struct bstore_plan *p,
                           const struct digest *key);
enum bstore_result sq_stricter(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                               enum call_class class);
enum bstore_result sq_call(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                           const struct bstore_settled *how);
enum bstore_result sq_settle(struct bstore *s, const struct claim *c, uint64_t n, const struct bstore_settle *what);
enum bstore_result sq_log(struct bstore *s, const struct claim *c, const struct bstore_event *event, size_t n,
                          uint64_t *seq);
enum bstore_result sq_turn(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                           struct bstore_turn_row *out);
enum bstore_result sq_events(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t epoch,
                             uint64_t after, struct arena *a, struct bstore_log *out);
enum bstore_result sq_messages(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t after,
                               struct arena *a, struct bstore_messages *out);
enum bstore_result sq_queued(struct bstore *s, struct span tenant, const struct id *conversation, struct arena *a,
                             struct bstore_messages *out);
enum bstore_result sq_lately(struct bstore *s, struct span tenant, const struct id *only, struct arena *a,
                             struct bstore_conversations *out);
enum bstore_result sq_conversations(struct bstore *s, struct span tenant, const struct id *after, struct arena *a,
                                    struct bstore_conversations *out);
enum bstore_result sq_fork(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t messages,
                           struct id *out);
/* At the end of a turn's recording; only the database can fail it. */
enum bstore_result sq_keep_record(struct sq *l, const struct claim *c, struct span rows) MUSTCHECK;
enum bstore_result sq_record(struct bstore *s, const struct claim *c, struct span rows);
enum bstore_result sq_recorded(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                               struct bstore_recorded *out);
enum bstore_result sq_replay(struct bstore *s, struct span tenant, const struct id *turn, struct bstore_chatted *out);
enum bstore_result sq_live(struct bstore *s, const struct bstore_live *in, struct bstore_chatted *out);
enum bstore_result sq_replayed(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                               const struct bstore_call *call, struct arena *a, struct bstore_replayed *out);
enum bstore_result sq_turns(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t after,
                            struct arena *a, struct bstore_turns *out);
enum bstore_result sq_waiting(struct bstore *s, uint64_t ms, struct bstore_waiting *out);
uint64_t sq_pulse(struct bstore *s);
/* Was this key there before? BS_NONE: it is new, or none. BS_AGAIN: *out is what came of it; BS_CONFLICT: it was for
 * another request. */
enum bstore_result sq_known(struct sq *l, const struct bstore_chat *in, struct bstore_chatted *out) MUSTCHECK;
/* A turn with the message that it is to answer, in the conversation that is named or a new one. */
enum bstore_result sq_add_chat(struct sq *l, const struct bstore_chat *in, struct bstore_chatted *out) MUSTCHECK;
/* A new conversation of this tenant, if it may have one more. */
enum bstore_result sq_new_conversation(struct sq *l, struct span tenant, struct span private,
                                       struct id *out) MUSTCHECK;
enum bstore_result sq_sweep(struct bstore *s);

#endif
