/* One question to a model. */
#include <stdio.h>
#include <stdlib.h>

#include "broker/models/answer/answer.h"
#include "broker/work/seen/seen.h"
#include "broker/work/servers/servers.h"
#include "broker/work/summary/summary.h"
#include "broker/work/taped.h"
#include "broker/work/tools.h"
#include "broker/work/wire.h"
#include "common/http/http.h"
#include "common/log.h"
#include "common/net/loop.h"

enum {
    DOWN_MS = 30 * 1000,
    BESIDE_MS = 500, /* until it is looked whether what is asked beside it is through; twice as long each time */
    BESIDE_MOST_MS = 4000,
    URL_MAX = 1024
};

struct think {
    struct task *task;
    const struct route_model *model;
    size_t which;
    bool other, summary; /* summary: it is asked for one */
    struct span word;    /* of its step's kind */
    struct dynbuf body, error;
    struct used most; /* that it may come to */
    bool asks;        /* and that is written down */
    struct timer *waits;
    uint64_t waits_ms;
    struct wire *wire;
    struct answer *answer;
    struct fault_answer said; /* of an answer that is none; its spans are the wire's */
    bool shown;
    size_t out;                  /* bytes of it that came */
    uint64_t begun_ms, first_ms; /* of it, and when something came */
};

void think_end(struct task *t)
{
    struct think *k = t->think;
    if (k == NULL)
        return;
    t->think = NULL;
    timer_free(&k->waits);
    wire_free(&k->wire);
    answer_free(&k->answer);
    dynbuf_free(&k->body);
    dynbuf_free(&k->error);
    free(k);
}

/* What it might have come to is for others again. Until its step or its claim is over they wait for that otherwise,
 * and no worse than that comes of a store that does not take it. */
static void asks_no_more(struct think *k)
{
    if (k->asks && !k->task->over)
        (void)!bstore_ask(k->task->w->store, &k->task->claim, k->task->step, k->word, NULL);
    k->asks = false;
}

static void no_answer(struct task *t, bool retry, uint64_t after_ms)
{
    if (t->think != NULL)
        asks_no_more(t->think);
    think_end(t);
    task_tell(t, (struct loop_event){.heard = HEARD_NO_ANSWER, .retry = retry, .after_ms = after_ms});
}

/* It is over; with the word of what went wrong. */
static void saw(struct think *k, const char *error, uint64_t cost)
{
    const struct seen_chat is = {.model = k->model,
                                 .answer = k->answer != NULL ? answer_finish(k->answer) : NULL,
                                 .error = error,
                                 .begun_ms = k->begun_ms,
                                 .first_ms = k->first_ms,
                                 .try = k->task->all_tries,
                                 .cost_micro = cost,
                                 .unasked = error != NULL && k->wire == NULL};
    seen_chat(k->task, &is);
}

static uint64_t tokens(const struct model_usage *u)
{
    return u->input + u->cache_read + u->cache_write + u->output;
}

static uint64_t counted(uint64_t n)
{
    return n < BSTORE_SPENT_MAX ? n : BSTORE_SPENT_MAX;
}

/* By its model and task, but for its tokens: a replay is metered as that, whatever its turn was asked for then. */
static struct bstore_asked metered(const struct think *k)
{
    const struct task *t = k->task;
    bool replay = t->found.replays || t->found.live.n > 0;
    return (struct bstore_asked){.model = k->model->target.name,
                                 .task = replay       ? SPAN("replay")
                                         : k->summary ? SUMMARY_TASK
                                                      : t->w->models.task[0].name};
}

static struct bstore_asked metered_as(const struct think *k, const struct model_usage *u)
{
    struct bstore_asked a = metered(k);
    a.input = counted(u->input);
    a.output = counted(u->output);
    a.cache_read = counted(u->cache_read);
    a.cache_write = counted(u->cache_write);
    return a;
}

