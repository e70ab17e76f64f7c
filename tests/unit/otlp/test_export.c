/* Spans that wait for their collector: how many, how long, and what becomes of them. */
#include "broker/work/seen/export.h"

#include "broker/work/wire.h"
#include "common/http/http.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"
#include "tests/kit.h"

enum { MANY = 4096 };

/* --- the world of it: a clock, the desk, the gateway's proxy ------------------------------------ */

/* Of spans, and of metrics; the one that is looked at. */
static struct fake {
    void (*fn)(void *arg);
    void *arg;
    uint64_t ms; /* 0: it rests */
} timers[2], *timer_now = timers;
static size_t timers_made;
#define timer_ms (timer_now->ms)
static errand_fn *desk_fn;
static wire_fn *wire_told;
static void *desk_arg, *wire_arg;
static struct errand errand;
static struct http_head head;
static char url[128], token[WORK_LANE_MAX + 1], target[128];
static struct dynbuf body, counted;
static unsigned asked, sent;
static bool no_wire;

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
    struct fake *t = &timers[timers_made++];
    assert_true(timers_made <= 2);
    *t = (struct fake){fn, arg, 0};
    return (struct timer *)t;
}

void timer_set(struct timer *t, uint64_t ms)
{
    ((struct fake *)t)->ms = ms;
}

void timer_clear(struct timer *t)
{
    ((struct fake *)t)->ms = 0;
}

void timer_free(struct timer **t)
{
    *t = NULL;
}

uint64_t loop_wall(const struct loop *l)
{
    return 1700000000000;
}

uint64_t loop_now(const struct loop *l)
{
    return 1000;
}

static uint16_t counted_as;

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    counted_as = type;
    dynbuf_free(&counted);
    dynbuf_init(&counted, 64);
    return &counted;
}

int chan_commit_soon(struct chan *c)
{
    return 0;
}

struct errand *errand_new(struct errands *d, const struct errand_ask *ask, errand_fn *fn, void *arg)
{
    assert_true(span_eq(ask->tenant, SPAN("default")) && ask->whole && ask->lane.n == 0);
    snprintf(target, sizeof(target), "%s %.*s", ask->method, SPAN_FMT(ask->target));
    desk_fn = fn;
    desk_arg = arg;
    asked++;
    return &errand;
}

void errand_free(struct errand **e)
{
    *e = NULL;
}

struct wire *wire_begin(struct work *w, const struct wire_ask *ask, wire_fn *fn, void *arg, const char **why)
{
    *why = "no";
    if (no_wire)
        return NULL;
    assert_true(!ask->get && ask->lease.n == 0 && ask->fields == 1);
    snprintf(url, sizeof(url), "%.*s", SPAN_FMT(ask->url));
    snprintf(token, sizeof(token), "%.*s", SPAN_FMT(ask->token));
    dynbuf_free(&body);
    dynbuf_init(&body, OTLP_BATCH_MAX + OTLP_HEAD_MAX);
    assert_int_equal(dynbuf_add(&body, ask->body), 0);
    wire_told = fn;
    wire_arg = arg;
    sent++;
    return (struct wire *)&wire_told;
}

void wire_free(struct wire **w)
{
    *w = NULL;
}

const struct http_head *wire_head(const struct wire *w)
{
    return &head;
}

const char *wire_why(const struct wire *w)
{
    return "why";
}

/* --- */

static struct work w;

static int setup(void **state)
{
    w = (struct work){.number = 3};
    timers_made = 0;
    timer_now = timers;
    w.spans = export_new(&w, EXPORT_SPANS, "https://collector.example/v1/traces");
    assert_non_null(w.spans);
    asked = sent = 0;
    timer_ms = 0;
    no_wire = false;
    return 0;
}

static int teardown(void **state)
{
    export_end(&w);
    dynbuf_free(&body);
    dynbuf_free(&counted);
    return 0;
}

static void add(uint64_t ord)
{
    const struct otlp_span s = {.kind = OTLP_CALL, .tool = SPAN("read_file"), .ord = ord};
    export_add(&w, &s);
}

static void time_comes(void)
{
    assert_true(timer_ms > 0);
    timer_ms = 0;
    timer_now->fn(timer_now->arg);
}

static void identity(unsigned status, const char *json)
{
    errand = (struct errand){.status = status, .data = span_str(json)};
    desk_fn(desk_arg, &errand, ERRAND_DATA);
}

