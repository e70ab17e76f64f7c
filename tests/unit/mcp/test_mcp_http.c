/* One MCP server over HTTP: what is sent when, with which fields, and what an answer may be. */
#include "tests/kit.h"

#include <stdlib.h>

#include "broker/mcp/http.h"

static struct mcp mcp;
static struct mcp_http http;
static struct mcp_request request;

static int setup(void **state)
{
    mcp_begin(&mcp, SPAN("s"), SPAN_NONE);
    mcp_http_begin(&http, &mcp);
    return 0;
}

static int teardown(void **state)
{
    mcp_http_free(&http);
    mcp_free(&mcp);
    return 0;
}

static const char *field(const char *name)
{
    static char text[16 * 1024];
    for (size_t i = 0; i < request.n; i++)
        if (span_ieq(request.field[i].name, span_str(name))) {
            (void)snprintf(text, sizeof(text), "%.*s", SPAN_FMT(request.field[i].value));
            return text;
        }
    return "-";
}

/* The next request has these words in its body, and is sent. */
static void sends(const char *words)
{
    enum mcp_event ev;
    assert_int_equal(mcp_http_next(&http, &request, &ev), 1);
    if (!request.get && span_find(request.body, span_str(words)) == request.body.n)
        fail_msg("%s is not in %.*s", words, SPAN_FMT(request.body));
    mcp_http_sent(&http, &request);
}

static void sends_nothing(void)
{
    enum mcp_event ev;
    struct mcp_request r;
    assert_int_equal(mcp_http_next(&http, &r, &ev), 0);
}

static enum mcp_event head(unsigned status, const char *type, const char *session)
{
    return mcp_http_head(
        &http, &(struct mcp_answer){.status = status, .type = span_str(type), .session = span_str(session)});
}

/* One whole answer that is JSON. */
static enum mcp_event hears(unsigned status, const char *json)
{
    assert_int_equal(head(status, "application/json", ""), MCP_NOTHING);
    assert_int_equal(mcp_http_data(&http, span_str(json)), MCP_NOTHING);
    return mcp_http_end(&http, true, NULL);
}

#define RESULT(id, body) "{\n \"jsonrpc\": \"2.0\",\n \"id\": " id ",\n \"result\": " body "\n}"
#define DISCOVERED       "{\"supportedVersions\":[\"2026-07-28\"]}"
#define INIT             "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}}}"
#define PLAIN            "{\"name\":\"plain\",\"inputSchema\":{\"type\":\"object\"}}"

/* Of the newer era, with one tool of this schema. */
static void modern(const char *schema)
{
    char list[8 * 1024];
    sends("server/discover");
    assert_string_equal(field("MCP-Protocol-Version"), "2026-07-28");
    assert_string_equal(field("Mcp-Method"), "server/discover");
    assert_string_equal(field("Accept"), "application/json, text/event-stream");
    sends_nothing(); /* one answer is awaited */
    assert_int_equal(hears(200, RESULT("1", DISCOVERED)), MCP_NOTHING);
    sends("tools/list");
    (void)snprintf(list, sizeof(list), RESULT("2", "{\"tools\":[{\"name\":\"t\",\"inputSchema\":%s}," PLAIN "]}"),
                   schema);
    assert_int_equal(hears(200, list), MCP_READY);
    assert_true(mcp_http_rests(&http));
}

