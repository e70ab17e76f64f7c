/* Tasks: what the desk asks whom for one, in which order, and that of a result that breaks its schema no byte is in
 * the answer. */
#include "tests/unit/desk/tasks_world.h"

static void a_result_that_fits_is_the_answer(void **state)
{
    only_kind(OUTPUT);
    begin(ASKED);
    struct wire_box box;
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_box(&m, &box, false), 0);
    assert_int_equal(box.memory, 256 << 20);
    assert_int_equal(msg_get_u64(&m), 1);
    assert_int_equal(msg_get_u64(&m), 100);
    assert_int_equal(msg_get_u64(&m), 330 * 1000); /* it ends by itself, should nobody end it */
    assert_true(msg_get_bool(&m));
    assert_true(msg_get_bool(&m)); /* also with the desk */
    assert_int_equal(msg_end(&m), 0);
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    assert_true(was_sent(SPAN("\0\0\0\12input.json")) && was_sent(SPAN("{\"text\":\"a b\"}")));
    exits(SB_EXITED, 0);
    assert_true(sent_type == M_SB_EXEC && was_sent(SPAN("\0\0\0\2wc\0\0\0\2-w")));
    assert_true(was_sent(SPAN("COUNTERSIGN_TASK_RESULT=/workspace/result.json")));
    exits(SB_EXITED, 0);
    assert_true(sent_type == M_SB_FILES && was_sent(SPAN("\0\0\0\13result.json")));
    says_output(1, SPAN(" {\"words\":"));
    assert_int_equal(sent_type, M_SB_TAKEN);
    says_output(2, SPAN(CANARY));
    says_output(1, SPAN("2 }\n"));
    exits(SB_EXITED, 0);
    assert_int_equal(sent_type, M_SB_DESTROY);
    answer(ASK_WARDEN, M_SB_DESTROYED, SPAN("\1"));
    answer(ASK_LEDGER, M_SANDBOX_DONE, DONE_OK);
    assert_true(sent_type == M_TASK_OVER && x.status == 0); /* what is not written down is not answered */
    assert_true(was_sent(SPAN("\"task\":\"count\"")) && was_sent(SPAN("\"outcome\":\"result\"")));
    answer(ASK_LEDGER, M_TASK_WRITTEN, WRITTEN);
    assert_true(x.status == 200 && says("\"result\":{\"words\":2}}") && says("\"run\":\"") && !says(CANARY));
    end();
    assert_int_equal(desk.held[SHARE_FOLLOW], 0);
}

static void an_input_that_breaks_its_schema_begins_nothing(void **state)
{
    static const struct {
        const char *body, *said;
        unsigned status;
    } bad[] = {
        {"{\"kind\":\"count\",\"input\":{}}", "\"path\":\"\",\"below\":false,\"keyword\":\"required\"", 422},
        {"{\"kind\":\"count\",\"input\":{\"text\":7}}", "\"path\":\"/text\",\"below\":false,\"keyword\":\"type\"",
         422},
        {"{\"kind\":\"count\",\"input\":[\"" CANARY "\"]}", "\"error\":\"schema_violation\",\"of\":\"input\"", 422},
        {"{\"kind\":\"count\",\"input\":null}", "\"keyword\":\"type\"", 422},
        {"{\"kind\":\"other\",\"input\":{\"text\":\"\"}}", "no kind of task", 404},
        {"{\"kind\":\"count\"}", "`input` is missing", 400},
        {"{\"input\":{\"text\":\"\"}}", "`kind` is missing", 400},
        {"{\"kind\":\"count\",\"input\":{\"text\":\"\"},\"image\":\"x\"}", "not known here", 400},
        {"{\"kind\":\"count\",\"input\":{\"text\":\"\",\"text\":\"\"}}", "duplicate", 400}};
    only_kind(OUTPUT);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (control("POST /api/v1/tasks", bad[i].body) != bad[i].status || sent_type != 0 || !says(bad[i].said))
            fail_msg("%s: %u %.*s", bad[i].body, x.status, SPAN_FMT(dynbuf_span(&x.out)));
        assert_true(!says(CANARY) && desk.held[SHARE_FOLLOW] == 0);
    }
    desk.held[SHARE_FOLLOW] = DESK_FOLLOWS - DESK_FOLLOWS / 4;
    assert_int_equal(control("POST /api/v1/tasks", ASKED), 503);
    assert_true(says("Too many") && sent_type == 0);
    assert_int_equal(control("POST /api/v1/sandboxes/box/exec", "{\"argv\":[\"ls\"]}"),
                     200); /* who looks has a place */
    desk.held[SHARE_FOLLOW]--;
    assert_int_equal(control("POST /api/v1/tasks", ASKED), 0);
    end();
    desk.held[SHARE_FOLLOW] = 0;
    assert_int_equal(docked("acme", "", "POST /api/v1/tasks", ASKED), 404); /* a platform's key runs none */
}

