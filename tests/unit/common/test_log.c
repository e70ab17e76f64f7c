/* The lines of the log in both forms, what is written of them, and the marks of an exchange. */
#include "tests/kit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/trace.h"

static int pipes[2], stderr_was;
static char text[64 * 1024];

static int catch_stderr(void **state)
{
    (void)state;
    stderr_was = dup(STDERR_FILENO);
    assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(dup2(pipes[1], STDERR_FILENO), STDERR_FILENO);
    log_init("judge", LOG_INFO);
    log_boot(SPAN("b00t"));
    trace_keep(0);
    return 0;
}

static int let_go(void **state)
{
    (void)state;
    dup2(stderr_was, STDERR_FILENO);
    close(stderr_was);
    close(pipes[0]);
    close(pipes[1]);
    return 0;
}

/* What was written since. */
static const char *said(void)
{
    ssize_t n = read(pipes[0], text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

#define assert_string_starts(s, with) assert_true(span_starts(span_str(s), span_str(with)))
#define assert_string_ends(s, with)   assert_true(span_ends(span_str(s), span_str(with)))

static void json_off_a_terminal(void **state)
{
    (void)state;
    log_warn("a \"word\" \\ and\nmore");
    assert_string_starts(said(), "{\"time\":\"20");
    assert_non_null(strstr(text, "\"role\":\"judge\",\"pid\":"));
    assert_string_ends(text, "\"level\":\"warn\",\"msg\":\"a \\\"word\\\" \\\\ and\\u000amore\"}\n");
    log_exchange(LOG_INFO, 1099511627777, "credit could not be passed on");
    assert_string_ends(said(), "\"msg\":\"credit could not be passed on\",\"exchange\":\"b00t-1099511627777\"}\n");
}

static void words_on_a_terminal(void **state)
{
    (void)state;
    log_form(LOG_TEXT);
    log_exchange(LOG_ERROR, 1099511627777, "a \"word\" and\x1b[31m\nmore");
    assert_string_starts(said(), "error judge    ");
    assert_string_ends(text, "  a \"word\" and\\u001b[31m\\u000amore  exchange=1099511627777\n");
    assert_int_equal(text[17], ':');
    assert_int_equal(text[23], '.');
    log_info("none of an exchange");
    assert_string_ends(said(), "  none of an exchange\n");
    log_form(LOG_JSON);
    log_info("so");
    assert_int_equal(said()[0], '{');
}

static void what_is_written(void **state)
{
    (void)state;
    log_debug("below");
    assert_string_equal(said(), "");
    log_set(&(struct log_setting){.level = LOG_DEBUG});
    log_debug("not below");
    assert_non_null(strstr(said(), "not below"));
    log_set(&(struct log_setting){.level = LOG_ERROR, .from = 5, .upto = 7});
    log_set(&(struct log_setting){.level = LOG_NONE}); /* no level: as before */
    log_set(&(struct log_setting){.level = (enum log_level)9});
    log_warn("below");
    log_exchange(LOG_DEBUG, 4, "not followed");
    log_exchange(LOG_DEBUG, 7, "not followed");
    assert_string_equal(said(), "");
    log_exchange(LOG_DEBUG, 5, "followed");
    assert_non_null(strstr(said(), "followed"));
    log_exchange(LOG_DEBUG, 6, "followed");
    assert_non_null(strstr(said(), "followed"));
    for (enum log_level l = LOG_DEBUG; l <= LOG_ERROR; l++)
        assert_int_equal(log_level_of(span_str(log_level_name(l))), l);
    assert_int_equal(log_level_of(SPAN("none")), LOG_NONE);
    assert_int_equal(log_level_of(SPAN("loud")), LOG_NONE);
}

/* Whatever is written, it is one line. */
static void the_longest_is_one_line(void **state)
{
    static char much[8000];
    (void)state;
    memset(much, '\n', sizeof(much) - 1);
    for (int i = LOG_JSON; i <= LOG_TEXT; i++) {
        log_form((enum log_form)i);
        log_exchange(LOG_ERROR, UINT64_MAX, "%s", much);
        assert_string_ends(said(), i == LOG_JSON ? "b00t-18446744073709551615\"}\n" : "=18446744073709551615\n");
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    }
}

static size_t marks(uint64_t exchange, char *out, size_t cap)
{
    struct dynbuf b;
    uint64_t last = 0;
    size_t at = 0;
    dynbuf_init(&b, 64 * 1024);
    trace_put(&b, exchange);
    assert_true(dynbuf_ok(&b));
    struct msg_in m = msg_in(dynbuf_span(&b));
    size_t n = msg_get_u16(&m);
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        uint64_t ns = msg_get_u64(&m);
        struct span what = msg_get_span(&m, TRACE_WORD), came = msg_get_span(&m, TRACE_WORD);
        assert_true(ns >= last && ns > 0);
        last = ns;
        if (at < cap)
            at += (size_t)snprintf(out + at, cap - at, "%.*s:%.*s ", SPAN_FMT(what), SPAN_FMT(came));
    }
    assert_int_equal(msg_end(&m), 0);
    dynbuf_free(&b);
    return n;
}

static void marks_of_one_exchange(void **state)
{
    char got[256];
    (void)state;
    assert_int_equal(marks(7, got, sizeof(got)), 0);
    trace_step(7, "evaluate", "next");
    trace_step(8, "evaluate", "fail");
    trace_state(7, "claim", "none", "asked");
    assert_int_equal(marks(7, got, sizeof(got)), 2);
    assert_string_equal(got, "evaluate:next claim:asked ");
    assert_int_equal(marks(8, got, sizeof(got)), 1);
    assert_int_equal(marks(0, got, sizeof(got)), 0); /* what was never marked is no exchange's */
    assert_string_equal(said(), "");
    log_set(&(struct log_setting){.level = LOG_INFO, .from = 7, .upto = 8});
    trace_step(7, "hold", "wait");
    assert_non_null(strstr(said(), "\"level\":\"debug\",\"msg\":\"hold: wait\",\"exchange\":\"b00t-7\""));
    trace_state(7, "claim", "asked", "granted");
    assert_non_null(strstr(said(), "\"msg\":\"claim: asked -> granted\""));
    trace_step(8, "hold", "wait");
    assert_string_equal(said(), "");
}

static void the_oldest_give_way(void **state)
{
    char got[256];
    (void)state;
    trace_keep(4);
    trace_step(1, "a", "next");
    trace_step(1, "b", "next");
    for (int i = 0; i < 3; i++)
        trace_step(2, "c", "next");
    assert_int_equal(marks(1, got, sizeof(got)), 1);
    assert_string_equal(got, "b:next ");
    trace_step(2, "d", "next");
    assert_int_equal(marks(1, got, sizeof(got)), 0);
    assert_int_equal(marks(2, got, sizeof(got)), 4);
    assert_string_equal(got, "c:next c:next c:next d:next ");
    trace_keep(0);
    for (size_t i = 0; i < TRACE_ANSWER_MARKS + 10; i++)
        trace_step(3, i < 10 ? "first" : "then", "next");
    assert_int_equal(marks(3, got, sizeof(got)), TRACE_ANSWER_MARKS);
    assert_null(strstr(got, "first")); /* of more, the last */
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, catch_stderr, let_go)
    const struct CMUnitTest tests[] = {T(json_off_a_terminal),     T(words_on_a_terminal),   T(what_is_written),
                                       T(the_longest_is_one_line), T(marks_of_one_exchange), T(the_oldest_give_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
