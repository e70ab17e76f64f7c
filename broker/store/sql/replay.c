/* A turn that is asked once more, and what its calls gave then. */
#include "broker/store/sql/fork.h"
#include "common/json/json.h"

enum { MESSAGE_ARENA_MAX = 64 * 1024 * 1024 };

static enum bstore_result budget_of(struct sq *l, struct span tenant, const struct sq_id *turn,
                                    struct id *conversation, struct budget *b)
{
    struct sq_stmt *q = sq_stmt(l, SQL_REPLAY_OF, tenant, turn);
    bool may = false;
    if (q == NULL)
        return BS_FAIL;
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW) {
        *conversation = sq_col_id(l, q, 0);
        *b =
            (struct budget){sq_col_int(q, 1), sq_col_int(q, 2), sq_col_int(q, 3), sq_col_int(q, 4), sq_col_int(q, 5)};
        may = sq_col_int(q, 6) != 0;
    }
    sq_reset(q);
    return got == SQ_FAIL ? BS_FAIL : got == SQ_DONE ? BS_NONE : may ? BS_OK : BS_CONFLICT;
}

/* What was asked by it, and how many messages stood before that. */
static enum bstore_result asked(struct sq *l, struct span tenant, const struct sq_id *conversation,
                                const struct sq_id *turn, struct dynbuf *body, uint64_t *before)
{
    struct sq_stmt *q = sq_stmt(l, SQL_REPLAY_ASKED, tenant, conversation);
    if (q == NULL)
        return BS_FAIL;
    sq_text(q, 3, span_of(turn->text, ID_TEXT));
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW) {
        *before = sq_col_int(q, 0) - 1;
        (void)dynbuf_add(body, sq_col(q, 1));
    }
    sq_reset(q);
    return got == SQ_FAIL || !dynbuf_ok(body) ? BS_FAIL : got == SQ_ROW ? BS_OK : BS_CONFLICT;
}

/* Who asked the recorded turn does not ask this one: what it wants approved is not theirs, and nobody's yes to it is
 * one to somebody else's. *body: what was asked; -1: it is not understood, or there is no memory. */
static int nobodys(struct dynbuf *body)
{
    struct dynbuf b;
    struct jsonw w;
    struct arena a;
    arena_init(&a, MESSAGE_ARENA_MAX);
    dynbuf_init(&b, BSTORE_BODY_MAX);
    const struct json *j = json_parse(dynbuf_span(body), &a);
    bool ok = j != NULL && j->type == JSON_OBJECT, by = json_get(j, SPAN("by")) != NULL;
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    for (const struct json *m = ok ? j->child : NULL; m != NULL; m = m->next)
        if (!span_eq(m->key, SPAN("by"))) {
            jsonw_name(&w, m->key);
            jsonw_tree(&w, m);
        }
    jsonw_end_object(&w);
    ok = ok && dynbuf_ok(&b);
    if (ok && by) {
        dynbuf_reset(body);
        ok = dynbuf_add(body, dynbuf_span(&b)) == 0;
    }
    dynbuf_free(&b);
    arena_free(&a);
    return ok ? 0 : -1;
}

/* live: the model, or empty. */
static enum bstore_result set(struct sq *l, struct span tenant, const struct id *made, const struct sq_id *turn,
                              struct span live)
{
    struct sq_id id = sq_id(made);
    struct sq_stmt *q = sq_stmt(l, SQL_REPLAY_SET, tenant, &id);
    struct dynbuf of;
    if (q == NULL)
        return BS_FAIL;
    dynbuf_init(&of, ID_TEXT + 1 + BSTORE_NAME_MAX);
    (void)dynbuf_add(&of, span_of(turn->text, ID_TEXT));
    if (live.n > 0 && dynbuf_add_byte(&of, ' ') == 0)
        (void)dynbuf_add(&of, live);
    sq_text(q, 3, dynbuf_span(&of));
    enum bstore_result r = dynbuf_ok(&of) ? sq_change(l, q, BS_FAIL) : BS_FAIL;
    dynbuf_free(&of);
    return r;
}

/* Did the conversation have a sandbox before this turn, or may it have had one? What is not settled says nothing, and
 * a worker may have been lost between its sandbox's start and the checkpoint that names it: any call may have had
 * one.
 */
static enum bstore_result files(struct sq *l, struct span tenant, const struct sq_id *turn)
{
    uint64_t n;
    if (sq_number(l, sq_stmt(l, SQL_REPLAY_FILES, tenant, turn), &n) != 0)
        return BS_FAIL;
    return n > 0 ? BS_LOST : BS_OK;
}

static void lower(uint64_t *bound, uint64_t most)
{
    if (most > 0 && (*bound == 0 || most < *bound))
        *bound = most;
}

/* Which models may see its conversation; is the one of a live replay among them? */
static enum bstore_result privacy(struct sq *l, struct span tenant, const struct sq_id *conversation,
                                  struct span model, struct dynbuf *private)
{
    enum bstore_result r = sq_private(l, tenant, conversation, private);
    struct span rest = dynbuf_span(private), name;
    bool may = rest.n == 0 || model.n == 0;
    while (!may && rest.n > 0) {
        (void)span_cut(rest, '\n', &name, &rest);
        may = span_eq(name, model);
    }
    return r == BS_OK && !may ? BS_PRIVATE : r;
}

