/* Who gets onto the page. Covers E8, E11, E12, E13, E24, E26, E35, E39. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "web-approval/guard.h"

static struct guard g;

static int setup(void **state)
{
    return guard_init(&g, SPAN("http://localhost:8088"));
}

static bool parse(const char *text, struct http_head *h)
{
    static char keep[4096];
    struct http_err e;
    size_t seen = 0, used, n = (size_t)snprintf(keep, sizeof(keep), "%s", text);
    return http_parse_request(span_of(keep, n), HTTP_ORIGIN_SERVER, &seen, h, &used, &e) == HTTP_OK;
}

static void host(void **state)
{
    static const struct {
        const char *host;
        bool good;
    } rows[] = {
        {"localhost:8088", true},  {"127.0.0.1:8088", true},     {"[::1]:8088", true},
        {"LOCALHOST:8088", true},  {"localhost", false},         {"localhost:80", false},
        {"localhost:8089", false}, {"evil.example:8088", false}, {"127.0.0.1.evil:8088", false},
        {"evil", false},           {"0.0.0.0:8088", false},      {"localhost.evil:8088", false},
        {"[::]:8088", false},      {"127.0.0.2:8088", false},    {"localhost.:8088", false},
    };
    struct http_head h;
    char text[256];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", rows[i].host);
        bool ok = parse(text, &h) && guard_host_ok(&g, &h);
        if (ok != rows[i].good)
            fail_msg("%s", rows[i].host);
    }
    assert_false(parse("GET / HTTP/1.1\r\n\r\n", &h) && guard_host_ok(&g, &h));
    assert_false(parse("GET http://localhost:8088/ HTTP/1.1\r\nHost: localhost:8088\r\n\r\n", &h) &&
                 guard_host_ok(&g, &h));
    print_message("ok E12 unit\n");
}

/* With a certificate there is one name, whatever of this machine it comes from. */
static void over_tls(void **state)
{
    static const struct {
        const char *host, *origin;
        bool good, from;
    } rows[] = {
        {"approve.example:8443", "https://approve.example:8443", true, true},
        {"APPROVE.example:8443", "https://approve.example:8443", true, true},
        {"approve.example:8443", "http://approve.example:8443", true, false},
        {"approve.example:8443", "https://approve.example", true, false},
        {"approve.example", "https://approve.example:8443", false, true},
        {"localhost:8443", "https://localhost:8443", false, true},
        {"127.0.0.1:8443", "https://approve.example:8443", false, false},
    };
    struct guard tls;
    struct http_head h;
    char text[256];
    assert_int_equal(guard_init(&tls, SPAN("https://approve.example:8443")), 0);
    assert_string_equal(guard_cookie_name(&tls), "__Host-countersign");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nContent-Length: 0\r\n\r\n",
                       rows[i].host, rows[i].origin);
        assert_true(parse(text, &h));
        if (guard_host_ok(&tls, &h) != rows[i].good || guard_origin_ok(&tls, &h) != rows[i].from)
            fail_msg("%s %s", rows[i].host, rows[i].origin);
    }
}

/* A person who does nothing for an hour is out; a user of the machine is not. */
static void sessions_end(void **state)
{
    char cookie[GUARD_COOKIE_TEXT + 1], text[256];
    struct http_head h;
    for (uint64_t generation = 0; generation < 2; generation++) {
        const struct session *s = guard_session_new(&g, generation ? "ann" : "uid 0", HOW_PASSWORD, 1000, cookie);
        guard_session_person(&g, s, generation);
        (void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: localhost:8088\r\nCookie: countersign=%s\r\n\r\n",
                       cookie);
        assert_true(parse(text, &h));
        assert_ptr_equal(guard_session(&g, &h, 1000 + GUARD_IDLE_MS - 1), s);
        guard_session_used(&g, s, 2000);
        assert_ptr_equal(guard_session(&g, &h, 2000 + GUARD_IDLE_MS - 1), s);
        assert_true((guard_session(&g, &h, 2000 + GUARD_IDLE_MS) == NULL) == (generation == 1));
        assert_null(guard_session(&g, &h, 1000 + GUARD_SESSION_MS));
        guard_forget(&g, "ann");
        assert_true((guard_session(&g, &h, 2000) == NULL) == (generation == 1));
    }
}

/* Who asks for sign-in pages without end takes nobody's, and one signs in once. */
static void seeds(void **state)
{
    char mine[GUARD_SEED_TEXT + 1], other[GUARD_SEED_TEXT + 1];
    assert_int_equal(guard_seed(&g, 1000, mine), 0);
    for (unsigned i = 0; i < 10 * GUARD_SEEDS_USED; i++)
        assert_int_equal(guard_seed(&g, 1000, other), 0);
    struct span seed = span_str(mine);
    assert_true(guard_seed_good(&g, seed, 1000));
    assert_true(guard_seed_good(&g, seed, 1000 + GUARD_SEED_MS - 1));
    assert_false(guard_seed_good(&g, seed, 1000 + GUARD_SEED_MS));
    assert_false(guard_seed_good(&g, seed, 999));
    for (size_t i = 0; i < seed.n; i++) {
        memcpy(other, mine, sizeof(other));
        other[i] = other[i] == '1' ? '2' : '1';
        assert_false(guard_seed_use(&g, span_str(other), 2000));
        assert_false(guard_seed_use(&g, span_first(seed, i), 2000));
    }
    assert_true(guard_seed_use(&g, seed, 2000));
    assert_false(guard_seed_use(&g, seed, 2000));
    assert_false(guard_seed_good(&g, seed, 2000));
}

