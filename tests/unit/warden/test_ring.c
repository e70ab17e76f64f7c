/* What is kept of an output: the last of it, and how much is gone. */
#include "tests/kit.h"

#include <stdlib.h>
#include <string.h>

#include "sandbox-shim/warden/ring.h"

static uint8_t all[3 * RING_MAX];
static bool none; /* there is no memory for a ring */

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
    return none && n == RING_MAX ? NULL : __real_malloc(n);
}

/* All that there is from *at on, in pieces of at most `most`, must be what was put there. */
static uint64_t read_on(const struct ring *r, uint64_t *at, size_t most)
{
    uint64_t cut = 0, before = *at;
    struct span s;
    while ((s = ring_get(r, at, most, &cut)).n > 0) {
        assert_true(s.n <= most);
        assert_int_equal(memcmp(s.p, all + *at - s.n, s.n), 0);
        before += s.n;
    }
    assert_int_equal(before + cut, *at);
    assert_int_equal(*at, r->end);
    return cut;
}

static void what_was_put_last_is_kept(void **state)
{
    static const size_t sizes[] = {1, 7, 4096, RING_MAX - 1, RING_MAX, RING_MAX + 1, 2 * RING_MAX};
    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
        for (size_t first = 0; first <= RING_MAX; first += RING_MAX / 4) {
            struct ring r = {0};
            uint64_t slow = 0, quick = 0;
            ring_put(&r, span_of(all, first));
            assert_int_equal(read_on(&r, &quick, 1000), 0);
            for (size_t n = first; n + sizes[k] <= sizeof(all) && n < first + 40 * sizes[k]; n += sizes[k]) {
                ring_put(&r, span_of(all + n, sizes[k]));
                assert_int_equal(r.end, n + sizes[k]);
                assert_int_equal(read_on(&r, &quick, 1000), sizes[k] > RING_MAX ? sizes[k] - RING_MAX : 0);
            }
            assert_int_equal(read_on(&r, &slow, sizeof(all)), r.end > RING_MAX ? r.end - RING_MAX : 0);
            ring_free(&r);
        }
}

static void of_nothing_there_is_nothing(void **state)
{
    struct ring r = {0};
    uint64_t at = 0, cut = 0;
    assert_int_equal(ring_get(&r, &at, 10, &cut).n, 0);
    ring_put(&r, SPAN_NONE);
    assert_null(r.bytes);
    ring_put(&r, SPAN("x"));
    assert_int_equal(ring_get(&r, &at, 0, &cut).n, 0);
    assert_int_equal(at, 0);
    assert_true(span_eq(ring_get(&r, &at, 10, &cut), SPAN("x")));
    assert_int_equal(cut, 0);
    ring_free(&r);
}

/* What came while there was none is counted; its place in the memory of later was never written. */
static void without_memory_it_is_gone(void **state)
{
    struct ring r = {0};
    uint64_t at = 0, cut = 0;
    none = true;
    ring_put(&r, SPAN("of this nothing is kept."));
    assert_int_equal(ring_get(&r, &at, 100, &cut).n, 0);
    assert_true(at == 24 && cut == 24);
    none = false;
    ring_put(&r, SPAN("x"));
    at = cut = 0;
    assert_true(span_eq(ring_get(&r, &at, 100, &cut), SPAN("x")));
    assert_true(at == 25 && cut == 24);
    ring_put(&r, span_of(all, RING_MAX));
    assert_int_equal(ring_get(&r, &at, 1, &cut).n, 1);
    assert_true(at == 26 && cut == 24);
    ring_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_last_is_kept),
        cmocka_unit_test(of_nothing_there_is_nothing),
        cmocka_unit_test(without_memory_it_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