static void answer(unsigned status, const char *said)
{
    head = (struct http_head){.status = status};
    wire_told(wire_arg, WIRE_HEAD, SPAN_NONE);
    wire_told(wire_arg, WIRE_DATA, span_str(said));
    wire_told(wire_arg, WIRE_END, SPAN_NONE);
}

/* With an identity, once. */
static void begun(void)
{
    add(1);
    assert_int_equal(timer_ms, EXPORT_SOON_MS);
    time_comes();
    assert_string_equal(target, "POST /api/v1/telemetry/3/identity");
    identity(201, "{\"token\":\"cst_one\"}");
    assert_int_equal(sent, 1);
    assert_string_equal(url, "https://collector.example/v1/traces");
    assert_string_equal(token, "cst_one");
}

static void what_is_taken_is_gone_and_the_identity_stays(void **state)
{
    begun();
    add(2); /* it waits for the next request */
    assert_int_equal(export_waiting(w.spans), 2);
    answer(200, "{}");
    assert_int_equal(export_waiting(w.spans), 1);
    assert_int_equal(timer_ms, EXPORT_SOON_MS);
    time_comes();
    assert_int_equal(asked, 1);
    assert_int_equal(sent, 2);
    answer(204, "");
    assert_int_equal(export_waiting(w.spans), 0);
    assert_int_equal(timer_ms, 0);
    assert_int_equal(export_lost(w.spans), 0);
}

/* The same to the byte, later each time, and not for ever. */
static void what_fails_is_sent_again_and_given_up(void **state)
{
    struct dynbuf first;
    begun();
    dynbuf_init(&first, OTLP_BATCH_MAX);
    assert_int_equal(dynbuf_add(&first, dynbuf_span(&body)), 0);
    for (unsigned i = 1; i < EXPORT_TRIES; i++) {
        if (i % 2)
            answer(503, "<html>");
        else
            wire_told(wire_arg, WIRE_FAILED, SPAN_NONE);
        assert_int_equal(timer_ms, EXPORT_AGAIN_MS << (i - 1));
        time_comes();
        assert_int_equal(sent, 1 + i);
        assert_true(span_eq(dynbuf_span(&body), dynbuf_span(&first)));
    }
    answer(503, "");
    assert_int_equal(export_lost(w.spans), 1);
    assert_int_equal(export_waiting(w.spans), 0);
    assert_int_equal(timer_ms, 0);
    for (unsigned i = 0; i < 6; i++) { /* the next ones once each, and ever later */
        add(2);
        assert_int_equal(timer_ms, i < 3 ? EXPORT_SOON_MS : EXPORT_AGAIN_MS << i);
        time_comes();
        answer(503, "");
        assert_int_equal(export_lost(w.spans), 2 + i);
        assert_int_equal(timer_ms, 0);
    }
    add(3);
    time_comes();
    answer(200, "{}"); /* and as before, once it takes some */
    add(4);
    assert_int_equal(timer_ms, EXPORT_SOON_MS);
    time_comes();
    answer(503, "");
    assert_int_equal(timer_ms, EXPORT_AGAIN_MS);
    time_comes();
    answer(200, "{\"partialSuccess\":{\"rejectedSpans\":\"1\",\"errorMessage\":\"no\"}}");
    assert_int_equal(export_lost(w.spans), 8);
    dynbuf_free(&first);
}

/* A turn's spans are one request, at its end. */
static void what_a_turn_did_is_sent_when_it_is_over(void **state)
{
    const struct otlp_span root = {.kind = OTLP_TURN};
    begun();
    answer(200, "{}");
    add(2);
    add(3);
    assert_int_equal(timer_ms, EXPORT_SOON_MS);
    export_add(&w, &root);
    assert_int_equal(timer_ms, EXPORT_TURN_MS);
    time_comes();
    assert_int_equal(sent, 2);
    answer(503, "");
    export_add(&w, &root); /* what is to be sent again is sent no sooner */
    assert_int_equal(timer_ms, EXPORT_AGAIN_MS);
}

static void what_is_refused_is_lost_at_once(void **state)
{
    begun();
    answer(403, "{}");
    assert_int_equal(export_lost(w.spans), 1);
    assert_int_equal(timer_ms, 0);
    assert_int_equal(sent, 1);
}

