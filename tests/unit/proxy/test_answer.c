/* The name server of captured sandboxes: C16, C31, C32, G7. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/dynbuf.h"
#include "common/msg.h"
#include "proxy/resolver/answer.h"
#include "proxy/resolver/name_server.h"

enum { HEADER = 12, A = 1, TXT = 16, AAAA = 28, HTTPS = 65, ANY = 255 };

struct ask {
    struct dynbuf b;
    uint8_t out[ANSWER_MAX];
    size_t n;
};

/* Labels as they are on the wire without the end ("\3api\7example"), so that anything can be said. */
static void begin(struct ask *a, const char *wire, size_t n, unsigned type)
{
    dynbuf_init(&a->b, 65536);
    msg_put_u16(&a->b, 0x1234);
    msg_put_u16(&a->b, 0x0100);
    msg_put_u16(&a->b, 1);
    msg_put_u16(&a->b, 0);
    msg_put_u32(&a->b, 0);
    dynbuf_add(&a->b, span_of(wire, n));
    dynbuf_add_byte(&a->b, 0);
    msg_put_u16(&a->b, (uint16_t)type);
    msg_put_u16(&a->b, 1);
}

static void make(struct ask *a)
{
    uint8_t *exact = malloc(a->b.n ? a->b.n : 1); /* reading past the end is seen */
    memcpy(exact, a->b.p, a->b.n);
    a->n = answer_make(span_of(exact, a->b.n), a->out);
    free(exact);
    dynbuf_free(&a->b);
}

static unsigned count(const struct ask *a)
{
    return (unsigned)a->out[6] << 8 | a->out[7];
}

static unsigned code(const struct ask *a)
{
    assert_true(a->n >= HEADER && a->out[0] == 0x12 && a->out[1] == 0x34 && a->out[2] & 0x80);
    return a->out[3] & 0xf;
}

static void ask(struct ask *a, const char *wire, size_t n, unsigned type)
{
    begin(a, wire, n, type);
    make(a);
}
#define ASK(a, wire, type) ask(a, wire, sizeof(wire) - 1, type)
#define NAME               "\3aPi\7eXample\3com"

static void a_name_has_our_address(void **state)
{
    static const uint8_t end[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, ANSWER_TTL, 0, 4, 198, 18, 0, 1};
    struct ask a;
    ASK(&a, NAME, A);
    assert_int_equal(code(&a), 0);
    assert_int_equal(count(&a), 1);
    assert_int_equal(a.n, HEADER + 17 + 4 + 16);
    assert_memory_equal(a.out + HEADER, NAME, 16); /* in the case it was asked in */
    assert_memory_equal(a.out + a.n - 16, end, 16);
    assert_int_equal(a.out[2], 0x85); /* an answer, with authority, recursion wished for as it was */
    ASK(&a, "\1x", A);                /* a search list does not decide */
    assert_int_equal(count(&a), 1);
    ASK(&a, "\3a_b\4test", A);
    assert_int_equal(count(&a), 1);
}

static void every_other_type_is_empty_and_no_error(void **state)
{
    struct ask a;
    for (unsigned type = 0; type < 300; type++) {
        if (type == A)
            continue;
        ASK(&a, NAME, type);
        assert_int_equal(code(&a), 0);
        assert_int_equal(count(&a), 0);
        assert_int_equal(a.n, HEADER + 17 + 4);
    }
    ASK(&a, "\6_https\3com", HTTPS);
    assert_true(code(&a) == 0 && count(&a) == 0);
    ASK(&a, "", ANY);
    assert_true(code(&a) == 0 && count(&a) == 0);
}

static void what_is_no_host_name_does_not_exist(void **state)
{
    struct ask a;
    static const struct {
        const char *wire;
        size_t n;
    } bad[] = {
#define W(s) {s, sizeof(s) - 1}
        W(""),
        W("\6_dmarc\3com"),
        W("\4-abc\3com"),
        W("\4abc-\3com"),
        W("\4abc_\3com"),
        W("\4a\0bc\3com"),
        W("\4a.bc\3com"),
        W("\4a\xff-c\3com"),
        W("\3"
          "127\1"
          "0\1"
          "0\1"
          "1"),
        W("\11LOCALhost"),
        W("\1x\11localhost"),
#undef W
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        ask(&a, bad[i].wire, bad[i].n, A);
        assert_int_equal(code(&a), 3);
        assert_int_equal(count(&a), 0);
    }
}

static void names_end_at_255_octets(void **state)
{
    char wire[400];
    struct ask a;
    size_t n = 0;
    for (int i = 0; i < 3; i++, n += 64) {
        wire[n] = 63;
        memset(wire + n + 1, 'a', 63);
    }
    wire[n] = 61; /* 192 + 62 + the end: 255 octets, 253 of text */
    memset(wire + n + 1, 'b', 61);
    ask(&a, wire, n + 62, A);
    assert_int_equal(code(&a), 0);
    assert_int_equal(count(&a), 1);
    assert_true(a.n <= ANSWER_MAX);
    wire[n] = 62;
    wire[n + 62] = 'b';
    ask(&a, wire, n + 63, A);
    assert_int_equal(code(&a), 1);
    wire[0] = 64; /* not a length */
    ask(&a, wire, n + 62, A);
    assert_int_equal(code(&a), 1);
}

