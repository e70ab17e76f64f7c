/* The event loop: one a process. With chan, conn and tls it is the only place that
 * names libevent. Callbacks get (arg) and never a library type.
 *
 * A turn: collect ready events -> run their callbacks -> run deferred calls ->
 * flush every chan and conn that was written to (one write each). */
#ifndef COMMON_NET_LOOP_H
#define COMMON_NET_LOOP_H

#include "common/span.h"

struct loop;
struct timer;
struct watch;

struct loop *loop_new(void) MUSTCHECK;
void loop_free(struct loop **l);
/* Run until loop_stop. 0, or -1 when the loop itself failed. */
int loop_run(struct loop *l) MUSTCHECK;
void loop_stop(struct loop *l);
/* CLOCK_MONOTONIC in ms, read once a turn; and Unix time in ms. */
uint64_t loop_now(const struct loop *l);
uint64_t loop_wall(const struct loop *l);
/* Call fn(arg) at the end of this turn, before the flush. */
int loop_defer(struct loop *l, void (*fn)(void *arg), void *arg) MUSTCHECK;
/* fn(arg, signo) from the loop, not from the handler. A signal that was blocked when we were started no longer is. */
int loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg) MUSTCHECK;

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg) MUSTCHECK;
void timer_set(struct timer *t, uint64_t ms); /* once, from now; replaces an earlier setting */
void timer_clear(struct timer *t);
void timer_free(struct timer **t);

/* fn(arg) while fd can be read (a listener, a signalfd, a c-ares socket). The fd stays the caller's. */
enum { WATCH_READ = 1, WATCH_WRITE = 2 };
struct watch *watch_new(struct loop *l, int fd, unsigned what, void (*fn)(void *arg, unsigned ready),
                        void *arg) MUSTCHECK;
void watch_set(struct watch *w, unsigned what); /* 0 pauses */
void watch_free(struct watch **w);

/* A listening TCP socket (SO_REUSEADDR, TCP_NODELAY, non-blocking, CLOEXEC); address "127.0.0.1:3128" or
 * "[::1]:0"; port 0 takes a free one, see listen_port. Or -1 with errno. */
int listen_tcp(const char *address) MUSTCHECK;
int listen_port(int fd);
/* A bound UDP socket (non-blocking, CLOEXEC), address as above; or -1 with errno. */
int listen_udp(const char *address) MUSTCHECK;
/* A listening Unix socket with this mode; an old socket file is replaced. */
int listen_unix(const char *path, unsigned mode) MUSTCHECK;
/* One accepted socket (non-blocking, CLOEXEC), or -1: EAGAIN none, EMFILE and kin: pause and try later. */
int listen_accept(int fd) MUSTCHECK;
/* Of an accepted TCP connection that a redirect brought here: the port it was on its way to. -1: it was not
 * (EDESTADDRREQ: it came straight to this listener), or the kernel does not know. */
int listen_original_port(int fd, uint16_t *port) MUSTCHECK;

#endif
