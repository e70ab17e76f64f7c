/* A turn that is asked once more, and what its calls gave then. */
#include "broker/store/sqlite/lite.h"

static enum bstore_result budget_of(struct lite *l, struct span tenant, const struct lite_id *turn,
                                    struct id *conversation, struct budget *b)
{
    sqlite3_stmt *q = lite_stmt(l, SQL_REPLAY_OF, tenant, turn);
    bool may = false;
    if (q == NULL)
        return BS_FAIL;
    enum db_result got = db_step(&l->db, q);
    if (got == DB_ROW) {
        *conversation = lite_col_id(l, q, 0);
        *b =
            (struct budget){db_col_int(q, 1), db_col_int(q, 2), db_col_int(q, 3), db_col_int(q, 4), db_col_int(q, 5)};
        may = db_col_int(q, 6) != 0;
    }
    sqlite3_reset(q);
    return got == DB_FAIL ? BS_FAIL : got == DB_DONE ? BS_NONE : may ? BS_OK : BS_CONFLICT;
}

/* What was asked by it, and how many messages stood before that. */
static enum bstore_result asked(struct lite *l, struct span tenant, const struct lite_id *conversation,
                                const struct lite_id *turn, struct dynbuf *body, uint64_t *before)
{
    sqlite3_stmt *q = lite_stmt(l, SQL_REPLAY_ASKED, tenant, conversation);
    if (q == NULL)
        return BS_FAIL;
    db_text(q, 3, span_of(turn->text, ID_TEXT));
    enum db_result got = db_step(&l->db, q);
    if (got == DB_ROW) {
        *before = db_col_int(q, 0) - 1;
        (void)dynbuf_add(body, db_col(q, 1));
    }
    sqlite3_reset(q);
    return got == DB_FAIL || !dynbuf_ok(body) ? BS_FAIL : got == DB_ROW ? BS_OK : BS_CONFLICT;
}

static enum bstore_result set(struct lite *l, struct span tenant, const struct id *made, const struct lite_id *turn)
{
    struct lite_id id = lite_id(made);
    sqlite3_stmt *q = lite_stmt(l, SQL_REPLAY_SET, tenant, &id);
    if (q == NULL)
        return BS_FAIL;
    db_text(q, 3, span_of(turn->text, ID_TEXT));
    return lite_change(l, q, BS_FAIL);
}

enum bstore_result lite_replay(struct bstore *s, struct span tenant, const struct id *turn,
                               struct bstore_chatted *out)
{
    struct lite *l = lite_of(s);
    struct lite_id id = lite_id(turn), from, to;
    struct id conversation = {{0}};
    struct bstore_chat in = {.tenant = tenant};
    struct dynbuf body;
    uint64_t before = 0;
    dynbuf_init(&body, BSTORE_BODY_MAX);
    enum bstore_result r = lite_begin(l) != 0 ? BS_FAIL : budget_of(l, tenant, &id, &conversation, &in.budget);
    from = lite_id(&conversation);
    if (r == BS_OK)
        r = asked(l, tenant, &from, &id, &body, &before);
    in.body = dynbuf_span(&body);
    if (r == BS_OK)
        r = lite_add_chat(l, &in, out);
    to = lite_id(&out->conversation);
    if (r == BS_OK)
        r = lite_copy(l, tenant, &from, &to, before);
    if (r == BS_OK)
        r = set(l, tenant, &out->turn, &id);
    r = lite_end(l, r);
    dynbuf_free(&body);
    return r;
}

static sqlite3_stmt *alike(struct lite *l, unsigned sql, const struct claim *c, const struct lite_id *turn,
                           const struct bstore_call *call)
{
    sqlite3_stmt *q = lite_stmt(l, sql, claim_tenant(c), turn);
    if (q != NULL) {
        db_text(q, 3, call->tool);
        db_blob(q, 4, call->args);
    }
    return q;
}

static enum bstore_result then(struct lite *l, const struct claim *c, const struct lite_id *turn, uint64_t nth,
                               const struct bstore_call *call, struct arena *a, struct bstore_replayed *out)
{
    sqlite3_stmt *q = alike(l, SQL_REPLAYED, c, turn, call);
    if (q == NULL)
        return BS_FAIL;
    db_int(q, 5, nth);
    enum db_result got = db_step(&l->db, q);
    if (got == DB_ROW) {
        struct span result = db_col(q, 1);
        out->end = call_end_of(db_col(q, 0));
        out->result = arena_copy(a, result);
        if (result.n > 0 && out->result.p == NULL)
            db_doom(&l->db, "what was read is more than may be read at once");
    }
    sqlite3_reset(q);
    return got == DB_FAIL ? BS_FAIL : BS_OK;
}

enum bstore_result lite_replayed(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                                 const struct bstore_call *call, struct arena *a, struct bstore_replayed *out)
{
    struct lite *l = lite_of(s);
    struct lite_id turn = lite_id(&c->turn);
    uint64_t nth = 0;
    enum bstore_result r = lite_begin_fenced(l, c);
    sqlite3_stmt *q = r == BS_OK ? alike(l, SQL_REPLAY_NTH, c, &turn, call) : NULL;
    if (q != NULL) {
        db_int(q, 5, n);
        db_int(q, 6, ord);
        r = lite_number(l, q, &nth) == 0 ? then(l, c, &turn, nth, call, a, out) : BS_FAIL;
    }
    return lite_end(l, r == BS_OK && q == NULL ? BS_FAIL : r);
}
