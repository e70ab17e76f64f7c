/* countersign sandbox top|logs: what started sandboxes use, and what their detached commands said last. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/table.h"
#include "cli/verbs/started/follow.h"
#include "cli/verbs/started/started.h"
#include "common/text/visible.h"

enum { TOP_S = 2, SEEN_MAX = 512, ID_ROOM = 48 };

/* --- top ----------------------------------------------------------------------------- */

/* What a sandbox had used when it was looked at last. */
struct seen {
    char name[64];
    uint64_t generation, cpu_us, at_ms;
};

static bool has(const struct json *r, const char *key)
{
    return json_get(r, span_str(key)) != NULL;
}

/* Of one CPU, since it was looked at last, or since its start. */
static void put_share(struct table *t, const struct json *r, const struct seen *was, uint64_t now_ms)
{
    uint64_t cpu = member_u64(r, "cpu_us"), ms = member_u64(r, "age_ms");

    if (was && was->cpu_us <= cpu && was->at_ms < now_ms) {
        cpu -= was->cpu_us;
        ms = now_ms - was->at_ms;
    }
    if (!has(r, "cpu_us") || ms == 0)
        table_cell(t, "-");
    else
        table_cell(t, "%llu %%", (unsigned long long)(cpu / 10 / ms));
}

static void put_bytes(struct table *t, const struct json *r, const char *used, const char *most)
{
    if (has(r, used))
        table_cell(t, "%llu of %llu MiB", (unsigned long long)member_u64(r, used) >> 20,
                   (unsigned long long)member_u64(r, most) >> 20);
    else
        table_cell(t, "-");
}

static const struct seen *seen_find(const struct seen *s, size_t n, const struct json *r)
{
    for (size_t i = 0; i < n; i++)
        if (span_eq(span_str(s[i].name), member_text(r, "name")) && s[i].generation == member_u64(r, "generation"))
            return &s[i];
    return NULL;
}

/* Now they were looked at. */
static size_t seen_take(struct seen *s, const struct json *rows, uint64_t now_ms)
{
    size_t n = 0;

    for (const struct json *r = rows ? rows->child : NULL; r && n < SEEN_MAX; r = r->next) {
        s[n] = (struct seen){"", member_u64(r, "generation"), member_u64(r, "cpu_us"), now_ms};
        (void)snprintf(s[n++].name, sizeof(s->name), "%.*s", SPAN_FMT(member_text(r, "name")));
    }
    return n;
}

/* Of what has a limit: how much of it is used. */
static void put_egress(struct table *t, const struct json *e)
{
    char text[128] = "-";
    size_t n = 0;

    if (has(e, "requests"))
        n = (size_t)snprintf(text, sizeof(text), "%llu of %llu", (unsigned long long)member_u64(e, "requests_used"),
                             (unsigned long long)member_u64(e, "requests"));
    if (has(e, "bytes"))
        (void)snprintf(text + n, sizeof(text) - n, "%s%llu of %llu KiB", n ? ", " : "",
                       (unsigned long long)member_u64(e, "bytes_used") >> 10,
                       (unsigned long long)member_u64(e, "bytes") >> 10);
    table_cell(t, "%s", text);
}

static void put_row(struct table *t, const struct json *r, const struct seen *was, uint64_t now_ms)
{
    char left[32];

    table_text(t, member_text(r, "name"));
    table_text(t, member_text(r, "state"));
    put_share(t, r, was, now_ms);
    if (has(r, "cpu_us"))
        table_cell(t, "%llu.%llu s", (unsigned long long)member_u64(r, "cpu_us") / 1000000,
                   (unsigned long long)member_u64(r, "cpu_us") / 100000 % 10);
    else
        table_cell(t, "-");
    put_bytes(t, r, "memory_used", "memory");
    put_bytes(t, r, "disk_used", "disk");
    if (has(r, "pids_used"))
        table_cell(t, "%llu of %llu", (unsigned long long)member_u64(r, "pids_used"),
                   (unsigned long long)member_u64(r, "pids"));
    else
        table_cell(t, "-");
    put_egress(t, json_get(r, SPAN("egress")));
    table_cell(t, "%s", age_text(member_u64(r, "left_ms"), 0, left));
    table_row(t);
}

/* One look at all, or at the one of this name. */
static void top_print(const struct gateway_call *g, const char *name, struct seen *seen, size_t *n)
{
    const struct json *rows = json_get(g->tree, SPAN("sandboxes"));
    uint64_t now_ms = member_u64(g->tree, "time_ms");
    struct table t;

    table_begin(&t, "NAME\tSTATE\tCPU\tCPU TIME\tMEMORY\tDISK\tPROCESSES\tEGRESS\tLEFT");
    for (const struct json *r = rows ? rows->child : NULL; r; r = r->next)
        if (!name || span_eq(member_text(r, "name"), span_str(name)))
            put_row(&t, r, seen_find(seen, *n, r), now_ms);
    table_end(&t, name ? "no sandbox of this name runs" : "no sandbox is started");
    (void)fflush(stdout);
    *n = seen_take(seen, rows, now_ms);
}

