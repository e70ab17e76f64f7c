/* The file of MCP servers. */
#include "tests/kit.h"

#include "broker/mcp/table/table.h"

static struct mcp_table table;
static struct arena arena;

static const char two[] = "version: 1\nservers:\n  files:\n    command: [node, /mnt/x.js, /workspace]\n"
                          "    read: [read_file]\n    timeout: 30s\n  files-2: { command: server, env: { A_KEY: "
                          "\"{lease:keys}\", A_SECRET: \"{secret:keys}\", PLACE: here } }\n"
                          "  web: { url: \"https://tools.example/mcp\", lease: tools, start: 2m }\n";

static int setup(void **state)
{
    struct err e = {""};
    arena_init(&arena, MCP_TABLE_ARENA_MAX);
    if (mcp_table_read("tools.yaml", span_str(two), &arena, &table, &e) != 0)
        print_error("%s\n", e.text);
    return table.n == 3 ? 0 : -1;
}

static int teardown(void **state)
{
    arena_free(&arena);
    return 0;
}

static void servers_are_read(void **state)
{
    const struct mcp_server *s = &table.server[0];
    assert_true(span_eq(s->name, SPAN("files")) && s->words == 3 && span_eq(s->word[2], SPAN("/workspace")));
    assert_int_equal(s->timeout_ms, 30 * 1000);
    assert_int_equal(table.server[1].timeout_ms, 300 * 1000);
    assert_int_equal(table.server[1].start_ms, 60 * 1000);
    assert_int_equal(table.server[2].start_ms, 120 * 1000);
    assert_int_equal(table.server[1].words, 1);
}

static void places_are_read(void **state)
{
    const struct mcp_server *s = &table.server[1], *web = &table.server[2];
    const struct mcp_variable *v = s->variable;
    assert_int_equal(s->variables, 3);
    assert_true(v[0].is == MCP_LEASE && span_eq(v[0].name, SPAN("A_KEY")) && span_eq(v[0].value, SPAN("keys")));
    assert_true(v[1].is == MCP_SECRET && span_eq(v[1].value, SPAN("keys")));
    assert_true(v[2].is == MCP_TEXT && span_eq(v[2].value, SPAN("here")));
    assert_true(web->words == 0 && span_eq(web->url, SPAN("https://tools.example/mcp")) &&
                span_eq(web->lease, SPAN("tools")));
}

static void a_tool_is_one_servers(void **state)
{
    assert_ptr_equal(mcp_server_of(&table, SPAN("files__read_file")), &table.server[0]);
    assert_ptr_equal(mcp_server_of(&table, SPAN("files-2__read_file")), &table.server[1]);
    assert_null(mcp_server_of(&table, SPAN("files_read")));
    assert_null(mcp_server_of(&table, SPAN("read_file")));
}

/* Only the operator can say that a tool only reads, and the server can take that back. */
static void a_class_is_only_tightened_by_the_server(void **state)
{
    struct mcp_tool tool = {.own = SPAN("read_file")};
    assert_int_equal(mcp_class(&table.server[0], &tool), CALL_READ);
    assert_int_equal(mcp_class(&table.server[1], &tool), CALL_UNSAFE);
    tool.writes = true;
    assert_int_equal(mcp_class(&table.server[0], &tool), CALL_UNSAFE);
    tool = (struct mcp_tool){.own = SPAN("write_file")};
    assert_int_equal(mcp_class(&table.server[0], &tool), CALL_UNSAFE);
}

static void what_is_none_is_refused(void **state)
{
    static const char *const bad[] = {"version: 1\nservers: {}\n",
                                      "version: 2\nservers: { a: { command: x } }\n",
                                      "version: 1\nservers: { A: { command: x } }\n",
                                      "version: 1\nservers: { a_b: { command: x } }\n",
                                      "version: 1\nservers: { abcdefghijklmnopq: { command: x } }\n",
                                      "version: 1\nservers: { a: { read: x } }\n",
                                      "version: 1\nservers: { a: { command: x, env: y } }\n",
                                      "version: 1\nservers: { a: { command: x, timeout: 2h } }\n",
                                      "version: 1\nservers: { a: { command: x, url: \"https://a.example/\" } }\n",
                                      "version: 1\nservers: { a: { command: x, lease: y } }\n",
                                      "version: 1\nservers: { a: { url: \"https://a.example/\", env: { A: b } } }\n",
                                      "version: 1\nservers: { a: { url: \"ftp://a.example/\" } }\n",
                                      "version: 1\nservers: { a: { url: \"https://a.example\" } }\n",
                                      "version: 1\nservers: { a: { url: \"https://me@a.example/\" } }\n",
                                      "version: 1\nservers: { a: { command: x, env: { A: \"{lease:}\" } } }\n",
                                      "version: 1\nservers: { a: { command: x, env: { A: \"{lease:yx\" } } }\n",
                                      "version: 1\nservers: { a: { command: x, env: { A: \"x{lease:y}\" } } }\n",
                                      "version: 1\nservers: { a: { command: x, env: { A: \"{lease:y}x\" } } }\n",
                                      "version: 1\nservers: { a: { command: x, env: { 1A: y } } }\n",
                                      "version: 1\nservers: { a: { command: x, env: { A=B: y } } }\n",
                                      "version: 1\nservers: { a: {command: x}, b: {command: x}, c: {command: x}, d: "
                                      "{command: x}, e: {command: x} }\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct mcp_table t;
        struct arena a;
        struct err e = {""};
        arena_init(&a, MCP_TABLE_ARENA_MAX);
        if (mcp_table_read("tools.yaml", span_str(bad[i]), &a, &t, &e) == 0)
            fail_msg("%s", bad[i]);
        assert_true(t.n == 0 && e.text[0] != '\0');
        arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(servers_are_read), cmocka_unit_test(places_are_read),
                                       cmocka_unit_test(a_tool_is_one_servers),
                                       cmocka_unit_test(a_class_is_only_tightened_by_the_server),
                                       cmocka_unit_test(what_is_none_is_refused)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
