/* A turn that ended too many workers is set aside. No worker is left to say what its calls did: that is said here, to
 * the model of the conversation's next turn. */
#include "broker/store/sql/sq.h"

/* One that has no end may have happened. */
static void put_call(struct dynbuf *b, struct sq_stmt *q, uint64_t calls)
{
    enum call_end end = call_end_of(sq_col(q, 4));
    struct span result = sq_col(q, 5);
    if (end == CALL_OPEN) {
        end = CALL_UNKNOWN;
        result = span_str(call_end_words(CALL_UNKNOWN));
    }
    recalled_call(b, sq_col(q, 0), sq_col(q, 1), end, span_first(result, RECALLED_RESULT / calls));
}

static enum bstore_result put_calls(struct sq *l, const struct claim *c, uint64_t step, struct dynbuf *b,
                                    uint64_t *calls)
{
    struct sq_id turn = sq_id(&c->turn);
    enum sq_result got;
    struct sq_stmt *q = sq_stmt(l, SQL_CALLS_COUNT, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, step);
    if (sq_number(l, q, calls) != 0)
        return BS_FAIL;
    if (*calls == 0)
        return BS_OK;
    if ((q = sq_stmt(l, SQL_LOAD_CALLS, claim_tenant(c), &turn)) == NULL)
        return BS_FAIL;
    sq_int(q, 3, step);
    while ((got = sq_step(q)) == SQ_ROW)
        put_call(b, q, *calls);
    return got == SQ_DONE ? BS_OK : BS_FAIL;
}

static enum bstore_result say_calls(struct sq *l, const struct claim *c, uint64_t step)
{
    struct dynbuf text, body;
    uint64_t calls, seq;
    dynbuf_init(&text, BSTORE_BODY_MAX);
    dynbuf_init(&body, 0);
    recalled_begin(&text);
    enum bstore_result r = put_calls(l, c, step, &text, &calls);
    if (r == BS_OK && calls > 0) {
        bool ok = bstore_recalled(&text, &body);
        const struct bstore_message m = {SPAN("recalled"), dynbuf_span(&body)};
        if (!ok)
            sq_doom(l, "no memory for what a turn's calls did");
        r = ok ? sq_message(l, c, &m, &seq) : BS_FAIL;
    }
    dynbuf_free(&body);
    dynbuf_free(&text);
    return r;
}

enum bstore_result sq_set_aside(struct sq *l, const struct claim *c)
{
    struct sq_id turn = sq_id(&c->turn);
    uint64_t step;
    /* Who takes a turn has its row, and does not wait for the tenant's: it is had at once, or another time. */
    if (sq_number(l, sq_stmt(l, SQL_TENANT_TRY, claim_tenant(c), NULL), &step) != 0)
        return l->doomed ? BS_FAIL : BS_NONE;
    int open = sq_number(l, sq_stmt(l, SQL_LOAD_OPEN, claim_tenant(c), &turn), &step);
    enum bstore_result r = open < 0 ? BS_FAIL : open > 0 ? BS_OK : say_calls(l, c, step);
    return r == BS_OK ? sq_over(l, c, END_SET_ASIDE, SPAN_NONE) : r;
}
