/* Answers of JSON-RPC with another id: which ids are written over, and that it does not matter how the bytes came. */
#include "tests/kit.h"

#include <stdlib.h>

#include "common/json/rpc.h"

#define ID     "\"mine\""
#define JSON   "application/json; charset=utf-8"
#define EVENTS "text/event-stream"

static const struct {
    const char *type, *in, *out; /* out NULL: as it came */
} rows[] = {
    {JSON, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"id\":1}}",
     "{\"jsonrpc\":\"2.0\",\"id\":" ID ",\"result\":{\"id\":1}}"},
    {JSON, " {\"result\":[\"}\\\"\",{\"id\":2}] , \"id\" : \"abc\" }\n",
     " {\"result\":[\"}\\\"\",{\"id\":2}] , \"id\" : " ID " }\n"},
    {JSON, "{\"error\":{\"code\":-1,\"message\":\"\\\\\"},\"id\":-7}",
     "{\"error\":{\"code\":-1,\"message\":\"\\\\\"},\"id\":" ID "}"},
    {"Application/JSON", "{\"id\":1,\"result\":null}", "{\"id\":" ID ",\"result\":null}"},
    {JSON, "{\"id\":null,\"error\":{}}", NULL},
    {JSON, "{\"id\":1,\"method\":\"sampling/createMessage\",\"result\":1}", NULL}, /* the server asks */
    {JSON, "{\"id\":1}", NULL},
    {JSON, "{\"result\":1}", NULL},
    {JSON, "{\"id\":1,\"id\":2,\"result\":1}", NULL},
    {JSON, "{\"\\u0069d\":1,\"id\":2,\"result\":1}", NULL},
    {JSON, "[{\"id\":1,\"result\":1}]", NULL},
    {JSON, "{\"id\":1,\"result\":1} x", NULL},
    {JSON, "{\"id\":1,\"result\":1", NULL},
    {JSON, "{\"id\":1,\"result\":{\"a\":\"b}", NULL},
    {JSON, "{\"id\":{\"a\":1},\"result\":1}", NULL},
    {JSON, "{\"id\":,\"result\":1}", NULL},
    {JSON, "data: {\"id\":1,\"result\":1}\n", NULL},
    {JSON, "", NULL},
    {EVENTS, "event: message\ndata: {\"id\":1,\"result\":1}\n\n",
     "event: message\ndata: {\"id\":" ID ",\"result\":1}\n\n"},
    {EVENTS, "id: 5\r\ndata:{\"id\":1,\"error\":{}}\r\n\r\n", "id: 5\r\ndata:{\"id\":" ID ",\"error\":{}}\r\n\r\n"},
    {EVENTS, "data: {\"id\":1,\"method\":\"ping\"}\n\ndata: {\"id\":1,\"result\":{}}",
     "data: {\"id\":1,\"method\":\"ping\"}\n\ndata: {\"id\":" ID ",\"result\":{}}"},
    {EVENTS, "{\"id\":1,\"result\":1}\n: comment\ndata: no\ndata:\n", NULL},
    {"text/plain", "{\"id\":1,\"result\":1}", NULL},
    {"", "{\"id\":1,\"result\":1}", NULL},
};

static void fed(const char *type, struct span in, size_t step, struct span want)
{
    struct rpc_answer a;
    struct dynbuf out;
    dynbuf_init(&out, 4 * RPC_MESSAGE_MAX);
    rpc_answer_begin(&a, span_str(type));
    for (size_t at = 0; a.is && at < in.n; at += step)
        assert_int_equal(rpc_answer_feed(&a, SPAN(ID), span_first(span_from(in, at), step), false, &out), 0);
    if (a.is)
        assert_int_equal(rpc_answer_feed(&a, SPAN(ID), SPAN_NONE, true, &out), 0);
    else
        assert_int_equal(dynbuf_add(&out, in), 0);
    if (!span_eq(dynbuf_span(&out), want))
        fail_msg("`%.*s` became `%.*s`", SPAN_FMT(span_first(in, 200)), SPAN_FMT(span_first(dynbuf_span(&out), 200)));
    rpc_answer_end(&a);
    dynbuf_free(&out);
}

static void the_id_of_a_response_is_written_over(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct span in = span_str(rows[i].in);
        for (size_t step = 1; step <= in.n + 1; step++)
            fed(rows[i].type, in, step, rows[i].out ? span_str(rows[i].out) : in);
    }
}

/* An event goes on when its line is there, not when the stream ends. */
static void an_event_does_not_wait_for_the_next(void **state)
{
    struct rpc_answer a;
    struct dynbuf out;
    dynbuf_init(&out, 1000);
    rpc_answer_begin(&a, SPAN(EVENTS));
    assert_int_equal(rpc_answer_feed(&a, SPAN("2"), SPAN("data: {\"id\":1,\"result\":1}\n\nda"), false, &out), 0);
    assert_true(span_eq(dynbuf_span(&out), SPAN("data: {\"id\":2,\"result\":1}\n\n")));
    rpc_answer_end(&a);
    dynbuf_free(&out);
}

/* At the limit it is written over; one byte past it the message goes on as it is, and of events the next line is one
 * again. */
static void what_is_too_long_goes_on_as_it_is(void **state)
{
    for (size_t past = 0; past < 2; past++)
        for (int events = 0; events < 2; events++) {
            const char *data = events ? "data:" : "", *end = events ? "\n" : "";
            struct dynbuf in, want;
            dynbuf_init(&in, 2 * RPC_MESSAGE_MAX);
            dynbuf_init(&want, 2 * RPC_MESSAGE_MAX);
            dynbuf_addf(&in, "%s{\"id\":1,\"result\":\"", data);
            while (in.n < RPC_MESSAGE_MAX + past - 2 - strlen(end))
                dynbuf_add_byte(&in, 'x');
            dynbuf_addf(&in, "\"}%s", end);
            assert_int_equal(in.n, RPC_MESSAGE_MAX + past);
            size_t head = strlen(data) + 6;
            dynbuf_add(&want, span_first(dynbuf_span(&in), head));
            dynbuf_addf(&want, "%s", past ? "1" : ID);
            dynbuf_add(&want, span_from(dynbuf_span(&in), head + 1));
            dynbuf_addf(&in, "%s", events ? "data:{\"id\":1,\"result\":1}\n" : "");
            dynbuf_addf(&want, "%s", events ? "data:{\"id\":" ID ",\"result\":1}\n" : "");
            fed(events ? EVENTS : JSON, dynbuf_span(&in), 60000, dynbuf_span(&want));
            dynbuf_free(&in);
            dynbuf_free(&want);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_id_of_a_response_is_written_over),
        cmocka_unit_test(an_event_does_not_wait_for_the_next),
        cmocka_unit_test(what_is_too_long_goes_on_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
