#include "broker/mcp/table/table.h"

#include "policy/load/read/keys.h"
#include "policy/load/read/scalar.h"

#define AT(type, member) offsetof(struct type, member)
enum { START_MS = 60 * 1000, TIMEOUT_MS = 300 * 1000, TIMEOUT_MIN_MS = 1000, TIMEOUT_MAX_MS = 3600 * 1000 };

struct row_server {
    const struct node *at;
    struct item name, url, lease;
    struct items command, read;
    struct list env; /* struct pair */
    struct number timeout, start;
};
struct row_tools {
    const struct node *at;
    struct number version;
    struct list servers;
};

static const struct key server_keys[] = {
    {"command", KEY_TEXTS, AT(row_server, command), 0, .help = "what is run in the sandbox, word by word"},
    {"env", KEY_PAIRS, AT(row_server, env), KEY_SINGLE,
     .help = "its variables: a text, {lease:CREDENTIAL}, {secret:CREDENTIAL}"},
    {"url", KEY_TEXT, AT(row_server, url), 0, .help = "where it is asked over HTTP, through the gateway"},
    {"lease", KEY_TEXT, AT(row_server, lease), 0,
     .help = "of a url: the credential of which a lease is shown; else the gateway puts one in unasked"},
    {"read", KEY_TEXTS, AT(row_server, read), 0, .help = "tools that only read, as the server calls them"},
    {"timeout", KEY_TIME, AT(row_server, timeout), 0, .lo = TIMEOUT_MIN_MS, .hi = TIMEOUT_MAX_MS,
     .help = "of a call; 5m if it is not said"},
    {"start", KEY_TIME, AT(row_server, start), 0, .lo = TIMEOUT_MIN_MS, .hi = TIMEOUT_MAX_MS,
     .help = "until its tools are known; 1m if it is not said"},
    {.type = KEY_END}};
static const struct table server_table = {"a server", sizeof(struct row_server), server_keys};
static const struct key file_keys[] = {
    {"version", KEY_COUNT, AT(row_tools, version), KEY_NEEDED, .lo = 1, .hi = 1, .help = "1"},
    {"servers", KEY_NAMED, AT(row_tools, servers), KEY_NEEDED, .table = &server_table, .help = "MCP servers"},
    {.type = KEY_END}};
static const struct table file_table = {"the file of tools", sizeof(struct row_tools), file_keys};

static const struct span *texts(struct loader *l, const struct items *from)
{
    struct span *v = arena_alloc(&l->a, (from->n + 1) * sizeof(*v));
    for (size_t i = 0; i < from->n && v != NULL; i++)
        v[i] = from->v[i].text;
    if (v == NULL)
        load_problem(l, from->at, "M015", "no memory for the file of tools");
    return v;
}

