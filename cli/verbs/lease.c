/* countersign lease issue|list|show|narrow|revoke|env */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/table.h"
#include "cli/verb.h"
#include "common/lease/narrowed.h"
#include "policy/decision.h"
#include "sandbox-shim/lease_env.h"

enum { VALUES_MAX = 17 /* one more than a bound has entries, so that too many are seen */, TEXT_ROOM = 64 * 1024 };

static const char *const lists[][2] = {
    {"host", "hosts"}, {"method", "methods"}, {"path", "paths"}, {"op", "ops"}, {"effect", "effects"}};
static const char *const numbers[] = {"uses", "rate"};

/* 90, 30s, 15m, 2h, 7d: seconds; 0: it is none. */
static unsigned long seconds_of(const char *s)
{
    char *end;
    unsigned long n = strtoul(s, &end, 10), unit = 0;

    if (s[0] < '0' || s[0] > '9' || n > 1000000)
        return 0;
    switch (*end) {
    case '\0':
    case 's': unit = 1; break;
    case 'm': unit = 60; break;
    case 'h': unit = 3600; break;
    case 'd': unit = 24 * 3600; break;
    default: break;
    }
    return *end && end[1] ? 0 : n * unit;
}

static int put_bounds(struct jsonw *w, const struct cli_call *c)
{
    const char *v[VALUES_MAX];
    const char *life = cli_value(c, "for");

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        size_t n = cli_values(c, lists[i][0], v, VALUES_MAX);
        if (n == VALUES_MAX)
            return verb_fail(CLI_USAGE, "--%s may be given %d times", lists[i][0], VALUES_MAX - 1);
        if (n == 0)
            continue;
        jsonw_key(w, lists[i][1]);
        jsonw_array(w);
        for (size_t k = 0; k < n; k++)
            jsonw_string(w, span_str(v[k]));
        jsonw_end_array(w);
    }
    for (size_t i = 0; i < 2; i++) {
        const char *number = cli_value(c, numbers[i]);
        uint64_t n;
        if (number && (span_u64(span_str(number), UINT32_MAX, &n) != 0 || n == 0))
            return verb_fail(CLI_USAGE, "--%s is a whole number above zero", numbers[i]);
        if (number)
            jsonw_kv_u64(w, numbers[i], n);
    }
    if (life && seconds_of(life) == 0)
        return verb_fail(CLI_USAGE, "--for is a time, such as 30m, 2h or 1d");
    if (life)
        jsonw_kv_u64(w, "expires_s", seconds_of(life));
    return CLI_OK;
}

/* Ask for one; g has the answer. */
static int issue(struct gateway_call *g, const struct cli_call *c)
{
    const char *sandbox = cli_value(c, "sandbox");
    struct dynbuf body;
    struct jsonw w;

    if (!sandbox)
        return verb_fail(CLI_USAGE, "say whose it is: --sandbox NAME (`countersign sandbox list` has them)");
    dynbuf_init(&body, TEXT_ROOM);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv(&w, "credential", span_str(c->word[0]));
    jsonw_kv(&w, "sandbox", span_str(sandbox));
    int rc = put_bounds(&w, c);
    jsonw_end_object(&w);
    if (rc == CLI_OK)
        rc = verb_ask(g, "POST", "/api/v1/leases", dynbuf_span(&body), 201);
    dynbuf_free(&body);
    return rc;
}

static int print_given(const struct gateway_call *g)
{
    char when[32];
    struct span text = member_text(g->tree, "lease"), secret = member_text(g->tree, "secret");

    if (g->json) {
        verb_print_answer(g);
        return CLI_OK;
    }
    fprintf(stderr, "# lease %.*s, until %s%s\n", SPAN_FMT(member_text(g->tree, "id")),
            time_text(member_u64(g->tree, "expires_ms"), when), text.n ? "; its text is shown this once" : "");
    if (text.n)
        printf("%.*s\n", SPAN_FMT(text));
    if (secret.n)
        printf("%.*s\n", SPAN_FMT(secret));
    return CLI_OK;
}

int lease_issue(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK && (rc = issue(&g, c)) == CLI_OK)
        rc = print_given(&g);
    verb_end(&g);
    return rc;
}

static void add_list(struct table *t, const struct json *layer, const char *key, const char **gap)
{
    const struct json *l = json_get(layer, span_str(key));

    for (const struct json *j = l ? l->child : NULL; j; j = j->next) {
        table_add(t, j == l->child ? *gap : ",");
        if (j == l->child) {
            table_add(t, key);
            table_add(t, "=");
        }
        table_add_text(t, j->text);
        *gap = "  ";
    }
}

