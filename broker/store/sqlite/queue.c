#include "broker/store/sqlite/lite.h"

enum { LOOKED_AT_MAX = 64 }; /* turns set aside before one is handed out */

struct tenant_counts {
    uint64_t conversations, open, keys;
};

static enum bstore_result counts(struct lite *l, struct span tenant, struct tenant_counts *out)
{
    sqlite3_stmt *q = lite_stmt(l, SQL_TENANT_ADD, tenant, NULL);
    if (q == NULL || db_run(&l->db, q) != 0 || (q = lite_stmt(l, SQL_TENANT_GET, tenant, NULL)) == NULL)
        return BS_FAIL;
    enum db_result got = db_step(&l->db, q);
    if (got == DB_ROW)
        *out = (struct tenant_counts){db_col_int(q, 0), db_col_int(q, 1), db_col_int(q, 2)};
    sqlite3_reset(q);
    return got == DB_ROW ? BS_OK : BS_FAIL;
}

/* Added to what is counted of a tenant. */
static enum bstore_result count(struct lite *l, struct span tenant, int conversations, int open, int keys)
{
    sqlite3_stmt *q = lite_stmt(l, SQL_TENANT_COUNT, tenant, NULL);
    if (q == NULL)
        return BS_FAIL;
    db_int(q, 2, (uint64_t)(int64_t)conversations);
    db_int(q, 3, (uint64_t)(int64_t)open);
    db_int(q, 4, (uint64_t)(int64_t)keys);
    return lite_change(l, q, BS_FAIL);
}

/* --- asked for ------------------------------------------------------------------------ */

/* Was this key here before? BS_NONE: it is new. */
static enum bstore_result known(struct lite *l, const struct bstore_chat *in, struct bstore_chatted *out)
{
    struct digest request;
    sqlite3_stmt *q;
    if (in->key.n == 0)
        return BS_NONE;
    if ((q = lite_stmt(l, SQL_KEY_GET, in->tenant, NULL)) == NULL)
        return BS_FAIL;
    db_text(q, 2, in->key);
    enum db_result got = db_step(&l->db, q);
    enum bstore_result r = got == DB_DONE ? BS_NONE : BS_FAIL;
    if (got == DB_ROW && db_col_digest(q, 0, &request)) {
        bool same = memcmp(request.b, in->request.b, DIGEST_BYTES) == 0;
        r = same ? BS_AGAIN : BS_CONFLICT;
        if (same)
            *out = (struct bstore_chatted){lite_col_id(l, q, 1), lite_col_id(l, q, 2), db_col_int(q, 3),
                                           db_col_int(q, 4)};
    }
    sqlite3_reset(q);
    return r;
}

static enum bstore_result room_in_talk(struct lite *l, struct span tenant, const struct id *conversation)
{
    struct lite_id id = lite_id(conversation);
    uint64_t n;
    sqlite3_stmt *q = lite_stmt(l, SQL_CONVERSATION_GET, tenant, &id);
    int r = lite_number(l, q, &n);
    if (r != 0)
        return r > 0 ? BS_NONE : BS_FAIL;
    if (lite_number(l, lite_stmt(l, SQL_CONVERSATION_OPEN, tenant, &id), &n) != 0)
        return BS_FAIL;
    return n < BSTORE_TALK_MAX ? BS_OK : BS_FULL;
}

static enum bstore_result add_conversation(struct lite *l, struct span tenant, const struct tenant_counts *n,
                                           struct id *out)
{
    if (n->conversations >= BSTORE_CONVERSATIONS_EACH)
        return BS_FULL;
    if (id_new(out) != 0) {
        db_doom(&l->db, "the system has no randomness to give");
        return BS_FAIL;
    }
    struct lite_id id = lite_id(out);
    sqlite3_stmt *q = lite_stmt(l, SQL_CONVERSATION_ADD, tenant, &id);
    if (q == NULL)
        return BS_FAIL;
    db_int(q, 3, l->now);
    return db_run(&l->db, q) == 0 ? count(l, tenant, 1, 0, 0) : BS_FAIL;
}

