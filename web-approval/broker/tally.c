#include "web-approval/broker/tally.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/desk.h"

enum { BUCKETS = 14, ERROR_MAX = 32 };

/* The labels; a tool's as the conventions for generative AI have it. */
#define MODEL "model" /* as the table of models names it, which may be another name than its provider's */
#define TOOL  "gen_ai_tool_name"

/* As the conventions for generative AI have them, in ms: from 10, each twice the one before. */
static const char *const le[BUCKETS] = {"0.01", "0.02", "0.04", "0.08",  "0.16",  "0.32",  "0.64",
                                        "1.28", "2.56", "5.12", "10.24", "20.48", "40.96", "81.92"};

/* Kinds of errors that are told apart (broker/models/fault.c, broker/work/seen/seen.c). */
static const char *const errors[] = {"request", "window",     "refused",   "gone",    "quota",
                                     "rate",    "overloaded", "server",    "cut",     "unreached",
                                     "broken",  "too-large",  "cancelled", "stopped", "no-lease",
                                     "timeout", "tool_error", "unknown",   "_OTHER"};
enum { ERRORS = sizeof(errors) / sizeof(errors[0]) };

struct histogram {
    uint64_t under[BUCKETS], n, ms;
};
struct row {
    char name[BROKER_SEEN_NAME + 1];
    struct histogram took, first;
    uint64_t in, out, cost_micro, error[ERRORS];
};
struct broker_tally {
    struct row model[TALLY_NAMES_MAX], tool[TALLY_NAMES_MAX];
    size_t models, tools;
    uint64_t sent, lost, stops, waits, since_ms;
};

/* --- added up --------------------------------------------------------------------------------- */

/* What cannot be is no reason to begin again at 0, which Prometheus would take for a restart. */
static void more(uint64_t *sum, uint64_t n)
{
    *sum = n < UINT64_MAX - *sum ? *sum + n : UINT64_MAX;
}

static void add(struct histogram *h, uint64_t ms)
{
    for (size_t i = 0; i < BUCKETS; i++)
        h->under[i] += ms <= UINT64_C(10) << i;
    h->n++;
    h->ms += ms < UINT32_MAX ? ms : UINT32_MAX;
}

/* Of the name as it is shown, so that no two rows are one series. */
static struct row *row_of(struct row *rows, size_t *n, struct span given)
{
    char clean[BROKER_SEEN_NAME + 1];
    size_t kept = 0;
    for (size_t i = 0; i < given.n; i++)
        if (given.p[i] >= 0x20 && given.p[i] < 0x7f)
            clean[kept++] = (char)given.p[i];
    struct span name = span_of(clean, kept);
    for (size_t i = 0; i < *n; i++)
        if (span_eq(span_str(rows[i].name), name))
            return &rows[i];
    if (*n == TALLY_NAMES_MAX)
        return &rows[TALLY_NAMES_MAX - 1];
    bool last = *n == TALLY_NAMES_MAX - 1;
    struct row *r = &rows[(*n)++];
    (void)snprintf(r->name, sizeof(r->name), "%.*s", SPAN_FMT(last ? SPAN("_OTHER") : name));
    return r;
}

static size_t error_of(struct span word)
{
    size_t i = 0;
    while (i < ERRORS - 1 && !span_eq(word, span_str(errors[i])))
        i++;
    return i;
}

static void seen(struct broker_tally *t, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    unsigned what = msg_get_u8(&m);
    struct span name = msg_get_span(&m, BROKER_SEEN_NAME), error = msg_get_span(&m, ERROR_MAX);
    uint64_t number[BROKER_SEEN_NUMBERS];
    for (size_t i = 0; i < BROKER_SEEN_NUMBERS; i++)
        number[i] = msg_get_u64(&m);
    bool model = what == BROKER_SEEN_MODEL, budget = what == BROKER_SEEN_BUDGET;
    if (msg_end(&m) != 0 || (!model && !budget && what != BROKER_SEEN_TOOL)) {
        log_error("the broker said %u, which cannot be read", f->type);
        return;
    }
    if (budget) {
        t->stops++;
        return;
    }
    struct row *r = model ? row_of(t->model, &t->models, name) : row_of(t->tool, &t->tools, name);
    if (number[0] != BROKER_SEEN_NO_TIME)
        add(&r->took, number[0]);
    if (number[1] > 0)
        add(&r->first, number[1]);
    more(&r->in, number[2]);
    more(&r->out, number[3]);
    more(&r->cost_micro, number[4]);
    if (error.n > 0)
        r->error[error_of(error)]++;
}

void broker_tally_frame(struct desk *d, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    if (d->tally == NULL && (d->tally = calloc(1, sizeof(*d->tally))) == NULL)
        return;
    if (f->type == M_BROKER_SEEN) {
        seen(d->tally, f);
        return;
    }
    uint64_t first = msg_get_u64(&m), second = msg_get_u64(&m);
    if (msg_end(&m) != 0) {
        log_error("the broker said %u, which cannot be read", f->type);
        return;
    }
    if (f->type == M_BROKER_WAITS) {
        d->tally->waits = first;
        d->tally->since_ms = second;
        return;
    }
    more(&d->tally->sent, first);
    more(&d->tally->lost, second);
}

uint64_t broker_tally_waits(const struct broker_tally *t, uint64_t *since_ms)
{
    *since_ms = t != NULL ? t->since_ms : 0;
    return t != NULL ? t->waits : 0;
}

void broker_tally_unsure(struct broker_tally *t)
{
    if (t != NULL)
        t->waits = t->since_ms = 0;
}

