/* The one way out of a program that has a network of its own: a proxy that takes CONNECT (RFC 9110 section 9.3.6) for
 * the places it is given and nothing else. It dials only the addresses that come with them, looks no name up, and
 * passes bytes on unread: TLS is between the program and the server. */
#ifndef PROXY_FETCHER_JOB_RELAY_H
#define PROXY_FETCHER_JOB_RELAY_H

#include "common/http/http.h"
#include "common/net/loop.h"
#include "proxy/fetcher/job/job.h"

enum {
    RELAY_TUNNELS_MAX = 16,             /* at once; more wait to be accepted */
    RELAY_TUNNELS_ALL_MAX = 256,        /* in its life; more are refused */
    RELAY_BYTES_MAX = 64 * 1024 * 1024, /* of all tunnels, both ways; past it all are cut */
    RELAY_INPUT_MAX = HTTP_HEAD_MAX + 4096,
    RELAY_DIAL_MS = 5000 /* for each address */
};

struct relay_place {
    char host[HTTP_HOST_MAX + 1]; /* canonical */
    size_t nhost;
    uint16_t port;
    struct job_place at;
};

/* What a program says first. */
struct relay_asked {
    const struct relay_place *to; /* whom it may have; NULL: it is refused, */
    unsigned status;              /* with this, */
    const char *why;
    char host[HTTP_HOST_MAX + 1]; /* since it asked for this one; empty: for what is no host */
    uint16_t port;
    size_t used; /* bytes of `in` that this was, if it may have it */
};
/* in: what has come so far. *seen: 0 before the first call. False: more must come. Pure. */
bool relay_read(struct span in, size_t *seen, const struct relay_place *places, size_t n,
                struct relay_asked *out) MUSTCHECK;

struct relay;
/* places: borrowed, as long as it lives. Takes the listener over, also when it fails. NULL: no memory. */
struct relay *relay_new(struct loop *l, int listener, const struct relay_place *places, size_t n) MUSTCHECK;
/* Cuts all tunnels. */
void relay_free(struct relay **r);

#endif
