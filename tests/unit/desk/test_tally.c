/* What the broker's models and tools did, added up, as Prometheus reads it. */
#include "web-approval/broker/tally.h"

#include "broker/models/fault.h"
#include "broker/turn.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "proxy/msgs.h"
#include "tests/kit.h"
#include "web-approval/desk.h"

static struct desk desk;

static void say(unsigned type, struct dynbuf *b)
{
    struct frame f = {.type = type, .payload = dynbuf_span(b)};
    broker_tally_frame(&desk, &f);
    dynbuf_free(b);
}

static void seen(enum broker_seen what, const char *name, const char *error, uint64_t ms, uint64_t first)
{
    const uint64_t number[BROKER_SEEN_NUMBERS] = {ms, first, 100, 20, 1500000};
    struct dynbuf b;
    dynbuf_init(&b, 4096);
    msg_put_u8(&b, (uint8_t)what);
    msg_put_span(&b, span_str(name));
    msg_put_span(&b, span_str(error));
    for (size_t i = 0; i < BROKER_SEEN_NUMBERS; i++)
        msg_put_u64(&b, number[i]);
    say(M_BROKER_SEEN, &b);
}

static const char *text(void)
{
    static struct dynbuf out;
    dynbuf_free(&out);
    dynbuf_init(&out, 16 << 20);
    broker_tally_put(desk.tally, &out);
    assert_int_equal(dynbuf_add_byte(&out, 0), 0);
    return (const char *)out.p;
}

static void has(const char *line)
{
    char want[256];
    snprintf(want, sizeof(want), "\n%s\n", line);
    if (strstr(text(), want) == NULL)
        fail_msg("%s", line);
}

static void what_was_done_is_added_up(void **state)
{
    struct dynbuf b;
    assert_string_equal(text(), "");
    seen(BROKER_SEEN_MODEL, "large", "", 40, 11);
    seen(BROKER_SEEN_MODEL, "large", "overloaded", 100000, 0);
    seen(BROKER_SEEN_MODEL, "a\"b\\c\n", "made up", 1, 1);
    seen(BROKER_SEEN_TOOL, "run_command", "timeout", 300000, 0);
    has("gen_ai_client_operation_duration_seconds_bucket{model=\"large\",le=\"0.02\"} 0");
    has("gen_ai_client_operation_duration_seconds_bucket{model=\"large\",le=\"0.04\"} 1");
    has("gen_ai_client_operation_duration_seconds_bucket{model=\"large\",le=\"81.92\"} 1");
    has("gen_ai_client_operation_duration_seconds_bucket{model=\"large\",le=\"+Inf\"} 2");
    has("gen_ai_client_operation_duration_seconds_sum{model=\"large\"} 100.040");
    has("gen_ai_client_operation_time_to_first_chunk_seconds_count{model=\"large\"} 1");
    has("countersign_model_errors_total{model=\"large\",error_type=\"overloaded\"} 1");
    has("countersign_model_errors_total{model=\"a\\\"b\\\\c\\\\x0a\",error_type=\"_OTHER\"} 1");
    has("countersign_model_tokens_total{model=\"large\",gen_ai_token_type=\"input\"} 200");
    has("countersign_model_cost_total{model=\"large\"} 3.000000");
    has("countersign_tool_errors_total{gen_ai_tool_name=\"run_command\",error_type=\"timeout\"} 1");
    has("gen_ai_execute_tool_duration_seconds_count{gen_ai_tool_name=\"run_command\"} 1");
    seen(BROKER_SEEN_TURN, "code", "same-calls", 300, 0);
    seen(BROKER_SEEN_TURN, "code", "", 700, 0);
    has("countersign_turn_duration_seconds_sum{task=\"code\"} 1.000");
    has("countersign_turn_errors_total{task=\"code\",error_type=\"same-calls\"} 1");
    seen(BROKER_SEEN_BUDGET, "", "", 0, 0);
    has("countersign_budget_stops_total 1");
    dynbuf_init(&b, 64);
    msg_put_u64(&b, 7);
    msg_put_u64(&b, 3);
    say(M_BROKER_SPANS, &b);
    has("countersign_spans_sent_total 7");
    has("countersign_spans_lost_total 3");
    dynbuf_init(&b, 64);
    msg_put_u64(&b, 5);
    msg_put_u64(&b, 2);
    say(M_BROKER_METRICS, &b);
    has("countersign_spans_sent_total 7");
    has("countersign_metric_points_sent_total 5");
    has("countersign_metric_points_lost_total 2");
    broker_tally_free(&desk.tally);
}

