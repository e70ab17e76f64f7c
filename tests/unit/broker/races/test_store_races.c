/* Workers in processes of their own race for the turns of one store, and are killed at any statement: no claim is had
 * twice, no settlement that was acknowledged is lost, and each turn ends once. */
#include "tests/unit/broker/store_fix.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS = 48, WORKERS = 3, CLAIM_TIME = 20000, IDLE_TIME = 2500, EPOCHS = 64, KILL_IN = 400 };

/* Seen by all processes; each field is changed by atomic operations only. */
struct shared {
    uint64_t now;
    unsigned claims[TURNS][EPOCHS]; /* how often a turn was had in this epoch */
    unsigned settled[TURNS];        /* acknowledged: 1 + the worker who settled its call */
    unsigned ended[TURNS];          /* acknowledged */
    unsigned killed;
};
static struct shared *shared;
static struct bstore_chatted turns[TURNS];
static uint64_t seed;
static unsigned me;

static uint64_t shared_now(void *arg)
{
    (void)arg;
    return __atomic_add_fetch(&shared->now, 1, __ATOMIC_SEQ_CST);
}

static unsigned pick(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed % n);
}

static void killer(void *arg, const char *point)
{
    if (pick(KILL_IN) == 0)
        (void)kill(getpid(), SIGKILL);
}

static unsigned which(const struct id *turn)
{
    unsigned i = 0;
    while (i < TURNS && !id_eq(&turns[i].turn, turn))
        i++;
    return i;
}

static unsigned all_ended(void)
{
    struct bstore_turn_row row;
    unsigned n = 0;
    for (unsigned i = 0; i < TURNS; i++)
        n += bstore_turn(fix, i % 2 ? SPAN("acme") : SPAN("other"), &turns[i].turn, &fix_arena, &row) == BS_OK &&
             row.end != END_NONE;
    return n == TURNS;
}

/* One turn from where it is to its end, or until the claim is lost. */
static void work(const struct claim *c, unsigned i)
{
    const struct bstore_call call = {SPAN("shell"), SPAN("{}"), CALL_UNSAFE};
    const struct bstore_plan plan = {SPAN("answer"), {0, 1, 1}, &call, 1, {.input = 0}};
    char mine[16];
    struct bstore_turn t;
    uint64_t n;
    snprintf(mine, sizeof(mine), "%u", me);
    arena_free(&fix_arena);
    if (bstore_load(fix, c, &fix_arena, &t) != BS_OK)
        return;
    if (t.settled == 0) {
        if (!t.planned && (bstore_step(fix, c, 1, SPAN("model"), &n) == BS_FENCED ||
                           bstore_plan(fix, c, 1, &plan) != BS_OK || bstore_load(fix, c, &fix_arena, &t) != BS_OK))
            return;
        if (t.calls == 1 && t.call[0].settled.end == CALL_OPEN) {
            if (fix_call(c, 1, mine) != BS_OK)
                return;
            __atomic_store_n(&shared->settled[i], 1 + me, __ATOMIC_SEQ_CST);
        }
        if (fix_settle(c, 1, "{}") != BS_OK)
            return;
    }
    if (bstore_finish(fix, c, END_COMPLETED, SPAN_NONE) == BS_OK)
        __atomic_add_fetch(&shared->ended[i], 1, __ATOMIC_SEQ_CST);
}

static int worker(void)
{
    struct id id = fix_id(me);
    struct claim c;
    fix_test.at = killer;
    fix = fix_open();
    for (;;) {
        enum bstore_result r = bstore_claim(fix, &id, CLAIM_TIME, &c);
        if (r == BS_OK) {
            unsigned i = which(&c.turn);
            if (i == TURNS || c.epoch >= EPOCHS)
                return 2;
            __atomic_add_fetch(&shared->claims[i][c.epoch], 1, __ATOMIC_SEQ_CST);
            work(&c, i);
        } else if (r != BS_NONE) {
            return 3;
        } else if (all_ended()) {
            bstore_close(&fix);
            return 0;
        } else {
            __atomic_add_fetch(&shared->now, IDLE_TIME, __ATOMIC_SEQ_CST);
        }
    }
}

static pid_t start(void)
{
    me++;
    seed = 88172645463325252ull * (me + 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(worker());
    return child;
}

static void race(void)
{
    unsigned running = 0;
    int status;
    for (; running < WORKERS; running++)
        (void)start();
    while (running > 0) {
        assert_true(wait(&status) > 0);
        running--;
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
        } else {
            assert_int_equal(WTERMSIG(status), SIGKILL);
            shared->killed++;
            (void)start();
            running++;
        }
    }
}

static void each_ended_once(void)
{
    unsigned aside = 0;
    for (unsigned i = 0; i < TURNS; i++) {
        const char *tenant = i % 2 ? "acme" : "other";
        const struct bstore_turn_row *row = fix_row(tenant, &turns[i].turn);
        assert_true(row->end == END_COMPLETED || row->end == END_SET_ASIDE);
        aside += row->end == END_SET_ASIDE;
        assert_true(shared->ended[i] <= 1);
        assert_int_equal(row->used.tokens, row->end == END_COMPLETED ? 1 : row->used.tokens);
        for (unsigned e = 0; e < EPOCHS; e++)
            assert_true(shared->claims[i][e] <= 1);
    }
    assert_true(aside < TURNS / 2);
    print_message("%u workers killed, %u turns set aside\n", shared->killed, aside);
}

/* What was acknowledged is what is there: read past the store. */
static void none_lost(void)
{
    char id[ID_TEXT + 1], sql[160], result[32], want[32];
    for (unsigned i = 0; i < TURNS; i++) {
        if (!shared->settled[i])
            continue;
        id_text(&turns[i].turn, id);
        snprintf(sql, sizeof(sql), "SELECT %s FROM tool_call WHERE turn='%s' AND ending='done'",
                 fix_postgres ? "encode(result,'escape')" : "result", id);
        assert_true(fix_one(sql, result, sizeof(result)));
        snprintf(want, sizeof(want), "%u", shared->settled[i] - 1);
        assert_string_equal(result, want);
    }
}

static void workers_race_and_are_killed(void **state)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    fix_test.now_ms = shared_now;
    assert_int_equal(fix_setup(NULL), 0);
    for (unsigned i = 0; i < TURNS; i++) /* three of each conversation */
        turns[i] = fix_chat(i % 2 ? "acme" : "other", i >= TURNS / 3 ? &turns[i % (TURNS / 3)].conversation : NULL);
    bstore_close(&fix);
    race();
    fix_test.at = NULL;
    fix = fix_open();
    each_ended_once();
    none_lost();
    for (unsigned i = 0; i < TURNS / 3; i++)
        assert_int_equal(fix_events(i % 2 ? "acme" : "other", &turns[i].conversation, "turn.done"), 3);
    assert_int_equal(fix_teardown(NULL), 0);
    munmap(shared, sizeof(*shared));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(workers_race_and_are_killed)};
    return FIX_MAIN(tests);
}
