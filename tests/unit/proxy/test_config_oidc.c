/* The provider in countersign.yaml: what is taken, and what is refused (E26). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy/parent/config/config.h"

#define OIDC_OF(issuer, secret, authorization, token)                                                                \
    "issuer: \"" issuer "\", client_id: c, client_secret: " secret ", authorization: \"" authorization               \
    "\", token: \"" token "\""
#define OIDC        OIDC_OF("https://a.example", "x", "https://a.example/auth?x=y", "https://a.example:8443/t")
#define NAMED(text) "version: 1\ndesk: { http: \"127.0.0.1:1\", name: desk.example, oidc: { " text " } }\n"

static char dir[] = "/tmp/countersign-config-XXXXXX", path[64];

static struct config *load(const char *text, struct err *e)
{
    struct config_args a = {.config = path, .state_dir = "/tmp/state", .data_dir = "/tmp/data"};
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return config_load(&a, e);
}

static int set_up(void **state)
{
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/c.yaml", dir);
    return 0;
}

static int tear_down(void **state)
{
    unlink(path);
    return rmdir(dir);
}

static void it_is_read(void **state)
{
    struct err e;
    struct config *c = load(NAMED(OIDC ", claim: email"), &e);
    if (c == NULL)
        fail_msg("%s", e.text);
    assert_string_equal(c->oidc.issuer, "https://a.example");
    assert_string_equal(c->oidc.client, "c");
    assert_string_equal(c->oidc.secret, "x");
    assert_string_equal(c->oidc.authorization, "https://a.example/auth?x=y");
    assert_string_equal(c->oidc.token, "https://a.example:8443/t");
    assert_string_equal(c->oidc.name, "your organisation");
    assert_int_equal(c->oidc.claim, OIDC_EMAIL);
    config_free(&c);
    c = load(NAMED(OIDC ", claim: sub, name: Example Org"), &e);
    assert_non_null(c);
    assert_string_equal(c->oidc.name, "Example Org");
    config_free(&c);
    c = load("version: 1\n", &e);
    assert_non_null(c);
    assert_int_equal(c->oidc.claim, OIDC_NONE);
    assert_string_equal(c->oidc.issuer, "");
    config_free(&c);
}

static void what_is_not_understood_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"version: 1\ndesk: { http: \"127.0.0.1:1\", oidc: { " OIDC ", claim: sub } }\n",
         "where the page has a name"},
        {NAMED(OIDC ", claim: name"), "claim"},
        {NAMED(OIDC), "claim"},
        {NAMED("claim: sub"), "issuer"},
        {NAMED(OIDC ", claim: sub, name: \"\""), "empty"},
        {NAMED(OIDC ", claim: sub, name: an organisation whose name is long indeed"), "1 to 40"},
        {NAMED(OIDC_OF("http://a.example", "x", "https://a.example/a", "https://a.example/t") ", claim: sub"),
         "HOST"},
        {NAMED(OIDC_OF("https://a.example?x", "x", "https://a.example/a", "https://a.example/t") ", claim: sub"),
         "HOST"},
        {NAMED(OIDC_OF("https://a.example", "x", "http://a.example/a", "https://a.example/t") ", claim: sub"),
         "HOST"},
        {NAMED(OIDC_OF("https://a.example", "x", "https://a.example/a#f", "https://a.example/t") ", claim: sub"),
         "HOST"},
        {NAMED(OIDC_OF("https://a.example", "x", "https://a.example/a b", "https://a.example/t") ", claim: sub"),
         "HOST"},
        {NAMED(OIDC_OF("https://a.example", "x", "https://a.example/a", "https://u@a.example/t") ", claim: sub"),
         "HOST"},
        {NAMED(OIDC_OF("https://a.example", "x", "https://a.example/a", "https://a.example:0/t") ", claim: sub"),
         "HOST"},
        {NAMED(OIDC_OF("https://a.example", "x", "https://a.example/a", "https://a.example/t?x") ", claim: sub"),
         "HOST"},
        {NAMED(OIDC_OF("https://a.example", "x", "https://a.example/a", "https:///t") ", claim: sub"), "HOST"},
        {NAMED(OIDC_OF("https://a.example", "x/y", "https://a.example/a", "https://a.example/t") ", claim: sub"),
         "never the secret itself"},
        {NAMED(OIDC_OF("https://a.example", ".x", "https://a.example/a", "https://a.example/t") ", claim: sub"),
         "never the secret itself"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err e = {{0}};
        struct config *c = load(rows[i].text, &e);
        if (c != NULL)
            fail_msg("taken: %s", rows[i].text);
        if (strstr(e.text, rows[i].why) == NULL)
            fail_msg("%s\n  says: %s\n  want: %s", rows[i].text, e.text, rows[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_read),
                                       cmocka_unit_test(what_is_not_understood_is_refused)};
    return cmocka_run_group_tests_name("oidc in the configuration", tests, set_up, tear_down);
}
