/* The streams of the three protocols in the shapes that were recorded of them (tests/unit/models/answer_kit.h cuts
 * each one everywhere): what is shown, what is kept, what it cost, why it ended. */
#include "tests/unit/models/answer_kit.h"
#include "tests/unit/models/streams.h"

/* ---- Anthropic ---- */

static void anthropic_text(void **state)
{
    TELLS(MODEL_ANTHROPIC,
          A_START("{\"input_tokens\":25,\"cache_read_input_tokens\":7,\"cache_creation_input_tokens\":3,\"output_"
                  "tokens\":1}") A_BEGIN("0", "{\"type\":\"text\",\"text\":\"\"}")
              A_PING A_TEXT("0", "Gr\xc3\xbc\xc3\x9f") EVENT("later", "{\"type\":\"later\",\"index\":0}")
                  A_TEXT("0", " dich \xe4\xbd\xa0\xf0\x9f\x98\x80") A_END("0") A_WHY("end_turn", "15") A_STOP,
          "t0:Gr\xc3\xbc\xc3\x9f|t0: dich \xe4\xbd\xa0\xf0\x9f\x98\x80|\ncomplete turn used 25+7+3>15(0) msg_01 "
          "claude-x\n"
          "{\"of\":\"model\",\"blocks\":[{\"type\":\"text\",\"text\":\"Gr\xc3\xbc\xc3\x9f dich "
          "\xe4\xbd\xa0\xf0\x9f\x98\x80\"}]}");
}

/* The smallest stream that Claude Code and the SDK take for a call (wire facts, section 1), and two of them at once.
 */
static void anthropic_calls(void **state)
{
    TELLS(MODEL_ANTHROPIC,
          A_START("{\"input_tokens\":1,\"output_tokens\":1}") A_CALL("0", "toolu_1", "bash")
              A_ARGS("0", "{\\\"cmd\\\":") A_ARGS("0", "\\\"ls\\\"}") A_END("0") A_WHY("tool_use", "9") A_STOP,
          "n0:bash|a0:{\"cmd\":|a0:\"ls\"}|\ncomplete calls used 1+0+0>9(0) msg_01 claude-x\n"
          "{\"of\":\"model\",\"blocks\":[{\"type\":\"call\",\"id\":\"c7-0\",\"name\":\"bash\",\"json\":\"{"
          "\\\"cmd\\\":\\\"ls\\\"}\"}]}"
          "\nc7-0=toolu_1 runs");
    TELLS(MODEL_ANTHROPIC,
          A_START("{}") A_BEGIN("0", "{\"type\":\"text\",\"text\":\"Both.\"}") A_END("0")
              A_CALL("1", "toolu_1", "read") A_CALL("2", "toolu_2", "list") A_ARGS("2", "")
                  A_ARGS("1", "{\\\"p\\\":1}") A_END("2") A_END("1") A_WHY("tool_use", "9") A_STOP,
          "t0:Both.|n1:read|n2:list|a1:{\"p\":1}|\ncomplete calls used 0+0+0>9(0) msg_01 claude-x\n"
          "{\"of\":\"model\",\"blocks\":[{\"type\":\"text\",\"text\":\"Both.\"},{\"type\":\"call\",\"id\":\"c7-0\","
          "\"name\":\"read\","
          "\"json\":\"{\\\"p\\\":1}\"},{\"type\":\"call\",\"id\":\"c7-1\",\"name\":\"list\",\"json\":\"{}\"}]}"
          "\nc7-0=toolu_1 runs\nc7-1=toolu_2 runs");
}