/* The conversation that was named, or a new one. */
static enum bstore_result conversation_of(struct lite *l, const struct bstore_chat *in, struct id *out)
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
    return add_conversation(l, in->tenant, &n, out);
}

enum bstore_result lite_new_conversation(struct lite *l, struct span tenant, struct id *out)
{
    struct tenant_counts n = {0, 0, 0};
    enum bstore_result r = counts(l, tenant, &n);
    return r == BS_OK ? add_conversation(l, tenant, &n, out) : r;
}

static enum bstore_result add_turn(struct lite *l, const struct bstore_chat *in, const struct claim *c)
{
    struct lite_id turn = lite_id(&c->turn), conversation = lite_id(&c->conversation);
    uint64_t nth;
    sqlite3_stmt *q = lite_stmt(l, SQL_CONVERSATION_TURN, in->tenant, &conversation);
    if (q == NULL)
        return BS_FAIL;
    db_int(q, 3, l->now);
    if (lite_number(l, q, &nth) != 0 || (q = lite_stmt(l, SQL_TURN_ADD, in->tenant, &turn)) == NULL)
        return BS_FAIL;
    db_text(q, 3, span_of(conversation.text, ID_TEXT));
    db_int(q, 4, nth);
    db_int(q, 5, l->now);
    db_int(q, 6, in->budget.steps);
    db_int(q, 7, in->budget.tokens);
    db_int(q, 8, in->budget.cost_micro);
    db_int(q, 9, in->budget.wall_ms);
    db_int(q, 10, in->budget.same_calls);
    db_blob(q, 11, in->body);
    return db_run(&l->db, q) == 0 ? count(l, in->tenant, 0, 1, 0) : BS_FAIL;
}

static enum bstore_result add_key(struct lite *l, const struct bstore_chat *in, const struct bstore_chatted *c)
{
    struct lite_id turn = lite_id(&c->turn), conversation = lite_id(&c->conversation);
    sqlite3_stmt *q;
    if (in->key.n == 0)
        return BS_OK;
    if ((q = lite_stmt(l, SQL_KEY_ADD, in->tenant, NULL)) == NULL)
        return BS_FAIL;
    db_text(q, 2, in->key);
    db_blob(q, 3, span_of(in->request.b, DIGEST_BYTES));
    db_text(q, 4, span_of(conversation.text, ID_TEXT));
    db_text(q, 5, span_of(turn.text, ID_TEXT));
    db_int(q, 6, c->log_epoch);
    db_int(q, 7, c->log_seq);
    db_int(q, 8, l->now);
    return db_run(&l->db, q) == 0 ? count(l, in->tenant, 0, 0, 1) : BS_FAIL;
}

/* The turn with the message that it is to answer, the event that says so, the key. */
enum bstore_result lite_add_chat(struct lite *l, const struct bstore_chat *in, struct bstore_chatted *out)
{
    char text[BSTORE_END_TEXT_MAX];
    struct claim c = {.tenant_n = in->tenant.n};
    uint64_t seq;
    enum bstore_result r = conversation_of(l, in, &c.conversation);
    if (r != BS_OK)
        return r;
    memcpy(c.tenant, in->tenant.p, in->tenant.n);
    if (id_new(&c.turn) != 0) {
        db_doom(&l->db, "the system has no randomness to give");
        return BS_FAIL;
    }
    if ((r = add_turn(l, in, &c)) != BS_OK)
        return r;
    const struct bstore_event queued = bstore_queued_event(&c.turn, text);
    if ((r = lite_append(l, &c, &queued, 1, &seq)) != BS_OK)
        return r;
    *out = (struct bstore_chatted){c.conversation, c.turn, 1, seq - 1};
    return add_key(l, in, out);
}

enum bstore_result lite_chat(struct bstore *s, const struct bstore_chat *in, struct bstore_chatted *out)
{
    struct lite *l = lite_of(s);
    enum bstore_result r = lite_begin(l) != 0 ? BS_FAIL : known(l, in, out);
    return lite_end(l, r == BS_NONE ? lite_add_chat(l, in, out) : r);
}

/* --- taken ------------------------------------------------------------------------------ */

struct next {
    bool ran; /* by a worker whose claim ran out */
    uint64_t lost;
};

