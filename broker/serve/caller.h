/* A connection of a caller, for door.c and watch.c alone. */
#ifndef BROKER_SERVE_CALLER_H
#define BROKER_SERVE_CALLER_H

#include "broker/serve/serve.h"

enum { TENANT = 64, OPERATOR = 47 };

struct caller {
    struct serve *serve;
    struct conn *conn;
    bool own, desk; /* the operator on the socket of this machine; one who is signed in at the desk, which says so */
    bool last, reading, admitted, ended, working, pumping;
    size_t seen, sent;
    struct call *x;
    struct http_body body;
    char tenant[TENANT + 1];
    char who[OPERATOR + 1]; /* the operator, of these two; else empty */
    struct digest key;
    uint64_t asks, asked_ms; /* the question whose key that is, that has no answer yet, or 0 */
    bool again;              /* and it is asked once more, of a stream */
    uint64_t known_ms;       /* when the desk last said yes to a stream's key */
    size_t held;             /* make_room: connections of its tenant */
    struct caller *next;
};

/* It goes, with what it asks; what a handler of it still waits for goes when that is through. */
void caller_drop(struct caller *c, bool flush);
/* It brings no key: nobody is asked of one. */
static inline bool caller_is_known(const struct caller *c)
{
    return c->own || c->desk;
}
/* A connection, taken over, with nothing known of who it is. NULL: there is no room, or no memory. */
struct caller *caller_add(struct serve *s, size_t most, int fd) MUSTCHECK;
/* known.c: it came on the socket of this machine: who it is, the kernel says, or it goes. The desk brings one
 * (M_BROKER_TALK). */
void known_own(struct caller *c);
void known_from_desk(struct serve *s, struct frame *f);
/* Whose key it has is asked; false: nobody can be asked. */
bool caller_ask(struct caller *c) MUSTCHECK;

#endif