/* Kept with their signatures; what a call brings along is kept beside it. */
static void anthropic_thinking(void **state)
{
    TELLS(
        MODEL_ANTHROPIC,
        A_START("{}") A_BEGIN("0", "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
            A_DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"Hm\"}")
                A_DELTA("0", "{\"type\":\"signature_delta\",\"signature\":\"Sg==\"}") A_END("0")
                    A_BEGIN("1", "{\"type\":\"redacted_thinking\",\"data\":\"Zm9v\"}") A_END("1")
                        A_BEGIN("2", "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"go\",\"input\":{\"n\":1.50},"
                                     "\"caller\":{\"type\":\"direct\"}}") A_END("2") A_WHY("tool_use", "2") A_STOP,
        "r0:Hm|n2:go|a2:{\"n\":1.50}|\ncomplete calls used 0+0+0>2(0) msg_01 claude-x\n{\"of\":\"model\",\"blocks\":["
        "{\"type\":\"opaque\",\"json\":\"{\\\"type\\\":\\\"thinking\\\",\\\"thinking\\\":\\\"Hm\\\","
        "\\\"signature\\\":\\\"Sg==\\\"}\","
        "\"origin\":{\"provider\":\"prov\",\"model\":\"m-1\",\"endpoint\":\"https://api.test/v1\"}},"
        "{\"type\":\"opaque\",\"json\":\"{\\\"type\\\":\\\"redacted_thinking\\\",\\\"data\\\":\\\"Zm9v\\\"}\","
        "\"origin\":{\"provider\":\"prov\",\"model\":\"m-1\",\"endpoint\":\"https://api.test/v1\"}},"
        "{\"type\":\"call\",\"id\":\"c7-0\",\"name\":\"go\",\"json\":\"{\\\"n\\\":1.50}\","
        "\"extra\":\"{\\\"caller\\\":{\\\"type\\\":\\\"direct\\\"}}\","
        "\"origin\":{\"provider\":\"prov\",\"model\":\"m-1\",\"endpoint\":\"https://api.test/v1\"}}]}\nc7-0=t runs");
    /* A delta that is not understood: the block is not whole, and not kept. A tool of the provider's is. */
    TELLS(MODEL_ANTHROPIC,
          A_START("{}") A_BEGIN("0", "{\"type\":\"thinking\",\"thinking\":\"\"}")
              A_DELTA("0", "{\"type\":\"later_delta\",\"x\":1}") A_END("0")
                  A_BEGIN("1", "{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web\",\"input\":{}}")
                      A_ARGS("1", "{\\\"q\\\":") A_ARGS("1", "1}") A_END("1") A_WHY("pause_turn", "2") A_STOP,
          "\ncomplete pause used 0+0+0>2(0) msg_01 "
          "claude-x\n{\"of\":\"model\",\"blocks\":[{\"type\":\"opaque\",\"json\":"
          "\"{\\\"type\\\":\\\"server_tool_use\\\",\\\"id\\\":\\\"s\\\",\\\"name\\\":\\\"web\\\",\\\"input\\\":{"
          "\\\"q\\\":1}}\","
          "\"origin\":{\"provider\":\"prov\",\"model\":\"m-1\",\"endpoint\":\"https://api.test/v1\"}}]}");
}

static void anthropic_ends(void **state)
{
    static const char *const reasons[][2] = {{"end_turn", "turn"},     {"stop_sequence", "turn"},
                                             {"max_tokens", "length"}, {"model_context_window_exceeded", "length"},
                                             {"refusal", "refusal"},   {"pause_turn", "pause"},
                                             {"tomorrow", "other"}};
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        char stream[2048], want[512];
        snprintf(stream, sizeof(stream),
                 "%s" EVENT("message_delta", "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"%s\"}}")
                     A_STOP,
                 A_START("{}") A_BEGIN("0", "{\"type\":\"text\",\"text\":\"a\"}") A_END("0"), reasons[i][0]);
        snprintf(
            want, sizeof(want),
            "t0:a|\ncomplete %s msg_01 claude-x\n{\"of\":\"model\",\"blocks\":[{\"type\":\"text\",\"text\":\"a\"}]}",
            reasons[i][1]);
        tells(MODEL_ANTHROPIC, span_str(stream), want);
    }
    TELLS(MODEL_ANTHROPIC,
          A_START("{\"input_tokens\":4}") A_BEGIN("0", "{\"type\":\"text\",\"text\":\"a\"}") EVENT(
              "error", "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}")
              A_TEXT("0", "never"),
          "t0:a|\nfailed  used 4+0+0>0(0) msg_01 claude-x\noverloaded overloaded_error: Overloaded");
}

/* ---- Chat Completions ---- */

