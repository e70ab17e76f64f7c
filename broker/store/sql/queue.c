#include "broker/store/sql/sq.h"
#include "broker/store/sql/usage.h"

enum { LOOKED_AT_MAX = 64 }; /* turns set aside before one is handed out */

struct tenant_counts {
    uint64_t conversations, open, keys;
};

static enum bstore_result counts(struct sq *l, struct span tenant, struct tenant_counts *out)
{
    struct sq_stmt *q = sq_stmt(l, SQL_TENANT_ADD, tenant, NULL);
    if (q == NULL || sq_run(q) != 0 || (q = sq_stmt(l, SQL_TENANT_GET, tenant, NULL)) == NULL)
        return BS_FAIL;
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW)
        *out = (struct tenant_counts){sq_col_int(q, 0), sq_col_int(q, 1), sq_col_int(q, 2)};
    sq_reset(q);
    return got == SQ_ROW ? BS_OK : BS_FAIL;
}

/* Added to what is counted of a tenant. */
static enum bstore_result count(struct sq *l, struct span tenant, int conversations, int open, int keys)
{
    struct sq_stmt *q = sq_stmt(l, SQL_TENANT_COUNT, tenant, NULL);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 2, (uint64_t)(int64_t)conversations);
    sq_int(q, 3, (uint64_t)(int64_t)open);
    sq_int(q, 4, (uint64_t)(int64_t)keys);
    return sq_change(l, q, BS_FAIL);
}

/* --- asked for ------------------------------------------------------------------------ */

enum bstore_result sq_known(struct sq *l, const struct bstore_chat *in, struct bstore_chatted *out)
{
    struct digest request;
    struct sq_stmt *q;
    if (in->key.n == 0)
        return BS_NONE;
    if ((q = sq_stmt(l, SQL_KEY_GET, in->tenant, NULL)) == NULL)
        return BS_FAIL;
    sq_bytes(q, 2, in->key);
    enum sq_result got = sq_step(q);
    enum bstore_result r = got == SQ_DONE ? BS_NONE : BS_FAIL;
    if (got == SQ_ROW && sq_col_digest(q, 0, &request)) {
        bool same = memcmp(request.b, in->request.b, DIGEST_BYTES) == 0;
        r = same ? BS_AGAIN : BS_CONFLICT;
        if (same)
            *out =
                (struct bstore_chatted){sq_col_id(l, q, 1), sq_col_id(l, q, 2), sq_col_int(q, 3), sq_col_int(q, 4)};
    }
    sq_reset(q);
    return r;
}

static enum bstore_result room_in_talk(struct sq *l, struct span tenant, const struct id *conversation)
{
    struct sq_id id = sq_id(conversation);
    uint64_t n;
    struct sq_stmt *q = sq_stmt(l, SQL_CONVERSATION_GET, tenant, &id);
    int r = sq_number(l, q, &n);
    if (r != 0)
        return r > 0 ? BS_NONE : BS_FAIL;
    if (sq_number(l, sq_stmt(l, SQL_CONVERSATION_OPEN, tenant, &id), &n) != 0)
        return BS_FAIL;
    return n < BSTORE_TALK_MAX ? BS_OK : BS_FULL;
}

static enum bstore_result add_conversation(struct sq *l, struct span tenant, const struct tenant_counts *n,
                                           struct span private, struct id *out)
{
    if (n->conversations >= BSTORE_CONVERSATIONS_EACH)
        return BS_FULL;
    if (id_new(out) != 0) {
        sq_doom(l, "the system has no randomness to give");
        return BS_FAIL;
    }
    struct sq_id id = sq_id(out);
    struct sq_stmt *q = sq_stmt(l, SQL_CONVERSATION_ADD, tenant, &id);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, l->now);
    sq_blob(q, 4, private);
    return sq_run(q) == 0 ? count(l, tenant, 1, 0, 0) : BS_FAIL;
}

