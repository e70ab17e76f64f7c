/* The judge and credentials that sign as the policy's template says: the keeper gets the parts that it names, as they
 * leave, and what cannot be put together is refused before anything is sent. */
#include "tests/play/judge/play_lease.h"

#include "common/sign/hmac.h"

#include <stdio.h>

#define RULES                                                                                                        \
    "allow read GET / cred=4\nallow read POST / cred=4\nhold write PUT / cred=4 rule=h\n"                            \
    "allow write PATCH / cred=4 rule=w op=api.write\n"
#define PARTS    RULES "signs-parts\n" /* {method}\n{sorted_query}\n{header.x-a}\n{body_sha256}, and {time} */
#define BODY     RULES "signs-body\n"  /* {time}.{body} */
#define BODYLESS RULES "signs-head\n"  /* {time}.{target} */

static struct wire_sign expect_release(struct play *p, unsigned n)
{
    struct digest d;
    struct id lease;
    struct wire_sign w;
    struct msg_in m = expect(p, ROLE_KEEPER, M_RELEASE, XID(n));
    assert_true(span_eq(msg_get_span(&m, 64), SPAN("leased")));
    (void)msg_get_span(&m, 5);
    (void)msg_get_span(&m, 64);
    (void)msg_get_u16(&m);
    (void)msg_get_span(&m, 16 * 1024);
    (void)msg_get_bool(&m);
    msg_get_digest(&m, &d);
    (void)msg_get_span(&m, 64);
    msg_get_digest(&m, &d);
    (void)msg_get_u64(&m);
    msg_get_id(&m, &lease);
    assert_true(msg_get_bool(&m));
    assert_int_equal(wire_get_sign(&m, &w), 0);
    assert_int_equal(msg_end(&m), 0);
    return w;
}

static struct span given(const struct wire_sign *w, const char *name)
{
    for (size_t i = 0; i < w->nfields; i++)
        if (span_eq(w->field[i].name, span_str(name)))
            return w->field[i].value;
    fail_msg("%s is not given", name);
    return SPAN_NONE;
}

/* What the client wrote in the fields of the signature does not leave. */
static void ends_well(struct play *p, unsigned n)
{
    struct wire_forward f = expect_forward(p, XID(n), NULL);
    assert_int_equal(f.release, RELEASE_COMES);
    give_result(p, XID(n), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(p, XID(n), false);
}

static void the_keeper_gets_the_parts(void **state)
{
    static const char hello[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    static const char empty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    struct play p;
    play_all(&p, PARTS);
    struct ask *a = POST("/x(", "hello");
    a->query = "b&a=1";
    a->header = "X-A";
    a->value = "one,two";
    a->more[0] = (struct http_field){SPAN("X-Signature"), SPAN("of the client")};
    give_request(&p, XID(1), a);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    struct wire_sign w = expect_release(&p, 1);
    assert_true(span_eq(w.method, SPAN("POST")) && span_eq(w.path, SPAN("/x(")) && span_eq(w.query, SPAN("?b&a=1")));
    assert_true(w.payload.n == 0 && w.chunks.n == 0 && w.nfields == 3);
    assert_true(span_eq(given(&w, "sorted_query"), SPAN("a=1&b=")));
    assert_true(span_eq(given(&w, "header.x-a"), SPAN("one,two")));
    assert_true(span_eq(given(&w, "body_sha256"), span_str(hello)));
    ends_well(&p, 1);
    give_request(&p, XID(2), GET("/x")); /* what is not there is empty, to who verifies as well */
    w = expect_release(&p, 2);
    assert_true(w.query.n == 0 && given(&w, "sorted_query").n == 0 && given(&w, "header.x-a").n == 0);
    assert_true(span_eq(given(&w, "body_sha256"), span_str(empty)));
    ends_well(&p, 2);
    play_close(&p);
}

static void refused_as(struct play *p, unsigned n, const char *words)
{
    expect_reply(p, XID(n), 400, words);
    expect_recorded(p, n, "cannot-sign");
}

static void what_can_be_read_in_two_ways_is_not_signed(void **state)
{
    struct play p;
    play_all(&p, PARTS);
    struct ask *a = GET("/x");
    a->header = "X-A";
    a->value = "1";
    a->more[0] = (struct http_field){SPAN("x-a"), SPAN("2")};
    give_request(&p, XID(1), a);
    refused_as(&p, 1, "a field twice");
    static const char *const others[] = {"X_A", "x.a", "X~A"}; /* to some servers it is that one */
    for (unsigned i = 0; i < 3; i++) {
        a->more[0] = (struct http_field){span_str(others[i]), SPAN("2")};
        give_request(&p, XID(3 + i), a);
        refused_as(&p, 3 + i, "a field twice");
    }
    a->header = NULL; /* nor by itself */
    give_request(&p, XID(6), a);
    refused_as(&p, 6, "a field twice");
    static char many[1024];
    for (size_t i = 0; i < sizeof(many) - 1; i++) /* more parts than are sorted */
        many[i] = i % 2 ? '&' : 'a';
    a = GET("/x");
    a->query = many;
    give_request(&p, XID(2), a);
    refused_as(&p, 2, "more parts");
    expect_nothing(&p);
    play_close(&p);
}

/* A body that is signed is read whole first; one that is not streams. */
static void the_body_comes_first_if_it_is_signed(void **state)
{
    static const char *const policy[] = {PARTS, BODY};
    struct play p;
    struct ask a = {.method = "POST", .path = "/x", .kind = 2, .declared = 5};
    for (int i = 0; i < 2; i++) {
        play_all(&p, policy[i]);
        give_request(&p, XID(1), &a);
        struct msg_in m = expect(&p, ROLE_FRONT, M_BODY_WANTED, XID(1));
        assert_int_equal(msg_get_u8(&m), 2);
        assert_true(i == 0 || msg_get_u64(&m) <= BODY_INLINE_MAX);
        struct dynbuf *b = from(&p);
        msg_put_u64(b, 5);
        msg_put_span(b, SPAN("hello"));
        assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_BODY_WHOLE, XID(1), -1), 0);
        expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
        struct wire_sign w = expect_release(&p, 1);
        assert_true(span_eq(w.payload, i == 0 ? SPAN_NONE : SPAN("hello")));
        ends_well(&p, 1);
        a.declared = BODY_INLINE_MAX + 1;
        give_request(&p, XID(2), &a);
        if (i == 1) { /* more than the keeper is given */
            expect_reply(&p, XID(2), 413, "read whole");
            expect_recorded(&p, 2, "body-too-large");
        } else {
            expect(&p, ROLE_FRONT, M_BODY_WANTED, XID(2));
            (void)from(&p);
            assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CANCEL, XID(2), -1), 0);
        }
        a.declared = 5;
        play_close(&p);
    }
    play_all(&p, BODYLESS);
    give_request(&p, XID(1), &a);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    struct wire_sign w = expect_release(&p, 1);
    assert_true(w.payload.n == 0 && w.nfields == 0);
    struct wire_forward f = expect_forward(&p, XID(1), NULL);
    assert_int_equal(f.body, BODY_STREAM);
    (void)from(&p);
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CANCEL, XID(1), -1), 0);
    while (p.n > 0) /* how it ends is another play's */
        expect(&p, p.out[p.first].to, p.out[p.first].type, p.out[p.first].id);
    play_close(&p);
}

