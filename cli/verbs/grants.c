/* countersign grants list|revoke */
#include <stdio.h>
#include <time.h>

#include "cli/table.h"
#include "cli/verb.h"
#include "cli/verbs/grants.h"

enum { SHORT_ID = 10, PATH_ROOM = 512, WORDS_ROOM = 32 * 1024 };

static void add_names(struct table *t, const char *before, const struct json *list)
{
    for (const struct json *i = list ? list->child : NULL; i; i = i->next) {
        table_add(t, i == list->child ? before : ", ");
        table_add_text(t, member_text(i, "name"));
        if (json_get(i, SPAN("value"))) {
            table_add(t, "=");
            table_add_text(t, member_text(i, "value"));
        }
    }
}

static void covers(struct table *t, const struct json *of, const struct json *shape)
{
    table_add_text(t, member_text(of, "method"));
    table_add(t, " ");
    table_add_text(t, member_text(of, "host"));
    table_add_text(t, member_text(shape, "path"));
    add_names(t, " ?", json_get(shape, SPAN("query")));
    add_names(t, " with ", json_get(shape, SPAN("names")));
}

static void put_row(struct table *t, const struct json *g)
{
    char until[32];
    struct span state = member_text(g, "state");

    table_text(t, span_first(member_text(g, "id"), SHORT_ID));
    table_text(t, span_eq(state, SPAN("other-policy")) ? SPAN("void: another policy") : state);
    table_cell(t, "%llu of %llu", (unsigned long long)(member_u64(g, "uses_max") - member_u64(g, "uses")),
               (unsigned long long)member_u64(g, "uses_max"));
    table_cell(t, "%s", time_text(member_u64(g, "expires_ms"), until));
    table_text(t, member_text(g, "sandbox"));
    table_text(t, member_text(g, "by"));
    covers(t, g, json_get(g, SPAN("shape")));
    table_next(t);
    table_row(t);
}

int grants_list(const struct cli_call *c)
{
    struct gateway_call g;
    struct table t;
    bool all = cli_flag(c, "all");
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", "/api/v1/grants", SPAN_NONE, 200);
    if (rc == CLI_OK && g.json) {
        verb_print_answer(&g);
    } else if (rc == CLI_OK) {
        const struct json *list = json_get(g.tree, SPAN("grants"));
        table_begin(&t, "ID\tSTATE\tLEFT\tUNTIL\tSANDBOX\tBY\tCOVERS");
        for (const struct json *i = list ? list->child : NULL; i; i = i->next)
            if (all || span_eq(member_text(i, "state"), SPAN("live")))
                put_row(&t, i);
        table_end(&t, all ? "no grant was given" : "nothing is approved ahead");
    }
    verb_end(&g);
    return rc;
}

static int find(struct gateway_call *g, const char *given, char id[ID_TEXT + 1])
{
    char path[PATH_ROOM];
    size_t n = strlen(given);

    if (n < 4 || n > ID_TEXT || strspn(given, "0123456789abcdefghjkmnpqrstvwxyz") != n)
        return verb_fail(CLI_USAGE, "%s is not a grant's id, nor the first four or more characters of one", given);
    (void)snprintf(path, sizeof(path), "/api/v1/grants?prefix=%s", given);
    int rc = verb_ask(g, "GET", path, SPAN_NONE, 200);
    if (rc != CLI_OK)
        return rc;
    const struct json *list = json_get(g->tree, SPAN("grants"));
    if (!list || list->count == 0)
        return verb_fail(CLI_RUNTIME, "no grant begins with %s", given);
    if (list->count > 1)
        return verb_fail(CLI_USAGE, "more than one grant begins with %s: say more of it", given);
    struct span text = member_text(list->child, "id");
    if (text.n != ID_TEXT)
        return verb_fail(CLI_RUNTIME, "the gateway's answer is not understood");
    memcpy(id, text.p, ID_TEXT);
    id[ID_TEXT] = '\0';
    return CLI_OK;
}

