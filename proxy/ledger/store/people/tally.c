/* How often people decided, and after how long: counters, which outlive restarts, for whoever looks after them. */
#include "proxy/ledger/store/people/people.h"

enum { OPS_MOST = 64 /* rows; what comes then is counted as others */ };

/* 1 it has a row of its own, or may have one; 0, -1. */
static int has_room(struct store *s, const struct row *r)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TALLY_ROOM);
    if (q == NULL)
        return -1;
    db_text(q, 1, r->record.op);
    db_text(q, 2, r->record.effect);
    db_int(q, 3, OPS_MOST);
    enum db_result got = db_step(&s->db, q);
    int room = got == DB_ROW ? db_col_int(q, 0) != 0 : -1;
    sqlite3_reset(q);
    return room;
}

int tally_add(struct store *s, const struct row *r, bool approved)
{
    static const uint64_t up_to[] = {1000, 3000, 10000, 30000, 60000, 300000, 1800000, 7200000};
    uint64_t ms = s->wall > r->created_ms ? s->wall - r->created_ms : 0;
    int own = has_room(s, r);
    sqlite3_stmt *q = own < 0 ? NULL : db_stmt(&s->db, SQL_TALLY_ADD);
    if (q == NULL)
        return -1;
    db_text(q, 1, own ? r->record.op : SPAN("other"));
    db_text(q, 2, own ? r->record.effect : SPAN("other"));
    db_int(q, 3, approved);
    db_int(q, 4, !approved);
    db_int(q, 5, ms);
    for (int i = 0; i < 8; i++)
        db_int(q, 6 + i, ms < up_to[i]);
    return db_run(&s->db, q);
}
