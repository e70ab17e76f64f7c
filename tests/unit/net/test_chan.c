/* common/net/chan: frames cut at every byte, descriptors, limits, and peers that break the contract. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/chan_wire.h"
#include "common/net/loop.h"
#include "tests/kit.h"

enum { HEAD = 16, SEEN_MAX = 64 };

struct side {
    struct loop *l;
    struct chan *c;
    unsigned frames, gone, nfds;
    uint16_t type[SEEN_MAX];
    uint64_t id[SEEN_MAX];
    size_t n[SEEN_MAX];
    uint8_t last[64];
    int kept;         /* a descriptor taken out of a frame, or -1 */
    unsigned stop_at; /* frames after which the loop stops */
    bool take, free_in_frame, pause_in_frame;
};

#ifdef COMMON_POISON
int __asan_address_is_poisoned(void const volatile *p);
#endif

/* What an earlier frame of the same read pointed to cannot be read any more. */
static void assert_stale_is_poisoned(struct span payload)
{
#ifdef COMMON_POISON
    static struct span before;
    /* AddressSanitizer counts in eights: the end of a frame may share one with the next, its head does not. */
    if (before.p != NULL && payload.p > before.p && (size_t)(payload.p - before.p) == before.n + CHAN_HEAD)
        assert_true(__asan_address_is_poisoned(before.p - CHAN_HEAD));
    before = payload;
#else
    (void)payload;
#endif
}

static void on_frame(void *arg, struct chan *c, struct frame *f)
{
    struct side *s = arg;
    assert_true(s->frames < SEEN_MAX);
    s->type[s->frames] = f->type;
    s->id[s->frames] = f->id;
    s->n[s->frames] = f->payload.n;
    assert_stale_is_poisoned(f->payload);
    memcpy(s->last, f->payload.p, f->payload.n < sizeof(s->last) ? f->payload.n : sizeof(s->last));
    s->nfds += f->nfds;
    s->frames++;
    if (s->take && f->nfds > 0)
        s->kept = frame_take_fd(f, 0);
    if (s->pause_in_frame)
        chan_pause(c, true);
    if (s->free_in_frame)
        chan_free(&s->c);
    if (s->frames == s->stop_at)
        loop_stop(s->l);
}

static void on_gone(void *arg, struct chan *c)
{
    struct side *s = arg;
    assert_ptr_equal(c, s->c);
    s->gone++;
    chan_free(&s->c);
    loop_stop(s->l);
}

static const struct chan_ops ops = {on_frame, on_gone};

static void too_long(void *arg)
{
    (void)arg;
    fail_msg("the loop did not end in time");
}

struct turns {
    struct loop *l;
    int left;
};

static void turn(void *arg)
{
    struct turns *t = arg;
    if (t->left-- == 0)
        loop_stop(t->l);
    else
        assert_int_equal(loop_defer(t->l, turn, t), 0);
}

/* Run until stopped; a test that waits for what never comes fails. */
static void run(struct loop *l)
{
    struct timer *t = timer_new(l, too_long, NULL);
    timer_set(t, 300000);
    assert_int_equal(loop_run(l), 0);
    timer_free(&t);
}

/* Let everything that is ready happen. */
static void settle(struct loop *l)
{
    struct turns t = {l, 12};
    assert_int_equal(loop_defer(l, turn, &t), 0);
    assert_int_equal(loop_run(l), 0);
}

static void pair(struct side *a, int *raw)
{
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    *a = (struct side){.l = loop_new(), .kept = -1};
    assert_non_null(a->l);
    a->c = chan_new(a->l, fd[0], &ops, a);
    assert_non_null(a->c);
    *raw = fd[1];
}

static void done(struct side *a, int raw)
{
    chan_free(&a->c);
    loop_free(&a->l);
    if (raw >= 0)
        close(raw);
    if (a->kept >= 0)
        close(a->kept);
}

static size_t raw_frame(uint8_t *to, uint32_t n, uint16_t type, uint16_t nfds, uint64_t id, uint8_t fill)
{
    struct dynbuf b;
    dynbuf_init(&b, 1024 * 1024);
    msg_put_u32(&b, n);
    msg_put_u16(&b, type);
    msg_put_u16(&b, nfds);
    msg_put_u64(&b, id);
    assert_int_equal(b.n, HEAD);
    memcpy(to, b.p, HEAD);
    dynbuf_free(&b);
    memset(to + HEAD, fill, n < 64 ? n : 64);
    return HEAD + n;
}

static void put(int fd, const void *p, size_t n)
{
    assert_int_equal(write(fd, p, n), (ssize_t)n);
}

