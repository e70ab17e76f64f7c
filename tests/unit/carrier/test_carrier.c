/* One request through a real carrier: INV1, INV2, A46, C12, C14, C21, C25, F32. */
#include "tests/unit/carrier/carrier_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* INV1, INV2: the bytes that leave, the answer that comes back, one connection for two. */
static void keep_alive(void **state)
{
    struct world *w = world_new();
    char want[200];
    world_get(w, 1, 0, OK5, "hello");
    snprintf(want, sizeof(want), "GET /1 HTTP/1.1\r\nHost: up.test:%u\r\nConnection: keep-alive\r\n\r\n", w->port);
    assert_true(span_eq(dynbuf_span(&w->up[0].got), span_str(want)));
    expect_code(w, XID(1), OUTCOME_ANSWERED, "");
    world_get(w, 2, 0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc");
    assert_int_equal(w->nups, 1);
    /* M_SENT is for what is sent at most once */
    assert_int_equal(world_count(w, ROLE_JUDGE, M_SENT, XID(1)), 0);
    world_free(&w);
}

/* C25: another upstream number, front or credential gets a connection of its own. */
static void pool_apart(void **state)
{
    struct world *w = world_new();
    world_get(w, 1, 0, OK5, "hello");
    world_upstream(w, 2, "127.0.0.1", false, true);
    world_forward(w, XID(2), (struct request){.path = "/2", .upstream = 2});
    world_wait_up(w, 1, "GET /2");
    world_answer(w, 1, OK5);
    (void)world_result(w, XID(2));
    world_credential(w, XID(3), 0, "up.test", "c", "Bearer " TOKEN);
    world_forward(w, XID(3), (struct request){.path = "/3", .credential = "c", .release = RELEASE_COMES});
    world_wait_up(w, 2, "GET /3");
    world_answer(w, 2, OK5);
    (void)world_result(w, XID(3));
    uint64_t other = (uint64_t)8 << 40 | 1;
    world_forward(w, other, (struct request){.path = "/4"});
    world_wait_up(w, 3, "GET /4");
    world_upstream(w, 1, "127.0.0.1", false, true); /* the policy changed: nothing old is used */
    world_forward(w, XID(5), (struct request){.path = "/5"});
    world_wait_up(w, 4, "GET /5");
    world_free(&w);
}

/* A connection that died while it waited: a read is sent again once, a write never. */
static void stale(void **state)
{
    struct world *w = world_new();
    world_get(w, 1, 0, OK5, "hello");
    world_forward(w, XID(2), (struct request){.path = "/2"});
    world_wait_up(w, 0, "GET /2");
    world_close_up(w, 0);
    world_wait_up(w, 1, "GET /2");
    world_answer(w, 1, OK5);
    expect_answer(w, XID(2), "hello", true);
    world_forward(w, XID(3), (struct request){.path = "/3", .method = "POST", .once = true});
    world_wait_up(w, 1, "POST /3");
    world_close_up(w, 1);
    expect_code(w, XID(3), OUTCOME_UNKNOWN, "upstream-closed");
    assert_int_equal(world_count(w, ROLE_JUDGE, M_SENT, XID(3)), 1);
    assert_int_equal(w->nups, 2);
    /* and a fresh connection that closes is no reason to try again */
    world_forward(w, XID(4), (struct request){.path = "/4"});
    world_wait_up(w, 2, "GET /4");
    world_close_up(w, 2);
    expect_code(w, XID(4), OUTCOME_UNKNOWN, "upstream-closed");
    world_settle(w);
    assert_int_equal(w->nups, 3);
    /* What was written to the first connection may have been done, though the second was never up. */
    world_get(w, 5, 3, OK5, "hello");
    watch_free(&w->watch); /* from now on nobody listens */
    close(w->listener);
    w->listener = -1;
    world_forward(w, XID(6), (struct request){.path = "/6"});
    world_wait_up(w, 3, "GET /6");
    world_close_up(w, 3);
    expect_code(w, XID(6), OUTCOME_UNKNOWN, "connect-failed");
    world_free(&w);
}

/* A46: bytes nobody asked for end the connection. */
static void unasked(void **state)
{
    struct world *w = world_new();
    world_get(w, 1, 0, OK5 "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "hello");
    world_wait_closed(w, 0);
    world_get(w, 2, 1, OK5, "hello");
    world_answer(w, 1, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
    world_wait_closed(w, 1);
    world_get(w, 3, 2, OK5, "hello");
    world_free(&w);
}

static void streamed_body(void **state)
{
    struct world *w = world_new();
    static uint8_t block[64 * 1024];
    world_forward(w, XID(1), (struct request){.path = "/1", .method = "PUT", .body = BODY_STREAM, .size = 4 * 65536});
    world_wait_up(w, 0, "Content-Length: 262144\r\n");
    for (int i = 0; i < 4; i++)
        world_say(w, ROLE_JUDGE, M_BODY, XID(1), span_of(block, sizeof(block)));
    (void)world_wait(w, ROLE_JUDGE, M_BODY_CREDIT, XID(1));
    world_say(w, ROLE_JUDGE, M_BODY_END, XID(1), span_of("\1", 1));
    world_settle(w);
    world_answer(w, 0, OK5);
    expect_answer(w, XID(1), "hello", true);
    /* shorter or longer than declared, or cut: nothing that looks whole arrives */
    for (uint64_t n = 2; n < 5; n++) {
        world_forward(w, XID(n), (struct request){.path = "/n", .method = "PUT", .body = BODY_STREAM, .size = 6});
        world_say(w, ROLE_JUDGE, M_BODY, XID(n), n == 3 ? SPAN("1234567") : SPAN("12345"));
        if (n != 3)
            world_say(w, ROLE_JUDGE, M_BODY_END, XID(n), span_of(n == 2 ? "\1" : "\0", 1));
        assert_true(span_eq(world_result(w, XID(n)).code, SPAN("body-cut")));
    }
    world_free(&w);
}

static int memfd(const char *text, size_t n, int seals)
{
    int fd = memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, n), n);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

/* A body in a descriptor must not be able to change after it was judged. */
static void body_in_a_descriptor(void **state)
{
    struct world *w = world_new();
    const int all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    const int without[] = {0, all & ~F_SEAL_WRITE, all & ~F_SEAL_GROW, all & ~F_SEAL_SHRINK, all & ~F_SEAL_SEAL};
    for (uint64_t i = 0; i < 5; i++) {
        int fd = memfd("payload", 7, without[i]);
        world_forward(w, XID(1 + i), (struct request){.method = "POST", .body = BODY_FD, .fd = fd, .size = 7});
        expect_code(w, XID(1 + i), OUTCOME_NOT_SENT, "bad-body");
        close(fd);
    }
    int fd = memfd("payload", 7, all);
    world_forward(w, XID(8), (struct request){.method = "POST", .body = BODY_FD, .fd = fd, .size = 8});
    expect_code(w, XID(8), OUTCOME_NOT_SENT, "bad-body");
    world_forward(w, XID(9), (struct request){.method = "POST", .body = BODY_FD, .fd = fd, .size = 7});
    close(fd);
    world_wait_up(w, 0, "Content-Length: 7\r\n\r\npayload");
    assert_int_equal(w->nups, 1);
    world_free(&w);
}

static void cancelled(void **state)
{
    struct world *w = world_new();
    world_forward(w, XID(1), (struct request){.path = "/1"});
    world_wait_up(w, 0, "GET /1");
    world_say(w, ROLE_JUDGE, M_CANCEL, XID(1), SPAN_NONE);
    expect_code(w, XID(1), OUTCOME_UNKNOWN, "cancelled");
    world_wait_closed(w, 0);
    world_forward(w, XID(2), (struct request){.credential = "c", .release = RELEASE_COMES, .once = true});
    world_say(w, ROLE_JUDGE, M_CANCEL, XID(2), SPAN_NONE);
    expect_code(w, XID(2), OUTCOME_NOT_SENT, "cancelled");
    world_free(&w);
}

static void addresses(struct world *w, uint64_t id, const char *text, const char *code)
{
    struct addr a;
    struct dynbuf *b = chan_begin(w->peer[ROLE_RESOLVER], M_ADDRESSES, id);
    assert_non_null(b);
    msg_put_u8(b, text != NULL);
    if (text != NULL) {
        assert_int_equal(addr_parse(span_str(text), &a), 0);
        msg_put_u8(b, (uint8_t)a.family);
        msg_put_span(b, span_of(a.b, addr_bytes(&a)));
    } else {
        msg_put_span(b, span_str(code));
        msg_put_span(b, SPAN("because"));
    }
    assert_int_equal(chan_commit(w->peer[ROLE_RESOLVER]), 0);
}

/* A listener that answers nobody any more: two connections have filled its queue. */
static void full_listener(const char *address, uint16_t port, int fd[3])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
    for (int i = 0; i < 3; i++)
        fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd[0], (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd[0], 0), 0);
    for (int i = 1; i < 3; i++)
        assert_true(connect(fd[i], (struct sockaddr *)&at, sizeof(at)) == 0 || errno == EINPROGRESS);
}

