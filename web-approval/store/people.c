/* The desk's reading of people and votes (proxy/ledger/store/people/schema_10.sql). */
#include "web-approval/store/people.h"

#include "web-approval/store/store_in.h"

#define PERSON_COLUMNS "SELECT name, coalesce(uid, ''), groups, password, generation, created_ms FROM operator "

struct person_walk {
    desk_store_person_fn *fn;
    void *ctx;
};

static int person_step(void *ctx, struct row *r)
{
    struct person_walk *w = ctx;
    struct person_row o;
    struct span *const texts[] = {&o.name, &o.uid, &o.groups, &o.password};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = row_text(r);
    o.generation = row_number(r);
    o.created_ms = row_number(r);
    return r->full ? 1 : w->fn(w->ctx, &o);
}

static int keep_one(void *ctx, const struct person_row *r)
{
    *(struct person_row *)ctx = *r;
    return 1;
}

int desk_store_person(struct desk_store *s, struct span by, bool uid, struct arena *a, struct person_row *r,
                      struct err *e)
{
    struct person_walk w = {keep_one, r};
    sqlite3_stmt *q;

    *r = (struct person_row){.generation = 0};
    if (store_query(s, uid ? PERSON_COLUMNS "WHERE uid = :by" : PERSON_COLUMNS "WHERE name = :by", &q, e) != 0)
        return -1;
    store_bind(q, ":by", by);
    if (store_walk(s, q, a, person_step, &w, e) != 0)
        return -1;
    return r->name.n > 0;
}

int desk_store_people(struct desk_store *s, struct arena *a, desk_store_person_fn *fn, void *ctx, struct err *e)
{
    struct person_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (store_query(s, PERSON_COLUMNS "ORDER BY name LIMIT 1000", &q, e) != 0)
        return -1;
    return store_walk(s, q, a, person_step, &w, e);
}

struct vote_walk {
    desk_store_vote_fn *fn;
    void *ctx;
};

static int vote_step(void *ctx, struct row *r)
{
    struct vote_walk *w = ctx;
    struct vote_row v;
    struct span *const texts[] = {&v.operator, & v.state, &v.channel, &v.how, &v.reason, &v.facts, &v.instead_of};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = row_text(r);
    v.passkey = row_number(r);
    v.at_ms = row_number(r);
    return r->full ? 1 : w->fn(w->ctx, &v);
}

int desk_store_votes(struct desk_store *s, struct span ticket, struct arena *a, desk_store_vote_fn *fn, void *ctx,
                     struct err *e)
{
    struct vote_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (store_query(
            s,
            "SELECT operator, state, channel, how, reason, coalesce(facts, x''), instead_of, passkey IS NOT NULL, "
            "at_ms"
            " FROM vote WHERE ticket = :ticket ORDER BY at_ms, operator LIMIT 16",
            &q, e) != 0)
        return -1;
    store_bind(q, ":ticket", ticket);
    return store_walk(s, q, a, vote_step, &w, e);
}

struct gate_walk {
    desk_store_gate_fn *fn;
    void *ctx;
};

static int gate_step(void *ctx, struct row *r)
{
    struct gate_walk *w = ctx;
    struct gate_row g = {.name = row_text(r)};

    g.state = row_text(r);
    g.words = row_text(r);
    g.at_ms = row_number(r);
    return r->full ? 1 : w->fn(w->ctx, &g);
}

int desk_store_gates(struct desk_store *s, struct span ticket, struct arena *a, desk_store_gate_fn *fn, void *ctx,
                     struct err *e)
{
    struct gate_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (store_query(s, "SELECT name, state, words, at_ms FROM gate WHERE ticket = :ticket ORDER BY name LIMIT 16", &q,
                    e) != 0)
        return -1;
    store_bind(q, ":ticket", ticket);
    return store_walk(s, q, a, gate_step, &w, e);
}

struct escalation_walk {
    desk_store_escalation_fn *fn;
    void *ctx;
};

static int escalation_step(void *ctx, struct row *r)
{
    struct escalation_walk *w = ctx;
    struct escalation_row o = {.entry = row_text(r)};

    o.due_ms = row_number(r);
    o.since_ms = row_number(r);
    return r->full ? 1 : w->fn(w->ctx, &o);
}

int desk_store_escalations(struct desk_store *s, struct span ticket, struct arena *a, desk_store_escalation_fn *fn,
                           void *ctx, struct err *e)
{
    struct escalation_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (store_query(s,
                    "SELECT entry, due_ms, since_ms FROM escalation WHERE ticket = :ticket ORDER BY after_ms, entry "
                    "LIMIT 16",
                    &q, e) != 0)
        return -1;
    store_bind(q, ":ticket", ticket);
    return store_walk(s, q, a, escalation_step, &w, e);
}

struct deputy_walk {
    desk_store_deputy_fn *fn;
    void *ctx;
};

static int deputy_step(void *ctx, struct row *r)
{
    struct deputy_walk *w = ctx;
    struct deputy_row d = {.instead_of = row_text(r)};

    d.uid = row_text(r);
    d.groups = row_text(r);
    d.deputy = row_text(r);
    d.since_ms = row_number(r);
    d.until_ms = row_number(r);
    return r->full ? 1 : w->fn(w->ctx, &d);
}

int desk_store_deputies(struct desk_store *s, struct span deputy, struct span instead_of, uint64_t now_ms,
                        struct arena *a, desk_store_deputy_fn *fn, void *ctx, struct err *e)
{
    struct deputy_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (store_query(
            s,
            "SELECT d.instead_of, coalesce(o.uid, ''), o.groups, d.deputy, d.since_ms, d.until_ms FROM deputy d"
            " JOIN operator o ON o.name = d.instead_of WHERE d.until_ms > :now AND :deputy IN ('', d.deputy)"
            " AND :instead IN ('', d.instead_of) ORDER BY d.instead_of LIMIT 1000",
            &q, e) != 0)
        return -1;
    store_bind(q, ":deputy", deputy);
    store_bind(q, ":instead", instead_of);
    store_bind_u64(q, ":now", now_ms);
    return store_walk(s, q, a, deputy_step, &w, e);
}

struct tally_walk {
    desk_store_tally_fn *fn;
    void *ctx;
};

static int tally_step(void *ctx, struct row *r)
{
    struct tally_walk *w = ctx;
    struct tally_row t = {.op = row_text(r)};

    t.effect = row_text(r);
    t.approved = row_number(r);
    t.denied = row_number(r);
    t.ms = row_number(r);
    for (size_t i = 0; i < TALLY_BUCKETS; i++)
        t.under[i] = row_number(r);
    return r->full ? 1 : w->fn(w->ctx, &t);
}

int desk_store_tally(struct desk_store *s, struct arena *a, desk_store_tally_fn *fn, void *ctx, struct err *e)
{
    struct tally_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (store_query(s,
                    "SELECT op, effect, approved, denied, ms, s1, s3, s10, s30, s60, s300, s1800, s7200 FROM tally "
                    "ORDER BY op, effect LIMIT 100",
                    &q, e) != 0)
        return -1;
    return store_walk(s, q, a, tally_step, &w, e);
}
