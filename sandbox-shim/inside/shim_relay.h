/* One connection of the shim's: bytes between a client inside and the gateway's Unix socket outside, both ways, with
 * half-closes; or a stream of questions for names, answered here. libc only. */
#ifndef SANDBOX_SHIM_INSIDE_RELAY_H
#define SANDBOX_SHIM_INSIDE_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WAY_BYTES = 32 * 1024 /* buffered per direction */ };

/* Bytes on their way from one end to the other. */
struct way {
    size_t off, end; /* buf[off..end) is still to be written */
    bool eof;        /* the reading end said it is done */
    bool shut;       /* and the writing end has been told */
    uint8_t buf[WAY_BYTES];
};

enum conn_kind {
    CONN_HTTP,     /* speaks to a proxy: when the gateway is away, it gets words */
    CONN_CAPTURED, /* was on its way elsewhere: a reset, since nothing is known of what it speaks */
    CONN_NAMES,    /* questions for names; there is no fd[1] */
};

struct shim_conn {
    enum conn_kind kind;
    int fd[2];         /* 0: the client inside; 1: the gateway, -1 while not connected */
    int64_t try_until; /* still connecting; 0: no longer */
    bool refused;      /* nothing of it is carried; way[1] holds the answer that says why */
    bool broken;       /* to be ended with a reset */
    struct way way[2]; /* way[i] goes from fd[i] to fd[1 - i] */
};

/* Takes fd over. NULL: no memory; fd is closed. Connects at once where it can; `socket` is checked to fit. */
struct shim_conn *shim_conn_new(enum conn_kind kind, int fd, const uint8_t *head, size_t nhead, const char *socket);
/* Takes fd over as well: what comes there is of nobody, and is told so. */
struct shim_conn *shim_conn_nobodys(int fd);
void shim_conn_free(struct shim_conn *c);
/* Once a round while try_until is not 0. */
void shim_conn_connect(struct shim_conn *c, const char *path);
/* What to wait for on end i. */
short shim_conn_interest(const struct shim_conn *c, int i);
/* Move what can be moved. -1: the connection is over, or broken. */
int shim_conn_step(struct shim_conn *c, const short revents[2]);

int64_t now_ms(void);

#endif
