/* Ways into the lobby but the plain one: SOCKS5, PROXY headers, source addresses; each at every cut. */
#include "tests/play/lobby/lobby_kit.h"

#include <unistd.h>

static struct wire_listener w;

static void socks_for_tokens(void)
{
    w = (struct wire_listener){.way = WAY_SOCKS, .identity = IDENTITY_TOKEN};
    listen_as("e2b", &w, NULL, 0);
}

/* Everybody on this machine comes from 127.0.0.0/8. */
static void by_source(enum way way, const char *range, const char *sandbox)
{
    w = (struct wire_listener){.way = way, .identity = IDENTITY_SOURCE, .nsources = 2};
    w.source[0].key = SPAN("127.0.0.0/8");
    w.source[0].sandbox = SPAN("wide");
    w.source[1].key = span_str(range);
    w.source[1].sandbox = span_str(sandbox);
}

static void hear_bytes(int fd, const char *want, size_t n)
{
    uint8_t in[64];
    size_t got = 0;
    for (uint64_t until = now_ms() + 5000; got < n && now_ms() < until; turn()) {
        ssize_t r = read(fd, in + got, n - got);
        if (r > 0)
            got += (size_t)r;
        if (r == 0)
            break;
    }
    assert_int_equal(got, n);
    assert_memory_equal(in, want, n);
}

static void was_given_to(const char *sandbox, enum way way, struct span rest)
{
    UNTIL(s->ngiven == 1);
    s->ngiven = 0;
    assert_true(span_eq(span_of(s->given.sandbox, s->given.nsandbox), span_str(sandbox)));
    assert_int_equal(s->given.way, way);
    assert_int_equal(s->given.nauth, 0);
    assert_true(span_eq(span_of(s->given.rest, s->given.nrest), rest));
    close(s->given.fd);
}

#define GREETING "\x05\x02\x00\x02"
#define LOGIN                                                                                                        \
    "\x01\x05"                                                                                                       \
    "agent"                                                                                                          \
    "\x07"                                                                                                           \
    "token-1"
#define REQUEST                                                                                                      \
    "\x05\x01\x00\x03\x06"                                                                                           \
    "a.test"                                                                                                         \
    "\x01\xbb"

static void socks_at_every_split(void **state)
{
    struct span all = SPAN(GREETING LOGIN REQUEST);
    size_t login = sizeof(GREETING LOGIN) - 1;
    (void)state;
    socks_for_tokens();
    for (size_t k = 0; k <= all.n; k++) {
        int fd = dial();
        say_bytes(fd, span_first(all, k));
        assert_int_equal(s->nasked - s->nseen, k >= login);
        say_bytes(fd, span_from(all, k));
        uint64_t id = next_asked("token-1");
        hear_bytes(fd, "\x05\x02", 2);
        answer(id, IDENTITY_KNOWN, "ci-7");
        hear_bytes(fd, "\x01\x00", 2); /* and only now: nothing is promised before the judge has spoken */
        was_given_to("ci-7", WAY_SOCKS, SPAN(REQUEST));
        close(fd);
        assert_int_equal(s->lobby.npending, 0);
    }
    covers("A41 D32");
}

static void a_wrong_login_is_refused(void **state)
{
    char in[8];
    (void)state;
    socks_for_tokens();
    int fd = dial();
    say_bytes(fd, SPAN(GREETING LOGIN REQUEST));
    answer(next_asked("token-1"), IDENTITY_UNKNOWN, "");
    hear_bytes(fd, "\x05\x02\x01\x01", 4);
    UNTIL(read(fd, in, 1) == 0);
    close(fd);
    fd = dial();
    say_bytes(fd, SPAN(GREETING LOGIN));
    (void)next_asked("token-1");
    chan_free(&s->judge); /* as good as no: RFC 1929 has no other word */
    hear_bytes(fd, "\x05\x02\x01\x01", 4);
    close(fd);
    UNTIL(refused("e2b", "unknown-token") == 1 && refused("e2b", "gateway-restarting") == 1);
    assert_int_equal(s->ngiven, 0);
    covers("D32");
}

