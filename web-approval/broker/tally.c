#include "web-approval/broker/tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "web-approval/desk.h"

enum { BUCKETS = 14, ERROR_MAX = 32 };

/* The labels; a tool's as the conventions for generative AI have it. */
#define MODEL "model" /* as the table of models names it, which may be another name than its provider's */
#define TOOL  "gen_ai_tool_name"
#define TASK  "task" /* as the meter calls it */

/* As the conventions for generative AI have them, in ms: from 10, each twice the one before. */
static const char *const le[BUCKETS] = {"0.01", "0.02", "0.04", "0.08",  "0.16",  "0.32",  "0.64",
                                        "1.28", "2.56", "5.12", "10.24", "20.48", "40.96", "81.92"};

/* Kinds of errors that are told apart (broker/models/fault.c, broker/work/think.c, broker/work/seen/seen.c), and ends
 * of turns (broker/turn.c). */
static const char *const errors[] = {"request",    "window",  "refused",   "gone",      "quota",      "rate",
                                     "overloaded", "server",  "cut",       "unreached", "broken",     "too-large",
                                     "cancelled",  "stopped", "no-lease",  "timeout",   "tool_error", "unknown",
                                     "steps",      "tokens",  "cost",      "time",      "same-calls", "model",
                                     "bad-model",  "stuck",   "set-aside", "budget",    "summary",    "_OTHER"};
enum { ERRORS = sizeof(errors) / sizeof(errors[0]) };

struct histogram {
    uint64_t under[BUCKETS], n, ms;
};
/* The last of them, each exactly: a page says how long half of them took. */
struct latest {
    uint32_t ms[TALLY_KEPT];
    size_t n, at;
};
struct row {
    char name[BROKER_SEEN_NAME + 1];
    struct histogram took, first;
    struct latest took_lately, first_lately;
    uint64_t times, in, out, cost_micro, error[ERRORS];
};
struct rows {
    struct row row[TALLY_NAMES_MAX];
    size_t n;
};
struct broker_tally {
    struct rows of[TALLY_KINDS];
    uint64_t stops, waits, since_ms;
    struct {
        uint64_t sent, lost;
    } spans, points;
};

/* --- added up --------------------------------------------------------------------------------- */

/* What cannot be is no reason to begin again at 0, which Prometheus would take for a restart. */
static void more(uint64_t *sum, uint64_t n)
{
    *sum = n < UINT64_MAX - *sum ? *sum + n : UINT64_MAX;
}

static void add(struct histogram *h, struct latest *l, uint64_t ms)
{
    uint32_t most = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
    for (size_t i = 0; i < BUCKETS; i++)
        h->under[i] += ms <= UINT64_C(10) << i;
    h->n++;
    h->ms += most;
    l->ms[l->at] = most;
    l->at = (l->at + 1) % TALLY_KEPT;
    l->n += l->n < TALLY_KEPT;
}

/* The name as it is shown: what is not ASCII by its bytes, in hex, so that no two names become one. */
static struct span shown(struct span given, char to[BROKER_SEEN_NAME + 1])
{
    size_t n = 0;
    for (size_t i = 0; i < given.n; i++) {
        bool plain = given.p[i] >= 0x20 && given.p[i] < 0x7f;
        if (n + (plain ? 1 : 4) > BROKER_SEEN_NAME)
            break;
        n += (size_t)snprintf(to + n, BROKER_SEEN_NAME + 1 - n, plain ? "%c" : "\\x%02x", given.p[i]);
    }
    return n > 0 ? span_of(to, n) : SPAN("?");
}

static struct row *find(struct rows *of, struct span name)
{
    for (size_t i = 0; i < of->n; i++)
        if (span_eq(span_str(of->row[i].name), name))
            return &of->row[i];
    return NULL;
}

