/* countersign operator add|list|group|link|rm|deputy|deputies|no-deputy: the people who decide */
#include <stdio.h>
#include <string.h>

#include "cli/table.h"
#include "cli/verb.h"
#include "common/control/api.h"
#include "policy/load/read/scalar.h"

enum { BODY_ROOM = 4096, NAME_MOST = 40, GROUPS_MOST = 16 };

static bool name_ok(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n <= NAME_MOST && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-._@") == n;
}

static void put_groups(struct jsonw *w, const char *const *group, size_t n)
{
    jsonw_kv_array(w, "groups");
    for (size_t i = 0; i < n; i++)
        jsonw_string(w, span_str(group[i]));
    jsonw_end_array(w);
}

/* What lets the person add a passkey is the keeper's to give, at its own socket, which the desk does not reach.
 * Without one (the page has no name, the keeper does not run) the link lets them in all the same. */
static void add_code(struct dynbuf *url, const char *sock, const char *name)
{
    char keeper[PATH_MAX + 16], path[128];
    struct dynbuf answer;
    struct arena a;
    struct err e = {{0}};
    unsigned status = 0;
    int dir = (int)(strlen(sock) - strlen("control.sock"));

    (void)snprintf(keeper, sizeof(keeper), "%.*skeeper.sock", dir > 0 ? dir : 0, sock);
    (void)snprintf(path, sizeof(path), "/v1/passkeys/%s", name);
    arena_init(&a, 64 * 1024);
    if (api_call(keeper, "POST", path, SPAN_NONE, &status, &answer, &e) == 0 && status == 200) {
        const struct json *j = json_parse(dynbuf_span(&answer), &a);
        if (json_text(j, SPAN("code")).n)
            (void)dynbuf_addf(url, "&k=%.*s", SPAN_FMT(json_text(j, SPAN("code"))));
    }
    dynbuf_wipe(&answer);
    arena_free(&a);
}

/* A link to stdout alone, so that it can be sent without being cut out of anything. */
static void print_link(const struct gateway_call *g, const struct cli_call *c)
{
    struct dynbuf url;
    struct jsonw w;
    struct dynbuf json;

    dynbuf_init(&url, BODY_ROOM);
    dynbuf_init(&json, 2 * BODY_ROOM);
    (void)dynbuf_add(&url, member_text(g->tree, "url"));
    add_code(&url, g->sock, c->word[0]);
    jsonw_begin(&w, &json);
    jsonw_object(&w);
    jsonw_kv(&w, "name", member_text(g->tree, "name"));
    jsonw_kv(&w, "url", dynbuf_span(&url));
    jsonw_kv_u64(&w, "expires_ms", member_u64(g->tree, "expires_ms"));
    jsonw_end_object(&w);
    if (!c->json)
        fprintf(stderr, "# lets %.*s in, once, within a day\n", SPAN_FMT(member_text(g->tree, "name")));
    print_text(c->json ? dynbuf_span(&json) : dynbuf_span(&url));
    putchar('\n');
    dynbuf_wipe(&url);
    dynbuf_wipe(&json);
}

static int add(struct gateway_call *g, const struct cli_call *c)
{
    const char *group[GROUPS_MOST], *uid = cli_value(c, "uid");
    size_t n = cli_values(c, "group", group, GROUPS_MOST);
    uint64_t number = 0;
    struct dynbuf body;
    struct jsonw w;

    if (!name_ok(c->word[0]))
        return verb_fail(CLI_USAGE, "a name is up to %d of a-z 0-9 . _ - @", NAME_MOST);
    if (uid && span_u64(span_str(uid), UINT32_MAX - 1, &number) != 0)
        return verb_fail(CLI_USAGE, "--uid is the number of a user of this machine (id -u)");
    dynbuf_init(&body, BODY_ROOM);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv(&w, "name", span_str(c->word[0]));
    put_groups(&w, group, n);
    if (uid)
        jsonw_kv_u64(&w, "uid", number);
    jsonw_end_object(&w);
    int rc = dynbuf_ok(&body) ? verb_ask(g, "POST", "/api/v1/operators", dynbuf_span(&body), 201)
                              : verb_fail(CLI_USAGE, "the names of the groups are too long");
    dynbuf_free(&body);
    return rc;
}

/* What of a person is asked for by its path. */
static int of_person(struct gateway_call *g, const char *method, const char *name, const char *what, struct span body,
                     unsigned want)
{
    char path[128];

    if (!name_ok(name))
        return verb_fail(CLI_USAGE, "that is nobody's name");
    (void)snprintf(path, sizeof(path), "/api/v1/operators/%s%s", name, what);
    return verb_ask(g, method, path, body, want);
}

typedef void print_fn(const struct gateway_call *g, const struct cli_call *c);
static int finish(struct gateway_call *g, const struct cli_call *c, int rc, print_fn *print)
{
    if (rc == CLI_OK && print)
        print(g, c);
    dynbuf_wipe(&g->answer);
    verb_end(g);
    return rc;
}

/* At once; those who come back under the same name do not have them either (web-approval/people/api_operators.c). */
static int forget_passkeys(const struct gateway_call *g, const char *name)
{
    char keeper[PATH_MAX + 16], path[128];
    struct dynbuf answer;
    struct err e = {{0}};
    unsigned status = 0;
    int dir = (int)(strlen(g->sock) - strlen("control.sock"));

    (void)snprintf(keeper, sizeof(keeper), "%.*skeeper.sock", dir > 0 ? dir : 0, g->sock);
    (void)snprintf(path, sizeof(path), "/v1/passkeys/%s", name);
    int rc = api_call(keeper, "DELETE", path, SPAN_NONE, &status, &answer, &e);
    dynbuf_free(&answer);
    return rc == 0 && status == 204
               ? CLI_OK
               : verb_fail(CLI_RUNTIME, "the keeper does not answer, and may still know passkeys of "
                                        "that name: do it again");
}

