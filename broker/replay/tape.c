/* What is written: one JSON object a line. */
#include "broker/replay/tape.h"
#include "broker/replay/tape_in.h"
#include "common/json/json.h"

const char *const tape_heard[TAPE_HEARD_KINDS] = {
    [HEARD_NOTHING] = "nothing",     [HEARD_REVOKED] = "revoked", [HEARD_BEGUN] = "begun", [HEARD_ANSWER] = "answer",
    [HEARD_NO_ANSWER] = "no-answer", [HEARD_PLANNED] = "planned", [HEARD_DONE] = "done",   [HEARD_KNOWN] = "known",
    [HEARD_LOOKED] = "looked",       [HEARD_SETTLED] = "settled", [HEARD_STEP] = "step",   [HEARD_ENDED] = "ended",
    [HEARD_LONG] = "long",           [HEARD_CANCEL] = "cancel",   [HEARD_TICK] = "tick",   [HEARD_FENCED] = "fenced",
    [HEARD_FAILED] = "failed",       [HEARD_BUDGET] = "budget"};
const char *const tape_known[TAPE_KNOWN_KINDS] = {[KNOWN_NOTHING] = "nothing",
                                                  [KNOWN_SENT] = "sent",
                                                  [KNOWN_NOT_SENT] = "not-sent",
                                                  [KNOWN_ANSWERED] = "answered",
                                                  [KNOWN_GOING] = "going"};

const char *tape_heard_name(const struct tape_row *row)
{
    if (row->kind != TAPE_HEARD)
        return row->kind == TAPE_BEGIN ? "begin" : row->kind == TAPE_SPENT ? "spent" : "nothing";
    return tape_heard[(unsigned)row->e.heard < TAPE_HEARD_KINDS ? row->e.heard : HEARD_NOTHING];
}

/* --- what was done --------------------------------------------------------------------- */

static void add_action(struct dynbuf *b, const struct loop_action *a)
{
    unsigned long long step = a->step, ord = a->ord;
    switch (a->what) {
    case DO_REVOKE: (void)dynbuf_addf(b, "revoke"); break;
    case DO_BEGIN: (void)dynbuf_addf(b, "begin %llu", step); break;
    case DO_THINK: (void)dynbuf_addf(b, "think"); break;
    case DO_NOT_THINK: (void)dynbuf_addf(b, "stop-thinking"); break;
    case DO_PLAN: (void)dynbuf_addf(b, "plan %llu", (unsigned long long)a->n); break;
    case DO_RUN: (void)dynbuf_addf(b, "run %llu", ord); break;
    case DO_ABORT: (void)dynbuf_addf(b, "abort %llu", ord); break;
    case DO_WAIT: (void)dynbuf_addf(b, "wait %llu", ord); break;
    case DO_ASK: (void)dynbuf_addf(b, "ask %llu", ord); break;
    case DO_LOOK: (void)dynbuf_addf(b, "look %llu", ord); break;
    case DO_SETTLE: (void)dynbuf_addf(b, "settle %llu %s", ord, call_end_name(a->end)); break;
    case DO_CHECKPOINT: (void)dynbuf_addf(b, "checkpoint%s", a->rewind ? " rewind" : ""); break;
    case DO_FINISH: (void)dynbuf_addf(b, "finish %s", turn_end_name(a->turn)); break;
    case DO_GIVE_BACK: (void)dynbuf_addf(b, "give-back %llu", (unsigned long long)a->after_ms); break;
    case DO_NOTHING:
    default: (void)dynbuf_addf(b, "nothing");
    }
}

void tape_did(struct dynbuf *out, const struct loop_actions *actions)
{
    for (size_t i = 0; i < actions->n; i++) {
        if (i > 0)
            (void)dynbuf_addf(out, ", ");
        add_action(out, &actions->a[i]);
    }
}

bool tape_did_has(struct span did, const char *verb, size_t ord)
{
    struct span one, word, rest, number;
    uint64_t n;
    while (did.n > 0) {
        (void)span_cut(did, ',', &one, &did);
        one = span_trim(one);
        bool more = span_cut(one, ' ', &word, &rest);
        if (!span_eq(word, span_str(verb)))
            continue;
        if (ord == SIZE_MAX)
            return true;
        (void)span_cut(rest, ' ', &number, &rest);
        if (more && span_u64(number, SIZE_MAX, &n) == 0 && n == ord)
            return true;
    }
    return false;
}

