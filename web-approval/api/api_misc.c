/* The rest of /api/v1: credentials, audit, events, status, sign-in links. */
#include <stdio.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "policy/policy.h"
#include "proxy/msgs.h"
#include "web-approval/api/api.h"
#include "web-approval/broker/tally.h"
#include "web-approval/events.h"
#include "web-approval/route.h"

bool api_secret_present(const struct desk *d, struct span name)
{
    struct msg_in m = msg_in(dynbuf_span(&d->secrets));
    unsigned n = msg_get_u16(&m);

    for (unsigned i = 0; i < n && !m.bad; i++)
        if (span_eq(msg_get_span(&m, 256), name) && !m.bad)
            return true;
    return false;
}

/* Where a client sends what it has for this: "https://github.com/acme/", up to the first wildcard of the path. */
static void put_places(struct jsonw *w, const struct policy *p, size_t i)
{
    struct credential_place at;
    struct dynbuf url;

    jsonw_kv_array(w, "places");
    for (size_t j = 0; policy_credential_place(p, i, j, &at); j++) {
        struct span path = span_first(at.path, span_index(at.path, '*'));
        while (path.n < at.path.n && path.n > 0 && path.p[path.n - 1] != '/')
            path.n--;
        dynbuf_init(&url, 8192);
        (void)dynbuf_addf(&url, "%.*s://%.*s", SPAN_FMT(at.scheme), SPAN_FMT(at.host));
        if (at.port != (span_eq(at.scheme, SPAN("https")) ? 443 : 80))
            (void)dynbuf_addf(&url, ":%u", at.port);
        (void)dynbuf_add(&url, path.n ? path : SPAN("/"));
        if (dynbuf_ok(&url))
            jsonw_string(w, dynbuf_span(&url));
        dynbuf_free(&url);
    }
    jsonw_end_array(w);
}

