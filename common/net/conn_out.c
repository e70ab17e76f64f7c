/* The way out of a connection: queued until the end of the turn, then as few writes as the socket takes. */
#include "common/net/conn_in.h"

#include <errno.h>

size_t conn_raw_queued(const struct conn *c)
{
    return c->raw_out.n - c->raw_out_off;
}

size_t conn_queued(const struct conn *c)
{
    return c->out.n - c->out_off + conn_raw_queued(c);
}

/* A peer that has gone may have said why: an early answer to a long request. */
static void lost(struct conn *c, int error)
{
    bool reading = (c->mode == CONN_PLAIN || c->mode == CONN_TLS) && !c->eof && !c->paused;
    if (!reading || c->finishing || (error != EPIPE && error != ECONNRESET)) {
        conn_fail_errno(c, "writing to the peer", error);
        return;
    }
    c->write_lost = error;
    dynbuf_wipe(&c->out);
    dynbuf_free(&c->raw_out);
    c->out_off = c->raw_out_off = 0;
    event_want(&c->wr, false);
}

/* How much the socket took; -1: it takes no more. */
static ssize_t send_some(struct conn *c, struct span s)
{
    ssize_t sent;
    if (c->write_lost)
        return -1;
    do
        sent = send(c->fd, s.p, s.n, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return sent;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return 0;
    lost(c, errno);
    return -1;
}

static void drop(struct dynbuf *b, size_t *off, size_t n)
{
    *off += n;
    if (*off < b->n && *off < b->cap / 2)
        return;
    dynbuf_drop(b, *off);
    *off = 0;
    if (b->n == 0 && b->cap > CONN_KEEP)
        dynbuf_free(b);
}

int conn_raw_write(struct conn *c, struct span s)
{
    if (c->mode == CONN_BROKEN || c->write_lost)
        return -1;
    if (conn_raw_queued(c) == 0 && s.n > 0) {
        ssize_t sent = send_some(c, s);
        if (sent < 0)
            return -1;
        s = span_from(s, (size_t)sent);
    }
    if (conn_raw_queued(c) + s.n > CONN_RAW_MAX || dynbuf_add(&c->raw_out, s) != 0) {
        conn_fail(c, "the peer makes us say more than it reads");
        return -1;
    }
    return 0;
}

/* What is already in its final form. True when none is left. */
static bool flush_raw(struct conn *c)
{
    if (conn_raw_queued(c) > 0) {
        ssize_t sent = send_some(c, span_from(dynbuf_span(&c->raw_out), c->raw_out_off));
        if (sent > 0)
            drop(&c->raw_out, &c->raw_out_off, (size_t)sent);
    }
    return c->mode != CONN_BROKEN && !c->write_lost && conn_raw_queued(c) == 0;
}

static void flush_plain(struct conn *c)
{
    if (c->out.n == c->out_off)
        return;
    ssize_t sent = send_some(c, span_from(dynbuf_span(&c->out), c->out_off));
    if (sent > 0)
        drop(&c->out, &c->out_off, (size_t)sent);
}

void conn_flush(struct conn *c)
{
    if (c->mode == CONN_BROKEN || c->mode == CONN_DIALLING || c->write_lost)
        return;
    if (flush_raw(c)) {
        if (c->mode == CONN_PLAIN)
            flush_plain(c);
        else
            conn_tls_flush(c);
    }
    if (c->mode == CONN_BROKEN || c->write_lost)
        return;
    if (c->ending && !c->ended && c->out.n == c->out_off && c->mode != CONN_HANDSHAKE) {
        c->ended = true;
        if (c->mode == CONN_TLS && !c->abrupt)
            conn_tls_end(c);
    }
    if (c->mode == CONN_BROKEN || c->write_lost)
        return;
    size_t left = conn_queued(c);
    /* In a handshake `out` waits for the peer, not for the socket. */
    event_want(&c->wr, c->mode == CONN_HANDSHAKE ? conn_raw_queued(c) > 0 : left > 0);
    if (c->ended && left == 0 && !c->shut) {
        c->shut = true;
        (void)shutdown(c->fd, SHUT_WR);
    }
    if ((c->above && left < CONN_OUT_LOW) || (c->finishing && left == 0))
        task_later(c->loop, &c->news);
}

int conn_write(struct conn *c, struct span s)
{
    if (c->mode == CONN_BROKEN || c->write_lost || c->ending || s.n > CONN_OUT_MAX ||
        conn_queued(c) > CONN_OUT_MAX - s.n)
        return -1;
    if (s.n >= CONN_THROUGH && c->mode == CONN_TLS && conn_queued(c) == 0)
        s = span_from(s, conn_tls_through(c, s));
    if (c->write_lost) /* by this: as if it had been queued before the peer went */
        return 0;
    if (c->mode == CONN_BROKEN || dynbuf_add(&c->out, s) != 0) {
        conn_fail(c, "no memory for output");
        return -1;
    }
    if (conn_queued(c) >= CONN_OUT_LOW)
        c->above = true;
    task_flush(c->loop, &c->flush);
    return 0;
}

void conn_end(struct conn *c)
{
    c->ending = true;
    task_flush(c->loop, &c->flush);
}

void conn_end_cut(struct conn *c)
{
    c->abrupt = true;
    conn_end(c);
}

int conn_push(struct conn *c)
{
    conn_flush(c);
    return c->mode != CONN_BROKEN && !c->write_lost && conn_queued(c) == 0 ? 0 : -1;
}
