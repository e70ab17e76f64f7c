/* /api/v1/leases: who has which, and to issue, narrow and revoke one. The text of a lease is in the answer to whoever
 * asked for it, once; nothing that is kept has it. */
#include <stdio.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "policy/policy.h"
#include "proxy/identity.h"
#include "proxy/lease/lease_json.h"
#include "proxy/msgs.h"
#include "common/lease/wire_lease.h"
#include "web-approval/api/api.h"
#include "web-approval/route.h"

enum { BY_MAX = 256, LAYER_MEMBERS = 8, LIFE_MAX_S = 7 * 24 * 3600 };

/* ---- as JSON ---- */

static void put_lease(struct jsonw *w, const struct lease_row *r)
{
    struct wire_layer layer[LEASE_LAYERS_MAX];
    struct msg_in m = msg_in(r->layers);
    size_t n = 0;

    jsonw_object(w);
    jsonw_kv(w, "id", r->id);
    if (r->parent.n)
        jsonw_kv(w, "parent", r->parent);
    jsonw_kv(w, "sandbox", r->sandbox);
    jsonw_kv(w, "session", r->session);
    jsonw_kv_u64(w, "generation", r->generation);
    jsonw_kv(w, "credential", r->credential);
    jsonw_kv(w, "format", r->format);
    jsonw_kv(w, "state", r->state);
    jsonw_kv(w, "by", r->by);
    jsonw_kv_u64(w, "created_ms", r->created_ms);
    jsonw_kv_u64(w, "expires_ms", r->expires_ms);
    if (r->ended_ms) {
        jsonw_kv_u64(w, "ended_ms", r->ended_ms);
        jsonw_kv(w, "how", r->how);
    }
    jsonw_key(w, "within"); /* all of them */
    lease_json_layers(w, layer, wire_get_layers(&m, layer, &n) == 0 ? n : 0);
    jsonw_end_object(w);
}

static int list_row(void *ctx, const struct lease_row *r)
{
    put_lease(ctx, r);
    return 0;
}

void api_leases(struct exchange *x)
{
    struct span sandbox;
    struct jsonw w;
    struct err e;

    if (query_field(x, "sandbox", &sandbox) != 0)
        return;
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_key(&w, "leases");
    jsonw_array(&w);
    int rc = desk_store_leases(x->desk->store, sandbox, SPAN_NONE, &x->arena, list_row, &w, &e);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (rc != 0)
        reply_unable(x, &e);
}

struct found {
    struct lease_row row;
    size_t n;
};

static int find_row(void *ctx, const struct lease_row *r)
{
    struct found *f = ctx;
    f->row = *r;
    return ++f->n > 1;
}

/* The one lease of x->arg, which may be the first characters of its id: 0, or -1 (answered). */
static int find(struct exchange *x, struct lease_row *out)
{
    struct found f = {.n = 0};
    struct err e;

    if (desk_store_leases(x->desk->store, SPAN_NONE, x->arg, &x->arena, find_row, &f, &e) != 0)
        reply_unable(x, &e);
    else if (f.n != 1)
        reply_problem(x, f.n ? 409 : 404, f.n ? "More than one lease" : "No such lease", "%s",
                      f.n ? "more than one lease's id begins like this: give more of it"
                          : "no lease has this id: `countersign lease list` has those there are");
    else {
        *out = f.row;
        return 0;
    }
    return -1;
}

void api_lease(struct exchange *x)
{
    struct lease_row r;
    struct jsonw w;

    if (find(x, &r) != 0)
        return;
    reply_json(x, 200, &w);
    put_lease(&w, &r);
}

/* ---- what was asked for ---- */

static int bad(struct exchange *x, const char *why)
{
    reply_problem(x, 400, "Bad request", "%s", why);
    return -1;
}

static int take_list(struct exchange *x, const struct json *given, struct wire_list *out)
{
    for (const struct json *j = given ? given->child : NULL; j; j = j->next) {
        if (j->type != JSON_STRING || j->text.n == 0 || j->text.n > LEASE_BOUND_BYTES || out->n == LEASE_LIST_MAX)
            return bad(x, "a bound is a list of at most 16 texts of at most 512 bytes");
        out->v[out->n++] = j->text;
    }
    return 0;
}

static int take_effects(struct exchange *x, const struct json *given, uint32_t *out)
{
    for (const struct json *j = given ? given->child : NULL; j; j = j->next) {
        int e = EFFECT_UNKNOWN;
        while (e <= EFFECT_EXEC && !span_eq(j->text, span_str(effect_name((enum effect)e))))
            e++;
        if (j->type != JSON_STRING || e > EFFECT_EXEC || e == EFFECT_UNKNOWN)
            return bad(x, "effects are read, write, delete, admin, spend and exec");
        *out |= 1u << e;
    }
    return 0;
}

