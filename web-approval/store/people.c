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
    struct span *const texts[] = {&v.operator, & v.state, &v.channel, &v.how, &v.reason, &v.facts};

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

    if (store_query(s,
                    "SELECT operator, state, channel, how, reason, coalesce(facts, x''), passkey IS NOT NULL, at_ms"
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
