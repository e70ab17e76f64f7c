/* The HTTP way in: one request head with a token, and 407 until there is one. */
#include "common/http/http.h"
#include "common/id.h"
#include "proxy/lobby/pending.h"

void pending_say_problem(struct pending *g, unsigned status, const char *code, const char *why)
{
    struct dynbuf b;
    dynbuf_init(&b, 2048);
    (void)dynbuf_addf(&b, "HTTP/1.1 %u Refused\r\n" PENDING_LAST "%s: %s.\n", status, code, why);
    pending_refuse(g, code, dynbuf_span(&b));
    dynbuf_free(&b);
}

/* git and Java send nothing before they are asked. A body would have to be read: close then.
 */
static enum walk_next challenge(struct pending *g, const struct http_head *h, size_t used)
{
    if (h->framing != HTTP_NO_BODY || !h->keep_alive || ++g->tries == LOBBY_TRIES) {
        pending_refuse(g, "no-token",
                       SPAN(PENDING_CHALLENGE PENDING_LAST
                            "unknown-sandbox: this proxy wants a token as the password of Basic. Get one with "
                            "`countersign sandbox create` on the host.\n"));
        return WALK_DONE;
    }
    conn_consume(g->conn, used);
    if (conn_write(g->conn, SPAN(PENDING_CHALLENGE "Content-Length: 0\r\n\r\n")) != 0) {
        pending_free(g);
        return WALK_DONE;
    }
    return conn_input(g->conn).n > 0 ? WALK_NEXT : WALK_WAIT;
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

static void identify(struct pending *g, struct span value)
{
    uint8_t room[LOBBY_AUTH_MAX];
    struct span token = value.n <= LOBBY_AUTH_MAX ? token_of(value, room) : SPAN_NONE;
    if (token.n == 0 || token.n > LOBBY_TOKEN_MAX || dynbuf_add(&g->auth, value) != 0)
        pending_unknown(g);
    else
        pending_ask(g, token);
    explicit_bzero(room, sizeof(room));
}

/* Who speaks first for another, and may not. */
static bool begins_with_proxy(struct span in)
{
    return span_starts(in, SPAN("PROXY ")) || span_starts(in, SPAN("\r\n\r\n\0\r\nQUIT\n"));
}

enum walk_next pending_head(struct pending *g)
{
    struct http_head h;
    struct http_err e = {400, "bad-request", "the request cannot be understood"};
    size_t used;
    if (begins_with_proxy(conn_input(g->conn))) {
        pending_say_problem(g, 400, "bad-proxy-header", "this listener takes no PROXY header from there");
        return WALK_DONE;
    }
    enum http_result r = http_parse_request(conn_input(g->conn), HTTP_ON_PROXY_PORT, &g->seen, &h, &used, &e);
    if (r == HTTP_MORE)
        return WALK_WAIT;
    g->seen = 0;
    if (r != HTTP_OK) {
        pending_say_problem(g, e.status, e.code, e.why);
        return WALK_DONE;
    }
    const struct http_field *auth = http_find(&h, SPAN("Proxy-Authorization"));
    if (auth == NULL)
        return challenge(g, &h, used);
    identify(g, auth->value); /* the head stays unread: the front parses it itself */
    return WALK_DONE;
}
