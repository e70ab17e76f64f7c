#include "broker/store/sql/sq.h"
#include "broker/store/sql/usage.h"

static struct sq_stmt *of_step(struct sq *l, unsigned sql, const struct claim *c, const struct sq_id *turn,
                               uint64_t n)
{
    struct sq_stmt *q = sq_stmt(l, sql, claim_tenant(c), turn);
    if (q != NULL)
        sq_int(q, 3, n);
    return q;
}

enum step_state { STEP_NONE = 0, STEP_OPEN, STEP_PLANNED, STEP_SETTLED };

/* *answered: the answer that it has is this one. */
static enum bstore_result step_state(struct sq *l, const struct claim *c, uint64_t n, struct span answer,
                                     enum step_state *out, bool *answered)
{
    struct sq_id turn = sq_id(&c->turn);
    struct sq_stmt *q = of_step(l, SQL_STEP_GET, c, &turn, n);
    *out = STEP_NONE;
    if (q == NULL)
        return BS_FAIL;
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW) {
        struct span state = sq_col(q, 0);
        *out = span_eq(state, SPAN("open"))      ? STEP_OPEN
               : span_eq(state, SPAN("planned")) ? STEP_PLANNED
                                                 : STEP_SETTLED;
        *answered = span_eq(sq_col(q, 1), answer);
    }
    sq_reset(q);
    return got == SQ_FAIL ? BS_FAIL : BS_OK;
}

/* --- begun ------------------------------------------------------------------------------ */

static enum bstore_result add_step(struct sq *l, const struct claim *c, uint64_t n, struct span kind)
{
    struct sq_id turn = sq_id(&c->turn);
    uint64_t next;
    if (sq_number(l, sq_stmt(l, SQL_STEP_NEXT, claim_tenant(c), &turn), &next) != 0)
        return BS_FAIL;
    if (n != next)
        return BS_CONFLICT;
    struct sq_stmt *q = of_step(l, SQL_STEP_ADD, c, &turn, n);
    if (q == NULL)
        return BS_FAIL;
    sq_bytes(q, 4, kind);
    sq_int(q, 5, l->now);
    return sq_run(q) == 0 ? BS_OK : BS_FAIL;
}

/* What was seen of it before is superseded, and the log says so; what its kind says that it asks, it does not. */
static enum bstore_result step_again(struct sq *l, const struct claim *c, uint64_t n, struct span kind,
                                     uint64_t *attempts)
{
    char text[BSTORE_END_TEXT_MAX];
    struct sq_id turn = sq_id(&c->turn);
    uint64_t seq;
    struct sq_stmt *q = of_step(l, SQL_STEP_AGAIN, c, &turn, n);
    if (q == NULL)
        return BS_FAIL;
    sq_bytes(q, 4, kind);
    if (sq_number(l, q, attempts) != 0)
        return BS_FAIL;
    const struct bstore_event again = bstore_again_event(&c->turn, n, *attempts, text);
    return sq_append(l, c, &again, 1, &seq);
}

enum bstore_result sq_step_begin(struct bstore *s, const struct claim *c, uint64_t n, struct span kind,
                                 uint64_t *attempts)
{
    struct sq *l = sq_of(s);
    enum step_state state;
    bool answered, again;
    enum bstore_result r;
    do {
        state = STEP_NONE;
        if ((r = sq_begin_fenced(l, c)) == BS_OK)
            r = step_state(l, c, n, SPAN_NONE, &state, &answered);
        again = r == BS_OK && state == STEP_OPEN;
        if (r == BS_OK && state == STEP_NONE) {
            *attempts = 1;
            r = add_step(l, c, n, kind);
        } else if (r == BS_OK) {
            r = again ? step_again(l, c, n, kind, attempts) : BS_CONFLICT;
        }
        r = sq_end(l, r);
    } while (sq_again(l));
    return r == BS_OK && again ? BS_AGAIN : r;
}

/* --- its calls ------------------------------------------------------------------------------ */

/* Every call of the plan is there, and no other. */
static enum bstore_result same_calls(struct sq *l, const struct claim *c, uint64_t n, const struct bstore_plan *p,
                                     const struct digest *key)
{
    struct sq_id turn = sq_id(&c->turn);
    struct digest is;
    size_t i = 0;
    bool same = true;
    enum sq_result got;
    struct sq_stmt *q = of_step(l, SQL_CALL_KEYS, c, &turn, n);
    if (q == NULL)
        return BS_FAIL;
    for (; (got = sq_step(q)) == SQ_ROW; i++)
        same &= i < p->n && sq_col_digest(q, 0, &is) && memcmp(is.b, key[i].b, DIGEST_BYTES) == 0;
    return got == SQ_FAIL ? BS_FAIL : same && i == p->n ? BS_AGAIN : BS_CONFLICT;
}

