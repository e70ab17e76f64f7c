/* Byte streams to foreign peers. See conn.h and conn_in.h.
 *
 * The owner is called from the loop only: from a readiness event, or from the
 * task `news`. Calls of the owner's own (write, consume, free) never call back. */
#include "common/net/addr.h"
#include "common/net/conn_in.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    IN_STEP = LOOP_SPARE_BYTES, /* how the input buffer grows */
    IN_ENOUGH = 2 * 1024,
    FINISH_MS = 2000,
};

/* What was sent and received in the clear is overwritten: at one end a credential, at the other a secret's value. */
static void in_free(struct conn *c)
{
    if (c->in != NULL)
        explicit_bzero(c->in, c->in_n);
    if (c->in_cap == LOOP_SPARE_BYTES && c->loop->spare == NULL)
        c->loop->spare = c->in; /* the next connection with input takes it up */
    else
        free(c->in);
    c->in = NULL;
    c->in_cap = 0;
}

static void in_reuse(struct conn *c, size_t want)
{
    if (c->in != NULL || c->loop->spare == NULL || c->in_max < LOOP_SPARE_BYTES || want > LOOP_SPARE_BYTES)
        return;
    c->in = c->loop->spare;
    c->in_cap = LOOP_SPARE_BYTES;
    c->loop->spare = NULL;
}

static void in_forget(struct conn *c)
{
    if (c->in_n > 0)
        explicit_bzero(c->in, c->in_n);
    c->in_off = c->in_n = 0;
}

static void destroy(struct conn *c)
{
    conn_tls_free(c);
    in_free(c);
    dynbuf_wipe(&c->out);
    dynbuf_free(&c->raw_out);
    free(c);
}

static void detach(struct conn *c)
{
    event_del(&c->rd);
    event_del(&c->wr);
    event_del(&c->timer);
    task_cancel(&c->flush);
    task_cancel(&c->news);
}

static void end(struct conn *c)
{
    detach(c);
    c->dead = true;
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    if (c->busy == 0)
        destroy(c);
}

bool conn_tell(struct conn *c, enum conn_event ev)
{
    c->busy++;
    if (c->fn != NULL && !c->dead && !c->finishing)
        c->fn(c->arg, c, ev);
    c->busy--; /* the caller holds another one */
    return !c->dead;
}

void conn_fail(struct conn *c, const char *why)
{
    if (c->mode == CONN_BROKEN || c->dead)
        return;
    c->mode = CONN_BROKEN;
    snprintf(c->why, sizeof(c->why), "%s", why);
    dynbuf_wipe(&c->out);
    dynbuf_free(&c->raw_out);
    c->out_off = c->raw_out_off = 0;
    event_del(&c->rd);
    event_del(&c->wr);
    c->tell_failed = true;
    task_later(c->loop, &c->news);
}

void conn_fail_errno(struct conn *c, const char *doing, int error)
{
    char text[120];
    snprintf(text, sizeof(text), "%s: %s", doing, strerror(error));
    conn_fail(c, text);
}

/* ---- input ---- */

size_t conn_in_room(struct conn *c, size_t want)
{
    in_reuse(c, want);
    size_t have = c->in_n - c->in_off;
    if (have >= c->in_max)
        return 0;
    if (want > c->in_max - have)
        want = c->in_max - have;
    size_t room = c->in_cap - c->in_n;
    if (room >= want)
        return want;
    if (room >= IN_ENOUGH)
        return room; /* growing would copy what is there for the sake of a rare full read */
    if (c->in_off > 0 && have > 0)
        memmove(c->in, c->in + c->in_off, have);
    if (c->in_n > have)
        explicit_bzero(c->in + have, c->in_n - have);
    c->in_off = 0;
    c->in_n = have;
    if (c->in_cap - have < want) {
        size_t cap = (have + want + IN_STEP - 1) / IN_STEP * IN_STEP;
        if (cap > c->in_max)
            cap = c->in_max;
        uint8_t *more = malloc(cap);
        if (more == NULL) {
            conn_fail(c, "no memory for input");
            return 0;
        }
        if (have > 0)
            memcpy(more, c->in, have);
        in_free(c);
        c->in = more;
        c->in_cap = cap;
    }
    return want;
}

