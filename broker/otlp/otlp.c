#include "broker/otlp/otlp.h"

#include <stdio.h>

#include "broker/otlp/otlp_in.h"
#include "common/id.h"
#include "common/text/visible.h"

enum { PLACE_MAX = 256, INTERNAL = 1, CLIENT = 3, STATUS_ERROR = 2, ONE_MAX = VISIBLE_ESCAPE_MAX };

/* --- ids ---------------------------------------------------------------------------------- */

static void hash_text(struct span place, size_t bytes, char *out)
{
    struct digest d;
    digest_of(place, &d);
    hex_text(span_of(d.b, bytes), out);
}

void otlp_trace_id(const struct otlp_span *s, char out[OTLP_TRACE_TEXT + 1])
{
    char place[PLACE_MAX];
    int n = snprintf(place, sizeof(place), "%.*s%.*s", SPAN_FMT(span_first(s->conversation, ID_TEXT)),
                     SPAN_FMT(span_first(s->turn, ID_TEXT)));
    hash_text(span_of(place, (size_t)n), OTLP_TRACE_TEXT / 2, out);
}

static void place_id(const struct otlp_span *s, enum otlp_kind kind, char out[OTLP_ID_TEXT + 1])
{
    char place[PLACE_MAX];
    bool call = kind == OTLP_CALL;
    int n = snprintf(place, sizeof(place), "%.*s", SPAN_FMT(span_first(s->turn, ID_TEXT)));
    if (kind != OTLP_TURN)
        n += snprintf(place + n, sizeof(place) - (size_t)n, "/%llu/%s/%llu.%llu", (unsigned long long)s->step,
                      call ? "call" : "model", (unsigned long long)(call ? s->ord : s->attempt),
                      (unsigned long long)(call ? s->epoch : s->try));
    hash_text(span_of(place, (size_t)n), OTLP_ID_TEXT / 2, out);
}

void otlp_span_id(const struct otlp_span *s, char out[OTLP_ID_TEXT + 1])
{
    place_id(s, s->kind, out);
}

void otlp_traceparent(const struct otlp_span *s, char out[OTLP_PARENT_TEXT + 1])
{
    char trace[OTLP_TRACE_TEXT + 1], id[OTLP_ID_TEXT + 1];
    otlp_trace_id(s, trace);
    otlp_span_id(s, id);
    (void)snprintf(out, OTLP_PARENT_TEXT + 1, "00-%s-%s-01", trace, id);
}

/* --- attributes --------------------------------------------------------------------------- */

struct span otlp_shown(struct span s, char text[OTLP_TEXT_MAX + 1])
{
    char escape[ONE_MAX];
    size_t at = 0, n;
    for (; s.n > 0; s = span_from(s, n)) {
        enum visible_kind kind = visible_char(s, &n, escape);
        struct span as = kind == VISIBLE_ASCII || kind == VISIBLE_OTHER ? span_first(s, n) : span_str(escape);
        if (as.n > OTLP_TEXT_MAX - at)
            break;
        memcpy(text + at, as.p, as.n);
        at += as.n;
    }
    text[at] = '\0';
    return span_of(text, at);
}

static void begin(struct jsonw *w, enum otlp_name name)
{
    jsonw_object(w);
    jsonw_kv(w, "key", span_str(otlp_name(name)));
    jsonw_kv_object(w, "value");
}

static void end(struct jsonw *w)
{
    jsonw_end_object(w);
    jsonw_end_object(w);
}

void otlp_put_text(struct jsonw *w, enum otlp_name name, struct span s)
{
    char text[OTLP_TEXT_MAX + 1];
    if (s.n == 0)
        return;
    begin(w, name);
    jsonw_kv(w, "stringValue", otlp_shown(s, text));
    end(w);
}

