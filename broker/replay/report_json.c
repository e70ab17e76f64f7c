#include "broker/replay/report.h"
#include "common/json/json.h"

static void put_id(struct jsonw *w, const char *key, const struct id *id)
{
    char text[ID_TEXT + 1];
    id_text(id, text);
    jsonw_kv(w, key, span_of(text, ID_TEXT));
}

static void put_spread(struct jsonw *w, const char *key, const struct score_spread *s)
{
    jsonw_kv_object(w, key);
    jsonw_kv_u64(w, "least", s->least);
    jsonw_kv_u64(w, "middle", s->middle);
    jsonw_kv_u64(w, "most", s->most);
    jsonw_end_object(w);
}

static void put_part(struct jsonw *w, const struct score_part *p)
{
    jsonw_kv_u64(w, "runs", p->runs);
    jsonw_kv_u64(w, "completed", p->completed);
    put_spread(w, "ms", &p->ms);
    jsonw_kv_u64(w, "model_ms", p->model_ms);
    jsonw_kv_u64(w, "tool_ms", p->tool_ms);
    jsonw_kv_u64(w, "steps", p->steps);
    jsonw_kv_u64(w, "calls", p->calls);
    jsonw_kv_u64(w, "calls_done", p->done);
    jsonw_kv_u64(w, "tokens", p->tokens);
    jsonw_kv_u64(w, "cost_micro", p->cost_micro);
}

static void put_run(struct jsonw *w, const struct score *s, size_t i)
{
    const struct set_run *of = &s->set->run[i], *then = s->then != NULL ? &s->then->set->run[i] : NULL;
    const struct again *r = &s->run[i];
    char room[96];
    const struct again_difference *d = &r->differs;
    jsonw_object(w);
    put_id(w, "turn", &of->turn);
    put_id(w, "conversation", &of->conversation);
    jsonw_kv(w, "end", report_end(r, room));
    if (then != NULL) {
        put_id(w, "of_turn", &then->turn);
        jsonw_kv(w, "then_end", span_str(turn_end_name(then->end)));
    }
    jsonw_kv(w, "recorded_end", span_str(turn_end_name(of->end)));
    jsonw_kv(w, "model", score_model_of(of));
    jsonw_kv_u64(w, "ms", r->ms);
    jsonw_kv_u64(w, "model_ms", r->model_ms);
    jsonw_kv_u64(w, "tool_ms", r->tool_ms);
    jsonw_kv_u64(w, "steps", r->used.steps);
    jsonw_kv_u64(w, "times_asked", r->thinks);
    jsonw_kv_u64(w, "workers", r->workers);
    jsonw_kv_u64(w, "tokens", r->used.tokens);
    jsonw_kv_u64(w, "cost_micro", r->used.cost_micro);
    jsonw_kv_object(w, "calls");
    for (unsigned k = CALL_DONE; k < CALL_ENDS; k++)
        jsonw_kv_u64(w, call_end_name(k), r->ends[k]);
    jsonw_end_object(w);
    if (d->is) {
        jsonw_kv_object(w, "difference");
        jsonw_kv_u64(w, "step", d->step);
        jsonw_kv_u64(w, "ms", d->t);
        jsonw_kv(w, "heard", d->heard);
        jsonw_kv(w, "then", d->then);
        jsonw_kv(w, "now", d->now);
        jsonw_end_object(w);
    }
    jsonw_end_object(w);
}

static void put_fault(struct jsonw *w, const struct score_fault *f)
{
    jsonw_object(w);
    jsonw_kv(w, "fault", span_str(replay_fault_name(f->fault)));
    jsonw_kv_u64(w, "tried", f->tried);
    jsonw_kv_u64(w, "placed", f->placed);
    jsonw_kv_u64(w, "recovered", f->recovered);
    put_spread(w, "recovered_thousandths_by_seed", &f->recovered_each);
    put_spread(w, "added_ms", &f->added_ms);
    jsonw_kv_u64(w, "unknown", f->unknown);
    jsonw_kv_u64(w, "repeated", f->repeated);
    jsonw_kv_u64(w, "hidden", f->hidden);
    jsonw_kv_u64(w, "beyond_record", f->other_way);
    jsonw_end_object(w);
}

/* --- live ------------------------------------------------------------------------------------ */

static void put_live_model(struct jsonw *w, const struct live_model *m)
{
    jsonw_object(w);
    jsonw_kv(w, "model", m->name);
    put_part(w, &m->part);
    jsonw_kv_u64(w, "lost", m->lost);
    jsonw_kv_u64(w, "undecided", m->undecided);
    put_spread(w, "completed_thousandths_by_seed", &m->completed_each);
    put_spread(w, "cost_micro_by_run", &m->cost_each_micro);
    jsonw_end_object(w);
}

