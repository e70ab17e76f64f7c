/* One turn: what the agent asks for is done, and what came of it is told. Nothing here decides. */
#include <stdio.h>
#include <stdlib.h>

#include "broker/work/seen/seen.h"
#include "broker/work/servers/servers.h"
#include "broker/work/summary/summary.h"
#include "broker/work/taped.h"
#include "broker/work/tools.h"
#include "broker/work/work.h"
#include "common/log.h"
#include "common/net/loop.h"

enum {
    RETRY_MS = 1000,
    RETRY_MOST_MS = 30 * 1000,
    RETRY_SAID = 16,    /* of so many refusals in a row readers are told one */
    REFUSED_ENOUGH = 5, /* so often it may still be that what it began can be ended */
    EXECUTION_MAX = LOOP_KEPT_MAX,
    DELTA_ROOM = 64 * 1024
};

#define FILES_LOST "[This ran in a new sandbox: the one before has ended, and all that stood or ran in it is gone.]"

static void pump(struct task *t);

/* --- its end ------------------------------------------------------------------------- */

static void release(void *arg)
{
    struct task *t = arg;
    struct work *w = t->w;
    think_end(t);
    servers_free(t);
    taped_free(&t->taped);
    for (size_t i = 0; i < t->calls; i++)
        tool_forget(&t->call[i]);
    desk_forget(t);
    arena_free(&t->arena);
    arena_free(&t->step_arena);
    arena_free(&t->event_arena);
    dynbuf_free(&t->delta);
    timer_free(&t->tick);
    timer_free(&t->start);
    timer_free(&t->flush);
    explicit_bzero(t, sizeof(*t)); /* its lane and its leases */
    free(t);
    w->try_ms = 0;
    timer_set(w->look, 0);
}

static void end(struct task *t)
{
    if (t->over)
        return;
    if (!t->given_back && t->agent.state != LOOP_OVER)
        taped_flush(t);
    t->over = true; /* whoever is in the middle of telling it something goes on until it is released */
    if (!t->fenced && !t->given_back && t->agent.state != LOOP_OVER &&
        bstore_release(t->w->store, &t->claim, RETRY_MS) != BS_OK)
        log_warn("a turn stays claimed until its claim is over: %s", bstore_why(t->w->store));
    t->w->task = NULL;
    if (loop_defer(t->w->loop, release, t) != 0)
        log_die("out of memory");
}

void task_leave(struct task *t)
{
    think_stop(t);
    (void)!show_flush(t);
    end(t);
}

void task_why(struct task *t, struct span words)
{
    (void)snprintf(t->why, sizeof(t->why), "%.*s", SPAN_FMT(span_first(words, WORK_WHY_MAX)));
}

void task_cut(struct task *t, struct span stopped)
{
    (void)snprintf(t->why, sizeof(t->why), "the answer stopped: %.*s", SPAN_FMT(span_first(stopped, 64)));
}

bool task_passed(struct task *t, enum bstore_result r)
{
    if (r == BS_OK || r == BS_AGAIN)
        return true;
    if (t->over)
        return false;
    t->fenced |= r == BS_FENCED;
    if (r != BS_FENCED)
        log_warn("turn %s: the store did not take what was done (%d): %s", t->turn, (int)r, bstore_why(t->w->store));
    task_tell(t, (struct loop_event){.heard = r == BS_FENCED ? HEARD_FENCED : HEARD_FAILED});
    return false;
}

/* --- told ---------------------------------------------------------------------------- */

void task_tell(struct task *t, struct loop_event e)
{
    struct loop_actions out;
    if (t->over)
        return;
    e.now_ms = loop_wall(t->w->loop);
    if (!agent_hear(&t->agent, &e, &out))
        return;
    taped_heard(t, &e, &out);
    if (out.n >
        WORK_TODO_MAX - t->ntodo) { /* not one of them is left out: the next worker begins anew from the store */
        log_error("turn %s: more is to be done at once than has room", t->turn);
        end(t);
        return;
    }
    for (size_t i = 0; i < out.n; i++)
        t->todo[t->ntodo++] = out.a[i];
    pump(t);
}

