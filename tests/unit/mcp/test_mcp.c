/* One MCP server, as a machine: both eras, what it lists, what it answers, what it wants, and what it does that it
 * may not. */
#include "tests/kit.h"

#include "broker/mcp/mcp.h"
#include "proxy/judge/tickets/retry.h"

static struct mcp mcp;

/* What was said since, in full; and it is written. */
static const char *said(void)
{
    static char text[64 * 1024];
    (void)snprintf(text, sizeof(text), "%.*s", SPAN_FMT(dynbuf_span(&mcp.out)));
    dynbuf_reset(&mcp.out);
    return text;
}

static void saw(const char *words)
{
    const char *text = said();
    if (strstr(text, words) == NULL)
        fail_msg("%s is not in %s", words, text);
}

static enum mcp_event hear(const char *line)
{
    enum mcp_event ev = mcp_feed(&mcp, span_str(line));
    return ev != MCP_NOTHING ? ev : mcp_feed(&mcp, SPAN("\n"));
}

#define RESULT(id, body) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" body "}"
#define NO_METHOD(id)                                                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}"
#define TOOL(name, more) "{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\"}" more "}"
#define INIT             "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}}}"

static int setup(void **state)
{
    mcp_begin(&mcp, SPAN("files"), SPAN_NONE);
    return 0;
}

static int teardown(void **state)
{
    mcp_free(&mcp);
    return 0;
}

/* A server of the older era, with these tools. */
static void ready(const char *tools)
{
    char line[32 * 1024];
    saw("server/discover");
    assert_int_equal(hear(NO_METHOD("1")), MCP_NOTHING);
    saw("\"method\":\"initialize\"");
    assert_int_equal(hear(RESULT("2", INIT)), MCP_NOTHING);
    saw("notifications/initialized");
    (void)snprintf(line, sizeof(line), RESULT("3", "{\"tools\":[%s]}"), tools);
    assert_int_equal(hear(line), MCP_READY);
}

static void call(void)
{
    const struct mcp_tool *t = mcp_tool_of(&mcp, SPAN("files__read"));
    assert_non_null(t);
    assert_int_equal(mcp_call(&mcp, t, SPAN("{\"path\":\"a\"}"), SPAN_NONE), 0);
    assert_int_equal(mcp_call(&mcp, t, SPAN("{}"), SPAN_NONE), -1); /* one in flight */
    saw("\"name\":\"read\",\"arguments\":{\"path\":\"a\"}");
}

static void ends(enum call_end end, const char *text)
{
    assert_int_equal(mcp.end, end);
    if (!span_eq(dynbuf_span(&mcp.result), span_str(text)))
        fail_msg("%.*s", SPAN_FMT(dynbuf_span(&mcp.result)));
}

static void the_older_era(void **state)
{
    ready(TOOL("read", ",\"description\":\"Reads\""));
    assert_false(mcp.modern);
    call();
    assert_int_equal(hear(RESULT("3", "{\"content\":[]}")), MCP_NOTHING); /* of none that is in flight */
    assert_int_equal(
        hear(RESULT("4", "{\"content\":[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"text\",\"text\":\"two\"},"
                         "{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"image/png\"}]}")),
        MCP_ANSWERED);
    ends(CALL_DONE, "one\ntwo\n[image image/png: it is not shown]");
}

