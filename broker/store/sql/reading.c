#include "broker/store/sql/sq.h"

/* A copy that lives on; doomed if there is no room for it. */
static struct span keep(struct sq *l, struct arena *a, struct span v)
{
    struct span copy = arena_copy(a, v);
    if (v.n && copy.p == NULL)
        sq_doom(l, "what was read is more than may be read at once");
    return copy;
}

static enum bstore_result turn_row(struct sq *l, struct span tenant, const struct id *turn, struct arena *a,
                                   struct bstore_turn_row *out)
{
    struct sq_id id = sq_id(turn);
    struct sq_stmt *q = sq_stmt(l, SQL_TURN_GET, tenant, &id);
    if (q == NULL)
        return BS_FAIL;
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW)
        *out = (struct bstore_turn_row){.conversation = sq_col_id(l, q, 0),
                                        .state = keep(l, a, sq_col(q, 1)),
                                        .end = turn_end_of(sq_col(q, 2)),
                                        .why = keep(l, a, sq_col(q, 3)),
                                        .used = {sq_col_int(q, 4), sq_col_int(q, 5), sq_col_int(q, 6)},
                                        .replays = keep(l, a, sq_col(q, 7))};
    sq_reset(q);
    return got == SQ_ROW ? BS_OK : got == SQ_DONE ? BS_NONE : BS_FAIL;
}

enum bstore_result sq_turn(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                           struct bstore_turn_row *out)
{
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        r = sq_end(l, sq_begin_read(l) != 0 ? BS_FAIL : turn_row(l, tenant, turn, a, out));
    } while (sq_again(l));
    return r;
}

/* Which of the log is there; is somebody still adding to it? */
static enum bstore_result bounds(struct sq *l, struct span tenant, const struct sq_id *id, struct bstore_log *out)
{
    uint64_t open;
    struct sq_stmt *q = sq_stmt(l, SQL_CONVERSATION_GET, tenant, id);
    if (q == NULL)
        return BS_FAIL;
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW) {
        out->epoch = sq_col_int(q, 0);
        out->first = sq_col_int(q, 1);
        out->next = sq_col_int(q, 2);
    }
    sq_reset(q);
    if (got != SQ_ROW)
        return got == SQ_DONE ? BS_NONE : BS_FAIL;
    if (sq_number(l, sq_stmt(l, SQL_CONVERSATION_OPEN, tenant, id), &open) != 0)
        return BS_FAIL;
    out->busy = open > 0;
    return BS_OK;
}

static enum bstore_result events(struct sq *l, struct sq_stmt *q, struct arena *a, struct bstore_log *out)
{
    enum sq_result got;
    size_t bytes = 0;
    out->event = arena_alloc(a, BSTORE_READ_MAX * sizeof(*out->event));
    if (out->event == NULL) {
        sq_doom(l, "what was read is more than may be read at once");
        return BS_FAIL;
    }
    while (bytes < BSTORE_READ_BYTES_MAX && out->n < BSTORE_READ_MAX && (got = sq_step(q)) == SQ_ROW) {
        out->event[out->n++] = (struct bstore_read_event){.seq = sq_col_int(q, 0),
                                                          .turn = sq_col_id(l, q, 1),
                                                          .turn_epoch = sq_col_int(q, 2),
                                                          .type = keep(l, a, sq_col(q, 3)),
                                                          .body = keep(l, a, sq_col(q, 4))};
        bytes += sq_col(q, 4).n;
    }
    sq_reset(q);
    return l->doomed ? BS_FAIL : BS_OK;
}

static enum bstore_result events_after(struct sq *l, struct span tenant, const struct sq_id *id, uint64_t epoch,
                                       uint64_t after, struct arena *a, struct bstore_log *out)
{
    enum bstore_result r = bounds(l, tenant, id, out);
    if (r != BS_OK)
        return r;
    if (epoch == 0)
        after = out->first - 1;
    else if (epoch != out->epoch || after + 1 < out->first || after >= out->next)
        return BS_LOST;
    struct sq_stmt *q = sq_stmt(l, SQL_EVENTS, tenant, id);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, after);
    sq_int(q, 4, BSTORE_READ_MAX);
    sq_int(q, 5, BSTORE_READ_BYTES_MAX);
    return events(l, q, a, out);
}

enum bstore_result sq_events(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t epoch,
                             uint64_t after, struct arena *a, struct bstore_log *out)
{
    struct sq *l = sq_of(s);
    struct sq_id id = sq_id(conversation);
    enum bstore_result r;
    do {
        *out = (struct bstore_log){.n = 0};
        r = sq_end(l, sq_begin_read(l) != 0 ? BS_FAIL : events_after(l, tenant, &id, epoch, after, a, out));
    } while (sq_again(l));
    return r;
}

static enum bstore_result messages(struct sq *l, struct sq_stmt *q, struct arena *a, struct bstore_messages *out)
{
    enum sq_result got;
    size_t bytes = 0;
    out->message = arena_alloc(a, BSTORE_READ_MAX * sizeof(*out->message));
    if (out->message == NULL) {
        sq_doom(l, "what was read is more than may be read at once");
        return BS_FAIL;
    }
    while (bytes < BSTORE_READ_BYTES_MAX && out->n < BSTORE_READ_MAX && (got = sq_step(q)) == SQ_ROW) {
        out->message[out->n++] = (struct bstore_read_message){.seq = sq_col_int(q, 0),
                                                              .turn = sq_col_id(l, q, 1),
                                                              .role = keep(l, a, sq_col(q, 2)),
                                                              .body = keep(l, a, sq_col(q, 3))};
        bytes += sq_col(q, 3).n;
    }
    sq_reset(q);
    return l->doomed ? BS_FAIL : BS_OK;
}

enum bstore_result sq_messages(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t after,
                               struct arena *a, struct bstore_messages *out)
{
    struct sq *l = sq_of(s);
    struct sq_id id = sq_id(conversation);
    struct bstore_log log = {.n = 0};
    enum bstore_result r;
    do {
        *out = (struct bstore_messages){.n = 0};
        r = sq_begin_read(l) != 0 ? BS_FAIL : bounds(l, tenant, &id, &log);
        struct sq_stmt *q = r == BS_OK ? sq_stmt(l, SQL_MESSAGES, tenant, &id) : NULL;
        if (q != NULL) {
            sq_int(q, 3, after < INT64_MAX ? after : INT64_MAX);
            sq_int(q, 4, BSTORE_READ_MAX);
            sq_int(q, 5, BSTORE_READ_BYTES_MAX);
            r = messages(l, q, a, out);
        }
        r = sq_end(l, r);
    } while (sq_again(l));
    return r;
}

enum bstore_result sq_queued(struct bstore *s, struct span tenant, const struct id *conversation, struct arena *a,
                             struct bstore_messages *out)
{
    struct sq *l = sq_of(s);
    struct sq_id id = sq_id(conversation);
    enum bstore_result r;
    do {
        *out = (struct bstore_messages){.n = 0};
        struct sq_stmt *q = sq_begin_read(l) == 0 ? sq_stmt(l, SQL_QUEUED, tenant, &id) : NULL;
        if (q != NULL) {
            sq_int(q, 3, 0);
            sq_int(q, 4, BSTORE_TALK_MAX);
        }
        r = sq_end(l, q != NULL ? messages(l, q, a, out) : BS_FAIL);
    } while (sq_again(l));
    return r;
}
