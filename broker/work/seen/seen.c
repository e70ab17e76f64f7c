#include "broker/work/seen/seen.h"

#include <stdio.h>

#include "broker/work/seen/export.h"
#include "broker/work/tools.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"

enum { CALL_TEXT = 64 };

/* The desk adds it up; where it cannot be told, one is missing there. */
static void count(struct task *t, enum broker_seen what, struct span name, const char *error, const uint64_t number[],
                  size_t n)
{
    struct chan *desk = t->w->errands.desk;
    struct dynbuf *b = desk != NULL ? chan_begin(desk, M_BROKER_SEEN, 0) : NULL;
    if (b == NULL)
        return;
    msg_put_u8(b, (uint8_t)what);
    msg_put_span(b, span_first(name, BROKER_SEEN_NAME));
    msg_put_span(b, error != NULL ? span_str(error) : SPAN_NONE);
    for (size_t i = 0; i < BROKER_SEEN_NUMBERS; i++)
        msg_put_u64(b, i < n ? number[i] : 0);
    (void)chan_commit_soon(desk);
}

static uint64_t since(uint64_t begun_ms, uint64_t ms)
{
    return ms > begun_ms ? ms - begun_ms : 0;
}

static struct otlp_span span_begin(const struct task *t, enum otlp_kind kind)
{
    return (struct otlp_span){.kind = kind,
                              .conversation = span_str(t->conversation),
                              .turn = span_str(t->turn),
                              .epoch = t->claim.epoch,
                              .step = t->step,
                              .ended_ms = loop_wall(t->w->loop)};
}

/* A server says what it likes, and three of these are added up. */
static uint64_t tokens(uint64_t n)
{
    return n < BSTORE_SPENT_MAX ? n : BSTORE_SPENT_MAX;
}

void seen_chat(struct task *t, const struct seen_chat *k)
{
    const struct model_target *m = &k->model->target;
    struct otlp_span s = span_begin(t, OTLP_CHAT);
    s.begun_ms = k->begun_ms;
    s.attempt = t->agent.attempts;
    s.try = k->try;
    s.unasked = k->unasked;
    s.error = k->error;
    s.provider = m->origin.provider;
    s.asked = m->origin.model;
    s.first = k->first_ms > 0;
    s.first_ms = since(k->begun_ms, k->first_ms);
    if (k->answer != NULL) {
        const struct model_usage *u = &k->answer->usage;
        s.answered = k->answer->model;
        s.counted = u->known;
        s.cache_read = tokens(u->cache_read);
        s.cache_write = tokens(u->cache_write);
        s.input = tokens(tokens(u->input) + s.cache_read + s.cache_write);
        s.output = tokens(u->output);
        s.reasoning = tokens(u->reasoning);
    }
    export_add(t->w, &s);
    /* at least 1 ms, since none says that nothing came */
    const uint64_t first = s.first ? (s.first_ms > 0 ? s.first_ms : 1) : 0;
    const uint64_t took = k->unasked ? BROKER_SEEN_NO_TIME : since(s.begun_ms, s.ended_ms);
    const uint64_t number[] = {took, first, s.input, s.output, k->cost_micro};
    count(t, BROKER_SEEN_MODEL, m->name, k->error, number, sizeof(number) / sizeof(number[0]));
}

/* Of a call that was run, in a word of few. */
static const char *fault_of(const struct work_call *c)
{
    return c->end == CALL_DONE ? NULL : c->seen.late ? "timeout" : c->end == CALL_ERROR ? "tool_error" : "unknown";
}

/* Tools of a server are counted as one: what it calls them, and how many it has, is its own matter. */
static struct span counted_as(struct task *t, const struct work_call *c)
{
    const struct mcp_server *server = mcp_server_of(&t->w->tools, c->call.tool);
    if (server == NULL)
        return tool_of(c->call.tool) != NULL ? c->call.tool : SPAN("_OTHER");
    return arena_printf(&t->step_arena, "%.*s__*", SPAN_FMT(server->name));
}

static struct seen_parent parent(const struct task *t, const struct otlp_span *s)
{
    struct seen_parent p = {""};
    if (t->w->spans != NULL)
        otlp_traceparent(s, p.text);
    return p;
}

struct seen_parent seen_turns(const struct task *t)
{
    const struct otlp_span s = span_begin(t, OTLP_TURN);
    return parent(t, &s);
}

struct seen_parent seen_calls(const struct task *t, uint64_t ord)
{
    struct otlp_span s = span_begin(t, OTLP_CALL);
    s.ord = ord;
    return parent(t, &s);
}

void seen_call(struct task *t, uint64_t ord)
{
    const struct work_call *c = &t->call[ord];
    char call[CALL_TEXT];
    /* One that an earlier worker has sent, and of which nothing is known, has been under way since its intent. */
    uint64_t begun_ms = c->seen.began_ms > 0 ? c->seen.began_ms : c->end == CALL_UNKNOWN ? c->intent_ms : 0;
    if (begun_ms == 0 || c->end == CALL_NOT_RUN || t->found.replays)
        return;
    struct otlp_span s = span_begin(t, OTLP_CALL);
    (void)snprintf(call, sizeof(call), "c%.12s-%llu-%llu", t->turn, (unsigned long long)t->step,
                   (unsigned long long)ord);
    s.begun_ms = begun_ms;
    s.ord = ord;
    s.error = fault_of(c);
    s.tool = c->call.tool;
    s.as = counted_as(t, c);
    s.call = span_str(call);
    s.mcp = c->seen.request > 0;
    s.remote = c->seen.remote;
    s.version = span_str(c->seen.version);
    s.request = c->seen.request;
    export_add(t->w, &s);
    const uint64_t number[] = {since(s.begun_ms, s.ended_ms)};
    count(t, BROKER_SEEN_TOOL, s.as, s.error, number, 1);
}

/* As what it asks models is metered. */
static struct span task_of(const struct task *t)
{
    if (t->found.replays || t->found.live.n > 0)
        return SPAN("replay");
    return t->w->models.ntasks > 0 ? t->w->models.task[0].name : SPAN("unknown");
}

void seen_turn(struct task *t)
{
    struct otlp_span s = span_begin(t, OTLP_TURN);
    s.begun_ms = t->found.started_ms;
    s.error = t->ending != END_COMPLETED ? turn_end_name(t->ending) : NULL;
    if (t->asked != NULL) {
        s.provider = t->asked->target.origin.provider;
        s.asked = t->asked->target.origin.model;
    }
    export_add(t->w, &s);
    const uint64_t took[] = {since(s.begun_ms, s.ended_ms)};
    count(t, BROKER_SEEN_TURN, task_of(t), s.error, took, 1);
    if (t->ending == END_BUDGET)
        count(t, BROKER_SEEN_BUDGET, SPAN_NONE, NULL, NULL, 0);
}
