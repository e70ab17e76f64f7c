/* What the files of the SQLite backend share. */
#ifndef BROKER_STORE_SQLITE_LITE_H
#define BROKER_STORE_SQLITE_LITE_H

#include "broker/store/ops.h"
#include "broker/store/sqlite/sql.h"
#include "broker/store/sqlite/sqlite.h"
#include "common/sqlite/db.h"

struct lite {
    struct bstore face; /* first: what the others hold */
    struct db db;
    const struct bstore_sqlite_test *test;
    uint64_t now;  /* of this transaction */
    char why[512]; /* of the last that failed */
};

static inline struct lite *lite_of(struct bstore *s)
{
    return (struct lite *)s;
}

/* A transaction, and its time. lite_end keeps it if what came of it is BS_OK, else nothing; what it returns is what
 * the caller is told. */
int lite_begin(struct lite *l) MUSTCHECK;
int lite_begin_read(struct lite *l) MUSTCHECK;
enum bstore_result lite_end(struct lite *l, enum bstore_result r) MUSTCHECK;

/* An id as it stands in the tables, which is bound until the statement has run: as long as the text. */
struct lite_id {
    char text[ID_TEXT + 1];
};
struct lite_id lite_id(const struct id *id);
/* NULL: it cannot be had, and the transaction is doomed. ?1 is the tenant, ?2 the id. */
sqlite3_stmt *lite_stmt(struct lite *l, unsigned sql, struct span tenant, const struct lite_id *id) MUSTCHECK;
/* An id of a row; none, and doomed, if it is not one. */
struct id lite_col_id(struct lite *l, sqlite3_stmt *q, int at);
/* One number of one row; 0, -1 the database, 1 no row. */
int lite_number(struct lite *l, sqlite3_stmt *q, uint64_t *out) MUSTCHECK;
/* Run to its end; BS_OK if it changed a row, else `none`. */
enum bstore_result lite_change(struct lite *l, sqlite3_stmt *q, enum bstore_result none) MUSTCHECK;

/* Does the claim stand? If so it is extended. BS_OK, BS_FENCED, BS_FAIL. */
enum bstore_result lite_fence(struct lite *l, const struct claim *c, bool *cancelled) MUSTCHECK;
/* Begins the transaction of a worker's change, with the fence in it. */
enum bstore_result lite_begin_fenced(struct lite *l, const struct claim *c) MUSTCHECK;

/* At the end of a conversation's log, of a turn and the epoch of its claim. *seq: the last one's. */
enum bstore_result lite_append(struct lite *l, const struct claim *c, const struct bstore_event *event, size_t n,
                               uint64_t *seq) MUSTCHECK;
enum bstore_result lite_message(struct lite *l, const struct claim *c, const struct bstore_message *m,
                                uint64_t *seq) MUSTCHECK;
/* The turn of a claim is over, in the tables and in the log. */
enum bstore_result lite_over(struct lite *l, const struct claim *c, enum turn_end end, struct span why) MUSTCHECK;

/* The same of one that ended too many workers; the next turn's model is told what its calls may have done. */
enum bstore_result lite_set_aside(struct lite *l, const struct claim *c) MUSTCHECK;

enum bstore_result lite_chat(struct bstore *s, const struct bstore_chat *in, struct bstore_chatted *out);
enum bstore_result lite_claim(struct bstore *s, const struct id *worker, uint64_t ms, struct claim *out);
enum bstore_result lite_ended(struct bstore *s, const struct id *worker);
enum bstore_result lite_extend(struct bstore *s, const struct claim *c, bool *cancelled);
enum bstore_result lite_release(struct bstore *s, const struct claim *c, uint64_t after_ms);
enum bstore_result lite_finish(struct bstore *s, const struct claim *c, enum turn_end end, struct span why);
enum bstore_result lite_cancel(struct bstore *s, struct span tenant, const struct id *turn);
enum bstore_result lite_load(struct bstore *s, const struct claim *c, struct arena *a, struct bstore_turn *out);
enum bstore_result lite_step(struct bstore *s, const struct claim *c, uint64_t n, struct span kind,
                             uint64_t *attempts);
enum bstore_result lite_plan(struct bstore *s, const struct claim *c, uint64_t n, const struct bstore_plan *p,
                             const struct digest *key);
enum bstore_result lite_spent(struct bstore *s, const struct claim *c, const struct used *used);
enum bstore_result lite_stricter(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                                 enum call_class class);
enum bstore_result lite_call(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                             const struct bstore_settled *how);
enum bstore_result lite_settle(struct bstore *s, const struct claim *c, uint64_t n, const struct bstore_settle *what);
enum bstore_result lite_log(struct bstore *s, const struct claim *c, const struct bstore_event *event, size_t n,
                            uint64_t *seq);
enum bstore_result lite_turn(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                             struct bstore_turn_row *out);
enum bstore_result lite_events(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t epoch,
                               uint64_t after, struct arena *a, struct bstore_log *out);
enum bstore_result lite_messages(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t after,
                                 struct arena *a, struct bstore_messages *out);
enum bstore_result lite_queued(struct bstore *s, struct span tenant, const struct id *conversation, struct arena *a,
                               struct bstore_messages *out);
enum bstore_result lite_conversations(struct bstore *s, struct span tenant, const struct id *after, struct arena *a,
                                      struct bstore_conversations *out);
enum bstore_result lite_fork(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t messages,
                             struct id *out);
/* At the end of a turn's recording; only the database can fail it. */
enum bstore_result lite_keep_record(struct lite *l, const struct claim *c, struct span rows) MUSTCHECK;
enum bstore_result lite_record(struct bstore *s, const struct claim *c, struct span rows);
enum bstore_result lite_recorded(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                                 struct bstore_recorded *out);
enum bstore_result lite_replay(struct bstore *s, struct span tenant, const struct id *turn,
                               struct bstore_chatted *out);
enum bstore_result lite_replayed(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                                 const struct bstore_call *call, struct arena *a, struct bstore_replayed *out);
enum bstore_result lite_turns(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t after,
                              struct arena *a, struct bstore_turns *out);
uint64_t lite_pulse(struct bstore *s);
/* A turn with the message that it is to answer, in the conversation that is named or a new one. */
enum bstore_result lite_add_chat(struct lite *l, const struct bstore_chat *in, struct bstore_chatted *out) MUSTCHECK;
/* A conversation that is new has the first so many messages of another one, if it may. */
enum bstore_result lite_copy(struct lite *l, struct span tenant, const struct lite_id *from, const struct lite_id *to,
                             uint64_t messages) MUSTCHECK;
/* A new conversation of this tenant, if it may have one more. */
enum bstore_result lite_new_conversation(struct lite *l, struct span tenant, struct id *out) MUSTCHECK;
enum bstore_result lite_sweep(struct bstore *s);

#endif
