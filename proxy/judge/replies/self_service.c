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
    jsonw_object(w);
    jsonw_kv(w, "sandbox", s->name);
    jsonw_kv(w, "session", s->session);
    jsonw_kv_array(w, "labels");
    for (size_t i = 0; i < s->nlabels; i++) {
        jsonw_object(w);
        jsonw_kv(w, "key", s->label[i].key);
        jsonw_kv(w, "value", s->label[i].value);
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

/* "host=NAME" alone narrows the list; a query that says anything else is not understood. */
static int manifest_host(const struct wire_request *r, struct span *host)
{
    struct span name = span_from(r->query, 5);
    *host = SPAN_NONE;
    if (!r->has_query || r->query.n == 0)
        return 0;
    if (!span_starts(r->query, SPAN("host=")) || name.n == 0 || name.n > HTTP_HOST_MAX)
        return -1;
    for (size_t i = 0; i < name.n; i++)
        if (!memchr("abcdefghijklmnopqrstuvwxyz0123456789-._", name.p[i], 39))
            return -1;
    *host = name;
    return 0;
}

/* What exists for this sandbox, to generate requests against instead of trying. */
static int manifest(struct exchange *x, struct jsonw *w)
{
    const struct sandbox *s = x->sandbox;
    struct subject who = {s->name, s->label, s->nlabels};
    struct manifest_want want = {.subject = &who,
                                 .ids = x->judge->config.disclose_rules,
                                 .room = MANIFEST_MAX,
                                 .now_ms = x->judge->ports.wall(x->judge->ports.arg)};
    char hex[2 * DIGEST_BYTES + 1];
    if (x->judge->image == NULL || manifest_host(&x->request, &want.host) != 0)
        return -1;
    hex_text(span_of(x->judge->image->digest.b, DIGEST_BYTES), hex);
    jsonw_object(w);
    jsonw_kv_u64(w, "version", 1);
    jsonw_kv(w, "sandbox", s->name);
    jsonw_kv(w, "policy", policy_name(x->judge->image->policy));
    jsonw_kv(w, "policy_digest", span_str(hex));
    jsonw_kv(w, "mode", x->judge->config.shadow ? SPAN("shadow") : SPAN("enforce"));
    jsonw_kv_bool(w, "writes_frozen", !x->judge->thawed);
    jsonw_kv(w, "order",
             SPAN("A request that a deny fits is denied; else one that a hold fits waits for a person; else "
                  "one that an allow fits passes; everything else is denied. Only what policy rules say of "
                  "a request is listed: * is one segment, ** any number."));
    jsonw_key(w, "operations");
    size_t left = policy_manifest(x->judge->image->policy, &want, w);
    if (left) {
        jsonw_kv_u64(w, "left_out", left);
        jsonw_kv(w, "hint", SPAN("There are more: ask for one host with ?host=NAME."));
    }
    jsonw_end_object(w);
    return 0;
}

static int ticket(struct exchange *x, struct span text, struct jsonw *w)
{
    struct id id;
    const struct seen_ticket *t = id_parse(text, &id) == 0 ? sandbox_ticket(x->sandbox, &id) : NULL;
    if (t == NULL)
        return -1; /* somebody else's looks the same as none */
    jsonw_object(w);
    jsonw_kv(w, "ticket", text);
    jsonw_kv(w, "state", span_str(ticket_state_name((enum ticket_state)t->state)));
    struct span when = dialect_time(t->expires_ms, &x->arena);
    if (when.n)
        jsonw_kv(w, "expires", when);
    jsonw_end_object(w);
    return 0;
}

static enum walk_next answer(struct exchange *x)
{
    const struct wire_request *r = &x->request;
    struct wire_reply out = {.head.status = 200, .head.reason = SPAN("OK"), .close = x->upload >= UPLOAD_TO_COME};
    struct dynbuf b;
    struct jsonw w;
    int rc = -1;
    if (!exchange_session_lives(x))
        return refuse(x, REFUSE_UNKNOWN_SANDBOX);
    if (!span_eq(r->method, SPAN("GET")) && !span_eq(r->method, SPAN("HEAD")))
        return refuse(x, REFUSE_METHOD);
    dynbuf_init(&b, ANSWER_MAX);
    jsonw_begin(&w, &b);
    if (span_eq(r->path, SPAN("/v1/whoami"))) {
        whoami(x, &w);
        rc = 0;
    } else if (span_eq(r->path, SPAN("/v1/manifest"))) {
        rc = manifest(x, &w);
    } else if (span_starts(r->path, SPAN("/v1/tickets/"))) {
        rc = ticket(x, span_from(r->path, sizeof("/v1/tickets/") - 1), &w);
    }
    dynbuf_add_byte(&b, '\n');
    if (dialect_keep(&b, &x->arena, &out.body) != 0)
        return WALK_FAIL;
    if (rc != 0)
        return refuse(x, REFUSE_NOT_HERE);
    dialect_field(&out.head, SPAN("Content-Type"), SPAN("application/json"));
    dialect_field(&out.head, SPAN("Cache-Control"), SPAN("no-store"));
    reply_own(x, &out);
    return WALK_REPLY;
}

enum walk_next self_service_answer(struct exchange *x)
{
    if (answer(x) == WALK_FAIL)
        (void)refuse(x, REFUSE_INTERNAL);
    refuse_send(x);
    return WALK_DONE;
}