/* The conversation that was named, or a new one. */
static enum bstore_result conversation_of(struct sq *l, const struct bstore_chat *in, struct id *out)
{
    struct tenant_counts n = {0, 0, 0};
    enum bstore_result r = counts(l, in->tenant, &n);
    if (r != BS_OK)
        return r;
    if (n.open >= BSTORE_TURNS_EACH || (in->key.n && n.keys >= BSTORE_KEYS_EACH))
        return BS_FULL;
    *out = in->conversation;
    if (!id_is_none(out))
        return room_in_talk(l, in->tenant, out);
    return add_conversation(l, in->tenant, &n, in->private, out);
}

enum bstore_result sq_new_conversation(struct sq *l, struct span tenant, struct span private, struct id *out)
{
    struct tenant_counts n = {0, 0, 0};
    enum bstore_result r = counts(l, tenant, &n);
    return r == BS_OK ? add_conversation(l, tenant, &n, private, out) : r;
}

static enum bstore_result add_turn(struct sq *l, const struct bstore_chat *in, const struct claim *c)
{
    struct sq_id turn = sq_id(&c->turn), conversation = sq_id(&c->conversation);
    uint64_t nth;
    struct sq_stmt *q = sq_stmt(l, SQL_CONVERSATION_TURN, in->tenant, &conversation);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, l->now);
    if (sq_number(l, q, &nth) != 0 || (q = sq_stmt(l, SQL_TURN_ADD, in->tenant, &turn)) == NULL)
        return BS_FAIL;
    sq_text(q, 3, span_of(conversation.text, ID_TEXT));
    sq_int(q, 4, nth);
    sq_int(q, 5, l->now);
    sq_int(q, 6, in->budget.steps);
    sq_int(q, 7, in->budget.tokens);
    sq_int(q, 8, in->budget.cost_micro);
    sq_int(q, 9, in->budget.wall_ms);
    sq_int(q, 10, in->budget.same_calls);
    sq_blob(q, 11, in->body);
    return sq_run(q) == 0 ? count(l, in->tenant, 0, 1, 0) : BS_FAIL;
}

static enum bstore_result add_key(struct sq *l, const struct bstore_chat *in, const struct bstore_chatted *c)
{
    struct sq_id turn = sq_id(&c->turn), conversation = sq_id(&c->conversation);
    struct sq_stmt *q;
    if (in->key.n == 0)
        return BS_OK;
    if ((q = sq_stmt(l, SQL_KEY_ADD, in->tenant, NULL)) == NULL)
        return BS_FAIL;
    sq_bytes(q, 2, in->key);
    sq_blob(q, 3, span_of(in->request.b, DIGEST_BYTES));
    sq_text(q, 4, span_of(conversation.text, ID_TEXT));
    sq_text(q, 5, span_of(turn.text, ID_TEXT));
    sq_int(q, 6, c->log_epoch);
    sq_int(q, 7, c->log_seq);
    sq_int(q, 8, l->now);
    return sq_run(q) == 0 ? count(l, in->tenant, 0, 0, 1) : BS_FAIL;
}

/* The turn with the message that it is to answer, the event that says so, the key. */
enum bstore_result sq_add_chat(struct sq *l, const struct bstore_chat *in, struct bstore_chatted *out)
{
    char text[BSTORE_END_TEXT_MAX];
    struct claim c = {.tenant_n = in->tenant.n};
    struct budgets_stand budgets;
    uint64_t seq;
    enum bstore_result r = sq_in_budget(l, in->tenant, &budgets);
    if (r == BS_OK)
        r = conversation_of(l, in, &c.conversation);
    if (r != BS_OK)
        return r;
    memcpy(c.tenant, in->tenant.p, in->tenant.n);
    if (id_new(&c.turn) != 0) {
        sq_doom(l, "the system has no randomness to give");
        return BS_FAIL;
    }
    if ((r = add_turn(l, in, &c)) != BS_OK)
        return r;
    const struct bstore_event queued = bstore_queued_event(&c.turn, text);
    if ((r = sq_append(l, &c, &queued, 1, &seq)) != BS_OK)
        return r;
    *out = (struct bstore_chatted){c.conversation, c.turn, 1, seq - 1};
    return add_key(l, in, out);
}