static void add_within(struct table *t, const struct json *r)
{
    const struct json *within = json_get(r, SPAN("within"));
    const char *gap = "";
    char number[48];

    for (const struct json *l = within ? within->child : NULL; l; l = l->next) {
        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
            add_list(t, l, lists[i][1], &gap);
        for (size_t i = 0; i < 2; i++)
            if (member_u64(l, numbers[i])) {
                (void)snprintf(number, sizeof(number), "%s%s=%llu", gap, numbers[i],
                               (unsigned long long)member_u64(l, numbers[i]));
                table_add(t, number);
                gap = "  ";
            }
    }
    if (member_text(r, "how").n) {
        table_add(t, gap);
        table_add_text(t, member_text(r, "how"));
    }
    table_next(t);
}

static void put_row(struct table *t, const struct json *r)
{
    char when[32];
    static const char *const shown[] = {"id", "state", "credential", "sandbox"};

    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
        table_text(t, member_text(r, shown[i]));
    table_cell(t, "%s%s", t->people ? "" : "until ", time_text(member_u64(r, "expires_ms"), when));
    add_within(t, r);
    table_row(t);
}

static void print_rows(const struct json *first, const char *sandbox)
{
    struct table t;

    table_begin(&t, "ID\tSTATE\tCREDENTIAL\tSANDBOX\tUNTIL\tWITHIN");
    for (const struct json *r = first; r; r = r->next)
        if (!sandbox || span_eq(member_text(r, "sandbox"), span_str(sandbox)))
            put_row(&t, r);
    table_end(&t, sandbox ? "This sandbox has no lease." : "There is no lease.");
}

int lease_list(const struct cli_call *c)
{
    const char *sandbox = cli_value(c, "sandbox");
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK && (rc = verb_ask(&g, "GET", "/api/v1/leases", SPAN_NONE, 200)) == CLI_OK) {
        const struct json *rows = json_get(g.tree, SPAN("leases"));
        if (g.json)
            verb_print_answer(&g);
        else
            print_rows(rows ? rows->child : NULL, sandbox);
    }
    verb_end(&g);
    return rc;
}

static bool id_ok(const char *s)
{
    return s[0] && strlen(s) <= ID_TEXT && strspn(s, "0123456789abcdefghjkmnpqrstvwxyz") == strlen(s);
}

/* One call about one lease. */
static int about(struct gateway_call *g, const struct cli_call *c, const char *method, const char *what,
                 struct span body, unsigned want)
{
    char path[96];

    if (!id_ok(c->word[0]))
        return verb_fail(CLI_USAGE, "that is no lease's id: `countersign lease list` has them");
    (void)snprintf(path, sizeof(path), "/api/v1/leases/%s%s", c->word[0], what);
    return verb_ask(g, method, path, body, want);
}

int lease_show(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK && (rc = about(&g, c, "GET", "", SPAN_NONE, 200)) == CLI_OK) {
        if (g.json || !g.tree)
            verb_print_answer(&g);
        else
            print_rows(g.tree, NULL);
    }
    verb_end(&g);
    return rc;
}

/* ---- without the gateway: common/lease/narrowed.h ---- */

static int take_list(const struct cli_call *c, const char *name, struct wire_list *out)
{
    const char *v[VALUES_MAX];
    size_t n = cli_values(c, name, v, VALUES_MAX);

    if (n > LEASE_LIST_MAX)
        return verb_fail(CLI_USAGE, "--%s may be given %d times", name, LEASE_LIST_MAX);
    for (out->n = 0; out->n < n; out->n++) {
        out->v[out->n] = span_str(v[out->n]);
        if (out->v[out->n].n == 0 || out->v[out->n].n > LEASE_BOUND_BYTES)
            return verb_fail(CLI_USAGE, "--%s is a text of at most %d bytes", name, LEASE_BOUND_BYTES);
    }
    return CLI_OK;
}

static int take_layer(const struct cli_call *c, struct wire_layer *layer, uint64_t *expires_ms)
{
    struct wire_list *const to[] = {&layer->hosts, &layer->methods, &layer->paths, &layer->ops};
    const char *life = cli_value(c, "for"), *effect[VALUES_MAX];
    size_t n = cli_values(c, "effect", effect, VALUES_MAX);
    int rc = CLI_OK;

    *layer = (struct wire_layer){.effects = 0};
    *expires_ms = 0;
    for (size_t i = 0; i < sizeof(to) / sizeof(to[0]) && rc == CLI_OK; i++)
        rc = take_list(c, lists[i][0], to[i]);
    for (size_t i = 0; i < n && i < VALUES_MAX; i++)
        for (int e = EFFECT_READ; e <= EFFECT_EXEC; e++)
            if (strcmp(effect[i], effect_name((enum effect)e)) == 0)
                layer->effects |= 1u << e;
    if (rc == CLI_OK && (cli_value(c, "uses") || cli_value(c, "rate") || cli_flag(c, "child")))
        return verb_fail(CLI_USAGE, "--uses, --rate and --child are for the gateway, which counts");
    if (rc == CLI_OK && life && seconds_of(life) == 0)
        return verb_fail(CLI_USAGE, "--for is a time, such as 30m, 2h or 1d");
    if (life)
        *expires_ms = ((uint64_t)time(NULL) + seconds_of(life)) * 1000;
    if (rc == CLI_OK && !life && layer->effects == 0 && to[0]->n + to[1]->n + to[2]->n + to[3]->n == 0)
        return verb_fail(CLI_USAGE, "say what it is good for: --path, --effect, --for ...");
    return rc;
}

