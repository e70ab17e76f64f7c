/* What limits count: reserved before a request may leave, all of them or none, in the transaction of its intent or
 * ticket; so the next request of the same batch finds it. A ticket's count from the moment it is opened, for a window
 * from its claim; whatever ended unsent is given back. Times that lie ahead (the clock was set back) count too. */
#include "proxy/ledger/store/store_in.h"

#include "policy/limit.h"

/* Many tiny amounts must not make every later request slow: past so many, a limit is past whatever they add up to. */
enum { WHO_BYTES = 300, ROWS_MAX = 20000 };
#define AMOUNT_MAX (1ull << 53) /* as the schema says */
#define PRUNE_MS   (31ull * 24 * 3600 * 1000)

static bool is_past(const struct wire_limit *l, uint64_t used)
{
    const struct limit said = {.max = l->max, .amount = l->amount, .uncountable = l->uncountable};
    return l->amount > AMOUNT_MAX || limit_is_past(&said, used);
}

/* Whose use is counted. */
static struct span who_of(struct store *s, const struct wire_limit *l, const struct wire_record *r)
{
    uint8_t text[WHO_BYTES];
    struct span kind = l->per == WIRE_PER_SESSION ? SPAN("session:") : SPAN("sandbox:");
    struct span name = l->per == WIRE_PER_SESSION ? r->session : r->sandbox;
    if (l->per == WIRE_PER_ALL)
        return SPAN("all");
    if (name.n > sizeof(text) - kind.n) {
        db_doom(&s->db, "a sandbox's name is too long to count its use");
        return SPAN_NONE;
    }
    memcpy(text, kind.p, kind.n);
    if (name.n)
        memcpy(text + kind.n, name.p, name.n);
    return store_copy(s, span_of(text, kind.n + name.n));
}

static sqlite3_stmt *keyed(struct store *s, enum sql_id id, struct span who, const struct wire_limit *l)
{
    sqlite3_stmt *q = db_stmt(&s->db, id);
    if (q == NULL)
        return NULL;
    db_text(q, 1, who);
    db_text(q, 2, l->rule);
    db_text(q, 3, l->measure);
    return q;
}

/* Adds what was reserved from one time to another. The sum comes in halves: of none of them can it overflow. */
static int add_used(struct store *s, struct span who, const struct wire_limit *l, uint64_t from, uint64_t to,
                    uint64_t *used, uint64_t *rows)
{
    sqlite3_stmt *q = keyed(s, SQL_RESERVED_SUM, who, l);
    if (q == NULL)
        return -1;
    db_int(q, 4, from);
    db_int(q, 5, to);
    if (db_step(&s->db, q) != DB_ROW)
        return -1;
    uint64_t high = db_col_int(q, 0), low = db_col_int(q, 1), sum = UINT64_MAX;
    *rows += db_col_int(q, 2);
    sqlite3_reset(q);
    if (high < (1ull << 32) && low <= UINT64_MAX - (high << 32))
        sum = (high << 32) + low;
    *used = sum > UINT64_MAX - *used ? UINT64_MAX : *used + sum;
    return 0;
}

/* The last ms that counts no more; tickets nobody has claimed stand at 0, apart. */
static uint64_t horizon(const struct store *s, const struct wire_limit *l)
{
    return s->wall > l->window_ms ? s->wall - l->window_ms : 0;
}

/* When enough of what was used will have aged: *at, 0 when no time will help. */
static int find_room(struct store *s, struct span who, const struct wire_limit *l, uint64_t used, uint64_t *at)
{
    enum db_result got = DB_DONE;
    *at = 0;
    if (l->uncountable || l->amount > AMOUNT_MAX || l->amount > l->max || used == UINT64_MAX)
        return 0;
    uint64_t left = l->max - l->amount, need = used > left ? used - left : 0;
    sqlite3_stmt *q = keyed(s, SQL_RESERVED_FROM, who, l);
    if (q == NULL)
        return -1;
    db_int(q, 4, horizon(s, l));
    while (need > 0 && (got = db_step(&s->db, q)) == DB_ROW) {
        uint64_t amount = db_col_int(q, 1);
        need = amount < need ? need - amount : 0;
        *at = need == 0 ? db_col_int(q, 0) + l->window_ms : 0;
    }
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : 0;
}

