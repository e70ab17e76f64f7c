/* Answers that are not what they should be: cut, contradicting themselves, without end, with calls that nobody may
 * run. Each has its words, and none is taken for complete. */
#include "tests/unit/models/answer_kit.h"
#include "tests/unit/models/streams.h"

#define RUN_NOT "Nothing was run: "

static const char anthropic[] =
    A_START("{\"input_tokens\":1}") A_BEGIN("0", "{\"type\":\"text\",\"text\":\"\xe4\xbd\xa0\"}") A_END("0")
        A_CALL("1", "t", "go") A_ARGS("1", "{}") A_END("1") A_WHY("tool_use", "9") A_STOP;
static const char chat[] = C_DELTA("\"content\":\"\xe4\xbd\xa0\"")
    C_CALLS("{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"a\",\"arguments\":\"{}\"}}") C_WHY("tool_calls")
        C_USAGE("\"prompt_tokens\":1") C_DONE;
static const char responses[] =
    R_START R_ITEM("added", "0", R_CALL("c", "go", "")) R_DELTA("function_call_arguments", "0", "{}")
        R_ITEM("done", "0", R_CALL("c", "go", "{}")) R_END("completed", R_USAGE);

static const struct {
    enum model_protocol protocol;
    const char *stream;
} whole[] = {{MODEL_ANTHROPIC, anthropic}, {MODEL_CHAT, chat}, {MODEL_RESPONSES, responses}};

/* A stream that ends early is cut, wherever it ends: in a character, between two events, before its last byte. */
static void cut_is_never_complete(void **state)
{
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        struct span stream = span_str(whole[i].stream);
        for (size_t n = 0; n <= stream.n; n++) {
            struct answer *a = answer_begin(whole[i].protocol, &origin, SPAN("p"), NULL, NULL);
            bool on = answer_feed(a, span_first(stream, n));
            const struct answer_result *r = answer_finish(a);
            assert_int_equal(on, n < stream.n);
            assert_int_equal(r->end, on ? ANSWER_FAILED : ANSWER_COMPLETE);
            assert_int_equal(r->fault.kind, on ? FAULT_CUT : FAULT_NONE);
            assert_int_equal(r->ncalls, on ? 0 : 1);
            answer_free(&a);
        }
    }
}

/* The one call of an answer; NULL: it may be run. */
static void call_says(enum model_protocol p, const char *stream, const char *broken, const char *json)
{
    struct answer *a = answer_begin(p, &origin, SPAN("p"), NULL, NULL);
    (void)answer_feed(a, span_str(stream));
    const struct answer_result *r = answer_finish(a);
    assert_int_equal(r->end, ANSWER_COMPLETE);
    assert_true(r->ncalls >= 1);
    const struct answer_call *call = &r->call[r->ncalls - 1];
    if (broken == NULL)
        assert_null(call->broken);
    else
        assert_non_null(strstr(call->broken ? call->broken : "", broken));
    assert_true(span_eq(call->block->json, span_str(json)));
    answer_free(&a);
}