void task_done(struct task *t, uint64_t ord, enum call_end how, struct span result)
{
    struct work_call *c = &t->call[ord];
    tool_forget(c);
    c->result = arena_copy(&t->step_arena, result_cut(&t->step_arena, result, WORK_RESULT_MAX));
    c->command = false;
    run_next(t);
    task_tell(t, (struct loop_event){.heard = HEARD_DONE, .ord = ord, .end = how});
}

static void tick(void *arg)
{
    struct task *t = arg;
    bool cancelled = false;
    enum bstore_result r = bstore_cancelled(t->w->store, &t->claim, &cancelled);
    timer_set(t->tick, WORK_TICK_MS);
    if (r == BS_FAIL) /* the store is locked or full for a moment: the claim says when that is too long */
        return;
    if (task_passed(t, r))
        task_tell(t, (struct loop_event){.heard = cancelled ? HEARD_CANCEL : HEARD_TICK});
}

static void flush(void *arg)
{
    (void)!show_flush(arg);
}

/* --- a step -------------------------------------------------------------------------- */

static void step_begin(struct task *t, uint64_t step)
{
    uint64_t attempts;
    think_end(t);
    servers_step(t);
    desk_forget(t);
    t->starts = NULL;
    t->starting = false;
    timer_clear(t->start);
    for (size_t i = 0; i < t->calls; i++)
        tool_forget(&t->call[i]);
    t->calls = 0;
    if (t->step != step) /* else it is begun once more, and what it has wasted before is in no answer yet */
        t->wasted = (struct used){0};
    t->anew = t->step == step ? t->anew : 0;
    t->step = step;
    t->tried = 0;
    t->halved = 0;
    t->all_tries = 0;
    t->answer = SPAN_NONE;
    t->prompt = NULL;
    arena_free(&t->step_arena);
    arena_init(&t->step_arena, WORK_STEP_BYTES);
    bool sum = t->long_now || summary_due(t);
    struct span kind = sum ? SUMMARY_KIND : MODEL_KIND;
    t->long_now = false;
    if (show_flush(t) && task_passed(t, bstore_step(t->w->store, &t->claim, step, kind, &attempts)))
        task_tell(t, (struct loop_event){.heard = HEARD_BEGUN, .attempts = attempts, .summary = sum});
}

static void plan(struct task *t, size_t n)
{
    struct bstore_call call[TURN_CALLS_MAX];
    struct dynbuf b;
    struct jsonw w;
    for (size_t i = 0; i < n; i++) {
        call[i] = t->call[i].call;
        t->call[i].intent_ms = loop_wall(t->w->loop);
        call_key(&t->claim.turn, t->step, i, call[i].tool, call[i].args, &t->call[i].key);
    }
    const struct bstore_plan p = {.answer = t->answer, .used = t->used, .call = call, .n = n, .asked = t->metered};
    if (!show_flush(t) || !task_passed(t, bstore_plan(t->w->store, &t->claim, t->step, &p)))
        return;
    for (size_t i = 0; i < n; i++) {
        show_begin(&b, &w);
        jsonw_kv(&w, "turn", span_str(t->turn));
        jsonw_kv_u64(&w, "step", t->step);
        jsonw_kv_u64(&w, "call", i);
        jsonw_kv(&w, "tool", call[i].tool);
        jsonw_kv(&w, "class", span_str(call_class_name(call[i].class)));
        jsonw_kv(&w, "arguments", result_cut(&t->step_arena, call[i].args, TOOL_SHOWN_MAX));
        jsonw_end_object(&w);
        show(t, "tool.call", &b);
    }
    task_tell(t, (struct loop_event){.heard = HEARD_PLANNED});
}

/* Its end in words, and what it said, which may be any bytes. */
static struct span result_with(struct task *t, const char *words, struct span said)
{
    struct dynbuf b;
    dynbuf_init(&b, WORK_RESULT_MAX + 1024);
    (void)dynbuf_addf(&b, "%s%s", words, *words != '\0' && said.n > 0 ? "\n" : "");
    (void)dynbuf_add(&b, said);
    return arena_keep(&t->step_arena, &b);
}