/* What comes of a body while other addresses are tried is kept for the one that answers. */
static void upload_to_a_later_address(void **state)
{
    static const char *const text[] = {"127.0.0.2", "127.0.0.3", "127.0.0.1"};
    struct world *w = world_new();
    struct dynbuf *b;
    int full[2][3];
    size_t sent = 0;
    for (int i = 0; i < 2; i++)
        full_listener(text[i], w->port, full[i]);
    w->carrier->settings.connect_ms = 100;
    world_upstream(w, 2, "", false, true);
    world_forward(
        w, XID(1),
        (struct request){
            .path = "/1", .method = "PUT", .upstream = 2, .once = true, .body = BODY_STREAM, .size = UINT64_MAX});
    (void)world_wait(w, ROLE_RESOLVER, M_RESOLVE, 1);
    b = chan_begin(w->peer[ROLE_RESOLVER], M_ADDRESSES, 1);
    assert_non_null(b);
    msg_put_u8(b, 3);
    for (int i = 0; i < 3; i++) {
        struct addr a;
        assert_int_equal(addr_parse(span_str(text[i]), &a), 0);
        msg_put_u8(b, (uint8_t)a.family);
        msg_put_span(b, span_of(a.b, addr_bytes(&a)));
    }
    assert_int_equal(chan_commit(w->peer[ROLE_RESOLVER]), 0);
    for (; w->nups == 0 && world_count(w, ROLE_JUDGE, M_RESULT, XID(1)) == 0; sent++) {
        world_say(w, ROLE_JUDGE, M_BODY, XID(1), SPAN("x"));
        world_settle(w);
    }
    world_say(w, ROLE_JUDGE, M_BODY_END, XID(1), SPAN("\1"));
    world_wait_up(w, 0, "\r\n0\r\n\r\n");
    size_t came = 0;
    for (size_t i = 0; i < w->up[0].got.n; i++)
        came += w->up[0].got.p[i] == 'x';
    assert_int_equal(came, sent);
    world_answer(w, 0, OK5);
    expect_answer(w, XID(1), "hello", true);
    for (int i = 0; i < 6; i++)
        close(full[i / 3][i % 3]);
    world_free(&w);
}

