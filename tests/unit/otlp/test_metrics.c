/* Spans as histograms, and those as OTLP has them in JSON, to the byte. */
#include "broker/otlp/metrics.h"

#include "common/json/json.h"
#include "tests/kit.h"

enum { SINCE = 1000, NOW = 2500 };

static struct otlp_metrics m;

static int setup(void **state)
{
    m = (struct otlp_metrics){.since_ms = SINCE};
    return 0;
}

static struct otlp_span chat(uint64_t ms, const char *error)
{
    return (struct otlp_span){.kind = OTLP_CHAT,
                              .provider = SPAN("ours"),
                              .asked = SPAN("scripted-1"),
                              .begun_ms = 10,
                              .ended_ms = 10 + ms,
                              .error = error};
}

static const char *put(uint64_t now_ms)
{
    static struct dynbuf b;
    dynbuf_free(&b);
    dynbuf_init(&b, OTLP_BATCH_MAX + OTLP_HEAD_MAX);
    otlp_put_metrics(&b, &(struct otlp_who){SPAN("1.2.3"), SPAN("me")}, &m, now_ms);
    assert_int_equal(dynbuf_add_byte(&b, 0), 0);
    return (const char *)b.p;
}

static void has(const char *words)
{
    const char *text = put(NOW);
    if (strstr(text, words) == NULL)
        fail_msg("%s is not in %s", words, text);
}

#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define CHAT             TEXT("gen_ai.operation.name", "chat")
#define BY               TEXT("gen_ai.provider.name", "ours")
#define MODEL            TEXT("gen_ai.request.model", "scripted-1")
#define WHOSE            CHAT "," BY "," MODEL
#define REST             "{\"key\":\"otel.metric.overflow\",\"value\":{\"boolValue\":true}}"
#define TIMES            "\"startTimeUnixNano\":\"1000000000\",\"timeUnixNano\":\"2500000000\","
#define SECONDS          "0.010,0.020,0.040,0.080,0.160,0.320,0.640,1.280,2.560,5.120,10.240,20.480,40.960,81.920"
#define TOKENS           "1,4,16,64,256,1024,4096,16384,65536,262144,1048576,4194304,16777216,67108864"

static void metric(struct dynbuf *b, const char *name, const char *unit)
{
    (void)dynbuf_addf(b,
                      "{\"name\":\"%s\",\"unit\":\"%s\",\"histogram\":{\"aggregationTemporality\":2,\"dataPoints\":[",
                      name, unit);
}

/* One that was measured once, and is in this bucket. */
static void point(struct dynbuf *b, const char *attributes, const char *sum, int at, const char *bounds)
{
    (void)dynbuf_addf(b, "{\"attributes\":[%s]," TIMES "\"count\":\"1\",\"sum\":%s,\"bucketCounts\":[", attributes,
                      sum);
    for (int i = 0; i < 15; i++)
        (void)dynbuf_addf(b, "%s\"%d\"", i > 0 ? "," : "", i == at);
    (void)dynbuf_addf(b, "],\"explicitBounds\":[%s]}", bounds);
}

/* One question and one call in full: each metric, its attributes and its bounds, and nothing else. */
static void all_of_it_to_the_byte(void **state)
{
    struct otlp_span s = chat(40, NULL), call = {.kind = OTLP_CALL, .error = "timeout", .ended_ms = 90000};
    struct dynbuf b;
    s.first = s.counted = true;
    s.first_ms = 41;
    s.input = 120;
    s.output = 4;
    call.as = SPAN("run_command");
    call.tool = SPAN("another");
    assert_true(otlp_measure(&m, &s) && otlp_measure(&m, &call));
    assert_int_equal(m.n, 5);
    dynbuf_init(&b, 64 * 1024);
    (void)dynbuf_addf(&b, "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[%s,%s,%s]},",
                      TEXT("service.name", "countersign-broker"), TEXT("service.version", "1.2.3"),
                      TEXT("service.instance.id", "me"));
    (void)dynbuf_addf(&b,
                      "\"scopeMetrics\":[{\"scope\":{\"name\":\"countersign\",\"version\":\"1.2.3\"},\"metrics\":[");
    metric(&b, "gen_ai.client.operation.duration", "s");
    point(&b, WHOSE, "0.040", 2, SECONDS);
    (void)dynbuf_addf(&b, "]}},");
    metric(&b, "gen_ai.client.operation.time_to_first_chunk", "s");
    point(&b, WHOSE, "0.041", 3, SECONDS);
    (void)dynbuf_addf(&b, "]}},");
    metric(&b, "gen_ai.client.token.usage", "{token}");
    point(&b, WHOSE "," TEXT("gen_ai.token.type", "input"), "120", 4, TOKENS);
    (void)dynbuf_addf(&b, ",");
    point(&b, WHOSE "," TEXT("gen_ai.token.type", "output"), "4", 1, TOKENS);
    (void)dynbuf_addf(&b, "]}},");
    metric(&b, "gen_ai.execute_tool.duration", "s");
    point(&b,
          TEXT("gen_ai.tool.name", "run_command") "," TEXT("gen_ai.agent.name", "countersign") "," TEXT("error.type",
                                                                                                        "timeout"),
          "90.000", 14, SECONDS);
    (void)dynbuf_addf(&b, "]}}],\"schemaUrl\":\"https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev\"}]}]}");
    assert_int_equal(dynbuf_add_byte(&b, 0), 0);
    assert_string_equal(put(NOW), (const char *)b.p);
    dynbuf_free(&b);
}

