#include "broker/work/seen/export.h"

#include <stdio.h>
#include <stdlib.h>

#include "broker/models/fault.h"
#include "broker/otlp/metrics.h"
#include "broker/work/wire.h"
#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"

enum { ANSWER_MAX = 64 * 1024, ARENA_MAX = 1024 * 1024, SAY_MS = 60 * 1000, TARGET_MAX = 64, WHY_MAX = 240 };

/* What it is, and how it is called. */
static const struct {
    const char *words, *key;
    struct span rejected;
    uint16_t counted; /* the message that counts it */
} kinds[] = {
    [EXPORT_SPANS] = {"spans", "otlp:", SPAN("rejectedSpans"), M_BROKER_SPANS},
    [EXPORT_METRICS] = {"metrics", "otlp_metrics:", SPAN("rejectedDataPoints"), M_BROKER_METRICS},
};

struct export
{
    struct work *w;
    enum export_what what;
    struct otlp_metrics *metrics;                                                  /* of EXPORT_METRICS */
    char url[EXPORT_URL_MAX + 1], token[WORK_LANE_MAX + 1], instance[ID_TEXT + 1]; /* token: that it asks with */
    enum { X_RESTS = 0, X_WAITS, X_ASKS, X_SENDS, X_ANEW } at;
    struct dynbuf spans, batch, said; /* that wait; that are sent (of metrics the whole body); the answer */
    uint64_t waiting, sending, lost, say_ms;
    unsigned tries, status;
    unsigned given_up; /* requests in a row of which nothing was taken */
    uint64_t wait_ms;
    bool ours, unsure; /* it is the gateway's own answer; which does not know what became of the request */
    char why[WHY_MAX], last[WHY_MAX]; /* what is wrong now; what was said of it last */
    struct errand *errand;
    struct wire *wire;
    struct timer *timer;
};

/* --- what becomes of a request ---------------------------------------------------------------- */

enum export_next export_next(unsigned status, bool unsure)
{
    if (unsure)
        return EXPORT_AGAIN;
    if (status >= 200 && status < 300)
        return EXPORT_TAKEN;
    if (status == 407)
        return EXPORT_ANEW;
    return status == 0 || status == 429 || (status >= 502 && status <= 504) ? EXPORT_AGAIN : EXPORT_DROP;
}

uint64_t export_wait(unsigned tries, uint64_t said_ms)
{
    uint64_t wait = (uint64_t)EXPORT_AGAIN_MS << (tries > 1 ? (tries < 8 ? tries - 1 : 7) : 0);
    wait = said_ms > wait ? said_ms : wait;
    return wait < EXPORT_AGAIN_MOST_MS ? wait : EXPORT_AGAIN_MOST_MS;
}

uint64_t export_rejected(struct span body, enum export_what what, uint64_t n)
{
    struct arena a;
    uint64_t rejected = 0;
    struct span name = kinds[what].rejected;
    arena_init(&a, ARENA_MAX);
    const struct json *part = json_get(json_parse(body, &a), SPAN("partialSuccess"));
    if (json_u64(part, name, &rejected) != 0 && span_u64(json_text(part, name), UINT32_MAX, &rejected) != 0)
        rejected = 0;
    arena_free(&a);
    return rejected < n ? rejected : n;
}

/* --- what is counted ---------------------------------------------------------------------------- */

static void count(struct export *x, uint64_t sent, uint64_t lost)
{
    struct chan *desk = x->w->errands.desk;
    struct dynbuf *b = desk != NULL ? chan_begin(desk, kinds[x->what].counted, 0) : NULL;
    if (b == NULL)
        return;
    msg_put_u64(b, sent);
    msg_put_u64(b, lost);
    (void)chan_commit_soon(desk);
}

static void lose(struct export *x, uint64_t n, const char *why)
{
    uint64_t now = loop_now(x->w->loop);
    x->lost += n;
    count(x, 0, n);
    if (now < x->say_ms && strcmp(why, x->last) == 0)
        return;
    (void)snprintf(x->last, sizeof(x->last), "%s", why);
    log_warn("%s are not taken (%s of the configuration): %s; of this worker's %llu are lost so far; no turn "
             "waits for them",
             kinds[x->what].words, kinds[x->what].key, why, (unsigned long long)x->lost);
    x->say_ms = now + SAY_MS;
}

/* --- one request -------------------------------------------------------------------------------- */

static void go_on(void *arg);