static void settle_call(struct task *t, const struct loop_action *a)
{
    struct work_call *c = &t->call[a->ord];
    struct dynbuf b;
    struct jsonw w;
    c->result = result_with(t, call_end_words(a->end), c->result);
    if (t->files_lost)
        c->result = result_with(t, FILES_LOST, c->result);
    t->files_lost = false;
    const struct bstore_settled how = {.end = a->end, .result = c->result, .effect = c->effect};
    if (!show_flush(t) || !task_passed(t, bstore_call(t->w->store, &t->claim, a->step, a->ord, &how)))
        return;
    c->end = a->end;
    seen_call(t, a->ord);
    show_begin(&b, &w);
    jsonw_kv(&w, "turn", span_str(t->turn));
    jsonw_kv_u64(&w, "step", a->step);
    jsonw_kv_u64(&w, "call", a->ord);
    jsonw_kv(&w, "tool", c->call.tool);
    jsonw_kv(&w, "end", span_str(call_end_name(a->end)));
    jsonw_kv(&w, "result", result_cut(&t->step_arena, c->result, TOOL_SHOWN_MAX));
    jsonw_end_object(&w);
    show(t, "tool.done", &b);
    task_tell(t, (struct loop_event){.heard = HEARD_SETTLED, .ord = a->ord});
}

static void checkpoint(struct task *t, const struct loop_action *a)
{
    struct bstore_message m[2];
    struct dynbuf state;
    bool sum = t->agent.summary; /* it leaves no message: what it stands for stays where it is */
    size_t n = sum ? 0 : settle_messages(t, a->rewind, m);
    const struct bstore_event e = sum ? summary_event(t) : (struct bstore_event){.type = SPAN_NONE};
    dynbuf_init(&state, EXECUTION_MAX);
    agent_save(&t->agent, &state);
    const struct bstore_settle s = {.checkpoint = {.message_state = summary_keep(t),
                                                   .filesystem_state_ref = span_str(t->files_ref),
                                                   .execution_state = dynbuf_span(&state),
                                                   .effect_log = settle_effects(t)},
                                    .message = m,
                                    .messages = n,
                                    .event = &e,
                                    .events = sum && e.body.p != NULL,
                                    .record = taped_rows(t)};
    bool ok = (n > 0 || sum) && s.checkpoint.message_state.n > 0 && dynbuf_ok(&state);
    if (!ok)
        task_tell(t, (struct loop_event){.heard = HEARD_FAILED});
    else if (show_flush(t) && task_passed(t, bstore_settle(t->w->store, &t->claim, a->step, &s))) {
        taped_kept(t);
        bool held = !sum || summary_holds(t) == 0;
        task_tell(t, (struct loop_event){.heard = held ? HEARD_STEP : HEARD_FAILED});
    }
    dynbuf_free(&state);
}

static void say_retry(struct task *t, uint64_t after_ms)
{
    struct dynbuf b;
    struct jsonw w;
    show_begin(&b, &w);
    jsonw_kv(&w, "turn", span_str(t->turn));
    jsonw_kv_u64(&w, "step", t->step);
    jsonw_kv_u64(&w, "after_ms", after_ms);
    jsonw_kv(&w, "why", span_str(t->why));
    jsonw_end_object(&w);
    show(t, "turn.retry", &b);
}

static void give_back(struct task *t, uint64_t after_ms)
{
    taped_flush(t);
    if (show_flush(t))
        t->given_back = bstore_release(t->w->store, &t->claim, after_ms) == BS_OK;
}

/* It has ended too many workers, and all that was left to do was to clean up behind it. */
static void set_aside(struct task *t)
{
    enum bstore_result r = bstore_finish(t->w->store, &t->claim, END_SET_ASIDE, SPAN_NONE);
    t->fenced = r == BS_FENCED;
    t->given_back = r == BS_OK;
    if (r == BS_OK)
        seen_turn(t);
    else if (r != BS_FENCED)
        log_warn("turn %s: it was not set aside: %s", t->turn, bstore_why(t->w->store));
    end(t);
}

void task_finish(struct task *t)
{
    if (t->ending == END_SET_ASIDE) {
        set_aside(t);
        return;
    }
    taped_flush(t);
    if (!show_flush(t) || !task_passed(t, bstore_finish(t->w->store, &t->claim, t->ending, span_str(t->why))))
        return;
    seen_turn(t);
    task_tell(t, (struct loop_event){.heard = HEARD_ENDED});
}

