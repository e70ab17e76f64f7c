/* Inside common/net only: what conn.c and conn_tls.c share.
 *
 *   plain:  socket <-> in / out
 *   TLS:    socket -> raw_in -> SSL -> in      out -> SSL -> raw_out -> socket
 *
 * raw_in and raw_out hold only what could not be passed on at once; what flows
 * through within one call lives in the loop's shared buffers. */
#ifndef COMMON_NET_CONN_IN_H
#define COMMON_NET_CONN_IN_H

#include <openssl/ssl.h>

#include "common/net/conn.h"
#include "common/net/loop_in.h"

enum {
    CONN_KEEP = 4 * 1024,      /* an emptied buffer larger than this is given back */
    CONN_THROUGH = 16 * 1024,  /* so much at once is sealed where it lies, and not queued first */
    CONN_RAW_MAX = 512 * 1024, /* sealed records and handshake bytes waiting for the socket */
};

enum conn_mode { CONN_PLAIN = 0, CONN_DIALLING, CONN_HANDSHAKE, CONN_TLS, CONN_BROKEN };

struct conn {
    struct loop *loop;
    int fd;
    enum conn_mode mode;
    conn_fn *fn;
    void *arg;
    struct event rd, wr, timer;
    struct task flush, news;

    uint8_t *in;
    size_t in_off, in_n, in_cap, in_max;
    struct dynbuf out, raw_out;
    size_t out_off, raw_out_off;

    SSL *ssl;
    struct dynbuf raw_in; /* came from the socket, not yet decrypted */
    struct span raw_now;  /* the same, borrowed, while conn_tls_pump runs */
    struct span name;     /* what SNI must say, or the name to verify; owned */
    const char *tls_code; /* what made the handshake fail, for conn_tls_code */
    unsigned later;       /* handshake messages since the last byte of data, once the handshake was done */
    uint8_t (*pin)[32];   /* of whom is connected to; a copy, since those settings may go before the handshake ends */
    size_t npins;
    bool (*public_suffix)(struct span name);
    const char *cert_why; /* which check of ours the peer's certificate failed */

    uint64_t deadline; /* 0: none */
    uint64_t timer_at; /* when the timer goes off, at or before the deadline */
    char why[120];

    int write_lost; /* errno of the write that failed; what the peer said before is still read */
    bool paused, eof, eof_told, ending, ended, shut, finishing, above;
    bool abrupt;  /* ending, without a farewell */
    bool more;    /* there is input that the owner was not told of */
    bool stalled; /* raw_in or SSL may hold more than the input has room for */
    bool tell_failed, failed_told, tell_ready;
    bool dead;
    unsigned busy;
};

/* Nothing more can be read or written; CONN_FAILED follows from the loop. */
void conn_fail(struct conn *c, const char *why);
void conn_fail_errno(struct conn *c, const char *doing, int error);
/* Room for at least one more byte of input, or 0 when it stands at in_max; grows the buffer towards want. */
size_t conn_in_room(struct conn *c, size_t want);
/* Write raw bytes to the socket or keep them for later. -1: the connection has failed. */
int conn_raw_write(struct conn *c, struct span s) MUSTCHECK;
/* Call the owner. False: the connection was freed by it. */
bool conn_tell(struct conn *c, enum conn_event ev);
size_t conn_raw_queued(const struct conn *c);
/* What is queued, in its final form, as far as the socket takes it; then the half-close that was asked for. */
void conn_flush(struct conn *c);

/* conn_tls.c: go on with the handshake or decrypt. fresh: bytes just read, borrowed. Sets c->stalled when it had to
 * stop early. */
void conn_tls_pump(struct conn *c, struct span fresh);
/* Encrypt s and send it, as far as the socket takes it. How much of it that was: all, unless sealed bytes wait. */
size_t conn_tls_through(struct conn *c, struct span s) MUSTCHECK;
/* The same with what is queued. */
void conn_tls_flush(struct conn *c);
/* Queue close_notify. */
void conn_tls_end(struct conn *c);
/* The peer has said close_notify. */
bool conn_tls_peer_ended(const struct conn *c);
void conn_tls_free(struct conn *c);

#endif
