/* Who decides in whose place, for a while. */
#include "proxy/ledger/store/people/people.h"

enum { NAME_MOST = 64, AGREED_MOST = 32 /* who agreed to one ticket */ };

/* ---- whose deputy somebody is ---- */

static int any(struct store *s, enum sql_id how, struct span a, struct span b)
{
    sqlite3_stmt *q = db_stmt(&s->db, how);
    if (q == NULL)
        return -1;
    db_text(q, 1, a);
    db_text(q, 2, b);
    db_int(q, 3, s->wall);
    db_int(q, 4, s->uptime);
    enum db_result got = db_step(&s->db, q);
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : got == DB_ROW;
}

int deputy_is(struct store *s, struct span who, struct span instead_of)
{
    return any(s, SQL_DEPUTY_IS, instead_of, who);
}

int deputy_owns(struct store *s, struct span who, struct span owner)
{
    return owner.n == 0 ? 0 : any(s, SQL_DEPUTY_OWNS, who, owner);
}

/* ---- who agreed, as so many people ---- */

/* Names in one set are one. */
struct sets {
    struct span name[2 * (AGREED_MOST + 1)];
    size_t of[2 * (AGREED_MOST + 1)], n;
};

static size_t find(const struct sets *t, struct span name)
{
    size_t i = 0;
    while (i < t->n && !span_eq(t->name[i], name))
        i++;
    return i;
}

static size_t set_of(struct sets *t, struct span name)
{
    size_t i = find(t, name);
    if (i == t->n) {
        t->name[i] = name;
        t->of[i] = i;
        t->n++;
    }
    return i;
}

static void join(struct sets *t, size_t a, size_t b)
{
    size_t from = t->of[a], to = t->of[b];
    for (size_t i = 0; i < t->n; i++)
        if (t->of[i] == from)
            t->of[i] = to;
}

static void add(struct sets *t, struct span who, struct span instead_of)
{
    size_t at = set_of(t, who);
    if (instead_of.n)
        join(t, at, set_of(t, instead_of));
}

static size_t count(const struct sets *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->of[i] == i;
    return n;
}

/* Those who decide for another now, among them. */
static int join_deputies(struct store *s, struct sets *t)
{
    enum db_result got;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_DEPUTIES_NOW);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->wall);
    db_int(q, 2, s->uptime);
    while ((got = db_step(&s->db, q)) == DB_ROW) {
        size_t a = find(t, db_col(q, 0)), b = find(t, db_col(q, 1));
        if (a < t->n && b < t->n)
            join(t, a, b);
    }
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : 0;
}

int deputies_agreed(struct store *s, struct span ticket, const struct store_decision *d)
{
    struct sets t = {.n = 0};
    enum db_result got;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_VOTES);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    db_int(q, 2, AGREED_MOST); /* past so many nobody more counts */
    while ((got = db_step(&s->db, q)) == DB_ROW)
        add(&t, store_copy(s, db_col(q, 0)), store_copy(s, db_col(q, 3)));
    sqlite3_reset(q);
    if (got == DB_FAIL)
        return -1;
    if (d != NULL)
        add(&t, d->by, d->instead_of);
    return join_deputies(s, &t) == 0 ? (int)count(&t) : -1;
}

/* ---- naming one, and the end of it ---- */

static int write_down(struct store *s, const char *act, struct span by, struct span instead_of, struct span deputy,
                      uint64_t until_ms)
{
    struct audit a;
    audit_begin(&a, s, "deputy", NULL, NULL, SPAN_NONE);
    jsonw_kv(&a.w, "act", span_str(act));
    jsonw_kv(&a.w, "by", by);
    jsonw_kv(&a.w, "for", instead_of);
    jsonw_kv(&a.w, "deputy", deputy);
    if (until_ms)
        jsonw_kv_u64(&a.w, "until_ms", until_ms);
    return audit_end(&a);
}

static int run_of(struct store *s, enum sql_id how, struct span name)
{
    sqlite3_stmt *q = db_stmt(&s->db, how);
    if (q == NULL)
        return -1;
    db_text(q, 1, name);
    return db_run(&s->db, q);
}

/* taken_back: what they said in that place of what still waits does not count any more; what they said while their
 * time lasted does. */
static int over(struct store *s, struct span instead_of, struct span deputy, struct span by, bool taken_back)
{
    if (run_of(s, SQL_DEPUTY_END, instead_of) != 0 ||
        (taken_back && run_of(s, SQL_VOTES_INSTEAD_END, instead_of) != 0))
        return -1;
    return write_down(s, "ended", by, instead_of, deputy, 0);
}

/* 1, 0 there is none, -1. */
static int one(struct store *s, sqlite3_stmt *q, char instead_of[NAME_MOST], char deputy[NAME_MOST], struct span *who,
               struct span *is)
{
    enum db_result got = q == NULL ? DB_FAIL : db_step(&s->db, q);
    if (got == DB_ROW) {
        struct span a = db_col(q, 0), b = db_col(q, 1);
        if (a.n > NAME_MOST || b.n > NAME_MOST) {
            sqlite3_reset(q);
            return db_doom(&s->db, "a deputy in the store is damaged");
        }
        memcpy(instead_of, a.p, a.n);
        memcpy(deputy, b.p, b.n);
        *who = span_of(instead_of, a.n);
        *is = span_of(deputy, b.n);
    }
    if (q != NULL)
        sqlite3_reset(q);
    return got == DB_FAIL ? -1 : got == DB_ROW;
}

