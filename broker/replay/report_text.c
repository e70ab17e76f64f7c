#include "broker/replay/report.h"
#include "common/text/visible.h"

typedef unsigned long long ull;

static void id_cell(struct dynbuf *b, const struct id *id)
{
    char text[ID_TEXT + 1];
    id_text(id, text);
    (void)dynbuf_addf(b, "%s", text);
}

static void differences(const struct score *s, struct dynbuf *b)
{
    if (s->then != NULL)
        (void)dynbuf_addf(b, "%llu of %llu runs end as they did then.\n", (ull)report_same_ends(s), (ull)s->set->n);
    if (s->then != NULL && s->differ == 0)
        return;
    if (s->differ == 0) {
        (void)dynbuf_addf(b, "No run is otherwise than it was recorded.\n");
        return;
    }
    (void)dynbuf_addf(b, "%llu of %llu runs are otherwise than they were recorded; the first of it in each:\n",
                      (ull)s->differ, (ull)s->all.runs);
    for (size_t i = 0; i < s->set->n; i++) {
        const struct again_difference *d = &s->run[i].differs;
        if (!d->is)
            continue;
        (void)dynbuf_addf(b, "\n  ");
        id_cell(b, &s->set->run[i].turn);
        (void)dynbuf_addf(b, "  step %llu, at %llu ms: ", (ull)d->step, (ull)d->t);
        visible_text(b, d->heard, false);
        (void)dynbuf_addf(b, "\n    then: ");
        visible_text(b, d->then, false);
        (void)dynbuf_addf(b, "\n    now:  ");
        visible_text(b, d->now, false);
        (void)dynbuf_addf(b, "\n");
    }
}

static void runs(const struct score *s, struct dynbuf *b)
{
    char room[96];
    (void)dynbuf_addf(b, "\n%-26s  %-24s %5s %5s %5s %9s %9s %9s %9s %11s  %s\n", "TURN", "END", "STEPS", "CALLS",
                      "DONE", "MS", "MODEL MS", "TOOL MS", "TOKENS", "MILLIONTHS", "MODEL");
    for (size_t i = 0; i < s->set->n; i++) {
        const struct again *r = &s->run[i];
        id_cell(b, &s->set->run[i].turn);
        (void)dynbuf_addf(b, "  %-24.*s %5llu %5llu %5llu %9llu %9llu %9llu %9llu %11llu  ",
                          SPAN_FMT(report_end(r, room)), (ull)r->used.steps, (ull)r->calls, (ull)r->ends[CALL_DONE],
                          (ull)r->ms, (ull)r->model_ms, (ull)r->tool_ms, (ull)r->used.tokens,
                          (ull)r->used.cost_micro);
        visible_text(b, score_model_of(&s->set->run[i]), false);
        (void)dynbuf_addf(b, "\n");
    }
}

static void part(const struct score_part *p, struct dynbuf *b)
{
    char share[32], calls[32], cost[32], done[32];
    (void)dynbuf_addf(b, "  completed             %llu of %llu runs (%s)\n", (ull)p->completed, (ull)p->runs,
                      report_share(p->completed, p->runs, share));
    (void)dynbuf_addf(b, "  time of a run         least %llu ms, middle %llu ms, most %llu ms\n", (ull)p->ms.least,
                      (ull)p->ms.middle, (ull)p->ms.most);
    (void)dynbuf_addf(b, "  of it in all          models %llu ms, tools %llu ms\n", (ull)p->model_ms,
                      (ull)p->tool_ms);
    (void)dynbuf_addf(b, "  calls                 %llu, of them %llu done (%s); %s for each run that completed\n",
                      (ull)p->calls, (ull)p->done, report_share(p->done, p->calls, done),
                      report_quotient(p->calls, p->completed, calls));
    (void)dynbuf_addf(b,
                      "  cost                  %llu millionths, %llu tokens; %s millionths for each that completed\n",
                      (ull)p->cost_micro, (ull)p->tokens, report_quotient(p->cost_micro, p->completed, cost));
}

static void thousandths(struct dynbuf *b, uint64_t n)
{
    (void)dynbuf_addf(b, "%llu.%llu %%", (ull)(n / 10), (ull)(n % 10));
}

static void fault(const struct score_fault *f, struct dynbuf *b)
{
    char share[32];
    const struct score_spread *e = &f->recovered_each, *ms = &f->added_ms;
    (void)dynbuf_addf(b, "  %-7s recovered %llu of %llu (%s), over the seeds ", replay_fault_name(f->fault),
                      (ull)f->recovered, (ull)f->placed, report_share(f->recovered, f->placed, share));
    thousandths(b, e->least);
    (void)dynbuf_addf(b, " to ");
    thousandths(b, e->most);
    (void)dynbuf_addf(b, "; %llu to %llu ms longer, middle %llu ms\n", (ull)ms->least, (ull)ms->most,
                      (ull)ms->middle);
    (void)dynbuf_addf(
        b,
        "          calls told as unknown: %llu; repeated that must not be: %llu; told as not run that were: "
        "%llu\n",
        (ull)f->unknown, (ull)f->repeated, (ull)f->hidden);
    if (f->placed < f->tried || f->other_way > 0)
        (void)dynbuf_addf(b, "          had no place: %llu; went beyond what is recorded: %llu\n",
                          (ull)(f->tried - f->placed), (ull)f->other_way);
}

/* --- live ------------------------------------------------------------------------------------ */