/* How long it took to find that it would not be asked is no time of the model's. */
static void what_was_not_asked_took_no_time(void **state)
{
    seen(BROKER_SEEN_MODEL, "large", "no-lease", BROKER_SEEN_NO_TIME, 0);
    has("gen_ai_client_operation_duration_seconds_count{model=\"large\"} 0");
    has("countersign_model_errors_total{model=\"large\",error_type=\"no-lease\"} 1");
    seen(BROKER_SEEN_MODEL, "large", "stopped", 1, 0);
    has("countersign_model_errors_total{model=\"large\",error_type=\"stopped\"} 1");
    broker_tally_free(&desk.tally);
}

static void is_told_apart(enum broker_seen what, const char *word)
{
    seen(what, "m", word, 1, 0);
    if (strstr(text(), "_OTHER") != NULL)
        fail_msg("%s is counted as _OTHER", word);
    broker_tally_free(&desk.tally);
}

/* What the broker says went wrong is counted under that word: a new one has to be known here as well. */
static void every_word_of_the_brokers_is_told_apart(void **state)
{
    static const char *const asked[] = {"cancelled", "stopped", "no-lease", "summary"};
    static const char *const called[] = {"timeout", "tool_error", "unknown"};
    unsigned faults = 0;
    for (int k = FAULT_NONE + 1; fault_name((enum fault_kind)k)[0] != '\0'; k++, faults++)
        is_told_apart(BROKER_SEEN_MODEL, fault_name((enum fault_kind)k));
    assert_int_equal(faults, FAULT_TOO_LARGE);
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
        is_told_apart(BROKER_SEEN_MODEL, asked[i]);
    for (size_t i = 0; i < sizeof(called) / sizeof(called[0]); i++)
        is_told_apart(BROKER_SEEN_TOOL, called[i]);
    for (int e = END_COMPLETED + 1; e < TURN_ENDS; e++)
        is_told_apart(BROKER_SEEN_TURN, turn_end_name((enum turn_end)e));
}

static void spans(uint64_t sent, uint64_t lost)
{
    struct dynbuf b;
    dynbuf_init(&b, 64);
    msg_put_u64(&b, sent);
    msg_put_u64(&b, lost);
    say(M_BROKER_SPANS, &b);
}

static void waits(uint64_t turns, uint64_t since_ms)
{
    struct dynbuf b;
    dynbuf_init(&b, 64);
    msg_put_u64(&b, turns);
    msg_put_u64(&b, since_ms);
    say(M_BROKER_WAITS, &b);
}

/* It is a state and no sum, and nobody's when who said so has gone. */
static void turns_that_nobody_runs_are_as_they_were_said_last(void **state)
{
    uint64_t since = 9;
    assert_true(broker_tally_waits(desk.tally, &since) == 0 && since == 0);
    broker_tally_unsure(desk.tally);
    waits(3, 1000);
    waits(2, 2000);
    has("countersign_turns_nobody_runs 2");
    assert_true(broker_tally_waits(desk.tally, &since) == 2 && since == 2000);
    broker_tally_unsure(desk.tally);
    assert_true(broker_tally_waits(desk.tally, &since) == 0 && since == 0);
    has("countersign_turns_nobody_runs 0");
    has("countersign_spans_sent_total 0");
    broker_tally_free(&desk.tally);
}

