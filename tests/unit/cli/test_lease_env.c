/* Where a lease is put: the table's rows, for a credential as the gateway tells of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sandbox-shim/lease_env.h"

#define TABLE                                                                                                        \
    "# set\tvariable\tvalue\nforge\tTOKEN\t{lease}\nforge\tSECRET\t{secret}\nforge\tON\ttrue\n"                      \
    "forge\tgit:http.{url}.extraHeader\tAuthorization: Basic {basic}\nforge\tnpm://{site}:_authToken\t{lease}\n"     \
    "forge\tODD\t{other}\nforge\tOPEN\t{lease\nother\tALSO\t<{lease}>\n"                                             \
    "whole\tREGION\t{env:CS_REGION}\nwhole\tSHELL_LIKE\t{env:CS_ODD}\nwhole\tNONE\t{env:CS_UNSET}\n"                 \
    "whole\tLONG\t{env:A23456789012345678901234567890123456789012345678901234567890123456789}\nwhole\tKEY\t{lease}"  \
    "\n"
#define CREDENTIAL(more)                                                                                             \
    "{\"credentials\":[{\"name\":\"x\",\"lease\":\"none\"},{\"name\":\"api\",\"lease\":\"forge\","                   \
    "\"places\":[\"https://h.example/\",\"https://i.example:8443/a/\"]" more "}]}"

static char table[] = "/tmp/cs-lease-env-XXXXXX", got[4096];
static int refused;
static struct err e;

static int make_table(void **state)
{
    int fd = mkstemp(table);
    bool ok = fd >= 0 && write(fd, TABLE, sizeof(TABLE) - 1) == sizeof(TABLE) - 1;
    return ok && close(fd) == 0 && setenv("COUNTERSIGN_LEASE_ENV", table, 1) == 0 ? 0 : -1;
}

static int remove_table(void **state)
{
    return unlink(table);
}

static int note(void *ctx, const char *name, const char *value)
{
    size_t n = strlen(got);

    (void)snprintf(got + n, sizeof(got) - n, "%s%s=%s\n", ctx ? "" : "npm ", name, value);
    return refused;
}

static int note_npm(void *ctx, const char *name, const char *value)
{
    return note(NULL, name, value);
}

static int given(const char *answer, const char *set, const char *secret, unsigned git)
{
    struct lease_env l = {span_str(set), NULL, SPAN("lease-1"), span_str(secret), git, note, note_npm, got};
    struct arena a;

    memset(e.text, '?', sizeof(e.text) - 1);
    got[0] = '\0';
    arena_init(&a, 64 * 1024);
    l.credential = lease_env_credential(json_parse(span_str(answer), &a), SPAN("name"), SPAN("api"));
    assert_non_null(l.credential);
    int rc = lease_env_each(&l, &e);
    arena_free(&a);
    return rc;
}

static void a_row_that_names_places_stands_for_each(void **state)
{
    assert_int_equal(given(CREDENTIAL(",\"basic\":true,\"user\":\"me\""), "", "half", 0), 0);
    assert_string_equal(got, "TOKEN=lease-1\nSECRET=half\nON=true\n"
                             "GIT_CONFIG_KEY_0=http.https://h.example/.extraHeader\nGIT_CONFIG_VALUE_0=\n"
                             "GIT_CONFIG_KEY_1=http.https://h.example/.extraHeader\n"
                             "GIT_CONFIG_VALUE_1=Authorization: Basic bWU6bGVhc2UtMQ==\n"
                             "GIT_CONFIG_KEY_2=http.https://i.example:8443/a/.extraHeader\nGIT_CONFIG_VALUE_2=\n"
                             "GIT_CONFIG_KEY_3=http.https://i.example:8443/a/.extraHeader\n"
                             "GIT_CONFIG_VALUE_3=Authorization: Basic bWU6bGVhc2UtMQ==\n"
                             "npm //h.example/:_authToken=lease-1\nnpm //i.example:8443/a/:_authToken=lease-1\n"
                             "GIT_CONFIG_COUNT=4\n");
}

static void a_row_that_asks_for_what_is_not_there_is_left_out(void **state)
{
    assert_int_equal(given(CREDENTIAL(",\"basic\":false"), "", "", 0), 0);
    assert_null(strstr(got, "GIT_CONFIG"));
    assert_null(strstr(got, "SECRET"));
    assert_null(strstr(got, "ODD"));
    assert_null(strstr(got, "OPEN"));
    assert_non_null(strstr(got, "TOKEN=lease-1\n"));
}

static void settings_of_git_are_counted_on(void **state)
{
    assert_int_equal(given(CREDENTIAL(",\"basic\":true"), "", "", 3), 0);
    assert_non_null(strstr(got, "GIT_CONFIG_KEY_3="));
    assert_non_null(
        strstr(got, "GIT_CONFIG_VALUE_6=Authorization: Basic bGVhc2U6bGVhc2UtMQ==\n")); /* lease:lease-1 */
    assert_non_null(strstr(got, "GIT_CONFIG_COUNT=7\n"));
}

static void another_set_is_taken_where_it_is_named(void **state)
{
    assert_int_equal(given(CREDENTIAL(""), "other", "", 0), 0);
    assert_string_equal(got, "ALSO=<lease-1>\n");
    assert_int_equal(given(CREDENTIAL(""), "nobody's", "", 0), -1);
    refused = 7;
    assert_int_equal(given(CREDENTIAL(""), "", "", 0), 7);
    assert_string_equal(got, "TOKEN=lease-1\n");
    assert_non_null(strstr(e.text, "room"));
    refused = 0;
}

static void variables_of_the_caller_are_taken_if_they_are_plain(void **state)
{
    static const char *const odd[] = {"a b", "a;b", "$(id)", "`id`", "a\nb", "\"a\"", "\xc3\xa4", ""};

    assert_int_equal(setenv("CS_REGION", "ap-shanghai_1.x:/@", 1), 0);
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        assert_int_equal(setenv("CS_ODD", odd[i], 1), 0);
        assert_int_equal(given(CREDENTIAL(""), "whole", "", 0), 0);
        assert_string_equal(got, "REGION=ap-shanghai_1.x:/@\nKEY=lease-1\n");
    }
    assert_int_equal(unsetenv("CS_REGION"), 0);
    assert_int_equal(given(CREDENTIAL(""), "whole", "", 0), 0);
    assert_string_equal(got, "KEY=lease-1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_that_names_places_stands_for_each),
        cmocka_unit_test(a_row_that_asks_for_what_is_not_there_is_left_out),
        cmocka_unit_test(settings_of_git_are_counted_on),
        cmocka_unit_test(another_set_is_taken_where_it_is_named),
        cmocka_unit_test(variables_of_the_caller_are_taken_if_they_are_plain),
    };
    return cmocka_run_group_tests(tests, make_table, remove_table);
}
