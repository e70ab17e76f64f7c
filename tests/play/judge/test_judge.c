/* The judge: what passes, what is refused, and what is written down of it. */
#include "tests/play/judge/play.h"

#define READS "allow read GET /free rule=reads\n"

static void an_allowed_read_passes(void **state)
{
    struct play p;
    play_all(&p, READS);
    give_request(&p, XID(1), &(struct ask){.method = "GET", .path = "/free/x", .query = "a=1"});
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    struct wire_forward f = expect_forward(&p, XID(1), NULL);
    assert_true(f.repeatable);
    assert_int_equal(f.release, RELEASE_NONE);
    assert_int_equal(f.body, BODY_NONE);
    expect_nothing(&p);
    give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    assert_int_equal(expect_outcome(&p, XID(1), false), OUTCOME_ANSWERED);
    assert_int_equal(judge_exchanges(p.j), 0);

    give_request(&p, XID(2), GET("/free/y")); /* the upstream is told once */
    expect_forward(&p, XID(2), NULL);
    give_result(&p, XID(2), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(&p, XID(2), false);
    play_close(&p);
}

static void a_denial_says_why_and_is_recorded(void **state)
{
    struct play p;
    play_all(&p, "deny write POST /no rule=nope say=Not_on_Fridays\n");
    give_request(&p, XID(1), POST("/no/a", "x"));
    expect_reply(&p, XID(1), 403, "Not on Fridays");
    expect_audit(&p, XID(1), "deny", "rule");
    give_request(&p, XID(2), GET("/elsewhere"));
    expect_reply(&p, XID(2), 403, "\"code\":\"denied\"");
    expect_audit(&p, XID(2), "deny", "no-rule");
    covers("A33");
    play_close(&p);
}

/* What the clock alone will change is not refused for good. */
static void a_denial_of_these_hours_says_when_to_repeat_it(void **state)
{
    struct play p;
    play_all(&p, "deny write POST /no rule=nope\n"
                 "deny write POST /later rule=shut say=Not_on_Fridays opens=90000\n");
    give_request(&p, XID(1), POST("/no", "x"));
    expect_reply(&p, XID(1), 403, "\"retry\":false,\"next_steps\":\"Do not repeat it unchanged");
    expect_audit(&p, XID(1), "deny", "rule");
    give_request(&p, XID(2), POST("/later", "x"));
    expect_reply(&p, XID(2), 403,
                 "\"retry\":true,\"next_steps\":\"Repeat the same request after 2026-11-23T09:00:00Z.\"");
    expect_audit(&p, XID(2), "deny", "rule");
    give_request(&p, XID(3), POST("/later", "x"));
    expect_reply(&p, XID(3), 403,
                 "\"detail\":\"Not on Fridays. It is held for approval mon-fri 09:00-17:00 UTC, next from "
                 "2026-11-23T09:00:00Z on.\"");
    expect_audit(&p, XID(3), "deny", "rule");
    play_close(&p);
}

/* Whatever form the refusal has. */
static void a_refusal_says_the_smallest_change(void **state)
{
    struct play p;
    play_all(&p, "deny write POST /no rule=nope near=1\ndeny write POST /said rule=told say=No near=1\n"
                 "hold write POST /wait rule=wait wait=0 near=1\n");
    give_request(&p, XID(1), POST("/no", "x"));
    expect_reply(&p, XID(1), 403, "/no is not allowed by the policy. To refs/heads/agent/* it is allowed.\"");
    expect_audit(&p, XID(1), "deny", "rule");
    give_request(&p, XID(2), POST("/said", "x"));
    expect_reply(&p, XID(2), 403, "\"message\":\"No. To refs/heads/agent/* it is allowed.\"");
    expect_audit(&p, XID(2), "deny", "rule");
    give_request(&p, XID(3), POST("/wait", "x"));
    expect_ticket_open(&p, XID(3));
    give_ticket(&p, XID(3), 1, TICKET_PENDING);
    expect_reply(&p, XID(3), 403, ". To refs/heads/agent/* it is allowed.\"");
    expect_audit(&p, XID(3), "hold", "held");
    play_close(&p);
}

static void what_is_not_understood_has_a_cause(void **state)
{
    struct play p;
    play_all(&p, "deny write POST /odd unclear\n");
    give_request(&p, XID(1), POST("/odd", "x"));
    expect_reply(&p, XID(1), 403, "\"code\":\"unclassified\",\"cause\":\"ambiguous\"");
    struct msg_in m = expect(&p, ROLE_LEDGER, M_AUDIT, XID(1));
    struct wire_record r;
    assert_int_equal(wire_get_record(&m, &r), 0);
    assert_true(span_eq(r.code, SPAN("unclassified")) && span_eq(r.cause, SPAN("in-query")));
    give_request(&p, XID(2), POST("/odd", "x"));
    expect_reply(&p, XID(2), 403, "and could not: it may mean two things.\"");
    expect_audit(&p, XID(2), "deny", "unclassified");
    play_close(&p);
}

/* F15: what came of a write is said until it is written, also to the ledger after one that died. */
static void an_outcome_is_kept_until_it_is_written(void **state)
{
    struct play p;
    play_all(&p, "allow write POST /ok rule=ok\nallow read GET /r rule=r\n");
    p.unwritten = true;
    for (unsigned n = 1; n <= 3; n++) {
        give_request(&p, XID(n), n < 3 ? POST("/ok", "c") : GET("/r"));
        if (n < 3) {
            expect(&p, ROLE_LEDGER, M_INTENT, XID(n));
            give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(n), true);
        }
        if (n == 1)
            expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
        expect_forward(&p, XID(n), NULL);
        give_result(&p, XID(n), OUTCOME_ANSWERED, 200, true, "");
        expect_outcome(&p, XID(n), false);
    }
    (void)from(&p);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_OUTCOME_OK, XID(2), -1), 0);
    play_gone(&p, ROLE_LEDGER, 0);
    expect_nothing(&p);
    play_peer(&p, ROLE_LEDGER, 0, "");
    p.unwritten = false;
    assert_int_equal(expect_outcome(&p, XID(1), false), OUTCOME_ANSWERED); /* and no other, and no read */
    expect_nothing(&p);
    play_gone(&p, ROLE_LEDGER, 0);
    play_peer(&p, ROLE_LEDGER, 0, "");
    expect_nothing(&p);
    covers("F15");
    play_close(&p);
}

