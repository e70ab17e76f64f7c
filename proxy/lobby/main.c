/* The lobby: the outer handshake of a token listener. Reads one head, asks the
 * judge whose token that is, and gives the connection with what was read to that
 * sandbox's front. It sees nothing inside a tunnel and keeps nothing. */
#include <stdlib.h>
#include <unistd.h>

#include "common/http/http.h"
#include "common/log.h"
#include "common/net/conn.h"
#include "common/role.h"
#include "proxy/wire.h"

enum {
    GUESTS_MAX = 512,
    HEAD_MS = 10 * 1000,
    KNOCKS_MAX = 16,
    TRIES = 3,
    INPUT_MAX = 64 * 1024,
    AUTH_MAX = 8 * 1024
};

struct guest {
    struct conn *conn;
    size_t seen;
    uint64_t asked; /* id of the question to the judge; 0: none open */
    unsigned tries;
    struct dynbuf auth;
    struct guest *next, *prev;
};

static struct lobby {
    struct loop *loop;
    struct role *role;
    struct chan *judge;
    struct guest *guests;
    size_t nguests;
    uint64_t questions;
    struct {
        int fd;
        struct watch *watch;
    } door[KNOCKS_MAX];
    size_t ndoors;
} lobby;

static void doors(bool open)
{
    for (size_t i = 0; i < lobby.ndoors; i++)
        watch_set(lobby.door[i].watch, open ? WATCH_READ : 0);
}

/* finish: flush what was said first. */
static void guest_end(struct guest *g, bool finish)
{
    if (g->conn != NULL && finish)
        conn_finish(&g->conn);
    conn_free(&g->conn);
    *(g->prev ? &g->prev->next : &lobby.guests) = g->next;
    if (g->next != NULL)
        g->next->prev = g->prev;
    if (lobby.nguests-- == GUESTS_MAX)
        doors(true);
    dynbuf_wipe(&g->auth);
    free(g);
}

#define CHALLENGE "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"countersign\"\r\n"

/* Nothing that came in is reflected; the words say what to do. */
static void say_407(struct guest *g, bool keep)
{
    static const struct span kept = SPAN(CHALLENGE "Content-Length: 0\r\n\r\n");
    static const struct span last =
        SPAN(CHALLENGE "Connection: close\r\nContent-Type: text/plain\r\nContent-Length: 85\r\n\r\n"
                       "This sandbox is not known. Get a token with `countersign sandbox create` on the host.\n");
    if (conn_write(g->conn, keep ? kept : last) != 0 || !keep)
        guest_end(g, true);
}

static void say_bad(struct guest *g)
{
    if (conn_write(g->conn, SPAN("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")) != 0)
        guest_end(g, false);
    else
        guest_end(g, true);
}

static void say_503(struct guest *g)
{
    if (conn_write(g->conn, SPAN("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\n"
                                 "Content-Length: 0\r\n\r\n")) != 0)
        guest_end(g, false);
    else
        guest_end(g, true);
}

/* RFC 7617: the password is the token; Bearer carries it bare. */
static struct span token_of(struct span value, uint8_t *room)
{
    struct span scheme, rest, user, token;
    size_t n;
    if (!span_cut(value, ' ', &scheme, &rest))
        return SPAN_NONE;
    rest = span_trim(rest);
    if (span_ieq(scheme, SPAN("Bearer")))
        return rest;
    if (!span_ieq(scheme, SPAN("Basic")) || rest.n > AUTH_MAX || base64_decode(rest, room, &n) != 0)
        return SPAN_NONE;
    return span_cut(span_of(room, n), ':', &user, &token) ? token : SPAN_NONE;
}

static void ask(struct guest *g, struct span token)
{
    struct dynbuf *b = lobby.judge ? chan_begin(lobby.judge, M_IDENTIFY, ++lobby.questions) : NULL;
    if (b == NULL) {
        say_503(g);
        return;
    }
    g->asked = lobby.questions;
    msg_put_span(b, span_first(token, 256));
    (void)chan_commit(lobby.judge);
}

static void read_head(struct guest *g)
{
    struct http_head h;
    struct http_err e;
    size_t used;
    uint8_t room[AUTH_MAX];
    if (g->asked)
        return;
    enum http_result r = http_parse_request(conn_input(g->conn), HTTP_ON_PROXY_PORT, &g->seen, &h, &used, &e);
    if (r == HTTP_MORE)
        return;
    g->seen = 0;
    if (r != HTTP_OK) {
        say_bad(g);
        return;
    }
    const struct http_field *auth = http_find(&h, SPAN("Proxy-Authorization"));
    if (auth == NULL) {
        /* git and Java send nothing before they are asked. A body would have to be read: close then. */
        bool keep = h.framing == HTTP_NO_BODY && h.keep_alive && ++g->tries < TRIES;
        conn_consume(g->conn, used);
        say_407(g, keep);
        return;
    }
    struct span token = token_of(auth->value, room);
    if (token.n == 0 || dynbuf_add(&g->auth, auth->value) != 0)
        say_407(g, false);
    else
        ask(g, token);
    explicit_bzero(room, sizeof(room));
}

