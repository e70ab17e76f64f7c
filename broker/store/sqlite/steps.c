#include "broker/store/sqlite/lite.h"

static sqlite3_stmt *of_step(struct lite *l, unsigned sql, const struct claim *c, const struct lite_id *turn,
                             uint64_t n)
{
    sqlite3_stmt *q = lite_stmt(l, sql, claim_tenant(c), turn);
    if (q != NULL)
        db_int(q, 3, n);
    return q;
}

enum step_state { STEP_NONE = 0, STEP_OPEN, STEP_PLANNED, STEP_SETTLED };

/* *answered: the answer that it has is this one. */
static enum bstore_result step_state(struct lite *l, const struct claim *c, uint64_t n, struct span answer,
                                     enum step_state *out, bool *answered)
{
    struct lite_id turn = lite_id(&c->turn);
    sqlite3_stmt *q = of_step(l, SQL_STEP_GET, c, &turn, n);
    *out = STEP_NONE;
    if (q == NULL)
        return BS_FAIL;
    enum db_result got = db_step(&l->db, q);
    if (got == DB_ROW) {
        struct span state = db_col(q, 0);
        *out = span_eq(state, SPAN("open"))      ? STEP_OPEN
               : span_eq(state, SPAN("planned")) ? STEP_PLANNED
                                                 : STEP_SETTLED;
        *answered = span_eq(db_col(q, 1), answer);
    }
    sqlite3_reset(q);
    return got == DB_FAIL ? BS_FAIL : BS_OK;
}

/* --- begun ------------------------------------------------------------------------------ */

static enum bstore_result add_step(struct lite *l, const struct claim *c, uint64_t n, struct span kind)
{
    struct lite_id turn = lite_id(&c->turn);
    uint64_t next;
    if (lite_number(l, lite_stmt(l, SQL_STEP_NEXT, claim_tenant(c), &turn), &next) != 0)
        return BS_FAIL;
    if (n != next)
        return BS_CONFLICT;
    sqlite3_stmt *q = of_step(l, SQL_STEP_ADD, c, &turn, n);
    if (q == NULL)
        return BS_FAIL;
    db_text(q, 4, kind);
    db_int(q, 5, l->now);
    return db_run(&l->db, q) == 0 ? BS_OK : BS_FAIL;
}

/* What was seen of it before is superseded, and the log says so. */
static enum bstore_result step_again(struct lite *l, const struct claim *c, uint64_t n, uint64_t *attempts)
{
    char text[BSTORE_END_TEXT_MAX];
    struct lite_id turn = lite_id(&c->turn);
    uint64_t seq;
    if (lite_number(l, of_step(l, SQL_STEP_AGAIN, c, &turn, n), attempts) != 0)
        return BS_FAIL;
    const struct bstore_event again = bstore_again_event(&c->turn, n, *attempts, text);
    return lite_append(l, c, &again, 1, &seq);
}

enum bstore_result lite_step(struct bstore *s, const struct claim *c, uint64_t n, struct span kind,
                             uint64_t *attempts)
{
    struct lite *l = lite_of(s);
    enum step_state state = STEP_NONE;
    bool answered, again;
    enum bstore_result r = lite_begin_fenced(l, c);
    if (r == BS_OK)
        r = step_state(l, c, n, SPAN_NONE, &state, &answered);
    again = r == BS_OK && state == STEP_OPEN;
    if (r == BS_OK && state == STEP_NONE) {
        *attempts = 1;
        r = add_step(l, c, n, kind);
    } else if (r == BS_OK) {
        r = again ? step_again(l, c, n, attempts) : BS_CONFLICT;
    }
    r = lite_end(l, r);
    return r == BS_OK && again ? BS_AGAIN : r;
}

/* --- its calls ------------------------------------------------------------------------------ */

/* Every call of the plan is there, and no other. */
static enum bstore_result same_calls(struct lite *l, const struct claim *c, uint64_t n, const struct bstore_plan *p,
                                     const struct digest *key)
{
    struct lite_id turn = lite_id(&c->turn);
    struct digest is;
    size_t i = 0;
    bool same = true;
    enum db_result got;
    sqlite3_stmt *q = of_step(l, SQL_CALL_KEYS, c, &turn, n);
    if (q == NULL)
        return BS_FAIL;
    for (; (got = db_step(&l->db, q)) == DB_ROW; i++)
        same &= i < p->n && db_col_digest(q, 0, &is) && memcmp(is.b, key[i].b, DIGEST_BYTES) == 0;
    return got == DB_FAIL ? BS_FAIL : same && i == p->n ? BS_AGAIN : BS_CONFLICT;
}