/* A whole number of 64 bits is a text in OTLP's JSON. */
static void put_number(struct jsonw *w, enum otlp_name name, uint64_t n)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%lld", (long long)(n < INT64_MAX ? n : INT64_MAX));
    begin(w, name);
    jsonw_kv(w, "intValue", span_str(text));
    end(w);
}

static void put_seconds(struct jsonw *w, enum otlp_name name, uint64_t ms)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%llu.%03u", (unsigned long long)(ms / 1000), (unsigned)(ms % 1000));
    begin(w, name);
    jsonw_kv_raw(w, "doubleValue", span_str(text));
    end(w);
}

void otlp_put_true(struct jsonw *w, enum otlp_name name)
{
    begin(w, name);
    jsonw_kv_bool(w, "boolValue", true);
    end(w);
}

static void put_chat(struct jsonw *w, const struct otlp_span *s)
{
    otlp_put_text(w, OTLP_RESPONSE_MODEL, s->answered);
    otlp_put_true(w, OTLP_REQUEST_STREAM);
    if (s->first)
        put_seconds(w, OTLP_FIRST_CHUNK, s->first_ms);
    if (s->counted) {
        put_number(w, OTLP_INPUT_TOKENS, s->input);
        if (s->cache_read > 0)
            put_number(w, OTLP_CACHE_READ, s->cache_read);
        if (s->cache_write > 0)
            put_number(w, OTLP_CACHE_CREATION, s->cache_write);
        put_number(w, OTLP_OUTPUT_TOKENS, s->output);
        if (s->reasoning > 0)
            put_number(w, OTLP_REASONING_TOKENS, s->reasoning);
    }
    put_number(w, OTLP_ATTEMPT, s->attempt);
}

static void put_call(struct jsonw *w, const struct otlp_span *s)
{
    char text[24];
    otlp_put_text(w, OTLP_TOOL, s->tool);
    otlp_put_text(w, OTLP_TOOL_CALL, s->call);
    if (!s->mcp)
        return;
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)s->request);
    otlp_put_text(w, OTLP_MCP_METHOD, SPAN("tools/call"));
    otlp_put_text(w, OTLP_MCP_VERSION, s->version);
    otlp_put_text(w, OTLP_RPC_ID, span_str(text));
    otlp_put_text(w, OTLP_TRANSPORT, s->remote ? SPAN("tcp") : SPAN("pipe"));
}

static const char *operation(enum otlp_kind kind)
{
    return kind == OTLP_TURN ? "invoke_agent" : kind == OTLP_CHAT ? "chat" : "execute_tool";
}

static void put_attributes(struct jsonw *w, const struct otlp_span *s)
{
    jsonw_kv_array(w, "attributes");
    otlp_put_text(w, OTLP_OPERATION, span_str(operation(s->kind)));
    otlp_put_text(w, OTLP_CONVERSATION, s->conversation);
    otlp_put_text(w, OTLP_TURN_ID, s->turn);
    if (s->kind != OTLP_CALL) {
        otlp_put_text(w, OTLP_PROVIDER, s->provider);
        otlp_put_text(w, OTLP_REQUEST_MODEL, s->asked);
    }
    if (s->kind == OTLP_TURN)
        otlp_put_text(w, OTLP_AGENT, OTLP_SELF);
    if (s->kind == OTLP_CHAT)
        put_chat(w, s);
    if (s->kind == OTLP_CALL)
        put_call(w, s);
    if (s->kind != OTLP_TURN)
        put_number(w, OTLP_STEP, s->step);
    put_number(w, OTLP_EPOCH, s->epoch);
    if (s->error != NULL)
        otlp_put_text(w, OTLP_ERROR, span_str(s->error));
    jsonw_end_array(w);
}

/* --- a span, and a request with some --------------------------------------------------------- */

void otlp_put_time(struct jsonw *w, const char *key, uint64_t ms)
{
    char text[32];
    uint64_t most = UINT64_MAX / 1000000;
    (void)snprintf(text, sizeof(text), "%llu000000", (unsigned long long)(ms < most ? ms : most));
    jsonw_kv(w, key, span_str(text));
}

