/* The keeper and pairs: what was signed with a lease's secret half is seen to be, and one changed byte in each part
 * of it that it is not. */
#include "common/crypto/seal.h"
#include "common/lease/narrowed.h"
#include "proxy/keeper/lease/verify.h"
#include "tests/kit.h"

#include <stdio.h>

static const struct id one = {{1}}, two = {{2}};
static struct secret *root;
static struct signer *keys;
static struct lease_texts made;

static int open_all(void **state)
{
    struct secret *master = seal_key_new();
    root = lease_root(master);
    keys = signer_new();
    secret_free(&master);
    return root == NULL || keys == NULL || lease_derive(root, &one, LEASE_AWS, &made);
}

static int close_all(void **state)
{
    secret_free(&root);
    signer_free(&keys);
    return 0;
}

enum { CHUNKS = 3 };
struct signed_by {
    struct wire_signed w;
    char signature[SIGN_TEXT + 1], region[8], service[8], stamp[SIGN_STAMP_MAX + 1];
    uint8_t chunks[CHUNKS * WIRE_CHUNK_SAID];
};

/* As a sandbox with both halves does it. */
static void sign_as(struct signed_by *s, enum lease_format f, enum sign_scheme scheme, bool chunks)
{
    struct sign_scope scope;
    uint8_t key[SIGN_KEY];
    char last[SIGN_TEXT + 1], next[SIGN_TEXT + 1];
    *s = (struct signed_by){.region = "r-1", .service = "s3", .stamp = "20260101T000000Z"};
    if (scheme == SIGN_TC3)
        snprintf(s->stamp, sizeof(s->stamp), "1767225600");
    s->w = (struct wire_signed){.lease = one, .format = f, .scheme = scheme, .trailer = chunks};
    s->w.stamp = span_str(s->stamp);
    s->w.region = scheme == SIGN_TC3 ? SPAN_NONE : span_str(s->region);
    s->w.service = span_str(s->service);
    memset(&s->w.canonical, 7, DIGEST_BYTES);
    assert_int_equal(lease_derive(root, &one, f, &made), 0);
    assert_int_equal(sign_scope_of(scheme, s->w.stamp, s->w.region, s->w.service, &scope), 0);
    assert_int_equal(sign_key(&scope, span_of(made.secret, made.nsecret), key), 0);
    assert_int_equal(sign_digest(&scope, key, &s->w.canonical, s->signature), 0);
    s->w.signature = span_of(s->signature, SIGN_TEXT);
    memcpy(last, s->signature, sizeof(last));
    for (size_t i = 0; chunks && i < CHUNKS; i++) {
        struct digest d;
        memset(&d, (int)i, sizeof(d));
        assert_int_equal((i == CHUNKS - 1 ? sign_trailer : sign_chunk)(&scope, key, last, &d, next), 0);
        memcpy(s->chunks + i * WIRE_CHUNK_SAID, &d, DIGEST_BYTES);
        memcpy(s->chunks + i * WIRE_CHUNK_SAID + DIGEST_BYTES, next, SIGN_TEXT);
        memcpy(last, next, sizeof(last));
    }
    s->w.chunks = span_of(s->chunks, chunks ? sizeof(s->chunks) : 0);
}

static void is(const struct signed_by *s, enum wire_verified found)
{
    assert_int_equal(lease_verify(keys, root, &s->w), found);
}

static void with_its_own_key(void **state)
{
    struct signed_by s;
    for (int again = 0; again < 2; again++) { /* the second time with a kept key */
        sign_as(&s, LEASE_AWS, SIGN_AWS4, false);
        is(&s, VERIFIED_RIGHT);
        sign_as(&s, LEASE_AWS, SIGN_AWS4, true);
        is(&s, VERIFIED_RIGHT);
        sign_as(&s, LEASE_TENCENT, SIGN_TC3, false);
        is(&s, VERIFIED_RIGHT);
    }
}

static void one_changed_byte(void **state)
{
    struct signed_by s, good;
    sign_as(&good, LEASE_AWS, SIGN_AWS4, false);
    char *const part[] = {s.signature, s.region, s.service, s.stamp + 14};
    for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++)
        for (size_t at = 0; at < (i == 0 ? SIGN_TEXT : 1); at++) {
            sign_as(&s, LEASE_AWS, SIGN_AWS4, false);
            part[i][at] = part[i][at] == '1' ? '2' : '1';
            is(&s, VERIFIED_WRONG);
        }
    for (size_t at = 0; at < DIGEST_BYTES; at++) {
        sign_as(&s, LEASE_AWS, SIGN_AWS4, false);
        s.w.canonical.b[at] ^= 1;
        is(&s, VERIFIED_WRONG);
    }
    sign_as(&s, LEASE_AWS, SIGN_AWS4, false);
    s.w.lease = two;
    is(&s, VERIFIED_WRONG);
}