/* The gateway's own refusals are its own, in its words; they are no fault of the collector's. */
static void who_refused_is_said(void **state)
{
    static const struct {
        const char *decision, *body, *said;
        unsigned status;
    } all[] = {
        {"deny", "{\"code\":\"spans-held\",\"detail\":\"allow them\"}",
         "the gateway answered 403 (spans-held): allow them", 403},
        {"refused", "", "the gateway answered 403", 403},
        {"", "{\"code\":\"spans-held\",\"detail\":\"allow them\"}", "the collector answered 403", 403},
        {"error", "{\"code\":\"upstream-failed\",\"detail\":\"no way\"}",
         "the gateway answered 502 (upstream-failed): no way", 502},
    };
    begun();
    answer(200, "{}");
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        add(2);
        time_comes();
        head = (struct http_head){.status = all[i].status, .nfields = all[i].decision[0] != 0};
        head.field[0] = (struct http_field){SPAN("Countersign-Decision"), span_str(all[i].decision)};
        wire_told(wire_arg, WIRE_HEAD, SPAN_NONE);
        wire_told(wire_arg, WIRE_DATA, span_str(all[i].body));
        wire_told(wire_arg, WIRE_END, SPAN_NONE);
        assert_string_equal(export_why(w.spans), all[i].said);
        assert_int_equal(export_lost(w.spans), i + 1); /* others were given up before */
    }
    add(3);
    time_comes();
    wire_told(wire_arg, WIRE_FAILED, SPAN_NONE);
    assert_string_equal(export_why(w.spans), "the collector was not reached: why");
}

/* What the desk will not give now it will not give in a second: it is not asked again for the same spans. */
static void an_identity_that_is_refused_is_said(void **state)
{
    add(1);
    time_comes();
    identity(409, "{\"detail\":\"a sandbox of this name exists\"}");
    assert_int_equal(export_lost(w.spans), 1);
    assert_int_equal(timer_ms, 0);
    assert_string_equal(export_why(w.spans), "the gateway gives this worker no identity to send them with (409): a "
                                             "sandbox of this name exists");
    export_end(&w);
    assert_null(w.spans);
    export_end(&w);
}

static void who_never_answers_is_left(void **state)
{
    begun();
    assert_int_equal(timer_ms, EXPORT_PATIENCE_MS);
    time_comes();
    assert_int_equal(timer_ms, EXPORT_AGAIN_MS);
    time_comes();
    head = (struct http_head){.status = 200};
    wire_told(wire_arg, WIRE_HEAD, SPAN_NONE);
    static uint8_t much[48 * 1024]; /* nor who never ends */
    wire_told(wire_arg, WIRE_DATA, span_of(much, sizeof(much)));
    assert_int_equal(export_waiting(w.spans), 1);
    wire_told(wire_arg, WIRE_DATA, span_of(much, sizeof(much)));
    assert_int_equal(export_waiting(w.spans), 0);
    assert_int_equal(export_lost(w.spans), 0);
    add(2); /* nor who has answered, and drips: it has them */
    time_comes();
    wire_told(wire_arg, WIRE_HEAD, SPAN_NONE);
    wire_told(wire_arg, WIRE_DATA, SPAN("{"));
    time_comes();
    assert_int_equal(export_waiting(w.spans), 0);
    assert_int_equal(export_lost(w.spans), 0);
    assert_int_equal(timer_ms, 0);
}

static void an_identity_that_is_not_known_any_more_is_made_anew(void **state)
{
    begun();
    answer(407, "");
    time_comes();
    assert_int_equal(asked, 2);
    identity(201, "{\"token\":\"cst_two\"}");
    assert_string_equal(token, "cst_two");
    answer(200, "");
    assert_int_equal(export_lost(w.spans), 0);
}

static void without_an_identity_or_a_way_they_are_lost(void **state)
{
    add(1);
    time_comes();
    identity(503, "{}");
    time_comes();
    identity(201, "{}");
    time_comes();
    time_comes(); /* nobody answers */
    time_comes();
    identity(201, "{\"token\":\"cst_one\"}");
    wire_told(wire_arg, WIRE_FAILED, SPAN_NONE);
    no_wire = true;
    time_comes();
    assert_int_equal(export_lost(w.spans), 1);
    assert_int_equal(timer_ms, 0);
}