/* What is held shows, and covers, nothing of the client's own signature, nor does a retry with another differ. */
static void what_is_held_leaves_the_clients_signature_out(void **state)
{
    struct play p;
    struct digest first = {{0}};
    play_all(&p, PARTS);
    for (unsigned n = 1; n <= 2; n++) {
        struct ask a = {
            .method = "PUT", .path = "/x", .body = "hello", .header = "X-Time", .value = n == 1 ? "1" : "2"};
        a.more[0] = (struct http_field){SPAN("x_signature"), n == 1 ? SPAN("one") : SPAN("other")};
        give_request(&p, XID(n), &a);
        struct wire_ticket t = expect_ticket_open(&p, XID(n));
        for (size_t i = 0; i < t.request.nfields; i++)
            assert_false(span_ieq(t.request.field[i].name, SPAN("x-time")) ||
                         span_ieq(t.request.field[i].name, SPAN("x_signature")));
        if (n == 1)
            first = t.record.request;
        assert_memory_equal(&first, &t.record.request, sizeof(first));
        give_ticket(&p, XID(n), 1, TICKET_DENIED);
        expect_reply(&p, XID(n), 403, NULL);
        expect_recorded(&p, n, "ticket-denied");
    }
    play_close(&p);
}

/* A lease of it is one text in the field of the signature. */
static void d12_a_lease_stands_where_the_signature_will(void **state)
{
    struct play p;
    struct wire_lease l;
    open_with(&p, PARTS "lease-required\n", &l);
    struct ask *a = GET("/x");
    a->header = "X-Signature";
    a->value = text_of(1);
    give_request(&p, XID(1), a);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    (void)expect_release(&p, 1);
    ends_well(&p, 1);
    a->value = "sha256=0123";
    give_request(&p, XID(2), a);
    expect_refused(&p, 2, "lease-required");
    a->header = "X-Time"; /* another field of the signature is no place for it */
    a->value = text_of(1);
    give_request(&p, XID(3), a);
    expect_refused(&p, 3, "lease-misplaced");
    play_close(&p);
}

/* A retry may be signed anew, but what leaves is what was held. */
static void a_hold_of_a_signed_request_says_what_leaves(void **state)
{
    static const char *const values[] = {
        "AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu-1/s3/aws4_request, SignedHeaders=host, "
        "Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "Bearer of-its-own"};
    for (unsigned i = 0; i < 2; i++) {
        struct play p;
        struct ask a = *POST("/w", "hello");
        a.header = "Authorization";
        a.value = values[i];
        play_all(&p, "hold write POST /w rule=writes\n");
        give_request(&p, XID(1), &a);
        (void)expect_ticket_open(&p, XID(1));
        give_ticket(&p, XID(1), 1, TICKET_PENDING);
        play_time(&p, 50000);
        expect_reply(&p, XID(1), 403, "held");
        struct span said = dynbuf_span(&p.got.payload);
        assert_int_equal(span_find(said, SPAN("with the signature that it was first sent with")) < said.n, i == 0);
        expect_audit(&p, XID(1), "hold", "held");
        play_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_keeper_gets_the_parts),
        cmocka_unit_test(what_can_be_read_in_two_ways_is_not_signed),
        cmocka_unit_test(the_body_comes_first_if_it_is_signed),
        cmocka_unit_test(what_is_held_leaves_the_clients_signature_out),
        cmocka_unit_test(d12_a_lease_stands_where_the_signature_will),
        cmocka_unit_test(a_hold_of_a_signed_request_says_what_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