static void one_changed_byte_of_a_chunk(void **state)
{
    struct signed_by s;
    for (size_t at = 0; at < sizeof(s.chunks); at++) {
        sign_as(&s, LEASE_AWS, SIGN_AWS4, true);
        s.chunks[at] ^= 1;
        is(&s, VERIFIED_CHUNK_WRONG);
    }
    sign_as(&s, LEASE_AWS, SIGN_AWS4, true);
    s.w.trailer = false; /* the last is no chunk */
    is(&s, VERIFIED_CHUNK_WRONG);
    sign_as(&s, LEASE_AWS, SIGN_AWS4, true);
    s.w.chunks = span_from(s.w.chunks, WIRE_CHUNK_SAID); /* the first is left out */
    is(&s, VERIFIED_CHUNK_WRONG);
    sign_as(&s, LEASE_AWS, SIGN_AWS4, true);
    s.signature[0] = s.signature[0] == '1' ? '2' : '1';
    is(&s, VERIFIED_WRONG);
}

static void what_no_pair_signs(void **state)
{
    struct signed_by s;
    sign_as(&s, LEASE_AWS, SIGN_AWS4, false);
    s.w.format = LEASE_GITHUB;
    is(&s, VERIFIED_NOT);
    sign_as(&s, LEASE_AWS, SIGN_AWS4, false);
    s.w.stamp = SPAN("yesterday");
    is(&s, VERIFIED_NOT);
    sign_as(&s, LEASE_AWS, SIGN_AWS4, false);
    s.w.service = SPAN("a/b");
    is(&s, VERIFIED_NOT);
    sign_as(&s, LEASE_AWS, SIGN_AWS4, false);
    s.w.signature = span_first(s.w.signature, SIGN_TEXT - 1);
    is(&s, VERIFIED_NOT);
}

/* By the text that the lease's id gives, and what stands in it. */
static void narrowed_by_who_has_it(void **state)
{
    struct lease_narrowed is, more;
    struct dynbuf b, c;
    const struct wire_layer layer = {.effects = 2};
    dynbuf_init(&b, LEASE_NARROWED_MAX + 1);
    dynbuf_init(&c, LEASE_NARROWED_MAX + 1);
    assert_int_equal(lease_derive(root, &one, LEASE_GITHUB, &made), 0);
    assert_int_equal(lease_narrowed_make(span_of(made.text, made.ntext), &layer, 0, &b), 0);
    assert_int_equal(lease_narrowed_make(dynbuf_span(&b), &layer, 0, &c), 0);
    assert_int_equal(lease_narrowed_read(dynbuf_span(&b), &is), 0);
    assert_int_equal(lease_narrowed_read(dynbuf_span(&c), &more), 0);
    assert_int_equal(lease_verify_narrowed(root, &one, LEASE_GITHUB, is.layers, &is.mac), VERIFIED_RIGHT);
    assert_int_equal(lease_verify_narrowed(root, &one, LEASE_GITHUB, more.layers, &more.mac), VERIFIED_RIGHT);
    assert_int_equal(lease_verify_narrowed(root, &one, LEASE_GITHUB, is.layers, &more.mac), VERIFIED_WRONG);
    assert_int_equal(lease_verify_narrowed(root, &one, LEASE_GITHUB, more.layers, &is.mac), VERIFIED_WRONG);
    assert_int_equal(lease_verify_narrowed(root, &two, LEASE_GITHUB, is.layers, &is.mac), VERIFIED_WRONG);
    assert_int_equal(lease_verify_narrowed(root, &one, LEASE_GENERIC, is.layers, &is.mac), VERIFIED_WRONG);
    assert_int_equal(lease_verify_narrowed(root, &one, LEASE_AWS, is.layers, &is.mac), VERIFIED_NOT);
    assert_int_equal(lease_verify_narrowed(root, &one, LEASE_NONE, is.layers, &is.mac), VERIFIED_NOT);
    assert_int_equal(lease_verify_narrowed(root, &one, LEASE_GITHUB, SPAN("no hex"), &is.mac), VERIFIED_NOT);
    assert_int_equal(lease_verify_narrowed(root, &one, LEASE_GITHUB, SPAN_NONE, &is.mac), VERIFIED_NOT);
    dynbuf_free(&b);
    dynbuf_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(with_its_own_key), cmocka_unit_test(one_changed_byte),
                                       cmocka_unit_test(one_changed_byte_of_a_chunk),
                                       cmocka_unit_test(what_no_pair_signs),
                                       cmocka_unit_test(narrowed_by_who_has_it)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