enum bstore_result sq_chat(struct bstore *s, const struct bstore_chat *in, struct bstore_chatted *out)
{
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        r = sq_begin(l) != 0 ? BS_FAIL : sq_lock_tenant(l, SQL_TENANT_LOCK_NEW, in->tenant);
        if (r == BS_OK)
            r = sq_known(l, in, out);
        r = sq_end(l, r == BS_NONE ? sq_add_chat(l, in, out) : r);
    } while (sq_again(l));
    return r;
}

/* --- taken ------------------------------------------------------------------------------ */

struct next {
    bool ran; /* by a worker whose claim ran out */
    uint64_t lost;
    bool aside;
};
/* What is left out: a turn that ended so many workers. */
enum { LOST_ANY = INT32_MAX };

static uint64_t share(const struct sq *l)
{
    return l->face.share > 0 ? l->face.share : INT64_MAX;
}

static enum bstore_result next_of(struct sq *l, uint64_t lost, struct claim *c, struct next *out)
{
    struct sq_stmt *q = sq_get(l, SQL_CLAIM_NEXT);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 1, l->now);
    sq_int(q, 2, share(l));
    sq_int(q, 3, l->started);
    sq_int(q, 4, lost);
    enum sq_result got = sq_step(q);
    enum bstore_result r = got == SQ_DONE ? BS_NONE : BS_FAIL;
    if (got == SQ_ROW && sq_col(q, 0).n <= BSTORE_NAME_MAX) {
        struct span tenant = sq_col(q, 0);
        c->tenant_n = tenant.n;
        memcpy(c->tenant, tenant.p, tenant.n);
        c->turn = sq_col_id(l, q, 1);
        c->conversation = sq_col_id(l, q, 2);
        out->ran = span_eq(sq_col(q, 3), SPAN("running"));
        out->lost = sq_col_int(q, 4) + out->ran;
        /* A live replay has a sandbox that nobody uses any more: one worker more is to end that, and do nothing else
         */
        uint64_t most = BSTORE_LOST_MAX + (sq_col_int(q, 5) != 0);
        out->aside = out->ran && out->lost >= most;
        r = BS_OK;
    }
    sq_reset(q);
    return r;
}

static enum bstore_result take(struct sq *l, const struct next *n, uint64_t ms, struct claim *c)
{
    struct sq_id turn = sq_id(&c->turn), worker = sq_id(&c->worker);
    struct sq_stmt *q = sq_stmt(l, SQL_CLAIM_TAKE, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    sq_text(q, 3, span_of(worker.text, ID_TEXT));
    sq_int(q, 4, l->now);
    sq_int(q, 5, ms);
    sq_int(q, 6, n->lost);
    if (sq_number(l, q, &c->epoch) != 0)
        return BS_FAIL;
    return BS_OK;
}

/* Last of what a claim does. Two that take a turn of one tenant at once see here how many there are. */
static enum bstore_result served(struct sq *l, const struct claim *c)
{
    uint64_t over;
    if (sq_change(l, sq_stmt(l, SQL_TENANT_SERVED, claim_tenant(c), NULL), BS_FAIL) != BS_OK)
        return BS_FAIL;
    struct sq_stmt *q = sq_stmt(l, SQL_SHARE_OVER, claim_tenant(c), NULL);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 2, l->now);
    sq_int(q, 3, share(l));
    int r = sq_number(l, q, &over);
    return r < 0 ? BS_FAIL : r == 0 ? BS_NONE : BS_OK;
}

/* What was asked is among the conversation's messages from now on: behind what the turns before have said, and in no
 * prompt of theirs. */
