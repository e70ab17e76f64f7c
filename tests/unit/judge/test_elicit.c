/* What an agent's own client says of asking its user, and what of it is taken off again. */
#include "tests/kit.h"

#include "common/dynbuf.h"
#include "proxy/judge/tickets/elicit.h"

#define CAN(what) "\"_meta\":{\"io.modelcontextprotocol/clientCapabilities\":{" what "}}"
#define CALL(params)                                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"pay\"," params "}}"
#define OURS         "\"requestState\":\"countersign:abc\""
#define SAID(action) "\"inputResponses\":{\"countersign\":{\"action\":\"" action "\"}}"
#define URL          CAN("\"elicitation\":{\"url\":{}}")

static struct elicit read_as(const char *http_method, const char *mcp_method, const char *coding, const char *body,
                             struct arena *a)
{
    struct elicit e;
    struct wire_request r = {.method = span_str(http_method)};
    r.field[r.nfields++] = (struct http_field){SPAN("Content-Type"), SPAN("application/json")};
    if (mcp_method)
        r.field[r.nfields++] = (struct http_field){SPAN("mcp-Method"), span_str(mcp_method)};
    if (coding)
        r.field[r.nfields++] = (struct http_field){SPAN("content-encoding"), span_str(coding)};
    arena_init(a, 64 * 1024);
    assert_int_equal(elicit_read(&r, span_str(body), a, &e), 0);
    return e;
}

static void a_client_says_how_it_asks(void **state)
{
    static const struct {
        const char *body;
        enum elicit_by by;
    } rows[] = {
        {CALL(URL), ELICIT_URL},
        {CALL(CAN("\"elicitation\":{\"url\":{},\"form\":{}}")), ELICIT_URL},
        {CALL(CAN("\"elicitation\":{\"form\":{}}")), ELICIT_FORM},
        {CALL(CAN("\"elicitation\":{}")), ELICIT_FORM},
        {CALL(CAN("\"elicitation\":{\"url\":true}")), ELICIT_NO},
        {CALL(CAN("\"elicitation\":{\"other\":{}}")), ELICIT_NO},
        {CALL(CAN("\"elicitation\":[]")), ELICIT_NO},
        {CALL(CAN("\"sampling\":{}")), ELICIT_NO},
        {CALL("\"elicitation\":{\"url\":{}}"), ELICIT_NO},
        /* a round of the server's own */
        {CALL(URL ",\"requestState\":\"theirs\""), ELICIT_NO},
        {CALL(URL ",\"requestState\":7"), ELICIT_NO},
        {CALL(URL ",\"inputResponses\":{}"), ELICIT_NO},
        {CALL(URL "," SAID("decline")), ELICIT_NO},
        /* no such call */
        {"[" CALL(URL) "]", ELICIT_NO},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{" URL "}}", ELICIT_NO},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/call\",\"params\":{" URL "}}", ELICIT_NO},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" URL "}}", ELICIT_NO},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" URL "}}", ELICIT_NO},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" URL "}} x", ELICIT_NO},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" URL "," URL "}}", ELICIT_NO},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", ELICIT_NO},
    };
    struct arena a;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct elicit e = read_as("POST", "tools/call", NULL, rows[i].body, &a);
        if (e.by != rows[i].by || e.own || e.declined || e.body.n)
            fail_msg("%s: %d", rows[i].body, e.by);
        arena_free(&a);
    }
}

