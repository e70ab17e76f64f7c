/* A set that is done once more, live: which runs that takes, what each of them may cost, and what came of it, by
 * model and over the repetitions. Nothing here asks anybody. */
#ifndef BROKER_REPLAY_LIVE_H
#define BROKER_REPLAY_LIVE_H

#include "broker/replay/score.h"

enum { LIVE_MODELS_MAX = 16, LIVE_SEEDS_MAX = 20, LIVE_RUNS_MAX = SET_RUNS_MAX, LIVE_WHY_MAX = 160 };

enum live_state {
    LIVE_NOT = 0, /* it was not begun; why says it */
    LIVE_RAN,     /* made has its recording */
    LIVE_LOST     /* it was begun, and not all of it is recorded, or another model was asked; why says it */
};
struct live_run {
    size_t turn, model; /* of struct live */
    uint64_t seed;      /* which of the repetitions: 1 .. seeds */
    enum live_state state;
    size_t made;         /* LIVE_RAN: which of the runs that were made */
    uint64_t undecided;  /* requests of it that nobody had decided at its end */
    enum turn_end end;   /* as the broker has it, also of one that is lost; END_NONE: it is not known */
    uint64_t cost_micro; /* that it came to, also of one that is lost */
    char why[LIVE_WHY_MAX];
};

/* Of one turn by one model, over the repetitions: so many were begun, and complete; what they took, of those that
 * ran.
 */
struct live_cell {
    uint64_t ran, completed;
    struct score_spread ms, steps, calls, cost_micro;
};
/* Of one model: all its runs that were begun, and what a repetition of the whole set came to. What one that is lost
 * called, and how long it took, is not known: its end and its cost are. */
struct live_model {
    struct span name;
    struct score_part part;
    uint64_t lost, undecided;
    struct score_spread completed_each;  /* over the repetitions, in thousandths of what was begun */
    struct score_spread cost_each_micro; /* over its runs */
};

struct live {
    const struct replay_set *set; /* the recorded ones */
    const struct again *then;     /* what each of them was; of live_score */
    struct live_model model[LIVE_MODELS_MAX];
    size_t models;
    uint64_t seeds;
    struct live_run *run; /* each turn by each model, seeds times; a repetition of all comes before the next */
    size_t runs;
    uint64_t most_micro;                                     /* all of it together may come to so much */
    struct live_cell *cell;                                  /* models of each turn */
    struct score_spread completed_models, cost_models_micro; /* over the models: thousandths; for a run, the mean */
    uint64_t ran, lost, not_begun, undecided;
};

/* Each turn of the set by each of the models (names, at most LIVE_MODELS_MAX), seeds times. -1 with the reason: that
 * would be more than LIVE_RUNS_MAX runs, a name is there twice, or there is no memory. */
int live_plan(struct live *l, const struct replay_set *set, const struct span *model, size_t models, uint64_t seeds,
              struct arena *a, struct err *e) MUSTCHECK;
/* What the next run may come to, of what is neither spent nor promised to one that runs: its part of it, of so many
 * that are not begun; with what it leaves over there is more for those behind it. 0: nothing is left for it. */
uint64_t live_share(uint64_t most, uint64_t spent, uint64_t promised, uint64_t left);
/* Once all is over: `now` scores the runs that were made, and points to *l from then on. -1: no memory. */
int live_score(struct live *l, struct score *now, struct arena *a) MUSTCHECK;
/* The recorded run beside each that was made, as often as that, in the order of those: what they are compared with.
 */
int live_then(const struct live *l, size_t made, struct arena *a, struct replay_set *out) MUSTCHECK;

#endif
