/* The front's limits: how many, how much, and how long (milliseconds). */
#ifndef PROXY_FRONT_LIMITS_H
#define PROXY_FRONT_LIMITS_H

#include <stddef.h>
#include <stdint.h>

enum {
    FRONT_DOORS_MAX = 8,
    FRONT_SLOTS = 4096,       /* more than the most clients, so that a free one is always near */
    FRONT_CLIENTS_MAX = 4000, /* connections of one sandbox, and FRONT_CLIENTS unless limits: says another number */
    FRONT_CLIENTS = 1024,
    FRONT_INPUT_MAX = 64 * 1024,  /* a head, and what came behind it */
    FRONT_AUTH_MAX = 8 * 1024,    /* a Proxy-Authorization value */
    FRONT_INLINE_MAX = 16 * 1024, /* a body that is all there goes along with its head */
    FRONT_BODY_BYTES = 4 * 1024,  /* the least of a body in body_ms */
    FRONT_LEAFS_MAX = 128,        /* parsed and kept */
    FRONT_LEAF_BYTES = 16 * 1024, /* of one, and of its CA */
    FRONT_INSTANCE_SHIFT = 40,    /* of an exchange's id */
    FRONT_INSTANCE_MAX = (1 << 24) - 1,
};

struct front_limits {
    size_t clients;
    uint64_t head_ms;  /* from a head's first byte to its last; a new connection's counts from the start */
    uint64_t idle_ms;  /* between requests of a kept-alive connection */
    uint64_t leaf_ms;  /* for the judge and the keeper to give a leaf */
    uint64_t tls_ms;   /* for a handshake */
    uint64_t body_ms;  /* in each of these FRONT_BODY_BYTES must come of a body that is wanted */
    uint64_t write_ms; /* in each of these the client must take some of what is queued for it */
    uint64_t close_ms; /* after the last byte, for the client to close first */
    uint64_t gone_ms;  /* without a connection: the front may go */
    uint64_t rest_ms;  /* before accept is tried again when descriptors or memory ran out */
};

#endif
