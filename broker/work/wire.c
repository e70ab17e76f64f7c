#include "broker/work/wire.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/http/http.h"
#include "common/net/addr.h"
#include "common/net/conn.h"
#include "common/net/loop.h"

enum { IN_MAX = 128 * 1024, CONNECT_MS = 60 * 1000, HEAD_ROOM = 32 * 1024, PART = 256 * 1024 };

struct wire {
    struct work *w;
    struct conn *conn;
    wire_fn *fn;
    void *arg;
    enum { W_DIALS = 0, W_TUNNEL, W_TLS, W_HEAD, W_BODY } at;
    bool secure, busy, dead;
    char host[HTTP_HOST_MAX + 1], authority[HTTP_HOST_MAX + 8];
    struct dynbuf out, connect; /* the request, and what comes before it */
    size_t sent, seen;
    struct http_head head;
    struct dynbuf raw; /* of the head */
    struct http_body body;
    const char *why;
};

const struct http_head *wire_head(const struct wire *w)
{
    return &w->head;
}

bool wire_left(const struct wire *w)
{
    return w->sent > 0;
}

const char *wire_why(const struct wire *w)
{
    return w->why ? w->why : "the gateway's proxy cannot be reached";
}

void wire_free(struct wire **at)
{
    struct wire *w = *at;
    if (w == NULL)
        return;
    *at = NULL;
    conn_free(&w->conn);
    dynbuf_wipe(&w->out);
    dynbuf_wipe(&w->connect);
    dynbuf_free(&w->raw);
    w->dead = true;
    if (!w->busy)
        free(w);
}

/* False: it is gone. */
static bool tell(struct wire *w, enum wire_event ev, struct span data)
{
    w->busy = true;
    w->fn(w->arg, ev, data);
    w->busy = false;
    if (!w->dead)
        return true;
    free(w);
    return false;
}

static void fail(struct wire *w, const char *why)
{
    w->why = why;
    (void)tell(w, WIRE_FAILED, SPAN_NONE);
}

/* --- what is asked ------------------------------------------------------------------------ */

struct target {
    struct span host, rest; /* rest: the path */
    uint16_t port;
    bool secure;
};

static int take_url(struct span url, struct target *t)
{
    struct span authority, host, port;
    uint64_t n;
    t->secure = span_starts(url, SPAN("https://"));
    url = span_from(url, t->secure ? 8 : 7);
    size_t slash = span_index(url, '/');
    authority = span_first(url, slash);
    t->rest = span_from(url, slash);
    n = t->secure ? 443 : 80;
    if (span_cut(authority, ':', &host, &port) && span_u64(port, 65535, &n) != 0)
        return -1;
    t->host = host;
    t->port = (uint16_t)n;
    return host.n > 0 && host.n <= HTTP_HOST_MAX && t->rest.n > 0 && n > 0 ? 0 : -1;
}

static int proxy_field(struct dynbuf *b, struct span token)
{
    char plain[2 * WORK_LANE_MAX + 16], text[4 * WORK_LANE_MAX];
    int n = snprintf(plain, sizeof(plain), "broker:%.*s", SPAN_FMT(token));
    if (n < 0 || (size_t)n >= sizeof(plain))
        return -1;
    size_t len = base64_encode(span_of(plain, (size_t)n), text + 6);
    memcpy(text, "Basic ", 6);
    int rc = http_write_field(b, SPAN("Proxy-Authorization"), span_of(text, 6 + len));
    explicit_bzero(plain, sizeof(plain));
    explicit_bzero(text, sizeof(text));
    return rc;
}

static int put_lease(struct dynbuf *b, const struct wire_ask *ask)
{
    char text[WORK_LEASE_MAX + 16];
    if (ask->lease.n == 0)
        return 0;
    bool bare = ask->field == NULL && ask->protocol == MODEL_ANTHROPIC;
    (void)snprintf(text, sizeof(text), "%s%.*s", bare ? "" : "Bearer ", SPAN_FMT(ask->lease));
    int rc = http_write_field(b, bare ? SPAN("x-api-key") : SPAN("Authorization"), span_str(text));
    explicit_bzero(text, sizeof(text));
    return rc;
}

