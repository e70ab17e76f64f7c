/* HTTP/1.1 towards browsers and the control socket's clients: bounded in number,
 * bytes and time. One exchange at a time on a connection; what it answers is
 * sent as fast as the client reads, never faster. */
#ifndef WEB_APPROVAL_SERVER_H
#define WEB_APPROVAL_SERVER_H

#include "web-approval/desk.h"

enum {
    SERVER_CLIENTS = 80,       /* of each listener, beside event streams; more than can be held for long (desk.h) */
    SERVER_DOCK_CLIENTS = 256, /* of the dock's callers, the same */
    SERVER_TENANT_SURE = 4,    /* of these each tenant of the dock has so many, whatever others hold */
    SERVER_STREAMS = 1536,     /* event streams: as many look at the page */
    SERVER_STREAMS_SURE = 8,   /* of these everybody has so many, whoever holds others */
    SERVER_REQUEST_MS = 10 * 1000,
    SERVER_IDLE_MS = 30 * 1000,
    SERVER_SEND_MS = 30 * 1000, /* without progress */
    SERVER_PING_MS = 20 * 1000,
};

/* head.c: what is wrong with a head that the parser took. */
struct http_err;
bool head_refused(enum desk_place place, const struct http_head *h, struct http_err *e);
/* head.c: that of x's answer; last: the connection ends after it. -1: too long. */
int answer_head(const struct exchange *x, bool last, struct dynbuf *out) MUSTCHECK;

struct server *server_new(struct desk *d) MUSTCHECK;
/* Accept on this listener (taken over) from now on. */
int server_listen(struct server *s, enum desk_place place, int fd) MUSTCHECK;
/* Take this stream over (not on failure: it is closed), as if its caller had connected. -1: no memory, or too many.
 */
int server_adopt(struct server *s, int fd, const struct caller *who) MUSTCHECK;
/* End all streams of this key: it is good for nothing any more. */
void server_drop(struct server *s, struct span key);
/* What the warden says of a command that a client follows; the warden is gone, and with it all of them. */
struct frame;
void server_follow(struct server *s, struct frame *f);
void server_follow_gone(struct server *s);
/* What is due by now; the server does it by itself, each second. */
void server_due(struct server *s, uint64_t now_ms);
/* An event to every stream. */
void server_event(struct server *s, uint64_t seq, struct span kind, struct span subject);

#endif
