/* Started sandboxes that stand still and go on, and what is seen of them: what the desk asks whom, in which order. */
#include "tests/unit/desk/started_world.h"

#include <stdlib.h>

#include "proxy/wire.h"
#include "proxy/wire_ticket.h"
#include "web-approval/api/steps.h"
#include "web-approval/ask.h"

/* It stands still, then its leases end, and only then that is said. */
static void a_pause_is_said_when_its_leases_have_ended(void **state)
{
    static const struct {
        struct span warden, ledger;
        unsigned status;
    } cases[] = {{SPAN("\1\1\0\0\0\0\0\0\0\4\0\0\0\0"), SPAN("\1\0\0\0\0"), 200},
                 {SPAN("\1\1\0\0\0\0\0\0\0\4\0\0\0\0"), SPAN("\0\0\0\0\4full"), 503},
                 {SPAN("\0\0\0\0\0\0\0\0\0\4\0\0\0\3why"), SPAN_NONE, 409},
                 {SPAN("\2\0\0\0\0\0\0\0\0\0\0\0\0\0"), SPAN_NONE, 404},
                 {SPAN("\3\0\0\0\0\0\0\0\0\0\0\0\0\0"), SPAN_NONE, 503},
                 {SPAN("\1"), SPAN_NONE, 503}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(control("POST /api/v1/sandboxes/box/pause", ""), 0);
        assert_true(sent_type == M_SB_PAUSE && span_eq(dynbuf_span(&sent), SPAN("\0\0\0\3box\0")));
        answer(ASK_WARDEN, M_SB_PAUSED, cases[i].warden);
        if (cases[i].ledger.n > 0) {
            assert_true(sent_type == M_SANDBOX_PAUSED &&
                        span_eq(dynbuf_span(&sent), SPAN("\0\0\0\3box\0\0\0\0\0\0\0\4")) && noted_n == 0);
            answer(ASK_LEDGER, M_SANDBOX_DONE, cases[i].ledger);
        }
        assert_int_equal(x.status, cases[i].status);
        assert_int_equal(noted_n, x.status == 200);
        assert_true(x.status != 200 || (says("\"state\":\"paused\"") && says("\"paused_by\":\"cgroup v1\"")));
    }
    assert_int_equal(control("POST /api/v1/sandboxes/A/pause", ""), 404);
}

/* One that is not paused keeps its generation; of one that is, the ledger raises it before it goes on. */
static void it_goes_on_of_the_generation_that_the_ledger_gave(void **state)
{
    struct dynbuf runs = list_of_one(PAUSE_NONE), still = list_of_one(PAUSE_SIGNALS);
    static const struct span said[] = {SPAN("\1\0\0\0\0\0\0\0\0\4\0\0\0\0"), SPAN("\0\3\0\0\0\0\0\0\0\4\0\0\0\3why"),
                                       SPAN("\2\0\0\0\0\0\0\0\0\0\0\0\0\0")};
    static const unsigned status[] = {200, 409, 404};
    static const struct span lists[] = {SPAN("\0\0"), SPAN("\0\1")};
    static const unsigned list_status[] = {404, 503};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(control("POST /api/v1/sandboxes/box/resume", ""), 0);
        answer(ASK_WARDEN, M_SB_LISTED, i < 2 ? lists[i] : dynbuf_span(&runs));
        assert_int_equal(x.status, i < 2 ? list_status[i] : 409);
        assert_int_equal(sent_type, M_SB_LIST);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(control("POST /api/v1/sandboxes/box/resume", ""), 0);
        answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&still));
        assert_int_equal(sent_type, M_SANDBOX_PUT);
        answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
        assert_int_equal(sent_type, M_SB_RESUME);
        assert_true(span_eq(dynbuf_span(&sent), SPAN("\0\0\0\3box\0\0\0\0\0\0\0\4")));
        answer(ASK_WARDEN, M_SB_PAUSED, said[i]);
        assert_int_equal(x.status, status[i]);
        assert_int_equal(sent_type, i == 2 ? M_SANDBOX_ENDED : M_SB_RESUME); /* that generation is nobody's */
        assert_int_equal(noted_n, i == 0);
    }
    assert_int_equal(control("POST /api/v1/sandboxes/box/resume", ""), 0);
    answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&still));
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\0\0\0\0\4full"));
    assert_true(x.status == 503 && says("paused still") && says("full"));
    dynbuf_free(&runs);
    dynbuf_free(&still);
}