static struct span tenant_of(const struct task *t)
{
    return span_of(t->claim.tenant, t->claim.tenant_n);
}

static enum bstore_result waste(struct task *t, const struct used *used, const struct bstore_asked *asked)
{
    t->wasted.tokens = counted(t->wasted.tokens + used->tokens);
    t->wasted.cost_micro = counted(t->wasted.cost_micro + used->cost_micro);
    taped_spent(t, used);
    enum bstore_result r = bstore_spent(t->w->store, &t->claim, used, asked);
    if (r != BS_OK)
        log_warn("turn %s: what an attempt has cost is not counted: %s", t->turn, bstore_why(t->w->store));
    return r;
}

/* A question that has left may be on a bill, also if nobody waits for its answer, unless it was refused. */
static bool has_price(const struct think *k)
{
    return k->answer != NULL || (k->wire != NULL && wire_left(k->wire) && k->said.status < 300);
}

/* An answer of which nothing is kept has its price all the same: what its provider said of it by then, and at least
 * what was asked and came. It is counted before anything else is asked, so that no budget is passed by trying again;
 * where it cannot be, and there is a budget that it is missing in, it is not BS_OK. */
static enum bstore_result spend(struct think *k, const char *error)
{
    static const struct model_usage nothing = {.known = false};
    const struct tenant_budget *of[BUDGET_PERS];
    struct task *t = k->task;
    uint64_t cost = 0;
    if (t->over || !has_price(k)) {
        saw(k, error, 0);
        return BS_OK;
    }
    const struct model_usage *u = k->answer != NULL ? &answer_finish(k->answer)->usage : &nothing;
    uint64_t said = tokens(u) - u->output, in = said > 0 ? said : meter_guess(k->body.n);
    uint64_t out = meter_guess(k->out + k->error.n);
    out = u->output > out ? u->output : out;
    (void)!meter_most(&k->model->price, in, out, &cost);
    const struct used used = {.tokens = counted(in + out), .cost_micro = counted(cost)};
    struct bstore_asked asked = metered_as(k, u);
    asked.input = said > 0 ? asked.input : in;
    asked.output = counted(out);
    saw(k, error, used.cost_micro);
    enum bstore_result r = waste(t, &used, &asked);
    return budgets_of(t->w->store->budgets, tenant_of(t), of) > 0 ? r : BS_OK;
}

void think_stop(struct task *t)
{
    if (t->think != NULL) {
        (void)spend(t->think, t->w->stopping ? "stopped" : "cancelled"); /* nothing is asked after it */
        asks_no_more(t->think);
    }
    think_end(t);
}

/* It is too long: what is older is summarised first. Or no summary is to be had: it is asked as it is. */
static void begin_anew(struct task *t, bool shorter)
{
    think_end(t);
    t->long_now = shorter;
    t->unsummed = shorter ? t->unsummed : t->step;
    t->anew++;
    task_tell(t, (struct loop_event){.heard = HEARD_LONG, .used = t->wasted});
}

static void ask_other(struct think *k)
{
    struct task *t = k->task;
    t->tried |= UINT64_C(1) << k->which;
    asks_no_more(k); /* there may be no other */
    think_end(t);
    think_begin(t);
}

/* Its provider counts otherwise than we do. Of a summary less is told; else a larger model is asked, or what is older
 * is summarised first. False: there is nothing of it to be done. */
static bool too_long(struct think *k)
{
    struct task *t = k->task;
    uint64_t before = t->tried, window = k->model->context;
    const struct prompt *p = k->summary ? NULL : prompt_of(t);
    t->tried |= think_not_larger(t, k->summary ? 0 : window);
    bool larger = p != NULL && !k->shown && think_route(t, p, false).why == ROUTE_FOUND;
    if (larger || (k->summary && summary_less(t))) {
        think_end(t);
        think_begin(t);
        return true;
    }
    t->tried = before;
    if (k->summary)
        return false;
    t->narrow = t->narrow > 0 && t->narrow < window ? t->narrow : window;
    if (t->unsummed == t->step || !summary_may(t))
        return false;
    begin_anew(t, true);
    return true;
}