/* Whatever it is, only where and how it is wrong crosses. */
static void no_byte_of_a_result_that_does_not_fit_crosses(void **state)
{
    static const struct {
        struct span result;
        const char *said;
    } bad[] = {
        {SPAN("{\"words\":\"" CANARY "\"}"), "\"error\":\"schema_violation\",\"of\":\"result\",\"path\":\"/words\""},
        {SPAN("{\"" CANARY "\":1}"), "\"keyword\":\"additionalProperties\""},
        {SPAN("\"" CANARY "\""), "\"path\":\"\",\"below\":false,\"keyword\":\"type\""},
        {SPAN(CANARY), "\"error\":\"not_json\""},
        {SPAN("{\"words\":1} " CANARY), "\"error\":\"not_json\""},
        {SPAN("{\"words\":1,\"words\":2}"), "\"error\":\"not_json\""},
        {SPAN("{\"words\":1\0}"), "\"error\":\"not_json\""},
        {SPAN_NONE, "\"error\":\"not_json\""}};
    only_kind(OUTPUT);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        to_its_result();
        if (bad[i].result.n)
            says_output(1, bad[i].result);
        exits(SB_EXITED, 0);
        over();
        if (x.status != 502 || !says(bad[i].said) || says(CANARY) || says("\"result\":"))
            fail_msg("%zu: %u %.*s", i, x.status, SPAN_FMT(dynbuf_span(&x.out)));
        /* what it left goes to the ledger, once, and nowhere else */
        struct span rest = dynbuf_span(&all_sent);
        unsigned seen = 0;
        for (size_t at; (at = span_find(rest, SPAN(CANARY))) < rest.n; seen++)
            rest = span_from(rest, at + 1);
        assert_int_equal(seen, span_find(bad[i].result, SPAN(CANARY)) < bad[i].result.n);
        assert_true(says("\"blob\":") == (bad[i].result.n > 0));
    }
}

/* In the answer it is one deeper, which every client must still be able to read. */
static void a_result_is_no_deeper_than_an_answer_may_be(void **state)
{
    char deep[2 * JSON_DEPTH_MAX];
    only_kind(ANY);
    for (size_t depth = JSON_DEPTH_MAX - 2; depth <= JSON_DEPTH_MAX - 1; depth++) {
        memset(deep, '[', depth);
        memset(deep + depth, ']', depth);
        to_its_result();
        says_output(1, span_of(deep, 2 * depth));
        exits(SB_EXITED, 0);
        over();
        if (depth == JSON_DEPTH_MAX - 2)
            assert_true(x.status == 200 && json_parse(dynbuf_span(&x.out), &x.arena) != NULL);
        else
            assert_true(x.status == 502 && says("\"error\":\"too_large\""));
    }
}

static void how_a_command_failed_is_said_in_our_words(void **state)
{
    static const struct {
        enum sb_end how;
        unsigned code;
        const char *said;
    } ends[] = {{SB_EXITED, 3, "\"error\":\"command_failed\",\"command\":{\"how\":\"exited\",\"status\":3}"},
                {SB_SIGNALLED, 9, "\"error\":\"command_failed\",\"command\":{\"how\":\"signalled\",\"signal\":9}"},
                {SB_TIMED_OUT, 9, "\"error\":\"timed_out\""},
                {SB_NOT_STARTED, 0, "\"error\":\"not_started\""},
                {SB_LOST, 0, "\"error\":\"lost\""},
                {(enum sb_end)9, 0, "\"error\":\"lost\""}};
    only_kind(OUTPUT);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        to_its_command(ASKED);
        exits(ends[i].how, ends[i].code);
        assert_int_equal(sent_type, M_SB_DESTROY);
        answer(ASK_WARDEN, M_SB_DESTROYED, SPAN("\0")); /* it has ended by itself */
        answer(ASK_LEDGER, M_SANDBOX_DONE, DONE_OK);
        answer(ASK_LEDGER, M_TASK_WRITTEN, WRITTEN);
        if (x.status != 502 || !says(ends[i].said) || says(CANARY))
            fail_msg("%zu: %u %.*s", i, x.status, SPAN_FMT(dynbuf_span(&x.out)));
    }
    to_its_result();
    exits(SB_EXITED, ENOENT);
    is_destroyed();
    to_its_result();
    exits(SB_EXITED, EFBIG);
    is_destroyed();
}