static bool wants_read(const struct conn *c)
{
    return (c->mode == CONN_PLAIN || c->mode == CONN_HANDSHAKE || c->mode == CONN_TLS) && !c->eof &&
           !(c->paused && !c->finishing && c->mode != CONN_HANDSHAKE) && !c->stalled &&
           (c->finishing || c->in_n - c->in_off < c->in_max);
}

static void update(struct conn *c)
{
    if (c->mode != CONN_BROKEN && c->mode != CONN_DIALLING && !c->dead)
        event_want(&c->rd, wants_read(c));
}

/* Say what is new, in this order: TLS is up, data, the end. */
static void tell_input(struct conn *c, size_t before)
{
    if (c->tell_ready) {
        c->tell_ready = false;
        if (!conn_tell(c, CONN_TLS_READY))
            return;
    }
    if (c->finishing) {
        in_forget(c);
    } else if (c->in_n - c->in_off > before) {
        if (!conn_tell(c, CONN_DATA))
            return;
    }
    if (c->mode == CONN_BROKEN || c->eof_told || c->stalled || (c->paused && !c->finishing))
        return;
    bool tls = c->ssl != NULL;
    if (tls && c->mode == CONN_TLS && conn_tls_peer_ended(c))
        c->eof = true;
    if (!c->eof)
        return;
    c->eof_told = true;
    if (c->write_lost && !(tls && conn_tls_peer_ended(c))) {
        conn_fail_errno(c, "writing to the peer", c->write_lost);
        return;
    }
    if (tls && c->mode == CONN_HANDSHAKE)
        conn_fail(c, "the peer closed the connection during the TLS handshake");
    else
        (void)conn_tell(c, tls && !conn_tls_peer_ended(c) ? CONN_TRUNCATED : CONN_EOF);
}

static void leave(struct conn *c)
{
    if (--c->busy > 0)
        return;
    if (c->dead)
        destroy(c);
    else
        update(c);
}