static struct span browser_of(const char *text, const char *person)
{
    static char head[512];
    static struct http_head h;
    (void)snprintf(head, sizeof(head),
                   "GET / HTTP/1.1\r\nHost: localhost:8088\r\nCookie: a=b; countersign-browser=%s\r\n\r\n", text);
    assert_true(parse(head, &h));
    return guard_browser(&g, &h, span_str(person));
}

static void browsers(void **state)
{
    char text[GUARD_SEED_TEXT + 1], seed[GUARD_SEED_TEXT + 1];
    struct guard restarted;
    assert_int_equal(guard_browser_new(&g, SPAN("ann"), text), 0);
    assert_true(span_eq(browser_of(text, "ann"), span_of(text, ID_TEXT)));
    assert_int_equal(browser_of(text, "bob").n, 0);
    assert_int_equal(guard_seed(&g, 0, seed), 0);
    assert_int_equal(browser_of(seed, "").n, 0);
    assert_int_equal(browser_of("", "ann").n, 0);
    text[3] = text[3] == '1' ? '2' : '1';
    assert_int_equal(browser_of(text, "ann").n, 0);
    assert_int_equal(guard_init(&restarted, SPAN("http://localhost:8088")), 0);
    assert_int_equal(guard_browser_new(&restarted, SPAN("ann"), text), 0);
    assert_int_equal(browser_of(text, "ann").n, 0);
}

static void origin(void **state)
{
    static const struct {
        const char *fields;
        bool good;
    } rows[] = {
        {"Origin: http://localhost:8088\r\n", true},
        {"Origin: http://localhost:8088\r\nSec-Fetch-Site: same-origin\r\n", true},
        {"", false},
        {"Origin: null\r\n", false},
        {"Origin: http://localhost:8088\r\nSec-Fetch-Site: cross-site\r\n", false},
        {"Origin: http://localhost:8088\r\nSec-Fetch-Site: same-site\r\n", false},
        {"Origin: http://localhost:8088\r\nSec-Fetch-Site: none\r\n", false},
        {"Origin: http://localhost:3000\r\n", false},
        {"Origin: https://localhost:8088\r\n", false},
        {"Origin: http://127.0.0.1:8088\r\n", false},
        {"Origin: http://localhost:8088.evil\r\n", false},
        {"Origin: http://evil.example\r\n", false},
    };
    struct http_head h;
    char text[512];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(text, sizeof(text), "POST /x HTTP/1.1\r\nHost: localhost:8088\r\nContent-Length: 0\r\n%s\r\n",
                       rows[i].fields);
        bool ok = parse(text, &h) && guard_origin_ok(&g, &h);
        if (ok != rows[i].good)
            fail_msg("%s", rows[i].fields);
    }
    print_message("ok E11 unit\n");
}