static void put_name(struct jsonw *w, const struct otlp_span *s)
{
    char name[OTLP_TEXT_MAX + 1], text[OTLP_TEXT_MAX + 32];
    struct span of = s->kind == OTLP_TURN ? OTLP_SELF : s->kind == OTLP_CHAT ? s->asked : s->tool;
    of = otlp_shown(of, name);
    int n = snprintf(text, sizeof(text), "%s%s%.*s", operation(s->kind), of.n > 0 ? " " : "", SPAN_FMT(of));
    jsonw_kv(w, "name", span_of(text, (size_t)n));
}

void otlp_put(struct dynbuf *out, const struct otlp_span *s)
{
    char trace[OTLP_TRACE_TEXT + 1], id[OTLP_ID_TEXT + 1], parent[OTLP_ID_TEXT + 1];
    struct jsonw w;
    otlp_trace_id(s, trace);
    otlp_span_id(s, id);
    place_id(s, OTLP_TURN, parent);
    jsonw_begin(&w, out);
    jsonw_object(&w);
    jsonw_kv(&w, "traceId", span_str(trace));
    jsonw_kv(&w, "spanId", span_str(id));
    if (s->kind != OTLP_TURN)
        jsonw_kv(&w, "parentSpanId", span_str(parent));
    put_name(&w, s);
    jsonw_kv_u64(&w, "kind", s->kind == OTLP_CHAT ? CLIENT : INTERNAL);
    otlp_put_time(&w, "startTimeUnixNano", s->begun_ms);
    otlp_put_time(&w, "endTimeUnixNano", s->ended_ms > s->begun_ms ? s->ended_ms : s->begun_ms);
    put_attributes(&w, s);
    if (s->error != NULL) {
        jsonw_kv_object(&w, "status");
        jsonw_kv_u64(&w, "code", STATUS_ERROR);
        jsonw_end_object(&w);
    }
    jsonw_end_object(&w);
}

static void put_resource(struct jsonw *w, const char *key, struct span value)
{
    jsonw_object(w);
    jsonw_kv(w, "key", span_str(key));
    jsonw_kv_object(w, "value");
    jsonw_kv(w, "stringValue", value);
    end(w);
}

void otlp_begin(struct jsonw *w, const struct otlp_who *who, const char *all, const char *each, const char *values)
{
    jsonw_object(w);
    jsonw_kv_array(w, all);
    jsonw_object(w);
    jsonw_kv_object(w, "resource");
    jsonw_kv_array(w, "attributes");
    put_resource(w, "service.name", SPAN("countersign-broker"));
    put_resource(w, "service.version", who->version);
    put_resource(w, "service.instance.id", who->instance);
    jsonw_end_array(w);
    jsonw_end_object(w);
    jsonw_kv_array(w, each);
    jsonw_object(w);
    jsonw_kv_object(w, "scope");
    jsonw_kv(w, "name", SPAN("countersign"));
    jsonw_kv(w, "version", who->version);
    jsonw_end_object(w);
    jsonw_kv_array(w, values);
}

void otlp_end(struct jsonw *w)
{
    jsonw_end_array(w);
    jsonw_kv(w, "schemaUrl", SPAN(OTLP_SCHEMA));
    jsonw_end_object(w); /* the scope's */
    jsonw_end_array(w);
    jsonw_end_object(w); /* the resource's */
    jsonw_end_array(w);
    jsonw_end_object(w);
}

void otlp_batch(struct dynbuf *out, const struct otlp_who *who, struct span spans)
{
    struct jsonw w;
    jsonw_begin(&w, out);
    otlp_begin(&w, who, "resourceSpans", "scopeSpans", "spans");
    jsonw_raw(&w, spans); /* some values with commas between them */
    otlp_end(&w);
}