static enum bstore_result add_calls(struct sq *l, const struct claim *c, uint64_t n, const struct bstore_plan *p,
                                    const struct digest *key)
{
    struct sq_id turn = sq_id(&c->turn);
    for (size_t i = 0; i < p->n; i++) {
        struct sq_stmt *q = of_step(l, SQL_CALL_ADD, c, &turn, n);
        if (q == NULL)
            return BS_FAIL;
        sq_int(q, 4, i);
        sq_bytes(q, 5, p->call[i].tool);
        sq_blob(q, 6, p->call[i].args);
        sq_int(q, 7, p->call[i].class);
        sq_blob(q, 8, span_of(key[i].b, DIGEST_BYTES));
        sq_int(q, 9, l->now);
        if (sq_run(q) != 0)
            return BS_FAIL;
    }
    return BS_OK;
}

static enum bstore_result add_used(struct sq *l, const struct claim *c, const struct used *used,
                                   const struct bstore_asked *asked)
{
    struct sq_id turn = sq_id(&c->turn);
    struct sq_stmt *q = sq_stmt(l, SQL_TURN_USED, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, used->tokens);
    sq_int(q, 4, used->cost_micro);
    return sq_change(l, q, BS_FAIL) == BS_OK ? sq_meter(l, c, asked, used->cost_micro) : BS_FAIL;
}

static enum bstore_result add_plan(struct sq *l, const struct claim *c, uint64_t n, const struct bstore_plan *p,
                                   const struct digest *key)
{
    struct sq_id turn = sq_id(&c->turn);
    struct sq_stmt *q = of_step(l, SQL_STEP_PLAN, c, &turn, n);
    if (q == NULL)
        return BS_FAIL;
    sq_blob(q, 4, p->answer);
    if (sq_change(l, q, BS_FAIL) != BS_OK || add_calls(l, c, n, p, key) != BS_OK)
        return BS_FAIL;
    if (l->face.home[0] == '\0')
        return add_used(l, c, &p->used, &p->asked);
    if ((q = of_step(l, SQL_STEP_HOME, c, &turn, n)) == NULL)
        return BS_FAIL;
    sq_text(q, 4, span_str(l->face.home));
    return sq_run(q) == 0 ? add_used(l, c, &p->used, &p->asked) : BS_FAIL;
}

enum bstore_result sq_spent(struct bstore *s, const struct claim *c, const struct used *used,
                            const struct bstore_asked *asked)
{
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        r = sq_begin_fenced(l, c);
        r = sq_end(l, r == BS_OK ? add_used(l, c, used, asked) : r);
    } while (sq_again(l));
    return r;
}

enum bstore_result sq_plan(struct bstore *s, const struct claim *c, uint64_t n, const struct bstore_plan *p,
                           const struct digest *key)
{
    struct sq *l = sq_of(s);
    enum step_state state = STEP_NONE;
    bool answered = false;
    enum bstore_result r;
    do {
        if ((r = sq_begin_fenced(l, c)) == BS_OK)
            r = step_state(l, c, n, p->answer, &state, &answered);
        if (r == BS_OK && state == STEP_OPEN)
            r = add_plan(l, c, n, p, key);
        else if (r == BS_OK)
            r = state == STEP_PLANNED && answered ? same_calls(l, c, n, p, key) : BS_CONFLICT;
        r = sq_end(l, r);
    } while (sq_again(l));
    return r;
}

static struct sq_stmt *of_call(struct sq *l, unsigned sql, const struct claim *c, const struct sq_id *turn,
                               uint64_t n, uint64_t ord)
{
    struct sq_stmt *q = of_step(l, sql, c, turn, n);
    if (q != NULL)
        sq_int(q, 4, ord);
    return q;
}

enum bstore_result sq_stricter(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                               enum call_class class)
{
    struct sq *l = sq_of(s);
    struct sq_id turn = sq_id(&c->turn);
    enum bstore_result r;
    do {
        r = sq_begin_fenced(l, c);
        struct sq_stmt *q = r == BS_OK ? of_call(l, SQL_CALL_STRICTER, c, &turn, n, ord) : NULL;
        if (q != NULL) {
            sq_int(q, 5, class);
            r = sq_change(l, q, BS_NONE);
        }
        r = sq_end(l, r);
    } while (sq_again(l));
    return r;
}