static void chat_text(void **state)
{
    TELLS(
        MODEL_CHAT,
        C_DELTA("\"role\":\"assistant\",\"content\":\"\",\"refusal\":null")
            C_DELTA("\"content\":\"\\u4f60\xe5\xa5\xbd\"") ": keep\n\n" C_ABOUT(
                "\"choices\":[{\"index\":1,\"delta\":{\"content\":\"another\"}}]")
                C_DELTA("\"content\":\" \\ud83d\\ude00\"") C_WHY("stop") C_USAGE(
                    "\"prompt_tokens\":20,\"completion_tokens\":9,\"total_tokens\":29,\"prompt_tokens_details\":"
                    "{\"cached_tokens\":8},\"completion_tokens_details\":{\"reasoning_tokens\":4}") C_DONE,
        "t0:\xe4\xbd\xa0\xe5\xa5\xbd|t0: \xf0\x9f\x98\x80|\ncomplete turn used 12+8+0>9(4) chatcmpl-1 gpt-x\n"
        "{\"of\":\"model\",\"blocks\":[{\"type\":\"text\",\"text\":\"\xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80\"}]}");
}

static void chat_calls(void **state)
{
    static const char want[] =
        "n0:read|a0:{\"p\":|n1:list|a0:1}|a1:{}|\ncomplete calls chatcmpl-1 gpt-x\n"
        "{\"of\":\"model\",\"blocks\":[{\"type\":\"call\",\"id\":\"c7-0\",\"name\":\"read\",\"json\":\"{\\\"p\\\":1}"
        "\"},"
        "{\"type\":\"call\",\"id\":\"c7-1\",\"name\":\"list\",\"json\":\"{}\"}]}\nc7-0=call_a runs\nc7-1=call_b runs";
    TELLS(
        MODEL_CHAT,
        C_CALLS("{\"index\":0,\"id\":\"call_a\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":"
                "\"\"}}") C_CALLS("{\"index\":0,\"function\":{\"arguments\":\"{\\\"p\\\":\"}}")
            C_CALLS(
                "{\"index\":1,\"id\":\"call_b\",\"type\":\"function\",\"function\":{\"name\":\"list\",\"arguments\":"
                "\"\"}"
                "},"
                "{\"index\":0,\"function\":{\"arguments\":\"1}\"}},{\"index\":1,\"function\":{\"arguments\":\"{}\"}}")
                C_WHY("tool_calls") C_DONE,
        want);
    /* With an accent: all in one piece without numbers, the same number for both, name and id in each piece. */
    TELLS(MODEL_CHAT,
          C_CALLS("{\"id\":\"call_a\",\"function\":{\"name\":\"read\",\"arguments\":\"{\\\"p\\\":\"}}")
              C_CALLS("{\"id\":\"call_b\",\"function\":{\"name\":\"list\",\"arguments\":\"\"}}") C_WHY("stop") C_DONE,
          "n0:read|a0:{\"p\":|n1:list|\ncomplete calls chatcmpl-1 gpt-x\n"
          "{\"of\":\"model\",\"blocks\":[{\"type\":\"call\",\"id\":\"c7-0\",\"name\":\"read\",\"json\":\"{}\"},"
          "{\"type\":\"call\",\"id\":\"c7-1\",\"name\":\"list\",\"json\":\"{}\"}]}\nc7-0=call_a Nothing was run: the "
          "arguments of "
          "this call are not JSON. Call the tool again with one JSON object that fits its schema.\nc7-1=call_b runs");
    TELLS(MODEL_CHAT,
          C_CALLS("{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"a\",\"arguments\":\"{\\\"k\\\":\"}}")
              C_CALLS("{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"a\",\"arguments\":\"true}\"}}")
                  C_CALLS("{\"index\":0,\"id\":\"y\",\"function\":{\"name\":\"b\",\"arguments\":\"{}\"},\"extra_"
                          "content\":{\"s\":\"q\"}}") C_WHY("tool_calls") C_DONE,
          "n0:a|a0:{\"k\":|a0:true}|n1:b|a1:{}|\ncomplete calls chatcmpl-1 gpt-x\n"
          "{\"of\":\"model\",\"blocks\":[{\"type\":\"call\",\"id\":\"c7-0\",\"name\":\"a\",\"json\":\"{\\\"k\\\":"
          "true}\"},"
          "{\"type\":\"call\",\"id\":\"c7-1\",\"name\":\"b\",\"json\":\"{}\",\"extra\":\"{\\\"extra_content\\\":{"
          "\\\"s\\\":\\\"q\\\"}}\","
          "\"origin\":{\"provider\":\"prov\",\"model\":\"m-1\",\"endpoint\":\"https://api.test/v1\"}}]}\nc7-0=x "
          "runs\nc7-1=y runs");
}

