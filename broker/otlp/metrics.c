#include "broker/otlp/metrics.h"

#include <stdio.h>
#include <string.h>

#include "broker/otlp/otlp_in.h"

enum { CUMULATIVE = 2 };
#define SUM_MAX (INT64_MAX / 2) /* no sum of two such is too large */

/* As the conventions have them, in ms or tokens; what is as large as one is below it. */
static uint64_t bound(enum otlp_metric m, size_t i)
{
    return m == OTLP_TOKENS ? UINT64_C(1) << 2 * i : UINT64_C(10) << i;
}

/* --- measured --------------------------------------------------------------------------------- */

static bool is_same(const struct otlp_series *a, const struct otlp_series *b)
{
    return a->metric == b->metric && a->output == b->output && a->rest == b->rest &&
           strcmp(a->provider, b->provider) == 0 && strcmp(a->name, b->name) == 0 &&
           strcmp(a->error != NULL ? a->error : "", b->error != NULL ? b->error : "") == 0;
}

/* Past so many there is room for one of each metric, and no more are asked for. */
static struct otlp_series *series_of(struct otlp_metrics *m, const struct otlp_series *like)
{
    for (size_t i = 0; i < m->n; i++)
        if (is_same(&m->series[i], like))
            return &m->series[i];
    if (m->n < OTLP_SERIES_MAX || like->rest) {
        m->series[m->n] = *like;
        return &m->series[m->n++];
    }
    const struct otlp_series rest = {.metric = like->metric, .rest = true};
    return series_of(m, &rest);
}

static void add(struct otlp_metrics *m, const struct otlp_series *like, uint64_t value)
{
    struct otlp_series *s = series_of(m, like);
    size_t i = 0;
    while (i < OTLP_BOUNDS && value > bound(s->metric, i))
        i++;
    s->bucket[i]++;
    s->n++;
    s->sum += value < SUM_MAX ? value : SUM_MAX;
    s->sum = s->sum < SUM_MAX ? s->sum : SUM_MAX;
}

static void measure_chat(struct otlp_metrics *m, const struct otlp_span *s, struct otlp_series *is)
{
    (void)otlp_shown(s->provider, is->provider);
    (void)otlp_shown(s->asked, is->name);
    is->metric = OTLP_CHAT_TIME;
    if (!s->unasked)
        add(m, is, s->ended_ms > s->begun_ms ? s->ended_ms - s->begun_ms : 0);
    is->error = NULL; /* the others have none in the conventions */
    is->metric = OTLP_FIRST_TIME;
    if (s->first)
        add(m, is, s->first_ms);
    is->metric = OTLP_TOKENS;
    if (s->counted)
        add(m, is, s->input);
    is->output = true;
    if (s->counted)
        add(m, is, s->output);
}

bool otlp_measure(struct otlp_metrics *m, const struct otlp_span *s)
{
    struct otlp_series is = {.error = s->error};
    if (s->kind == OTLP_CHAT) {
        measure_chat(m, s, &is);
    } else if (s->kind == OTLP_CALL) {
        (void)otlp_shown(s->as, is.name);
        is.metric = OTLP_TOOL_TIME;
        add(m, &is, s->ended_ms > s->begun_ms ? s->ended_ms - s->begun_ms : 0);
    }
    return s->kind == OTLP_CHAT || s->kind == OTLP_CALL;
}

/* --- written ---------------------------------------------------------------------------------- */

static void put_attributes(struct jsonw *w, const struct otlp_series *s)
{
    jsonw_kv_array(w, "attributes");
    if (s->rest) {
        otlp_put_true(w, OTLP_OVERFLOW);
    } else if (s->metric == OTLP_TOOL_TIME) {
        otlp_put_text(w, OTLP_TOOL, span_str(s->name));
        otlp_put_text(w, OTLP_AGENT, OTLP_SELF);
    } else {
        otlp_put_text(w, OTLP_OPERATION, SPAN("chat"));
        otlp_put_text(w, OTLP_PROVIDER, span_str(s->provider));
        otlp_put_text(w, OTLP_REQUEST_MODEL, span_str(s->name));
    }
    if (s->metric == OTLP_TOKENS && !s->rest)
        otlp_put_text(w, OTLP_TOKEN_TYPE, s->output ? SPAN("output") : SPAN("input"));
    if (s->error != NULL)
        otlp_put_text(w, OTLP_ERROR, span_str(s->error));
    jsonw_end_array(w);
}

/* A number as JSON has it: seconds, or tokens. */
static struct span number(enum otlp_metric m, uint64_t n, char text[32])
{
    int len = m == OTLP_TOKENS
                  ? snprintf(text, 32, "%llu", (unsigned long long)n)
                  : snprintf(text, 32, "%llu.%03u", (unsigned long long)(n / 1000), (unsigned)(n % 1000));
    return span_of(text, (size_t)len);
}

static struct span whole(uint64_t n, char text[32])
{
    return number(OTLP_TOKENS, n, text);
}

static void put_point(struct jsonw *w, const struct otlp_metrics *m, const struct otlp_series *s, uint64_t now_ms)
{
    char text[32];
    jsonw_object(w);
    put_attributes(w, s);
    otlp_put_time(w, "startTimeUnixNano", m->since_ms);
    otlp_put_time(w, "timeUnixNano", now_ms > m->since_ms ? now_ms : m->since_ms);
    jsonw_kv(w, "count", whole(s->n, text)); /* whole numbers of 64 bits are texts */
    jsonw_kv_raw(w, "sum", number(s->metric, s->sum, text));
    jsonw_kv_array(w, "bucketCounts");
    for (size_t i = 0; i <= OTLP_BOUNDS; i++)
        jsonw_string(w, whole(s->bucket[i], text));
    jsonw_end_array(w);
    jsonw_kv_array(w, "explicitBounds");
    for (size_t i = 0; i < OTLP_BOUNDS; i++)
        jsonw_raw(w, number(s->metric, bound(s->metric, i), text));
    jsonw_end_array(w);
    jsonw_end_object(w);
}

static void put_metric(struct jsonw *w, const struct otlp_metrics *m, enum otlp_metric which, uint64_t now_ms)
{
    bool open = false;
    for (size_t i = 0; i < m->n; i++) {
        if (m->series[i].metric != which)
            continue;
        if (!open) {
            jsonw_object(w);
            jsonw_kv(w, "name", span_str(otlp_metric_name(which)));
            jsonw_kv(w, "unit", span_str(otlp_metric_unit(which)));
            jsonw_kv_object(w, "histogram");
            jsonw_kv_u64(w, "aggregationTemporality", CUMULATIVE);
            jsonw_kv_array(w, "dataPoints");
        }
        open = true;
        put_point(w, m, &m->series[i], now_ms);
    }
    if (!open)
        return;
    jsonw_end_array(w);
    jsonw_end_object(w); /* the histogram's */
    jsonw_end_object(w);
}

void otlp_put_metrics(struct dynbuf *out, const struct otlp_who *who, const struct otlp_metrics *m, uint64_t now_ms)
{
    struct jsonw w;
    jsonw_begin(&w, out);
    otlp_begin(&w, who, "resourceMetrics", "scopeMetrics", "metrics");
    for (enum otlp_metric which = 0; which < OTLP_METRICS; which++)
        put_metric(&w, m, which, now_ms);
    otlp_end(&w);
}
