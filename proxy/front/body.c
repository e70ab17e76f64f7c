/* The request's body: piped within credit when the head alone was allowed, else
 * collected whole, past 256 KiB in a memfd that is sealed before it is judged. */
#include "common/memfd.h"
#include "proxy/front/client.h"

#include <sys/mman.h>
#include <unistd.h>

#define NO_ROOM "the gateway has no room for this body now; try again later"

void front_body_free(struct exchange *x)
{
    dynbuf_free(&x->whole);
    if (x->memfd >= 0)
        close(x->memfd);
    x->memfd = -1;
}

static int spill(struct exchange *x, struct span data)
{
    if (x->memfd < 0) {
        x->memfd = memfd_create("body", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        struct span had = dynbuf_span(&x->whole);
        if (x->memfd < 0 || write(x->memfd, had.p, had.n) != (ssize_t)had.n)
            return -1;
        dynbuf_free(&x->whole);
    }
    return write(x->memfd, data.p, data.n) == (ssize_t)data.n ? 0 : -1;
}

static int keep(struct client *c, struct span data)
{
    struct exchange *x = &c->x;
    x->size += data.n;
    if (x->size > x->max)
        return 0; /* counted, not kept: the judge is told its size and refuses */
    if (x->memfd >= 0 || x->whole.n + data.n > BODY_INLINE_MAX)
        return spill(x, data);
    return dynbuf_add(&x->whole, data);
}

static int pipe_on(struct client *c, struct span data)
{
    c->x.size += data.n;
    c->x.credit -= data.n;
    return c->front->judge == NULL ? -1 : chan_send(c->front->judge, M_BODY, c->x.xid, data);
}

static int send_end(struct client *c, uint8_t ok)
{
    return c->front->judge == NULL ? -1 : chan_send(c->front->judge, M_BODY_END, c->x.xid, span_of(&ok, 1));
}

static int send_whole(struct client *c)
{
    struct exchange *x = &c->x;
    struct dynbuf *b = c->front->judge ? chan_begin(c->front->judge, M_BODY_WHOLE, x->xid) : NULL;
    if (b == NULL)
        return -1;
    msg_put_u64(b, x->size);
    if (x->size > x->max || x->memfd < 0) {
        msg_put_span(b, x->size > x->max ? SPAN_NONE : dynbuf_span(&x->whole));
        return chan_commit(c->front->judge);
    }
    msg_put_span(b, SPAN_NONE);
    if (memfd_seal(x->memfd) != 0)
        return -1;
    return chan_commit_fd(c->front->judge, x->memfd);
}

/* There is no more of it, or no more is wanted. */
static void complete(struct client *c)
{
    struct exchange *x = &c->x;
    bool whole = x->mode == BODY_MODE_WHOLE;
    x->mode = whole && x->size > x->max ? BODY_MODE_OVER : BODY_MODE_DONE;
    client_wait(c, WAIT_JUDGE);
    int bad = whole ? send_whole(c) : send_end(c, 1);
    front_body_free(x);
    if (bad != 0)
        front_refuse(c, 503, "no-room", NO_ROOM);
}

/* The judge learns that it is not all before the client is told. */
static void broken(struct client *c, unsigned status, const char *code, const char *why)
{
    (void)send_end(c, 0);
    front_refuse(c, status, code, why);
}

void front_body_slow(struct client *c)
{
    broken(c, 408, "body-too-slow", "the request's body comes slower than the slowest that is waited for");
}

/* u8 mode, u64 max from the judge: the body is wanted now. */
void front_body_wanted(struct client *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct exchange *x = &c->x;
    uint8_t mode = msg_get_u8(&m);
    uint64_t max = msg_get_u64(&m);
    if (msg_end(&m) != 0 || x->mode != BODY_MODE_ASKED || mode < 1 || mode > 2)
        return;
    x->mode = mode == 1 ? BODY_MODE_PIPE : BODY_MODE_WHOLE;
    x->max = max;
    x->credit = BODY_WINDOW;
    if (x->mode == BODY_MODE_WHOLE && x->declared != UINT64_MAX && x->declared > max) {
        x->size = x->declared; /* nothing of it need be read to know */
        complete(c);
        return;
    }
    client_wait(c, WAIT_BODY);
    /* Who has sent some of it does not wait for the word (RFC 9110 section 10.1.1). */
    if (x->expects && conn_input(c->conn).n == 0 && client_write(c, SPAN("HTTP/1.1 100 Continue\r\n\r\n")) != 0) {
        client_free(c);
        return;
    }
    client_go_on(c);
}

void front_body_credit(struct client *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint32_t more = msg_get_u32(&m);
    if (msg_end(&m) != 0)
        return;
    if (c->x.state == EXCHANGE_SWITCHED) {
        front_websocket_credit(c, more);
        return;
    }
    if (c->x.mode != BODY_MODE_PIPE)
        return;
    c->x.credit += more;
    conn_pause(c->conn, false);
    client_wait(c, WAIT_BODY);
    client_go_on(c);
}

/* What may be looked at now. Without credit the client is not read: it waits, and so do its clocks. */
static struct span readable(struct client *c)
{
    struct span in = conn_input(c->conn);
    if (c->x.mode != BODY_MODE_PIPE || in.n <= c->x.credit)
        return in;
    if (c->x.credit == 0) {
        conn_pause(c->conn, true);
        client_wait(c, WAIT_JUDGE);
    }
    return span_first(in, (size_t)c->x.credit);
}

/* Consume what the connection has of the body. Until the judge wants it, nothing is read. */
void front_body_go_on(struct client *c)
{
    struct exchange *x = &c->x;
    while (x->mode == BODY_MODE_PIPE || x->mode == BODY_MODE_WHOLE) {
        struct span in = readable(c), data = SPAN_NONE;
        size_t used = 0;
        if (in.n == 0)
            return;
        enum http_result r = http_body_step(&x->reader, in, &used, &data);
        if (r == HTTP_BAD) {
            const struct http_err *e = &x->reader.err;
            broken(c, e->status ? e->status : 400, e->code ? e->code : "bad-body",
                   e->why ? e->why : "the body is malformed");
            return;
        }
        if (data.n && (x->mode == BODY_MODE_PIPE ? pipe_on(c, data) : keep(c, data)) != 0) {
            front_refuse(c, 503, "no-room", NO_ROOM);
            return;
        }
        conn_consume(c->conn, used);
        if (r == HTTP_OK || (x->mode == BODY_MODE_WHOLE && x->size > x->max)) {
            complete(c);
            return;
        }
    }
}