static void chat_reasoning(void **state)
{
    TELLS(MODEL_CHAT,
          C_DELTA("\"reasoning_content\":\"Hm\",\"content\":null") C_DELTA("\"reasoning_content\":\", yes\"")
              C_DELTA("\"content\":\"Yes\"") C_WHY("stop") C_DONE,
          "r0:Hm|r0:, yes|t1:Yes|\ncomplete turn chatcmpl-1 "
          "gpt-x\n{\"of\":\"model\",\"blocks\":[{\"type\":\"opaque\",\"json\":"
          "\"{\\\"reasoning_content\\\":\\\"Hm, yes\\\"}\",\"origin\":{\"provider\":\"prov\",\"model\":\"m-1\","
          "\"endpoint\":\"https://api.test/v1\"}},{\"type\":\"text\",\"text\":\"Yes\"}]}");
}

static void chat_ends(void **state)
{
    static const char words[] = "t0:a|\ncomplete refusal chatcmpl-1 gpt-x\n"
                                "{\"of\":\"model\",\"blocks\":[{\"type\":\"text\",\"text\":\"a\"}]}";
    TELLS(MODEL_CHAT, C_DELTA("\"content\":\"a\"") C_WHY("content_filter") C_DONE, words);
    TELLS(MODEL_CHAT, C_DELTA("\"refusal\":\"a\"") C_WHY("stop") C_DONE, words);
    TELLS(MODEL_CHAT,
          C_DELTA("\"content\":\"a\"")
              CHUNK("{\"error\":{\"message\":\"slow down\",\"type\":\"requests\",\"code\":\"rate_limit_exceeded\"}}"),
          "t0:a|\nfailed  chatcmpl-1 gpt-x\nrate rate_limit_exceeded: slow down");
    TELLS(MODEL_CHAT, C_DELTA("\"content\":\"a\"") CHUNK("{\"error\":\"engine died\"}"),
          "t0:a|\nfailed  chatcmpl-1 gpt-x\nserver : engine died");
    TELLS(MODEL_CHAT, CHUNK("{\"object\":\"error\",\"message\":\"no\",\"type\":\"x\",\"code\":400}"),
          "\nfailed   \nserver x: no");
}

/* ---- Responses ---- */

static void responses_text(void **state)
{
    TELLS(MODEL_RESPONSES,
          R_START R_ITEM("added", "0", R_MESSAGE ",\"content\":[]")
              EVENT("response.content_part.added",
                    "{\"type\":\"response.content_part.added\",\"output_index\":0,\"content_index\":0}")
                  R_DELTA("output_text", "0", "Gr\xc3\xbc") R_DELTA("output_text", "0", "\\u00df")
                      EVENT("response.output_text.done",
                            "{\"type\":\"response.output_text.done\",\"output_index\":0,\"text\":\"x\"}")
                          R_ITEM("done", "0",
                                 R_MESSAGE
                                 ",\"status\":\"completed\",\"content\":[{\"type\":\"output_text\",\"text\":\"x\"}]")
                              R_END("completed", "\"status\":\"completed\"," R_USAGE),
          "t0:Gr\xc3\xbc|t0:\xc3\x9f|\ncomplete turn " R_USED
          "{\"of\":\"model\",\"blocks\":[{\"type\":\"text\",\"text\":\"Gr\xc3\xbc\xc3\x9f\"}]}");
    /* A server that says everything at once. */
    TELLS(MODEL_RESPONSES,
          R_START R_ITEM(
              "done", "0",
              R_MESSAGE
              ",\"content\":[{\"type\":\"output_text\",\"text\":\"all\"},{\"type\":\"refusal\",\"refusal\":\" no\"}]")
              R_END("completed", R_USAGE),
          "t0:all|t0: no|\ncomplete refusal " R_USED
          "{\"of\":\"model\",\"blocks\":[{\"type\":\"text\",\"text\":\"all no\"}]}");
}

