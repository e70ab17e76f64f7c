/* store: of the broker: a database is said without its password, which is in a file that nobody else reads; otlp: a
 * collector, without a key. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/parent/config/config.h"
#include "tests/kit.h"

static char dir[] = "/tmp/cs-config-XXXXXX";

static void put(const char *name, const char *text, mode_t mode)
{
    char to[128];
    snprintf(to, sizeof(to), "%s/%s", dir, name);
    FILE *f = fopen(to, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(to, mode), 0);
}

#define LONG "a-label-of-thirty-two-letters-xx."

static struct config *load(const char *store, struct err *e)
{
    char text[1024], path[128];
    struct config_args a = {.config = path, .state_dir = "/tmp/state", .data_dir = "/tmp/data"};
    snprintf(text, sizeof(text),
             "version: 1\nlisteners: [{ name: x, http: 127.0.0.1:3128, identity: token }]\n"
             "broker: { http: \"127.0.0.1:0\", models: m.yaml, %s }\n",
             store);
    snprintf(path, sizeof(path), "%s/countersign.yaml", dir);
    put("countersign.yaml", text, 0600);
    return config_load(&a, e);
}

static void a_database_and_its_password(void **state)
{
    static const struct {
        const char *store, *said;
    } bad[] = {
        {"store: \"postgresql://me:word@127.0.0.1/b\"", "store_password:"},
        {"store: \"postgresql://me@192.0.2.7/b\"", "TLS"},
        {"store_password: word", "goes with"},
        {"otlp: collector.example/v1/traces", "otlp: is"},
        {"otlp: \"https://collector.example\"", "otlp: is"},
        {"otlp: \"https://me:key@collector.example/v1/traces\"", "otlp: is"},
        {"otlp: \"https://collector.example/v1/traces?key=1\"", "otlp: is"},
        {"otlp: \"https://collector.example/v1/tra ces\"", "otlp: is"},
        {"otlp: \"https://[::1]:4318/v1/traces\"", "otlp: is"}, /* the broker asks nobody like this */
        {"otlp: \"https:///v1/traces\"", "otlp: is"},
        {"otlp: \"https://collector.example:0/v1/traces\"", "otlp: is"},
        {"otlp: \"https://collector.example:99999/v1/traces\"", "otlp: is"},
        {"otlp: \"https://collector.example:/v1/traces\"", "otlp: is"},
        {"otlp: \"https://collector.example:4318:1/v1/traces\"", "otlp: is"},
        {"otlp: \"https://" LONG LONG LONG LONG LONG LONG LONG LONG "/v1/traces\"", "otlp: is"},
        {"store: \"postgresql://me@127.0.0.1/b\", store_password: none", "cannot be read"},
        {"store: \"postgresql://me@127.0.0.1/b\", store_password: open", "its owner alone"},
        {"store: \"postgresql://me@127.0.0.1/b\", store_password: link", "its owner alone"},
    };
    char link[128];
    struct err e;
    assert_non_null(mkdtemp(dir));
    put("m.yaml", "", 0600);
    put("word", "secret\n", 0600);
    put("open", "secret\n", 0640);
    snprintf(link, sizeof(link), "%s/link", dir);
    assert_int_equal(symlink("word", link), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct config *c = load(bad[i].store, &e);
        if (c != NULL || strstr(e.text, bad[i].said) == NULL)
            fail_msg("%s: %s", bad[i].store, c != NULL ? "taken" : e.text);
    }
    struct config *c = load("store: \"postgresql://me@127.0.0.1/b\", store_password: word", &e);
    if (c == NULL)
        fail_msg("%s", e.text);
    assert_string_equal(c->broker.store, "postgresql://me@127.0.0.1/b");
    assert_non_null(strstr(c->broker.password, "/word"));
    config_free(&c);
    c = load("store: \"sqlite:broker.db\"", &e);
    assert_true(c != NULL && c->broker.store[0] == '\0');
    config_free(&c);
    static const char *const files[] = {"m.yaml", "word", "open", "link", "countersign.yaml"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(link, sizeof(link), "%s/%s", dir, files[i]);
        assert_int_equal(unlink(link), 0);
    }
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_database_and_its_password)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
