/* countersign sandbox snapshot|restore|fork and checkpoint list|rm: files of started sandboxes that outlive them. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/verbs/started/started.h"

enum { ID_BYTES_MAX = 63, TENANT_MAX = 64 };
#define NO_TENANT "no tenant is called so: a name has 1 to 64 of a-z 0-9 - . _"

static const char *which_wrong(const char *s)
{
    return started_name_wrong(s) ? "that is neither the id of a checkpoint nor its name" : NULL;
}

/* "3 files, 1 folder" */
static void print_counts(FILE *to, const struct json *r)
{
    static const char *const kinds[][3] = {
        {"files", "file", "files"}, {"folders", "folder", "folders"}, {"links", "link", "links"}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        unsigned long long n = member_u64(r, kinds[i][0]);
        fprintf(to, "%s%llu %s", i > 0 ? ", " : "", n, n == 1 ? kinds[i][1] : kinds[i][2]);
    }
    fprintf(to, ", %llu bytes (%llu new)", (unsigned long long)member_u64(r, "bytes"),
            (unsigned long long)member_u64(r, "added"));
    if (member_u64(r, "left_out") > 0)
        fprintf(to, "; %llu devices, pipes or sockets left out", (unsigned long long)member_u64(r, "left_out"));
}

/* --- taken ------------------------------------------------------------------------------ */

int sandbox_snapshot(const struct cli_call *c)
{
    const char *wrong = started_name_wrong(c->word[0]);
    struct gateway_call g;
    struct dynbuf body;
    struct jsonw w;
    char path[PATH_ROOM];
    int rc = verb_begin(&g, c);

    dynbuf_init(&body, BODY_MAX);
    if (!wrong && c->nwords > 1)
        wrong = which_wrong(c->word[1]);
    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    if (c->nwords > 1)
        jsonw_kv(&w, "name", span_str(c->word[1]));
    jsonw_end_object(&w);
    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%.63s/snapshot", c->word[0]);
    if (rc == CLI_OK)
        rc = verb_ask_long(&g, "POST", path, dynbuf_span(&body), 201, "its files are read");
    if (rc == CLI_OK && g.json)
        verb_print_answer(&g);
    else if (rc == CLI_OK) {
        print_text(member_text(g.tree, "id"));
        putchar('\n');
        print_counts(stderr, g.tree);
        fputc('\n', stderr);
    }
    dynbuf_free(&body);
    verb_end(&g);
    return rc;
}

int sandbox_restore(const struct cli_call *c)
{
    const char *wrong = which_wrong(c->word[0]);

    if (wrong)
        return verb_fail(CLI_USAGE, "%s", wrong);
    return started_start(c, c->nwords > 1 ? c->word[1] : NULL, c->word[0]);
}

/* --- a fork ------------------------------------------------------------------------------- */

static int fork_request(const struct cli_call *c, struct dynbuf *body)
{
    static const char *const texts[] = {"limits", "session", "lane"};
    struct jsonw w;

    jsonw_begin(&w, body);
    jsonw_object(&w);
    if (c->nwords > 1)
        jsonw_kv(&w, "name", span_str(c->word[1]));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (cli_value(c, texts[i]))
            jsonw_kv(&w, texts[i], span_str(cli_value(c, texts[i])));
    int rc = started_put_mounts(&w, c);
    if (rc == CLI_OK)
        rc = started_put_seconds(&w, c, "timeout");
    if (rc == CLI_OK)
        rc = started_put_step(&w, cli_value(c, "from"));
    jsonw_end_object(&w);
    return rc;
}