/* The second one would raise the generation of what the first one lets go on. */
static void two_of_a_name_at_once_are_one(void **state)
{
    static const uint16_t answers[] = {M_SB_LISTED, M_SANDBOX_DONE};
    static struct exchange first;
    struct dynbuf still = list_of_one(PAUSE_CGROUP_2);
    const struct span said[] = {dynbuf_span(&still), SPAN("\1\0\0\0\0")};
    for (int step = 0; step < 3; step++) {
        assert_int_equal(control("POST /api/v1/sandboxes/box/resume", ""), 0);
        for (int i = 0; i < step; i++)
            answer(i == 1 ? ASK_LEDGER : ASK_WARDEN, answers[i], said[i]);
        struct ask asked = desk.asks[0];
        assert_true(asked.id != 0);
        first = x;
        asked.x = &first;
        x = (struct exchange){0};
        waits = asked;
        assert_int_equal(control("POST /api/v1/sandboxes/box/resume", ""), 409);
        assert_true(says("is being resumed") && sent_type == 0);
        assert_int_equal(control("POST /api/v1/sandboxes/two/resume", ""), 0);
        waits = (struct ask){0};
        end();
        x = first;
    }
    dynbuf_free(&still);
}

/* --- for a moment ------------------------------------------------------------------------ */

static struct exchange *own; /* the desk's, answered */

static void own_answered(struct exchange *done)
{
    if (done != &x)
        own = done;
}

static void own_free(void)
{
    assert_non_null(own);
    if (own->over)
        own->over(own);
    dynbuf_free(&own->raw);
    dynbuf_free(&own->out);
    arena_free(&own->arena);
    free(own);
    own = NULL;
}

/* A snapshot of box, until it fails at this step; x is over then. */
static void snapshot_fails(int step, const struct dynbuf *runs)
{
    static const struct span still = SPAN("\1\1\0\0\0\0\0\0\0\4\0\0\0\0");
    assert_int_equal(control("POST /api/v1/sandboxes/box/snapshot", "{}"), 0);
    answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(runs));
    assert_true(sent_type == M_SB_PAUSE && span_eq(dynbuf_span(&sent), SPAN("\0\0\0\3box\1")));
    desk.moment_at = 0;
    if (step == 0) /* the warden does not say whether it is paused */
        ask_expire(&desk, UINT64_MAX);
    else
        answer(ASK_WARDEN, M_SB_PAUSED, still);
    if (step == 1)
        answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\0\0\0\0\4full"));
    else if (step > 1) {
        if (step == 2)
            row_is_gone(SPAN("box"));
        answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    }
    if (step == 2) {
        assert_int_equal(sent_type, M_SB_LIST); /* it is let go on at once, and that fails as well */
        struct dynbuf paused = list_of_one(PAUSE_CGROUP_1);
        answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&paused));
        dynbuf_free(&paused);
        row_is_back(SPAN("box"));
    }
    if (step == 3) {
        assert_int_equal(sent_type, M_SB_SNAPSHOT);
        ask_gone(&desk, ASK_WARDEN);
        ask_gone(&desk, ASK_WARDEN); /* nor does it list any */
    }
    assert_int_equal(x.status, 503);
    end();
    assert_true(desk.moment_at != 0);
    sent_type = 0;
}

/* Whatever fails between its pause and its end: the desk asks which ones were left, and each goes on, as its next
 * generation; it asks again as long as one does not. */
