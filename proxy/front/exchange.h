/* One request and its answer, as the front keeps it while a client waits. */
#ifndef PROXY_FRONT_EXCHANGE_H
#define PROXY_FRONT_EXCHANGE_H

#include "common/http/http.h"
#include "proxy/front/websocket.h"
#include "proxy/walk.h"

/* OVER: larger than it may be; the rest is not read. */
enum body_mode {
    BODY_MODE_NONE = 0,
    BODY_MODE_ASKED,
    BODY_MODE_PIPE,
    BODY_MODE_WHOLE,
    BODY_MODE_OVER,
    BODY_MODE_DONE
};

/* How far it is; changed by client_exchange_change alone. */
enum exchange_state {
    EXCHANGE_NONE = 0,
    EXCHANGE_ASKED,     /* the judge was */
    EXCHANGE_ANSWERING, /* an answer has begun: from here on it can only be ended or cut */
    EXCHANGE_SWITCHED   /* it is a WebSocket */
};

/* One request and its answer. A connection has at most one at a time. */
struct exchange {
    enum exchange_state state;
    uint64_t xid;
    enum walk_step step;
    struct http_body reader;
    enum body_mode mode;
    uint64_t declared; /* length of the body, or UINT64_MAX */
    uint64_t credit, max, size;
    struct dynbuf whole; /* the body while it is small */
    int memfd;           /* and when it is not */
    bool is_head, keep_alive, old_client, expects;
    bool writes; /* neither GET nor HEAD */
    /* the answer */
    enum http_framing out; /* how its end is told; HTTP_NO_BODY: nothing of a body is passed on */
    bool close_out;
    uint64_t left; /* of a sized answer */
    uint64_t owed; /* answer bytes taken but not yet credited to the carrier */
    struct websocket websocket;
};

#endif
