/* Upstream connections that wait: no sandbox keeps another one's from waiting. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/carrier/upstream/pool.h"
#include "tests/kit.h"

static void ignore(void *arg, struct conn *c, enum conn_event ev)
{
}

static struct upstream *upstream_new(void)
{
    struct upstream *u = calloc(1, sizeof(*u));
    assert_non_null(u);
    u->refs = 1;
    arena_init(&u->a, 4096);
    u->naddr = 1;
    u->addr[0] = (struct addr){4, {127, 0, 0, 1}};
    return u;
}

/* The other end is not needed: nobody reads. */
static void wait_in(struct pool *p, uint64_t front, struct upstream *u)
{
    struct pool_key k = {front, u, u->addr[0], SPAN_NONE, NULL, 0};
    struct conn *c = conn_new(p->loop, socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), 4096, ignore, NULL);
    assert_non_null(c);
    pool_put(p, &k, u, &c);
    assert_null(c);
}

static bool has(struct pool *p, uint64_t front, struct upstream *u)
{
    struct pool_key k = {front, u, u->addr[0], SPAN_NONE, u->addr, u->naddr};
    struct addr at;
    struct conn *c = pool_take(p, &k, 1000000, &at);
    bool found = c != NULL;
    conn_free(&c);
    return found;
}

/* F36: one sandbox fills the pool, with many upstreams. */
static void a_full_pool_takes_from_the_largest(void **state)
{
    enum { MANY = POOL_MAX / POOL_EACH + 2 };
    struct rlimit files = {2048, 2048};
    struct upstream *many[MANY], *mine = upstream_new();
    struct loop *l = loop_new();
    struct pool p;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    pool_init(&p, l);
    wait_in(&p, 2, mine);
    for (size_t i = 0; i < MANY; i++) {
        many[i] = upstream_new();
        for (size_t k = 0; k < POOL_EACH + 3; k++)
            wait_in(&p, 1, many[i]);
    }
    assert_int_equal(p.n, POOL_MAX);
    assert_false(has(&p, 1, many[0])); /* its oldest went */
    assert_true(has(&p, 1, many[MANY - 1]));
    assert_true(has(&p, 2, mine));
    wait_in(&p, 2, mine);
    wait_in(&p, 2, mine); /* and the neighbour's may wait, full as it is */
    wait_in(&p, 2, mine);
    assert_true(has(&p, 2, mine) && has(&p, 2, mine) && has(&p, 2, mine));
    pool_clear(&p);
    for (size_t i = 0; i < MANY; i++)
        upstream_unref(&many[i]);
    upstream_unref(&mine);
    loop_free(&l);
    covers("F36");
}

/* What is sent once takes only a connection used a moment ago: such a one is not closed for the sake of older ones.
 */
static void of_too_many_the_oldest_goes(void **state)
{
    struct upstream *u = upstream_new();
    struct loop *l = loop_new();
    struct pool p;
    struct addr at;
    pool_init(&p, l);
    for (size_t i = 0; i < POOL_EACH; i++)
        wait_in(&p, 1, u);
    struct pool_key k = {1, u, u->addr[0], SPAN_NONE, u->addr, u->naddr};
    struct conn *last = conn_new(l, socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), 4096, ignore, NULL), *c = last;
    pool_put(&p, &k, u, &c);
    assert_int_equal(p.n, POOL_EACH);
    c = pool_take(&p, &k, 1000, &at);
    assert_ptr_equal(c, last);
    conn_free(&c);
    pool_clear(&p);
    upstream_unref(&u);
    loop_free(&l);
}

/* One that leads where this request may not go stays for those that may. */
static void only_where_it_may_lead(void **state)
{
    struct upstream *u = upstream_new();
    struct loop *l = loop_new();
    struct pool p;
    struct addr at;
    const struct addr other = {4, {127, 0, 0, 2}};
    pool_init(&p, l);
    u->addr[u->naddr++] = other;
    wait_in(&p, 1, u);
    struct pool_key k = {1, u, {0}, SPAN_NONE, &other, 1};
    assert_null(pool_take(&p, &k, 1000000, &at));
    assert_true(has(&p, 1, u));
    pool_clear(&p);
    upstream_unref(&u);
    loop_free(&l);
}

static void stop(void *arg)
{
    loop_stop(arg);
}

/* A46 C25: one to an address that the name no longer has is not used, and one that something came on does not wait.
 */
static void what_is_not_to_be_used_again_is_not(void **state)
{
    struct upstream *u = upstream_new();
    struct loop *l = loop_new();
    struct pool p;
    int sv[2];
    pool_init(&p, l);
    wait_in(&p, 1, u);
    u->addr[0].b[3] = 2;
    assert_false(has(&p, 1, u));
    u->addr[0].b[3] = 1;
    assert_true(has(&p, 1, u));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv), 0);
    struct pool_key k = {1, u, u->addr[0], SPAN_NONE, NULL, 0};
    struct conn *c = conn_new(l, sv[0], 4096, ignore, NULL);
    assert_int_equal(write(sv[1], "x", 1), 1);
    while (conn_input(c).n == 0) {
        assert_int_equal(loop_defer(l, stop, l), 0);
        assert_int_equal(loop_run(l), 0);
    }
    pool_put(&p, &k, u, &c);
    assert_null(c);
    assert_int_equal(p.n, 0);
    close(sv[1]);
    pool_clear(&p);
    upstream_unref(&u);
    loop_free(&l);
    covers("A46 C25");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_pool_takes_from_the_largest),
        cmocka_unit_test(only_where_it_may_lead),
        cmocka_unit_test(of_too_many_the_oldest_goes),
        cmocka_unit_test(what_is_not_to_be_used_again_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