/* A52: and not one byte of it comes back. */
static void what_is_no_socks_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *code;
    } bad[] = {
        {"GET / HTTP/1.1\r\n\r\n", 18, "bad-socks"},
        {"\x04\x01\x00\x50\x01\x02\x03\x04\x00", 9, "bad-socks"},
        {"\x16\x03\x01\x00\x05hello", 10, "bad-socks"},
        {"SSH-2.0-x\r\n", 11, "bad-socks"},
        {"\x05\x00", 2, "bad-socks"},
        {"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", 32, "bad-socks"},
        {GREETING "\x05", 5, "bad-socks"},
        {GREETING "\x01\x00", 6, "bad-socks"},
        {GREETING "\x01\x01"
                  "a"
                  "\x00",
         8, "bad-socks"},
    };
    (void)state;
    socks_for_tokens();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int fd = dial();
        say_bytes(fd, span_of(bad[i].bytes, bad[i].n));
        const char *in = hear(fd, NULL);
        assert_true(in[0] == '\0' || memcmp(in, "\x05\x02", 3) == 0);
        close(fd);
    }
    UNTIL(refused("e2b", "bad-socks") == sizeof(bad) / sizeof(bad[0]));
    int fd = dial(); /* no method of ours is offered */
    say_bytes(fd, SPAN("\x05\x01\x00"));
    hear_bytes(fd, "\x05\xff", 2);
    close(fd);
    UNTIL(refused("e2b", "socks-no-method") == 1);
    assert_int_equal(s->nasked, 0);
    covers("A52");
}

/* Whose listener says whose it is asks for no login. */
static void without_a_login(void **state)
{
    struct span all = SPAN("\x05\x01\x00" REQUEST);
    (void)state;
    w = (struct wire_listener){.way = WAY_SOCKS, .identity = IDENTITY_SANDBOX, .sandbox = SPAN("vm1")};
    listen_as("vm", &w, NULL, 0);
    for (size_t k = 0; k <= all.n; k++) {
        int fd = dial();
        say_bytes(fd, span_first(all, k));
        assert_int_equal(s->ngiven, k >= 3);
        hear_bytes(fd, k >= 3 ? "\x05\x00" : "", k >= 3 ? 2 : 0);
        if (k < 3)
            say_bytes(fd, span_from(all, k));
        was_given_to("vm1", WAY_SOCKS, k < 3 ? SPAN(REQUEST) : span_of(all.p + 3, k - 3));
        close(fd);
    }
    int fd = dial(); /* who wants to say a password is not heard */
    say_bytes(fd, SPAN("\x05\x01\x02"));
    hear_bytes(fd, "\x05\xff", 2);
    close(fd);
}

static void the_longest_prefix_names_the_sandbox(void **state)
{
    (void)state;
    by_source(WAY_HTTP, "127.0.0.1/32", "near");
    listen_as("vms", &w, NULL, 0);
    int fd = dial();
    was_given_to("near", WAY_HTTP, SPAN_NONE); /* before it said anything */
    close(fd);
    by_source(WAY_HTTP, "127.0.0.2/32", "other");
    listen_as("vms2", &w, NULL, 0);
    fd = dial();
    was_given_to("wide", WAY_HTTP, SPAN_NONE);
    close(fd);
    w.source[0].key = SPAN("10.0.0.0/8");
    listen_as("vms3", &w, NULL, 0);
    fd = dial();
    assert_non_null(strstr(hear(fd, NULL), "unknown-source"));
    close(fd);
    UNTIL(refused("vms3", "unknown-source") == 1);
    assert_int_equal(s->nasked, 0);
    covers("D32 C22");
}

/* Somebody who connects straight to a listener for the captured was on the way to nowhere else. */
static void who_was_not_captured_is_refused(void **state)
{
    (void)state;
    by_source(WAY_CAPTURED, "127.0.0.1/32", "near");
    listen_as("captured", &w, NULL, 0);
    int fd = dial();
    assert_string_equal(hear(fd, NULL), "");
    close(fd);
    UNTIL(refused("captured", "not-captured") == 1);
    assert_int_equal(s->ngiven, 0);
}

/* ---- PROXY ---- */

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define FROM_10                                                                                                      \
    SIGNATURE "\x21\x11\x00\x0c"                                                                                     \
              "\x0a\x00\x00\x05"                                                                                     \
              "\xc0\x00\x02\x01"                                                                                     \
              "\x12\x34\x01\xbb"