static void what_was_to_stand_still_for_a_moment_goes_on(void **state)
{
    struct dynbuf runs = list_of_one(PAUSE_NONE), paused = list_of_one(PAUSE_CGROUP_1);
    void (*before)(struct exchange *) = exchange_answered;
    exchange_answered = own_answered;
    for (int step = 0; step < 4; step++) {
        snapshot_fails(step, &runs);
        uint64_t now = 20000;
        for (int tries = 0; tries < 2; tries++) {
            assert_true(desk.moment_at <= now);
            api_moment_due(&desk, now);
            assert_true(sent_type == M_SB_MOMENT && sent.n == 0);
            answer(ASK_WARDEN, M_SB_MOMENT, SPAN("\0\1\0\0\0\3box"));
            assert_int_equal(sent_type, M_SB_LIST);
            answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&paused));
            assert_int_equal(sent_type, M_SANDBOX_PUT);
            answer(ASK_LEDGER, M_SANDBOX_DONE, tries == 0 ? SPAN("\0\0\0\0\4full") : SPAN("\1\0\0\0\0"));
            if (tries == 0) {
                own_free();
                assert_true(desk.moment_at > now);
                sent_type = 0;
                api_moment_due(&desk, now); /* not at once */
                assert_int_equal(sent_type, 0);
                now = desk.moment_at;
            }
        }
        assert_true(sent_type == M_SB_RESUME && span_eq(dynbuf_span(&sent), SPAN("\0\0\0\3box\0\0\0\0\0\0\0\4")));
        answer(ASK_WARDEN, M_SB_PAUSED, SPAN("\1\0\0\0\0\0\0\0\0\4\0\0\0\0"));
        own_free();
        api_moment_due(&desk, now); /* is there another one? */
        assert_int_equal(sent_type, M_SB_MOMENT);
        answer(ASK_WARDEN, M_SB_MOMENT, SPAN("\0\0"));
        own_free();
        sent_type = 0;
        api_moment_due(&desk, UINT64_MAX);
        assert_int_equal(sent_type, 0);
    }
    exchange_answered = before;
    dynbuf_free(&runs);
    dynbuf_free(&paused);
}

/* One that a request is at is that one's; another one's turn comes, whatever keeps the first back. */
static void one_that_is_worked_at_is_left_alone(void **state)
{
    static const struct span two = SPAN("\0\2\0\0\0\3box\0\0\0\4abox"),
                             three = SPAN("\0\3\0\0\0\3box\0\0\0\4abox\0\0\0\3old");
    static struct exchange other;
    void (*before)(struct exchange *) = exchange_answered;
    unsigned seen = 0;
    exchange_answered = own_answered;
    memset(desk.asks, 0, sizeof(desk.asks));
    other = (struct exchange){.desk = &desk, .arg = SPAN("box"), .moment = true};
    desk.asks[DESK_ASKS - 1] = (struct ask){.id = 1000, .until_ms = UINT64_MAX, .x = &other};
    for (int i = 0; i < 4; i++) {
        api_moment_look(&desk);
        api_moment_due(&desk, 1);
        answer(ASK_WARDEN, M_SB_MOMENT, i < 2 ? two : three);
        assert_int_equal(sent_type, M_SB_LIST);
        seen |= span_eq(desk.asks[0].x->arg, SPAN("abox"))  ? 1U << i
                : span_eq(desk.asks[0].x->arg, SPAN("old")) ? 16
                                                            : 64;
        answer(ASK_WARDEN, M_SB_LISTED, SPAN("\0\0"));
        own_free();
    }
    assert_true((seen & 3) == 3 && (seen & 16) && !(seen & 64));
    memset(desk.asks, 0, sizeof(desk.asks));
    exchange_answered = before;
}

