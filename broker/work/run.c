/* A call is run: its arguments are read, its sandbox is there, and then it is the tool's. */
#include "broker/work/servers/servers.h"
#include "broker/work/tools.h"
#include "broker/work/work.h"
#include "common/net/loop.h"

static void not_there(struct task *t, uint64_t ord, struct span why)
{
    task_done(t, ord, CALL_ERROR, why);
}

void run_begins(struct task *t, uint64_t ord)
{
    struct work_call *c = &t->call[ord];
    if (c->seen.began_ms == 0)
        c->seen.began_ms = loop_wall(t->w->loop);
}

static void run_with(struct task *t, uint64_t ord, const struct tool *tool, const struct json *args)
{
    run_begins(t, ord);
    tool->run(t, ord, args);
}

/* Nothing of the call has left yet, whatever is said here. */
static void boxed(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    struct work_call *c = &t->call[ord];
    const struct tool *tool = tool_of(c->call.tool);
    const struct json *args = json_parse(c->call.args, &t->step_arena);
    if (c->abort)
        not_there(t, ord, SPAN("it was cancelled before it was run"));
    else if (status != 200)
        not_there(t, ord,
                  arena_printf(&t->step_arena, "the sandbox cannot be had, and nothing was run: %.*s",
                               SPAN_FMT(desk_words(t, status, body))));
    else if (args == NULL || args->type != JSON_OBJECT)
        not_there(t, ord, SPAN("the arguments are no JSON object"));
    else if (tool != NULL)
        run_with(t, ord, tool, args);
    else if (!servers_call(t, ord))
        not_there(t, ord, SPAN("there is no tool of that name any more"));
}

static size_t commands(const struct task *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->calls; i++)
        n += t->call[i].command;
    return n;
}

void run_call(struct task *t, uint64_t ord)
{
    struct work_call *c = &t->call[ord];
    bool command = span_eq(c->call.tool, SPAN("run_command"));
    dynbuf_init(&c->said, WORK_RESULT_MAX);
    c->abort = false;
    c->seen.late = false;
    if (span_eq(c->call.tool, TOOL_BROKEN)) {
        not_there(t, ord, json_text(json_parse(c->call.args, &t->step_arena), SPAN("why")));
        return;
    }
    if (t->found.replays) {
        replay_call(t, ord);
        return;
    }
    c->waits = command && commands(t) >= WORK_COMMANDS;
    c->command = command && !c->waits;
    if (!c->waits && servers_outside(t, c->call.tool))
        boxed(t, ord, 200, SPAN_NONE);
    else if (!c->waits)
        box_need(t, boxed, ord);
}

void run_next(struct task *t)
{
    for (size_t i = 0; i < t->calls && commands(t) < WORK_COMMANDS; i++)
        if (t->call[i].waits)
            run_call(t, i);
}

void run_abort(struct task *t, uint64_t ord)
{
    struct work_call *c = &t->call[ord];
    c->abort = true;
    if (c->waits) {
        c->waits = false;
        not_there(t, ord, SPAN("it was cancelled before it was run"));
    } else if (!servers_abort(t, ord)) {
        command_abort(t, ord);
    }
}
