/* common/lease/narrowed: who has a lease makes one of it that is good for less, that one can be made less once more,
 * and nothing that stands in it can be changed or taken away without the lease's own text. */
#include "common/lease/narrowed.h"

#include "tests/kit.h"

static char text[LEASE_TEXT_MAX];
static size_t ntext;
static struct dynbuf out[LEASE_NARROWED_LAYERS + 2];

static int setup(void **state)
{
    uint8_t stream[LEASE_STREAM];
    memset(stream, 7, sizeof(stream));
    ntext = lease_text(LEASE_GITHUB, "AB2CD7", stream, text);
    for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
        dynbuf_init(&out[i], LEASE_NARROWED_MAX + 1);
    return 0;
}

static int teardown(void **state)
{
    for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
        dynbuf_free(&out[i]);
    return 0;
}

static struct span own(void)
{
    return span_of(text, ntext);
}

/* Path /pN, until N: number n of a row, each made of the one before. */
static int narrow(size_t n, struct span from)
{
    static const char *const path[] = {"/p0", "/p1", "/p2", "/p3", "/p4"};
    struct wire_layer l = {.paths = {1, {span_str(path[n])}}, .effects = 2};
    return lease_narrowed_make(from, &l, n, &out[n]);
}

/* As the keeper looks at it. */
static bool is_right(struct span s)
{
    struct lease_narrowed is;
    struct digest mac;
    return lease_narrowed_read(s, &is) == 0 && lease_narrowed_mac(own(), is.layers, &mac) == 0 &&
           memcmp(&mac, &is.mac, sizeof(mac)) == 0;
}

static void what_stands_in_it(void **state)
{
    uint8_t room[LEASE_NARROWED_BYTES];
    struct lease_narrowed is;
    struct wire_layer l;
    struct digest d;
    uint64_t until;
    digest_of(own(), &d);
    assert_int_equal(narrow(0, own()), 0);
    for (size_t i = 0; i < LEASE_NARROWED_LAYERS; i++) {
        struct span s = dynbuf_span(&out[i]);
        assert_true(is_right(s) && span_starts(s, SPAN("cs_AB2CD7.")));
        assert_int_equal(span_find(s, span_from(own(), 10)), s.n); /* it does not give the lease away */
        assert_int_equal(lease_narrowed_read(s, &is), 0);
        assert_memory_equal(&is.of, &d, sizeof(d));
        struct span rest = is.layers;
        for (size_t k = 0; k <= i; k++) {
            char path[] = {'/', 'p', (char)('0' + k)};
            assert_int_equal(lease_narrowed_layer(&rest, room, &l, &until), 0);
            assert_true(until == k && l.effects == 2 && l.paths.n == 1 &&
                        span_eq(l.paths.v[0], span_of(path, sizeof(path))));
        }
        assert_int_equal(rest.n, 0);
        assert_int_equal(narrow(i + 1, s), i + 1 < LEASE_NARROWED_LAYERS ? 0 : -1);
    }
}

/* Each character of it; each layer; and the MAC of one with less in it. */
static void changed_it_is_not_right(void **state)
{
    char copy[LEASE_NARROWED_MAX];
    assert_int_equal(narrow(0, own()), 0);
    assert_int_equal(narrow(1, dynbuf_span(&out[0])), 0);
    struct span s = dynbuf_span(&out[1]);
    for (size_t i = 0; i < s.n; i++) {
        struct lease_narrowed was, is;
        memcpy(copy, s.p, s.n);
        copy[i] = copy[i] == '1' ? '2' : '1';
        bool elsewhere = lease_narrowed_read(s, &was) == 0 && lease_narrowed_read(span_of(copy, s.n), &is) == 0 &&
                         memcmp(&was.of, &is.of, sizeof(is.of)) != 0; /* of a lease that there is not */
        bool tag = i >= 3 && i < 3 + LEASE_TAG;                       /* by which it is found, and no more */
        if (!elsewhere && !tag && is_right(span_of(copy, s.n)))
            fail_msg("character %zu may be another one", i);
    }
    struct lease_narrowed one, two;
    assert_int_equal(lease_narrowed_read(dynbuf_span(&out[0]), &one), 0);
    assert_int_equal(lease_narrowed_read(s, &two), 0);
    size_t head = (size_t)(two.layers.p - s.p), n = head;
    memcpy(copy, s.p, head);
    memcpy(copy + n, one.layers.p, one.layers.n); /* the first layer alone, with the MAC of both */
    n += one.layers.n;
    memcpy(copy + n, two.layers.p + two.layers.n, 1 + 2 * DIGEST_BYTES);
    n += 1 + 2 * DIGEST_BYTES;
    assert_int_equal(lease_narrowed_read(span_of(copy, n), &one), 0);
    assert_false(is_right(span_of(copy, n)));
}