static void expect_ranges(struct play *p, uint16_t type, uint64_t xid, const char *range, const char *sent)
{
    struct wire_record r;
    struct msg_in m = expect(p, ROLE_LEDGER, type, xid);
    assert_int_equal(wire_get_record(&m, &r), 0);
    assert_true(span_eq(r.range, span_str(range)) && span_eq(r.range_sent, span_str(sent)));
}

/* D46: the record has the range that was asked for and the wider one that the upstream was asked for. */
static void both_ranges_are_recorded(void **state)
{
    struct play p;
    struct ask a = {.method = "GET", .path = "/free/x", .header = "Range", .value = "bytes=100-199"};
    play_all(&p, READS "deny read GET /no rule=no\n");
    give_request(&p, XID(1), &a);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    struct wire_forward f = expect_forward(&p, XID(1), NULL);
    assert_true(span_eq(f.request.field[0].value, span_str(a.value)));
    p.range_sent = "bytes=0-711";
    give_result(&p, XID(1), OUTCOME_ANSWERED, 206, true, "");
    expect_ranges(&p, M_OUTCOME, XID(1), "bytes=100-199", "bytes=0-711");
    p.range_sent = NULL;
    give_request(&p, XID(2), GET("/free/x"));
    expect_forward(&p, XID(2), NULL);
    give_result(&p, XID(2), OUTCOME_ANSWERED, 200, true, "");
    expect_ranges(&p, M_OUTCOME, XID(2), "", "");
    a.path = "/no";
    give_request(&p, XID(3), &a);
    expect_reply(&p, XID(3), 403, NULL);
    expect_ranges(&p, M_AUDIT, XID(3), "bytes=100-199", "");
    play_close(&p);
}