/* Who has the sandbox's word gives more than was asked for: it is not kept, and what runs is ended. */
static void more_than_was_asked_for_is_not_taken(void **state)
{
    static uint8_t much[1024 * 1024];
    only_kind(OUTPUT);
    memset(much, ' ', sizeof(much));
    to_its_result();
    says_output(1, span_of(much, sizeof(much)));
    assert_int_equal(sent_type, M_SB_TAKEN);
    says_output(1, SPAN("1"));
    is_destroyed();
    to_its_command(ASKED);
    says_output(1, SPAN("1")); /* a command says nothing here */
    is_destroyed();
}

static void a_long_input_is_given_as_it_is_taken(void **state)
{
    static char body[80 * 1024];
    size_t n = (size_t)snprintf(body, sizeof(body), "{\"kind\":\"count\",\"input\":{\"text\":\"");
    memset(body + n, 'a', 40 * 1024);
    (void)snprintf(body + n + 40 * 1024, 8, "\"}}");
    only_kind(OUTPUT);
    begin(body);
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    assert_true(sent_type == M_SB_INPUT && sent.n == TALK_IN_WINDOW);
    hear(M_SB_FED, SPAN("\0\0\0\1"));
    assert_true(sent_type == M_SB_INPUT && sent.n == 1);
    hear(M_SB_FED, SPAN("\0\0\x80\0"));
    assert_true(sent_type == M_SB_INPUT && sent.n == 0); /* the rest, and the end of it */
    exits(SB_EXITED, 1);
    is_destroyed();
}

static void who_leaves_ends_it(void **state)
{
    only_kind(OUTPUT);
    begin(ASKED);
    x.left = true;
    chore_left(&x); /* nothing runs in it yet */
    assert_int_equal(sent_type, M_SB_START);
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    is_destroyed();
    to_its_command(ASKED);
    x.left = true;
    chore_left(&x);
    is_destroyed();
    to_its_result();
    says_output(1, SPAN("{\"words\":1}"));
    x.left = true;
    exits(SB_EXITED, 0);
    is_destroyed();
}

static void the_warden_ends_and_it_is_said(void **state)
{
    only_kind(OUTPUT);
    to_its_command(ASKED);
    desk.warden = NULL;
    chore_gone(&desk);
    assert_true(x.status == 503 && desk.chores == NULL);
    desk.warden = (struct chan *)&desk;
    end();
    assert_int_equal(desk.held[SHARE_FOLLOW], 0);
    to_its_result();
    exits(SB_EXITED, 0);
    ask_gone(&desk, ASK_WARDEN); /* while it is to be destroyed: nobody knows whether it is */
    assert_int_equal(x.status, 503);
    end();
    assert_int_equal(desk.held[SHARE_FOLLOW], 0);
    assert_int_equal(control("POST /api/v1/tasks", ASKED), 0);
    answer(ASK_WARDEN, M_SB_IMAGE, SPAN("\0\0\0\0\0\0\0\0\3why"));
    assert_int_equal(x.status, 503);
    end();
    assert_int_equal(desk.held[SHARE_FOLLOW], 0);
}

/* Whatever else fails: its sandbox is told to end. */
static void a_sandbox_is_not_left_when_nothing_can_be_asked(void **state)
{
    only_kind(OUTPUT);
    to_its_result();
    for (size_t i = 0; i < DESK_ASKS; i++)
        desk.asks[i].id = UINT64_MAX;
    exits(SB_EXITED, 0);
    assert_true(x.status == 503 && says("too much is asked at once") && sent_type == M_SB_FILES);
    memset(desk.asks, 0, sizeof(desk.asks));
    end();
    assert_int_equal(sent_type, M_SB_DESTROY);
    assert_true(span_starts(span_from(dynbuf_span(&sent), 4), SPAN("sb-")));
}

