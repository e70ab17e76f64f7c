/* Tasks: whose a kind is, how often one begins, an end for one by an operator, and who reads what did not fit. */
#include "tests/unit/desk/tasks_world.h"

/* --- of whom, how often, and until when ------------------------------------------------- */

/* Everybody's, and another one of acme's own. */
static void two_kinds(unsigned retries)
{
    struct wire_task t = {.kind = SPAN("count"),
                          .timeout_ms = 30000,
                          .word = {SPAN("wc")},
                          .nwords = 1,
                          .retries = retries,
                          .input = SPAN(INPUT),
                          .output = SPAN(OUTPUT)};
    assert_int_equal(kinds_hear(&desk.kinds, M_TASKS, SPAN("\0\2")), 0);
    t.tenant[0] = SPAN("acme");
    t.ntenants = 1;
    t.lane = SPAN("build");
    t.residency = SPAN("eu");
    t.memory = UINT64_C(128) << 20;
    say_task(&t);
    t.ntenants = 0;
    t.lane = t.residency = SPAN_NONE;
    t.memory = UINT64_C(64) << 20;
    say_task(&t);
}

#define OF_ACME "{\"kind\":\"count\",\"tenant\":\"acme\",\"id\":\"mine\",\"input\":{\"text\":\"a b\"}}"

static struct wire_box box_sent(void)
{
    struct wire_box box;
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_box(&m, &box, false), 0);
    return box;
}

static void a_kind_is_a_tenants_own_or_everybodys(void **state)
{
    struct wire_extras e;
    struct wire_box box;
    two_kinds(0);
    begin(ASKED);
    box = box_sent();
    assert_true(box.memory == UINT64_C(64) << 20 && box.lane.n == 0);
    assert_int_equal(wire_get_extras(box.extras, &e), 0);
    assert_true(span_eq(e.tenant, SPAN("default")) && span_eq(e.task, SPAN("count")) && e.residency.n == 0);
    end();
    begin(OF_ACME);
    assert_true(was_sent(SPAN("lane\0\0\0\5build")) && was_sent(SPAN("residency\0\0\0\2eu"))); /* labels of its row */
    box = box_sent();
    assert_true(box.memory == UINT64_C(128) << 20 && span_eq(box.lane, SPAN("build")));
    assert_int_equal(wire_get_extras(box.extras, &e), 0);
    assert_true(span_eq(e.tenant, SPAN("acme")) && span_eq(e.residency, SPAN("eu")));
    end();
    assert_int_equal(kinds_hear(&desk.kinds, M_TASKS, SPAN("\0\1")), 0);
    say_task(&(struct wire_task){.kind = SPAN("count"),
                                 .timeout_ms = 30000,
                                 .word = {SPAN("wc")},
                                 .nwords = 1,
                                 .tenant = {SPAN("acme")},
                                 .ntenants = 1,
                                 .input = SPAN("{}"),
                                 .output = SPAN("{}")});
    assert_int_equal(control("POST /api/v1/tasks", ASKED), 404);
    assert_true(says("for this tenant") && sent_type == 0);
    assert_int_equal(control("POST /api/v1/tasks", "{\"kind\":\"count\",\"tenant\":\"../x\",\"input\":1}"), 400);
}

static void sandbox_is_gone(void)
{
    assert_true(sent_type == M_SB_DESTROY && x.status == 0);
    over();
}

static void starts_again(void)
{
    struct wire_sandbox row;
    assert_true(sent_type == M_SB_IMAGE && x.status == 0 && desk.held[SHARE_FOLLOW] == 1);
    answer(ASK_WARDEN, M_SB_IMAGE, SPAN(UNKNOWN));
    answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_sandbox(&m, &row), 0);
    row_of(row.name);
    answer(ASK_LEDGER, M_SANDBOX_DONE, DONE_OK);
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
}

/* A sandbox that was lost before its command was ordered is another one's to do, once; later, only as the kind says.
 */
static void what_was_not_begun_begins_anew(void **state)
{
    two_kinds(0);
    begin(ASKED);
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    exits(SB_LOST, 0);
    sandbox_is_gone();
    starts_again();
    exits(SB_LOST, 0);
    sandbox_is_gone();
    assert_true(x.status == 502 && says("\"error\":\"not_started\"") && says("\"attempts\":2"));
    end();
    to_its_command(ASKED);
    exits(SB_LOST, 0); /* it may have begun */
    sandbox_is_gone();
    assert_true(x.status == 502 && says("\"error\":\"lost\"") && says("\"attempts\":1"));
    end();
    two_kinds(2);
    to_its_command(ASKED);
    exits(SB_EXITED, 7);
    sandbox_is_gone();
    assert_true(was_sent(SPAN("\"attempt\":1")) && was_sent(SPAN("command_failed"))); /* each is written down */
    starts_again();
    exits(SB_EXITED, 0);
    exits(SB_EXITED, 0);
    says_output(1, SPAN("{\"words\":2}"));
    assert_int_equal(sent_type, M_SB_TAKEN);
    exits(SB_EXITED, 0);
    sandbox_is_gone();
    assert_true(x.status == 200 && says("\"attempts\":2") && says("{\"words\":2}"));
    end();
    assert_true(desk.tasks == NULL && desk.held[SHARE_FOLLOW] == 0);
}

