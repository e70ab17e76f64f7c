/* The people who decide: their names, groups and passwords. */
#include "proxy/ledger/store/grants/grants.h"
#include "proxy/ledger/store/people/people.h"

enum { STEP = 64, NAME_MOST = 40, GROUP_MOST = 64, GROUPS_MOST = 512, PEOPLE_MOST = 1000, PASSWORD_MOST = 256 };

static bool word_ok(struct span v, const char *more, size_t most)
{
    for (size_t i = 0; i < v.n; i++) {
        uint8_t c = v.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || c == '\0' || strchr(more, c) == NULL))
            return false;
    }
    return v.n > 0 && v.n <= most;
}

/* In order, each once, with a space between. */
static bool groups_ok(struct span list)
{
    struct span one, before = SPAN_NONE, rest = list;
    while (rest.n > 0) {
        bool more = span_cut(rest, ' ', &one, &rest);
        if (!word_ok(one, "._-:@/", GROUP_MOST) || (more && rest.n == 0) || (before.p && span_cmp(before, one) >= 0))
            return false;
        before = one;
    }
    return list.n <= GROUPS_MOST;
}

/* 1, 0, -1. */
static int exists(struct store *s, enum sql_id how, struct span by)
{
    sqlite3_stmt *q = db_stmt(&s->db, how);
    if (q == NULL)
        return -1;
    db_text(q, 1, by);
    enum db_result got = db_step(&s->db, q);
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : got == DB_ROW;
}

static int many(struct store *s)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_OPERATOR_COUNT);
    if (q == NULL || db_step(&s->db, q) != DB_ROW)
        return -1;
    uint64_t n = db_col_int(q, 0);
    sqlite3_reset(q);
    return n >= PEOPLE_MOST;
}

static const char *objection(struct store *s, const struct store_operator *o, bool *bad)
{
    bool add = o->what == OPERATOR_ADD;
    *bad = false;
    if (!word_ok(o->name, "._-@", NAME_MOST))
        return "a name is up to 40 of a-z 0-9 . _ - @, and begins with a letter or digit";
    if (!groups_ok(o->groups))
        return "a group's name is up to 64 of a-z 0-9 . _ - : @ /, and each is named once";
    if (o->password.n > PASSWORD_MOST)
        return "the password cannot be kept";
    int there = exists(s, SQL_OPERATOR_GET, o->name), full = add ? many(s) : 0;
    int taken = add && o->uid.n ? exists(s, SQL_OPERATOR_OF_UID, o->uid) : 0;
    *bad = there < 0 || full < 0 || taken < 0;
    if (!add)
        return there == 0 ? "nobody has this name; see `countersign operator list`" : NULL;
    return there == 1   ? "somebody has this name already"
           : taken == 1 ? "this user of the machine is somebody else already"
           : full == 1  ? "as many people as there may be; remove one"
                        : NULL;
}

static int write_down(struct store *s, const struct store_operator *o)
{
    static const char *const words[] = {"", "added", "groups", "password", "removed"};
    struct audit a;
    audit_begin(&a, s, "operator", NULL, NULL, SPAN_NONE);
    jsonw_kv(&a.w, "operator", o->by);
    jsonw_kv(&a.w, "act", span_str(words[o->what]));
    jsonw_kv(&a.w, "name", o->name);
    if (o->what == OPERATOR_ADD || o->what == OPERATOR_GROUPS)
        jsonw_kv(&a.w, "groups", o->groups);
    if (o->uid.n)
        jsonw_kv(&a.w, "uid", o->uid);
    return audit_end(&a);
}

static int run(struct store *s, const struct store_operator *o)
{
    static const enum sql_id does[] = {0, SQL_OPERATOR_ADD, SQL_OPERATOR_GROUPS, SQL_OPERATOR_PASSWORD,
                                       SQL_OPERATOR_REMOVE};
    sqlite3_stmt *q = db_stmt(&s->db, does[o->what]);
    if (q == NULL)
        return -1;
    db_text(q, 1, o->name);
    if (o->what == OPERATOR_ADD) {
        db_text_or_null(q, 2, o->uid);
        db_text(q, 3, o->groups);
        db_int(q, 4, s->wall);
    } else if (o->what != OPERATOR_REMOVE) {
        db_text(q, 2, o->what == OPERATOR_GROUPS ? o->groups : o->password);
        db_int(q, 3, s->wall);
    }
    return db_run(&s->db, q);
}

/* What somebody agreed to and has not left does not. */
static int end_unsent(struct store *s, struct span name)
{
    char ids[STEP][ID_TEXT];
    struct row r;
    size_t n;
    do {
        sqlite3_stmt *q = db_stmt(&s->db, SQL_VOTED_UNSENT);
        enum db_result got = DB_FAIL;
        if (q == NULL)
            return -1;
        db_text(q, 1, name);
        for (n = 0; n < STEP && (got = db_step(&s->db, q)) == DB_ROW;)
            if (db_col(q, 0).n == ID_TEXT)
                memcpy(ids[n++], db_col(q, 0).p, ID_TEXT);
        sqlite3_reset(q);
        if (got == DB_FAIL)
            return -1;
        for (size_t i = 0; i < n; i++)
            if (row_find(s, span_of(ids[i], ID_TEXT), &r) != 1 ||
                ticket_decide(s, &r, TICKET_CANCELLED, SPAN("operators"), SPAN_NONE,
                              SPAN("who had approved it was removed")) != 0)
                return -1;
    } while (n == STEP);
    return 0;
}

/* Their votes on what still waits: who is gone, or is of other groups, may not be who has to agree. Of who is gone
 * what they gave ends too. */
static int end_says(struct store *s, const struct store_operator *o)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_VOTES_END);
    if (q == NULL)
        return -1;
    db_text(q, 1, o->name);
    if (db_run(&s->db, q) != 0)
        return -1;
    if (o->what != OPERATOR_REMOVE)
        return 0;
    return grants_end_by(s, o->name, "who gave it was removed") == 0 ? end_unsent(s, o->name) : -1;
}

int store_operator_put(struct store *s, const struct store_operator *o, const char **why)
{
    bool bad;
    if (store_begin(s) != 0)
        return -1;
    if (o->what < OPERATOR_ADD || o->what > OPERATOR_REMOVE) {
        *why = "there is no such act";
        return 0;
    }
    *why = objection(s, o, &bad);
    if (bad || *why != NULL)
        return bad ? -1 : 0;
    if ((o->what == OPERATOR_REMOVE && deputies_end_of(s, o->name, o->by) != 0) ||
        (o->what == OPERATOR_PASSWORD && deputies_end_named(s, o->name, o->by) != 0))
        return -1;
    if (run(s, o) != 0)
        return -1;
    if ((o->what == OPERATOR_REMOVE || o->what == OPERATOR_GROUPS) && end_says(s, o) != 0)
        return -1;
    return write_down(s, o);
}
