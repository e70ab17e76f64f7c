/* What handlers of the control plane share: sandboxes as the desk lists them, and as callers are told of them. */
#ifndef PROXY_DOCK_CONTROL_H
#define PROXY_DOCK_CONTROL_H

#include "proxy/dock/ask.h"

enum { CONTROL_LIST_MAX = 1000, CONTROL_PAGE = 100 /* rows of a page; unless another number is asked for */ };

/* As the desk lists it. */
struct box {
    struct span name;
    const struct json *note;                              /* what was said when it was started; NULL: nothing */
    bool paused;                                          /* or idle, which is more than paused */
    uint64_t started_ms, left_ms, memory, disk, restored; /* restored: so often, after it was idle */
};
void box_read(const struct call *x, const struct json *j, struct box *b);
/* Of the desk's list, the one of x->arg. False: answered. */
bool box_find(struct call *x, unsigned status, struct span body, const char *list, const struct json **found);
/* Its name, and how the SDK is to speak to it, as one object. */
struct box_open {
    struct span name, template;
    uint64_t restored;
    bool again; /* its files were restored just now, and not what ran in it */
};
void box_put_open(const struct call *x, struct jsonw *w, const struct box_open *o);
void control_reply_open(struct call *x, unsigned status, const struct box_open *o);
/* A member of what the desk is asked: what opens it, hashed; restored: so often it was by then. */
void control_put_access(const struct call *x, struct jsonw *w, struct span name, uint64_t restored);
/* It is to be had without what runs in it, which is not had. */
bool control_without_memory(const struct json *j);

/* The body as an object; an empty one counts as {}. NULL: answered. */
const struct json *control_body(struct call *x);
/* Its timeout in seconds. -1, answered. */
int control_timeout_take(struct call *x, const struct json *j, bool needed, uint64_t *s) MUSTCHECK;

struct record;
/* A sandbox that is to be started. */
struct start {
    struct span name;       /* control_name */
    struct span note, from; /* record_text; from: a snapshot, or empty */
    uint64_t timeout_s;
    bool alone;              /* without a network */
    const struct record *is; /* what else it may reach */
};
/* A name that nobody else has; p NULL: the system has no randomness to give, or there is no memory. */
struct span control_name(struct call *x) MUSTCHECK;
/* fn hears what came of it. */
void control_start(struct call *x, const struct start *s, ask_fn *fn);

#endif
