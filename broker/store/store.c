#include "broker/store/store.h"

#include <stdio.h>

#include "broker/store/ops.h"
#include "common/json/json.h"

/* --- what is written for every backend ----------------------------------------- */

/* As broker/models/message.h keeps one, which is not to be known here. */
bool bstore_recalled(struct dynbuf *text, struct dynbuf *out)
{
    struct jsonw w;
    dynbuf_init(out, BSTORE_BODY_MAX);
    jsonw_begin(&w, out);
    jsonw_object(&w);
    jsonw_kv(&w, "of", SPAN("user"));
    jsonw_kv_array(&w, "blocks");
    jsonw_object(&w);
    jsonw_kv(&w, "type", SPAN("text"));
    jsonw_kv(&w, "text", dynbuf_span(text));
    jsonw_end_object(&w);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    return dynbuf_ok(text) && dynbuf_ok(out);
}

/* --- what is written into the log for every backend ----------------------------- */

/* A failed buffer leaves an empty object: the event itself is what counts. */
static struct span kept(struct dynbuf *b, char *text)
{
    size_t n = dynbuf_ok(b) && b->n <= BSTORE_END_TEXT_MAX ? b->n : 0;
    memcpy(text, n ? (const char *)b->p : "{}", n ? n : 2);
    dynbuf_free(b);
    return span_of(text, n ? n : 2);
}

static void begin(struct jsonw *w, struct dynbuf *b, const struct id *turn)
{
    char id[ID_TEXT + 1];
    dynbuf_init(b, BSTORE_END_TEXT_MAX);
    jsonw_begin(w, b);
    jsonw_object(w);
    id_text(turn, id);
    jsonw_kv(w, "turn", span_of(id, ID_TEXT));
}

struct bstore_event bstore_end_event(const struct id *turn, enum turn_end end, struct span why, char *text)
{
    struct dynbuf b;
    struct jsonw w;
    begin(&w, &b, turn);
    jsonw_kv(&w, "end", span_str(turn_end_name(end)));
    jsonw_kv(&w, "words", span_str(turn_end_words(end)));
    if (why.n)
        jsonw_kv(&w, "why", span_first(why, BSTORE_WHY_MAX));
    jsonw_end_object(&w);
    return (struct bstore_event){SPAN("turn.done"), kept(&b, text)};
}

struct bstore_event bstore_queued_event(const struct id *turn, char *text)
{
    struct dynbuf b;
    struct jsonw w;
    begin(&w, &b, turn);
    jsonw_end_object(&w);
    return (struct bstore_event){SPAN("turn.queued"), kept(&b, text)};
}

struct bstore_event bstore_again_event(const struct id *turn, uint64_t step, uint64_t attempt, char *text)
{
    struct dynbuf b;
    struct jsonw w;
    begin(&w, &b, turn);
    jsonw_kv_u64(&w, "step", step);
    jsonw_kv_u64(&w, "attempt", attempt);
    jsonw_end_object(&w);
    return (struct bstore_event){SPAN("turn.attempt_superseded"), kept(&b, text)};
}

/* --- bounds ------------------------------------------------------------------------- */

static bool named(struct span s)
{
    return s.n > 0 && s.n <= BSTORE_NAME_MAX;
}

static bool fits_events(const struct bstore_event *event, size_t n)
{
    bool ok = n <= BSTORE_EVENTS_MAX;
    for (size_t i = 0; ok && i < n; i++)
        ok = named(event[i].type) && event[i].body.n <= BSTORE_EVENT_MAX;
    return ok;
}

static bool fits_budget(const struct budget *b)
{
    return b->steps <= TURN_STEPS_MAX && b->same_calls <= TURN_SAME_MAX && b->tokens <= INT64_MAX &&
           b->cost_micro <= INT64_MAX && b->wall_ms <= INT64_MAX;
}

void bstore_close(struct bstore **s)
{
    if (*s != NULL)
        (*s)->ops->close(*s);
    *s = NULL;
}

const char *bstore_why(struct bstore *s)
{
    return s->ops->why(s);
}

