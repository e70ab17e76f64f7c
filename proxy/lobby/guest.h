/* Who stands in the lobby, and how far the handshake has come:
 *
 *   [PROXY header] -> [TLS] -> whose is it?  by source, certificate or listener: known at once
 *                               by token: one HTTP head, or SOCKS greeting and login, then the judge
 *                     SOCKS greeting is also read when nothing is to be asked
 *
 * After any function here but guest_new the guest may be gone. */
#ifndef PROXY_LOBBY_GUEST_H
#define PROXY_LOBBY_GUEST_H

#include "proxy/lobby/door.h"

enum guest_step { GUEST_BAD = 0, GUEST_PROXY, GUEST_TLS, GUEST_GREETING, GUEST_LOGIN, GUEST_HEAD };

struct guest {
    struct lobby *lobby;
    struct lobby_door *door;
    struct conn *conn;
    enum guest_step step;
    struct addr from; /* the socket's peer, or who the PROXY header says */
    uint16_t port;    /* captured: where it was on its way to */
    size_t seen;
    uint64_t asked; /* id of the question to the judge; 0: none open */
    unsigned tries;
    bool closing; /* all is said */
    bool tls;
    struct dynbuf auth;
    struct guest *newer, *older;
};

/* Takes fd over. */
void guest_new(struct lobby_door *d, int fd);
void guest_free(struct guest *g);
/* The judge's answer. */
void guest_known(struct guest *g, struct span sandbox);
void guest_unknown(struct guest *g);
/* No judge can be asked. */
void guest_later(struct guest *g);

/* Inside. guest_handover: whose it is, is known. guest_refuse: counted; words (may be empty) are the last thing said.
 */
void guest_handover(struct guest *g, struct span sandbox);
void guest_refuse(struct guest *g, const char *code, struct span words);
void guest_ask(struct guest *g, struct span token);
/* guest_head.c: one HTTP head. False: nothing more to read, or the guest is gone. */
bool guest_read_head(struct guest *g);
void guest_say_problem(struct guest *g, unsigned status, const char *code, const char *why);
#define GUEST_CHALLENGE                                                                                              \
    "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"countersign\"\r\n"
#define GUEST_LAST "Connection: close\r\nContent-Type: text/plain\r\n\r\n"
/* guest_ways.c: the steps before it. */
bool guest_read_step(struct guest *g);
void guest_begin(struct guest *g);
void guest_tls_ready(struct guest *g);

#endif
