#include "broker/replay/set.h"
#include "common/json/json.h"

/* --- a run's own line ---------------------------------------------------------------------- */

static void number(struct jsonw *w, const char *key, uint64_t n)
{
    jsonw_kv_u64(w, key, n < TAPE_NUMBER_MAX ? n : TAPE_NUMBER_MAX);
}

static void put_id(struct jsonw *w, const char *key, const struct id *id)
{
    char text[ID_TEXT + 1];
    id_text(id, text);
    jsonw_kv(w, key, span_of(text, ID_TEXT));
}

void set_put_run(struct dynbuf *out, const struct set_run *run)
{
    struct jsonw w;
    jsonw_begin(&w, out);
    jsonw_object(&w);
    jsonw_kv_object(&w, "run");
    put_id(&w, "turn", &run->turn);
    put_id(&w, "conversation", &run->conversation);
    jsonw_kv(&w, "end", span_str(turn_end_name(run->end)));
    jsonw_kv_bool(&w, "cut", run->cut);
    number(&w, "steps", run->used.steps);
    number(&w, "tokens", run->used.tokens);
    number(&w, "cost_micro", run->used.cost_micro);
    jsonw_kv_object(&w, "budget");
    number(&w, "steps", run->budget.steps);
    number(&w, "tokens", run->budget.tokens);
    number(&w, "cost_micro", run->budget.cost_micro);
    number(&w, "wall_ms", run->budget.wall_ms);
    number(&w, "same_calls", run->budget.same_calls);
    jsonw_end_object(&w);
    jsonw_end_object(&w);
    jsonw_end_object(&w);
    (void)dynbuf_add(out, SPAN("\n"));
}

static bool id_of(const struct json *j, struct span key, struct id *out)
{
    return id_parse(json_text(j, key), out) == 0;
}

static int get_run(const struct json *j, struct set_run *r, struct err *e)
{
    const struct json *b = json_get(j, SPAN("budget")), *cut = json_get(j, SPAN("cut"));
    struct span end = json_text(j, SPAN("end"));
    *r = (struct set_run){.end = turn_end_of(end), .cut = cut != NULL && cut->truth};
    bool ok = id_of(j, SPAN("turn"), &r->turn) && id_of(j, SPAN("conversation"), &r->conversation) && cut != NULL &&
              cut->type == JSON_BOOL && span_eq(end, span_str(turn_end_name(r->end))) &&
              json_u64(j, SPAN("steps"), &r->used.steps) == 0 && json_u64(j, SPAN("tokens"), &r->used.tokens) == 0 &&
              json_u64(j, SPAN("cost_micro"), &r->used.cost_micro) == 0 &&
              json_u64(b, SPAN("steps"), &r->budget.steps) == 0 &&
              json_u64(b, SPAN("tokens"), &r->budget.tokens) == 0 &&
              json_u64(b, SPAN("cost_micro"), &r->budget.cost_micro) == 0 &&
              json_u64(b, SPAN("wall_ms"), &r->budget.wall_ms) == 0 &&
              json_u64(b, SPAN("same_calls"), &r->budget.same_calls) == 0;
    return ok ? 0 : err_set(e, "the line of a run lacks a member, or one is not what it may be");
}

/* --- what its rows say of each other ----------------------------------------------------------- */

/* What has to be done for it to be heard; NULL: it comes by itself. */
static const char *asks_for(const struct loop_event *e, size_t *ord)
{
    *ord = SIZE_MAX;
    switch (e->heard) {
    case HEARD_REVOKED: return "revoke";
    case HEARD_BEGUN: return "begin";
    case HEARD_ANSWER:
    case HEARD_LONG:
    case HEARD_NO_ANSWER:
    case HEARD_BUDGET: return "think";
    case HEARD_PLANNED: return "plan";
    case HEARD_STEP: return "checkpoint";
    case HEARD_ENDED: return "finish";
    case HEARD_DONE: *ord = e->ord; return "run";
    case HEARD_KNOWN: *ord = e->ord; return "ask";
    case HEARD_LOOKED: *ord = e->ord; return "look";
    case HEARD_SETTLED: *ord = e->ord; return "settle";
    default: return NULL;
    }
}

/* How long it took: since the nearest row before it that asked for it. */
static void find_latency(struct set_run *r, size_t first, size_t at)
{
    struct set_row *row = &r->row[at];
    size_t ord;
    const char *verb = asks_for(&row->row.e, &ord);
    for (size_t i = at; verb != NULL && i > first; i--) {
        const struct tape_row *from = &r->row[i - 1].row;
        if (!tape_did_has(from->did, verb, ord) &&
            !(row->row.e.heard == HEARD_DONE && tape_did_has(from->did, "wait", ord)))
            continue;
        row->asked = true;
        row->lat = row->row.t > from->t ? row->row.t - from->t : 0;
        return;
    }
}

/* What attempts cost of which nothing is kept stands in rows of its own, before what ended them or, where they were
 * given up, behind it. The price that an answer has in its row has it in it, too, also of attempts before its step
 * was begun once more. */
