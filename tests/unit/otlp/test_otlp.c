/* Spans as OTLP has them in JSON, to the byte; and names that somebody else chose. */
#include "broker/otlp/otlp.h"

#include "broker/otlp/names.h"
#include "common/id.h"
#include "common/json/json.h"
#include "tests/kit.h"

#define CONVERSATION SPAN("00000000000000000000000001")
#define TURN         SPAN("00000000000000000000000002")

static struct otlp_span of(enum otlp_kind kind)
{
    return (struct otlp_span){.kind = kind,
                              .conversation = CONVERSATION,
                              .turn = TURN,
                              .epoch = 1,
                              .step = 2,
                              .begun_ms = 1700000000123,
                              .ended_ms = 1700000001456};
}

static struct span put(struct dynbuf *b, const struct otlp_span *s)
{
    dynbuf_init(b, OTLP_SPAN_MAX);
    otlp_put(b, s);
    assert_true(dynbuf_ok(b));
    assert_int_equal(dynbuf_add_byte(b, 0), 0);
    return span_of(b->p, b->n - 1);
}

/* The first 2 * bytes digits of the hash of a text. */
static const char *hash(const char *text, size_t bytes)
{
    static char out[4][2 * DIGEST_BYTES + 1];
    static unsigned at;
    struct digest d;
    at = (at + 1) % 4;
    digest_of(span_str(text), &d);
    hex_text(span_of(d.b, bytes), out[at]);
    return out[at];
}

#define TEXT(key, value)  "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define WHOLE(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"
#define WHOSE                                                                                                        \
    TEXT("gen_ai.conversation.id", "00000000000000000000000001")                                                     \
    "," TEXT("countersign.turn.id", "00000000000000000000000002") ","

static void is(const struct otlp_span *s, const char *place, const char *rest)
{
    char want[4096], trace[OTLP_TRACE_TEXT + 1];
    struct dynbuf b;
    bool root = s->kind == OTLP_TURN;
    snprintf(want, sizeof(want), "{\"traceId\":\"%s\",\"spanId\":\"%s\"%s%s%s,%s}",
             hash("0000000000000000000000000100000000000000000000000002", 16), hash(place, 8),
             root ? "" : ",\"parentSpanId\":\"", root ? "" : hash("00000000000000000000000002", 8), root ? "" : "\"",
             rest);
    assert_string_equal((const char *)put(&b, s).p, want);
    otlp_trace_id(s, trace);
    assert_int_equal(strlen(trace), 32);
    dynbuf_free(&b);
}

static void a_turn(void **state)
{
    struct otlp_span s = of(OTLP_TURN);
    s.provider = SPAN("ours");
    s.asked = SPAN("scripted-1");
    is(&s, "00000000000000000000000002",
       "\"name\":\"invoke_agent countersign\",\"kind\":1,"
       "\"startTimeUnixNano\":\"1700000000123000000\",\"endTimeUnixNano\":\"1700000001456000000\","
       "\"attributes\":[" TEXT("gen_ai.operation.name", "invoke_agent") "," WHOSE TEXT(
           "gen_ai.provider.name",
           "ours") "," TEXT("gen_ai.request.model",
                            "scripted-1") "," TEXT("gen_ai.agent.name", "countersign") "," WHOLE("countersign.epoch",
                                                                                                 "1") "]");
}

