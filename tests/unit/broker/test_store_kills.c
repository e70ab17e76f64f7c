/* A process is killed before each statement of everything a worker does with the store, and around each commit: who
 * comes after it finds each change whole or not at all, what had been acknowledged always, and ends the turn once.
 * And where the store is over a connection, that is cut off there, or the database is: nobody notices. */
#include "tests/unit/broker/store_fix.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/time/clock.h"
#include "tests/unit/broker/store_pg.h"

enum { POINTS_MAX = 400 };
/* What the killed process had been told was done. */
enum ack { ACK_NONE = 0, ACK_CHAT, ACK_CLAIM, ACK_STEP, ACK_PLAN, ACK_CALL, ACK_LOG, ACK_SETTLE, ACK_FINISH };
struct shared {
    volatile enum ack acked;
    volatile unsigned point;
    char name[64];
};
static struct shared *shared;
static unsigned kill_at;

static void killer(void *arg, const char *point)
{
    (void)arg;
    if (++shared->point != kill_at)
        return;
    snprintf(shared->name, sizeof(shared->name), "%s", point);
    (void)kill(getpid(), SIGKILL);
}

static struct bstore_chat asked(void)
{
    struct bstore_chat c = {.tenant = SPAN("acme"), .key = SPAN("once"), .body = SPAN("{}")};
    digest_of(SPAN("asked"), &c.request);
    return c;
}

static void done(enum ack what)
{
    shared->acked = what;
}

/* Every point with SQLite, and all of them where BROKER_STORE_ALL is set; else some, since each is a process or a
 * database of its own. */
static unsigned every(unsigned some)
{
    return fix_postgres && getenv("BROKER_STORE_ALL") == NULL ? some : 1;
}

/* All that a turn of one step is. The return value is how the process ends: 0 it was not killed. */
static int life(void (*at)(void *arg, const char *point))
{
    const struct bstore_event e = {SPAN("text"), SPAN("{}")};
    const struct bstore_chat c = asked();
    struct bstore_chatted out;
    struct id worker = fix_id(1);
    struct claim claim;
    uint64_t seq;
    fix_test.at = at;
    fix = fix_open();
    if (bstore_chat(fix, &c, &out) != BS_OK)
        return 1;
    done(ACK_CHAT);
    if (bstore_claim(fix, &worker, CLAIM_MS, &claim) != BS_OK)
        return 2;
    done(ACK_CLAIM);
    const struct bstore_call call = {SPAN("shell"), SPAN("{}"), CALL_UNSAFE};
    const struct bstore_plan plan = {SPAN("answer"), {0, 10, 3}, &call, 1, fix_asked};
    if (bstore_step(fix, &claim, 1, SPAN("model"), &seq) != BS_OK)
        return 3;
    done(ACK_STEP);
    if (bstore_plan(fix, &claim, 1, &plan) != BS_OK)
        return 4;
    done(ACK_PLAN);
    if (fix_call(&claim, 1, "of the killed") != BS_OK)
        return 5;
    done(ACK_CALL);
    if (bstore_log(fix, &claim, &e, 1, &seq) != BS_OK)
        return 6;
    done(ACK_LOG);
    if (fix_settle(&claim, 1, "{}") != BS_OK)
        return 7;
    done(ACK_SETTLE);
    if (bstore_finish(fix, &claim, END_COMPLETED, SPAN_NONE) != BS_OK)
        return 8;
    done(ACK_FINISH);
    return 0;
}

/* What the turn still needs, done by another worker from what it finds. */
static void go_on(struct claim *c, enum ack acked)
{
    const struct bstore_call call = {SPAN("shell"), SPAN("{}"), CALL_UNSAFE};
    const struct bstore_plan plan = {SPAN("answer"), {0, 10, 3}, &call, 1, fix_asked};
    struct bstore_turn t = fix_load(c);
    uint64_t n;
    assert_int_equal(t.lost, c->epoch > 1);
    if (acked >= ACK_STEP)
        assert_true(t.open == 1 || t.settled == 1);
    if (acked >= ACK_PLAN && t.settled == 0)
        assert_int_equal(t.calls, 1);
    if (acked >= ACK_SETTLE)
        assert_int_equal(t.settled, 1);
    if (t.settled == 1)
        return;
    if (!t.planned) {
        assert_int_equal(bstore_step(fix, c, 1, SPAN("model"), &n), t.open ? BS_AGAIN : BS_OK);
        fix_ok(bstore_plan(fix, c, 1, &plan));
        t = fix_load(c);
    }
    assert_int_equal(t.calls, 1);
    if (acked >= ACK_CALL)
        assert_int_equal(t.call[0].settled.end, CALL_DONE);
    if (t.call[0].settled.end != CALL_OPEN)
        assert_true(span_eq(t.call[0].settled.result, SPAN("of the killed")));
    else
        fix_ok(fix_call(c, 1, "of the heir"));
    fix_ok(fix_settle(c, 1, "{}"));
}