/* Of the older one, with a session. */
static void legacy(void)
{
    sends("server/discover");
    assert_int_equal(hears(400, "Bad Request"), MCP_NOTHING);
    sends("\"initialize\"");
    assert_string_equal(field("MCP-Protocol-Version"), "-");
    assert_string_equal(field("Mcp-Method"), "-");
    assert_int_equal(head(200, "text/event-stream; charset=utf-8", "s-1"), MCP_NOTHING);
    assert_int_equal(
        mcp_http_data(&http, SPAN("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":" INIT "}\n\n")),
        MCP_NOTHING);
    assert_true(mcp_http_rests(&http)); /* the stream may stay open: nothing more is awaited of it */
    mcp_http_drop(&http);
    sends("notifications/initialized");
    assert_true(request.aside);
    assert_string_equal(field("Mcp-Session-Id"), "s-1");
    sends_nothing(); /* in their order */
    assert_int_equal(mcp_http_aside(&http, 202), MCP_NOTHING);
    sends("tools/list");
    assert_string_equal(field("MCP-Protocol-Version"), "2025-06-18");
    assert_int_equal(hears(200, RESULT("3", "{\"tools\":[" PLAIN "]}")), MCP_READY);
}

static void called(const char *name, const char *args)
{
    assert_int_equal(mcp_call(&mcp, mcp_tool_of(&mcp, span_str(name)), span_str(args), SPAN_NONE), 0);
}

static void ends(enum call_end end, const char *words)
{
    assert_int_equal(mcp.end, end);
    if (span_find(dynbuf_span(&mcp.result), span_str(words)) == mcp.result.n)
        fail_msg("%s is not in %.*s", words, SPAN_FMT(dynbuf_span(&mcp.result)));
}

#define PARAM(type, name) "{\"type\":\"" type "\",\"x-mcp-header\":\"" name "\"}"

static void arguments_stand_in_fields(void **state)
{
    modern("{\"type\":\"object\",\"properties\":{\"a\":" PARAM("string", "A") ",\"b\":" PARAM(
        "integer", "B") ",\"c\":" PARAM("boolean",
                                        "C") ",\"d\":{\"type\":\"object\",\"properties\":{"
                                             "\"e\":" PARAM("string",
                                                            "E") "}},"
                                                                 "\"n\":" PARAM("string",
                                                                                "N") ",\"x-mcp-header\":{"
                                                                                     "\"type\":\"string\"}}}");
    static const struct {
        const char *args, *name, *value;
    } rows[] = {{"{\"a\":\"us west 1\"}", "Mcp-Param-A", "us west 1"},
                {"{\"a\":\"\"}", "Mcp-Param-A", ""},
                {"{\"a\":\" x\"}", "Mcp-Param-A", "=?base64?IHg=?="},
                {"{\"a\":\"a\\r\\nX: y\"}", "Mcp-Param-A", "=?base64?YQ0KWDogeQ==?="},
                {"{\"a\":\"=?base64?eA==?=\"}", "Mcp-Param-A", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="},
                {"{\"b\":42}", "Mcp-Param-B", "42"},
                {"{\"c\":false}", "Mcp-Param-C", "false"},
                {"{\"d\":{\"e\":\"deep\"}}", "Mcp-Param-E", "deep"},
                {"{\"n\":null,\"a\":\"x\"}", "Mcp-Param-N", "-"},
                {"{\"n\":{\"a\":\"x\"}}", "Mcp-Param-N", "-"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char answer[256];
        called("s__t", rows[i].args);
        sends("tools/call");
        assert_string_equal(field("Mcp-Name"), "t");
        assert_string_equal(field(rows[i].name), rows[i].value);
        (void)snprintf(answer, sizeof(answer), RESULT("%zu", "{\"content\":[]}"), i + 3);
        assert_int_equal(hears(200, answer), MCP_ANSWERED);
    }
    /* One that no field has room for: nothing is sent. */
    char *args = malloc(MCP_PARAM_MAX + 64);
    assert_non_null(args);
    int n = snprintf(args, MCP_PARAM_MAX + 64, "{\"a\":\"%0*d\"}", MCP_PARAM_MAX + 1, 0);
    assert_int_equal(mcp_call(&mcp, mcp_tool_of(&mcp, SPAN("s__t")), span_of(args, (size_t)n), SPAN_NONE), 0);
    enum mcp_event ev;
    assert_int_equal(mcp_http_next(&http, &request, &ev), -1);
    assert_int_equal(ev, MCP_ANSWERED);
    ends(CALL_ERROR, "nothing was done");
    assert_int_equal(mcp.out.n, 0);
    free(args);
    called("s__plain", "{}");
    sends("plain");
}

/* A tool of which an argument's field is not as it may be is none. */
static void fields_are_as_they_may_be(void **state)
{
    static const char *const bad[] = {
        "{\"type\":\"object\",\"x-mcp-header\":\"A\"}",
        "{\"type\":\"object\",\"properties\":{\"a\":" PARAM("string", "") "}}",
        "{\"type\":\"object\",\"properties\":{\"a\":" PARAM("string", "a b") "}}",
        "{\"type\":\"object\",\"properties\":{\"a\":" PARAM("string", "a:") "}}",
        "{\"type\":\"object\",\"properties\":{\"a\":" PARAM("string", "a\\n") "}}",
        "{\"type\":\"object\",\"properties\":{\"a\":" PARAM("string", "R\xc3\xa9") "}}",
        "{\"type\":\"object\",\"properties\":{\"a\":" PARAM("number", "A") "}}",
        "{\"type\":\"object\",\"properties\":{\"a\":" PARAM("object", "A") "}}",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":1}}}",
        "{\"type\":\"object\",\"properties\":{\"a\":" PARAM("string", "A") ",\"b\":" PARAM("string", "a") "}}",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":" PARAM("string", "A") "}}}",
        "{\"type\":\"object\",\"allOf\":[{\"properties\":{\"a\":" PARAM("string", "A") "}}]}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        (void)teardown(NULL);
        (void)setup(NULL);
        modern(bad[i]);
        if (mcp.n != 1 || mcp.left_out != 1)
            fail_msg("%s", bad[i]);
    }
    (void)teardown(NULL); /* over stdio nobody reads fields */
    mcp_begin(&mcp, SPAN("s"), SPAN_NONE);
    assert_int_equal(mcp_take(&mcp, SPAN(RESULT("1", DISCOVERED))), MCP_NOTHING);
    assert_int_equal(mcp_take(&mcp, SPAN(RESULT("2", "{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":"
                                                     "\"object\",\"x-mcp-header\":\"A\"}}]}"))),
                     MCP_READY);
    assert_int_equal(mcp.n, 1);
    mcp_http_begin(&http, &mcp);
}

/* Its own question comes in the middle, and is answered beside. */
static void a_question_in_the_middle(void **state)
{
    legacy();
    called("s__plain", "{}");
    sends("tools/call");
    assert_string_equal(field("Mcp-Name"), "-");
    assert_int_equal(head(200, "text/event-stream", ""), MCP_NOTHING);
    assert_int_equal(
        mcp_http_data(&http, SPAN("data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\","
                                  "\"params\":{\"message\":\"Sure?\"}}\r\n\r\n")),
        MCP_NOTHING);
    sends("\"decline\"");
    assert_true(request.aside);
    assert_int_equal(mcp_http_aside(&http, 202), MCP_NOTHING);
    assert_int_equal(mcp_http_data(&http, SPAN("data: {\"jsonrpc\":\"2.0\",\"id\":4,\n")), MCP_NOTHING);
    assert_int_equal(mcp_http_data(&http, SPAN("data: \"result\":{\"content\":[]}}\n\n")), MCP_ANSWERED);
    ends(CALL_DONE, "declined: Sure?");
    assert_true(mcp_http_rests(&http)); /* though the stream is open: its owner lets it go */
    mcp_http_drop(&http);
    called("s__plain", "{}");
    sends("tools/call");
    assert_int_equal(head(200, "text/event-stream", ""), MCP_NOTHING);
    assert_int_equal(mcp_http_data(&http, SPAN("data: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n\n")),
                     MCP_NOTHING);
    sends("\"id\":5");
    assert_int_equal(mcp_http_aside(&http, 500), MCP_BROKEN);
}

/* Of the older era an answer that was cut off is asked for, so often, and when it was said. */
static void what_is_cut_off_is_asked_for(void **state)
{
    legacy();
    called("s__plain", "{}");
    sends("tools/call");
    assert_int_equal(head(200, "text/event-stream", ""), MCP_NOTHING);
    assert_int_equal(mcp_http_data(&http, SPAN("id: e1\nretry: 500\ndata: \n\nid: e2\n")), MCP_NOTHING);
    for (int i = 0; i < MCP_RETURNS_MAX; i++) {
        assert_int_equal(mcp_http_end(&http, true, NULL), MCP_NOTHING);
        assert_int_equal(mcp_http_wait(&http), i == 0 ? 500 : MCP_RETRY_MAX_MS);
        sends_nothing();
        mcp_http_again(&http);
        sends("");
        assert_true(request.get);
        assert_string_equal(field("Last-Event-ID"), i == 0 ? "e1" : "e3"); /* of an event that was whole */
        assert_string_equal(field("Mcp-Session-Id"), "s-1");
        assert_int_equal(head(200, "text/event-stream", ""), MCP_NOTHING);
        assert_int_equal(mcp_http_data(&http, SPAN("id: e3\nretry: 3600000\ndata: \n\n")), MCP_NOTHING);
    }
    assert_int_equal(mcp_http_end(&http, true, NULL), MCP_BROKEN);
    assert_int_equal(mcp_http_wait(&http), 0);
}

static void what_is_lost_is_not_asked_for_again(void **state)
{
    modern("{\"type\":\"object\"}");
    called("s__t", "{}");
    sends("tools/call");
    assert_int_equal(head(200, "text/event-stream", ""), MCP_NOTHING);
    assert_int_equal(mcp_http_data(&http, SPAN("id: e1\ndata: \n\n")), MCP_NOTHING);
    assert_int_equal(mcp_http_end(&http, false, "the answer was cut off"), MCP_BROKEN);
    assert_string_equal(mcp.why.text, "the answer was cut off");
}

static void statuses(void **state)
{
    static const struct {
        unsigned status;
        const char *body, *words;
        enum call_end end;
    } rows[] = {
        {403, "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":1,\"message\":\"held\"}}", "held", CALL_ERROR},
        {403, "{\"jsonrpc\":\"2.0\",\"id\":9,\"error\":{\"code\":1,\"message\":\"held\"}}", "not done", CALL_ERROR},
        {401, "", "it was not done: the request was answered with status 401", CALL_ERROR},
        {307, "", "status 307", CALL_ERROR},
        {404, "not here", "status 404: not here", CALL_ERROR},
        {408, "", "status 408", CALL_UNKNOWN},
        {409, "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":1,\"message\":\"lost\"}}", "lost", CALL_UNKNOWN},
        {500, "", "status 500", CALL_UNKNOWN},
        {502, "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":1,\"message\":\"away\"}}", "away", CALL_UNKNOWN}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)teardown(NULL);
        (void)setup(NULL);
        modern("{\"type\":\"object\"}");
        called("s__t", "{}");
        sends("tools/call");
        assert_int_equal(head(rows[i].status, "text/plain", ""), MCP_NOTHING);
        assert_int_equal(mcp_http_data(&http, span_str(rows[i].body)), MCP_NOTHING);
        assert_int_equal(mcp_http_end(&http, true, NULL), MCP_ANSWERED);
        ends(rows[i].end, rows[i].words);
        called("s__t", "{}"); /* it is of use still */
    }
    /* The session is over: another one begins with the next call. */
    (void)teardown(NULL);
    (void)setup(NULL);
    legacy();
    called("s__plain", "{}");
    sends("tools/call");
    assert_int_equal(head(404, "text/plain", ""), MCP_NOTHING);
    assert_int_equal(mcp_http_end(&http, true, NULL), MCP_BROKEN);
}

static void what_is_no_answer_breaks_it(void **state)
{
    static const struct {
        unsigned status;
        const char *type, *session;
    } rows[] = {
        {200, "text/html", ""}, {202, "application/json", ""}, {204, "", ""}, {200, "application/json", "a b"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)teardown(NULL);
        (void)setup(NULL);
        sends("server/discover");
        assert_int_equal(hears(404, ""), MCP_NOTHING);
        sends("\"initialize\"");
        assert_int_equal(head(rows[i].status, rows[i].type, rows[i].session), MCP_BROKEN);
    }
    /* More than a message may be; an event that is. */
    for (int events = 0; events < 2; events++) {
        char *much = malloc(MCP_LINE_MAX + 16);
        assert_non_null(much);
        memset(much, 'x', MCP_LINE_MAX + 16);
        (void)teardown(NULL);
        (void)setup(NULL);
        sends("server/discover");
        assert_int_equal(head(200, events ? "text/event-stream" : "application/json", ""), MCP_NOTHING);
        assert_int_equal(mcp_http_data(&http, span_of(much, MCP_LINE_MAX + 16)), MCP_BROKEN);
        free(much);
    }
    /* A session of more than so many characters. */
    char session[MCP_SESSION_MAX + 2];
    memset(session, 'x', sizeof(session) - 1);
    session[sizeof(session) - 1] = '\0';
    (void)teardown(NULL);
    (void)setup(NULL);
    sends("server/discover");
    assert_int_equal(hears(404, ""), MCP_NOTHING);
    sends("\"initialize\"");
    assert_int_equal(head(200, "application/json", session), MCP_BROKEN);
}

/* An era that is given up while its answer is awaited: what comes of it then is nothing. */
static void a_late_answer_is_nothing(void **state)
{
    sends("server/discover");
    assert_int_equal(mcp_late(&mcp), MCP_NOTHING);
    assert_true(mcp_http_rests(&http));
    mcp_http_drop(&http);
    sends("\"initialize\"");
    assert_int_equal(hears(200, RESULT("2", INIT)), MCP_NOTHING);
    sends("initialized");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(arguments_stand_in_fields, setup, teardown),
        cmocka_unit_test_setup_teardown(fields_are_as_they_may_be, setup, teardown),
        cmocka_unit_test_setup_teardown(a_question_in_the_middle, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_cut_off_is_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_lost_is_not_asked_for_again, setup, teardown),
        cmocka_unit_test_setup_teardown(statuses, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_answer_breaks_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_late_answer_is_nothing, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
