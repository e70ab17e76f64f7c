/* What a turn's machine heard and did. It is no part of the turn: where there is no room for it, the turn goes on. */
#include "broker/store/sqlite/lite.h"

struct size {
    uint64_t parts, bytes;
    bool cut;
};

static enum bstore_result size_of(struct lite *l, struct span tenant, const struct lite_id *turn, struct size *out)
{
    sqlite3_stmt *q = lite_stmt(l, SQL_RECORD_SIZE, tenant, turn);
    if (q == NULL)
        return BS_FAIL;
    enum db_result got = db_step(&l->db, q);
    if (got == DB_ROW)
        *out = (struct size){db_col_int(q, 0), db_col_int(q, 1), db_col_int(q, 2) != 0};
    sqlite3_reset(q);
    return got == DB_ROW ? BS_OK : BS_FAIL;
}

/* Added to what is counted of a tenant; *all is what it has now. */
static enum bstore_result count(struct lite *l, struct span tenant, int64_t bytes, uint64_t *all)
{
    sqlite3_stmt *q = lite_stmt(l, SQL_RECORD_COUNT, tenant, NULL);
    if (q == NULL)
        return BS_FAIL;
    db_int(q, 2, (uint64_t)bytes);
    return lite_number(l, q, all) == 0 ? BS_OK : BS_FAIL;
}

/* The recordings of its oldest turns go, whole, until it has room: nobody else's, and not this turn's. */
static enum bstore_result make_room(struct lite *l, const struct claim *c, uint64_t all)
{
    struct lite_id turn = lite_id(&c->turn);
    while (all > BSTORE_RECORDED_EACH) {
        struct size old = {0, 0, false};
        sqlite3_stmt *q = lite_stmt(l, SQL_RECORD_OLDEST, claim_tenant(c), &turn);
        enum db_result got = q == NULL ? DB_FAIL : db_step(&l->db, q);
        struct id id = {{0}};
        if (got == DB_ROW)
            id = lite_col_id(l, q, 0);
        if (q != NULL)
            sqlite3_reset(q);
        if (got != DB_ROW)
            return got == DB_DONE ? BS_OK : BS_FAIL;
        struct lite_id oldest = lite_id(&id);
        if (size_of(l, claim_tenant(c), &oldest, &old) != BS_OK ||
            lite_change(l, lite_stmt(l, SQL_RECORD_FORGET, claim_tenant(c), &oldest), BS_FAIL) != BS_OK ||
            count(l, claim_tenant(c), -(int64_t)old.bytes, &all) != BS_OK)
            return BS_FAIL;
    }
    return BS_OK;
}

enum bstore_result lite_keep_record(struct lite *l, const struct claim *c, struct span rows)
{
    struct lite_id turn = lite_id(&c->turn);
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
    sqlite3_stmt *q = lite_stmt(l, SQL_RECORD_ADD, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    db_int(q, 3, has.parts + 1);
    db_int(q, 4, l->now);
    db_blob(q, 5, rows);
    if (db_run(&l->db, q) != 0 || count(l, claim_tenant(c), (int64_t)rows.n, &all) != BS_OK)
        return BS_FAIL;
    return make_room(l, c, all);
}

enum bstore_result lite_record(struct bstore *s, const struct claim *c, struct span rows)
{
    struct lite *l = lite_of(s);
    enum bstore_result r = lite_begin_fenced(l, c);
    return lite_end(l, r == BS_OK ? lite_keep_record(l, c, rows) : r);
}

/* --- read ------------------------------------------------------------------------------- */

static struct span keep(struct lite *l, struct arena *a, struct span v)
{
    struct span copy = arena_copy(a, v);
    if (v.n && copy.p == NULL)
        db_doom(&l->db, "what was recorded is more than may be read at once");
    return copy;
}

static enum bstore_result turn_of(struct lite *l, sqlite3_stmt *q, struct arena *a, struct bstore_recorded *out)
{
    if (q == NULL)
        return BS_FAIL;
    enum db_result got = db_step(&l->db, q);
    if (got == DB_ROW)
        *out = (struct bstore_recorded){
            .conversation = lite_col_id(l, q, 0),
            .state = keep(l, a, db_col(q, 1)),
            .end = turn_end_of(db_col(q, 2)),
            .used = {db_col_int(q, 3), db_col_int(q, 4), db_col_int(q, 5)},
            .budget = {db_col_int(q, 6), db_col_int(q, 7), db_col_int(q, 8), db_col_int(q, 9), db_col_int(q, 10)}};
    sqlite3_reset(q);
    return got == DB_ROW ? BS_OK : got == DB_DONE ? BS_NONE : BS_FAIL;
}

enum bstore_result lite_recorded(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                                 struct bstore_recorded *out)
{
    struct lite *l = lite_of(s);
    struct lite_id id = lite_id(turn);
    enum db_result got;
    enum bstore_result r =
        lite_begin_read(l) != 0 ? BS_FAIL : turn_of(l, lite_stmt(l, SQL_RECORDED_TURN, tenant, &id), a, out);
    sqlite3_stmt *q = r == BS_OK ? lite_stmt(l, SQL_RECORDED, tenant, &id) : NULL;
    if (q == NULL)
        return lite_end(l, r == BS_OK ? BS_FAIL : r);
    out->part = arena_alloc(a, BSTORE_PARTS_MAX * sizeof(*out->part));
    if (out->part == NULL)
        db_doom(&l->db, "what was recorded is more than may be read at once");
    while (!l->db.doomed && (got = db_step(&l->db, q)) == DB_ROW) {
        struct span part = db_col(q, 0);
        if (part.n == 0 || out->n == BSTORE_PARTS_MAX)
            out->cut = true;
        else
            out->part[out->n++] = keep(l, a, part);
    }
    sqlite3_reset(q);
    return lite_end(l, l->db.doomed ? BS_FAIL : BS_OK);
}

enum bstore_result lite_turns(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t after,
                              struct arena *a, struct bstore_turns *out)
{
    struct lite *l = lite_of(s);
    struct lite_id id = lite_id(conversation);
    uint64_t epoch;
    enum db_result got;
    int is = lite_begin_read(l) != 0 ? -1 : lite_number(l, lite_stmt(l, SQL_CONVERSATION_GET, tenant, &id), &epoch);
    sqlite3_stmt *q = is == 0 ? lite_stmt(l, SQL_TURNS, tenant, &id) : NULL;
    if (q == NULL)
        return lite_end(l, is > 0 ? BS_NONE : BS_FAIL);
    db_int(q, 3, after < INT64_MAX ? after : INT64_MAX);
    db_int(q, 4, BSTORE_READ_MAX);
    out->row = arena_alloc(a, BSTORE_READ_MAX * sizeof(*out->row));
    if (out->row == NULL)
        db_doom(&l->db, "what was read is more than may be read at once");
    while (!l->db.doomed && out->n < BSTORE_READ_MAX && (got = db_step(&l->db, q)) == DB_ROW)
        out->row[out->n++] = (struct bstore_turn_of){.nth = db_col_int(q, 0),
                                                     .id = lite_col_id(l, q, 1),
                                                     .state = keep(l, a, db_col(q, 2)),
                                                     .end = turn_end_of(db_col(q, 3)),
                                                     .recorded = db_col_int(q, 4) != 0};
    sqlite3_reset(q);
    return lite_end(l, l->db.doomed ? BS_FAIL : BS_OK);
}
