/* A connection of a caller, for door.c and watch.c alone. */
#ifndef BROKER_SERVE_CALLER_H
#define BROKER_SERVE_CALLER_H

#include "broker/serve/serve.h"

enum { TENANT = 64 };

struct caller {
    struct serve *serve;
    struct conn *conn;
    bool own, last, reading, admitted, ended, working, pumping;
    size_t seen, sent;
    struct call *x;
    struct http_body body;
    char tenant[TENANT + 1];
    struct digest key;
    uint64_t asks, asked_ms; /* the question whose key that is, that has no answer yet, or 0 */
    bool again;              /* and it is asked once more, of a stream */
    uint64_t known_ms;       /* when the desk last said yes to a stream's key */
    size_t held;             /* make_room: connections of its tenant */
    struct caller *next;
};

/* It goes, with what it asks; what a handler of it still waits for goes when that is through. */
void caller_drop(struct caller *c, bool flush);
/* Whose key it has is asked; false: nobody can be asked. */
bool caller_ask(struct caller *c) MUSTCHECK;

#endif