/* What the meter has is what the turn has used, whoever was killed where. */
static void metered_once(const struct id *conversation)
{
    const struct bstore_usage_ask all = {.to = BSTORE_DAY_MAX, .conversation = *conversation};
    struct bstore_usage u;
    fix_ok(bstore_usage(fix, SPAN("acme"), &all, &fix_arena, &u));
    assert_int_equal(u.n, 1);
    assert_true(u.row[0].times == 1 && u.row[0].asked.input == 5 && u.row[0].cost_micro == 3);
}

static void heir(enum ack acked)
{
    const struct bstore_chat again = asked();
    struct bstore_chatted t;
    struct bstore_messages m;
    struct id worker = fix_id(2);
    struct claim c;
    enum bstore_result r;
    fix_test.at = NULL;
    fix_quiet();
    fix = fix_open();
    r = bstore_chat(fix, &again, &t);
    assert_true(r == BS_AGAIN || (r == BS_OK && acked < ACK_CHAT));
    r = bstore_claim(fix, &worker, CLAIM_MS, &c);
    if (acked < ACK_CLAIM && r == BS_NONE) { /* taken, and killed before that was told */
        assert_true(span_eq(fix_row("acme", &t.turn)->state, SPAN("running")));
    } else if (acked >= ACK_CLAIM) {
        assert_int_equal(r, BS_NONE); /* nobody has it twice */
    }
    if (r == BS_NONE && span_eq(fix_row("acme", &t.turn)->state, SPAN("running"))) {
        fix_now += CLAIM_MS;
        r = bstore_claim(fix, &worker, CLAIM_MS, &c);
        assert_int_equal(r, BS_OK);
    }
    if (acked == ACK_FINISH)
        assert_int_equal(r, BS_NONE);
    if (r == BS_OK) {
        go_on(&c, acked);
        fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    }
    const struct bstore_turn_row *row = fix_row("acme", &t.turn);
    assert_int_equal(row->end, END_COMPLETED);
    assert_int_equal(row->used.tokens, 10);
    assert_int_equal(row->used.steps, 1);
    metered_once(&t.conversation);
    assert_int_equal(fix_events("acme", &t.conversation, "turn.queued"), 1);
    assert_int_equal(fix_events("acme", &t.conversation, "turn.done"), 1);
    assert_int_equal(fix_events("acme", &t.conversation, "step.settled"), 1);
    assert_true(fix_events("acme", &t.conversation, "text") <= 1);
    fix_ok(bstore_messages(fix, SPAN("acme"), &t.conversation, 0, &fix_arena, &m));
    assert_int_equal(m.n, 3);
    assert_int_equal(bstore_claim(fix, &worker, CLAIM_MS, &c), BS_NONE);
}

/* --- the database is cut off, or killed ------------------------------------------------ */

enum how { CUT, CUT_WHEN_OVER, KILLED };
static enum how how;

static unsigned only_at; /* the so-many-th commit that is sent, or 0 */

static void cutter(void *arg, const char *point)
{
    char n[32];
    if (only_at > 0 ? strcmp(point, "SENT") != 0 || ++shared->point != only_at : ++shared->point != kill_at)
        return;
    snprintf(shared->name, sizeof(shared->name), "%s", point);
    if (how == CUT_WHEN_OVER) /* what was sent is done, and its answer is lost */
        (void)pg_one("SELECT n FROM writer FOR UPDATE", n, sizeof(n));
    if (how == CUT_WHEN_OVER)
        pg_lose();
    else if (how == KILLED)
        pg_restart();
    else
        pg_cut();
}

/* One life with its end, and all of it there once. */
static void whole(void)
{
    const struct bstore_chat again = asked();
    struct bstore_chatted t;
    struct bstore_messages m;
    struct id worker = fix_id(2);
    struct claim c;
    assert_int_equal(shared->acked, ACK_FINISH);
    assert_int_equal(bstore_chat(fix, &again, &t), BS_AGAIN);
    const struct bstore_turn_row *row = fix_row("acme", &t.turn);
    assert_int_equal(row->end, END_COMPLETED);
    assert_int_equal(row->used.tokens, 10);
    assert_int_equal(row->used.steps, 1);
    metered_once(&t.conversation);
    assert_int_equal(fix_events("acme", &t.conversation, "turn.queued"), 1);
    assert_int_equal(fix_events("acme", &t.conversation, "turn.done"), 1);
    assert_int_equal(fix_events("acme", &t.conversation, "step.settled"), 1);
    assert_int_equal(fix_events("acme", &t.conversation, "text"), 1);
    fix_ok(bstore_messages(fix, SPAN("acme"), &t.conversation, 0, &fix_arena, &m));
    assert_int_equal(m.n, 3);
    assert_int_equal(bstore_claim(fix, &worker, CLAIM_MS, &c), BS_NONE);
}