static void forget(struct export *x)
{
    errand_free(&x->errand);
    wire_free(&x->wire);
    dynbuf_reset(&x->said);
    x->status = 0;
    x->wait_ms = 0;
    x->ours = x->unsure = false;
}

/* The next request, a while after the first that it has; a longer one where the last ones were in vain. */
static void rest(struct export *x)
{
    uint64_t wait = x->given_up > 0 ? export_wait(x->given_up, 0) : 0;
    uint64_t soon = x->what == EXPORT_SPANS ? EXPORT_SOON_MS : EXPORT_EVERY_MS;
    x->sending = x->tries = 0;
    dynbuf_reset(&x->batch);
    x->at = x->waiting > 0 ? X_WAITS : X_RESTS;
    if (x->at == X_WAITS)
        timer_set(x->timer, wait > soon ? wait : soon);
    else
        timer_clear(x->timer);
}

static void give_up(struct export *x, const char *why)
{
    lose(x, x->sending, why);
    forget(x);
    x->given_up += x->given_up < UINT32_MAX;
    if (x->what == EXPORT_METRICS && x->waiting == 0) /* of all since the begin: the next one says it, also where */
        x->waiting = x->metrics->n;                   /* no more comes to be measured */
    rest(x);
}

/* Once it was in vain, the next ones are tried once each, until something is taken. */
static void again(struct export *x, uint64_t said_ms, const char *why)
{
    x->tries++;
    if (x->tries >= EXPORT_TRIES || (x->given_up > 0 && x->at != X_ANEW)) {
        give_up(x, why);
        return;
    }
    forget(x);
    x->at = X_WAITS;
    timer_set(x->timer, export_wait(x->tries, said_ms));
}

/* Who answered what; of a refusal of the gateway's its own words, which say by what. */
static const char *answered(struct export *x)
{
    struct arena a;
    arena_init(&a, ARENA_MAX);
    const struct json *said = x->ours ? json_parse(dynbuf_span(&x->said), &a) : NULL;
    struct span code = span_first(json_text(said, SPAN("code")), 48), words = json_text(said, SPAN("detail"));
    if (x->status == 0)
        (void)snprintf(x->why, sizeof(x->why), "the collector was not reached: %s", wire_why(x->wire));
    else if (code.n > 0)
        (void)snprintf(x->why, sizeof(x->why), "the gateway answered %u (%.*s): %.*s", x->status, SPAN_FMT(code),
                       SPAN_FMT(span_first(words, 160)));
    else
        (void)snprintf(x->why, sizeof(x->why), "the %s answered %u", x->ours ? "gateway" : "collector", x->status);
    arena_free(&a);
    return x->why;
}

static void over(struct export *x)
{
    uint64_t rejected;
    switch (export_next(x->status, x->unsure)) {
    case EXPORT_TAKEN:
        rejected = export_rejected(dynbuf_span(&x->said), x->what, x->sending);
        count(x, x->sending - rejected, 0);
        if (rejected > 0)
            lose(x, rejected, "the collector did not keep some of a request that it took");
        forget(x);
        x->given_up = 0;
        rest(x);
        break;
    case EXPORT_ANEW:
        if (strcmp(x->token, x->w->telemetry) == 0) /* else there is another one already */
            explicit_bzero(x->w->telemetry, sizeof(x->w->telemetry));
        x->at = X_ANEW;
        again(x, 0, answered(x));
        break;
    case EXPORT_AGAIN: again(x, x->wait_ms, answered(x)); break;
    case EXPORT_DROP:
    default: give_up(x, answered(x));
    }
}

static struct span field(const struct http_head *h, struct span name)
{
    const struct http_field *f = http_find(h, name);
    return f != NULL ? f->value : SPAN_NONE;
}

static void heard(void *arg, enum wire_event ev, struct span data)
{
    struct export *x = arg;
    const struct http_head *h = wire_head(x->wire);
    struct span decision;
    switch (ev) {
    case WIRE_HEAD:
        x->status = h->status;
        decision = field(h, SPAN("Countersign-Decision"));
        x->ours = decision.n > 0;
        x->unsure = span_eq(decision, SPAN("error"));
        if (!fault_wait(field(h, SPAN("retry-after")), SPAN_NONE, loop_wall(x->w->loop), &x->wait_ms))
            x->wait_ms = 0;
        break;
    case WIRE_DATA:
        if (data.n > ANSWER_MAX - x->said.n) /* nothing that it says at such length is of use */
            over(x);
        else
            (void)dynbuf_add(&x->said, data);
        break;
    case WIRE_END:
    case WIRE_FAILED:
    default: over(x); /* what is missing behind a status changes nothing of it */
    }
}

