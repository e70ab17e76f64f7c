/* The proxy of a program with hosts: whom it lets through, and what becomes of the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/net/conn.h"
#include "proxy/fetcher/job/relay.h"

enum { SAID_MAX = 4 * 1024 * 1024, PATIENCE_MS = 60 * 1000, ECHOES_MAX = 64, SETTLED_MS = 100 };

static struct loop *l;
static struct relay *relay;
static struct relay_place places[3];
static struct watch *echoes;
static struct conn *echo[ECHOES_MAX];
static int echo_fd, relay_port, accepted;

/* ---- a server that says again what it hears ---- */

static void echoed(void *arg, struct conn *c, enum conn_event ev)
{
    struct conn **place = arg;
    struct span in = conn_input(c);
    if ((ev == CONN_DATA || ev == CONN_DRAINED) && in.n > 0 && conn_queued(c) < CONN_OUT_LOW) {
        assert_int_equal(conn_write(c, in), 0);
        conn_consume(c, in.n);
    } else if (ev == CONN_EOF) {
        conn_finish(place);
    } else if (ev == CONN_FAILED) {
        conn_free(place);
    }
}

static void echo_accept(void *arg, unsigned ready)
{
    int fd = listen_accept(echo_fd);
    if (fd < 0)
        return;
    assert_in_range(accepted, 0, ECHOES_MAX - 1);
    echo[accepted] = conn_new(l, fd, 64 * 1024, echoed, &echo[accepted]);
    assert_non_null(echo[accepted++]);
}

/* ---- a program ---- */

struct client {
    struct conn *conn;
    struct dynbuf got;
    size_t stop_at; /* bytes; 0: at its end */
    bool over, reset;
};

static void heard(void *arg, struct conn *c, enum conn_event ev)
{
    struct client *k = arg;
    struct span in = conn_input(c);
    if (in.n > 0) {
        assert_int_equal(dynbuf_add(&k->got, in), 0);
        conn_consume(c, in.n);
    }
    if (ev == CONN_EOF || ev == CONN_FAILED) {
        k->over = true;
        k->reset = ev == CONN_FAILED;
        conn_free(&k->conn);
    }
    if (k->over || (k->stop_at && k->got.n >= k->stop_at))
        loop_stop(l);
}

static void too_late(void *arg)
{
    fail_msg("nothing more comes");
}

static void run(void)
{
    struct timer *t = timer_new(l, too_late, NULL);
    timer_set(t, PATIENCE_MS);
    assert_int_equal(loop_run(l), 0);
    timer_free(&t);
}

static void come(struct client *k)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)relay_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *k = (struct client){.over = false};
    dynbuf_init(&k->got, SAID_MAX);
    k->conn = conn_dial(l, (struct sockaddr *)&to, sizeof(to), 64 * 1024, heard, k);
    assert_non_null(k->conn);
}

static void leave(struct client *k)
{
    conn_free(&k->conn);
    dynbuf_free(&k->got);
}

static void says(struct client *k, const char *text)
{
    assert_int_equal(conn_write(k->conn, span_str(text)), 0);
}

static bool got(const struct client *k, const char *text)
{
    return span_starts(dynbuf_span(&k->got), span_str(text));
}

/* A CONNECT to this place, and what is answered first. */
static void connects(struct client *k, const char *host, unsigned port, const char *answer)
{
    char head[512];
    come(k);
    snprintf(head, sizeof(head), "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n\r\n", host, port, host, port);
    k->stop_at = 1;
    says(k, head);
    run();
    assert_true(got(k, answer));
}

/* ---- the places ---- */

static struct relay_place place(const char *host, unsigned port, const char *first, const char *second)
{
    struct relay_place p = {.nhost = strlen(host), .port = (uint16_t)port};
    memcpy(p.host, host, p.nhost);
    assert_int_equal(addr_parse(span_str(first), &p.at.addr[p.at.naddrs++]), 0);
    if (second != NULL)
        assert_int_equal(addr_parse(span_str(second), &p.at.addr[p.at.naddrs++]), 0);
    return p;
}

