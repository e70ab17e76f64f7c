#include "proxy/judge/replies/self_service.h"

#include "common/json/json.h"
#include "policy/manifest.h"
#include "proxy/judge/replies/refuse.h"

enum { ANSWER_MAX = 250 * 1024, MANIFEST_MAX = 200 * 1024 /* of it for the list */ };
bool self_service_is(struct span host)
{
    return span_eq(host, SPAN("countersign.internal"));
}

static void whoami(struct exchange *x, struct jsonw *w)
{
    const struct sandbox *s = x->sandbox;
    struct label own[SANDBOX_LABELS];
    struct subject who = sandbox_who(s, x->lane, own);
    jsonw_object(w);
    jsonw_kv(w, "sandbox", s->name);
    jsonw_kv(w, "session", s->session);
    jsonw_kv_array(w, "labels");
    for (size_t i = 0; i < who.nlabels; i++) {
        jsonw_object(w);
        jsonw_kv(w, "key", who.labels[i].key);
        jsonw_kv(w, "value", who.labels[i].value);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_kv(w, "mode", x->judge->config.shadow ? SPAN("shadow") : SPAN("enforce"));
    jsonw_kv_bool(w, "writes_frozen", !x->judge->thawed);
    jsonw_kv_u64(w, "time_ms", x->judge->ports.wall(x->judge->ports.arg)); /* whoever's clock is wrong can tell */
    if (x->judge->image)
        jsonw_kv(w, "policy", policy_name(x->judge->image->policy));
    jsonw_end_object(w);
}

enum manifest_as { AS_RULES = 0, AS_TYPESCRIPT, AS_OPENAPI, AS_UNKNOWN };

/* What the query of a manifest asks for. */
struct manifest_query {
    struct span host; /* it narrows the list; or empty */
    enum manifest_as as;
};

static bool is_host(struct span name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!memchr("abcdefghijklmnopqrstuvwxyz0123456789-._", name.p[i], 39))
            return false;
    return name.n > 0 && name.n <= HTTP_HOST_MAX;
}

static enum manifest_as form_of(struct span name)
{
    if (span_eq(name, SPAN("typescript")))
        return AS_TYPESCRIPT;
    return span_eq(name, SPAN("openapi")) ? AS_OPENAPI : AS_UNKNOWN;
}

/* "host=NAME" and "as=FORM", each once; a query that says anything else is not understood: false. */
static bool manifest_query(const struct wire_request *r, struct manifest_query *q)
{
    struct span rest = r->has_query ? r->query : SPAN_NONE;
    *q = (struct manifest_query){.as = AS_RULES};
    while (rest.n) {
        struct span one, name, value;
        bool more = span_cut(rest, '&', &one, &rest);
        (void)span_cut(one, '=', &name, &value);
        if (span_eq(name, SPAN("host")) && q->host.n == 0 && is_host(value))
            q->host = value;
        else if (span_eq(name, SPAN("as")) && q->as == AS_RULES)
            q->as = form_of(value);
        else
            return false;
        if (more && rest.n == 0)
            return false;
    }
    return true;
}

static void manifest_rules(struct exchange *x, const struct manifest_want *want, struct jsonw *w)
{
    char hex[2 * DIGEST_BYTES + 1];
    hex_text(span_of(x->judge->image->digest.b, DIGEST_BYTES), hex);
    jsonw_object(w);
    jsonw_kv_u64(w, "version", 1);
    jsonw_kv(w, "sandbox", x->sandbox->name);
    jsonw_kv(w, "policy", policy_name(x->judge->image->policy));
    jsonw_kv(w, "policy_digest", span_str(hex));
    jsonw_kv(w, "mode", x->judge->config.shadow ? SPAN("shadow") : SPAN("enforce"));
    jsonw_kv_bool(w, "writes_frozen", !x->judge->thawed);
    jsonw_kv(w, "order",
             SPAN("A request that a deny fits is denied; else one that a hold fits waits for a person; else "
                  "one that an allow fits passes; everything else is denied. Only what policy rules say of "
                  "a request is listed: * is one segment, ** any number."));
    jsonw_key(w, "operations");
    size_t left = policy_manifest(x->judge->image->policy, want, w);
    if (left) {
        jsonw_kv_u64(w, "left_out", left);
        jsonw_kv(w, "hint", SPAN("There are more: ask for one host with ?host=NAME."));
    }
    jsonw_end_object(w);
}