static void a_question_to_a_model(void **state)
{
    struct otlp_span s = of(OTLP_CHAT);
    s.provider = SPAN("ours");
    s.asked = SPAN("scripted-1");
    s.answered = SPAN("scripted-1-b");
    s.attempt = 3;
    s.try = 1;
    s.first = s.counted = true;
    s.first_ms = 42;
    s.input = 120;
    s.cache_read = 20;
    s.output = 7;
    s.error = "cut";
    is(&s, "00000000000000000000000002/2/model/3.1",
       "\"name\":\"chat scripted-1\",\"kind\":3,"
       "\"startTimeUnixNano\":\"1700000000123000000\",\"endTimeUnixNano\":\"1700000001456000000\","
       "\"attributes\":[" TEXT("gen_ai.operation.name", "chat") "," WHOSE
           TEXT("gen_ai.provider.name", "ours") "," TEXT("gen_ai.request.model", "scripted-1") "," TEXT(
               "gen_ai.response.model",
               "scripted-1-b") ","
                               "{\"key\":\"gen_ai.request.stream\",\"value\":{\"boolValue\":true}},"
                               "{\"key\":\"gen_ai.response.time_to_first_chunk\",\"value\":{\"doubleValue\":0.042}}"
                               "," WHOLE("gen_ai.usage.input_tokens", "120") "," WHOLE(
                                   "gen_ai.usage.cache_read.input_tokens",
                                   "20") "," WHOLE("gen_ai.usage.output_tokens",
                                                   "7") "," WHOLE("countersign.attempt",
                                                                  "3") "," WHOLE("countersign.step",
                                                                                 "2") "," WHOLE("countersign.epoch",
                                                                                                "1") "," TEXT("error."
                                                                                                              "type",
                                                                                                              "cut") "],"
                                                                                                                     "\"status\":{\"code\":2}");
}

static void a_call_of_a_tool(void **state)
{
    struct otlp_span s = of(OTLP_CALL);
    s.ord = 4;
    s.epoch = 9;
    s.ended_ms = 5; /* a clock that was set back */
    s.tool = SPAN("weather__now");
    s.call = SPAN("c000000000000-2-4");
    s.mcp = true;
    s.version = SPAN("2025-06-18");
    s.request = 12;
    is(&s, "00000000000000000000000002/2/call/4.9",
       "\"name\":\"execute_tool weather__now\",\"kind\":1,"
       "\"startTimeUnixNano\":\"1700000000123000000\",\"endTimeUnixNano\":\"1700000000123000000\","
       "\"attributes\":[" TEXT("gen_ai.operation.name", "execute_tool") "," WHOSE
           TEXT("gen_ai.tool.name", "weather__now") "," TEXT("gen_ai.tool.call.id", "c000000000000-2-4") "," TEXT(
               "mcp.method.name",
               "tools/call") "," TEXT("mcp.protocol.version",
                                      "2025-06-18") "," TEXT("jsonrpc.request.id",
                                                             "12") "," TEXT("network.transport",
                                                                            "pipe") "," WHOLE("countersign.step",
                                                                                              "2") "," WHOLE("counter"
                                                                                                             "sign."
                                                                                                             "epoch",
                                                                                                             "9") "]");
}

/* What is done below a call, or a turn, has the ids of its span. */
static void whose_part_it_is(void **state)
{
    char text[OTLP_PARENT_TEXT + 1], want[128];
    const char *trace = hash("0000000000000000000000000100000000000000000000000002", 16);
    struct otlp_span s = of(OTLP_CALL);
    s.ord = 4;
    s.epoch = 9;
    otlp_traceparent(&s, text);
    snprintf(want, sizeof(want), "00-%s-%s-01", trace, hash("00000000000000000000000002/2/call/4.9", 8));
    assert_string_equal(text, want);
    assert_int_equal(strlen(text), OTLP_PARENT_TEXT);
    s.kind = OTLP_TURN;
    otlp_traceparent(&s, text);
    snprintf(want, sizeof(want), "00-%s-%s-01", trace, hash("00000000000000000000000002", 8));
    assert_string_equal(text, want);
}

