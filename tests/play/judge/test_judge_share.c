/* What one sandbox spends is its own: at its limit and past it, another one is answered as ever. */
#include <stdio.h>

#include "common/log.h"
#include "proxy/judge/accounts/account.h"
#include "proxy/judge/exchange/record.h"
#include "tests/play/judge/play.h"

enum { ONE_FRONT = 10 }; /* of one command of it */
#define ONE(n) ((uint64_t)ONE_FRONT << XID_FRONT_SHIFT | (n))
#define READS  "allow read GET /r rule=reads\n"

static void with_a_neighbour(struct play *p, const char *policy)
{
    play_all(p, policy);
    play_sandbox(p, "other", "its", "token-of-other", false);
    play_peer(p, ROLE_FRONT, OTHER_FRONT, "other");
}

/* One read from its arrival to its record. The number the carrier is to use; *told: it was given it just now. */
static uint32_t reads(struct play *p, uint64_t xid, const char *host, bool *told)
{
    struct ask a = {.host = host, .method = "GET", .path = "/r"};
    struct wire_upstream u = {.number = 0};
    give_request(p, xid, &a);
    *told = p->first < p->n && p->out[p->first].type == M_UPSTREAM;
    if (*told) {
        struct msg_in m = expect(p, ROLE_CARRIER, M_UPSTREAM, 0);
        assert_int_equal(wire_get_upstream(&m, &u), 0);
    }
    struct wire_forward f = expect_forward(p, xid, NULL);
    assert_true(!*told || f.upstream == u.number);
    give_result(p, xid, OUTCOME_ANSWERED, 200, true, "");
    expect(p, ROLE_LEDGER, M_OUTCOME, xid);
    return f.upstream;
}

/* Whatever was sent. */
static void pass_over(struct play *p)
{
    while (p->first < p->n)
        expect(p, p->out[p->first].to, p->out[p->first].type, p->out[p->first].id);
}

/* F32 F36: more names than the carrier has places for, under one wildcard. */
static void names_without_end(void **state)
{
    struct play p;
    char host[64];
    bool told;
    with_a_neighbour(&p, READS);
    uint32_t mine = reads(&p, XID(1), "mine.example", &told);
    uint32_t others = reads(&p, OTHER(1), "its.example", &told);
    assert_true(told);
    for (unsigned i = 0; i < 9000; i++) {
        snprintf(host, sizeof(host), "n%u.wide.example", i);
        uint32_t n = reads(&p, XID(2 + i), host, &told);
        assert_true(told && n % WIRE_UPSTREAMS_MAX != others % WIRE_UPSTREAMS_MAX); /* its place is not taken */
        assert_true(n % WIRE_UPSTREAMS_MAX < UPSTREAMS_EACH + 2);                   /* nor any past its own share */
        assert_true(n != mine);                                                     /* no number means two places */
        reads(&p, XID(10000 + i), "hot.example", &told);
        assert_true(told == (i == 0)); /* what goes is what was used longest ago */
    }
    assert_int_equal(reads(&p, OTHER(2), "its.example", &told), others);
    assert_false(told);
    assert_true(reads(&p, XID(9999), "mine.example", &told) != mine); /* told anew, and goes on */
    assert_true(told);
    play_close(&p);
    covers("F32 F36");
}

/* F32: every place of the table is taken, by sandboxes that each keep to their share. */
static void a_full_table_takes_from_the_largest(void **state)
{
    enum { MANY = WIRE_UPSTREAMS_MAX / UPSTREAMS_EACH };
    struct play p;
    char host[64], name[16];
    bool told;
    with_a_neighbour(&p, READS);
    uint32_t others = reads(&p, OTHER(1), "its.example", &told);
    for (unsigned s = 0; s < MANY; s++) {
        uint64_t front = 100 + s;
        snprintf(name, sizeof(name), "many%u", s);
        play_sandbox(&p, name, name, name, false);
        play_peer(&p, ROLE_FRONT, front, name);
        for (unsigned i = 0; i < UPSTREAMS_EACH; i++) {
            snprintf(host, sizeof(host), "n%u.%s.example", i, name);
            reads(&p, front << 40 | (i + 1), host, &told);
        }
    }
    assert_int_equal(reads(&p, OTHER(2), "its.example", &told), others);
    assert_false(told);
    reads(&p, OTHER(3), "more.example", &told); /* there is always room for one who has little */
    assert_int_equal(reads(&p, OTHER(4), "its.example", &told), others);
    assert_false(told);
    play_close(&p);
    covers("F32 F36");
}