static void act(struct task *t, const struct loop_action *a)
{
    switch (a->what) {
    case DO_REVOKE: /* lane_take did it, or nothing is asked of anybody (recall_ask) */
        task_tell(t, (struct loop_event){.heard = HEARD_REVOKED});
        break;
    case DO_BEGIN: step_begin(t, a->step); break;
    case DO_THINK: t->agent.summary ? think_begin(t) : servers_think(t); break;
    case DO_NOT_THINK:
        servers_quiet(t);
        think_stop(t);
        break;
    case DO_PLAN: plan(t, a->n); break;
    case DO_RUN: run_call(t, a->ord); break;
    case DO_ABORT: run_abort(t, a->ord); break;
    case DO_WAIT: recall_wait(t, a->ord); break;
    case DO_ASK: recall_ask(t, a->ord); break;
    case DO_LOOK: recall_look(t, a->ord); break;
    case DO_SETTLE: settle_call(t, a); break;
    case DO_CHECKPOINT: checkpoint(t, a); break;
    case DO_FINISH:
        t->ending = a->turn;
        lane_drop(t);
        break;
    case DO_GIVE_BACK:
        say_retry(t, a->after_ms);
        give_back(t, a->after_ms);
        break;
    case DO_NOTHING:
    default: break;
    }
}

static void pump(struct task *t)
{
    if (t->pumping)
        return;
    t->pumping = true;
    while (!t->over && t->at < t->ntodo) {
        struct loop_action a = t->todo[t->at++];
        if (t->at == t->ntodo)
            t->at = t->ntodo = 0;
        act(t, &a);
    }
    t->pumping = false;
    if (t->agent.state == LOOP_OVER || t->agent.state == LOOP_STOPPED)
        end(t);
}

/* --- its begin ----------------------------------------------------------------------- */

/* ends_as: END_NONE; or all that is left to do is to settle what is open, and to end it so. */
static void begin_agent(struct task *t, enum turn_end ends_as)
{
    const struct bstore_turn *f = &t->found;
    struct loop_asked asked[TURN_CALLS_MAX];
    enum call_end ends[TURN_CALLS_MAX];
    struct loop_actions out;
    struct span stopped = f->planned ? message_stopped(json_parse(f->answer, &t->arena)) : SPAN_NONE;
    if (stopped.n > 0)
        task_cut(t, stopped);
    t->step = f->settled + 1;
    t->answer = f->answer;
    t->calls = f->planned ? f->calls : 0;
    for (size_t i = 0; i < t->calls; i++) {
        const struct bstore_found_call *c = &f->call[i];
        t->call[i] = (struct work_call){.call = c->call,
                                        .key = c->key,
                                        .intent_ms = c->intent_ms,
                                        .end = c->settled.end,
                                        .result = c->settled.result,
                                        .effect = c->settled.effect};
        asked[i].class = c->call.class;
        agent_call_digest(c->call.tool, c->call.args, &asked[i].what);
        ends[i] = c->settled.end;
    }
    (void)snprintf(t->files_ref, sizeof(t->files_ref), "%.*s", SPAN_FMT(f->checkpoint.filesystem_state_ref));
    const struct loop_found found = {.epoch = t->claim.epoch,
                                     .now_ms = loop_wall(t->w->loop),
                                     .started_ms = f->started_ms,
                                     .settled = f->settled,
                                     .attempts = f->attempts,
                                     .cancelled = f->cancelled,
                                     .ends = ends_as,
                                     .planned = f->planned,
                                     .summary = summary_found(f),
                                     .cut = stopped.n > 0,
                                     .budget = f->budget,
                                     .used = f->used,
                                     .kept = f->checkpoint.execution_state,
                                     .asked = asked,
                                     .end = ends,
                                     .n = t->calls};
    agent_begin(&t->agent, &found, &out);
    taped_begin(t, &found, &out);
    for (size_t i = 0; i < out.n; i++)
        t->todo[t->ntodo++] = out.a[i];
    pump(t);
}

static bool out_of_time(const struct task *t)
{
    const struct bstore_turn *f = &t->found;
    uint64_t now = loop_wall(t->w->loop);
    return f->budget.wall_ms && now >= f->started_ms && now - f->started_ms >= f->budget.wall_ms;
}