int sandbox_top(const struct cli_call *c)
{
    const char *name = c->nwords ? c->word[0] : NULL, *wrong = name ? started_name_wrong(name) : NULL;
    bool again = isatty(STDOUT_FILENO) && !c->json;
    static struct seen seen[SEEN_MAX];
    struct gateway_call g;
    size_t n = 0;
    int rc;

    if (wrong)
        return verb_fail(CLI_USAGE, "%s", wrong);
    do {
        rc = verb_begin(&g, c);
        if (rc == CLI_OK)
            rc = verb_ask(&g, "GET", "/api/v1/sandboxes/metrics", SPAN_NONE, 200);
        if (rc == CLI_OK && again)
            fputs("\033[H\033[2J", stdout); /* from an empty screen */
        if (rc == CLI_OK && g.json)
            verb_print_answer(&g);
        else if (rc == CLI_OK)
            top_print(&g, name, seen, &n);
        verb_end(&g);
    } while (rc == CLI_OK && again && sleep(TOP_S) == 0 && !ferror(stdout));
    return rc;
}

/* --- logs ---------------------------------------------------------------------------- */

static void print_output(const struct json *output, FILE *to)
{
    struct span data = member_text(output, "data");
    uint8_t *bytes = malloc(data.n + 1);
    struct dynbuf shown;
    size_t n = 0;

    if (member_u64(output, "cut"))
        fprintf(stderr, "countersign: %llu bytes before what follows are not kept any more\n",
                (unsigned long long)member_u64(output, "cut"));
    dynbuf_init(&shown, 8 * (data.n + 1));
    if (bytes && base64_decode(data, bytes, &n) == 0 && isatty(fileno(to))) {
        visible_text(&shown, span_of(bytes, n), true);
        (void)fwrite(shown.p, 1, dynbuf_ok(&shown) ? shown.n : 0, to);
    } else if (bytes) {
        (void)fwrite(bytes, 1, n, to);
    }
    (void)fflush(to);
    dynbuf_free(&shown);
    free(bytes);
}

static int print_log(struct gateway_call *g, const char *name, const char *id)
{
    char path[PATH_ROOM];

    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%.63s/log?command=%.48s", name, id);
    int rc = verb_ask(g, "GET", path, SPAN_NONE, 200);
    if (rc == CLI_OK && g->json) {
        verb_print_answer(g);
    } else if (rc == CLI_OK) {
        print_output(json_get(g->tree, SPAN("stdout")), stdout);
        print_output(json_get(g->tree, SPAN("stderr")), stderr);
    }
    return rc;
}

/* Every detached one, the first begun first, behind a line of its own. */
static int print_logs(struct gateway_call *g, const char *name)
{
    char ids[SEEN_MAX][ID_ROOM]; /* each answer takes the place of the one before it */
    char path[PATH_ROOM];
    size_t n = 0;

    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%.63s/commands", name);
    int rc = verb_ask(g, "GET", path, SPAN_NONE, 200);
    const struct json *rows = rc == CLI_OK ? json_get(g->tree, SPAN("commands")) : NULL;
    for (const struct json *r = rows ? rows->child : NULL; r && n < SEEN_MAX; r = r->next) {
        const struct json *detached = json_get(r, SPAN("detached"));
        if (detached && detached->truth)
            (void)snprintf(ids[n++], ID_ROOM, "%.*s", SPAN_FMT(member_text(r, "command")));
    }
    if (rc == CLI_OK && n == 0)
        fputs("countersign: it has no detached command (sandbox exec --detach)\n", stderr);
    while (rc == CLI_OK && n > 0) { /* the last one is listed first */
        if (!g->json)
            printf("==> command %s <==\n", ids[n - 1]);
        rc = print_log(g, name, ids[--n]);
    }
    return rc;
}

int sandbox_logs(const struct cli_call *c)
{
    const char *wrong = started_name_wrong(c->word[0]);
    struct gateway_call g;
    int rc;

    if (wrong)
        return verb_fail(CLI_USAGE, "%s", wrong);
    if (cli_flag(c, "follow"))
        return c->nwords > 1 ? sandbox_attach(c)
                             : verb_fail(CLI_USAGE,
                                         "one command is followed at a time: `countersign sandbox ps %s` "
                                         "lists them",
                                         c->word[0]);
    if (c->nwords > 1 && sandbox_command_id(c) != CLI_OK)
        return CLI_USAGE;
    rc = verb_begin(&g, c);
    if (rc == CLI_OK)
        rc = c->nwords > 1 ? print_log(&g, c->word[0], c->word[1]) : print_logs(&g, c->word[0]);
    verb_end(&g);
    return rc;
}
