/* countersign task run|list|running|cancel: what is run in a sandbox of its own, with a schema of what goes in and
 * comes out */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/table.h"
#include "cli/verb.h"
#include "common/file.h"

enum {
    INPUT_MAX = 60 * 1024,
    BODY_MAX = 64 * 1024,
    RESULT_MAX = 64 * 1024 * 1024,
    ID_MAX = 63,
    NOT_BEGUN = 422,
    NO_RESULT = 502
};

/* {"kind", "input"}: of what the file says, or standard input. */
static int request(struct gateway_call *g, const struct cli_call *c, struct dynbuf *body)
{
    const char *kind = c->word[0], *file = c->nwords > 1 ? c->word[1] : NULL;
    static const char *const texts[] = {"tenant", "id"};
    const struct json *tree = NULL;
    struct dynbuf text;
    struct jsonw w;

    dynbuf_init(&text, INPUT_MAX + 1);
    bool input = !file || strcmp(file, "-") == 0;
    int rc = (input ? file_read_fd(0, &text) : file_read(file, &text)) == 0 || errno == EFBIG
                 ? CLI_OK
                 : verb_fail(CLI_RUNTIME, "%s: %s", input ? "standard input" : file, strerror(errno));
    if (rc == CLI_OK && text.n > INPUT_MAX)
        rc = verb_fail(CLI_RUNTIME, "an input has at most %d bytes", INPUT_MAX);
    if (rc == CLI_OK && !(tree = json_parse(dynbuf_span(&text), &g->arena)))
        rc = verb_fail(CLI_RUNTIME, "%s is not one JSON value without duplicate names",
                       input ? "standard input" : file);
    jsonw_begin(&w, body);
    jsonw_object(&w);
    jsonw_kv(&w, "kind", span_str(kind));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (cli_value(c, texts[i]))
            jsonw_kv(&w, texts[i], span_str(cli_value(c, texts[i])));
    jsonw_key(&w, "input");
    if (tree)
        jsonw_tree(&w, tree);
    jsonw_end_object(&w);
    if (rc == CLI_OK && !dynbuf_ok(body))
        rc = verb_fail(CLI_RUNTIME, "the input is too large, or too deep");
    dynbuf_free(&text);
    return rc;
}

static void print_result(const struct json *result)
{
    struct dynbuf out;
    struct jsonw w;

    dynbuf_init(&out, RESULT_MAX);
    jsonw_begin(&w, &out);
    jsonw_tree(&w, result);
    print_json_line(dynbuf_ok(&out) ? dynbuf_span(&out) : SPAN_NONE);
    dynbuf_free(&out);
}

static int answered(struct gateway_call *g)
{
    struct err e;

    g->tree = json_parse(dynbuf_span(&g->answer), &g->arena);
    const struct json *result = g->status == 200 ? json_get(g->tree, SPAN("result")) : NULL;
    if (g->json && (g->status == 200 || g->status == NOT_BEGUN || g->status == NO_RESULT)) {
        verb_print_answer(g);
        return g->status == 200 ? CLI_OK : CLI_RUNTIME;
    }
    if (g->status != 200) {
        (void)api_explain(g->status, dynbuf_span(&g->answer), &e);
        return verb_fail(g->status == 503 ? CLI_STORE : CLI_RUNTIME, "%s", e.text);
    }
    if (!result)
        return verb_fail(CLI_RUNTIME, "the result has more in it than is shown like this: --json has it");
    print_result(result);
    return CLI_OK;
}

int task_run(const struct cli_call *c)
{
    struct gateway_call g;
    struct dynbuf body;
    struct err e;
    int rc = verb_begin(&g, c);

    dynbuf_init(&body, BODY_MAX);
    if (rc == CLI_OK)
        rc = request(&g, c, &body);
    if (rc == CLI_OK &&
        api_call_patient(g.sock, "POST", "/api/v1/tasks", dynbuf_span(&body), &g.status, &g.answer, &e))
        rc = verb_fail(CLI_STORE, "%s", e.text);
    if (rc == CLI_OK)
        rc = answered(&g);
    dynbuf_free(&body);
    verb_end(&g);
    return rc;
}

int task_list(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", "/api/v1/tasks", SPAN_NONE, 200);
    const struct json *rows = rc == CLI_OK ? json_get(g.tree, SPAN("tasks")) : NULL;
    if (rc == CLI_OK && g.json)
        verb_print_answer(&g);
    else
        for (const struct json *r = rows ? rows->child : NULL; r; r = r->next) {
            print_text(member_text(r, "kind"));
            fputs("  ", stdout);
            print_text(member_text(r, "image"));
            printf("  at most %llu s\n", (unsigned long long)member_u64(r, "timeout_ms") / 1000);
        }
    verb_end(&g);
    return rc;
}

int task_running(const struct cli_call *c)
{
    struct gateway_call g;
    struct table t;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", "/api/v1/tasks/running", SPAN_NONE, 200);
    const struct json *rows = rc == CLI_OK ? json_get(g.tree, SPAN("running")) : NULL;
    if (rc == CLI_OK && g.json)
        verb_print_answer(&g);
    else if (rows) {
        table_begin(&t, "ID\tKIND\tTENANT\tSANDBOX\tSTATE\tATTEMPT\tSECONDS");
        for (const struct json *r = rows->child; r; r = r->next) {
            static const char *const cells[] = {"id", "kind", "tenant", "sandbox", "state"};
            for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
                table_text(&t, member_text(r, cells[i]));
            table_cell(&t, "%llu", (unsigned long long)member_u64(r, "attempt"));
            table_cell(&t, "%llu", (unsigned long long)member_u64(r, "age_ms") / 1000);
            table_row(&t);
        }
        table_end(&t, "No task runs.");
    }
    verb_end(&g);
    return rc;
}

int task_stop(const struct cli_call *c)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-._";
    struct gateway_call g;
    char path[128];
    size_t n = strlen(c->word[0]);
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK && (n == 0 || n > ID_MAX || strspn(c->word[0], letters) != n))
        rc = verb_fail(CLI_USAGE, "that is not the id of a task");
    (void)snprintf(path, sizeof(path), "/api/v1/tasks/%.*s/cancel", ID_MAX, c->word[0]);
    if (rc == CLI_OK)
        rc = verb_ask(&g, "POST", path, SPAN_NONE, 204);
    verb_end(&g);
    return rc;
}
