/* run: the environment table and what a caller may lend. Attacks G1, G17, G28, G29, G30. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox-shim/env.h"
#include "sandbox-shim/plan/place.h"

static const char *printed(struct dynbuf *b, enum env_format f, const char *url, const char *bundle)
{
    struct err e;

    dynbuf_init(b, 64 * 1024);
    assert_int_equal(env_print(b, f, &(struct env_values){span_str(url), bundle, "/ca.crt", "/t.p12", false}, &e), 0);
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

    for (const char *const *p = must; *p; p++) {
        const struct env_row *r = env_rows;
        while (r->name && strcmp(r->name, *p) != 0)
            r++;
        assert_non_null(r->name);
    }
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
    text = printed(&b, ENV_DOCKER, "socks5h://ci:cst_1@h:1080", "/b.crt");
    assert_non_null(strstr(text, "\nHTTPS_PROXY=socks5h://ci:cst_1@h:1080\n"));
    assert_null(strstr(text, "npm_config_proxy")); /* it knows no SOCKS */
    assert_non_null(strstr(text, "\nCLOUDSDK_PROXY_TYPE=socks5\n"));
    dynbuf_free(&b);
    assert_int_equal(env_format_named("github"), ENV_GITHUB);
    assert_int_equal(env_format_named("toml"), ENV_FORMAT_BAD);
}

/* It takes properties, and no token in them: it would not say it. */
static void env_java(void **state)
{
    const struct {
        const char *url, *store, *want;
    } rows[] = {
        {"http://127.0.0.1:3128", "/t.p12", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 "},
        {"http://u:p@h:1", "/t.p12", "-Dhttps.proxyPort=1 "},
        {"socks5h://u:secret@h:2", "/t.p12", "=-DsocksProxyHost=h -DsocksProxyPort=2 -Djavax"},
        {"socks5h://h:2", "/a b/t.p12", "2 \"-Djavax.net.ssl.trustStore=/a b/t.p12\" -D"},
    };
    struct dynbuf b;
    struct err e;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct env_values v = {span_str(rows[i].url), "/b", "/c", rows[i].store, false};
        dynbuf_init(&b, 64 * 1024);
        assert_int_equal(env_print(&b, ENV_DOCKER, &v, &e), 0);
        assert_int_equal(dynbuf_add_byte(&b, 0), 0);
        const char *java = strstr((const char *)b.p, "JAVA_TOOL_OPTIONS=");
        assert_non_null(java);
        assert_non_null(strstr(java, rows[i].want));
        assert_non_null(strstr(java, "-Djavax.net.ssl.trustStoreType=PKCS12"));
        dynbuf_free(&b);
    }
    struct env_values v = {SPAN("http://h:1"), "/b", "/c", "/a\"b/t.p12", false};
    dynbuf_init(&b, 64 * 1024);
    assert_int_equal(env_print(&b, ENV_DOCKER, &v, &e), -1);
    dynbuf_free(&b);
}

static void env_of_a_captured_sandbox_names_no_proxy(void **state)
{
    const struct env_values v = {.bundle = "/b.crt", .ca = "/ca.crt", .truststore = "/t.p12", .captured = true};
    struct dynbuf b;
    struct err e;

    dynbuf_init(&b, 64 * 1024);
    assert_int_equal(env_print(&b, ENV_DOCKER, &v, &e), 0);
    assert_int_equal(dynbuf_add_byte(&b, 0), 0);
    const char *text = (const char *)b.p;
    assert_non_null(strstr(text, "SSL_CERT_FILE=/b.crt\n"));
    assert_non_null(strstr(text, "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=/t.p12 "));
    assert_null(strcasestr(text, "s_proxy="));
    assert_null(strcasestr(text, "no_proxy="));
    assert_null(strstr(text, "proxyHost"));
    assert_null(strstr(text, "CLOUDSDK_PROXY"));
    dynbuf_free(&b);
}

