#include "broker/replay/live.h"

#include <stdio.h>

#include "broker/replay/score_in.h"

int live_plan(struct live *l, const struct replay_set *set, const struct span *model, size_t models, uint64_t seeds,
              struct arena *a, struct err *e)
{
    *l = (struct live){.set = set, .models = models, .seeds = seeds};
    if (models == 0 || models > LIVE_MODELS_MAX || seeds == 0 || seeds > LIVE_SEEDS_MAX)
        return err_set(e, "1 to %d models, and 1 to %d repetitions", LIVE_MODELS_MAX, LIVE_SEEDS_MAX);
    for (size_t i = 0; i < models; i++) {
        l->model[i].name = model[i];
        for (size_t k = 0; k < i; k++)
            if (span_eq(model[i], model[k]))
                return err_set(e, "the model `%.*s` is named twice", SPAN_FMT(model[i]));
    }
    if (set->n * models > LIVE_RUNS_MAX / seeds)
        return err_set(e, "these are more than %d runs: take fewer turns, models or repetitions", LIVE_RUNS_MAX);
    l->run = arena_alloc(a, set->n * models * seeds * sizeof(*l->run));
    l->cell = arena_alloc(a, set->n * models * sizeof(*l->cell));
    if (set->n > 0 && (l->run == NULL || l->cell == NULL))
        return err_set(e, "out of memory");
    for (uint64_t seed = 1; seed <= seeds; seed++)
        for (size_t t = 0; t < set->n; t++)
            for (size_t m = 0; m < models; m++)
                l->run[l->runs++] = (struct live_run){.turn = t, .model = m, .seed = seed};
    return 0;
}

uint64_t live_share(uint64_t most, uint64_t spent, uint64_t promised, uint64_t left)
{
    uint64_t gone = spent < UINT64_MAX - promised ? spent + promised : UINT64_MAX;
    return most > gone && left > 0 ? (most - gone) / left : 0;
}

int live_then(const struct live *l, size_t made, struct arena *a, struct replay_set *out)
{
    *out = (struct replay_set){.run = arena_alloc(a, made * sizeof(*out->run)), .n = made};
    if (made > 0 && out->run == NULL)
        return -1;
    for (size_t i = 0; i < l->runs; i++)
        if (l->run[i].state == LIVE_RAN && l->run[i].made < made)
            out->run[l->run[i].made] = l->set->run[l->run[i].turn];
    return 0;
}

/* --- what came of it -------------------------------------------------------------------------------- */

enum measure { MS, STEPS, CALLS, COST };

static uint64_t measured(const struct again *r, enum measure what)
{
    return what == MS ? r->ms : what == STEPS ? r->used.steps : r->calls;
}

enum { ANY_TURN = SET_RUNS_MAX };

/* Of the runs by this model, of this turn or any; what all that were begun came to, else what those did that ran. */
static struct score_spread spread_of(const struct live *l, const struct score *now, size_t model, size_t turn,
                                     enum measure what, uint64_t *room)
{
    size_t n = 0;
    for (size_t i = 0; i < l->runs; i++) {
        const struct live_run *r = &l->run[i];
        if (r->state == LIVE_NOT || r->model != model || (turn != ANY_TURN && r->turn != turn))
            continue;
        if (what == COST)
            room[n++] = r->cost_micro;
        else if (r->state == LIVE_RAN)
            room[n++] = measured(&now->run[r->made], what);
    }
    return score_spread(room, n);
}

/* How many of a repetition complete, of those that were begun. */
static struct score_spread completed_each(const struct live *l, size_t model, uint64_t *room)
{
    size_t n = 0;
    for (uint64_t seed = 1; seed <= l->seeds; seed++) {
        uint64_t ran = 0, well = 0;
        for (size_t i = 0; i < l->runs; i++) {
            const struct live_run *r = &l->run[i];
            if (r->model != model || r->seed != seed || r->state == LIVE_NOT)
                continue;
            ran++;
            well += r->end == END_COMPLETED;
        }
        if (ran > 0)
            room[n++] = well * 1000 / ran;
    }
    return score_spread(room, n);
}

