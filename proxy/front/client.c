/* One connection of the sandbox: from accept to close. */
#include "proxy/front/client.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/trace.h"

static struct client **slot_of(struct front *f, uint64_t xid)
{
    return &f->by_slot[(xid & ((UINT64_C(1) << FRONT_INSTANCE_SHIFT) - 1)) % FRONT_SLOTS];
}

uint64_t client_new_xid(struct client *c)
{
    struct front *f = c->front;
    do
        f->counter++;
    while (*slot_of(f, f->counter) != NULL); /* there are fewer clients than slots */
    *slot_of(f, f->counter) = c;
    c->x = (struct exchange){.xid = f->instance << FRONT_INSTANCE_SHIFT | f->counter, .memfd = -1};
    c->x.declared = UINT64_MAX;
    dynbuf_init(&c->x.whole, BODY_INLINE_MAX);
    client_exchange_change(c, EXCHANGE_ASKED);
    return c->x.xid;
}

int client_says_step(const struct client *c, uint64_t xid)
{
    struct dynbuf *b = NULL;
    if (c->by.number == 0)
        return 0;
    if (c->front->judge == NULL || (b = chan_begin(c->front->judge, M_STEP, xid)) == NULL)
        return -1;
    wire_put_step(b, &c->by);
    return chan_commit(c->front->judge);
}

struct client *client_of(struct front *f, uint64_t xid)
{
    if (xid >> FRONT_INSTANCE_SHIFT != f->instance)
        return NULL;
    struct client *c = *slot_of(f, xid);
    return c != NULL && client_asks(c) && c->x.xid == xid ? c : NULL; /* a late frame is nobody's */
}

void client_exchange_end(struct client *c, const char *reason)
{
    if (!client_asks(c))
        return;
    trace_step(c->x.xid, "end", reason);
    *slot_of(c->front, c->x.xid) = NULL;
    front_body_free(&c->x);
    front_websocket_free(&c->x.websocket);
    client_exchange_change(c, EXCHANGE_NONE);
}

/* An exchange that is left before its end: the judge need not go on for this client. */
static void leave_exchange(struct client *c, const char *reason)
{
    if (client_asks(c) && c->front->judge != NULL)
        (void)chan_send(c->front->judge, M_CANCEL, c->x.xid, SPAN_NONE);
    client_exchange_end(c, reason);
}

static void forget(struct client *c)
{
    struct front *f = c->front;
    *(c->prev ? &c->prev->next : &f->clients) = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    f->nclients--;
    dynbuf_free(&c->auth);
    tls_leaf_free(&c->leaf);
    client_change(c, CLIENT_GONE);
    free(c);
    front_counted(f);
}

void client_free(struct client *c)
{
    leave_exchange(c, "the connection was cut");
    if (c->reset)
        conn_reset(&c->conn);
    else
        conn_free(&c->conn);
    forget(c);
}

/* In plain text an answer that ends with the connection would look complete. */
static bool looks_whole(const struct client *c)
{
    return client_answered(c) && c->x.out == HTTP_UNTIL_CLOSE && c->state != CLIENT_TUNNEL;
}

void client_drop(struct client *c)
{
    c->reset |= looks_whole(c);
    client_free(c);
}

static void closing(struct client *c)
{
    client_wait(c, WAIT_CLOSE);
    client_change(c, CLIENT_CLOSING);
    /* What still comes is taken and dropped: unread bytes would turn the close into a reset. */
    conn_consume(c->conn, conn_input(c->conn).n);
    conn_pause(c->conn, false);
}

void client_cut(struct client *c)
{
    c->reset |= looks_whole(c);
    leave_exchange(c, "the answer was cut");
    if (c->state == CLIENT_HANDSHAKE || c->eof) {
        client_free(c);
        return;
    }
    closing(c);
    if (!c->reset) /* else the reset comes when the time to read is over: it would take what is on its way */
        conn_end_cut(c->conn);
}

void client_finish(struct client *c)
{
    leave_exchange(c, "the connection is closed");
    if (c->state == CLIENT_HANDSHAKE || (c->eof && conn_queued(c->conn) == 0)) {
        client_free(c);
        return;
    }
    closing(c);
    if (!c->reset)
        conn_end(c->conn);
}

int client_write(struct client *c, struct span s)
{
    if (c->reset) /* what it has is not all: nothing may follow */
        return -1;
    c->written += s.n;
    return conn_write(c->conn, s);
}