/* What a call that is settled was settled as. */
static enum bstore_result as_before(struct sq *l, const struct claim *c, uint64_t n, uint64_t ord,
                                    const struct bstore_settled *how)
{
    struct sq_id turn = sq_id(&c->turn);
    struct sq_stmt *q = of_call(l, SQL_CALL_GET, c, &turn, n, ord);
    if (q == NULL)
        return BS_FAIL;
    enum sq_result got = sq_step(q);
    bool same = got == SQ_ROW && call_end_of(sq_col(q, 0)) == how->end && span_eq(sq_col(q, 1), how->result) &&
                span_eq(sq_col(q, 2), how->effect);
    sq_reset(q);
    return got == SQ_FAIL ? BS_FAIL : got == SQ_DONE ? BS_NONE : same ? BS_AGAIN : BS_CONFLICT;
}

enum bstore_result sq_call(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                           const struct bstore_settled *how)
{
    struct sq *l = sq_of(s);
    struct sq_id turn = sq_id(&c->turn);
    enum bstore_result r;
    do {
        r = sq_begin_fenced(l, c);
        struct sq_stmt *q = r == BS_OK ? of_call(l, SQL_CALL_SETTLE, c, &turn, n, ord) : NULL;
        if (q != NULL) {
            sq_text(q, 5, span_str(call_end_name(how->end)));
            sq_blob(q, 6, how->result);
            sq_bytes(q, 7, how->effect);
            sq_int(q, 8, l->now);
            r = sq_change(l, q, BS_NONE);
        }
        r = sq_end(l, r == BS_NONE ? as_before(l, c, n, ord, how) : r);
    } while (sq_again(l));
    return r;
}

/* --- settled ------------------------------------------------------------------------------ */

static enum bstore_result may_settle(struct sq *l, const struct claim *c, uint64_t n)
{
    struct sq_id turn = sq_id(&c->turn);
    enum step_state state;
    bool answered;
    uint64_t open;
    if (step_state(l, c, n, SPAN_NONE, &state, &answered) != BS_OK ||
        sq_number(l, of_step(l, SQL_CALLS_OPEN, c, &turn, n), &open) != 0)
        return BS_FAIL;
    return (state == STEP_OPEN || state == STEP_PLANNED) && open == 0 ? BS_OK : BS_CONFLICT;
}

static enum bstore_result settle_step(struct sq *l, const struct claim *c, uint64_t n,
                                      const struct bstore_checkpoint *p)
{
    struct sq_id turn = sq_id(&c->turn);
    struct sq_stmt *q = of_step(l, SQL_STEP_SETTLE, c, &turn, n);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 4, l->now);
    sq_blob(q, 5, p->message_state);
    sq_bytes(q, 6, p->filesystem_state_ref);
    sq_blob(q, 7, p->execution_state);
    sq_blob(q, 8, p->effect_log);
    if (sq_change(l, q, BS_FAIL) != BS_OK)
        return BS_FAIL;
    return sq_change(l, sq_stmt(l, SQL_TURN_STEP, claim_tenant(c), &turn), BS_FAIL);
}

static enum bstore_result set_phase(struct sq *l, const struct claim *c, struct span phase)
{
    struct sq_id id = sq_id(&c->conversation);
    if (phase.n == 0)
        return BS_OK;
    if (!span_eq(phase, SPAN("coding")) && !span_eq(phase, SPAN("building")) && !span_eq(phase, SPAN("deploying")) &&
        !span_eq(phase, SPAN("completed")))
        return BS_CONFLICT;
    struct sq_stmt *q = sq_stmt(l, SQL_CONVERSATION_PHASE, claim_tenant(c), &id);
    if (q == NULL)
        return BS_FAIL;
    sq_text(q, 3, phase);
    return sq_change(l, q, BS_FAIL);
}

enum bstore_result sq_settle(struct bstore *s, const struct claim *c, uint64_t n, const struct bstore_settle *what)
{
    struct sq *l = sq_of(s);
    uint64_t seq;
    enum bstore_result r;
    do {
        if ((r = sq_begin_fenced(l, c)) == BS_OK)
            r = may_settle(l, c, n);
        if (r == BS_OK)
            r = settle_step(l, c, n, &what->checkpoint);
        if (r == BS_OK)
            r = set_phase(l, c, what->phase);
        for (size_t i = 0; r == BS_OK && i < what->messages; i++)
            r = sq_message(l, c, &what->message[i], &seq);
        if (r == BS_OK)
            r = sq_append(l, c, what->event, what->events, &seq);
        if (r == BS_OK)
            r = sq_keep_record(l, c, what->record);
        r = sq_end(l, r);
    } while (sq_again(l));
    return r;
}
