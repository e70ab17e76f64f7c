/* A version that is kept: its manifest, its bundle, and that nothing else makes it again; and the tests beside a
 * policy's files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/test/own_tests.h"
#include "policy/load/stored.h"
#include "policy/policy.h"

#define MANY 600

static char tmp[64];

static int make_tmp(void **state)
{
    snprintf(tmp, sizeof(tmp), "/tmp/cs-stored-XXXXXX");
    return mkdtemp(tmp) ? 0 : -1;
}

static int remove_tmp(void **state)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", tmp);
    return system(command) == 0 ? 0 : -1;
}

static void put(const char *name, const char *text)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/%s", tmp, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static const char *at(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof(path), "%s/%s", tmp, name);
    return path;
}

#define POLICY                                                                                                       \
    "version: 1\nname: test\nrules:\n  - id: reads\n    match: { host: api.example.com, method: GET }\n    decide: " \
    "allow\n"

/* What the parent does with what its compiler gave. */
static void store(struct stored *s, char hex[STORED_HEX + 1])
{
    struct dynbuf bundle;
    struct stored got;
    struct err e;
    char name[STORED_HEX + STORED_FILE_NAME + 8], text[8192];
    dynbuf_init(&bundle, 1 << 20);
    assert_int_equal(stored_finish(s, &e), 0);
    stored_put(s, &bundle);
    assert_true(dynbuf_ok(&bundle));
    assert_int_equal(stored_get(dynbuf_span(&bundle), &got, &e), 0);
    snprintf(hex, STORED_HEX + 1, "%s", got.hex);
    assert_int_equal(mkdir(at(got.hex), 0700), 0);
    for (size_t i = 0; i < got.n; i++) {
        snprintf(name, sizeof(name), "%s/%s", got.hex, got.v[i].file);
        snprintf(text, sizeof(text), "%.*s", SPAN_FMT(got.v[i].text));
        put(name, text);
    }
    struct dynbuf manifest;
    dynbuf_init(&manifest, 1 << 20);
    stored_manifest(&got, &manifest);
    snprintf(name, sizeof(name), "%s/" STORED_MANIFEST, got.hex);
    snprintf(text, sizeof(text), "%.*s", SPAN_FMT(dynbuf_span(&manifest)));
    put(name, text);
    dynbuf_free(&manifest);
    /* cut anywhere, it is none */
    for (size_t n = 0; n < bundle.n; n++) {
        stored_free(&got);
        assert_int_equal(stored_get(span_first(dynbuf_span(&bundle), n), &got, &e), -1);
    }
    stored_free(&got);
    dynbuf_free(&bundle);
}

static void compile(struct stored *s, struct dynbuf *image)
{
    struct err e = {""};
    put("policy.yaml", POLICY);
    const char *paths[] = {at("policy.yaml")};
    const struct policy_place from = {.paths = paths, .n = 1, .now_ms = 1, .input = stored_add, .input_arg = s};
    assert_int_equal(stored_begin(s, &e), 0);
    dynbuf_init(image, POLICY_IMAGE_MAX);
    assert_int_equal(policy_load_from_disk(&from, image, NULL, &e), 0);
    struct policy *p = policy_open(dynbuf_span(image), &e);
    assert_non_null(p);
    hex_text(policy_digest(p), s->hex);
    s->name = SPAN("test");
    s->rules = 1;
    policy_close(p);
}

static void the_same_texts_make_the_same_image(void **state)
{
    struct stored s;
    struct dynbuf image, again;
    struct err e = {""};
    char hex[STORED_HEX + 1], found[STORED_HEX + 1];
    compile(&s, &image);
    store(&s, hex);
    stored_free(&s);
    put("policy.yaml", "gone");
    dynbuf_init(&again, POLICY_IMAGE_MAX);
    assert_int_equal(stored_compile(tmp, hex, true, 1ull << 41, &again, &e), -1);
    assert_non_null(strstr(e.text, "without signatures"));
    assert_int_equal(stored_compile(tmp, hex, false, 1ull << 41, &again, &e), 0);
    assert_true(span_eq(dynbuf_span(&image), dynbuf_span(&again)));
    assert_int_equal(stored_find(tmp, span_of(hex, 6), found, &e), 0);
    assert_string_equal(found, hex);
    assert_int_equal(stored_find(tmp, span_of(hex, 5), found, &e), -1);
    assert_int_equal(stored_find(tmp, SPAN("../../"), found, &e), -1);
    assert_int_equal(stored_find(tmp, SPAN("zzzzzzzz"), found, &e), -1);
    dynbuf_free(&again);
    dynbuf_free(&image);
}

/* A manifest that is sound, of a version by another digest: this program makes another image of it. */
static void another_image_is_refused(void **state)
{
    struct stored s;
    struct dynbuf image;
    struct err e = {""};
    char hex[STORED_HEX + 1];
    compile(&s, &image);
    s.hex[0] = s.hex[0] == 'a' ? 'b' : 'a';
    store(&s, hex);
    stored_free(&s);
    dynbuf_reset(&image);
    assert_int_equal(stored_compile(tmp, hex, false, 1, &image, &e), -1);
    assert_non_null(strstr(e.text, "makes another policy"));
    dynbuf_free(&image);
}

