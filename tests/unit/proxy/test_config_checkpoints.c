/* checkpoints: of the configuration: where they are kept as well, and whose name nobody else has. */
#include <stdlib.h>
#include <unistd.h>

#include "proxy/parent/config/config.h"
#include "tests/kit.h"

static struct config *load(const char *sandbox, const char *s3, struct err *e)
{
    char text[2048], path[] = "/tmp/cs-config-XXXXXX";
    struct config_args a = {.config = path, .state_dir = "/tmp/state", .data_dir = "/tmp/data"};
    int fd = mkstemp(path),
        n = snprintf(text, sizeof(text),
                     "version: 1\nlisteners: [{ name: x, http: 127.0.0.1:3128, identity: { "
                     "sandbox: %s } }]\n%s%s%s",
                     sandbox, s3 ? "checkpoints: { s3: { " : "", s3 ? s3 : "", s3 ? " } }\n" : "");
    assert_true(fd >= 0 && n > 0 && (size_t)n < sizeof(text));
    assert_int_equal(write(fd, text, (size_t)n), n);
    close(fd);
    struct config *c = config_load(&a, e);
    (void)unlink(path);
    return c;
}

static void a_store_is_an_address_and_plain_names(void **state)
{
    static const struct {
        const char *s3, *said;
    } bad[] = {
        {"bucket: b, credential: c", "endpoint"},
        {"endpoint: \"https://s3.test\", credential: c", "bucket"},
        {"endpoint: \"https://s3.test\", bucket: b", "credential"},
        {"endpoint: \"http://s3.test\", bucket: b, credential: c", "https://HOST"},
        {"endpoint: \"https://\", bucket: b, credential: c", "https://HOST"},
        {"endpoint: \"https://s3.test/path\", bucket: b, credential: c", "https://HOST"},
        {"endpoint: \"https://me@s3.test\", bucket: b, credential: c", "https://HOST"},
        {"endpoint: \"https://s3.test\", bucket: a/b, credential: c", "bucket's name"},
        {"endpoint: \"https://s3.test\", bucket: .., credential: c", "bucket's name"},
        {"endpoint: \"https://s3.test\", bucket: b, prefix: a/../b, credential: c", "a prefix has"},
        {"endpoint: \"https://s3.test\", bucket: b, prefix: /a, credential: c", "a prefix has"},
        {"endpoint: \"https://s3.test\", bucket: b, prefix: \"a?b\", credential: c", "a prefix has"},
        {"endpoint: \"https://s3.test\", bucket: b, prefix: a/, credential: c", "a prefix has"},
    };
    struct err e;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct config *c = load("box", bad[i].s3, &e);
        if (c != NULL || strstr(e.text, bad[i].said) == NULL)
            fail_msg("%s: %s", bad[i].s3, c != NULL ? "taken" : e.text);
    }
    struct config *c =
        load("box", "endpoint: \"https://s3.test:9000\", bucket: my.own-1, prefix: a/b_c, credential: keys", &e);
    if (c == NULL)
        fail_msg("%s", e.text);
    assert_string_equal(c->away.endpoint, "https://s3.test:9000");
    assert_string_equal(c->away.bucket, "my.own-1");
    assert_string_equal(c->away.prefix, "a/b_c");
    assert_string_equal(c->away.credential, "keys");
    config_free(&c);
}

static void no_listener_is_of_its_sandbox(void **state)
{
    struct err e;
    assert_null(load("checkpoint-store", NULL, &e));
    assert_non_null(strstr(e.text, "choose another name"));
    struct config *c = load("box", NULL, &e);
    assert_non_null(c);
    assert_string_equal(c->away.endpoint, "");
    config_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_is_an_address_and_plain_names),
        cmocka_unit_test(no_listener_is_of_its_sandbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