/* Another request, while x goes on. */
static unsigned beside(void fn(struct exchange *other), const char *id, const char *said)
{
    struct exchange other = {.desk = &desk, .place = PLACE_CONTROL, .arg = span_str(id), .file = -1};
    arena_init(&other.arena, 1 << 20);
    dynbuf_init(&other.out, 1 << 20);
    fn(&other);
    unsigned status = other.status;
    if (span_find(dynbuf_span(&other.out), span_str(said)) >= other.out.n && *said)
        fail_msg("%u %.*s", status, SPAN_FMT(dynbuf_span(&other.out)));
    dynbuf_free(&other.out);
    arena_free(&other.arena);
    return status;
}

static void an_operator_ends_one_at_any_time(void **state)
{
    two_kinds(3);
    assert_int_equal(beside(api_task_cancel, "mine", "no task of this id"), 404);
    to_its_command(OF_ACME);
    assert_int_equal(beside(api_tasks_running, "", "\"id\":\"mine\",\"kind\":\"count\",\"tenant\":\"acme\""), 200);
    assert_int_equal(beside(api_task_cancel, "other", "no task of this id"), 404);
    assert_int_equal(beside(api_task_cancel, "mine", ""), 204); /* its command runs */
    assert_int_equal(beside(api_task_cancel, "mine", "the task is over"), 409);
    sandbox_is_gone(); /* and no other attempt is begun */
    assert_true(x.status == 502 && says("\"error\":\"cancelled\"") && says("\"attempts\":1"));
    assert_true(was_sent(SPAN("\"outcome\":\"cancelled\"")));
    end();
    begin(OF_ACME); /* its sandbox is being started */
    assert_int_equal(beside(api_task_cancel, "mine", ""), 204);
    assert_int_equal(beside(api_tasks_running, "", "\"state\":\"ending\""), 200);
    assert_int_equal(sent_type, M_SB_START);
    answer(ASK_WARDEN, M_SB_STARTED, SPAN("\1\0\0\0\0\1"));
    assert_true(!was_sent(SPAN("input.json")));
    sandbox_is_gone();
    assert_true(x.status == 502 && says("\"error\":\"cancelled\""));
    end();
    to_its_command(ASKED);
    exits(SB_EXITED, 0);
    says_output(1, SPAN("{\"words\":2}"));
    exits(SB_EXITED, 0); /* its result is there: it is what is answered */
    assert_int_equal(beside(api_task_cancel, desk.tasks->id, "the task is over"), 409);
    sandbox_is_gone();
    assert_true(x.status == 200 && desk.tasks->next == NULL);
    end();
    assert_null(desk.tasks);
    struct task one = {.id = "mine"};
    desk.tasks = &one;
    assert_int_equal(control("POST /api/v1/tasks", OF_ACME), 409);
    assert_true(says("a task of this id runs") && sent_type == 0);
    desk.tasks = NULL;
    end();
    assert_int_equal(desk.held[SHARE_FOLLOW], 0);
}

/* --- what did not fit ------------------------------------------------------------------- */

#define LEFT "{\"words\":\"" CANARY "\"}"

static void what_does_not_fit_is_an_operators_to_read(void **state)
{
    char hex[2 * DIGEST_BYTES + 1], record[256];
    struct digest d;
    only_kind(OUTPUT);
    to_its_result();
    says_output(1, SPAN(LEFT));
    exits(SB_EXITED, 0);
    assert_true(was_sent(SPAN(LEFT))); /* to the ledger alone */
    sandbox_is_gone();
    digest_of(SPAN(LEFT), &d);
    hex_text(span_of(d.b, DIGEST_BYTES), hex);
    assert_true(x.status == 502 && says("\"blob\":\"/api/v1/runs/") && says("/output\"") && !says(CANARY) &&
                !says(hex));
    assert_true(was_sent(SPAN("\"output_kept\":true")));
    end();
    to_its_result();
    says_output(1, SPAN("{\"words\":2}"));
    exits(SB_EXITED, 0);
    sandbox_is_gone();
    assert_true(x.status == 200 && !says("\"blob\"") && !was_sent(SPAN("output_kept")));
    end();
    (void)snprintf(record, sizeof(record), "{\"output_kept\":true,\"output_sha256\":\"%s\"}", hex);
    a_run("task", record);
    assert_int_equal(control("GET /api/v1/runs/" RUN "/output", ""), 0);
    assert_true(was_sent(SPAN("default")));
    gives(SPAN(LEFT));
    assert_true(x.status == 200 && span_eq(dynbuf_span(&x.out), SPAN(LEFT)));
    assert_string_equal(x.type, "application/octet-stream");
    assert_int_equal(control("GET /api/v1/runs/" RUN "/output", ""), 0);
    gives(SPAN("other bytes"));
    assert_int_equal(x.status, 404);
    assert_int_equal(docked("acme", "", "GET /api/v1/runs/" RUN "/output", ""), 404);
    (void)snprintf(record, sizeof(record), "{\"output_sha256\":\"%s\"}", hex);
    a_run("task", record);
    assert_int_equal(control("GET /api/v1/runs/" RUN "/output", ""), 404);
    assert_true(says("no output is kept") && sent_type == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_kind_is_a_tenants_own_or_everybodys),
                                       cmocka_unit_test(what_was_not_begun_begins_anew),
                                       cmocka_unit_test(an_operator_ends_one_at_any_time),
                                       cmocka_unit_test(what_does_not_fit_is_an_operators_to_read)};
    return cmocka_run_group_tests(tests, group_setup, no_kinds);
}