/* F32: nothing of an earlier policy stays behind, whatever is still under way. */
static void reloads_without_end(void **state)
{
    struct play p;
    bool told;
    with_a_neighbour(&p, READS);
    give_request(&p, XID(1), &(struct ask){.host = "slow.example", .method = "GET", .path = "/r"});
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(&p, XID(1), NULL);
    for (unsigned i = 0; i < 9000; i++) {
        play_policy(&p, READS);
        uint32_t n = reads(&p, OTHER(i + 1), "its.example", &told);
        assert_true(told && n % WIRE_UPSTREAMS_MAX < 4);
    }
    give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    expect(&p, ROLE_LEDGER, M_OUTCOME, XID(1));
    play_close(&p);
    covers("F32");
}

/* What shadow mode still lets go by an earlier policy leaves no place behind that a later one would take for its own.
 */
static void a_place_is_of_its_policy(void **state)
{
    struct play p;
    bool told;
    play_all(&p, READS "allow write POST / rule=w\n");
    assert_int_equal(judge_config(p.j, SPAN("mode"), SPAN("shadow")), JUDGE_CONFIG_OK);
    give_request(&p, XID(1), POST("/w", "x"));
    expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
    play_policy(&p, READS);
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(&p, XID(1), NULL);
    reads(&p, XID(2), "api.example", &told);
    assert_true(told);
    give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    pass_over(&p);
    play_close(&p);
}

/* F34 F36: hundreds that wait for one decision keep their requests and the words of what was decided, no more. */
static void what_waits_is_small(void **state)
{
    enum { PARKED = FRONT_EXCHANGES_MAX };
    struct play p;
    struct wire_ticket t = {.facts_json = SPAN_NONE};
    struct digest d;
    bool told;
    with_a_neighbour(&p, READS "hold write POST / rule=w bulk=8000000 say=Ask_first limit=9/1000\n");
    for (unsigned i = 0; i < PARKED; i++) {
        give_request(&p, XID(1 + i), POST("/w", "body"));
        t = expect_ticket_open(&p, XID(1 + i));
        d = t.record.request;
        if (i % 2) /* some wait for the ticket, some for the decision */
            give_ticket(&p, XID(1 + i), 1, TICKET_PENDING);
        const struct exchange *x = exchange_find(p.j, XID(1 + i));
        assert_true(x->now.facts.used <= EVALUATION_PACKED && x->arena.used <= 64 * 1024);
        assert_true(span_eq(x->now.d.rule.id, SPAN("w")) && span_eq(x->now.d.say, SPAN("Ask first")));
        assert_true(x->now.d.nlimits == 1 && span_eq(x->now.d.limits[0].measure, SPAN("requests")));
    }
    give_request(&p, XID(1000), POST("/w", "body")); /* one past what a sandbox may have open */
    expect_reply(&p, XID(1000), 429, "too-many-requests");
    play_peer(&p, ROLE_FRONT, ONE_FRONT, "sb web 2.7"); /* also for a command of it with a front of its own */
    give_request(&p, ONE(1), POST("/w", "body"));
    expect_reply(&p, ONE(1), 429, "too-many-requests");
    reads(&p, OTHER(1), "its.example", &told);
    give_changed(&p, 1, TICKET_APPROVED, "ada", "");
    expect(&p, ROLE_LEDGER, M_CLAIM, XID(2));
    pass_over(&p); /* the others are told that it is on its way */
    give_claimed(&p, XID(2), POST("/w", "body"), &d);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(&p, XID(2), NULL);
    play_close(&p);
    covers("F34 F36");
}

static void give_words(struct play *p, uint64_t xid, const char *words)
{
    struct wire_ticket_state t = {.words = span_str(words)};
    wire_put_ticket_state(from(p), &t);
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_TICKET, xid, -1), 0);
}

