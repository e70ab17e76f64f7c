/* The page of models and tools: where it is slow, where it fails, which kind of task is unstable; in words, the worst
 * first, of whatever names somebody chose. And what is said where there are no conversations. */
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "tests/kit.h"
#include "web-approval/broker/tally.h"
#include "web-approval/route.h"
#include "web-approval/talks/talks.h"

static struct desk desk;
static struct exchange x;

static void seen(enum broker_seen what, const char *name, const char *error, uint64_t ms, uint64_t first)
{
    struct dynbuf b;
    dynbuf_init(&b, 4096);
    msg_put_u8(&b, (uint8_t)what);
    msg_put_span(&b, span_str(name));
    msg_put_span(&b, span_str(error));
    msg_put_u64(&b, ms);
    msg_put_u64(&b, first);
    for (size_t i = 2; i < BROKER_SEEN_NUMBERS; i++)
        msg_put_u64(&b, 0);
    struct frame f = {.type = M_BROKER_SEEN, .payload = dynbuf_span(&b)};
    broker_tally_frame(&desk, &f);
    dynbuf_free(&b);
}

static int setup(void **state)
{
    x = (struct exchange){.desk = &desk, .place = PLACE_PAGE, .file = -1};
    dynbuf_init(&x.out, DESK_ANSWER_MAX);
    arena_init(&x.arena, DESK_ARENA_MAX);
    return 0;
}

static int teardown(void **state)
{
    dynbuf_free(&x.out);
    arena_free(&x.arena);
    broker_tally_free(&desk.tally);
    return 0;
}

/* The page as somebody reads it: its tags are gone, and a bar stands before each cell. */
static const char *page(void)
{
    static char read[64 * 1024];
    size_t n = 0;
    page_models(&x);
    assert_int_equal(x.status, 200);
    struct span html = dynbuf_span(&x.out);
    assert_true(html.n < sizeof(read) / 4);
    for (size_t i = 0; i < html.n; i++) {
        if (html.p[i] != '<') {
            read[n++] = (char)html.p[i];
            continue;
        }
        if (span_starts(span_from(html, i), SPAN("<td")))
            n += (size_t)snprintf(read + n, sizeof(read) - n, " | ");
        i += span_index(span_from(html, i), '>');
    }
    read[n] = '\0';
    return read;
}

static void has(const char *page, const char *text)
{
    if (strstr(page, text) == NULL)
        fail_msg("%s is not in: %s", text, page);
}

static void nothing_yet(void **state)
{
    const char *is = page();
    has(is, "\nModels and tools\n");
    has(is, "No model was asked yet.");
    has(is, "countersign chat");
    assert_null(strstr(is, " | "));
}

/* Where no turns are run, it stays so. */
static void nothing_ever(void **state)
{
    (void)snprintf(desk.broker_only, sizeof(desk.broker_only), "stream");
    has(page(), "Nothing is counted here.The broker of this gateway runs no turns (broker: only: [stream])");
    (void)snprintf(desk.broker_only, sizeof(desk.broker_only), "turn");
    has(page(), "No model was asked yet.");
    desk.broker_only[0] = '\0';
}

static void the_worst_is_said_and_comes_first(void **state)
{
    for (unsigned i = 1; i <= 20; i++)
        seen(BROKER_SEEN_MODEL, "large", i <= 2 ? "overloaded" : i == 3 ? "cut" : "", 100 * i, i == 1 ? 0 : 10 * i);
    seen(BROKER_SEEN_MODEL, "large", "cancelled", 99999, 0); /* nobody's fault, and it took so long all the same */
    seen(BROKER_SEEN_MODEL, "small", "", 40, 7);
    seen(BROKER_SEEN_TOOL, "read_file", "", 3, 0);
    seen(BROKER_SEEN_TOOL, "run_command", "timeout", 300000, 0);
    seen(BROKER_SEEN_TOOL, "run_command", "tool_error", 61000, 0);
    seen(BROKER_SEEN_TOOL, "run_command", "", 1250, 0);
    seen(BROKER_SEEN_TURN, "chat", "", 5000, 0);
    seen(BROKER_SEEN_TURN, "chat", "cancelled", 100, 0);
    seen(BROKER_SEEN_TURN, "code", "", 59999, 0);
    seen(BROKER_SEEN_TURN, "code", "same-calls", 120000, 0);
    seen(BROKER_SEEN_TURN, "code", "budget", 999, 0);
    const char *is = page();
    has(is,
        "Slowest: the tool run_command, 95 % of whose calls take at most 5 min. Fails most: the tool run_command, 67 "
        "% of 3. Least stable: the task code, 2 of whose 3 turns did not end well.");
    static const char *const rows[] = {
        " | large | Calls 21 | Failed 15 % (overloaded 2, cut 1) | First token, half within 110 ms | Half within 1.1 "
        "s",
        " | 95 % within 2.0 s\n | small | Calls 1 | Failed none | First token, half within 7 ms | Half within 40 ms",
        " | run_command | Calls 3 | Succeeded 33 % | Failed 67 % (timeout 1, tool_error 1) | Out of time 1 | Half "
        "within",
        " 61 s | 95 % within 5 min\n | read_file | Calls 1 | Succeeded 100 % | Failed none | Out of time 0",
        " | code | Turns 3 | Ended well 33 % | Otherwise 67 % (same-calls 1, budget 1) | Cancelled 0 | Half within "
        "59.9 s",
        " | chat | Turns 2 | Ended well 100 % | Otherwise none | Cancelled 1 | Half within 100 ms"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        has(is, rows[i]); /* in this order */
        is = strstr(is, rows[i]);
    }
}

