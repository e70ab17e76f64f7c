/* The fetcher. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "proxy/fetcher/fetcher.h"

static struct fetcher f;

/* Who changes one of the two says the other again, from where it stands. */
static void the_paths_of_trust_are_kept(void **state)
{
    assert_int_equal(fetcher_trust(&f, SPAN("/etc/roots.pem"), span_str(f.crl)), 0);
    assert_int_equal(fetcher_trust(&f, span_str(f.roots), SPAN("/etc/lists.pem")), 0);
    assert_string_equal(f.roots, "/etc/roots.pem");
    assert_string_equal(f.crl, "/etc/lists.pem");
    assert_int_equal(fetcher_trust(&f, SPAN("/roots"), span_str(f.crl)), 0);
    assert_string_equal(f.roots, "/roots");
    assert_string_equal(f.crl, "/etc/lists.pem");
    assert_int_equal(fetcher_trust(&f, span_str(f.roots), SPAN_NONE), 0);
    assert_string_equal(f.roots, "/roots");
    assert_string_equal(f.crl, "");
    assert_int_equal(fetcher_trust(&f, span_of(f.roots, sizeof(f.roots)), SPAN_NONE), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_paths_of_trust_are_kept)};
    return cmocka_run_group_tests_name("fetcher", tests, NULL, NULL);
}