static void the_newer_era(void **state)
{
    assert_int_equal(hear(RESULT("1", "{\"supportedVersions\":[\"2026-07-28\"]}")), MCP_NOTHING);
    saw("\"method\":\"tools/list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
        "protocolVersion\":\"2026-07-28\"");
    assert_int_equal(hear(RESULT("2", "{\"tools\":[" TOOL("read", "") "]}")), MCP_READY);
    assert_true(mcp.modern);
    call();
    assert_int_equal(
        hear(RESULT(
            "3", "{\"resultType\":\"input_required\",\"inputRequests\":{\"q\":{\"method\":\"elicitation/create\","
                 "\"params\":{\"message\":\"Sure?\"}},\"r\":{\"method\":\"roots/list\"}},\"requestState\":\"s1\"}")),
        MCP_NOTHING);
    saw("\"inputResponses\":{\"q\":{\"action\":\"decline\"},\"r\":{\"roots\":[{\"uri\":\"file:///"
        "workspace\",\"name\":\"workspace\"}]}},"
        "\"requestState\":\"s1\"");
    assert_int_equal(
        hear(RESULT("4", "{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"no\"}]}")),
        MCP_ANSWERED);
    ends(CALL_DONE, "[It wanted to ask the person, and was declined: Sure?]\nno");
    call();
    assert_int_equal(
        hear(RESULT(
            "5", "{\"resultType\":\"input_required\",\"inputRequests\":{\"countersign\":{\"method\":"
                 "\"elicitation/create\",\"params\":{\"message\":\"Held.\"}}},\"requestState\":\"countersign:1\"}")),
        MCP_NOTHING); /* the gateway's own: nobody said no */
    saw("\"inputResponses\":{\"countersign\":{\"action\":\"cancel\"}},\"requestState\":\"countersign:1\"");
    assert_int_equal(
        hear(RESULT("6", "{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"yes\"}]}")),
        MCP_ANSWERED);
    ends(CALL_DONE, "yes");
    call();
    assert_int_equal(
        hear(RESULT(
            "7",
            "{\"resultType\":\"input_required\",\"inputRequests\":{\"q\":{\"method\":\"sampling/createMessage\"}}}")),
        MCP_ANSWERED);
    ends(CALL_ERROR, "the server asked for something that is not given here, and did not do it");
    call();
    for (int i = 8; i < 8 + MCP_ROUNDS_MAX; i++) {
        char line[256];
        (void)snprintf(line, sizeof(line), RESULT("%d", "{\"resultType\":\"input_required\",\"inputRequests\":{}}"),
                       i);
        assert_int_equal(hear(line), MCP_NOTHING);
    }
    assert_int_equal(hear(RESULT("12", "{\"resultType\":\"input_required\",\"inputRequests\":{}}")), MCP_ANSWERED);
    assert_int_equal(mcp.end, CALL_ERROR);
}

#define TURNS  "00-0102030405060708090a0b0c0d0e0f10-0000000000000001-01"
#define CALLS  "00-0102030405060708090a0b0c0d0e0f10-0000000000000002-01"
#define PARENT "\"traceparent\":"

static void called_as(const char *args, const char *trace, const char *words)
{
    assert_int_equal(mcp_call(&mcp, &mcp.tool[0], span_str(args), span_str(trace)), 0);
    saw(words);
}

/* Each request says whose part it is, and a call does in each of its rounds; nothing else does. */
static void a_trace_goes_on_in_the_older_era(void **state)
{
    const char *text;
    mcp_free(&mcp);
    mcp_begin(&mcp, SPAN("files"), SPAN(TURNS));
    saw("\"io.modelcontextprotocol/clientInfo\":{\"name\":\"countersign\",\"version\":\"1\"}," PARENT "\"" TURNS
        "\"}}}");
    assert_int_equal(hear(NO_METHOD("1")), MCP_NOTHING);
    saw("\"method\":\"initialize\",\"params\":{\"_meta\":{" PARENT "\"" TURNS "\"},\"protocolVersion\":");
    assert_int_equal(hear(RESULT("2", INIT)), MCP_NOTHING);
    text = said();
    assert_non_null(strstr(text, "\"notifications/initialized\"}\n"));
    assert_non_null(strstr(text, "\"tools/list\",\"params\":{\"_meta\":{" PARENT "\"" TURNS "\"}}}\n"));
    assert_int_equal(hear(RESULT("3", "{\"tools\":[" TOOL("read", "") "]}")), MCP_READY);
    called_as("{}", CALLS,
              "\"tools/call\",\"params\":{\"_meta\":{" PARENT "\"" CALLS
              "\"},\"name\":\"read\",\"arguments\":{}}}\n");
    assert_int_equal(hear("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}"), MCP_NOTHING);
    assert_null(strstr(said(), "traceparent"));
    assert_int_equal(hear(RESULT("4", "{\"content\":[]}")), MCP_ANSWERED);
    called_as("{}", "", "\"tools/call\",\"params\":{\"name\":\"read\"");
    assert_int_equal(hear(RESULT("5", "{\"content\":[]}")), MCP_ANSWERED);
    called_as("{}", CALLS "-and-more", "\"tools/call\",\"params\":{\"name\":\"read\"");
}

