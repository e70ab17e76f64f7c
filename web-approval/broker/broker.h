/* The broker, as the desk sees it. Its callers bring keys of kind `broker`; its turns act for a tenant, over streams
 * like the dock's callers', and only as long as the tenant has such a key (the operator's own, "default", always
 * may).
 *
 * A conversation is known by its id. At the gateway it has an identity of its own, `m-ID`, by which models are asked,
 * and a sandbox, `c-ID`, for its tools; both are of the session `c-ID`. Whoever takes a turn over asks for the
 * identity anew: its token before that, its leases and so the worker before are good for nothing from then on. What
 * changes anything in the sandbox is done only with the token of now, which is the lane. */
#ifndef WEB_APPROVAL_BROKER_BROKER_H
#define WEB_APPROVAL_BROKER_BROKER_H

#include "proxy/words.h"
#include "web-approval/desk.h"

struct starting;

/* Whose token, as M_BROKER_WHO says it. */
void broker_who(struct desk *d, const struct digest *hash, struct dynbuf *to);
/* May a turn of this tenant's ask? *who, if it is DOCK_OPEN. */
enum dock_opened broker_tenant(struct desk *d, struct span tenant, struct caller *who);
/* x->arg is a conversation's id. -1, answered. */
int broker_conversation(struct exchange *x) MUSTCHECK;
/* Does the request bring the lane (Countersign-Lane) of the conversation whose sandbox this is? False: answered. */
bool broker_lane(struct exchange *x, struct span sandbox);
/* A start of the broker's: the name it has to have, its lane, image and session. -1, answered. */
int broker_take(struct exchange *x, const struct json *name, struct starting *s) MUSTCHECK;

/* Whoever makes a sandbox may call it so: names of the identities that send spans are the broker's. -1, answered. */
int broker_name_free(struct exchange *x, struct span name) MUSTCHECK;

void api_broker_identity(struct exchange *x);
void api_broker_identity_end(struct exchange *x);
/* x->arg is the number of a worker: the identity `otlp-N` by which it sends spans, anew each time, of the operator's
 * own tenant. */
void api_broker_telemetry(struct exchange *x);
void api_broker_lease(struct exchange *x);
void api_broker_runs(struct exchange *x);

#endif