/* C12, C14, C21: what the resolver says is checked again; a write asks afresh; nothing of ours is a destination. */
static void names(void **state)
{
    struct world *w = world_new();
    char own[40];
    world_upstream(w, 2, "", false, true);
    world_forward(w, XID(1), (struct request){.path = "/1", .upstream = 2});
    (void)world_wait(w, ROLE_RESOLVER, M_RESOLVE, 1);
    addresses(w, 1, "127.0.0.1", NULL);
    world_wait_up(w, 0, "GET /1");
    world_answer(w, 0, OK5);
    (void)world_result(w, XID(1));
    world_forward(w, XID(2), (struct request){.path = "/2", .upstream = 2}); /* still fresh */
    world_wait_up(w, 0, "GET /2");
    world_answer(w, 0, OK5);
    (void)world_result(w, XID(2));
    world_forward(w, XID(3), (struct request){.path = "/3", .upstream = 2, .once = true});
    (void)world_wait(w, ROLE_RESOLVER, M_RESOLVE, 2);
    addresses(w, 2, "10.0.0.1", NULL);
    expect_code(w, XID(3), OUTCOME_NOT_SENT, "private-address");
    world_forward(w, XID(4), (struct request){.path = "/4", .upstream = 2, .once = true});
    (void)world_wait(w, ROLE_RESOLVER, M_RESOLVE, 3);
    addresses(w, 3, NULL, "name-not-found");
    expect_code(w, XID(4), OUTCOME_NOT_SENT, "name-not-found");
    world_forward(w, XID(5), (struct request){.path = "/5", .upstream = 2, .once = true});
    (void)world_wait(w, ROLE_RESOLVER, M_RESOLVE, 4);
    chan_free(&w->peer[ROLE_RESOLVER]);
    expect_code(w, XID(5), OUTCOME_NOT_SENT, "dns-failed");
    world_forward(w, XID(7), (struct request){.path = "/7", .upstream = 2, .once = true});
    world_settle(w); /* nobody to ask: it waits for the next resolver */
    assert_int_equal(world_count(w, ROLE_JUDGE, M_RESULT, XID(7)), 0);
    world_resolver(w);
    (void)world_wait(w, ROLE_RESOLVER, M_RESOLVE, 5);
    snprintf(own, sizeof(own), "0.0.0.0:%u [::1]:80", w->port);
    assert_int_equal(carrier_config(w->carrier, SPAN("own"), span_str(own)), 0);
    world_forward(w, XID(6), (struct request){.path = "/6"});
    expect_code(w, XID(6), OUTCOME_NOT_SENT, "private-address");
    assert_int_equal(carrier_config(w->carrier, SPAN("own"), SPAN("nowhere")), -1);
    assert_int_equal(w->nups, 1);
    world_free(&w);
}