/* What stands in each of it, its digest, makes none, however long the text is (a key of HMAC that is longer than a
 * block is hashed first). */
static void its_digest_is_not_its_text(void **state)
{
    uint8_t stream[LEASE_STREAM];
    struct lease_narrowed is;
    struct digest d;
    memset(stream, 9, sizeof(stream));
    for (int f = LEASE_NONE + 1; f < LEASE_FORMAT_COUNT; f++) {
        if (lease_is_pair((enum lease_format)f))
            continue;
        dynbuf_reset(&out[0]);
        ntext = lease_text((enum lease_format)f, "AB2CD7", stream, text);
        assert_int_equal(narrow(0, own()), 0);
        assert_true(is_right(dynbuf_span(&out[0])));
        assert_int_equal(lease_narrowed_read(dynbuf_span(&out[0]), &is), 0);
        assert_int_equal(lease_narrowed_mac(span_of(is.of.b, DIGEST_BYTES), is.layers, &d), 0);
        if (memcmp(&d, &is.mac, sizeof(d)) == 0)
            fail_msg("of %s the digest is as good as the text", lease_format_name((enum lease_format)f));
    }
}

static void what_is_none(void **state)
{
    static uint8_t path[LEASE_BOUND_BYTES];
    struct wire_layer l = {.uses = 1}, rate = {.rate = 1}, large = {.effects = 2};
    struct lease_narrowed is;
    char pair[LEASE_TEXT_MAX], copy[LEASE_NARROWED_MAX];
    uint8_t stream[LEASE_STREAM] = {0}, room[LEASE_NARROWED_BYTES];
    assert_int_equal(lease_narrowed_make(own(), &l, 0, &out[0]), -1); /* which nobody would count */
    assert_int_equal(lease_narrowed_make(own(), &rate, 0, &out[0]), -1);
    size_t n = lease_text(LEASE_AWS, "AB2CD7", stream, pair);
    assert_int_equal(narrow(0, span_of(pair, n)), -1);
    assert_int_equal(narrow(0, span_first(own(), ntext - 1)), -1);
    assert_int_equal(narrow(0, SPAN_NONE), -1);
    memset(path, '/', sizeof(path));
    for (; large.paths.n < LEASE_LIST_MAX; large.paths.n++)
        large.paths.v[large.paths.n] = span_of(path, sizeof(path));
    assert_int_equal(lease_narrowed_make(own(), &large, 0, &out[0]), -1);
    dynbuf_reset(&out[0]);
    assert_int_equal(narrow(0, own()), 0);
    struct span s = dynbuf_span(&out[0]);
    assert_int_equal(lease_narrowed_read(s, &is), 0);
    memcpy(copy, s.p, s.n);
    for (size_t i = 0; i < s.n; i++) { /* in one spelling, and whole */
        assert_int_equal(lease_narrowed_read(span_first(s, i), &is), -1);
        if (copy[i] >= 'a' && copy[i] <= 'f' && i > 10) {
            copy[i] -= 32;
            assert_int_equal(lease_narrowed_read(span_of(copy, s.n), &is), -1);
            copy[i] += 32;
        }
    }
    struct span bad[] = {SPAN("00"), SPAN("0"), SPAN(""), SPAN("zz"), SPAN("000000000000000000"),
                         /* two layers; one that counts */
                         SPAN("000000000000000002"
                              "000000000000000000000000000000000000000000000000"
                              "000000000000000000000000000000000000000000000000"),
                         SPAN("00000000000000000100000000000000000000000000000001"
                              "0000000000000000")};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t until;
        assert_int_equal(lease_narrowed_layer(&bad[i], room, &l, &until), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_stands_in_it, setup, teardown),
        cmocka_unit_test_setup_teardown(changed_it_is_not_right, setup, teardown),
        cmocka_unit_test_setup_teardown(its_digest_is_not_its_text, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_none, setup, teardown),
    };
    return cmocka_run_group_tests_name("narrowed leases", tests, NULL, NULL);
}
