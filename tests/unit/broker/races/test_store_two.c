/* Two brokers at one store, at once: what is decided by what stands there is decided by one after the other. The
 * second one asks when the first has decided and nobody sees yet what it wrote: it waits, or it decides by what was
 * before. */
#include "tests/unit/broker/store_fix.h"

#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/budgets.h"

#define DAY_MS UINT64_C(86400000)
static struct budgets budgets;
static struct claim first, second; /* each a turn of acme's, at its first question */
static int go[2], told[2];         /* to the second broker, and what it was answered */
static bool is_first, came;

static bool is_answered(void)
{
    struct pollfd p = {.fd = told[0], .events = POLLIN};
    return poll(&p, 1, 1) != 0;
}

static bool waits_for_us(void)
{
    char n[16];
    assert_true(fix_one("SELECT count(*) FROM pg_locks WHERE NOT granted", n, sizeof(n)));
    return n[0] != '0';
}

/* The first one has decided. With SQLite the other one cannot even begin: nothing tells that it tries. */
static void other_comes(void *arg, const char *point)
{
    if (!is_first || came || strcmp(point, "COMMIT") != 0)
        return;
    came = true;
    assert_int_equal(write(go[1], "", 1), 1);
    while (fix_postgres && !is_answered() && !waits_for_us())
        continue;
}

static pid_t start(enum bstore_result (*asks)(const struct claim *c))
{
    (void)fflush(stdout); /* what stands there is said once */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child != 0)
        return child;
    char byte;
    close(told[0]);
    close(go[1]); /* who asks first has it alone, so that its end is ours too */
    is_first = false;
    if (read(go[0], &byte, 1) != 1)
        _exit(1);
    fix = fix_open(); /* ours alone: that of the other one is left as it is */
    int32_t r = (int32_t)asks(&second);
    _exit(write(told[1], &r, sizeof(r)) == sizeof(r) ? 0 : 1);
}

static void both(enum bstore_result (*asks)(const struct claim *c), enum bstore_result late)
{
    int32_t r;
    int status;
    came = false;
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(told), 0);
    pid_t child = start(asks);
    close(told[1]);
    is_first = true;
    fix_ok(asks(&first));
    is_first = false;
    assert_true(came);
    assert_int_equal(read(told[0], &r, sizeof(r)), sizeof(r));
    assert_int_equal(r, late);
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(told[0]);
    close(go[0]);
    close(go[1]);
}

static int begin(void **state)
{
    uint64_t attempts;
    assert_int_equal(budgets_read(SPAN("acme day 100 -\n"), &budgets), 0);
    fix_budgets = &budgets;
    fix_test.at = other_comes;
    is_first = false;
    if (fix_setup(state) != 0)
        return -1;
    fix_now = 20787 * DAY_MS;
    for (unsigned i = 1; i <= 2; i++) {
        (void)fix_chat("acme", NULL);
        struct claim c = fix_claim(i);
        fix_ok(bstore_step(fix, &c, 1, SPAN("model"), &attempts));
        *(i == 1 ? &first : &second) = c;
    }
    return 0;
}

static int end(void **state)
{
    fix_test.at = NULL;
    fix_budgets = NULL;
    return fix_teardown(state);
}

/* --- each has room alone, and both have none ------------------------------------------------------- */

static enum bstore_result asks_for_60(const struct claim *c)
{
    return bstore_ask(fix, c, 1, SPAN("model"), &(struct used){.tokens = 60});
}

static void a_budget_that_is_enough_for_one_is_had_by_one(void **state)
{
    both(asks_for_60, BS_FULL);
}

static enum bstore_result says_it_once(const struct claim *c)
{
    const struct bstore_chat in = {.tenant = SPAN("acme"), .body = SPAN("{}"), .key = SPAN("key")};
    struct bstore_chatted out;
    return bstore_chat(fix, &in, &out);
}

static void a_message_with_a_key_is_taken_once(void **state)
{
    both(says_it_once, BS_AGAIN);
}

static enum bstore_result replays_it_once(const struct claim *c)
{
    const struct bstore_live in = {
        .tenant = SPAN("acme"), .turn = first.turn, .model = SPAN("small"), .key = SPAN("key")};
    struct bstore_chatted out;
    return bstore_live(fix, &in, &out);
}

static void a_replay_with_a_key_begins_once(void **state)
{
    fix_ok(bstore_finish(fix, &first, END_BUDGET, SPAN("words")));
    both(replays_it_once, BS_AGAIN);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {T(a_budget_that_is_enough_for_one_is_had_by_one),
                                       T(a_message_with_a_key_is_taken_once), T(a_replay_with_a_key_begins_once)};
    return FIX_MAIN(tests);
}
