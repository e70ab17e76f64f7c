/* RFC 9457 problem details. The members error and message repeat the detail, because
 * that is where most command line tools and SDKs look for words to show. */
#include "proxy/judge/replies/dialect_rows.h"

#include <stdio.h>

#include "common/json/json.h"

enum { JSON_MAX = 128 * 1024 };

static void some(struct jsonw *w, const char *key, struct span value)
{
    if (value.n)
        jsonw_kv(w, key, value);
}

int dialect_problem(const struct dialect_client *c, const struct refusal *r, struct arena *a, struct wire_reply *out)
{
    struct dynbuf b;
    struct jsonw w;
    char type[96];
    bool accepted = r->status == 202; /* no problem: it is done later */
    int n = snprintf(type, sizeof(type), "urn:countersign:problem:%s", r->code);
    dynbuf_init(&b, JSON_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    if (!accepted)
        jsonw_kv(&w, "type", span_of(type, (size_t)n < sizeof(type) ? (size_t)n : sizeof(type) - 1));
    jsonw_kv(&w, "title", r->title);
    jsonw_kv_u64(&w, "status", r->status);
    jsonw_kv(&w, "detail", r->detail);
    jsonw_kv(&w, "code", span_str(r->code));
    some(&w, "cause", r->cause);
    if (!accepted)
        jsonw_kv(&w, "error", r->title);
    jsonw_kv(&w, "message", r->detail);
    some(&w, "ticket", r->ticket);
    some(&w, "status_url", r->status_url);
    some(&w, "approval_url", r->approval_url);
    some(&w, "expires", dialect_time(r->expires_ms, a));
    jsonw_kv_bool(&w, "retry", r->retry);
    some(&w, "next_steps", r->next);
    some(&w, "instead", r->instead);
    some(&w, "asked", r->asked);
    if (r->nallowed) {
        jsonw_kv_array(&w, "allowed");
        for (size_t i = 0; i < r->nallowed; i++)
            jsonw_string(&w, r->allowed[i]);
        jsonw_end_array(&w);
    }
    if (r->asked.n)
        jsonw_kv(&w, "manifest", SPAN("http://countersign.internal/v1/manifest"));
    some(&w, "rule", r->rule);
    jsonw_end_object(&w);
    dynbuf_add_byte(&b, '\n');
    dialect_field(&out->head, SPAN("Content-Type"),
                  accepted ? SPAN("application/json") : SPAN("application/problem+json"));
    if (accepted) {
        dialect_field(&out->head, SPAN("Location"), r->status_url);
        dialect_field(&out->head, SPAN("Preference-Applied"), SPAN("respond-async"));
    }
    return dialect_keep(&b, a, &out->body);
}
