/* The judge: a held call of an agent whose own client can ask its user (MCP's Multi Round-Trip). */
#include "tests/play/judge/play_lease.h"

#define HOLDS "hold write POST /w rule=writes cred=1 wait=1000\n"
#define CALL(id, more)                                                                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"pay\",\"_meta\":{"          \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{\"url\":{}}},\"progressToken\":" id "}" more   \
    "}}"
#define STATE        ",\"requestState\":\"countersign:3afbddd1da7fcd64:1:x\""
#define SAID(action) STATE ",\"inputResponses\":{\"countersign\":{\"action\":\"" action "\"}}"
#define FILLED(content)                                                                                              \
    STATE ",\"inputResponses\":{\"countersign\":{\"action\":\"accept\",\"content\":{" content "}}}"
#define RPC(text)                                                                                                    \
    (&(struct ask){.method = "POST",                                                                                 \
                   .path = "/w",                                                                                     \
                   .header = "Content-Type",                                                                         \
                   .value = "application/json",                                                                      \
                   .more = {{SPAN("Mcp-Method"), SPAN("tools/call")}},                                               \
                   .body = (text)})

static void open_desk(struct play *p)
{
    play_all(p, HOLDS);
    assert_int_equal(judge_config(p->j, SPAN("desk_url"), SPAN("https://desk.example")), JUDGE_CONFIG_OK);
}

/* Held, and told to ask: the digest and join key of its ticket. */
static struct wire_ticket asked(struct play *p, unsigned n, const struct ask *a)
{
    give_request(p, XID(n), a);
    struct wire_ticket t = expect_ticket_open(p, XID(n));
    give_ticket(p, XID(n), 1, TICKET_PENDING);
    struct wire_reply r =
        expect_reply(p, XID(n), 200,
                     "\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{\"countersign\":"
                     "{\"method\":\"elicitation/create\",\"params\":{\"message\":\"");
    assert_true(span_find(r.body, SPAN("\"mode\":\"url\",\"elicitationId\":\"")) < r.body.n);
    assert_true(span_find(r.body, SPAN("\"url\":\"https://desk.example/tickets/")) < r.body.n);
    assert_true(span_find(r.body, SPAN("\"requestState\":\"countersign:")) < r.body.n);
    expect_audit(p, XID(n), "hold", "held");
    return t;
}

/* The user has looked, and the call comes again: it is the same one, waits, and is told to come again by itself. */
static void who_comes_again_waits_and_gets_the_answer(void **state)
{
    struct play p;
    struct span body;
    open_desk(&p);
    struct wire_ticket first = asked(&p, 1, RPC(CALL("1", "")));
    struct digest d = first.record.request, join = first.join;
    give_request(&p, XID(2), RPC(CALL("2", SAID("accept"))));
    struct wire_ticket again = expect_ticket_open(&p, XID(2));
    assert_memory_equal(&again.join, &join, sizeof(join));
    give_ticket(&p, XID(2), 1, TICKET_PENDING);
    expect_nothing(&p);
    play_time(&p, 1001);
    struct wire_reply r =
        expect_reply(&p, XID(2), 200, "\"resultType\":\"input_required\",\"requestState\":\"countersign:");
    assert_true(span_find(r.body, SPAN("inputRequests")) == r.body.n);
    expect_audit(&p, XID(2), "hold", "held");
    give_request(&p, XID(3), RPC(CALL("3", STATE)));
    again = expect_ticket_open(&p, XID(3));
    assert_memory_equal(&again.join, &join, sizeof(join));
    give_ticket(&p, XID(3), 1, TICKET_APPROVED);
    expect(&p, ROLE_LEDGER, M_CLAIM, XID(3));
    give_claimed(&p, XID(3), RPC(CALL("1", "")), &d);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(3));
    struct wire_forward f = expect_forward(&p, XID(3), &body);
    assert_true(span_eq(body, SPAN(CALL("1", ""))) && span_eq(f.answer_id, SPAN("3")));
    give_result(&p, XID(3), OUTCOME_ANSWERED, 200, true, "");
    assert_int_equal(expect_outcome(&p, XID(3), true), OUTCOME_ANSWERED);
    play_close(&p);
}

