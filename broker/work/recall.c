/* What became of a call of which the end is not known: of a command, by the warden, which has those of its sandboxes,
 * and by the ledger, which writes each down before it is ordered. Its lane before this one has ended: what they do
 * not know of has not been run, and will not be. */
#include <stdio.h>

#include "broker/work/tools.h"
#include "broker/work/work.h"

static void known(struct task *t, uint64_t ord, enum known what)
{
    task_tell(t, (struct loop_event){.heard = HEARD_KNOWN, .ord = ord, .known = what});
}

/* Its fourth word (run_command), and no other: what stands behind it, a model has written. The record has them among
 * what else it says of them. */
static bool is_marked(const struct json *command, const char *mark)
{
    const struct json *argv = json_get(command, SPAN("argv")), *of = json_get(argv, SPAN("words"));
    const struct json *word = of != NULL ? of->child : argv != NULL ? argv->child : NULL;
    for (int i = 0; i < 3 && word != NULL; i++)
        word = word->next;
    return word != NULL && span_eq(word->text, span_str(mark));
}

/* --- by the ledger ------------------------------------------------------------------------------ */

static void receipt(struct task *t, uint64_t ord, const struct json *run)
{
    const struct json *effects = json_get(run, SPAN("effects"));
    uint64_t sent = 0, refused = 0;
    (void)!json_u64(effects, SPAN("requests"), &sent);
    (void)!json_u64(effects, SPAN("refused"), &refused);
    t->call[ord].result = arena_printf(&t->step_arena,
                                       "The gateway's record has this command as %.*s (run %.*s): it sent %llu "
                                       "requests, of which %llu were refused. What it said is lost.",
                                       SPAN_FMT(json_text(run, SPAN("state"))), SPAN_FMT(json_text(run, SPAN("id"))),
                                       (unsigned long long)sent, (unsigned long long)refused);
    t->call[ord].effect = arena_copy(&t->arena, json_text(run, SPAN("id")));
}

static void ask_ledger(struct task *t, uint64_t ord, uint64_t before);

/* A page of what ran in the sandbox, the newest first. Only who has seen all of it knows that a command was not run.
 */
static void recorded(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    uint64_t before = 0;
    char mark[COMMAND_MARK + 1];
    const struct json *j = status == 200 ? json_parse(body, &t->step_arena) : NULL;
    const struct json *runs = json_get(j, SPAN("runs"));
    command_mark(&t->call[ord].key, mark);
    for (const struct json *r = runs != NULL ? runs->child : NULL; r != NULL; r = r->next) {
        const struct json *begin = json_parse(json_text(r, SPAN("begin")), &t->step_arena);
        (void)!json_u64(r, SPAN("begin_seq"), &before);
        t->call[ord].blind |= begin == NULL;
        if (!is_marked(begin, mark))
            continue;
        const struct json *end = json_parse(json_text(r, SPAN("end")), &t->step_arena);
        bool never = span_eq(json_text(end, SPAN("how")), SPAN("not-started"));
        if (!never)
            receipt(t, ord, r);
        known(t, ord, never ? KNOWN_NOT_SENT : KNOWN_SENT);
        return;
    }
    if (before > 1)
        ask_ledger(t, ord, before);
    else
        known(t, ord, runs == NULL || t->call[ord].blind ? KNOWN_NOTHING : KNOWN_NOT_SENT);
}

static void ask_ledger(struct task *t, uint64_t ord, uint64_t before)
{
    desk_ask(t, "GET",
             arena_printf(&t->step_arena, "/api/v1/conversations/%s/runs?before=%llu", t->conversation,
                          (unsigned long long)before),
             SPAN_NONE, recorded, ord);
}

/* --- by the warden ------------------------------------------------------------------------------ */

static void listed(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    char mark[COMMAND_MARK + 1];
    const struct json *j = status == 200 ? json_parse(body, &t->step_arena) : NULL;
    const struct json *all = json_get(j, SPAN("commands"));
    command_mark(&t->call[ord].key, mark);
    for (const struct json *c = all != NULL ? all->child : NULL; c != NULL; c = c->next) {
        if (!is_marked(c, mark))
            continue;
        t->call[ord].effect = arena_copy(&t->arena, json_text(c, SPAN("command")));
        t->box_up = true;
        known(t, ord, KNOWN_GOING); /* or it has ended, and what it said is kept there */
        return;
    }
    t->call[ord].blind = false;
    if (status == 200 || status == 404)
        ask_ledger(t, ord, INT64_MAX);
    else
        known(t, ord, KNOWN_NOTHING);
}

void recall_ask(struct task *t, uint64_t ord)
{
    struct span tool = t->call[ord].call.tool;
    if (span_eq(tool, SPAN("run_command")))
        desk_ask(t, "GET", desk_box(t, "/commands", SPAN_NONE), SPAN_NONE, listed, ord);
    else
        known(t, ord, KNOWN_NOTHING); /* of files nobody keeps a record of each: their classes say what to do */
}

void recall_wait(struct task *t, uint64_t ord)
{
    t->call[ord].command = true;
    command_follow(t, ord, t->call[ord].effect);
}

void recall_look(struct task *t, uint64_t ord)
{
    if (span_eq(t->call[ord].call.tool, SPAN("edit_file")))
        edit_look(t, ord);
    else
        task_tell(t, (struct loop_event){.heard = HEARD_LOOKED, .ord = ord, .known = KNOWN_NOTHING});
}
