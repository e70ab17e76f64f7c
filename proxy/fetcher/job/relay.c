#include "proxy/fetcher/job/relay.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/net/conn.h"

enum {
    LINES_LOGGED = 8, /* of a process whose peer makes it write them */
    NOT_NAMED = 403
};
enum end { INSIDE = 0, OUTSIDE = 1 };

struct tunnel {
    struct relay *relay;
    struct conn *end[2];
    bool up;     /* both ends are there, and bytes pass */
    bool eof[2]; /* of that end nothing more comes */
    bool told[2];
    const struct relay_place *to; /* NULL: the program has not said it yet */
    size_t tried;                 /* of its addresses */
    size_t seen;                  /* of the head: http_parse_request */
    struct tunnel *next;
};

struct relay {
    struct loop *loop;
    int listener;
    struct watch *watch;
    const struct relay_place *place;
    size_t nplaces, open, all, logged;
    uint64_t bytes;
    struct tunnel *tunnels;
};

/* ---- whom does it want? ---- */

static const struct relay_place *find(const struct relay_place *v, size_t n, struct span host, uint16_t port)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].port == port && span_eq(span_of(v[i].host, v[i].nhost), host))
            return &v[i];
    return NULL;
}

bool relay_read(struct span in, size_t *seen, const struct relay_place *places, size_t n, struct relay_asked *out)
{
    static struct http_head h;
    struct http_err e;
    size_t nhost = 0;
    *out = (struct relay_asked){.status = NOT_NAMED,
                                .why = "hosts: of the credential's source does not name this host and port"};
    switch (http_parse_request(in, HTTP_ON_PROXY_PORT, seen, &h, &out->used, &e)) {
    case HTTP_MORE: return false;
    case HTTP_OK: break;
    default:
        out->status = e.status;
        out->why = e.why;
        return true;
    }
    if (h.form != HTTP_AUTHORITY) {
        out->status = 405;
        out->why = "only CONNECT is taken here: use https";
        return true;
    }
    out->port = h.port;
    if (http_canonical_host(h.host, out->host, &nhost) == 0)
        out->to = find(places, n, span_of(out->host, nhost), h.port);
    return true;
}

/* ---- its end ---- */

static void forget(struct tunnel *t)
{
    struct relay *r = t->relay;
    for (struct tunnel **at = &r->tunnels; *at != NULL; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            break;
        }
    if (r->open-- == RELAY_TUNNELS_MAX)
        watch_set(r->watch, WATCH_READ);
    conn_free(&t->end[INSIDE]);
    conn_free(&t->end[OUTSIDE]);
    free(t);
}

/* In the middle of something: it must not pass for a proper end. */
static void cut(struct tunnel *t)
{
    conn_reset(&t->end[INSIDE]);
    conn_reset(&t->end[OUTSIDE]);
    forget(t);
}

static void refuse(struct tunnel *t, unsigned status, const char *why)
{
    struct dynbuf b;
    dynbuf_init(&b, 1024);
    (void)dynbuf_addf(&b,
                      "HTTP/1.1 %u %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                      "Connection: close\r\n\r\n%s\n",
                      status, status == 502 ? "Bad Gateway" : "Refused", strlen(why) + 1, why);
    if (conn_write(t->end[INSIDE], dynbuf_span(&b)) == 0)
        conn_finish(&t->end[INSIDE]);
    dynbuf_free(&b);
    forget(t);
}

/* ---- bytes, both ways ---- */

/* What one end does not take, the other may not send. The tunnel may be gone afterwards. */
static void pump(struct tunnel *t, enum end from)
{
    struct conn *to = t->end[1 - from];
    struct span in = conn_input(t->end[from]);
    if (in.n > 0 && conn_queued(to) < CONN_OUT_LOW) {
        t->relay->bytes += in.n;
        if (t->relay->bytes > RELAY_BYTES_MAX || conn_write(to, in) != 0) {
            cut(t);
            return;
        }
        conn_consume(t->end[from], in.n);
        in = SPAN_NONE;
    }
    conn_pause(t->end[from], conn_queued(to) >= CONN_OUT_LOW);
    if (!t->eof[from] || in.n > 0 || t->told[from])
        return;
    t->told[from] = true;
    conn_end(to);
    if (!t->told[1 - from])
        return;
    conn_finish(&t->end[INSIDE]);
    conn_finish(&t->end[OUTSIDE]);
    forget(t);
}

static void passed(struct tunnel *t, enum end from, enum conn_event ev)
{
    switch (ev) {
    case CONN_DATA: pump(t, from); break;
    case CONN_DRAINED: pump(t, (enum end)(1 - from)); break;
    case CONN_EOF:
        t->eof[from] = true;
        pump(t, from);
        break;
    case CONN_CONNECTED:
    case CONN_TLS_READY: break;
    default: cut(t); break;
    }
}

