/* What is noted of a call while it runs, for its span. */
#ifndef BROKER_WORK_SEEN_CALL_H
#define BROKER_WORK_SEEN_CALL_H

#include "broker/mcp/mcp.h"

struct seen_of_call {
    uint64_t began_ms; /* when this worker gave it to who runs it, or its intent of one that is followed on; 0: it has
                          not */
    bool late;         /* its time was over before it ended */
    uint64_t request;  /* the number of its request to an MCP server; 0: it is none's */
    bool remote;       /* over HTTP */
    char version[MCP_VERSION_MAX + 1];
};

#endif