/* Every step-th point; returns how many there are. */
static unsigned cut_at_each(enum how as, unsigned step)
{
    unsigned n, points = POINTS_MAX;
    for (n = 1; n < points; n += step) {
        assert_int_equal(fix_setup(NULL), 0);
        bstore_close(&fix);
        *shared = (struct shared){.acked = ACK_NONE};
        kill_at = n;
        how = as;
        fix_test.at = cutter;
        if (life(cutter) != 0)
            fail_msg("cut off at %s: %s", shared->name, bstore_why(fix));
        fix_test.at = NULL;
        whole();
        if (shared->name[0] == '\0')
            points = 0;
        assert_int_equal(fix_teardown(NULL), 0);
    }
    return n - 1;
}

static void cut_off_at_each_statement(void **state)
{
    if (!fix_postgres)
        skip();
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    assert_true(cut_at_each(CUT, every(5)) > 60);
    munmap(shared, sizeof(*shared));
}

static void killed_before_each_statement(void **state)
{
    static char seen[POINTS_MAX][64];
    int status = -1;
    unsigned n;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    for (n = 1; n < POINTS_MAX; n += every(7)) {
        assert_int_equal(fix_setup(NULL), 0);
        bstore_close(&fix); /* a connection is not taken through a fork */
        *shared = (struct shared){.acked = ACK_NONE};
        kill_at = n;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(life(killer));
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status))
            assert_int_equal(WEXITSTATUS(status), 0);
        memcpy(seen[n], shared->name, sizeof(seen[n]));
        heir(shared->acked);
        assert_int_equal(fix_teardown(NULL), 0);
        if (WIFEXITED(status))
            break;
        assert_int_equal(WTERMSIG(status), SIGKILL);
    }
    assert_true(WIFEXITED(status)); /* the last one went through to its end */
    static const char *const must[] = {"BEGIN",       "COMMIT",      "COMMITTED",   "CLAIM_TAKE", "TURN_ADD",
                                       "CALL_SETTLE", "STEP_SETTLE", "MESSAGE_ADD", "LOG_ADD",    "TURN_END",
                                       "KEY_ADD",     "CALL_ADD",    "TURN_SAID",   "USAGE_ADD"};
    for (size_t i = 0; i < sizeof(must) / sizeof(must[0]); i++) {
        unsigned times = 0;
        for (unsigned k = 1; k < n; k++)
            times += strcmp(seen[k], must[i]) == 0;
        if (times == 0 && every(7) == 1)
            fail_msg("nobody was killed at %s", must[i]);
    }
    print_message("killed at %u points\n", n - 1);
    munmap(shared, sizeof(*shared));
}

/* The change is kept and nobody says so; what was not kept is done again, what was is not. */
static void an_answer_to_a_commit_is_lost(void **state)
{
    unsigned sent = 0;
    if (!fix_postgres)
        skip();
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    for (only_at = 1; only_at < POINTS_MAX; only_at++) {
        (void)cut_at_each(CUT_WHEN_OVER, POINTS_MAX);
        if (shared->name[0] == '\0')
            break;
        sent++;
    }
    only_at = 0;
    assert_int_equal(sent, 8); /* one of each thing that a life does */
    munmap(shared, sizeof(*shared));
}

static void the_database_is_killed(void **state)
{
    if (!fix_postgres)
        skip();
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    (void)cut_at_each(KILLED, every(11));
    munmap(shared, sizeof(*shared));
}

static void who_waits_waits_so_long_and_no_longer(void **state)
{
    struct bstore_chat c = asked();
    struct bstore_chatted out;
    if (!fix_postgres)
        skip();
    assert_int_equal(fix_setup(NULL), 0);
    fix->patience_ms = 300;
    pg_down();
    uint64_t began = clock_ms(CLOCK_MONOTONIC);
    assert_int_equal(bstore_chat(fix, &c, &out), BS_FAIL);
    assert_true(clock_ms(CLOCK_MONOTONIC) - began < 200 * 1000);
    assert_non_null(strstr(bstore_why(fix), "PostgreSQL"));
    for (unsigned i = 0; i < 100; i++) /* nor is it waited for each time: others are served meanwhile */
        assert_int_equal(bstore_chat(fix, &c, &out), BS_FAIL);
    (void)bstore_pulse(fix);
    pg_restart();
    fix->patience_ms = 300 * 1000;
    enum bstore_result r;
    while ((r = bstore_chat(fix, &c, &out)) == BS_FAIL) /* and it is found again */
        (void)poll(NULL, 0, 10);
    assert_int_equal(r, BS_OK);
    assert_int_equal(fix_teardown(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_before_each_statement), cmocka_unit_test(cut_off_at_each_statement),
        cmocka_unit_test(an_answer_to_a_commit_is_lost), cmocka_unit_test(the_database_is_killed),
        cmocka_unit_test(who_waits_waits_so_long_and_no_longer)};
    return FIX_MAIN(tests);
}