static enum bstore_result add_calls(struct lite *l, const struct claim *c, uint64_t n, const struct bstore_plan *p,
                                    const struct digest *key)
{
    struct lite_id turn = lite_id(&c->turn);
    for (size_t i = 0; i < p->n; i++) {
        sqlite3_stmt *q = of_step(l, SQL_CALL_ADD, c, &turn, n);
        if (q == NULL)
            return BS_FAIL;
        db_int(q, 4, i);
        db_text(q, 5, p->call[i].tool);
        db_blob(q, 6, p->call[i].args);
        db_int(q, 7, p->call[i].class);
        db_blob(q, 8, span_of(key[i].b, DIGEST_BYTES));
        db_int(q, 9, l->now);
        if (db_run(&l->db, q) != 0)
            return BS_FAIL;
    }
    return BS_OK;
}

static enum bstore_result add_used(struct lite *l, const struct claim *c, const struct used *used)
{
    struct lite_id turn = lite_id(&c->turn);
    sqlite3_stmt *q = lite_stmt(l, SQL_TURN_USED, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    db_int(q, 3, used->tokens);
    db_int(q, 4, used->cost_micro);
    return lite_change(l, q, BS_FAIL);
}

static enum bstore_result add_plan(struct lite *l, const struct claim *c, uint64_t n, const struct bstore_plan *p,
                                   const struct digest *key)
{
    struct lite_id turn = lite_id(&c->turn);
    sqlite3_stmt *q = of_step(l, SQL_STEP_PLAN, c, &turn, n);
    if (q == NULL)
        return BS_FAIL;
    db_blob(q, 4, p->answer);
    if (lite_change(l, q, BS_FAIL) != BS_OK || add_calls(l, c, n, p, key) != BS_OK)
        return BS_FAIL;
    return add_used(l, c, &p->used);
}

enum bstore_result lite_spent(struct bstore *s, const struct claim *c, const struct used *used)
{
    struct lite *l = lite_of(s);
    enum bstore_result r = lite_begin_fenced(l, c);
    return lite_end(l, r == BS_OK ? add_used(l, c, used) : r);
}

enum bstore_result lite_plan(struct bstore *s, const struct claim *c, uint64_t n, const struct bstore_plan *p,
                             const struct digest *key)
{
    struct lite *l = lite_of(s);
    enum step_state state = STEP_NONE;
    bool answered = false;
    enum bstore_result r = lite_begin_fenced(l, c);
    if (r == BS_OK)
        r = step_state(l, c, n, p->answer, &state, &answered);
    if (r == BS_OK && state == STEP_OPEN)
        r = add_plan(l, c, n, p, key);
    else if (r == BS_OK)
        r = state == STEP_PLANNED && answered ? same_calls(l, c, n, p, key) : BS_CONFLICT;
    return lite_end(l, r);
}

static sqlite3_stmt *of_call(struct lite *l, unsigned sql, const struct claim *c, const struct lite_id *turn,
                             uint64_t n, uint64_t ord)
{
    sqlite3_stmt *q = of_step(l, sql, c, turn, n);
    if (q != NULL)
        db_int(q, 4, ord);
    return q;
}

enum bstore_result lite_stricter(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                                 enum call_class class)
{
    struct lite *l = lite_of(s);
    struct lite_id turn = lite_id(&c->turn);
    enum bstore_result r = lite_begin_fenced(l, c);
    sqlite3_stmt *q = r == BS_OK ? of_call(l, SQL_CALL_STRICTER, c, &turn, n, ord) : NULL;
    if (q != NULL) {
        db_int(q, 5, class);
        r = lite_change(l, q, BS_NONE);
    }
    return lite_end(l, r);
}

/* What a call that is settled was settled as. */
static enum bstore_result as_before(struct lite *l, const struct claim *c, uint64_t n, uint64_t ord,
                                    const struct bstore_settled *how)
{
    struct lite_id turn = lite_id(&c->turn);
    sqlite3_stmt *q = of_call(l, SQL_CALL_GET, c, &turn, n, ord);
    if (q == NULL)
        return BS_FAIL;
    enum db_result got = db_step(&l->db, q);
    bool same = got == DB_ROW && call_end_of(db_col(q, 0)) == how->end && span_eq(db_col(q, 1), how->result) &&
                span_eq(db_col(q, 2), how->effect);
    sqlite3_reset(q);
    return got == DB_FAIL ? BS_FAIL : got == DB_DONE ? BS_NONE : same ? BS_AGAIN : BS_CONFLICT;
}

enum bstore_result lite_call(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                             const struct bstore_settled *how)
{
    struct lite *l = lite_of(s);
    struct lite_id turn = lite_id(&c->turn);
    enum bstore_result r = lite_begin_fenced(l, c);
    sqlite3_stmt *q = r == BS_OK ? of_call(l, SQL_CALL_SETTLE, c, &turn, n, ord) : NULL;
    if (q != NULL) {
        db_text(q, 5, span_str(call_end_name(how->end)));
        db_blob(q, 6, how->result);
        db_text(q, 7, how->effect);
        db_int(q, 8, l->now);
        r = lite_change(l, q, BS_NONE);
    }
    return lite_end(l, r == BS_NONE ? as_before(l, c, n, ord, how) : r);
}

/* --- settled ------------------------------------------------------------------------------ */

static enum bstore_result may_settle(struct lite *l, const struct claim *c, uint64_t n)
{
    struct lite_id turn = lite_id(&c->turn);
    enum step_state state;
    bool answered;
    uint64_t open;
    if (step_state(l, c, n, SPAN_NONE, &state, &answered) != BS_OK ||
        lite_number(l, of_step(l, SQL_CALLS_OPEN, c, &turn, n), &open) != 0)
        return BS_FAIL;
    return (state == STEP_OPEN || state == STEP_PLANNED) && open == 0 ? BS_OK : BS_CONFLICT;
}

static enum bstore_result settle_step(struct lite *l, const struct claim *c, uint64_t n,
                                      const struct bstore_checkpoint *p)
{
    struct lite_id turn = lite_id(&c->turn);
    sqlite3_stmt *q = of_step(l, SQL_STEP_SETTLE, c, &turn, n);
    if (q == NULL)
        return BS_FAIL;
    db_int(q, 4, l->now);
    db_blob(q, 5, p->message_state);
    db_text(q, 6, p->filesystem_state_ref);
    db_blob(q, 7, p->execution_state);
    db_blob(q, 8, p->effect_log);
    if (lite_change(l, q, BS_FAIL) != BS_OK)
        return BS_FAIL;
    return lite_change(l, lite_stmt(l, SQL_TURN_STEP, claim_tenant(c), &turn), BS_FAIL);
}

static enum bstore_result set_phase(struct lite *l, const struct claim *c, struct span phase)
{
    struct lite_id id = lite_id(&c->conversation);
    if (phase.n == 0)
        return BS_OK;
    if (!span_eq(phase, SPAN("coding")) && !span_eq(phase, SPAN("building")) && !span_eq(phase, SPAN("deploying")) &&
        !span_eq(phase, SPAN("completed")))
        return BS_CONFLICT;
    sqlite3_stmt *q = lite_stmt(l, SQL_CONVERSATION_PHASE, claim_tenant(c), &id);
    if (q == NULL)
        return BS_FAIL;
    db_text(q, 3, phase);
    return lite_change(l, q, BS_FAIL);
}

enum bstore_result lite_settle(struct bstore *s, const struct claim *c, uint64_t n, const struct bstore_settle *what)
{
    struct lite *l = lite_of(s);
    uint64_t seq;
    enum bstore_result r = lite_begin_fenced(l, c);
    if (r == BS_OK)
        r = may_settle(l, c, n);
    if (r == BS_OK)
        r = settle_step(l, c, n, &what->checkpoint);
    if (r == BS_OK)
        r = set_phase(l, c, what->phase);
    for (size_t i = 0; r == BS_OK && i < what->messages; i++)
        r = lite_message(l, c, &what->message[i], &seq);
    if (r == BS_OK)
        r = lite_append(l, c, what->event, what->events, &seq);
    if (r == BS_OK)
        r = lite_keep_record(l, c, what->record);
    return lite_end(l, r);
}
