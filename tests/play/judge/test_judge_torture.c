/* F9: the n-th allocation of the judge fails, for every n, over whole plays. Whatever fails, nothing is sent that
 * was not written down, nothing is sent twice, and what is not sent is refused. */
#include "common/lease/wire_lease.h"
#include "tests/play/judge/play.h"

#include <stdlib.h>

static unsigned long countdown;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static bool fails(void)
{
    return play_inside && countdown > 0 && --countdown == 0;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

struct seen {
    unsigned forwards, replies, written, released;
    struct digest digest;
};

/* The other roles: each answers what it is asked, as if all were well. */
static void others(struct play *p, const struct sent *f, struct seen *s)
{
    struct wire_ticket t;
    struct dynbuf *b;
    struct msg_in m = msg_in(dynbuf_span(&f->payload));
    switch (f->type) {
    case M_TICKET_OPEN:
        assert_int_equal(wire_get_ticket(&m, &t), 0);
        s->digest = t.record.request;
        give_ticket(p, f->id, 1, TICKET_PENDING);
        give_changed(p, 1, TICKET_APPROVED, "ada", "");
        break;
    case M_CLAIM:
        s->written++;
        give_claimed(p, f->id, POST("/w", "hello"), &s->digest);
        break;
    case M_INTENT:
        s->written++;
        give_bool(p, ROLE_LEDGER, M_INTENT_OK, f->id, true);
        break;
    case M_BODY_WANTED:
        b = from(p);
        msg_put_u64(b, 5);
        msg_put_span(b, SPAN("hello"));
        assert_int_equal(give(p, ROLE_FRONT, FRONT, M_BODY_WHOLE, f->id, -1), 0);
        break;
    case M_RELEASE: s->released++; break;
    case M_FORWARD:
        s->forwards++;
        assert_int_equal(s->written, 1);
        assert_int_equal(s->released, 1);
        give_result(p, f->id, OUTCOME_ANSWERED, 201, true, "");
        break;
    case M_REPLY: s->replies++; break;
    default: break;
    }
}

static bool play_once(const char *policy, const struct ask *a, unsigned long nth)
{
    struct play p;
    struct seen s = {0};
    play_all(&p, policy);
    countdown = nth;
    give_request(&p, XID(1), a);
    for (unsigned i = 0; p.first != p.n && i < 100; i++) {
        enum role_id to = p.out[p.first].to;
        expect(&p, to, p.out[p.first].type, p.out[p.first].id);
        others(&p, &p.got, &s);
    }
    bool failed = countdown == 0;
    countdown = 0;
    assert_true(s.forwards <= 1);
    if (!failed) {
        assert_int_equal(s.forwards, 1);
        assert_int_equal(s.replies, 0);
    }
    /* The one frame that is lost may be the refusal itself, or the question whose answer is waited for. */
    if (judge_exchanges(p.j) != 0) {
        from(&p);
        assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CANCEL, XID(1), -1), 0);
        play_gone(&p, ROLE_LEDGER, 0);
        play_gone(&p, ROLE_CARRIER, 0);
    }
    assert_int_equal(judge_exchanges(p.j), 0);
    while (p.first != p.n)
        expect(&p, p.out[p.first].to, p.out[p.first].type, p.out[p.first].id);
    play_close(&p);
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    static const char policy[] = "hold write POST /w rule=w cred=1 need\nallow write POST /a rule=a cred=1\n";
    const struct ask asks[] = {
        {.method = "POST", .path = "/w", .body = "hello"},
        {.method = "POST", .path = "/w", .kind = 2, .declared = 5},
        {.method = "POST", .path = "/a", .body = "hello"},
    };
    play_torture = true;
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        unsigned long n = 1;
        while (play_once(policy, &asks[i], n))
            assert_true(++n < 1000);
        assert_true(n > 5); /* the wrappers are in place */
    }
    covers("F9 INV7");
}

/* Nothing of what there is to do was let go. */
static void expect_no_send(struct play *p)
{
    while (p->first != p->n) {
        assert_true(p->out[p->first].type != M_FORWARD && p->out[p->first].type != M_INTENT);
        expect(p, p->out[p->first].to, p->out[p->first].type, p->out[p->first].id);
    }
}

static void tell(struct play *p, struct wire_lease *l, enum lease_state state)
{
    struct dynbuf *b = from(p);
    l->state = state;
    msg_put_u16(b, 1);
    wire_put_lease(b, l);
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_LEASE, 0, -1), 0);
}

static bool revoked_once(unsigned long nth)
{
    static const struct ask use = {
        .method = "GET", .path = "/", .header = "Authorization", .value = "Bearer ghp_QZ7XWK1"};
    struct wire_lease l = {.id = {{1}},
                           .sandbox = SPAN("sb"),
                           .session = SPAN("ses"),
                           .credential = SPAN("leased"),
                           .tag = SPAN("QZ7XWK"),
                           .format = LEASE_GITHUB,
                           .expires_ms = UINT64_MAX / 2};
    struct dynbuf b;
    struct play p;
    dynbuf_init(&b, 256);
    msg_put_span(&b, l.credential);
    digest_of(dynbuf_span(&b), &l.meaning);
    dynbuf_free(&b);
    digest_of(SPAN("ghp_QZ7XWK1"), &l.text);
    play_all(&p, "allow read GET / cred=4\n");
    tell(&p, &l, LEASE_LIVE);
    countdown = nth;
    tell(&p, &l, LEASE_REVOKED);
    bool failed = countdown == 0;
    countdown = 0;
    give_request(&p, XID(1), &use);
    expect_reply(&p, XID(1), 403, "lease-ended");
    expect_no_send(&p);
    play_close(&p);
    return failed;
}

static bool frozen_once(unsigned long nth)
{
    struct wire_sandbox s = {.name = SPAN("sb"), .session = SPAN("ses"), .frozen = SPAN("a lease was leaked")};
    struct play p;
    play_all(&p, "allow write POST /a rule=a\n");
    struct dynbuf *b = from(&p);
    wire_put_sandbox(b, &s);
    msg_put_u8(b, false);
    countdown = nth;
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
    bool failed = countdown == 0;
    countdown = 0;
    give_request(&p, XID(1), POST("/a", "x"));
    expect_no_send(&p);
    play_close(&p);
    return failed;
}

/* What the ledger takes away is gone, whether there is memory to keep its word in or not. */
static void what_is_not_kept_takes_away(void **state)
{
    unsigned long n = 1;
    play_torture = true;
    while (revoked_once(n))
        assert_true(++n < 100);
    assert_true(n > 1);
    for (n = 1; frozen_once(n);)
        assert_true(++n < 100);
    assert_true(n > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail),
                                       cmocka_unit_test(what_is_not_kept_takes_away)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
