/* One connection of the sandbox: from accept to close. */
#include "proxy/front/front.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"

enum { SLOTS = 4096 };

uint64_t client_new_xid(struct client *c)
{
    struct front *f = c->front;
    if (f->by_slot == NULL && (f->by_slot = calloc(SLOTS, sizeof(struct client *))) == NULL)
        log_die("out of memory");
    do
        f->counter++;
    while (f->by_slot[f->counter % SLOTS] != NULL); /* at most CLIENTS_MAX of SLOTS are taken */
    f->by_slot[f->counter % SLOTS] = c;
    c->x = (struct exchange){.xid = f->instance << 40 | f->counter, .memfd = -1};
    dynbuf_init(&c->x.whole, BODY_INLINE_MAX);
    c->on = true;
    return c->x.xid;
}

struct client *client_of(struct front *f, uint64_t xid)
{
    if (f->by_slot == NULL || xid >> 40 != f->instance)
        return NULL;
    struct client *c = f->by_slot[(xid & ((UINT64_C(1) << 40) - 1)) % SLOTS];
    return c != NULL && c->on && c->x.xid == xid ? c : NULL; /* a late frame is nobody's */
}

void exchange_end(struct client *c, const char *reason)
{
    if (!c->on)
        return;
    log_debug("exchange %llx ends: %s", (unsigned long long)c->x.xid, reason);
    c->front->by_slot[(c->x.xid & ((UINT64_C(1) << 40) - 1)) % SLOTS] = NULL;
    front_body_free(&c->x);
    c->on = false;
}

void client_state(struct client *c, enum client_state s)
{
    static const char *const names[] = {"gone", "proxy", "leaf", "handshake", "tunnel"};
    log_debug("client %s -> %s", names[c->state], names[s]);
    c->state = s;
}

static void unlink_client(struct client *c)
{
    struct front *f = c->front;
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        f->clients = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    f->nclients--;
    if (f->listening != NULL && f->nclients + 1 == CLIENTS_MAX)
        watch_set(f->listening, WATCH_READ);
    if (f->nclients == 0)
        timer_set(f->idle, FRONT_IDLE_MS);
}

static void end(struct client *c, bool at_once)
{
    if (c->on && c->front->judge != NULL)
        chan_send(c->front->judge, M_CANCEL, c->x.xid, SPAN_NONE);
    exchange_end(c, at_once ? "the connection was cut" : "the connection is closed");
    if (at_once)
        conn_free(&c->conn);
    else
        conn_finish(&c->conn);
    unlink_client(c);
    tls_leaf_free(&c->leaf);
    dynbuf_free(&c->auth);
    client_state(c, CLIENT_GONE);
    free(c);
}

void client_free(struct client *c)
{
    end(c, true);
}

void client_finish(struct client *c)
{
    end(c, false);
}

/* PARSE on the proxy port: CONNECT opens a tunnel, an absolute http:// target is a request. */
static enum walk_next read_head(struct client *c)
{
    struct http_head h;
    struct http_err e = {400, "bad-request", "the request cannot be understood"};
    size_t used = 0;
    enum http_place place = c->state == CLIENT_TUNNEL ? HTTP_IN_TUNNEL : HTTP_ON_PROXY_PORT;
    enum http_result r = http_parse_request(conn_input(c->conn), place, &c->seen, &h, &used, &e);
    if (r == HTTP_MORE) {
        if (conn_input(c->conn).n > 0)
            conn_deadline(c->conn, HEAD_MS);
        return c->eof ? WALK_DONE : WALK_WAIT;
    }
    c->seen = 0;
    enum walk_next n = WALK_FAIL;
    if (r == HTTP_OK)
        n = h.form == HTTP_AUTHORITY ? front_connect(c, &h) : front_request(c, &h, &e);
    if (n == WALK_FAIL) {
        front_refuse(c, e.status, e.code, e.why);
        return WALK_FAIL; /* the client is closed */
    }
    conn_consume(c->conn, used);
    return n;
}

/* The front's runner: from where the connection stands, as far as the input reaches. */
void client_go_on(struct client *c)
{
    for (enum walk_next n = WALK_NEXT; n == WALK_NEXT;) {
        if (c->state == CLIENT_LEAF || c->state == CLIENT_HANDSHAKE)
            return;
        n = c->on ? front_body_go_on(c) : read_head(c);
        if (n == WALK_DONE) {
            client_finish(c);
            return;
        }
        /* WALK_FAIL: refused, and already closed. WALK_WAIT: an event will come back here. */
    }
}

/* Nobody waits for the answer any more. A ticket stays; what was not sent is not sent. */
static void peer_left(struct client *c)
{
    c->eof = true;
    if (c->on || conn_input(c->conn).n == 0)
        client_free(c);
    else
        client_go_on(c);
}

static void on_event(void *arg, struct conn *conn, enum conn_event ev)
{
    struct client *c = arg;
    switch (ev) {
    case CONN_TLS_READY:
        client_state(c, CLIENT_TUNNEL);
        conn_deadline(conn, HEAD_MS);
        break;
    case CONN_DATA: client_go_on(c); break;
    case CONN_DRAINED: front_drained(c); break;
    case CONN_EOF: peer_left(c); break;
    case CONN_TIMEOUT:
        if (c->on && !c->x.answering && c->x.mode == BODY_MODE_DONE)
            break; /* the judge has its own clock */
        log_debug("a connection timed out in state %d", (int)c->state);
        client_free(c);
        break;
    case CONN_FAILED:
        if (c->state == CLIENT_HANDSHAKE)
            log_info("TLS from the sandbox failed for %s: %s", c->host, conn_why(conn));
        client_free(c);
        break;
    case CONN_TRUNCATED: client_free(c); break;
    case CONN_CONNECTED: break;
    }
}

void client_adopt(struct front *f, int fd, struct span auth, struct span bytes)
{
    struct client *c = f->nclients < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
    if (c == NULL) {
        close(fd);
        return;
    }
    c->front = f;
    c->state = CLIENT_PROXY;
    dynbuf_init(&c->auth, 8 * 1024);
    c->conn = conn_new(f->loop, fd, INPUT_MAX, on_event, c);
    if (c->conn == NULL || dynbuf_add(&c->auth, auth) != 0 || (bytes.n && conn_unread(c->conn, bytes) != 0)) {
        conn_free(&c->conn);
        dynbuf_free(&c->auth);
        free(c);
        return;
    }
    c->next = f->clients;
    if (f->clients != NULL)
        f->clients->prev = c;
    f->clients = c;
    if (++f->nclients == CLIENTS_MAX && f->listening != NULL)
        watch_set(f->listening, 0);
    timer_clear(f->idle);
    conn_deadline(c->conn, HEAD_MS);
    if (bytes.n)
        client_go_on(c);
}