/* ---- to where ---- */

static void dial_next(struct tunnel *t);

static void from_outside(void *arg, struct conn *c, enum conn_event ev)
{
    static const struct span established = SPAN("HTTP/1.1 200 Connection established\r\n\r\n");
    struct tunnel *t = arg;
    if (t->up) {
        passed(t, OUTSIDE, ev);
    } else if (ev == CONN_CONNECTED) {
        conn_deadline(c, 0);
        t->up = true;
        if (conn_write(t->end[INSIDE], established) != 0)
            cut(t);
        else
            pump(t, INSIDE);
    } else {
        conn_free(&t->end[OUTSIDE]);
        dial_next(t);
    }
}

static void dial_next(struct tunnel *t)
{
    const struct job_place *at = &t->to->at;
    while (t->tried < at->naddrs) {
        struct sockaddr_storage to;
        socklen_t n = addr_sockaddr(&at->addr[t->tried++], t->to->port, &to);
        if (n > 0)
            t->end[OUTSIDE] = conn_dial(t->relay->loop, (struct sockaddr *)&to, n, RELAY_INPUT_MAX, from_outside, t);
        if (t->end[OUTSIDE] != NULL) {
            conn_deadline(t->end[OUTSIDE], RELAY_DIAL_MS);
            return;
        }
    }
    if (t->relay->logged++ < LINES_LOGGED)
        log_warn("no address of %.*s takes the program's connection to port %u",
                 SPAN_FMT(span_of(t->to->host, t->to->nhost)), t->to->port);
    refuse(t, 502, "none of its addresses takes a connection");
}

/* Its standard error is not kept, so the log has to say what it may not have. */
static void read_head(struct tunnel *t)
{
    struct relay *r = t->relay;
    struct relay_asked asked;
    if (!relay_read(conn_input(t->end[INSIDE]), &t->seen, r->place, r->nplaces, &asked))
        return;
    if (asked.to != NULL) {
        t->to = asked.to;
        conn_consume(t->end[INSIDE], asked.used);
        dial_next(t);
        return;
    }
    if (asked.status == NOT_NAMED && r->logged++ < LINES_LOGGED)
        log_warn("the program asked for %s port %u, which hosts: of its source does not name",
                 asked.host[0] ? asked.host : "what is no host", asked.port);
    refuse(t, asked.status, asked.why);
}

static void from_inside(void *arg, struct conn *c, enum conn_event ev)
{
    struct tunnel *t = arg;
    if (t->up)
        passed(t, INSIDE, ev);
    else if (ev == CONN_DATA && t->to == NULL)
        read_head(t);
    else if (ev == CONN_EOF || ev == CONN_FAILED || ev == CONN_TRUNCATED || ev == CONN_TIMEOUT)
        cut(t); /* what comes while the other end is dialled waits */
}

/* ---- who comes ---- */

static void take(struct relay *r, int fd)
{
    struct tunnel *t = r->all < RELAY_TUNNELS_ALL_MAX ? calloc(1, sizeof(*t)) : NULL;
    if (t == NULL) {
        close(fd);
        return;
    }
    *t = (struct tunnel){.relay = r, .next = r->tunnels};
    t->end[INSIDE] = conn_new(r->loop, fd, RELAY_INPUT_MAX, from_inside, t);
    if (t->end[INSIDE] == NULL) {
        free(t);
        return;
    }
    r->tunnels = t;
    r->all++;
    if (++r->open == RELAY_TUNNELS_MAX)
        watch_set(r->watch, 0);
}

static void accept_some(void *arg, unsigned ready)
{
    struct relay *r = arg;
    int fd;
    while (r->open < RELAY_TUNNELS_MAX && (fd = listen_accept(r->listener)) >= 0)
        take(r, fd);
}

struct relay *relay_new(struct loop *l, int listener, const struct relay_place *places, size_t n)
{
    struct relay *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        close(listener);
        return NULL;
    }
    *r = (struct relay){.loop = l, .listener = listener, .place = places, .nplaces = n};
    r->watch = watch_new(l, listener, WATCH_READ, accept_some, r);
    if (r->watch == NULL)
        relay_free(&r);
    return r;
}

void relay_free(struct relay **at)
{
    struct relay *r = *at;
    *at = NULL;
    if (r == NULL)
        return;
    while (r->tunnels != NULL)
        cut(r->tunnels);
    watch_free(&r->watch);
    close(r->listener);
    free(r);
}
