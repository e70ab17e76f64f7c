/* One MCP server over HTTP, through the gateway's proxy: its requests, one after another, as the conversation's own
 * identity; what they say is broker/mcp/http.h's. */
#ifndef BROKER_WORK_REMOTE_H
#define BROKER_WORK_REMOTE_H

#include "broker/mcp/http.h"
#include "broker/work/wire.h"

struct remote;
/* Something came of it: never NOTHING. The remote may be freed in it. */
typedef void remote_fn(void *arg, enum mcp_event ev);

/* m: begun by mcp_begin; its owner frees it, after this. url, token, lease: copied; lease may be empty. Nothing is
 * sent before remote_tell, which may call fn. NULL: no memory. */
struct remote *remote_begin(struct work *w, struct mcp *m, const struct wire_ask *ask, remote_fn *fn,
                            void *arg) MUSTCHECK;
void remote_free(struct remote **r);
/* The machine has something to say, or gave up what it waited for. */
void remote_tell(struct remote *r);

#endif