/* C21: a listener on every address is met by any of this machine's, whatever allow_private has. */
static const struct {
    const char *own, *address;
    uint16_t port;
    bool ours;
} ours[] = {
    {"0.0.0.0:3128", "10.9.8.7", 3128, true},    {"0.0.0.0:3128", "10.9.8.7", 3129, false},
    {"0.0.0.0:3128", "10.9.8.8", 3128, false},   {"0.0.0.0:3128", "127.0.0.1", 3128, true},
    {"[::]:3128", "fd00::7", 3128, true},        {"0.0.0.0:3128", "::ffff:10.9.8.7", 3128, true},
    {"10.9.8.7:3128", "10.9.8.7", 3128, true},   {"127.0.0.1:3128", "10.9.8.7", 3128, false},
    {"localhost:3128", "127.0.0.1", 3128, true}, {"localhost:3128", "127.0.0.1", 80, false},
    {"[::1]:9 0.0.0.0:8", "10.9.8.7", 8, true},  {"", "10.9.8.7", 3128, false},
    {"10.1.1.1:3128", "10.9.8.7", 3128, false},
};

static void own_listeners(void **state)
{
    struct world *w = world_new();
    struct names *n = &w->carrier->names;
    struct upstream *u = calloc(1, sizeof(*u)); /* large, as the carrier has it */
    struct span code, why;
    assert_int_equal(cidr_parse(SPAN("10.0.0.0/8"), &u->cidr[0]), 0);
    assert_int_equal(cidr_parse(SPAN("127.0.0.0/8"), &u->cidr[1]), 0);
    assert_int_equal(cidr_parse(SPAN("fd00::/8"), &u->cidr[2]), 0);
    u->ncidrs = 3;
    u->literal = true;
    u->naddr = 1;
    n->ninterfaces = 2;
    assert_int_equal(addr_parse(SPAN("10.9.8.7"), &n->interface[0]), 0);
    assert_int_equal(addr_parse(SPAN("fd00::7"), &n->interface[1]), 0);
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        n->nown = 0;
        assert_int_equal(names_own(n, span_str(ours[i].own)), 0);
        assert_int_equal(addr_parse(span_str(ours[i].address), &u->addr[0]), 0);
        u->port = ours[i].port;
        if ((names_ask(n, u, false, NULL, NULL, &code, &why) == NAMES_HERE) == ours[i].ours)
            fail_msg("%s at %s:%u", ours[i].own, ours[i].address, ours[i].port);
    }
    assert_int_equal(addr_parse(SPAN("93.184.216.34"), &u->addr[0]),
                     0); /* a public address, which is this machine's */
    assert_int_equal(names_ask(n, u, false, NULL, NULL, &code, &why), NAMES_HERE);
    n->interface[1] = u->addr[0];
    assert_int_equal(names_ask(n, u, false, NULL, NULL, &code, &why), NAMES_REFUSED);
    assert_int_equal(cidr_parse(SPAN("93.184.216.34/32"), &u->cidr[0]), 0);
    assert_int_equal(names_ask(n, u, false, NULL, NULL, &code, &why), NAMES_HERE);
    free(u);
    world_free(&w);
}