static int setup(void **state)
{
    log_init("test_relay", LOG_ERROR);
    l = loop_new();
    echo_fd = listen_tcp("127.0.0.1:0");
    int fd = listen_tcp("127.0.0.1:0"), shut = listen_tcp("127.0.0.1:0");
    if (l == NULL || echo_fd < 0 || fd < 0 || shut < 0)
        return -1;
    accepted = 0;
    relay_port = listen_port(fd);
    places[0] = place("vault.example", (unsigned)listen_port(echo_fd), "127.0.0.1", NULL);
    places[1] = place("two.example", (unsigned)listen_port(echo_fd), "127.0.0.2", "127.0.0.1");
    places[2] = place("shut.example", (unsigned)listen_port(shut), "127.0.0.1", NULL);
    close(shut);
    echoes = watch_new(l, echo_fd, WATCH_READ, echo_accept, NULL);
    relay = relay_new(l, fd, places, 3);
    return echoes != NULL && relay != NULL ? 0 : -1;
}

static void settled(void *arg)
{
    loop_stop(l);
}

static int teardown(void **state)
{
    struct timer *t = timer_new(l, settled, NULL);
    relay_free(&relay);
    for (int i = 0; i < accepted; i++)
        conn_free(&echo[i]);
    timer_set(t, SETTLED_MS); /* what was ended properly is gone by then */
    (void)!loop_run(l);
    timer_free(&t);
    watch_free(&echoes);
    close(echo_fd);
    loop_free(&l);
    return 0;
}

/* ---- tests ---- */

static void bytes_pass_both_ways_to_a_place_that_is_named(void **state)
{
    static uint8_t big[512 * 1024];
    struct client k;
    connects(&k, "vault.example", places[0].port, "HTTP/1.1 200 ");
    size_t head = k.got.n;
    for (size_t i = 0; i < sizeof(big); i++)
        big[i] = (uint8_t)(i * 31 >> 3);
    assert_int_equal(conn_write(k.conn, span_of(big, sizeof(big))), 0);
    k.stop_at = head + sizeof(big);
    run();
    assert_int_equal(k.got.n, head + sizeof(big));
    assert_memory_equal(k.got.p + head, big, sizeof(big));
    conn_end(k.conn); /* it has said all; the other end answers with its end */
    run();
    assert_true(k.over && !k.reset);
    leave(&k);
}

static void what_is_said_with_the_head_is_not_lost_and_capitals_are_no_other_host(void **state)
{
    char head[256];
    struct client k;
    come(&k);
    snprintf(head, sizeof(head), "CONNECT Vault.Example:%u HTTP/1.1\r\nHost: vault.example\r\n\r\nat once",
             places[0].port);
    says(&k, head);
    k.stop_at = sizeof("HTTP/1.1 200 Connection established\r\n\r\nat once") - 1;
    run();
    assert_true(got(&k, "HTTP/1.1 200 Connection established\r\n\r\nat once"));
    leave(&k);
}

/* As Python before 3.12 asks. */
static void http_1_0_without_a_host_field_is_taken(void **state)
{
    char head[256];
    struct client k;
    come(&k);
    snprintf(head, sizeof(head), "CONNECT vault.example:%u HTTP/1.0\r\n\r\n", places[0].port);
    k.stop_at = 1;
    says(&k, head);
    run();
    assert_true(got(&k, "HTTP/1.1 200 "));
    leave(&k);
}

static void another_host_or_port_is_refused_and_not_dialled(void **state)
{
    struct client k;
    const struct {
        const char *host;
        unsigned port;
    } rows[] = {{"evil.example", places[0].port},
                {"vault.example", places[0].port - 1u},
                {"127.0.0.1", places[0].port},
                {"vault.example.evil.example", places[0].port},
                {"[::1]", places[0].port}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        connects(&k, rows[i].host, rows[i].port, "HTTP/1.1 403 ");
        leave(&k);
    }
    assert_int_equal(accepted, 0);
}

