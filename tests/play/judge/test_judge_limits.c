/* Limits: asked of the ledger before anything leaves; what is past them is held or denied, in words. */
#include <stdio.h>

#include "proxy/identity.h"
#include "tests/play/judge/play.h"

#define PAYS                                                                                                         \
    "allow write POST /pay rule=small limit=20/86400000 over=large cred=1\n"                                         \
    "hold write POST /large rule=large cred=2\n"

static struct digest joined;

/* The intent's limits are left in p->limits, its join key in joined. */
static struct wire_record expect_intent(struct play *p, uint64_t xid)
{
    struct wire_record r;
    struct msg_in m = expect(p, ROLE_LEDGER, M_INTENT, xid);
    assert_int_equal(wire_get_record(&m, &r), 0);
    msg_get_digest(&m, &joined);
    assert_int_equal(wire_get_limits(&m, &p->limits), 0);
    assert_int_equal(msg_end(&m), 0);
    return r;
}

static void give_over(struct play *p, uint64_t xid, unsigned n, unsigned past, uint64_t room_ms)
{
    struct wire_over o = {.n = n, .room_ms = room_ms};
    for (unsigned i = 0; i < n; i++)
        o.past[i] = past >> i & 1;
    wire_put_over(from(p), &o);
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_INTENT_OVER, xid, -1), 0);
}

static uint64_t wall(const struct play *p)
{
    return 1767225600000u + p->now;
}

static bool is_none(const struct digest *d)
{
    static const struct digest none;
    return memcmp(d, &none, sizeof(none)) == 0;
}

static void within_its_limit_it_is_sent(void **state)
{
    struct play p;
    play_all(&p, PAYS);
    give_request(&p, XID(1), POST("/pay", "x"));
    expect_intent(&p, XID(1));
    const struct wire_limit *l = &p.limits.limit[0];
    assert_int_equal(p.limits.n, 1);
    assert_true(span_eq(l->rule, SPAN("small")) && span_eq(l->measure, SPAN("requests")));
    assert_true(l->max == 20 && l->window_ms == 86400000 && l->amount == 1 && !l->uncountable);
    assert_false(is_none(&joined));
    expect_nothing(&p); /* not a byte before the answer */
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_forward(&p, XID(1), NULL);
    give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(&p, XID(1), false);
    play_close(&p);
}

static void sandbox_of_spans(struct play *p, const char *session, const char *value)
{
    struct wire_sandbox s = {.name = SPAN("sb"), .session = span_str(session), .has_token = true};
    struct dynbuf *b = from(p);
    digest_of(SPAN("token-of-sb"), &s.token_hash);
    s.label[0].key = SPAN("telemetry");
    s.label[0].value = span_str(value);
    s.nlabels = 1;
    wire_put_sandbox(b, &s);
    msg_put_u8(b, false);
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
}

/* Spans of the broker come again and again, each time others: nobody is asked to approve them, at a rule that holds
 * or past a limit; others' requests are held by the same policy. */
static void spans_are_not_held(void **state)
{
    struct play p;
    play_all(&p, PAYS "hold write POST /v1/traces rule=careful wait=0\n");
    sandbox_of_spans(&p, "ses", "spans"); /* a label alone makes nobody the broker's */
    give_request(&p, XID(1), POST("/v1/traces", "{}"));
    expect_ticket_open(&p, XID(1));
    give_ticket(&p, XID(1), 1, TICKET_PENDING);
    expect_reply(&p, XID(1), 403, "\"code\":\"held\"");
    expect_audit(&p, XID(1), "hold", "held");
    play_close(&p);
    play_all(&p, PAYS "hold write POST /v1/traces rule=careful\n");
    sandbox_of_spans(&p, "otlp", "spans");
    play_gone(&p, ROLE_FRONT, FRONT);
    play_peer(&p, ROLE_FRONT, FRONT, "sb"); /* of the session that it has now */
    give_request(&p, XID(2), POST("/v1/traces", "{}"));
    expect_reply(&p, XID(2), 403, "allow them by a rule");
    expect_audit(&p, XID(2), "deny", "spans-held");
    give_request(&p, XID(3), POST("/pay", "x"));
    expect_intent(&p, XID(3));
    give_over(&p, XID(3), 1, 1, 0);
    expect_reply(&p, XID(3), 403, "allow them by a rule");
    expect_audit(&p, XID(3), "deny", "spans-held");
    play_close(&p);
}

