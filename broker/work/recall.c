/* What became of a call of which the end is not known: of a command, by the warden, which has those of its sandboxes,
 * and by the ledger, which writes each down before it is ordered. Its lane before this one has ended: what they do
 * not know of has not been run, and will not be. */
#include <stdio.h>

#include "broker/work/tools.h"
#include "broker/work/work.h"
#include "common/net/loop.h"

/* How far back the ledger's record surely reaches: of a sandbox so many commands, of so long (STORE_RUNS_MAX and
 * STORE_RUNS_AGE_MAX). A day less, since clocks are set. */
enum { RUNS_KEPT = 1024 };
#define CLOCK_MS UINT64_C(86400000)
#define AGE_MS   (29 * CLOCK_MS)

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

/* It would be in the record still, had it been ordered. */
static bool would_be_there(const struct task *t, uint64_t ord)
{
    const struct work_call *c = &t->call[ord];
    uint64_t now = loop_wall(t->w->loop);
    return c->intent_ms != 0 && c->intent_ms <= now && now - c->intent_ms < AGE_MS && c->since < RUNS_KEPT;
}

static void ask_ledger(struct task *t, uint64_t ord, uint64_t before);

/* A page of what ran in the sandbox, the newest first. Only who has seen all of it, as far back as the call was
 * written down, knows that a command was not run; else it may have been, and is not run again by itself. */
static void recorded(struct task *t, uint64_t ord, unsigned status, struct span body)
{
    uint64_t before = 0;
    char mark[COMMAND_MARK + 1];
    const struct json *j = status == 200 ? json_parse(body, &t->step_arena) : NULL;
    const struct json *runs = json_get(j, SPAN("runs"));
    command_mark(&t->call[ord].key, mark);
    for (const struct json *r = runs != NULL ? runs->child : NULL; r != NULL; r = r->next) {
        const struct json *begin = json_parse(json_text(r, SPAN("begin")), &t->step_arena);
        uint64_t began_ms = UINT64_MAX - CLOCK_MS;
        (void)!json_u64(r, SPAN("begin_seq"), &before);
        (void)!json_u64(r, SPAN("began_ms"), &began_ms);
        t->call[ord].since += began_ms + CLOCK_MS >= t->call[ord].intent_ms;
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
        known(t, ord, runs != NULL && !t->call[ord].blind && would_be_there(t, ord) ? KNOWN_NOT_SENT : KNOWN_NOTHING);
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
    t->call[ord].since = 0;
    if (status == 200 || status == 404)
        ask_ledger(t, ord, INT64_MAX);
    else
        known(t, ord, KNOWN_NOTHING);
}

/* Planned by a worker of another gateway: this one's record has nothing of it, which says nothing. */
static bool elsewhere(const struct task *t)
{
    return t->found.elsewhere && t->step == t->found.open;
}

void recall_ask(struct task *t, uint64_t ord)
{
    struct span tool = t->call[ord].call.tool;
    /* The lane before may not have ended, and nobody else's word counts then. */
    if (t->lane[0] == '\0' || elsewhere(t)) {
        known(t, ord, KNOWN_NOTHING);
        return;
    }
    if (t->found.replays) /* nothing of it was run, whatever was known of it then */
        known(t, ord, t->call[ord].blind ? KNOWN_SENT : KNOWN_NOT_SENT);
    else if (span_eq(tool, SPAN("run_command")))
        desk_ask(t, "GET", desk_box(t, "/commands", SPAN_NONE), SPAN_NONE, listed, ord);
    else
        known(t, ord, KNOWN_NOTHING); /* of files nobody keeps a record of each: their classes say what to do */
}

void recall_wait(struct task *t, uint64_t ord)
{
    t->call[ord].command = true;
    t->call[ord].seen.began_ms = t->call[ord].intent_ms;
    command_follow(t, ord, t->call[ord].effect);
}

void recall_look(struct task *t, uint64_t ord)
{
    if (t->lane[0] != '\0' && !t->found.replays && !elsewhere(t) &&
        span_eq(t->call[ord].call.tool, SPAN("edit_file")))
        edit_look(t, ord);
    else
        task_tell(t, (struct loop_event){.heard = HEARD_LOOKED, .ord = ord, .known = KNOWN_NOTHING});
}