/* What is wrong, said of a summary as of one: readers saw nothing of it. */
static void why_of(const struct think *k, struct span words)
{
    struct task *t = k->task;
    task_why(t, arena_printf(&t->step_arena, "%s%.*s", k->summary ? "older messages are not summarised: " : "",
                             SPAN_FMT(words)));
}

static void failed(struct think *k, const struct fault *f)
{
    struct task *t = k->task;
    uint32_t dice = t->claim.turn.b[0] * 16777619u + (uint32_t)t->agent.attempts;
    if (!task_passed(t, spend(k, fault_name(f->kind))))
        return;
    t->all_tries++;
    const struct fault_place p = {.tries = (unsigned)(t->agent.attempts - t->anew),
                                  .all_tries = (unsigned)t->agent.attempts + t->all_tries - 1,
                                  .shown = k->shown,
                                  .other = k->other,
                                  .dice = dice};
    struct fault_next n = fault_next(f, &p);
    struct span name = k->model->target.name;
    struct span words = arena_printf(&t->step_arena, "%.*s: %s%s%s", SPAN_FMT(name), fault_name(f->kind),
                                     f->words[0] ? ": " : "", f->words);
    why_of(k, words);
    log_info("turn %s: %s", t->turn, t->why);
    if (f->kind == FAULT_WINDOW && too_long(k))
        return;
    if ((n.step == STEP_OTHER && !k->shown) || (n.step == STEP_STOP && k->summary)) {
        if (fault_of_all(f->kind))
            t->w->down[k->which] = loop_wall(t->w->loop) + DOWN_MS;
        ask_other(k);
    } else {
        no_answer(t, n.step != STEP_STOP, n.wait_ms);
    }
}

static void failed_so(struct think *k, enum fault_kind kind, const char *words)
{
    struct fault f = {.kind = FAULT_NONE};
    fault_set(&f, kind, words);
    failed(k, &f);
}

/* --- its answer --------------------------------------------------------------------------- */

static void delta(void *ctx, const struct answer_delta *d)
{
    struct think *k = ctx;
    k->shown = !k->summary;
    if (k->first_ms == 0)
        k->first_ms = loop_wall(k->task->w->loop);
    k->out += d->text.n;
    if (k->summary) /* it is no answer: readers see it when it holds */
        return;
    if (d->kind == DELTA_TEXT)
        show_delta(k->task, "message.delta", d->piece, d->text);
    else if (d->kind == DELTA_REASONING)
        show_delta(k->task, "reasoning.delta", d->piece, d->text);
}

/* What a server does not count is counted by its length, and never as nothing. */
static void count(struct think *k, const struct answer_result *r, size_t bytes)
{
    struct task *t = k->task;
    uint64_t cost = 0;
    const uint64_t in = meter_guess(k->body.n), out = meter_guess(bytes);
    if (r->usage.known ? meter_cost(&k->model->price, &r->usage, &cost)
                       : meter_most(&k->model->price, in, out, &cost))
        cost = INT64_MAX;
    t->used = (struct used){.tokens = r->usage.known ? tokens(&r->usage) : in + out, .cost_micro = cost};
    t->metered = metered_as(k, &r->usage);
    if (!r->usage.known) {
        t->metered.input = in;
        t->metered.output = out;
    }
}

/* It is taken whole or not at all: a part of one would be a part of what was said, and nobody would know. One that is
 * none is no reason to end the turn. */