static void a_name_that_somebody_else_chose(void **state)
{
    static const struct {
        const char *name, *shown;
    } names[] = {
        {"a\"b\\c", "a\\\"b\\\\c"},
        {"line\nbreak\x1b[2J", "line\\\\nbreak\\\\u{1b}[2J"},
        {"\xe2\x80\xaegnp", "\\\\u{202e}gnp"},
        {"bad\xff\xc3", "bad\\\\x{ff}\\\\x{c3}"},
        {"\xe5\xb7\xa5\xe5\x85\xb7", "\xe5\xb7\xa5\xe5\x85\xb7"},
    };
    char want[256], many[4 * OTLP_TEXT_MAX];
    struct otlp_span s = of(OTLP_CALL);
    struct dynbuf b;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        s.tool = span_str(names[i].name);
        snprintf(want, sizeof(want), "\"name\":\"execute_tool %s\"", names[i].shown);
        const char *got = (const char *)put(&b, &s).p;
        if (strstr(got, want) == NULL)
            fail_msg("%s is not in %s", want, got);
        dynbuf_free(&b);
    }
    /* It is cut where a character ends, wherever that is. */
    for (size_t pad = 0; pad < 3; pad++) {
        memset(many, 'x', pad);
        for (size_t i = 0; i < OTLP_TEXT_MAX; i++)
            memcpy(many + pad + 3 * i, "\xe5\xb7\xa5", 3);
        s.tool = span_of(many, pad + 3 * OTLP_TEXT_MAX);
        struct arena a;
        arena_init(&a, 1024 * 1024);
        const struct json *j = json_parse(put(&b, &s), &a);
        assert_non_null(j);
        size_t n = json_text(j, SPAN("name")).n - strlen("execute_tool ");
        assert_true(n <= OTLP_TEXT_MAX && n > OTLP_TEXT_MAX - 3);
        arena_free(&a);
        dynbuf_free(&b);
    }
}

/* The largest span there can be has its room: none is lost for the length of its names. */
static void the_largest_one_has_room(void **state)
{
    char name[4096];
    struct dynbuf b;
    memset(name, 1, sizeof(name));
    struct span n = span_of(name, sizeof(name));
    for (enum otlp_kind kind = OTLP_TURN; kind <= OTLP_CALL; kind++) {
        struct otlp_span s = of(kind);
        s.provider = s.asked = s.answered = s.tool = s.call = s.version = n;
        s.first = s.counted = s.mcp = s.remote = true;
        s.step = s.attempt = s.epoch = s.input = s.cache_read = s.cache_write = s.output = s.reasoning = UINT64_MAX;
        s.begun_ms = s.ended_ms = s.first_ms = s.request = UINT64_MAX;
        s.error = "set-aside";
        struct arena a;
        arena_init(&a, 1024 * 1024);
        assert_non_null(json_parse(put(&b, &s), &a));
        arena_free(&a);
        dynbuf_free(&b);
    }
}

static void a_request(void **state)
{
    struct dynbuf b;
    dynbuf_init(&b, OTLP_BATCH_MAX + OTLP_HEAD_MAX);
    otlp_batch(&b, &(struct otlp_who){SPAN("1.2.3"), SPAN("me")}, SPAN("{\"a\":1},{\"b\":2}"));
    assert_int_equal(dynbuf_add_byte(&b, 0), 0);
    assert_string_equal(
        (const char *)b.p,
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[" TEXT("service.name", "countersign-broker") "," TEXT(
            "service.version",
            "1.2.3") "," TEXT("service.instance.id",
                              "me") "]},"
                                    "\"scopeSpans\":[{\"scope\":{\"name\":\"countersign\",\"version\":\"1.2.3\"},"
                                    "\"spans\":[{\"a\":1},{\"b\":2}],"
                                    "\"schemaUrl\":\"https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev\"}]}]}");
    assert_true(b.n < OTLP_HEAD_MAX);
    dynbuf_free(&b);
}

static void every_attribute_has_its_name(void **state)
{
    for (unsigned i = 0; i < OTLP_NAMES; i++) {
        const char *name = otlp_name(i);
        assert_true(strchr(name, '.') != NULL);
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(name, otlp_name(j));
    }
    assert_string_equal(otlp_name(OTLP_NAMES), "");
    assert_string_equal(otlp_metric_name(OTLP_METRICS), "");
    assert_string_equal(otlp_metric_unit(OTLP_METRICS), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn),
        cmocka_unit_test(a_question_to_a_model),
        cmocka_unit_test(a_call_of_a_tool),
        cmocka_unit_test(whose_part_it_is),
        cmocka_unit_test(a_name_that_somebody_else_chose),
        cmocka_unit_test(the_largest_one_has_room),
        cmocka_unit_test(a_request),
        cmocka_unit_test(every_attribute_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