/* --- a line -------------------------------------------------------------------------------- */

static void number(struct jsonw *w, const char *key, uint64_t n)
{
    jsonw_kv_u64(w, key, n < TAPE_NUMBER_MAX ? n : TAPE_NUMBER_MAX);
}

static void put_used(struct jsonw *w, const struct used *u)
{
    number(w, "tokens", u->tokens);
    number(w, "cost_micro", u->cost_micro);
}

static void put_calls(struct jsonw *w, const struct tape_row *row, const struct loop_asked *asked,
                      const enum call_end *end, size_t n)
{
    number(w, "n", n);
    number(w, "same", row->same);
    jsonw_kv_array(w, "calls");
    for (size_t i = 0; i < n && n <= TURN_CALLS_MAX; i++) {
        jsonw_object(w);
        jsonw_kv(w, "class", span_str(call_class_name(asked[i].class)));
        jsonw_kv(w, "tool", span_first(row->tool[i], TAPE_NAME_MAX));
        if (end != NULL)
            jsonw_kv(w, "end", span_str(call_end_name(end[i])));
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void put_begin(struct jsonw *w, const struct tape_row *row)
{
    const struct loop_found *f = &row->found;
    number(w, "epoch", f->epoch);
    number(w, "settled", f->settled);
    number(w, "attempts", f->attempts);
    number(w, "steps", f->used.steps);
    put_used(w, &f->used);
    jsonw_kv_bool(w, "cancelled", f->cancelled);
    jsonw_kv_bool(w, "cut", f->cut);
    jsonw_kv(w, "ends", span_str(turn_end_name(f->ends)));
    jsonw_kv_bool(w, "planned", f->planned);
    if (f->planned && f->summary)
        jsonw_kv_bool(w, "summary", true);
    if (f->planned)
        put_calls(w, row, f->asked, f->end, f->n);
}

static void put_heard(struct jsonw *w, const struct tape_row *row)
{
    const struct loop_event *e = &row->e;
    switch (e->heard) {
    case HEARD_BEGUN:
        number(w, "attempts", e->attempts);
        if (e->summary)
            jsonw_kv_bool(w, "summary", true);
        break;
    case HEARD_LONG:
        if (e->used.tokens > 0)
            put_used(w, &e->used);
        break;
    case HEARD_ANSWER:
        jsonw_kv(w, "model", span_first(row->model, TAPE_NAME_MAX));
        put_used(w, &e->used);
        jsonw_kv_bool(w, "cut", e->cut);
        put_calls(w, row, e->asked, NULL, e->n);
        break;
    case HEARD_NO_ANSWER:
        jsonw_kv(w, "model", span_first(row->model, TAPE_NAME_MAX));
        jsonw_kv_bool(w, "retry", e->retry);
        number(w, "after_ms", e->after_ms);
        break;
    case HEARD_KNOWN:
    case HEARD_LOOKED: jsonw_kv(w, "known", span_str(tape_known[e->known])); /* fall through */
    case HEARD_DONE: jsonw_kv(w, "end", span_str(call_end_name(e->end)));    /* fall through */
    case HEARD_SETTLED: number(w, "call", e->ord); break;
    default: break;
    }
}

void tape_put(struct dynbuf *out, const struct tape_row *row)
{
    struct dynbuf b;
    struct jsonw w;
    dynbuf_init(&b, TAPE_LINE_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "heard", span_str(tape_heard_name(row)));
    number(&w, "t", row->t);
    if (row->kind == TAPE_BEGIN)
        put_begin(&w, row);
    else if (row->kind == TAPE_SPENT)
        put_used(&w, &row->used);
    else
        put_heard(&w, row);
    if (row->kind != TAPE_SPENT)
        jsonw_kv(&w, "did", row->did);
    jsonw_end_object(&w);
    (void)dynbuf_add(&b, SPAN("\n"));
    if (dynbuf_ok(&b) && b.n <= out->max - out->n)
        (void)dynbuf_add(out, dynbuf_span(&b));
    dynbuf_free(&b);
}
