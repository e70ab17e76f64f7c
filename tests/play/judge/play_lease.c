/* Leases for the plays of the judge. */
#include "tests/play/judge/play_lease.h"

static const char tag[] = "QZ7XWK";

const char *text_of(uint8_t n)
{
    static char text[8][LEASE_TEXT_MAX + 1];
    uint8_t stream[LEASE_STREAM];
    memset(stream, n, sizeof(stream));
    size_t len = lease_text(LEASE_GITHUB, tag, stream, text[n % 8]);
    text[n % 8][len] = '\0';
    return text[n % 8];
}

struct wire_lease lease_of(uint8_t n)
{
    struct wire_lease l = {.id = {{n}},
                           .sandbox = SPAN("sb"),
                           .session = SPAN("ses"),
                           .credential = SPAN("leased"),
                           .tag = span_str(tag),
                           .format = LEASE_GITHUB,
                           .state = LEASE_LIVE,
                           .expires_ms = UINT64_MAX / 2};
    struct dynbuf b;
    dynbuf_init(&b, 256);
    msg_put_span(&b, l.credential);
    digest_of(dynbuf_span(&b), &l.meaning);
    dynbuf_free(&b);
    digest_of(span_str(text_of(n)), &l.text);
    return l;
}

void tell_lease(struct play *p, const struct wire_lease *l)
{
    struct dynbuf *b = from(p);
    msg_put_u16(b, 1);
    wire_put_lease(b, l);
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_LEASE, 0, -1), 0);
}

void open_with(struct play *p, const char *policy, struct wire_lease *l)
{
    play_all(p, policy);
    *l = lease_of(1);
    tell_lease(p, l);
}

void expect_recorded(struct play *p, unsigned n, const char *code)
{
    struct wire_record r;
    struct msg_in m = expect(p, ROLE_LEDGER, M_AUDIT, XID(n));
    assert_int_equal(wire_get_record(&m, &r), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_true(span_eq(r.code, span_str(code)));
}

void expect_refused(struct play *p, unsigned n, const char *code)
{
    expect_reply(p, XID(n), 403, code);
    expect_recorded(p, n, code);
}

void expect_passes(struct play *p, unsigned n)
{
    struct wire_forward f = expect_forward(p, XID(n), NULL);
    for (size_t i = 0; i < f.request.nfields; i++)
        assert_false(span_ieq(f.request.field[i].name, SPAN("authorization")));
    give_result(p, XID(n), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(p, XID(n), false);
}
