/* What a set of recorded runs comes to: each run gone through again, then with faults; what both give in numbers. All
 * of it is whole numbers, and nothing of it depends on the machine, its clock or its language. */
#ifndef BROKER_REPLAY_SCORE_H
#define BROKER_REPLAY_SCORE_H

#include "broker/replay/again.h"

enum { SCORE_SEEDS_MAX = 100, SCORE_MODELS_MAX = 64 };

struct score_spread {
    uint64_t least, middle, most;
};
struct score_part {
    uint64_t runs, completed; /* that were gone through; of these, that answered */
    uint64_t steps, calls, done, tokens, cost_micro, model_ms, tool_ms;
    struct score_spread ms;
};
struct score_model {
    struct span name; /* whose answer was a run's last */
    struct score_part part;
};
struct score_fault {
    enum replay_fault fault;
    uint64_t tried, placed, recovered, repeated, hidden, other_way; /* other_way: beyond what was recorded */
    uint64_t unknown; /* calls of which the model is told that nobody knows what came of them, beyond those before */
    struct score_spread recovered_each; /* over the seeds, in thousandths of what was placed */
    struct score_spread added_ms;       /* over all that recovered: how much longer it took */
};
struct live;
struct score {
    const struct live *live;  /* how it was done once more, live (live.h); NULL: it was not */
    const struct score *then; /* what runs are that were asked once more now, as they were recorded; NULL: strict */
    const struct replay_set *set;
    struct again *run; /* of each run of the set */
    struct score_part all;
    uint64_t left_out, differ; /* runs that were not gone through; that are otherwise than they were */
    struct score_model model[SCORE_MODELS_MAX];
    size_t models;
    uint64_t seeds;
    struct score_fault fault[REPLAY_FAULTS];
    size_t faults;
};

/* fault: which of them are put in, each with the seeds 1 .. seeds (at most SCORE_SEEDS_MAX). -1: no memory. */
int score_set(const struct replay_set *set, const enum replay_fault *fault, size_t faults, uint64_t seeds,
              struct arena *a, struct score *out) MUSTCHECK;
/* The model whose answer was the last of a run; "-": it had none. */
struct span score_model_of(const struct set_run *run);

#endif
