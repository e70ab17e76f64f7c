/* One request to the desk, on a stream of its own: of the dock, opened with its caller's token; of the broker, for a
 * tenant (web-approval/broker/broker.h). Or one of the desk's to the broker, for an operator who is signed in there
 * (web-approval/talks/talks.h). */
#ifndef PROXY_ERRAND_ERRAND_H
#define PROXY_ERRAND_ERRAND_H

#include "common/http/http.h"
#include "common/id.h"

struct chan;
struct conn;
struct errand;
struct frame;
struct loop;

enum { ERRAND_BODY_MAX = 1024 * 1024, ERRAND_ANSWER_MAX = 8 * 1024 * 1024 };

/* All of a process. Its owner sets loop, desk (NULL: there is none now) and most. */
struct errands {
    struct loop *loop;
    struct chan *desk;
    struct errand *list;
    size_t n, most;
    uint64_t last;
    bool waking; /* some of them go on at the end of this turn */
};

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
    struct errands *of;
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
    const struct digest *token; /* NULL: it is asked for a tenant */
    struct span tenant, lane;   /* of the broker; lane: empty, none */
    struct span who;            /* of the desk, asking the broker: the operator who asks, for `tenant`; or empty */
    struct span once;           /* sent as Idempotency-Key; or empty */
    struct span box;            /* the token opens it alone; empty: it is a key */
    const char *method;
    struct span target;
    struct span json; /* the request's body; p NULL: none */
    bool upload;      /* its body comes with errand_write */
    bool whole;       /* the answer is wanted as one */
};
/* fn may be called until errand_free, never before this has returned. NULL: too many, no memory, or there is no
 * desk. */
struct errand *errand_new(struct errands *d, const struct errand_ask *ask, errand_fn *fn, void *arg) MUSTCHECK;
void errand_free(struct errand **e);
/* Of an upload. -1: it cannot be, and fn will hear why. */
int errand_write(struct errand *e, struct span data) MUSTCHECK;
int errand_write_end(struct errand *e) MUSTCHECK;
bool errand_room(const struct errand *e);
/* Do not go on with the answer. */
void errand_pause(struct errand *e, bool paused);
/* What the desk says; it has gone. */
void errand_frame(struct errands *d, struct frame *f);
void errands_lost(struct errands *d);

#endif