/* 1 it has one, 0 it has none, -1. */
static int ticket_has(struct store *s, struct span who, const struct wire_limit *l, struct span ticket)
{
    sqlite3_stmt *q = keyed(s, SQL_RESERVED_HAS, who, l);
    if (q == NULL)
        return -1;
    db_text(q, 4, ticket);
    enum db_result got = db_step(&s->db, q);
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : got == DB_ROW;
}

static int check_one(struct store *s, struct span who, const struct wire_limit *l, bool *past, uint64_t *room)
{
    uint64_t used = 0, rows = 0;
    *room = 0;
    *past = false;
    if (add_used(s, who, l, 0, 0, &used, &rows) != 0 ||
        add_used(s, who, l, horizon(s, l) + 1, INT64_MAX, &used, &rows) != 0)
        return -1;
    if (rows >= ROWS_MAX)
        used = UINT64_MAX;
    *past = is_past(l, used);
    return *past ? find_room(s, who, l, used, room) : 0;
}

static int add_row(struct store *s, struct span who, const struct wire_limit *l, struct span ticket, uint64_t xid)
{
    sqlite3_stmt *q = keyed(s, SQL_RESERVED_ADD, who, l);
    if (q == NULL)
        return -1;
    db_int(q, 4, ticket.n ? 0 : s->wall);
    db_int(q, 5, l->amount);
    if (ticket.n) {
        db_text(q, 6, ticket);
    } else {
        db_text(q, 7, span_str(s->boot));
        db_int(q, 8, xid);
    }
    return db_run(&s->db, q);
}

/* One measure of one rule may have several windows: it is counted once. */
static bool is_again(const struct wire_limits *l, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (l->limit[k].per == l->limit[i].per && span_eq(l->limit[k].rule, l->limit[i].rule) &&
            span_eq(l->limit[k].measure, l->limit[i].measure))
            return true;
    return false;
}

int reserve(struct store *s, const struct wire_limits *l, const struct wire_record *r, struct span ticket,
            uint64_t xid, struct wire_over *over)
{
    struct span who[WIRE_LIMITS_MAX];
    bool has[WIRE_LIMITS_MAX] = {false}, any = false, known = true;
    uint64_t room;
    *over = (struct wire_over){.n = l->n};
    for (size_t i = 0; i < l->n; i++) {
        who[i] = who_of(s, &l->limit[i], r);
        int got = ticket.n ? ticket_has(s, who[i], &l->limit[i], ticket) : 0;
        if (got < 0 || s->db.doomed)
            return -1;
        has[i] = got == 1;
        if (!has[i] && check_one(s, who[i], &l->limit[i], &over->past[i], &room) != 0)
            return -1;
        if (has[i] || !over->past[i])
            continue;
        any = true;
        known &= room != 0;
        over->room_ms = room > over->room_ms ? room : over->room_ms;
    }
    if (!known)
        over->room_ms = 0;
    for (size_t i = 0; i < l->n && !any; i++)
        if (!has[i] && l->limit[i].amount > 0 && !is_again(l, i) &&
            add_row(s, who[i], &l->limit[i], ticket, xid) != 0)
            return -1;
    if (!any)
        over->n = 0;
    return !any;
}

static int on_ticket(struct store *s, enum sql_id id, struct span ticket)
{
    sqlite3_stmt *q = db_stmt(&s->db, id);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    if (id == SQL_RESERVED_CLAIM)
        db_int(q, 2, s->wall);
    return db_run(&s->db, q);
}

int reserve_claimed(struct store *s, struct span ticket)
{
    return on_ticket(s, SQL_RESERVED_CLAIM, ticket);
}

int reserve_free_ticket(struct store *s, struct span ticket)
{
    return on_ticket(s, SQL_RESERVED_FREE_TICKET, ticket);
}

int reserve_free_exchange(struct store *s, uint64_t xid)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_RESERVED_FREE_EXCHANGE);
    if (q == NULL)
        return -1;
    db_text(q, 1, span_str(s->boot));
    db_int(q, 2, xid);
    return db_run(&s->db, q);
}

int reserve_prune(struct store *s)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_RESERVED_OLD);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->wall > PRUNE_MS ? s->wall - PRUNE_MS : 0);
    return db_run(&s->db, q);
}