static void past_it_is_held_and_sent_once_approved(void **state)
{
    struct play p;
    play_all(&p, PAYS);
    give_request(&p, XID(1), POST("/pay", "x"));
    expect_intent(&p, XID(1));
    struct digest would = joined;
    give_over(&p, XID(1), 1, 1, 0);
    struct wire_ticket t = expect_ticket_open(&p, XID(1));
    assert_true(span_eq(t.record.code, SPAN("over-limit")) && span_eq(t.record.rule.id, SPAN("large")));
    assert_true(span_starts(t.facts_json, SPAN("[{\"label\":\"Limit\",\"value\":\"Rule small: the limit of ")));
    assert_true(span_eq(t.record.verdict, SPAN("hold")) && span_eq(t.record.credential, SPAN("cred2")));
    assert_memory_equal(&would, &t.join, sizeof(would)); /* the retry's intent is known by it */
    assert_int_equal(p.limits.n, 0);                     /* the hold has none of its own */
    struct digest d = t.record.request;
    give_ticket(&p, XID(1), 1, TICKET_PENDING);
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect(&p, ROLE_LEDGER, M_CLAIM, XID(1));
    give_claimed(&p, XID(1), POST("/pay", "x"), &d);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_forward(&p, XID(1), NULL);
    expect_nothing(&p);
    give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(&p, XID(1), true);
    play_close(&p);
}

/* E30: the agent is told that it is held, and asks again: it joins, whatever room there is by then. */
static void the_retry_joins(void **state)
{
    struct play p;
    play_all(&p, "allow write POST /pay rule=small limit=20/86400000 over=large cred=1\n"
                 "hold write POST /large rule=large cred=2 wait=0\n");
    struct digest join[2];
    for (unsigned i = 0; i < 2; i++) {
        give_request(&p, XID(i + 1), POST("/pay", "x"));
        expect_intent(&p, XID(i + 1));
        give_over(&p, XID(i + 1), 1, 1, 0);
        join[i] = expect_ticket_open(&p, XID(i + 1)).join;
        give_ticket(&p, XID(i + 1), 1, TICKET_PENDING);
        expect_reply(&p, XID(i + 1), 403, "\"code\":\"held\"");
        expect_audit(&p, XID(i + 1), "hold", "held");
    }
    assert_memory_equal(&join[0], &join[1], sizeof(join[0]));
    give_request(&p, XID(3), POST("/pay", "y")); /* another body is another request */
    expect_intent(&p, XID(3));
    assert_memory_not_equal(&join[0], &joined, sizeof(joined));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(3), false);
    expect_reply(&p, XID(3), 503, "store-unavailable");
    expect_audit(&p, XID(3), "allow", "store-unavailable");
    play_close(&p);
}

static const struct {
    const char *rule, *words;
    uint64_t room; /* ms from now; 0: not known */
    unsigned status;
} denials[] = {
    {"limit=20/86400000", "the limit of 20 requests in 1 day is used up", 3600000, 403},
    {"limit=1/5400000", "the limit of 1 request in 90 minutes is used up", 0, 403},
    {"limit=5/2000", "\"retry\":true", 1500, 429},
    {"limit=5/7200000", "2 hours", 60000, 429},
    {"limit=5/7200000", "Repeat the same request after", 60001, 403},
    {"sum=20000/86400000 amount=2500", "the limit of 20000 in 1 day for \\\"/amount\\\" has no room for 2500 more", 0,
     403},
    {"sum=20000/86400000", "\\\"/amount\\\" must be one whole number", 0, 403},
    {"limit=5/1000 say=Ask_in_finance", "Ask in finance", 0, 403},
};

