/* Frames over a socketpair. See chan.h.
 *
 * Out: one byte queue, and a row of marks that say at which offset descriptors
 * belong. A write never crosses a mark, so descriptors ride on the first byte
 * of their frame.
 * In: the kernel ends a read after bytes that carried descriptors, so when a
 * frame's head is complete its descriptors are in the queue, and nobody else's
 * but those of the frame that comes after it. */
#include "common/net/chan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/chan_wire.h"
#include "common/net/loop_in.h"

enum {
    READ_ROOM = 65 * 1024, /* more than a frame with a piece of 64 KiB: such a one does not make the buffer grow */
    READS_A_TURN = 4,
    WRITE_MAX = 1024 * 1024,
    MARKS_MAX = 512,         /* frames with descriptors waiting for a peer that does not read */
    RETRY_MS = 10,           /* the kernel is short of something that no event announces */
    KEEP_ROOM = 1024 * 1024, /* an emptied queue larger than this is given back */
};

struct mark {
    uint64_t at; /* offset in the whole stream */
    int fd[CHAN_FDS_MAX];
    unsigned n;
};

struct chan {
    struct loop *loop;
    int fd;
    const struct chan_ops *ops;
    void *arg;
    struct event rd, wr;
    struct task flush, news;
    struct timer *retry;

    struct dynbuf out;
    size_t out_off;         /* written already */
    uint64_t out_base;      /* stream offset of out.p[0] */
    size_t building;        /* where the frame between begin and commit starts */
    bool is_building, lost; /* lost: nothing can be written any more */
    unsigned soon;          /* frames that wait for company */
    struct mark *marks;
    unsigned nmarks, marks_cap;

    uint8_t *in;
    size_t in_off, in_n, in_cap;
    int fds[2 * CHAN_FDS_MAX];
    unsigned nfds;

    bool paused, gone, told, dead;
    unsigned busy;
};

static void marks_drop(struct chan *c)
{
    for (unsigned i = 0; i < c->nmarks; i++)
        chan_fds_close(c->marks[i].fd, c->marks[i].n);
    c->nmarks = 0;
}

static void out_drop(struct chan *c)
{
    marks_drop(c);
    dynbuf_wipe(&c->out);
    c->out_off = 0;
    c->is_building = false;
}

static void destroy(struct chan *c)
{
    out_drop(c);
    chan_fds_close(c->fds, c->nfds);
    timer_free(&c->retry);
    free(c->marks);
    if (c->in != NULL) {
        unpoison(c->in, c->in_cap);
        explicit_bzero(c->in, c->in_cap);
    }
    free(c->in);
    free(c);
}

/* The end of the channel; gone() is told from the loop, never from within a call of the owner's. */
static void broken(struct chan *c)
{
    c->gone = c->lost = true;
    out_drop(c);
    event_del(&c->rd);
    event_del(&c->wr);
    if (!c->dead && !c->told)
        task_later(c->loop, &c->news);
}

static void on_retry(void *arg)
{
    struct chan *c = arg;
    task_flush(c->loop, &c->flush);
}

/* Flush by the clock: nothing announces when the kernel has room again, or that no company comes. */
static void flush_in(struct chan *c, unsigned ms)
{
    if (c->retry == NULL)
        c->retry = timer_new(c->loop, on_retry, c);
    if (c->retry == NULL)
        broken(c);
    else
        timer_set(c->retry, ms);
}

static ssize_t send_some(struct chan *c, size_t n, const struct mark *m)
{
    union {
        struct cmsghdr align;
        uint8_t b[CMSG_SPACE(sizeof(int) * CHAN_FDS_MAX)];
    } ctl = {0};
    struct iovec v = {c->out.p + c->out_off, n};
    struct msghdr msg = {.msg_iov = &v, .msg_iovlen = 1};
    ssize_t sent;
    if (m != NULL) {
        msg.msg_control = ctl.b;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * m->n);
        struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int) * m->n);
        memcpy(CMSG_DATA(h), m->fd, sizeof(int) * m->n);
    }
    do
        sent = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent;
}

