/* How much is used of what sandboxes and tenants may send, as the judge counts it. */
#include "proxy/ledger/store/egress/ops_egress.h"
#include "proxy/ledger/store/store_in.h"

int store_egress_put(struct store *s, const struct wire_egress *e)
{
    if (store_begin(s) != 0)
        return -1;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_EGRESS_PUT);
    if (q == NULL)
        return -1;
    db_int(q, 1, e->whose);
    db_text(q, 2, e->name);
    db_int(q, 3, e->epoch);
    db_int(q, 4, e->used[EGRESS_REQUESTS]);
    db_int(q, 5, e->used[EGRESS_BYTES]);
    return db_run(&s->db, q);
}

int store_egress(struct store *s, void (*each)(void *arg, const struct wire_egress *e), void *arg)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_EGRESS_ALL);
    enum db_result got = DB_FAIL;
    while (q != NULL && (got = db_step(&s->db, q)) == DB_ROW) {
        const struct wire_egress e = {.whose = (uint8_t)db_col_int(q, 0),
                                      .name = db_col(q, 1),
                                      .epoch = db_col_int(q, 2),
                                      .used = {db_col_int(q, 3), db_col_int(q, 4)}};
        each(arg, &e);
    }
    sqlite3_reset(q);
    return got == DB_DONE ? 0 : -1;
}

int egress_forget(struct store *s, struct span sandbox)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_EGRESS_FORGET);
    if (q == NULL)
        return -1;
    db_text(q, 1, sandbox);
    return db_run(&s->db, q);
}