static void without_over_it_is_denied_in_words(void **state)
{
    struct play p;
    char policy[200];
    for (size_t i = 0; i < sizeof(denials) / sizeof(denials[0]); i++) {
        snprintf(policy, sizeof(policy), "allow write POST /pay rule=small %s\n", denials[i].rule);
        play_all(&p, policy);
        give_request(&p, XID(1), POST("/pay", "x"));
        expect_intent(&p, XID(1));
        assert_true(is_none(&joined)); /* nothing of it can become a hold */
        give_over(&p, XID(1), 1, 1, denials[i].room ? wall(&p) + denials[i].room : 0);
        expect_reply(&p, XID(1), denials[i].status, denials[i].words);
        struct span got = dynbuf_span(&p.got.payload);
        assert_true(span_find(got, SPAN("\"code\":\"over-limit\"")) < got.n);
        assert_true(span_find(got, SPAN("POST https://api.example/pay")) < got.n);
        assert_int_equal(span_find(got, SPAN("Retry-After")) < got.n, denials[i].room != 0);
        expect_audit(&p, XID(1), "deny", "over-limit");
        play_close(&p);
    }
}

static void git_is_told_in_its_own_words(void **state)
{
    struct play p;
    struct wire_record r;
    struct ask push = {
        .method = "POST", .path = "/pay", .body = "x", .header = "Content-Type", .value = "Application/X-Git; a=b"};
    play_all(&p, "allow write POST /pay rule=small limit=1/86400000 dialect=2\n");
    give_request(&p, XID(1), &push);
    r = expect_intent(&p, XID(1));
    assert_true(r.has_body && !r.upgrade && span_eq(r.content_type, SPAN("application/x-git")));
    assert_true(span_eq(r.refs, SPAN("update refs/heads/main")));
    give_over(&p, XID(1), 1, 1, 0);
    expect_reply(&p, XID(1), 200, "the limit of 1 request in 1 day is used up");
    expect_audit(&p, XID(1), "deny", "over-limit");
    play_close(&p);
}

/* A read needs no intent, unless it is counted; in shadow mode nothing is. */
static void reads_are_counted_where_they_are_limited(void **state)
{
    struct play p;
    play_all(&p, "allow read GET /r rule=reads limit=2/1000\n");
    give_request(&p, XID(1), GET("/r"));
    assert_true(span_eq(expect_intent(&p, XID(1)).effect, SPAN("read")));
    give_over(&p, XID(1), 1, 1, wall(&p) + 10);
    expect_reply(&p, XID(1), 429, "over-limit");
    expect_audit(&p, XID(1), "deny", "over-limit");
    give_request(&p, XID(2), GET("/r"));
    expect_intent(&p, XID(2));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(2), true);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    assert_false(expect_forward(&p, XID(2), NULL).repeatable);
    give_result(&p, XID(2), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(&p, XID(2), false);
    play_close(&p);

    play_all(&p, "allow read GET /r rule=reads limit=2/1000\n");
    assert_int_equal(judge_config(p.j, SPAN("store_lost"), SPAN("allow-reads")), JUDGE_CONFIG_OK);
    give_bool(&p, ROLE_LEDGER, M_STORE, 0, false);
    give_request(&p, XID(1), GET("/r")); /* who would count it is away */
    expect_reply(&p, XID(1), 503, "store-unavailable");
    expect_audit(&p, XID(1), "allow", "store-unavailable");
    give_bool(&p, ROLE_LEDGER, M_STORE, 0, true);
    assert_int_equal(judge_config(p.j, SPAN("mode"), SPAN("shadow")), JUDGE_CONFIG_OK);
    give_request(&p, XID(2), GET("/r"));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(&p, XID(2), NULL);
    give_result(&p, XID(2), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(&p, XID(2), false);
    play_close(&p);
}

static void a_hold_past_its_own_limit_is_denied(void **state)
{
    struct play p;
    struct wire_ticket_state t = {.words = SPAN("over-limit")};
    struct wire_over o = {.n = 1, .past = {true}};
    play_all(&p, "allow write POST /pay rule=small limit=20/86400000 over=large\n"
                 "hold write POST /large rule=large limit=3/3600000\n");
    give_request(&p, XID(1), POST("/pay", "x"));
    expect_intent(&p, XID(1));
    give_over(&p, XID(1), 1, 1, 0);
    expect_ticket_open(&p, XID(1));
    assert_int_equal(p.limits.n, 1);
    assert_true(span_eq(p.limits.limit[0].rule, SPAN("large")));
    struct dynbuf *b = from(&p);
    wire_put_ticket_state(b, &t);
    wire_put_over(b, &o);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET, XID(1), -1), 0);
    expect_reply(&p, XID(1), 403, "the limit of 3 requests in 1 hour is used up");
    expect_audit(&p, XID(1), "deny", "over-limit");
    play_close(&p);
}

