/* The judge and tokens in answers: the carrier is told where they are, the ledger whose the leases in their places
 * are, and such a lease opens what its credential is for, as any other. */
#include "proxy/lease/wire_swap.h"
#include "tests/play/judge/play_lease.h"

#define POLICY "allow read GET /token cred=1\nallow read GET / cred=4\nof-answers\n"

static struct ask *bearer(struct ask *a, uint8_t n)
{
    static char value[LEASE_TEXT_MAX + 8] = "Bearer ";
    size_t k = 0;
    for (const char *t = text_of(n); t[k] != '\0'; k++)
        value[7 + k] = t[k];
    value[7 + k] = '\0';
    a->header = "Authorization";
    a->value = value;
    return a;
}

/* Its answer may have a token. */
static void send_for_token(struct play *p, unsigned n, bool first)
{
    struct wire_swap w;
    give_request(p, XID(n), GET("/token"));
    if (first) {
        expect(p, ROLE_CARRIER, M_UPSTREAM, 0);
        expect(p, ROLE_KEEPER, M_RELEASE, XID(n));
    }
    struct wire_forward f = expect_forward(p, XID(n), NULL);
    struct msg_in m = msg_in(f.swaps);
    assert_int_equal(msg_get_u8(&m), 1);
    assert_int_equal(wire_get_swap(&m, &w), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_true(span_eq(w.credential, SPAN("leased")) && span_eq(w.expires, SPAN("/expires_in")));
    assert_true(span_eq(w.ends, SPAN("/at")));
    assert_true(w.ntoken == 1 && span_eq(w.token[0], SPAN("/token")) && w.nkeep == 0 && w.lifetime_ms > 0);
}

static int give_taken(struct play *p, unsigned n, const char *credential)
{
    struct wire_lease l = lease_of(1);
    struct wire_swapped w = {.credential = span_str(credential),
                             .lease = l.id,
                             .tag = l.tag,
                             .text = l.text,
                             .expires_ms = PLAY_WALL + 60000};
    struct dynbuf *b = from(p);
    msg_put_u8(b, 1);
    wire_put_swapped(b, &w);
    return give(p, ROLE_CARRIER, 0, M_SWAP_TAKE, XID(n), -1);
}

static void expect_lease(struct play *p, unsigned n)
{
    struct wire_lease l, is = lease_of(1);
    struct msg_in m = expect(p, ROLE_LEDGER, M_LEASE_TAKE, XID(n));
    assert_int_equal(msg_get_u8(&m), 1);
    assert_int_equal(wire_get_lease(&m, &l), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_true(id_eq(&l.id, &is.id) && id_is_none(&l.parent) && l.nlayers == 0);
    assert_true(span_eq(l.sandbox, SPAN("sb")) && span_eq(l.session, SPAN("ses")));
    assert_true(span_eq(l.credential, SPAN("leased")) && span_eq(l.by, SPAN(LEASE_BY_ANSWER)));
    assert_memory_equal(&l.meaning, &is.meaning, sizeof(l.meaning));
    assert_memory_equal(&l.text, &is.text, sizeof(l.text));
    assert_true(l.format == LEASE_GITHUB && l.expires_ms == PLAY_WALL + 60000);
}

static void give_written(struct play *p, unsigned n, bool ok)
{
    struct dynbuf *b = from(p);
    msg_put_u8(b, ok);
    msg_put_span(b, ok ? SPAN_NONE : SPAN("it has as many as it may have"));
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_LEASE_TAKE, XID(n), -1), 0);
}

static void expect_said(struct play *p, unsigned n, bool ok)
{
    struct msg_in m = expect(p, ROLE_CARRIER, M_SWAP_TAKE, XID(n));
    assert_int_equal(msg_get_bool(&m), ok);
    assert_int_equal(msg_get_span(&m, 256).n > 0, !ok);
    assert_int_equal(msg_end(&m), 0);
}

static void finish(struct play *p, unsigned n, bool relayed, const char *code)
{
    give_result(p, XID(n), OUTCOME_ANSWERED, 200, relayed, code);
    if (!relayed)
        expect_reply(p, XID(n), 502, "answer-refused");
    expect_outcome(p, XID(n), false);
}

static void a_token_of_an_answer_becomes_a_lease(void **state)
{
    struct play p;
    struct wire_lease l = lease_of(1);
    play_all(&p, POLICY);
    send_for_token(&p, 1, true);
    assert_int_equal(give_taken(&p, 1, "leased"), 0);
    expect_lease(&p, 1);
    tell_lease(&p, &l);
    give_written(&p, 1, true);
    expect_said(&p, 1, true);
    finish(&p, 1, true, "");
    /* It is used: the keeper is asked by the lease's id, each time. */
    for (unsigned n = 2; n < 4; n++) {
        struct id asked;
        give_request(&p, XID(n), bearer(GET("/x"), 1));
        struct msg_in m = expect(&p, ROLE_KEEPER, M_RELEASE, XID(n));
        m.rest = span_from(m.rest, m.rest.n - 1 - ID_BYTES);
        msg_get_id(&m, &asked);
        assert_true(id_eq(&asked, &l.id));
        expect_passes(&p, n);
    }
    play_close(&p);
}

/* It is asked for with a certificate, which goes beside what stands in the request. */
static void what_is_beside_asks_too(void **state)
{
    struct play p;
    play_all(&p, "allow read GET /token cred=2\nof-answers asks-beside\n");
    send_for_token(&p, 1, true);
    assert_int_equal(give_taken(&p, 1, "leased"), 0);
    expect_lease(&p, 1);
    give_written(&p, 1, true);
    expect_said(&p, 1, true);
    finish(&p, 1, true, "");
    play_close(&p);
}

