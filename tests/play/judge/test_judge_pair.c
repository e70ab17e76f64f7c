/* The judge and pairs: what a sandbox says it signed with a lease's key goes to the keeper, as digests, and nothing
 * happens before the keeper has seen that it did. */
#include "common/sign/canonical.h"
#include "tests/play/judge/play_lease.h"

#include <stdio.h>

#define POLICY                                                                                                       \
    "allow read GET / cred=4\nallow write PUT / cred=4 rule=w op=api.write\nhold write POST / cred=4 rule=h\n"       \
    "lease-signs lease-required\n"
#define NOW   "20260101T001640Z" /* when a play begins */
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HEX   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* The id of pair n, from a stream of bytes that are n. */
static const char *id_of(uint8_t n)
{
    static char text[4][LEASE_TEXT_MAX + 1];
    uint8_t stream[LEASE_STREAM];
    memset(stream, n, sizeof(stream));
    size_t len = lease_text(LEASE_AWS, "QZ7XWK", stream, text[n % 4]);
    text[n % 4][len] = '\0';
    return text[n % 4];
}

static struct wire_lease pair_of(uint8_t n)
{
    struct wire_lease l = lease_of(n);
    l.format = LEASE_AWS;
    digest_of(span_str(id_of(n)), &l.text);
    return l;
}

static void open_pair(struct play *p, struct wire_lease *l)
{
    play_all(p, POLICY);
    *l = pair_of(1);
    tell_lease(p, l);
}

/* a, signed with pair n over these names, which are those of its fields. */
static struct ask *as(struct ask *a, uint8_t n, const char *day, const char *names)
{
    static char value[8][1024];
    static unsigned at;
    char *to = value[at++ % 8];
    snprintf(to, sizeof(value[0]),
             "AWS4-HMAC-SHA256 Credential=%s/%s/us-east-1/s3/aws4_request, SignedHeaders=%s, Signature=" HEX,
             id_of(n), day, names);
    a->header = "Authorization";
    a->value = to;
    return a;
}

static struct ask *as_usual(struct ask *a, uint8_t n)
{
    a->more[0] = (struct http_field){SPAN("X-Amz-Date"), SPAN(NOW)};
    a->more[1] = (struct http_field){SPAN("x-amz-content-sha256"), SPAN("UNSIGNED-PAYLOAD")};
    return as(a, n, "20260101", "host;x-amz-content-sha256;x-amz-date");
}

static struct wire_signed expect_asked(struct play *p, unsigned n)
{
    struct wire_signed w;
    struct msg_in m = expect(p, ROLE_KEEPER, M_LEASE_VERIFY, XID(n));
    assert_int_equal(wire_get_signed(&m, &w), 0);
    assert_int_equal(msg_end(&m), 0);
    return w;
}

static void give_found(struct play *p, unsigned n, enum wire_verified found)
{
    msg_put_u8(from(p), (uint8_t)found);
    assert_int_equal(give(p, ROLE_KEEPER, 0, M_LEASE_VERIFIED, XID(n), -1), 0);
}

static void expect_told(struct play *p, unsigned n, const char *words)
{
    expect_reply(p, XID(n), 403, words);
    expect_recorded(p, n, "lease-unproven");
}

/* What the keeper gets is the canonical request with the fields that were signed; nothing is sent before its word. */
static void the_keeper_sees_it_first(void **state)
{
    struct play p;
    struct wire_lease l;
    struct sign_request r = {
        .method = SPAN("GET"), .path = SPAN("/x%28"), .query = SPAN("a=1&b="), .payload = SPAN("UNSIGNED-PAYLOAD")};
    struct digest canonical;
    struct arena a;
    open_pair(&p, &l);
    arena_init(&a, 4096);
    assert_int_equal(sign_add_field(&r, &a, SPAN("host"), SPAN("api.example")), 0);
    assert_int_equal(sign_add_field(&r, &a, SPAN("x-amz-content-sha256"), SPAN("UNSIGNED-PAYLOAD")), 0);
    assert_int_equal(sign_add_field(&r, &a, SPAN("x-amz-date"), SPAN(NOW)), 0);
    sign_canonical(&r, &canonical);
    arena_free(&a);
    give_request(&p, XID(1), as_usual(&(struct ask){.method = "GET", .path = "/x(", .query = "b&a=1"}, 1));
    struct wire_signed w = expect_asked(&p, 1);
    assert_true(id_eq(&w.lease, &l.id) && w.format == LEASE_AWS && w.scheme == SIGN_AWS4);
    assert_true(span_eq(w.stamp, SPAN(NOW)) && span_eq(w.region, SPAN("us-east-1")) &&
                span_eq(w.service, SPAN("s3")));
    assert_memory_equal(&w.canonical, &canonical, sizeof(canonical));
    assert_true(span_eq(w.signature, SPAN(HEX)) && w.chunks.n == 0 && !w.trailer);
    expect_nothing(&p);
    give_found(&p, 1, VERIFIED_RIGHT);
    give_found(&p, 1, VERIFIED_WRONG); /* a second word is none */
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_passes(&p, 1);
    play_close(&p);
}