static void the_ledger_must_speak_of_what_was_asked(void **state)
{
    struct play p;
    play_all(&p, PAYS);
    for (unsigned i = 0; i < 4; i++) { /* none, too many, none of them past, a late one */
        static const unsigned n[] = {0, 2, 1, 1};
        give_request(&p, XID(i + 1), POST("/pay", "x"));
        expect_intent(&p, XID(i + 1));
        if (i == 3)
            assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CANCEL, XID(4), (from(&p), -1)), 0);
        give_over(&p, XID(i + 1), n[i], i == 1 || i == 3, 0);
        if (i < 3)
            expect_reply(&p, XID(i + 1), 503, NULL);
        expect_audit(&p, XID(i + 1), "allow", i == 1 || i == 2 ? "internal" : "store-unavailable");
        give_over(&p, XID(i + 1), 1, 1, 0); /* over by now */
    }
    play_close(&p);
}

/* INV6 B52: the policy changes while it is parked. */
static void a_reload_while_it_is_parked(void **state)
{
    static const struct {
        const char *policy, *words;
        bool stays;
    } cases[] = {
        {PAYS, "", true},
        {"allow write POST /pay rule=small limit=500/86400000 over=large cred=1\n"
         "hold write POST /large rule=large cred=2\n",
         "", true}, /* the number does not matter: it was past it when it was asked */
        {"allow write POST /pay rule=small limit=20/86400000 cred=1\n", "over-limit", false},
        {"deny write POST /pay rule=no say=Never\n", "Never", false},
        {"allow write POST /pay rule=small cred=1\n", "policy-changed", false},
        {"allow write POST /pay rule=small limit=20/86400000 over=other cred=1\n"
         "hold write POST /large rule=other cred=2\n",
         "policy-changed", false},
        {"allow write POST /pay rule=small limit=20/86400000 over=large cred=1\n"
         "hold write POST /large rule=large cred=2 limit=5/1000\n",
         "policy-changed", false}, /* more is counted by now than was reserved */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct play p;
        play_all(&p, PAYS);
        give_request(&p, XID(1), POST("/pay", "x"));
        expect_intent(&p, XID(1));
        give_over(&p, XID(1), 1, 1, 0);
        expect_ticket_open(&p, XID(1));
        if (i % 2)
            give_ticket(&p, XID(1), 1, TICKET_PENDING);
        play_policy(&p, cases[i].policy);
        if (i % 2 == 0) /* while its ticket was being opened */
            give_ticket(&p, XID(1), 1, TICKET_PENDING);
        if (!cases[i].stays) {
            expect(&p, ROLE_LEDGER, M_TICKET_VOID, XID(1));
            expect_reply(&p, XID(1), 403, cases[i].words);
            expect(&p, ROLE_LEDGER, M_AUDIT, XID(1));
        }
        expect_nothing(&p);
        play_close(&p);
    }
    covers("B52 INV6");
}

/* As the policy of these plays would put them. */
static struct digest terms_of(const char *rule, const char *op, int credential)
{
    struct decision d = {.rule.id = span_str(rule), .op = span_str(op), .credential = credential};
    struct digest terms;
    assert_int_equal(identity_of_terms(NULL, &d, &terms), 0);
    return terms;
}

static void give_review(struct play *p, uint64_t number, uint8_t n, const char *path, const struct wire_review *as)
{
    struct wire_review w = *as;
    w.ticket = (struct id){{n}};
    w.request = (struct wire_request){.scheme = SPAN("https"),
                                      .host = SPAN("api.example"),
                                      .port = 443,
                                      .method = SPAN("POST"),
                                      .path = span_str(path)};
    struct dynbuf *b = from(p);
    wire_put_review(b, &w);
    msg_put_u64(b, 1);
    msg_put_span(b, SPAN("x"));
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_TICKET_REVIEW, number, -1), 0);
}

