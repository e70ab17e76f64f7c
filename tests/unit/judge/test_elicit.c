/* What an agent's own client says of asking its user, and what of it is taken off again. */
#include "tests/kit.h"

#include "common/dynbuf.h"
#include "proxy/judge/tickets/elicit.h"

#define CAN(what) "\"_meta\":{\"io.modelcontextprotocol/clientCapabilities\":{" what "}}"
#define CALL(params)                                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"pay\"," params "}}"
#define DESK            SPAN("https://desk.example")
#define MARK            "3afbddd1da7fcd64"
#define OURS_AT(n)      "\"requestState\":\"countersign:" MARK ":" n ":abc\""
#define OURS            OURS_AT("0")
#define SAID(action)    "\"inputResponses\":{\"countersign\":{\"action\":\"" action "\"}}"
#define FILLED(content) "\"inputResponses\":{\"countersign\":{\"action\":\"accept\",\"content\":" content "}}"
#define URL             CAN("\"elicitation\":{\"url\":{}}")

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
    assert_int_equal(elicit_read(&r, span_str(body), DESK, a, &e), 0);
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
    assert_int_equal(elicit_read(&twice, SPAN(CALL(URL)), DESK, &a, &e), 0);
    assert_true(e.by == ELICIT_NO);
    arena_free(&a);
}

/* What comes back is the call as it was, to the byte, whatever else is in it; the answers to our question, and what
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
        {OURS " , \"inputResponses\"\n:{\"other\":{\"action\":\"decline\"},\"b\":[{},\"}],{\\\"\"]}", ELICIT_AGAIN,
         false},
        {OURS ",\"inputResponses\":7", ELICIT_AGAIN, false},
    };
    static const char *const rests[] = {
        "\"arguments\":{\"requestState\":\"countersign:x\",\"n\":1.50e2,\"t\":\"\\u00e4\\/\"}",
        "\"arguments\" : [ 1, {\"inputResponses\":{}} , \"},{[\\\\\" ]", "\"arguments\":\"\x7f\x7f\x7f\\u007f\"",
        "\"arguments\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
        "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"};
    char body[2048], call[2048];
    struct arena a;
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]) * sizeof(rests) / sizeof(rests[0]); i++) {
        const char *round = rows[i / 2 % (sizeof(rows) / sizeof(rows[0]))].round;
        const char *rest = rests[i / 2 / (sizeof(rows) / sizeof(rows[0]))];
        int n = snprintf(body, sizeof(body), CALL("%s,%s"), i % 2 ? rest : round, i % 2 ? round : rest);
        int m = snprintf(call, sizeof(call), CALL("%s"), rest);
        assert_true(n > 0 && (size_t)n < sizeof(body) && m > 0 && (size_t)m < sizeof(call));
        struct elicit e = read_as("POST", "tools/call", NULL, body, &a);
        size_t k = i / 2 % (sizeof(rows) / sizeof(rows[0]));
        if (!e.own || e.by != rows[k].by || e.declined != rows[k].declined || !span_eq(e.body, span_str(call)))
            fail_msg("%s: %d, %.*s", body, e.by, SPAN_FMT(e.body));
        arena_free(&a);
    }
}

/* The form that was sent: "deny" takes back, with what is said beside it or without, and nothing else means anything;
 * there is nothing to approve with. */
static void a_form_denies_with_words_and_approves_nothing(void **state)
{
    static char most[ELICIT_REASON_MAX + 400], cut[ELICIT_REASON_MAX + 1];
    static const struct {
        const char *answers, *reason; /* reason NULL: nothing is taken back */
    } rows[] = {
        {FILLED("{\"answer\":\"deny\",\"reason\":\"wrong  bill \\u00e4\"}"), "wrong  bill \xc3\xa4"},
        {FILLED("{\"reason\":\"x\",\"answer\":\"deny\"}"), "x"},
        {FILLED("{\"answer\":\"deny\"}"), ""},
        {FILLED("{\"answer\":\"deny\",\"reason\":[\"x\"]}"), ""},
        {FILLED("{\"answer\":\"deny\",\"more\":true}"), ""},
        {FILLED("{\"answer\":\"deny\",\"reason\":\" a\\nb\\u202ec\\u0000d \\u200b\"}"), "a b c d"},
        {most, cut},
        {FILLED("{\"answer\":\"wait\",\"reason\":\"x\"}"), NULL},
        {FILLED("{\"answer\":\"approve\"}"), NULL},
        {FILLED("{\"answer\":\"Deny\"}"), NULL},
        {FILLED("{\"answer\":[\"deny\"]}"), NULL},
        {FILLED("{\"reason\":\"x\"}"), NULL},
        {FILLED("\"deny\""), NULL},
        {FILLED("[\"deny\"]"), NULL},
        {"\"inputResponses\":{\"countersign\":{\"content\":{\"answer\":\"deny\"}}}", NULL},
        {"\"inputResponses\":{\"countersign\":{\"action\":\"cancel\",\"content\":{\"answer\":\"deny\"}}}", NULL},
        {"\"inputResponses\":{\"other\":{\"action\":\"accept\",\"content\":{\"answer\":\"deny\"}}}", NULL},
        {"\"inputResponses\":{\"countersign\":{\"action\":\"decline\",\"content\":{\"reason\":\"x\"}}}", ""},
    };
    char body[2048], text[ELICIT_REASON_MAX + 2];
    struct arena a;
    memset(text, 'x', sizeof(text));
    memcpy(text + ELICIT_REASON_MAX - 1, "\xc3\xa4", 3); /* a letter that the cut goes through is not there at all */
    (void)snprintf(most, sizeof(most), FILLED("{\"answer\":\"deny\",\"reason\":\"%s\"}"), text);
    memset(cut, 'x', ELICIT_REASON_MAX - 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)snprintf(body, sizeof(body), CALL("%s,%s"), OURS, rows[i].answers);
        struct elicit e = read_as("POST", "tools/call", NULL, body, &a);
        if (!e.own || e.declined != (rows[i].reason != NULL) || (e.declined && e.by != ELICIT_NO) ||
            !span_eq(e.reason, rows[i].reason ? span_str(rows[i].reason) : SPAN_NONE))
            fail_msg("%s: %d '%.*s'", rows[i].answers, e.declined, SPAN_FMT(e.reason));
        arena_free(&a);
    }
    covers("E1");
}

