/* Answers of JSON-RPC, whose client knows them by the id of its request alone: a retry has an id of its own, and what
 * it gets may be the answer to the request that was held first. Pure. */
#ifndef COMMON_JSON_RPC_H
#define COMMON_JSON_RPC_H

#include "common/dynbuf.h"

enum {
    RPC_ID_MAX = 64,              /* of an id as JSON: a whole number, or a text that needs no escapes */
    RPC_MESSAGE_MAX = 1024 * 1024 /* what is longer goes on as it is */
};

/* An answer on its way: JSON, or a stream of events with a message in each line of data. */
struct rpc_answer {
    bool is, events, passes;
    struct dynbuf held; /* a message that is not complete */
};

/* content_type: the answer's. Nothing is held yet; what is neither JSON nor events goes on as it is (is: false). */
void rpc_answer_begin(struct rpc_answer *a, struct span content_type);
/* Append to out what can go on, with this id in each response, in the place of another number or text; what the
 * server asks or tells by itself keeps its own. last: nothing follows. -1: no memory, or out is full. */
int rpc_answer_feed(struct rpc_answer *a, struct span id, struct span in, bool last, struct dynbuf *out) MUSTCHECK;
void rpc_answer_end(struct rpc_answer *a);

#endif
