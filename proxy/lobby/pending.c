/* One connection in the lobby: IDENTIFY of proxy/walk.h. */
#include "proxy/lobby/pending.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/handshake/socks5.h"
#include "proxy/lobby/relay.h"

void pending_free(struct pending *g)
{
    struct lobby *l = g->lobby;
    conn_free(&g->conn);
    *(g->newer ? &g->newer->older : &l->newest) = g->older;
    *(g->older ? &g->older->newer : &l->oldest) = g->newer;
    l->npending--;
    dynbuf_wipe(&g->auth);
    free(g);
}

/* What still comes is taken and dropped: unread bytes would turn the close into a reset. */
void pending_refuse(struct pending *g, const char *code, struct span words)
{
    lobby_refused(g->lobby, g->door, code);
    g->closing = true;
    g->asked = 0;
    conn_consume(g->conn, conn_input(g->conn).n);
    if (words.n == 0 || conn_write(g->conn, words) != 0) {
        pending_free(g);
        return;
    }
    conn_end(g->conn);
    conn_deadline(g->conn, g->lobby->limits.close_ms);
}

/* Of a login: RFC 1929 knows nothing but "no". */
static const uint8_t login_no[] = {1, 1};

/* Nothing that came in is reflected; the words say what to do. */
void pending_unknown(struct pending *g)
{
    if (g->step == PENDING_LOGIN)
        pending_refuse(g, "unknown-token", span_of(login_no, sizeof(login_no)));
    else
        pending_refuse(g, "unknown-token",
                       SPAN(PENDING_CHALLENGE PENDING_LAST "unknown-sandbox: no sandbox has this token. Get one with "
                                                           "`countersign sandbox create` on the host.\n"));
}

void pending_later(struct pending *g)
{
    if (g->step == PENDING_LOGIN)
        pending_refuse(g, "gateway-restarting", span_of(login_no, sizeof(login_no)));
    else
        pending_refuse(g, "gateway-restarting",
                       SPAN("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n" PENDING_LAST
                            "gateway-restarting: a part of the gateway is restarting; repeat the request.\n"));
}

void pending_ask(struct pending *g, struct span token)
{
    struct lobby *l = g->lobby;
    struct dynbuf *b = l->judge ? chan_begin(l->judge, M_IDENTIFY, ++l->questions) : NULL;
    if (b == NULL) {
        pending_later(g);
        return;
    }
    g->asked = l->questions;
    msg_put_span(b, token);
    (void)chan_commit(l->judge); /* if not, the judge's going is told next */
}

/* The login is read only when the judge has said yes: until then it may be asked about again. */
static int login_done(struct pending *g)
{
    static const uint8_t yes[] = {1, 0};
    struct span user, token;
    size_t used;
    if (socks5_login(conn_input(g->conn), &user, &token, &used) != SOCKS5_OK)
        return -1;
    conn_consume(g->conn, used); /* and wiped with it */
    return conn_write(g->conn, span_of(yes, sizeof(yes)));
}

void pending_known(struct pending *g, struct span sandbox)
{
    if (g->step == PENDING_LOGIN && login_done(g) != 0)
        pending_free(g);
    else
        pending_handover(g, sandbox);
}

static void give(struct pending *g, struct span sandbox, struct span bytes, int fd)
{
    struct chan *parent = g->lobby->parent;
    struct dynbuf *b = parent == NULL ? NULL : chan_begin(parent, M_HANDOVER, 0);
    if (b == NULL)
        return;
    msg_put_u8(b, (uint8_t)g->door->way);
    msg_put_u16(b, g->port);
    msg_put_span(b, sandbox);
    msg_put_span(b, dynbuf_span(&g->auth));
    msg_put_span(b, bytes);
    (void)chan_commit_fd(parent, fd);
}

void pending_handover(struct pending *g, struct span sandbox)
{
    struct dynbuf rest;
    int fd = -1;
    dynbuf_init(&rest, LOBBY_INPUT_MAX);
    if (g->tls && !relay_room(g->lobby, sandbox)) {
        if (g->door->way == WAY_HTTP)
            pending_say_problem(g, 503, "too-many-connections",
                                "this sandbox has as many connections open as one may have; close some");
        else
            pending_refuse(g, "too-many-connections", SPAN_NONE);
        return;
    }
    if (g->tls)
        fd = relay_new(g->lobby, sandbox, &g->conn);
    else if (conn_push(g->conn) == 0) /* what a SOCKS client waits for */
        fd = conn_release(&g->conn, &rest);
    if (fd >= 0) {
        give(g, sandbox, dynbuf_span(&rest), fd);
        close(fd);
    }
    dynbuf_wipe(&rest);
    pending_free(g);
}

static void timed_out(struct pending *g)
{
    if (g->closing)
        pending_free(g);
    else if (g->asked)
        pending_later(g);
    else if (g->step == PENDING_HEAD && conn_input(g->conn).n > 0)
        pending_say_problem(g, 408, "head-too-slow", "the request's head did not come within the time it is given");
    else
        pending_refuse(g, "handshake-too-slow", SPAN_NONE);
}

static void on_event(void *arg, struct conn *c, enum conn_event ev)
{
    struct pending *g = arg;
    switch (ev) {
    case CONN_DATA:
        if (g->closing) {
            conn_consume(c, conn_input(c).n);
            break;
        }
        pending_go_on(g);
        break;
    case CONN_TIMEOUT: timed_out(g); break;
    case CONN_TLS_READY: pending_tls_ready(g); break;
    case CONN_DRAINED:
    case CONN_CONNECTED: break;
    case CONN_FAILED:
        if (g->step == PENDING_TLS && !g->closing)
            lobby_refused(g->lobby, g->door, "tls-failed");
        pending_free(g);
        break;
    default: pending_free(g); break;
    }
}

/* Where from, and for the captured where to. */
static const char *where(struct pending *g, int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof(a);
    uint16_t port;
    if (getpeername(fd, (struct sockaddr *)&a, &n) != 0 ||
        addr_of_sockaddr((struct sockaddr *)&a, &g->from, &port) != 0)
        return "gone";
    if (g->door->way == WAY_CAPTURED && listen_original_port(fd, &g->port) != 0)
        return "not-captured";
    return NULL;
}

void pending_new(struct lobby_door *d, int fd)
{
    struct lobby *l = d->lobby;
    struct pending *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        close(fd);
        return;
    }
    g->lobby = l;
    g->door = d;
    const char *why = where(g, fd);
    dynbuf_init(&g->auth, LOBBY_AUTH_MAX);
    if (why != NULL)
        lobby_refused(l, d, why);
    if (why != NULL || (g->conn = conn_new(l->loop, fd, LOBBY_INPUT_MAX, on_event, g)) == NULL) {
        if (why != NULL)
            close(fd);
        free(g);
        return;
    }
    g->older = l->newest;
    *(g->older ? &g->older->newer : &l->oldest) = g;
    l->newest = g;
    l->npending++;
    conn_deadline(g->conn, l->limits.head_ms);
    pending_begin(g);
}
