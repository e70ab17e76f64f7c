/* The loop under crashes, by a seed. BROKER_SIM=SEED runs one, BROKER_SIM_RUNS=N so many from that on,
 * BROKER_SIM_STEPS=N as many as have so many steps together (make torture). */
#include "tests/unit/broker/sim.h"

#include <stdlib.h>

static uint64_t from_env(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t n;
    return text != NULL && span_u64(span_str(text), UINT32_MAX, &n) == 0 ? n : otherwise;
}

static void add(struct sim_stats *sum, const struct sim_stats *one)
{
    sum->steps += one->steps;
    sum->summaries += one->summaries;
    sum->effects += one->effects;
    sum->crashes += one->crashes;
    sum->fenced += one->fenced;
    sum->lost_answers += one->lost_answers;
    sum->unknown += one->unknown;
    sum->asked += one->asked;
    for (unsigned i = 0; i < TURN_ENDS; i++)
        sum->ends[i] += one->ends[i];
}

static void nothing_is_lost_or_doubled(void **state)
{
    uint64_t first = from_env("BROKER_SIM", 1), runs = from_env("BROKER_SIM_RUNS", getenv("BROKER_SIM") ? 1 : 20);
    uint64_t steps = from_env("BROKER_SIM_STEPS", 0);
    struct sim_stats one, sum = {0};
    for (uint64_t seed = first; seed < first + runs || sum.steps < steps; seed++) {
        if (steps && (seed - first) % 100 == 0)
            print_message("seed %llu, %llu steps\n", (unsigned long long)seed, (unsigned long long)sum.steps);
        const char *why = sim_run(seed, FAULT_NONE, &one);
        if (why != NULL)
            fail_msg("BROKER_SIM=%llu: %s", (unsigned long long)seed, why);
        add(&sum, &one);
    }
    print_message("steps %llu, effects %llu, crashes %llu, fenced %llu, answers lost %llu, asked %llu, unknown %llu;",
                  (unsigned long long)sum.steps, (unsigned long long)sum.effects, (unsigned long long)sum.crashes,
                  (unsigned long long)sum.fenced, (unsigned long long)sum.lost_answers, (unsigned long long)sum.asked,
                  (unsigned long long)sum.unknown);
    for (unsigned i = 0; i < TURN_ENDS; i++)
        if (sum.ends[i])
            print_message(" %s %u", turn_end_name(i), sum.ends[i]);
    print_message("\n");
    if (runs < 20)
        return;
    /* it goes where it is hard */
    assert_true(sum.crashes && sum.fenced && sum.lost_answers && sum.unknown && sum.asked && sum.effects &&
                sum.summaries);
    assert_true(sum.ends[END_COMPLETED] && sum.ends[END_CANCELLED] && sum.ends[END_SAME_CALLS] &&
                sum.ends[END_SET_ASIDE] && sum.ends[END_MODEL] && sum.ends[END_BAD_MODEL]);
}

static void the_same_seed_is_the_same_run(void **state)
{
    struct sim_stats one, two, other;
    assert_null(sim_run(7, FAULT_NONE, &one));
    assert_null(sim_run(7, FAULT_NONE, &two));
    assert_null(sim_run(8, FAULT_NONE, &other));
    assert_true(one.trace == two.trace && one.trace != other.trace);
}

/* Each safeguard is one: without it, something goes wrong soon. */
static void without_a_safeguard(void **state)
{
    static const char *const names[FAULTS] = {
        [FAULT_NO_REVOKE] = "revoke", [FAULT_BLIND] = "ask",      [FAULT_FRESH_KEY] = "key",   [FAULT_LAX] = "class",
        [FAULT_FORGET] = "settle",    [FAULT_NO_FENCE] = "fence", [FAULT_NO_MEMORY] = "memory"};
    struct sim_stats one;
    for (unsigned f = FAULT_NONE + 1; f < FAULTS; f++) {
        const char *why = NULL;
        uint64_t seed = 1;
        for (; why == NULL && seed <= 30; seed++)
            why = sim_run(seed, f, &one);
        if (why == NULL)
            fail_msg("without %s nothing went wrong", names[f]);
        print_message("without %s, seed %llu: %s\n", names[f], (unsigned long long)seed - 1, why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_lost_or_doubled),
                                       cmocka_unit_test(the_same_seed_is_the_same_run),
                                       cmocka_unit_test(without_a_safeguard)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
