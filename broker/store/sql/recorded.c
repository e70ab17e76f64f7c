/* What a turn's machine heard and did. It is no part of the turn: where there is no room for it, the turn goes on. */
#include "broker/store/sql/sq.h"

struct size {
    uint64_t parts, bytes;
    bool cut;
};

static enum bstore_result size_of(struct sq *l, struct span tenant, const struct sq_id *turn, struct size *out)
{
    struct sq_stmt *q = sq_stmt(l, SQL_RECORD_SIZE, tenant, turn);
    if (q == NULL)
        return BS_FAIL;
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW)
        *out = (struct size){sq_col_int(q, 0), sq_col_int(q, 1), sq_col_int(q, 2) != 0};
    sq_reset(q);
    return got == SQ_ROW ? BS_OK : BS_FAIL;
}

/* Added to what is counted of a tenant; *all is what it has now. Where others write beside us they wait here until we
 * are through, so what make_room counts and what it removes is the same. */
static enum bstore_result count(struct sq *l, struct span tenant, int64_t bytes, uint64_t *all)
{
    struct sq_stmt *q = sq_stmt(l, SQL_RECORD_COUNT, tenant, NULL);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 2, (uint64_t)bytes);
    return sq_number(l, q, all) == 0 ? BS_OK : BS_FAIL;
}

/* The recordings of its oldest turns go, whole, until it has room: nobody else's, and not this turn's. */
static enum bstore_result make_room(struct sq *l, const struct claim *c, uint64_t all)
{
    struct sq_id turn = sq_id(&c->turn);
    while (all > BSTORE_RECORDED_EACH) {
        struct size old = {0, 0, false};
        struct sq_stmt *q = sq_stmt(l, SQL_RECORD_OLDEST, claim_tenant(c), &turn);
        enum sq_result got = q == NULL ? SQ_FAIL : sq_step(q);
        struct id id = {{0}};
        if (got == SQ_ROW)
            id = sq_col_id(l, q, 0);
        if (q != NULL)
            sq_reset(q);
        if (got != SQ_ROW)
            return got == SQ_DONE ? BS_OK : BS_FAIL;
        struct sq_id oldest = sq_id(&id);
        if (size_of(l, claim_tenant(c), &oldest, &old) != BS_OK ||
            sq_change(l, sq_stmt(l, SQL_RECORD_FORGET, claim_tenant(c), &oldest), BS_FAIL) != BS_OK ||
            count(l, claim_tenant(c), -(int64_t)old.bytes, &all) != BS_OK)
            return BS_FAIL;
    }
    return BS_OK;
}

enum bstore_result sq_keep_record(struct sq *l, const struct claim *c, struct span rows)
{
    struct sq_id turn = sq_id(&c->turn);
    struct size has = {0, 0, false};
    uint64_t all;
    if (rows.n == 0)
        return BS_OK;
    if (size_of(l, claim_tenant(c), &turn, &has) != BS_OK)
        return BS_FAIL;
    if (has.cut)
        return BS_OK;
    if (rows.n > BSTORE_PART_MAX || has.bytes + rows.n > BSTORE_RECORD_MAX || has.parts >= BSTORE_PARTS_MAX)
        rows = SPAN_NONE;
    struct sq_stmt *q = sq_stmt(l, SQL_RECORD_ADD, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, has.parts + 1);
    sq_int(q, 4, l->now);
    sq_blob(q, 5, rows);
    if (sq_run(q) != 0 || count(l, claim_tenant(c), (int64_t)rows.n, &all) != BS_OK)
        return BS_FAIL;
    return make_room(l, c, all);
}

enum bstore_result sq_record(struct bstore *s, const struct claim *c, struct span rows)
{
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        r = sq_begin_fenced(l, c);
        r = sq_end(l, r == BS_OK ? sq_keep_record(l, c, rows) : r);
    } while (sq_again(l));
    return r;
}

/* --- read ------------------------------------------------------------------------------- */

static struct span keep(struct sq *l, struct arena *a, struct span v)
{
    struct span copy = arena_copy(a, v);
    if (v.n && copy.p == NULL)
        sq_doom(l, "what was recorded is more than may be read at once");
    return copy;
}

