/* The turn's machine against the real store, in a world of one seed: workers that die, sleep past their claims and
 * lose the store's answers, a gateway that records what leaves, upstreams that count, a model that repeats itself.
 * All chance comes from the seed, so a run that fails is repeated by it. */
#ifndef TESTS_UNIT_BROKER_SIM_H
#define TESTS_UNIT_BROKER_SIM_H

#include "broker/loop/loop.h"
#include "tests/unit/broker/store_fix.h"

enum { SIM_TURNS = 24, SIM_STEPS = 8, SIM_CALLS = 4, SIM_WORKERS = 4, SIM_CLAIM = 6000 };

/* A safeguard that is switched off. */
enum fault {
    FAULT_NONE = 0,
    FAULT_NO_REVOKE, /* the lane of the worker before goes on */
    FAULT_BLIND,     /* nobody asks what became of a call */
    FAULT_FRESH_KEY, /* a call is sent with another key each time */
    FAULT_LAX,       /* everything is called idempotent */
    FAULT_FORGET,    /* a settlement is not written down */
    FAULT_NO_FENCE,  /* who lost the claim goes on */
    FAULT_NO_MEMORY, /* a checkpoint keeps nothing of the loop */
    FAULTS
};

struct sim_stats {
    uint64_t trace; /* of all that happened, in its order */
    uint64_t steps, summaries, effects, crashes, fenced, lost_answers, unknown, asked;
    uint64_t doubled, silent; /* effects that were there twice; that are not what was told of them */
    unsigned ends[TURN_ENDS];
};

/* One run; NULL, or what went wrong in it. */
const char *sim_run(uint64_t seed, enum fault fault, struct sim_stats *stats);

/* --- the world ---------------------------------------------------------------------- */

/* An operation as the upstreams and the gateway know it. */
struct op {
    bool planned, command, left, answered, failed;
    enum call_class class;
    struct digest key, applied_key;
    unsigned effects, reads;
    enum call_end told; /* what the model was told */
};
extern struct op world_op[SIM_TURNS][SIM_STEPS + 1][SIM_CALLS];
extern uint64_t world_seed;

uint64_t world_pick(uint64_t n);
void world_reset(uint64_t seed);
void world_fly(unsigned turn, uint64_t step, uint64_t ord, uint64_t epoch, const struct digest *key, unsigned worker,
               unsigned life);
void world_revoke(unsigned turn, uint64_t epoch);
void world_abort(unsigned turn, uint64_t step, uint64_t ord);
enum known world_ask(unsigned turn, uint64_t step, uint64_t ord, enum call_end *end);
enum known world_look(unsigned turn, uint64_t step, uint64_t ord, enum call_end *end);
/* The gateway, or a sandbox with its commands, is killed: what is on its way there ends where it is. */
void world_cut(bool sandbox);
/* False: it does not go on any more. */
bool world_wait(unsigned turn, uint64_t step, uint64_t ord, unsigned worker, unsigned life);
/* Something happens out there; true: a worker hears of it. */
struct world_word {
    unsigned turn, worker, life;
    uint64_t step, ord;
    enum call_end end;
};
bool world_turns(struct world_word *out);

#endif