static void arguments_that_are_none(void **state)
{
    static const struct {
        const char *args, *words;
    } rows[] = {{"{\\\"a\\\":", "not JSON"},
                {"{\\\"a\\\":1} {}", "not JSON"},
                {"nope", "not JSON"},
                {"{\\\"a\\\":\\\"\\\\ud83d\\\"}", "not JSON"},
                {"[1]", "not an object"},
                {"null", "not an object"},
                {"\\\"{}\\\"", "not an object"},
                {"{\\\"a\\\":1,\\\"\\\\u0061\\\":2}", "name a member twice"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char s[4096];
        snprintf(s, sizeof(s),
                 "%s" CHUNK("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\","
                            "\"partial_json\":\"%s\"}}") "%s",
                 A_START("{}") A_CALL("0", "t", "go"), rows[i].args, A_END("0") A_WHY("tool_use", "1") A_STOP);
        call_says(MODEL_ANTHROPIC, s, rows[i].words, "{}");
        snprintf(s, sizeof(s),
                 CHUNK("{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":"
                       "\"go\",\"arguments\":\"%s\"}}]}}]}") "%s",
                 rows[i].args, C_WHY("tool_calls") C_DONE);
        call_says(MODEL_CHAT, s, rows[i].words, "{}");
        snprintf(
            s, sizeof(s),
            R_START CHUNK(
                "{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\","
                "\"call_id\":\"c\",\"name\":\"go\",\"arguments\":\"%s\"}}") "%s",
            rows[i].args, R_END("completed", R_USAGE));
        call_says(MODEL_RESPONSES, s, rows[i].words, "{}");
    }
    call_says(MODEL_CHAT,
              C_CALLS("{\"index\":0,\"function\":{\"name\":\"go\",\"arguments\":{\"a\":1}}}") C_WHY("stop") C_DONE,
              "were not understood", "{}");
}

/* Valid so far is not finished: what an answer that was stopped had begun is not run, also where it happens to parse.
 */
static void calls_that_were_not_finished(void **state)
{
    call_says(MODEL_ANTHROPIC,
              A_START("{}") A_CALL("0", "t", "go") A_ARGS("0", "{}") A_END("0") A_WHY("max_tokens", "9") A_STOP,
              "reached its length limit", "{}");
    call_says(MODEL_ANTHROPIC, A_START("{}") A_CALL("0", "t", "go") A_ARGS("0", "{}") A_WHY("tool_use", "9") A_STOP,
              "was not finished", "{}");
    call_says(MODEL_ANTHROPIC, A_START("{}") A_CALL("0", "t", "go") A_END("0") A_WHY("refusal", "9") A_STOP,
              "did not end with its calls", "{}");
    call_says(MODEL_ANTHROPIC, A_START("{}") A_CALL("0", "t", "go") A_END("0") A_WHY("tomorrow", "9") A_STOP,
              "did not end with its calls", "{}");
    call_says(MODEL_ANTHROPIC,
              A_START("{}") A_CALL("0", "t", "go") A_DELTA("0", "{\"type\":\"later\"}") A_END("0")
                  A_WHY("tool_use", "9") A_STOP,
              "was not understood", "{}");
    call_says(MODEL_CHAT,
              C_CALLS("{\"index\":0,\"function\":{\"name\":\"go\",\"arguments\":\"\"}}") C_WHY("length") C_DONE,
              "length limit", "{}");
    call_says(MODEL_CHAT,
              C_CALLS("{\"index\":0,\"function\":{\"name\":\"go\",\"arguments\":\"\"}}") C_WHY("later") C_DONE,
              "did not end", "{}");
    call_says(MODEL_CHAT,
              C_CALLS("{\"index\":0,\"function\":{\"name\":\"go\",\"arguments\":\"{}\"}}") C_WHY("tool_calls")
                  C_CALLS("{\"index\":0,\"function\":{\"arguments\":\" \"}}") C_DONE,
              "went on after its end", "{}");
    call_says(MODEL_RESPONSES,
              R_START R_ITEM("added", "0", R_CALL("c", "go", "")) R_DELTA("function_call_arguments", "0", "{}")
                  R_END("completed", R_USAGE),
              "was not finished", "{}");
    call_says(MODEL_RESPONSES,
              R_START R_ITEM("done", "0", R_CALL("c", "go", "{}") ",\"status\":\"incomplete\"")
                  R_END("completed", R_USAGE),
              "was not finished", "{}");
    call_says(MODEL_RESPONSES,
              R_START R_ITEM("added", "0", R_CALL("c", "go", ""))
                  R_DELTA("function_call_arguments", "0", "{\\\"a\\\":1}")
                      R_ITEM("done", "0", R_CALL("c", "go", "{\\\"a\\\":2}")) R_END("completed", R_USAGE),
              "differ", "{}");
    /* Of two the first was finished. */
    call_says(MODEL_CHAT,
              C_CALLS("{\"index\":0,\"function\":{\"name\":\"go\",\"arguments\":\"{}\"}}") C_WHY("tool_calls") C_DONE,
              NULL, "{}");
}

static void names_that_no_tool_has(void **state)
{
    struct answer *a = answer_begin(MODEL_CHAT, &origin, SPAN("p"), NULL, NULL);
    (void)answer_feed(
        a, SPAN(C_CALLS("{\"index\":0,\"function\":{\"name\":\"functions.bash\xc3\xbc\",\"arguments\":\"{}\"}},"
                        "{\"index\":1,\"function\":{\"arguments\":\"{}\"}},{\"index\":2,\"function\":{\"name\":"
                        "\"ok\",\"arguments\":\"{}\"}}") C_WHY("tool_calls") C_DONE));
    const struct answer_result *r = answer_finish(a);
    assert_int_equal(r->ncalls, 3);
    assert_true(span_eq(r->call[0].block->name, SPAN("functions_bash__")));
    assert_true(span_eq(r->call[1].block->name, SPAN("unnamed")));
    assert_string_equal(r->call[0].broken, RUN_NOT "there is no tool of this name.");
    assert_non_null(r->call[1].broken);
    assert_null(r->call[2].broken);
    answer_free(&a);
}

static void fails_with(enum model_protocol p, const char *stream, enum fault_kind kind, const char *words)
{
    struct answer *a = answer_begin(p, &origin, SPAN("p"), NULL, NULL);
    (void)answer_feed(a, span_str(stream));
    const struct answer_result *r = answer_finish(a);
    assert_int_equal(r->end, ANSWER_FAILED);
    assert_int_equal(r->fault.kind, kind);
    assert_non_null(strstr(r->fault.words, words));
    assert_int_equal(r->message.n, 0);
    answer_free(&a);
}

static void streams_that_contradict_themselves(void **state)
{
    const enum model_protocol a = MODEL_ANTHROPIC, c = MODEL_CHAT, r = MODEL_RESPONSES;
    fails_with(a, "", FAULT_CUT, "there was no answer");
    fails_with(a, "{\"type\":\"error\"}", FAULT_CUT, "there was no answer");
    fails_with(a, CHUNK("{"), FAULT_BROKEN, "no JSON object");
    fails_with(a, CHUNK("[]"), FAULT_BROKEN, "no JSON object");
    fails_with(c, CHUNK("\"\xff\""), FAULT_BROKEN, "no JSON object");
    fails_with(a, A_START("{}") A_START("{}"), FAULT_BROKEN, "a second answer");
    fails_with(a, A_CALL("0", "t", "go"), FAULT_BROKEN, "before it began");
    fails_with(a, A_STOP, FAULT_BROKEN, "before it began");
    fails_with(a, A_START("{}") A_STOP, FAULT_BROKEN, "does not say why it ended");
    fails_with(a, A_START("{}") A_TEXT("0", "x"), FAULT_BROKEN, "has not begun");
    fails_with(a, A_START("{}") A_CALL("0", "t", "go") A_CALL("0", "u", "go"), FAULT_BROKEN, "began twice");
    fails_with(a, A_START("{}") A_CALL("0", "t", "go") A_END("0") A_ARGS("0", "{}"), FAULT_BROKEN, "has ended");
    fails_with(a, A_START("{}") A_CALL("-1", "t", "go"), FAULT_BROKEN, "of which block");
    fails_with(a, A_START("{}") A_WHY("tool_use", "1") A_STOP, FAULT_BROKEN, "calls none");
    fails_with(c, C_DONE, FAULT_BROKEN, "does not say why it ended");
    fails_with(c, C_DELTA("\"content\":\"a\"") C_DONE, FAULT_BROKEN, "does not say why it ended");
    fails_with(c, C_DELTA("\"content\":\"a\"") C_WHY("stop"), FAULT_CUT, "before its end");
    fails_with(c, C_WHY("tool_calls") C_DONE, FAULT_BROKEN, "calls none");
    fails_with(r, R_START R_DELTA("output_text", "0", "a"), FAULT_BROKEN, "has not begun");
    fails_with(r, R_START R_ITEM("added", "0", R_MESSAGE) R_ITEM("added", "0", R_MESSAGE), FAULT_BROKEN,
               "began twice");
    fails_with(r, R_START R_ITEM("added", "0", R_MESSAGE) R_DELTA("function_call_arguments", "0", "a"), FAULT_BROKEN,
               "another kind");
    fails_with(r, R_START R_END("completed", "\"output\":[{\"type\":\"function_call\"}]"), FAULT_BROKEN,
               "has not the calls");
}

/* ---- without end ---- */

static const char *const fill_head[] = {A_START("{}") A_CALL("0", "t", "go"),
                                        A_START("{}") A_BEGIN("0", "{\"type\":\"text\",\"text\":\"\"}")};

/* So many mebibytes in deltas of one; the answer's end, when it has one. */
static const struct answer_result *filled(struct answer *a, size_t which, size_t mebibytes)
{
    static char big[1024 * 1024 + 200];
    static const char *const kind[] = {"input_json_delta\",\"partial_json", "text_delta\",\"text"};
    size_t n = (size_t)snprintf(
        big, 200, "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"%s\":\"", kind[which]);
    memset(big + n, 'x', 1024 * 1024);
    memcpy(big + n + 1024 * 1024, "\"}}\n\n", 5);
    (void)answer_feed(a, span_str(fill_head[which]));
    for (size_t i = 0; i < mebibytes; i++)
        (void)answer_feed(a, span_of(big, n + 1024 * 1024 + 5));
    (void)answer_feed(a, SPAN(A_END("0") A_WHY("tool_use", "1") A_STOP));
    return answer_finish(a);
}

static void ten_mebibytes_of_arguments(void **state)
{
    struct answer *a = answer_begin(MODEL_ANTHROPIC, &origin, SPAN("p"), NULL, NULL);
    const struct answer_result *r = filled(a, 0, 10);
    assert_int_equal(r->end, ANSWER_COMPLETE);
    assert_non_null(strstr(r->call[0].broken, "longer than 1 MiB"));
    assert_true(span_eq(r->call[0].block->json, SPAN("{}")));
    answer_free(&a);
}

static void text_without_end(void **state)
{
    struct answer *a = answer_begin(MODEL_ANTHROPIC, &origin, SPAN("p"), NULL, NULL);
    const struct answer_result *r = filled(a, 1, 5);
    assert_int_equal(r->fault.kind, FAULT_TOO_LARGE);
    answer_free(&a);
    a = answer_begin(MODEL_ANTHROPIC, &origin, SPAN("p"), NULL, NULL);
    for (size_t i = 0; i <= ANSWER_EVENT_MAX / 64 &&
                       answer_feed(a, SPAN(": a line that never ends, one that never, never, ever ends ......"));
         i++)
        ;
    assert_int_equal(answer_finish(a)->fault.kind, FAULT_TOO_LARGE);
    answer_free(&a);
}

static void calls_without_end(void **state)
{
    for (unsigned n = ANSWER_CALLS_MAX; n <= ANSWER_CALLS_MAX + 1; n++) {
        struct answer *a = answer_begin(MODEL_CHAT, &origin, SPAN("p"), NULL, NULL);
        for (unsigned i = 0; i < n; i++) {
            char s[256];
            snprintf(
                s, sizeof(s),
                CHUNK("{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%u,\"function\":{\"name\":\"a\"}}]}}]}"),
                i);
            (void)answer_feed(a, span_str(s));
        }
        (void)answer_feed(a, SPAN(C_WHY("tool_calls") C_DONE));
        const struct answer_result *r = answer_finish(a);
        assert_int_equal(r->end, n == ANSWER_CALLS_MAX ? ANSWER_COMPLETE : ANSWER_FAILED);
        assert_int_equal(r->fault.kind, n == ANSWER_CALLS_MAX ? FAULT_NONE : FAULT_TOO_LARGE);
        answer_free(&a);
    }
    struct answer *a = answer_begin(MODEL_ANTHROPIC, &origin, SPAN("p"), NULL, NULL);
    (void)answer_feed(a, SPAN(A_START("{}")));
    for (unsigned i = 0; i <= ANSWER_PIECES_MAX; i++) {
        char s[256];
        snprintf(s, sizeof(s),
                 CHUNK("{\"type\":\"content_block_start\",\"index\":%u,\"content_block\":{\"type\":\"text\"}}"), i);
        (void)answer_feed(a, span_str(s));
    }
    assert_int_equal(answer_finish(a)->fault.kind, FAULT_TOO_LARGE);
    answer_free(&a);
}

/* Each text is within its own bound; all of them together are not. */
static void bytes_without_end(void **state)
{
    struct answer *a = answer_begin(MODEL_RESPONSES, &origin, SPAN("p"), NULL, NULL);
    static char big[1024 * 1024 + 200];
    (void)answer_feed(a, SPAN(R_START));
    for (unsigned i = 0; i <= ANSWER_BYTES_MAX / (1024 * 1024); i++) {
        int n = snprintf(big, 200,
                         "data: "
                         "{\"type\":\"response.output_item.done\",\"output_index\":%u,\"item\":{\"type\":\"message\","
                         "\"content\":[{\"text\":\"",
                         i);
        memset(big + n, 'x', 1024 * 1024);
        memcpy(big + n + 1024 * 1024, "\"}]}}\n\n", 8);
        (void)answer_feed(a, span_of(big, (size_t)n + 1024 * 1024 + 7));
    }
    const struct answer_result *r = answer_finish(a);
    assert_int_equal(r->fault.kind, FAULT_TOO_LARGE);
    assert_non_null(strstr(r->fault.words, "larger than 8 MiB"));
    answer_free(&a);
}

/* Ids are ours, so what they are made of must be fit for every provider. */
static void prefixes(void **state)
{
    static char longest[ANSWER_PREFIX_MAX + 2];
    memset(longest, 'p', sizeof(longest));
    assert_null(answer_begin(MODEL_CHAT, &origin, SPAN(""), NULL, NULL));
    assert_null(answer_begin(MODEL_CHAT, &origin, SPAN("a.b"), NULL, NULL));
    assert_null(answer_begin(MODEL_CHAT, &origin, span_of(longest, ANSWER_PREFIX_MAX + 1), NULL, NULL));
    assert_null(answer_begin(MODEL_NONE, &origin, SPAN("p"), NULL, NULL));
    assert_null(answer_begin(MODEL_CHAT, &(struct model_origin){.provider = SPAN("p")}, SPAN("p"), NULL, NULL));
    struct answer *a = answer_begin(MODEL_CHAT, &origin, span_of(longest, ANSWER_PREFIX_MAX), NULL, NULL);
    (void)answer_feed(a, SPAN(C_CALLS("{\"index\":0,\"function\":{\"name\":\"a\"}}") C_WHY("stop") C_DONE));
    assert_true(call_id_ok(answer_finish(a)->call[0].block->id));
    answer_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_is_never_complete),
        cmocka_unit_test(arguments_that_are_none),
        cmocka_unit_test(calls_that_were_not_finished),
        cmocka_unit_test(names_that_no_tool_has),
        cmocka_unit_test(streams_that_contradict_themselves),
        cmocka_unit_test(ten_mebibytes_of_arguments),
        cmocka_unit_test(text_without_end),
        cmocka_unit_test(calls_without_end),
        cmocka_unit_test(bytes_without_end),
        cmocka_unit_test(prefixes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
