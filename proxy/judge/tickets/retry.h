/* What honest clients vary in a request from one try to the next, beside the fields that digest.c names: the parts of
 * its path, query and body that the join key leaves out, a row for each kind of request. The digest covers them, and
 * the bytes that leave are those first held. Pure. */
#ifndef PROXY_JUDGE_RETRY_H
#define PROXY_JUDGE_RETRY_H

#include "common/id.h"
#include "common/json/rpc.h"
#include "proxy/wire.h"

/* JSON is looked into up to here; what is longer counts as it is. */
enum { RETRY_JSON_MAX = 256 * 1024 };

/* What of a request a retry repeats exactly. */
struct retry {
    uint32_t row; /* which row of the table says so; 0: none, all of it counts as it is */
    struct span path, query;
    bool has_query;
    bool without_type; /* the body's digest has what counts of its Content-Type */
    bool has_body;     /* body stands for it; else it counts as it is */
    struct digest body;
    size_t nid; /* of JSON-RPC: its id, as JSON, by which its client knows the answer (common/json/rpc.h); 0: it has
                   none */
    char id[RPC_ID_MAX];
};

/* What is not wholly of a row's kind, beyond doubt, is of no row. */
void retry_of(const struct wire_request *r, struct span body, struct retry *out);

#endif
