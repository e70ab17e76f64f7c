#include "broker/replay/score.h"

#include <stdlib.h>

#include "broker/replay/score_in.h"

enum { INJECT_ARENA_MAX = 256 << 20 };

struct span score_model_of(const struct set_run *run)
{
    struct span name = SPAN("-");
    for (size_t i = 0; i < run->rows; i++)
        if (run->row[i].row.kind == TAPE_HEARD && run->row[i].row.e.heard == HEARD_ANSWER)
            name = run->row[i].row.model;
    return name;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Of n numbers, which are put in order; the middle one is the lower of two. */
struct score_spread score_spread(uint64_t *v, size_t n)
{
    if (n == 0)
        return (struct score_spread){0, 0, 0};
    qsort(v, n, sizeof(*v), by_size);
    return (struct score_spread){v[0], v[(n - 1) / 2], v[n - 1]};
}

void score_add(struct score_part *p, const struct again *r)
{
    p->runs++;
    p->completed += r->end == END_COMPLETED;
    p->steps += r->used.steps;
    p->calls += r->calls;
    p->done += r->ends[CALL_DONE];
    p->tokens += r->used.tokens;
    p->cost_micro += r->used.cost_micro;
    p->model_ms += r->model_ms;
    p->tool_ms += r->tool_ms;
}

/* --- as it was ----------------------------------------------------------------------------------- */

static struct score_model *model_of(struct score *s, struct span name)
{
    for (size_t i = 0; i < s->models; i++)
        if (span_eq(s->model[i].name, name))
            return &s->model[i];
    if (s->models == SCORE_MODELS_MAX)
        return NULL;
    s->model[s->models] = (struct score_model){.name = name};
    return &s->model[s->models++];
}

/* How long its runs took; all: of every model. */
static struct score_spread latencies(const struct score *s, const struct score_model *of, uint64_t *room)
{
    size_t n = 0;
    for (size_t i = 0; i < s->set->n; i++)
        if (s->run[i].state != AGAIN_NOT && (of == NULL || span_eq(of->name, score_model_of(&s->set->run[i]))))
            room[n++] = s->run[i].ms;
    return score_spread(room, n);
}

static void as_it_was(struct score *s, struct arena *a, uint64_t *room)
{
    for (size_t i = 0; i < s->set->n; i++) {
        struct again *r = &s->run[i];
        again_run(&s->set->run[i], NULL, a, r);
        s->differ += r->differs.is;
        s->left_out += r->state == AGAIN_NOT;
        if (r->state == AGAIN_NOT)
            continue;
        struct score_model *m = model_of(s, score_model_of(&s->set->run[i]));
        score_add(&s->all, r);
        if (m != NULL)
            score_add(&m->part, r);
    }
    s->all.ms = latencies(s, NULL, room);
    for (size_t i = 0; i < s->models; i++)
        s->model[i].part.ms = latencies(s, &s->model[i], room);
}

/* --- with faults ---------------------------------------------------------------------------------- */

struct seeded {
    uint64_t placed, recovered;
};

/* One run with one fault. It recovered if it ends as it did without, and no call was repeated that must not be, or
 * told as not run that was. */
static void inject(const struct score *s, size_t i, struct score_fault *f, uint64_t seed, struct seeded *of,
                   uint64_t *added, size_t *nadded)
{
    struct arena a;
    struct again r;
    const struct again *plain = &s->run[i];
    const struct again_inject in = {.fault = f->fault, .seed = seed, .plain = plain};
    arena_init(&a, INJECT_ARENA_MAX);
    again_run(&s->set->run[i], &in, &a, &r);
    arena_free(&a);
    f->tried++;
    if (!r.injected)
        return;
    bool well = r.state == AGAIN_ENDED && r.end == END_COMPLETED && r.repeated == 0 && r.hidden == 0;
    f->placed++;
    of->placed++;
    f->repeated += r.repeated;
    f->hidden += r.hidden;
    f->unknown +=
        r.ends[CALL_UNKNOWN] > plain->ends[CALL_UNKNOWN] ? r.ends[CALL_UNKNOWN] - plain->ends[CALL_UNKNOWN] : 0;
    f->other_way += r.state != AGAIN_ENDED;
    if (!well)
        return;
    f->recovered++;
    of->recovered++;
    added[(*nadded)++] = r.ms > plain->ms ? r.ms - plain->ms : 0;
}

/* Those that were completed without, and of which all is recorded. */
static void with_fault(const struct score *s, struct score_fault *f, uint64_t *added)
{
    uint64_t share[SCORE_SEEDS_MAX];
    size_t n = 0, nadded = 0;
    for (uint64_t seed = 1; seed <= s->seeds; seed++) {
        struct seeded of = {0, 0};
        for (size_t i = 0; i < s->set->n; i++) {
            const struct again *plain = &s->run[i];
            if (plain->state == AGAIN_ENDED && plain->end == END_COMPLETED && !plain->differs.is &&
                again_is_whole(&s->set->run[i]))
                inject(s, i, f, seed, &of, added, &nadded);
        }
        if (of.placed > 0)
            share[n++] = of.recovered * 1000 / of.placed;
    }
    f->recovered_each = score_spread(share, n);
    f->added_ms = score_spread(added, nadded);
}

int score_set(const struct replay_set *set, const enum replay_fault *fault, size_t faults, uint64_t seeds,
              struct arena *a, struct score *out)
{
    uint64_t *room = arena_alloc(a, set->n * SCORE_SEEDS_MAX * sizeof(*room));
    *out = (struct score){.set = set, .seeds = seeds < SCORE_SEEDS_MAX ? seeds : SCORE_SEEDS_MAX};
    out->run = arena_alloc(a, set->n * sizeof(*out->run));
    if (room == NULL || out->run == NULL)
        return -1;
    as_it_was(out, a, room);
    for (size_t i = 0; i < faults && out->faults < REPLAY_FAULTS && out->seeds > 0; i++) {
        struct score_fault *f = &out->fault[out->faults++];
        *f = (struct score_fault){.fault = fault[i]};
        with_fault(out, f, room);
    }
    return 0;
}