static const struct session *by_cookie(const char *cookie, uint64_t now)
{
    struct http_head h;
    char text[512];
    (void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: localhost:8088\r\nCookie: %s\r\n\r\n", cookie);
    return parse(text, &h) ? guard_session(&g, &h, now) : NULL;
}

static void links(void **state)
{
    char token[ID_TEXT + 1], other[ID_TEXT + 1], cookie[GUARD_COOKIE_TEXT + 1], field[160];
    assert_int_equal(guard_link_new(&g, "uid 7", 1000, token), 0);
    assert_int_equal(guard_link_new(&g, "uid 7", 1000, other), 0);
    assert_null(guard_sign_in(&g, SPAN("00000000000000000000000000"), 1001, cookie));
    assert_null(guard_sign_in(&g, SPAN_NONE, 1001, cookie));
    assert_null(guard_sign_in(&g, span_str(other), 1000 + GUARD_LINK_MS, cookie)); /* too old */
    const struct session *s = guard_sign_in(&g, span_str(token), 2000, cookie);
    assert_non_null(s);
    assert_string_equal(s->operator, "uid 7");
    assert_null(strstr(cookie, token));
    assert_null(guard_sign_in(&g, span_str(token), 2001, cookie)); /* opens once */
    (void)snprintf(field, sizeof(field), "a=b; countersign=%s", cookie);
    assert_ptr_equal(by_cookie(field, 3000), s);
    assert_null(by_cookie(field, 2000 + GUARD_SESSION_MS));
    assert_null(by_cookie("countersign=", 3000));
    assert_null(by_cookie("countersign=00000000000000000000000000", 3000));
    guard_sign_out(&g, s);
    assert_null(by_cookie(field, 3000));
    print_message("ok E26 unit\nok E35 unit\n");
}

/* Many links and sessions: the oldest make room, nothing grows. */
static void crowd(void **state)
{
    char token[ID_TEXT + 1], first[ID_TEXT + 1], cookie[GUARD_COOKIE_TEXT + 1];
    assert_int_equal(guard_link_new(&g, "uid 0", 10, first), 0);
    for (int i = 0; i < GUARD_LINKS; i++)
        assert_int_equal(guard_link_new(&g, "uid 0", 20 + (uint64_t)i, token), 0);
    assert_null(guard_sign_in(&g, span_str(first), 30, cookie));
    for (int i = 0; i < GUARD_SESSIONS + 2; i++) {
        assert_int_equal(guard_link_new(&g, "uid 0", 40 + (uint64_t)i, token), 0);
        assert_non_null(guard_sign_in(&g, span_str(token), 41 + (uint64_t)i, cookie));
    }
}

/* Nobody's links and sessions push out another's. */
static void neighbours(void **state)
{
    char token[ID_TEXT + 1], hers[ID_TEXT + 1], cookie[GUARD_COOKIE_TEXT + 1], field[160];
    assert_int_equal(guard_link_new(&g, "alice", 10, hers), 0);
    for (int i = 0; i < 2 * GUARD_LINKS; i++)
        assert_int_equal(guard_link_new(&g, "bob", 20, token), 0);
    const struct session *s = guard_sign_in(&g, span_str(hers), 30, cookie);
    assert_non_null(s);
    (void)snprintf(field, sizeof(field), "countersign=%s", cookie);
    for (int i = 0; i < 2 * GUARD_SESSIONS; i++)
        assert_non_null(guard_session_new(&g, "bob", HOW_PASSWORD, 40, cookie));
    assert_ptr_equal(by_cookie(field, 50), s);
}

static void marks(void **state)
{
    struct session a = {.key = {{1}}}, b = {.key = {{2}}};
    const struct span id = SPAN("t1"), digest = SPAN("d1");
    char m[GUARD_MARK_TEXT + 1];
    guard_mark(&a, "approve", id, digest, 5000, m);
    assert_true(strlen(m) <= GUARD_MARK_TEXT);
    const struct span mark = span_str(m);
    assert_int_equal(guard_mark_check(&a, "approve", id, digest, 5000 + GUARD_ARM_MS, mark), GUARD_FINE);
    assert_int_equal(guard_mark_check(&a, "approve", id, digest, 5000 + GUARD_ARM_MS - 1, mark), GUARD_TOO_FAST);
    assert_int_equal(guard_mark_check(&a, "approve", id, digest, 5001 + GUARD_SESSION_MS, mark), GUARD_STALE);
    assert_int_equal(guard_mark_check(&a, "deny", id, digest, 9000, mark), GUARD_FORGED);
    assert_int_equal(guard_mark_check(&a, "approve", SPAN("t2"), digest, 9000, mark), GUARD_FORGED);
    assert_int_equal(guard_mark_check(&a, "approve", id, SPAN("d2"), 9000, mark), GUARD_FORGED);
    assert_int_equal(guard_mark_check(&a, "approve", SPAN("t1d"), SPAN("1"), 9000, mark), GUARD_FORGED);
    assert_int_equal(guard_mark_check(&b, "approve", id, digest, 9000, mark), GUARD_FORGED);
    assert_int_equal(guard_mark_check(&a, "approve", id, digest, 9000, SPAN("1388.")), GUARD_FORGED);
    assert_int_equal(guard_mark_check(&a, "approve", id, digest, 9000, SPAN_NONE), GUARD_FORGED);
    m[0] = m[0] == '1' ? '2' : '1'; /* an earlier time is another mark */
    assert_int_equal(guard_mark_check(&a, "approve", id, digest, 1 << 30, mark), GUARD_FORGED);
    print_message("ok E13 unit\nok E24 unit\n");
}

static void loopback_only(void **state)
{
    struct guard x;
    assert_int_equal(guard_init(&x, SPAN("http://127.0.0.1:1")), 0);
    assert_int_equal(guard_init(&x, SPAN("http://[::1]:1")), 0);
    assert_int_equal(guard_init(&x, SPAN("http://0.0.0.0:8088")), -1);
    assert_int_equal(guard_init(&x, SPAN("http://desk.example:8088")), -1);
    assert_int_equal(guard_init(&x, SPAN("localhost:8088")), -1);
    assert_int_equal(guard_init(&x, SPAN("")), -1);
    print_message("ok E39 unit\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(over_tls, setup),   cmocka_unit_test_setup(sessions_end, setup),
        cmocka_unit_test_setup(host, setup),       cmocka_unit_test_setup(origin, setup),
        cmocka_unit_test_setup(links, setup),      cmocka_unit_test_setup(crowd, setup),
        cmocka_unit_test_setup(neighbours, setup), cmocka_unit_test(marks),
        cmocka_unit_test(loopback_only),           cmocka_unit_test_setup(seeds, setup),
        cmocka_unit_test_setup(browsers, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
