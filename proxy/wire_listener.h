/* What the parent tells the lobby about a listener of several sandboxes, in M_LISTEN behind the name. A pair of put
 * and get. Limits are those of the configuration. */
#ifndef PROXY_WIRE_LISTENER_H
#define PROXY_WIRE_LISTENER_H

#include "common/msg.h"
#include "proxy/words.h"

enum { LISTENER_SOURCES_MAX = 256, LISTENER_PEERS_MAX = 16 };

/* Whose a connection is: a token it brings, one sandbox for all, its source address (after the PROXY header, if the
 * listener takes one), or the name in its client certificate. Zero is nobody. */
enum listener_identity { IDENTITY_NONE = 0, IDENTITY_TOKEN, IDENTITY_SANDBOX, IDENTITY_SOURCE, IDENTITY_CERTIFICATE };

struct wire_listener {
    enum way way;
    enum listener_identity identity;
    struct span sandbox; /* IDENTITY_SANDBOX */
    /* IDENTITY_SOURCE: key is an address or range (common/net/addr.h), the longest prefix wins. IDENTITY_CERTIFICATE:
     * key is a DNS name of the certificate's subjectAltName, exactly. */
    size_t nsources;
    struct {
        struct span key, sandbox;
    } source[LISTENER_SOURCES_MAX];
    size_t npeers; /* ranges whose connections must begin with a PROXY v2 header; others must not, and do not */
    struct span peer[LISTENER_PEERS_MAX];
    bool tls; /* the proxy itself speaks TLS: descriptors 1 to 3 are certificate chain, key and (IDENTITY_CERTIFICATE)
                 the CA of clients, PEM files, open and unread */
};
void wire_put_listener(struct dynbuf *b, const struct wire_listener *l);
int wire_get_listener(struct msg_in *m, struct wire_listener *l) MUSTCHECK;

#endif