static void complete_summary(struct think *k, const struct answer_result *r)
{
    struct task *t = k->task;
    const char *bad = r->ncalls > 0          ? "it asks for calls"
                      : r->stop > STOP_CALLS ? "it stopped before its end"
                                             : summary_take(t, &r->message);
    if (bad == NULL) {
        count(k, r, t->answer.n);
        saw(k, NULL, counted(t->used.cost_micro));
        think_end(t);
        t->calls = 0;
        struct used all = {.tokens = t->used.tokens + t->wasted.tokens,
                           .cost_micro = t->used.cost_micro + t->wasted.cost_micro};
        task_tell(t, (struct loop_event){.heard = HEARD_ANSWER, .used = all});
        return;
    }
    if (!task_passed(t, spend(k, "summary")))
        return;
    why_of(k, arena_printf(&t->step_arena, "%.*s: %s", SPAN_FMT(k->model->target.name), bad));
    log_info("turn %s: %s", t->turn, t->why);
    t->all_tries++;
    ask_other(k);
}

static void complete(struct think *k, const struct answer_result *r)
{
    struct task *t = k->task;
    struct loop_asked asked[TURN_CALLS_MAX];
    struct dynbuf b;
    struct jsonw w;
    bool cut = r->ncalls == 0 && r->stop > STOP_CALLS;
    struct span stopped = cut ? span_str(answer_stop_name(r->stop)) : SPAN_NONE;
    dynbuf_init(&b, BSTORE_BODY_MAX);
    jsonw_begin(&w, &b);
    message_put_stopped(&w, &r->message, stopped); /* for who may have to take the turn over */
    count(k, r, b.n);
    t->answer = arena_keep(&t->step_arena, &b);
    size_t n = calls_take(t, r, asked);
    if (t->answer.p == NULL) { /* more than is kept of one: as if it had asked for too much */
        task_why(t, SPAN("the model's answer is larger than is kept"));
        n = TURN_CALLS_MAX + 1;
    }
    if (cut)
        task_cut(t, stopped);
    saw(k, NULL, counted(t->used.cost_micro));
    if (n > TURN_CALLS_MAX) { /* it ends its turn, and nothing of it is kept that would be metered with it */
        const struct used used = {.tokens = counted(t->used.tokens), .cost_micro = counted(t->used.cost_micro)};
        (void)waste(t, &used, &t->metered);
        t->used = (struct used){.tokens = 0};
        asks_no_more(k);
    }
    think_end(t);
    struct used all = {.tokens = t->used.tokens + t->wasted.tokens,
                       .cost_micro = t->used.cost_micro + t->wasted.cost_micro};
    task_tell(t, (struct loop_event){.heard = HEARD_ANSWER, .asked = asked, .n = n, .used = all, .cut = cut});
}

static void over(struct think *k)
{
    if (k->answer == NULL) {
        struct fault f;
        k->said.body = dynbuf_span(&k->error);
        fault_of_answer(&f, &k->said, loop_wall(k->task->w->loop));
        failed(k, &f);
        return;
    }
    const struct answer_result *r = answer_finish(k->answer);
    if (r->end == ANSWER_COMPLETE)
        k->summary ? complete_summary(k, r) : complete(k, r);
    else
        failed(k, &r->fault);
}

static struct span field(const struct http_head *h, struct span name)
{
    const struct http_field *f = http_find(h, name);
    return f != NULL ? f->value : SPAN_NONE;
}

/* Where the gateway itself says that it could not, or does not know what became of it, nobody refused anything; and
 * it repeats no request. To ask a model twice costs one answer at most. */
static struct span asks_again(const struct http_head *h)
{
    return span_eq(field(h, SPAN("Countersign-Decision")), SPAN("error")) ? SPAN("true")
                                                                          : field(h, SPAN("x-should-retry"));
}