int grants_revoke(const struct cli_call *c)
{
    const char *reason = cli_value(c, "reason");
    char id[ID_TEXT + 1], path[PATH_ROOM];
    struct gateway_call g;
    struct dynbuf body;
    struct jsonw w;
    int rc = verb_begin(&g, c);

    dynbuf_init(&body, WORDS_ROOM);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    if (reason)
        jsonw_kv(&w, "reason", span_str(reason));
    jsonw_end_object(&w);
    if (rc == CLI_OK && (rc = find(&g, c->word[0], id)) == CLI_OK) {
        (void)snprintf(path, sizeof(path), "/api/v1/grants/%s/revoke", id);
        rc = verb_ask(&g, "POST", path, dynbuf_span(&body), 204);
    }
    if (rc == CLI_OK && !g.json)
        printf("%.*s revoked: nothing is approved by it any more\n", SHORT_ID, id);
    dynbuf_free(&body);
    verb_end(&g);
    return rc;
}

/* --- given with an approval ------------------------------------------------- */

/* 90, 30s, 15m, 2h: milliseconds; 0: it is none. */
static uint64_t time_of(const char *s)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"", 1000}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}};
    size_t n = strspn(s, "0123456789");
    uint64_t v;

    if (n == 0 || n > 6 || span_u64(span_of(s, n), 1000000, &v) != 0)
        return 0;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(s + n, units[i].unit) == 0)
            return v * units[i].ms;
    return 0;
}

int grants_asked(const struct cli_call *c, uint64_t *uses, uint64_t *for_ms)
{
    const char *n = cli_value(c, "uses"), *time = cli_value(c, "for");

    *uses = *for_ms = 0;
    if (!n && !time)
        return CLI_OK;
    if (!n || !time)
        return verb_fail(CLI_USAGE, "--uses and --for belong together: so many more like it, for so long");
    if (span_u64(span_str(n), UINT32_MAX, uses) != 0 || *uses == 0)
        return verb_fail(CLI_USAGE, "--uses is a whole number above zero");
    *for_ms = time_of(time);
    return *for_ms ? CLI_OK : verb_fail(CLI_USAGE, "--for is a time, such as 90s, 10m or 2h");
}

int grants_say(struct gateway_call *g, const char *ticket, const struct json *t, uint64_t uses, uint64_t for_ms)
{
    char path[PATH_ROOM], until[32];
    struct dynbuf words;
    struct arena a;
    int rc;

    /* What the next question drops. */
    arena_init(&a, WORDS_ROOM);
    struct span sandbox = arena_copy(&a, member_text(t, "sandbox")),
                method = arena_copy(&a, member_text(t, "method")), host = arena_copy(&a, member_text(t, "host"));
    dynbuf_init(&words, WORDS_ROOM);
    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%s/grant", ticket);
    if ((rc = verb_ask(g, "GET", path, SPAN_NONE, 200)) != CLI_OK)
        goto out;
    uint64_t most = member_u64(g->tree, "uses"), longest = member_u64(g->tree, "for_ms");
    if (most == 0)
        rc = verb_fail(CLI_RUNTIME, "no grant may be given with it, so nothing was decided: its rule allows none, "
                                    "another policy held it, or it has no shape (countersign-policy(5), GRANTS)");
    else if (uses > most || for_ms > longest)
        rc = verb_fail(CLI_RUNTIME, "its rule allows at most %llu more, for %llu s; nothing was decided",
                       (unsigned long long)most, (unsigned long long)longest / 1000);
    if (rc != CLI_OK || g->json)
        goto out;
    const struct json *shape = json_get(g->tree, SPAN("shape"));
    (void)dynbuf_addf(&words, "# and up to %llu more until %s from ", (unsigned long long)uses,
                      time_text((uint64_t)time(NULL) * 1000 + for_ms, until));
    dynbuf_add(&words, sandbox);
    dynbuf_addf(&words, ", if they are %.*s %.*s%.*s", SPAN_FMT(method), SPAN_FMT(host),
                SPAN_FMT(member_text(shape, "path")));
    for (int i = 0; i < 2; i++) {
        const struct json *list = json_get(shape, i ? SPAN("names") : SPAN("query"));
        for (const struct json *n = list ? list->child : NULL; n; n = n->next) {
            dynbuf_addf(&words, "%s%.*s",
                        n != list->child ? ", "
                        : i              ? " with "
                                         : " ?",
                        SPAN_FMT(member_text(n, "name")));
            if (json_get(n, SPAN("value")))
                dynbuf_addf(&words, "=%.*s", SPAN_FMT(member_text(n, "value")));
        }
    }
    print_text(dynbuf_span(&words));
    putchar('\n');
out:
    dynbuf_free(&words);
    arena_free(&a);
    return rc;
}