enum bstore_result bstore_chat(struct bstore *s, const struct bstore_chat *in, struct bstore_chatted *out)
{
    struct bstore_chat c = *in;
    *out = (struct bstore_chatted){.log_seq = 0};
    if (!named(c.tenant) || c.key.n > BSTORE_KEY_MAX || c.body.n > BSTORE_BODY_MAX || !fits_budget(&c.budget) ||
        c.private.n > BSTORE_PRIVATE_MAX)
        return BS_FULL;
    if (c.private.n > 0 && !id_is_none(&c.conversation))
        return BS_CONFLICT;
    if (c.budget.steps == 0)
        c.budget.steps = TURN_STEPS_MAX;
    if (c.budget.same_calls == 0)
        c.budget.same_calls = TURN_SAME_DEFAULT;
    return s->ops->chat(s, &c, out);
}

enum bstore_result bstore_claim(struct bstore *s, const struct id *worker, uint64_t ms, struct claim *out)
{
    *out = (struct claim){.tenant_n = 0};
    return ms == 0 || ms > BSTORE_CLAIM_MAX ? BS_FULL : s->ops->claim(s, worker, ms, out);
}

enum bstore_result bstore_ended(struct bstore *s, const struct id *worker)
{
    return s->ops->ended(s, worker);
}

enum bstore_result bstore_extend(struct bstore *s, const struct claim *c)
{
    bool cancelled;
    return s->ops->extend(s, c, &cancelled);
}

enum bstore_result bstore_cancelled(struct bstore *s, const struct claim *c, bool *cancelled)
{
    *cancelled = true; /* who cannot know stops */
    return s->ops->extend(s, c, cancelled);
}

enum bstore_result bstore_release(struct bstore *s, const struct claim *c, uint64_t after_ms)
{
    return s->ops->release(s, c, after_ms < BSTORE_KEY_AGE_MAX ? after_ms : BSTORE_KEY_AGE_MAX);
}

enum bstore_result bstore_load(struct bstore *s, const struct claim *c, struct arena *a, struct bstore_turn *out)
{
    *out = (struct bstore_turn){.now_ms = 0};
    return s->ops->load(s, c, a, out);
}

enum bstore_result bstore_step(struct bstore *s, const struct claim *c, uint64_t n, struct span kind,
                               uint64_t *attempts)
{
    *attempts = 0;
    return n == 0 || n > TURN_STEPS_MAX || !named(kind) ? BS_FULL : s->ops->step(s, c, n, kind, attempts);
}

/* No question is refused for how it is metered. */
static struct bstore_asked metered(const struct bstore_asked *a)
{
    uint64_t most = INT64_MAX;
    return (struct bstore_asked){.model = a->model.n > 0 ? span_first(a->model, BSTORE_NAME_MAX) : SPAN("unknown"),
                                 .task = a->task.n > 0 ? span_first(a->task, BSTORE_NAME_MAX) : SPAN("unknown"),
                                 .input = a->input < most ? a->input : most,
                                 .output = a->output < most ? a->output : most,
                                 .cache_read = a->cache_read < most ? a->cache_read : most,
                                 .cache_write = a->cache_write < most ? a->cache_write : most};
}

enum bstore_result bstore_plan(struct bstore *s, const struct claim *c, uint64_t n, const struct bstore_plan *p)
{
    struct digest key[TURN_CALLS_MAX];
    struct bstore_plan is = *p;
    if (p->n > TURN_CALLS_MAX || p->answer.n > BSTORE_BODY_MAX || p->used.tokens > INT64_MAX ||
        p->used.cost_micro > INT64_MAX)
        return BS_FULL;
    for (size_t i = 0; i < p->n; i++) {
        const struct bstore_call *call = &p->call[i];
        if (!named(call->tool) || call->args.n > BSTORE_BODY_MAX || (unsigned)call->class >= CALL_CLASSES)
            return BS_FULL;
        call_key(&c->turn, n, i, call->tool, call->args, &key[i]);
    }
    is.asked = metered(&p->asked);
    return s->ops->plan(s, c, n, &is, key);
}

enum bstore_result bstore_class(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                                enum call_class class)
{
    return (unsigned)class >= CALL_CLASSES ? BS_FULL : s->ops->stricter(s, c, n, ord, class);
}

