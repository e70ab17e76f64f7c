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
    struct row_egress_limit egress;
};
struct row_task {
    const struct node *at;
    struct number version, timeout, retries;
    struct item kind, image, lane, residency, input, output;
    struct items command, tenants;
    struct list mounts; /* struct pair */
    struct items devices;
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
    {"egress", KEY_MAP, AT(row_limits, egress), 0, .table = &config_egress_limit_table,
     .help = "how much it may send and be sent"},
    {.type = KEY_END}};
static const struct table limits_table = {"limits", sizeof(struct row_limits), limits_keys};
static const struct key task_keys[] = {
    {"version", KEY_COUNT, AT(row_task, version), KEY_NEEDED, .lo = 1, .hi = 1, .help = "1"},
    {"kind", KEY_TEXT, AT(row_task, kind), KEY_NEEDED, .help = "what it is called"},
    {"image", KEY_TEXT, AT(row_task, image), 0, .help = "an imported image, or host"},
    {"command", KEY_TEXTS, AT(row_task, command), KEY_NEEDED, .help = "a program and its arguments"},
    {"timeout", KEY_TIME, AT(row_task, timeout), KEY_NEEDED, .lo = 1000, .hi = TASK_TIMEOUT_MAX_S * UINT64_C(1000),
     .help = "how long the command may run"},
    {"tenants", KEY_TEXTS, AT(row_task, tenants), 0, .help = "whose it is; else it is for every tenant"},
    {"lane", KEY_TEXT, AT(row_task, lane), 0, .help = "by which lane its sandbox sends; else by none"},
    {"residency", KEY_TEXT, AT(row_task, residency), 0,
     .help = "a label of its sandbox, for rules of the policy that say where it may send"},
    {"retries", KEY_COUNT, AT(row_task, retries), 0, .hi = TASK_RETRIES_MAX,
     .help = "how often it begins anew that has no result, whatever its command did"},
    {"mounts", KEY_PAIRS, AT(row_task, mounts), KEY_SINGLE, .help = "where each of these is in its sandbox"},
    {"devices", KEY_TEXTS, AT(row_task, devices), 0, .help = "of which pools it has one each; named twice: two"},
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

static void take_tenants(struct loader *l, const struct items *tenants, struct wire_task *t)
{
    for (size_t i = 0; i < tenants->n; i++) {
        const struct item *it = &tenants->v[i];
        if (!config_sandbox_ok(it->text) || task_is_of(t, it->text))
            load_problem(l, it->at, "C025", "a tenant's name here is 1 to %d of a-z 0-9 . _ -, and there once",
                         TASK_NAME_MAX);
        else if (t->ntenants == TASK_TENANTS_MAX)
            load_problem(l, it->at, "C025", "a kind of task has at most %d tenants", TASK_TENANTS_MAX);
        else
            t->tenant[t->ntenants++] = it->text;
    }
}

static void take_mounts(struct loader *l, const struct list *rows, const struct config *c, struct wire_task *t)
{
    if (rows->n > EXTRAS_MOUNTS_MAX)
        load_problem(l, rows->at, "C025", "at most %d mounts", EXTRAS_MOUNTS_MAX);
    for (size_t i = 0; i < rows->n && !l->failed; i++) {
        const struct pair *r = (const struct pair *)rows->v + i;
        struct span at = r->values.n == 1 ? r->values.v[0].text : SPAN_NONE;
        if (config_mount(c, r->name.text) == NULL)
            load_problem(l, r->at, "C025", "`mounts:` of the configuration has none of this name");
        else if (!extras_at_ok(at))
            load_problem(l, r->at, "C026", "a place inside is below /mnt or /home/agent, of plain names");
        t->mount[t->nmounts++] = (struct extras_mount){r->name.text, at};
    }
}

static void take_devices(struct loader *l, const struct items *pools, const struct config *c, struct wire_task *t)
{
    for (size_t i = 0; i < pools->n && !l->failed; i++) {
        const struct item *it = &pools->v[i];
        size_t k = 0;
        while (k < t->ndevices && !span_eq(t->device[k].pool, it->text))
            k++;
        if (config_pool(c, it->text) == NULL)
            load_problem(l, it->at, "C025", "`devices:` of the configuration has none of this name");
        else if (k == EXTRAS_DEVICES_MAX || t->device[k].count == EXTRAS_OF_POOL_MAX)
            load_problem(l, it->at, "C025", "at most %d devices of each of %d pools", EXTRAS_OF_POOL_MAX,
                         EXTRAS_DEVICES_MAX);
        else
            t->device[k] = (struct extras_device){it->text, t->device[k].count + 1};
        t->ndevices += !l->failed && k == t->ndevices;
    }
}

/* Two of one name are of different tenants, or one of them is of all the others. */
static bool is_there(const struct config *c, const struct wire_task *new)
{
    struct wire_task t;

    for (size_t i = 0; i < c->ntasks; i++) {
        struct msg_in m = msg_in(dynbuf_span(&c->task[i]));
        if (wire_get_task(&m, &t) != 0 || !span_eq(t.kind, new->kind))
            continue;
        if (t.ntenants == 0 && new->ntenants == 0)
            return true;
        for (size_t k = 0; k < new->ntenants; k++)
            if (task_is_of(&t, new->tenant[k]))
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
                          .egress_requests = r->limits.egress.requests.v,
                          .egress_bytes = r->limits.egress.bytes.v,
                          .timeout_ms = r->timeout.v,
                          .limits = (enum task_limits)r->limits.hold.v,
                          .retries = (unsigned)r->retries.v};

    take_name(l, &r->kind, &t.kind);
    if (r->image.at != NULL && !span_eq(r->image.text, SPAN("host")))
        take_name(l, &r->image, &t.image);
    if (r->lane.at != NULL)
        take_name(l, &r->lane, &t.lane);
    if (r->residency.at != NULL)
        take_name(l, &r->residency, &t.residency);
    take_tenants(l, &r->tenants, &t);
    take_mounts(l, &r->mounts, c, &t);
    take_devices(l, &r->devices, c, &t);
    take_command(l, &r->command, &t);
    if (is_there(c, &t))
        load_problem(l, r->kind.at, "C025", "another file has this kind of task, for the same tenants");
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