static void fold_wasted(struct set_run *r)
{
    size_t n = 0;
    struct used wasted = {0};
    for (size_t i = 0; i < r->rows; i++) {
        struct set_row row = r->row[i];
        bool begin = row.row.kind == TAPE_BEGIN;
        if (begin && n > 0) {
            r->row[n - 1].wasted.tokens += wasted.tokens;
            r->row[n - 1].wasted.cost_micro += wasted.cost_micro;
        }
        if (row.row.kind == TAPE_SPENT) {
            wasted.tokens += row.row.used.tokens;
            wasted.cost_micro += row.row.used.cost_micro;
            continue;
        }
        bool thought = !begin && heard_of_model(row.row.e.heard) && row.row.e.heard != HEARD_LONG;
        if (thought)
            row.wasted = wasted;
        if (begin || thought)
            wasted = (struct used){0};
        r->row[n++] = row;
    }
    r->rows = n;
    if (n > 0) {
        r->row[n - 1].wasted.tokens += wasted.tokens;
        r->row[n - 1].wasted.cost_micro += wasted.cost_micro;
    }
}

static enum set_left left_by(const struct tape_row *last)
{
    if (tape_did_has(last->did, "finish", SIZE_MAX))
        return LEFT_OVER;
    return tape_did_has(last->did, "give-back", SIZE_MAX) ? LEFT_BACK : LEFT_LOST;
}

static int find_epochs(struct set_run *r, struct arena *a, struct err *e)
{
    uint64_t step = 0;
    if (r->rows > 0 && r->row[0].row.kind != TAPE_BEGIN)
        return err_set(e, "a run's recording does not start with its begin");
    r->epoch = arena_alloc(a, (r->rows + 1) * sizeof(*r->epoch));
    if (r->epoch == NULL)
        return err_set(e, "out of memory");
    fold_wasted(r);
    for (size_t i = 0; i < r->rows; i++) {
        struct set_row *row = &r->row[i];
        if (row->row.kind == TAPE_BEGIN) {
            r->epoch[r->epochs++] = (struct set_epoch){.first = i};
            step = row->row.found.settled + 1;
        }
        row->step = step;
        if (row->row.kind == TAPE_HEARD && row->row.e.heard == HEARD_STEP)
            step++;
        r->epoch[r->epochs - 1].last = i + 1;
        find_latency(r, r->epoch[r->epochs - 1].first, i);
        if (i > 0 && row->row.t < r->row[i - 1].row.t)
            return err_set(e, "a run's recording goes back in time");
    }
    for (size_t i = 0; i < r->epochs; i++) {
        enum set_left left = left_by(&r->row[r->epoch[i].last - 1].row);
        r->epoch[i].left = left == LEFT_OVER && i + 1 < r->epochs ? LEFT_LOST : left; /* it was not over */
    }
    return 0;
}

/* --- a file ------------------------------------------------------------------------------------ */

struct reader {
    struct arena *a;
    struct replay_set *out;
    size_t runs_max, rows_max;
    uint64_t line;
};

static int add_run(struct reader *r, const struct json *j, struct err *e)
{
    struct replay_set *s = r->out;
    struct set_run run;
    if (s->n == SET_RUNS_MAX)
        return err_set(e, "a set has at most %d runs", SET_RUNS_MAX);
    if (get_run(j, &run, e) != 0)
        return -1;
    for (size_t i = 0; i < s->n; i++)
        if (id_eq(&s->run[i].turn, &run.turn))
            return err_set(e, "this run is in the set twice");
    if (s->n > 0 && find_epochs(&s->run[s->n - 1], r->a, e) != 0)
        return -1;
    struct set_run *more = arena_more(r->a, s->run, s->n, &r->runs_max, sizeof(run));
    if (more == NULL)
        return err_set(e, "out of memory");
    s->run = more;
    s->run[s->n++] = run;
    r->rows_max = 0;
    return 0;
}

static int add_row(struct reader *r, struct span line, struct err *e)
{
    struct set_run *run = r->out->n > 0 ? &r->out->run[r->out->n - 1] : NULL;
    struct set_row row = {.step = 0};
    if (run == NULL)
        return err_set(e, "a row stands above the first run");
    if (tape_get(line, r->a, &row.row, e) != 0)
        return -1;
    struct set_row *more = arena_more(r->a, run->row, run->rows, &r->rows_max, sizeof(row));
    if (more == NULL)
        return err_set(e, "out of memory");
    run->row = more;
    run->row[run->rows++] = row;
    return 0;
}

static int add_line(struct reader *r, struct span line, struct err *e)
{
    if (r->line == 1)
        return span_eq(line, SPAN(SET_HEAD))
                   ? 0
                   : err_set(e, "this is no set that `countersign replay export` wrote, or one of another version");
    if (!span_starts(line, SPAN("{\"run\":")))
        return add_row(r, line, e);
    const struct json *j = line.n <= TAPE_LINE_MAX ? json_parse(line, r->a) : NULL;
    return j != NULL ? add_run(r, json_get(j, SPAN("run")), e) : err_set(e, "the line of a run is no JSON object");
}

int set_read(struct span text, struct arena *a, struct replay_set *out, struct err *e)
{
    struct reader r = {.a = a, .out = out};
    struct err why;
    *out = (struct replay_set){.n = 0};
    if (text.n > SET_BYTES_MAX)
        return err_set(e, "a set has at most %d bytes", SET_BYTES_MAX);
    while (text.n > 0) {
        struct span line;
        bool whole = span_cut(text, '\n', &line, &text);
        r.line++;
        if (!whole)
            return err_set(e, "line %llu: it is cut off; export the set again", (unsigned long long)r.line);
        if (add_line(&r, line, &why) != 0)
            return err_set(e, "line %llu: %s", (unsigned long long)r.line, why.text);
    }
    if (out->n == 0)
        return err_set(e, "there is no run in it");
    if (find_epochs(&out->run[out->n - 1], a, &why) != 0)
        return err_set(e, "line %llu: %s", (unsigned long long)r.line, why.text);
    return 0;
}