static void no_counter_begins_again(void **state)
{
    spans(UINT64_MAX - 1, 5);
    spans(7, UINT64_MAX);
    has("countersign_spans_sent_total 18446744073709551615");
    has("countersign_spans_lost_total 18446744073709551615");
    broker_tally_free(&desk.tally);
}

/* Whatever bytes a name has: two names are two series, and the name of each is said. */
static void names_that_are_no_ascii_stay_apart(void **state)
{
    char name[BROKER_SEEN_NAME + 1] = "";
    seen(BROKER_SEEN_TOOL, "read\xc3\xa9", "", 1, 0);
    seen(BROKER_SEEN_TOOL, "read\xc3\xb6", "", 1, 0);
    seen(BROKER_SEEN_TOOL, "read", "", 1, 0);
    seen(BROKER_SEEN_TOOL, "", "", 1, 0);
    memset(name, 0xe9, sizeof(name) - 1);
    name[0] = 'a'; /* of which there is more than is shown: cut between two bytes */
    seen(BROKER_SEEN_TOOL, name, "", 1, 0);
    seen(BROKER_SEEN_TOOL, name, "", 1, 0);
    has("gen_ai_execute_tool_duration_seconds_count{gen_ai_tool_name=\"read\"} 1");
    has("gen_ai_execute_tool_duration_seconds_count{gen_ai_tool_name=\"read\\\\xc3\\\\xa9\"} 1");
    has("gen_ai_execute_tool_duration_seconds_count{gen_ai_tool_name=\"read\\\\xc3\\\\xb6\"} 1");
    has("gen_ai_execute_tool_duration_seconds_count{gen_ai_tool_name=\"?\"} 1");
    assert_non_null(strstr(text(), "\\xe9\"} 2\n"));
    broker_tally_free(&desk.tally);
}

static void what_cannot_be_read_is_not_counted(void **state)
{
    struct dynbuf b;
    seen(99, "large", "", 1, 1);
    seen(BROKER_SEEN_NOTHING, "large", "", 1, 1);
    dynbuf_init(&b, 64);
    msg_put_u64(&b, 7);
    say(M_BROKER_SPANS, &b);
    dynbuf_init(&b, 64);
    msg_put_u8(&b, BROKER_SEEN_MODEL);
    say(M_BROKER_SEEN, &b);
    assert_null(strstr(text(), "large"));
    has("countersign_spans_sent_total 0");
    broker_tally_free(&desk.tally);
}

static void more_names_than_are_told_apart(void **state)
{
    char name[32];
    seen(BROKER_SEEN_MODEL, "_OTHER", "", 1, 0); /* a name of its own, and of the rest: one series */
    for (unsigned i = 0; i < TALLY_NAMES_MAX; i++) {
        snprintf(name, sizeof(name), "model-%u", i);
        seen(BROKER_SEEN_MODEL, name, "", 1, 0);
    }
    has("gen_ai_client_operation_duration_seconds_count{model=\"_OTHER\"} 3");
    for (unsigned i = 0; i < 3 * TALLY_NAMES_MAX; i++) {
        snprintf(name, sizeof(name), "tool-%u", i);
        seen(BROKER_SEEN_TOOL, name, "", 1, 0);
    }
    has("gen_ai_execute_tool_duration_seconds_count{gen_ai_tool_name=\"tool-0\"} 1");
    has("gen_ai_execute_tool_duration_seconds_count{gen_ai_tool_name=\"_OTHER\"} 257");
    assert_null(strstr(text(), "tool-127\""));
    broker_tally_free(&desk.tally);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_done_is_added_up),
        cmocka_unit_test(what_was_not_asked_took_no_time),
        cmocka_unit_test(every_word_of_the_brokers_is_told_apart),
        cmocka_unit_test(turns_that_nobody_runs_are_as_they_were_said_last),
        cmocka_unit_test(no_counter_begins_again),
        cmocka_unit_test(names_that_are_no_ascii_stay_apart),
        cmocka_unit_test(what_cannot_be_read_is_not_counted),
        cmocka_unit_test(more_names_than_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