enum bstore_result bstore_call(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                               const struct bstore_settled *how)
{
    if (how->end == CALL_OPEN || (unsigned)how->end >= CALL_ENDS)
        return BS_CONFLICT;
    return how->result.n > BSTORE_BODY_MAX || how->effect.n > BSTORE_REF_MAX ? BS_FULL
                                                                             : s->ops->call(s, c, n, ord, how);
}

enum bstore_result bstore_settle(struct bstore *s, const struct claim *c, uint64_t n, const struct bstore_settle *w)
{
    const struct bstore_checkpoint *p = &w->checkpoint;
    if (p->message_state.n > BSTORE_BODY_MAX || p->filesystem_state_ref.n > BSTORE_REF_MAX ||
        p->execution_state.n > BSTORE_BODY_MAX || p->effect_log.n > BSTORE_BODY_MAX || w->phase.n > BSTORE_NAME_MAX ||
        w->messages > BSTORE_MESSAGES_MAX || !fits_events(w->event, w->events))
        return BS_FULL;
    for (size_t i = 0; i < w->messages; i++)
        if (!named(w->message[i].role) || w->message[i].body.n > BSTORE_BODY_MAX)
            return BS_FULL;
    return s->ops->settle(s, c, n, w);
}

enum bstore_result bstore_log(struct bstore *s, const struct claim *c, const struct bstore_event *event, size_t n,
                              uint64_t *seq)
{
    *seq = 0;
    return n == 0 || !fits_events(event, n) ? BS_FULL : s->ops->log(s, c, event, n, seq);
}

enum bstore_result bstore_spent(struct bstore *s, const struct claim *c, const struct used *used,
                                const struct bstore_asked *asked)
{
    struct bstore_asked is = metered(asked);
    return used->tokens > BSTORE_SPENT_MAX || used->cost_micro > BSTORE_SPENT_MAX ? BS_FULL
                                                                                  : s->ops->spent(s, c, used, &is);
}

enum bstore_result bstore_ask(struct bstore *s, const struct claim *c, uint64_t n, struct span word,
                              const struct used *most)
{
    const struct tenant_budget *of[BUDGET_PERS];
    struct used is;
    if (budgets_of(s->budgets, claim_tenant(c), of) == 0)
        return BS_OK;
    if (most == NULL)
        return s->ops->ask(s, c, n, word, NULL);
    is = (struct used){.tokens = most->tokens < BUDGET_MOST ? most->tokens : BUDGET_MOST,
                       .cost_micro = most->cost_micro < BUDGET_MOST ? most->cost_micro : BUDGET_MOST};
    return s->ops->ask(s, c, n, word, &is);
}

enum bstore_result bstore_budgets(struct bstore *s, struct span tenant, struct budgets_stand *out)
{
    const struct tenant_budget *of[BUDGET_PERS];
    *out = (struct budgets_stand){.n = 0};
    if (!named(tenant))
        return BS_NONE;
    return budgets_of(s->budgets, tenant, of) > 0 ? s->ops->budgets(s, tenant, out) : BS_OK;
}

enum bstore_result bstore_finish(struct bstore *s, const struct claim *c, enum turn_end end, struct span why)
{
    if (end == END_NONE || (unsigned)end >= TURN_ENDS)
        return BS_CONFLICT;
    return s->ops->finish(s, c, end, span_first(why, BSTORE_WHY_MAX));
}

enum bstore_result bstore_cancel(struct bstore *s, struct span tenant, const struct id *turn)
{
    return named(tenant) ? s->ops->cancel(s, tenant, turn) : BS_NONE;
}

enum bstore_result bstore_turn(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                               struct bstore_turn_row *out)
{
    *out = (struct bstore_turn_row){.state = SPAN_NONE};
    return named(tenant) ? s->ops->turn(s, tenant, turn, a, out) : BS_NONE;
}

enum bstore_result bstore_events(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t epoch,
                                 uint64_t after, struct arena *a, struct bstore_log *out)
{
    *out = (struct bstore_log){.n = 0};
    return named(tenant) ? s->ops->events(s, tenant, conversation, epoch, after, a, out) : BS_NONE;
}

enum bstore_result bstore_messages(struct bstore *s, struct span tenant, const struct id *conversation,
                                   uint64_t after, struct arena *a, struct bstore_messages *out)
{
    *out = (struct bstore_messages){.n = 0};
    return named(tenant) ? s->ops->messages(s, tenant, conversation, after, a, out) : BS_NONE;
}