#define LOCAL SIGNATURE "\x20\x00\x00\x00"
#define GET   "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"

static void behind_a_balancer(const char *peers)
{
    by_source(WAY_HTTP, "10.0.0.5/32", "vm5");
    w.source[0].key = SPAN("10.9.0.0/16");
    w.npeers = 1;
    w.peer[0] = span_str(peers);
    listen_as("behind", &w, NULL, 0);
}

static void a_listed_peers_header_says_from_where(void **state)
{
    struct span all = SPAN(FROM_10 GET);
    size_t header = sizeof(FROM_10) - 1;
    (void)state;
    behind_a_balancer("127.0.0.1/32");
    for (size_t k = 0; k <= all.n; k++) {
        int fd = dial();
        say_bytes(fd, span_first(all, k));
        assert_int_equal(s->ngiven, k >= header);
        if (k < header)
            say_bytes(fd, span_from(all, k));
        was_given_to("vm5", WAY_HTTP, k < header ? SPAN(GET) : span_of(all.p + header, k - header));
        close(fd);
    }
    int fd = dial();
    say_bytes(fd, SPAN(LOCAL)); /* the balancer's own look: it is nobody's sandbox */
    assert_non_null(strstr(hear(fd, NULL), "unknown-source"));
    close(fd);
    covers("A41");
}

static void a_listed_peer_without_a_header_is_refused(void **state)
{
    static const struct span bad[] = {
        {(const uint8_t *)GET, sizeof(GET) - 1},
        {(const uint8_t *)"PROXY TCP4 10.0.0.5 1.2.3.4 1 2\r\n" GET,
         sizeof("PROXY TCP4 10.0.0.5 1.2.3.4 1 2\r\n" GET) - 1},
        {(const uint8_t *)SIGNATURE "\x21\x12\x00\x0c", 16}, /* UDP */
        {(const uint8_t *)SIGNATURE "\x21\x31\x00\xd8", 16}, /* a Unix socket */
        {(const uint8_t *)SIGNATURE "\x21\x11\xff\xff", 16}, /* longer than any */
        {(const uint8_t *)SIGNATURE "\x21\x11\x00\x08"
                                    "\x0a\x00\x00\x05"
                                    "\0\0\0\0",
         24},                                                /* too short for its family */
        {(const uint8_t *)SIGNATURE "\x31\x11\x00\x0c", 16}, /* version 3 */
    };
    size_t n = sizeof(bad) / sizeof(bad[0]);
    (void)state;
    behind_a_balancer("127.0.0.1/32");
    for (size_t i = 0; i < n; i++) {
        int fd = dial();
        say_bytes(fd, bad[i]);
        assert_string_equal(hear(fd, NULL), "");
        close(fd);
    }
    UNTIL(refused("behind", "bad-proxy-header") == n);
    assert_int_equal(s->ngiven, 0);
    covers("A53");
}

/* Who is not listed speaks for himself alone. */
static void a_header_of_somebody_else_is_refused(void **state)
{
    (void)state;
    behind_a_balancer("192.0.2.1/32");
    int fd = dial(); /* by source, it is whose it is, and the front reads what comes: never the header's word */
    assert_non_null(strstr(hear(fd, NULL), "unknown-source"));
    close(fd);
    w = (struct wire_listener){.way = WAY_HTTP, .identity = IDENTITY_TOKEN, .npeers = 1};
    w.peer[0] = SPAN("192.0.2.1/32");
    listen_as("tokens", &w, NULL, 0);
    static const struct span heads[] = {{(const uint8_t *)FROM_10 GET, sizeof(FROM_10 GET) - 1},
                                        {(const uint8_t *)"PROXY TCP4 10.0.0.5 1.2.3.4 1 2\r\n" GET,
                                         sizeof("PROXY TCP4 10.0.0.5 1.2.3.4 1 2\r\n" GET) - 1}};
    for (int i = 0; i < 2; i++) {
        fd = dial();
        say_bytes(fd, heads[i]);
        const char *in = hear(fd, NULL);
        assert_non_null(strstr(in, "HTTP/1.1 400 "));
        assert_null(strstr(in, "10.0.0.5"));
        assert_null(strstr(in, "a.test"));
        close(fd);
    }
    UNTIL(refused("tokens", "bad-proxy-header") == 2);
    assert_int_equal(s->ngiven + s->nasked, 0);
    covers("A53");
}

