/* Egress: what a sandbox and its tenant may still send is taken from before anything leaves, and is on disk by then.
 */
#include "proxy/judge/accounts/egress.h"
#include "tests/play/judge/play.h"

#define READS "allow read GET / rule=reads\nhold write POST /held rule=held\nallow write POST / rule=writes\n"

enum { MIB = 1024 * 1024 };

static void sandbox(struct play *p, const char *tenant, uint64_t requests, uint64_t bytes, uint64_t epoch)
{
    struct wire_sandbox s = {.name = SPAN("sb"),
                             .session = SPAN("ses"),
                             .kind = SPAN("started"),
                             .tenant = span_str(tenant),
                             .generation = epoch,
                             .egress = {requests, bytes},
                             .egress_epoch = epoch};
    struct dynbuf *b = from(p);
    wire_put_sandbox(b, &s);
    msg_put_u8(b, false);
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
}

/* The front was of the sandbox that had that name before. */
static void again(struct play *p)
{
    while (p->first < p->n && p->out[p->first].type == M_FRONT_OVER)
        expect(p, ROLE_PARENT, M_FRONT_OVER, 0);
    play_gone(p, ROLE_FRONT, FRONT);
    play_peer(p, ROLE_FRONT, FRONT, "sb");
}

static void begin(struct play *p, uint64_t requests, uint64_t bytes)
{
    play_all(p, READS);
    sandbox(p, "acme", requests, bytes, 1);
    again(p);
}

