/* Sandboxes: who they are, and the end of their sessions. */
#include <stdio.h>

#include "proxy/ledger/store/askers/later.h"
#include "proxy/ledger/store/egress/ops_egress.h"
#include "proxy/ledger/store/grants/grants.h"
#include "proxy/ledger/store/idle/ops_idle.h"
#include "proxy/ledger/store/runs/runs.h"

enum { NAME_MAX_BYTES = 128 };

static bool name_ok(struct span n)
{
    for (size_t i = 0; i < n.n; i++)
        if (n.p[i] <= 0x20 || n.p[i] >= 0x7f)
            return false;
    return n.n > 0 && n.n <= NAME_MAX_BYTES;
}

/* Labels lie in the store as an object; an arena holds them while one sandbox is looked at. */
static int read_labels(struct store *s, struct span json, struct wire_sandbox *b)
{
    const struct json *all = json_parse(json, &s->arena);
    if (all == NULL || all->type != JSON_OBJECT)
        return db_doom(&s->db, "a sandbox in the store is damaged");
    for (const struct json *l = all->child; l != NULL && b->nlabels < sizeof(b->label) / sizeof(b->label[0]);
         l = l->next) {
        b->label[b->nlabels].key = l->key;
        b->label[b->nlabels++].value = l->text;
    }
    return 0;
}

/* All hashes in one blob, the newest first. */
static bool read_tokens(struct span v, struct wire_sandbox *b)
{
    if (v.n % DIGEST_BYTES != 0 || v.n == 0 || v.n > (1 + WIRE_TOKENS_OLDER) * DIGEST_BYTES)
        return false;
    memcpy(b->token_hash.b, v.p, DIGEST_BYTES);
    for (b->nolder = 0; (b->nolder + 1) * DIGEST_BYTES < v.n; b->nolder++)
        memcpy(b->older[b->nolder].b, v.p + (b->nolder + 1) * DIGEST_BYTES, DIGEST_BYTES);
    return true;
}

static struct span tokens_blob(const struct wire_sandbox *b, uint8_t room[(1 + WIRE_TOKENS_OLDER) * DIGEST_BYTES])
{
    memcpy(room, b->token_hash.b, DIGEST_BYTES);
    for (size_t i = 0; i < b->nolder; i++)
        memcpy(room + (i + 1) * DIGEST_BYTES, b->older[i].b, DIGEST_BYTES);
    return span_of(room, (1 + b->nolder) * DIGEST_BYTES);
}

static int read_row(struct store *s, sqlite3_stmt *q, struct wire_sandbox *b)
{
    *b = (struct wire_sandbox){
        .name = store_copy(s, db_col(q, 0)),
        .session = store_copy(s, db_col(q, 1)),
        .owner = store_copy(s, db_col(q, 2)),
        .tenant = store_copy(s, db_col(q, 3)),
        .kind = store_copy(s, db_col(q, 4)),
        .generation = db_col_int(q, 5),
        .has_token = !db_col_null(q, 6),
        .frozen = store_copy(s, db_col(q, 8)),
        .egress = {db_col_int(q, 9), db_col_int(q, 10)},
        .egress_epoch = db_col_int(q, 11),
        .reach = store_copy(s, db_col(q, 12)),
    };
    if (b->has_token && !read_tokens(db_col(q, 6), b))
        return db_doom(&s->db, "a sandbox in the store is damaged");
    return read_labels(s, store_copy(s, db_col(q, 7)), b);
}

static int find(struct store *s, struct span name, struct wire_sandbox *b)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_SANDBOX_GET);
    if (q == NULL)
        return -1;
    db_text(q, 1, name);
    enum db_result got = db_step(&s->db, q);
    int found = got == DB_ROW ? (read_row(s, q, b) == 0 ? 1 : -1) : got == DB_DONE ? 0 : -1;
    sqlite3_reset(q);
    return found;
}