static bool asked_another(const struct set_run *run, struct span name)
{
    for (size_t i = 0; i < run->rows; i++) {
        const struct tape_row *row = &run->row[i].row;
        if (row->kind == TAPE_HEARD && row->e.heard == HEARD_ANSWER && !span_eq(row->model, name) &&
            !span_eq(row->model, SPAN("-")))
            return true;
    }
    return false;
}

/* Of one that recorded more than is kept there is nothing to score. One that asked another model was run by a broker
 * that does not know of live replays: nothing of it says anything of this model. */
static void look(const struct live *l, struct live_run *r, const struct score *now)
{
    if (r->state != LIVE_RAN)
        return;
    bool there = r->made < now->set->n;
    bool another = there && asked_another(&now->set->run[r->made], l->model[r->model].name);
    if (there && !another && now->run[r->made].state != AGAIN_NOT)
        return;
    r->state = LIVE_LOST;
    if (!another) {
        (void)snprintf(r->why, sizeof(r->why), "not all of it is recorded");
        return;
    }
    r->end = END_NONE;
    (void)snprintf(r->why, sizeof(r->why), "another model was asked: not every broker of this store knows of this");
}

static void count(struct live *l, const struct score *now, const struct live_run *r)
{
    struct live_model *m = &l->model[r->model];
    struct live_cell *c = &l->cell[r->turn * l->models + r->model];
    l->ran += r->state == LIVE_RAN;
    l->lost += r->state == LIVE_LOST;
    l->not_begun += r->state == LIVE_NOT;
    l->undecided += r->undecided;
    m->lost += r->state == LIVE_LOST;
    m->undecided += r->undecided;
    if (r->state == LIVE_NOT)
        return;
    struct again is = {.end = END_NONE};
    if (r->state == LIVE_RAN)
        is = now->run[r->made];
    is.end = r->end;
    is.used.cost_micro = r->cost_micro;
    score_add(&m->part, &is);
    c->ran++;
    c->completed += r->end == END_COMPLETED;
}

int live_score(struct live *l, struct score *now, struct arena *a)
{
    uint64_t *room = arena_alloc(a, (l->runs + LIVE_SEEDS_MAX) * sizeof(*room));
    uint64_t share[LIVE_MODELS_MAX], cost[LIVE_MODELS_MAX];
    size_t n = 0;
    struct again *then = arena_alloc(a, l->set->n * sizeof(*then));
    if (room == NULL || (l->set->n > 0 && then == NULL))
        return -1;
    for (size_t i = 0; i < l->set->n; i++)
        again_run(&l->set->run[i], NULL, a, &then[i]);
    l->then = then;
    now->live = l;
    for (size_t i = 0; i < l->set->n * l->models; i++)
        l->cell[i] = (struct live_cell){0};
    for (size_t i = 0; i < l->runs; i++) {
        look(l, &l->run[i], now);
        count(l, now, &l->run[i]);
    }
    for (size_t i = 0; i < l->models; i++) {
        struct live_model *m = &l->model[i];
        m->part.ms = spread_of(l, now, i, ANY_TURN, MS, room);
        m->cost_each_micro = spread_of(l, now, i, ANY_TURN, COST, room);
        m->completed_each = completed_each(l, i, room);
        if (m->part.runs == 0)
            continue;
        share[n] = m->part.completed * 1000 / m->part.runs;
        cost[n++] = m->part.cost_micro / m->part.runs;
    }
    l->completed_models = score_spread(share, n);
    l->cost_models_micro = score_spread(cost, n);
    for (size_t i = 0; i < l->set->n * l->models; i++) {
        struct live_cell *c = &l->cell[i];
        size_t turn = i / l->models, model = i % l->models;
        c->ms = spread_of(l, now, model, turn, MS, room);
        c->steps = spread_of(l, now, model, turn, STEPS, room);
        c->calls = spread_of(l, now, model, turn, CALLS, room);
        c->cost_micro = spread_of(l, now, model, turn, COST, room);
    }
    return 0;
}