static void expect_reviewed(struct play *p, uint64_t number, uint8_t n, bool keep)
{
    struct id ticket;
    struct msg_in m = expect(p, ROLE_LEDGER, M_REVIEWED, number);
    msg_get_id(&m, &ticket);
    assert_int_equal(ticket.b[0], n);
    assert_int_equal(msg_get_bool(&m), keep);
    assert_int_equal(msg_end(&m), 0);
}

/* B52: nobody waits for it, and the policy is another by now. */
static void tickets_nobody_waits_for_are_looked_at_again(void **state)
{
    static const struct wire_review held = {.sandbox = SPAN("sb"), .session = SPAN("ses"), .code = SPAN("rule")};
    static const struct {
        const char *path, *sandbox, *session, *rule, *op;
        int credential;
        const char *code;
        bool keep;
    } cases[] = {
        {"/large", "sb", "ses", "large", "op", 2, "rule", true},
        {"/none", "sb", "ses", "large", "op", 2, "rule", false},
        {"/large", "sb", "ses", "other", "op", 2, "rule", false},
        {"/large", "sb", "ses", "large", "other", 2, "rule", false},
        {"/large", "sb", "ses", "large", "op", 1, "rule", false},
        {"/pay", "sb", "ses", "large", "op", 2, "rule", false}, /* allowed by now */
        {"/pay", "sb", "ses", "large", "op", 2, "over-limit", true},
        {"/pay", "sb", "ses", "other", "op", 2, "over-limit", false},
        {"/free", "sb", "ses", "large", "op", 2, "over-limit", false},
        {"/none", "gone", "ses", "large", "op", 2, "rule", true}, /* no sandbox: nobody can use it */
        {"/none", "sb", "earlier", "large", "op", 2, "rule", true},
    };
    struct play p;
    play_all(&p, PAYS);
    p.reviews = true;
    play_policy(&p, PAYS "allow write POST /free rule=free\n");
    uint64_t number = p.out[p.first].id;
    assert_int_equal(msg_end(&(struct msg_in){expect(&p, ROLE_LEDGER, M_REVIEW, number).rest, false}), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wire_review w = held;
        w.sandbox = span_str(cases[i].sandbox);
        w.session = span_str(cases[i].session);
        w.terms = terms_of(cases[i].rule, cases[i].op, cases[i].credential);
        w.code = span_str(cases[i].code);
        give_review(&p, number, (uint8_t)(i + 1), cases[i].path, &w);
        expect_reviewed(&p, number, (uint8_t)(i + 1), cases[i].keep);
    }
    play_gone(&p, ROLE_LEDGER, 0); /* another one is asked too */
    play_peer(&p, ROLE_LEDGER, 0, "");
    expect(&p, ROLE_LEDGER, M_REVIEW, number + 1);
    covers("B52");
    play_close(&p);
}

static void a_reload_between_the_intent_and_its_sending(void **state)
{
    struct play p;
    play_all(&p, PAYS);
    give_request(&p, XID(1), POST("/pay", "x"));
    expect_intent(&p, XID(1));
    play_policy(&p, "allow write POST /pay rule=small limit=20/86400000 sum=5/1000 amount=1 over=large cred=1\n"
                    "hold write POST /large rule=large cred=2\n");
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
    expect_reply(&p, XID(1), 403, "policy-changed"); /* of the sum nothing was reserved */
    assert_int_equal(expect_outcome(&p, XID(1), false), OUTCOME_NOT_SENT);
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_its_limit_it_is_sent),
        cmocka_unit_test(spans_are_not_held),
        cmocka_unit_test(past_it_is_held_and_sent_once_approved),
        cmocka_unit_test(the_retry_joins),
        cmocka_unit_test(without_over_it_is_denied_in_words),
        cmocka_unit_test(git_is_told_in_its_own_words),
        cmocka_unit_test(reads_are_counted_where_they_are_limited),
        cmocka_unit_test(a_hold_past_its_own_limit_is_denied),
        cmocka_unit_test(the_ledger_must_speak_of_what_was_asked),
        cmocka_unit_test(a_reload_while_it_is_parked),
        cmocka_unit_test(tickets_nobody_waits_for_are_looked_at_again),
        cmocka_unit_test(a_reload_between_the_intent_and_its_sending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
