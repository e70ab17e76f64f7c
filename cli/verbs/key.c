/* countersign key create|list|rm: who may speak to the sandbox API, and to the broker */
#include <stdio.h>

#include "cli/table.h"
#include "cli/verb.h"

enum { BODY_ROOM = 4096, NAME_MOST = 40 };

static int make(struct gateway_call *g, const struct cli_call *c, const char *name, const char *tenant)
{
    struct dynbuf body;
    struct jsonw w;

    dynbuf_init(&body, BODY_ROOM);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv(&w, "name", span_str(name));
    if (tenant)
        jsonw_kv(&w, "tenant", span_str(tenant));
    if (cli_flag(c, "broker"))
        jsonw_kv_bool(&w, "broker", true);
    if (cli_flag(c, "read-only"))
        jsonw_kv_raw(&w, "scopes", SPAN("[\"read\"]"));
    jsonw_end_object(&w);
    int rc = dynbuf_ok(&body) ? verb_ask(g, "POST", "/api/v1/keys", dynbuf_span(&body), 201)
                              : verb_fail(CLI_USAGE, "the name or tenant is too long");
    dynbuf_free(&body);
    return rc;
}

/* The key alone goes to stdout, so that it can be put where it belongs without being read. */
static void print_made(const struct gateway_call *g)
{
    fprintf(stderr, "# key %.*s of tenant %.*s: it is shown this once\n", SPAN_FMT(member_text(g->tree, "name")),
            SPAN_FMT(member_text(g->tree, "tenant")));
    print_text(member_text(g->tree, "key"));
    putchar('\n');
}

int key_create(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = make(&g, c, c->word[0], cli_value(c, "tenant"));
    if (rc == CLI_OK && c->json)
        verb_print_answer(&g);
    else if (rc == CLI_OK)
        print_made(&g);
    dynbuf_wipe(&g.answer);
    verb_end(&g);
    return rc;
}

static void print_keys(const struct gateway_call *g)
{
    const struct json *rows = json_get(g->tree, SPAN("keys"));
    struct table t;
    char when[32];

    table_begin(&t, "NAME\tTENANT\tFOR\tSINCE");
    for (const struct json *r = rows ? rows->child : NULL; r; r = r->next) {
        table_text(&t, member_text(r, "name"));
        table_text(&t, member_text(r, "tenant"));
        table_text(&t, member_text(r, "for"));
        table_cell(&t, "%s", time_text(member_u64(r, "created_ms"), when));
        table_row(&t);
    }
    table_end(&t, "No key was issued.");
}

int key_list(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", "/api/v1/keys", SPAN_NONE, 200);
    if (rc == CLI_OK && c->json)
        verb_print_answer(&g);
    else if (rc == CLI_OK)
        print_keys(&g);
    verb_end(&g);
    return rc;
}

static int remove_it(struct gateway_call *g, const char *name)
{
    char path[128];

    if (strlen(name) > NAME_MOST || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-._") != strlen(name))
        return verb_fail(CLI_USAGE, "that is not a key's name");
    (void)snprintf(path, sizeof(path), "/api/v1/keys/%s", name);
    return verb_ask(g, "DELETE", path, SPAN_NONE, 204);
}

int key_rm(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = remove_it(&g, c->word[0]);
    verb_end(&g);
    return rc;
}