/* The same question with another end is another series; what was not sent, or not counted, is in none. */
static void what_is_told_apart(void **state)
{
    struct otlp_span s = chat(1, NULL);
    for (int i = 0; i < 3; i++)
        assert_true(otlp_measure(&m, &s));
    s.error = "cut";
    assert_true(otlp_measure(&m, &s));
    assert_int_equal(m.n, 2);
    assert_int_equal(m.series[0].n, 3);
    assert_int_equal(m.series[0].bucket[0], 3);
    has("\"error.type\"");
    s.error = "no-lease";
    s.unasked = true;
    (void)otlp_measure(&m, &s);
    assert_int_equal(m.n, 2);
    s = (struct otlp_span){.kind = OTLP_TURN};
    assert_false(otlp_measure(&m, &s));
    s = chat(0, "cut"); /* what its provider counted is counted, whatever came of it, and without that */
    s.unasked = s.counted = true;
    assert_true(otlp_measure(&m, &s));
    assert_int_equal(m.n, 4);
    assert_true(m.series[2].metric == OTLP_TOKENS && m.series[2].error == NULL && m.series[2].bucket[0] == 1);
    s = chat(0, NULL);
    s.ended_ms = 5; /* a clock that was set back */
    assert_true(otlp_measure(&m, &s));
    assert_int_equal(m.series[0].sum, 3);
    assert_int_equal(m.series[0].n, 4);
    assert_non_null(strstr(put(5), "\"timeUnixNano\":\"1000000000\""));
}

/* More names than have room are one series of their metric, and there is no more than one. */
static void all_the_rest_is_one(void **state)
{
    char name[16];
    struct otlp_span s = {.kind = OTLP_CALL, .error = "timeout"}, c = chat(7, "cut");
    for (unsigned i = 0; i < OTLP_SERIES_MAX + 100; i++) {
        s.as = span_of(name, (size_t)snprintf(name, sizeof(name), "tool-%u", i));
        assert_true(otlp_measure(&m, &s));
    }
    assert_int_equal(m.n, OTLP_SERIES_MAX + 1);
    assert_int_equal(m.series[OTLP_SERIES_MAX].n, 100);
    c.first = c.counted = true;
    assert_true(otlp_measure(&m, &c));
    assert_true(otlp_measure(&m, &c));
    assert_int_equal(m.n, OTLP_SERIES_MAX + OTLP_METRICS);
    has("{\"attributes\":[" REST "]," TIMES "\"count\":\"100\"");
    has("{\"attributes\":[" REST "]," TIMES "\"count\":\"4\",\"sum\":0,");
}

/* As many as there can be, as long as they can be, have room, and no sum begins again. */
static void the_largest_has_room(void **state)
{
    char name[OTLP_TEXT_MAX];
    struct otlp_span s = chat(0, "overloaded");
    struct arena a;
    memset(name, '"', sizeof(name));
    s.provider = s.asked = span_of(name, sizeof(name));
    s.ended_ms = s.input = s.output = UINT64_MAX;
    s.first = s.counted = true;
    for (unsigned i = 0; i < 2 * OTLP_SERIES_MAX; i++) {
        name[i % 100] = (char)('a' + i / 100);
        for (unsigned k = 0; k < 2; k++)
            assert_true(otlp_measure(&m, &s));
    }
    assert_int_equal(m.n, OTLP_SERIES_MAX + OTLP_METRICS - 1);
    for (size_t i = 0; i < m.n; i++) {
        m.series[i].n = UINT64_MAX;
        for (size_t k = 0; k <= OTLP_BOUNDS; k++)
            m.series[i].bucket[k] = UINT64_MAX;
    }
    m.since_ms = UINT64_MAX;
    arena_init(&a, 64 * 1024 * 1024);
    assert_non_null(json_parse(span_str(put(UINT64_MAX)), &a));
    has("\"sum\":4611686018427387903,");
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_of_it_to_the_byte, setup),
        cmocka_unit_test_setup(what_is_told_apart, setup),
        cmocka_unit_test_setup(all_the_rest_is_one, setup),
        cmocka_unit_test_setup(the_largest_has_room, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
