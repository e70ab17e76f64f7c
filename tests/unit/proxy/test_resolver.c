/* Names: C12, C13, C14, C15, C21, with a name server of the test's own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/log.h"
#include "common/msg.h"
#include "proxy/msgs.h"
#include "proxy/resolver/resolver.h"

struct world {
    struct loop *loop;
    struct resolver *resolver;
    struct chan *carrier;
    struct watch *watch;
    struct timer *limit;
    int udp;
    unsigned queries, rebinds;
    char asked[64]; /* the last name */
    bool late, here;
    uint64_t id;
    struct dynbuf answer;
};

/* ---- the name server ---- */

static void put(struct dynbuf *b, const char *bytes, size_t n)
{
    dynbuf_add(b, span_of(bytes, n));
}

static void record(struct dynbuf *b, unsigned type, const char *address, unsigned *count)
{
    uint8_t raw[16];
    unsigned wanted = strchr(address, ':') ? 28 : 1;
    if (wanted != type)
        return;
    assert_int_equal(inet_pton(type == 28 ? AF_INET6 : AF_INET, address, raw), 1);
    put(b, "\xc0\x0c\0", 3);
    dynbuf_add_byte(b, (uint8_t)type);
    put(b, "\0\1\0\0\0\0\0", 7);
    dynbuf_add_byte(b, type == 28 ? 16 : 4);
    dynbuf_add(b, span_of(raw, type == 28 ? 16 : 4));
    (*count)++;
}

static void records(struct world *w, struct dynbuf *b, unsigned type, unsigned *count)
{
    static const struct {
        const char *name, *a[3];
    } zone[] = {{"pub", {"93.184.216.34", "2606:2800:220:1::1"}},
                {"mixed", {"93.184.216.34", "127.0.0.1"}},
                {"v6priv", {"93.184.216.34", "fd00::1"}},
                {"mapped", {"93.184.216.34", "::ffff:10.0.0.1"}},
                {"metadata", {"169.254.169.254"}},
                {"any", {"0.0.0.0"}},
                {"inner", {"10.1.2.3"}},
                {"own", {"93.184.216.99"}},
                {"inown", {"2606:2800:220:1::1", "::ffff:93.184.216.99"}}};
    if (strncmp(w->asked, "rebind", 6) == 0 && type == 1)
        record(b, type, w->rebinds++ == 0 ? "93.184.216.34" : "127.0.0.1", count);
    for (unsigned i = 0; strncmp(w->asked, "many", 4) == 0 && type == 1 && i < 25; i++)
        record(b, type, "93.184.216.34", count);
    for (size_t i = 0; i < sizeof(zone) / sizeof(zone[0]); i++)
        if (strncmp(w->asked, zone[i].name, strlen(zone[i].name)) == 0)
            for (size_t k = 0; k < 3 && zone[i].a[k] != NULL; k++)
                record(b, type, zone[i].a[k], count);
}

static void on_query(void *arg, unsigned ready)
{
    struct world *w = arg;
    uint8_t q[600];
    struct sockaddr_in from;
    socklen_t flen = sizeof(from);
    ssize_t n = recvfrom(w->udp, q, sizeof(q), 0, (struct sockaddr *)&from, &flen);
    if (n < 17)
        return;
    size_t at = 12, out = 0;
    while (at < (size_t)n && q[at] != 0 && out + q[at] + 2 < sizeof(w->asked)) {
        memcpy(w->asked + out, q + at + 1, q[at]);
        out += q[at];
        w->asked[out++] = '.';
        at += q[at] + 1u;
    }
    w->asked[out ? out - 1 : 0] = '\0';
    w->queries++;
    unsigned type = q[at + 2], count = 0;
    struct dynbuf b;
    dynbuf_init(&b, 4096);
    dynbuf_add(&b, span_of(q, 2));
    put(&b, "\x81\x80\0\1\0\0\0\0\0\0", 10);
    dynbuf_add(&b, span_of(q + 12, at + 5 - 12));
    records(w, &b, type, &count);
    b.p[7] = (uint8_t)count;
    if (strncmp(w->asked, "gone", 4) == 0)
        b.p[3] = 0x83;
    if (strncmp(w->asked, "broken", 6) == 0)
        b.p[3] = 0x82;
    if (strncmp(w->asked, "rubbish", 7) == 0)
        b.n = 14;
    if (strncmp(w->asked, "pub", 3) == 0) { /* first a lie under another id */
        struct dynbuf lie;
        dynbuf_init(&lie, 4096);
        dynbuf_add(&lie, dynbuf_span(&b));
        lie.p[0] ^= 0xff;
        lie.p[lie.n - 1] ^= 1;
        (void)!sendto(w->udp, lie.p, lie.n, 0, (struct sockaddr *)&from, flen);
        dynbuf_free(&lie);
    }
    assert_int_equal(sendto(w->udp, b.p, b.n, 0, (struct sockaddr *)&from, flen), b.n);
    dynbuf_free(&b);
}