/* What a model's server is told, or who asks has said. */
static int put_own(struct dynbuf *b, const struct wire_ask *ask)
{
    static const struct http_field model[] = {
        {SPAN("Content-Type"), SPAN("application/json")},
        {SPAN("Accept"), SPAN("text/event-stream")},
        {SPAN("anthropic-version"), SPAN("2023-06-01")},
    };
    const struct http_field *field = ask->field != NULL ? ask->field : model;
    size_t n = ask->field != NULL ? ask->fields : ask->protocol == MODEL_ANTHROPIC ? 3 : 2;
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = http_write_field(b, field[i].name, field[i].value);
    return rc;
}

static int write_request(struct wire *w, const struct wire_ask *ask, const struct target *t)
{
    struct dynbuf *b = &w->out;
    struct span target = t->secure ? t->rest : ask->url;
    bool bad = http_write_request_line(b, ask->get ? SPAN("GET") : SPAN("POST"), target) != 0 ||
               http_write_field(b, SPAN("Host"), span_str(w->authority)) != 0 ||
               (!t->secure && proxy_field(b, ask->token) != 0) || put_own(b, ask) != 0 ||
               http_write_field(b, SPAN("User-Agent"), SPAN("countersign-broker")) != 0 || put_lease(b, ask) != 0 ||
               http_write_field(b, SPAN("Connection"), SPAN("close")) != 0 ||
               http_write_end(b, ask->get ? HTTP_NO_BODY : HTTP_LENGTH, ask->body.n) != 0 ||
               dynbuf_add(b, ask->body) != 0;
    return bad ? -1 : 0;
}

static int write_connect(struct wire *w, const struct wire_ask *ask)
{
    struct dynbuf *b = &w->connect;
    bool bad = http_write_request_line(b, SPAN("CONNECT"), span_str(w->authority)) != 0 ||
               http_write_field(b, SPAN("Host"), span_str(w->authority)) != 0 || proxy_field(b, ask->token) != 0 ||
               http_write_end(b, HTTP_NO_BODY, 0) != 0;
    return bad ? -1 : 0;
}

/* As much as the queue takes. */
static void push(struct wire *w)
{
    while (w->sent < w->out.n && conn_queued(w->conn) < CONN_OUT_LOW) {
        struct span part = span_first(span_from(dynbuf_span(&w->out), w->sent), PART);
        if (conn_write(w->conn, part) != 0) {
            fail(w, "the request could not be sent");
            return;
        }
        w->sent += part.n;
    }
    conn_deadline(w->conn, WORK_SILENCE_MS);
}

/* --- what comes ---------------------------------------------------------------------------- */

/* 1 there is a head, 0 not yet, -1 it is gone. */
static int head_of(struct wire *w, struct span method)
{
    struct http_err e;
    size_t used;
    enum http_result r = http_parse_response(conn_input(w->conn), method, &w->seen, &w->head, &used, &e);
    if (r == HTTP_MORE)
        return 0;
    if (r == HTTP_BAD) {
        fail(w, "what came back is no HTTP");
        return -1;
    }
    w->seen = 0;
    dynbuf_reset(&w->raw); /* the head's spans outlive the input */
    if (dynbuf_add(&w->raw, span_first(conn_input(w->conn), used)) != 0 ||
        http_parse_response(dynbuf_span(&w->raw), method, &w->seen, &w->head, &used, &e) != HTTP_OK) {
        fail(w, "no memory for an answer's head");
        return -1;
    }
    w->seen = 0;
    conn_consume(w->conn, used);
    return 1;
}

static void hear_body(struct wire *w)
{
    struct span data;
    size_t used;
    for (;;) {
        enum http_result r = http_body_step(&w->body, conn_input(w->conn), &used, &data);
        if (r == HTTP_BAD) {
            fail(w, "the answer's framing is broken");
            return;
        }
        if (data.n > 0 && !tell(w, WIRE_DATA, data))
            return;
        conn_consume(w->conn, used);
        if (r == HTTP_OK) {
            (void)tell(w, WIRE_END, SPAN_NONE);
            return;
        }
        if (used == 0)
            return;
    }
}

static void hear_head(struct wire *w)
{
    for (;;) {
        int got = head_of(w, SPAN("POST"));
        if (got <= 0)
            return;
        if (w->head.status != 100)
            break;
    }
    http_body_begin(&w->body, &w->head);
    w->at = W_BODY;
    if (tell(w, WIRE_HEAD, SPAN_NONE))
        hear_body(w);
}