/* F33: the pack of a push is read for a new ticket, and not again for those who ask whether it was decided. */
static void a_pack_is_read_once(void **state)
{
    struct play p;
    struct wire_ticket t;
    play_all(&p, "hold write POST / rule=w dialect=2 join=1 wait=0\n");
    give_request(&p, XID(1), POST("/w", "0PACK of so many bytes"));
    t = expect_ticket_open(&p, XID(1));
    assert_int_equal(t.facts_json.n, 0);
    give_words(&p, XID(1), "facts-wanted");
    t = expect_ticket_open(&p, XID(1));
    assert_true(span_find(t.facts_json, SPAN("Objects")) < t.facts_json.n);
    give_ticket(&p, XID(1), 1, TICKET_PENDING);
    expect_reply(&p, XID(1), 200, "Do the thing");
    expect_audit(&p, XID(1), "hold", "held");
    for (unsigned i = 2; i < 5; i++) {
        give_request(&p, XID(i), POST("/w", "0PACK of so many bytes"));
        assert_int_equal(expect_ticket_open(&p, XID(i)).facts_json.n, 0);
        give_ticket(&p, XID(i), 1, TICKET_PENDING);
        expect_reply(&p, XID(i), 200, "Do the thing");
        expect_audit(&p, XID(i), "hold", "held");
    }
    give_request(&p, XID(9), POST("/w", "0PACK of so many bytes"));
    expect_ticket_open(&p, XID(9));
    give_words(&p, XID(9), "facts-wanted");
    expect_ticket_open(&p, XID(9));
    wire_put_ticket_state(from(&p), &(struct wire_ticket_state){.words = SPAN("facts-wanted")});
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET, XID(9), -1), -1); /* they were given */
    play_close(&p);
    covers("F33");
}

#define COSTS READS "allow read GET /dear rule=dear cost=100000\n"

static void asks_dearly(struct play *p, uint64_t xid)
{
    struct ask a = {.host = "its.example", .method = "GET", .path = "/dear"};
    give_request(p, xid, &a);
    if (p->out[p->first].type == M_UPSTREAM)
        expect(p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(p, xid, NULL);
    give_result(p, xid, OUTCOME_ANSWERED, 200, true, "");
    expect(p, ROLE_LEDGER, M_OUTCOME, xid);
}

/* F33 F36: who spends without end has a quarter of the time, and a neighbour never waits for two turns of it. */
static void a_neighbour_is_served_first(void **state)
{
    enum { ROUNDS = 400, EVERY_MS = 50, COST_US = 100000 };
    struct play p;
    bool told;
    uint64_t turns = 0;
    with_a_neighbour(&p, COSTS);
    uint64_t began = p.now;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        if (!p.held_back[FRONT]) {
            asks_dearly(&p, XID(i));
            turns++;
        }
        assert_false(p.held_back[OTHER_FRONT]);
        reads(&p, OTHER(i), "mine.example", &told); /* answered, always; before it at most one turn of the other's */
        give_bool(&p, ROLE_LEDGER, M_STORE, 0, true);
        play_time(&p, EVERY_MS);
    }
    uint64_t share = (p.now - began) * 1000 / TIMESHARE_SHARE;
    assert_true(turns * COST_US <= share + TIMESHARE_BURST_US + COST_US);
    assert_true(turns * COST_US + 2 * COST_US >= share); /* it waits, and is not shut out */
    play_close(&p);
    covers("F33 F36");
}

/* F33: where nobody else asks nobody waits; and not for one who asked long ago. */
static void alone_nobody_waits(void **state)
{
    enum { AGAIN = OTHER_FRONT + 1 };
    struct play p;
    bool told;
    with_a_neighbour(&p, COSTS);
    for (unsigned i = 1; i <= 20; i++) {
        asks_dearly(&p, XID(i));
        assert_false(p.held_back[FRONT]);
    }
    reads(&p, OTHER(1), "mine.example", &told);
    asks_dearly(&p, XID(21));
    assert_true(p.held_back[FRONT]);
    play_time(&p, 1000);
    assert_false(p.held_back[FRONT]);
    reads(&p, OTHER(2), "mine.example", &told);
    asks_dearly(&p, XID(22));
    assert_true(p.held_back[FRONT]);
    play_sandbox(&p, "sb", "ses2", "token", false); /* another session, the same account */
    pass_over(&p);
    play_peer(&p, ROLE_FRONT, AGAIN, "sb");
    asks_dearly(&p, (uint64_t)AGAIN << 40 | 1);
    assert_true(p.held_back[AGAIN]);
    judge_end(p.j); /* all who wait are told of the end */
    assert_false(p.held_back[AGAIN]);
    play_close(&p);
    covers("F33");
}

/* F33: a ledger that could not be heard during long turns was not silent. */
static void no_false_silence(void **state)
{
    struct play p;
    play_all(&p, "allow write POST / rule=w cost=1700000\n");
    for (unsigned i = 1; i <= 8; i++) { /* its answers are there, but nobody has read them yet */
        give_request(&p, XID(i), POST("/w", "x"));
        expect(&p, ROLE_LEDGER, M_INTENT, XID(i));
    }
    expect_nothing(&p);
    play_time(&p, 5000); /* now it had the time */
    give_request(&p, XID(9), POST("/w", "x"));
    expect_reply(&p, XID(9), 503, "store-unavailable");
    expect(&p, ROLE_LEDGER, M_AUDIT, XID(9));
    for (unsigned i = 1; i <= 8; i++)
        give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(i), false);
    pass_over(&p);
    play_close(&p);
    covers("F33");
}