/* Every kind of text there is, an empty one and one by two names come back as they were. */
static void every_kind_comes_back(void **state)
{
    struct stored s, got;
    struct err e = {""};
    struct dynbuf bundle;
    static const uint8_t text[] = "text";
    compile(&s, &bundle);
    dynbuf_reset(&bundle);
    for (int kind = POLICY_REF_PACK; kind <= POLICY_REF_SIGNED; kind++)
        stored_add(&s, (enum policy_input)kind, SPAN("a"), kind == POLICY_REF_SIGNED ? SPAN_NONE : span_of(text, 4));
    stored_add(&s, POLICY_INPUT_FLOORS, SPAN("f"), SPAN_NONE);
    assert_int_equal(stored_finish(&s, &e), 0);
    stored_put(&s, &bundle);
    assert_int_equal(stored_get(dynbuf_span(&bundle), &got, &e), 0);
    assert_int_equal(got.n, s.n);
    for (size_t i = 0; i < s.n; i++) {
        assert_int_equal(got.v[i].kind, s.v[i].kind);
        assert_string_not_equal(stored_kind(got.v[i].kind), "?");
        assert_true(span_eq(got.v[i].name, s.v[i].name));
        assert_int_equal(got.v[i].size, s.v[i].size);
    }
    assert_true(stored_is_signed(&got));
    stored_free(&got);
    stored_free(&s);
    dynbuf_free(&bundle);
}

static void names_and_numbers_are_bounded(void **state)
{
    struct stored s;
    struct err e = {""};
    char name[16];
    assert_int_equal(stored_begin(&s, &e), 0);
    stored_add(&s, POLICY_INPUT_FILE, SPAN("a/../\x01/x y.yaml"), SPAN("t"));
    assert_string_equal(s.v[0].file, "000-x_y.yaml");
    stored_add(&s, POLICY_INPUT_FILE, SPAN("a/../\x01/x y.yaml"), SPAN("other"));
    assert_int_equal(s.n, 1);
    stored_add(&s, (enum policy_input)POLICY_REF_CA, SPAN("a\nb"), SPAN("t2"));
    assert_int_equal(stored_finish(&s, &e), -1);
    stored_free(&s);
    assert_int_equal(stored_begin(&s, &e), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "%d", i);
        stored_add(&s, POLICY_INPUT_FILE, span_str(name), SPAN("t"));
        if (i == STORED_FILES_MAX - 1)
            assert_int_equal(stored_finish(&s, &e), 0);
    }
    assert_int_equal(stored_finish(&s, &e), -1);
    stored_free(&s);
}

static void where_the_tests_lie(void **state)
{
    char out[32];
    assert_int_equal(policy_tests_path("a/x.yaml", out, sizeof(out)), 0);
    assert_string_equal(out, "a/x_test.yaml");
    assert_int_equal(policy_tests_path("x.policy.yml", out, sizeof(out)), 0);
    assert_string_equal(out, "x.policy_test.yml");
    const char *const none[] = {
        "", "x", "x.json", ".yaml", "a/.yaml", "a.yaml/x", "0123456789012345678901234567890.yaml"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_int_equal(policy_tests_path(none[i], out, sizeof(out)), -1);
}

static int run(const char *cases, struct tests_ran *ran, struct err *e)
{
    struct stored s;
    struct dynbuf image;
    char path[4200];
    compile(&s, &image);
    stored_free(&s);
    put("policy_test.yaml", cases);
    snprintf(path, sizeof(path), "%s", at("policy.yaml"));
    const char *paths[] = {path};
    struct policy *p = policy_open(dynbuf_span(&image), e);
    assert_non_null(p);
    int rc = policy_tests_run(p, paths, 1, ran, e);
    policy_close(p);
    dynbuf_free(&image);
    return rc;
}

#define CASE(name, method, decide)                                                                                   \
    "  - name: " name "\n    request: { method: " method                                                             \
    ", url: \"https://api.example.com/\" }\n    expect: { decide: " decide " }\n"

static void tests_say_what_came_instead(void **state)
{
    struct tests_ran ran;
    struct err e = {""};
    assert_int_equal(run("policy: x\ncases:\n" CASE("a", "GET", "allow") CASE("b", "POST", "deny"), &ran, &e), 0);
    assert_int_equal(ran.cases, 2);
    assert_int_equal(run("policy: x\ncases:\n" CASE("a", "GET", "allow") CASE("b\\u001b[2J", "POST", "hold")
                             CASE("c", "GET", "deny"),
                         &ran, &e),
                     -1);
    assert_int_equal(ran.failed, 2);
    assert_non_null(strstr(e.text, "policy_test.yaml:6: the policy's own test \"b"));
    assert_non_null(strstr(e.text, "decide: wanted hold, got deny (because no-rule); 2 of 3 cases failed"));
    assert_null(strchr(e.text, 0x1b));
    assert_int_equal(run("policy: x\ncases: []\n", &ran, &e), -1);
    assert_int_equal(run("nothing", &ran, &e), -1);
    unlink(at("policy_test.yaml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_texts_make_the_same_image),
        cmocka_unit_test(another_image_is_refused),
        cmocka_unit_test(names_and_numbers_are_bounded),
        cmocka_unit_test(every_kind_comes_back),
        cmocka_unit_test(where_the_tests_lie),
        cmocka_unit_test(tests_say_what_came_instead),
    };
    return cmocka_run_group_tests(tests, make_tmp, remove_tmp);
}