static void put_live_turn(struct jsonw *w, const struct live *l, size_t turn)
{
    const struct again *then = &l->then[turn];
    char room[96];
    jsonw_object(w);
    put_id(w, "turn", &l->set->run[turn].turn);
    jsonw_kv_object(w, "recorded");
    jsonw_kv(w, "end", report_end(then, room));
    jsonw_kv_u64(w, "ms", then->ms);
    jsonw_kv_u64(w, "steps", then->used.steps);
    jsonw_kv_u64(w, "calls", then->calls);
    jsonw_kv_u64(w, "cost_micro", then->used.cost_micro);
    jsonw_end_object(w);
    jsonw_kv_array(w, "models");
    for (size_t i = 0; i < l->models; i++) {
        const struct live_cell *c = &l->cell[turn * l->models + i];
        jsonw_object(w);
        jsonw_kv(w, "model", l->model[i].name);
        jsonw_kv_u64(w, "ran", c->ran);
        jsonw_kv_u64(w, "completed", c->completed);
        put_spread(w, "ms", &c->ms);
        put_spread(w, "steps", &c->steps);
        put_spread(w, "calls", &c->calls);
        put_spread(w, "cost_micro", &c->cost_micro);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_end_object(w);
}

static void put_live_run(struct jsonw *w, const struct score *s, const struct live_run *r)
{
    const struct live *l = s->live;
    jsonw_object(w);
    put_id(w, "of_turn", &l->set->run[r->turn].turn);
    jsonw_kv(w, "model", l->model[r->model].name);
    jsonw_kv_u64(w, "seed", r->seed);
    jsonw_kv(w, "state", span_str(report_live_state(r->state)));
    if (r->state == LIVE_RAN)
        put_id(w, "turn", &s->set->run[r->made].turn);
    if (r->why[0] != '\0')
        jsonw_kv(w, "why", span_str(r->why));
    jsonw_kv_u64(w, "undecided", r->undecided);
    jsonw_kv_u64(w, "cost_micro", r->cost_micro);
    jsonw_end_object(w);
}

static void put_live(struct jsonw *w, const struct score *s)
{
    const struct live *l = s->live;
    jsonw_kv_object(w, "live");
    jsonw_kv_u64(w, "seeds", l->seeds);
    jsonw_kv_u64(w, "most_micro", l->most_micro);
    jsonw_kv_u64(w, "ran", l->ran);
    jsonw_kv_u64(w, "lost", l->lost);
    jsonw_kv_u64(w, "not_begun", l->not_begun);
    jsonw_kv_u64(w, "undecided", l->undecided);
    put_spread(w, "completed_thousandths_by_model", &l->completed_models);
    put_spread(w, "cost_micro_of_a_run_by_model", &l->cost_models_micro);
    jsonw_kv_array(w, "models");
    for (size_t i = 0; i < l->models; i++)
        put_live_model(w, &l->model[i]);
    jsonw_end_array(w);
    jsonw_kv_array(w, "turns");
    for (size_t i = 0; i < l->set->n; i++)
        put_live_turn(w, l, i);
    jsonw_end_array(w);
    jsonw_kv_array(w, "runs");
    for (size_t i = 0; i < l->runs; i++)
        put_live_run(w, s, &l->run[i]);
    jsonw_end_array(w);
    jsonw_end_object(w);
}

void report_json(const struct score *s, struct dynbuf *out)
{
    struct jsonw w;
    jsonw_begin(&w, out);
    jsonw_object(&w);
    jsonw_kv(&w, "mode", span_str(report_mode(s)));
    jsonw_kv_u64(&w, "differ", s->differ);
    jsonw_kv_u64(&w, "left_out", s->left_out);
    jsonw_kv_object(&w, "all");
    put_part(&w, &s->all);
    jsonw_end_object(&w);
    if (s->then != NULL) {
        jsonw_kv_u64(&w, "same_ends", report_same_ends(s));
        jsonw_kv_object(&w, "then");
        put_part(&w, &s->then->all);
        jsonw_end_object(&w);
    }
    if (s->live != NULL)
        put_live(&w, s);
    jsonw_kv_array(&w, "models");
    for (size_t i = 0; i < s->models; i++) {
        jsonw_object(&w);
        jsonw_kv(&w, "model", s->model[i].name);
        put_part(&w, &s->model[i].part);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_kv_u64(&w, "seeds", s->faults > 0 ? s->seeds : 0);
    jsonw_kv_array(&w, "faults");
    for (size_t i = 0; i < s->faults; i++)
        put_fault(&w, &s->fault[i]);
    jsonw_end_array(&w);
    jsonw_kv_array(&w, "runs");
    for (size_t i = 0; i < s->set->n; i++)
        put_run(&w, s, i);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    (void)dynbuf_add(out, SPAN("\n"));
}