static void responses_calls(void **state)
{
    TELLS(
        MODEL_RESPONSES,
        R_START R_ITEM("added", "0", "\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]") R_DELTA(
            "reasoning_summary_text", "0",
            "Hm") R_ITEM("done", "0",
                         "\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"encrypted_content\":\"gA==\","
                         "\"status\":null") R_ITEM("added", "1", R_CALL("call_a", "read", ""))
            R_DELTA("function_call_arguments", "1", "{\\\"p\\\"") R_DELTA("function_call_arguments", "1", ":1}")
                EVENT("response.function_call_arguments.done", "{\"type\":\"response.function_call_arguments.done\","
                                                               "\"output_index\":1,\"arguments\":\"{\\\"p\\\":1}\"}")
                    R_ITEM("done", "1", R_CALL("call_a", "read", "{\\\"p\\\":1}") ",\"status\":\"completed\"")
                        R_ITEM("done", "2", R_CALL("call_b", "list", "{}")) R_END("completed", R_USAGE),
        "r0:Hm|n1:read|a1:{\"p\"|a1::1}|n2:list|a2:{}|\ncomplete calls " R_USED "{\"of\":\"model\",\"blocks\":["
        "{\"type\":\"opaque\",\"json\":\"{\\\"type\\\":\\\"reasoning\\\",\\\"id\\\":\\\"rs_1\\\",\\\"summary\\\":[],"
        "\\\"encrypted_content\\\":"
        "\\\"gA==\\\"}\",\"origin\":{\"provider\":\"prov\",\"model\":\"m-1\",\"endpoint\":\"https://api.test/v1\"}},"
        "{\"type\":\"call\",\"id\":\"c7-0\",\"name\":\"read\",\"json\":\"{\\\"p\\\":1}\"},"
        "{\"type\":\"call\",\"id\":\"c7-1\",\"name\":\"list\",\"json\":\"{}\"}]}\nc7-0=call_a runs\nc7-1=call_b "
        "runs");
    /* Reasoning that was not encrypted would be looked for where nothing is kept; tools of the provider's were not
     * asked for. */
    TELLS(MODEL_RESPONSES,
          R_START R_ITEM("done", "0", "\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]")
              R_ITEM("done", "1", "\"type\":\"web_search_call\",\"id\":\"w\"") R_DELTA("refusal", "7", "never")
                  R_END("completed", R_USAGE),
          "\nfailed  resp_1 gpt-y\nbroken : an event of the answer is of an item that has not begun, has ended, or "
          "began twice");
    TELLS(MODEL_RESPONSES,
          R_START R_ITEM("done", "0", "\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]")
              R_ITEM("done", "1", "\"type\":\"web_search_call\",\"id\":\"w\"") R_END("completed", R_USAGE),
          "\ncomplete turn " R_USED "{\"of\":\"model\",\"blocks\":[]}");
}

static void responses_ends(void **state)
{
    TELLS(MODEL_RESPONSES,
          R_START R_ITEM("added", "0", R_MESSAGE) R_DELTA("output_text", "0", "a")
              R_END("incomplete", "\"incomplete_details\":{\"reason\":\"max_output_tokens\"}," R_USAGE),
          "t0:a|\ncomplete length " R_USED "{\"of\":\"model\",\"blocks\":[{\"type\":\"text\",\"text\":\"a\"}]}");
    TELLS(MODEL_RESPONSES, R_START R_END("incomplete", "\"incomplete_details\":{\"reason\":\"content_filter\"}"),
          "\ncomplete refusal resp_1 gpt-y\n{\"of\":\"model\",\"blocks\":[]}");
    TELLS(MODEL_RESPONSES, R_START R_END("incomplete", "\"incomplete_details\":null"),
          "\ncomplete other resp_1 gpt-y\n{\"of\":\"model\",\"blocks\":[]}");
    TELLS(MODEL_RESPONSES, R_START R_END("failed", "\"error\":{\"code\":\"server_error\",\"message\":\"oops\"}"),
          "\nfailed  resp_1 gpt-y\nserver server_error: oops");
    TELLS(MODEL_RESPONSES,
          R_START EVENT("error",
                        "{\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\",\"param\":null}"),
          "\nfailed  resp_1 gpt-y\nrate rate_limit_exceeded: slow");
    TELLS(MODEL_RESPONSES,
          R_START EVENT("error", "{\"type\":\"error\",\"error\":{\"type\":\"x\",\"code\":\"context_length_exceeded\","
                                 "\"message\":\"long\"}}"),
          "\nfailed  resp_1 gpt-y\nwindow context_length_exceeded: long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anthropic_text),  cmocka_unit_test(anthropic_calls), cmocka_unit_test(anthropic_thinking),
        cmocka_unit_test(anthropic_ends),  cmocka_unit_test(chat_text),       cmocka_unit_test(chat_calls),
        cmocka_unit_test(chat_reasoning),  cmocka_unit_test(chat_ends),       cmocka_unit_test(responses_text),
        cmocka_unit_test(responses_calls), cmocka_unit_test(responses_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
