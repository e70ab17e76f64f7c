/* Shared by the files of this room. */
#ifndef BROKER_MCP_MCP_IN_H
#define BROKER_MCP_MCP_IN_H

#include "broker/mcp/mcp.h"
#include "common/json/json.h"

#define MCP_MODERN SPAN("2026-07-28")
#define MCP_LEGACY SPAN("2025-11-25")

/* said.c: each is a message for the server. */
void say_discover(struct mcp *m);
void say_initialize(struct mcp *m);
void say_initialized(struct mcp *m);
void say_list(struct mcp *m, struct span cursor);
/* given, state: of another round; NULL: of the first. False: what it wants is not given here; why it is says why. */
bool say_call(struct mcp *m, const struct json *wanted, const struct json *state) MUSTCHECK;
/* An answer to its request. */
void say_answer(struct mcp *m, const struct json *request);

/* heard.c: tools of a page, taken in; the result of a call, as a text. */
void hear_tools(struct mcp *m, const struct json *list);
void hear_result(struct mcp *m, const struct json *result);
void hear_refusal(struct mcp *m, const struct json *error);
/* Over HTTP: a status that is no success, with such an error or none. */
void hear_status(struct mcp *m, unsigned status, const struct json *error, struct span body);
/* The call ends so. */
void end_call(struct mcp *m, enum call_end end, struct span words);

/* params.c: which arguments of a tool stand in header fields, too (`x-mcp-header`). path: the names that lead there.
 * False of fn ends it. */
enum { MCP_PARAM_DEPTH = 8 };
struct mcp_param {
    struct span header;
    struct span path[MCP_PARAM_DEPTH];
    size_t depth;
};
typedef bool mcp_param_fn(void *ctx, const struct mcp_param *p);
/* False: one of them is not as it may be, or fn said so. */
bool mcp_params(const struct json *schema, mcp_param_fn *fn, void *ctx) MUSTCHECK;
/* Are all of them as they may be? */
bool mcp_params_ok(const struct json *schema) MUSTCHECK;

#endif