/* How it is asked once more; of one with recorded tools the tenant and the turn alone. */
static enum bstore_result replay(struct sq *l, const struct bstore_live *how, struct bstore_chatted *out)
{
    struct span tenant = how->tenant;
    struct sq_id id = sq_id(&how->turn), from, to;
    struct id conversation = {{0}};
    struct bstore_chat in = {.tenant = tenant, .key = how->key, .request = how->request};
    struct dynbuf body, private;
    uint64_t before = 0;
    dynbuf_init(&body, BSTORE_BODY_MAX);
    dynbuf_init(&private, BSTORE_PRIVATE_MAX);
    enum bstore_result r = budget_of(l, tenant, &id, &conversation, &in.budget);
    from = sq_id(&conversation);
    if (r == BS_OK)
        r = privacy(l, tenant, &from, how->model, &private);
    if (r == BS_OK && how->model.n > 0)
        r = files(l, tenant, &id);
    if (r == BS_OK)
        r = asked(l, tenant, &from, &id, &body, &before);
    if (r == BS_OK && nobodys(&body) != 0) {
        sq_doom(l, "what the recorded turn was asked is not understood");
        r = BS_FAIL;
    }
    in.body = dynbuf_span(&body);
    in.private = dynbuf_span(&private);
    lower(&in.budget.cost_micro, how->cost_most);
    lower(&in.budget.wall_ms, how->wall_ms);
    if (r == BS_OK)
        r = sq_add_chat(l, &in, out);
    to = sq_id(&out->conversation);
    if (r == BS_OK)
        r = sq_copy(l, tenant, &from, &to, before);
    if (r == BS_OK)
        r = set(l, tenant, &out->turn, &id, how->model);
    dynbuf_free(&body);
    dynbuf_free(&private);
    return r;
}

enum bstore_result sq_live(struct bstore *s, const struct bstore_live *in, struct bstore_chatted *out)
{
    const struct bstore_chat key = {.tenant = in->tenant, .key = in->key, .request = in->request};
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        r = sq_begin(l) != 0 ? BS_FAIL : sq_lock_tenant(l, SQL_TENANT_LOCK, in->tenant);
        if (r == BS_OK)
            r = sq_known(l, &key, out);
        r = sq_end(l, r == BS_NONE ? replay(l, in, out) : r);
    } while (sq_again(l));
    return r;
}

enum bstore_result sq_replay(struct bstore *s, struct span tenant, const struct id *turn, struct bstore_chatted *out)
{
    const struct bstore_live how = {.tenant = tenant, .turn = *turn};
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        r = sq_begin(l) != 0 ? BS_FAIL : sq_lock_tenant(l, SQL_TENANT_LOCK, tenant);
        r = sq_end(l, r == BS_OK ? replay(l, &how, out) : r);
    } while (sq_again(l));
    return r;
}

static struct sq_stmt *alike(struct sq *l, unsigned sql, const struct claim *c, const struct sq_id *turn,
                             const struct bstore_call *call)
{
    struct sq_stmt *q = sq_stmt(l, sql, claim_tenant(c), turn);
    if (q != NULL) {
        sq_bytes(q, 3, call->tool);
        sq_blob(q, 4, call->args);
    }
    return q;
}

static enum bstore_result then(struct sq *l, const struct claim *c, const struct sq_id *turn, uint64_t nth,
                               const struct bstore_call *call, struct arena *a, struct bstore_replayed *out)
{
    struct sq_stmt *q = alike(l, SQL_REPLAYED, c, turn, call);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 5, nth);
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW) {
        struct span result = sq_col(q, 1);
        out->end = call_end_of(sq_col(q, 0));
        out->result = arena_copy(a, result);
        if (result.n > 0 && out->result.p == NULL)
            sq_doom(l, "what was read is more than may be read at once");
    }
    sq_reset(q);
    return got == SQ_FAIL ? BS_FAIL : BS_OK;
}

enum bstore_result sq_replayed(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                               const struct bstore_call *call, struct arena *a, struct bstore_replayed *out)
{
    struct sq *l = sq_of(s);
    struct sq_id turn = sq_id(&c->turn);
    enum bstore_result r;
    do {
        uint64_t nth = 0;
        *out = (struct bstore_replayed){.end = CALL_OPEN};
        r = sq_begin_fenced(l, c);
        struct sq_stmt *q = r == BS_OK ? alike(l, SQL_REPLAY_NTH, c, &turn, call) : NULL;
        if (q != NULL) {
            sq_int(q, 5, n);
            sq_int(q, 6, ord);
            r = sq_number(l, q, &nth) == 0 ? then(l, c, &turn, nth, call, a, out) : BS_FAIL;
        }
        r = sq_end(l, r == BS_OK && q == NULL ? BS_FAIL : r);
    } while (sq_again(l));
    return r;
}
