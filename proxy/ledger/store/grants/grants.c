#include "proxy/ledger/store/grants/grants.h"

enum { STEP = 64 };

int grant_shape(struct store *s, struct span ticket, const struct wire_shape *shape)
{
    static const struct digest none;
    if (memcmp(&shape->digest, &none, sizeof(none)) == 0 || shape->json.n == 0)
        return 0;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_GRANT_SHAPE);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    db_blob(q, 2, span_of(shape->digest.b, DIGEST_BYTES));
    db_text(q, 3, shape->json);
    db_int(q, 4, shape->uses);
    db_int(q, 5, shape->within_ms);
    return db_run(&s->db, q);
}

int grant_fits(struct store *s, struct span ticket, const struct digest *policy, struct grant *g)
{
    *g = (struct grant){.uses = 0};
    sqlite3_stmt *q = db_stmt(&s->db, SQL_GRANT_FIT);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    db_int(q, 2, s->wall);
    db_int(q, 3, s->uptime);
    if (policy != NULL)
        db_blob(q, 4, span_of(policy->b, DIGEST_BYTES));
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW)
        *g = (struct grant){store_copy(s, db_col(q, 0)), store_copy(s, db_col(q, 1)), store_copy(s, db_col(q, 2)),
                            db_col_int(q, 3)};
    sqlite3_reset(q);
    return got == DB_FAIL || s->db.doomed ? -1 : got == DB_ROW;
}

int grant_use(struct store *s, const struct grant *g, struct row *r)
{
    static const enum sql_id both[] = {SQL_GRANT_USE, SQL_GRANT_USED};
    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
        sqlite3_stmt *q = db_stmt(&s->db, both[i]);
        if (q == NULL)
            return -1;
        db_text(q, 1, g->id);
        if (i == 0) {
            db_int(q, 2, g->uses);
            db_int(q, 3, s->wall);
        } else {
            db_text(q, 2, r->id);
        }
        if (db_run(&s->db, q) != 0)
            return -1;
        if (db_changes(&s->db) != 1)
            return db_doom(&s->db, "a grant changed under the ledger's hands; is there a second writer?");
    }
    r->grant = g->id;
    return ticket_decide(s, r, TICKET_APPROVED, g->by, SPAN("grant"), g->reason);
}

static int shape_json(struct store *s, struct span ticket, struct span *json)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_GRANT_SHAPE_GET);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    enum db_result got = db_step(&s->db, q);
    *json = got == DB_ROW ? store_copy(s, db_col(q, 0)) : SPAN_NONE;
    sqlite3_reset(q);
    return got == DB_FAIL || s->db.doomed ? -1 : 0;
}

int grant_give(struct store *s, const struct row *r, const struct store_grant *asked, struct span by,
               struct span channel, struct span reason)
{
    char text[ID_TEXT + 1], until[32];
    struct id id;
    struct audit a;
    struct span json;
    if (asked->uses == 0 || asked->for_ms == 0 || asked->for_ms > STORE_EXPIRES_MAX_MS)
        return 0;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_GRANT_ADD);
    if (q == NULL)
        return -1;
    if (id_new(&id) != 0)
        return db_doom(&s->db, "no randomness for a grant's id");
    id_text(&id, text);
    db_text(q, 1, r->id);
    db_text(q, 2, span_of(text, ID_TEXT));
    db_int(q, 3, asked->uses);
    db_int(q, 4, asked->for_ms);
    db_int(q, 5, s->wall);
    db_int(q, 6, s->uptime);
    db_text(q, 7, by);
    db_text(q, 8, channel);
    db_text(q, 9, reason);
    db_int(q, 10, STORE_GRANTS_MAX);
    if (db_run(&s->db, q) != 0)
        return -1;
    if (db_changes(&s->db) != 1)
        return 0;
    if (shape_json(s, r->id, &json) != 0)
        return -1;
    audit_time(s->wall + asked->for_ms, until);
    audit_begin(&a, s, "grant-given", NULL, NULL, r->id);
    jsonw_kv(&a.w, "grant", span_of(text, ID_TEXT));
    jsonw_kv_u64(&a.w, "uses", asked->uses);
    jsonw_kv(&a.w, "until", span_str(until));
    jsonw_kv(&a.w, "by", by);
    jsonw_kv(&a.w, "channel", channel);
    jsonw_kv(&a.w, "reason", reason);
    jsonw_kv_raw(&a.w, "shape", json);
    audit_record(&a, &r->record);
    return audit_end(&a) == 0 ? 1 : -1;
}