static void what_is_not_written_down_does_not_go_on(void **state)
{
    struct play p;
    play_all(&p, POLICY);
    send_for_token(&p, 1, true);
    assert_int_equal(give_taken(&p, 1, "leased"), 0);
    expect_lease(&p, 1);
    give_written(&p, 1, false);
    expect_said(&p, 1, false);
    finish(&p, 1, false, "token-unswapped");
    give_written(&p, 1, true); /* too late */
    expect_nothing(&p);
    send_for_token(&p, 2, false);
    assert_int_equal(give_taken(&p, 2, "cred2"), -1); /* no credential of answers */
    finish(&p, 2, false, "token-unswapped");
    play_close(&p);
}

static void who_brings_none_is_told_whom_to_ask(void **state)
{
    struct play p;
    struct wire_lease l = lease_of(1);
    play_all(&p, POLICY);
    for (unsigned n = 1; n < 4; n++) {
        static const char *const codes[] = {"", "lease-required", "lease-required", "lease-ended"};
        struct span challenge = SPAN_NONE;
        struct ask *a = GET("/x");
        if (n == 2) {
            a->header = "Authorization";
            a->value = "Bearer one-of-somebody-else";
        }
        if (n == 3) {
            l.state = LEASE_EXPIRED;
            tell_lease(&p, &l);
            a = bearer(a, 1);
        }
        give_request(&p, XID(n), a);
        struct wire_reply r = expect_reply(&p, XID(n), 401, codes[n]);
        for (size_t i = 0; i < r.head.nfields; i++)
            if (span_ieq(r.head.field[i].name, SPAN("www-authenticate")))
                challenge = r.head.field[i].value;
        assert_true(span_eq(challenge, SPAN("Bearer realm=\"there\"")));
        expect_recorded(&p, n, codes[n]);
    }
    play_close(&p);
}

/* The keeper that had it is another one now. */
static void a_token_that_is_gone_is_asked_for_again(void **state)
{
    struct play p;
    struct wire_lease l = lease_of(1);
    play_all(&p, POLICY);
    tell_lease(&p, &l);
    give_request(&p, XID(1), bearer(GET("/x"), 1));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_forward(&p, XID(1), NULL);
    struct dynbuf *b = from(&p);
    msg_put_span(b, SPAN("token-gone"));
    msg_put_span(b, SPAN("the token behind the lease is not there any more"));
    assert_int_equal(give(&p, ROLE_KEEPER, 0, M_RELEASE_FAILED, XID(1), -1), 0);
    expect(&p, ROLE_CARRIER, M_CANCEL, XID(1));
    expect_reply(&p, XID(1), 401, "lease-ended");
    give_result(&p, XID(1), OUTCOME_NOT_SENT, 0, false, "cancelled");
    expect_outcome(&p, XID(1), false);
    play_close(&p);
}

/* Or it would log in again and again, for what it may not have. */
static void who_may_not_is_not_told_to_ask_again(void **state)
{
    struct play p;
    struct wire_lease l = lease_of(1);
    play_all(&p, "deny read GET /no cred=4 rule=n\n" POLICY);
    l.state = LEASE_EXPIRED;
    tell_lease(&p, &l);
    for (unsigned n = 1; n <= 2; n++) { /* that one has ended, of the other nobody was told */
        give_request(&p, XID(n), bearer(GET("/no"), (uint8_t)n));
        struct wire_reply r = expect_reply(&p, XID(n), 403, n == 1 ? "lease-ended" : "lease-unknown");
        for (size_t i = 0; i < r.head.nfields; i++)
            assert_false(span_ieq(r.head.field[i].name, SPAN("www-authenticate")));
        expect_recorded(&p, n, n == 1 ? "lease-ended" : "lease-unknown");
    }
    play_close(&p);
}

/* What the keeper has for leases that are dead now is of no use any more: of these, and of no others. */
static void a_token_is_forgotten_with_its_lease(void **state)
{
    struct play p;
    struct wire_lease dead = lease_of(1), hand = lease_of(2), lives = lease_of(3);
    struct id ended;
    play_all(&p, POLICY);
    dead.by = lives.by = SPAN(LEASE_BY_ANSWER);
    hand.by = SPAN("op");
    tell_lease(&p, &dead);
    expect_nothing(&p);
    dead.state = hand.state = LEASE_REVOKED;
    struct dynbuf *b = from(&p);
    msg_put_u16(b, 3);
    wire_put_lease(b, &hand);
    wire_put_lease(b, &lives);
    wire_put_lease(b, &dead);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_LEASE, 0, -1), 0);
    struct msg_in m = expect(&p, ROLE_KEEPER, M_TOKEN_END, 0);
    msg_get_id(&m, &ended);
    assert_true(msg_end(&m) == 0 && id_eq(&ended, &dead.id));
    expect_nothing(&p);
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_of_an_answer_becomes_a_lease),
        cmocka_unit_test(what_is_beside_asks_too),
        cmocka_unit_test(what_is_not_written_down_does_not_go_on),
        cmocka_unit_test(who_brings_none_is_told_whom_to_ask),
        cmocka_unit_test(who_may_not_is_not_told_to_ask_again),
        cmocka_unit_test(a_token_is_forgotten_with_its_lease),
        cmocka_unit_test(a_token_that_is_gone_is_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