/* ---- the carrier's side ---- */

static void on_answer(void *arg, struct chan *c, struct frame *f)
{
    struct world *w = arg;
    assert_int_equal(f->type, M_ADDRESSES);
    assert_int_equal(f->id, w->id);
    assert_false(w->here);
    dynbuf_reset(&w->answer);
    dynbuf_add(&w->answer, f->payload);
    w->here = true;
    loop_stop(w->loop);
}

static void on_gone(void *arg, struct chan *c)
{
    struct world *w = arg;
    chan_free(&w->carrier);
    loop_stop(w->loop);
}

static void late(void *arg)
{
    struct world *w = arg;
    w->late = true;
    loop_stop(w->loop);
}

static void make_world(struct world *w)
{
    static const struct chan_ops ops = {on_answer, on_gone};
    static char servers[40];
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(sa);
    int fd[2];
    struct err e;
    *w = (struct world){.id = 0};
    dynbuf_init(&w->answer, 4096);
    log_init("test", LOG_ERROR);
    w->loop = loop_new();
    w->udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w->udp, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(getsockname(w->udp, (struct sockaddr *)&sa, &n), 0);
    snprintf(servers, sizeof(servers), "127.0.0.1:%u", ntohs(sa.sin_port));
    w->watch = watch_new(w->loop, w->udp, WATCH_READ, on_query, w);
    w->limit = timer_new(w->loop, late, w);
    w->resolver = resolver_new(w->loop, servers, &e);
    assert_non_null(w->resolver);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    w->carrier = chan_new(w->loop, fd[0], &ops, w);
    resolver_peer(w->resolver, 0, fd[1]);
}

static void end_world(struct world *w)
{
    resolver_free(&w->resolver);
    chan_free(&w->carrier);
    watch_free(&w->watch);
    timer_free(&w->limit);
    close(w->udp);
    dynbuf_free(&w->answer);
    loop_free(&w->loop);
}

/* Ask; how many addresses came, or -1 and the code in code. */
static int ask(struct world *w, struct span host, const char *cidr, char code[64])
{
    struct dynbuf *b = chan_begin(w->carrier, M_RESOLVE, ++w->id);
    assert_non_null(b);
    msg_put_span(b, host);
    msg_put_u16(b, cidr != NULL);
    if (cidr != NULL)
        msg_put_span(b, span_str(cidr));
    assert_int_equal(chan_commit(w->carrier), 0);
    w->here = w->late = false;
    timer_set(w->limit, 300000);
    while (!w->here && !w->late)
        assert_int_equal(loop_run(w->loop), 0);
    assert_false(w->late);
    struct msg_in m = msg_in(dynbuf_span(&w->answer));
    unsigned n = msg_get_u8(&m);
    code[0] = '\0';
    for (unsigned i = 0; i < n; i++) {
        struct addr a;
        unsigned family = msg_get_u8(&m);
        assert_int_equal(addr_from_bytes(family, msg_get_span(&m, 16), &a), 0);
        assert_int_not_equal(addr_class(&a), ADDR_BAD);
    }
    if (n == 0) {
        struct span s = msg_get_span(&m, 63);
        memcpy(code, s.p, s.n);
        code[s.n] = '\0';
        assert_true(msg_get_span(&m, 512).n > 0);
    }
    assert_int_equal(msg_end(&m), 0);
    return n > 0 ? (int)n : -1;
}

