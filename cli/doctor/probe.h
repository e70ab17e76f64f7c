/* What `countersign doctor` tries from inside a sandbox: the way to the gateway,
 * as a client of HTTP/1.1 (RFC 9112), of CONNECT with Basic (RFC 9110, 7617), and
 * of SOCKS5 with a password (RFC 1928, 1929). Blocking, each wait bounded. */
#ifndef CLI_DOCTOR_PROBE_H
#define CLI_DOCTOR_PROBE_H

#include "common/dynbuf.h"
#include "common/err.h"
#include "sandbox-shim/env.h"

#define PROBE_HOST "countersign.internal" /* what the gateway answers itself */

enum probe_result {
    PROBE_BAD = 0, /* came through, but what answered is not understood; the words say more */
    PROBE_NAME,    /* a name has no address */
    PROBE_CLOSED,  /* nobody can be reached there */
    PROBE_TOKEN,   /* the proxy wants another token */
    PROBE_OK
};

/* A TCP connection, without any proxy; every address is tried, each for `ms`. */
enum probe_result probe_dial(struct span host, uint16_t port, int ms, int *fd, struct err *e) MUSTCHECK;
/* The same through the proxy; NULL: straight out. */
enum probe_result probe_open(const struct env_url *proxy, const char *host, uint16_t port, int *fd,
                             struct err *e) MUSTCHECK;

struct probe_who {
    char sandbox[128];
    uint64_t time_ms; /* the gateway's clock */
};
/* Who does the gateway say we are? In the clear, so that no certificate is in the way. */
enum probe_result probe_whoami(const struct env_url *proxy, struct probe_who *who, struct err *e) MUSTCHECK;
/* TLS as PROBE_HOST on a connection, verified by these roots (PEM) alone; the descriptor is closed. */
int probe_tls(int fd, struct span roots, struct err *e) MUSTCHECK;

#endif