/* The lease comes on standard input, so that it stands in no list of processes. */
static int narrow_own(const struct cli_call *c)
{
    char text[LEASE_NARROWED_MAX + 2];
    struct wire_layer layer;
    struct dynbuf out;
    uint64_t expires_ms;
    int rc = take_layer(c, &layer, &expires_ms);

    if (rc != CLI_OK)
        return rc;
    struct span own = span_of(text, fread(text, 1, sizeof(text), stdin));
    while (own.n > 0 && (own.p[own.n - 1] == '\n' || own.p[own.n - 1] == '\r'))
        own.n--;
    dynbuf_init(&out, LEASE_NARROWED_MAX + 1);
    if (lease_narrowed_make(own, &layer, expires_ms, &out) != 0)
        rc = verb_fail(CLI_RUNTIME,
                       "standard input is no lease that can be narrowed without the gateway: none at all, "
                       "a pair's, or one with %d such bounds or %d characters",
                       LEASE_NARROWED_LAYERS, LEASE_NARROWED_MAX);
    else
        printf(cli_flag(c, "json") ? "{\"lease\":\"%.*s\"}\n" : "%.*s\n", SPAN_FMT(dynbuf_span(&out)));
    dynbuf_wipe(&out);
    explicit_bzero(text, sizeof(text));
    return rc;
}

int lease_narrow(const struct cli_call *c)
{
    struct gateway_call g;
    struct dynbuf body;
    struct jsonw w;
    bool child = cli_flag(c, "child");

    if (strcmp(c->word[0], "-") == 0)
        return narrow_own(c);
    int rc = verb_begin(&g, c);
    dynbuf_init(&body, TEXT_ROOM);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv_bool(&w, "child", child);
    if (rc == CLI_OK)
        rc = put_bounds(&w, c);
    jsonw_end_object(&w);
    if (rc == CLI_OK && (rc = about(&g, c, "POST", "/narrow", dynbuf_span(&body), child ? 201 : 200)) == CLI_OK)
        rc = print_given(&g);
    dynbuf_free(&body);
    verb_end(&g);
    return rc;
}

int lease_revoke(const struct cli_call *c)
{
    const char *reason = cli_value(c, "reason");
    struct gateway_call g;
    struct dynbuf body;
    struct jsonw w;
    int rc = verb_begin(&g, c);

    dynbuf_init(&body, TEXT_ROOM);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    if (reason)
        jsonw_kv(&w, "reason", span_str(reason));
    jsonw_end_object(&w);
    if (rc == CLI_OK)
        rc = about(&g, c, "POST", "/revoke", dynbuf_span(&body), 204);
    dynbuf_free(&body);
    verb_end(&g);
    return rc;
}

/* No shell takes it as a variable: a line for a file. */
static int say_npm(void *ctx, const char *name, const char *value)
{
    (void)ctx;
    (void)value;
    fprintf(stderr, "# npm reads it from a line in .npmrc: %s=${NPM_TOKEN}\n", name);
    return 0;
}

int lease_env(const struct cli_call *c)
{
    const char *set = cli_value(c, "set"), *format = cli_value(c, "format");
    struct env_printer p = {.format = env_format_named(format ? format : "shell")};
    struct lease_env env = {.variable = env_print_one, .npm = say_npm, .ctx = &p};
    struct gateway_call g, given;
    struct err e;
    int rc = verb_begin(&g, c), begun = verb_begin(&given, c);

    if (rc == CLI_OK && (rc = begun) == CLI_OK &&
        (rc = verb_ask(&g, "GET", "/api/v1/credentials", SPAN_NONE, 200)) == CLI_OK)
        rc = issue(&given, c);
    if (rc != CLI_OK)
        goto out;
    env.set = set ? span_str(set) : SPAN_NONE;
    env.credential = lease_env_credential(g.tree, SPAN("name"), span_str(c->word[0]));
    env.lease = member_text(given.tree, "lease");
    env.secret = member_text(given.tree, "secret");
    dynbuf_init(&p.out, TEXT_ROOM);
    env_print_head(&p);
    if (lease_env_each(&env, &e) != 0)
        rc = verb_fail(CLI_RUNTIME, "%s", e.text);
    else
        (void)fwrite(p.out.p, 1, p.out.n, stdout);
    dynbuf_wipe(&p.out);
out:
    verb_end(&given);
    verb_end(&g);
    return rc;
}
