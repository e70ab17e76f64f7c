/* Shared by servers.c and begin.c. */
#ifndef BROKER_WORK_SERVERS_IN_H
#define BROKER_WORK_SERVERS_IN_H

#include "broker/work/servers/remote.h"
#include "broker/work/servers/servers.h"
#include "common/control/sse.h"

enum { SERVER_LAST_WORDS = 256 };

/* A lease for what runs in the sandbox, for the turn. */
struct inside {
    struct span credential, lease, secret; /* secret: of a pair, else empty */
    uint64_t expires_ms;
};

struct server {
    struct task *task;
    const struct mcp_server *is;
    enum { SERVER_NONE = 0, SERVER_BEGINS, SERVER_RUNS, SERVER_FAILED } state;
    struct mcp mcp;
    struct remote *remote;        /* over HTTP, or */
    struct errand *errand, *post; /* what it writes; what it is told */
    struct sse sse;
    struct timer *timer;
    char stream[24];
    uint64_t unfed, sent; /* bytes that it has not taken; that are on their way */
    unsigned starts;
    bool ready, answered, broken, over, calls; /* what came of a piece; calls: ord is in flight */
    bool answers;                              /* the time for a try of the newer era is over */
    bool leasing;                              /* it waits for a lease before it can begin */
    uint64_t ord, waiting;                     /* waiting: a bit for each call */
    char words[SERVER_LAST_WORDS + 1];         /* of its standard error */
};

struct servers {
    struct server server[MCP_SERVERS_MAX];
    struct inside inside[MCP_SERVERS_MAX * MCP_VARIABLES_MAX];
    size_t ninside;
    bool thinks; /* a model is to be asked once they are there */
    bool boxing; /* those in the sandbox have not begun yet */
};

/* begin.c */
void server_begin(struct server *s);

/* servers.c: it is of no use any more, with_box: as its sandbox is not; what it is told; and what is heard of it */
void server_lost(struct server *s, const char *words, bool with_box);
void server_tell(struct server *s);
void server_late(void *arg);
void server_heard(void *arg, struct errand *e, enum errand_event ev);
int server_event(void *ctx, const struct api_event *e);
void server_remote(void *arg, enum mcp_event ev);

#endif
