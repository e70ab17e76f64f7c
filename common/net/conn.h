/* A byte stream to a foreign peer: TCP or Unix, plain or TLS, non-blocking,
 * driven by the loop, with capped buffers both ways. Raw SSL_read and SSL_write
 * on readiness events; no bufferevents on this path (they cost more, and read-ahead stalls).
 *
 *   in:  [ consumed | conn_input() ....... | room up to in_max ]   paused when full
 *   out: queued until the end of the turn, one write; CONN_DRAINED when below the watermark */
#ifndef COMMON_NET_CONN_H
#define COMMON_NET_CONN_H

#include <sys/socket.h>

#include "common/dynbuf.h"
#include "common/err.h"

struct loop;
struct conn;
struct tls_server;
struct tls_leaf;
struct tls_client;

enum conn_event {
    CONN_FAILED = 0, /* reset, TLS failure, refused: conn_why says it in words; nothing more will come */
    CONN_CONNECTED,  /* a dialled connection is up (before TLS) */
    CONN_TLS_READY,  /* the handshake is complete and, on the client side, the peer is verified */
    CONN_DATA,       /* conn_input() has new bytes */
    CONN_EOF,        /* the peer ended properly (FIN; with TLS: close_notify). Input may still be there. */
    CONN_TRUNCATED,  /* TLS ended without close_notify: what came may be cut short */
    CONN_DRAINED,    /* queued output fell below 64 KiB again */
    CONN_TIMEOUT,    /* the deadline set by conn_deadline passed */
};
typedef void conn_fn(void *arg, struct conn *c, enum conn_event ev);

/* A connected socket; takes fd over. in_max: the most input bytes kept. */
struct conn *conn_new(struct loop *l, int fd, size_t in_max, conn_fn *fn, void *arg) MUSTCHECK;
/* Begin to connect; CONN_CONNECTED or CONN_FAILED follows. NULL: at once impossible. */
struct conn *conn_dial(struct loop *l, const struct sockaddr *to, socklen_t tolen, size_t in_max, conn_fn *fn,
                       void *arg) MUSTCHECK;
void conn_set_callback(struct conn *c, conn_fn *fn, void *arg);
/* Close and free at once; queued output is lost. Safe inside its own callback. */
void conn_free(struct conn **c);
/* The same, and over TCP the peer sees a reset: what it has cannot pass for a proper end. */
void conn_reset(struct conn **c);
/* Flush what is queued, shut down properly (close_notify, FIN), then close and free; bounded to 2 s. */
void conn_finish(struct conn **c);
/* Put bytes that were read elsewhere before this stream's own (the lobby's hand-over). */
int conn_unread(struct conn *c, struct span before) MUSTCHECK;

/* Become the TLS server side with this leaf. The client's SNI must equal `name` (ASCII case aside), else the
 * handshake fails with unrecognized_name. ALPN http/1.1 only. TLS 1.2 and 1.3. CONN_TLS_READY or CONN_FAILED. */
int conn_tls_accept(struct conn *c, struct tls_server *s, struct tls_leaf *leaf, struct span name) MUSTCHECK;
/* The same as the proxy itself (tls_server_own): any SNI. */
int conn_tls_accept_own(struct conn *c, struct tls_server *s) MUSTCHECK;
/* Has the peer's verified certificate exactly this dNSName, ASCII case aside? A wildcard is never more than itself.
 */
bool conn_peer_named(const struct conn *c, struct span name);
/* Become the TLS client side: SNI and verified name = `name`; chain against the client's roots. */
int conn_tls_connect(struct conn *c, struct tls_client *t, struct span name) MUSTCHECK;
/* On a connection that began as TLS client, before its handshake: show this when the server asks. PEM, a key and the
 * chain of its certificate; the key is forgotten with the handshake. -1: the two do not fit, or are none. */
int conn_tls_certificate(struct conn *c, struct span pem, struct err *e) MUSTCHECK;

struct span conn_input(const struct conn *c);
/* The first of these bytes, for who changes some of them in place; NULL: there are none. */
uint8_t *conn_input_edit(struct conn *c);
void conn_consume(struct conn *c, size_t n);
/* Copy into the output. -1: over CONN_OUT_MAX or failed. */
enum { CONN_OUT_MAX = 1024 * 1024, CONN_OUT_LOW = 64 * 1024 };
int conn_write(struct conn *c, struct span s) MUSTCHECK;
size_t conn_queued(const struct conn *c);
/* Write what is queued now, not at the end of the turn. -1: not all of it could be. */
int conn_push(struct conn *c) MUSTCHECK;
/* Half-close our side after the queue. */
void conn_end(struct conn *c);
/* The same without close_notify: over TLS the peer knows that what it has may not be all. */
void conn_end_cut(struct conn *c);
void conn_pause(struct conn *c, bool paused);
/* One deadline; 0 clears it. */
void conn_deadline(struct conn *c, uint64_t ms);
/* Why it failed, for logs and for words to a client (never bytes of the peer). */
const char *conn_why(const struct conn *c);
/* Does the other end have the same address as this one? Then it is this machine, whatever it is called. */
bool conn_to_self(const struct conn *c);
/* The same of a TLS handshake, as a stable code: "sni-mismatch", "tls-version", "tls-alpn", "ca-not-trusted",
 * "plaintext-in-tunnel", "tls-closed", "tls-failed". */
const char *conn_tls_code(const struct conn *c);
int conn_peer_pid(const struct conn *c, unsigned *uid) MUSTCHECK; /* SO_PEERCRED of a Unix socket */
/* Give the socket away (plain only): returns the descriptor and frees the rest. Unread input goes to *rest. */
int conn_release(struct conn **c, struct dynbuf *rest) MUSTCHECK;

#endif