int sandbox_fork(const struct cli_call *c)
{
    const char *wrong = started_name_wrong(c->word[0]);
    struct gateway_call g;
    struct dynbuf body;
    char path[PATH_ROOM];
    int rc = verb_begin(&g, c);

    dynbuf_init(&body, BODY_MAX);
    if (!wrong && c->nwords > 1)
        wrong = started_name_wrong(c->word[1]);
    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    if (rc == CLI_OK)
        rc = fork_request(c, &body);
    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%.63s/fork", c->word[0]);
    if (rc == CLI_OK)
        rc = verb_ask_long(&g, "POST", path, dynbuf_span(&body), 201, "its files are copied");
    if (rc == CLI_OK && g.json)
        verb_print_answer(&g);
    else if (rc == CLI_OK) {
        print_text(member_text(g.tree, "name"));
        putchar('\n');
    }
    dynbuf_free(&body);
    verb_end(&g);
    return rc;
}

/* --- which there are ------------------------------------------------------------------------ */

static void print_one(const struct json *r)
{
    time_t when = (time_t)(member_u64(r, "created_ms") / 1000);
    char text[32] = "";
    struct tm tm;

    if (gmtime_r(&when, &tm))
        (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    print_text(member_text(r, "id"));
    printf("  %s  of ", text);
    print_text(member_text(r, "sandbox"));
    if (member_text(r, "name").n > 0) {
        fputs("  named ", stdout);
        print_text(member_text(r, "name"));
    }
    fputs("  ", stdout);
    print_counts(stdout, r);
    putchar('\n');
}

/* Whose, as a path has it. NULL: nobody is called so. */
static const char *tenant_of(const struct cli_call *c)
{
    static const char may[] = "abcdefghijklmnopqrstuvwxyz0123456789-._";
    const char *tenant = cli_value(c, "tenant");
    size_t n = tenant ? strspn(tenant, may) : 0;

    return !tenant ? "" : n > 0 && n <= TENANT_MAX && tenant[n] == '\0' ? tenant : NULL;
}

/* As many to a page as the gateway gives; those behind the last one of it come next. */
int checkpoint_list(const struct cli_call *c)
{
    const char *tenant = tenant_of(c);
    char path[PATH_ROOM];
    bool more = true;
    int rc = tenant ? CLI_OK : verb_fail(CLI_USAGE, NO_TENANT);

    (void)snprintf(path, sizeof(path), "/api/v1/checkpoints?tenant=%s", tenant ? tenant : "");
    while (more && rc == CLI_OK) {
        struct gateway_call g;
        rc = verb_begin(&g, c);
        if (rc == CLI_OK)
            rc = verb_ask_long(&g, "GET", path, SPAN_NONE, 200, "checkpoints are looked for");
        const struct json *rows = rc == CLI_OK ? json_get(g.tree, SPAN("checkpoints")) : NULL;
        const struct json *is = rc == CLI_OK ? json_get(g.tree, SPAN("more")) : NULL;
        more = is && is->truth;
        for (const struct json *r = rows ? rows->child : NULL; r; r = r->next) {
            if (!g.json)
                print_one(r);
            struct span id = member_text(r, "id");
            if (id.n <= ID_BYTES_MAX)
                (void)snprintf(path, sizeof(path), "/api/v1/checkpoints?tenant=%s&after=%.*s", tenant, SPAN_FMT(id));
        }
        if (rc == CLI_OK && g.json)
            verb_print_answer(&g); /* an answer a page */
        verb_end(&g);
    }
    return rc;
}

int checkpoint_rm(const struct cli_call *c)
{
    const char *wrong = which_wrong(c->word[0]), *tenant = tenant_of(c);
    struct gateway_call g;
    char path[PATH_ROOM];
    int rc = verb_begin(&g, c);

    if (!wrong && !tenant)
        wrong = NO_TENANT;
    (void)snprintf(path, sizeof(path), "/api/v1/checkpoints/%.63s?tenant=%s", c->word[0], tenant ? tenant : "");
    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    if (rc == CLI_OK)
        rc = verb_ask_long(&g, "DELETE", path, SPAN_NONE, 204, "what it alone needs is removed");
    verb_end(&g);
    return rc;
}