static void spread(const struct score_spread *s, const char *unit, struct dynbuf *b)
{
    (void)dynbuf_addf(b, "least %llu%s, middle %llu%s, most %llu%s\n", (ull)s->least, unit, (ull)s->middle, unit,
                      (ull)s->most, unit);
}

static void shares(const char *what, const struct score_spread *s, struct dynbuf *b)
{
    (void)dynbuf_addf(b, "  %s ", what);
    thousandths(b, s->least);
    (void)dynbuf_addf(b, " to ");
    thousandths(b, s->most);
    (void)dynbuf_addf(b, ", middle ");
    thousandths(b, s->middle);
    (void)dynbuf_addf(b, "\n");
}

static void live_model(const struct live_model *m, struct dynbuf *b)
{
    (void)dynbuf_addf(b, "\nModel ");
    visible_text(b, m->name, false);
    (void)dynbuf_addf(b, "\n");
    part(&m->part, b);
    shares("by repetition        ", &m->completed_each, b);
    (void)dynbuf_addf(b, "  millionths of a run   ");
    spread(&m->cost_each_micro, "", b);
    if (m->lost > 0 || m->undecided > 0)
        (void)dynbuf_addf(b, "  lost                  %llu runs; %llu requests that nobody had decided\n",
                          (ull)m->lost, (ull)m->undecided);
}

/* A line for what was recorded, and below it one for each model. */
static void live_turn(const struct live *l, const struct again *then, size_t turn, struct dynbuf *b)
{
    char room[96];
    (void)dynbuf_addf(b, "\n");
    id_cell(b, &l->set->run[turn].turn);
    (void)dynbuf_addf(b, "  recorded: %.*s, %llu ms, %llu steps, %llu calls, %llu millionths\n",
                      SPAN_FMT(report_end(then, room)), (ull)then->ms, (ull)then->used.steps, (ull)then->calls,
                      (ull)then->used.cost_micro);
    for (size_t i = 0; i < l->models; i++) {
        const struct live_cell *c = &l->cell[turn * l->models + i];
        (void)dynbuf_addf(b, "  ");
        visible_text(b, l->model[i].name, false);
        (void)dynbuf_addf(
            b,
            ": %llu of %llu completed; ms %llu to %llu, steps %llu to %llu, calls %llu to %llu, millionths "
            "%llu to %llu\n",
            (ull)c->completed, (ull)c->ran, (ull)c->ms.least, (ull)c->ms.most, (ull)c->steps.least,
            (ull)c->steps.most, (ull)c->calls.least, (ull)c->calls.most, (ull)c->cost_micro.least,
            (ull)c->cost_micro.most);
    }
}

static void live_not(const struct live *l, struct dynbuf *b)
{
    if (l->not_begun + l->lost > 0)
        (void)dynbuf_addf(b, "\nWithout a result\n");
    for (size_t i = 0; i < l->runs; i++) {
        const struct live_run *r = &l->run[i];
        if (r->state == LIVE_RAN)
            continue;
        (void)dynbuf_addf(b, "  ");
        id_cell(b, &l->set->run[r->turn].turn);
        (void)dynbuf_addf(b, " by ");
        visible_text(b, l->model[r->model].name, false);
        (void)dynbuf_addf(b, ", repetition %llu, %s: ", (ull)r->seed, report_live_state(r->state));
        visible_text(b, span_str(r->why), false);
        (void)dynbuf_addf(b, "\n");
    }
}

static void live(const struct score *s, struct dynbuf *b)
{
    const struct live *l = s->live;
    for (size_t i = 0; i < l->models; i++)
        live_model(&l->model[i], b);
    (void)dynbuf_addf(b, "\nOver the models\n");
    shares("completed            ", &l->completed_models, b);
    (void)dynbuf_addf(b, "  millionths of a run   ");
    spread(&l->cost_models_micro, "", b);
    (void)dynbuf_addf(
        b,
        "\nEach turn, by each model %llu times: %llu ran, %llu lost, %llu not begun; %llu requests that nobody "
        "had decided\n",
        (ull)l->seeds, (ull)l->ran, (ull)l->lost, (ull)l->not_begun, (ull)l->undecided);
    for (size_t i = 0; i < l->set->n; i++)
        live_turn(l, &l->then[i], i, b);
    live_not(l, b);
}

void report_text(const struct score *s, struct dynbuf *b)
{
    (void)dynbuf_addf(b, "Replay of %llu recorded runs, %s\n\n", (ull)report_turns(s), report_words(s));
    differences(s, b);
    if (s->left_out > 0)
        (void)dynbuf_addf(b, "%llu runs were not gone through: not all of them is recorded.\n", (ull)s->left_out);
    runs(s, b);
    (void)dynbuf_addf(b, "\nAll runs\n");
    part(&s->all, b);
    if (s->then != NULL) {
        (void)dynbuf_addf(b, "\nThe same runs, as they were recorded\n");
        part(&s->then->all, b);
    }
    if (s->live != NULL)
        live(s, b);
    for (size_t i = 0; s->live == NULL && i < s->models; i++) {
        (void)dynbuf_addf(b, "\nModel ");
        visible_text(b, s->model[i].name, false);
        (void)dynbuf_addf(b, "\n");
        part(&s->model[i].part, b);
    }
    if (s->faults > 0)
        (void)dynbuf_addf(b, "\nWith a fault in each run that completes without, seeds 1 to %llu\n", (ull)s->seeds);
    for (size_t i = 0; i < s->faults; i++)
        fault(&s->fault[i], b);
}
