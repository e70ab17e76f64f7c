/* First byte: bytes that are written at once. Second: before which write descriptors go along, and how many. The
 * rest: what a peer writes. The frames that a channel gives are those that the contract in common/net/chan.h reads
 * from the bytes, however they are cut; where it is broken the channel ends; no descriptor is left open. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/dynbuf.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "tests/fuzz/fuzz.h"

enum { HEAD = 16 };

struct play {
    struct loop *l;
    struct chan *c;
    struct watch *w;
    int raw;
    struct span rest;
    size_t step, writes, fds_before;
    unsigned fds;
    struct dynbuf out;
    bool gone;
};

static void note(struct dynbuf *out, uint16_t type, uint64_t id, struct span payload)
{
    MUST_HOLD(dynbuf_addf(out, "%u %llx %zu ", type, (unsigned long long)id, payload.n) == 0);
    MUST_HOLD(dynbuf_add(out, payload) == 0);
}

static uint64_t number(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

/* What the contract says comes out of these bytes, when no descriptors come along. */
static void expect(struct span in, struct dynbuf *out)
{
    while (in.n >= HEAD) {
        size_t n = (size_t)number(in.p, 4);
        if (n > CHAN_PAYLOAD_MAX || number(in.p + 6, 2) || in.n < HEAD + n)
            return;
        note(out, (uint16_t)number(in.p + 4, 2), number(in.p + 8, 8), span_of(in.p + HEAD, n));
        in = span_from(in, HEAD + n);
    }
}

static void on_frame(void *arg, struct chan *c, struct frame *f)
{
    struct play *p = arg;
    MUST_HOLD(c == p->c && f->nfds <= CHAN_FDS_MAX);
    uint8_t *copy = fuzz_copy(f->payload);
    note(&p->out, f->type, f->id, span_of(copy, f->payload.n));
    free(copy);
    for (unsigned i = 0; i < f->nfds; i++)
        MUST_HOLD(f->fd[i] >= 0);
    if (f->nfds > 1) {
        int mine = frame_take_fd(f, 1);
        MUST_HOLD(mine >= 0 && frame_take_fd(f, f->nfds) == -1 && close(mine) == 0);
    }
}

static void on_gone(void *arg, struct chan *c)
{
    struct play *p = arg;
    MUST_HOLD(c == p->c && !p->gone);
    p->gone = true;
    chan_free(&p->c);
    loop_stop(p->l);
}

static const struct chan_ops ops = {on_frame, on_gone};

static ssize_t put(struct play *p, struct span piece, unsigned nfds)
{
    union {
        struct cmsghdr align;
        uint8_t b[CMSG_SPACE(sizeof(int) * 8)];
    } ctl = {0};
    struct iovec v = {(void *)(uintptr_t)piece.p, piece.n};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    int fd[8] = {p->raw, p->raw, p->raw, p->raw, p->raw, p->raw, p->raw, p->raw};
    if (nfds) {
        m.msg_control = ctl.b;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
        memcpy(CMSG_DATA(h), fd, sizeof(int) * nfds);
    }
    return sendmsg(p->raw, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void on_writable(void *arg, unsigned ready)
{
    struct play *p = arg;
    (void)ready;
    if (p->rest.n == 0) {
        MUST_HOLD(shutdown(p->raw, SHUT_WR) == 0 || errno == ENOTCONN);
        watch_set(p->w, 0);
        return;
    }
    ssize_t done = put(p, span_first(p->rest, p->step), p->writes == p->fds_before ? p->fds : 0);
    if (done > 0) {
        p->writes++;
        p->rest = span_from(p->rest, (size_t)done);
    } else if (errno != EAGAIN) {
        watch_set(p->w, 0);
    }
}

static void run(struct play *p, struct span in)
{
    int fd[2];
    MUST_HOLD(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
    p->l = loop_new();
    p->raw = fd[1];
    p->rest = in;
    dynbuf_init(&p->out, 1 << 22);
    MUST_HOLD(p->l && (p->c = chan_new(p->l, fd[0], &ops, p)) != NULL);
    p->w = watch_new(p->l, fd[1], WATCH_WRITE, on_writable, p);
    MUST_HOLD(p->w && loop_run(p->l) == 0 && p->gone && p->c == NULL);
    watch_free(&p->w);
    loop_free(&p->l);
    close(fd[1]);
}

/* The blocking reader of one frame agrees on the first. */
static void check_read_one(struct span in)
{
    int fd[2];
    struct frame f;
    struct dynbuf payload, got, want;
    size_t n = in.n >= HEAD ? (size_t)number(in.p, 4) : 0;
    MUST_HOLD(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
    MUST_HOLD(write(fd[1], in.p, in.n) == (ssize_t)in.n && shutdown(fd[1], SHUT_WR) == 0);
    dynbuf_init(&payload, CHAN_PAYLOAD_MAX);
    dynbuf_init(&got, 1 << 20);
    dynbuf_init(&want, 1 << 20);
    expect(span_first(in, HEAD + n), &want);
    if (chan_read_one(fd[0], &f, &payload) == 0) {
        uint8_t behind;
        note(&got, f.type, f.id, f.payload);
        MUST_HOLD(read(fd[0], &behind, 1) == (in.n > HEAD + n)); /* not one byte more was read */
    }
    MUST_HOLD(span_eq(dynbuf_span(&got), dynbuf_span(&want)));
    dynbuf_free(&payload);
    dynbuf_free(&got);
    dynbuf_free(&want);
    close(fd[0]);
    close(fd[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2 || n > 1 << 16)
        return 0;
    struct span in = span_of(data + 2, n - 2);
    struct play p = {.step = data[0] ? data[0] + in.n / 256 : 1 + in.n / 256, .fds_before = data[1] % 32};
    struct dynbuf want;
    int lowest = dup(STDERR_FILENO);
    p.fds = data[1] / 32;
    close(lowest);
    uint8_t *copy = fuzz_copy(in);
    run(&p, span_of(copy, in.n));
    dynbuf_init(&want, 1 << 22);
    expect(in, &want);
    if (p.fds == 0) {
        MUST_HOLD(span_eq(dynbuf_span(&p.out), dynbuf_span(&want)));
        if (in.n)
            check_read_one(in);
    }
    dynbuf_free(&want);
    dynbuf_free(&p.out);
    free(copy);
    int now = dup(STDERR_FILENO);
    MUST_HOLD(now == lowest);
    close(now);
    return 0;
}