/* What the ledger is to write down; its number. */
static uint64_t expect_put(struct play *p, uint64_t requests, uint64_t bytes)
{
    struct wire_egress e;
    struct msg_in m = expect(p, ROLE_LEDGER, M_EGRESS_PUT, p->j ? p->out[p->first].id : 0);
    assert_int_equal(wire_get_egress(&m, &e), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(e.used[EGRESS_REQUESTS], requests);
    assert_int_equal(e.used[EGRESS_BYTES], bytes);
    return p->got.id;
}

static void kept(struct play *p, uint64_t question, bool ok)
{
    give_bool(p, ROLE_LEDGER, M_EGRESS_KEPT, question, ok);
}

static uint64_t expect_give(struct play *p, uint64_t xid, const char *code)
{
    struct msg_in m = expect(p, ROLE_CARRIER, M_EGRESS_GIVE, xid);
    uint64_t n = msg_get_u64(&m);
    assert_true(span_eq(msg_get_span(&m, 64), span_str(code)));
    assert_int_equal(msg_end(&m), 0);
    return n;
}

static void more(struct play *p, uint64_t xid, uint64_t want)
{
    msg_put_u64(from(p), want);
    assert_int_equal(give(p, ROLE_CARRIER, 0, M_EGRESS_ASK, xid, -1), 0);
}

static void result(struct play *p, uint64_t xid, uint64_t out, uint64_t in, const char *code)
{
    struct dynbuf *b = from(p);
    msg_put_u8(b, code[0] ? OUTCOME_NOT_SENT : OUTCOME_ANSWERED);
    msg_put_u16(b, code[0] ? 0 : 200);
    msg_put_u64(b, out);
    msg_put_u64(b, in);
    msg_put_u64(b, out + in);
    msg_put_u8(b, code[0] == '\0');
    msg_put_span(b, span_str(code));
    msg_put_span(b, SPAN("why"));
    msg_put_span(b, SPAN_NONE);
    assert_int_equal(give(p, ROLE_CARRIER, 0, M_RESULT, xid, -1), 0);
}

static void forwarded(struct play *p, uint64_t xid, bool first)
{
    if (first)
        expect(p, ROLE_CARRIER, M_UPSTREAM, 0);
    assert_true(expect_forward(p, xid, NULL).metered);
}

static void nothing_passes_before_it_is_on_disk(void **state)
{
    struct play p;
    begin(&p, 3, 0);
    give_request(&p, XID(1), GET("/a"));
    forwarded(&p, XID(1), true);
    uint64_t q = expect_put(&p, 1, EGRESS_AHEAD); /* a limit of 3 leaves nothing ahead */
    expect_nothing(&p);
    kept(&p, q, true);
    assert_int_equal(expect_give(&p, XID(1), ""), EGRESS_PART_MAX);
    give_request(&p, XID(2), GET("/b"));
    forwarded(&p, XID(2), false);
    q = expect_put(&p, 2, EGRESS_AHEAD);
    expect_nothing(&p);
    kept(&p, q, false);
    assert_int_equal(expect_give(&p, XID(2), "store-unavailable"), 0);
    result(&p, XID(2), 0, 0, "store-unavailable");
    expect_reply(&p, XID(2), 503, "store-unavailable");
    expect_outcome(&p, XID(2), false);
    result(&p, XID(1), 300, 700, "");
    expect_outcome(&p, XID(1), false);
    play_time(&p, EGRESS_SETTLE_MS + 1); /* and as it is, once nothing is under way */
    kept(&p, expect_put(&p, 2, 1000), true);
    play_close(&p);
}

static void at_once_as_one_after_the_other(void **state)
{
    struct play p;
    begin(&p, 2, 0);
    give_request(&p, XID(1), GET("/a"));
    forwarded(&p, XID(1), true);
    uint64_t q = expect_put(&p, 1, EGRESS_AHEAD);
    give_request(&p, XID(2), GET("/b"));
    forwarded(&p, XID(2), false);
    give_request(&p, XID(3), GET("/c")); /* while both wait */
    expect_reply(&p, XID(3), 403, "egress-limit");
    expect_audit(&p, XID(3), "allow", "egress-limit");
    kept(&p, q, true);
    assert_int_equal(expect_give(&p, XID(1), ""), EGRESS_PART_MAX);
    q = expect_put(&p, 2, EGRESS_AHEAD);
    kept(&p, q, true);
    assert_int_equal(expect_give(&p, XID(2), ""), EGRESS_PART_MAX);
    result(&p, XID(1), 1, 1, "");
    expect_outcome(&p, XID(1), false);
    result(&p, XID(2), 1, 1, "");
    expect_outcome(&p, XID(2), false);
    give_request(&p, XID(4), GET("/d"));
    expect_reply(&p, XID(4), 403, "this sandbox may use 2 requests of egress");
    expect_audit(&p, XID(4), "allow", "egress-limit");
    play_time(&p, EGRESS_SETTLE_MS + 1);
    kept(&p, expect_put(&p, 2, 4), true);
    play_close(&p);
}

static void bytes_are_given_as_long_as_there_are_any(void **state)
{
    struct play p;
    begin(&p, 0, MIB);
    give_request(&p, XID(1), GET("/a"));
    forwarded(&p, XID(1), true);
    kept(&p, expect_put(&p, 1 + 16, MIB / 8 + MIB / 16), true);
    assert_int_equal(expect_give(&p, XID(1), ""), MIB / 8);
    more(&p, XID(1), MIB - MIB / 8);
    kept(&p, expect_put(&p, 1 + 16, MIB), true);
    assert_int_equal(expect_give(&p, XID(1), ""), MIB - MIB / 8);
    more(&p, XID(1), 0);
    assert_int_equal(expect_give(&p, XID(1), "egress-limit"), 0);
    give_request(&p, XID(2), GET("/b")); /* what is under way counts, and may come back */
    expect_reply(&p, XID(2), 429, "this sandbox may use 1 MiB of egress");
    expect_audit(&p, XID(2), "allow", "egress-limit");
    result(&p, XID(1), 100, 0, "egress-limit");
    expect_reply(&p, XID(1), 403, "egress-limit");
    expect_outcome(&p, XID(1), false);
    give_request(&p, XID(3), POST("/c", "x")); /* and what was not used is given back */
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, (expect(&p, ROLE_LEDGER, M_INTENT, XID(3)), XID(3)), true);
    forwarded(&p, XID(3), false);
    assert_true(expect_give(&p, XID(3), "") > MIB / 16);
    result(&p, XID(3), 50, 50, "");
    expect_outcome(&p, XID(3), false);
    play_time(&p, EGRESS_SETTLE_MS + 1);
    kept(&p, expect_put(&p, 2, 200), true);
    play_close(&p);
}

/* A length that nobody can pass, of a sandbox that has a limit of requests alone: it owes the disk nothing. */
static void what_is_endless_blocks_nobody(void **state)
{
    struct play p;
    begin(&p, 3, 0);
    give_request(&p, XID(1), GET("/a"));
    forwarded(&p, XID(1), true);
    kept(&p, expect_put(&p, 1, EGRESS_AHEAD), true);
    expect_give(&p, XID(1), "");
    more(&p, XID(1), INT64_MAX);
    assert_int_equal(expect_give(&p, XID(1), "egress-limit"), 0);
    give_request(&p, XID(2), GET("/b"));
    forwarded(&p, XID(2), false);
    kept(&p, expect_put(&p, 2, EGRESS_AHEAD), true);
    expect_give(&p, XID(2), "");
    result(&p, XID(2), 1, 1, "");
    expect_outcome(&p, XID(2), false);
    result(&p, XID(1), 1, 1, "egress-limit");
    expect_reply(&p, XID(1), 403, "egress-limit");
    expect_outcome(&p, XID(1), false);
    play_close(&p);
}

