/* A listener of several sandboxes, as the parent's M_LISTEN describes it: who may knock, and whose they are. */
#ifndef PROXY_LOBBY_DOOR_H
#define PROXY_LOBBY_DOOR_H

#include "common/net/addr.h"
#include "common/net/tls.h"
#include "proxy/lobby/lobby.h"
#include "proxy/wire.h"

enum { DOOR_NAME = 65, DOOR_PEM_MAX = 256 * 1024 };

struct door_source {
    struct cidr range; /* IDENTITY_SOURCE */
    struct span key;   /* IDENTITY_CERTIFICATE: the DNS name, owned */
    char sandbox[DOOR_NAME];
};

struct lobby_door {
    struct lobby *lobby;
    struct watch *watch;
    int fd;
    char name[DOOR_NAME], sandbox[DOOR_NAME];
    enum way way;
    enum listener_identity identity;
    struct door_source *source;
    size_t nsources, npeers;
    struct cidr peer[LISTENER_PEERS_MAX];
    struct tls_server *tls; /* NULL: plain */
};

/* Takes the frame's descriptors. NULL: what the parent says is not understood, or its files cannot be used; that is
 * logged, and the listener stays shut. The door has no watch yet. */
struct lobby_door *door_new(struct lobby *l, struct frame *f) MUSTCHECK;
/* The same listener, described anew: its owners, peers and certificate change, for those who come next; who stands in
 * the lobby stays. Takes fresh. If it would be another kind of listener nothing changes, and that is logged. */
void door_change(struct lobby_door *d, struct lobby_door *fresh);
void door_free(struct lobby_door **d);
/* The sandbox of whoever comes from there (longest prefix), or empty. */
struct span door_source(const struct lobby_door *d, const struct addr *from);
/* The sandbox that the peer's certificate names; empty if it names none of ours, or more than one. */
struct span door_certificate(const struct lobby_door *d, const struct conn *c);
/* Must whoever comes from there begin with a PROXY header? Nobody else may. */
bool door_wants_header(const struct lobby_door *d, const struct addr *from);

#endif