static enum bstore_result say_asked(struct sq *l, const struct claim *c)
{
    struct sq_id turn = sq_id(&c->turn);
    uint64_t seq;
    struct sq_stmt *q = sq_stmt(l, SQL_TURN_ASKED, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    enum sq_result got = sq_step(q);
    const struct bstore_message m = {SPAN("user"), got == SQ_ROW ? sq_col(q, 0) : SPAN_NONE};
    enum bstore_result r = got == SQ_ROW ? sq_message(l, c, &m, &seq) : got == SQ_DONE ? BS_OK : BS_FAIL;
    sq_reset(q);
    return got == SQ_ROW && r == BS_OK ? sq_change(l, sq_stmt(l, SQL_TURN_SAID, claim_tenant(c), &turn), BS_FAIL) : r;
}

/* The next turn is taken, or (*aside) set aside. */
static enum bstore_result one(struct sq *l, uint64_t ms, uint64_t lost, struct claim *c, bool *aside)
{
    struct next n;
    enum bstore_result r = sq_begin(l) != 0 ? BS_FAIL : next_of(l, lost, c, &n);
    *aside = r == BS_OK && n.aside;
    if (r != BS_OK)
        return r;
    if (n.aside)
        return sq_set_aside(l, c);
    if ((r = take(l, &n, ms, c)) == BS_OK)
        r = say_asked(l, c);
    return r == BS_OK ? served(l, c) : r;
}

enum bstore_result sq_claim(struct bstore *s, const struct id *worker, uint64_t ms, struct claim *out)
{
    struct sq *l = sq_of(s);
    bool aside = true;
    uint64_t lost = LOST_ANY;
    enum bstore_result r = BS_OK;
    for (unsigned i = 0; r == BS_OK && aside && i < LOOKED_AT_MAX; i++) {
        do {
            *out = (struct claim){.worker = *worker};
            r = sq_end(l, one(l, ms, lost, out, &aside));
        } while (sq_again(l));
        if (r == BS_NONE && aside && lost == LOST_ANY) { /* its tenant's row is somebody's: the others do not wait */
            lost = BSTORE_LOST_MAX;
            r = BS_OK;
        }
    }
    return r == BS_OK && aside ? BS_NONE : r; /* the rest when it is asked again */
}

static enum bstore_result waiting(struct sq *l, uint64_t ms, struct bstore_waiting *out)
{
    struct sq_stmt *q = sq_get(l, SQL_WAITING);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 1, l->now);
    sq_int(q, 2, l->now > ms ? l->now - ms : 0);
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW)
        *out = (struct bstore_waiting){sq_col_int(q, 0), sq_col_int(q, 1), sq_col_int(q, 2)};
    sq_reset(q);
    return got == SQ_ROW ? BS_OK : BS_FAIL;
}

/* It looks for what sq_claim would take, but for a tenant's share: where nothing is run, nobody has had that. */
enum bstore_result sq_waiting(struct bstore *s, uint64_t ms, struct bstore_waiting *out)
{
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        r = sq_end(l, sq_begin_read(l) != 0 ? BS_FAIL : waiting(l, ms, out));
    } while (sq_again(l));
    return r;
}

enum bstore_result sq_extend(struct bstore *s, const struct claim *c, bool *cancelled)
{
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        r = sq_end(l, sq_begin(l) != 0 ? BS_FAIL : sq_fence(l, c, cancelled));
    } while (sq_again(l));
    return r;
}

static enum bstore_result give_back(struct sq *l, const struct claim *c, uint64_t after_ms)
{
    struct sq_id turn = sq_id(&c->turn);
    struct sq_stmt *q = sq_stmt(l, SQL_TURN_RELEASE, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, l->now + after_ms);
    l->told = true;
    return sq_change(l, q, BS_FAIL);
}

enum bstore_result sq_release(struct bstore *s, const struct claim *c, uint64_t after_ms)
{
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        r = sq_begin_fenced(l, c);
        r = sq_end(l, r == BS_OK ? give_back(l, c, after_ms) : r);
    } while (sq_again(l));
    return r;
}

/* --- over ------------------------------------------------------------------------------- */