/* The head stays unread: the front parses it itself. */
static void hand_over(struct guest *g, struct span sandbox)
{
    struct dynbuf rest;
    dynbuf_init(&rest, INPUT_MAX);
    int fd = conn_release(&g->conn, &rest);
    struct dynbuf *b = fd < 0 ? NULL : chan_begin(role_parent(lobby.role), M_HANDOVER, 0);
    if (b != NULL) {
        msg_put_span(b, sandbox);
        msg_put_span(b, dynbuf_span(&g->auth));
        msg_put_span(b, dynbuf_span(&rest));
        (void)chan_commit_fd(role_parent(lobby.role), fd);
    }
    if (fd >= 0)
        close(fd);
    dynbuf_free(&rest);
    guest_end(g, false);
}

static void from_judge(void *arg, struct chan *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    bool known = msg_get_bool(&m);
    struct span sandbox = msg_get_span(&m, 255);
    struct guest *g = lobby.guests;
    while (g != NULL && g->asked != f->id)
        g = g->next;
    if (g == NULL || f->type != M_IDENTITY)
        return; /* it left */
    if (msg_end(&m) != 0 || !known || sandbox.n == 0)
        say_407(g, false);
    else
        hand_over(g, sandbox);
}

static void judge_gone(void *arg, struct chan *c)
{
    chan_free(&lobby.judge);
    for (struct guest *g = lobby.guests, *next; g != NULL; g = next) {
        next = g->next;
        if (g->asked)
            say_503(g);
    }
}

static void on_event(void *arg, struct conn *c, enum conn_event ev)
{
    if (ev == CONN_DATA)
        read_head(arg);
    else if (ev != CONN_DRAINED && ev != CONN_CONNECTED)
        guest_end(arg, false);
}

static void on_knock(void *arg, unsigned ready)
{
    for (int i = 0; i < 32 && lobby.nguests < GUESTS_MAX; i++) {
        int fd = listen_accept(*(int *)arg);
        struct guest *g = fd < 0 ? NULL : calloc(1, sizeof(*g));
        if (g == NULL || (g->conn = conn_new(lobby.loop, fd, INPUT_MAX, on_event, g)) == NULL) {
            if (fd >= 0 && g == NULL)
                close(fd);
            free(g);
            return;
        }
        dynbuf_init(&g->auth, AUTH_MAX);
        g->next = lobby.guests;
        if (g->next != NULL)
            g->next->prev = g;
        lobby.guests = g;
        if (++lobby.nguests == GUESTS_MAX)
            doors(false);
        conn_deadline(g->conn, HEAD_MS);
    }
}

static void on_frame(void *arg, struct frame *f)
{
    int fd = frame_take_fd(f, 0);
    if (f->type != M_LISTEN || fd < 0 || lobby.ndoors == KNOCKS_MAX) {
        if (fd >= 0)
            close(fd);
        return;
    }
    lobby.door[lobby.ndoors].fd = fd;
    lobby.door[lobby.ndoors].watch = watch_new(lobby.loop, fd, WATCH_READ, on_knock, &lobby.door[lobby.ndoors].fd);
    if (lobby.door[lobby.ndoors++].watch == NULL)
        log_die("out of memory");
}

static void on_peer(void *arg, unsigned peer, uint64_t instance, struct span info, int fd)
{
    static const struct chan_ops ops = {from_judge, judge_gone};
    if (peer != ROLE_JUDGE) {
        close(fd);
        return;
    }
    if (lobby.judge != NULL)
        judge_gone(NULL, lobby.judge);
    lobby.judge = chan_new(lobby.loop, fd, &ops, NULL);
}

int main(void)
{
    static const struct role_ops ops = {.frame = on_frame, .peer = on_peer};
    static const struct wall wall = {.calls = WALL_ACCEPT};
    if ((lobby.loop = loop_new()) == NULL)
        log_die("no event loop");
    lobby.role = role_start("lobby", lobby.loop, &ops, NULL);
    role_confine(lobby.role, &wall);
    role_ready(lobby.role);
    return loop_run(lobby.loop) == 0 ? 0 : 1;
}