/* More than is kept is lost and counted, whatever the collector does; what waits stays. */
static void the_queue_is_bounded(void **state)
{
    struct work none = {.number = 1};
    const struct otlp_span s = {.kind = OTLP_CALL};
    export_add(&none, &s); /* nothing is exported */
    uint64_t kept = 0;
    for (unsigned i = 0; i < MANY; i++) {
        add(i);
        assert_true(export_waiting(w.spans) >= kept);
        kept = export_waiting(w.spans);
    }
    assert_true(kept > 500 && kept < MANY);
    assert_int_equal(export_lost(w.spans), MANY - kept);
    time_comes();
    identity(201, "{\"token\":\"cst_one\"}");
    assert_true(body.n <= OTLP_BATCH_MAX + OTLP_HEAD_MAX);
    answer(200, "");
    assert_int_equal(export_waiting(w.spans), 0);
}

static void body_has(const char *words)
{
    if (span_find(dynbuf_span(&body), span_str(words)) == body.n)
        fail_msg("%s is not in %.*s", words, SPAN_FMT(dynbuf_span(&body)));
}

/* With spans beside them, or not; from here on their timer is looked at. */
static void metrics_too(bool spans)
{
    if (!spans) {
        export_free(&w.spans);
        timers_made = 0;
    }
    w.metrics = export_new(&w, EXPORT_METRICS, "https://collector.example/v1/metrics");
    assert_non_null(w.metrics);
    timer_now = &timers[timers_made - 1];
}

/* A request has what the one before had, too, whether that was taken or lost. */
static void metrics_are_of_all_since_the_begin(void **state)
{
    const struct otlp_span root = {.kind = OTLP_TURN};
    metrics_too(false);
    w.errands.desk = (struct chan *)&w;
    add(1);
    assert_int_equal(timer_ms, EXPORT_EVERY_MS);
    export_add(&w, &root); /* a turn's end is no hurry */
    assert_int_equal(timer_ms, EXPORT_EVERY_MS);
    time_comes();
    identity(201, "{\"token\":\"cst_one\"}");
    assert_int_equal(sent, 1);
    assert_string_equal(url, "https://collector.example/v1/metrics");
    body_has("{\"resourceMetrics\":[{");
    body_has("\"count\":\"1\"");
    add(2);
    answer(200, "{\"partialSuccess\":{\"rejectedDataPoints\":\"1\"}}");
    assert_int_equal(counted_as, M_BROKER_METRICS);
    assert_int_equal(export_lost(w.metrics), 1);
    assert_int_equal(timer_ms, EXPORT_EVERY_MS);
    time_comes();
    body_has("\"count\":\"2\"");
    answer(403, "");
    assert_int_equal(export_lost(w.metrics), 2);
    assert_int_equal(timer_ms, EXPORT_EVERY_MS); /* nobody has them: they are said again, though nothing is new */
    time_comes();
    assert_int_equal(sent, 3);
    body_has("\"count\":\"2\"");
    for (unsigned i = 0; i < 10; i++) { /* ever more seldom */
        answer(403, "");
        time_comes();
    }
    assert_int_equal(sent, 13);
    answer(403, "");
    assert_int_equal(timer_ms, EXPORT_AGAIN_MOST_MS);
    add(3);
    time_comes();
    body_has("\"count\":\"3\"");
    answer(200, "");
    assert_int_equal(timer_ms, 0); /* until there is more to say */
    assert_int_equal(export_waiting(w.metrics), 0);
    assert_int_equal(export_lost(w.metrics), 13);
}

/* Whoever asks second would end the identity of the first. */
static void both_have_one_identity(void **state)
{
    metrics_too(true);
    add(1);
    timer_now = &timers[0];
    time_comes();
    timer_now = &timers[1];
    time_comes();
    assert_int_equal(asked, 1);
    assert_int_equal(timer_ms, EXPORT_AGAIN_MS);
    identity(201, "{\"token\":\"cst_one\"}");
    assert_int_equal(sent, 1);
    void *spans = wire_arg;
    time_comes();
    assert_int_equal(sent, 2);
    assert_int_equal(asked, 1);
    assert_string_equal(token, "cst_one");
    answer(407, ""); /* the gateway knows it no more: one of them asks, the other one has it then, too */
    time_comes();
    assert_int_equal(asked, 2);
    identity(201, "{\"token\":\"cst_two\"}");
    assert_int_equal(sent, 3);
    wire_arg = spans;
    answer(407, "");
    timer_now = &timers[0];
    time_comes();
    assert_int_equal(asked, 2);
    assert_int_equal(sent, 4);
    assert_string_equal(token, "cst_two");
}