static void a_body_in_chunks_is_told_by_its_digests(void **state)
{
    static const char body[] = "3;chunk-signature=" HEX "\r\nabc\r\n0;chunk-signature=" HEX "\r\n\r\n";
    struct play p;
    struct wire_lease l;
    struct digest abc, none;
    open_pair(&p, &l);
    struct ask *a = as_usual(&(struct ask){.method = "PUT", .path = "/x", .body = body}, 1);
    a->more[1].value = SPAN("STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
    give_request(&p, XID(1), a);
    struct wire_signed w = expect_asked(&p, 1);
    digest_of(SPAN("abc"), &abc);
    digest_of(SPAN_NONE, &none);
    assert_int_equal(w.chunks.n, 2 * WIRE_CHUNK_SAID);
    assert_memory_equal(w.chunks.p, &abc, DIGEST_BYTES);
    assert_memory_equal(w.chunks.p + DIGEST_BYTES, HEX, WIRE_CHUNK_TEXT);
    assert_memory_equal(w.chunks.p + WIRE_CHUNK_SAID, &none, DIGEST_BYTES);
    give_found(&p, 1, VERIFIED_CHUNK_WRONG);
    expect_told(&p, 1, "chunk");
    play_close(&p);
}

/* What is seen here is not asked about. */
static void what_cannot_be_right_is_not_asked(void **state)
{
    static const struct {
        const char *names, *day, *stamp, *payload, *more, *words;
    } row[] = {
        {"host;x-amz-content-sha256", "20260101", NOW, EMPTY, "", "does not cover"},
        {"x-amz-content-sha256;x-amz-date", "20260101", NOW, EMPTY, "", "does not cover"},
        {"host;x-amz-content-sha256;x-amz-date", "20260101", NOW, EMPTY, "x-amz-meta-a", "does not cover"},
        {"host;x-amz-content-sha256;x-amz-date;x-b", "20260101", NOW, EMPTY, "", "is not there"},
        {"host;x-amz-content-sha256;x-amz-date;content-length;expect", "20260101", NOW, EMPTY, "", "is not there"},
        {"host;x-amz-content-sha256;x-amz-date", "20260101", "", EMPTY, "", "says no time"},
        {"host;x-amz-content-sha256;x-amz-date", "20260101", "20260131T240000Z", EMPTY, "", "says no time"},
        {"host;x-amz-content-sha256;x-amz-date", "20260102", NOW, EMPTY, "", "another day"},
        {"host;x-amz-content-sha256;x-amz-date", "20260101", "20260101T003141Z", EMPTY, "", "15 minutes"},
        {"host;x-amz-content-sha256;x-amz-date", "20260101", "20260101T000139Z", EMPTY, "", "15 minutes"},
        {"host;x-amz-content-sha256;x-amz-date", "20260101", NOW, HEX, "", "another one than the SHA-256"},
    };
    struct play p;
    struct wire_lease l;
    open_pair(&p, &l);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct ask *a = as(GET("/x"), 1, row[i].day, row[i].names);
        a->more[0] = (struct http_field){SPAN("x-amz-date"), span_str(row[i].stamp)};
        a->more[1] = (struct http_field){SPAN("x-amz-content-sha256"), span_str(row[i].payload)};
        a->more[2] = (struct http_field){span_str(row[i].more), SPAN("1")};
        give_request(&p, XID(i + 1), a);
        expect_told(&p, (unsigned)i + 1, row[i].words);
    }
    expect_nothing(&p);
    play_close(&p);
}

