/* The request's body: piped within credit when the head alone was allowed, else
 * collected whole, past 256 KiB in a memfd that is sealed before it is judged. */
#include "proxy/front/front.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

void front_body_free(struct exchange *x)
{
    dynbuf_free(&x->whole);
    if (x->memfd >= 0)
        close(x->memfd);
    x->memfd = -1;
}

/* MODE u8, MAX u64 from the judge: the body is wanted now. */
void front_body_wanted(struct client *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint8_t mode = msg_get_u8(&m);
    c->x.max = msg_get_u64(&m);
    if (msg_end(&m) != 0 || c->x.mode != BODY_MODE_ASKED || mode < 1 || mode > 2)
        return;
    c->x.mode = mode == 1 ? BODY_MODE_PIPE : BODY_MODE_WHOLE;
    c->x.credit = BODY_WINDOW;
    conn_deadline(c->conn, BODY_MS);
    if (c->x.expects && conn_write(c->conn, SPAN("HTTP/1.1 100 Continue\r\n\r\n")) != 0) {
        client_free(c);
        return;
    }
    client_go_on(c);
}

void front_body_credit(struct client *c, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    uint32_t more = msg_get_u32(&m);
    if (msg_end(&m) != 0 || c->x.mode != BODY_MODE_PIPE)
        return;
    c->x.credit += more;
    conn_pause(c->conn, false);
    client_go_on(c);
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
    return data.n == 0 || write(x->memfd, data.p, data.n) == (ssize_t)data.n ? 0 : -1;
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
    if (fcntl(x->memfd, F_ADD_SEALS, SEALS) != 0)
        return -1;
    return chan_commit_fd(c->front->judge, x->memfd);
}

static enum walk_next complete(struct client *c)
{
    struct exchange *x = &c->x;
    uint8_t ok = 1;
    bool whole = x->mode == BODY_MODE_WHOLE;
    x->mode = BODY_MODE_DONE;
    conn_deadline(c->conn, 0);
    int bad = whole ? send_whole(c) : chan_send(c->front->judge, M_BODY_END, x->xid, span_of(&ok, 1));
    front_body_free(x);
    if (bad != 0) {
        front_refuse(c, 503, "gateway-restarting", "the gateway could not take the body; repeat the request");
        return WALK_FAIL;
    }
    return WALK_WAIT;
}

static enum walk_next broken(struct client *c)
{
    uint8_t ok = 0;
    if (c->front->judge != NULL)
        chan_send(c->front->judge, M_BODY_END, c->x.xid, span_of(&ok, 1));
    if (c->x.answering) {
        client_free(c);
        return WALK_FAIL;
    }
    struct http_err e = c->x.reader.err;
    front_refuse(c, e.status ? e.status : 400, e.code ? e.code : "bad-body", e.why ? e.why : "the body is malformed");
    return WALK_FAIL;
}

/* Consume what the connection has of the body. Until the judge wants it, nothing is read. */
enum walk_next front_body_go_on(struct client *c)
{
    struct exchange *x = &c->x;
    while (x->mode == BODY_MODE_PIPE || x->mode == BODY_MODE_WHOLE) {
        struct span in = conn_input(c->conn), data = SPAN_NONE;
        size_t used = 0;
        if (x->mode == BODY_MODE_PIPE && in.n > x->credit) {
            in.n = (size_t)x->credit;
            if (in.n == 0) {
                conn_pause(c->conn, true);
                return WALK_WAIT;
            }
        }
        enum http_result r = http_body_step(&x->reader, in, &used, &data);
        if (r == HTTP_BAD)
            return broken(c);
        if (data.n && (x->mode == BODY_MODE_PIPE ? pipe_on(c, data) : keep(c, data)) != 0) {
            front_refuse(c, 503, "no-room", "the gateway has no room for this body now; try again later");
            return WALK_FAIL;
        }
        conn_consume(c->conn, used);
        if (data.n)
            conn_deadline(c->conn, BODY_MS);
        if (r == HTTP_OK || (x->mode == BODY_MODE_WHOLE && x->size > x->max))
            return complete(c);
        if (used == 0)
            return WALK_WAIT;
    }
    return WALK_WAIT;
}