void broker_tally_free(struct broker_tally **t)
{
    free(*t);
    *t = NULL;
}

/* --- shown -------------------------------------------------------------------------------------- */

static void label(struct dynbuf *out, struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"' || s.p[i] == '\\')
            (void)dynbuf_add_byte(out, '\\');
        (void)dynbuf_add_byte(out, s.p[i]);
    }
}

static void series(struct dynbuf *out, const char *name, const char *by, const struct row *r)
{
    (void)dynbuf_addf(out, "%s{%s=\"", name, by);
    label(out, span_str(r->name));
    (void)dynbuf_addf(out, "\"");
}

static void put_histogram(struct dynbuf *out, const char *name, const char *by, const struct row *r,
                          const struct histogram *h)
{
    char part[96];
    (void)snprintf(part, sizeof(part), "%s_bucket", name);
    for (size_t i = 0; i <= BUCKETS; i++) {
        series(out, part, by, r);
        (void)dynbuf_addf(out, ",le=\"%s\"} %llu\n", i < BUCKETS ? le[i] : "+Inf",
                          (unsigned long long)(i < BUCKETS ? h->under[i] : h->n));
    }
    (void)snprintf(part, sizeof(part), "%s_sum", name);
    series(out, part, by, r);
    (void)dynbuf_addf(out, "} %llu.%03u\n", (unsigned long long)(h->ms / 1000), (unsigned)(h->ms % 1000));
    (void)snprintf(part, sizeof(part), "%s_count", name);
    series(out, part, by, r);
    (void)dynbuf_addf(out, "} %llu\n", (unsigned long long)h->n);
}

static void head(struct dynbuf *out, const char *name, const char *type, const char *help)
{
    (void)dynbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_errors(struct dynbuf *out, const char *name, const char *by, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < ERRORS; k++)
            if (rows[i].error[k] > 0) {
                series(out, name, by, &rows[i]);
                (void)dynbuf_addf(out, ",error_type=\"%s\"} %llu\n", errors[k], (unsigned long long)rows[i].error[k]);
            }
}

static void put_tokens(struct dynbuf *out, const struct broker_tally *t)
{
    static const char *const name = "countersign_model_tokens_total";
    head(out, name, "counter", "Tokens that models counted.");
    for (size_t i = 0; i < t->models; i++)
        for (unsigned k = 0; k < 2; k++) {
            series(out, name, MODEL, &t->model[i]);
            (void)dynbuf_addf(out, ",gen_ai_token_type=\"%s\"} %llu\n", k == 0 ? "input" : "output",
                              (unsigned long long)(k == 0 ? t->model[i].in : t->model[i].out));
        }
}

static void put_cost(struct dynbuf *out, const struct broker_tally *t)
{
    static const char *const name = "countersign_model_cost_total";
    head(out, name, "counter", "What models cost, by the prices of the table of models.");
    for (size_t i = 0; i < t->models; i++) {
        series(out, name, MODEL, &t->model[i]);
        (void)dynbuf_addf(out, "} %llu.%06llu\n", (unsigned long long)(t->model[i].cost_micro / 1000000),
                          (unsigned long long)(t->model[i].cost_micro % 1000000));
    }
}

static void put_models(struct dynbuf *out, const struct broker_tally *t)
{
    head(out, "gen_ai_client_operation_duration_seconds", "histogram",
         "How long questions to models took, to their end.");
    for (size_t i = 0; i < t->models; i++)
        put_histogram(out, "gen_ai_client_operation_duration_seconds", MODEL, &t->model[i], &t->model[i].took);
    head(out, "gen_ai_client_operation_time_to_first_chunk_seconds", "histogram",
         "How long until something of an answer came.");
    for (size_t i = 0; i < t->models; i++)
        put_histogram(out, "gen_ai_client_operation_time_to_first_chunk_seconds", MODEL, &t->model[i],
                      &t->model[i].first);
    head(out, "countersign_model_errors_total", "counter", "Questions to models of which nothing was kept.");
    put_errors(out, "countersign_model_errors_total", MODEL, t->model, t->models);
    put_tokens(out, t);
    put_cost(out, t);
}

void broker_tally_put(const struct broker_tally *t, struct dynbuf *out)
{
    if (t == NULL)
        return;
    put_models(out, t);
    head(out, "gen_ai_execute_tool_duration_seconds", "histogram", "How long calls of tools took.");
    for (size_t i = 0; i < t->tools; i++)
        put_histogram(out, "gen_ai_execute_tool_duration_seconds", TOOL, &t->tool[i], &t->tool[i].took);
    head(out, "countersign_tool_errors_total", "counter",
         "Calls of tools that failed, ran out of time, or have an end that nobody knows.");
    put_errors(out, "countersign_tool_errors_total", TOOL, t->tool, t->tools);
    head(out, "countersign_budget_stops_total", "counter",
         "Turns that ended, or did not begin, since a budget of their tenant was used up.");
    (void)dynbuf_addf(out, "countersign_budget_stops_total %llu\n", (unsigned long long)t->stops);
    head(out, "countersign_spans_sent_total", "counter", "Spans that the collector took.");
    (void)dynbuf_addf(out, "countersign_spans_sent_total %llu\n", (unsigned long long)t->sent);
    head(out, "countersign_spans_lost_total", "counter", "Spans that no collector took.");
    (void)dynbuf_addf(out, "countersign_spans_lost_total %llu\n", (unsigned long long)t->lost);
    head(out, "countersign_turns_nobody_runs", "gauge", "Turns that wait while no process runs any.");
    (void)dynbuf_addf(out, "countersign_turns_nobody_runs %llu\n", (unsigned long long)t->waits);
}