/* What a sandbox says of its user takes back, and never approves: the ledger is asked to, and opens nothing. What is
 * sent already is told as such. */
static void who_declines_takes_it_back(void **state)
{
    static const struct {
        enum ticket_state now; /* as the ledger finds it */
        unsigned status;
        const char *says, *answer, *why;
    } rows[] = {{TICKET_CANCELLED, 403, "\"error\":{\"code\":-32010,\"message\":\"Cancelled by its own client",
                 SAID("decline"), ""},
                {TICKET_CANCELLED, 403, "\"error\":{\"code\":-32010,\"message\":\"Cancelled by its own client",
                 FILLED("\"answer\":\"deny\",\"reason\":\"wrong bill\""), "wrong bill"},
                {TICKET_EXECUTING, 409, "executing", SAID("decline"), ""}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct play p;
        struct wire_ticket_state t = {.ticket = {{1}},
                                      .state = rows[i].now,
                                      .by = SPAN("its own client"),
                                      .words = SPAN("its user declined it there")};
        open_desk(&p);
        asked(&p, 1, RPC(CALL("1", "")));
        char call[1024];
        (void)snprintf(call, sizeof(call), CALL("2", "%s"), rows[i].answer);
        give_request(&p, XID(2), RPC(call));
        struct wire_ticket back = expect_ticket_open(&p, XID(2));
        assert_true(back.take_back && span_eq(back.agent_reason, span_str(rows[i].why)));
        struct dynbuf *b = from(&p);
        wire_put_ticket_state(b, &t);
        assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET, XID(2), -1), 0);
        expect_reply(&p, XID(2), rows[i].status, rows[i].says);
        expect_audit(&p, XID(2), "hold", rows[i].status == 403 ? "ticket-cancelled" : "executing");
        play_close(&p);
    }
    covers("E1");
}

/* Nor is it sent when the policy lets it go by now. */
static void what_was_declined_is_not_sent(void **state)
{
    struct play p;
    struct wire_ticket_state t = {
        .state = TICKET_CANCELLED, .by = SPAN("its own client"), .words = SPAN("its user declined it there")};
    play_all(&p, "allow write POST /w rule=writes cred=1\n");
    assert_int_equal(judge_config(p.j, SPAN("desk_url"), SPAN("https://desk.example")), JUDGE_CONFIG_OK);
    give_request(&p, XID(1), RPC(CALL("2", SAID("decline"))));
    assert_true(expect_ticket_open(&p, XID(1)).take_back);
    wire_put_ticket_state(from(&p), &t);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_TICKET, XID(1), -1), 0);
    expect_reply(&p, XID(1), 403, "Cancelled by its own client");
    expect_audit(&p, XID(1), "allow", "ticket-cancelled");
    play_close(&p);
    covers("E1");
}

/* The words of the form are searched as the agent's own are: no ticket has a lease in its history. Its own, another
 * sandbox's, and its own in a coding. */
static void a_lease_in_the_form_is_not_written_down(void **state)
{
    for (unsigned i = 0; i < 3; i++) {
        struct play p;
        struct wire_lease l;
        char call[1024], coded[8] = "";
        open_with(&p, HOLDS, &l);
        assert_int_equal(judge_config(p.j, SPAN("desk_url"), SPAN("https://desk.example")), JUDGE_CONFIG_OK);
        l.sandbox = i == 1 ? SPAN("another") : l.sandbox;
        tell_lease(&p, &l);
        if (i == 2)
            (void)snprintf(coded, sizeof(coded), "%%%02x", text_of(1)[0]);
        (void)snprintf(call, sizeof(call), CALL("2", FILLED("\"answer\":\"deny\",\"reason\":\"use %s%s\"")), coded,
                       text_of(1) + (i == 2));
        give_request(&p, XID(1), RPC(call));
        if (i == 1)
            (void)expect(&p, ROLE_LEDGER, M_LEASE_LEAK, XID(1));
        (void)expect_reply(&p, XID(1), 403, i == 1 ? "lease-leaked" : "lease-misplaced");
        (void)expect(&p, ROLE_LEDGER, M_AUDIT, XID(1));
        assert_true(span_find(dynbuf_span(&p.got.payload), span_str(text_of(1) + 1)) == p.got.payload.n);
        expect_nothing(&p);
        play_close(&p);
    }
    covers("D12");
}