int operator_add(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = add(&g, c);
    return finish(&g, c, rc, print_link);
}

int operator_link(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = of_person(&g, "POST", c->word[0], "/link", SPAN("{}"), 201);
    return finish(&g, c, rc, print_link);
}

int operator_group(const struct cli_call *c)
{
    struct gateway_call g;
    struct dynbuf body;
    struct jsonw w;
    int rc = verb_begin(&g, c);

    dynbuf_init(&body, BODY_ROOM);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    put_groups(&w, (const char *const *)c->word + 1, c->nwords - 1);
    jsonw_end_object(&w);
    if (rc == CLI_OK)
        rc = dynbuf_ok(&body) ? of_person(&g, "POST", c->word[0], "/groups", dynbuf_span(&body), 204)
                              : verb_fail(CLI_USAGE, "the names of the groups are too long");
    dynbuf_free(&body);
    return finish(&g, c, rc, NULL);
}

int operator_rm(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK) {
        rc = of_person(&g, "DELETE", c->word[0], "", SPAN_NONE, 204);
        /* Also of who is gone already, as when this is done again because the keeper had not answered. */
        int forgotten = name_ok(c->word[0]) ? forget_passkeys(&g, c->word[0]) : rc;
        rc = rc == CLI_OK ? forgotten : rc;
    }
    return finish(&g, c, rc, NULL);
}

static void groups_cell(struct table *t, const struct json *groups)
{
    struct dynbuf b;

    dynbuf_init(&b, BODY_ROOM);
    for (const struct json *e = groups ? groups->child : NULL; e; e = e->next)
        (void)dynbuf_addf(&b, "%s%.*s", b.n ? " " : "", SPAN_FMT(e->text));
    table_text(t, dynbuf_ok(&b) ? dynbuf_span(&b) : SPAN_NONE);
    dynbuf_free(&b);
}

static void print_people(const struct gateway_call *g, const struct cli_call *c)
{
    const struct json *rows = json_get(g->tree, SPAN("operators"));
    struct table t;
    char when[32];

    if (c->json) {
        verb_print_answer(g);
        return;
    }
    table_begin(&t, "NAME\tGROUPS\tUSER\tPASSWORD\tSINCE");
    for (const struct json *r = rows ? rows->child : NULL; r; r = r->next) {
        const struct json *has = json_get(r, SPAN("password"));
        table_text(&t, member_text(r, "name"));
        groups_cell(&t, json_get(r, SPAN("groups")));
        table_text(&t, member_text(r, "uid"));
        table_cell(&t, "%s", has && has->truth ? "yes" : "no");
        table_cell(&t, "%s", time_text(member_u64(r, "created_ms"), when));
        table_row(&t);
    }
    table_end(&t, "Nobody was added: whoever may use the gateway's socket decides.");
}

int operator_list(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", "/api/v1/operators", SPAN_NONE, 200);
    return finish(&g, c, rc, print_people);
}

/* --- deputies ------------------------------------------------------------- */

static int deputy(struct gateway_call *g, const struct cli_call *c)
{
    const char *how_long = cli_value(c, "for");
    uint64_t ms = 0;
    const char *wrong = how_long ? scalar_time(span_str(how_long), &ms) : "is needed: for how long, such as 8h or 5d";
    struct dynbuf body;
    struct jsonw w;

    if (wrong)
        return verb_fail(CLI_USAGE, "--for %s", wrong);
    if (!name_ok(c->word[0]))
        return verb_fail(CLI_USAGE, "that is nobody's name");
    dynbuf_init(&body, BODY_ROOM);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv(&w, "deputy", span_str(c->word[0]));
    jsonw_kv_u64(&w, "for_ms", ms);
    jsonw_end_object(&w);
    int rc = verb_ask(g, "POST", "/api/v1/deputies", dynbuf_span(&body), 204);
    dynbuf_free(&body);
    return rc;
}

int operator_deputy(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = deputy(&g, c);
    return finish(&g, c, rc, NULL);
}

int operator_no_deputy(const struct cli_call *c)
{
    struct gateway_call g;
    char path[128];
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK && !name_ok(c->word[0]))
        rc = verb_fail(CLI_USAGE, "that is nobody's name");
    (void)snprintf(path, sizeof(path), "/api/v1/deputies/%.*s", NAME_MOST, c->word[0]);
    if (rc == CLI_OK)
        rc = verb_ask(&g, "DELETE", path, SPAN_NONE, 204);
    return finish(&g, c, rc, NULL);
}

static void print_deputies(const struct gateway_call *g, const struct cli_call *c)
{
    const struct json *rows = json_get(g->tree, SPAN("deputies"));
    struct table t;
    char when[32];

    if (c->json) {
        verb_print_answer(g);
        return;
    }
    table_begin(&t, "FOR\tDEPUTY\tSINCE\tUNTIL");
    for (const struct json *r = rows ? rows->child : NULL; r; r = r->next) {
        table_text(&t, member_text(r, "for"));
        table_text(&t, member_text(r, "deputy"));
        table_cell(&t, "%s", time_text(member_u64(r, "since_ms"), when));
        table_cell(&t, "%s", time_text(member_u64(r, "until_ms"), when));
        table_row(&t);
    }
    table_end(&t, "Nobody decides in another's place.");
}

int operator_deputies(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", "/api/v1/deputies", SPAN_NONE, 200);
    return finish(&g, c, rc, print_deputies);
}