/* It has no identity. A tenant that has no key any more, or a gateway that has no way to a model, says the same to
 * every worker; what only cannot be had now is asked for again, later each time, and readers are told now and then.
 */
static void refused(struct task *t, unsigned status, uint8_t *times)
{
    const struct bstore_turn *f = &t->found;
    bool for_good = status == 401 || status == 403 || status == 409;
    enum turn_end ends_as = f->cancelled     ? END_CANCELLED
                            : for_good       ? END_REFUSED
                            : out_of_time(t) ? END_TIME
                                             : END_NONE;
    uint64_t wait_ms = (uint64_t)RETRY_MS << (*times < 5 ? *times : 5);
    if (wait_ms > RETRY_MOST_MS)
        wait_ms = RETRY_MOST_MS;
    if (ends_as != END_NONE && (for_good || !f->planned || *times >= REFUSED_ENOUGH)) {
        begin_agent(t, ends_as);
        return;
    }
    if (*times % RETRY_SAID == 0)
        say_retry(t, wait_ms);
    *times += *times < UINT8_MAX ? 1 : 1 - RETRY_SAID;
    give_back(t, wait_ms);
    end(t);
}

/* Which models may see the conversation, and no other is asked for anything of it. */
static int know_privacy(struct task *t)
{
    struct span rest = t->found.private, one;
    size_t max = 0;
    struct span *name = NULL;
    t->privacy = (struct model_privacy){.who = rest.n > 0 ? WHO_LISTED : WHO_ALL};
    while (rest.n > 0) {
        struct span *more = arena_more(&t->arena, name, t->privacy.n, &max, sizeof(*more));
        if (more == NULL)
            return -1;
        (void)span_cut(rest, '\n', &one, &rest);
        name = more;
        name[t->privacy.n++] = one;
        t->privacy.name = name;
    }
    return 0;
}

void task_ready(struct task *t, unsigned status)
{
    uint8_t *times = &t->w->refused[t->claim.turn.b[ID_BYTES - 1] % sizeof(t->w->refused)];
    struct dynbuf b;
    struct jsonw w;
    if (bstore_load(t->w->store, &t->claim, &t->arena, &t->found) != BS_OK || know_privacy(t) != 0) {
        end(t);
        return;
    }
    bool known = summary_load(t) == 0; /* who only settles keeps it, too */
    if (status != 201) {
        refused(t, status, times);
        return;
    }
    *times = 0;
    if (t->found.live.n > 0 && t->found.lost >= BSTORE_LOST_MAX) { /* see next_of of the store */
        t->ending = END_SET_ASIDE;
        lane_drop(t);
        return;
    }
    show_begin(&b, &w);
    jsonw_kv(&w, "turn", span_str(t->turn));
    jsonw_kv_u64(&w, "epoch", t->claim.epoch);
    jsonw_end_object(&w);
    show(t, "turn.started", &b);
    if (!known)
        task_why(t, SPAN("the summary of older messages cannot be read"));
    begin_agent(t, known ? END_NONE : END_STUCK);
}

void task_begin(struct work *w, const struct claim *c)
{
    struct task *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        (void)!bstore_release(w->store, c, RETRY_MS);
        return;
    }
    t->w = w;
    t->claim = *c;
    id_text(&c->conversation, t->conversation);
    id_text(&c->turn, t->turn);
    (void)snprintf(t->box, sizeof(t->box), "c-%s", t->conversation);
    arena_init(&t->arena, WORK_TURN_BYTES);
    arena_init(&t->step_arena, WORK_STEP_BYTES);
    arena_init(&t->event_arena, WORK_STEP_BYTES);
    dynbuf_init(&t->delta, DELTA_ROOM);
    t->tick = timer_new(w->loop, tick, t);
    t->flush = timer_new(w->loop, flush, t);
    t->start = timer_new(w->loop, box_start, t);
    t->taped = taped_new();
    w->task = t;
    if (t->tick == NULL || t->flush == NULL || t->start == NULL) {
        end(t);
        return;
    }
    timer_set(t->tick, WORK_TICK_MS);
    lane_take(t);
}