static void mark_pop(struct chan *c)
{
    chan_fds_close(c->marks[0].fd, c->marks[0].n);
    c->nmarks--;
    memmove(c->marks, c->marks + 1, c->nmarks * sizeof(*c->marks));
}

/* Forget what was written, without moving the rest for every few bytes. */
static void out_trim(struct chan *c)
{
    if (c->out_off < c->out.n && c->out_off < c->out.cap / 2)
        return;
    c->out_base += c->out_off;
    dynbuf_drop(&c->out, c->out_off);
    c->out_off = 0;
    if (c->out.n == 0 && c->out.cap > KEEP_ROOM)
        dynbuf_free(&c->out);
}

/* What was queued past the last commit is not sent. */
static size_t sendable(const struct chan *c)
{
    if (!dynbuf_ok(&c->out))
        return 0;
    return (c->is_building ? c->building : c->out.n) - c->out_off;
}

static void flush(void *arg)
{
    struct chan *c = arg;
    if (c->soon > 0)
        timer_clear(c->retry);
    c->soon = 0;
    while (!c->lost && sendable(c) > 0) {
        const struct mark *m = NULL;
        size_t n = sendable(c);
        uint64_t here = c->out_base + c->out_off;
        if (n > WRITE_MAX)
            n = WRITE_MAX;
        if (c->nmarks > 0 && c->marks[0].at == here) {
            m = &c->marks[0];
            if (c->nmarks > 1 && c->marks[1].at - here < n)
                n = (size_t)(c->marks[1].at - here);
        } else if (c->nmarks > 0 && c->marks[0].at - here < n) {
            n = (size_t)(c->marks[0].at - here);
        }
        ssize_t sent = send_some(c, n, m);
        if (sent < 0 && (errno == ETOOMANYREFS || errno == ENOMEM || errno == ENOBUFS)) {
            flush_in(c, RETRY_MS);
            return;
        }
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            event_want(&c->wr, true);
            return;
        }
        if (sent < 0) {
            /* What the peer said before it went is still to be read; its end comes from there. */
            c->lost = true;
            out_drop(c);
            if (c->paused || (errno != EPIPE && errno != ECONNRESET))
                broken(c);
            return;
        }
        c->out_off += (size_t)sent;
        if (m != NULL)
            mark_pop(c);
        if ((size_t)sent < n) {
            event_want(&c->wr, true);
            out_trim(c);
            return;
        }
    }
    event_want(&c->wr, false);
    out_trim(c);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    flush(arg);
}

static bool leave(struct chan *c)
{
    if (--c->busy == 0 && c->dead) {
        destroy(c);
        return false;
    }
    return !c->dead;
}

/* 1: a whole frame was delivered; 0: more bytes are needed; -1: the contract is broken. */
static int take_frame(struct chan *c)
{
    struct frame f = {0};
    size_t n;
    if (c->in_n - c->in_off < CHAN_HEAD)
        return 0;
    if (chan_head_get(c->in + c->in_off, &f, &n) != 0 || f.nfds > c->nfds)
        return -1;
    if (c->in_n - c->in_off < CHAN_HEAD + n)
        return 0;
    f.payload = span_of(c->in + c->in_off + CHAN_HEAD, n);
    memcpy(f.fd, c->fds, f.nfds * sizeof(int));
    c->nfds -= f.nfds;
    memmove(c->fds, c->fds + f.nfds, c->nfds * sizeof(int));
    c->in_off += CHAN_HEAD + n;
    c->ops->frame(c->arg, c, &f);
    poison(c->in, c->in_off); /* what it was given is gone */
    chan_fds_close(f.fd, f.nfds);
    return 1;
}

/* With no whole frame left in the buffer, descriptors may only belong to the one that has begun. */
static bool fds_in_order(const struct chan *c)
{
    struct frame f = {0};
    size_t n, have = c->in_n - c->in_off;
    if (have >= CHAN_HEAD)
        return chan_head_get(c->in + c->in_off, &f, &n) == 0 && c->nfds == f.nfds;
    return have > 0 ? c->nfds <= CHAN_FDS_MAX : c->nfds == 0;
}

