/* What a worker makes of what the desk says: of a call that the record does not have, and of leases that end. */
#include "broker/work/tools.h"
#include "broker/work/work.h"
#include "common/net/loop.h"
#include "proxy/ledger/store/runs/runs.h"
#include "tests/kit.h"

enum { ROOM = 1024 * 1024, MINUTE = 60 * 1000 };
#define DAY UINT64_C(86400000)
#define NOW (UINT64_C(1800000000000))

static struct bstore store;
static struct work work;
static struct task task;
static uint64_t now;
/* The last question to the desk, and how many there were; what the agent was told last. */
static told_fn *asked;
static uint64_t asked_arg;
static unsigned questions;
static char asked_for[128];
static struct loop_event told;
/* What the last one who needed a lease was given. */
static unsigned status_was;
static char lease_was[64];

/* --- instead of the rest of a worker ------------------------------------------------------------ */

void desk_ask(struct task *t, const char *method, struct span target, struct span json, told_fn *fn, uint64_t arg)
{
    assert_non_null(target.p);
    asked = fn;
    asked_arg = arg;
    (void)snprintf(asked_for, sizeof(asked_for), "%s %.*s", method, SPAN_FMT(target));
    questions++;
}

struct span desk_box(struct task *t, const char *rest, struct span path)
{
    return span_str(rest);
}

struct span desk_words(struct task *t, unsigned status, struct span body)
{
    return body;
}

void task_tell(struct task *t, struct loop_event e)
{
    told = e;
}

void task_why(struct task *t, struct span words)
{
}

void task_ready(struct task *t, unsigned status)
{
}

void task_finish(struct task *t)
{
}

void show_begin(struct dynbuf *b, struct jsonw *w)
{
}

void show(struct task *t, const char *type, struct dynbuf *body)
{
}

void command_mark(const struct digest *key, char out[COMMAND_MARK + 1])
{
    (void)snprintf(out, COMMAND_MARK + 1, "call-x");
}

void command_follow(struct task *t, uint64_t ord, struct span number)
{
}

void edit_look(struct task *t, uint64_t ord)
{
}

void timer_set(struct timer *t, uint64_t ms)
{
}

uint64_t loop_wall(const struct loop *l)
{
    return now;
}

static int setup(void **state)
{
    work = (struct work){.store = &store};
    task = (struct task){.w = &work, .calls = 1};
    arena_init(&task.arena, ROOM);
    arena_init(&task.step_arena, 16 * ROOM);
    task.call[0].call.tool = SPAN("run_command");
    task.lane[0] = 'l';
    now = NOW;
    questions = 0;
    return 0;
}

static int teardown(void **state)
{
    arena_free(&task.arena);
    arena_free(&task.step_arena);
    return 0;
}

static void say(unsigned status, const char *json)
{
    told_fn *fn = asked;
    assert_non_null(fn);
    asked = NULL;
    fn(&task, asked_arg, status, span_str(json));
}

/* --- broker/work/recall.c --- */

