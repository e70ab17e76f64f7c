/* The bodies of the three protocols, from one conversation; what is left out for whom; what gets none. */
#include "tests/kit.h"

#include "broker/models/request/request.h"

#define HERE                                                                                                         \
    {                                                                                                                \
        SPAN("prov"), SPAN("m-1"), SPAN("https://api.test/v1")                                                       \
    }
#define THERE                                                                                                        \
    {                                                                                                                \
        SPAN("prov"), SPAN("m-1"), SPAN("https://other.test/v1")                                                     \
    }
#define SCHEMA "{\"type\":\"object\",\"properties\":{\"p\":{\"type\":\"number\"}}}"

static const struct block asked[] = {{.kind = BLOCK_TEXT, .text = SPAN("Look \"here\"")},
                                     {.kind = BLOCK_TEXT, .text = SPAN(" \n")},
                                     {.kind = BLOCK_IMAGE, .media = SPAN("image/png"), .ref = SPAN("r1")}};
static const struct block called[] = {
    {.kind = BLOCK_OPAQUE, .json = SPAN("{\"type\":\"mine\",\"sig\":\"A\"}"), .origin = HERE},
    {.kind = BLOCK_OPAQUE, .json = SPAN("{\"type\":\"theirs\",\"sig\":\"B\"}"), .origin = THERE},
    {.kind = BLOCK_TEXT, .text = SPAN("I look.")},
    {.kind = BLOCK_CALL,
     .id = SPAN("c-0"),
     .name = SPAN("read"),
     .json = SPAN("{\"p\": 1.0}"),
     .extra = SPAN(" { \"x\":{} }"),
     .origin = HERE},
    {.kind = BLOCK_CALL,
     .id = SPAN("c-1"),
     .name = SPAN("list"),
     .json = SPAN("{}"),
     .extra = SPAN("{\"y\":1}"),
     .origin = THERE}};
static const struct block results[] = {
    {.kind = BLOCK_TEXT, .text = SPAN("And?")},
    {.kind = BLOCK_RESULT, .id = SPAN("c-1"), .text = SPAN("")},
    {.kind = BLOCK_RESULT, .id = SPAN("c-0"), .text = SPAN("no such file"), .failed = true}};
static const struct message conversation[] = {
    {MESSAGE_USER, asked, 3}, {MESSAGE_MODEL, called, 5}, {MESSAGE_USER, results, 3}};
static const struct model_tool tools[] = {{SPAN("read"), SPAN("Reads."), SPAN(SCHEMA)}};
static const struct model_privacy all = {.who = WHO_ALL};

static int image(void *ctx, struct span ref, struct dynbuf *bytes)
{
    const char *have = ctx;
    assert_true(span_eq(ref, SPAN("r1")));
    return have ? dynbuf_add(bytes, span_str(have)) : -1;
}

static struct model_target target(enum model_protocol p)
{
    return (struct model_target){.name = SPAN("one"), .protocol = p, .origin = HERE, .reasoning = true};
}

static struct model_request request(const char *bytes)
{
    return (struct model_request){.system = SPAN("Be brief."),
                                  .message = conversation,
                                  .n = 3,
                                  .tool = tools,
                                  .ntools = 1,
                                  .max_tokens = 100,
                                  .image = image,
                                  .ctx = (void *)(uintptr_t)bytes};
}

static void writes(const struct model_target *t, const struct model_request *r, const char *want)
{
    struct dynbuf out;
    struct arena a;
    struct err e = {""};
    dynbuf_init(&out, REQUEST_MAX);
    arena_init(&a, 1 << 20);
    if (request_write(t, &all, r, &out, &e) != 0)
        print_error("%s\n", e.text);
    if (!span_eq(dynbuf_span(&out), span_str(want)))
        print_error("%.*s\n", SPAN_FMT(dynbuf_span(&out)));
    assert_true(span_eq(dynbuf_span(&out), span_str(want)));
    assert_non_null(json_parse(dynbuf_span(&out), &a));
    arena_free(&a);
    dynbuf_free(&out);
}

static void anthropic(void **state)
{
    struct model_target t = target(MODEL_ANTHROPIC);
    struct model_request r = request("\x89PNG");
    writes(
        &t, &r,
        "{\"model\":\"m-1\",\"stream\":true,\"max_tokens\":100,\"system\":\"Be "
        "brief.\",\"messages\":[{\"role\":\"user\",\"content\":["
        "{\"type\":\"text\",\"text\":\"Look "
        "\\\"here\\\"\"},{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":"
        "\"iVBORw==\"}}]},{\"role\":\"assistant\",\"content\":[{\"type\":\"mine\",\"sig\":\"A\"},{\"type\":\"text\","
        "\"text\":\"I look.\"},"
        "{\"type\":\"tool_use\",\"id\":\"c-0\",\"name\":\"read\",\"input\":{\"p\": 1.0}, \"x\":{} "
        "},{\"type\":\"tool_use\",\"id\":\"c-1\","
        "\"name\":\"list\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
        "\"c-1\",\"content\":"
        "\"(no output)\"},{\"type\":\"tool_result\",\"tool_use_id\":\"c-0\",\"content\":\"no such "
        "file\",\"is_error\":true},"
        "{\"type\":\"text\",\"text\":\"And?\"}]}],\"tools\":[{\"name\":\"read\",\"description\":\"Reads.\",\"input_"
        "schema\":" SCHEMA "}]}");
}

