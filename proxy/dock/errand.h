/* One request to the desk, on a stream of its own that it opens with its caller's token. */
#ifndef PROXY_DOCK_ERRAND_H
#define PROXY_DOCK_ERRAND_H

#include "proxy/dock/dock.h"

struct conn;
struct frame;

enum errand_event {
    ERRAND_NONE = 0, /* it failed: e->status 401 (the token is unknown) or 503, e->why says it */
    ERRAND_HEAD,     /* e->status; of an errand that is `whole` not said */
    ERRAND_DATA,     /* e->data: bytes of the answer; of one that is whole all of it, and it is over */
    ERRAND_END,      /* the answer is over, as it should be; of one that is whole not said */
    ERRAND_ROOM,     /* more of the request's body may be written */
};
typedef void errand_fn(void *arg, struct errand *e, enum errand_event ev);

struct errand {
    struct errand *next;
    struct dock *dock;
    errand_fn *fn;
    void *arg;
    uint64_t id;
    struct conn *conn;
    bool opened, headed, whole, paused, woken, busy, dead;
    size_t seen;
    char method[8];
    struct http_body body;
    struct dynbuf got;        /* of one that is whole */
    char tenant[80], key[48]; /* as the desk knows the token */
    unsigned status;
    const char *why;
    struct span data;
};

struct errand_ask {
    const struct digest *token;
    struct span box; /* the token opens it alone; empty: it is a key */
    const char *method;
    struct span target;
    struct span json; /* the request's body; p NULL: none */
    bool upload;      /* its body comes with errand_write */
    bool whole;       /* the answer is wanted as one */
};
/* fn may be called until errand_free, never before this has returned. NULL: too many, no memory, or there is no
 * desk. */
struct errand *errand_new(struct dock *d, const struct errand_ask *ask, errand_fn *fn, void *arg) MUSTCHECK;
void errand_free(struct errand **e);
/* Of an upload. -1: it cannot be, and fn will hear why. */
int errand_write(struct errand *e, struct span data) MUSTCHECK;
int errand_write_end(struct errand *e) MUSTCHECK;
bool errand_room(const struct errand *e);
/* Do not go on with the answer. */
void errand_pause(struct errand *e, bool paused);
/* What the desk says; it has gone. */
void errand_frame(struct dock *d, struct frame *f);
void errands_lost(struct dock *d);

#endif