/* A page of n commands that began then, none of which is the one that is looked for. */
static void say_runs(size_t n, uint64_t began_ms, uint64_t seq)
{
    struct dynbuf b;
    dynbuf_init(&b, ROOM);
    assert_int_equal(dynbuf_add(&b, SPAN("{\"runs\":[")), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(dynbuf_addf(&b,
                                     "%s{\"begin\":\"{\\\"argv\\\":{\\\"words\\\":[]}}\",\"begin_seq\":%llu,"
                                     "\"began_ms\":%llu}",
                                     i ? "," : "", (unsigned long long)(seq - i), (unsigned long long)began_ms),
                         0);
    assert_int_equal(dynbuf_add(&b, SPAN("]}\0")), 0);
    say(200, (const char *)b.p);
    dynbuf_free(&b);
}

/* Not among those of the warden, and so many of the ledger. */
static enum known recalled(uint64_t intent_ms, size_t runs, uint64_t began_ms)
{
    told = (struct loop_event){.heard = HEARD_NOTHING};
    task.call[0].intent_ms = intent_ms;
    recall_ask(&task, 0);
    say(200, "{\"commands\":[]}");
    for (uint64_t seq = 100000; runs > 0; seq -= 1000) {
        size_t page = runs < 256 ? runs : 256;
        say_runs(page, began_ms, seq);
        runs -= page;
    }
    say(200, "{\"runs\":[]}");
    assert_int_equal(told.heard, HEARD_KNOWN);
    return told.known;
}

/* The record forgets: a call that it does not have was not sent only if it would have it still. */
static void what_may_be_forgotten_may_have_happened(void **state)
{
    assert_int_equal(recalled(NOW - MINUTE, 3, NOW - DAY), KNOWN_NOT_SENT);
    assert_int_equal(recalled(NOW - MINUTE, 0, 0), KNOWN_NOT_SENT);
    assert_int_equal(recalled(NOW - 20 * DAY, STORE_RUNS_MAX - 1, NOW), KNOWN_NOT_SENT);
    assert_int_equal(recalled(NOW - MINUTE, STORE_RUNS_MAX, NOW - 3 * DAY), KNOWN_NOT_SENT); /* all before it */
    assert_int_equal(recalled(NOW - MINUTE, STORE_RUNS_MAX, NOW), KNOWN_NOTHING);
    assert_int_equal(recalled(NOW - STORE_RUNS_AGE_MAX, 0, 0), KNOWN_NOTHING);
    assert_int_equal(recalled(NOW + DAY, 0, 0), KNOWN_NOTHING); /* the clock was set back */
    assert_int_equal(recalled(0, 0, 0), KNOWN_NOTHING);
}

/* --- broker/work/lane.c --- */

static void had(struct task *t, uint64_t arg, unsigned status, struct span lease)
{
    status_was = status;
    (void)snprintf(lease_was, sizeof(lease_was), "%.*s", SPAN_FMT(lease));
}

/* Needs one of this credential; asked for one, the desk gives this. */
static void need(const char *credential, const char *lease, uint64_t expires_ms)
{
    char json[256];
    unsigned before = questions;
    status_was = 0;
    lease_need(&task, span_str(credential), had, 0);
    if (questions == before)
        return;
    snprintf(json, sizeof(json), "{\"lease\":\"%s\",\"expires_ms\":%llu}", lease, (unsigned long long)expires_ms);
    say(201, json);
}

static void a_lease_that_ends_is_got_anew_before_it_does(void **state)
{
    need("model", "first", NOW + 60 * MINUTE);
    assert_true(status_was == 200 && strcmp(lease_was, "first") == 0 && questions == 1);
    now += 45 * MINUTE;
    need("model", "second", NOW + 105 * MINUTE);
    assert_true(status_was == 200 && strcmp(lease_was, "first") == 0 && questions == 1);
    now += 10 * MINUTE; /* it would end while a model is still silent */
    need("model", "second", NOW + 115 * MINUTE);
    assert_true(status_was == 200 && strcmp(lease_was, "second") == 0 && questions == 2);
    need("other", "third", NOW + 115 * MINUTE);
    assert_true(strcmp(lease_was, "third") == 0 && questions == 3 && task.nleases == 2);
    for (uint64_t i = 0; i < 20; i++) { /* in the place of the one before */
        now += 60 * MINUTE;
        need("model", "later", now + 60 * MINUTE);
        assert_true(status_was == 200 && strcmp(lease_was, "later") == 0);
    }
    assert_int_equal(task.nleases, 2);
    now += 60 * MINUTE;
    need("model", "ended", now); /* it is none */
    assert_int_equal(status_was, 503);
}

/* By a worker that was killed before it had written that down: its checkpoints name the sandbox from now on. */
static void a_sandbox_that_runs_already_is_named(void **state)
{
    (void)snprintf(task.box, sizeof(task.box), "c-talk");
    box_need(&task, had, 0);
    say(409, "{\"title\":\"It runs\"}");
    assert_int_equal(status_was, 200);
    assert_true(strncmp(task.files_ref, "c-talk.0", 8) == 0 && !task.files_lost);
}

/* A sandbox that starts is ended once it has started, and then alone: before, it would run on. */
static void the_end_of_a_live_replay_waits_for_its_start(void **state)
{
    for (int before = 0; before < 2; before++) {
        task.found.live = SPAN("one");
        task.dropping = task.starting = task.box_up = false;
        box_need(&task, had, 0);
        if (before) /* the worker before this one has begun it */
            say(409, "{\"title\":\"It starts\"}");
        unsigned n = questions;
        lane_drop(&task);
        assert_int_equal(questions, n);
        if (before) {
            box_start(&task); /* its timer */
            assert_string_equal(asked_for, "POST /destroy");
            say(409, "{\"title\":\"It starts\"}");
            box_start(&task);
        } else {
            say(201, "{\"generation\":1}");
        }
        assert_string_equal(asked_for, "POST /destroy");
        say(204, "");
        assert_non_null(strstr(asked_for, "/identity?end_session=1"));
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_may_be_forgotten_may_have_happened), T(a_lease_that_ends_is_got_anew_before_it_does),
        T(a_sandbox_that_runs_already_is_named), T(the_end_of_a_live_replay_waits_for_its_start)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