static void unreachable(void **state)
{
    struct world *w = world_new();
    world_upstream(w, 2, "127.0.0.2", false, true); /* nobody listens there */
    world_forward(w, XID(1), (struct request){.path = "/1", .upstream = 2, .once = true});
    expect_code(w, XID(1), OUTCOME_NOT_SENT, "connect-failed");
    world_forward(w, XID(2), (struct request){.path = "/1", .upstream = 99});
    expect_code(w, XID(2), OUTCOME_NOT_SENT, "unknown-upstream");
    world_say(w, ROLE_JUDGE, M_FORWARD, XID(3), SPAN("rubbish"));
    expect_code(w, XID(3), OUTCOME_NOT_SENT, "bad-message");
    /* one that needs a credential and is to have none is not sent without it */
    world_upstream(w, 3, "127.0.0.1", false, true);
    world_forward(w, XID(5), (struct request){.path = "/5", .upstream = 3, .credential = "c"});
    expect_code(w, XID(5), OUTCOME_NOT_SENT, "credential-unavailable");
    w->carrier->settings.first_byte_ms = 20;
    world_forward(w, XID(4), (struct request){.path = "/4"});
    expect_code(w, XID(4), OUTCOME_UNKNOWN, "upstream-timeout");
    world_free(&w);
}

/* F32: a later number takes the place of the one before it, and that one means nothing any more; the table never
 * fills up. */
static void a_later_number_takes_the_place(void **state)
{
    struct world *w = world_new();
    for (uint32_t i = 1; i <= 9000; i++)
        world_upstream(w, i, "127.0.0.1", false, true);
    world_forward(w, XID(1), (struct request){.path = "/1", .upstream = 9000});
    world_wait_up(w, 0, "GET /1");
    world_answer(w, 0, OK5);
    expect_answer(w, XID(1), "hello", true);
    world_forward(w, XID(2), (struct request){.path = "/2", .upstream = 9000 - WIRE_UPSTREAMS_MAX});
    expect_code(w, XID(2), OUTCOME_NOT_SENT, "unknown-upstream");
    world_free(&w);
}

/* A front that speaks of another's exchange loses its channel. */
static void foreign_credit(void **state)
{
    struct world *w = world_new();
    world_say(w, ROLE_FRONT, M_ANSWER_CREDIT, (uint64_t)8 << 40 | 1, span_of("\0\4\0\0", 4));
    while (w->peer[ROLE_FRONT] != NULL)
        world_settle(w);
    world_free(&w);
}

/* One sandbox cannot take all the room: at the limit, and one past it. */
static void limit_of_a_front(void **state)
{
    struct world *w = world_new();
    for (uint64_t i = 1; i <= EXCHANGES_A_FRONT; i++)
        world_forward(w, XID(i), (struct request){.credential = "c", .release = RELEASE_COMES});
    world_settle(w);
    assert_int_equal(w->nseen, 0);
    world_forward(w, XID(9999), (struct request){.credential = "c", .release = RELEASE_COMES});
    expect_code(w, XID(9999), OUTCOME_NOT_SENT, "too-busy");
    world_forward(w, (uint64_t)8 << 40 | 1, (struct request){.path = "/other"});
    world_wait_up(w, 0, "GET /other");
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_alive),
        cmocka_unit_test(pool_apart),
        cmocka_unit_test(stale),
        cmocka_unit_test(unasked),
        cmocka_unit_test(streamed_body),
        cmocka_unit_test(body_in_a_descriptor),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(names),
        cmocka_unit_test(upload_to_a_later_address),
        cmocka_unit_test(own_listeners),
        cmocka_unit_test(unreachable),
        cmocka_unit_test(a_later_number_takes_the_place),
        cmocka_unit_test(foreign_credit),
        cmocka_unit_test(limit_of_a_front),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
