#include "broker/mcp/table/table.h"

#include "policy/load/read/keys.h"
#include "policy/load/read/scalar.h"

#define AT(type, member) offsetof(struct type, member)
enum { TIMEOUT_MS = 300 * 1000, TIMEOUT_MIN_MS = 1000, TIMEOUT_MAX_MS = 3600 * 1000 };

struct row_server {
    const struct node *at;
    struct item name;
    struct items command, read;
    struct number timeout;
};
struct row_tools {
    const struct node *at;
    struct number version;
    struct list servers;
};

static const struct key server_keys[] = {
    {"command", KEY_TEXTS, AT(row_server, command), KEY_NEEDED, .help = "what is run in the sandbox, word by word"},
    {"read", KEY_TEXTS, AT(row_server, read), 0, .help = "tools that only read, as the server calls them"},
    {"timeout", KEY_TIME, AT(row_server, timeout), 0, .lo = TIMEOUT_MIN_MS, .hi = TIMEOUT_MAX_MS,
     .help = "of a call; 5m if it is not said"},
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

static void take_server(struct loader *l, const struct row_server *r, struct mcp_server *s)
{
    *s = (struct mcp_server){.name = r->name.text,
                             .word = texts(l, &r->command),
                             .words = r->command.n,
                             .read = texts(l, &r->read),
                             .reads = r->read.n,
                             .timeout_ms = r->timeout.at != NULL ? r->timeout.v : TIMEOUT_MS};
    if (!name_ok(r->name.text))
        load_problem(l, r->at, "M011", "a server's name is 1 to %d of a-z 0-9 -", MCP_SERVER_MAX);
    if (r->command.n == 0 || r->command.n > MCP_COMMAND_MAX)
        load_problem(l, r->at, "M012", "a command is 1 to %d words", MCP_COMMAND_MAX);
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