static void nothing_else_is_looked_at(void **state)
{
    static const struct {
        const char *http, *mcp, *coding;
    } rows[] = {{"PUT", "tools/call", NULL},
                {"POST", NULL, NULL},
                {"POST", "tools/list", NULL},
                {"POST", "prompts/get", NULL}, /* not what the body says */
                {"POST", "tools/call", "identity"}};
    struct arena a;
    struct elicit e;
    struct wire_request twice = {.method = SPAN("POST"), .nfields = 2};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        e = read_as(rows[i].http, rows[i].mcp, rows[i].coding, CALL(URL "," OURS), &a);
        assert_true(e.by == ELICIT_NO && !e.own && e.body.n == 0);
        arena_free(&a);
    }
    twice.field[0] = twice.field[1] = (struct http_field){SPAN("Mcp-Method"), SPAN("tools/call")};
    arena_init(&a, 64 * 1024);
    assert_int_equal(elicit_read(&twice, SPAN(CALL(URL)), &a, &e), 0);
    assert_true(e.by == ELICIT_NO);
    arena_free(&a);
}

/* What comes back is the call as it was, to the digit, whatever else is in it; the answers to our question, and what
 * is beside them, go with the question. */
static void what_is_ours_is_taken_off(void **state)
{
    static const struct {
        const char *round;
        enum elicit_by by;
        bool declined;
    } rows[] = {
        {OURS, ELICIT_AGAIN, false},
        {OURS "," SAID("accept"), ELICIT_AGAIN, false},
        {OURS "," SAID("decline"), ELICIT_NO, true},
        {OURS "," SAID("cancel"), ELICIT_NO, false},
        {OURS "," SAID("approve"), ELICIT_AGAIN, false},
        {OURS ",\"inputResponses\":{\"x\":{},\"countersign\":{\"action\":\"decline\"}}", ELICIT_NO, true},
        {OURS ",\"inputResponses\":{\"other\":{\"action\":\"decline\"}}", ELICIT_AGAIN, false},
        {OURS ",\"inputResponses\":7", ELICIT_AGAIN, false},
    };
    static const char rest[] = "\"arguments\":{\"requestState\":\"countersign:x\",\"n\":1.50e2,\"t\":\"\\u00e4\\/\"}";
    char body[1024];
    struct arena a;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int n = snprintf(body, sizeof(body), CALL("%s,%s"), rows[i].round, rest);
        assert_true(n > 0 && (size_t)n < sizeof(body));
        struct elicit e = read_as("POST", "tools/call", NULL, body, &a);
        if (!e.own || e.by != rows[i].by || e.declined != rows[i].declined)
            fail_msg("%s: %d", rows[i].round, e.by);
        assert_true(span_eq(
            e.body, SPAN("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"pay\","
                         "\"arguments\":{\"requestState\":\"countersign:x\",\"n\":1.50e2,\"t\":\"\xc3\xa4/\"}}}")));
        arena_free(&a);
    }
}

/* With a round it has to be read, so without one it is half as long at most. */
static void a_long_call_is_told_as_an_error(void **state)
{
    static const struct {
        size_t n;
        bool own;
        enum elicit_by by;
    } rows[] = {{ELICIT_BODY_MAX / 2, false, ELICIT_URL},
                {ELICIT_BODY_MAX / 2 + 1, false, ELICIT_NO},
                {ELICIT_BODY_MAX, true, ELICIT_AGAIN},
                {ELICIT_BODY_MAX + 1, true, ELICIT_NO}};
    static char body[ELICIT_BODY_MAX + 2];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct arena a;
        struct elicit e;
        struct wire_request r = {.method = SPAN("POST"), .nfields = 1};
        r.field[0] = (struct http_field){SPAN("Mcp-Method"), SPAN("tools/call")};
        const char *call = rows[i].own ? CALL(URL "," OURS) : CALL(URL);
        size_t n = strlen(call);
        memset(body, ' ', rows[i].n);
        memcpy(body + rows[i].n - n, call, n);
        arena_init(&a, 1024 * 1024);
        assert_int_equal(elicit_read(&r, span_of(body, rows[i].n), &a, &e), 0);
        assert_true(e.by == rows[i].by && e.own == (rows[i].by == ELICIT_AGAIN));
        arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_says_how_it_asks),
        cmocka_unit_test(nothing_else_is_looked_at),
        cmocka_unit_test(what_is_ours_is_taken_off),
        cmocka_unit_test(a_long_call_is_told_as_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