static void send(struct export *x)
{
    static const struct http_field fields[] = {{SPAN("Content-Type"), SPAN("application/json")}};
    const struct otlp_who who = {SPAN(PACKAGE_VERSION), span_str(x->instance)};
    struct dynbuf body;
    const char *why;
    dynbuf_init(&body, OTLP_BATCH_MAX + OTLP_HEAD_MAX);
    if (x->what == EXPORT_METRICS)
        (void)dynbuf_add(&body, dynbuf_span(&x->batch));
    else
        otlp_batch(&body, &who, dynbuf_span(&x->batch));
    memcpy(x->token, x->w->telemetry, sizeof(x->token));
    const struct wire_ask ask = {.url = span_str(x->url),
                                 .token = span_str(x->token),
                                 .field = fields,
                                 .fields = 1,
                                 .body = dynbuf_span(&body)};
    x->at = X_SENDS;
    timer_set(x->timer, EXPORT_PATIENCE_MS);
    why = "no memory";
    x->wire = dynbuf_ok(&body) ? wire_begin(x->w, &ask, heard, x, &why) : NULL;
    dynbuf_free(&body);
    if (x->wire == NULL)
        again(x, 0, why);
}

/* --- the identity ---------------------------------------------------------------------------------- */

static void told(void *arg, struct errand *e, enum errand_event ev)
{
    struct export *x = arg;
    struct arena a;
    if (ev == ERRAND_ROOM)
        return;
    arena_init(&a, ARENA_MAX);
    const struct json *said = ev == ERRAND_DATA ? json_parse(e->data, &a) : NULL;
    struct span token = e->status == 201 ? json_text(said, SPAN("token")) : SPAN_NONE;
    struct span words = json_text(said, SPAN("detail"));
    bool ok = token.n > 0 && token.n <= WORK_LANE_MAX, refused = e->status >= 400 && e->status < 500;
    if (words.n == 0 && e->why != NULL)
        words = span_str(e->why);
    if (ok)
        (void)snprintf(x->w->telemetry, sizeof(x->w->telemetry), "%.*s", SPAN_FMT(token));
    (void)snprintf(x->why, sizeof(x->why), "the gateway gives this worker no identity to send them with (%u): %.*s",
                   e->status, SPAN_FMT(span_first(words, 160)));
    arena_wipe(&a);
    errand_free(&x->errand);
    if (ok)
        send(x);
    else if (refused) /* the next ones may ask again, later */
        give_up(x, x->why);
    else
        again(x, 0, x->why);
}

/* Both are sent by one identity: the other one asks for it, and a second would end the first. */
static bool is_asked(const struct export *x)
{
    const struct export *other = x->what == EXPORT_SPANS ? x->w->metrics : x->w->spans;
    return other != NULL && other->at == X_ASKS;
}

static void ask(struct export *x)
{
    char target[TARGET_MAX];
    int n = snprintf(target, sizeof(target), "/api/v1/telemetry/%u/identity", x->w->number);
    const struct errand_ask what = {.tenant = SPAN("default"),
                                    .method = "POST",
                                    .target = span_of(target, (size_t)n),
                                    .json = SPAN("{}"),
                                    .whole = true};
    x->at = X_ASKS;
    timer_set(x->timer, EXPORT_PATIENCE_MS);
    x->errand = errand_new(&x->w->errands, &what, told, x);
    if (x->errand == NULL)
        again(x, 0, "the gateway cannot be asked for an identity to send them with");
}

/* --- what waits -------------------------------------------------------------------------------------- */

/* All that waits is to be sent. */
static void take(struct export *x)
{
    struct dynbuf empty = x->batch;
    x->sending = x->waiting;
    x->waiting = 0;
    if (x->what == EXPORT_SPANS) {
        x->batch = x->spans;
        x->spans = empty;
        return;
    }
    const struct otlp_who who = {SPAN(PACKAGE_VERSION), span_str(x->instance)};
    otlp_put_metrics(&x->batch, &who, x->metrics, loop_wall(x->w->loop));
}