/* What is refused is told a few times a second, however much it is; and costs the next one nothing. */
static void refusals_are_counted(void **state)
{
    enum { MANY = 300 };
    (void)state;
    socks_for_tokens();
    for (int i = 0; i < MANY; i++) {
        int fd = dial();
        say_bytes(fd, SPAN("\x04"));
        close(fd);
    }
    UNTIL(refused("e2b", "bad-socks") == MANY);
    int fd = dial();
    say_bytes(fd, SPAN(GREETING LOGIN));
    answer(next_asked("token-1"), IDENTITY_KNOWN, "ci-7");
    was_given_to("ci-7", WAY_SOCKS, SPAN_NONE);
    close(fd);
}

static void who_is_slow_is_sent_away(void **state)
{
    (void)state;
    s->lobby.limits.head_ms = 40;
    socks_for_tokens();
    int a = dial();
    say_bytes(a, SPAN("\x05"));
    behind_a_balancer("127.0.0.1/32");
    int b = dial();
    say_bytes(b, SPAN("\r\n"));
    assert_string_equal(hear(a, NULL), "");
    assert_string_equal(hear(b, NULL), "");
    close(a);
    close(b);
    UNTIL(refused("e2b", "handshake-too-slow") == 1 && refused("behind", "handshake-too-slow") == 1);
}

/* A listener that is described anew: for the next who come. */
static void a_door_can_change_its_owners(void **state)
{
    size_t doors;
    int fd;
    (void)state;
    by_source(WAY_HTTP, "127.0.0.1/32", "near");
    listen_as("vms", &w, NULL, 0);
    doors = s->lobby.ndoors;
    fd = s->listener;
    by_source(WAY_HTTP, "127.0.0.1/32", "another");
    listen_as("vms", &w, NULL, 0);
    assert_int_equal(s->lobby.ndoors, doors);
    s->old[s->nold - 1] = s->listener; /* the first one is still the one that is listened on */
    s->listener = fd;
    fd = dial();
    was_given_to("another", WAY_HTTP, SPAN_NONE);
    close(fd);
    w = (struct wire_listener){.way = WAY_HTTP, .identity = IDENTITY_TOKEN};
    fd = s->listener;
    listen_as("vms", &w, NULL, 0); /* another kind: it is not changed */
    s->old[s->nold - 1] = s->listener;
    s->listener = fd;
    fd = dial();
    was_given_to("another", WAY_HTTP, SPAN_NONE);
    close(fd);
}

/* A description that is not understood opens no door. */
static void a_bad_description_stays_shut(void **state)
{
    size_t doors = s->lobby.ndoors;
    (void)state;
    w = (struct wire_listener){.way = WAY_HTTP, .identity = IDENTITY_SOURCE};
    listen_as("nobody", &w, NULL, 0);
    w = (struct wire_listener){.way = WAY_HTTP, .identity = IDENTITY_CERTIFICATE, .nsources = 1};
    w.source[0].key = SPAN("a.test");
    w.source[0].sandbox = SPAN("a");
    listen_as("plain", &w, NULL, 0);
    w = (struct wire_listener){.way = WAY_HTTP, .identity = IDENTITY_TOKEN, .tls = true};
    listen_as("no-files", &w, NULL, 0);
    w = (struct wire_listener){.way = WAY_CAPTURED, .identity = IDENTITY_TOKEN};
    listen_as("captured", &w, NULL, 0);
    assert_int_equal(s->lobby.ndoors, doors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY(socks_at_every_split),
        PLAY(a_wrong_login_is_refused),
        PLAY(what_is_no_socks_is_refused),
        PLAY(without_a_login),
        PLAY(the_longest_prefix_names_the_sandbox),
        PLAY(who_was_not_captured_is_refused),
        PLAY(a_listed_peers_header_says_from_where),
        PLAY(a_listed_peer_without_a_header_is_refused),
        PLAY(a_header_of_somebody_else_is_refused),
        PLAY(refusals_are_counted),
        PLAY(who_is_slow_is_sent_away),
        PLAY(a_door_can_change_its_owners),
        PLAY(a_bad_description_stays_shut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