/* F36: each of these is one sandbox's own, however often it goes past it. */
static void what_is_refused_is_refused_to_one(void **state)
{
    struct play p;
    bool told;
    with_a_neighbour(&p, READS "hold write POST / rule=w\n");
    for (unsigned front = 0; front < 2; front++) {
        uint64_t instance = front ? OTHER_FRONT : FRONT;
        msg_put_span(from(&p), SPAN("spki"));
        assert_int_equal(give(&p, ROLE_FRONT, instance, M_FRONT_KEY, 0, -1), 0);
    }
    /* SANDBOX_BODIES_MAX: four bodies of unknown length, of the largest size there may be */
    struct ask large = {.method = "POST", .path = "/w", .kind = 2, .declared = UINT64_MAX};
    for (unsigned i = 1; i <= 6; i++) {
        give_request(&p, XID(i), &large);
        if (i <= 4)
            expect(&p, ROLE_FRONT, M_BODY_WANTED, XID(i));
        else
            expect_reply(&p, XID(i), 429, "too-many-bytes");
        pass_over(&p);
    }
    give_request(&p, OTHER(1), &large);
    expect(&p, ROLE_FRONT, M_BODY_WANTED, OTHER(1));
    /* DENIED_LEAFS, then FRONT_CONNECTS_MAX: nobody answers for the keeper */
    for (unsigned named = 0; named < 2; named++) {
        unsigned most = named ? FRONT_CONNECTS_MAX - DENIED_LEAFS : DENIED_LEAFS;
        for (unsigned i = 0; i <= most; i++) {
            char host[40];
            snprintf(host, sizeof(host), "h%u.%u.example", i, named);
            struct dynbuf *b = from(&p);
            msg_put_span(b, SPAN("https"));
            msg_put_span(b, named ? SPAN("api.example") : span_str(host));
            msg_put_u16(b, 443);
            assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CONNECT, XID(100 + 1000 * named + i), -1), 0);
            if (i == most)
                expect(&p, ROLE_FRONT, M_LEAF, XID(100 + 1000 * named + i));
            pass_over(&p);
        }
        if (named) { /* nor at the front of one command of it */
            play_peer(&p, ROLE_FRONT, ONE_FRONT, "sb web 2.7");
            msg_put_span(from(&p), SPAN("spki"));
            assert_int_equal(give(&p, ROLE_FRONT, ONE_FRONT, M_FRONT_KEY, 0, -1), 0);
            struct dynbuf *one = from(&p);
            msg_put_span(one, SPAN("https"));
            msg_put_span(one, SPAN("api.example"));
            msg_put_u16(one, 443);
            assert_int_equal(give(&p, ROLE_FRONT, ONE_FRONT, M_CONNECT, ONE(1), -1), 0);
            expect(&p, ROLE_FRONT, M_LEAF, ONE(1));
            pass_over(&p);
        }
        struct dynbuf *b = from(&p);
        msg_put_span(b, SPAN("https"));
        msg_put_span(b, named ? SPAN("api.example") : SPAN("no.example"));
        msg_put_u16(b, 443);
        assert_int_equal(give(&p, ROLE_FRONT, OTHER_FRONT, M_CONNECT, OTHER(100 + named), -1), 0);
        expect(&p, ROLE_KEEPER, M_MINT, OTHER(100 + named));
    }
    reads(&p, OTHER(2), "mine.example", &told);
    play_close(&p);
    covers("F36");
}

/* F36: the ledger is away, and one sandbox is refused again and again: what became of another one's is not lost. */
static void records_that_wait_are_shared_out(void **state)
{
    struct play p;
    unsigned own = 0;
    with_a_neighbour(&p, READS);
    give_request(&p, OTHER(1), GET("/r"));
    pass_over(&p);
    play_gone(&p, ROLE_LEDGER, 0);
    for (unsigned i = 1; i <= BACKLOG_FRAMES + 10; i++) {
        give_request(&p, XID(i), GET("/r"));
        expect_reply(&p, XID(i), 503, "store-unavailable");
    }
    give_result(&p, OTHER(1), OUTCOME_ANSWERED, 200, true, "");
    expect_nothing(&p);
    p.up[ROLE_LEDGER] = true;
    judge_peer(p.j, ROLE_LEDGER, 0, SPAN_NONE);
    for (; p.first < p.n && p.out[p.first].type == M_AUDIT; own++)
        expect(&p, ROLE_LEDGER, M_AUDIT, p.out[p.first].id);
    assert_int_equal(own, BACKLOG_EACH);
    expect_outcome(&p, OTHER(1), false);
    play_close(&p);
    covers("F36");
}

