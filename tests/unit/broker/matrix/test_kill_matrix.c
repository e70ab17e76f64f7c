/* Every named point of the store x what is at stake there x who is killed, with each database: nothing that has an
 * effect is done twice, none is lost without a word, no turn ends twice, no reader sees a gap or something else than
 * before. Runs of the simulation, until no cell is open. BROKER_STORE_ALL: all cells (make torture); else one run
 * with each database, which has to come by at every point. */
#include <stdlib.h>

#include "broker/budgets.h"
#include "tests/unit/broker/matrix/kills.h"

enum {
    RUNS_MAX = 400,
    RUNS_SOME = 3,
    KILLS_SOME = 3,
    RUNS_VAIN = 40 /* after so many that brought no new cell it is over */
};

/* A budget that nobody comes near: each question asks for room in it. */
static struct budgets roomy;

static void nothing_is_lost_or_doubled(void **state)
{
    bool all = getenv("BROKER_STORE_ALL") != NULL;
    struct sim_stats one, sum = {0};
    struct kills_sum k = {0};
    unsigned runs = 0, vain = 0, before = 0;
    assert_int_equal(budgets_read(SPAN("* month 8000000000000 -\n"), &roomy), 0);
    fix_budgets = &roomy;
    kills_on = true;
    kills_anew(all ? KILLS_ALL : KILLS_SOME);
    while (runs < (all ? RUNS_MAX : RUNS_SOME) && vain < RUNS_VAIN &&
           (runs == 0 || (all ? k.done < k.cells : k.hit < k.points))) {
        const char *why = sim_run(++runs, FAULT_NONE, &one);
        kills_count(&k);
        vain = k.done > before ? 0 : vain + 1;
        before = k.done;
        sum.effects += one.effects;
        sum.unknown += one.unknown;
        sum.doubled += one.doubled;
        sum.silent += one.silent;
        if (all)
            print_message("run %u: %u of %u cells, %u of %u points\n", runs, k.done, k.cells, k.hit, k.points);
        if (why != NULL)
            fail_msg("run %u: %s", runs, why);
    }
    kills_on = false;
    bool missing = kills_missing(all);
    print_message("%s: %u of %u cells, %u of %u points hit; killed: worker %u, broker %u, gateway %u, sandbox %u, "
                  "database %u; connections cut %u, answers lost %u\n",
                  fix_postgres ? "PostgreSQL" : "SQLite", k.done, k.cells, k.hit, k.points, k.killed[KILL_WORKER],
                  k.killed[KILL_BROKER], k.killed[KILL_GATEWAY], k.killed[KILL_SANDBOX], k.killed[KILL_DATABASE],
                  k.cut, k.lost);
    print_message("%llu effects: %llu doubled, %llu lost without a word; %llu calls told as unknown\n",
                  (unsigned long long)sum.effects, (unsigned long long)sum.doubled, (unsigned long long)sum.silent,
                  (unsigned long long)sum.unknown);
    assert_false(missing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_lost_or_doubled)};
    return FIX_MAIN(tests);
}