static void headed(struct think *k)
{
    const struct http_head *h = wire_head(k->wire);
    char prefix[ANSWER_PREFIX_MAX + 1];
    bool stream = span_starts(field(h, SPAN("Content-Type")), SPAN("text/event-stream"));
    k->said = (struct fault_answer){.status = h->status,
                                    .retry_after = field(h, SPAN("retry-after")),
                                    .retry_after_ms = field(h, SPAN("retry-after-ms")),
                                    .should_retry = asks_again(h)};
    if (h->status != 200 || !stream)
        return;
    (void)snprintf(prefix, sizeof(prefix), "c%.12s-%llu", k->task->turn, (unsigned long long)k->task->step);
    k->answer = answer_begin(k->model->target.protocol, &k->model->target.origin, span_str(prefix), delta, k);
    if (k->answer == NULL)
        log_warn("no memory for an answer of a model");
}

static void heard(void *arg, enum wire_event ev, struct span data)
{
    struct think *k = arg;
    if (k->task->over)
        return;
    switch (ev) {
    case WIRE_HEAD: headed(k); break;
    case WIRE_DATA:
        if (k->answer == NULL)
            (void)dynbuf_add(&k->error, span_first(data, FAULT_BODY_MAX - k->error.n));
        else if (!answer_feed(k->answer, data))
            over(k); /* it has said its last word */
        break;
    case WIRE_END: over(k); break;
    case WIRE_FAILED:
    default:
        if (k->answer != NULL)
            over(k); /* as far as it came */
        else
            failed_so(k, FAULT_UNREACHED, wire_why(k->wire));
    }
}

/* --- the budgets of its tenant -------------------------------------------------------------- */

static void send(struct task *t, uint64_t arg, unsigned status, struct span lease);

/* Nothing leaves any more. Which budget it is stands in the turn's end. */
static void used_up(struct think *k)
{
    struct task *t = k->task;
    struct budgets_stand all;
    char words[BUDGET_WORDS_MAX];
    task_why(t, SPAN_NONE); /* what an attempt before may have said */
    if (bstore_budgets(t->w->store, tenant_of(t), &all) != BS_OK)
        all.n = 0;
    if (budget_words(&all, tenant_of(t), words))
        task_why(t, span_str(words));
    log_info("turn %s: %s", t->turn, t->why);
    think_end(t);
    task_tell(t, (struct loop_event){.heard = HEARD_BUDGET});
}

static void ask_if_may(void *arg);

/* To look sums up what was spent: later each time. */
static void look_later(struct think *k)
{
    struct task *t = k->task;
    if (k->waits == NULL) {
        log_info("turn %s: what is left of its tenant's budget may be needed by what is asked now: it waits for that",
                 t->turn);
        k->waits_ms = BESIDE_MS;
        k->waits = timer_new(t->w->loop, ask_if_may, k);
    }
    if (k->waits == NULL) {
        no_answer(t, true, BESIDE_MS);
        return;
    }
    timer_set(k->waits, k->waits_ms);
    k->waits_ms = 2 * k->waits_ms < BESIDE_MOST_MS ? 2 * k->waits_ms : BESIDE_MOST_MS;
}

static void ask_if_may(void *arg)
{
    struct think *k = arg;
    struct task *t = k->task;
    enum bstore_result r;
    if (t->over)
        return;
    r = bstore_ask(t->w->store, &t->claim, t->step, k->word, &k->most);
    if (r == BS_SPENT) {
        used_up(k);
    } else if (r == BS_FULL) {
        look_later(k);
    } else if (task_passed(t, r)) {
        k->asks = true;
        k->begun_ms = loop_wall(t->w->loop);
        if (k->model->lease.n > 0)
            lease_need(t, k->model->lease, send, 0);
        else
            send(t, 0, 200, SPAN_NONE);
    }
}

/* --- the question -------------------------------------------------------------------------- */