static int take_number(struct exchange *x, const struct json *given, uint64_t max, uint64_t *out)
{
    if (given && (span_u64(given->text, max, out) != 0 || *out == 0))
        return bad(x, "a number is whole, above zero, and within reason");
    return 0;
}

static bool host_ok(struct span s)
{
    struct span host, port;
    uint64_t n;
    bool has_port = span_cut(s, ':', &host, &port);
    for (size_t i = 0; i < host.n; i++)
        if (!((host.p[i] >= 'a' && host.p[i] <= 'z') || (host.p[i] >= '0' && host.p[i] <= '9') || host.p[i] == '.' ||
              host.p[i] == '-'))
            return false;
    return host.n > 0 && (!has_port || (span_u64(port, 65535, &n) == 0 && n > 0));
}

/* Its rows of members, of which the first LAYER_MEMBERS are these. */
#define LAYER_MEMBER_ROWS                                                                                            \
    {"hosts", JSON_ARRAY, false, NULL}, {"methods", JSON_ARRAY, false, NULL}, {"paths", JSON_ARRAY, false, NULL},    \
        {"ops", JSON_ARRAY, false, NULL}, {"effects", JSON_ARRAY, false, NULL}, {"uses", JSON_NUMBER, false, NULL},  \
        {"rate", JSON_NUMBER, false, NULL},                                                                          \
    {                                                                                                                \
        "expires_s", JSON_NUMBER, false, NULL                                                                        \
    }

static int take_layer(struct exchange *x, const struct member *m, struct wire_layer *l, uint64_t *expires_ms)
{
    uint64_t life = 0;
    *l = (struct wire_layer){.effects = 0};
    if (take_list(x, m[0].value, &l->hosts) != 0 || take_list(x, m[1].value, &l->methods) != 0 ||
        take_list(x, m[2].value, &l->paths) != 0 || take_list(x, m[3].value, &l->ops) != 0 ||
        take_effects(x, m[4].value, &l->effects) != 0 || take_number(x, m[5].value, UINT32_MAX, &l->uses) != 0 ||
        take_number(x, m[6].value, UINT32_MAX, &l->rate) != 0 || take_number(x, m[7].value, LIFE_MAX_S, &life) != 0)
        return -1;
    for (size_t i = 0; i < l->hosts.n; i++)
        if (!host_ok(l->hosts.v[i]))
            return bad(x, "a host is a name in lower case, or name:port");
    for (size_t i = 0; i < l->paths.n; i++)
        if (l->paths.v[i].p[0] != '/')
            return bad(x, "a path begins with /");
    *expires_ms = life ? x->wall_ms + life * 1000 : 0;
    return 0;
}

static bool says_nothing(const struct wire_layer *l)
{
    return l->hosts.n + l->methods.n + l->paths.n + l->ops.n == 0 && l->effects == 0 && l->uses == 0 && l->rate == 0;
}

/* ---- issue, narrow, revoke ---- */

static void given(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    char text[ID_TEXT + 1];
    struct id id;
    struct jsonw w;
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, 512);

    msg_get_id(&m, &id);
    uint64_t expires_ms = msg_get_u64(&m);
    struct span lease = msg_get_span(&m, LEASE_TEXT_MAX), secret = msg_get_span(&m, LEASE_TEXT_MAX);
    if (msg_end(&m) != 0) {
        reply_problem(x, 503, "Not known", "the ledger did not answer; look with `countersign lease list`");
        return;
    }
    if (!ok) {
        reply_problem(x, 409, "No lease", "%.*s", SPAN_FMT(why));
        return;
    }
    id_text(&id, text);
    reply_json(x, lease.n ? 201 : 200, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "id", span_of(text, ID_TEXT));
    jsonw_kv_u64(&w, "expires_ms", expires_ms);
    if (lease.n)
        jsonw_kv(&w, "lease", lease);
    if (secret.n)
        jsonw_kv(&w, "secret", secret);
    jsonw_end_object(&w);
}

/* The credential of that name, and its index; false: answered. */
static bool find_credential(struct exchange *x, struct span name, struct credential *c, size_t *at)
{
    const struct policy *p = x->desk->policy;

    for (*at = 0; p && policy_credential(p, *at, c); ++*at)
        if (span_eq(c->name, name))
            break;
    if (p && *at < policy_credentials(p) && c->lease != LEASE_NONE && c->source != SOURCE_ANSWER)
        return true;
    if (!p)
        reply_problem(x, 503, "Not possible now", "the policy is not loaded yet; try again in a moment");
    else if (*at == policy_credentials(p))
        reply_problem(x, 404, "No such credential", "the policy names no credential of that name");
    else if (c->source == SOURCE_ANSWER)
        reply_problem(
            x, 409, "Its leases come with answers",
            "its values stand in answers to requests with another credential (answer: to:): issue a lease of "
            "that one, and the sandbox gets this one's by itself");
    else
        reply_problem(x, 409, "No leases of it",
                      "the policy gives this credential no lease: form, such as `lease: github`, so there are no "
                      "leases of it");
    return false;
}

