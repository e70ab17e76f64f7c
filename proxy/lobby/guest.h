/* Who stands in the lobby. After any function here but guest_new the guest may be gone. */
#ifndef PROXY_LOBBY_GUEST_H
#define PROXY_LOBBY_GUEST_H

#include "proxy/lobby/lobby.h"

struct guest {
    struct lobby *lobby;
    struct conn *conn;
    size_t seen;
    uint64_t asked; /* id of the question to the judge; 0: none open */
    unsigned tries;
    bool closing; /* all is said */
    struct dynbuf auth;
    struct guest *newer, *older;
};

/* Takes fd over. */
void guest_new(struct lobby *l, int fd);
void guest_free(struct guest *g);
/* The judge's answer. */
void guest_known(struct guest *g, struct span sandbox);
void guest_unknown(struct guest *g);
/* No judge can be asked. */
void guest_later(struct guest *g);

#endif