static ssize_t put_fds(int fd, const void *p, size_t n, unsigned nfds)
{
    union {
        struct cmsghdr align;
        uint8_t b[CMSG_SPACE(sizeof(int) * 16)];
    } ctl = {0};
    struct iovec v = {(void *)p, n};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = ctl.b};
    m.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
    for (unsigned i = 0; i < nfds; i++) {
        int one = STDERR_FILENO;
        memcpy(CMSG_DATA(h) + i * sizeof(int), &one, sizeof(one));
    }
    return sendmsg(fd, &m, MSG_NOSIGNAL);
}

static void test_cut_everywhere(void **state)
{
    uint8_t b[256];
    (void)state;
    size_t n = raw_frame(b, 5, 7, 0, 0x1122334455667788u, 'a');
    n += raw_frame(b + n, 0, 8, 0, 2, 0);
    n += raw_frame(b + n, 9, 9, 0, 3, 'c');
    for (size_t cut = 0; cut <= n; cut++) {
        struct side a;
        int raw;
        pair(&a, &raw);
        put(raw, b, cut);
        settle(a.l);
        put(raw, b + cut, n - cut);
        a.stop_at = 3;
        if (a.frames < 3)
            run(a.l);
        assert_int_equal(a.frames, 3);
        assert_int_equal(a.type[0], 7);
        assert_true(a.id[0] == 0x1122334455667788u);
        assert_int_equal(a.n[0], 5);
        assert_int_equal(a.n[1], 0);
        assert_int_equal(a.type[2], 9);
        assert_memory_equal(a.last, "ccccccccc", 9);
        assert_int_equal(a.gone, 0);
        done(&a, raw);
    }
}

static void test_both_ways(void **state)
{
    struct side a, b;
    int fd[2], pipes[2];
    (void)state;
    unsigned before = open_fds();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    assert_int_equal(pipe(pipes), 0);
    a = (struct side){.l = loop_new(), .kept = -1};
    b = (struct side){.l = a.l, .kept = -1, .take = true, .stop_at = 4};
    a.c = chan_new(a.l, fd[0], &ops, &a);
    b.c = chan_new(a.l, fd[1], &ops, &b);
    assert_int_equal(chan_send(a.c, 1, 1, SPAN("one")), 0);
    assert_int_equal(chan_send_fd(a.c, 2, 2, SPAN("two"), pipes[1]), 0);
    close(pipes[1]); /* it was duplicated */
    assert_int_equal(chan_send(a.c, 3, 3, SPAN("three")), 0);
    struct dynbuf *d = chan_begin(a.c, 4, 4);
    msg_put_u16(d, 0x4142);
    assert_int_equal(chan_commit(a.c), 0);
    run(a.l);
    assert_int_equal(b.frames, 4);
    assert_int_equal(b.nfds, 1);
    assert_int_equal(b.n[3], 2);
    assert_memory_equal(b.last, "AB", 2);
    assert_true(b.kept >= 0);
    put(b.kept, "x", 1);
    char x;
    assert_int_equal(read(pipes[0], &x, 1), 1);
    close(pipes[0]);
    chan_free(&b.c);
    run(a.l);
    assert_int_equal(a.gone, 1);
    assert_null(a.c);
    close(b.kept);
    loop_free(&a.l);
    assert_int_equal(open_fds(), before);
}