static int tell_why(struct store *s, const struct wire_sandbox *b, enum store_change what, const char *why)
{
    struct audit a;
    audit_begin(&a, s, "sandbox", NULL, NULL, SPAN_NONE);
    jsonw_kv(&a.w, "sandbox", b->name);
    jsonw_kv(&a.w, "session", b->session);
    jsonw_kv(&a.w, "owner", b->owner);
    jsonw_kv(&a.w, "how", b->kind);
    jsonw_kv_u64(&a.w, "generation", b->generation);
    static const char *const told[] = {"image", "packages", "lane"};
    for (size_t i = 0; i < b->nlabels && span_eq(b->kind, SPAN("started")); i++)
        for (size_t k = 0; k < sizeof(told) / sizeof(told[0]); k++)
            if (span_eq(b->label[i].key, span_str(told[k])))
                jsonw_kv(&a.w, told[k], b->label[i].value);
    if (b->frozen.n)
        jsonw_kv(&a.w, "frozen", b->frozen);
    jsonw_kv_bool(&a.w, "gone", what == CHANGE_SANDBOX_GONE);
    if (why != NULL)
        jsonw_kv(&a.w, "why", span_str(why));
    if (audit_end(&a) != 0)
        return -1;
    if (s->c.changed != NULL)
        s->c.changed(s->c.arg, what, s->now.seq, NULL, b);
    return 0;
}

static int tell(struct store *s, const struct wire_sandbox *b, enum store_change what)
{
    return tell_why(s, b, what, NULL);
}

static struct span labels_json(struct store *s, const struct wire_sandbox *b)
{
    struct jsonw w;
    dynbuf_reset(&s->json);
    jsonw_begin(&w, &s->json);
    jsonw_object(&w);
    for (size_t i = 0; i < b->nlabels; i++) {
        char key[257];
        size_t n = b->label[i].key.n < sizeof(key) - 1 ? b->label[i].key.n : sizeof(key) - 1;
        memcpy(key, b->label[i].key.p, n);
        key[n] = '\0';
        jsonw_kv(&w, key, b->label[i].value);
    }
    jsonw_end_object(&w);
    if (!dynbuf_ok(&s->json))
        db_doom(&s->db, "out of memory");
    return store_copy(s, dynbuf_span(&s->json));
}

/* A sentence when it may not be so, else NULL. */
static const char *objection(const struct wire_sandbox *b)
{
    if (!name_ok(b->name))
        return "a sandbox's name is up to 128 printable characters without spaces";
    if (span_eq(b->name, SPAN(STORE_SANDBOX)) && !span_eq(b->kind, SPAN("channel"))) /* the parent's word alone */
        return "checkpoint-store is who takes checkpoints to a store elsewhere; choose another name";
    for (size_t i = 0; i < b->nlabels; i++) {
        if (!name_ok(b->label[i].key))
            return "a label's key is up to 128 printable characters without spaces";
        for (size_t k = 0; k < i; k++)
            if (span_eq(b->label[i].key, b->label[k].key))
                return "a label is there twice";
    }
    return NULL;
}

/* Nothing of it is for the next session of that name: open tickets end (in steps, for one answer must not hold all of
 * them in memory), answers that nobody took, and denials, which stay what they are but are not remembered. */
static int end_session_of(struct store *s, struct span session)
{
    char ids[256][ID_TEXT];
    size_t n;
    do {
        struct row r;
        sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKETS_OF_SESSION);
        enum db_result got;
        if (q == NULL)
            return -1;
        db_text(q, 1, session);
        for (n = 0; (got = db_step(&s->db, q)) == DB_ROW && n < 256;)
            if (db_col(q, 0).n == ID_TEXT)
                memcpy(ids[n++], db_col(q, 0).p, ID_TEXT);
        sqlite3_reset(q);
        if (got == DB_FAIL)
            return -1;
        for (size_t i = 0; i < n; i++)
            if (row_find(s, span_of(ids[i], ID_TEXT), &r) != 1 ||
                ticket_decide(s, &r, TICKET_CANCELLED, SPAN("session"), SPAN_NONE, SPAN("the session was ended")) !=
                    0)
                return -1;
    } while (n == 256);
    /* What is on its way goes on to its end, and no request joins it, is given its answer, or is made of it again. No
     * name of a session is like the one that its tickets have then. */
    static const enum sql_id last[] = {SQL_ANSWERS_OF_SESSION, SQL_LATER_OF_SESSION, SQL_TICKETS_LEFT};
    for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++) {
        sqlite3_stmt *q = db_stmt(&s->db, last[i]);
        if (q == NULL)
            return -1;
        db_text(q, 1, session);
        if (db_run(&s->db, q) != 0)
            return -1;
    }
    return 0;
}

