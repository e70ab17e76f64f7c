/* One connection of the sandbox, and the exchange on it. After any function here
 * that may refuse, finish or free, the client may be gone: return without touching it. */
#ifndef PROXY_FRONT_CLIENT_H
#define PROXY_FRONT_CLIENT_H

#include "proxy/front/exchange.h"
#include "proxy/front/front.h"

enum client_state {
    CLIENT_GONE = 0,
    CLIENT_FIRST,     /* captured by the shim, or not: a PROXY header says so */
    CLIENT_STEP,      /* of a step of its sandbox: a PROXY header says which */
    CLIENT_SOCKS,     /* the SOCKS5 request is awaited */
    CLIENT_LOOK,      /* on its way to somewhere: is it TLS or HTTP? */
    CLIENT_PLAIN,     /* HTTP to somewhere: requests in origin-form */
    CLIENT_PROXY,     /* plain bytes: CONNECT or an absolute target is awaited */
    CLIENT_LEAF,      /* CONNECT was read; the judge is asked for a leaf */
    CLIENT_HANDSHAKE, /* 200 was sent; the client's TLS is awaited */
    CLIENT_TUNNEL,    /* inside TLS: requests to one host */
    CLIENT_CLOSING    /* all is said; the client is given time to read it */
};

/* What the connection's one deadline stands for (wait.c). */
enum client_wait {
    WAIT_JUDGE = 0, /* none: the judge has its own clock */
    WAIT_HEAD,
    WAIT_FIRST, /* as WAIT_HEAD, of what follows a SOCKS request */
    WAIT_IDLE,
    WAIT_LEAF,
    WAIT_TLS,
    WAIT_BODY,
    WAIT_WRITE,
    WAIT_CLOSE
};

/* How a connection came, and what is known of it. captured: its port is. header: only if it begins with a PROXY
 * header, which says the port; else it is HTTP. */
struct arrival {
    enum way way;
    bool header;
    uint16_t port;
    struct span auth, bytes;
};

struct client {
    struct front *front;
    struct conn *conn;
    enum client_state state;
    enum client_wait wait;
    struct dynbuf auth; /* the Proxy-Authorization it came with; a second identity ends it */
    char host[HTTP_HOST_MAX + 1];
    size_t nhost;
    uint16_t port;         /* 0: not known */
    struct wire_step by;   /* which step of a started sandbox it is of; number 0: of none */
    bool named;            /* the host was said before the first byte: SNI and Host must be it */
    struct tls_leaf *leaf; /* CONNECT was answered: for the TLS that may follow */
    bool hello;            /* the client speaks TLS, we do not yet: only an alert would be understood */
    size_t seen;           /* of the head being read */
    uint64_t written;      /* to conn, in all */
    uint64_t mark;         /* how far body or output were when the deadline was set */
    uint64_t stalled;      /* WAIT_CLOSE: when too long nothing was taken */
    bool used;             /* a request was read: CONNECT may not follow */
    bool eof;
    bool reset; /* closing, in a way that is no proper end */
    struct exchange x;
    struct client *next, *prev;
};

/* states.c: a change that cannot be is logged, and closes the connection as cut. */
void client_change(struct client *c, enum client_state to);
void client_exchange_change(struct client *c, enum exchange_state to);
static inline bool client_asks(const struct client *c)
{
    return c->x.state != EXCHANGE_NONE;
}
static inline bool client_answered(const struct client *c)
{
    return c->x.state >= EXCHANGE_ANSWERING;
}
/* client.c */
void client_adopt(struct front *f, int fd, const struct arrival *a);
/* It came straight to a listener of captured connections. */
void client_not_captured(struct front *f, int fd);
void client_free(struct client *c);   /* closes at once */
void client_drop(struct client *c);   /* the same, so that the client cannot take what it has for all */
void client_cut(struct client *c);    /* the same behind what is queued, which the client is given time to read */
void client_finish(struct client *c); /* flushes, gives time to read, then closes */
/* To the judge, before what is said of this id: whose it is. -1: it cannot be said. */
int client_says_step(const struct client *c, uint64_t xid) MUSTCHECK;
/* walk.c: as far as the input reaches */
void client_go_on(struct client *c);
int client_write(struct client *c, struct span s) MUSTCHECK;
struct client *client_of(struct front *f, uint64_t xid);
uint64_t client_new_xid(struct client *c);
void client_exchange_end(struct client *c, const char *reason);
/* wait.c. Setting what is set already does not put the deadline off. */
void client_wait(struct client *c, enum client_wait w);
void client_timeout(struct client *c);

#include "proxy/front/steps.h"

#endif