/* The largest frame passes; one byte more ends the channel. */
static void test_limit(void **state)
{
    static uint8_t big[CHAN_PAYLOAD_MAX + 1];
    struct side a, b;
    int fd[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    a = (struct side){.l = loop_new(), .kept = -1};
    b = (struct side){.l = a.l, .kept = -1, .stop_at = 2};
    a.c = chan_new(a.l, fd[0], &ops, &a);
    b.c = chan_new(a.l, fd[1], &ops, &b);
    assert_int_equal(chan_send(a.c, 1, 1, span_of(big, CHAN_PAYLOAD_MAX)), 0);
    assert_int_equal(chan_send(a.c, 1, 1, span_of(big, CHAN_PAYLOAD_MAX)), 0);
    run(a.l);
    assert_int_equal(b.n[1], CHAN_PAYLOAD_MAX);
    assert_int_equal(chan_send(a.c, 1, 1, span_of(big, CHAN_PAYLOAD_MAX + 1)), -1);
    assert_int_equal(a.gone, 0); /* never from within the call */
    run(a.l);
    assert_int_equal(a.gone, 1);
    chan_free(&b.c);
    loop_free(&a.l);
}

static void test_queue_cap(void **state)
{
    static uint8_t big[CHAN_PAYLOAD_MAX];
    struct side a;
    int raw, rc = 0;
    size_t sent = 0;
    (void)state;
    pair(&a, &raw);
    for (unsigned i = 0; rc == 0; i++) {
        rc = chan_send(a.c, 1, i, span_of(big, sizeof(big)));
        sent += rc == 0 ? sizeof(big) + HEAD : 0;
        assert_true(sent <= CHAN_QUEUE_MAX);
    }
    assert_true(sent > CHAN_QUEUE_MAX - 2 * sizeof(big));
    assert_int_equal(chan_queued(a.c), 0); /* given back at once */
    run(a.l);
    assert_int_equal(a.gone, 1);
    done(&a, raw);
}

static void expect_gone(struct side *a, int raw)
{
    if (!a->gone)
        run(a->l);
    assert_int_equal(a->gone, 1);
    done(a, raw);
}

/* A peer that breaks the contract is a dead peer, and costs no descriptor. */
static void test_malformed(void **state)
{
    uint8_t b[4096] = {0};
    struct side a;
    int raw;
    (void)state;
    unsigned before = open_fds();

    pair(&a, &raw); /* longer than any payload may be */
    raw_frame(b, 0, 1, 0, 0, 0);
    memcpy(b, "\x00\x05\x00\x01", 4);
    put(raw, b, HEAD);
    expect_gone(&a, raw);

    pair(&a, &raw); /* the length of everything */
    memset(b, 0xff, HEAD);
    put(raw, b, HEAD);
    expect_gone(&a, raw);

    pair(&a, &raw); /* says it has a descriptor, has none */
    put(raw, b, raw_frame(b, 3, 1, 1, 0, 'x'));
    expect_gone(&a, raw);
    assert_int_equal(a.frames, 0);

    pair(&a, &raw); /* has one, says none */
    put_fds(raw, b, raw_frame(b, 3, 1, 0, 0, 'x'), 1);
    expect_gone(&a, raw);

    pair(&a, &raw); /* has two, says one */
    put_fds(raw, b, raw_frame(b, 3, 1, 1, 0, 'x'), 2);
    expect_gone(&a, raw);

    pair(&a, &raw); /* has one, says none, and is not complete yet */
    put_fds(raw, b, raw_frame(b, 3, 1, 0, 0, 'x') - 1, 1);
    expect_gone(&a, raw);

    pair(&a, &raw); /* more than a frame may have */
    put_fds(raw, b, raw_frame(b, 3, 1, 16, 0, 'x'), 16);
    expect_gone(&a, raw);

    pair(&a, &raw); /* sixteen, and says four */
    put_fds(raw, b, raw_frame(b, 3, 1, 4, 0, 'x'), 16);
    expect_gone(&a, raw);

    pair(&a, &raw); /* a frame that never ends */
    put(raw, b, raw_frame(b, 60, 1, 0, 0, 'x') - 1);
    settle(a.l);
    close(raw);
    expect_gone(&a, -1);
    assert_int_equal(a.frames, 0);

    pair(&a, &raw); /* descriptors that pile up before the frame they belong to has come */
    raw_frame(b, 3, 1, 4, 0, 'x');
    for (int i = 0; i < 5 && put_fds(raw, b + i, 1, 4) == 1; i++)
        settle(a.l);
    expect_gone(&a, raw);
    assert_int_equal(open_fds(), before);
}

/* What the owner does not take, and what is queued but never sent, is closed. */
static void test_fds_closed(void **state)
{
    uint8_t b[64];
    struct side a;
    int raw;
    (void)state;
    unsigned before = open_fds();
    pair(&a, &raw);
    a.stop_at = 1;
    put_fds(raw, b, raw_frame(b, 3, 1, 4, 0, 'x'), 4);
    run(a.l);
    assert_int_equal(a.nfds, 4);
    static uint8_t big[CHAN_PAYLOAD_MAX];
    for (int i = 0; i < 20; i++)
        assert_int_equal(chan_send_fd(a.c, 1, 1, span_of(big, sizeof(big)), STDERR_FILENO), 0);
    settle(a.l);
    done(&a, raw);
    assert_int_equal(open_fds(), before);
}

static void test_free_and_pause_inside(void **state)
{
    uint8_t b[256];
    struct side a;
    int raw;
    (void)state;
    size_t n = raw_frame(b, 5, 1, 0, 1, 'a');
    n += raw_frame(b + n, 5, 2, 0, 2, 'b');

    pair(&a, &raw);
    a.free_in_frame = true;
    put(raw, b, n);
    settle(a.l);
    assert_int_equal(a.frames, 1);
    assert_null(a.c);
    done(&a, raw);

    pair(&a, &raw);
    a.pause_in_frame = true;
    put(raw, b, n);
    settle(a.l);
    assert_int_equal(a.frames, 1);
    chan_pause(a.c, false); /* the second one waits in the buffer, the socket is empty */
    settle(a.l);
    assert_int_equal(a.frames, 2);
    done(&a, raw);
}

/* The last words of a peer that wrote and left are heard before its end. */
static void test_last_words(void **state)
{
    uint8_t b[64];
    struct side a;
    int raw;
    (void)state;
    pair(&a, &raw);
    put(raw, b, raw_frame(b, 5, 1, 0, 1, 'a'));
    close(raw);
    assert_int_equal(chan_send(a.c, 1, 1, SPAN("into the void")), 0);
    expect_gone(&a, -1);
    assert_int_equal(a.frames, 1);
}

static void test_flush_on_free(void **state)
{
    uint8_t b[64];
    struct side a;
    int raw;
    (void)state;
    pair(&a, &raw);
    assert_int_equal(chan_send(a.c, 1, 1, SPAN("bye")), 0);
    chan_free(&a.c);
    assert_int_equal(read(raw, b, sizeof(b)), HEAD + 3);
    done(&a, raw);
}

static void begin_soon(struct chan *c, uint16_t type, uint64_t id)
{
    assert_non_null(chan_begin(c, type, id));
}

static void off(void *arg)
{
    loop_stop(arg);
}

/* Frames that wait for company leave with the next one that does not, when there are enough, or by the clock; in
 * their order. */
static void test_soon(void **state)
{
    uint8_t b[2048];
    struct side a;
    int raw;
    (void)state;
    pair(&a, &raw);
    assert_int_equal(fcntl(raw, F_SETFL, O_NONBLOCK), 0);
    begin_soon(a.c, 1, 1);
    assert_int_equal(chan_commit_soon(a.c), 0);
    settle(a.l);
    assert_int_equal(read(raw, b, sizeof(b)), -1);
    assert_int_equal(chan_send(a.c, 2, 2, SPAN_NONE), 0);
    settle(a.l);
    assert_int_equal(read(raw, b, sizeof(b)), 2 * HEAD);
    assert_int_equal(b[5], 1);
    assert_int_equal(b[HEAD + 5], 2);
    for (unsigned i = 1; i < CHAN_SOON_FRAMES; i++) {
        begin_soon(a.c, 3, i);
        assert_int_equal(chan_commit_soon(a.c), 0);
    }
    settle(a.l);
    assert_int_equal(read(raw, b, sizeof(b)), -1);
    begin_soon(a.c, 3, 99);
    assert_int_equal(chan_commit_soon(a.c), 0);
    settle(a.l);
    assert_int_equal(read(raw, b, sizeof(b)), CHAN_SOON_FRAMES * HEAD);
    begin_soon(a.c, 4, 1);
    assert_int_equal(chan_commit_soon(a.c), 0);
    struct timer *t = timer_new(a.l, off, a.l);
    timer_set(t, 5 * CHAN_SOON_MS);
    run(a.l);
    timer_free(&t);
    assert_int_equal(read(raw, b, sizeof(b)), HEAD);
    done(&a, raw);
}

static void test_read_one(void **state)
{
    uint8_t b[256], more[8];
    int fd[2];
    struct frame f;
    struct dynbuf payload;
    (void)state;
    unsigned before = open_fds();
    dynbuf_init(&payload, CHAN_PAYLOAD_MAX);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    assert_true(put_fds(fd[1], b, raw_frame(b, 10, 3, 2, 9, 'q'), 2) > 0);
    put(fd[1], "next", 4);
    assert_int_equal(chan_read_one(fd[0], &f, &payload), 0);
    assert_int_equal(f.type, 3);
    assert_int_equal(f.nfds, 2);
    assert_int_equal(f.payload.n, 10);
    close(f.fd[0]);
    close(f.fd[1]);
    assert_int_equal(read(fd[0], more, sizeof(more)), 4); /* not one byte too many */

    dynbuf_reset(&payload);
    assert_true(put_fds(fd[1], b, raw_frame(b, 10, 3, 1, 9, 'q'), 2) > 0);
    assert_int_equal(chan_read_one(fd[0], &f, &payload), -1);
    close(fd[0]);
    close(fd[1]);
    assert_int_equal(open_fds(), before);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    put(fd[1], b, 7);
    close(fd[1]);
    assert_int_equal(chan_read_one(fd[0], &f, &payload), -1);
    close(fd[0]);
    dynbuf_free(&payload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_everywhere),
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_queue_cap),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_fds_closed),
        cmocka_unit_test(test_free_and_pause_inside),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_flush_on_free),
        cmocka_unit_test(test_read_one),
        cmocka_unit_test(test_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