/* One that runs keeps the schema that it began with. */
static void a_reload_changes_what_comes(void **state)
{
    only_kind(OUTPUT);
    to_its_result();
    only_kind("false");
    says_output(1, SPAN("{\"words\":1}"));
    exits(SB_EXITED, 0);
    over();
    assert_int_equal(x.status, 200);
    to_its_result();
    says_output(1, SPAN("{\"words\":1}"));
    exits(SB_EXITED, 0);
    over();
    assert_true(x.status == 502 && says("\"keyword\":\"false\""));
    assert_int_equal(kinds_hear(&desk.kinds, M_TASKS, SPAN("\0\2")), 0);
    say_kind("new", INPUT, OUTPUT);
    assert_int_equal(control("GET /api/v1/tasks", ""), 200);
    assert_true(says("\"kind\":\"count\"") && !says("\"kind\":\"new\"")); /* half a list is none */
    say_kind("newer", INPUT, OUTPUT);
    assert_int_equal(control("GET /api/v1/tasks", ""), 200);
    assert_true(!says("\"kind\":\"count\"") && says("\"kind\":\"new\"") && says("\"kind\":\"newer\""));
    assert_int_equal(kinds_hear(&desk.kinds, M_TASKS, SPAN("\0\1")), 0);
    assert_int_equal(kinds_hear(&desk.kinds, M_TASK, SPAN("\0")), -1);
    assert_int_equal(kinds_hear(&desk.kinds, M_TASKS, SPAN("\1\0")), -1);
    assert_int_equal(control("GET /api/v1/tasks", ""), 200);
    assert_true(says("\"kind\":\"newer\""));
}

/* --- made again ----------------------------------------------------------------------- */

static struct dynbuf kind_bytes;

/* As its record says it. */
static void a_task(const char *outcome, const char *digest, const char *output)
{
    char text[2048], kind[2 * DIGEST_BYTES + 1], input[2 * DIGEST_BYTES + 1];
    struct digest d;
    digest_of(dynbuf_span(&desk.kinds.now[0]->bytes), &d);
    hex_text(span_of(d.b, DIGEST_BYTES), kind);
    digest_of(SPAN("{\"text\":\"a b\"}"), &d);
    hex_text(span_of(d.b, DIGEST_BYTES), input);
    (void)snprintf(text, sizeof(text),
                   "{\"task\":\"count\",\"digest\":\"%s\",\"outcome\":\"%s\",\"kind_sha256\":\"%s\","
                   "\"input_sha256\":\"%s\",\"output_sha256\":\"%s\",\"command\":{\"how\":\"exited\",\"status\":0},"
                   "\"limits\":{\"strict\":true,\"memory\":67108865,\"pids\":9,\"cpu_percent\":7,\"disk\":2097152,"
                   "\"files\":65}}",
                   digest, outcome, kind, input, output);
    a_run("task", text);
    dynbuf_init(&kind_bytes, 1 << 20);
    (void)dynbuf_add(&kind_bytes, dynbuf_span(&desk.kinds.now[0]->bytes));
}

static void image_is(const char *digest)
{
    struct dynbuf b;
    assert_int_equal(sent_type, M_SB_IMAGE);
    dynbuf_init(&b, 256);
    msg_put_u8(&b, true);
    msg_put_span(&b, span_str(digest));
    msg_put_span(&b, SPAN_NONE);
    answer(ASK_WARDEN, M_SB_IMAGE, dynbuf_span(&b));
    dynbuf_free(&b);
}

static void made_again(const char *result)
{
    assert_int_equal(control("POST /api/v1/runs/" RUN "/repeat", ""), 0);
    gives(dynbuf_span(&kind_bytes));
    gives(SPAN("{\"text\":\"a b\"}"));
    image_is(A_DIGEST);
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    struct wire_sandbox row;
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_sandbox(&m, &row), 0);
    row_of(row.name);
    answer(ASK_LEDGER, M_SANDBOX_DONE, DONE_OK);
    struct wire_box box;
    m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_box(&m, &box, false), 0);
    assert_true(box.memory == 67108865 && box.pids == 9 && box.disk == 2097152 && box.files == 65); /* as it was */
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    exits(SB_EXITED, 0);
    exits(SB_EXITED, 0);
    says_output(1, span_str(result));
    exits(SB_EXITED, 0);
    over();
    dynbuf_free(&kind_bytes);
}

