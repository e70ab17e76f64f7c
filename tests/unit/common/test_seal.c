/* common/seal: what was sealed opens again, and nothing else does; and the pages that secrets lie in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "common/crypto/seal.h"

static void sealed_bytes_open_again(void **state)
{
    struct secret *k = seal_key_new();
    uint8_t sealed[100 + SEAL_EXTRA], again[100 + SEAL_EXTRA], plain[100], back[100];
    for (size_t n = 0; n <= sizeof(plain); n++) {
        memset(plain, (int)n, sizeof(plain));
        assert_int_equal(seal_bytes(k, SPAN("here"), span_of(plain, n), sealed), 0);
        assert_int_equal(seal_open(k, SPAN("here"), span_of(sealed, n + SEAL_EXTRA), back), 0);
        assert_memory_equal(plain, back, n);
    }
    /* The same bytes never look the same twice. */
    assert_int_equal(seal_bytes(k, SPAN("here"), span_of(plain, 100), again), 0);
    assert_memory_not_equal(sealed, again, sizeof(sealed));
    secret_free(&k);
}

static void any_change_is_noticed(void **state)
{
    struct secret *k = seal_key_new(), *other = seal_key_new();
    uint8_t sealed[5 + SEAL_EXTRA], out[5];
    assert_int_equal(seal_bytes(k, SPAN("name"), SPAN("value"), sealed), 0);
    struct span s = span_of(sealed, sizeof(sealed));
    for (size_t bit = 0; bit < 8 * sizeof(sealed); bit++) {
        sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        memset(out, 'x', sizeof(out));
        assert_int_equal(seal_open(k, SPAN("name"), s, out), -1);
        assert_memory_equal(out, "\0\0\0\0\0", 5);
        sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(seal_open(k, SPAN("nama"), s, out), -1);
    assert_int_equal(seal_open(other, SPAN("name"), s, out), -1);
    assert_int_equal(seal_open(NULL, SPAN("name"), s, out), -1);
    for (size_t n = 0; n < sizeof(sealed); n++)
        assert_int_equal(seal_open(k, SPAN("name"), span_of(sealed, n), out), -1);
    assert_int_equal(seal_open(k, SPAN("name"), s, out), 0);
    secret_free(&k);
    secret_free(&other);
}

static void derived_keys_differ_by_purpose(void **state)
{
    struct secret *m = seal_key_new();
    struct secret *a = seal_key_derive(m, SPAN("a")), *b = seal_key_derive(m, SPAN("b")),
                  *a2 = seal_key_derive(m, SPAN("a"));
    assert_true(span_eq(secret_bytes(a), secret_bytes(a2)));
    assert_false(span_eq(secret_bytes(a), secret_bytes(b)));
    assert_null(seal_key_derive(NULL, SPAN("a")));
    struct secret *all[] = {m, a, b, a2};
    for (int i = 0; i < 4; i++)
        secret_free(&all[i]);
}

static bool is_empty(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != 0)
            return false;
    return true;
}

/* Pages are used again: of what was there nothing is left, nor beyond what it took. */
static void a_secret_leaves_nothing_to_the_next(void **state)
{
    static const size_t sizes[] = {1, 40, 4000, 4096, 10000};
    struct secret *s[20];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 20; i++) {
            size_t n = sizes[(i + (size_t)round) % 5];
            s[i] = secret_room(n);
            assert_non_null(s[i]);
            assert_true(secret_bytes(s[i]).n == n && is_empty(secret_bytes(s[i])));
            memset(secret_fill(s[i]), 's', n);
        }
        for (size_t i = 0; i < 20; i++)
            secret_free(&s[i]);
    }
    struct secret *a = secret_new(SPAN("0123456789")), *b = secret_new(SPAN("abc"));
    assert_true(span_eq(secret_bytes(a), SPAN("0123456789")) && span_eq(secret_bytes(b), SPAN("abc")));
    secret_free(&a);
    secret_free(&b);
    assert_null(secret_room(2 * 1024 * 1024));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealed_bytes_open_again),
        cmocka_unit_test(any_change_is_noticed),
        cmocka_unit_test(derived_keys_differ_by_purpose),
        cmocka_unit_test(a_secret_leaves_nothing_to_the_next),
    };
    return cmocka_run_group_tests_name("seal", tests, NULL, NULL);
}
