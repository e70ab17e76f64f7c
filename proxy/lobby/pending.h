/* A pending client: whose it is, is not known yet. How far its handshake has come:
 *
 *   [PROXY header] -> [TLS] -> whose is it?  by source, certificate or listener: known at once
 *                               by token: one HTTP head, or SOCKS greeting and login, then the judge
 *                     SOCKS greeting is also read when nothing is to be asked
 *
 * After any function here but pending_new the client may be gone. */
#ifndef PROXY_LOBBY_PENDING_H
#define PROXY_LOBBY_PENDING_H

#include "proxy/lobby/door.h"
#include "proxy/walk.h"

enum pending_step {
    PENDING_BAD = 0,
    PENDING_PROXY,
    PENDING_TLS,
    PENDING_GREETING,
    PENDING_LOGIN,
    PENDING_HEAD,
    PENDING_STEPS
};

struct pending {
    struct lobby *lobby;
    struct lobby_door *door;
    struct conn *conn;
    enum pending_step step;
    struct addr from; /* the socket's peer, or who the PROXY header says */
    uint16_t port;    /* captured: where it was on its way to */
    size_t seen;
    uint64_t asked; /* id of the question to the judge; 0: none open */
    unsigned tries;
    bool closing; /* all is said */
    bool tls;
    struct dynbuf auth;
    struct pending *newer, *older;
};

/* Takes fd over. */
void pending_new(struct lobby_door *d, int fd);
void pending_free(struct pending *g);
/* The judge's answer. */
void pending_known(struct pending *g, struct span sandbox);
void pending_unknown(struct pending *g);
/* No judge can be asked, or it was not told yet who there is. */
void pending_later(struct pending *g);

/* Inside. pending_handover: whose it is, is known. pending_refuse: counted; words (may be empty) are the last thing
 * said.
 */
void pending_handover(struct pending *g, struct span sandbox);
void pending_refuse(struct pending *g, const char *code, struct span words);
void pending_ask(struct pending *g, struct span token);
/* walk.c: as far as the input reaches */
void pending_go_on(struct pending *g);
/* Its rows, one a step. NEXT: there may be more to look at; DONE: the judge is asked, or the client is gone. */
enum walk_next pending_proxy(struct pending *g); /* pending_ways.c */
enum walk_next pending_greeting(struct pending *g);
enum walk_next pending_login(struct pending *g);
enum walk_next pending_head(struct pending *g); /* pending_head.c */
void pending_say_problem(struct pending *g, unsigned status, const char *code, const char *why);
#define PENDING_CHALLENGE                                                                                            \
    "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"countersign\"\r\n"
#define PENDING_LAST "Connection: close\r\nContent-Type: text/plain\r\n\r\n"
/* pending_ways.c: the steps before it. */
void pending_begin(struct pending *g);
void pending_tls_ready(struct pending *g);

#endif
