#include "broker/store/sql/sq.h"
#include "broker/store/sql/usage.h"

#include <stdio.h>

static void sq_close(struct bstore *s)
{
    struct sq *l = sq_of(s);
    l->base->close(l);
}

static const char *sq_why(struct bstore *s)
{
    return sq_of(s)->why;
}

uint64_t sq_pulse(struct bstore *s)
{
    struct sq *l = sq_of(s);
    return l->base->pulse(l);
}

static const struct bstore_ops ops = {
    .close = sq_close,
    .why = sq_why,
    .chat = sq_chat,
    .claim = sq_claim,
    .extend = sq_extend,
    .release = sq_release,
    .load = sq_load,
    .step = sq_step_begin,
    .plan = sq_plan,
    .ask = sq_ask,
    .budgets = sq_budgets,
    .spent = sq_spent,
    .stricter = sq_stricter,
    .call = sq_call,
    .settle = sq_settle,
    .log = sq_log,
    .finish = sq_finish,
    .cancel = sq_cancel,
    .turn = sq_turn,
    .events = sq_events,
    .messages = sq_messages,
    .queued = sq_queued,
    .ended = sq_ended,
    .conversations = sq_conversations,
    .lately = sq_lately,
    .fork = sq_fork,
    .record = sq_record,
    .recorded = sq_recorded,
    .turns = sq_turns,
    .replay = sq_replay,
    .live = sq_live,
    .replayed = sq_replayed,
    .usage = sq_usage,
    .tenant = sq_tenant_after,
    .waiting = sq_waiting,
    .pulse = sq_pulse,
    .sweep = sq_sweep,
};

void sq_init(struct sq *l, const struct sq_base *base, const struct bstore_test *test)
{
    l->face.ops = &ops;
    l->base = base;
    l->test = test;
    for (unsigned i = 0; i < SQL_COUNT; i++) {
        l->stmt[i].of = l;
        l->stmt[i].id = (enum sql_id)i;
    }
}

/* --- a transaction ---------------------------------------------------------------- */

int sq_doom(struct sq *l, const char *why)
{
    if (!l->doomed)
        err_set(&l->doom, "%s", why);
    l->doomed = true;
    return -1;
}

static int begin(struct sq *l, bool reads)
{
    l->told = l->again = false;
    if (l->base->begin(l, reads) != 0)
        return sq_doom(l, "the database cannot begin");
    if (l->test != NULL && l->test->now_ms != NULL)
        l->now = l->test->now_ms(l->test->arg);
    return 0;
}

int sq_begin(struct sq *l)
{
    return begin(l, false);
}

int sq_begin_read(struct sq *l)
{
    return begin(l, true);
}

enum bstore_result sq_end(struct sq *l, enum bstore_result r)
{
    l->why[0] = '\0';
    if (l->doomed)
        r = BS_FAIL;
    if (r == BS_OK && l->base->commit(l) != 0)
        r = BS_FAIL;
    if (r == BS_FAIL)
        (void)snprintf(l->why, sizeof(l->why), "%s", l->doomed ? l->doom.text : "what is stored is not as it was");
    if (r != BS_OK)
        l->base->rollback(l);
    l->doomed = false;
    l->again = r == BS_FAIL && l->base->again(l);
    return r;
}

bool sq_again(struct sq *l)
{
    return l->again;
}

/* --- statements --------------------------------------------------------------------- */

struct sq_stmt *sq_get(struct sq *l, unsigned sql)
{
    struct sq_stmt *q = &l->stmt[sql];
    sq_reset(q);
    q->values = 0;
    q->changes = 0;
    return l->doomed ? NULL : q;
}

struct sq_stmt *sq_stmt(struct sq *l, unsigned sql, struct span tenant, const struct sq_id *id)
{
    struct sq_stmt *q = sq_get(l, sql);
    if (q == NULL)
        return NULL;
    sq_bytes(q, 1, tenant);
    if (id != NULL)
        sq_text(q, 2, span_of(id->text, ID_TEXT));
    return q;
}

static void value(struct sq_stmt *q, unsigned at, struct sq_value v)
{
    if (at < 1 || at > SQ_VALUES_MAX) {
        (void)sq_doom(q->of, "a statement has more values than it may");
        return;
    }
    for (; q->values < at; q->values++)
        q->value[q->values].kind = SQ_NONE;
    q->value[at - 1] = v;
}