static void a_wrong_one_is_refused_and_one_nobody_can_see_as_well(void **state)
{
    struct play p;
    struct wire_lease l;
    open_pair(&p, &l);
    give_request(&p, XID(1), as_usual(GET("/x"), 1));
    (void)expect_asked(&p, 1);
    give_found(&p, 1, VERIFIED_WRONG);
    expect_told(&p, 1, "not made with the lease's key");
    give_request(&p, XID(2), as_usual(GET("/x"), 1));
    (void)expect_asked(&p, 2);
    give_found(&p, 2, VERIFIED_NOT);
    expect_reply(&p, XID(2), 503, "internal");
    expect_recorded(&p, 2, "internal");
    give_found(&p, 2, VERIFIED_RIGHT); /* late */
    expect_nothing(&p);
    msg_put_u8(from(&p), VERIFIED_RIGHT + 1);
    assert_int_equal(give(&p, ROLE_KEEPER, 0, M_LEASE_VERIFIED, XID(3), -1), -1);
    play_close(&p);
}

static void a_keeper_that_does_not_answer(void **state)
{
    struct play p;
    struct wire_lease l;
    open_pair(&p, &l);
    give_request(&p, XID(1), as_usual(GET("/x"), 1));
    (void)expect_asked(&p, 1);
    play_time(&p, 10 * 1000);
    expect_reply(&p, XID(1), 503, "internal");
    expect_recorded(&p, 1, "internal");
    give_request(&p, XID(2), as_usual(GET("/x"), 1));
    (void)expect_asked(&p, 2);
    play_gone(&p, ROLE_KEEPER, 0);
    expect_reply(&p, XID(2), 503, "internal");
    expect_recorded(&p, 2, "internal");
    give_request(&p, XID(3), as_usual(GET("/x"), 1)); /* there is none to be asked */
    expect_reply(&p, XID(3), 503, "internal");
    expect_recorded(&p, 3, "internal");
    play_close(&p);
}

/* The client goes, the lease is revoked, the session ends, another policy comes: looked at when the word is there. */
static void what_changes_while_it_waits(void **state)
{
    struct play p;
    struct wire_lease l;
    open_pair(&p, &l);
    give_request(&p, XID(1), as_usual(GET("/x"), 1));
    (void)expect_asked(&p, 1);
    (void)from(&p);
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CANCEL, XID(1), -1), 0);
    give_found(&p, 1, VERIFIED_RIGHT);
    expect_nothing(&p);
    give_request(&p, XID(2), as_usual(GET("/x"), 1));
    (void)expect_asked(&p, 2);
    play_policy(&p, "deny read GET / rule=no say=not_now\nlease-signs\n");
    give_found(&p, 2, VERIFIED_RIGHT);
    expect_reply(&p, XID(2), 403, "denied");
    (void)expect(&p, ROLE_LEDGER, M_AUDIT, XID(2));
    play_policy(&p, POLICY);
    give_request(&p, XID(3), as_usual(GET("/x"), 1));
    (void)expect_asked(&p, 3);
    l.state = LEASE_REVOKED;
    l.ended_ms = 1;
    tell_lease(&p, &l);
    give_found(&p, 3, VERIFIED_RIGHT);
    expect_refused(&p, 3, "lease-ended");
    play_close(&p);
}

