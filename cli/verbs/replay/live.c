/* countersign replay run --mode live: which runs, within which bounds, and what came of them. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/verbs/replay/live.h"
#include "policy/load/read/scalar.h"

enum { PARALLEL_USUAL = 2, WAIT_USUAL_MS = 600 * 1000, WAIT_MOST_MS = 86400 * 1000 };
#define COST_MOST (INT64_MAX >> 11)

static int number(const struct cli_call *c, const char *name, uint64_t most, uint64_t *out)
{
    const char *given = cli_value(c, name);

    if (given && (span_u64(span_str(given), most, out) != 0 || *out == 0))
        return verb_fail(CLI_USAGE, "--%s is a number from 1 to %llu", name, (unsigned long long)most);
    return CLI_OK;
}

static int bounds(const struct cli_call *c, struct living *v, uint64_t *seeds)
{
    const char *wait = cli_value(c, "wait");
    uint64_t parallel = PARALLEL_USUAL;

    *seeds = 1;
    v->wait_ms = WAIT_USUAL_MS;
    const char *wrong = wait ? scalar_time(span_str(wait), &v->wait_ms) : NULL;
    if (wrong || v->wait_ms < 1000 || v->wait_ms > WAIT_MOST_MS)
        return verb_fail(CLI_USAGE, "--wait %s", wrong ? wrong : "is from a second to a day");
    if (!cli_value(c, "cost"))
        return verb_fail(CLI_USAGE, "live, a replay costs money: --cost says how many millionths at most, in all");
    if (number(c, "cost", COST_MOST, &v->live.most_micro) != CLI_OK ||
        number(c, "parallel", PARALLEL_MAX, &parallel) != CLI_OK ||
        number(c, "seeds", LIVE_SEEDS_MAX, seeds) != CLI_OK)
        return CLI_USAGE;
    v->parallel = (size_t)parallel;
    return CLI_OK;
}

/* What somebody ended says nothing of the model. */
static void leave_out_cancelled(struct replaying *x, struct replay_set *set)
{
    size_t n = 0;

    for (size_t i = 0; i < set->n; i++)
        if (set->run[i].end != END_CANCELLED)
            set->run[n++] = set->run[i];
    x->left_out = set->n - n;
    set->n = n;
    if (x->left_out > 0)
        fprintf(stderr, "# %llu runs were left out: they were cancelled\n", (unsigned long long)x->left_out);
}

static int plan(const struct cli_call *c, struct living *v, const struct replay_set *set, struct arena *a)
{
    const char *name[LIVE_MODELS_MAX];
    struct span model[LIVE_MODELS_MAX];
    size_t n = cli_values(c, "model", name, LIVE_MODELS_MAX);
    struct timespec now;
    uint64_t seeds;
    struct err e;
    int rc = bounds(c, v, &seeds);
    uint64_t most = v->live.most_micro;

    for (size_t i = 0; i < n; i++)
        model[i] = span_str(name[i]);
    if (rc == CLI_OK && n == 0)
        rc = verb_fail(CLI_USAGE, "live, --model names each model that is asked, as the table of models has it");
    if (rc == CLI_OK && set->n == 0)
        rc = verb_fail(CLI_RUNTIME, "no run of this set can be done once more");
    if (rc == CLI_OK && live_plan(&v->live, set, model, n, seeds, a, &e) != 0)
        rc = verb_fail(CLI_USAGE, "%s", e.text);
    v->live.most_micro = most;
    v->conversation = rc == CLI_OK ? arena_alloc(a, v->live.runs * sizeof(*v->conversation)) : NULL;
    if (rc == CLI_OK && !v->conversation)
        rc = verb_fail(CLI_RUNTIME, "out of memory");
    for (size_t i = 0; rc == CLI_OK && i < v->live.runs; i++)
        v->conversation[i] = (struct id){{0}};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    v->began_ms = (uint64_t)now.tv_sec * 1000;
    return rc;
}

static int score(const struct cli_call *c, struct living *v, struct arena *a)
{
    static struct score then, now;
    struct replay_set made, was;
    struct err e;

    if (v->x->runs == 0)
        return verb_fail(CLI_RUNTIME, "no run of this set was done once more: %s", v->live.run[0].why);
    if (set_read(dynbuf_span(&v->x->set), a, &made, &e) != 0)
        return verb_fail(CLI_RUNTIME, "what the broker recorded is not understood: %s", e.text);
    if (live_then(&v->live, made.n, a, &was) != 0 || score_set(&was, NULL, 0, 0, a, &then) != 0 ||
        score_set(&made, NULL, 0, 0, a, &now) != 0 || live_score(&v->live, &now, a) != 0)
        return verb_fail(CLI_RUNTIME, "out of memory");
    now.then = &then;
    return replay_report(c, &now);
}

int replay_live(const struct cli_call *c, struct replay_set *set, struct arena *a)
{
    static struct replaying x;
    static struct living v;
    struct err e;
    int rc = replay_begin(&x, c);

    v.x = &x;
    (void)sigemptyset(&v.ends);
    (void)sigaddset(&v.ends, SIGINT);
    (void)sigaddset(&v.ends, SIGTERM);
    (void)sigaddset(&v.ends, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &v.ends, NULL);
    if (rc == CLI_OK && api_socket(c->state_dir, v.control, &e) != 0)
        rc = verb_fail(CLI_RUNTIME, "%s", e.text);
    leave_out_cancelled(&x, set);
    if (rc == CLI_OK)
        rc = plan(c, &v, set, a);
    if (rc == CLI_OK) {
        fprintf(
            stderr,
            "# %zu runs: tools are run; a request that the policy allows leaves once more, what it holds waits for "
            "%llu s at most\n",
            v.live.runs, (unsigned long long)v.wait_ms / 1000);
        rc = live_go(&v);
    }
    (void)sigprocmask(SIG_UNBLOCK, &v.ends, NULL);
    if (rc == CLI_OK)
        rc = score(c, &v, a);
    dynbuf_free(&x.set);
    return rc;
}