void sq_int(struct sq_stmt *q, unsigned at, uint64_t v)
{
    value(q, at, (struct sq_value){.kind = SQ_INT, .number = v});
}

void sq_text(struct sq_stmt *q, unsigned at, struct span v)
{
    value(q, at, (struct sq_value){.kind = SQ_TEXT, .bytes = v});
}

void sq_bytes(struct sq_stmt *q, unsigned at, struct span v)
{
    value(q, at, (struct sq_value){.kind = SQ_BYTES, .bytes = v});
}

void sq_blob(struct sq_stmt *q, unsigned at, struct span v)
{
    value(q, at, (struct sq_value){.kind = SQ_BLOB, .bytes = v});
}

void sq_null(struct sq_stmt *q, unsigned at)
{
    if (at >= 1 && at <= q->values)
        q->value[at - 1].null = true;
}

enum sq_result sq_step(struct sq_stmt *q)
{
    if (q->of->doomed)
        return SQ_FAIL;
    return q->of->base->step(q);
}

int sq_run(struct sq_stmt *q)
{
    enum sq_result got;
    do {
        got = sq_step(q);
    } while (got == SQ_ROW);
    return got == SQ_DONE ? 0 : -1;
}

void sq_reset(struct sq_stmt *q)
{
    if (q->native != NULL)
        q->of->base->reset(q);
    q->ran = false;
}

struct span sq_col(struct sq_stmt *q, int at)
{
    return q->of->base->col(q, at);
}

uint64_t sq_col_int(struct sq_stmt *q, int at)
{
    return q->of->base->col_int(q, at);
}

bool sq_col_null(struct sq_stmt *q, int at)
{
    return q->of->base->col_null(q, at);
}

bool sq_col_digest(struct sq_stmt *q, int at, struct digest *d)
{
    struct span v = sq_col(q, at);
    if (v.n != DIGEST_BYTES)
        return false;
    memcpy(d->b, v.p, DIGEST_BYTES);
    return true;
}

struct sq_id sq_id(const struct id *id)
{
    struct sq_id out;
    id_text(id, out.text);
    return out;
}

struct id sq_col_id(struct sq *l, struct sq_stmt *q, int at)
{
    struct id id = {{0}};
    if (id_parse(sq_col(q, at), &id) != 0)
        (void)sq_doom(l, "an id in the store is none");
    return id;
}

int sq_number(struct sq *l, struct sq_stmt *q, uint64_t *out)
{
    enum sq_result got = q == NULL ? SQ_FAIL : sq_step(q);
    *out = 0;
    if (got == SQ_ROW)
        *out = sq_col_int(q, 0);
    if (q != NULL)
        sq_reset(q);
    return got == SQ_ROW ? 0 : got == SQ_DONE ? 1 : -1;
}

enum bstore_result sq_change(struct sq *l, struct sq_stmt *q, enum bstore_result none)
{
    if (q == NULL || sq_run(q) != 0)
        return BS_FAIL;
    return q->changes > 0 ? BS_OK : none;
}

/* --- whose it is ---------------------------------------------------------------------- */

enum bstore_result sq_lock_tenant(struct sq *l, unsigned sql, struct span tenant)
{
    struct sq_stmt *q = sq_stmt(l, sql, tenant, NULL);
    return q != NULL && sq_run(q) == 0 ? BS_OK : BS_FAIL;
}

enum bstore_result sq_fence(struct sq *l, const struct claim *c, bool *cancelled)
{
    struct sq_id turn = sq_id(&c->turn), worker = sq_id(&c->worker), conversation = sq_id(&c->conversation);
    uint64_t flag;
    struct sq_stmt *q = sq_stmt(l, SQL_FENCE, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, c->epoch);
    sq_text(q, 4, span_of(worker.text, ID_TEXT));
    sq_int(q, 5, l->now);
    sq_text(q, 6, span_of(conversation.text, ID_TEXT));
    int r = sq_number(l, q, &flag);
    *cancelled = flag != 0;
    return r == 0 ? BS_OK : r > 0 ? BS_FENCED : BS_FAIL;
}

enum bstore_result sq_begin_fenced(struct sq *l, const struct claim *c)
{
    bool cancelled;
    return sq_begin(l) != 0 ? BS_FAIL : sq_fence(l, c, &cancelled);
}