/* D14, D26: what is decided, forwarded and recorded has the mark in the slot, and nothing of the client's own. */
static void a_slot_in_the_request_is_marked(void **state)
{
    struct play p;
    struct ask a = {.method = "GET", .path = "/q", .query = "key=lease"};
    play_all(&p, "allow read GET /q rule=q cred=3\nhold write POST /q rule=w cred=3\n");
    give_request(&p, XID(1), &a);
    (void)expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    (void)expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    struct wire_forward f = expect_forward(&p, XID(1), NULL);
    assert_true(f.slot == SLOT_QUERY && f.slot_at == 4 && span_eq(f.request.query, SPAN("key=~cred3~")));
    give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    struct msg_in m = expect(&p, ROLE_LEDGER, M_OUTCOME, XID(1));
    assert_true(span_find(m.rest, SPAN("key=~cred3~")) < m.rest.n && span_find(m.rest, SPAN("lease")) == m.rest.n);
    a.query = "none";
    give_request(&p, XID(2), &a);
    expect_reply(&p, XID(2), 400, "\"code\":\"no-slot\"");
    expect_audit(&p, XID(2), "allow", "no-slot");
    a.method = "POST";
    a.query = "key=other";
    give_request(&p, XID(3), &a);
    assert_true(span_eq(expect_ticket_open(&p, XID(3)).request.query, SPAN("key=~cred3~")));
    give_ticket(&p, XID(3), 1, TICKET_DENIED);
    expect_reply(&p, XID(3), 403, NULL);
    expect_audit(&p, XID(3), "hold", "ticket-denied");
    play_close(&p);
}

/* D7: what the carrier would not send is refused before anybody is asked; where nothing is searched, it is sent. */
static void ranges_that_cannot_be_had_open_no_ticket(void **state)
{
    static const char *const bad[] = {"bytes=0-0,2-2", "lines=1-2", "bytes=5-4", ""};
    struct play p;
    struct ask a = {.method = "GET", .path = "/w", .header = "Range"};
    uint64_t n = 0;
    play_all(&p, "hold read GET /w rule=reads cred=1\nallow read GET /r rule=r limit=1/1000 cred=1\n");
    for (size_t i = 0; i < 2 * sizeof(bad) / sizeof(bad[0]); i++) {
        a.path = i % 2 ? "/w" : "/r";
        a.value = bad[i / 2];
        give_request(&p, XID(++n), &a);
        expect_reply(&p, XID(n), 416, "\"code\":\"range-refused\"");
        expect_audit(&p, XID(n), i % 2 ? "hold" : "allow", "range-refused");
    }
    a.path = "/w";
    a.value = "bytes=0-0";
    give_request(&p, XID(++n), &a);
    (void)expect_ticket_open(&p, XID(n));
    give_ticket(&p, XID(n), 1, TICKET_DENIED);
    expect_reply(&p, XID(n), 403, NULL);
    expect_audit(&p, XID(n), "hold", "ticket-denied");
    play_policy(&p, "hold read GET /w rule=reads\n");
    a.value = bad[0];
    give_request(&p, XID(++n), &a);
    (void)expect_ticket_open(&p, XID(n));
    give_ticket(&p, XID(n), 2, TICKET_DENIED);
    expect_reply(&p, XID(n), 403, NULL);
    expect_audit(&p, XID(n), "hold", "ticket-denied");
    covers("D7");
    play_close(&p);
}