enum bstore_result sq_over(struct sq *l, const struct claim *c, enum turn_end end, struct span why)
{
    char text[BSTORE_END_TEXT_MAX];
    struct sq_id turn = sq_id(&c->turn);
    uint64_t seq;
    struct sq_stmt *q = sq_stmt(l, SQL_TURN_END, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    sq_text(q, 3, end == END_SET_ASIDE ? SPAN("aside") : SPAN("done"));
    sq_text(q, 4, span_str(turn_end_name(end)));
    sq_bytes(q, 5, why);
    sq_int(q, 6, l->now);
    if (sq_change(l, q, BS_FAIL) != BS_OK || count(l, claim_tenant(c), 0, -1, 0) != BS_OK)
        return BS_FAIL;
    const struct bstore_event done = bstore_end_event(&c->turn, end, why, text);
    return sq_append(l, c, &done, 1, &seq);
}

/* No call of its open step is without an end. */
static enum bstore_result all_settled(struct sq *l, const struct claim *c)
{
    struct sq_id turn = sq_id(&c->turn);
    uint64_t open, calls = 0;
    int r = sq_number(l, sq_stmt(l, SQL_LOAD_OPEN, claim_tenant(c), &turn), &open);
    if (r != 0)
        return r > 0 ? BS_OK : BS_FAIL;
    struct sq_stmt *q = sq_stmt(l, SQL_CALLS_OPEN, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 3, open);
    return sq_number(l, q, &calls) != 0 ? BS_FAIL : calls == 0 ? BS_OK : BS_CONFLICT;
}

enum bstore_result sq_finish(struct bstore *s, const struct claim *c, enum turn_end end, struct span why)
{
    struct sq *l = sq_of(s);
    bool cancelled;
    enum bstore_result r;
    do {
        r = sq_begin(l) != 0 ? BS_FAIL : sq_lock_tenant(l, SQL_TENANT_LOCK, claim_tenant(c));
        if (r == BS_OK)
            r = sq_fence(l, c, &cancelled);
        if (r == BS_OK && end == END_SET_ASIDE)
            r = sq_set_aside(l, c);
        else if (r == BS_OK && (r = all_settled(l, c)) == BS_OK)
            r = sq_over(l, c, end, why);
        r = sq_end(l, r);
    } while (sq_again(l));
    return r;
}

static enum bstore_result cancel(struct sq *l, struct span tenant, const struct id *turn)
{
    struct sq_id id = sq_id(turn);
    struct claim c = {.turn = *turn, .tenant_n = tenant.n};
    struct sq_stmt *q = sq_stmt(l, SQL_TURN_CANCEL, tenant, &id);
    if (q == NULL)
        return BS_FAIL;
    memcpy(c.tenant, tenant.p, tenant.n);
    sq_int(q, 3, l->now); /* whoever is to end it does not wait out why it was given back */
    enum sq_result got = sq_step(q);
    if (got == SQ_ROW) {
        c.epoch = sq_col_int(q, 0);
        c.conversation = sq_col_id(l, q, 1);
    }
    sq_reset(q);
    if (got != SQ_ROW)
        return got == SQ_DONE ? BS_NONE : BS_FAIL;
    l->told = true;
    return c.epoch == 0 ? sq_over(l, &c, END_CANCELLED, SPAN_NONE) : BS_OK;
}

enum bstore_result sq_cancel(struct bstore *s, struct span tenant, const struct id *turn)
{
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        r = sq_begin(l) != 0 ? BS_FAIL : sq_lock_tenant(l, SQL_TENANT_LOCK, tenant);
        r = sq_end(l, r == BS_OK ? cancel(l, tenant, turn) : r);
    } while (sq_again(l));
    return r;
}

static enum bstore_result sweep(struct sq *l)
{
    struct sq_stmt *q = sq_get(l, SQL_KEYS_OLD);
    if (q == NULL)
        return BS_FAIL;
    sq_int(q, 1, l->now > BSTORE_KEY_AGE_MAX ? l->now - BSTORE_KEY_AGE_MAX : 0);
    if (sq_run(q) != 0 || (q = sq_get(l, SQL_KEYS_COUNT)) == NULL || sq_run(q) != 0)
        return BS_FAIL;
    return BS_OK;
}

enum bstore_result sq_sweep(struct bstore *s)
{
    struct sq *l = sq_of(s);
    enum bstore_result r;
    do {
        r = sq_end(l, sq_begin(l) != 0 ? BS_FAIL : sweep(l));
    } while (sq_again(l));
    return r;
}