static void its_time_is_set(void **state)
{
    assert_int_equal(control("POST /api/v1/sandboxes/box/timeout", "{\"timeout\":60}"), 0);
    assert_true(sent_type == M_SB_TIMEOUT && span_eq(dynbuf_span(&sent), SPAN("\0\0\0\3box\0\0\0\0\0\0\352\140")));
    answer(ASK_WARDEN, M_SB_TIMEOUT, SPAN("\1"));
    assert_true(x.status == 204 && noted_n == 1);
    assert_int_equal(control("POST /api/v1/sandboxes/box/timeout", "{\"timeout\":604800}"), 0);
    answer(ASK_WARDEN, M_SB_TIMEOUT, SPAN("\0"));
    assert_true(x.status == 404 && noted_n == 0);
    assert_int_equal(control("POST /api/v1/sandboxes/box/timeout", "{\"timeout\":60}"), 0);
    ask_gone(&desk, ASK_WARDEN);
    assert_int_equal(x.status, 503);
    for (const char *const *bad =
             (const char *const[]){"{}", "{\"timeout\":0}", "{\"timeout\":604801}", "{\"timeout\":\"1h\"}", NULL};
         *bad; bad++)
        assert_int_equal(control("POST /api/v1/sandboxes/box/timeout", *bad), 400);
    assert_int_equal(control("POST /api/v1/sandboxes/A/timeout", "{\"timeout\":60}"), 404);
}

static void what_is_known_of_what_they_use_is_said(void **state)
{
    struct dynbuf b = list_of_one(PAUSE_CGROUP_1), usage;
    dynbuf_init(&usage, 256);
    wire_put_usage(&usage, &(struct wire_usage){1, 1000, UINT64_MAX, 3000, 4, 5000});
    assert_int_equal(control("GET /api/v1/sandboxes/metrics", ""), 0);
    assert_true(sent_type == M_SB_METER && sent.n == 0);
    msg_put_span(&b, dynbuf_span(&usage));
    answer(ASK_WARDEN, M_SB_METER, span_from(dynbuf_span(&b), 2)); /* without their number */
    assert_int_equal(x.status, 200);
    assert_true(says("\"memory_used\":1000,\"disk_used\":3000,\"pids_used\":4,\"cpu_us\":5000}") &&
                says("\"measured_by\":\"cgroup\"") && says("\"state\":\"paused\"") && !says("peak"));
    assert_int_equal(control("GET /api/v1/sandboxes/metrics", ""), 0);
    answer(ASK_WARDEN, M_SB_METER, SPAN(""));
    assert_true(x.status == 200 && says("\"sandboxes\":[]"));
    assert_int_equal(control("GET /api/v1/sandboxes/metrics", ""), 0);
    answer(ASK_WARDEN, M_SB_METER, span_first(span_from(dynbuf_span(&b), 2), b.n - 3));
    assert_int_equal(x.status, 503);
    assert_int_equal(control("GET /api/v1/sandboxes/metrics", ""), 0);
    ask_gone(&desk, ASK_WARDEN);
    assert_int_equal(x.status, 503);
    dynbuf_free(&b);
    dynbuf_free(&usage);
}

static void what_a_command_said_is_there_to_be_read(void **state)
{
    static const struct {
        struct span said;
        unsigned status;
    } cases[] = {{SPAN("\1\0\1\3\0\0\0\0\0\0\0\7\0\0\0\2hi\0\0\0\0\0\0\0\0\0\0\0\0"), 200},
                 {SPAN("\0\0\0\0"), 404},
                 {SPAN("\4\0\0\0"), 404},
                 {SPAN("\1\0\1\3"), 503}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(control("GET /api/v1/sandboxes/box/log?command=3.7", ""), 0);
        assert_true(sent_type == M_SB_LOG &&
                    span_eq(dynbuf_span(&sent), SPAN("\0\0\0\3box\0\0\0\0\0\0\0\3\0\0\0\7")));
        answer(ASK_WARDEN, M_SB_LOG, cases[i].said);
        assert_int_equal(x.status, cases[i].status);
        assert_true(
            i > 0 ||
            says("{\"command\":\"3.7\",\"state\":\"exited\",\"status\":3,\"stdout\":{\"cut\":7,\"data\":\"aGk=\"},"
                 "\"stderr\":{\"cut\":0,\"data\":\"\"}}"));
    }
    assert_int_equal(control("GET /api/v1/sandboxes/box/log", ""), 400);
    assert_int_equal(control("GET /api/v1/sandboxes/box/log?command=3.0", ""), 400);
    assert_int_equal(control("GET /api/v1/sandboxes/A/log?command=3.7", ""), 404);
}

