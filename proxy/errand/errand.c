#include "proxy/errand/errand.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/conn.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"

enum { IN_MAX = 96 * 1024, REQUEST_MAX = ERRAND_BODY_MAX + 64 * 1024 };

/* fn may free it: after this it is looked at no more unless it says that it lives. */
static bool tell(struct errand *e, enum errand_event ev)
{
    e->busy = true;
    e->fn(e->arg, e, ev);
    e->busy = false;
    if (!e->dead)
        return true;
    free(e);
    return false;
}

void errand_free(struct errand **at)
{
    struct errand *e = *at;

    if (!e)
        return;
    *at = NULL;
    for (struct errand **p = &e->of->list; *p; p = &(*p)->next)
        if (*p == e) {
            *p = e->next;
            e->of->n--;
            break;
        }
    conn_free(&e->conn);
    dynbuf_free(&e->got);
    e->dead = true;
    if (!e->busy)
        free(e);
}

static void fail(struct errand *e, unsigned status, const char *why)
{
    e->status = status;
    e->why = why;
    (void)tell(e, ERRAND_NONE);
}

/* --- the answer ------------------------------------------------------------------ */

/* 1 go on, 0 wait, -1 it is gone. */
static int hear_head(struct errand *e)
{
    struct http_head h;
    struct http_err err;
    size_t used;

    enum http_result r = http_parse_response(conn_input(e->conn), span_str(e->method), &e->seen, &h, &used, &err);
    if (r == HTTP_MORE)
        return 0;
    if (r == HTTP_BAD) {
        fail(e, 503, "what the desk said cannot be read");
        return -1;
    }
    e->seen = 0;
    if (h.status == 100) {
        conn_consume(e->conn, used);
        return 1;
    }
    e->headed = true;
    e->status = h.status;
    http_body_begin(&e->body, &h);
    conn_consume(e->conn, used);
    return e->whole || tell(e, ERRAND_HEAD) ? 1 : -1;
}

static int hear_body(struct errand *e)
{
    size_t used;
    struct span data;

    enum http_result r = http_body_step(&e->body, conn_input(e->conn), &used, &data);
    if (r == HTTP_BAD || (e->whole && dynbuf_add(&e->got, data) != 0)) {
        fail(e, 503, r == HTTP_BAD ? "what the desk said cannot be read" : "the answer is larger than is given out");
        return -1;
    }
    e->data = data;
    if (!e->whole && data.n > 0 && !tell(e, ERRAND_DATA))
        return -1;
    conn_consume(e->conn, used);
    if (r == HTTP_MORE)
        return used > 0;
    e->data = dynbuf_span(&e->got);
    (void)tell(e, e->whole ? ERRAND_DATA : ERRAND_END);
    return -1; /* whoever heard it is done with it */
}

static void hear(struct errand *e)
{
    int rc = 1;

    while (rc > 0 && !e->paused)
        rc = e->headed ? hear_body(e) : hear_head(e);
}

static void event(void *arg, struct conn *c, enum conn_event ev)
{
    struct errand *e = arg;

    switch (ev) {
    case CONN_DATA: hear(e); break;
    case CONN_DRAINED: (void)tell(e, ERRAND_ROOM); break;
    case CONN_CONNECTED: break;
    default:
        if (!e->opened) /* what it has to say of the token is on its way */
            break;
        fail(e, 503, e->headed ? "the answer was cut off" : "the desk ended");
    }
}

/* --- the request ------------------------------------------------------------------ */

static int write_request(struct errand *e, const struct errand_ask *ask)
{
    struct dynbuf b;
    bool body = ask->json.p != NULL;

    dynbuf_init(&b, REQUEST_MAX);
    bool bad = http_write_request_line(&b, span_str(ask->method), ask->target) != 0 ||
               http_write_field(&b, SPAN("Host"), SPAN("desk")) != 0 ||
               (body && http_write_field(&b, SPAN("Content-Type"), SPAN("application/json")) != 0) ||
               (ask->once.n && http_write_field(&b, SPAN("Idempotency-Key"), ask->once) != 0) ||
               (ask->lane.n && http_write_field(&b, SPAN("Countersign-Lane"), ask->lane) != 0) ||
               http_write_end(&b,
                              ask->upload ? HTTP_CHUNKED
                              : body      ? HTTP_LENGTH
                                          : HTTP_NO_BODY,
                              ask->json.n) != 0 ||
               (body && dynbuf_add(&b, ask->json) != 0) || conn_write(e->conn, dynbuf_span(&b)) != 0;
    dynbuf_wipe(&b); /* a lane is in there */
    return bad ? -1 : 0;
}

