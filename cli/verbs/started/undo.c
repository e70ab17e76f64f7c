/* countersign sandbox undo|steps: commands of started sandboxes that can be undone (exec --undo). */
#include <stdio.h>

#include "cli/verbs/started/started.h"

int started_put_step(struct jsonw *w, const char *text)
{
    uint64_t step = 0;

    if (!text)
        return CLI_OK;
    if (span_u64(span_str(text), UINT32_MAX, &step) != 0 || step == 0)
        return verb_fail(CLI_USAGE, "a step is a number, as `countersign sandbox steps` says it");
    jsonw_kv_u64(w, "step", step);
    return CLI_OK;
}

int sandbox_undo(const struct cli_call *c)
{
    const char *wrong = started_name_wrong(c->word[0]);
    struct gateway_call g;
    struct dynbuf body;
    struct jsonw w;
    char path[PATH_ROOM];
    int rc = verb_begin(&g, c);

    dynbuf_init(&body, BODY_MAX);
    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    if (rc == CLI_OK)
        rc = started_put_step(&w, c->nwords > 1 ? c->word[1] : NULL);
    jsonw_end_object(&w);
    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%.63s/undo", c->word[0]);
    if (rc == CLI_OK)
        rc = verb_ask_long(&g, "POST", path, dynbuf_span(&body), 200, "its files are put back");
    if (rc == CLI_OK && g.json)
        verb_print_answer(&g);
    else if (rc == CLI_OK)
        fprintf(stderr,
                "its files are those of before step %llu; it goes on as its next generation: leases of before "
                "are dead\n",
                (unsigned long long)member_u64(g.tree, "step"));
    dynbuf_free(&body);
    verb_end(&g);
    return rc;
}

static void print_step(const struct json *r)
{
    const struct json *argv = json_get(r, SPAN("argv"));
    char age[32];

    printf("%-5llu %-8s %llu bytes (%llu new)", (unsigned long long)member_u64(r, "step"),
           age_text(member_u64(r, "age_ms"), 0, age), (unsigned long long)member_u64(r, "bytes"),
           (unsigned long long)member_u64(r, "added"));
    if (member_u64(r, "left_out") > 0)
        printf("; %llu devices, pipes or sockets left out", (unsigned long long)member_u64(r, "left_out"));
    fputs("  ", stdout);
    for (const struct json *a = argv ? argv->child : NULL; a; a = a->next) {
        print_text(a->text);
        if (a->next)
            putchar(' ');
    }
    putchar('\n');
}

int sandbox_steps(const struct cli_call *c)
{
    const char *wrong = started_name_wrong(c->word[0]);
    struct gateway_call g;
    char path[PATH_ROOM];
    int rc = verb_begin(&g, c);

    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%.63s/steps", c->word[0]);
    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", path, SPAN_NONE, 200);
    const struct json *rows = rc == CLI_OK ? json_get(g.tree, SPAN("steps")) : NULL;
    if (rc == CLI_OK && g.json)
        verb_print_answer(&g);
    else
        for (const struct json *r = rows ? rows->child : NULL; r; r = r->next)
            print_step(r);
    verb_end(&g);
    return rc;
}