/* Its source says nothing, or there is no keeper: what the upstream said is the answer, and the client's to read. */
static void without_another_credential_the_answer_goes_on(void **state)
{
    struct play p;
    play_all(&p, "allow read GET / rule=r cred=1\n");
    for (unsigned n = 1; n <= 2; n++) {
        give_request(&p, XID(n), GET("/a"));
        if (n == 1)
            expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
        expect(&p, ROLE_KEEPER, M_RELEASE, XID(n));
        expect_forward(&p, XID(n), NULL);
        if (n == 2)
            play_gone(&p, ROLE_KEEPER, 0);
        msg_put_u64(from(&p), 7);
        assert_int_equal(give(&p, ROLE_CARRIER, 0, M_NEED_RELEASE, XID(n), -1), 0);
        if (n == 1) {
            expect(&p, ROLE_KEEPER, M_RELEASE, XID(n));
            struct dynbuf *b = from(&p);
            msg_put_span(b, SPAN("credential-unavailable"));
            msg_put_span(b, SPAN("the token endpoint says nothing"));
            assert_int_equal(give(&p, ROLE_KEEPER, 0, M_RELEASE_FAILED, XID(n), -1), 0);
        }
        struct msg_in m = expect(&p, ROLE_CARRIER, M_NEED_RELEASE, XID(n));
        assert_int_equal(msg_end(&m), 0);
        expect_nothing(&p);
        give_result(&p, XID(n), OUTCOME_ANSWERED, 401, true, "");
        assert_int_equal(expect_outcome(&p, XID(n), false), OUTCOME_ANSWERED);
    }
    play_close(&p);
}

/* By what it sends; the id of a call is in its body, which is there when it was held. A pack's word is above that. */
static void a_client_is_told_in_its_own_words(void **state)
{
    struct play p;
    char policy[200];
    struct ask call = {.method = "POST",
                       .path = "/rpc",
                       .header = "Content-Type",
                       .value = "application/json",
                       .body = "{\"jsonrpc\":\"2.0\",\"id\":\"c1\",\"method\":\"pay\"}"};
    snprintf(policy, sizeof(policy),
             "hold write POST /rpc rule=a wait=0\nhold write POST /said rule=b wait=0 dialect=%d\n", DIALECT_SLACK);
    play_all(&p, policy);
    give_request(&p, XID(1), &call);
    struct wire_ticket t = expect_ticket_open(&p, XID(1));
    assert_true(span_eq(t.dialect, SPAN("json-rpc")) && t.request.nfields == 2);
    /* Its answer may be given another id, and so has to come plain. */
    assert_true(span_eq(t.request.field[1].name, SPAN("Accept-Encoding")));
    assert_true(span_eq(t.request.field[1].value, SPAN("identity")));
    give_ticket(&p, XID(1), 1, TICKET_PENDING);
    expect_reply(&p, XID(1), 403, "{\"jsonrpc\":\"2.0\",\"id\":\"c1\",\"error\":{\"code\":-32010,\"message\":\"");
    expect_audit(&p, XID(1), "hold", "held");
    call.path = "/said";
    give_request(&p, XID(2), &call);
    assert_true(span_eq(expect_ticket_open(&p, XID(2)).dialect, SPAN("slack")));
    give_ticket(&p, XID(2), 2, TICKET_DENIED);
    expect_reply(&p, XID(2), 403, "{\"ok\":false,\"error\":\"");
    expect_audit(&p, XID(2), "hold", "ticket-denied");
    call = (struct ask){.method = "GET", .path = "/graphql"};
    give_request(&p, XID(3), &call);
    expect_reply(&p, XID(3), 403, "{\"errors\":[{\"message\":\"");
    expect_audit(&p, XID(3), "deny", "no-rule");
    play_close(&p);
}

/* ---- a retry whose bytes are others: what leaves are the bytes first held, and its client gets an answer that it
 * knows ---- */

#define HOLDS    "hold write POST /w rule=writes cred=1\n"
#define CALL(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"pay\"}}"
#define FORM(b)  "--" b "\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--" b "--\r\n"
#define RPC(text)                                                                                                    \
    (&(struct ask){                                                                                                  \
        .method = "POST", .path = "/w", .header = "Content-Type", .value = "application/json", .body = (text)})
#define MULTI(b)                                                                                                     \
    (&(struct ask){.method = "POST",                                                                                 \
                   .path = "/w",                                                                                     \
                   .header = "Content-Type",                                                                         \
                   .value = "multipart/form-data; boundary=" b,                                                      \
                   .body = FORM(b)})