/* That of this sandbox, which is gone, unless there are others whose it is too. */
static int end_session_after(struct store *s, const struct wire_sandbox *b)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_SESSION_OF_OTHERS);
    if (q == NULL)
        return -1;
    db_text(q, 1, b->session);
    db_text(q, 2, b->name);
    enum db_result got = db_step(&s->db, q);
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : got == DB_ROW ? 0 : end_session_of(s, b->session);
}

/* A session that was given no name of its own is that sandbox, and not the next one of its name. That of a command's
 * run, and of a listener, is meant to be the next one's too. */
static bool is_its_own_session(const struct wire_sandbox *b)
{
    return span_eq(b->session, b->name) && !span_eq(b->kind, SPAN("run")) && !span_eq(b->kind, SPAN("channel"));
}

/* The one of the warden's that ended first is forgotten, so that there may always be another. 1, 0: there is none,
 * -1.
 */
static int forget_ended(struct store *s)
{
    struct wire_sandbox b;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_SANDBOX_ENDED_FIRST);
    enum db_result got = q ? db_step(&s->db, q) : DB_FAIL;
    struct span name = got == DB_ROW ? store_copy(s, db_col(q, 0)) : SPAN_NONE;
    sqlite3_reset(q);
    if (got != DB_ROW)
        return got == DB_DONE ? 0 : -1;
    if (find(s, name, &b) != 1 || (q = db_stmt(&s->db, SQL_SANDBOX_REMOVE)) == NULL)
        return -1;
    db_text(q, 1, name);
    if (db_run(&s->db, q) != 0 || egress_forget(s, name) != 0 || tell(s, &b, CHANGE_SANDBOX_GONE) != 0)
        return -1;
    return is_its_own_session(&b) && end_session_after(s, &b) != 0 ? -1 : 1;
}

/* 1 it may be put, 0 it may not, -1. */
static int may_put(struct store *s, const struct wire_sandbox *b, const char **why)
{
    sqlite3_stmt *q;
    if ((*why = objection(b)) != NULL)
        return 0;
    if (b->has_token) {
        if ((q = db_stmt(&s->db, SQL_SANDBOX_TOKEN)) == NULL)
            return -1;
        db_blob(q, 1, span_of(b->token_hash.b, DIGEST_BYTES));
        db_text(q, 2, b->name);
        enum db_result got = db_step(&s->db, q);
        sqlite3_reset(q);
        if (got == DB_ROW)
            *why = "another sandbox has that token";
        if (got != DB_DONE)
            return got == DB_ROW ? 0 : -1;
    }
    q = db_stmt(&s->db, SQL_SANDBOX_COUNT);
    if (db_step(&s->db, q) != DB_ROW)
        return -1;
    bool room = db_col_int(q, 0) < STORE_SANDBOXES_MAX;
    sqlite3_reset(q);
    struct wire_sandbox old;
    int there = room ? 1 : find(s, b->name, &old);
    if (there == 0)
        there = forget_ended(s);
    if (there == 0)
        *why = "there are too many sandboxes; remove one";
    return there;
}

/* Of a listener's own sandbox the parent speaks at every start and reload: the same again is no news, and no new
 * generation. */
static bool is_said_again(const struct wire_sandbox *now, const struct wire_sandbox *b)
{
    return span_eq(b->kind, SPAN("channel")) && span_eq(now->kind, b->kind) &&
           span_eq(now->session, b->session.n ? b->session : b->name) && span_eq(now->owner, b->owner) &&
           span_eq(now->tenant, b->tenant) && !now->has_token && !b->has_token && now->nlabels == 0 &&
           b->nlabels == 0;
}