/* l: born, with its layer and its end. */
static void issue(struct exchange *x, struct wire_lease *l, struct span credential, struct span sandbox)
{
    struct credential c;
    size_t at;

    l->state = LEASE_LIVE;
    l->by = span_first(span_str(x->operator), BY_MAX);
    if (!find_credential(x, credential, &c, &at))
        return;
    l->nlayers = says_nothing(&l->layer[0]) ? 0 : 1;
    l->credential = c.name;
    l->format = c.lease;
    l->sandbox = span_first(sandbox, BY_MAX);
    if (identity_of_credential(x->desk->policy, at, &l->meaning) != 0) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    struct dynbuf *b = ask_begin(x, ASK_LEDGER, M_LEASE_ISSUE, M_LEASE_GIVEN, given);
    if (!b)
        return;
    wire_put_lease(b, l);
    ask_send(x);
}

void api_lease_issue(struct exchange *x)
{
    struct member m[] = {
        LAYER_MEMBER_ROWS, {"credential", JSON_STRING, true, NULL}, {"sandbox", JSON_STRING, true, NULL}};
    struct wire_lease *l = arena_alloc(&x->arena, sizeof(*l));

    if (body_members(x, m, LAYER_MEMBERS + 2) != 0)
        return;
    if (!l)
        reply_problem(x, 503, "Not possible now", "no memory");
    else if (take_layer(x, m, &l->layer[0], &l->expires_ms) == 0)
        issue(x, l, m[LAYER_MEMBERS].value->text, m[LAYER_MEMBERS + 1].value->text);
}

void api_lease_for(struct exchange *x, struct span credential, struct span sandbox, uint64_t expires_ms)
{
    struct wire_lease *l = arena_alloc(&x->arena, sizeof(*l));

    if (!l) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return;
    }
    l->expires_ms = expires_ms;
    issue(x, l, credential, sandbox);
}

void api_lease_narrow(struct exchange *x)
{
    struct member m[] = {LAYER_MEMBER_ROWS, {"child", JSON_BOOL, false, NULL}};
    struct wire_layer layer;
    struct lease_row r;
    struct id id;
    uint64_t expires_ms;

    if (body_members(x, m, LAYER_MEMBERS + 1) != 0 || take_layer(x, m, &layer, &expires_ms) != 0 || find(x, &r) != 0)
        return;
    if (id_parse(r.id, &id) != 0)
        return (void)bad(x, "this lease has no id");
    struct dynbuf *b = ask_begin(x, ASK_LEDGER, M_LEASE_NARROW, M_LEASE_GIVEN, given);
    if (!b)
        return;
    msg_put_id(b, &id);
    msg_put_u8(b, m[LAYER_MEMBERS].value && m[LAYER_MEMBERS].value->truth);
    msg_put_u64(b, expires_ms);
    msg_put_span(b, span_first(span_str(x->operator), BY_MAX));
    wire_put_layers(b, &layer, 1);
    ask_send(x);
}

static void revoked(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    bool ok = msg_get_bool(&m);
    struct span why = msg_get_span(&m, 512);

    if (msg_end(&m) != 0 || !ok)
        reply_problem(x, 503, "Not revoked", "the ledger did not revoke it%s%.*s", why.n ? ": " : "", SPAN_FMT(why));
    else
        reply_empty(x, 204);
}

void api_lease_revoke(struct exchange *x)
{
    struct member m[] = {{"reason", JSON_STRING, false, NULL}};
    struct span reason = SPAN_NONE;
    struct lease_row r;
    struct id id;

    if (body_members(x, m, 1) != 0 || (m[0].value && reason_clean(x, m[0].value->text, &reason) != 0) ||
        find(x, &r) != 0)
        return;
    if (id_parse(r.id, &id) != 0)
        return (void)bad(x, "this lease has no id");
    struct dynbuf *b = ask_begin(x, ASK_LEDGER, M_LEASE_REVOKE, M_LEASE_REVOKE, revoked);
    if (!b)
        return;
    msg_put_id(b, &id);
    msg_put_span(b, span_first(span_str(x->operator), BY_MAX));
    msg_put_span(b, reason);
    ask_send(x);
}
