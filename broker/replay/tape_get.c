/* A line is read. It may be anybody's: what is not understood is refused, with its member. */
#include "broker/replay/tape.h"
#include "broker/replay/tape_in.h"
#include "common/json/json.h"

struct reading {
    const struct json *j;
    struct arena *a;
    struct err *e;
    int bad; /* -1 once something was */
};

static void wrong(struct reading *r, const char *key)
{
    if (r->bad == 0)
        err_set(r->e,
                "`%s` of a line is not what it may be: the set is damaged, or of another version of countersign",
                key);
    r->bad = -1;
}

static uint64_t number(struct reading *r, const char *key, uint64_t most)
{
    uint64_t n = 0;
    if (json_u64(r->j, span_str(key), &n) != 0 || n > most)
        wrong(r, key);
    return n;
}

static bool truth(struct reading *r, const char *key)
{
    const struct json *j = json_get(r->j, span_str(key));
    if (j == NULL || j->type != JSON_BOOL)
        wrong(r, key);
    return j != NULL && j->type == JSON_BOOL && j->truth;
}

/* One that older recordings do not have. */
static bool truth_if(struct reading *r, const char *key)
{
    return json_get(r->j, span_str(key)) != NULL && truth(r, key);
}

static struct span text(struct reading *r, const char *key, size_t most)
{
    const struct json *j = json_get(r->j, span_str(key));
    if (j == NULL || j->type != JSON_STRING || j->text.n > most) {
        wrong(r, key);
        return SPAN_NONE;
    }
    return j->text;
}

/* A name back; what is none of them is wrong, and never the first. */
static unsigned name(struct reading *r, const char *key, const char *const *names, unsigned n)
{
    struct span is = text(r, key, TAPE_NAME_MAX);
    for (unsigned i = 0; i < n; i++)
        if (span_eq(is, span_str(names[i])))
            return i;
    wrong(r, key);
    return 0;
}

static enum call_end call_end(struct reading *r)
{
    struct span is = text(r, "end", TAPE_NAME_MAX);
    enum call_end end = call_end_of(is);
    if (!span_eq(is, span_str(call_end_name(end))))
        wrong(r, "end");
    return end;
}

static struct used used(struct reading *r)
{
    return (struct used){.tokens = number(r, "tokens", TAPE_NUMBER_MAX),
                         .cost_micro = number(r, "cost_micro", TAPE_NUMBER_MAX)};
}

struct calls {
    struct loop_asked *asked;
    enum call_end *end;
    struct span *tool;
    size_t n;
};

static void one_call(struct reading *r, const struct json *j, struct calls *c, size_t i, bool ended)
{
    struct reading of = {.j = j, .a = r->a, .e = r->e, .bad = r->bad};
    struct span class = text(&of, "class", TAPE_NAME_MAX);
    c->asked[i].class = call_class_of(class);
    if (!span_eq(class, span_str(call_class_name(c->asked[i].class))))
        wrong(&of, "class");
    c->tool[i] = text(&of, "tool", TAPE_NAME_MAX);
    if (ended)
        c->end[i] = call_end(&of);
    r->bad = of.bad;
}

static struct calls calls(struct reading *r, struct tape_row *row, bool ended)
{
    const struct json *list = json_get(r->j, SPAN("calls"));
    struct calls c = {.n = number(r, "n", SIZE_MAX / 2)};
    size_t n = c.n <= TURN_CALLS_MAX ? c.n : 0;
    row->same = number(r, "same", TAPE_NUMBER_MAX);
    c.asked = arena_alloc(r->a, TURN_CALLS_MAX * sizeof(*c.asked));
    c.end = arena_alloc(r->a, TURN_CALLS_MAX * sizeof(*c.end));
    c.tool = arena_alloc(r->a, TURN_CALLS_MAX * sizeof(*c.tool));
    if (list == NULL || list->type != JSON_ARRAY || list->count != n || c.asked == NULL || c.end == NULL ||
        c.tool == NULL || (ended && c.n != n)) {
        wrong(r, "calls");
        c.n = 0;
        return c;
    }
    size_t i = 0;
    for (const struct json *one = list->child; one != NULL; one = one->next)
        one_call(r, one, &c, i++, ended);
    row->tool = c.tool;
    return c;
}

