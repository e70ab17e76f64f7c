/* What went wrong, how long to wait, and what is done next. */
#include "tests/kit.h"

#include "broker/models/fault.h"

enum { NOW = 784111777 }; /* Sun, 06 Nov 1994 08:49:37 GMT, in seconds */

static void kinds(void **state)
{
    static const struct {
        unsigned status;
        const char *body;
        enum fault_kind kind;
        const char *code;
    } rows[] = {
        {400, "{\"error\":{\"message\":\"bad\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}",
         FAULT_REQUEST, "invalid_request_error"},
        {400,
         "{\"error\":{\"message\":\"m\",\"type\":\"invalid_request_error\",\"code\":\"context_length_exceeded\"}}",
         FAULT_WINDOW, "context_length_exceeded"},
        {400,
         "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 3 > "
         "2\"}}",
         FAULT_WINDOW, "invalid_request_error"},
        {401, "{\"error\":{\"code\":\"invalid_api_key\",\"message\":\"m\"}}", FAULT_REFUSED, "invalid_api_key"},
        {402, "{}", FAULT_QUOTA, ""},
        {403, "not JSON", FAULT_REFUSED, ""},
        {404, "{\"error\":{\"code\":\"model_not_found\"}}", FAULT_GONE, "model_not_found"},
        {408, "", FAULT_SERVER, ""},
        {409, "", FAULT_SERVER, ""},
        {413, "", FAULT_WINDOW, ""},
        {422, "", FAULT_REQUEST, ""},
        {429, "{\"error\":{\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}", FAULT_RATE,
         "rate_limit_exceeded"},
        {429, "{\"error\":{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\"}}", FAULT_QUOTA,
         "insufficient_quota"},
        {429, "{\"error\":{\"type\":\"engine_overloaded_error\"}}", FAULT_OVERLOADED, "engine_overloaded_error"},
        {429, "{\"error\":{\"type\":\"invalid_request_error\"}}", FAULT_RATE, "invalid_request_error"},
        {500, "{\"type\":\"error\",\"error\":{\"type\":\"api_error\"}}", FAULT_SERVER, "api_error"},
        {502, "<html>", FAULT_SERVER, ""},
        {503, "", FAULT_OVERLOADED, ""},
        {529, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}", FAULT_OVERLOADED, "overloaded_error"},
        {200, "{\"choices\":[]}", FAULT_BROKEN, ""},
        {302, "", FAULT_BROKEN, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fault f;
        struct fault_answer a = {.status = rows[i].status, .body = span_str(rows[i].body)};
        fault_of_answer(&f, &a, 0);
        if (f.kind != rows[i].kind)
            print_error("row %zu: %s\n", i, fault_name(f.kind));
        assert_int_equal(f.kind, rows[i].kind);
        assert_string_equal(f.code, rows[i].code);
        assert_true(f.words[0] != '\0' && f.status == rows[i].status);
    }
}

/* What a provider says stays within its room, in whole characters, without control characters. */
static void foreign_words(void **state)
{
    struct arena a;
    struct fault f = {0};
    char text[600] = "{\"message\":\"a\\u001b[2J";
    for (size_t i = strlen(text); i < 400; i += 3)
        memcpy(text + i, "\xe4\xbd\xa0", 4);
    strcat(text, "\"}");
    arena_init(&a, 1 << 20);
    fault_of_error(&f, json_parse(span_str(text), &a));
    assert_int_equal(f.kind, FAULT_SERVER);
    assert_memory_equal(f.words, "a [2J\xe4\xbd\xa0", 8);
    assert_in_range(strlen(f.words), sizeof(f.words) - 4, sizeof(f.words) - 1);
    assert_int_equal((strlen(f.words) - 5) % 3, 0);
    arena_free(&a);
}

static void waits(void **state)
{
    static const struct {
        const char *seconds, *ms;
        int64_t wait; /* -1: not said */
    } rows[] = {{"", "", -1},
                {"0", "", 0},
                {"7", "", 7000},
                {"1.5", "", 1500},
                {"7", "250", 250},
                {"7", "250.75", 250},
                {"soon", "x", -1},
                {"-3", "", -1},
                {"Sun, 06 Nov 1994 08:49:47 GMT", "", 10000},
                {"Sun, 06 Nov 1994 08:49:37 GMT", "", 0},
                {"Sun, 06 Nov 1994 08:49:36 GMT", "", 0},
                {"Mon, 07 Nov 1994 08:49:37 GMT", "", 86400000},
                {"Tue, 29 Feb 2000 00:00:00 GMT", "", INT64_C(951782400000) - NOW * INT64_C(1000)},
                {"Tue, 29 Feb 2001 00:00:00 GMT", "", -1},
                {"Sun, 06 Nox 1994 08:49:47 GMT", "", -1},
                {"Sun, 06 Nov 1994 24:49:47 GMT", "", -1},
                {"Sun, 06 Nov 1994 08:49:47 CET", "", -1},
                {"Sun, 06 Nov 1994 08:49:47", "", -1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t ms = 0;
        bool said = fault_wait(span_str(rows[i].seconds), span_str(rows[i].ms), NOW * UINT64_C(1000), &ms);
        assert_int_equal(said, rows[i].wait >= 0);
        assert_true(!said || ms == (uint64_t)rows[i].wait);
    }
}

static struct fault_next next(enum fault_kind kind, struct fault_place p)
{
    struct fault f = {.kind = kind};
    return fault_next(&f, &p);
}

static void once_more(void **state)
{
    static const enum fault_kind passing[] = {FAULT_RATE,      FAULT_OVERLOADED, FAULT_SERVER,
                                              FAULT_UNREACHED, FAULT_CUT,        FAULT_BROKEN};
    static const enum fault_kind theirs[] = {FAULT_REFUSED, FAULT_GONE, FAULT_QUOTA},
                                 ours[] = {FAULT_REQUEST, FAULT_WINDOW, FAULT_TOO_LARGE, FAULT_NONE};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(next(passing[i], (struct fault_place){.tries = 1, .all_tries = 1, .other = true}).step,
                         STEP_AGAIN);
        assert_int_equal(
            next(passing[i], (struct fault_place){.tries = FAULT_TRIES_MAX, .all_tries = 3, .other = true}).step,
            STEP_OTHER);
        assert_int_equal(next(passing[i], (struct fault_place){.tries = FAULT_TRIES_MAX, .all_tries = 3}).step,
                         STEP_STOP);
        assert_int_equal(
            next(passing[i], (struct fault_place){.tries = 1, .all_tries = FAULT_ALL_TRIES_MAX, .other = true}).step,
            STEP_STOP);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(next(theirs[i], (struct fault_place){.tries = 1, .all_tries = 1, .other = true}).step,
                         STEP_OTHER);
        assert_int_equal(next(theirs[i], (struct fault_place){.tries = 1, .all_tries = 1}).step, STEP_STOP);
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(next(ours[i], (struct fault_place){.tries = 1, .all_tries = 1, .other = true}).step,
                         STEP_STOP);
}

/* Behind the first byte that a reader got no other model is asked, whatever happens; another attempt voids what was
 * shown. */
static void shown_is_never_spliced(void **state)
{
    for (enum fault_kind k = FAULT_NONE; k <= FAULT_TOO_LARGE; k++)
        for (unsigned tries = 0; tries <= FAULT_TRIES_MAX; tries++) {
            struct fault_next n =
                next(k, (struct fault_place){.tries = tries, .all_tries = tries, .other = true, .shown = true});
            assert_int_not_equal(n.step, STEP_OTHER);
            assert_true(n.supersedes);
        }
    assert_false(next(FAULT_CUT, (struct fault_place){.tries = 1, .all_tries = 1}).supersedes);
}

static void what_was_said_is_kept_to(void **state)
{
    struct fault f = {.kind = FAULT_RATE, .waits = true, .wait_ms = FAULT_SOON_MS};
    struct fault_place p = {.tries = 1, .all_tries = 1, .other = true};
    struct fault_next n = fault_next(&f, &p);
    assert_true(n.step == STEP_AGAIN && n.wait_ms == FAULT_SOON_MS);
    f.wait_ms = FAULT_SOON_MS + 1; /* another one answers sooner */
    assert_int_equal(fault_next(&f, &p).step, STEP_OTHER);
    p.other = false;
    for (uint32_t dice = 0; dice < 100000; dice += 777) {
        p.dice = dice;
        n = fault_next(&f, &p);
        assert_true(n.step == STEP_AGAIN && n.wait_ms >= f.wait_ms && n.wait_ms <= f.wait_ms + f.wait_ms / 8);
    }
    p.dice = 0;
    f.wait_ms = FAULT_WAIT_MAX_MS + 1; /* nobody sits that out, but it is said when */
    n = fault_next(&f, &p);
    assert_true(n.step == STEP_STOP && n.wait_ms == f.wait_ms);
    f = (struct fault){.kind = FAULT_RATE, .said = SAID_FINAL};
    assert_int_equal(fault_next(&f, &p).step, STEP_STOP);
    f = (struct fault){.kind = FAULT_REQUEST, .said = SAID_AGAIN};
    assert_int_equal(fault_next(&f, &p).step, STEP_AGAIN);
}

static void waits_grow(void **state)
{
    uint64_t least = 0;
    for (unsigned tries = 1; tries < FAULT_TRIES_MAX; tries++) {
        struct fault_next low = next(FAULT_SERVER, (struct fault_place){.tries = tries, .all_tries = tries});
        struct fault_next high = next(
            FAULT_SERVER, (struct fault_place){.tries = tries, .all_tries = tries, .dice = (uint32_t)low.wait_ms});
        assert_true(low.wait_ms > least && high.wait_ms == 2 * low.wait_ms);
        least = low.wait_ms;
    }
}

static void fields_of_an_answer(void **state)
{
    struct fault f;
    struct fault_answer a = {.status = 429, .retry_after = SPAN("3"), .should_retry = SPAN("FALSE")};
    fault_of_answer(&f, &a, 0);
    assert_true(f.waits && f.wait_ms == 3000 && f.said == SAID_FINAL);
    a.should_retry = SPAN("true");
    a.retry_after = SPAN_NONE;
    fault_of_answer(&f, &a, 0);
    assert_true(!f.waits && f.said == SAID_AGAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(foreign_words),
        cmocka_unit_test(waits),
        cmocka_unit_test(once_more),
        cmocka_unit_test(shown_is_never_spliced),
        cmocka_unit_test(what_was_said_is_kept_to),
        cmocka_unit_test(waits_grow),
        cmocka_unit_test(fields_of_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