static void the_same_record_gives_the_same_output(void **state)
{
    char hex[2 * DIGEST_BYTES + 1];
    struct digest d;
    digest_of(SPAN("{\"words\":2}"), &d);
    hex_text(span_of(d.b, DIGEST_BYTES), hex);
    only_kind(OUTPUT);
    a_task("result", A_DIGEST, hex);
    assert_int_equal(kinds_hear(&desk.kinds, M_TASKS, SPAN("\0\0")), 0); /* it needs no kind of now */
    made_again("{ \"words\": 2 }");
    assert_true(x.status == 200 && says("\"same\":true") && says("\"repeats\":\"" RUN "\""));
    assert_true(was_sent(SPAN("\"repeats\":\"" RUN "\"")) && says(hex));
    only_kind(OUTPUT);
    a_task("result", A_DIGEST, hex);
    made_again("{\"words\":3}");
    assert_true(x.status == 200 && says("\"same\":false") && says("\"result\":{\"words\":3}"));
    a_task("result", A_DIGEST, hex);
    made_again("{\"words\":\"" CANARY "\"}");
    assert_true(x.status == 200 && says("\"same\":false") && says("schema_violation") && !says(CANARY));
}

static void what_a_record_does_not_hold_is_said(void **state)
{
    static const struct {
        const char *outcome, *digest, *said;
    } bad[] = {{"timed_out", A_DIGEST, "no end of its own"},
               {"lost", A_DIGEST, "no end of its own"},
               {"cancelled", A_DIGEST, "no end of its own"},
               {"not_started", A_DIGEST, "no end of its own"},
               {"result", "unknown", "no digest of its image"}};
    only_kind(OUTPUT);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        a_task(bad[i].outcome, bad[i].digest, "");
        assert_int_equal(control("POST /api/v1/runs/" RUN "/repeat", ""), 409);
        assert_true(says(bad[i].said) && sent_type == 0);
        dynbuf_free(&kind_bytes);
    }
    a_run("command", "{}");
    assert_int_equal(control("POST /api/v1/runs/" RUN "/repeat", ""), 409);
    assert_true(says("it is no task") && sent_type == 0);
    a_run("task", "{\"task\":\"count\",\"outcome\":\"result\"}");
    assert_int_equal(control("POST /api/v1/runs/" RUN "/repeat", ""), 409);
    assert_true(says("does not say what it was made of"));
    assert_int_equal(control("POST /api/v1/runs/nosuch/repeat", ""), 404);
    a_task("result", A_DIGEST, "");
    assert_int_equal(docked("acme", "", "POST /api/v1/runs/" RUN "/repeat", ""), 404);
    assert_int_equal(control("POST /api/v1/runs/" RUN "/repeat", ""), 0);
    answer(ASK_LEDGER, M_BLOB_IS, SPAN("\0\0\0\0\0"));
    assert_true(x.status == 409 && says("what its kind was is not kept"));
    assert_int_equal(control("POST /api/v1/runs/" RUN "/repeat", ""), 0);
    gives(SPAN("other bytes"));
    assert_true(x.status == 409 && says("what its kind was is not kept"));
    assert_int_equal(control("POST /api/v1/runs/" RUN "/repeat", ""), 0);
    gives(dynbuf_span(&kind_bytes));
    answer(ASK_LEDGER, M_BLOB_IS, SPAN("\0\0\0\0\0"));
    assert_true(x.status == 409 && says("its input is not kept"));
    assert_int_equal(control("POST /api/v1/runs/" RUN "/repeat", ""), 0);
    gives(dynbuf_span(&kind_bytes));
    gives(SPAN("{\"text\":\"a b\"}"));
    image_is("sha256:1111111111111111111111111111111111111111111111111111111111111111");
    assert_true(x.status == 409 && says("which is not any more what it was")); /* and nothing was started */
    assert_false(was_sent(SPAN("input.json")));
    dynbuf_free(&kind_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_result_that_fits_is_the_answer),
                                       cmocka_unit_test(an_input_that_breaks_its_schema_begins_nothing),
                                       cmocka_unit_test(no_byte_of_a_result_that_does_not_fit_crosses),
                                       cmocka_unit_test(a_result_is_no_deeper_than_an_answer_may_be),
                                       cmocka_unit_test(how_a_command_failed_is_said_in_our_words),
                                       cmocka_unit_test(more_than_was_asked_for_is_not_taken),
                                       cmocka_unit_test(a_long_input_is_given_as_it_is_taken),
                                       cmocka_unit_test(who_leaves_ends_it),
                                       cmocka_unit_test(the_warden_ends_and_it_is_said),
                                       cmocka_unit_test(a_sandbox_is_not_left_when_nothing_can_be_asked),
                                       cmocka_unit_test(a_reload_changes_what_comes),
                                       cmocka_unit_test(the_same_record_gives_the_same_output),
                                       cmocka_unit_test(what_a_record_does_not_hold_is_said)};
    return cmocka_run_group_tests(tests, group_setup, no_kinds);
}