static void opt(struct ask *a, unsigned version, const char *options, size_t n)
{
    a->b.p[11]++;
    dynbuf_add_byte(&a->b, 0);
    msg_put_u16(&a->b, 41);
    msg_put_u16(&a->b, 4096);
    msg_put_u32(&a->b, version << 16);
    msg_put_u16(&a->b, (uint16_t)n);
    dynbuf_add(&a->b, span_of(options, n));
}

static void edns_is_understood_and_not_more(void **state)
{
    struct ask a;
    begin(&a, NAME, 16, A);
    opt(&a, 0, "\0\12\0\10abcdefgh", 12);
    make(&a);
    assert_int_equal(code(&a), 0);
    assert_int_equal(a.n, HEADER + 21 + 16 + 11); /* its options are not repeated */
    assert_int_equal(a.out[11], 1);
    begin(&a, NAME, 16, A);
    opt(&a, 1, "", 0);
    make(&a);
    assert_int_equal(code(&a), 0); /* BADVERS is 16: its low bits here, its high ones in the record */
    assert_int_equal(count(&a), 0);
    assert_int_equal(a.out[a.n - 6], 1);
    begin(&a, NAME, 16, A);
    opt(&a, 0, "\0\12\0\11abcdefgh", 12);
    make(&a);
    assert_int_equal(code(&a), 1);
    begin(&a, NAME, 16, A);
    opt(&a, 0, "", 0);
    opt(&a, 0, "", 0);
    make(&a);
    assert_int_equal(code(&a), 1);
}

/* Each field of the header, and every cut. */
static void what_is_malformed_is_refused_or_passed_over(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
        int code; /* -1: silence */
    } cases[] = {{2, 0x81, -1}, {2, 0x09, 4}, {2, 0x29, 4}, {5, 0, 1}, {5, 2, 1},
                 {7, 1, 1},     {9, 1, 1},    {11, 1, 1},   {4, 1, 1}, {HEADER, 0xc0, 1}};
    struct ask a;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        begin(&a, NAME, 16, A);
        a.b.p[cases[i].at] = cases[i].value;
        make(&a);
        if (cases[i].code < 0)
            assert_int_equal(a.n, 0);
        else
            assert_int_equal(code(&a), cases[i].code);
        assert_true(a.n == 0 || (count(&a) == 0 && a.n == HEADER));
    }
    for (size_t n = 0; n < HEADER + 21; n++) {
        begin(&a, NAME, 16, A);
        a.b.n = n;
        make(&a);
        assert_true(n < HEADER ? a.n == 0 : code(&a) == 1);
    }
    begin(&a, NAME, 16, A);
    dynbuf_add_byte(&a.b, 0);
    make(&a);
    assert_int_equal(code(&a), 1);
    begin(&a, NAME, 16, TXT);
    a.b.p[a.b.n - 1] = 3; /* CHAOS: version.bind */
    make(&a);
    assert_int_equal(code(&a), 5);
}

/* ---- its sockets ---- */

struct world {
    struct loop *loop;
    struct name_server *names;
    struct timer *limit;
    struct sockaddr_in udp, tcp;
};

static void too_long(void *arg)
{
    fail_msg("nothing came");
}

static struct sockaddr_in bound(int fd)
{
    struct sockaddr_in a;
    socklen_t n = sizeof(a);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    return a;
}

static void open_world(struct world *w)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    int udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), tcp = listen_tcp("127.0.0.1:0");
    assert_true(tcp >= 0 && bind(udp, (struct sockaddr *)&any, sizeof(any)) == 0);
    w->udp = bound(udp);
    w->udp.sin_addr.s_addr = htonl(0x7f000005); /* not the one a route back would choose */
    w->tcp = bound(tcp);
    w->loop = loop_new();
    w->names = name_server_new(w->loop);
    w->limit = timer_new(w->loop, too_long, NULL);
    assert_int_equal(name_server_listen(w->names, udp, tcp), 0);
    timer_set(w->limit, 300000); /* of what is stuck; a busy machine is not */
}

static void close_world(struct world *w)
{
    timer_free(&w->limit);
    name_server_free(&w->names);
    loop_free(&w->loop);
}

struct waiting {
    struct world *w;
    int fd;
    size_t want, n;
    uint8_t got[2048];
    bool over;
};

static void on_answer(void *arg, unsigned ready)
{
    struct waiting *x = arg;
    ssize_t n = recv(x->fd, x->got + x->n, sizeof(x->got) - x->n, MSG_DONTWAIT);
    if (n > 0)
        x->n += (size_t)n;
    x->over = n == 0;
    if (x->n >= x->want || x->over)
        loop_stop(x->w->loop);
}

