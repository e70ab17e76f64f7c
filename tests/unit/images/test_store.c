/* Where images lie: names and digests, who holds one and who removes one; and which variables one may set. */
#include "tests/kit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox-shim/images/layout.h"
#include "sandbox-shim/images/store.h"

static char top[] = "/tmp/test_store.XXXXXX";
static const struct digest one = {{1}}, two = {{2}};
static struct err e;

static void in(const char *command)
{
    char line[1024];
    (void)snprintf(line, sizeof(line), "cd %s && { %s; }", top, command);
    if (system(line) != 0)
        fail_msg("%s", command);
}

static int begin(void **state)
{
    memcpy(top + strlen(top) - 6, "XXXXXX", 6);
    return mkdtemp(top) ? 0 : -1;
}

static int finish(void **state)
{
    char line[64];
    (void)snprintf(line, sizeof(line), "rm -rf %s", top);
    return system(line);
}

static struct image_store store(void)
{
    struct image_store s;
    if (images_open(&s, top, true, &e) != 0)
        fail_msg("%s", e.text);
    return s;
}

static void import(const struct digest *d, const char *name, bool was_known)
{
    struct image_store s = store();
    bool known;
    int fd = images_stage(&s, &e);
    assert_true(fd >= 0);
    assert_int_equal(mkdirat(fd, "root", 0755), 0);
    close(fd);
    in("echo '{}' > images/.new/image.json");
    if (images_commit(&s, d, span_str(name), &known, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(known, was_known);
    images_close(&s);
}

static int count(void *ctx, struct span name, const struct digest *d, int64_t since, struct span says)
{
    ++*(int *)ctx;
    assert_true(since > 0 && span_eq(says, SPAN("{}\n")));
    return 0;
}

static void has(int names, unsigned images)
{
    struct image_store s = store();
    char line[64];
    int n = 0;
    assert_int_equal(images_each(&s, count, &n, &e), 0);
    assert_int_equal(n, names);
    images_close(&s);
    (void)snprintf(line, sizeof(line), "test $(ls images | grep -c '^[0-9a-f]*$') = %u", images);
    in(line);
}

static void a_name_means_a_digest(void **state)
{
    struct digest d;
    assert_int_equal(image_find(top, SPAN("app"), &d, &e), 0); /* nobody ever imported one */
    import(&one, "app", false);
    assert_int_equal(image_find(top, SPAN("app"), &d, &e), 1);
    assert_memory_equal(&d, &one, sizeof(d));
    assert_int_equal(image_find(top, SPAN("../app"), &d, &e), 0);
    import(&one, "other", true);
    has(2, 1);
    import(&two, "app", false);
    assert_int_equal(image_find(top, SPAN("app"), &d, &e), 1);
    assert_memory_equal(&d, &two, sizeof(d));
    has(2, 2);
    import(&two, "other", true);
    has(2, 1); /* the first has no name any more */
    in("echo sha256:00 > images/names/app");
    assert_int_equal(image_find(top, SPAN("app"), &d, &e), -1);
    in("ln -sf ../lock images/names/app");
    assert_int_equal(image_find(top, SPAN("app"), &d, &e), -1);
    import(&one, "third", false); /* nothing else is held up by it, or removed */
    struct image_store s = store();
    assert_int_equal(images_remove(&s, SPAN("third"), &e), -1);
    assert_non_null(strstr(e.text, "app"));
    assert_int_equal(images_remove(&s, SPAN("app"), &e), 0);
    assert_int_equal(images_remove(&s, SPAN("third"), &e), 0);
    images_close(&s);
    in("test -f images/lock");
    has(1, 1);
}

static void who_uses_one_keeps_it(void **state)
{
    struct digest d;
    import(&one, "app", false);
    int held = image_hold(top, &one, &e), again = image_hold(top, &one, &e);
    assert_true(held >= 0 && again >= 0);
    struct image_store s = store();
    assert_int_equal(images_remove(&s, SPAN("app"), &e), -1);
    assert_non_null(strstr(e.text, "a sandbox uses it"));
    images_close(&s);
    close(again);
    import(&two, "app", false); /* its name goes, it does not */
    has(1, 2);
    close(held);
    s = store();
    assert_int_equal(images_remove(&s, SPAN("app"), &e), 0);
    assert_int_equal(images_remove(&s, SPAN("app"), &e), -1);
    images_close(&s);
    has(0, 0);
    assert_int_equal(image_find(top, SPAN("app"), &d, &e), 0);
    assert_int_equal(image_hold(top, &one, &e), -1);
    assert_non_null(strstr(e.text, "not there any more"));
}

static void what_was_interrupted_is_gone(void **state)
{
    struct image_store s = store(), other;
    assert_int_equal(images_open(&other, top, true, &e), -1);
    assert_non_null(strstr(e.text, "another import"));
    images_close(&other);
    close(images_stage(&s, &e));
    images_close(&s);
    in("mkdir -p images/.new/root/a/b images/.gone/root/c; echo x > images/.new/root/a/b/f");
    s = store();
    in("test ! -e images/.new -a ! -e images/.gone");
    images_close(&s);
}

static void names_are_plain(void **state)
{
    static const char *const good[] = {"a", "0", "debian-12.1_x"},
                             *const wrong[] = {"",
                                               ".",
                                               "..",
                                               "-a",
                                               "_",
                                               "A",
                                               "a/b",
                                               "a b",
                                               "host",
                                               "a\n",
                                               "0123456789012345678901234567890123456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(image_name_ok(span_str(good[i])));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(image_name_ok(span_str(wrong[i])));
}

/* G1: nothing that leads the sandbox elsewhere, or has its programs do so. */
static void an_image_sets_harmless_variables(void **state)
{
    static const char *const good[] = {"PATH=/opt/bin:/bin", "LANG=C", "GOPATH=/go", "_x=", "A=b=c",
                                       "NODE_VERSION=22 x"},
                             *const wrong[] = {"HTTP_PROXY=x",
                                               "http_Proxy=x",
                                               "my_proxy=x",
                                               "SSL_CERT_FILE=/x",
                                               "LD_PRELOAD=/x",
                                               "ld_audit=/x",
                                               "GLIBC_TUNABLES=x",
                                               "JAVA_TOOL_OPTIONS=-Dx",
                                               "_JAVA_OPTIONS=x",
                                               "HOME=/",
                                               "USER=root",
                                               "COUNTERSIGN_SANDBOX=x",
                                               "PATH=:/bin",
                                               "PATH=bin",
                                               "npm_config_proxy=x",
                                               "BASH_ENV=/x",
                                               "=x",
                                               "x",
                                               "",
                                               "1A=b",
                                               "A B=c",
                                               "A=\n",
                                               "A=\x1b[m",
                                               "NODE_EXTRA_CA_CERTS=/x",
                                               "GIT_TERMINAL_PROMPT=1"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!layout_variable_ok(good[i]))
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (layout_variable_ok(wrong[i]))
            fail_msg("%s", wrong[i]);
    covers("G28");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(a_name_means_a_digest),
        TEST(who_uses_one_keeps_it),
        TEST(what_was_interrupted_is_gone),
        cmocka_unit_test(names_are_plain),
        cmocka_unit_test(an_image_sets_harmless_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