/* Two rows of one name would be one series twice. The last one is of all the others. */
static struct row *row_of(struct rows *of, struct span given)
{
    char text[BROKER_SEEN_NAME + 1];
    struct span name = shown(given, text);
    struct row *r = find(of, name);
    if (r == NULL && of->n >= TALLY_NAMES_MAX - 1) {
        name = SPAN("_OTHER");
        r = find(of, name);
    }
    if (r == NULL) {
        r = &of->row[of->n++];
        (void)snprintf(r->name, sizeof(r->name), "%.*s", SPAN_FMT(name));
    }
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
    if (msg_end(&m) != 0 || what <= BROKER_SEEN_NOTHING || what > BROKER_SEEN_TURN) {
        log_error("the broker said %u, which cannot be read", f->type);
        return;
    }
    if (what == BROKER_SEEN_BUDGET) {
        t->stops++;
        return;
    }
    struct row *r = row_of(&t->of[what == BROKER_SEEN_MODEL  ? TALLY_MODELS
                                  : what == BROKER_SEEN_TOOL ? TALLY_TOOLS
                                                             : TALLY_TASKS],
                           name);
    r->times++;
    if (number[0] != BROKER_SEEN_NO_TIME)
        add(&r->took, &r->took_lately, number[0]);
    if (number[1] > 0)
        add(&r->first, &r->first_lately, number[1]);
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
    bool spans = f->type == M_BROKER_SPANS;
    more(spans ? &d->tally->spans.sent : &d->tally->points.sent, first);
    more(spans ? &d->tally->spans.lost : &d->tally->points.lost, second);
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

static void put_times(struct dynbuf *out, const char *name, const char *by, const struct rows *of)
{
    for (size_t i = 0; i < of->n; i++)
        put_histogram(out, name, by, &of->row[i], &of->row[i].took);
}

static void put_errors(struct dynbuf *out, const char *name, const char *by, const struct rows *of)
{
    for (size_t i = 0; i < of->n; i++)
        for (size_t k = 0; k < ERRORS; k++)
            if (of->row[i].error[k] > 0) {
                series(out, name, by, &of->row[i]);
                (void)dynbuf_addf(out, ",error_type=\"%s\"} %llu\n", errors[k],
                                  (unsigned long long)of->row[i].error[k]);
            }
}

static void put_tokens(struct dynbuf *out, const struct rows *models)
{
    static const char *const name = "countersign_model_tokens_total";
    head(out, name, "counter", "Tokens that models counted.");
    for (size_t i = 0; i < models->n; i++)
        for (unsigned k = 0; k < 2; k++) {
            series(out, name, MODEL, &models->row[i]);
            (void)dynbuf_addf(out, ",gen_ai_token_type=\"%s\"} %llu\n", k == 0 ? "input" : "output",
                              (unsigned long long)(k == 0 ? models->row[i].in : models->row[i].out));
        }
}

static void put_cost(struct dynbuf *out, const struct rows *models)
{
    static const char *const name = "countersign_model_cost_total";
    head(out, name, "counter", "What models cost, by the prices of the table of models.");
    for (size_t i = 0; i < models->n; i++) {
        series(out, name, MODEL, &models->row[i]);
        (void)dynbuf_addf(out, "} %llu.%06llu\n", (unsigned long long)(models->row[i].cost_micro / 1000000),
                          (unsigned long long)(models->row[i].cost_micro % 1000000));
    }
}

static void put_models(struct dynbuf *out, const struct rows *models)
{
    head(out, "gen_ai_client_operation_duration_seconds", "histogram",
         "How long questions to models took, to their end.");
    put_times(out, "gen_ai_client_operation_duration_seconds", MODEL, models);
    head(out, "gen_ai_client_operation_time_to_first_chunk_seconds", "histogram",
         "How long until something of an answer came.");
    for (size_t i = 0; i < models->n; i++)
        put_histogram(out, "gen_ai_client_operation_time_to_first_chunk_seconds", MODEL, &models->row[i],
                      &models->row[i].first);
    head(out, "countersign_model_errors_total", "counter", "Questions to models of which nothing was kept.");
    put_errors(out, "countersign_model_errors_total", MODEL, models);
    put_tokens(out, models);
    put_cost(out, models);
}

static void put_count(struct dynbuf *out, const char *name, const char *help, uint64_t n)
{
    head(out, name, "counter", help);
    (void)dynbuf_addf(out, "%s %llu\n", name, (unsigned long long)n);
}

void broker_tally_put(const struct broker_tally *t, struct dynbuf *out)
{
    if (t == NULL)
        return;
    put_models(out, &t->of[TALLY_MODELS]);
    head(out, "gen_ai_execute_tool_duration_seconds", "histogram", "How long calls of tools took.");
    put_times(out, "gen_ai_execute_tool_duration_seconds", TOOL, &t->of[TALLY_TOOLS]);
    head(out, "countersign_tool_errors_total", "counter",
         "Calls of tools that failed, ran out of time, or have an end that nobody knows.");
    put_errors(out, "countersign_tool_errors_total", TOOL, &t->of[TALLY_TOOLS]);
    head(out, "countersign_turn_duration_seconds", "histogram", "From when turns were begun to their end.");
    put_times(out, "countersign_turn_duration_seconds", TASK, &t->of[TALLY_TASKS]);
    head(out, "countersign_turn_errors_total", "counter",
         "Turns that workers ended without a complete answer, by their end.");
    put_errors(out, "countersign_turn_errors_total", TASK, &t->of[TALLY_TASKS]);
    put_count(out, "countersign_budget_stops_total",
              "Turns that ended, or did not begin, since a budget of their tenant was used up.", t->stops);
    put_count(out, "countersign_spans_sent_total", "Spans that the collector took.", t->spans.sent);
    put_count(out, "countersign_spans_lost_total", "Spans that no collector took.", t->spans.lost);
    put_count(out, "countersign_metric_points_sent_total", "Points of metrics that the collector took.",
              t->points.sent);
    put_count(out, "countersign_metric_points_lost_total", "Points of metrics that no collector took.",
              t->points.lost);
    head(out, "countersign_turns_nobody_runs", "gauge", "Turns that wait while no process runs any.");
    (void)dynbuf_addf(out, "countersign_turns_nobody_runs %llu\n", (unsigned long long)t->waits);
}

/* --- the worst first ---------------------------------------------------------------------------- */

static int compare_ms(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static struct tally_times times_of(const struct latest *l)
{
    struct latest sorted = *l;
    if (l->n == 0)
        return (struct tally_times){.n = 0};
    qsort(sorted.ms, l->n, sizeof(sorted.ms[0]), compare_ms);
    return (struct tally_times){l->n, sorted.ms[(l->n - 1) / 2], sorted.ms[(l->n * 95 + 99) / 100 - 1]};
}

/* Nobody's fault. */
static bool is_stop(size_t k)
{
    return strcmp(errors[k], "cancelled") == 0 || strcmp(errors[k], "stopped") == 0;
}

static void put_error(struct tally_line *l, const char *word, uint64_t n)
{
    size_t at = TALLY_ERRORS;
    while (at > 0 && l->error[at - 1].times < n) {
        if (at < TALLY_ERRORS)
            l->error[at] = l->error[at - 1];
        at--;
    }
    if (at < TALLY_ERRORS) {
        l->error[at].word = word;
        l->error[at].times = n;
    }
}

static struct tally_line line_of(const struct row *r)
{
    struct tally_line l = {
        .name = r->name, .times = r->times, .took = times_of(&r->took_lately), .first = times_of(&r->first_lately)};
    for (size_t k = 0; k < ERRORS; k++) {
        *(is_stop(k) ? &l.stopped : &l.failed) += r->error[k];
        if (!is_stop(k) && r->error[k] > 0)
            put_error(&l, errors[k], r->error[k]);
        if (strcmp(errors[k], "timeout") == 0)
            l.late = r->error[k];
    }
    return l;
}

/* Of what was not stopped; the share of none is none. */
static double share_of(const struct tally_line *l)
{
    return l->failed > 0 ? (double)l->failed / (double)(l->times - l->stopped) : 0;
}

static int compare_lines(const void *a, const void *b)
{
    const struct tally_line *x = a, *y = b;
    double p = share_of(x), q = share_of(y);
    if (p != q)
        return p > q ? -1 : 1;
    if (x->took.most_ms != y->took.most_ms)
        return x->took.most_ms > y->took.most_ms ? -1 : 1;
    return strcmp(x->name, y->name);
}

size_t broker_tally_lines(const struct broker_tally *t, enum tally_kind kind, struct tally_line out[TALLY_NAMES_MAX])
{
    size_t n = t != NULL ? t->of[kind].n : 0;
    for (size_t i = 0; i < n; i++)
        out[i] = line_of(&t->of[kind].row[i]);
    if (n > 1)
        qsort(out, n, sizeof(out[0]), compare_lines);
    return n;
}