static void all_is_well(void **state)
{
    seen(BROKER_SEEN_MODEL, "small", "", 999, 0);
    seen(BROKER_SEEN_TURN, "code", "cancelled", 1, 0);
    const char *is = page();
    has(is, "Slowest: the model small, 95 % of whose calls take at most 999 ms. No call has failed. Every turn that "
            "a worker ended, ended well, but for those that somebody cancelled.");
    has(is, "First token, half within none yet");
    has(is, "No tool was called yet.");
    has(is, "Ended well none yet");
}

/* One of a thousand is not nothing, and the others are not all; one that was not asked took no time. */
static void rare_faults_are_there(void **state)
{
    for (unsigned i = 0; i < 999; i++) {
        seen(BROKER_SEEN_MODEL, "m", "", 1, 1);
        seen(BROKER_SEEN_TOOL, "t", "", 1, 1);
    }
    seen(BROKER_SEEN_MODEL, "m", "no-lease", BROKER_SEEN_NO_TIME, 0);
    seen(BROKER_SEEN_TOOL, "t", "unknown", 1, 0);
    const char *is = page();
    has(is, "Failed under 1 % (no-lease 1)");
    has(is, "Succeeded over 99 %");
    has(is, "Fails most: the model m, under 1 % of 1000.");
}

/* What was long ago does not stand for how it is now. */
static void times_are_the_last_ones(void **state)
{
    struct tally_line line[TALLY_NAMES_MAX];
    for (unsigned i = 0; i < 1000; i++)
        seen(BROKER_SEEN_MODEL, "m", "", 7000, 0);
    for (unsigned i = 1; i <= TALLY_KEPT; i++)
        seen(BROKER_SEEN_MODEL, "m", "", i, 0);
    assert_int_equal(broker_tally_lines(desk.tally, TALLY_MODELS, line), 1);
    assert_true(line[0].times == 1000 + TALLY_KEPT && line[0].took.n == TALLY_KEPT && line[0].first.n == 0);
    assert_int_equal(line[0].took.half_ms, TALLY_KEPT / 2);
    assert_int_equal(line[0].took.most_ms, 244); /* of 256, 243.2 is 95 % */
    assert_int_equal(broker_tally_lines(desk.tally, TALLY_TOOLS, line), 0);
    assert_int_equal(broker_tally_lines(NULL, TALLY_MODELS, line), 0);
}

static void the_most_frequent_kinds_are_named(void **state)
{
    static const char *const words[] = {"rate",   "cut",   "cut",     "server", "server",
                                        "server", "quota", "made up", "made up"};
    struct tally_line line[TALLY_NAMES_MAX];
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        seen(BROKER_SEEN_MODEL, "m", words[i], 1, 0);
    assert_int_equal(broker_tally_lines(desk.tally, TALLY_MODELS, line), 1);
    assert_int_equal(line[0].failed, 9);
    assert_string_equal(line[0].error[0].word, "server");
    assert_string_equal(line[0].error[1].word, "cut");
    assert_string_equal(line[0].error[2].word, "_OTHER");
}

static void names_are_text(void **state)
{
    seen(BROKER_SEEN_MODEL, "</span><script>alert(1)</script>&\"", "", 1, 1);
    seen(BROKER_SEEN_TOOL, "<img src=x>__*", "tool_error", 1, 0);
    seen(BROKER_SEEN_TURN, "<b>", "made up", 1, 0);
    has(page(), "&lt;script&gt;alert(1)&lt;/script&gt;&amp;");
    struct span html = dynbuf_span(&x.out);
    assert_true(span_find(html, SPAN("<script>")) == html.n && span_find(html, SPAN("<img")) == html.n);
    has(page(), "&lt;img src=x&gt;__*");
}

/* What whoever asks for conversations is told where none are had. */
static void why_there_are_no_conversations_is_said(void **state)
{
    static const struct {
        const char *only, *said;
    } of[] = {{"", "here is no broker"}, {"stream", "here is no broker"}, {"turn", "runs turns and serves nobody"}};
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        (void)snprintf(desk.broker_only, sizeof(desk.broker_only), "%s", of[i].only);
        talks_begin(&x, NULL, NULL);
        assert_int_equal(x.status, 503);
        if (span_find(dynbuf_span(&x.out), span_str(of[i].said)) == x.out.n)
            fail_msg("%s: %.*s", of[i].only, SPAN_FMT(dynbuf_span(&x.out)));
    }
    desk.broker_only[0] = '\0';
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(nothing_yet),
                                       T(nothing_ever),
                                       T(the_worst_is_said_and_comes_first),
                                       T(all_is_well),
                                       T(rare_faults_are_there),
                                       T(times_are_the_last_ones),
                                       T(the_most_frequent_kinds_are_named),
                                       T(names_are_text),
                                       T(why_there_are_no_conversations_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
