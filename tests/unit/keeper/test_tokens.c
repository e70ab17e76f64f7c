/* Tokens behind leases: found by the lease and by what its credential means, and gone with their time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "proxy/keeper/sources/tokens.h"
#include "proxy/msgs.h"

static const struct digest meaning = {{1}}, another = {{2}};
static struct tokens *t;

static int setup(void **state)
{
    return (t = tokens_new()) == NULL;
}

static int teardown(void **state)
{
    tokens_free(&t);
    return 0;
}

static struct id lease(unsigned n)
{
    return (struct id){{(uint8_t)n, (uint8_t)(n >> 8), 1}};
}

static int put(unsigned n, uint64_t xid, uint64_t expires)
{
    struct id id = lease(n);
    return tokens_put(t, xid, &id, &meaning, secret_new(SPAN("token-canary-1")), expires, 100);
}

static bool there(unsigned n, const struct digest *d, uint64_t now)
{
    struct id id = lease(n);
    const struct secret *s = tokens_find(t, &id, d, now);
    assert_true(s == NULL || span_eq(secret_bytes(s), SPAN("token-canary-1")));
    return s != NULL;
}

static void found_by_its_lease(void **state)
{
    assert_int_equal(put(1, 7, 200), 0);
    assert_true(there(1, &meaning, 199));
    assert_false(there(1, &meaning, 200));
    assert_false(there(1, &another, 199));
    assert_false(there(2, &meaning, 199));
    struct id same_bucket = lease(1);
    same_bucket.b[3] = 1;
    assert_null(tokens_find(t, &same_bucket, &meaning, 199));
}

static void forgotten_with_its_answer_and_with_its_time(void **state)
{
    assert_int_equal(put(1, 7, 200), 0);
    assert_int_equal(put(2, 7, 300), 0);
    assert_int_equal(put(3, 8, 300), 0);
    tokens_expire(t, 200);
    assert_false(there(1, &meaning, 150));
    tokens_drop(t, 7);
    tokens_drop(t, 0);
    assert_false(there(2, &meaning, 150));
    assert_true(there(3, &meaning, 150));
}

static uint64_t of_front(uint64_t instance)
{
    return instance << XID_FRONT_SHIFT | 7;
}

/* One sandbox that has as many as it may takes no place of another; what has ended does not count. */
static void so_many_live_of_one_front(void **state)
{
    for (unsigned i = 0; i < TOKENS_EACH; i++)
        assert_int_equal(put(i, of_front(1) + i, i == 0 ? 50 : 200), 0);
    assert_int_equal(put(TOKENS_EACH, of_front(1), 200), 0);
    assert_int_equal(put(TOKENS_EACH + 1, of_front(1), 200), -1);
    assert_int_equal(put(TOKENS_EACH + 1, of_front(2), 200), 0);
    assert_true(there(TOKENS_EACH + 1, &meaning, 150));
}

/* And its place is free for another one. */
static void forgotten_with_its_lease(void **state)
{
    for (unsigned i = 0; i < TOKENS_EACH; i++)
        assert_int_equal(put(i, of_front(1), 200), 0);
    struct id dead = lease(3), unknown = lease(TOKENS_EACH);
    tokens_end(t, &unknown);
    assert_int_equal(put(TOKENS_EACH, of_front(1), 200), -1);
    tokens_end(t, &dead);
    tokens_end(t, &dead);
    assert_false(there(3, &meaning, 150));
    assert_true(there(2, &meaning, 150) && there(4, &meaning, 150));
    assert_int_equal(put(TOKENS_EACH, of_front(1), 200), 0);
}

static void so_many_live_at_once(void **state)
{
    for (unsigned i = 0; i < TOKENS_MAX; i++)
        assert_int_equal(put(i, of_front(i / TOKENS_EACH), i == 5 ? 50 : 200), 0);
    assert_int_equal(put(TOKENS_MAX, of_front(9999), 200), 0); /* in the place of one that has ended */
    assert_int_equal(put(TOKENS_MAX + 1, of_front(9999), 200), -1);
    assert_true(there(0, &meaning, 150)); /* nobody's is lost for it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(found_by_its_lease, setup, teardown),
        cmocka_unit_test_setup_teardown(forgotten_with_its_answer_and_with_its_time, setup, teardown),
        cmocka_unit_test_setup_teardown(so_many_live_of_one_front, setup, teardown),
        cmocka_unit_test_setup_teardown(forgotten_with_its_lease, setup, teardown),
        cmocka_unit_test_setup_teardown(so_many_live_at_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
