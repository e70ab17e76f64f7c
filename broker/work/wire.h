/* One request to a model or an MCP server, through the gateway's proxy, as the conversation's own identity: for https
 * a tunnel with TLS to the gateway's CA, for http an absolute target. */
#ifndef BROKER_WORK_WIRE_H
#define BROKER_WORK_WIRE_H

#include "broker/work/work.h"

enum wire_event {
    WIRE_FAILED = 0, /* w->why; nothing more comes */
    WIRE_HEAD,       /* w->head */
    WIRE_DATA,       /* data of its body */
    WIRE_END         /* the body is whole */
};
struct wire;
typedef void wire_fn(void *arg, enum wire_event ev, struct span data);

struct wire_ask {
    struct span url; /* of the model's messages, or the server's */
    struct span token, lease;
    enum model_protocol protocol;
    const struct http_field *field; /* of no model: its own; the lease is then shown as a bearer's */
    size_t fields;
    bool get; /* and no POST: there is no body */
    struct span body;
};

/* fn may be called until wire_free, never before this has returned. NULL: *why says it. */
struct wire *wire_begin(struct work *w, const struct wire_ask *ask, wire_fn *fn, void *arg,
                        const char **why) MUSTCHECK;
void wire_free(struct wire **w);
/* Has any of the request left? It may have been heard, whatever comes of it. */
bool wire_left(const struct wire *w);
/* Of WIRE_HEAD. */
const struct http_head *wire_head(const struct wire *w);
const char *wire_why(const struct wire *w);

#endif
