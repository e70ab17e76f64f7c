/* The keeper's leases: the same again from the same id and master key, and from nothing else. */
#include "common/crypto/seal.h"
#include "proxy/keeper/lease/lease.h"
#include "tests/kit.h"

static void from_id_and_master_key_alone(void **state)
{
    struct secret *master = seal_key_new(), *other = seal_key_new();
    struct secret *root = lease_root(master), *again = lease_root(master), *elsewhere = lease_root(other);
    struct lease_texts a, b, c, d;
    struct id one = {{1}}, two = {{2}};
    assert_true(root && again && elsewhere);
    for (int f = LEASE_NONE + 1; f < LEASE_FORMAT_COUNT; f++) {
        assert_int_equal(lease_derive(root, &one, (enum lease_format)f, &a), 0);
        assert_int_equal(lease_derive(again, &one, (enum lease_format)f, &b), 0);
        assert_memory_equal(&a, &b, sizeof(a));
        assert_int_equal(lease_derive(root, &two, (enum lease_format)f, &c), 0);
        assert_string_equal(a.tag, c.tag);
        assert_memory_not_equal(a.text, c.text, a.ntext);
        assert_int_equal(lease_derive(elsewhere, &one, (enum lease_format)f, &d), 0);
        assert_memory_not_equal(a.tag, d.tag, LEASE_TAG);
        assert_int_equal(a.nsecret > 0, lease_is_pair((enum lease_format)f));
        if (a.nsecret > 0)
            assert_memory_not_equal(a.secret, c.secret, a.nsecret);
        assert_true(span_find(span_of(a.text, a.ntext), span_str(a.tag)) < a.ntext);
    }
    assert_int_equal(lease_derive(root, &one, LEASE_NONE, &a), -1);
    secret_free(&master);
    secret_free(&other);
    secret_free(&root);
    secret_free(&again);
    secret_free(&elsewhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(from_id_and_master_key_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
