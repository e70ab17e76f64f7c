/* Inside common/net only: a frame's head, and receiving bytes with descriptors. */
#ifndef COMMON_NET_CHAN_WIRE_H
#define COMMON_NET_CHAN_WIRE_H

#include <sys/types.h>

#include "common/net/chan.h"

enum { CHAN_HEAD = 16 };

/* A head with no length and no descriptors yet; patch them in when they are known. */
void chan_head_put(uint8_t *p, unsigned type, uint64_t id);
void chan_head_patch(uint8_t *p, size_t n, unsigned nfds);
/* Fills type, id and nfds of *f and the payload's length. -1: it breaks the contract. */
int chan_head_get(const uint8_t *p, struct frame *f, size_t *n) MUSTCHECK;

/* Receive at most n bytes and append the descriptors that come with them to fds, which has room for `room`.
 * -1: errno; EPROTO: more descriptors than may come (the surplus is closed, what fds holds stays the caller's). */
ssize_t chan_receive(int fd, void *to, size_t n, int *fds, unsigned *nfds, unsigned room) MUSTCHECK;
void chan_fds_close(const int *fd, unsigned n);

#endif
