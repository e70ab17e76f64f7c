/* The fetcher's jobs, what is pure of them: what a program printed, and the question on its way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>

#include "common/arena.h"
#include "proxy/fetcher/job/program.h"

static struct err e;

static void is_printed(const struct wire_fetch *f, struct span printed, struct span value, uint64_t lifetime)
{
    struct arena a;
    struct span got;
    uint64_t ms;
    arena_init(&a, 1024 * 1024);
    int rc = program_value(f, printed, &a, &got, &ms, &e);
    assert_int_equal(rc, value.p ? 0 : -1);
    if (rc == 0)
        assert_true(span_eq(got, value) && ms == lifetime);
    else
        assert_null(strstr(e.text, "canary"));
    arena_free(&a);
}

static void what_was_printed(void **state)
{
    const struct wire_fetch text = {.nsettings = 1, .setting = {{SPAN("argv"), SPAN("/bin/op")}}};
    const struct wire_fetch json = {.nsettings = 2,
                                    .setting = {{SPAN("value"), SPAN("/a/t")}, {SPAN("expires_in"), SPAN("/s")}}};
    is_printed(&text, SPAN("{ a token }\n"), SPAN("{ a token }\n"), 0);
    is_printed(&json, SPAN("{\"a\":{\"t\":\"canary\"},\"s\":60}"), SPAN("canary"), 60000);
    is_printed(&json, SPAN("{\"a\":{\"t\":\"canary\"},\"s\":0}"), SPAN("canary"), 1); /* not: it does not say */
    static const struct span bad[] = {SPAN("canary"),
                                      SPAN("{\"a\":{\"t\":1},\"s\":60}"),
                                      SPAN("{\"a\":{\"t\":\"canary\"}}"),
                                      SPAN("{\"a\":{\"t\":\"canary\"},\"s\":\"60\"}"),
                                      SPAN("{\"a\":{\"t\":\"canary\"},\"s\":-1}"),
                                      SPAN("{\"a\":{\"t\":\"canary\"},\"s\":60} {}"),
                                      SPAN("{\"a\":{\"t\":\"canary\",\"t\":\"canary\"},\"s\":60}")};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        is_printed(&json, bad[i], SPAN_NONE, 0);
}

static void a_question_comes_as_it_went(void **state)
{
    struct wire_fetch w = {
        .kind = 5,
        .timeout_ms = 2000,
        .to = {.scheme = SPAN("https"), .host = SPAN("a.example"), .port = 443},
        .nsettings = 3,
        .setting = {{SPAN("argv"), SPAN("x")}, {SPAN("n"), SPAN("17")}, {SPAN("argv"), SPAN("y")}}};
    struct wire_fetch got;
    struct dynbuf b;
    dynbuf_init(&b, 64 * 1024);
    wire_put_fetch(&b, &w);
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_fetch(&m, &got), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_true(span_eq(wire_setting(&got, SPAN("argv"), 1), SPAN("y")));
    assert_int_equal(wire_setting(&got, SPAN("argv"), 2).n, 0);
    assert_int_equal(wire_setting_u64(&got, SPAN("n"), 3), 17);
    assert_int_equal(wire_setting_u64(&got, SPAN("argv"), 3), 3);
    for (size_t n = 0; n < b.n; n++) { /* a part of it is none */
        m = msg_in(span_of(b.p, n));
        assert_true(wire_get_fetch(&m, &got) != 0 || msg_end(&m) != 0);
    }
    w.timeout_ms = FETCH_TIMEOUT_MAX_MS + 1;
    dynbuf_reset(&b);
    wire_put_fetch(&b, &w);
    m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_fetch(&m, &got), -1);
    dynbuf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_printed),
        cmocka_unit_test(a_question_comes_as_it_went),
    };
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
