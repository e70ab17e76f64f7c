/* The desk's reading of grants (proxy/ledger/store/grants/schema_8.sql). */
#include "web-approval/store/grants.h"

#include "web-approval/store/store_in.h"

struct grant_walk {
    desk_store_grant_fn *fn;
    void *ctx;
};

static int grant_step(void *ctx, struct row *r)
{
    struct grant_walk *w = ctx;
    struct grant_row o;
    struct span *const texts[] = {&o.id,      &o.ticket, &o.sandbox, &o.session, &o.tenant,     &o.state,     &o.by,
                                  &o.channel, &o.reason, &o.how,     &o.policy,  &o.method,     &o.scheme,    &o.host,
                                  &o.op,      &o.effect, &o.rule_id, &o.summary, &o.credential, &o.shape_json};
    uint64_t *const numbers[] = {&o.port, &o.uses, &o.uses_max, &o.created_ms, &o.expires_ms, &o.ended_ms};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = row_text(r);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        *numbers[i] = row_number(r);
    return r->full ? 1 : w->fn(w->ctx, &o);
}

int desk_store_grants(struct desk_store *s, struct span prefix, size_t limit, struct arena *a,
                      desk_store_grant_fn *fn, void *ctx, struct err *e)
{
    struct grant_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (store_query(s,
                    "SELECT g.id, g.ticket, g.sandbox, g.session, g.tenant, g.state, g.granted_by, g.channel,"
                    " g.reason, g.how, g.policy, t.method, t.scheme, g.host, t.op, t.effect, t.rule_id, t.summary,"
                    " g.credential, t.shape_json, g.port, g.uses, g.uses_max, g.created_ms, g.expires_ms,"
                    " coalesce(g.ended_ms, 0) FROM grants g JOIN ticket t ON t.id = g.ticket"
                    " WHERE substr(g.id, 1, length(:prefix)) = :prefix"
                    " ORDER BY g.state <> 'live', g.created_ms DESC LIMIT :limit",
                    &q, e) != 0)
        return -1;
    store_bind(q, ":prefix", prefix);
    store_bind_u64(q, ":limit", limit);
    return store_walk(s, q, a, grant_step, &w, e);
}

static int offer_step(void *ctx, struct row *r)
{
    struct grant_offer *o = ctx;

    o->shape_json = row_text(r);
    o->used = row_text(r);
    o->uses = row_number(r);
    o->within_ms = row_number(r);
    return 1;
}

int desk_store_grant_offer(struct desk_store *s, struct span ticket, struct arena *a, struct grant_offer *o,
                           struct err *e)
{
    sqlite3_stmt *q;

    *o = (struct grant_offer){.uses = 0};
    if (store_query(
            s, "SELECT shape_json, coalesce(grant_id, ''), grant_uses, grant_within_ms FROM ticket WHERE id = :id",
            &q, e) != 0)
        return -1;
    store_bind(q, ":id", ticket);
    return store_walk(s, q, a, offer_step, o, e);
}
