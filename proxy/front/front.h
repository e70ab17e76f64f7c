/* A front: one sandbox's connections. It answers CONNECT, intercepts TLS, parses
 * and canonicalises requests, and relays answers. It decides nothing, opens
 * nothing, and holds no secret but its own leaf key. */
#ifndef PROXY_FRONT_FRONT_H
#define PROXY_FRONT_FRONT_H

#include "common/http/http.h"
#include "common/net/chan.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "common/net/tls.h"
#include "common/role.h"
#include "proxy/walk.h"
#include "proxy/wire.h"

enum {
    CLIENTS_MAX = 1024,       /* connections of one sandbox */
    INPUT_MAX = 64 * 1024,    /* a head, and what came behind it */
    HEAD_MS = 10 * 1000,      /* to send a whole head, and to finish a handshake */
    IDLE_MS = 120 * 1000,     /* between requests of a kept-alive connection */
    BODY_MS = 60 * 1000,      /* without a byte of a body that is wanted */
    WRITE_MS = 60 * 1000,     /* without the client taking a byte */
    FRONT_IDLE_MS = 30 * 1000 /* without a connection: the front may go */
};

enum client_state {
    CLIENT_GONE = 0,
    CLIENT_PROXY,     /* plain bytes: CONNECT or an absolute target is awaited */
    CLIENT_LEAF,      /* CONNECT was read; the judge is asked for a leaf */
    CLIENT_HANDSHAKE, /* 200 was sent; the client's TLS is awaited */
    CLIENT_TUNNEL     /* inside TLS: requests to one host */
};

enum body_mode { BODY_MODE_NONE = 0, BODY_MODE_ASKED, BODY_MODE_PIPE, BODY_MODE_WHOLE, BODY_MODE_DONE };

/* One request and its answer. A connection has at most one at a time. */
struct exchange {
    uint64_t xid;
    enum walk_step step;
    struct http_body reader;
    enum body_mode mode;
    uint64_t credit, max, size;
    struct dynbuf whole; /* the body while it is small */
    int memfd;           /* and when it is not */
    bool is_head, keep_alive, old_client, expects, body_declared, answering, chunked_out, close_out;
    uint64_t owed; /* answer bytes taken but not yet credited to the carrier */
};

struct client {
    struct front *front;
    struct conn *conn;
    enum client_state state;
    struct dynbuf auth; /* the Proxy-Authorization it came with; a second identity ends it */
    char host[HTTP_HOST_MAX + 1];
    size_t nhost;
    uint16_t port;
    size_t seen; /* of the head being read */
    bool on, eof;
    struct exchange x; /* on: in use */
    struct tls_leaf *leaf;
    struct client *next, *prev;
};

struct leaf_entry;
struct front {
    struct loop *loop;
    struct role *role;
    struct chan *judge, *carrier;
    struct tls_key *key;
    struct tls_server *tls;
    struct watch *listening;
    int listener;
    struct client *clients;
    size_t nclients;
    struct client **by_slot; /* xid -> client: counter modulo slots */
    uint64_t instance, counter, adopted;
    struct timer *idle;
    bool leaving;
};

/* client.c */
void client_adopt(struct front *f, int fd, struct span auth, struct span bytes);
void client_free(struct client *c);   /* closes at once */
void client_finish(struct client *c); /* flushes, then closes */
void client_go_on(struct client *c);  /* the walk's runner: as far as the input reaches */
struct client *client_of(struct front *f, uint64_t xid);
uint64_t client_new_xid(struct client *c);
void client_state(struct client *c, enum client_state s);
/* connect.c: CONNECT and what follows it */
enum walk_next front_connect(struct client *c, const struct http_head *h);
void front_leaf(struct client *c, struct frame *f);
/* request.c: one request, canonical, to the judge */
enum walk_next front_request(struct client *c, const struct http_head *h, struct http_err *e);
void exchange_end(struct client *c, const char *reason);
/* body.c */
void front_body_wanted(struct client *c, struct frame *f);
void front_body_credit(struct client *c, struct frame *f);
enum walk_next front_body_go_on(struct client *c);
void front_body_free(struct exchange *x);
/* answer.c */
void front_reply(struct client *c, struct frame *f);
void front_answer(struct client *c, struct frame *f);
void front_answer_body(struct client *c, struct span data);
void front_answer_end(struct client *c, struct frame *f);
void front_drained(struct client *c);
/* A refusal the front makes itself: no judge was asked. Closes the connection. */
void front_refuse(struct client *c, unsigned status, const char *code, const char *why);

#endif
