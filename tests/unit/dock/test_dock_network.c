/* What a create says of the network: every member in every form is taken for what it says, or refused. */
#include "tests/kit.h"

#include "proxy/dock/parse/network.h"

static struct arena arena;
static struct network got;
static const char *words;

static unsigned reads(const char *body)
{
    arena_free(&arena);
    arena_init(&arena, 1024 * 1024);
    const struct json *j = json_parse(span_str(body), &arena);
    assert_non_null(j);
    words = NULL;
    unsigned status = network_read(j, &got, &words);
    assert_true((status == 0) == (words == NULL));
    return status;
}

static unsigned member(const char *name, const char *value)
{
    char body[256];
    (void)snprintf(body, sizeof(body), "{\"network\":{\"%s\":%s}}", name, value);
    return reads(body);
}

static void nothing_is_said(void **state)
{
    static const char *const bodies[] = {"{}",
                                         "{\"network\":null,\"allow_internet_access\":null}",
                                         "{\"network\":{},\"allow_internet_access\":true}",
                                         "{\"network\":{\"allowOut\":[],\"denyOut\":[],\"rules\":{}}}",
                                         "{\"network\":{\"allowOut\":null,\"denyOut\":null,\"rules\":null,"
                                         "\"egressProxy\":null,\"allowPublicTraffic\":null,\"maskRequestHost\":null,"
                                         "\"httpsPorts\":null}}",
                                         "{\"network\":{\"rules\":{\"api.test\":[],\"b.test\":[{}]}}}"};
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        assert_int_equal(reads(bodies[i]), 0);
        assert_true(!got.alone && !got.allow && !got.deny);
    }
}

static void what_is_said_is_had(void **state)
{
    assert_int_equal(reads("{\"allow_internet_access\":false,\"network\":{\"allowOut\":[\"api.test\"]}}"), 0);
    assert_true(got.alone && !got.allow && !got.deny);
    assert_int_equal(member("denyOut", "[\"10.0.0.0/8\",\"0.0.0.0/0\"]"), 0);
    assert_true(got.alone && !got.allow && !got.deny);
    assert_int_equal(reads("{\"network\":{\"allowOut\":[\"api.test\"],\"denyOut\":[\"0.0.0.0/0\"]}}"), 0);
    assert_true(!got.alone && got.allow->count == 1 && got.deny->count == 1);
    assert_int_equal(member("allowOut", "[\"*\"]"), 501);
    assert_int_equal(member("rules", "{\"api.test\":[{\"transform\":{}}]}"), 501);
    assert_int_equal(member("rules", "{\"api.test\":null}"), 501);
}

static void another_form_is_never_nothing_said(void **state)
{
    static const char *const values[] = {"null",      "false", "true",   "0",  "\"\"",
                                         "\"false\"", "[]",    "[null]", "{}", "[[]]"};
    /* Of each name, what the values are answered with. */
    static const struct {
        const char *name;
        unsigned status[sizeof(values) / sizeof(values[0])];
    } of[] = {{"allowOut", {0, 400, 400, 400, 400, 400, 0, 400, 400, 400}},
              {"denyOut", {0, 400, 400, 400, 400, 400, 0, 400, 400, 400}},
              {"rules", {0, 400, 400, 400, 400, 400, 400, 400, 0, 400}},
              {"egressProxy", {0, 501, 501, 501, 501, 501, 501, 501, 501, 501}},
              {"allowPublicTraffic", {0, 501, 501, 501, 501, 501, 501, 501, 501, 501}},
              {"maskRequestHost", {0, 501, 501, 501, 501, 501, 501, 501, 501, 501}},
              {"httpsPorts", {0, 501, 501, 501, 501, 501, 501, 501, 501, 501}},
              {"allow_internet_access", {400, 400, 400, 400, 400, 400, 400, 400, 400, 400}},
              {"allowInternetAccess", {400, 400, 400, 400, 400, 400, 400, 400, 400, 400}},
              {"allowout", {400, 400, 400, 400, 400, 400, 400, 400, 400, 400}},
              {"", {400, 400, 400, 400, 400, 400, 400, 400, 400, 400}}};
    static const unsigned network[] = {0, 400, 400, 400, 400, 400, 400, 400, 0, 400},
                          internet[] = {0, 0, 0, 400, 400, 400, 400, 400, 400, 400};
    char body[256];
    for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
        for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
            assert_int_equal(member(of[i].name, values[v]), of[i].status[v]);
        (void)snprintf(body, sizeof(body), "{\"network\":%s}", values[v]);
        assert_int_equal(reads(body), network[v]);
        (void)snprintf(body, sizeof(body), "{\"allow_internet_access\":%s}", values[v]);
        assert_int_equal(reads(body), internet[v]);
    }
    assert_int_equal(member("denyOut", "[\"0.0.0.0/0\",null]"), 400);
    assert_int_equal(reads("{\"allow_internet_access\":false,\"network\":{\"allowOut\":5}}"), 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_said), cmocka_unit_test(what_is_said_is_had),
                                       cmocka_unit_test(another_form_is_never_nothing_said)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(&arena);
    return failed;
}