static void chat(void **state)
{
    struct model_target t = target(MODEL_CHAT);
    struct model_request r = request("\x89PNG");
    static const char head[] =
        "{\"model\":\"m-1\",\"stream\":true,\"stream_options\":{\"include_usage\":true},\"%s\":100,\"messages\":["
        "{\"role\":\"system\",\"content\":\"Be brief.\"},%s,{\"role\":\"assistant\",\"content\":\"I "
        "look.\",%s\"tool_calls\":["
        "{\"id\":\"c-0\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\"{\\\"p\\\": 1.0}\"}, "
        "\"x\":{} },"
        "{\"id\":\"c-1\",\"type\":\"function\",\"function\":{\"name\":\"list\",\"arguments\":\"{}\"}}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"c-1\",\"content\":\"(no output)\"},"
        "{\"role\":\"tool\",\"tool_call_id\":\"c-0\",\"content\":\"[failed] no such "
        "file\"},{\"role\":\"user\",\"content\":\"And?\"}],"
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"read\",\"description\":\"Reads.\","
        "\"parameters\":" SCHEMA "}}]%s}";
    static const char shown[] = "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Look "
                                "\\\"here\\\"\"},{\"type\":\"image_url\",\"image_url\":"
                                "{\"url\":\"data:image/png;base64,iVBORw==\"}}]}";
    static const char told[] = "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Look "
                               "\\\"here\\\"\"},{\"type\":\"text\",\"text\":"
                               "\"[an image stood here; it is no longer kept, or larger than 5 MiB]\"}]}";
    char want[4096];
    snprintf(want, sizeof(want), head, "max_completion_tokens", shown, "\"type\":\"mine\",\"sig\":\"A\",", "");
    writes(&t, &r, want);
    t.old_limit = true;
    t.reasoning = false;
    r.ctx = NULL;
    r.no_calls = true;
    snprintf(want, sizeof(want), head, "max_tokens", told, "", ",\"tool_choice\":\"none\"");
    writes(&t, &r, want);
}

static void responses(void **state)
{
    struct model_target t = target(MODEL_RESPONSES);
    struct model_request r = request("\x89PNG");
    writes(
        &t, &r,
        "{\"model\":\"m-1\",\"stream\":true,\"store\":false,\"include\":[\"reasoning.encrypted_content\"],\"max_"
        "output_tokens\":100,"
        "\"instructions\":\"Be "
        "brief.\",\"input\":[{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":"
        "\"Look "
        "\\\"here\\\"\"},{\"type\":\"input_image\",\"image_url\":\"data:image/"
        "png;base64,iVBORw==\"}]},{\"type\":\"mine\",\"sig\":\"A\"},"
        "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"I look.\"}]},"
        "{\"type\":\"function_call\",\"call_id\":\"c-0\",\"name\":\"read\",\"arguments\":\"{\\\"p\\\": 1.0}\"},"
        "{\"type\":\"function_call\",\"call_id\":\"c-1\",\"name\":\"list\",\"arguments\":\"{}\"},"
        "{\"type\":\"function_call_output\",\"call_id\":\"c-1\",\"output\":\"(no output)\"},"
        "{\"type\":\"function_call_output\",\"call_id\":\"c-0\",\"output\":\"[failed] no such file\"},"
        "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"And?\"}]}],"
        "\"tools\":[{\"type\":\"function\",\"name\":\"read\",\"description\":\"Reads.\",\"parameters\":" SCHEMA
        ",\"strict\":false}]}");
}

