#include "tests/unit/net/conn_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void on_event(void *arg, struct conn *c, enum conn_event ev)
{
    static const char letters[] = "FCRDETLW";
    struct side *s = arg;
    size_t n = strlen(s->order);
    s->seen[ev]++;
    if (n + 1 < sizeof(s->order) && (n == 0 || s->order[n - 1] != letters[ev]))
        s->order[n] = letters[ev];
    if (ev == CONN_FAILED)
        snprintf(s->why, sizeof(s->why), "%s", conn_why(c));
    struct span in = conn_input(c);
    if (in.n > s->largest)
        s->largest = in.n;
    if (ev == CONN_DATA && !s->keep) {
        assert_int_equal(dynbuf_add(&s->got, in), 0);
        conn_consume(c, in.n);
        if (s->stop_at > 0 && s->got.n >= s->stop_at)
            loop_stop(s->l);
    }
    if (s->stop_on & 1u << ev)
        loop_stop(s->l);
    if (s->free_on & 1u << ev)
        conn_free(&s->c);
}

void side_init(struct side *s, struct loop *l)
{
    *s = (struct side){.l = l};
    dynbuf_init(&s->got, 16 * 1024 * 1024);
}

void open_world(struct world *w)
{
    w->l = loop_new();
    assert_non_null(w->l);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w->fd), 0);
    side_init(&w->a, w->l);
    side_init(&w->b, w->l);
    w->a.c = conn_new(w->l, w->fd[0], IN_MAX, on_event, &w->a);
    w->b.c = conn_new(w->l, w->fd[1], IN_MAX, on_event, &w->b);
    assert_non_null(w->a.c);
    assert_non_null(w->b.c);
}

void close_world(struct world *w)
{
    conn_free(&w->a.c);
    conn_free(&w->b.c);
    dynbuf_free(&w->a.got);
    dynbuf_free(&w->b.got);
    loop_free(&w->l);
}

static void too_long(void *arg)
{
    (void)arg;
    fail_msg("the loop did not end in time");
}

void run(struct loop *l)
{
    struct timer *t = timer_new(l, too_long, NULL);
    timer_set(t, 300000);
    assert_int_equal(loop_run(l), 0);
    timer_free(&t);
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

void settle(struct loop *l)
{
    struct turns t = {l, 40};
    assert_int_equal(loop_defer(l, turn, &t), 0);
    assert_int_equal(loop_run(l), 0);
}

static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 7 + (i >> 11));
}

static void fill(struct conn *c, size_t *sent, size_t total)
{
    static uint8_t block[48 * 1024];
    while (*sent < total && conn_queued(c) < CONN_OUT_MAX / 2) {
        size_t n = total - *sent < sizeof(block) ? total - *sent : sizeof(block);
        for (size_t i = 0; i < n; i++)
            block[i] = pattern(*sent + i);
        assert_int_equal(conn_write(c, span_of(block, n)), 0);
        *sent += n;
    }
}

void pump(struct world *w, size_t total)
{
    size_t sent = 0;
    unsigned drained = 0;
    while (sent < total) {
        fill(w->a.c, &sent, total);
        w->a.stop_on = sent < total ? 1u << CONN_DRAINED : 0;
        w->b.stop_at = total;
        run(w->l);
        drained = w->a.seen[CONN_DRAINED];
    }
    w->a.stop_on = 0;
    if (w->b.got.n < total)
        run(w->l);
    assert_true(drained > 0);
    assert_int_equal(w->b.got.n, total);
    for (size_t i = 0; i < total; i++)
        if (w->b.got.p[i] != pattern(i))
            fail_msg("byte %zu differs", i);
    assert_true(w->b.largest <= IN_MAX);
}

struct keys keys;

const struct cert_wish good_ca = {
    .cn = "test CA", .basic = "critical,CA:TRUE", .usage = "critical,keyCertSign,cRLSign"};
const struct cert_wish good_leaf = {
    .san = "DNS:a.test", .eku = "serverAuth", .usage = "critical,digitalSignature", .basic = "critical,CA:FALSE"};

struct tls_leaf *leaf_for(const struct cert_wish *w)
{
    X509 *x = cert_make(w, keys.key->pkey, keys.ca, keys.ca_key);
    struct span der = cert_der(x);
    struct tls_leaf *leaf = tls_leaf_new(keys.key, der, keys.ca_der);
    assert_non_null(leaf);
    OPENSSL_free((void *)der.p);
    X509_free(x);
    return leaf;
}

int keys_new(void **state)
{
    struct err e;
    (void)state;
    keys.ca_key = cert_key_ec("P-256");
    keys.ca = cert_make(&good_ca, keys.ca_key, NULL, keys.ca_key);
    keys.ca_der = cert_der(keys.ca);
    keys.ca_pem = cert_pem(keys.ca);
    keys.key = tls_key_new();
    keys.server = tls_server_new(&e);
    keys.client = tls_client_new(&(struct tls_trust){.roots_pem = keys.ca_pem}, &e);
    return keys.key != NULL && keys.server != NULL && keys.client != NULL ? 0 : -1;
}

int keys_free(void **state)
{
    (void)state;
    EVP_PKEY_free(keys.ca_key);
    X509_free(keys.ca);
    OPENSSL_free((void *)keys.ca_der.p);
    free((void *)keys.ca_pem.p);
    tls_key_free(&keys.key);
    tls_server_free(&keys.server);
    tls_client_free(&keys.client);
    return 0;
}

void shake(struct world *w, struct tls_client *t, struct tls_leaf *leaf, const char *asked, const char *served)
{
    unsigned ends = 1u << CONN_TLS_READY | 1u << CONN_FAILED;
    open_world(w);
    w->a.stop_on = w->b.stop_on = ends;
    assert_int_equal(conn_tls_accept(w->b.c, keys.server, leaf, span_str(served)), 0);
    assert_int_equal(conn_tls_connect(w->a.c, t, span_str(asked)), 0);
    for (int i = 0; i < 2 && !(w->a.seen[CONN_FAILED] || w->b.seen[CONN_FAILED]); i++)
        if (!w->a.seen[CONN_TLS_READY] || !w->b.seen[CONN_TLS_READY])
            run(w->l);
    settle(w->l);
    w->a.stop_on = w->b.stop_on = 0;
}
