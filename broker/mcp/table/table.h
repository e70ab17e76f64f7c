/* Which MCP servers a conversation has, in its sandbox or over HTTP, from the operator's file. */
#ifndef BROKER_MCP_TABLE_TABLE_H
#define BROKER_MCP_TABLE_TABLE_H

#include "broker/mcp/mcp.h"

enum {
    MCP_SERVERS_MAX = 4,
    MCP_COMMAND_MAX = 64,            /* words of a server's command */
    MCP_VARIABLES_MAX = 16,          /* of its environment */
    MCP_URL_MAX = 1024,              /* bytes of its URL */
    MCP_TABLE_TEXT_MAX = 256 * 1024, /* bytes of the file */
    MCP_TABLE_ARENA_MAX = 16 * 1024 * 1024
};

/* A variable of a server's environment: a text, or a lease of this credential, or the second half of one that is a
 * pair. */
struct mcp_variable {
    struct span name, value;
    enum { MCP_TEXT = 0, MCP_LEASE, MCP_SECRET } is;
};
struct mcp_server {
    struct span name;
    const struct span *word; /* of its command; none: it is asked over HTTP */
    size_t words;
    const struct mcp_variable *variable;
    size_t variables;
    struct span url, lease;  /* lease: the credential of which one is shown; empty: none is */
    const struct span *read; /* the server's names of tools that only read, as the operator says */
    size_t reads;
    uint64_t timeout_ms; /* of a call */
    uint64_t start_ms;   /* until its tools are known */
};
struct mcp_table {
    struct mcp_server server[MCP_SERVERS_MAX];
    size_t n;
};

/* file: its name in problems. What comes out is in the arena, born with MCP_TABLE_ARENA_MAX. -1, with file:line:col
 * and what to do in *e. */
int mcp_table_read(const char *file, struct span text, struct arena *a, struct mcp_table *out,
                   struct err *e) MUSTCHECK;
/* The server of which a tool's whole name is; NULL: of none. */
const struct mcp_server *mcp_server_of(const struct mcp_table *t, struct span tool);
/* What a call of this tool is. */
enum call_class mcp_class(const struct mcp_server *s, const struct mcp_tool *tool);

#endif
