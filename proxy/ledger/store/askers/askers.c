/* Who waits for a ticket's decision. */
#include "proxy/ledger/store/store_in.h"

static int tell(struct store *s, const struct id *ticket)
{
    struct wire_ticket_state st = {.ticket = *ticket};
    if (db_changes(&s->db) > 0 && s->c.changed != NULL)
        s->c.changed(s->c.arg, CHANGE_ASKER, 0, &st, NULL);
    return 0;
}

int asker_waits(struct store *s, struct span ticket, uint64_t until_ms)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_ASKER_WAITS);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    db_int(q, 2, s->wall);
    db_int(q, 3, until_ms);
    return db_run(&s->db, q);
}

int asker_over(struct store *s, struct span ticket)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_ASKER_OVER);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    return db_run(&s->db, q);
}

int askers_gone(struct store *s)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_ASKERS_GONE);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->wall);
    return db_run(&s->db, q);
}

int store_asker(struct store *s, const struct id *ticket, bool waits, uint64_t ms)
{
    char text[ID_TEXT + 1];
    sqlite3_stmt *q;
    id_text(ticket, text);
    if (store_begin(s) != 0)
        return -1;
    if (waits) {
        uint64_t room = STORE_EXPIRES_MAX_MS;
        return asker_waits(s, span_of(text, ID_TEXT), s->wall + (ms < room ? ms : room)) == 0 ? tell(s, ticket) : -1;
    }
    if ((q = db_stmt(&s->db, SQL_ASKER_GONE)) == NULL)
        return -1;
    db_text(q, 1, span_of(text, ID_TEXT));
    db_int(q, 2, s->wall);
    return db_run(&s->db, q) == 0 ? tell(s, ticket) : -1;
}
