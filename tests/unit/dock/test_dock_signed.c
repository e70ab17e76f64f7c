/* Signed URLs: which token one is signed with, and that nobody makes the dock forget a neighbour's. */
#include "tests/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/dock/access/signed.h"

static struct dock dock;

static struct digest tenant(const char *name)
{
    struct digest d;
    digest_of(span_str(name), &d);
    return d;
}

static struct span token(unsigned n)
{
    static char text[ACCESS_TEXT + 1];
    (void)snprintf(text, sizeof(text), "at_%064x", n);
    return span_of(text, ACCESS_TEXT);
}

static void keep(const char *of, const char *box, unsigned n)
{
    const struct digest d = tenant(of);
    signed_keep(&dock, span_str(box), token(n), &d);
}

/* As the SDK signs it: SHA-256 of path, operation, user, token and time, in base64 without padding. */
static struct span sign(const char *path, bool write, const char *user, unsigned n, const char *expires)
{
    static char base64[64];
    char text[4096];
    struct digest sum;
    int len = snprintf(text, sizeof(text), "%s:%s:%s:%.*s%s%s", path, write ? "write" : "read", user,
                       SPAN_FMT(token(n)), *expires ? ":" : "", expires);
    digest_of(span_of(text, (size_t)len), &sum);
    (void)base64_encode(span_of(sum.b, DIGEST_BYTES), base64);
    return span_of(base64, 43);
}

static struct signed_url url(const char *path, bool write, const char *user, const char *expires, struct span by)
{
    return (struct signed_url){.path = span_str(path),
                               .user = span_str(user),
                               .expires = span_str(expires),
                               .write = write,
                               .signature = by};
}

static bool opens(struct signed_url u, const char *which, unsigned n)
{
    struct digest d, want;
    struct span box;
    if (!signed_find(&dock, &u, &box, &d))
        return false;
    token_hash(token(n), &want);
    assert_memory_equal(d.b, want.b, DIGEST_BYTES);
    assert_true(span_eq(box, span_str(which)));
    return true;
}

static int forget(void **state)
{
    free(dock.tokens);
    memset(&dock, 0, sizeof(dock));
    return 0;
}

static void a_url_is_of_one_file_one_way_and_one_time(void **state)
{
    struct signed_url u;
    assert_false(opens(url("a", false, "", "", sign("a", false, "", 1, "")), "box", 1)); /* nothing is known */
    keep("acme", "box", 1);
    keep("acme", "other", 2);
    assert_true(opens(url("a", false, "", "", sign("a", false, "", 1, "")), "box", 1));
    assert_true(opens(url("a", false, "", "", sign("a", false, "", 2, "")), "other", 2));
    assert_true(opens(url("a", true, "user", "99", sign("a", true, "user", 1, "99")), "box", 1));
    assert_false(opens(url("b", false, "", "", sign("a", false, "", 1, "")), "box", 1));
    assert_false(opens(url("a", true, "", "", sign("a", false, "", 1, "")), "box", 1));
    assert_false(opens(url("a", false, "user", "", sign("a", false, "", 1, "")), "box", 1));
    assert_false(opens(url("a", false, "", "100", sign("a", false, "", 1, "99")), "box", 1));
    assert_false(opens(url("a", false, "", "", sign("a", false, "", 1, "99")), "box", 1));
    assert_false(opens(url("a", false, "", "", sign("a", false, "", 3, "")), "box", 3));
    u = url("a", false, "", "", sign("a", false, "", 1, ""));
    u.box = SPAN("other");
    assert_false(opens(u, "box", 1));
    u.box = SPAN("box");
    assert_true(opens(u, "box", 1));
    u.signature.n--;
    assert_false(opens(u, "box", 1));
}

static void what_is_too_long_is_signed_by_nobody(void **state)
{
    static char path[SIGNED_PATH_MAX + 2];
    keep("acme", "box", 1);
    memset(path, 'a', SIGNED_PATH_MAX);
    assert_true(opens(url(path, true, "user", "1", sign(path, true, "user", 1, "1")), "box", 1));
    path[SIGNED_PATH_MAX] = 'a';
    assert_false(opens(url(path, true, "user", "1", sign(path, true, "user", 1, "1")), "box", 1));
    assert_false(opens(url("a", true, "", "123456789012345678901", sign("a", true, "", 1, "123456789012345678901")),
                       "box", 1));
    signed_keep(&dock, SPAN("box"), SPAN("e2b_00"), &(struct digest){{0}}); /* a key is none */
    assert_true(opens(url("a", false, "", "", sign("a", false, "", 1, "")), "box", 1));
}

static bool known(const char *box, unsigned n)
{
    return opens(url("a", false, "", "", sign("a", false, "", n, "")), box, n);
}

static void so_many_tokens_are_remembered_of_one_tenant(void **state)
{
    keep("neighbour", "its", 1);
    for (unsigned i = 0; i < SIGNED_TENANT_TOKENS; i++)
        keep("acme", "box", 100 + i);
    keep("acme", "box", 100); /* used again */
    keep("acme", "box", 99);
    assert_true(known("box", 99) && known("box", 100) && !known("box", 101) && known("box", 102));
    assert_true(known("its", 1));
}

static void who_has_most_loses_one_when_there_are_too_many(void **state)
{
    char of[16];
    keep("neighbour", "its", 1);
    for (unsigned i = 0; i < SIGNED_TOKENS - 1; i++) {
        (void)snprintf(of, sizeof(of), "t%u", i / (SIGNED_TENANT_TOKENS - 1));
        keep(of, "box", 100 + i);
    }
    for (unsigned i = 0; i < SIGNED_TENANT_TOKENS; i++)
        keep("newcomer", "new", 9000 + i);
    assert_true(known("its", 1) && known("new", 9000 + SIGNED_TENANT_TOKENS - 1));
    assert_false(known("box", 100));
}

#define ALONE(f) cmocka_unit_test_teardown(f, forget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALONE(a_url_is_of_one_file_one_way_and_one_time), ALONE(what_is_too_long_is_signed_by_nobody),
        ALONE(so_many_tokens_are_remembered_of_one_tenant), ALONE(who_has_most_loses_one_when_there_are_too_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