static void wait_for(struct waiting *x)
{
    struct watch *watch = watch_new(x->w->loop, x->fd, WATCH_READ, on_answer, x);
    assert_int_equal(loop_run(x->w->loop), 0);
    watch_free(&watch);
}

static int dial(const struct sockaddr_in *to, int type)
{
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)to, sizeof(*to)), 0);
    return fd;
}

static void a_datagram_is_answered_from_the_address_it_was_sent_to(void **state)
{
    struct world w;
    struct ask a;
    open_world(&w);
    struct waiting x = {.w = &w, .fd = dial(&w.udp, SOCK_DGRAM), .want = 1};
    assert_int_equal(send(x.fd, "garbage", 7, 0), 7); /* passed over */
    begin(&a, NAME, 16, A);
    assert_int_equal(send(x.fd, a.b.p, a.b.n, 0), (ssize_t)a.b.n);
    wait_for(&x); /* a connected socket takes answers of that address only */
    make(&a);
    assert_int_equal(x.n, a.n);
    assert_memory_equal(x.got, a.out, a.n);
    close(x.fd);
    close_world(&w);
}

static void a_stream_carries_several_questions_cut_anywhere(void **state)
{
    struct world w;
    struct ask a;
    uint8_t both[256];
    open_world(&w);
    begin(&a, NAME, 16, A);
    size_t n = a.b.n + 2;
    both[0] = 0;
    both[1] = (uint8_t)a.b.n;
    memcpy(both + 2, a.b.p, a.b.n);
    memcpy(both + n, both, n);
    make(&a);
    for (size_t cut = 1; cut < 2 * n; cut += 7) {
        struct waiting x = {.w = &w, .fd = dial(&w.tcp, SOCK_STREAM), .want = cut < n ? 0 : a.n + 2};
        assert_int_equal(send(x.fd, both, cut, 0), (ssize_t)cut);
        if (x.want)
            wait_for(&x);
        assert_int_equal(send(x.fd, both + cut, 2 * n - cut, 0), (ssize_t)(2 * n - cut));
        x.want = 2 * (a.n + 2);
        wait_for(&x);
        assert_int_equal(x.n, 2 * (a.n + 2));
        assert_int_equal(x.got[1], a.n);
        assert_memory_equal(x.got + 2, a.out, a.n);
        assert_memory_equal(x.got + a.n + 4, a.out, a.n);
        assert_int_equal(shutdown(x.fd, SHUT_WR), 0);
        x.want = sizeof(x.got);
        wait_for(&x);
        assert_true(x.over);
        close(x.fd);
    }
    close_world(&w);
}

static void a_stream_with_an_impossible_length_ends(void **state)
{
    static const uint8_t bad[][2] = {{0, 0}, {0x10, 1}};
    struct world w;
    open_world(&w);
    for (size_t i = 0; i < 2; i++) {
        struct waiting x = {.w = &w, .fd = dial(&w.tcp, SOCK_STREAM), .want = 1};
        assert_int_equal(send(x.fd, bad[i], 2, 0), 2);
        wait_for(&x);
        assert_true(x.over && x.n == 0);
        close(x.fd);
    }
    close_world(&w);
}

static void the_oldest_stream_gives_way(void **state)
{
    struct world w;
    int fd[NAME_SERVER_STREAMS_MAX + 1];
    open_world(&w);
    for (size_t i = 0; i <= NAME_SERVER_STREAMS_MAX; i++)
        fd[i] = dial(&w.tcp, SOCK_STREAM);
    struct waiting x = {.w = &w, .fd = fd[0], .want = 1};
    wait_for(&x);
    assert_true(x.over);
    struct ask a;
    begin(&a, NAME, 16, A);
    const uint8_t head[] = {0, (uint8_t)a.b.n};
    x = (struct waiting){.w = &w, .fd = fd[1], .want = 2};
    assert_true(send(fd[1], head, 2, 0) == 2 && send(fd[1], a.b.p, a.b.n, 0) > 0);
    wait_for(&x);
    assert_true(x.n > 2);
    make(&a);
    for (size_t i = 0; i <= NAME_SERVER_STREAMS_MAX; i++)
        close(fd[i]);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_has_our_address),
        cmocka_unit_test(every_other_type_is_empty_and_no_error),
        cmocka_unit_test(what_is_no_host_name_does_not_exist),
        cmocka_unit_test(names_end_at_255_octets),
        cmocka_unit_test(edns_is_understood_and_not_more),
        cmocka_unit_test(what_is_malformed_is_refused_or_passed_over),
        cmocka_unit_test(a_datagram_is_answered_from_the_address_it_was_sent_to),
        cmocka_unit_test(a_stream_carries_several_questions_cut_anywhere),
        cmocka_unit_test(a_stream_with_an_impossible_length_ends),
        cmocka_unit_test(the_oldest_stream_gives_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