/* 1 it ended by this, 0 it was not live, -1. */
static int end(struct store *s, struct span id, const char *state, struct span by, struct span how)
{
    struct audit a;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_GRANT_END);
    if (q == NULL)
        return -1;
    db_text(q, 1, id);
    db_text(q, 2, span_str(state));
    db_int(q, 3, s->wall);
    db_text(q, 4, how);
    if (db_run(&s->db, q) != 0)
        return -1;
    if (db_changes(&s->db) != 1)
        return 0;
    audit_begin(&a, s, "grant-ended", NULL, NULL, SPAN_NONE);
    jsonw_kv(&a.w, "grant", id);
    jsonw_kv(&a.w, "state", span_str(state));
    jsonw_kv(&a.w, "by", by);
    jsonw_kv(&a.w, "reason", how);
    return audit_end(&a) == 0 ? 1 : -1;
}

int store_grant_revoke(struct store *s, const struct id *id, struct span by, struct span reason, const char **why)
{
    char text[ID_TEXT + 1];
    *why = NULL;
    if (store_begin(s) != 0)
        return -1;
    id_text(id, text);
    int got = end(s, span_of(text, ID_TEXT), "revoked", by, reason);
    if (got == 0)
        *why = "there is no grant of this id that is still good";
    return got < 0 ? -1 : 0;
}

/* Those that the statement lists, in steps; each that was listed has ended. */
static int end_listed(struct store *s, enum sql_id list, struct span whose, struct span by, const char *how)
{
    char ids[STEP][ID_TEXT];
    size_t n;
    do {
        sqlite3_stmt *q = db_stmt(&s->db, list);
        enum db_result got = DB_FAIL;
        if (q == NULL)
            return -1;
        if (whose.n)
            db_text(q, 1, whose);
        for (n = 0; n < STEP && (got = db_step(&s->db, q)) == DB_ROW;)
            if (db_col(q, 0).n == ID_TEXT)
                memcpy(ids[n++], db_col(q, 0).p, ID_TEXT);
        sqlite3_reset(q);
        if (got == DB_FAIL)
            return -1;
        for (size_t i = 0; i < n; i++)
            if (end(s, span_of(ids[i], ID_TEXT), "ended", by, span_str(how)) < 0)
                return -1;
    } while (n == STEP);
    return 0;
}

int grants_end_sandbox(struct store *s, struct span sandbox, const char *how)
{
    return end_listed(s, SQL_GRANTS_OF_SANDBOX, sandbox, SPAN("session"), how);
}

int grants_end_by(struct store *s, struct span who, const char *how)
{
    return end_listed(s, SQL_GRANTS_BY, who, SPAN("operators"), how);
}

int grants_end_all(struct store *s, const char *how)
{
    return end_listed(s, SQL_GRANTS_LIVE, SPAN_NONE, SPAN("session"), how);
}

int grants_sweep(struct store *s)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_GRANTS_DUE);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->wall);
    db_int(q, 2, s->uptime);
    if (db_run(&s->db, q) != 0 || (q = db_stmt(&s->db, SQL_GRANTS_OLD)) == NULL)
        return -1;
    db_int(q, 1, s->wall > STORE_GRANTS_AGE_MAX ? s->wall - STORE_GRANTS_AGE_MAX : 0);
    return db_run(&s->db, q);
}