static void what_is_no_connect_is_refused(void **state)
{
    static const char *const heads[] = {"GET http://vault.example/ HTTP/1.1\r\nHost: vault.example\r\n\r\n",
                                        "GET / HTTP/1.1\r\nHost: vault.example\r\n\r\n",
                                        "CONNECT vault.example HTTP/1.1\r\nHost: vault.example\r\n\r\n",
                                        "CONNECT u@vault.example:443 HTTP/1.1\r\nHost: x\r\n\r\n",
                                        "\x05\x01\r\n\r\n"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct client k;
        come(&k);
        says(&k, heads[i]);
        run();
        assert_true(k.over);
        assert_true(k.got.n == 0 || got(&k, "HTTP/1.1 4"));
        leave(&k);
    }
    assert_int_equal(accepted, 0);
}

static void the_next_address_is_tried_and_none_is_said(void **state)
{
    struct client k;
    connects(&k, "two.example", places[1].port, "HTTP/1.1 200 "); /* nobody listens at the first of them */
    leave(&k);
    connects(&k, "shut.example", places[2].port, "HTTP/1.1 502 ");
    leave(&k);
}

static void so_many_at_a_time_and_the_next_one_waits(void **state)
{
    struct client k[RELAY_TUNNELS_MAX], next;
    char head[256];
    for (size_t i = 0; i < RELAY_TUNNELS_MAX; i++)
        connects(&k[i], "vault.example", places[0].port, "HTTP/1.1 200 ");
    come(&next);
    snprintf(head, sizeof(head), "CONNECT vault.example:%u HTTP/1.1\r\nHost: vault.example\r\n\r\n", places[0].port);
    says(&next, head);
    k[0].stop_at = k[0].got.n + 1;
    says(&k[0], "x");
    run();
    assert_int_equal(next.got.n, 0);
    assert_int_equal(accepted, RELAY_TUNNELS_MAX);
    leave(&k[0]);
    next.stop_at = 1;
    run();
    assert_true(got(&next, "HTTP/1.1 200 "));
    leave(&next);
    for (size_t i = 1; i < RELAY_TUNNELS_MAX; i++)
        leave(&k[i]);
}

static void so_many_in_its_life(void **state)
{
    struct client k;
    for (size_t i = 0; i < RELAY_TUNNELS_ALL_MAX; i++) {
        connects(&k, "evil.example", 443, "HTTP/1.1 403 ");
        leave(&k);
    }
    come(&k);
    run();
    assert_true(k.over && k.got.n == 0);
    leave(&k);
}

static void so_many_bytes(void **state)
{
    static uint8_t part[256 * 1024];
    struct client k;
    connects(&k, "vault.example", places[0].port, "HTTP/1.1 200 ");
    size_t passed = 0;
    while (!k.over && passed <= RELAY_BYTES_MAX) {
        dynbuf_reset(&k.got);
        k.stop_at = sizeof(part);
        assert_int_equal(conn_write(k.conn, span_of(part, sizeof(part))), 0);
        run();
        passed += 2 * sizeof(part); /* there and back */
    }
    assert_true(k.over && k.reset);
    leave(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_pass_both_ways_to_a_place_that_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_said_with_the_head_is_not_lost_and_capitals_are_no_other_host, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(http_1_0_without_a_host_field_is_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(another_host_or_port_is_refused_and_not_dialled, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_connect_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(the_next_address_is_tried_and_none_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(so_many_at_a_time_and_the_next_one_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(so_many_in_its_life, setup, teardown),
        cmocka_unit_test_setup_teardown(so_many_bytes, setup, teardown),
    };
    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
