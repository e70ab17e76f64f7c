#include "broker/store/sqlite/lite.h"

static struct span keep(struct lite *l, struct arena *a, struct span v)
{
    struct span copy = arena_copy(a, v);
    if (v.n && copy.p == NULL)
        db_doom(&l->db, "what was left of the turn is more than may be read at once");
    return copy;
}

static enum bstore_result turn_row(struct lite *l, sqlite3_stmt *q, struct bstore_turn *out)
{
    if (q == NULL)
        return BS_FAIL;
    enum db_result got = db_step(&l->db, q);
    if (got == DB_ROW) {
        out->started_ms = db_col_int(q, 0);
        out->lost = db_col_int(q, 1);
        out->cancelled = db_col_int(q, 2) != 0;
        out->budget =
            (struct budget){db_col_int(q, 3), db_col_int(q, 4), db_col_int(q, 5), db_col_int(q, 6), db_col_int(q, 7)};
        out->used = (struct used){db_col_int(q, 8), db_col_int(q, 9), db_col_int(q, 10)};
        out->replays = db_col_int(q, 11) != 0;
    }
    sqlite3_reset(q);
    return got == DB_ROW ? BS_OK : BS_FAIL;
}

/* Of the last settled step of this turn; if there is none, of the turn before it what outlives a turn. */
static enum bstore_result checkpoint(struct lite *l, struct span tenant, const struct lite_id *turn, struct arena *a,
                                     struct bstore_turn *out)
{
    sqlite3_stmt *q = lite_stmt(l, SQL_LOAD_SETTLED, tenant, turn);
    enum db_result got = q == NULL ? DB_FAIL : db_step(&l->db, q);
    if (got == DB_ROW) {
        out->checkpoint.execution_state = keep(l, a, db_col(q, 2));
        out->checkpoint.effect_log = keep(l, a, db_col(q, 3));
        out->settled = db_col_int(q, 4);
    } else if (got == DB_DONE) {
        q = lite_stmt(l, SQL_LOAD_BEFORE, tenant, turn);
        got = q == NULL ? DB_FAIL : db_step(&l->db, q);
    }
    if (got == DB_ROW) {
        out->checkpoint.message_state = keep(l, a, db_col(q, 0));
        out->checkpoint.filesystem_state_ref = keep(l, a, db_col(q, 1));
    }
    if (q != NULL)
        sqlite3_reset(q);
    return got == DB_FAIL ? BS_FAIL : BS_OK;
}

static enum bstore_result open_step(struct lite *l, struct span tenant, const struct lite_id *turn, struct arena *a,
                                    struct bstore_turn *out)
{
    sqlite3_stmt *q = lite_stmt(l, SQL_LOAD_OPEN, tenant, turn);
    if (q == NULL)
        return BS_FAIL;
    enum db_result got = db_step(&l->db, q);
    if (got == DB_ROW) {
        out->open = db_col_int(q, 0);
        out->attempts = db_col_int(q, 1);
        out->planned = span_eq(db_col(q, 2), SPAN("planned"));
        out->answer = keep(l, a, db_col(q, 3));
    }
    sqlite3_reset(q);
    return got == DB_FAIL ? BS_FAIL : BS_OK;
}

static bool one_call(struct lite *l, sqlite3_stmt *q, struct arena *a, struct bstore_found_call *out)
{
    uint64_t class = db_col_int(q, 2);
    *out = (struct bstore_found_call){
        .call = {keep(l, a, db_col(q, 0)), keep(l, a, db_col(q, 1)),
                 class < CALL_CLASSES ? (enum call_class) class : CALL_UNSAFE},
        .settled = {call_end_of(db_col(q, 4)), keep(l, a, db_col(q, 5)), keep(l, a, db_col(q, 6))},
        .intent_ms = db_col_int(q, 7)};
    return db_col_digest(q, 3, &out->key);
}

static enum bstore_result calls(struct lite *l, struct span tenant, const struct lite_id *turn, struct arena *a,
                                struct bstore_turn *out)
{
    enum db_result got = DB_DONE;
    sqlite3_stmt *q = lite_stmt(l, SQL_LOAD_CALLS, tenant, turn);
    out->call = arena_alloc(a, TURN_CALLS_MAX * sizeof(*out->call));
    if (q == NULL || out->call == NULL)
        return BS_FAIL;
    db_int(q, 3, out->open);
    while (!l->db.doomed && out->calls < TURN_CALLS_MAX && (got = db_step(&l->db, q)) == DB_ROW)
        if (!one_call(l, q, a, &out->call[out->calls++]))
            db_doom(&l->db, "a key in the store is none");
    sqlite3_reset(q);
    return l->db.doomed ? BS_FAIL : BS_OK;
}

enum bstore_result lite_load(struct bstore *s, const struct claim *c, struct arena *a, struct bstore_turn *out)
{
    struct lite *l = lite_of(s);
    struct lite_id turn = lite_id(&c->turn);
    struct span tenant = claim_tenant(c);
    enum bstore_result r = lite_begin_fenced(l, c);
    out->now_ms = l->now;
    if (r == BS_OK)
        r = turn_row(l, lite_stmt(l, SQL_LOAD_TURN, tenant, &turn), out);
    if (r == BS_OK)
        r = checkpoint(l, tenant, &turn, a, out);
    if (r == BS_OK)
        r = open_step(l, tenant, &turn, a, out);
    if (r == BS_OK && out->planned)
        r = calls(l, tenant, &turn, a, out);
    return lite_end(l, r);
}
