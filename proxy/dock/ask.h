/* What handlers ask the desk: a request whose answer is JSON, read whole. */
#ifndef PROXY_DOCK_ASK_H
#define PROXY_DOCK_ASK_H

#include "proxy/dock/dock.h"

/* The desk's answer: its status (401 and 503 also if there is none; then body is a sentence of ours, as JSON is of
 * the desk's: reply_desk hands both on). */
typedef void ask_fn(struct call *x, unsigned status, struct span body);

/* "/api/v1/sandboxes/NAME" and what follows; NULL: no memory. */
struct span ask_box(struct call *x, struct span box, const char *rest) MUSTCHECK;
/* target?path=... with the path written as a query has it. */
struct span ask_path(struct call *x, struct span target, const char *key, struct span value) MUSTCHECK;
/* Ask, with the caller's own token; json.p NULL: no body. x waits until fn is called, which answers it or asks again.
 * With control's calls the token is a key. */
void ask_desk(struct call *x, const char *method, struct span target, struct span json, ask_fn *fn);

/* What the desk has of the sandbox of an envd call, from its list (/api/v1/sandboxes/started): so its token is a good
 * one. NULL: answered. */
const struct json *ask_own(struct call *x, unsigned status, struct span body);

/* Begin and end the JSON of a request. */
struct ask_json {
    struct dynbuf b;
    struct jsonw w;
};
void ask_json_begin(struct ask_json *j);
/* In the arena; p NULL: no memory. */
struct span ask_json_end(struct call *x, struct ask_json *j) MUSTCHECK;

#endif
