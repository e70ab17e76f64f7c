#include "tests/unit/broker/sim.h"

enum { FLIGHTS_MAX = 256 };
/* A call on its way: asked for in the sandbox, recorded by the gateway, done by the upstream. */
static struct flight {
    enum { F_NONE = 0, F_ASKED, F_RECORDED, F_DONE, F_CUT } stage;
    unsigned turn, worker, life;
    uint64_t step, ord, epoch;
    struct digest key;
    bool slow; /* its sandbox takes its time: it may outlive who asked for it */
} flight[FLIGHTS_MAX];
static uint64_t revoked[SIM_TURNS];
struct op world_op[SIM_TURNS][SIM_STEPS + 1][SIM_CALLS];
uint64_t world_seed;

uint64_t world_pick(uint64_t n)
{
    uint64_t z = (world_seed += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (z ^ (z >> 31)) % n;
}

void world_reset(uint64_t seed)
{
    world_seed = seed * 0x9e3779b97f4a7c15ull + 1;
    memset(flight, 0, sizeof(flight));
    memset(revoked, 0, sizeof(revoked));
    memset(world_op, 0, sizeof(world_op));
}

static struct op *op_of(const struct flight *f)
{
    return &world_op[f->turn][f->step][f->ord];
}

static struct flight *find(unsigned turn, uint64_t step, uint64_t ord)
{
    for (size_t i = 0; i < FLIGHTS_MAX; i++)
        if (flight[i].stage != F_NONE && flight[i].stage != F_CUT && flight[i].turn == turn &&
            flight[i].step == step && flight[i].ord == ord)
            return &flight[i];
    return NULL;
}

void world_fly(unsigned turn, uint64_t step, uint64_t ord, uint64_t epoch, const struct digest *key, unsigned worker,
               unsigned life)
{
    for (size_t i = 0; i < FLIGHTS_MAX; i++)
        if (flight[i].stage == F_NONE) {
            flight[i] = (struct flight){F_ASKED, turn, worker, life, step, ord, epoch, *key, world_pick(4) == 0};
            return;
        }
    fail_msg("more on its way than the world has room for");
}

/* Requests of these lanes are cut off and no more are taken. A command that runs goes on running. */
void world_revoke(unsigned turn, uint64_t epoch)
{
    revoked[turn] = epoch;
    for (size_t i = 0; i < FLIGHTS_MAX; i++)
        if (flight[i].turn == turn && flight[i].epoch <= epoch &&
            (flight[i].stage == F_ASKED || !op_of(&flight[i])->command))
            flight[i].stage = F_NONE;
}

void world_abort(unsigned turn, uint64_t step, uint64_t ord)
{
    struct flight *f = find(turn, step, ord);
    if (f != NULL && f->stage == F_ASKED)
        revoked[turn] = f->epoch; /* it is refused when it comes */
}

enum known world_ask(unsigned turn, uint64_t step, uint64_t ord, enum call_end *end)
{
    const struct op *o = &world_op[turn][step][ord];
    *end = o->failed ? CALL_ERROR : CALL_DONE;
    if (o->answered)
        return KNOWN_ANSWERED;
    if (o->command && find(turn, step, ord) != NULL)
        return KNOWN_GOING;
    if (world_pick(30) == 0)
        return KNOWN_NOTHING; /* its record cannot be read now */
    return o->left ? KNOWN_SENT : KNOWN_NOT_SENT;
}

enum known world_look(unsigned turn, uint64_t step, uint64_t ord, enum call_end *end)
{
    const struct op *o = &world_op[turn][step][ord];
    *end = CALL_DONE;
    if (world_pick(5) == 0 || find(turn, step, ord) != NULL)
        return KNOWN_NOTHING;
    return o->effects ? KNOWN_ANSWERED : KNOWN_NOT_SENT;
}

bool world_wait(unsigned turn, uint64_t step, uint64_t ord, unsigned worker, unsigned life)
{
    struct flight *f = find(turn, step, ord);
    if (f == NULL)
        return false;
    f->worker = worker;
    f->life = life;
    return true;
}

/* The upstream does it: what is idempotent goes by its key. */
static void apply(struct op *o, const struct digest *key)
{
    if (o->class == CALL_READ) {
        o->reads++;
        return;
    }
    bool again = o->effects && memcmp(o->applied_key.b, key->b, DIGEST_BYTES) == 0;
    o->applied_key = *key;
    if (o->class != CALL_IDEMPOTENT || !again)
        o->effects++;
}

void world_cut(bool sandbox)
{
    for (size_t i = 0; i < FLIGHTS_MAX; i++) {
        struct flight *f = &flight[i];
        if (f->stage == F_NONE || f->stage == F_CUT || (sandbox && !op_of(f)->command))
            continue;
        if (f->stage == F_RECORDED && world_pick(2) == 0)
            apply(op_of(f), &f->key); /* it had left, and no answer comes back */
        f->stage = F_CUT;
    }
}

enum went { WENT_LOST = 0, WENT_ON, WENT_HOME };

/* One stage more; lost: it is over, and nobody is told how. */
static enum went further(struct flight *f)
{
    struct op *o = op_of(f);
    if (f->stage == F_CUT)
        return WENT_LOST;
    if (f->stage == F_ASKED) {
        if (f->epoch <= revoked[f->turn] || world_pick(20) == 0)
            return WENT_LOST; /* refused, or its sandbox died */
        o->left = true;
        f->stage = F_RECORDED;
        return WENT_ON;
    }
    if (f->stage == F_RECORDED) {
        if (world_pick(15) == 0)
            return WENT_LOST; /* recorded, and never sent */
        o->failed = world_pick(10) == 0;
        if (!o->failed)
            apply(o, &f->key);
        f->stage = F_DONE;
        return WENT_ON;
    }
    if (world_pick(8) == 0)
        return WENT_LOST; /* its answer was lost on the way */
    o->answered = true;
    return WENT_HOME;
}

bool world_turns(struct world_word *out)
{
    size_t from = world_pick(FLIGHTS_MAX);
    for (size_t k = 0; k < FLIGHTS_MAX; k++) {
        struct flight *f = &flight[(from + k) % FLIGHTS_MAX];
        if (f->stage == F_NONE || (f->slow && world_pick(40) != 0))
            continue;
        enum went went = further(f);
        if (went == WENT_ON)
            return false;
        *out = (struct world_word){
            .turn = f->turn, .worker = f->worker, .life = f->life, .step = f->step, .ord = f->ord};
        out->end = went == WENT_LOST || world_pick(12) == 0 ? CALL_UNKNOWN
                   : op_of(f)->failed                       ? CALL_ERROR
                                                            : CALL_DONE;
        f->stage = F_NONE;
        return true;
    }
    return false;
}