/* A fork reaches no more than what it is made of, and what is kept of it says so, whoever asks. */
static void fork_reaches(const char *of_row, const char *note, const char *reach)
{
    static const struct span still = SPAN("\1\1\0\0\0\0\0\0\0\4\0\0\0\0");
    struct dynbuf runs = list_of_one(PAUSE_NONE), paused = list_of_one(PAUSE_CGROUP_1);
    struct wire_sandbox row;
    row_reaches(of_row);
    box_has_note(note);
    assert_int_equal(control("POST /api/v1/sandboxes/box/fork", "{\"name\":\"twin\",\"lane\":\"web\"}"), 0);
    answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&runs));
    answer(ASK_WARDEN, M_SB_PAUSED, still);
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    assert_int_equal(sent_type, M_SB_SNAPSHOT);
    assert_true(span_ends(dynbuf_span(&sent), span_str(reach)));
    head_said(reach);
    assert_int_equal(sent_type, M_SB_LIST); /* what it was made of goes on */
    answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&paused));
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\1\0\0\0\0"));
    assert_int_equal(sent_type, M_SB_RESUME);
    answer(ASK_WARDEN, M_SB_PAUSED, SPAN("\1\0\0\0\0\0\0\0\0\4\0\0\0\0"));
    assert_int_equal(sent_type, M_SB_LIST);
    answer(ASK_WARDEN, M_SB_LISTED, dynbuf_span(&runs));
    assert_int_equal(sent_type, M_SANDBOX_PUT);
    struct msg_in m = msg_in(dynbuf_span(&sent));
    assert_int_equal(wire_get_sandbox(&m, &row), 0);
    assert_true(span_eq(row.name, SPAN("twin")) && span_eq(row.reach, span_str(reach)));
    answer(ASK_LEDGER, M_SANDBOX_DONE, SPAN("\0\0\0\0\4full"));
    assert_int_equal(x.status, 503);
    row_reaches("");
    box_has_note("");
    dynbuf_free(&runs);
    dynbuf_free(&paused);
}

/* Rows from before narrowings say nothing of a sandbox without a network; the dock's note does. */
static void a_fork_reaches_no_more(void **state)
{
    static const char reach[] = "+n a.test\n&\n-a 10.0.0.0/8\n";
    fork_reaches(reach, "", reach);
    fork_reaches(reach, "{\"started_ms\":1}", reach);
    fork_reaches("", "{\"started_ms\":1,\"alone\":true}", "0\n");
    fork_reaches(reach, "{\"alone\":true}", "0\n");
    fork_reaches("", "what is none", "0\n");
    fork_reaches("", "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_is_said_when_its_leases_have_ended),
        cmocka_unit_test(it_goes_on_of_the_generation_that_the_ledger_gave),
        cmocka_unit_test(two_of_a_name_at_once_are_one),
        cmocka_unit_test(what_was_to_stand_still_for_a_moment_goes_on),
        cmocka_unit_test(a_fork_reaches_no_more),
        cmocka_unit_test(one_that_is_worked_at_is_left_alone),
        cmocka_unit_test(its_time_is_set),
        cmocka_unit_test(what_is_known_of_what_they_use_is_said),
        cmocka_unit_test(what_a_command_said_is_there_to_be_read),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