static void begin(struct reading *r, struct tape_row *row)
{
    struct loop_found *f = &row->found;
    struct span ends = text(r, "ends", TAPE_NAME_MAX);
    *f = (struct loop_found){.epoch = number(r, "epoch", TAPE_NUMBER_MAX),
                             .settled = number(r, "settled", TURN_STEPS_MAX),
                             .attempts = number(r, "attempts", TAPE_NUMBER_MAX),
                             .cancelled = truth(r, "cancelled"),
                             .cut = truth(r, "cut"),
                             .planned = truth(r, "planned"),
                             .summary = truth_if(r, "summary"),
                             .ends = turn_end_of(ends),
                             .used = used(r)};
    f->used.steps = number(r, "steps", TURN_STEPS_MAX);
    if (!span_eq(ends, span_str(turn_end_name(f->ends))))
        wrong(r, "ends");
    if (!f->planned)
        return;
    struct calls c = calls(r, row, true);
    f->asked = c.asked;
    f->end = c.end;
    f->n = c.n;
}

static void heard(struct reading *r, struct tape_row *row)
{
    struct loop_event *e = &row->e;
    switch (e->heard) {
    case HEARD_BEGUN:
        e->attempts = number(r, "attempts", TAPE_NUMBER_MAX);
        e->summary = truth_if(r, "summary");
        break;
    case HEARD_LONG:
        if (json_get(r->j, SPAN("tokens")) != NULL)
            e->used = used(r);
        break;
    case HEARD_ANSWER: {
        struct calls c = calls(r, row, false);
        e->asked = c.asked;
        e->n = c.n;
        row->model = text(r, "model", TAPE_NAME_MAX);
        e->used = used(r);
        e->cut = truth(r, "cut");
        break;
    }
    case HEARD_NO_ANSWER:
        row->model = text(r, "model", TAPE_NAME_MAX);
        e->retry = truth(r, "retry");
        e->after_ms = number(r, "after_ms", TAPE_NUMBER_MAX);
        break;
    case HEARD_KNOWN:
    case HEARD_LOOKED: e->known = name(r, "known", tape_known, TAPE_KNOWN_KINDS); /* fall through */
    case HEARD_DONE: e->end = call_end(r);                                        /* fall through */
    case HEARD_SETTLED: e->ord = number(r, "call", TURN_CALLS_MAX - 1); break;
    default: break;
    }
}

int tape_get(struct span line, struct arena *a, struct tape_row *row, struct err *e)
{
    *row = (struct tape_row){.kind = TAPE_NONE};
    const struct json *j = line.n <= TAPE_LINE_MAX ? json_parse(line, a) : NULL;
    if (j == NULL || j->type != JSON_OBJECT)
        return err_set(e, "a line is no JSON object");
    struct reading r = {.j = j, .a = a, .e = e};
    struct span what = json_text(j, SPAN("heard"));
    row->t = number(&r, "t", TAPE_NUMBER_MAX);
    if (span_eq(what, SPAN("spent"))) {
        row->kind = TAPE_SPENT;
        row->used = used(&r);
        return r.bad;
    }
    row->did = text(&r, "did", TAPE_DID_MAX);
    if (span_eq(what, SPAN("begin"))) {
        row->kind = TAPE_BEGIN;
        begin(&r, row);
        return r.bad;
    }
    row->kind = TAPE_HEARD;
    row->e.heard = name(&r, "heard", tape_heard, TAPE_HEARD_KINDS);
    if (row->e.heard == HEARD_NOTHING)
        wrong(&r, "heard");
    heard(&r, row);
    return r.bad;
}