static void expect(struct world *w, const char *name, const char *cidr, int n, const char *code)
{
    char got[64];
    int count = ask(w, span_str(name), cidr, got);
    if (count != n || strcmp(got, code) != 0)
        fail_msg("%s: %d %s, not %d %s", name, count, got, n, code);
}

static void every_address_counts(void **state)
{
    struct world w;
    make_world(&w);
    expect(&w, "pub.test", NULL, 2, "");
    expect(&w, "mixed.test", NULL, -1, "private-address");
    expect(&w, "v6priv.test", NULL, -1, "private-address");
    expect(&w, "mapped.test", NULL, -1, "private-address");
    expect(&w, "any.test", "0.0.0.0/0", -1, "private-address");
    expect(&w, "inner.test", NULL, -1, "private-address");
    expect(&w, "inner.test", "10.0.0.0/8", 1, "");
    expect(&w, "mixed.test", "127.0.0.1", 2, "");
    expect(&w, "metadata.test", "169.254.0.0/16", -1, "private-address"); /* C13 */
    expect(&w, "10.1.2.3", NULL, -1, "private-address");
    expect(&w, "10.1.2.3", "10.1.2.3/32", 1, "");
    end_world(&w);
}

/* C14: nothing is remembered of what was found. */
static void rebinding(void **state)
{
    struct world w;
    make_world(&w);
    expect(&w, "rebind.test", NULL, 1, "");
    expect(&w, "rebind.test", NULL, -1, "private-address");
    end_world(&w);
}

/* C15 */
static void bad_answers(void **state)
{
    struct world w;
    char code[64];
    make_world(&w);
    expect(&w, "gone.test", NULL, -1, "name-not-found");
    unsigned before = w.queries;
    expect(&w, "gone.test", NULL, -1, "name-not-found");
    assert_int_equal(w.queries, before);
    expect(&w, "empty.test", NULL, -1, "name-not-found");
    expect(&w, "broken.test", NULL, -1, "dns-failed");
    expect(&w, "many.test", NULL, ANSWER_ADDRS, "");
    /* one label is asked for as it is: no search list */
    (void)ask(&w, SPAN("api"), NULL, code);
    assert_string_equal(w.asked, "api");
    before = w.queries;
    const struct span bad[] = {SPAN("a b.test"), SPAN("a\0b.test"), SPAN(""),           SPAN("-a.test"),
                               SPAN("a..test"),  SPAN("0x7f.1"),    SPAN("a_\xff.test")};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(ask(&w, bad[i], NULL, code), -1);
        assert_string_equal(code, "name-not-found");
    }
    assert_int_equal(w.queries, before);
    end_world(&w);
}

/* C21: a public address that is ours is as private as the others. */
static void own_addresses(void **state)
{
    struct world w;
    make_world(&w);
    expect(&w, "own.test", NULL, 1, "");
    assert_int_equal(resolver_own(w.resolver, SPAN("127.0.0.1:3128 0.0.0.0:80 [2001:db8::5]:9 93.184.216.99:8088")),
                     0);
    expect(&w, "own.test", NULL, -1, "private-address");
    expect(&w, "own.test", "93.184.216.99", 1, "");
    expect(&w, "inown.test", NULL, -1, "private-address"); /* in another form */
    assert_int_equal(resolver_judge(w.resolver, NULL, 0, NULL, 0),
                     VERDICT_PRIVATE); /* no address is not a good one */
    assert_int_equal(resolver_own(w.resolver, SPAN("somewhere")), -1);
    end_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_address_counts),
        cmocka_unit_test(rebinding),
        cmocka_unit_test(bad_answers),
        cmocka_unit_test(own_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
