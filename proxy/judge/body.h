/* A request's body: none, bytes, or a sealed memfd that is mapped to be read. */
#ifndef PROXY_JUDGE_BODY_H
#define PROXY_JUDGE_BODY_H

#include "proxy/wire.h"

struct body {
    enum wire_body kind; /* BODY_STREAM: it passes through and is not here */
    struct span bytes;
    int fd; /* with BODY_FD; owned */
    struct span map;
};

/* Take a sealed memfd of exactly this size. Takes fd over, also on failure. */
int body_of_memfd(struct body *b, int fd, uint64_t size, uint64_t max) MUSTCHECK;
void body_free(struct body *b);

#endif