/* An idle one is none that anybody begins anew: its files are kept, and it is woken. */
static int put(struct store *s, const struct wire_sandbox *b, bool wakes, const char **why)
{
    uint8_t room[(1 + WIRE_TOKENS_OLDER) * DIGEST_BYTES];
    struct wire_sandbox now;
    *why = NULL;
    if (store_begin(s) != 0)
        return -1;
    int may = may_put(s, b, why), known = may > 0 ? find(s, b->name, &now) : 0;
    if (may <= 0 || known < 0)
        return may <= 0 ? may : -1;
    if (wakes != (known == 1 && span_eq(now.kind, SPAN("idle")))) {
        *why = wakes ? "the sandbox is not idle" : "the sandbox is idle: it is restored, or destroyed";
        return 0;
    }
    if (known == 1 && is_said_again(&now, b))
        return 0;
    int restored = wakes ? 0 : idle_is(s, b->name);
    if (restored != 0) { /* whoever woke it next would put the files of before over those of this one */
        *why = "the sandbox is being restored: it is idle until it has its files";
        return restored < 0 ? -1 : 0;
    }
    if (known == 1 && !span_eq(now.tenant, b->tenant) && end_session_of(s, now.session) != 0)
        return -1; /* what was asked for and approved for one tenant is not for another, whoever has its session too
                    */
    struct span labels = labels_json(s, b);
    sqlite3_stmt *q = db_stmt(&s->db, SQL_SANDBOX_PUT);
    if (q == NULL)
        return -1;
    db_text(q, 1, b->name);
    db_text(q, 2, b->session.n ? b->session : b->name);
    db_text(q, 3, b->owner);
    db_text(q, 4, b->tenant);
    db_text(q, 5, b->kind);
    if (b->has_token)
        db_blob(q, 6, tokens_blob(b, room));
    db_text(q, 7, labels);
    db_int(q, 8, s->wall);
    db_int(q, 9, b->egress[EGRESS_REQUESTS]);
    db_int(q, 10, b->egress[EGRESS_BYTES]);
    db_int(q, 11, b->egress_epoch != 0);
    db_text(q, 12, b->reach);
    if (db_run(&s->db, q) != 0 ||
        leases_end_sandbox(s, b->name, "its sandbox began anew: another generation of it has leases of its own") !=
            0 ||
        grants_end_sandbox(s, b->name, "its sandbox began anew") != 0 || find(s, b->name, &now) != 1)
        return -1;
    /* What was asked for while the one before was removed may have come after that. */
    if (known == 0 && is_its_own_session(&now) && end_session_after(s, &now) != 0)
        return -1;
    if (tell(s, &now, CHANGE_SANDBOX) != 0)
        return -1;
    return span_eq(now.kind, SPAN("started")) ? runs_generation(s, &now) : 0;
}

int store_sandbox_put(struct store *s, const struct wire_sandbox *b, const char **why)
{
    return put(s, b, false, why);
}

int sandbox_freeze(struct store *s, struct span name, struct span why)
{
    struct wire_sandbox b;
    int found = find(s, name, &b);
    if (found <= 0)
        return found;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_SANDBOX_FREEZE);
    if (q == NULL)
        return -1;
    db_text(q, 1, name);
    db_text_or_null(q, 2, why);
    db_int(q, 3, s->wall);
    b.frozen = why;
    return db_run(&s->db, q) != 0 ? -1 : tell(s, &b, CHANGE_SANDBOX);
}

int sandboxes_thaw(struct store *s)
{
    for (;;) {
        sqlite3_stmt *q = db_stmt(&s->db, SQL_SANDBOX_FROZEN);
        enum db_result got = q ? db_step(&s->db, q) : DB_FAIL;
        struct span name = got == DB_ROW ? store_copy(s, db_col(q, 0)) : SPAN_NONE;
        sqlite3_reset(q);
        if (got != DB_ROW)
            return got == DB_DONE ? 0 : -1;
        if (s->db.doomed || sandbox_freeze(s, name, SPAN_NONE) != 0)
            return -1;
    }
}

int store_sandbox_token(struct store *s, struct span name, const struct digest *hash, bool alone, const char **why)
{
    uint8_t room[(1 + WIRE_TOKENS_OLDER) * DIGEST_BYTES];
    struct wire_sandbox b;
    *why = NULL;
    if (store_begin(s) != 0)
        return -1;
    int found = find(s, name, &b);
    if (found <= 0 || !b.has_token) {
        *why = found == 0 ? "there is no such sandbox" : "this sandbox is known by its listener and has no token";
        return found < 0 ? -1 : 0;
    }
    /* The oldest one makes room: what lets in must not grow for ever. */
    size_t keep = alone ? 0 : b.nolder + 1;
    b.nolder = keep < WIRE_TOKENS_OLDER ? keep : WIRE_TOKENS_OLDER;
    memmove(b.older + 1, b.older, (WIRE_TOKENS_OLDER - 1) * sizeof(b.older[0]));
    b.older[0] = b.token_hash;
    b.token_hash = *hash;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_SANDBOX_TOKENS);
    if (q == NULL)
        return -1;
    db_text(q, 1, name);
    db_blob(q, 2, tokens_blob(&b, room));
    db_int(q, 3, s->wall);
    return db_run(&s->db, q) != 0 ? -1 : tell(s, &b, CHANGE_SANDBOX);
}