static void go_on(void *arg)
{
    struct export *x = arg;
    if (x->at == X_SENDS && x->status != 0) { /* that was the answer, however slowly the rest of it comes */
        over(x);
        return;
    }
    if (x->at == X_ASKS || x->at == X_SENDS) {
        again(x, 0, x->at == X_ASKS ? "the gateway gave this worker no identity in time" : "no answer came in time");
        return;
    }
    if (x->sending == 0)
        take(x);
    if (!dynbuf_ok(&x->batch)) {
        dynbuf_free(&x->batch);
        dynbuf_init(&x->batch, OTLP_BATCH_MAX + OTLP_HEAD_MAX);
        give_up(x, "there is no memory for them");
    } else if (x->w->telemetry[0] != '\0') {
        send(x);
    } else if (is_asked(x)) {
        x->at = X_WAITS;
        timer_set(x->timer, EXPORT_AGAIN_MS);
    } else {
        ask(x);
    }
}

static void add_span(struct export *x, const struct otlp_span *s)
{
    struct dynbuf one;
    dynbuf_init(&one, OTLP_SPAN_MAX);
    otlp_put(&one, s);
    bool room = dynbuf_ok(&one) && x->spans.n + one.n + 1 <= OTLP_BATCH_MAX;
    if (room && x->waiting > 0)
        (void)dynbuf_add_byte(&x->spans, ',');
    if (room && dynbuf_add(&x->spans, dynbuf_span(&one)) == 0)
        x->waiting++;
    else
        lose(x, 1, "more of them wait than are kept");
    if (!dynbuf_ok(&x->spans)) { /* no memory: what waits may be cut in the middle */
        lose(x, x->waiting, "there is no memory for them");
        dynbuf_free(&x->spans);
        dynbuf_init(&x->spans, OTLP_BATCH_MAX);
        x->waiting = 0;
    }
    dynbuf_free(&one);
    if (x->at == X_RESTS && x->waiting > 0)
        rest(x);
    if (s->kind == OTLP_TURN && x->at == X_WAITS && x->sending == 0 && x->given_up == 0)
        timer_set(x->timer, EXPORT_TURN_MS); /* nothing more comes that could go with it */
}

void export_add(struct work *w, const struct otlp_span *s)
{
    if (w->spans != NULL)
        add_span(w->spans, s);
    if (w->metrics == NULL || !otlp_measure(w->metrics->metrics, s))
        return;
    w->metrics->waiting = w->metrics->metrics->n;
    if (w->metrics->at == X_RESTS)
        rest(w->metrics);
}

struct export *export_new(struct work *w, enum export_what what, const char *url)
{
    struct export *x = calloc(1, sizeof(*x));
    if (x == NULL)
        return NULL;
    x->w = w;
    x->what = what;
    (void)snprintf(x->url, sizeof(x->url), "%s", url);
    id_text(&w->id, x->instance);
    dynbuf_init(&x->spans, OTLP_BATCH_MAX);
    dynbuf_init(&x->batch, what == EXPORT_SPANS ? OTLP_BATCH_MAX : OTLP_BATCH_MAX + OTLP_HEAD_MAX);
    dynbuf_init(&x->said, ANSWER_MAX);
    x->timer = timer_new(w->loop, go_on, x);
    if (what == EXPORT_METRICS && (x->metrics = calloc(1, sizeof(*x->metrics))) != NULL)
        x->metrics->since_ms = loop_wall(w->loop);
    if (x->timer == NULL || (what == EXPORT_METRICS && x->metrics == NULL))
        export_free(&x);
    return x;
}

void export_free(struct export **at)
{
    struct export *x = *at;
    if (x == NULL)
        return;
    *at = NULL;
    forget(x);
    timer_free(&x->timer);
    dynbuf_free(&x->spans);
    dynbuf_free(&x->batch);
    dynbuf_free(&x->said);
    free(x->metrics);
    explicit_bzero(x, sizeof(*x));
    free(x);
}

static void end(struct export **x)
{
    uint64_t n = *x != NULL ? export_waiting(*x) : 0;
    if (n > 0)
        log_info("%llu %s are lost (%s of the configuration): this worker ends, and the gateway sends nothing "
                 "any more",
                 (unsigned long long)n, kinds[(*x)->what].words, kinds[(*x)->what].key);
    export_free(x);
}

void export_end(struct work *w)
{
    end(&w->spans);
    end(&w->metrics);
    explicit_bzero(w->telemetry, sizeof(w->telemetry));
}

uint64_t export_waiting(const struct export *x)
{
    return x->waiting + x->sending;
}

const char *export_why(const struct export *x)
{
    return x->last;
}

uint64_t export_lost(const struct export *x)
{
    return x->lost;
}
