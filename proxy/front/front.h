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
#include "proxy/front/limits.h"
#include "proxy/refusals.h"
#include "proxy/walk.h"
#include "proxy/wire.h"
#include "proxy/words.h"

struct front;
struct front_door {
    struct front *front;
    struct watch *watch;
    int fd;
    enum listen_kind kind;
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
    struct timer *idle, *rest, *end, *tell;
    bool going;  /* the parent was asked whether to go: nobody is let in meanwhile */
    bool ending; /* nobody is let in any more, who has an answer is let go */
    uint64_t end_by;
    bool resting;  /* accept failed: descriptors or memory ran out */
    uint64_t said; /* when that was logged last */

    struct span name;        /* the sandbox's, for the counters; whoever starts the front keeps it */
    struct refusals refused; /* not yet told to the parent */

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
/* audit.c: tell the parent how many were refused. */
void front_tell(struct front *f);
/* Say the last words, then stop the loop: at once when there is nobody to say them to. */
void front_end(struct front *f);
/* How many clients there are has changed. */
void front_counted(struct front *f);

#endif