static void send(struct task *t, uint64_t arg, unsigned status, struct span lease)
{
    struct think *k = t->think;
    const char *why;
    if (k == NULL) /* it was given up while it waited for its lease */
        return;
    const struct model_target *m = &k->model->target;
    if (status != 200) {
        saw(k, "no-lease", 0);
        task_why(t, arena_printf(&t->step_arena, "no lease of %.*s: %.*s", SPAN_FMT(k->model->lease),
                                 SPAN_FMT(desk_words(t, status, lease))));
        if (k->summary && status < 500)
            ask_other(k);
        else
            no_answer(t, status >= 500, 1000);
        return;
    }
    const struct wire_ask ask = {
        .url = arena_printf(&t->step_arena, "%.*s%s", SPAN_FMT(m->origin.endpoint), model_path(m->protocol)),
        .token = span_str(t->lane),
        .lease = lease,
        .protocol = m->protocol,
        .body = dynbuf_span(&k->body)};
    k->wire = wire_begin(t->w, &ask, heard, k, &why);
    if (k->wire == NULL)
        failed_so(k, FAULT_UNREACHED, why);
}

/* Somebody who can answer is asked, if there is anybody. */
static void ask_model(struct task *t, struct think *k, const struct prompt *p, const struct route_found *f)
{
    *k = (struct think){.task = t,
                        .model = &t->w->models.model[f->model],
                        .which = f->model,
                        .other = f->other,
                        .summary = t->agent.summary,
                        .word = t->agent.summary ? SUMMARY_KIND : MODEL_KIND,
                        .most = {.tokens = f->input + f->max_tokens, .cost_micro = f->most},
                        .begun_ms = loop_wall(t->w->loop)};
    t->think = k;
    t->asked = k->model;
    taped_model(t, k->model->target.name);
    if (k->summary)
        summary_begins(t, k->model->target.name);
    dynbuf_init(&k->body, REQUEST_MAX);
    dynbuf_init(&k->error, FAULT_BODY_MAX);
    if (question_write(t, p, &k->model->target, f->max_tokens, &k->body) != 0)
        no_answer(t, false, 0);
    else
        ask_if_may(k);
}

/* Nobody can be asked. For a summary whoever can be reached later is waited for, but for the last time. */
static void ask_nobody(struct task *t, const struct route_found *f)
{
    const struct think k = {.task = t, .summary = t->agent.summary};
    uint64_t now = loop_wall(t->w->loop);
    bool later = f->why == ROUTE_DOWN, last = t->agent.attempts + 1 >= LOOP_ATTEMPTS_MAX;
    if (f->why != ROUTE_TRIED || !k.summary) /* each said what was wrong with its own */
        why_of(&k, span_str(route_words(f->why)));
    if (k.summary && (!later || last) && summary_can_wait(t))
        begin_anew(t, false);
    else
        no_answer(t, later, f->until_ms > now ? f->until_ms - now : 1000);
}

static void ask_summary(struct task *t)
{
    struct think *k = calloc(1, sizeof(*k));
    struct prompt p;
    if (k == NULL || summary_prompt(t, &p) != 0) {
        free(k);
        summary_can_wait(t) ? begin_anew(t, false) : no_answer(t, false, 0);
        return;
    }
    struct route_found f = think_route(t, &p, false);
    if (f.why == ROUTE_FOUND) {
        summary_room(t, &p, f.max_tokens);
        ask_model(t, k, &p, &f);
        return;
    }
    free(k);
    ask_nobody(t, &f);
}

void think_begin(struct task *t)
{
    if (t->agent.summary) {
        ask_summary(t);
        return;
    }
    const struct prompt *p = prompt_of(t);
    if (p == NULL) {
        no_answer(t, false, 0);
        return;
    }
    if (t->unsummed != t->step && summary_due(t)) {
        begin_anew(t, true);
        return;
    }
    struct route_found f = think_route(t, p, false);
    struct think *k = f.why == ROUTE_FOUND ? calloc(1, sizeof(*k)) : NULL;
    if (f.why != ROUTE_FOUND)
        ask_nobody(t, &f);
    else if (k == NULL)
        no_answer(t, false, 0);
    else
        ask_model(t, k, p, &f);
}