int deputies_end_of(struct store *s, struct span name, struct span by)
{
    char a[NAME_MOST], b[NAME_MOST];
    struct span who, is;
    for (;;) {
        sqlite3_stmt *q = db_stmt(&s->db, SQL_DEPUTIES_OF);
        if (q != NULL)
            db_text(q, 1, name);
        int got = one(s, q, a, b, &who, &is);
        if (got <= 0)
            return got;
        if (over(s, who, is, by, true) != 0)
            return -1;
    }
}

int deputies_end_all(struct store *s, const char *how)
{
    char a[NAME_MOST], b[NAME_MOST];
    struct span who, is;
    int got;
    while ((got = one(s, db_stmt(&s->db, SQL_DEPUTIES_ANY), a, b, &who, &is)) == 1)
        if (over(s, who, is, span_str(how), true) != 0)
            return -1;
    return got;
}

int deputies_tick(struct store *s)
{
    char a[NAME_MOST], b[NAME_MOST];
    struct span who, is;
    for (;;) {
        sqlite3_stmt *q = db_stmt(&s->db, SQL_DEPUTIES_OVER);
        if (q != NULL) {
            db_int(q, 1, s->wall);
            db_int(q, 2, s->uptime);
        }
        int got = one(s, q, a, b, &who, &is);
        if (got <= 0)
            return got;
        if (store_begin(s) != 0 || over(s, who, is, SPAN("time"), false) != 0)
            return -1;
    }
}

int deputies_new_boot(struct store *s)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_DEPUTIES_NEW_BOOT);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->wall);
    db_int(q, 2, s->uptime);
    return db_run(&s->db, q);
}

/* 1 there is such a person, 0, -1. */
static int person(struct store *s, struct span name)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_OPERATOR_GET);
    if (q == NULL)
        return -1;
    db_text(q, 1, name);
    enum db_result got = db_step(&s->db, q);
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : got == DB_ROW;
}

static const char *objection(struct store *s, const struct store_deputy *d, bool *bad)
{
    int self = person(s, d->instead_of), other = self < 0 ? -1 : person(s, d->deputy);
    *bad = other < 0;
    return *bad                             ? NULL
           : !span_eq(d->by, d->instead_of) ? "a deputy is named by whom they stand in for alone"
           : self == 0  ? "only people who were added by name (countersign operator add) have a deputy"
           : other == 0 ? "nobody has the deputy's name; see `countersign operator list`"
           : span_eq(d->deputy, d->instead_of) ? "nobody is their own deputy"
           : d->for_ms < STORE_DEPUTY_LEAST    ? "a deputy is named for a minute at least"
           : d->for_ms > STORE_DEPUTY_MOST     ? "a deputy is named for at most 90 days"
                                               : NULL;
}

static int name_one(struct store *s, const struct store_deputy *d)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_DEPUTY_PUT);
    if (q == NULL)
        return -1;
    db_text(q, 1, d->instead_of);
    db_text(q, 2, d->deputy);
    db_int(q, 3, s->wall);
    db_int(q, 4, s->wall + d->for_ms);
    db_int(q, 5, s->uptime + d->for_ms);
    return db_run(&s->db, q) == 0 ? write_down(s, "named", d->by, d->instead_of, d->deputy, s->wall + d->for_ms) : -1;
}

/* 1 there is one, 0, -1. */
static int get(struct store *s, struct span instead_of, struct span *is)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_DEPUTY_GET);
    if (q == NULL)
        return -1;
    db_text(q, 1, instead_of);
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW)
        *is = store_copy(s, db_col(q, 0));
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : got == DB_ROW;
}

int deputies_end_named(struct store *s, struct span instead_of, struct span by)
{
    struct span is;
    int got = get(s, instead_of, &is);
    return got == 1 ? over(s, instead_of, is, by, true) : got;
}

/* 1 there was one, 0, -1. */
static int end_one(struct store *s, const struct store_deputy *d, const char **why)
{
    struct span is;
    int got = get(s, d->instead_of, &is);
    if (got != 1)
        return got;
    if (!span_eq(d->by, d->instead_of) && !span_eq(d->by, is) && !d->machine) {
        *why = "it is ended by either of the two, or by an operator of this machine";
        return 1;
    }
    return over(s, d->instead_of, is, d->by, true) == 0 ? 1 : -1;
}

int store_deputy_put(struct store *s, const struct store_deputy *d, const char **why)
{
    bool bad = false;
    if (store_begin(s) != 0)
        return -1;
    *why = d->by.n == 0 ? "nobody says who asks for it" : d->deputy.n ? objection(s, d, &bad) : NULL;
    if (bad || *why != NULL)
        return bad ? -1 : 0;
    int got = end_one(s, d, why);
    if (got < 0 || *why != NULL)
        return got < 0 ? -1 : 0;
    if (d->deputy.n == 0) {
        *why = got == 0 ? "nobody stands in for that person now" : NULL;
        return 0;
    }
    return name_one(s, d);
}
