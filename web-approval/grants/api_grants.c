#include "common/net/chan.h"
#include "policy/policy.h"
#include "proxy/msgs.h"
#include "web-approval/grants/grants.h"
#include "web-approval/route.h"

enum { GRANTS_LISTED = 500 };

const char *grants_state(const struct exchange *x, const struct grant_row *g)
{
    static const char *const states[] = {"used", "revoked", "ended"};

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (span_eq(g->state, span_str(states[i])))
            return states[i];
    if (!span_eq(g->state, SPAN("live")) || g->expires_ms <= x->wall_ms)
        return "expired";
    return x->desk->policy && !span_eq(policy_digest(x->desk->policy), g->policy) ? "other-policy" : "live";
}

struct grant_offer grants_offer(struct exchange *x, const struct ticket *t)
{
    struct grant_offer o;
    struct err e;
    bool now = x->desk->policy && span_eq(policy_digest(x->desk->policy), t->policy);

    if (desk_store_grant_offer(x->desk->store, t->id, &x->arena, &o, &e) != 0)
        o = (struct grant_offer){.uses = 0};
    if (!now || !span_eq(t->state, SPAN("pending")) || o.shape_json.n == 0 || o.within_ms == 0)
        o.uses = 0; /* what another policy held nothing covers */
    return o;
}

struct listing {
    struct exchange *x;
    struct jsonw w;
};

static int one(void *ctx, const struct grant_row *g)
{
    struct listing *l = ctx;
    struct jsonw *w = &l->w;

    jsonw_object(w);
    jsonw_kv(w, "id", g->id);
    jsonw_kv(w, "state", span_str(grants_state(l->x, g)));
    jsonw_kv(w, "sandbox", g->sandbox);
    jsonw_kv(w, "session", g->session);
    jsonw_kv(w, "tenant", g->tenant);
    jsonw_kv(w, "ticket", g->ticket);
    jsonw_kv(w, "op", g->op);
    jsonw_kv(w, "effect", g->effect);
    jsonw_kv(w, "method", g->method);
    jsonw_kv(w, "scheme", g->scheme);
    jsonw_kv(w, "host", g->host);
    jsonw_kv_u64(w, "port", g->port);
    jsonw_kv(w, "credential", g->credential);
    jsonw_kv(w, "rule", g->rule_id);
    jsonw_kv_raw(w, "shape", g->shape_json.n ? g->shape_json : SPAN("{}"));
    jsonw_kv_u64(w, "uses", g->uses);
    jsonw_kv_u64(w, "uses_max", g->uses_max);
    jsonw_kv_u64(w, "created_ms", g->created_ms);
    jsonw_kv_u64(w, "expires_ms", g->expires_ms);
    jsonw_kv_u64(w, "ended_ms", g->ended_ms);
    jsonw_kv(w, "by", g->by);
    jsonw_kv(w, "channel", g->channel);
    jsonw_kv(w, "reason", g->reason);
    jsonw_kv(w, "how", g->how);
    jsonw_end_object(w);
    return 0;
}

void api_grants(struct exchange *x)
{
    struct listing l = {.x = x};
    struct span prefix;
    struct err e;

    if (query_field(x, "prefix", &prefix) != 0)
        return;
    reply_json(x, 200, &l.w);
    jsonw_object(&l.w);
    jsonw_kv_array(&l.w, "grants");
    int rc = desk_store_grants(x->desk->store, prefix, GRANTS_LISTED, &x->arena, one, &l, &e);
    jsonw_end_array(&l.w);
    jsonw_end_object(&l.w);
    if (rc != 0)
        reply_unable(x, &e);
}

/* What an approval of this ticket may cover beside it. */
void api_ticket_grant(struct exchange *x)
{
    struct ticket t;
    struct jsonw w;

    if (api_ticket_find(x, &t) != 0)
        return;
    struct grant_offer o = grants_offer(x, &t);
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_u64(&w, "uses", o.uses);
    jsonw_kv_u64(&w, "for_ms", o.uses ? o.within_ms : 0);
    jsonw_kv_raw(&w, "shape", o.uses ? o.shape_json : SPAN("{}"));
    jsonw_kv(&w, "grant", o.used);
    jsonw_end_object(&w);
}

static void revoked(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, 256);

    if (msg_end(&m) != 0)
        reply_problem(x, 503, "Not possible now",
                      "the ledger did not answer: whether it was taken back is not known; look at the list again");
    else if (!ok)
        reply_problem(x, 409, "Not taken back", "%.*s", SPAN_FMT(why));
    else if (x->place == PLACE_PAGE)
        page_see(x, "/grants");
    else
        reply_empty(x, 204);
}

static void ask_revoke(struct exchange *x, struct span reason)
{
    struct id id;
    struct dynbuf *b;

    if (id_parse(x->arg, &id) != 0) {
        reply_problem(x, 404, "No such grant", "no grant has this id");
        return;
    }
    b = ask_begin(x, ASK_LEDGER, M_GRANT_REVOKE, M_GRANT_REVOKE, revoked);
    if (!b)
        return;
    msg_put_id(b, &id);
    msg_put_span(b, span_str(x->operator));
    msg_put_span(b, reason);
    ask_send(x);
}

void api_grant_revoke(struct exchange *x)
{
    struct member m[] = {{"reason", JSON_STRING, false, NULL}};
    struct span reason = SPAN_NONE;

    if (body_members(x, m, 1) == 0 && (!m[0].value || reason_clean(x, m[0].value->text, &reason) == 0))
        ask_revoke(x, reason);
}

void page_grant_revoke(struct exchange *x)
{
    struct span mark;

    if (form_field(x, "mark", &mark) != 0)
        return;
    /* Taking back harms nobody, so that haste is no reason to refuse it. */
    switch (guard_mark_check(x->session, "revoke", x->arg, SPAN_NONE, x->now_ms, mark)) {
    case GUARD_FINE:
    case GUARD_TOO_FAST: ask_revoke(x, SPAN_NONE); break;
    case GUARD_STALE:
        page_problem(x, 409, "An old page", "This page was open for too long. Load the list again.");
        break;
    default: page_problem(x, 403, "Refused", "This form is not one that this page showed you.");
    }
}
