/* Marks that a write's first byte has left. A mark is kept in memory until the outcome comes, which then carries it,
 * or until the second ends (store_tick): most writes need no row and no record of their own for it. Nothing is less
 * true after a crash. The intent was on disk before the byte left, and an intent is as unknown with a mark as without
 * one: recover.c ends both so. While the ledger lives, memory says what the row would: "not sent" against a mark is
 * not believed (weigh in effects.c). A mark is gone once its turn is committed, and stands again when that failed. */
#include "proxy/ledger/store/store_in.h"

static int write_down(struct store *s, const struct sent_mark *m)
{
    struct audit a;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_EFFECT_SENT);
    if (q == NULL)
        return -1;
    db_text(q, 1, span_str(s->boot));
    db_int(q, 2, m->xid);
    db_int(q, 3, m->wall);
    enum db_result got = db_step(&s->db, q);
    if (got != DB_ROW) /* no such intent, or its end is known */
        return got == DB_DONE ? 0 : -1;
    struct span ticket = store_copy(s, db_col(q, 0)), sandbox = store_copy(s, db_col(q, 1));
    sqlite3_reset(q);
    audit_begin(&a, s, "sent", NULL, &m->xid, ticket);
    jsonw_kv(&a.w, "sandbox", sandbox);
    return audit_end(&a);
}

int store_sent(struct store *s, uint64_t xid)
{
    struct sent_mark mark = {.xid = xid, .wall = s->wall};
    if (s->sent.n == STORE_SENT_MAX)
        return store_begin(s) == 0 ? write_down(s, &mark) : -1;
    s->sent.at[s->sent.n++] = mark;
    return 0;
}

uint64_t sent_take(struct store *s, uint64_t xid)
{
    for (size_t i = 0; i < s->sent.n; i++)
        if (s->sent.at[i].xid == xid) {
            s->sent.at[i].spent = true;
            return s->sent.at[i].wall;
        }
    return 0;
}

int store_sent_write(struct store *s)
{
    for (size_t i = 0; i < s->sent.n; i++) {
        if (s->sent.at[i].spent)
            continue;
        if (store_begin(s) != 0 || write_down(s, &s->sent.at[i]) != 0)
            return -1;
        s->sent.at[i].spent = true;
    }
    return 0;
}

void sent_settle(struct store *s, bool kept)
{
    size_t left = 0;
    for (size_t i = 0; i < s->sent.n; i++) {
        struct sent_mark m = s->sent.at[i];
        if (m.spent && kept)
            continue;
        m.spent = false;
        s->sent.at[left++] = m;
    }
    s->sent.n = left;
}