static enum bstore_result next_of(struct lite *l, struct claim *c, struct next *out)
{
    sqlite3_stmt *q = db_stmt(&l->db, SQL_CLAIM_NEXT);
    if (q == NULL)
        return BS_FAIL;
    db_int(q, 1, l->now);
    db_int(q, 2, l->face.share > 0 ? l->face.share : INT64_MAX);
    enum db_result got = db_step(&l->db, q);
    enum bstore_result r = got == DB_DONE ? BS_NONE : BS_FAIL;
    if (got == DB_ROW && db_col(q, 0).n <= BSTORE_NAME_MAX) {
        struct span tenant = db_col(q, 0);
        c->tenant_n = tenant.n;
        memcpy(c->tenant, tenant.p, tenant.n);
        c->turn = lite_col_id(l, q, 1);
        c->conversation = lite_col_id(l, q, 2);
        out->ran = span_eq(db_col(q, 3), SPAN("running"));
        out->lost = db_col_int(q, 4) + out->ran;
        r = BS_OK;
    }
    sqlite3_reset(q);
    return r;
}

static enum bstore_result take(struct lite *l, const struct next *n, uint64_t ms, struct claim *c)
{
    struct lite_id turn = lite_id(&c->turn), worker = lite_id(&c->worker);
    sqlite3_stmt *q = lite_stmt(l, SQL_CLAIM_TAKE, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    db_text(q, 3, span_of(worker.text, ID_TEXT));
    db_int(q, 4, l->now);
    db_int(q, 5, ms);
    db_int(q, 6, n->lost);
    if (lite_number(l, q, &c->epoch) != 0)
        return BS_FAIL;
    return lite_change(l, lite_stmt(l, SQL_TENANT_SERVED, claim_tenant(c), NULL), BS_FAIL);
}

/* What was asked is among the conversation's messages from now on: behind what the turns before have said, and in no
 * prompt of theirs. */
static enum bstore_result say_asked(struct lite *l, const struct claim *c)
{
    struct lite_id turn = lite_id(&c->turn);
    uint64_t seq;
    sqlite3_stmt *q = lite_stmt(l, SQL_TURN_ASKED, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    enum db_result got = db_step(&l->db, q);
    const struct bstore_message m = {SPAN("user"), got == DB_ROW ? db_col(q, 0) : SPAN_NONE};
    enum bstore_result r = got == DB_ROW ? lite_message(l, c, &m, &seq) : got == DB_DONE ? BS_OK : BS_FAIL;
    sqlite3_reset(q);
    return got == DB_ROW && r == BS_OK ? lite_change(l, lite_stmt(l, SQL_TURN_SAID, claim_tenant(c), &turn), BS_FAIL)
                                       : r;
}

enum bstore_result lite_claim(struct bstore *s, const struct id *worker, uint64_t ms, struct claim *out)
{
    struct lite *l = lite_of(s);
    struct next n;
    for (unsigned i = 0; i < LOOKED_AT_MAX; i++) {
        *out = (struct claim){.worker = *worker};
        enum bstore_result r = lite_begin(l) != 0 ? BS_FAIL : next_of(l, out, &n);
        if (r != BS_OK)
            return lite_end(l, r);
        if (!n.ran || n.lost < BSTORE_LOST_MAX) {
            r = take(l, &n, ms, out);
            return lite_end(l, r == BS_OK ? say_asked(l, out) : r);
        }
        if ((r = lite_end(l, lite_set_aside(l, out))) != BS_OK)
            return r;
    }
    return BS_NONE; /* the rest when it is asked again */
}

enum bstore_result lite_extend(struct bstore *s, const struct claim *c, bool *cancelled)
{
    struct lite *l = lite_of(s);
    return lite_end(l, lite_begin(l) != 0 ? BS_FAIL : lite_fence(l, c, cancelled));
}

enum bstore_result lite_release(struct bstore *s, const struct claim *c, uint64_t after_ms)
{
    struct lite *l = lite_of(s);
    struct lite_id turn = lite_id(&c->turn);
    enum bstore_result r = lite_begin_fenced(l, c);
    sqlite3_stmt *q = r == BS_OK ? lite_stmt(l, SQL_TURN_RELEASE, claim_tenant(c), &turn) : NULL;
    if (q != NULL) {
        db_int(q, 3, l->now + after_ms);
        r = lite_change(l, q, BS_FAIL);
    }
    return lite_end(l, r);
}

/* --- over ------------------------------------------------------------------------------- */

enum bstore_result lite_over(struct lite *l, const struct claim *c, enum turn_end end, struct span why)
{
    char text[BSTORE_END_TEXT_MAX];
    struct lite_id turn = lite_id(&c->turn);
    uint64_t seq;
    sqlite3_stmt *q = lite_stmt(l, SQL_TURN_END, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    db_text(q, 3, end == END_SET_ASIDE ? SPAN("aside") : SPAN("done"));
    db_text(q, 4, span_str(turn_end_name(end)));
    db_text(q, 5, why);
    db_int(q, 6, l->now);
    if (lite_change(l, q, BS_FAIL) != BS_OK || count(l, claim_tenant(c), 0, -1, 0) != BS_OK)
        return BS_FAIL;
    const struct bstore_event done = bstore_end_event(&c->turn, end, why, text);
    return lite_append(l, c, &done, 1, &seq);
}

/* No call of its open step is without an end. */
static enum bstore_result all_settled(struct lite *l, const struct claim *c)
{
    struct lite_id turn = lite_id(&c->turn);
    uint64_t open, calls = 0;
    int r = lite_number(l, lite_stmt(l, SQL_LOAD_OPEN, claim_tenant(c), &turn), &open);
    if (r != 0)
        return r > 0 ? BS_OK : BS_FAIL;
    sqlite3_stmt *q = lite_stmt(l, SQL_CALLS_OPEN, claim_tenant(c), &turn);
    if (q == NULL)
        return BS_FAIL;
    db_int(q, 3, open);
    return lite_number(l, q, &calls) != 0 ? BS_FAIL : calls == 0 ? BS_OK : BS_CONFLICT;
}

enum bstore_result lite_finish(struct bstore *s, const struct claim *c, enum turn_end end, struct span why)
{
    struct lite *l = lite_of(s);
    enum bstore_result r = lite_begin_fenced(l, c);
    if (r == BS_OK)
        r = all_settled(l, c);
    return lite_end(l, r == BS_OK ? lite_over(l, c, end, why) : r);
}

enum bstore_result lite_cancel(struct bstore *s, struct span tenant, const struct id *turn)
{
    struct lite *l = lite_of(s);
    struct lite_id id = lite_id(turn);
    struct claim c = {.turn = *turn, .tenant_n = tenant.n};
    sqlite3_stmt *q = lite_begin(l) != 0 ? NULL : lite_stmt(l, SQL_TURN_CANCEL, tenant, &id);
    if (q == NULL)
        return lite_end(l, BS_FAIL);
    memcpy(c.tenant, tenant.p, tenant.n);
    db_int(q, 3, l->now); /* whoever is to end it does not wait out why it was given back */
    enum db_result got = db_step(&l->db, q);
    if (got == DB_ROW) {
        c.epoch = db_col_int(q, 0);
        c.conversation = lite_col_id(l, q, 1);
    }
    sqlite3_reset(q);
    if (got != DB_ROW)
        return lite_end(l, got == DB_DONE ? BS_NONE : BS_FAIL);
    return lite_end(l, c.epoch == 0 ? lite_over(l, &c, END_CANCELLED, SPAN_NONE) : BS_OK);
}

enum bstore_result lite_sweep(struct bstore *s)
{
    struct lite *l = lite_of(s);
    sqlite3_stmt *q = lite_begin(l) != 0 ? NULL : db_stmt(&l->db, SQL_KEYS_OLD);
    if (q == NULL)
        return lite_end(l, BS_FAIL);
    db_int(q, 1, l->now > BSTORE_KEY_AGE_MAX ? l->now - BSTORE_KEY_AGE_MAX : 0);
    if (db_run(&l->db, q) != 0 || (q = db_stmt(&l->db, SQL_KEYS_COUNT)) == NULL || db_run(&l->db, q) != 0)
        return lite_end(l, BS_FAIL);
    return lite_end(l, BS_OK);
}