static void sends(struct play *p, uint64_t xid)
{
    give_request(p, xid, POST("/ok", "c"));
    expect(p, ROLE_LEDGER, M_INTENT, xid);
    give_bool(p, ROLE_LEDGER, M_INTENT_OK, xid, true);
    pass_over(p);
}

/* F36: the same with answers that nobody took, which are large: 40 of them are more than all that may wait. */
static void answers_that_wait_are_shared_out(void **state)
{
    static uint8_t body[ANSWER_KEPT_MAX];
    const unsigned many = BACKLOG_BYTES / ANSWER_KEPT_MAX + 8;
    struct wire_answer a = {.status = 201, .reason = SPAN("Created")};
    struct play p;
    unsigned own = 0;
    with_a_neighbour(&p, "allow write POST /ok rule=ok\n");
    sends(&p, OTHER(1));
    for (unsigned i = 1; i <= many; i++)
        sends(&p, XID(i));
    play_gone(&p, ROLE_LEDGER, 0);
    for (unsigned i = 1; i <= many; i++) {
        struct dynbuf *b = from(&p);
        wire_put_answer(b, &a);
        msg_put_u64(b, sizeof(body));
        msg_put_span(b, span_of(body, sizeof(body)));
        assert_int_equal(give(&p, ROLE_CARRIER, 0, M_KEPT, XID(i), -1), 0);
        give_result(&p, XID(i), OUTCOME_ANSWERED, 201, true, "");
    }
    give_result(&p, OTHER(1), OUTCOME_ANSWERED, 200, true, "");
    expect_nothing(&p);
    p.up[ROLE_LEDGER] = true;
    judge_peer(p.j, ROLE_LEDGER, 0, SPAN_NONE);
    for (; p.first < p.n && p.out[p.first].id != OTHER(1); own++)
        expect(&p, ROLE_LEDGER, M_OUTCOME, p.out[p.first].id);
    assert_int_equal(own, BACKLOG_BYTES_EACH / ANSWER_KEPT_MAX + 1);
    expect_outcome(&p, OTHER(1), false);
    pass_over(&p);
    play_close(&p);
    covers("F36");
}

/* F33 F36: what others do for a sandbox, it pays for as well: the keeper's certificates. */
static void certificates_are_paid_for(void **state)
{
    enum { MANY = TIMESHARE_BURST_US / ACCOUNT_LEAF_US + 2 };
    struct play p;
    bool told;
    with_a_neighbour(&p, READS);
    assert_int_equal(judge_config(p.j, SPAN("mode"), SPAN("shadow")), JUDGE_CONFIG_OK);
    msg_put_span(from(&p), SPAN("spki"));
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_FRONT_KEY, 0, -1), 0);
    reads(&p, OTHER(1), "mine.example", &told);
    for (unsigned i = 0; i < MANY; i++) {
        char host[40];
        snprintf(host, sizeof(host), "h%u.example", i);
        struct dynbuf *b = from(&p);
        msg_put_span(b, SPAN("https"));
        msg_put_span(b, span_str(host));
        msg_put_u16(b, 443);
        assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CONNECT, XID(i), -1), 0);
        expect(&p, ROLE_KEEPER, M_MINT, XID(i));
        b = from(&p);
        msg_put_span(b, SPAN("leaf"));
        msg_put_span(b, SPAN("ca"));
        assert_int_equal(give(&p, ROLE_KEEPER, 0, M_MINTED, XID(i), -1), 0);
        expect(&p, ROLE_FRONT, M_LEAF, XID(i));
    }
    assert_true(p.held_back[FRONT] && !p.held_back[OTHER_FRONT]);
    play_close(&p);
    covers("F33 F36");
}

int main(void)
{
    log_init("test", LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_without_end),
        cmocka_unit_test(a_full_table_takes_from_the_largest),
        cmocka_unit_test(reloads_without_end),
        cmocka_unit_test(a_place_is_of_its_policy),
        cmocka_unit_test(what_waits_is_small),
        cmocka_unit_test(a_pack_is_read_once),
        cmocka_unit_test(a_neighbour_is_served_first),
        cmocka_unit_test(alone_nobody_waits),
        cmocka_unit_test(no_false_silence),
        cmocka_unit_test(what_is_refused_is_refused_to_one),
        cmocka_unit_test(records_that_wait_are_shared_out),
        cmocka_unit_test(answers_that_wait_are_shared_out),
        cmocka_unit_test(certificates_are_paid_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