/* Thought that led to nothing, as where an answer reached its limit, is refused at the end of a message. */
static void thought_without_an_end(void **state)
{
    const struct block say[] = {{.kind = BLOCK_TEXT, .text = SPAN("hi")}};
    const struct block thought[] = {
        {.kind = BLOCK_TEXT, .text = SPAN("I")},
        {.kind = BLOCK_OPAQUE, .json = SPAN("{\"type\":\"thinking\",\"thinking\":\"h\"}"), .origin = HERE},
        {.kind = BLOCK_OPAQUE, .json = SPAN("{\"type\":\"redacted_thinking\"}"), .origin = HERE},
        {.kind = BLOCK_OPAQUE, .json = SPAN("{\"type\":\"reasoning\"}"), .origin = HERE},
        {.kind = BLOCK_TEXT, .text = SPAN(" ")}};
    const struct message m[] = {
        {MESSAGE_USER, say, 1}, {MESSAGE_MODEL, thought, 5}, {MESSAGE_MODEL, thought + 1, 4}, {MESSAGE_USER, say, 1}};
    const struct model_request r = {.message = m, .n = 4, .max_tokens = 1};
    struct model_target a = target(MODEL_ANTHROPIC), o = target(MODEL_RESPONSES);
    writes(&a, &r,
           "{\"model\":\"m-1\",\"stream\":true,\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":[{"
           "\"type\":\"text\",\"text\":"
           "\"hi\"}]},{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"I\"}]},{\"role\":\"user\","
           "\"content\":["
           "{\"type\":\"text\",\"text\":\"hi\"}]}]}");
    o.reasoning = false;
    writes(&o, &r,
           "{\"model\":\"m-1\",\"stream\":true,\"store\":false,\"max_output_tokens\":1,\"input\":[{\"type\":"
           "\"message\",\"role\":\"user\","
           "\"content\":[{\"type\":\"input_text\",\"text\":\"hi\"}]},{\"type\":\"message\",\"role\":\"assistant\","
           "\"content\":["
           "{\"type\":\"output_text\",\"text\":\"I\"}]},{\"type\":\"message\",\"role\":\"user\",\"content\":[{"
           "\"type\":\"input_text\","
           "\"text\":\"hi\"}]}]}");
}

/* ---- what gets none ---- */

static void refuses(const struct model_target *t, const struct model_privacy *p, const struct model_request *r,
                    size_t max, const char *why)
{
    struct dynbuf out;
    struct err e = {""};
    dynbuf_init(&out, max);
    assert_int_equal(request_write(t, p, r, &out, &e), -1);
    if (strstr(e.text, why) == NULL)
        print_error("%s\n", e.text);
    assert_non_null(strstr(e.text, why));
    dynbuf_free(&out);
}

/* A private conversation has no body for a model outside its list, whoever asks for one. */
static void privacy(void **state)
{
    const struct span other = SPAN("other"), mine = SPAN("one");
    struct model_request r = request(NULL);
    for (enum model_protocol p = MODEL_ANTHROPIC; p <= MODEL_RESPONSES; p++) {
        struct model_target t = target(p);
        struct dynbuf out;
        refuses(&t, &(struct model_privacy){0}, &r, REQUEST_MAX, "is private");
        refuses(&t, &(struct model_privacy){WHO_LISTED, &other, 1}, &r, REQUEST_MAX, "is private");
        dynbuf_init(&out, REQUEST_MAX);
        assert_int_equal(request_write(&t, &(struct model_privacy){WHO_LISTED, &mine, 1}, &r, &out, NULL), 0);
        dynbuf_free(&out);
    }
}

static void what_is_not_sent(void **state)
{
    struct model_target t = target(MODEL_CHAT), none = target(MODEL_NONE), nowhere = t;
    struct model_request r = request(NULL);
    const struct block blank[] = {{.kind = BLOCK_TEXT, .text = SPAN("\n")}};
    const struct message nothing[] = {{MESSAGE_USER, blank, 1}};
    const struct model_tool bad[][2] = {{{SPAN("a b"), SPAN(""), SPAN(SCHEMA)}},
                                        {{SPAN("a"), SPAN(""), SPAN("{\"type\":\"string\"}")}},
                                        {{SPAN("a"), SPAN(""), SPAN("{} {}")}},
                                        {{SPAN("a"), SPAN(""), SPAN(SCHEMA)}, {SPAN("a"), SPAN(""), SPAN(SCHEMA)}}};
    static const char *const why[] = {"letters, digits", "type object", "type object", "another has its name"};
    nowhere.origin.endpoint = SPAN_NONE;
    refuses(&none, &all, &r, REQUEST_MAX, "no protocol");
    refuses(&nowhere, &all, &r, REQUEST_MAX, "no protocol");
    refuses(&t, &all, &r, 500, "larger than 500 bytes");
    r.max_tokens = 0;
    refuses(&t, &all, &r, REQUEST_MAX, "of no tokens");
    r.max_tokens = 1;
    r.n = 2;
    refuses(&t, &all, &r, REQUEST_MAX, "nobody says anything after the model");
    r.message = nothing;
    r.n = 1;
    refuses(&t, &all, &r, REQUEST_MAX, "says nothing");
    r = request(NULL);
    for (size_t i = 0; i < 4; i++) {
        r.tool = bad[i];
        r.ntools = i == 3 ? 2 : 1;
        refuses(&t, &all, &r, REQUEST_MAX, why[i]);
    }
}

/* An image that fits by itself and not in the body: nothing is said in its place, the body is refused. */
static void a_body_that_is_too_large(void **state)
{
    static char big[4 * 1024 * 1024];
    struct block many[9];
    struct message m = {MESSAGE_USER, many, 9};
    struct model_target t = target(MODEL_CHAT);
    struct model_request r = {.message = &m, .n = 1, .max_tokens = 1};
    memset(big, 'x', sizeof(big));
    for (size_t i = 0; i < 9; i++)
        many[i] = (struct block){.kind = BLOCK_TEXT, .text = span_of(big, sizeof(big))};
    refuses(&t, &all, &r, REQUEST_MAX, "larger than 33554432 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thought_without_an_end),
        cmocka_unit_test(anthropic),
        cmocka_unit_test(chat),
        cmocka_unit_test(responses),
        cmocka_unit_test(privacy),
        cmocka_unit_test(what_is_not_sent),
        cmocka_unit_test(a_body_that_is_too_large),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