enum bstore_result bstore_queued(struct bstore *s, struct span tenant, const struct id *conversation, struct arena *a,
                                 struct bstore_messages *out)
{
    *out = (struct bstore_messages){.n = 0};
    return named(tenant) ? s->ops->queued(s, tenant, conversation, a, out) : BS_NONE;
}

enum bstore_result bstore_conversations(struct bstore *s, struct span tenant, const struct id *after, struct arena *a,
                                        struct bstore_conversations *out)
{
    *out = (struct bstore_conversations){.n = 0};
    return named(tenant) ? s->ops->conversations(s, tenant, after, a, out) : BS_NONE;
}

enum bstore_result bstore_lately(struct bstore *s, struct span tenant, const struct id *only, struct arena *a,
                                 struct bstore_conversations *out)
{
    *out = (struct bstore_conversations){.n = 0};
    return named(tenant) ? s->ops->lately(s, tenant, only, a, out) : BS_NONE;
}

enum bstore_result bstore_fork(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t messages,
                               struct id *out)
{
    *out = (struct id){{0}};
    return named(tenant) ? s->ops->fork(s, tenant, conversation, messages, out) : BS_NONE;
}

enum bstore_result bstore_record(struct bstore *s, const struct claim *c, struct span lines)
{
    return s->ops->record(s, c, lines);
}

enum bstore_result bstore_recorded(struct bstore *s, struct span tenant, const struct id *turn, struct arena *a,
                                   struct bstore_recorded *out)
{
    *out = (struct bstore_recorded){.n = 0};
    return named(tenant) ? s->ops->recorded(s, tenant, turn, a, out) : BS_NONE;
}

enum bstore_result bstore_replay(struct bstore *s, struct span tenant, const struct id *turn,
                                 struct bstore_chatted *out)
{
    *out = (struct bstore_chatted){.log_seq = 0};
    return named(tenant) ? s->ops->replay(s, tenant, turn, out) : BS_NONE;
}

enum bstore_result bstore_live(struct bstore *s, const struct bstore_live *in, struct bstore_chatted *out)
{
    *out = (struct bstore_chatted){.log_seq = 0};
    if (!named(in->tenant))
        return BS_NONE;
    return named(in->model) && in->key.n <= BSTORE_KEY_MAX ? s->ops->live(s, in, out) : BS_CONFLICT;
}

enum bstore_result bstore_replayed(struct bstore *s, const struct claim *c, uint64_t n, uint64_t ord,
                                   const struct bstore_call *call, struct arena *a, struct bstore_replayed *out)
{
    *out = (struct bstore_replayed){.end = CALL_OPEN};
    return s->ops->replayed(s, c, n, ord, call, a, out);
}

enum bstore_result bstore_turns(struct bstore *s, struct span tenant, const struct id *conversation, uint64_t after,
                                struct arena *a, struct bstore_turns *out)
{
    *out = (struct bstore_turns){.n = 0};
    return named(tenant) ? s->ops->turns(s, tenant, conversation, after, a, out) : BS_NONE;
}

enum bstore_result bstore_usage(struct bstore *s, struct span tenant, const struct bstore_usage_ask *ask,
                                struct arena *a, struct bstore_usage *out)
{
    *out = (struct bstore_usage){.n = 0};
    if (!named(tenant))
        return BS_NONE;
    return ask->from > BSTORE_DAY_MAX || ask->to > BSTORE_DAY_MAX ? BS_CONFLICT
                                                                  : s->ops->usage(s, tenant, ask, a, out);
}

enum bstore_result bstore_tenant(struct bstore *s, struct span after, struct arena *a, struct span *out)
{
    *out = SPAN_NONE;
    return s->ops->tenant(s, after, a, out);
}

enum bstore_result bstore_waiting(struct bstore *s, uint64_t ms, struct bstore_waiting *out)
{
    *out = (struct bstore_waiting){.turns = 0};
    return s->ops->waiting(s, ms, out);
}

uint64_t bstore_pulse(struct bstore *s)
{
    return s->ops->pulse(s);
}

enum bstore_result bstore_sweep(struct bstore *s)
{
    return s->ops->sweep(s);
}
