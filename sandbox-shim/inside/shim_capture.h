/* Captured connections inside a sandbox: the ports its rules (network.c, from outside) redirect to, where a
 * connection was meant to go, and the PROXY v2 header that tells the gateway. libc only. */
#ifndef SANDBOX_SHIM_INSIDE_CAPTURE_H
#define SANDBOX_SHIM_INSIDE_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

/* The rules name the same numbers: sandbox-shim/run/network.c. */
enum { CAPTURE_PORT = 15001, CAPTURE_NAMES_PORT = 15053, CAPTURE_HEADER_MAX = 52 };

/* A socket of `type` on loopback, of AF_INET or AF_INET6; a stream listens. -1 with errno. */
int capture_open(int family, int type, uint16_t port);
/* The header for a connection that was accepted there. 0: it was not on its way anywhere else. */
size_t capture_header(int fd, uint8_t out[CAPTURE_HEADER_MAX]);
/* Answers what has come, up to a limit. */
void capture_names(int udp);

#endif
