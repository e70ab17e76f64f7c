/* A front: one sandbox's connections. It answers CONNECT, intercepts TLS, parses
 * and canonicalises requests, and relays answers. It decides nothing, opens
 * nothing, and holds no secret but its own leaf key. What one connection is: client.h. */
#ifndef PROXY_FRONT_FRONT_H
#define PROXY_FRONT_FRONT_H

#include "common/http/http.h"
#include "common/net/chan.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "common/net/tls.h"
#include "proxy/walk.h"
#include "proxy/wire.h"

enum {
    FRONT_DOORS_MAX = 8,
    FRONT_SLOTS = 4096,           /* more than the most clients, so that a free one is always near */
    FRONT_CLIENTS_MAX = 1024,     /* connections of one sandbox */
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

struct front;
struct front_door {
    struct front *front;
    struct watch *watch;
    int fd;
};

struct client;
struct front_leaf;
struct front {
    struct loop *loop;
    struct chan *parent, *judge, *carrier; /* the last two NULL while their role restarts */
    struct tls_key *key;
    struct tls_server *tls;
    struct front_leaf *leafs;
    size_t nleafs;
    struct front_limits limits;
    uint64_t instance, counter, adopted;

    struct front_door door[FRONT_DOORS_MAX];
    size_t ndoors;
    struct timer *idle, *rest, *end;
    bool going;  /* the parent was asked whether to go: nobody is let in meanwhile */
    bool ending; /* nobody is let in any more, who has an answer is let go */
    uint64_t end_by;
    bool resting;  /* accept failed: descriptors or memory ran out */
    uint64_t said; /* when that was logged last */

    struct client *clients;
    size_t nclients;
    struct client *by_slot[FRONT_SLOTS]; /* xid -> client: counter modulo slots */
    struct dynbuf path, query, out;      /* room reused by every request; nothing stays in it */
};

/* parent may be NULL until the role is connected. -1: e says why, and front_done is still due. */
int front_init(struct front *f, struct loop *l, uint64_t instance, struct err *e) MUSTCHECK;
/* Everything is cut, closed and given back. */
void front_done(struct front *f);
/* Callbacks of struct role_ops; arg is the front. */
void front_frame(void *arg, struct frame *fr);
void front_peer(void *arg, unsigned peer, uint64_t instance, struct span info, int fd);
/* leafs.c: valid until the next call; what uses it keeps it alive. NULL: the bytes are no leaf for our key. */
struct tls_leaf *front_leaf_of(struct front *f, struct span der, struct span ca) MUSTCHECK;
void front_leafs_free(struct front *f);
/* Say the last words, then stop the loop: at once when there is nobody to say them to. */
void front_end(struct front *f);
/* How many clients there are has changed. */
void front_counted(struct front *f);

#endif