static void env_refuses_what_no_line_can_carry(void **state)
{
    static const char *const bad[] = {"127.0.0.1:3128",
                                      "ftp://h:1",
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
        assert_int_equal(
            env_print(&b, ENV_DOCKER, &(struct env_values){span_str(*p), "/b", "/c", "/t.p12", false}, &e), -1);
    assert_int_equal(env_print(&b, ENV_DOCKER,
                               &(struct env_values){SPAN("http://h:1"), "/b\nLD_PRELOAD=x", "/c", "/t.p12", false},
                               &e),
                     -1);
    assert_int_equal(
        env_print(&b, ENV_FORMAT_BAD, &(struct env_values){SPAN("http://h:1"), "/b", "/c", "/t.p12", false}, &e), -1);
    dynbuf_free(&b);
    dynbuf_init(&b, 8);
    assert_int_equal(
        env_print(&b, ENV_DOCKER, &(struct env_values){SPAN("http://h:1"), "/b", "/c", "/t.p12", false}, &e), -1);
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

static void env_may_be_set_but_for_ours(void **state)
{
    struct err e;

    assert_int_equal(env_may_set("A=", &e), 0);
    assert_int_equal(env_may_set("HTTPS_PROXYX=y", &e), 0);
    assert_int_equal(env_may_set("HTTPS_PROXY=y", &e), -1);
    assert_int_equal(env_may_set("=y", &e), -1);
    assert_int_equal(env_may_set("A", &e), -1);
}

static void place_overlap_goes_both_ways(void **state)
{
    assert_true(place_overlaps("/a", "/a"));
    assert_true(place_overlaps("/a/b", "/a"));
    assert_true(place_overlaps("/a", "/a/b"));
    assert_true(place_overlaps("/", "/a"));
    assert_true(place_overlaps("/a", "/"));
    assert_false(place_overlaps("/a", "/ab"));
    assert_false(place_overlaps("/ab/c", "/a"));
    assert_false(place_overlaps("/a/b", "/a/c"));
}

/* A directory with state/, work/, a link to state, and one that leads nowhere. */
static char *tree_make(char path[PATH_MAX])
{
    static const char *const links[][2] = {{"state", "link"}, {"nowhere", "dangling"}};
    char at[PATH_MAX];

    (void)snprintf(at, sizeof(at), "/tmp/cs-test-XXXXXX");
    assert_non_null(mkdtemp(at));
    assert_non_null(realpath(at, path));
    assert_int_equal(chdir(path), 0);
    assert_int_equal(mkdir("state", 0700) | mkdir("work", 0700) | mkdir("home", 0700), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(symlink(links[i][0], links[i][1]), 0);
    return path;
}

static void tree_remove(const char *path)
{
    assert_int_equal(unlink("link") | unlink("dangling") | rmdir("state") | rmdir("work") | rmdir("home"), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(path), 0);
}

static int check(const char *top, const char *dir, const char *state)
{
    char a[2 * PATH_MAX], b[2 * PATH_MAX], home[2 * PATH_MAX], out[PATH_MAX];
    struct err e = {""};
    int rc, fd;

    (void)snprintf(a, sizeof(a), "%s/%s", top, dir);
    (void)snprintf(b, sizeof(b), "%s/%s", top, state);
    (void)snprintf(home, sizeof(home), "%s/home", top);
    fd = place_open(a, out, &e);
    rc = fd < 0 ? -1 : place_check(out, true, b, home, &e);
    if (fd >= 0)
        close(fd);
    assert_true(rc == 0 || e.text[0] != '\0');
    return rc;
}

static void place_refuses_what_holds_secrets(void **state)
{
    char top[PATH_MAX];
    struct err e;

    tree_make(top);
    assert_int_equal(check(top, "work", "state"), 0);
    assert_int_equal(check(top, "work", "not/there/yet"), 0);
    assert_int_equal(check(top, "work", "work/not/yet"), -1); /* would be made inside later */
    assert_int_equal(check(top, "state", "state"), -1);
    assert_int_equal(check(top, "link", "state"), -1);
    assert_int_equal(check(top, "state", "link"), -1);
    assert_int_equal(check(top, "work", "dangling"), -1); /* who knows where to */
    assert_int_equal(check(top, "work", "not/../work"), -1);
    assert_int_equal(check(top, ".", "state"), -1);
    assert_int_equal(check(top, "home", "state"), -1);
    assert_int_equal(place_check("/", true, "/nonexistent", NULL, &e), -1);
    assert_int_equal(place_check("/etc", false, "/nonexistent", NULL, &e), -1);
    assert_int_equal(place_check("/opt", true, "/nonexistent", NULL, &e), -1);
    assert_int_equal(place_check("/opt", false, "/nonexistent", NULL, &e), 0);
    tree_remove(top);
}

/* G29: what a sandbox could have planted in its workspace belongs to its caller, as everything there does. */
static void place_opens_no_link(void **state)
{
    static const char *const led[] = {"link",           "work/in",          "work/in/deep",
                                      "work/in/deep/",  "work/up/state",    "./link",
                                      "work/../link/.", "work/around/work", NULL};
    char top[PATH_MAX], path[2 * PATH_MAX], out[PATH_MAX];
    struct err e;
    int fd;

    tree_make(top);
    assert_int_equal(mkdir("state/deep", 0700), 0);
    assert_int_equal(symlink("../state", "work/in") | symlink("..", "work/up") | symlink(top, "work/around"), 0);
    (void)snprintf(path, sizeof(path), "%s/work/../state//deep/.", top);
    fd = place_open(path, out, &e);
    assert_true(fd >= 0);
    close(fd);
    (void)snprintf(path, sizeof(path), "%s/state/deep", top);
    assert_string_equal(out, path);
    for (const char *const *l = led; *l; l++) {
        (void)snprintf(path, sizeof(path), "%s/%s", top, *l);
        assert_int_equal(place_open(path, out, &e), -1);
        assert_non_null(strstr(e.text, "symbolic link"));
        assert_int_equal(place_open(*l, out, &e), -1); /* from where we are */
    }
    assert_int_equal(place_open("/proc/self/cwd/work", out, &e), -1);
    (void)snprintf(path, sizeof(path), "/tmp/%s.link", strrchr(top, '/') + 1); /* where everybody may write */
    assert_int_equal(symlink(top, path), 0);
    assert_int_equal(place_open(path, out, &e), -1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(place_open("", out, &e), -1);
    assert_int_equal(unlink("work/in") | unlink("work/up") | unlink("work/around") | rmdir("state/deep"), 0);
    tree_remove(top);
}

/* A link in the root directory is the system's own, where that is so. */
static void place_follows_the_systems_own(void **state)
{
    char out[PATH_MAX], real[PATH_MAX];
    struct stat st;
    struct err e;
    int fd;

    if (stat("/", &st) != 0 || st.st_uid != 0 || (st.st_mode & 022) || !realpath("/lib", real) ||
        strcmp(real, "/lib") == 0)
        skip();
    fd = place_open("/lib", out, &e);
    assert_true(fd >= 0);
    close(fd);
    assert_string_equal(out, real);
}

/* G30: what was opened is what is mounted, whatever takes its name. */
static void place_keeps_what_it_opened(void **state)
{
    char top[PATH_MAX], path[2 * PATH_MAX], out[PATH_MAX];
    struct stat before, after;
    struct err e;
    int fd;

    tree_make(top);
    (void)snprintf(path, sizeof(path), "%s/work", top);
    assert_int_equal(stat(path, &before), 0);
    fd = place_open(path, out, &e);
    assert_true(fd >= 0);
    assert_int_equal(rename("work", "old") | symlink("state", "work"), 0);
    assert_int_equal(fstat(fd, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    close(fd);
    assert_int_equal(unlink("work") | rename("old", "work"), 0);
    tree_remove(top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(env_names_every_ecosystem_once),
        cmocka_unit_test(env_shell_is_quoted),
        cmocka_unit_test(env_other_formats),
        cmocka_unit_test(env_java),
        cmocka_unit_test(env_of_a_captured_sandbox_names_no_proxy),
        cmocka_unit_test(env_refuses_what_no_line_can_carry),
        cmocka_unit_test(env_passes_by_allow_list_only),
        cmocka_unit_test(env_may_be_set_but_for_ours),
        cmocka_unit_test(place_overlap_goes_both_ways),
        cmocka_unit_test(place_refuses_what_holds_secrets),
        cmocka_unit_test(place_opens_no_link),
        cmocka_unit_test(place_follows_the_systems_own),
        cmocka_unit_test(place_keeps_what_it_opened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