static void hear_tunnel(struct wire *w)
{
    if (head_of(w, SPAN("CONNECT")) <= 0)
        return;
    if (w->head.status != 200) { /* the gateway's own answer, which says why */
        http_body_begin(&w->body, &w->head);
        w->at = W_BODY;
        if (tell(w, WIRE_HEAD, SPAN_NONE))
            hear_body(w);
        return;
    }
    w->at = W_TLS;
    if (w->w->tls == NULL)
        fail(w, "the gateway's CA is not known yet");
    else if (conn_tls_connect(w->conn, w->w->tls, span_str(w->host)) != 0)
        fail(w, "TLS to the gateway cannot begin");
}

static void connected(struct wire *w)
{
    w->at = w->secure ? W_TUNNEL : W_HEAD;
    if (!w->secure)
        push(w);
    else if (conn_write(w->conn, dynbuf_span(&w->connect)) != 0)
        fail(w, "the proxy takes nothing");
}

static void ended(struct wire *w)
{
    if (w->at == W_BODY && http_body_eof(&w->body) == HTTP_OK)
        (void)tell(w, WIRE_END, SPAN_NONE);
    else
        fail(w, w->at == W_BODY ? "the answer was cut off" : "the gateway ended the connection");
}

static void event(void *arg, struct conn *c, enum conn_event ev)
{
    struct wire *w = arg;
    switch (ev) {
    case CONN_CONNECTED: connected(w); break;
    case CONN_TLS_READY:
        w->at = W_HEAD;
        push(w);
        break;
    case CONN_DRAINED:
        if (w->at >= W_HEAD)
            push(w);
        break;
    case CONN_DATA:
        conn_deadline(c, WORK_SILENCE_MS);
        if (w->at == W_TUNNEL)
            hear_tunnel(w);
        else if (w->at == W_HEAD)
            hear_head(w);
        else if (w->at == W_BODY)
            hear_body(w);
        break;
    case CONN_EOF: ended(w); break;
    case CONN_TIMEOUT: fail(w, "nothing came in time"); break;
    case CONN_TRUNCATED: fail(w, "the answer was cut off"); break;
    case CONN_FAILED:
    default: fail(w, w->at == W_TLS ? "TLS to the gateway failed" : "the connection to the gateway broke");
    }
}

static int dial(struct wire *w)
{
    struct sockaddr_storage to;
    struct span host, port;
    struct addr a;
    uint64_t n;
    const char *colon = strrchr(w->w->proxy, ':');
    if (colon == NULL)
        return -1;
    host = span_of(w->w->proxy, (size_t)(colon - w->w->proxy));
    port = span_str(colon + 1);
    if (addr_of_host(host, &a) != 0 || span_u64(port, 65535, &n) != 0)
        return -1;
    socklen_t len = addr_sockaddr(&a, (uint16_t)n, &to);
    w->conn = conn_dial(w->w->loop, (struct sockaddr *)&to, len, IN_MAX, event, w);
    if (w->conn == NULL)
        return -1;
    conn_deadline(w->conn, CONNECT_MS);
    return 0;
}

struct wire *wire_begin(struct work *work, const struct wire_ask *ask, wire_fn *fn, void *arg, const char **why)
{
    struct wire *w = calloc(1, sizeof(*w));
    struct target t;
    *why = "no memory";
    if (w == NULL)
        return NULL;
    *w = (struct wire){.w = work, .fn = fn, .arg = arg};
    dynbuf_init(&w->out, ask->body.n + HEAD_ROOM);
    dynbuf_init(&w->connect, HEAD_ROOM);
    dynbuf_init(&w->raw, HTTP_ANSWER_HEAD_MAX);
    *why = "the endpoint's URL cannot be asked";
    if (take_url(ask->url, &t) != 0)
        goto bad;
    w->secure = t.secure;
    (void)snprintf(w->host, sizeof(w->host), "%.*s", SPAN_FMT(t.host));
    bool usual = !t.secure && t.port == 80;
    (void)snprintf(w->authority, sizeof(w->authority), usual ? "%s" : "%s:%u", w->host, (unsigned)t.port);
    if (write_request(w, ask, &t) != 0 || (t.secure && write_connect(w, ask) != 0))
        goto bad;
    *why = "the gateway's proxy cannot be reached";
    if (dial(w) == 0)
        return w;
bad:
    wire_free(&w);
    return NULL;
}
