#include "broker/store/sql/sq.h"

static struct span keep(struct sq *l, struct arena *a, struct span v)
{
    struct span copy = arena_copy(a, v);
    if (v.n && copy.p == NULL)
        sq_doom(l, "what was left of the turn is more than may be read at once");
    return copy;
}

/* "TURN": with what its calls gave; "TURN MODEL": live. */
static void replays(struct sq *l, struct span of, struct arena *a, struct bstore_turn *out)
{
    out->replays = of.n > 0 && of.n <= ID_TEXT;
    if (of.n > ID_TEXT)
        out->live = keep(l, a, span_from(of, ID_TEXT + 1));
}

static enum bstore_result turn_row(struct sq *l, struct sq_stmt *q, struct arena *a, struct bstore_turn *out)
{
    if (q == NULL)
        return BS_FAIL;
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW) {
        out->started_ms = sq_col_int(q, 0);
        out->lost = sq_col_int(q, 1);
        out->cancelled = sq_col_int(q, 2) != 0;
        out->budget =
            (struct budget){sq_col_int(q, 3), sq_col_int(q, 4), sq_col_int(q, 5), sq_col_int(q, 6), sq_col_int(q, 7)};
        out->used = (struct used){sq_col_int(q, 8), sq_col_int(q, 9), sq_col_int(q, 10)};
        replays(l, sq_col(q, 11), a, out);
        out->private = keep(l, a, sq_col(q, 12));
    }
    sq_reset(q);
    return got == SQ_ROW ? BS_OK : BS_FAIL;
}

/* Of the last settled step of this turn; if there is none, of the turn before it what outlives a turn. */
static enum bstore_result checkpoint(struct sq *l, struct span tenant, const struct sq_id *turn, struct arena *a,
                                     struct bstore_turn *out)
{
    struct sq_stmt *q = sq_stmt(l, SQL_LOAD_SETTLED, tenant, turn);
    enum sq_result got = q == NULL ? SQ_FAIL : sq_step(q);
    if (got == SQ_ROW) {
        out->checkpoint.execution_state = keep(l, a, sq_col(q, 2));
        out->checkpoint.effect_log = keep(l, a, sq_col(q, 3));
        out->settled = sq_col_int(q, 4);
    } else if (got == SQ_DONE) {
        q = sq_stmt(l, SQL_LOAD_BEFORE, tenant, turn);
        got = q == NULL ? SQ_FAIL : sq_step(q);
    }
    if (got == SQ_ROW) {
        out->checkpoint.message_state = keep(l, a, sq_col(q, 0));
        out->checkpoint.filesystem_state_ref = keep(l, a, sq_col(q, 1));
    }
    if (q != NULL)
        sq_reset(q);
    return got == SQ_FAIL ? BS_FAIL : BS_OK;
}

static enum bstore_result open_step(struct sq *l, struct span tenant, const struct sq_id *turn, struct arena *a,
                                    struct bstore_turn *out)
{
    struct sq_stmt *q = sq_stmt(l, SQL_LOAD_OPEN, tenant, turn);
    if (q == NULL)
        return BS_FAIL;
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW) {
        out->open = sq_col_int(q, 0);
        out->attempts = sq_col_int(q, 1);
        out->planned = span_eq(sq_col(q, 2), SPAN("planned"));
        out->answer = keep(l, a, sq_col(q, 3));
        out->kind = keep(l, a, sq_col(q, 4));
    }
    sq_reset(q);
    return got == SQ_FAIL ? BS_FAIL : BS_OK;
}

/* Whose record has its calls. */
static enum bstore_result elsewhere(struct sq *l, struct span tenant, const struct sq_id *turn,
                                    struct bstore_turn *out)
{
    uint64_t one;
    struct sq_stmt *q = sq_stmt(l, SQL_LOAD_ELSEWHERE, tenant, turn);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, out->open);
    sq_text(q, 4, span_str(l->face.home));
    int r = sq_number(l, q, &one);
    out->elsewhere = r == 0;
    return r < 0 ? BS_FAIL : BS_OK;
}

static bool one_call(struct sq *l, struct sq_stmt *q, struct arena *a, struct bstore_found_call *out)
{
    uint64_t class = sq_col_int(q, 2);
    *out = (struct bstore_found_call){
        .call = {keep(l, a, sq_col(q, 0)), keep(l, a, sq_col(q, 1)),
                 class < CALL_CLASSES ? (enum call_class) class : CALL_UNSAFE},
        .settled = {call_end_of(sq_col(q, 4)), keep(l, a, sq_col(q, 5)), keep(l, a, sq_col(q, 6))},
        .intent_ms = sq_col_int(q, 7)};
    return sq_col_digest(q, 3, &out->key);
}

static enum bstore_result calls(struct sq *l, struct span tenant, const struct sq_id *turn, struct arena *a,
                                struct bstore_turn *out)
{
    enum sq_result got = SQ_DONE;
    struct sq_stmt *q = sq_stmt(l, SQL_LOAD_CALLS, tenant, turn);
    out->call = arena_alloc(a, TURN_CALLS_MAX * sizeof(*out->call));
    if (q == NULL || out->call == NULL)
        return BS_FAIL;
    sq_int(q, 3, out->open);
    while (!l->doomed && out->calls < TURN_CALLS_MAX && (got = sq_step(q)) == SQ_ROW)
        if (!one_call(l, q, a, &out->call[out->calls++]))
            sq_doom(l, "a key in the store is none");
    sq_reset(q);
    return l->doomed ? BS_FAIL : BS_OK;
}

enum bstore_result sq_load(struct bstore *s, const struct claim *c, struct arena *a, struct bstore_turn *out)
{
    struct sq *l = sq_of(s);
    struct sq_id turn = sq_id(&c->turn);
    struct span tenant = claim_tenant(c);
    enum bstore_result r;
    do {
        r = sq_begin_fenced(l, c);
        *out = (struct bstore_turn){.now_ms = l->now};
        if (r == BS_OK)
            r = turn_row(l, sq_stmt(l, SQL_LOAD_TURN, tenant, &turn), a, out);
        if (r == BS_OK)
            r = checkpoint(l, tenant, &turn, a, out);
        if (r == BS_OK)
            r = open_step(l, tenant, &turn, a, out);
        if (r == BS_OK && out->planned)
            r = calls(l, tenant, &turn, a, out);
        if (r == BS_OK && out->planned)
            r = elsewhere(l, tenant, &turn, out);
        r = sq_end(l, r);
    } while (sq_again(l));
    return r;
}