static void who_accepts_has_approved_nothing(void **state)
{
    struct play p;
    open_desk(&p);
    asked(&p, 1, RPC(CALL("1", "")));
    const struct ask *answers[] = {RPC(CALL("2", SAID("accept"))), RPC(CALL("2", SAID("approve"))),
                                   RPC(CALL("2", FILLED("\"answer\":\"approve\""))),
                                   RPC(CALL("2", FILLED("\"answer\":\"wait\",\"reason\":\"please\"")))};
    for (unsigned n = 2; n < 6; n++) {
        give_request(&p, XID(n), answers[n - 2]);
        struct wire_ticket t = expect_ticket_open(&p, XID(n));
        assert_true(!t.take_back && t.agent_reason.n == 0);
        give_ticket(&p, XID(n), 1, TICKET_PENDING);
        expect_nothing(&p);
        assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CANCEL, XID(n), (from(&p), -1)), 0);
    }
    play_close(&p);
    covers("E1");
}

/* Only closed what was shown; no page to lead to; a client that cannot ask; an id by which no retry is known. */
static void others_are_told_as_before(void **state)
{
    static const char cannot[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"pay\"}}";
    const struct ask *asks[] = {RPC(CALL("1", SAID("cancel"))), RPC(CALL("1", "")), RPC(cannot), RPC(CALL("-1", ""))};
    for (unsigned i = 0; i < 4; i++) {
        struct play p;
        open_desk(&p);
        if (i == 1)
            assert_int_equal(judge_config(p.j, SPAN("desk_url"), SPAN("")), JUDGE_CONFIG_OK);
        give_request(&p, XID(1), asks[i]);
        expect_ticket_open(&p, XID(1));
        give_ticket(&p, XID(1), 1, TICKET_PENDING);
        expect_nothing(&p);
        play_time(&p, 1001);
        expect_reply(&p, XID(1), 403, "\"error\":{\"code\":-32010,\"message\":");
        expect_audit(&p, XID(1), "hold", "held");
        play_close(&p);
    }
}

/* What is let go without a ticket leaves without our part as well; a round of the server's own leaves as it is. */
static void the_server_hears_of_no_round_but_its_own(void **state)
{
    static const char *const bodies[][2] = {
        {CALL("2", SAID("accept")), CALL("2", "")},
        {CALL("2", ",\"requestState\":\"x\",\"inputResponses\":{\"countersign\":{\"action\":\"decline\"}}"), NULL}};
    for (unsigned i = 0; i < 2; i++) {
        struct play p;
        struct span body;
        play_all(&p, "allow write POST /w rule=writes cred=1\n");
        assert_int_equal(judge_config(p.j, SPAN("desk_url"), SPAN("https://desk.example")), JUDGE_CONFIG_OK);
        give_request(&p, XID(1), RPC(bodies[i][0]));
        expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
        give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
        expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
        expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
        (void)expect_forward(&p, XID(1), &body);
        assert_true(span_eq(body, span_str(bodies[i][1] ? bodies[i][1] : bodies[i][0])));
        give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
        assert_int_equal(expect_outcome(&p, XID(1), false), OUTCOME_ANSWERED);
        play_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_comes_again_waits_and_gets_the_answer),
        cmocka_unit_test(who_declines_takes_it_back),
        cmocka_unit_test(what_was_declined_is_not_sent),
        cmocka_unit_test(a_lease_in_the_form_is_not_written_down),
        cmocka_unit_test(who_accepts_has_approved_nothing),
        cmocka_unit_test(others_are_told_as_before),
        cmocka_unit_test(the_server_hears_of_no_round_but_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
