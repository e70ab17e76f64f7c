/* One MCP server over streamable HTTP, pure: what its machine (mcp.h) has to say becomes requests, what is answered
 * goes to the machine. Its owner sends one request at a time and, beside one whose answer is awaited, one of those of
 * which nothing comes (aside). Nothing is followed elsewhere, and what is listened to without a request is nothing.
 */
#ifndef BROKER_MCP_HTTP_H
#define BROKER_MCP_HTTP_H

#include "broker/mcp/mcp.h"
#include "common/control/sse.h"
#include "common/http/http.h"

enum {
    MCP_SESSION_MAX = 256,       /* bytes of what it calls the session */
    MCP_EVENT_ID_MAX = 256,      /* bytes of an event's id */
    MCP_PARAM_MAX = 4 * 1024,    /* bytes of an argument that stands in a field, as it is sent */
    MCP_FIELDS_MAX = 40,         /* of a request */
    MCP_RETURNS_MAX = 8,         /* so often one answer that was cut off is asked for */
    MCP_RETRY_MS = 1000,         /* then, if it does not say when */
    MCP_RETRY_MAX_MS = 30 * 1000 /* and whatever it says */
};

struct mcp_request {
    bool get;   /* what was cut off; else a POST */
    bool aside; /* nothing comes of it but a status */
    struct http_field field[MCP_FIELDS_MAX];
    size_t n;
    struct span body; /* of the machine's out */
};
/* The head of an answer. session: its Mcp-Session-Id, empty if it has none. */
struct mcp_answer {
    unsigned status;
    struct span type, session;
};

struct mcp_http {
    struct mcp *m;
    char session[MCP_SESSION_MAX + 1], last[MCP_EVENT_ID_MAX + 1];
    struct arena arena; /* of a request's fields */
    size_t taken;       /* bytes of the machine's out that the last request has */
    uint64_t id;        /* of the request whose answer is awaited; 0: none is */
    bool aside, begins; /* one of those is on its way; the awaited one opens a session */
    enum { MCP_BODY_NONE = 0, MCP_BODY_MESSAGE, MCP_BODY_EVENTS, MCP_BODY_REFUSAL } body;
    unsigned status, returns;
    bool cut, again; /* the answer is to be asked for: later, now */
    struct dynbuf text;
    struct sse sse;
    enum mcp_event came;
};

/* m: begun by mcp_begin, and freed after it by its owner. */
void mcp_http_begin(struct mcp_http *h, struct mcp *m);
void mcp_http_free(struct mcp_http *h);
/* What is to be sent now: 1, good until mcp_http_sent. 0: nothing, or not yet. -1: what was to be said cannot be
 * sent; *ev has come of it. */
int mcp_http_next(struct mcp_http *h, struct mcp_request *r, enum mcp_event *ev) MUSTCHECK;
void mcp_http_sent(struct mcp_http *h, const struct mcp_request *r);
/* Of the awaited answer: its head, some of its body, its end. whole: as it was framed; words: why not, of our own. */
enum mcp_event mcp_http_head(struct mcp_http *h, const struct mcp_answer *a) MUSTCHECK;
enum mcp_event mcp_http_data(struct mcp_http *h, struct span bytes) MUSTCHECK;
enum mcp_event mcp_http_end(struct mcp_http *h, bool whole, const char *words) MUSTCHECK;
/* One aside was answered with this status; 0: with none. */
enum mcp_event mcp_http_aside(struct mcp_http *h, unsigned status) MUSTCHECK;
/* Nothing more is awaited of the request: its connection is of no use any more. */
bool mcp_http_rests(const struct mcp_http *h);
/* The answer was cut off and can be asked for, in so many ms: then mcp_http_again. 0: there is no such. */
uint64_t mcp_http_wait(const struct mcp_http *h);
void mcp_http_again(struct mcp_http *h);
/* The awaited answer is given up. */
void mcp_http_drop(struct mcp_http *h);

#endif