static bool name_ok(struct span s)
{
    bool ok = s.n > 0 && s.n <= MCP_SERVER_MAX;
    for (size_t i = 0; i < s.n; i++)
        ok &= (s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '-';
    return ok;
}

static bool url_ok(struct span s)
{
    bool ok = (span_starts(s, SPAN("https://")) || span_starts(s, SPAN("http://"))) && s.n <= MCP_URL_MAX;
    size_t slashes = 0;
    for (size_t i = 0; i < s.n; i++) {
        ok &= s.p[i] > 0x20 && s.p[i] < 0x7f && s.p[i] != '#' && s.p[i] != '@';
        slashes += s.p[i] == '/';
    }
    return ok && slashes > 2;
}

static bool variable_ok(struct span s)
{
    return s.n > 0 && span_is_of(s, SPAN("_")) && !(s.p[0] >= '0' && s.p[0] <= '9');
}

/* "{lease:keys}"; what only looks like one is a mistake. */
static bool take_value(struct span s, struct mcp_variable *v)
{
    bool lease = span_starts(s, SPAN("{lease:")), secret = span_starts(s, SPAN("{secret:"));
    v->is = lease ? MCP_LEASE : secret ? MCP_SECRET : MCP_TEXT;
    v->value = s;
    if (!lease && !secret)
        return span_index(s, '{') == s.n;
    v->value = span_from(s, lease ? 7 : 8);
    v->value = span_first(v->value, v->value.n - 1);
    return span_ends(s, SPAN("}")) && v->value.n > 0 && span_index(v->value, '}') == v->value.n;
}

static void take_env(struct loader *l, const struct row_server *r, struct mcp_server *s)
{
    struct mcp_variable *v = arena_alloc(&l->a, (r->env.n + 1) * sizeof(*v));
    if (v == NULL || r->env.n > MCP_VARIABLES_MAX) {
        load_problem(l, r->at, "M014", "at most %d variables are set", MCP_VARIABLES_MAX);
        return;
    }
    for (size_t i = 0; i < r->env.n; i++) {
        const struct pair *p = (const struct pair *)r->env.v + i;
        v[i].name = p->name.text;
        if (!variable_ok(p->name.text) || p->values.n != 1 || !take_value(p->values.v[0].text, &v[i]))
            load_problem(l, p->name.at, "M014",
                         "a variable is a name of letters, digits and _, and a text without a brace, or all of it "
                         "{lease:CREDENTIAL} or {secret:CREDENTIAL}");
    }
    s->variable = v;
    s->variables = r->env.n;
}

/* In the sandbox, or over HTTP. */
static void take_place(struct loader *l, const struct row_server *r, struct mcp_server *s)
{
    bool url = r->url.at != NULL;
    if (url == (r->command.n > 0))
        load_problem(l, r->at, "M012", "a server has a command, which runs in the sandbox, or a url: one of both");
    else if (url && !url_ok(r->url.text))
        load_problem(l, r->url.at, "M016",
                     "a url is http:// or https://, a host, a path and nothing of a name or a #, such as "
                     "https://tools.example/mcp");
    else if (url ? r->env.n > 0 : r->lease.at != NULL)
        load_problem(l, r->at, "M012", "env is a command's, lease is a url's");
    else if (r->command.n > MCP_COMMAND_MAX)
        load_problem(l, r->at, "M012", "a command is 1 to %d words", MCP_COMMAND_MAX);
    s->url = r->url.text;
    s->lease = r->lease.text;
    take_env(l, r, s);
}

static void take_server(struct loader *l, const struct row_server *r, struct mcp_server *s)
{
    *s = (struct mcp_server){.name = r->name.text,
                             .word = texts(l, &r->command),
                             .words = r->command.n,
                             .read = texts(l, &r->read),
                             .reads = r->read.n,
                             .timeout_ms = r->timeout.at != NULL ? r->timeout.v : TIMEOUT_MS,
                             .start_ms = r->start.at != NULL ? r->start.v : START_MS};
    if (!name_ok(r->name.text))
        load_problem(l, r->at, "M011", "a server's name is 1 to %d of a-z 0-9 -", MCP_SERVER_MAX);
    take_place(l, r, s);
}

static void take(struct loader *l, const struct row_tools *r, struct mcp_table *t)
{
    if (r->servers.n == 0 || r->servers.n > MCP_SERVERS_MAX) {
        load_problem(l, r->at, "M013", "1 to %d servers are read", MCP_SERVERS_MAX);
        return;
    }
    for (size_t i = 0; i < r->servers.n; i++)
        take_server(l, (const struct row_server *)r->servers.v + i, &t->server[t->n++]);
}

int mcp_table_read(const char *file, struct span text, struct arena *a, struct mcp_table *out, struct err *e)
{
    struct loader l = {.a = *a, .e = e, .file = file};
    struct row_tools row = {0};
    const struct node *root = NULL;
    *out = (struct mcp_table){.n = 0};
    if (text.n > MCP_TABLE_TEXT_MAX)
        load_problem(&l, NULL, "M015", "the file of tools is larger than %d bytes", MCP_TABLE_TEXT_MAX);
    else
        root = yaml_tree(&l, file, text);
    if (root != NULL)
        keys_decode_map(&l, root, &file_table, &row);
    if (root != NULL && !l.failed)
        take(&l, &row, out);
    bool bad = root == NULL || l.failed;
    if (bad)
        *out = (struct mcp_table){.n = 0};
    *a = l.a;
    return bad ? -1 : 0;
}

const struct mcp_server *mcp_server_of(const struct mcp_table *t, struct span tool)
{
    for (size_t i = 0; i < t->n; i++) {
        struct span name = t->server[i].name;
        if (span_starts(tool, name) && span_starts(span_from(tool, name.n), SPAN("__")))
            return &t->server[i];
    }
    return NULL;
}

enum call_class mcp_class(const struct mcp_server *s, const struct mcp_tool *tool)
{
    bool reads = false;
    for (size_t i = 0; i < s->reads; i++)
        reads |= span_eq(s->read[i], tool->own);
    return reads && !tool->writes ? CALL_READ : CALL_UNSAFE;
}
