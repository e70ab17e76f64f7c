/* One MCP server, as a machine: bytes of its standard output in, bytes for its standard input out, and now and then
 * something came of it; over HTTP (http.h), messages. It has no clock: its owner says when an answer is late. Nothing
 * it says is trusted. */
#ifndef BROKER_MCP_MCP_H
#define BROKER_MCP_MCP_H

#include "broker/turn.h"
#include "common/arena.h"
#include "common/dynbuf.h"
#include "common/err.h"

enum {
    MCP_LINE_MAX = 1024 * 1024,  /* bytes of one message */
    MCP_TOOLS_MAX = 64,          /* of one server; what comes behind them is left out */
    MCP_PAGES_MAX = 16,          /* in which they are listed */
    MCP_VERSION_MAX = 10,        /* bytes of a revision's name */
    MCP_SERVER_MAX = 16,         /* bytes of a server's name here */
    MCP_NAME_MAX = 64,           /* bytes of a tool's, with the server's and "__" before it: what every model takes */
    MCP_SCHEMA_MAX = 32 * 1024,  /* bytes of a tool's schemas, each */
    MCP_WORDS_MAX = 4 * 1024,    /* bytes of its description that are kept */
    MCP_REQUESTS_MAX = 64,       /* requests of a server that are answered, for each of ours */
    MCP_STRAYS_MAX = 64,         /* lines that are no message, in all */
    MCP_ROUNDS_MAX = 4,          /* so often one call is given what it asks for */
    MCP_RESULT_MAX = 256 * 1024, /* bytes of a result that are kept */
    MCP_TRACE_MAX = 55,          /* bytes of a traceparent */
    /* Bytes of the arguments of a call that has one. Of a longer request the gateway knows by its bytes alone that it
     * is the same once more, and these would be others when another worker sends it. So long that it reads any of
     * them as JSON, however many values it has (proxy/judge/tickets/retry.c). */
    MCP_TRACED_MAX = 48 * 1024,
    MCP_OUT_MAX = 4 * MCP_LINE_MAX /* bytes that wait to be written */
};

enum mcp_state {
    MCP_NONE = 0, /* broken: why says it */
    MCP_DISCOVERING,
    MCP_INITIALIZING,
    MCP_LISTING,
    MCP_AT_REST,
    MCP_CALLING
};

struct mcp_tool {
    struct span name, own;      /* own: what the server calls it */
    struct span description;    /* may be empty */
    struct span schema, output; /* of its arguments; of its result: p NULL where there is none */
    bool writes;                /* the server itself says that it does */
};

struct mcp {
    char server[MCP_SERVER_MAX + 1];
    enum mcp_state state;
    bool modern;                       /* 2026-07-28: no session, and no requests of the server's */
    bool http;                         /* what its tools say of header fields counts */
    bool awaits;                       /* our last request has no answer yet */
    char version[MCP_VERSION_MAX + 1]; /* of the older era, once it is known */
    uint64_t id;                       /* of our last request */
    uint64_t given_up;                 /* of the question for its era, when the other one was tried; 0: none */
    char trace[MCP_TRACE_MAX + 1];     /* whose part our next requests are; empty: they do not say it */
    unsigned pages, requests, strays, rounds;
    struct arena arena; /* of the tools */
    struct mcp_tool tool[MCP_TOOLS_MAX];
    size_t n, left_out;
    struct dynbuf in, out; /* out: to be written, dropped by its owner as it is */
    struct err why;
    /* the call */
    const struct mcp_tool *called;
    struct dynbuf args, notes, result; /* notes: what was declined */
    enum call_end end;
};

enum mcp_event {
    MCP_NOTHING = 0,
    MCP_READY,    /* its tools are known */
    MCP_ANSWERED, /* end and result, until the next call */
    MCP_BROKEN    /* it is of no use any more: why */
};

/* Begins, with something to write. server: 1 to MCP_SERVER_MAX of a-z 0-9 -. trace: a traceparent of W3C, which each
 * request until the first call has; empty: none. */
void mcp_begin(struct mcp *m, struct span server, struct span trace);
void mcp_free(struct mcp *m);
/* What it wrote. At most one of READY and ANSWERED comes of one of our own requests. */
enum mcp_event mcp_feed(struct mcp *m, struct span bytes) MUSTCHECK;
/* The same of one message, whole. */
enum mcp_event mcp_take(struct mcp *m, struct span message) MUSTCHECK;
/* Over HTTP: our last request was answered with a status that is no success, and this. Of a call by some of them
 * nobody knows whether it was done: CALL_UNKNOWN. */
enum mcp_event mcp_refused(struct mcp *m, unsigned status, struct span body) MUSTCHECK;
/* It is of no use any more: BROKEN. */
enum mcp_event mcp_broken(struct mcp *m, const char *why) MUSTCHECK;
/* The answer that is waited for is late: an era is given up (NOTHING), or the server is (BROKEN). */
enum mcp_event mcp_late(struct mcp *m) MUSTCHECK;
/* The tool of this whole name; NULL: it has none. */
const struct mcp_tool *mcp_tool_of(const struct mcp *m, struct span name);
/* The revision that is spoken, once it is known; else empty. */
struct span mcp_version(const struct mcp *m);
/* args: a JSON object on one line, of at most half a message; trace: as above, of the call, in each of its rounds.
 * -1: it does not rest, or they are too long; nothing was said. */
int mcp_call(struct mcp *m, const struct mcp_tool *tool, struct span args, struct span trace) MUSTCHECK;

#endif
