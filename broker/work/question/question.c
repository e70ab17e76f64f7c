/* A question: which model it goes to, by the table and by who may see the conversation; and its body. */
#include "broker/work/prompt.h"
#include "broker/work/servers/servers.h"
#include "broker/work/tools.h"
#include "common/net/loop.h"

enum {
    TOOLS_MAX = 16 + MCP_SERVERS_MAX * MCP_TOOLS_MAX,
    SYSTEM_TOKENS = 4096 /* of what is said beside the messages */
};

/* A live replay asks its own model and no other, whichever tasks that is for; all else holds as for any. */
struct only {
    uint8_t which;
    struct route_task task;
    struct route_table table;
};

static const struct route_table *table_of(struct task *t, struct only *o)
{
    const struct route_table *all = &t->w->models;
    if (t->found.live.n == 0)
        return all;
    *o = (struct only){.which = 0};
    while (o->which < all->n && !span_eq(all->model[o->which].target.name, t->found.live))
        o->which++;
    o->task = (struct route_task){.name = SPAN("replay"), .model = &o->which, .n = o->which < all->n};
    o->table = (struct route_table){.model = all->model, .n = all->n, .task = &o->task, .ntasks = 1};
    return &o->table;
}

/* Where the table has no task of that name, or none of its models may see the conversation, the first one's are
 * asked. */
static struct span task_name(struct task *t, const struct route_table *table, struct span wants)
{
    const struct route_ask ask = {.task = wants, .privacy = &t->privacy};
    return route_window(table, &ask) > 0 ? wants : table->task[0].name;
}

struct route_found think_route(struct task *t, const struct prompt *p, bool roomy)
{
    const struct budget *b = &t->agent.budget;
    struct model_tool tool[TOOLS_MAX];
    struct only o;
    const struct route_table *table = table_of(t, &o);
    size_t n = p->tools ? servers_tools(t, tool, TOOLS_MAX) : 0, bytes = p->bytes;
    for (size_t i = 0; i < n; i++)
        bytes += tool[i].description.n + tool[i].schema.n;
    struct route_ask ask = {.task = task_name(t, table, p->task),
                            .privacy = &t->privacy,
                            .input = meter_guess(bytes) + (p->tools ? SYSTEM_TOKENS : 0),
                            .output = p->output,
                            .roomy = roomy,
                            .limit = b->cost_micro ? b->cost_micro : UINT64_MAX,
                            .spent = t->agent.used.cost_micro + t->wasted.cost_micro,
                            .tried = t->tried,
                            .down = t->w->down,
                            .now_ms = loop_wall(t->w->loop)};
    return route_pick(table, &ask);
}

uint64_t think_window(struct task *t, const struct prompt *p)
{
    struct only o;
    const struct route_table *table = table_of(t, &o);
    const struct route_ask ask = {.task = task_name(t, table, p->task), .privacy = &t->privacy};
    uint64_t window = route_window(table, &ask);
    return p->task.n == 0 && t->narrow > 0 && t->narrow < window ? t->narrow : window;
}

uint64_t think_not_larger(const struct task *t, uint64_t window)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < t->w->models.n && i < ROUTE_MODELS_MAX; i++)
        bits |= t->w->models.model[i].context <= window ? UINT64_C(1) << i : 0;
    return bits;
}

/* --- its body ------------------------------------------------------------------------------- */

/* Of a prompt without tools none is told, and none may be called. */
static size_t all_tools(struct task *t, const struct prompt *p, struct model_tool *tool)
{
    size_t n = p->tools ? tools_for_model(tool, TOOLS_MAX) : 0;
    return p->tools ? n + servers_tools(t, tool + n, TOOLS_MAX - n) : 0;
}

int question_write(struct task *t, const struct prompt *p, const struct model_target *target, uint64_t max_tokens,
                   struct dynbuf *body)
{
    struct model_tool tool[TOOLS_MAX];
    struct err e;
    const struct model_request r = {.system = p->system,
                                    .message = p->message,
                                    .n = p->n,
                                    .tool = tool,
                                    .ntools = all_tools(t, p, tool),
                                    .max_tokens = max_tokens};
    if (request_write(target, &t->privacy, &r, body, &e) == 0)
        return 0;
    task_why(t, span_str(e.text));
    return -1;
}