static enum bstore_result turn_of(struct sq *l, struct sq_stmt *q, struct arena *a, struct bstore_recorded *out)
{
    if (q == NULL)
        return BS_FAIL;
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW)
        *out = (struct bstore_recorded){
            .conversation = sq_col_id(l, q, 0),
            .state = keep(l, a, sq_col(q, 1)),
            .end = turn_end_of(sq_col(q, 2)),
            .used = {sq_col_int(q, 3), sq_col_int(q, 4), sq_col_int(q, 5)},
            .budget = {sq_col_int(q, 6), sq_col_int(q, 7), sq_col_int(q, 8), sq_col_int(q, 9), sq_col_int(q, 10)}};
    sq_reset(q);
    return got == SQ_ROW ? BS_OK : got == SQ_DONE ? BS_NONE : BS_FAIL;
}

static enum bstore_result parts(struct sq *l, struct sq_stmt *q, struct arena *a, struct bstore_recorded *out)
{
    enum sq_result got;
    if (q == NULL)
        return BS_FAIL;
    out->part = arena_alloc(a, BSTORE_PARTS_MAX * sizeof(*out->part));
    if (out->part == NULL)
        sq_doom(l, "what was recorded is more than may be read at once");
    while (!l->doomed && (got = sq_step(q)) == SQ_ROW) {
        struct span part = sq_col(q, 0);
        if (part.n == 0 || out->n == BSTORE_PARTS_MAX)
            out->cut = true;
        else
            out->part[out->n++] = keep(l, a, part);
    }
    sq_reset(q);
    return l->doomed ? BS_FAIL : BS_OK;
}

enum bstore_result sq_recorded(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                               struct bstore_recorded *out)
{
    struct sq *l = sq_of(s);
    struct sq_id id = sq_id(turn);
    enum bstore_result r;
    do {
        *out = (struct bstore_recorded){.n = 0};
        r = sq_begin_read(l) != 0 ? BS_FAIL : turn_of(l, sq_stmt(l, SQL_RECORDED_TURN, tenant, &id), a, out);
        r = sq_end(l, r == BS_OK ? parts(l, sq_stmt(l, SQL_RECORDED, tenant, &id), a, out) : r);
    } while (sq_again(l));
    return r;
}

static enum bstore_result turns(struct sq *l, struct sq_stmt *q, uint64_t after, struct arena *a,
                                struct bstore_turns *out)
{
    enum sq_result got;
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, after < INT64_MAX ? after : INT64_MAX);
    sq_int(q, 4, BSTORE_READ_MAX);
    out->row = arena_alloc(a, BSTORE_READ_MAX * sizeof(*out->row));
    if (out->row == NULL)
        sq_doom(l, "what was read is more than may be read at once");
    while (!l->doomed && out->n < BSTORE_READ_MAX && (got = sq_step(q)) == SQ_ROW)
        out->row[out->n++] = (struct bstore_turn_of){.nth = sq_col_int(q, 0),
                                                     .id = sq_col_id(l, q, 1),
                                                     .state = keep(l, a, sq_col(q, 2)),
                                                     .end = turn_end_of(sq_col(q, 3)),
                                                     .recorded = sq_col_int(q, 4) != 0};
    sq_reset(q);
    return l->doomed ? BS_FAIL : BS_OK;
}

enum bstore_result sq_turns(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t after,
                            struct arena *a, struct bstore_turns *out)
{
    struct sq *l = sq_of(s);
    struct sq_id id = sq_id(conversation);
    uint64_t epoch;
    enum bstore_result r;
    do {
        *out = (struct bstore_turns){.n = 0};
        int is = sq_begin_read(l) != 0 ? -1 : sq_number(l, sq_stmt(l, SQL_CONVERSATION_GET, tenant, &id), &epoch);
        r = is == 0 ? turns(l, sq_stmt(l, SQL_TURNS, tenant, &id), after, a, out) : is > 0 ? BS_NONE : BS_FAIL;
        r = sq_end(l, r);
    } while (sq_again(l));
    return r;
}