static void what_an_answer_means(void **state)
{
    static const struct {
        unsigned status;
        enum export_next next;
    } all[] = {{0, EXPORT_AGAIN},   {200, EXPORT_TAKEN}, {202, EXPORT_TAKEN}, {204, EXPORT_TAKEN},
               {302, EXPORT_DROP},  {400, EXPORT_DROP},  {401, EXPORT_DROP},  {403, EXPORT_DROP},
               {407, EXPORT_ANEW},  {413, EXPORT_DROP},  {429, EXPORT_AGAIN}, {500, EXPORT_DROP},
               {502, EXPORT_AGAIN}, {503, EXPORT_AGAIN}, {504, EXPORT_AGAIN}, {999, EXPORT_DROP}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (export_next(all[i].status, false) != all[i].next || export_next(all[i].status, true) != EXPORT_AGAIN)
            fail_msg("%u", all[i].status);
}

static void how_long_it_waits(void **state)
{
    assert_int_equal(export_wait(1, 0), 1000);
    assert_int_equal(export_wait(2, 0), 2000);
    assert_int_equal(export_wait(4, 0), 8000);
    assert_int_equal(export_wait(1, 5000), 5000);
    assert_int_equal(export_wait(1, UINT64_MAX), EXPORT_AGAIN_MOST_MS);
    assert_int_equal(export_wait(UINT32_MAX, 0), EXPORT_AGAIN_MOST_MS);
}

static void what_a_collector_did_not_keep(void **state)
{
    assert_int_equal(export_rejected(SPAN_NONE, EXPORT_SPANS, 9), 0);
    assert_int_equal(export_rejected(SPAN("{}"), EXPORT_SPANS, 9), 0);
    assert_int_equal(export_rejected(SPAN("{\"partialSuccess\":{}}"), EXPORT_SPANS, 9), 0);
    assert_int_equal(export_rejected(SPAN("{\"partialSuccess\":{\"rejectedSpans\":\"3\"}}"), EXPORT_SPANS, 9), 3);
    assert_int_equal(export_rejected(SPAN("{\"partialSuccess\":{\"rejectedSpans\":3}}"), EXPORT_SPANS, 9), 3);
    assert_int_equal(export_rejected(SPAN("{\"partialSuccess\":{\"rejectedSpans\":\"99\"}}"), EXPORT_SPANS, 9), 9);
    assert_int_equal(export_rejected(SPAN("{\"partialSuccess\":{\"rejectedSpans\":\"-3\"}}"), EXPORT_SPANS, 9), 0);
    assert_int_equal(export_rejected(SPAN("{\"partialSuccess\":[\"rejectedSpans\"]}"), EXPORT_SPANS, 9), 0);
    assert_int_equal(export_rejected(SPAN("<html>rubbish"), EXPORT_SPANS, 9), 0);
    assert_int_equal(export_rejected(SPAN("{\"partialSuccess\":{\"rejectedDataPoints\":\"3\"}}"), EXPORT_SPANS, 9),
                     0);
    assert_int_equal(export_rejected(SPAN("{\"partialSuccess\":{\"rejectedDataPoints\":\"3\"}}"), EXPORT_METRICS, 9),
                     3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_taken_is_gone_and_the_identity_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(what_fails_is_sent_again_and_given_up, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_turn_did_is_sent_when_it_is_over, setup, teardown),
        cmocka_unit_test_setup_teardown(who_refused_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(an_identity_that_is_refused_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_refused_is_lost_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(who_never_answers_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(an_identity_that_is_not_known_any_more_is_made_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(without_an_identity_or_a_way_they_are_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(the_queue_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(metrics_are_of_all_since_the_begin, setup, teardown),
        cmocka_unit_test_setup_teardown(both_have_one_identity, setup, teardown),
        cmocka_unit_test(what_an_answer_means),
        cmocka_unit_test(how_long_it_waits),
        cmocka_unit_test(what_a_collector_did_not_keep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
