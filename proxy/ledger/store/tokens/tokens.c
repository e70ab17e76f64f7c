/* Tokens of those who speak to the dock: keys that operators issue, and what each key opens one sandbox with. */
#include "proxy/ledger/store/store_in.h"

enum { TOKEN_NAME_MAX = 128, TOKEN_KEYS_MAX = 256, TOKEN_OF_SANDBOX_MAX = 64 };

static bool word_ok(struct span s, bool may_lack)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= 0x20 || s.p[i] >= 0x7f)
            return false;
    return (may_lack || s.n > 0) && s.n <= TOKEN_NAME_MAX;
}

/* How many rows it finds; -1. */
static int count(struct store *s, enum sql_id id, struct span one, struct span other)
{
    sqlite3_stmt *q = db_stmt(&s->db, id);
    if (q == NULL)
        return -1;
    db_text(q, 1, one);
    db_text(q, 2, other);
    int n = db_step(&s->db, q) == DB_ROW ? (int)db_col_int(q, 0) : -1;
    sqlite3_reset(q);
    return n;
}

/* A sentence when it may not be put, else NULL; *bad: that cannot be known. */
static const char *objection(struct store *s, const struct store_token *t, bool *bad)
{
    bool key = span_eq(t->kind, SPAN("key"));
    *bad = false;
    if (!word_ok(t->name, false) || !word_ok(t->tenant, false) || !word_ok(t->scope, key) || key != (t->scope.n == 0))
        return "a key's name and tenant are up to 128 printable characters without spaces";
    int there = count(s, SQL_TOKEN_THERE, t->kind, t->name);
    int all = count(s, SQL_TOKEN_COUNT, t->kind, t->scope);
    int runs = key ? 1 : count(s, SQL_TOKEN_SANDBOX, t->scope, t->tenant);
    int issued = key ? 1 : count(s, SQL_TOKEN_THERE, SPAN("key"), t->name);
    *bad = there < 0 || all < 0 || runs < 0 || issued < 0;
    if (key && there > 0)
        return "a key of this name was issued already; choose another name, or remove that one";
    if (runs == 0)
        return "no sandbox of this name and tenant runs";
    if (issued == 0)
        return "there is no key of this name any more";
    if (all >= (key ? TOKEN_KEYS_MAX : TOKEN_OF_SANDBOX_MAX))
        return key ? "as many keys as there may be; remove one" : "as many keys open this sandbox as may";
    return NULL;
}

int store_token_put(struct store *s, const struct store_token *t, const char **why)
{
    bool bad;
    if (store_begin(s) != 0)
        return -1;
    *why = objection(s, t, &bad);
    if (bad || *why != NULL)
        return bad ? -1 : 0;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TOKEN_PUT);
    if (q == NULL)
        return -1;
    db_text(q, 1, t->kind);
    db_text(q, 2, t->scope);
    db_text(q, 3, t->name);
    db_text(q, 4, t->tenant);
    if (t->has_hash)
        db_blob(q, 5, span_of(t->hash.b, DIGEST_BYTES));
    db_text(q, 6, t->note);
    db_int(q, 7, s->wall);
    return db_run(&s->db, q);
}

int store_key_remove(struct store *s, struct span name, const char **why)
{
    if (store_begin(s) != 0)
        return -1;
    int there = count(s, SQL_TOKEN_THERE, SPAN("key"), name);
    *why = there == 0 ? "there is no such key" : NULL;
    if (there <= 0)
        return there;
    static const enum sql_id both[] = {SQL_TOKEN_END, SQL_KEY_END};
    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
        sqlite3_stmt *q = db_stmt(&s->db, both[i]);
        if (q == NULL)
            return -1;
        db_text(q, 1, name);
        if (db_run(&s->db, q) != 0)
            return -1;
    }
    return 0;
}

int tokens_end_sandbox(struct store *s, struct span sandbox)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TOKEN_END_SANDBOX);
    if (q == NULL)
        return -1;
    db_text(q, 1, sandbox);
    return db_run(&s->db, q);
}