/* Deliver every whole frame. -1: broken, paused or freed by the callback; do not read on. */
static int take_frames(struct chan *c)
{
    int got = 1;
    while (got == 1 && !c->dead && !c->gone && !c->paused)
        got = take_frame(c);
    if (c->dead || c->gone || (c->paused && got >= 0))
        return -1;
    if (got < 0 || !fds_in_order(c)) {
        broken(c);
        return -1;
    }
    return 0;
}

/* Like realloc, but the old bytes are overwritten: between some processes credentials pass. */
static int resize(struct chan *c, size_t cap, size_t have)
{
    uint8_t *other = malloc(cap);
    if (other == NULL)
        return -1;
    if (c->in != NULL) {
        memcpy(other, c->in, have);
        explicit_bzero(c->in, have);
        free(c->in);
    }
    c->in = other;
    c->in_cap = cap;
    return 0;
}

/* Make room for the frame that has begun, or for a good read. */
static int make_room(struct chan *c)
{
    struct frame f = {0};
    size_t have = c->in_n - c->in_off, need = READ_ROOM, n = 0;
    if (have >= CHAN_HEAD && chan_head_get(c->in + c->in_off, &f, &n) == 0 && CHAN_HEAD + n > need)
        need = CHAN_HEAD + n;
    if (c->in_off > 0) {
        unpoison(c->in, c->in_off);
        memmove(c->in, c->in + c->in_off, have);
        explicit_bzero(c->in + have, c->in_n - have);
        c->in_off = 0;
        c->in_n = have;
    }
    bool too_large = need == READ_ROOM && c->in_cap > READ_ROOM && have < READ_ROOM / 2;
    if (c->in_cap < need)
        return resize(c, need, have);
    if (too_large)
        (void)resize(c, READ_ROOM, have);
    return 0;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct chan *c = arg;
    (void)fd, (void)what;
    c->busy++;
    for (int i = 0; i < READS_A_TURN && !c->gone && !c->paused; i++) {
        if (make_room(c) != 0) {
            broken(c);
            break;
        }
        size_t room = c->in_cap - c->in_n;
        ssize_t got = chan_receive(c->fd, c->in + c->in_n, room, c->fds, &c->nfds, 2 * CHAN_FDS_MAX);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (got <= 0) {
            broken(c);
            break;
        }
        c->in_n += (size_t)got;
        if (take_frames(c) != 0 || (size_t)got < room)
            break;
    }
    (void)leave(c);
}

static void (*on_end)(int fd);

void chan_on_end(void (*fn)(int fd))
{
    on_end = fn;
}

/* Deferred word to the owner: frames wait after a pause, or the end. */
static void on_news(void *arg)
{
    struct chan *c = arg;
    c->busy++;
    if (!c->dead && !c->gone && !c->paused)
        (void)take_frames(c);
    if (!c->dead && c->gone && !c->told) {
        c->told = true;
        task_cancel(&c->news);
        if (on_end != NULL)
            on_end(c->fd);
        c->ops->gone(c->arg, c);
    }
    (void)leave(c);
}

bool chan_is_lost(const struct chan *c)
{
    return c->lost;
}

struct chan *chan_new(struct loop *l, int fd, const struct chan_ops *ops, void *arg)
{
    struct chan *c = calloc(1, sizeof(*c));
    int flags = fcntl(fd, F_GETFL);
    if (c == NULL || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
        goto fail;
    c->loop = l;
    c->fd = fd;
    c->ops = ops;
    c->arg = arg;
    dynbuf_init(&c->out, 2 * (size_t)CHAN_QUEUE_MAX);
    task_init(&c->flush, flush, c);
    task_init(&c->news, on_news, c);
    if (event_assign(&c->rd, l->base, fd, EV_READ | EV_PERSIST, on_readable, c) != 0 ||
        event_assign(&c->wr, l->base, fd, EV_WRITE | EV_PERSIST, on_writable, c) != 0 || event_add(&c->rd, NULL) != 0)
        goto fail;
    return c;
fail:
    close(fd);
    free(c);
    return NULL;
}

void chan_free(struct chan **cp)
{
    struct chan *c = *cp;
    *cp = NULL;
    if (c == NULL || c->dead)
        return;
    flush(c);
    c->dead = true;
    task_cancel(&c->flush);
    task_cancel(&c->news);
    timer_free(&c->retry);
    event_del(&c->rd);
    event_del(&c->wr);
    close(c->fd);
    if (c->busy == 0)
        destroy(c);
}

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    uint8_t head[CHAN_HEAD];
    if (c->is_building) /* the earlier one was never committed: it is dropped */
        c->out.n = c->building;
    c->is_building = true;
    c->building = c->out.n;
    chan_head_put(head, type, id);
    (void)dynbuf_add(&c->out, span_of(head, CHAN_HEAD));
    return &c->out;
}