void api_credentials(struct exchange *x)
{
    const struct desk *d = x->desk;
    struct jsonw w;

    if (!d->policy) {
        reply_problem(x, 503, "Not possible now", "the policy is not loaded yet; try again in a moment");
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_array(&w, "credentials");
    for (size_t i = 0; i < policy_credentials(d->policy); i++) {
        struct credential c;
        if (!policy_credential(d->policy, i, &c))
            continue;
        jsonw_object(&w);
        jsonw_kv(&w, "name", c.name);
        jsonw_kv_bool(&w, "present", api_secret_present(d, c.name));
        jsonw_kv(&w, "header", c.header);
        if (c.source == SOURCE_STORE)
            jsonw_kv(&w, "store", c.source_arg);
        jsonw_kv(&w, "lease", span_str(lease_format_name(c.lease)));
        jsonw_kv_bool(&w, "require_lease", c.require_lease);
        jsonw_kv_bool(&w, "basic", c.basic || c.basic_user.n > 0);
        if (c.basic_user.n)
            jsonw_kv(&w, "user", c.basic_user);
        put_places(&w, d->policy, i);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
}

/* --- audit ---------------------------------------------------------------- */

/* The record as a string: its bytes are what the chain covers, and a re-written object would be others. */
static int audit_row(void *ctx, const struct audit_row *r)
{
    struct jsonw *w = ctx;
    char hash[2 * DIGEST_BYTES + 1] = "", signature[2 * 64 + 1];

    if (r->hash.n == DIGEST_BYTES)
        hex_text(r->hash, hash);
    jsonw_object(w);
    jsonw_kv_u64(w, "seq", r->seq);
    jsonw_kv_u64(w, "time_ms", r->time_ms);
    jsonw_kv(w, "kind", r->kind);
    if (r->exchange.n)
        jsonw_kv(w, "exchange", r->exchange);
    if (r->ticket.n)
        jsonw_kv(w, "ticket", r->ticket);
    jsonw_kv(w, "hash", span_str(hash));
    if (r->key.n == DIGEST_BYTES && r->signature.n == sizeof(signature) / 2) {
        hex_text(r->key, hash);
        hex_text(r->signature, signature);
        jsonw_kv(w, "key", span_str(hash));
        jsonw_kv(w, "signature", span_str(signature));
    }
    jsonw_kv(w, "json", r->json);
    jsonw_end_object(w);
    return 0;
}

int api_query_number(struct exchange *x, const char *name, uint64_t max, uint64_t *out)
{
    struct span s;

    if (query_field(x, name, &s) != 0)
        return -1;
    if (s.n == 0 || span_u64(s, max, out) == 0)
        return 0;
    reply_problem(x, 400, "Bad request", "`%s` is a whole number of at most %llu", name, (unsigned long long)max);
    return -1;
}

void api_audit(struct exchange *x)
{
    uint64_t after = 0, limit = 200, head, last_signed;
    struct jsonw w;
    struct err e;

    if (api_query_number(x, "after", INT64_MAX, &after) != 0 ||
        api_query_number(x, "limit", STORE_ROWS_MAX, &limit) != 0)
        return;
    if (desk_store_head(x->desk->store, &head, &e) != 0 || desk_store_signed(x->desk->store, &last_signed, &e) != 0) {
        reply_unable(x, &e);
        return;
    }
    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv_u64(&w, "head", head);
    jsonw_kv_u64(&w, "signed", last_signed);
    jsonw_kv(&w, "key", span_str(x->desk->audit_key));
    jsonw_kv_array(&w, "audit");
    int rc = desk_store_audit(x->desk->store, after, (size_t)limit, false, &x->arena, audit_row, &w, &e);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (rc != 0)
        reply_unable(x, &e);
}

/* --- events --------------------------------------------------------------- */

static int event_row(void *ctx, const struct audit_row *r)
{
    struct exchange *x = ctx;
    events_write(&x->out, r->seq, SPAN("ticket"), r->ticket);
    return 0;
}

/* What was missed since Last-Event-ID (or ?after=), then what comes. */
void api_events(struct exchange *x)
{
    const struct http_field *last = http_find(&x->head, SPAN("last-event-id"));
    uint64_t after = 0, head;
    struct err e;

    if (api_query_number(x, "after", INT64_MAX, &after) != 0)
        return;
    bool resume = after > 0 || x->head.has_query;
    if (last && span_u64(last->value, INT64_MAX, &after) == 0)
        resume = true;
    if (desk_store_head(x->desk->store, &head, &e) != 0) {
        reply_unable(x, &e);
        return;
    }
    dynbuf_reset(&x->out);
    events_hello(&x->out, resume ? after : head);
    if (resume && desk_store_audit(x->desk->store, after, STORE_ROWS_MAX, true, &x->arena, event_row, x, &e) != 0) {
        reply_unable(x, &e);
        return;
    }
    x->status = 200;
    x->type = "text/event-stream";
    x->stream = true;
}

/* --- the gateway itself --------------------------------------------------- */

/* One object of two: what the desk knows, and the parent's members as they came. */
static void status_put(struct exchange *x, struct span parent)
{
    uint64_t waiting, oldest_ms, since_ms, turns = broker_tally_waits(x->desk->tally, &since_ms);
    struct err e;
    struct jsonw w;

    reply_json(x, 200, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "page", span_str(x->desk->desk_url));
    if (desk_store_pending(x->desk->store, &waiting, &e) == 0 &&
        desk_store_oldest(x->desk->store, &oldest_ms, &e) == 0) {
        jsonw_kv_u64(&w, "waiting", waiting);
        if (waiting)
            jsonw_kv_u64(&w, "oldest_ms", oldest_ms);
    }
    if (turns) {
        jsonw_kv_u64(&w, "turns_nobody_runs", turns);
        jsonw_kv_u64(&w, "turns_since_ms", since_ms);
    }
    (void)dynbuf_add_byte(&x->out, ',');
    (void)dynbuf_add(&x->out, span_from(parent, 1)); /* without its opening brace */
}

static void status_came(struct exchange *x, struct frame *f)
{
    struct msg_in m = msg_in(f ? f->payload : SPAN_NONE);
    struct span json = msg_get_span(&m, CHAN_PAYLOAD_MAX);
    const struct json *j;
    struct arena a;

    if (msg_end(&m) != 0) {
        reply_problem(x, 503, "Not possible now", "the gateway's parent process did not answer");
        return;
    }
    arena_init(&a, DESK_ARENA_MAX);
    j = json_parse(json, &a);
    if (j && j->type == JSON_OBJECT && j->child && json.p[0] == '{') {
        status_put(x, json);
    } else {
        reply_problem(x, 500, "Broken status",
                      "the gateway's parent process answered with something that is not JSON");
    }
    arena_free(&a);
}

void api_status(struct exchange *x)
{
    if (ask_begin(x, ASK_PARENT, M_STATUS, M_STATUS, status_came))
        ask_send(x);
}

void api_signin(struct exchange *x)
{
    struct member none[1];
    char token[ID_TEXT + 1], url[DESK_TEXT + 64];
    struct jsonw w;

    if (body_members(x, none, 0) != 0)
        return;
    if (guard_link_new(&x->desk->guard, x->operator, x->now_ms, token) != 0) {
        reply_problem(x, 503, "Not possible now", "the system has no randomness to give");
        return;
    }
    (void)snprintf(url, sizeof(url), "%s/sign-in?t=%s", x->desk->desk_url, token);
    ask_note_operator(x, "signin-link");
    reply_json(x, 201, &w);
    jsonw_object(&w);
    jsonw_kv(&w, "url", span_str(url));
    jsonw_kv_u64(&w, "expires_ms", x->wall_ms + GUARD_LINK_MS);
    jsonw_end_object(&w);
}
