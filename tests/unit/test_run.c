/* run: the environment table and what a caller may lend. Attacks G1, G17, G28. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sandbox-shim/env.h"

static const char *printed(struct dynbuf *b, enum env_format f, const char *url, const char *bundle)
{
    struct err e;

    dynbuf_init(b, 64 * 1024);
    assert_int_equal(env_print(b, f, span_str(url), bundle, "/ca.crt", &e), 0);
    assert_int_equal(dynbuf_add_byte(b, 0), 0);
    return (const char *)b->p;
}

static void env_names_every_ecosystem_once(void **state)
{
    static const char *const must[] = {"HTTP_PROXY",
                                       "http_proxy",
                                       "HTTPS_PROXY",
                                       "https_proxy",
                                       "ALL_PROXY",
                                       "all_proxy",
                                       "NO_PROXY",
                                       "no_proxy",
                                       "grpc_proxy",
                                       "NODE_USE_ENV_PROXY",
                                       "JAVA_TOOL_OPTIONS",
                                       "npm_config_proxy",
                                       "npm_config_https_proxy",
                                       "SSL_CERT_FILE",
                                       "REQUESTS_CA_BUNDLE",
                                       "CURL_CA_BUNDLE",
                                       "GIT_SSL_CAINFO",
                                       "AWS_CA_BUNDLE",
                                       "PIP_CERT",
                                       "CARGO_HTTP_CAINFO",
                                       "npm_config_cafile",
                                       "HTTPLIB2_CA_CERTS",
                                       "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
                                       "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
                                       "NIX_SSL_CERT_FILE",
                                       "BUNDLE_SSL_CA_CERT",
                                       "NODE_EXTRA_CA_CERTS",
                                       "DENO_CERT",
                                       "DENO_TLS_CA_STORE",
                                       NULL};

    for (const char *const *p = must; *p; p++)
        assert_true(env_is_ours(*p));
    for (const struct env_row *a = env_rows; a->name; a++)
        for (const struct env_row *b = a + 1; b->name; b++)
            assert_string_not_equal(a->name, b->name);
}

static void env_shell_is_quoted(void **state)
{
    struct dynbuf b;
    const char *text = printed(&b, ENV_SHELL, "http://u:p'$(id)@127.0.0.1:3128", "/a b/bundle.crt");

    assert_non_null(strstr(text, "export HTTP_PROXY='http://u:p'\\''$(id)@127.0.0.1:3128'\n"));
    assert_non_null(strstr(text, "export SSL_CERT_FILE='/a b/bundle.crt'\n"));
    assert_non_null(strstr(text, "export NODE_EXTRA_CA_CERTS='/ca.crt'\n"));
    assert_non_null(strstr(text, "export CLOUDSDK_PROXY_USERNAME='u'\n"));
    assert_non_null(strstr(text, "export CLOUDSDK_PROXY_ADDRESS='127.0.0.1'\n"));
    dynbuf_free(&b);
}

static void env_other_formats(void **state)
{
    struct dynbuf b;
    const char *text = printed(&b, ENV_DOCKER, "http://127.0.0.1:3128", "/b.crt");

    assert_int_equal(strncmp(text, "HTTP_PROXY=http://127.0.0.1:3128\n", 33), 0);
    assert_null(strstr(text, "CLOUDSDK_PROXY_USERNAME")); /* this URL has none */
    dynbuf_free(&b);
    text = printed(&b, ENV_GITHUB, "http://127.0.0.1:3128", "/b.crt");
    assert_non_null(strstr(text, "\nGIT_SSL_CAINFO=/b.crt\n"));
    dynbuf_free(&b);
    text = printed(&b, ENV_COMPOSE, "http://u:a$b'c@h:1", "/b.crt");
    assert_non_null(strstr(text, "environment:\n  HTTP_PROXY: 'http://u:a$$b''c@h:1'\n"));
    dynbuf_free(&b);
    text = printed(&b, ENV_KUBERNETES, "http://h:1", "/b.crt");
    assert_non_null(strstr(text, "env:\n  - name: HTTP_PROXY\n    value: 'http://h:1'\n"));
    dynbuf_free(&b);
    assert_int_equal(env_format_named("github"), ENV_GITHUB);
    assert_int_equal(env_format_named("toml"), ENV_FORMAT_BAD);
}

static void env_refuses_what_no_line_can_carry(void **state)
{
    static const char *const bad[] = {"127.0.0.1:3128",
                                      "https://h:1",
                                      "http://h",
                                      "http://h:0",
                                      "http://h:65536",
                                      "http://h:1/x",
                                      "http://:1",
                                      "http://h:1\nX=1",
                                      "http://u@:1",
                                      "socks5://h:1",
                                      "http://h:1 y",
                                      "",
                                      NULL};
    struct dynbuf b;
    struct err e;

    dynbuf_init(&b, 64 * 1024);
    for (const char *const *p = bad; *p; p++)
        assert_int_equal(env_print(&b, ENV_DOCKER, span_str(*p), "/b", "/c", &e), -1);
    assert_int_equal(env_print(&b, ENV_DOCKER, SPAN("http://h:1"), "/b\nLD_PRELOAD=x", "/c", &e), -1);
    assert_int_equal(env_print(&b, ENV_FORMAT_BAD, SPAN("http://h:1"), "/b", "/c", &e), -1);
    dynbuf_free(&b);
    dynbuf_init(&b, 8);
    assert_int_equal(env_print(&b, ENV_DOCKER, SPAN("http://h:1"), "/b", "/c", &e), -1);
    dynbuf_free(&b);
}

/* G1, G17, G28: names are compared whole; nothing passes by a pattern. */
static void env_passes_by_allow_list_only(void **state)
{
    static const char *const never[] = {"GITHUB_TOKEN",
                                        "api_key",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "SSH_AUTH_SOCK",
                                        "LD_PRELOAD",
                                        "LD_AUDIT",
                                        "GCONV_PATH",
                                        "OPENSSL_CONF",
                                        "NODE_OPTIONS",
                                        "PYTHONPATH",
                                        "GIT_CONFIG_GLOBAL",
                                        "PATH",
                                        "HOME",
                                        "BASH_FUNC_ls%%",
                                        "LC_TOKEN",
                                        "LC_",
                                        "LC_ALL_X",
                                        "lang",
                                        "TERM\n",
                                        "XDG_RUNTIME_DIR",
                                        "DISPLAY",
                                        "",
                                        NULL};
    char long_value[258];

    for (const char *const *p = never; *p; p++)
        assert_false(env_may_pass(*p, "x"));
    assert_true(env_may_pass("TERM", "xterm-256color"));
    assert_true(env_may_pass("LC_ALL", "C.UTF-8"));
    assert_false(env_may_pass("TERM", ""));
    assert_false(env_may_pass("TERM", "x\nGITHUB_TOKEN=y"));
    assert_false(env_may_pass("LANG", "\x1b]52;c;x"));
    memset(long_value, 'a', sizeof(long_value));
    long_value[257] = '\0';
    assert_false(env_may_pass("TERM", long_value));
    long_value[256] = '\0';
    assert_true(env_may_pass("TERM", long_value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(env_names_every_ecosystem_once),
        cmocka_unit_test(env_shell_is_quoted),
        cmocka_unit_test(env_other_formats),
        cmocka_unit_test(env_refuses_what_no_line_can_carry),
        cmocka_unit_test(env_passes_by_allow_list_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