/* A body that is not read, since its writes are frozen, cannot be compared with anything, and need not be. */
static void frozen_before_its_body_came(void **state)
{
    struct play p;
    struct wire_lease l;
    open_pair(&p, &l);
    give_bool(&p, ROLE_LEDGER, M_FREEZE, 0, true);
    struct ask *a = as_usual(&(struct ask){.method = "PUT", .path = "/x", .kind = 2, .declared = 100}, 1);
    a->more[1].value = SPAN("STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
    give_request(&p, XID(1), a);
    expect_refused(&p, 1, "frozen");
    a->more[1].value = SPAN("UNSIGNED-PAYLOAD");
    give_request(&p, XID(2), a);
    (void)expect_asked(&p, 2);
    give_found(&p, 2, VERIFIED_RIGHT);
    expect_refused(&p, 2, "frozen");
    play_close(&p);
}

/* D32: to know another sandbox's id is nothing; to sign with its key is a leak. */
static void d32_another_sandboxs_pair(void **state)
{
    struct play p;
    struct wire_lease l, other = pair_of(2);
    open_pair(&p, &l);
    other.sandbox = SPAN("another");
    tell_lease(&p, &other);
    give_request(&p, XID(1), as_usual(GET("/x"), 2));
    (void)expect_asked(&p, 1);
    give_found(&p, 1, VERIFIED_WRONG);
    expect_told(&p, 1, "not made with the lease's key");
    struct ask *named = GET("/x");
    named->header = "X-Note";
    named->value = id_of(2);
    give_request(&p, XID(2), named);
    expect_refused(&p, 2, "lease-misplaced");
    named->header = "X-Amz-Security-Token"; /* its own, without a signature */
    named->value = id_of(1);
    give_request(&p, XID(3), named);
    expect_refused(&p, 3, "lease-misplaced");
    give_request(&p, XID(4), as_usual(GET("/x"), 2));
    (void)expect_asked(&p, 4);
    give_found(&p, 4, VERIFIED_RIGHT);
    (void)expect(&p, ROLE_LEDGER, M_LEASE_LEAK, XID(4));
    expect_refused(&p, 4, "lease-leaked");
    play_close(&p);
}

/* The same in bytes that stream through, behind a signature of its own that was seen to be right. */
static void d32_another_sandboxs_id_in_a_stream(void **state)
{
    struct play p;
    struct wire_lease l, other = pair_of(2);
    open_pair(&p, &l);
    other.sandbox = SPAN("another");
    tell_lease(&p, &other);
    give_request(&p, XID(1), as_usual(&(struct ask){.method = "PUT", .path = "/x", .kind = 2, .declared = 1000}, 1));
    (void)expect_asked(&p, 1);
    give_found(&p, 1, VERIFIED_RIGHT);
    expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_forward(&p, XID(1), NULL);
    expect(&p, ROLE_FRONT, M_BODY_WANTED, XID(1));
    dynbuf_add(from(&p), span_str(id_of(2)));
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_BODY, XID(1), -1), 0);
    expect(&p, ROLE_CARRIER, M_CANCEL, XID(1)); /* and the ledger hears of no leak */
    give_result(&p, XID(1), OUTCOME_NOT_SENT, 0, false, "cancelled");
    expect_reply(&p, XID(1), 403, "lease-misplaced");
    expect_outcome(&p, XID(1), false);
    play_close(&p);
}

/* After a reload that gave its credential another name, too: what it was for is not asked by name. */
static void d32_another_sandboxs_id_after_a_reload(void **state)
{
    static const char *const policies[] = {POLICY "renamed-credential\n", POLICY "redefined\n",
                                           "allow read GET / cred=4\nredefined\n"};
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        struct play p;
        struct wire_lease l, other = pair_of(2);
        open_pair(&p, &l);
        other.sandbox = SPAN("another");
        tell_lease(&p, &other);
        play_policy(&p, policies[i]);
        struct ask *named = GET("/x");
        named->header = "X-Note";
        named->value = id_of(2);
        give_request(&p, XID(1), named);
        expect_refused(&p, 1, "lease-misplaced");
        play_close(&p);
    }
}

/* D13: an SDK signs for every host it speaks to. Its own pair is refused where it is not for, and stays good; but not
 * in another generation of its sandbox, which has it from elsewhere. */
static void d13_its_own_pair_at_another_host(void **state)
{
    struct play p;
    struct wire_lease l;
    open_pair(&p, &l);
    struct ask *a = as_usual(GET("/x"), 1), *named = GET("/x");
    a->host = named->host = "elsewhere.example";
    named->header = "X-Note";
    named->value = id_of(1);
    give_request(&p, XID(1), a);
    expect_refused(&p, 1, "lease-not-for-this");
    give_request(&p, XID(2), named);
    expect_refused(&p, 2, "lease-not-for-this");
    expect_nothing(&p);
    a->host = NULL;
    give_request(&p, XID(3), a);
    (void)expect_asked(&p, 3);
    give_found(&p, 3, VERIFIED_RIGHT);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(3));
    expect_passes(&p, 3);
    l.generation = 7;
    tell_lease(&p, &l);
    a->host = "elsewhere.example";
    give_request(&p, XID(4), a);
    (void)expect(&p, ROLE_LEDGER, M_LEASE_LEAK, XID(4));
    expect_refused(&p, 4, "lease-leaked");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_keeper_sees_it_first),
        cmocka_unit_test(a_body_in_chunks_is_told_by_its_digests),
        cmocka_unit_test(what_cannot_be_right_is_not_asked),
        cmocka_unit_test(a_wrong_one_is_refused_and_one_nobody_can_see_as_well),
        cmocka_unit_test(a_keeper_that_does_not_answer),
        cmocka_unit_test(what_changes_while_it_waits),
        cmocka_unit_test(frozen_before_its_body_came),
        cmocka_unit_test(d32_another_sandboxs_pair),
        cmocka_unit_test(d32_another_sandboxs_id_in_a_stream),
        cmocka_unit_test(d32_another_sandboxs_id_after_a_reload),
        cmocka_unit_test(d13_its_own_pair_at_another_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
