/* What a command sent (schema_11.sql): by the step that each record names. */
#include <stdio.h>

#include "proxy/ledger/store/runs/runs.h"

/* The command of this step, which is the last one that is called so; *named: how many exchanges it has. 1, 0, -1. */
static int find(struct store *s, const struct wire_record *r, char id[ID_TEXT], uint64_t *named)
{
    char step[WIRE_STEP_TEXT];
    sqlite3_stmt *q = db_stmt(&s->db, SQL_RUN_OF_STEP);
    if (q == NULL)
        return -1;
    db_text(q, 1, r->sandbox);
    db_text(q, 2, wire_step_text(&r->by, step));
    enum db_result got = db_step(&s->db, q);
    bool there = got == DB_ROW && db_col(q, 0).n == ID_TEXT;
    if (there) {
        memcpy(id, db_col(q, 0).p, ID_TEXT);
        *named = db_col_int(q, 1);
    }
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : there;
}

static int name(struct store *s, struct span id, const struct wire_record *r, const struct run_effect *e)
{
    char exchange[BOOT_TEXT + 24], lease[ID_TEXT + 1] = "";
    sqlite3_stmt *q = db_stmt(&s->db, SQL_RUN_EFFECT);
    if (q == NULL)
        return -1;
    (void)snprintf(exchange, sizeof(exchange), "%s-%llu", s->boot, (unsigned long long)e->xid);
    if (!id_is_none(&r->lease))
        id_text(&r->lease, lease);
    db_text(q, 1, id);
    db_text(q, 2, span_str(exchange));
    db_int(q, 3, !e->refused);
    db_text(q, 4, span_str(lease));
    return db_run(&s->db, q);
}

int runs_effect(struct store *s, const struct wire_record *r, const struct run_effect *e)
{
    char text[ID_TEXT];
    uint64_t named = 0;
    if (r->by.number == 0)
        return 0;
    int got = find(s, r, text, &named); /* one that is forgotten, or never was, is in the audit alone */
    if (got <= 0)
        return got;
    struct span id = span_of(text, ID_TEXT);
    if (named < STORE_EFFECTS_MAX && name(s, id, r, e) != 0)
        return -1;
    if (e->begins)
        return 0;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_RUN_EGRESS);
    if (q == NULL)
        return -1;
    db_text(q, 1, id);
    db_int(q, 2, !e->refused && !e->again);
    db_int(q, 3, e->refused);
    db_int(q, 4, e->out);
    db_int(q, 5, e->in);
    return db_run(&s->db, q);
}

int runs_put_egress(struct store *s, struct jsonw *w, struct span id)
{
    static const char *const keys[] = {"requests", "refused", "bytes_out", "bytes_in"};
    sqlite3_stmt *q = db_stmt(&s->db, SQL_RUN_EGRESS_OF);
    if (q == NULL)
        return -1;
    db_text(q, 1, id);
    enum db_result got = db_step(&s->db, q);
    jsonw_kv_object(w, "egress");
    for (int i = 0; got == DB_ROW && i < 4; i++)
        jsonw_kv_u64(w, keys[i], db_col_int(q, i));
    jsonw_end_object(w);
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : 0;
}