/* It comes again by itself so often; another gateway's question, and a key that is not written plainly, are left. */
static void what_is_not_ours_is_left(void **state)
{
    static const char *const left[] = {
        CALL("\"requestState\":\"countersign:0123456789abcdef:0:abc\"," SAID("decline")),
        CALL("\"requestState\":\"countersign:abc\"," SAID("decline")),
        CALL("\"requestState\":\"countersign:" MARK "\"," SAID("decline")),
        CALL("\"request\\u0053tate\":\"countersign:" MARK ":0:abc\"," SAID("decline")),
        CALL(OURS ",\"input\\u0052esponses\":{\"countersign\":{\"action\":\"decline\"}}"),
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"p\\u0061rams\":{" OURS "}}",
    };
    static const struct {
        const char *body;
        enum elicit_by by;
        unsigned round;
    } rounds[] = {{CALL(OURS_AT("0")), ELICIT_AGAIN, 1},
                  {CALL(OURS_AT("7")), ELICIT_AGAIN, ELICIT_ROUNDS},
                  {CALL(OURS_AT("8")), ELICIT_NO, ELICIT_ROUNDS + 1},
                  {CALL(OURS_AT("9")), ELICIT_NO, ELICIT_ROUNDS + 1},
                  {CALL(OURS_AT("x")), ELICIT_NO, ELICIT_ROUNDS + 1}};
    struct arena a;
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        struct elicit e = read_as("POST", "tools/call", NULL, left[i], &a);
        if (e.own || e.by != ELICIT_NO || e.declined || e.body.n)
            fail_msg("%s", left[i]);
        arena_free(&a);
    }
    for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
        struct elicit e = read_as("POST", "tools/call", NULL, rounds[i].body, &a);
        assert_true(e.own && e.by == rounds[i].by && e.round == rounds[i].round);
        arena_free(&a);
    }
    arena_init(&a, 1024);
    assert_true(span_eq(elicit_state(DESK, 3, SPAN("abc"), &a), SPAN("countersign:" MARK ":3:abc")));
    arena_free(&a);
}

/* With a round it would not be the body that was signed, or that a field speaks of. */
static void what_is_signed_has_no_round(void **state)
{
    static const struct http_field fields[] = {
        {SPAN("Content-Digest"), SPAN("sha-256=:x:")},
        {SPAN("X-Amz-Content-Sha256"), SPAN("x")},
        {SPAN("Signature"), SPAN("s=:x:")},
        {SPAN("authorization"), SPAN("AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20260101/eu-1/s3/aws4_request, "
                                     "SignedHeaders=host;x-amz-date, "
                                     "Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")}};
    const char *bodies[] = {CALL(URL), CALL(URL "," OURS)};
    for (size_t i = 0; i < 2 * sizeof(fields) / sizeof(fields[0]); i++) {
        struct arena a;
        struct elicit e;
        struct wire_request r = {.method = SPAN("POST"), .nfields = 2};
        r.field[0] = (struct http_field){SPAN("Mcp-Method"), SPAN("tools/call")};
        r.field[1] = fields[i / 2];
        arena_init(&a, 64 * 1024);
        assert_int_equal(elicit_read(&r, span_str(bodies[i % 2]), DESK, &a, &e), 0);
        if (e.by != ELICIT_NO || e.own)
            fail_msg("%.*s", SPAN_FMT(fields[i / 2].name));
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
        assert_int_equal(elicit_read(&r, span_of(body, rows[i].n), DESK, &a, &e), 0);
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
        cmocka_unit_test(what_is_not_ours_is_left),
        cmocka_unit_test(what_is_signed_has_no_round),
        cmocka_unit_test(a_long_call_is_told_as_an_error),
        cmocka_unit_test(a_form_denies_with_words_and_approves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