static void a_trace_goes_on_in_the_newer_era(void **state)
{
    mcp_free(&mcp);
    mcp_begin(&mcp, SPAN("files"), SPAN(TURNS));
    assert_int_equal(hear(RESULT("1", "{\"supportedVersions\":[\"2026-07-28\"]}")), MCP_NOTHING);
    saw("\"tools/list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"");
    assert_int_equal(hear(RESULT("2", "{\"tools\":[" TOOL("read", "") "]}")), MCP_READY);
    called_as("{}", CALLS, "}," PARENT "\"" CALLS "\"},\"name\":\"read\",\"arguments\":{}}}\n");
    assert_int_equal(hear(RESULT("3", "{\"resultType\":\"input_required\",\"inputRequests\":{}}")), MCP_NOTHING);
    saw("}," PARENT "\"" CALLS "\"},\"name\":\"read\"");
}

/* What the gateway would not know again by its JSON is the same to the byte, whoever sends it. */
static void a_large_call_says_of_no_trace(void **state)
{
    static char args[MCP_TRACED_MAX + 2];
    ready(TOOL("read", ""));
    assert_true(MCP_TRACED_MAX + 32 * 1024 < RETRY_JSON_MAX);
    memset(args, ' ', sizeof(args) - 1);
    args[0] = '{';
    args[MCP_TRACED_MAX - 1] = '}';
    for (size_t n = MCP_TRACED_MAX; n <= MCP_TRACED_MAX + 1; n++) {
        const char *id = n == MCP_TRACED_MAX ? RESULT("4", "{\"content\":[]}") : RESULT("5", "{\"content\":[]}");
        assert_int_equal(mcp_call(&mcp, &mcp.tool[0], span_of(args, n), SPAN(CALLS)), 0);
        struct span told = dynbuf_span(&mcp.out);
        assert_int_equal(span_find(told, SPAN(PARENT)) < told.n, n == MCP_TRACED_MAX);
        dynbuf_reset(&mcp.out);
        assert_int_equal(hear(id), MCP_ANSWERED);
    }
}

static void eras_are_told_apart(void **state)
{
    static const struct {
        const char *line;
        bool modern;
    } rows[] = {{NO_METHOD("1"), false},
                {RESULT("1", "{}"), false},
                {RESULT("1", "{\"supportedVersions\":[\"2025-11-25\"]}"), false},
                {RESULT("1", "{\"supportedVersions\":[\"2025-11-25\",\"2026-07-28\"]}"), true},
                {"{\"id\":1,\"error\":{\"code\":-32022,\"data\":{\"supported\":[\"2025-11-25\"]}}}", false},
                {"{\"id\":1,\"error\":{\"code\":-32022,\"data\":{\"supported\":[\"2026-07-28\"]}}}", true},
                {"{\"id\":1,\"error\":{\"code\":-32021,\"message\":\"x\"}}", true},
                {"{\"id\":1,\"error\":{\"code\":32021}}", false},
                {"{\"id\":1,\"error\":{\"code\":-32000,\"message\":\"not initialized\"}}", false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mcp_free(&mcp);
        mcp_begin(&mcp, SPAN("files"), SPAN_NONE);
        (void)said();
        assert_int_equal(hear(rows[i].line), MCP_NOTHING);
        saw(rows[i].modern ? "tools/list" : "\"initialize\"");
    }
    /* Nothing at all: the same, once; then it is given up. */
    mcp_free(&mcp);
    mcp_begin(&mcp, SPAN("files"), SPAN_NONE);
    (void)said();
    assert_int_equal(mcp_late(&mcp), MCP_NOTHING);
    saw("\"initialize\"");
    assert_int_equal(hear(NO_METHOD("1")), MCP_NOTHING); /* too late */
    assert_int_equal(mcp_late(&mcp), MCP_BROKEN);
    /* One that was slow to begin answers both in their order: it is of the era that it says. */
    mcp_free(&mcp);
    mcp_begin(&mcp, SPAN("files"), SPAN_NONE);
    (void)said();
    assert_int_equal(mcp_late(&mcp), MCP_NOTHING);
    saw("\"initialize\"");
    assert_int_equal(hear(RESULT("1", "{\"supportedVersions\":[\"2026-07-28\"]}")), MCP_NOTHING);
    saw("tools/list");
    assert_int_equal(hear(NO_METHOD("2")), MCP_NOTHING);
    assert_int_equal(hear(RESULT("3", "{\"tools\":[" TOOL("read", "") "]}")), MCP_READY);
    assert_true(mcp.modern);
    mcp_free(&mcp);
    mcp_begin(&mcp, SPAN("files"), SPAN_NONE);
    (void)said();
    assert_int_equal(mcp_late(&mcp), MCP_NOTHING);
    saw("\"initialize\"");
    assert_int_equal(hear(NO_METHOD("1")), MCP_NOTHING);
    assert_int_equal(hear(RESULT("2", INIT)), MCP_NOTHING);
    saw("notifications/initialized");
    assert_false(mcp.modern);
}

static void what_it_asks_is_answered(void **state)
{
    ready(TOOL("read", ""));
    call();
    assert_int_equal(hear("{\"jsonrpc\":\"2.0\",\"id\":\"r-1\",\"method\":\"roots/list\"}"), MCP_NOTHING);
    saw("\"id\":\"r-1\",\"result\":{\"roots\":[{\"uri\":\"file:///workspace\"");
    assert_int_equal(hear("{\"id\":7,\"method\":\"ping\"}"), MCP_NOTHING);
    saw("\"id\":7,\"result\":{}");
    assert_int_equal(hear("{\"id\":8,\"method\":\"sampling/createMessage\",\"params\":{}}"), MCP_NOTHING);
    saw("\"id\":8,\"error\":{\"code\":-32601");
    assert_int_equal(hear("{\"id\":9,\"method\":\"elicitation/create\",\"params\":{\"message\":\"Which?\"}}"),
                     MCP_NOTHING);
    saw("\"id\":9,\"result\":{\"action\":\"decline\"}");
    assert_int_equal(hear("{\"method\":\"notifications/progress\"}"), MCP_NOTHING);
    assert_string_equal(said(), "");
    assert_int_equal(hear(RESULT("4", "{\"content\":[],\"isError\":true}")), MCP_ANSWERED);
    ends(CALL_ERROR, "[It wanted to ask the person, and was declined: Which?]\n");
    call();
    enum mcp_event ev = MCP_NOTHING;
    for (int i = 0; i < MCP_REQUESTS_MAX; i++)
        ev = hear("{\"id\":7,\"method\":\"ping\"}");
    assert_int_equal(ev, MCP_NOTHING);
    assert_int_equal(hear("{\"id\":7,\"method\":\"ping\"}"), MCP_BROKEN);
}

static void tools_are_taken_with_bounds(void **state)
{
    ready(TOOL("read", ",\"annotations\":{\"readOnlyHint\":true}") "," TOOL(
        "w",
        ",\"annotations\":{"
        "\"destructiveHint\":true}") "," TOOL("n",
                                              ",\"annotations\":{\"readOnlyHint\":false}") "," TOOL("read",
                                                                                                    "") "," TOOL("a "
                                                                                                                 "b",
                                                                                                                 "") "," TOOL("",
                                                                                                                              "") "," TOOL("x2345678901"
                                                                                                                                           "23456789012"
                                                                                                                                           "34567890123"
                                                                                                                                           "45678901234"
                                                                                                                                           "56789012345"
                                                                                                                                           "67x",
                                                                                                                                           "") ","
                                                                                                                                               "{\"name"
                                                                                                                                               "\":"
                                                                                                                                               "\"s\"},"
                                                                                                                                               "{\"name"
                                                                                                                                               "\":"
                                                                                                                                               "\"t\","
                                                                                                                                               "\"input"
                                                                                                                                               "Schema"
                                                                                                                                               "\":{"
                                                                                                                                               "\"type"
                                                                                                                                               "\":"
                                                                                                                                               "\"strin"
                                                                                                                                               "g\"}}"
                                                                                                                                               "," TOOL(
                                                                                                                                                   "o",
                                                                                                                                                   ",\""
                                                                                                                                                   "out"
                                                                                                                                                   "put"
                                                                                                                                                   "Sch"
                                                                                                                                                   "ema"
                                                                                                                                                   "\":"
                                                                                                                                                   "{\""
                                                                                                                                                   "min"
                                                                                                                                                   "imu"
                                                                                                                                                   "m\""
                                                                                                                                                   ":\""
                                                                                                                                                   "x\""
                                                                                                                                                   "}") ",7");
    assert_int_equal(mcp.n, 3);
    assert_int_equal(mcp.left_out, 8);
    assert_false(mcp_tool_of(&mcp, SPAN("files__read"))->writes);
    assert_true(mcp_tool_of(&mcp, SPAN("files__w"))->writes && mcp_tool_of(&mcp, SPAN("files__n"))->writes);
    assert_null(mcp_tool_of(&mcp, SPAN("read")));
}

static void pages_of_tools_are_bounded(void **state)
{
    char line[512];
    enum mcp_event ev = MCP_NOTHING;
    (void)said();
    (void)hear(NO_METHOD("1"));
    (void)hear(RESULT("2", INIT));
    int n = 0;
    for (; ev == MCP_NOTHING && n < 1000; n++) {
        (void)snprintf(line, sizeof(line),
                       RESULT("%d", "{\"tools\":[" TOOL("t%d", "") "," TOOL("u%d", "") "," TOOL("v%d", "") "," TOOL(
                                        "w%d", "") "," TOOL("x%d", "") "],\"nextCursor\":\"c\"}"),
                       n + 3, n, n, n, n, n);
        ev = hear(line);
    }
    assert_int_equal(ev, MCP_READY);
    assert_int_equal(n, MCP_PAGES_MAX);
    assert_int_equal(mcp.n, MCP_TOOLS_MAX);
    assert_int_equal(mcp.left_out, 5 * MCP_PAGES_MAX - MCP_TOOLS_MAX);
}

static void a_result_is_held_against_its_schema(void **state)
{
    ready(TOOL("read", ",\"outputSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},"
                       "\"required\":[\"n\"]}"));
    call();
    assert_int_equal(hear(RESULT("4", "{\"content\":[],\"structuredContent\":{\"n\":1}}")), MCP_ANSWERED);
    ends(CALL_DONE, "{\"n\":1}");
    call();
    assert_int_equal(
        hear(RESULT("5",
                    "{\"content\":[{\"type\":\"text\",\"text\":\"trust me\"}],\"structuredContent\":{\"n\":\"x\"}}")),
        MCP_ANSWERED);
    ends(CALL_ERROR, "the result breaks the tool's own schema: schema-violation, type at \"/n\"");
    call();
    assert_int_equal(hear(RESULT("6", "{\"content\":[{\"type\":\"text\",\"text\":\"trust me\"}]}")), MCP_ANSWERED);
    assert_int_equal(mcp.end, CALL_ERROR);
    call();
    assert_int_equal(hear(RESULT("7", "{\"content\":7}")), MCP_ANSWERED);
    ends(CALL_ERROR, "what the server answered is no result of a tool");
    call();
    assert_int_equal(hear(NO_METHOD("8")), MCP_ANSWERED);
    ends(CALL_ERROR, "Method not found");
    assert_int_equal(mcp_call(&mcp, &mcp.tool[0], SPAN("{\n}"), SPAN_NONE), -1); /* that would be two lines */
}

static void what_is_too_large_is_left_out_or_cut(void **state)
{
    static char line[2 * MCP_RESULT_MAX], much[MCP_RESULT_MAX / 2 + 4096];
    ready(TOOL("read", ""));
    memset(much, 'x', sizeof(much) - 1);
    call();
    (void)snprintf(line, sizeof(line), RESULT("4", "{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}"), much);
    assert_int_equal(hear(line), MCP_ANSWERED);
    assert_true(mcp.end == CALL_DONE && mcp.result.n == MCP_RESULT_MAX / 2);
    mcp_free(&mcp);
    mcp_begin(&mcp, SPAN("files"), SPAN_NONE);
    (void)said();
    (void)hear(NO_METHOD("1"));
    (void)hear(RESULT("2", INIT));
    much[MCP_SCHEMA_MAX] = '\0';
    (void)snprintf(
        line, sizeof(line),
        RESULT("3", "{\"tools\":[" TOOL("cut", ",\"description\":\"%s\"") ",{\"name\":\"out\",\"inputSchema\":{"
                                                                          "\"type\":\"object\",\"title\":\"%s\"}}]}"),
        much, much);
    assert_int_equal(hear(line), MCP_READY);
    assert_true(mcp.n == 1 && mcp.left_out == 1 && mcp.tool[0].description.n == MCP_WORDS_MAX);
}

static void what_is_no_protocol_breaks_it(void **state)
{
    static char much[64 * 1024];
    enum mcp_event ev = MCP_NOTHING;
    (void)said();
    for (int i = 0; i < MCP_STRAYS_MAX; i++)
        ev = hear("Server is running on stdio");
    assert_int_equal(ev, MCP_NOTHING);
    assert_int_equal(hear("[]"), MCP_BROKEN);
    mcp_free(&mcp);
    mcp_begin(&mcp, SPAN("files"), SPAN_NONE);
    memset(much, ' ', sizeof(much));
    for (size_t n = 0; n <= MCP_LINE_MAX && ev == MCP_NOTHING; n += sizeof(much))
        ev = mcp_feed(&mcp, span_of(much, sizeof(much)));
    assert_int_equal(ev, MCP_BROKEN);
    assert_int_equal(hear(NO_METHOD("1")), MCP_NOTHING);
    mcp_free(&mcp);
    mcp_begin(&mcp, SPAN("files"), SPAN_NONE);
    (void)hear(NO_METHOD("1"));
    assert_int_equal(hear(RESULT("2", "{\"protocolVersion\":\"2030-01-01\",\"capabilities\":{\"tools\":{}}}")),
                     MCP_BROKEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_older_era, setup, teardown),
        cmocka_unit_test_setup_teardown(the_newer_era, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trace_goes_on_in_the_older_era, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trace_goes_on_in_the_newer_era, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_call_says_of_no_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(eras_are_told_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(what_it_asks_is_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(tools_are_taken_with_bounds, setup, teardown),
        cmocka_unit_test_setup_teardown(pages_of_tools_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(a_result_is_held_against_its_schema, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_too_large_is_left_out_or_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_protocol_breaks_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