static int mark_add(struct chan *c, uint64_t at, const int *fd, unsigned n)
{
    if (c->nmarks == c->marks_cap) {
        unsigned cap = c->marks_cap ? c->marks_cap * 2 : 8;
        struct mark *grown = cap > MARKS_MAX ? NULL : realloc(c->marks, cap * sizeof(*grown));
        if (grown == NULL)
            return -1;
        c->marks = grown;
        c->marks_cap = cap;
    }
    struct mark *m = &c->marks[c->nmarks];
    m->at = at;
    for (m->n = 0; m->n < n; m->n++) {
        m->fd[m->n] = fcntl(fd[m->n], F_DUPFD_CLOEXEC, 4);
        if (m->fd[m->n] < 0) {
            chan_fds_close(m->fd, m->n);
            return -1;
        }
    }
    c->nmarks++;
    return 0;
}

static int finish(struct chan *c, const int *fd, unsigned nfds)
{
    if (c->lost) {
        out_drop(c); /* gone() is on its way */
        return -1;
    }
    if (!c->is_building || !dynbuf_ok(&c->out) || nfds > CHAN_FDS_MAX)
        goto fail;
    size_t n = c->out.n - c->building - CHAN_HEAD;
    if (n > CHAN_PAYLOAD_MAX || c->out.n - c->out_off > CHAN_QUEUE_MAX)
        goto fail;
    if (nfds > 0 && mark_add(c, c->out_base + c->building, fd, nfds) != 0)
        goto fail;
    chan_head_patch(c->out.p + c->building, n, nfds);
    c->is_building = false;
    return 0;
fail:
    broken(c);
    return -1;
}

int chan_commit_fds(struct chan *c, const int *fd, unsigned nfds)
{
    if (finish(c, fd, nfds) != 0)
        return -1;
    task_flush(c->loop, &c->flush);
    return 0;
}

int chan_commit_soon(struct chan *c)
{
    if (finish(c, NULL, 0) != 0)
        return -1;
    if (++c->soon >= CHAN_SOON_FRAMES)
        task_flush(c->loop, &c->flush);
    else if (c->soon == 1)
        flush_in(c, CHAN_SOON_MS);
    return 0;
}

int chan_commit(struct chan *c)
{
    return chan_commit_fds(c, NULL, 0);
}

int chan_commit_fd(struct chan *c, int fd)
{
    return chan_commit_fds(c, &fd, 1);
}

int chan_send(struct chan *c, uint16_t type, uint64_t id, struct span payload)
{
    (void)dynbuf_add(chan_begin(c, type, id), payload);
    return chan_commit(c);
}

int chan_send_fd(struct chan *c, uint16_t type, uint64_t id, struct span payload, int fd)
{
    (void)dynbuf_add(chan_begin(c, type, id), payload);
    return chan_commit_fd(c, fd);
}

int frame_take_fd(struct frame *f, unsigned i)
{
    if (i >= f->nfds)
        return -1;
    int fd = f->fd[i];
    f->fd[i] = -1;
    return fd;
}

size_t chan_queued(const struct chan *c)
{
    return sendable(c);
}

void chan_pause(struct chan *c, bool paused)
{
    c->paused = paused;
    if (c->gone || c->dead)
        return;
    event_want(&c->rd, !paused);
    /* Whole frames may have stayed in the buffer. */
    if (!paused && c->in_n > c->in_off)
        task_later(c->loop, &c->news);
}
