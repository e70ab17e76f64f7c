/* tasks: of the configuration: files that each say one kind of task, and the schemas that these name. All of it is
 * read and checked here, so that the desk hears of no schema that is not understood whole. */
#include <stdio.h>

#include "common/schema/schema.h"
#include "policy/load/disk.h"
#include "proxy/parent/config/config_in.h"

enum { TASK_FILE_MAX = 64 * 1024 };

struct row_limits {
    const struct node *at;
    struct number hold, memory, pids, cpu_percent, disk, files;
};
struct row_task {
    const struct node *at;
    struct number version, timeout;
    struct item kind, image, input, output;
    struct items command;
    struct row_limits limits;
};

#define MIB UINT64_C(1048576)
static const struct choice holds[] = {{"strict", TASK_STRICT}, {"approximate", TASK_APPROXIMATE}, {NULL, 0}};
static const struct key limits_keys[] = {
    {"hold", KEY_ONE_OF, AT(row_limits, hold), 0, .choices = holds, .help = "strict or approximate"},
    {"memory", KEY_SIZE, AT(row_limits, memory), 0, .lo = 64 * MIB, .hi = UINT64_C(1) << 50,
     .help = "bytes, of all its processes"},
    {"pids", KEY_COUNT, AT(row_limits, pids), 0, .lo = 8, .hi = 4194304, .help = "processes and threads"},
    {"cpu_percent", KEY_COUNT, AT(row_limits, cpu_percent), 0, .lo = 1, .hi = 102400, .help = "of one CPU"},
    {"disk", KEY_SIZE, AT(row_limits, disk), 0, .lo = MIB, .hi = UINT64_C(1) << 50, .help = "bytes of its workspace"},
    {"files", KEY_COUNT, AT(row_limits, files), 0, .lo = 64, .hi = 65536, .help = "open files of each process"},
    {.type = KEY_END}};
static const struct table limits_table = {"limits", sizeof(struct row_limits), limits_keys};
static const struct key task_keys[] = {
    {"version", KEY_COUNT, AT(row_task, version), KEY_NEEDED, .lo = 1, .hi = 1, .help = "1"},
    {"kind", KEY_TEXT, AT(row_task, kind), KEY_NEEDED, .help = "what it is called"},
    {"image", KEY_TEXT, AT(row_task, image), 0, .help = "an imported image, or host"},
    {"command", KEY_TEXTS, AT(row_task, command), KEY_NEEDED, .help = "a program and its arguments"},
    {"timeout", KEY_TIME, AT(row_task, timeout), KEY_NEEDED, .lo = 1000, .hi = TASK_TIMEOUT_MAX_S * UINT64_C(1000),
     .help = "how long the command may run"},
    {"limits", KEY_MAP, AT(row_task, limits), 0, .table = &limits_table, .help = "of its sandbox"},
    {"input", KEY_TEXT, AT(row_task, input), KEY_NEEDED, .help = "a file with the JSON Schema of its input"},
    {"output", KEY_TEXT, AT(row_task, output), KEY_NEEDED, .help = "a file with the JSON Schema of its result"},
    {.type = KEY_END}};
static const struct table task_table = {"a kind of task", sizeof(struct row_task), task_keys};

static void take_schema(struct loader *l, const char *file, const struct item *it, struct span *text)
{
    char path[CONFIG_PATH] = "";
    struct schema *s = NULL;
    struct schema_fault f;
    struct err e;

    config_copy_path(l, path, sizeof(path), file, it);
    if (l->failed)
        return;
    if (policy_read_file(path, TASK_SCHEMA_MAX, &l->a, text, &e) != 0)
        load_problem(l, it->at, "C023", "%s", e.text);
    else if (schema_compile(*text, SCHEMA_PLAIN, &s, &f) != 0)
        load_problem(l, it->at, "C024",
                     "this schema cannot be used, at %s: %s; `countersign schema check` says it too",
                     f.pointer[0] ? f.pointer : "its top", f.why.text);
    schema_free(&s);
}

static void take_name(struct loader *l, const struct item *it, struct span *name)
{
    if (!config_sandbox_ok(it->text))
        load_problem(l, it->at, "C025", "a name here is 1 to %d of a-z 0-9 . _ -", TASK_NAME_MAX);
    *name = it->text;
}

static void take_command(struct loader *l, const struct items *command, struct wire_task *t)
{
    size_t bytes = 0;

    for (size_t i = 0; i < command->n; i++) {
        bytes += command->v[i].text.n;
        if (i < TASK_WORDS_MAX)
            t->word[i] = command->v[i].text;
    }
    t->nwords = command->n;
    if (command->n > TASK_WORDS_MAX || bytes > TASK_COMMAND_MAX)
        load_problem(l, command->at, "C025", "a command has at most %d words, of %d bytes together", TASK_WORDS_MAX,
                     TASK_COMMAND_MAX);
}

static bool is_there(const struct config *c, struct span kind)
{
    struct wire_task t;

    for (size_t i = 0; i < c->ntasks; i++) {
        struct msg_in m = msg_in(dynbuf_span(&c->task[i]));
        if (wire_get_task(&m, &t) == 0 && span_eq(t.kind, kind))
            return true;
    }
    return false;
}

static void take_row(struct loader *l, const char *file, const struct row_task *r, struct config *c)
{
    struct wire_task t = {.memory = r->limits.memory.v,
                          .pids = r->limits.pids.v,
                          .cpu_percent = r->limits.cpu_percent.v,
                          .disk = r->limits.disk.v,
                          .files = r->limits.files.v,
                          .timeout_ms = r->timeout.v,
                          .limits = (enum task_limits)r->limits.hold.v};

    take_name(l, &r->kind, &t.kind);
    if (r->image.at != NULL && !span_eq(r->image.text, SPAN("host")))
        take_name(l, &r->image, &t.image);
    take_command(l, &r->command, &t);
    if (is_there(c, t.kind))
        load_problem(l, r->kind.at, "C025", "another file has this kind of task");
    take_schema(l, file, &r->input, &t.input);
    take_schema(l, file, &r->output, &t.output);
    if (l->failed)
        return;
    dynbuf_init(&c->task[c->ntasks], 2 * TASK_SCHEMA_MAX + 2 * TASK_COMMAND_MAX);
    wire_put_task(&c->task[c->ntasks], &t);
    if (dynbuf_ok(&c->task[c->ntasks]))
        c->ntasks++;
    else
        load_problem(l, r->at, "C023", "no memory for the task");
}

static void take_file(struct loader *l, const char *file, const struct item *at, struct config *c)
{
    char *path = arena_alloc(&l->a, CONFIG_PATH); /* lives as long as the places that problems are told of */
    struct row_task row = {0};
    struct span text;
    struct err e;

    if (path != NULL)
        config_copy_path(l, path, CONFIG_PATH, file, at);
    if (path == NULL || l->failed)
        return;
    if (policy_read_file(path, TASK_FILE_MAX, &l->a, &text, &e) != 0) {
        load_problem(l, at->at, "C023", "%s", e.text);
        return;
    }
    const struct node *root = yaml_tree(l, path, text);
    if (root != NULL)
        keys_decode_map(l, root, &task_table, &row);
    if (root != NULL && !l->failed)
        take_row(l, path, &row, c);
    l->file = file;
}

void config_take_tasks(struct loader *l, const struct items *files, const char *file, struct config *c)
{
    if (files->n > TASKS_MAX)
        load_problem(l, files->at, "C025", "at most %d kinds of tasks", TASKS_MAX);
    for (size_t i = 0; i < files->n && !l->failed; i++)
        take_file(l, file, &files->v[i], c);
}
