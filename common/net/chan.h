/* Frames between two processes over a socketpair: what roles speak.
 *
 *   frame: u32 length of payload | u16 type | u16 number of descriptors | u64 id | payload
 *
 * Many frames go out in one write at the end of the turn. Descriptors travel
 * with their frame. A frame that is malformed, too long or carries more
 * descriptors than it says ends the channel: a peer that breaks the contract is
 * a dead peer. */
#ifndef COMMON_NET_CHAN_H
#define COMMON_NET_CHAN_H

#include "common/dynbuf.h"

enum {
    CHAN_PAYLOAD_MAX = 320 * 1024, /* the largest single payload: an inline body of 256 KiB and its head */
    CHAN_FDS_MAX = 4,
    CHAN_QUEUE_MAX = 64 * 1024 * 1024, /* bytes queued to a peer that does not read; past it the channel ends */
    CHAN_SOON_MS = 10,                 /* the longest a frame of chan_commit_soon stays here ... */
    CHAN_SOON_FRAMES = 16,             /* ... and how many of them */
};

struct loop;
struct chan;
struct frame {
    uint16_t type;
    uint64_t id;
    struct span payload; /* valid during the callback only */
    int fd[CHAN_FDS_MAX];
    unsigned nfds;
};

struct chan_ops {
    void (*frame)(void *arg, struct chan *c, struct frame *f);
    void (*gone)(void *arg, struct chan *c); /* once; the peer died or broke the contract. Call chan_free in it. */
};

/* Takes fd over. NULL: no memory (fd is closed). */
struct chan *chan_new(struct loop *l, int fd, const struct chan_ops *ops, void *arg) MUSTCHECK;
/* fn(fd) when any channel of this process has ended by itself, before its owner hears of it. For role/role.c. */
void chan_on_end(void (*fn)(int fd));
/* Flushes what it can at once, closes, frees; safe inside its own callbacks. */
void chan_free(struct chan **c);
/* Queue one frame. -1: too long, over the queue limit or gone (the frame is dropped; gone() will follow). */
int chan_send(struct chan *c, uint16_t type, uint64_t id, struct span payload);
/* The same with a descriptor, which is duplicated: the caller still owns its own. */
int chan_send_fd(struct chan *c, uint16_t type, uint64_t id, struct span payload, int fd);
/* Build a payload in place: add to the returned buffer with msg_put_*, then commit. Only one at a time per channel.
 */
struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id) MUSTCHECK;
int chan_commit(struct chan *c);
int chan_commit_fd(struct chan *c, int fd);
/* For a frame nobody waits for: it does not wake the peer, but leaves with the next one that does, or when there are
 * enough of its kind, or soon by the clock. Order is kept. */
int chan_commit_soon(struct chan *c);
/* The same with up to CHAN_FDS_MAX descriptors, all duplicated. */
int chan_commit_fds(struct chan *c, const int *fd, unsigned n);
/* Take a descriptor out of a frame (else it is closed after the callback). -1 if there is none. */
int frame_take_fd(struct frame *f, unsigned i) MUSTCHECK;
/* Bytes not yet written. */
size_t chan_queued(const struct chan *c);
/* The peer has ended: nothing reaches it any more, and gone() follows. */
bool chan_is_lost(const struct chan *c);
/* Stop and go on reading from the peer. */
void chan_pause(struct chan *c, bool paused);

/* Before the loop runs: wait for exactly one frame on a blocking fd and read not one byte more. The payload goes to
 * *payload, which the frame borrows; the caller owns the descriptors. 0, or -1 with none of them open. */
int chan_read_one(int fd, struct frame *f, struct dynbuf *payload) MUSTCHECK;
/* Without a loop: write one frame to a blocking fd. -1: too long, or the other side is gone. */
int chan_write_one(int fd, uint16_t type, uint64_t id, struct span payload) MUSTCHECK;

#endif