/* What others hold refuses for a moment only, and an answer that cannot fit takes nothing. */
static void what_cannot_fit_takes_nothing(void **state)
{
    struct play p;
    begin(&p, 0, MIB);
    give_request(&p, XID(1), GET("/a"));
    forwarded(&p, XID(1), true);
    kept(&p, expect_put(&p, 1 + 16, MIB / 8 + MIB / 16), true);
    expect_give(&p, XID(1), "");
    more(&p, XID(1), MIB);
    assert_int_equal(expect_give(&p, XID(1), "egress-limit"), 0);
    give_request(&p, XID(2), GET("/b"));
    forwarded(&p, XID(2), false);
    kept(&p, expect_put(&p, 2 + 16, MIB / 8 + (MIB - MIB / 8) / 8 + MIB / 16), true);
    assert_int_equal(expect_give(&p, XID(2), ""), (MIB - MIB / 8) / 8);
    result(&p, XID(2), 1, 1, "");
    expect_outcome(&p, XID(2), false);
    result(&p, XID(1), 1, 1, "egress-limit");
    expect_reply(&p, XID(1), 403, "egress-limit");
    expect_outcome(&p, XID(1), false);
    play_close(&p);
}

static void it_goes_on_where_the_ledger_says(void **state)
{
    struct play p;
    const struct wire_egress was = {.whose = EGRESS_SANDBOX, .name = SPAN("sb"), .epoch = 4, .used = {2, 500}};
    play_all(&p, READS);
    wire_put_egress(from(&p), &was);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_EGRESS, 0, -1), 0);
    sandbox(&p, "acme", 2, 0, 4);
    again(&p);
    give_request(&p, XID(1), GET("/a"));
    expect_reply(&p, XID(1), 403, "egress-limit");
    expect_audit(&p, XID(1), "allow", "egress-limit");
    sandbox(&p, "acme", 2, 0, 5); /* started anew */
    again(&p);
    give_request(&p, XID(2), GET("/a"));
    forwarded(&p, XID(2), true);
    kept(&p, expect_put(&p, 1, EGRESS_AHEAD), true);
    expect_give(&p, XID(2), "");
    result(&p, XID(2), 1, 1, "");
    expect_outcome(&p, XID(2), false);
    play_time(&p, EGRESS_SETTLE_MS + 1);
    expect_put(&p, 1, 2);
    play_close(&p);
}

static void a_tenants_is_counted_anew_after_its_time(void **state)
{
    struct play p;
    play_open(&p);
    play_close(&p);
    begin(&p, 0, 0);
    assert_int_equal(judge_config(p.j, SPAN("egress_tenants"), SPAN("acme 1 0\n")), JUDGE_CONFIG_BAD);
    assert_int_equal(judge_config(p.j, SPAN("egress_tenants"), SPAN("other 1 0 1\nacme 1 0 60000\n")),
                     JUDGE_CONFIG_OK);
    sandbox(&p, "acme", 0, 0, 1);
    play_gone(&p, ROLE_FRONT, FRONT);
    play_peer(&p, ROLE_FRONT, FRONT, "sb");
    give_request(&p, XID(1), GET("/a"));
    forwarded(&p, XID(1), true);
    kept(&p, expect_put(&p, 1, EGRESS_AHEAD), true);
    expect_give(&p, XID(1), "");
    result(&p, XID(1), 1, 1, "");
    expect_outcome(&p, XID(1), false);
    give_request(&p, XID(2), GET("/a"));
    expect_reply(&p, XID(2), 429, "all sandboxes of its tenant together may use 1 requests");
    expect_audit(&p, XID(2), "allow", "egress-limit");
    play_time(&p, 60000);
    kept(&p, expect_put(&p, 1, 2), true);
    give_request(&p, XID(3), GET("/a"));
    forwarded(&p, XID(3), false);
    kept(&p, expect_put(&p, 1, EGRESS_AHEAD), true);
    expect_give(&p, XID(3), "");
    play_gone(&p, ROLE_CARRIER, 0); /* of what it had in hand nobody knows what it was: it stays counted */
    expect_reply(&p, XID(3), 503, "gateway-restarting");
    expect_outcome(&p, XID(3), false);
    play_time(&p, EGRESS_SETTLE_MS + 1);
    expect_put(&p, 1, EGRESS_PART_MAX);
    play_close(&p);
}