int store_sandbox_remove(struct store *s, struct span name, bool end_session, const char **why)
{
    struct wire_sandbox b;
    *why = NULL;
    if (store_begin(s) != 0)
        return -1;
    int found = find(s, name, &b);
    if (found == 0)
        *why = "there is no such sandbox";
    if (found <= 0)
        return found;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_SANDBOX_REMOVE);
    if (q == NULL)
        return -1;
    db_text(q, 1, name);
    if (db_run(&s->db, q) != 0 || leases_end_sandbox(s, name, "its sandbox has ended") != 0 ||
        grants_end_sandbox(s, name, "its sandbox has ended") != 0 || tokens_end_sandbox(s, name) != 0 ||
        egress_forget(s, name) != 0 || later_end_sandbox(s, name, b.session) != 0 ||
        tell(s, &b, CHANGE_SANDBOX_GONE) != 0)
        return -1;
    if (end_session)
        return end_session_of(s, b.session);
    return is_its_own_session(&b) ? end_session_after(s, &b) : 0;
}

/* --- those of the warden's -------------------------------------------------- */

/* 1, 0 of this generation there is none, -1. */
static int started(struct store *s, struct span name, uint64_t generation)
{
    struct wire_sandbox b;
    if (store_begin(s) != 0)
        return -1;
    int found = find(s, name, &b);
    if (found <= 0 || !span_eq(b.kind, SPAN("started")) || b.generation != generation)
        return found < 0 ? -1 : 0;
    return 1;
}

int store_sandbox_paused(struct store *s, struct span name, uint64_t generation)
{
    int found = started(s, name, generation);
    if (found <= 0)
        return found;
    return leases_end_sandbox(s, name, "its sandbox was paused") == 0
               ? grants_end_sandbox(s, name, "its sandbox was paused")
               : -1;
}

/* One statement about it. */
static int change(struct store *s, enum sql_id id, struct span name)
{
    sqlite3_stmt *q = db_stmt(&s->db, id);
    if (q == NULL)
        return -1;
    db_text(q, 1, name);
    if (id == SQL_SANDBOX_END || id == SQL_SANDBOX_IDLE)
        db_int(q, 2, s->wall);
    return db_run(&s->db, q);
}

/* Nothing that it was given is good any more; *b is what it is then. Of an idle one what is known of it stays where
 * its tokens are, and what was approved for it may be sent later. */
static int given_ends(struct store *s, struct span name, bool idle, struct wire_sandbox *b)
{
    const char *how = idle ? "its sandbox is idle" : "its sandbox has ended";
    if (change(s, idle ? SQL_SANDBOX_IDLE : SQL_SANDBOX_END, name) != 0 || leases_end_sandbox(s, name, how) != 0 ||
        grants_end_sandbox(s, name, how) != 0 || find(s, name, b) != 1)
        return -1;
    if (idle)
        return change(s, SQL_TOKEN_SHUT_SANDBOX, name);
    return tokens_end_sandbox(s, name) == 0 ? later_end_sandbox(s, name, b->session) : -1;
}

/* lost: nobody told when, or how. One whose files were being restored is idle as before. */
static int ended(struct store *s, struct span name, uint64_t generation, bool lost)
{
    struct wire_sandbox b;
    int found = started(s, name, generation);
    if (found <= 0)
        return found;
    int idle = idle_is(s, name);
    if (idle < 0 || given_ends(s, name, idle == 1, &b) != 0 ||
        tell_why(s, &b, CHANGE_SANDBOX, lost ? RUNS_UNHEARD : NULL) != 0)
        return -1;
    return runs_over(s, &b, generation, lost);
}

int store_sandbox_ended(struct store *s, struct span name, uint64_t generation)
{
    return ended(s, name, generation, false);
}

