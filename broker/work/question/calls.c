/* What an answer wants to be run. */
#include "broker/work/prompt.h"
#include "broker/work/servers/servers.h"
#include "broker/work/tools.h"

/* Of those that the model was told, or an MCP server's. */
static bool tool_known(struct task *t, struct span name, struct span *kept, enum call_class *class)
{
    const struct tool *tool = tool_of(name);
    if (tool == NULL)
        return servers_know(t, name, kept, class);
    *kept = span_str(tool->name);
    *class = tool->class;
    return true;
}

/* What the model wants to be run, as it is written down. */
size_t calls_take(struct task *t, const struct answer_result *r, struct loop_asked *asked)
{
    size_t n = r->ncalls <= TURN_CALLS_MAX ? r->ncalls : 0;
    for (size_t i = 0; i < n; i++) {
        const struct answer_call *c = &r->call[i];
        struct span tool = SPAN_NONE;
        enum call_class class = CALL_UNSAFE;
        bool run = c->broken == NULL && tool_known(t, c->block->name, &tool, &class);
        struct span why =
            c->broken != NULL ? span_str(c->broken) : arena_printf(&t->step_arena, "there is no tool of that name");
        struct dynbuf b;
        struct jsonw w;
        dynbuf_init(&b, BSTORE_BODY_MAX);
        jsonw_begin(&w, &b);
        jsonw_object(&w);
        jsonw_kv(&w, "why", why);
        jsonw_end_object(&w);
        t->call[i] = (struct work_call){
            .call = {.tool = run ? tool : TOOL_BROKEN,
                     .args = run ? arena_copy(&t->step_arena, c->block->json) : arena_keep(&t->step_arena, &b),
                     .class = run ? class : CALL_READ}};
        dynbuf_free(&b);
        asked[i].class = t->call[i].call.class;
        agent_call_digest(t->call[i].call.tool, t->call[i].call.args, &asked[i].what);
    }
    t->calls = n;
    return r->ncalls;
}