static ssize_t receive(struct conn *c, void *to, size_t n)
{
    ssize_t got;
    do
        got = recv(c->fd, to, n, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
        conn_fail_errno(c, "reading from the peer", errno);
    if (got == 0)
        c->eof = true;
    return got;
}

static void read_plain(struct conn *c)
{
    size_t room = conn_in_room(c, IN_STEP);
    if (room == 0)
        return;
    ssize_t got = receive(c, c->in + c->in_n, room);
    if (got > 0)
        c->in_n += (size_t)got;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    size_t before = c->in_n - c->in_off;
    (void)fd, (void)what;
    c->busy++;
    if (c->finishing) {
        (void)receive(c, c->loop->in, LOOP_IN_BYTES); /* what comes now is of no interest */
    } else if (c->ssl == NULL) {
        read_plain(c);
    } else {
        ssize_t got = receive(c, c->loop->in, LOOP_IN_BYTES);
        if (got >= 0)
            conn_tls_pump(c, span_of(c->loop->in, (size_t)got));
    }
    if (!c->dead && c->mode != CONN_BROKEN)
        tell_input(c, before);
    if (!c->dead && c->finishing && c->eof && c->shut)
        end(c);
    leave(c);
}

struct span conn_input(const struct conn *c)
{
    return c->in_n == c->in_off ? SPAN_NONE : span_of(c->in + c->in_off, c->in_n - c->in_off);
}

uint8_t *conn_input_edit(struct conn *c)
{
    return c->in_n == c->in_off ? NULL : c->in + c->in_off;
}

void conn_consume(struct conn *c, size_t n)
{
    size_t have = c->in_n - c->in_off;
    c->in_off += n < have ? n : have;
    if (c->in_off == c->in_n) {
        in_forget(c);
        if (c->in_cap > CONN_KEEP)
            in_free(c);
    }
    if (c->busy == 0) /* else the event handler does it, once */
        update(c);
    if (c->stalled && !c->paused && c->mode != CONN_BROKEN)
        task_later(c->loop, &c->news);
}

int conn_unread(struct conn *c, struct span before)
{
    size_t have = c->in_n - c->in_off;
    if (before.n == 0)
        return 0;
    if (c->ssl != NULL || before.n > c->in_max || have > c->in_max - before.n)
        return -1;
    uint8_t *joined = malloc(before.n + have);
    if (joined == NULL)
        return -1;
    memcpy(joined, before.p, before.n);
    if (have > 0)
        memcpy(joined + before.n, c->in + c->in_off, have);
    in_free(c);
    c->in = joined;
    c->in_off = 0;
    c->in_n = c->in_cap = before.n + have;
    c->more = true;
    task_later(c->loop, &c->news);
    return 0;
}

void conn_pause(struct conn *c, bool paused)
{
    if (c->paused == paused)
        return;
    c->paused = paused;
    update(c);
    if (paused)
        return;
    c->more |= c->in_n > c->in_off;
    if (c->more || c->stalled || (c->eof && !c->eof_told))
        task_later(c->loop, &c->news);
}

static void on_flush(void *arg)
{
    conn_flush(arg);
}

static void on_connected(struct conn *c)
{
    int error = 0;
    socklen_t n = sizeof(error);
    event_del(&c->wr);
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
        error = errno;
    if (error != 0) {
        conn_fail_errno(c, "connecting", error);
        return;
    }
    c->mode = CONN_PLAIN;
    update(c);
    task_flush(c->loop, &c->flush);
    (void)conn_tell(c, CONN_CONNECTED);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    (void)fd, (void)what;
    c->busy++;
    if (c->mode == CONN_DIALLING)
        on_connected(c);
    else
        conn_flush(c);
    leave(c);
}

/* ---- deferred words to the owner ---- */

static bool tell_news(struct conn *c)
{
    if (c->above && conn_queued(c) < CONN_OUT_LOW) {
        c->above = false;
        if (c->mode != CONN_BROKEN && !conn_tell(c, CONN_DRAINED))
            return false;
    }
    if (c->mode != CONN_BROKEN && (!c->paused || c->mode == CONN_HANDSHAKE)) {
        size_t before = c->more ? 0 : c->in_n - c->in_off;
        c->more = false;
        if (c->ssl != NULL && c->stalled)
            conn_tls_pump(c, SPAN_NONE);
        if (c->dead)
            return false;
        if (c->mode != CONN_BROKEN)
            tell_input(c, before);
        if (c->dead)
            return false;
    }
    if (c->tell_failed && !c->failed_told) {
        c->failed_told = true;
        task_cancel(&c->news);
        return conn_tell(c, CONN_FAILED);
    }
    return true;
}

static void on_news(void *arg)
{
    struct conn *c = arg;
    c->busy++;
    if (tell_news(c) && c->finishing && (c->mode == CONN_BROKEN || (c->eof && c->shut)))
        end(c);
    leave(c);
}

/* ---- time ---- */

static void timer_arm(struct conn *c, uint64_t at)
{
    uint64_t now = loop_now(c->loop), ms = at > now ? at - now : 0;
    struct timeval tv = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
    c->timer_at = at;
    evtimer_add(&c->timer, &tv);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    (void)fd, (void)what;
    c->timer_at = 0;
    if (c->deadline == 0)
        return;
    /* A deadline moved forward leaves the timer where it was; it is set anew only now. */
    if (loop_now(c->loop) < c->deadline) {
        timer_arm(c, c->deadline);
        return;
    }
    c->deadline = 0;
    c->busy++;
    if (c->finishing)
        end(c);
    else
        (void)conn_tell(c, CONN_TIMEOUT);
    leave(c);
}

void conn_deadline(struct conn *c, uint64_t ms)
{
    if (c->finishing)
        return;
    c->deadline = ms == 0 ? 0 : loop_now(c->loop) + ms;
    if (ms != 0 && (c->timer_at == 0 || c->timer_at > c->deadline))
        timer_arm(c, c->deadline);
}

/* ---- birth and death ---- */

struct conn *conn_new(struct loop *l, int fd, size_t in_max, conn_fn *fn, void *arg)
{
    struct conn *c = calloc(1, sizeof(*c));
    int flags = fcntl(fd, F_GETFL);
    if (c == NULL || flags < 0 || (!(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0))
        goto fail;
    c->loop = l;
    c->fd = fd;
    c->in_max = in_max;
    c->fn = fn;
    c->arg = arg;
    /* Twice: bytes already written stay in front until half of the buffer is such. */
    dynbuf_init(&c->out, 2 * CONN_OUT_MAX);
    dynbuf_init(&c->raw_out, 2 * CONN_RAW_MAX);
    dynbuf_init(&c->raw_in, LOOP_IN_BYTES + in_max);
    task_init(&c->flush, on_flush, c);
    task_init(&c->news, on_news, c);
    if (event_assign(&c->rd, l->base, fd, EV_READ | EV_PERSIST, on_readable, c) != 0 ||
        event_assign(&c->wr, l->base, fd, EV_WRITE | EV_PERSIST, on_writable, c) != 0 ||
        evtimer_assign(&c->timer, l->base, on_timer, c) != 0 || event_add(&c->rd, NULL) != 0)
        goto fail;
    return c;
fail:
    close(fd);
    free(c);
    return NULL;
}

struct conn *conn_dial(struct loop *l, const struct sockaddr *to, socklen_t tolen, size_t in_max, conn_fn *fn,
                       void *arg)
{
    int on = 1, fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    if (to->sa_family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    int error = connect(fd, to, tolen) == 0 ? 0 : errno;
    struct conn *c = conn_new(l, fd, in_max, fn, arg);
    if (c == NULL)
        return NULL;
    if (error != 0 && error != EINPROGRESS) {
        conn_fail_errno(c, "connecting", error);
        return c;
    }
    /* Also when it is up at once: the word comes from the loop. */
    event_del(&c->rd);
    c->mode = CONN_DIALLING;
    event_want(&c->wr, true);
    return c;
}

void conn_set_callback(struct conn *c, conn_fn *fn, void *arg)
{
    c->fn = fn;
    c->arg = arg;
    /* The new owner is told of what the old one left. */
    if (c->in_n > c->in_off) {
        c->more = true;
        task_later(c->loop, &c->news);
    }
}

void conn_free(struct conn **cp)
{
    struct conn *c = *cp;
    *cp = NULL;
    if (c != NULL && !c->dead)
        end(c);
}

void conn_reset(struct conn **cp)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    if (*cp != NULL && (*cp)->fd >= 0)
        (void)setsockopt((*cp)->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    conn_free(cp);
}

void conn_finish(struct conn **cp)
{
    struct conn *c = *cp;
    *cp = NULL;
    if (c == NULL || c->dead)
        return;
    if (c->mode != CONN_PLAIN && c->mode != CONN_TLS) {
        end(c);
        return;
    }
    conn_deadline(c, FINISH_MS);
    c->finishing = true;
    in_forget(c);
    c->stalled = false;
    dynbuf_free(&c->raw_in);
    conn_end(c);
    task_later(c->loop, &c->news);
}

const char *conn_why(const struct conn *c)
{
    return c->why;
}

bool conn_to_self(const struct conn *c)
{
    struct sockaddr_storage here, there;
    socklen_t n = sizeof(here), m = sizeof(there);
    struct addr a, b;
    uint16_t port;
    if (getsockname(c->fd, (struct sockaddr *)&here, &n) != 0 ||
        getpeername(c->fd, (struct sockaddr *)&there, &m) != 0 ||
        addr_of_sockaddr((struct sockaddr *)&here, &a, &port) != 0 ||
        addr_of_sockaddr((struct sockaddr *)&there, &b, &port) != 0)
        return false;
    return addr_eq(&a, &b);
}

int conn_peer_pid(const struct conn *c, unsigned *uid)
{
    struct ucred u;
    socklen_t n = sizeof(u);
    if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &u, &n) != 0 || n != sizeof(u))
        return -1;
    if (uid != NULL)
        *uid = u.uid;
    return (int)u.pid;
}

int conn_release(struct conn **cp, struct dynbuf *rest)
{
    struct conn *c = *cp;
    if (c == NULL || c->mode != CONN_PLAIN || c->ssl != NULL || conn_queued(c) > 0 ||
        dynbuf_add(rest, conn_input(c)) != 0)
        return -1;
    int fd = c->fd;
    *cp = NULL;
    detach(c);
    c->fd = -1;
    end(c);
    return fd;
}