/* --- those that are idle ---------------------------------------------------- */

int idle_is(struct store *s, struct span name)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_IDLE_GET);
    if (q == NULL)
        return -1;
    db_text(q, 1, name);
    enum db_result got = db_step(&s->db, q);
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : got == DB_ROW;
}

static int idle_put(struct store *s, const struct store_idle *i, struct span tenant)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_IDLE_PUT);
    if (q == NULL)
        return -1;
    db_text(q, 1, i->name);
    db_text(q, 2, tenant);
    db_text(q, 3, i->checkpoint);
    db_blob(q, 4, i->box);
    db_int(q, 5, i->cpu_percent);
    db_int(q, 6, i->strict);
    db_int(q, 7, i->left_ms);
    db_int(q, 8, s->wall);
    return db_run(&s->db, q);
}

/* How its commands ended the warden says when it has ended them. */
int store_sandbox_idle(struct store *s, const struct store_idle *i, const char **why)
{
    struct wire_sandbox b;
    int found = started(s, i->name, i->generation);
    *why = found == 0 ? "it is not any more what it was when it was paused" : NULL;
    if (found <= 0)
        return found;
    if (given_ends(s, i->name, true, &b) != 0 || idle_put(s, i, b.tenant) != 0 || tell(s, &b, CHANGE_SANDBOX) != 0)
        return -1;
    return runs_put_aside(s, &b, i->generation);
}

int store_sandbox_wake(struct store *s, const struct wire_sandbox *b, const char **why)
{
    return put(s, b, true, why);
}

int store_sandbox_awake(struct store *s, struct span name, uint64_t generation, const char **why)
{
    *why = NULL;
    int found = started(s, name, generation), idle = found > 0 ? idle_is(s, name) : found;
    if (idle == 0)
        *why = "it was destroyed meanwhile";
    if (idle <= 0)
        return idle;
    return change(s, SQL_IDLE_OVER, name) == 0 ? change(s, SQL_SANDBOX_RESTORED, name) : -1;
}

int store_sandbox_idle_over(struct store *s, struct span name, const char **why)
{
    struct wire_sandbox b, now;
    *why = NULL;
    int idle = store_begin(s) == 0 ? idle_is(s, name) : -1, found = idle > 0 ? find(s, name, &b) : idle;
    if (found <= 0)
        return found;
    if (change(s, SQL_IDLE_OVER, name) != 0)
        return -1;
    if (!span_eq(b.kind, SPAN("idle")))
        return ended(s, name, b.generation, false);
    return given_ends(s, name, false, &now) == 0 ? tell(s, &now, CHANGE_SANDBOX) : -1;
}

/* The first one behind this name; 0: there is none. */
static int next_started(struct store *s, char name[NAME_MAX_BYTES + 1], uint64_t *generation)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_SANDBOX_NEXT);
    if (q == NULL)
        return -1;
    db_text(q, 1, span_str(name));
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW) {
        (void)snprintf(name, NAME_MAX_BYTES + 1, "%.*s", SPAN_FMT(db_col(q, 0)));
        *generation = db_col_int(q, 1);
    }
    sqlite3_reset(q);
    return got == DB_ROW ? 1 : got == DB_DONE ? 0 : -1;
}

int store_sandboxes_run(struct store *s, const struct store_running *r, size_t n)
{
    char name[NAME_MAX_BYTES + 1] = "";
    uint64_t generation = 0;
    int rc = store_begin(s);
    while (rc == 0 && (rc = next_started(s, name, &generation)) == 1) {
        bool runs = false;
        for (size_t i = 0; i < n; i++)
            runs |= span_eq(r[i].name, span_str(name)) && r[i].generation == generation;
        rc = runs ? 0 : ended(s, span_str(name), generation, true);
    }
    return rc;
}

int store_sandboxes(struct store *s, void (*each)(void *arg, const struct wire_sandbox *b), void *arg)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_SANDBOX_ALL);
    struct wire_sandbox b;
    enum db_result got;
    while ((got = db_step(&s->db, q)) == DB_ROW) {
        arena_free(&s->arena);
        if (read_row(s, q, &b) != 0)
            break;
        each(arg, &b);
    }
    sqlite3_reset(q);
    return got == DB_DONE ? 0 : -1;
}