/* The desk's end leaves with the question whose token this is. */
static int open_stream(struct errand *e, const struct errand_ask *ask, int fd)
{
    bool token = ask->token != NULL, may = ask->who.n > 0;
    struct dynbuf *b = chan_begin(e->of->desk, token ? M_DOCK_OPEN : may ? M_BROKER_TALK : M_BROKER_OPEN, e->id);

    if (!b)
        return -1;
    if (token)
        msg_put_digest(b, ask->token);
    msg_put_span(b, token ? ask->box : ask->tenant);
    if (may)
        msg_put_span(b, ask->who);
    return chan_commit_fd(e->of->desk, fd);
}

struct errand *errand_new(struct errands *d, const struct errand_ask *ask, errand_fn *fn, void *arg)
{
    int fd[2] = {-1, -1};
    struct errand *e =
        d->desk && d->n < d->most && (!ask->json.p || ask->json.n <= ERRAND_BODY_MAX) ? calloc(1, sizeof(*e)) : NULL;

    if (!e || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) != 0) {
        free(e);
        return NULL;
    }
    *e = (struct errand){.next = d->list, .of = d, .fn = fn, .arg = arg, .id = ++d->last, .whole = ask->whole};
    (void)snprintf(e->method, sizeof(e->method), "%s", ask->method);
    dynbuf_init(&e->got, ERRAND_ANSWER_MAX);
    d->list = e;
    d->n++;
    e->opened = ask->who.n > 0; /* nothing is said of it */
    e->conn = conn_new(d->loop, fd[0], IN_MAX, event, e);
    if (!e->conn || write_request(e, ask) != 0 || open_stream(e, ask, fd[1]) != 0)
        errand_free(&e);
    close(fd[1]);
    return e;
}

int errand_write(struct errand *e, struct span data)
{
    struct dynbuf b;

    dynbuf_init(&b, data.n + 64);
    bool bad = http_write_chunk(&b, data) != 0 || conn_write(e->conn, dynbuf_span(&b)) != 0;
    dynbuf_free(&b);
    return bad ? -1 : 0;
}

int errand_write_end(struct errand *e)
{
    return conn_write(e->conn, SPAN("0\r\n\r\n"));
}

bool errand_room(const struct errand *e)
{
    return conn_queued(e->conn) < CONN_OUT_LOW;
}

/* What is here already of those that may go on: not at once, for who says so may be told something himself. */
static void wake(void *arg)
{
    struct errands *d = arg;
    struct errand *e;

    d->waking = false;
    do {
        for (e = d->list; e && !e->woken;)
            e = e->next;
        if (e) {
            e->woken = false;
            hear(e);
        }
    } while (e);
}

void errand_pause(struct errand *e, bool paused)
{
    if (e->paused == paused)
        return;
    e->paused = paused;
    conn_pause(e->conn, paused);
    e->woken = !paused;
    if (e->woken && !e->of->waking)
        e->of->waking = loop_defer(e->of->loop, wake, e->of) == 0;
}

/* --- the desk ---------------------------------------------------------------------- */

void errand_frame(struct errands *d, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    unsigned is = msg_get_u8(&m);
    struct span key = msg_get_span(&m, sizeof(((struct errand *)0)->key) - 1);
    struct span tenant = msg_get_span(&m, sizeof(((struct errand *)0)->tenant) - 1);
    struct errand *e = d->list;

    while (e && e->id != f->id)
        e = e->next;
    if (msg_end(&m) != 0 || f->type != M_DOCK_OPEN)
        log_error("the desk said %u, which cannot be read", f->type);
    else if (e && is == DOCK_OPEN) {
        e->opened = true;
        (void)snprintf(e->key, sizeof(e->key), "%.*s", SPAN_FMT(key));
        (void)snprintf(e->tenant, sizeof(e->tenant), "%.*s", SPAN_FMT(tenant));
    } else if (e) {
        fail(e, is == DOCK_UNKNOWN ? 401 : 503,
             is == DOCK_UNKNOWN ? "the API key or token is not known"
                                : "too much is asked at once; try again in a moment");
    }
}

void errands_lost(struct errands *d)
{
    while (d->list) {
        struct errand *e = d->list;
        fail(e, 503, "the desk ended; try again in a moment");
        if (d->list == e) /* whoever heard it left it to us */
            errand_free(&e);
    }
}