/* Held and given up by its client: its digest and join key. */
static struct wire_ticket held(struct play *p, unsigned n, const struct ask *a)
{
    give_request(p, XID(n), a);
    struct wire_ticket t = expect_ticket_open(p, XID(n));
    give_ticket(p, XID(n), 1, TICKET_PENDING);
    assert_int_equal(give(p, ROLE_FRONT, FRONT, M_CANCEL, XID(n), (from(p), -1)), 0);
    return t;
}

/* The retry finds its ticket approved, and gets the first one's bytes to send. */
static struct wire_ticket claimed(struct play *p, unsigned n, const struct ask *retry, const struct ask *first,
                                  const struct digest *d)
{
    give_request(p, XID(n), retry);
    struct wire_ticket t = expect_ticket_open(p, XID(n));
    give_ticket(p, XID(n), 1, TICKET_APPROVED);
    expect(p, ROLE_LEDGER, M_CLAIM, XID(n));
    give_claimed(p, XID(n), first, d);
    return t;
}

static struct wire_forward sent(struct play *p, unsigned n, struct span *body)
{
    expect(p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(p, ROLE_KEEPER, M_RELEASE, XID(n));
    return expect_forward(p, XID(n), body);
}

static void done(struct play *p, unsigned n)
{
    give_result(p, XID(n), OUTCOME_ANSWERED, 200, true, "");
    assert_int_equal(expect_outcome(p, XID(n), true), OUTCOME_ANSWERED);
    play_close(p);
}

static void a_form_with_another_boundary_leaves_as_it_was_held(void **state)
{
    struct play p;
    struct span body;
    play_all(&p, HOLDS);
    struct wire_ticket first = held(&p, 1, MULTI("aaaa"));
    struct digest d = first.record.request, join = first.join;
    struct wire_ticket again = claimed(&p, 2, MULTI("bbbb"), MULTI("aaaa"), &d);
    assert_memory_equal(&again.join, &join, sizeof(join));
    assert_memory_not_equal(&again.record.request, &d, sizeof(d));
    struct wire_forward f = sent(&p, 2, &body);
    assert_true(span_eq(body, SPAN(FORM("aaaa"))) && f.answer_id.n == 0);
    assert_true(span_eq(f.request.field[0].value, SPAN("multipart/form-data; boundary=aaaa")));
    done(&p, 2);
}

/* The parts that do not count are no way to have other bytes sent than those that were approved. */
static void the_bytes_of_the_retry_are_not_sent(void **state)
{
    const struct ask *pairs[][2] = {{MULTI("aaaa"), MULTI("bbbb")}, {RPC(CALL("1")), RPC(CALL("2"))}};
    struct play p;
    for (size_t i = 0; i < 2; i++) {
        play_all(&p, HOLDS);
        struct digest d = held(&p, 1, pairs[i][0]).record.request;
        claimed(&p, 2, pairs[i][1], pairs[i][1], &d); /* a ledger that gives the retry's own */
        expect_reply(&p, XID(2), 503, "internal");
        assert_int_equal(expect_outcome(&p, XID(2), true), OUTCOME_NOT_SENT);
        play_close(&p);
    }
    covers("E1 E2");
}

static void json_rpc_is_answered_with_the_id_of_the_retry(void **state)
{
    struct play p;
    struct span body;
    play_all(&p, HOLDS);
    struct wire_ticket first = held(&p, 1, RPC(CALL("1")));
    struct digest d = first.record.request, join = first.join;
    struct wire_ticket again = claimed(&p, 2, RPC(CALL("27")), RPC(CALL("1")), &d);
    assert_memory_equal(&again.join, &join, sizeof(join));
    struct wire_forward f = sent(&p, 2, &body);
    assert_true(span_eq(body, SPAN(CALL("1"))) && span_eq(f.answer_id, SPAN("27")));
    done(&p, 2);
    play_all(&p, HOLDS); /* with the same id nothing is written over */
    d = held(&p, 1, RPC(CALL("\"a-1\""))).record.request;
    claimed(&p, 2, RPC(CALL("\"a-1\"")), RPC(CALL("\"a-1\"")), &d);
    f = sent(&p, 2, &body);
    assert_int_equal(f.answer_id.n, 0);
    done(&p, 2);
}

static void refusals_behind_the_claim_have_the_id_of_the_retry(void **state)
{
    struct play p;
    struct span body;
    play_all(&p, HOLDS);
    struct digest d = held(&p, 1, RPC(CALL("1"))).record.request;
    claimed(&p, 2, RPC(CALL("27")), RPC(CALL("1")), &d);
    (void)sent(&p, 2, &body);
    give_result(&p, XID(2), OUTCOME_UNKNOWN, 0, false, "upstream-closed");
    struct wire_reply r = expect_reply(&p, XID(2), 409, "outcome-unknown");
    assert_true(span_find(r.body, SPAN("\"id\":27")) < r.body.n);
    assert_int_equal(expect_outcome(&p, XID(2), true), OUTCOME_UNKNOWN);
    play_close(&p);
}

/* Kept under the id that it came with. */
static void a_kept_answer_has_the_id_of_the_retry(void **state)
{
    static const struct {
        const char *type, *coding, *kept, *given;
    } rows[] = {
        {"application/json", NULL, "{\"id\":1,\"result\":{}}", "{\"id\":27,\"result\":{}}"},
        {"text/event-stream", NULL, "data: {\"id\":1,\"result\":{}}\n\n", "data: {\"id\":27,\"result\":{}}\n\n"},
        {"application/json", "x", "{\"id\":1,\"result\":{}}", "{\"id\":1,\"result\":{}}"},
        {"text/plain", NULL, "{\"id\":1,\"result\":{}}", "{\"id\":1,\"result\":{}}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct play p;
        struct wire_ticket_state t = {.ticket = {{1}}, .state = TICKET_DONE, .joined = true, .has_answer = true};
        struct wire_answer a = {.status = 200, .reason = SPAN("OK"), .nfields = 1};
        a.field[0] = (struct http_field){SPAN("Content-Type"), span_str(rows[i].type)};
        if (rows[i].coding)
            a.field[a.nfields++] = (struct http_field){SPAN("Content-Encoding"), span_str(rows[i].coding)};
        play_all(&p, HOLDS);
        give_request(&p, XID(1), RPC(CALL("27")));
        expect_ticket_open(&p, XID(1));
        struct dynbuf *b = from(&p);
        wire_put_ticket_state(b, &t);
        wire_put_answer(b, &a);
        msg_put_u64(b, span_str(rows[i].kept).n);
        msg_put_span(b, span_str(rows[i].kept));
        assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET, XID(1), -1), 0);
        struct wire_reply r = expect_reply(&p, XID(1), 200, "result");
        assert_true(span_eq(r.body, span_str(rows[i].given)));
        expect_audit(&p, XID(1), "hold", "answer-kept");
        play_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allowed_read_passes),
        cmocka_unit_test(a_denial_says_why_and_is_recorded),
        cmocka_unit_test(what_is_not_understood_has_a_cause),
        cmocka_unit_test(a_denial_of_these_hours_says_when_to_repeat_it),
        cmocka_unit_test(a_refusal_says_the_smallest_change),
        cmocka_unit_test(an_outcome_is_kept_until_it_is_written),
        cmocka_unit_test(both_ranges_are_recorded),
        cmocka_unit_test(ranges_that_cannot_be_had_open_no_ticket),
        cmocka_unit_test(a_slot_in_the_request_is_marked),
        cmocka_unit_test(without_another_credential_the_answer_goes_on),
        cmocka_unit_test(a_client_is_told_in_its_own_words),
        cmocka_unit_test(a_form_with_another_boundary_leaves_as_it_was_held),
        cmocka_unit_test(the_bytes_of_the_retry_are_not_sent),
        cmocka_unit_test(json_rpc_is_answered_with_the_id_of_the_retry),
        cmocka_unit_test(refusals_behind_the_claim_have_the_id_of_the_retry),
        cmocka_unit_test(a_kept_answer_has_the_id_of_the_retry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