/* Nobody waits for the answer any more. A ticket stays; what was not sent is not sent. */
static void peer_left(struct client *c)
{
    c->eof = true;
    if (client_asks(c) || conn_queued(c->conn) == 0)
        client_free(c);
    else
        client_finish(c); /* it may still read what was answered before */
}

static void on_event(void *arg, struct conn *conn, enum conn_event ev)
{
    struct client *c = arg;
    switch (ev) {
    case CONN_TLS_READY:
        client_change(c, CLIENT_TUNNEL);
        client_wait(c, WAIT_IDLE);
        break;
    case CONN_DATA: client_go_on(c); break;
    case CONN_DRAINED: front_drained(c); break;
    case CONN_EOF:
    case CONN_TRUNCATED: peer_left(c); break;
    case CONN_TIMEOUT: client_timeout(c); break;
    case CONN_FAILED:
        if (c->state == CLIENT_HANDSHAKE) {
            log_exchange(LOG_INFO, client_asks(c) ? c->x.xid : 0, "TLS from the sandbox failed for %s: %s", c->host,
                         conn_why(conn));
            front_note(c, conn_tls_code(conn));
        }
        client_free(c);
        break;
    case CONN_CONNECTED: break;
    }
}

/* One connection too many: the words are sent on good luck, its head was not read, or not by us. */
static void too_many(struct front *f, int fd, const struct arrival *a)
{
    uint8_t socks[SOCKS5_REPLY_BYTES];
    struct span words = SPAN("HTTP/1.1 503 Service Unavailable\r\nCountersign-Decision: refused\r\n"
                             "Content-Type: text/plain\r\nConnection: close\r\nRetry-After: 2\r\n\r\n"
                             "too-many-connections: this sandbox has more connections open than it may; "
                             "close some and try again\n");
    if (a->way == WAY_SOCKS) {
        socks5_reply(SOCKS5_FAILURE, socks);
        words = span_of(socks, sizeof(socks));
    }
    ssize_t n = write(fd, words.p, words.n);
    if (n < 0)
        log_debug("a connection over the limit was not told so");
    close(fd);
    front_note_stranger(f, "too-many-connections", a->port);
}

static enum client_state first_state(const struct arrival *a)
{
    switch (a->way) {
    case WAY_HTTP: return CLIENT_PROXY;
    case WAY_SOCKS: return CLIENT_SOCKS;
    case WAY_CAPTURED: return a->header ? CLIENT_FIRST : CLIENT_LOOK;
    case WAY_STEP: return CLIENT_STEP;
    case WAY_NONE: break;
    }
    return CLIENT_GONE;
}

static struct client *born(struct front *f, int fd, const struct arrival *a)
{
    enum client_state first = first_state(a);
    if (f->nclients >= f->limits.clients) {
        too_many(f, fd, a);
        return NULL;
    }
    /* A port goes with what was captured, and with nothing else. */
    if (first == CLIENT_GONE || (a->port != 0) != (first == CLIENT_LOOK)) {
        log_error("a connection came in a way that is none; it is closed");
        close(fd);
        return NULL;
    }
    struct client *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        close(fd);
        return NULL;
    }
    c->front = f;
    dynbuf_init(&c->auth, FRONT_AUTH_MAX);
    c->conn = conn_new(f->loop, fd, FRONT_INPUT_MAX, on_event, c);
    if (c->conn == NULL || dynbuf_add(&c->auth, a->auth) != 0 ||
        (a->bytes.n && conn_unread(c->conn, a->bytes) != 0)) {
        conn_free(&c->conn);
        dynbuf_free(&c->auth);
        free(c);
        return NULL;
    }
    c->port = a->port;
    client_change(c, first);
    c->next = f->clients;
    if (f->clients != NULL)
        f->clients->prev = c;
    f->clients = c;
    f->nclients++;
    front_counted(f);
    client_wait(c, WAIT_HEAD);
    return c;
}

void client_adopt(struct front *f, int fd, const struct arrival *a)
{
    struct client *c = born(f, fd, a);
    if (c != NULL && a->bytes.n)
        client_go_on(c);
}

void client_not_captured(struct front *f, int fd)
{
    struct client *c = born(f, fd, &(struct arrival){.way = WAY_HTTP});
    if (c != NULL)
        front_refuse(c, 400, "not-captured",
                     "this listener takes connections that were redirected to it, not those made to it; use the "
                     "destination's own address, or another listener as a proxy");
}
