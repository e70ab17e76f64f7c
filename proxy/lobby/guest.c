/* One connection in the lobby: IDENTIFY of proxy/walk.h. */
#include "proxy/lobby/guest.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/http/http.h"
#include "common/id.h"

void guest_free(struct guest *g)
{
    struct lobby *l = g->lobby;
    conn_free(&g->conn);
    *(g->newer ? &g->newer->older : &l->newest) = g->older;
    *(g->older ? &g->older->newer : &l->oldest) = g->newer;
    l->nguests--;
    dynbuf_wipe(&g->auth);
    free(g);
}

/* What still comes is taken and dropped: unread bytes would turn the close into a reset. */
static void say_last(struct guest *g, struct span words)
{
    g->closing = true;
    g->asked = 0;
    conn_consume(g->conn, conn_input(g->conn).n);
    if (conn_write(g->conn, words) != 0) {
        guest_free(g);
        return;
    }
    conn_end(g->conn);
    conn_deadline(g->conn, g->lobby->limits.close_ms);
}

#define CHALLENGE "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"countersign\"\r\n"
#define LAST      "Connection: close\r\nContent-Type: text/plain\r\n\r\n"

/* Nothing that came in is reflected; the words say what to do. */
void guest_unknown(struct guest *g)
{
    say_last(g, SPAN(CHALLENGE LAST "unknown-sandbox: no sandbox has this token. Get one with "
                                    "`countersign sandbox create` on the host.\n"));
}

void guest_later(struct guest *g)
{
    say_last(g, SPAN("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n" LAST
                     "gateway-restarting: a part of the gateway is restarting; repeat the request.\n"));
}

static void say_bad(struct guest *g, const struct http_err *e)
{
    struct dynbuf b;
    dynbuf_init(&b, 2048);
    (void)dynbuf_addf(&b, "HTTP/1.1 %u Refused\r\n" LAST "%s: %s.\n", e->status, e->code, e->why);
    say_last(g, dynbuf_span(&b));
    dynbuf_free(&b);
}

/* git and Java send nothing before they are asked. A body would have to be read: close then.
 * True: there is more input to look at. */
static bool challenge(struct guest *g, const struct http_head *h, size_t used)
{
    if (h->framing != HTTP_NO_BODY || !h->keep_alive || ++g->tries == LOBBY_TRIES) {
        say_last(g, SPAN(CHALLENGE LAST
                         "unknown-sandbox: this proxy wants a token as the password of Basic. Get one with "
                         "`countersign sandbox create` on the host.\n"));
        return false;
    }
    conn_consume(g->conn, used);
    if (conn_write(g->conn, SPAN(CHALLENGE "Content-Length: 0\r\n\r\n")) != 0) {
        guest_free(g);
        return false;
    }
    return conn_input(g->conn).n > 0;
}

/* RFC 7617: the password is the token; Bearer carries it bare. room: LOBBY_AUTH_MAX bytes. */
static struct span token_of(struct span value, uint8_t *room)
{
    struct span scheme, rest, user, token;
    size_t n;
    if (!span_cut(value, ' ', &scheme, &rest))
        return SPAN_NONE;
    rest = span_trim(rest);
    if (span_ieq(scheme, SPAN("Bearer")))
        return rest;
    if (!span_ieq(scheme, SPAN("Basic")) || rest.n > LOBBY_AUTH_MAX || base64_decode(rest, room, &n) != 0)
        return SPAN_NONE;
    return span_cut(span_of(room, n), ':', &user, &token) ? token : SPAN_NONE;
}

static void ask(struct guest *g, struct span token)
{
    struct lobby *l = g->lobby;
    struct dynbuf *b = l->judge ? chan_begin(l->judge, M_IDENTIFY, ++l->questions) : NULL;
    if (b == NULL) {
        guest_later(g);
        return;
    }
    g->asked = l->questions;
    msg_put_span(b, token);
    (void)chan_commit(l->judge); /* if not, the judge's going is told next */
}

static void identify(struct guest *g, struct span value)
{
    uint8_t room[LOBBY_AUTH_MAX];
    struct span token = value.n <= LOBBY_AUTH_MAX ? token_of(value, room) : SPAN_NONE;
    if (token.n == 0 || token.n > LOBBY_TOKEN_MAX || dynbuf_add(&g->auth, value) != 0)
        guest_unknown(g);
    else
        ask(g, token);
    explicit_bzero(room, sizeof(room));
}

/* False: nothing more to read, or the guest is gone. */
static bool read_head(struct guest *g)
{
    struct http_head h;
    struct http_err e = {400, "bad-request", "the request cannot be understood"};
    size_t used;
    enum http_result r = http_parse_request(conn_input(g->conn), HTTP_ON_PROXY_PORT, &g->seen, &h, &used, &e);
    if (r == HTTP_MORE)
        return false;
    g->seen = 0;
    if (r != HTTP_OK) {
        say_bad(g, &e);
        return false;
    }
    const struct http_field *auth = http_find(&h, SPAN("Proxy-Authorization"));
    if (auth == NULL)
        return challenge(g, &h, used);
    identify(g, auth->value); /* the head stays unread: the front parses it itself */
    return false;
}

void guest_known(struct guest *g, struct span sandbox)
{
    struct chan *parent = g->lobby->parent;
    struct dynbuf rest;
    dynbuf_init(&rest, LOBBY_INPUT_MAX);
    int fd = conn_release(&g->conn, &rest);
    struct dynbuf *b = fd < 0 || parent == NULL ? NULL : chan_begin(parent, M_HANDOVER, 0);
    if (b != NULL) {
        msg_put_u8(b, WAY_HTTP);
        msg_put_u16(b, 0);
        msg_put_span(b, sandbox);
        msg_put_span(b, dynbuf_span(&g->auth));
        msg_put_span(b, dynbuf_span(&rest));
        (void)chan_commit_fd(parent, fd);
    }
    if (fd >= 0)
        close(fd);
    dynbuf_wipe(&rest);
    guest_free(g);
}

static void timed_out(struct guest *g)
{
    static const struct http_err slow = {408, "head-too-slow",
                                         "the request's head did not come within the time it is given"};
    if (g->closing)
        guest_free(g);
    else if (g->asked)
        guest_later(g);
    else if (conn_input(g->conn).n > 0)
        say_bad(g, &slow);
    else
        guest_free(g);
}

static void on_event(void *arg, struct conn *c, enum conn_event ev)
{
    struct guest *g = arg;
    switch (ev) {
    case CONN_DATA:
        if (g->closing) {
            conn_consume(c, conn_input(c).n);
            break;
        }
        while (!g->asked && read_head(g))
            ;
        break;
    case CONN_TIMEOUT: timed_out(g); break;
    case CONN_DRAINED:
    case CONN_CONNECTED: break;
    default: guest_free(g); break;
    }
}

void guest_new(struct lobby *l, int fd)
{
    struct guest *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        close(fd);
        return;
    }
    g->lobby = l;
    dynbuf_init(&g->auth, LOBBY_AUTH_MAX);
    g->conn = conn_new(l->loop, fd, LOBBY_INPUT_MAX, on_event, g);
    if (g->conn == NULL) {
        free(g);
        return;
    }
    g->older = l->newest;
    *(g->older ? &g->older->newer : &l->oldest) = g;
    l->newest = g;
    l->nguests++;
    conn_deadline(g->conn, l->limits.head_ms);
}