/* Whoever created it said what it may reach: nothing else, also where the policy lets it, and what the policy denies
 * stays so. */
static void a_narrowing_is_before_the_policy(void **state)
{
    struct play p;
    struct wire_sandbox s = {.name = SPAN("sb"), .session = SPAN("ses"), .kind = SPAN("started"), .generation = 1};
    static const char *const reach[] = {"+n other.example\n", "-n api.example\n", "-a 127.0.0.0/8\n",
                                        "-a 10.0.0.0/8\n", "+n api.example\n"}; /* the policy says 127.0.0.1 */
    play_all(&p, READS);
    for (size_t i = 0; i < 5; i++) {
        s.reach = span_str(reach[i]);
        s.generation++;
        struct dynbuf *b = from(&p);
        wire_put_sandbox(b, &s);
        msg_put_u8(b, false);
        assert_int_equal(give(&p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
        again(&p);
        give_request(&p, XID(i), GET("/a"));
        if (i < 3) {
            expect_reply(&p, XID(i), 403, "network-denied");
            expect_audit(&p, XID(i), "allow", "network-denied");
            give_request(&p, XID(10 + i), POST("/held", "x")); /* and nobody is asked to approve it */
            expect_reply(&p, XID(10 + i), 403, "network-denied");
            expect_audit(&p, XID(10 + i), "hold", "network-denied");
            continue;
        }
        if (i == 3)
            expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
        struct wire_forward f = expect_forward(&p, XID(i), NULL);
        assert_true(span_eq(f.reach, i == 3 ? span_str(reach[i]) : SPAN_NONE));
        give_result(&p, XID(i), OUTCOME_NOT_SENT, 0, false, i == 3 ? "network-denied" : "upstream-closed");
        expect_reply(&p, XID(i), i == 3 ? 403 : 502, i == 3 ? "network-denied" : NULL);
        expect_outcome(&p, XID(i), false);
    }
    play_close(&p);
}

/* Of a place that this sandbox may only reach at some addresses, nobody says at which one another of its session was
 * answered. */
static void a_kept_answer_is_not_given_where_the_address_decides(void **state)
{
    struct play p;
    static const char *const reach[] = {"-a 10.0.0.0/8\n", "+a 127.0.0.0/8\n", "+n api.example\n"};
    struct wire_sandbox s = {.name = SPAN("sb"), .session = SPAN("ses"), .generation = 1};
    struct wire_ticket_state t = {.ticket = {{1}}, .state = TICKET_DONE, .joined = true, .has_answer = true};
    struct wire_answer a = {.status = 201, .reason = SPAN("Created")};
    play_all(&p, "hold write POST /w rule=writes\n");
    for (size_t i = 0; i < 3; i++) {
        s.reach = span_str(reach[i]);
        struct dynbuf *b = from(&p);
        wire_put_sandbox(b, &s);
        msg_put_u8(b, false);
        assert_int_equal(give(&p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
        give_request(&p, XID(i + 1), POST("/w", "x"));
        expect_ticket_open(&p, XID(i + 1));
        b = from(&p);
        wire_put_ticket_state(b, &t);
        wire_put_answer(b, &a);
        msg_put_u64(b, 7);
        msg_put_span(b, SPAN("made it"));
        assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET, XID(i + 1), -1), 0);
        expect_reply(&p, XID(i + 1), i < 2 ? 409 : 201, i < 2 ? "executed" : "made it");
        expect_audit(&p, XID(i + 1), "hold", i < 2 ? "executed" : "answer-kept");
    }
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_passes_before_it_is_on_disk),
        cmocka_unit_test(at_once_as_one_after_the_other),
        cmocka_unit_test(bytes_are_given_as_long_as_there_are_any),
        cmocka_unit_test(what_is_endless_blocks_nobody),
        cmocka_unit_test(what_cannot_fit_takes_nothing),
        cmocka_unit_test(it_goes_on_where_the_ledger_says),
        cmocka_unit_test(a_tenants_is_counted_anew_after_its_time),
        cmocka_unit_test(a_narrowing_is_before_the_policy),
        cmocka_unit_test(a_kept_answer_is_not_given_where_the_address_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
