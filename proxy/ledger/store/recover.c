/* What an earlier process left behind. */
#include <stdio.h>

#include "proxy/ledger/store/gates/gates.h"
#include "proxy/ledger/store/tell/tell.h"
#include "proxy/ledger/store/people/people.h"
#include "proxy/ledger/store/grants/grants.h"

struct open_effect {
    char boot[BOOT_TEXT + 1], ticket[ID_TEXT], sandbox[257], state[8];
    size_t nticket;
    uint64_t xid;
};
enum { STEP = 64 };

static size_t read_open(struct store *s, struct open_effect *all, bool *failed)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_EFFECTS_OPEN);
    enum db_result got = DB_FAIL;
    size_t n = 0;
    while (n < STEP && (got = db_step(&s->db, q)) == DB_ROW) {
        struct open_effect *e = &all[n++];
        snprintf(e->boot, sizeof(e->boot), "%.*s", SPAN_FMT(db_col(q, 0)));
        e->xid = db_col_int(q, 1);
        e->nticket = db_col(q, 2).n == ID_TEXT ? ID_TEXT : 0;
        if (e->nticket)
            memcpy(e->ticket, db_col(q, 2).p, ID_TEXT);
        snprintf(e->sandbox, sizeof(e->sandbox), "%.*s", SPAN_FMT(span_first(db_col(q, 3), 256)));
        snprintf(e->state, sizeof(e->state), "%.*s", SPAN_FMT(db_col(q, 4)));
    }
    sqlite3_reset(q);
    *failed = got == DB_FAIL;
    return n;
}

static int effect_unknown(struct store *s, const struct open_effect *e, const char *why)
{
    struct audit a;
    struct row r;
    struct span ticket = span_of(e->ticket, e->nticket);
    sqlite3_stmt *q = db_stmt(&s->db, SQL_EFFECT_END);
    int ended = 0;
    if (q == NULL)
        return -1;
    db_text(q, 1, span_str(e->boot));
    db_int(q, 2, e->xid);
    db_text(q, 3, SPAN("unknown"));
    db_int(q, 4, s->wall);
    db_text(q, 7, span_str(e->state));
    if (db_run(&s->db, q) != 0)
        return -1;
    if (ticket.n) {
        int got = row_find(s, ticket, &r);
        if (got < 0 ||
            (got == 1 && r.state == TICKET_EXECUTING && (ended = ticket_end(s, &r, TICKET_UNKNOWN, NULL)) < 0))
            return -1;
    }
    audit_begin(&a, s, "result", e->boot, &e->xid, ticket);
    jsonw_kv(&a.w, "outcome", SPAN("unknown"));
    jsonw_kv(&a.w, "why", span_str(why));
    jsonw_kv(&a.w, "sandbox", span_str(e->sandbox));
    if (audit_end(&a) != 0)
        return -1;
    return ended == 1 ? ticket_told(s, &r) : 0;
}

int recover_executing(struct store *s, const char *why)
{
    static struct open_effect all[STEP];
    bool failed;
    size_t n;
    do {
        n = read_open(s, all, &failed);
        if (failed)
            return -1;
        for (size_t i = 0; i < n; i++) {
            arena_free(&s->arena);
            if (effect_unknown(s, &all[i], why) != 0)
                return -1;
        }
    } while (n == STEP);
    return 0;
}

int meta_set(struct store *s, struct span key, struct span value)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_META_SET);
    if (q == NULL)
        return -1;
    db_text(q, 1, key);
    db_text(q, 2, value);
    return db_run(&s->db, q);
}

/* 1 the kernel is the one that wrote the CLOCK_BOOTTIME deadlines, 0 it is not, -1. */
static int same_kernel(struct store *s)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_META_GET);
    if (q == NULL)
        return -1;
    db_text(q, 1, SPAN("kernel_boot"));
    enum db_result got = db_step(&s->db, q);
    bool same = got == DB_ROW && s->kernel_boot[0] && span_eq(db_col(q, 0), span_str(s->kernel_boot));
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : same;
}

/* All that is open ends: the clock cannot be trusted to say what is still alive. */
static int expire_all(struct store *s)
{
    for (;;) {
        char id[ID_TEXT];
        struct row r;
        sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKETS_OPEN);
        enum db_result got = db_step(&s->db, q);
        if (got == DB_ROW && db_col(q, 0).n == ID_TEXT)
            memcpy(id, db_col(q, 0).p, ID_TEXT);
        sqlite3_reset(q);
        if (got != DB_ROW)
            return got == DB_DONE ? 0 : -1;
        arena_free(&s->arena);
        if (row_find(s, span_of(id, ID_TEXT), &r) != 1 ||
            ticket_decide(s, &r, TICKET_EXPIRED, SPAN("time"), SPAN_NONE,
                          SPAN("the clock is behind the last record; nobody knows how old this is")) != 0)
            return -1;
    }
}

/* After a reboot CLOCK_BOOTTIME begins at zero: what is left of each life is counted by the wall clock once. */
static int new_kernel(struct store *s)
{
    sqlite3_stmt *q;
    if (s->now.seq && s->wall + 1000 < s->last_ms &&
        (expire_all(s) != 0 || deputies_end_all(s, "the clock is behind the last record") != 0))
        return -1;
    if (escalate_new_boot(s) != 0 || deputies_new_boot(s) != 0)
        return -1;
    if (grants_end_all(s, "the machine was started again") != 0)
        return -1;
    if ((q = db_stmt(&s->db, SQL_TICKETS_NEW_BOOT)) == NULL)
        return -1;
    db_int(q, 1, s->wall);
    db_int(q, 2, s->uptime);
    if (db_run(&s->db, q) != 0 || db_run(&s->db, db_stmt(&s->db, SQL_ANSWERS_ALL)) != 0)
        return -1;
    return meta_set(s, SPAN("kernel_boot"), span_str(s->kernel_boot));
}

int recover_start(struct store *s, struct err *e)
{
    struct audit a;
    if (store_begin(s) != 0)
        goto fail;
    audit_begin(&a, s, "start", NULL, NULL, SPAN_NONE);
    jsonw_kv(&a.w, "boot", span_str(s->boot));
    if (s->c.secrets_only)
        jsonw_kv(&a.w, "for", SPAN("secrets"));
    if (audit_end(&a) != 0)
        goto fail;
    int same = same_kernel(s);
    if (same < 0 || (same == 0 && new_kernel(s) != 0) || meta_set(s, SPAN("boot"), span_str(s->boot)) != 0 ||
        askers_gone(s) != 0 || tell_start(s) != 0 ||
        gates_lost(s, SPAN("the gateway ended while it was asked")) != 0 ||
        recover_executing(s, "the gateway ended while it was under way") != 0 || store_commit(s) != 0)
        goto fail;
    return 0;
fail:
    return err_set(e, "the store cannot be brought in order: %s", s->db.why.text);
}