/* What exists for this sandbox, to generate requests against instead of trying: as it is asked for. */
static enum self_found manifest(struct exchange *x, struct jsonw *w)
{
    const struct sandbox *s = x->sandbox;
    struct label own[SANDBOX_LABELS];
    struct subject who = sandbox_who(s, x->lane, own);
    struct manifest_query q;
    if (x->judge->image == NULL || !manifest_query(&x->request, &q))
        return SELF_NOT_HERE;
    struct manifest_want want = {.subject = &who,
                                 .host = q.host,
                                 .ids = x->judge->config.disclose_rules,
                                 .room = MANIFEST_MAX,
                                 .now_ms = x->judge->ports.wall(x->judge->ports.arg)};
    switch (q.as) {
    case AS_RULES: manifest_rules(x, &want, w); return SELF_JSON;
    case AS_TYPESCRIPT: (void)policy_typescript(x->judge->image->policy, &want, w->out); return SELF_TEXT;
    case AS_OPENAPI: (void)policy_openapi(x->judge->image->policy, &want, w); return SELF_JSON;
    case AS_UNKNOWN: break;
    }
    return SELF_NO_FORM;
}

static enum self_found found_at(struct exchange *x, struct jsonw *w)
{
    const struct span path = x->request.path;
    if (span_eq(path, SPAN("/v1/whoami"))) {
        whoami(x, w);
        return SELF_JSON;
    }
    if (span_eq(path, SPAN("/v1/manifest")))
        return manifest(x, w);
    return span_starts(path, SPAN("/v1/tickets/")) ? self_ticket(x, w) : SELF_NOT_HERE;
}

static const enum refuse_why refusals[] = {[SELF_NOT_HERE] = REFUSE_NOT_HERE,
                                           [SELF_NO_FORM] = REFUSE_NO_FORM,
                                           [SELF_NO_ANSWER] = REFUSE_NO_ANSWER,
                                           [SELF_NO_STORE] = REFUSE_STORE};

static enum walk_next answer(struct exchange *x)
{
    const struct wire_request *r = &x->request;
    struct wire_reply out = {.head.status = 200, .head.reason = SPAN("OK"), .close = x->upload >= UPLOAD_TO_COME};
    struct dynbuf b;
    struct jsonw w;
    enum self_found found = SELF_NOT_HERE;
    if (!exchange_session_lives(x))
        return refuse(x, REFUSE_UNKNOWN_SANDBOX);
    if (!span_eq(r->method, SPAN("GET")) && !span_eq(r->method, SPAN("HEAD")))
        return refuse(x, REFUSE_METHOD);
    dynbuf_init(&b, ANSWER_MAX);
    jsonw_begin(&w, &b);
    found = found_at(x, &w);
    if (found != SELF_TEXT)
        dynbuf_add_byte(&b, '\n');
    if (dialect_keep(&b, &x->arena, &out.body) != 0)
        return WALK_FAIL;
    if (found < SELF_WAITS)
        return refuse(x, refusals[found]);
    if (found == SELF_WAITS || found == SELF_ANSWERED)
        return found == SELF_WAITS ? WALK_WAIT : WALK_REPLY;
    dialect_field(&out.head, SPAN("Content-Type"),
                  found == SELF_TEXT ? SPAN("text/plain; charset=utf-8") : SPAN("application/json"));
    dialect_field(&out.head, SPAN("Cache-Control"), SPAN("no-store"));
    reply_own(x, &out);
    return WALK_REPLY;
}

enum walk_next self_service_answer(struct exchange *x)
{
    enum walk_next next = answer(x);
    if (next == WALK_WAIT)
        return next;
    if (next == WALK_FAIL)
        (void)refuse(x, REFUSE_INTERNAL);
    refuse_send(x);
    return WALK_DONE;
}
