/* The judge: tokens, CONNECT and its leafs, and what a sandbox may ask about itself. */
#include "proxy/judge/accounts/sandbox.h"
#include "proxy/walk.h"
#include "tests/play/judge/play.h"

#include <stdio.h>

static void expect_identity_is(struct play *p, const char *token, enum identity is, const char *sandbox)
{
    msg_put_span(from(p), span_str(token));
    assert_int_equal(give(p, ROLE_LOBBY, 0, M_IDENTIFY, 77, -1), 0);
    struct msg_in m = expect(p, ROLE_LOBBY, M_IDENTITY, 77);
    assert_int_equal(msg_get_u8(&m), is);
    assert_true(span_eq(msg_get_span(&m, 256), span_str(sandbox)));
    assert_int_equal(msg_end(&m), 0);
}

static void expect_identity(struct play *p, const char *token, const char *sandbox)
{
    expect_identity_is(p, token, sandbox != NULL ? IDENTITY_KNOWN : IDENTITY_UNKNOWN, sandbox);
}

static void a_token_is_one_sandboxs(void **state)
{
    struct play p;
    play_all(&p, "");
    play_sandbox(&p, "other", "o", "token-of-other", false);
    play_sandbox(&p, "channel", "c", NULL, false);
    expect_identity(&p, "token-of-sb", "sb");
    expect_identity(&p, "token-of-other", "other");
    expect_identity(&p, "token-of-s", NULL);
    expect_identity(&p, "token-of-sbx", NULL);
    expect_identity(&p, "", NULL);
    play_sandbox(&p, "other", "o", "new-token", false); /* rotated */
    expect_identity(&p, "token-of-other", NULL);
    expect_identity(&p, "new-token", "other");
    play_sandbox(&p, "other", "o", NULL, true);
    expect_identity(&p, "new-token", NULL);
    play_close(&p);
}

static void expect_over(struct play *p, uint64_t instance)
{
    struct msg_in m = expect(p, ROLE_PARENT, M_FRONT_OVER, 0);
    assert_true(msg_get_u64(&m) == instance);
    assert_int_equal(msg_end(&m), 0);
}

/* A front is its session's: whoever gets the name later has nothing to do with what comes through it. */
static void a_front_serves_one_session(void **state)
{
    static const char *const sessions[] = {"ses", "another"}; /* of the next one of that name */
    for (size_t i = 0; i < 2; i++) {
        struct play p;
        play_all(&p, "allow read GET /\n");
        p.up[ROLE_PARENT] = true;
        play_sandbox(&p, "sb", "ses", "new-token", false); /* the same one */
        give_request(&p, XID(1), GET("/x"));
        expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
        expect_forward(&p, XID(1), NULL);
        give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
        expect_outcome(&p, XID(1), false);
        if (i == 0) {
            play_sandbox(&p, "sb", "ses", NULL, true);
            expect_over(&p, FRONT);
        }
        play_sandbox(&p, "sb", sessions[i], "token", false);
        if (i == 1)
            expect_over(&p, FRONT);
        play_sandbox(&p, "sb", sessions[i], "token2", false); /* said once */
        give_request(&p, XID(2), GET("/x"));
        expect_reply(&p, XID(2), 403, "unknown-sandbox");
        (void)expect(&p, ROLE_LEDGER, M_AUDIT, XID(2));
        play_peer(&p, ROLE_FRONT, OTHER_FRONT, "sb");
        give_request(&p, OTHER(1), GET("/x"));
        expect_forward(&p, OTHER(1), NULL);
        give_result(&p, OTHER(1), OUTCOME_ANSWERED, 200, true, "");
        expect_outcome(&p, OTHER(1), false);
        expect_nothing(&p);
        play_close(&p);
    }
}

static void give_started(struct play *p, const char *kind, uint64_t generation)
{
    struct wire_sandbox s = {
        .name = SPAN("sb"), .session = SPAN("ses"), .kind = span_str(kind), .generation = generation};
    struct dynbuf *b = from(p);
    wire_put_sandbox(b, &s);
    msg_put_u8(b, false);
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
}

/* One that the gateway started and that goes on after a pause, or ended, is another one: what it had connected before
 * is nobody's. Of others that are put again, with another token or label, it stays. */
static void a_started_sandbox_that_goes_on_has_no_connection_of_before(void **state)
{
    static const struct {
        const char *kind;
        uint64_t generation;
        bool over;
    } cases[] = {
        {"started", 1, false}, {"started", 2, true}, {"ended", 1, true}, {"ended", 2, true}, {"token", 2, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct play p;
        play_all(&p, "allow read GET /\n");
        p.up[ROLE_PARENT] = true;
        give_started(&p, "started", 1); /* what play_all made of it was of no generation */
        expect_over(&p, FRONT);
        play_peer(&p, ROLE_FRONT, OTHER_FRONT, "sb");
        give_started(&p, cases[i].kind, cases[i].generation);
        if (cases[i].over)
            expect_over(&p, OTHER_FRONT);
        give_request(&p, OTHER(1), GET("/x"));
        if (cases[i].over) {
            expect_reply(&p, OTHER(1), 403, "unknown-sandbox");
            (void)expect(&p, ROLE_LEDGER, M_AUDIT, OTHER(1));
        } else {
            expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
            expect_forward(&p, OTHER(1), NULL);
            give_result(&p, OTHER(1), OUTCOME_ANSWERED, 200, true, "");
            expect_outcome(&p, OTHER(1), false);
        }
        expect_nothing(&p);
        play_close(&p);
    }
}

/* Its last token was taken away: neither that nor an earlier one is good; nor is an empty one that was ever set. */
static void without_a_token_no_earlier_one_is_good(void **state)
{
    struct play p;
    struct wire_sandbox s = {.name = SPAN("sb"), .session = SPAN("ses"), .nolder = 1};
    play_all(&p, "");
    for (unsigned has = 0; has < 2; has++) {
        s.has_token = has != 0;
        digest_of(SPAN("earlier"), &s.older[0]);
        digest_of(SPAN(""), &s.token_hash);
        struct dynbuf *b = from(&p);
        wire_put_sandbox(b, &s);
        msg_put_u8(b, false);
        assert_int_equal(give(&p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), has ? 0 : -1);
        expect_identity(&p, "earlier", has ? "sb" : NULL);
        expect_identity(&p, "", NULL);
    }
    play_close(&p);
}

static void connect_to(struct play *p, uint64_t xid, const char *host)
{
    struct dynbuf *b = from(p);
    msg_put_span(b, SPAN("https"));
    msg_put_span(b, span_str(host));
    msg_put_u16(b, 443);
    assert_int_equal(give(p, ROLE_FRONT, FRONT, M_CONNECT, xid, -1), 0);
}

static void key(struct play *p)
{
    msg_put_span(from(p), SPAN("the front's key"));
    assert_int_equal(give(p, ROLE_FRONT, FRONT, M_FRONT_KEY, 0, -1), 0);
}

static void minted(struct play *p, uint64_t xid, const char *leaf)
{
    struct dynbuf *b = from(p);
    msg_put_span(b, span_str(leaf));
    msg_put_span(b, span_str(leaf[0] ? "ca" : ""));
    assert_int_equal(give(p, ROLE_KEEPER, 0, M_MINTED, xid, -1), 0);
}

static void expect_leaf(struct play *p, uint64_t xid, const char *leaf, unsigned refused_with)
{
    struct wire_reply r;
    struct msg_in m = expect(p, ROLE_FRONT, M_LEAF, xid);
    assert_true(span_eq(msg_get_span(&m, 256), span_str(leaf)));
    assert_true(span_eq(msg_get_span(&m, 256), span_str(leaf[0] ? "ca" : "")));
    if (!leaf[0]) {
        assert_int_equal(wire_get_reply(&m, &r), 0);
        assert_int_equal(r.head.status, refused_with);
    }
    assert_int_equal(msg_end(&m), 0);
    if (!leaf[0])
        (void)expect(p, ROLE_LEDGER, M_AUDIT, xid); /* a CONNECT that is refused is seen */
}

static void a_leaf_is_minted_once(void **state)
{
    struct play p;
    play_all(&p, "");
    key(&p);
    connect_to(&p, XID(1), "api.example");
    struct msg_in m = expect(&p, ROLE_KEEPER, M_MINT, XID(1));
    assert_true(span_eq(msg_get_span(&m, 256), SPAN("api.example")));
    assert_true(span_eq(msg_get_span(&m, 256), SPAN("the front's key")));
    connect_to(&p, XID(2), "api.example"); /* waits for the same one */
    expect_nothing(&p);
    minted(&p, XID(1), "leaf");
    expect_leaf(&p, XID(2), "leaf", 0);
    expect_leaf(&p, XID(1), "leaf", 0);
    connect_to(&p, XID(3), "api.example");
    expect_leaf(&p, XID(3), "leaf", 0);
    play_time(&p, 12 * 3600 * 1000 + 1);
    connect_to(&p, XID(4), "api.example");
    expect(&p, ROLE_KEEPER, M_MINT, XID(4));
    minted(&p, XID(4), "");
    expect_leaf(&p, XID(4), "", 503);
    connect_to(&p, XID(5), "api.example");
    expect(&p, ROLE_KEEPER, M_MINT, XID(5));
    play_gone(&p, ROLE_KEEPER, 0);
    expect_leaf(&p, XID(5), "", 503);
    connect_to(&p, XID(6), "api.example");
    expect_leaf(&p, XID(6), "", 503);
    play_close(&p);
}

/* Denied hosts get leafs, so that the denial shows inside TLS; but not without end. */
static void leafs_for_denied_hosts_have_a_budget(void **state)
{
    struct play p;
    char host[32];
    play_all(&p, "");
    key(&p);
    for (unsigned i = 0; i <= 32; i++) {
        int n = snprintf(host, sizeof(host), "h%u.example", i);
        assert_true(n > 0);
        connect_to(&p, XID(i), host);
        if (i == 32) {
            expect_leaf(&p, XID(i), "", 403);
            break;
        }
        expect(&p, ROLE_KEEPER, M_MINT, XID(i));
        minted(&p, XID(i), "leaf");
        expect_leaf(&p, XID(i), "leaf", 0);
    }
    connect_to(&p, XID(100), "h3.example"); /* one that it has */
    expect_leaf(&p, XID(100), "leaf", 0);
    connect_to(&p, XID(101), "api.example"); /* one that is named */
    expect(&p, ROLE_KEEPER, M_MINT, XID(101));
    connect_to(&p, XID(104), "plain.example"); /* one that is named for http, which comes through CONNECT too */
    expect(&p, ROLE_KEEPER, M_MINT, XID(104));
    play_time(&p, 3600 * 1000 / 32);
    connect_to(&p, XID(102), "another.example");
    expect(&p, ROLE_KEEPER, M_MINT, XID(102));
    connect_to(&p, XID(103), "yet-another.example");
    expect_leaf(&p, XID(103), "", 403);
    play_close(&p);
}

static void a_front_without_its_key_or_sandbox_gets_no_leaf(void **state)
{
    struct play p;
    play_all(&p, "");
    struct dynbuf *b = from(&p);
    msg_put_span(b, SPAN("https"));
    msg_put_span(b, SPAN("api.example"));
    msg_put_u16(b, 443);
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CONNECT, XID(1), -1), -1);
    key(&p);
    msg_put_span(from(&p), SPAN("a second key"));
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_FRONT_KEY, 0, -1), -1);
    play_sandbox(&p, "sb", "ses", NULL, true);
    connect_to(&p, XID(2), "api.example");
    expect_leaf(&p, XID(2), "", 403);
    play_close(&p);
}

static int front_says(struct play *p, uint64_t xid, uint8_t step, const char *code, const char *scheme)
{
    struct dynbuf *b = from(p);
    msg_put_u8(b, step);
    msg_put_span(b, span_str(code));
    msg_put_span(b, span_str(scheme));
    msg_put_span(b, SPAN("api.example"));
    msg_put_u16(b, 80);
    return give(p, ROLE_FRONT, FRONT, M_FRONT_REFUSED, xid, -1);
}

static void front_says_refused(struct play *p, uint64_t xid, const char *code)
{
    assert_int_equal(front_says(p, xid, WALK_PARSE, code, "http"), 0);
}

/* What a front refuses goes into the audit, so many a second; the rest is counted in one record. */
static void refusals_of_a_front_are_recorded(void **state)
{
    struct play p;
    struct wire_record r;
    play_all(&p, "");
    play_time(&p, 5000);
    front_says_refused(&p, XID(1), "bad-method");
    struct msg_in m = expect(&p, ROLE_LEDGER, M_AUDIT, XID(1));
    assert_int_equal(wire_get_record(&m, &r), 0);
    assert_true(span_eq(r.sandbox, SPAN("sb")) && span_eq(r.session, SPAN("ses")) &&
                span_eq(r.verdict, SPAN("deny")));
    assert_true(span_eq(r.code, SPAN("bad-method")) && span_eq(r.op, SPAN("parse")) && r.effect.n == 0);
    assert_true(span_eq(r.scheme, SPAN("http")) && span_eq(r.host, SPAN("api.example")) && r.port == 80);
    for (unsigned i = 2; i <= 60; i++) {
        front_says_refused(&p, XID(i), "bad-method");
        if (i <= 50)
            expect_audit(&p, XID(i), "deny", "bad-method");
    }
    expect_nothing(&p);
    play_time(&p, 1000);
    front_says_refused(&p, XID(61), "coding-in-1.0");
    m = expect(&p, ROLE_LEDGER, M_AUDIT, XID(60));
    assert_int_equal(wire_get_record(&m, &r), 0);
    assert_true(span_eq(r.code, SPAN("more-refused")) && span_eq(r.resource, SPAN("10 more")));
    expect_audit(&p, XID(61), "deny", "coding-in-1.0");
    assert_int_equal(front_says(&p, XID(62), WALK_HOLD, "held", "http"), -1); /* not a front's to say */
    assert_int_equal(front_says(&p, XID(62), WALK_NONE, "held", "http"), -1);
    assert_int_equal(front_says(&p, XID(62), 200, "held", "http"), -1);
    assert_int_equal(front_says(&p, XID(62), WALK_PARSE, "", "http"), -1);
    assert_int_equal(front_says(&p, XID(62), WALK_PARSE, "two words", "http"), -1);
    assert_int_equal(front_says(&p, XID(62), WALK_PARSE, "x", "ftp"), -1);
    assert_int_equal(front_says(&p, (uint64_t)9 << 40 | 1, WALK_PARSE, "x", "http"), -1);
    for (unsigned i = 0; i < 51; i++) {
        front_says_refused(&p, XID(100 + i), "not-http");
        if (i < 49)
            expect_audit(&p, XID(100 + i), "deny", "not-http");
    }
    play_gone(&p, ROLE_FRONT, FRONT);
    expect_audit(&p, XID(150), "deny", "more-refused");
    play_close(&p);
}

static void ask_inside(struct play *p, uint64_t xid, uint64_t front, const char *method, const char *path)
{
    struct wire_request r = {.scheme = SPAN("http"), .host = SPAN("countersign.internal"), .port = 80};
    struct dynbuf *b = from(p);
    r.method = span_str(method);
    r.has_query = span_cut(span_str(path), '?', &r.path, &r.query);
    wire_put_request(b, &r);
    msg_put_span(b, SPAN_NONE);
    msg_put_u8(b, 0);
    msg_put_u64(b, 0);
    msg_put_span(b, SPAN_NONE);
    assert_int_equal(give(p, ROLE_FRONT, front, M_REQUEST, xid, -1), 0);
}

/* Asked of ticket 1, for the session of who asks, it says this. */
static void ledger_says(struct play *p, uint64_t xid, const char *session, bool answer, uint8_t known,
                        enum ticket_state s)
{
    struct wire_ticket_state st = {.ticket = {{1}}, .state = s, .expires_ms = PLAY_WALL + 3600000};
    struct msg_in m = expect(p, ROLE_LEDGER, M_TICKET_ASK, xid);
    struct id ticket;
    msg_get_id(&m, &ticket);
    assert_true(ticket.b[0] == 1 && span_eq(msg_get_span(&m, 64), span_str(session)));
    assert_true(msg_get_bool(&m) == answer && msg_end(&m) == 0);
    struct dynbuf *b = from(p);
    msg_put_u8(b, known);
    if (known == 1) {
        wire_put_ticket_state(b, &st);
        dynbuf_add(b, SPAN("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
    }
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_TICKET_IS, xid, -1), 0);
}

static void a_sandbox_sees_itself_and_its_own_tickets(void **state)
{
    struct play p;
    struct id id = {{1}};
    char path[64] = "/v1/tickets/", text[ID_TEXT + 1];
    id_text(&id, text);
    memcpy(path + 12, text, sizeof(text));
    play_all(&p, "hold write POST /w rule=w\n");
    play_sandbox(&p, "other", "o", NULL, false);
    play_peer(&p, ROLE_FRONT, OTHER_FRONT, "other");
    ask_inside(&p, XID(1), FRONT, "GET", "/v1/whoami");
    expect_reply(&p, XID(1), 200, "\"sandbox\":\"sb\",\"session\":\"ses\"");
    ask_inside(&p, XID(2), FRONT, "GET", path);
    ledger_says(&p, XID(2), "ses", false, 1, TICKET_PENDING);
    expect_reply(&p, XID(2), 200, "\"expires\":\"2026-01-01T01:00:00Z\"");
    uint64_t foreign = (uint64_t)OTHER_FRONT << 40 | 1;
    ask_inside(&p, foreign, OTHER_FRONT, "GET", path); /* another sandbox's ticket looks like none */
    ledger_says(&p, foreign, "o", false, 0, TICKET_NONE);
    expect_reply(&p, foreign, 404, NULL);
    ask_inside(&p, XID(3), FRONT, "GET", path);
    ledger_says(&p, XID(3), "ses", false, 1, TICKET_UNKNOWN);
    expect_reply(&p, XID(3), 200, "nobody here knows whether it took effect");
    ask_inside(&p, XID(4), FRONT, "GET", path);
    ledger_says(&p, XID(4), "ses", false, 2, TICKET_NONE); /* it cannot be read */
    expect_reply(&p, XID(4), 503, NULL);
    memcpy(path + 12 + ID_TEXT, "/answer", 8);
    ask_inside(&p, XID(5), FRONT, "GET", path);
    ledger_says(&p, XID(5), "ses", true, 1, TICKET_EXECUTING);
    expect_reply(&p, XID(5), 404, "no-answer");
    ask_inside(&p, XID(6), FRONT, "POST", "/v1/whoami");
    expect_reply(&p, XID(6), 405, "bad-method");
    ask_inside(&p, XID(7), FRONT, "GET", "/v1/tickets/none/whoami");
    expect_reply(&p, XID(7), 404, NULL);
    covers("E25");
    play_close(&p);
}

/* What a sandbox is told is about itself; a query that is not understood is not answered. */
static void a_sandbox_reads_its_manifest(void **state)
{
    struct play p;
    play_all(&p, "deny write POST /no rule=nope\n");
    ask_inside(&p, XID(1), FRONT, "GET", "/v1/manifest");
    expect_reply(&p, XID(1), 200, "\"operations\":[\"all\",\"sb\"]}");
    ask_inside(&p, XID(2), FRONT, "GET", "/v1/manifest?host=api.example");
    expect_reply(&p, XID(2), 200, "\"operations\":[\"api.example\",\"sb\"]}");
    ask_inside(&p, XID(3), FRONT, "GET", "/v1/manifest?host=full.example");
    expect_reply(&p, XID(3), 200, "\"left_out\":7,\"hint\":");
    ask_inside(&p, XID(4), FRONT, "GET", "/v1/manifest?hosts=x");
    expect_reply(&p, XID(4), 404, NULL);
    ask_inside(&p, XID(7), FRONT, "GET", "/v1/manifest?as=typescript");
    expect_reply(&p, XID(7), 200, "// sb all\n");
    ask_inside(&p, XID(8), FRONT, "GET", "/v1/manifest?host=api.example&as=openapi");
    expect_reply(&p, XID(8), 200, "{\"openapi\":\"api.example\"}\n");
    ask_inside(&p, XID(9), FRONT, "GET", "/v1/manifest?as=wsdl");
    expect_reply(&p, XID(9), 400, "with ?as=typescript a module of TypeScript, or with ?as=openapi OpenAPI 3.1.");
    ask_inside(&p, XID(10), FRONT, "GET", "/v1/manifest?as=openapi&as=openapi");
    expect_reply(&p, XID(10), 404, NULL);
    ask_inside(&p, XID(5), FRONT, "POST", "/v1/manifest");
    expect_reply(&p, XID(5), 405, "bad-method");
    give_request(&p, XID(6), POST("/no", "x")); /* a denial says what was asked and what there is instead */
    expect_reply(&p, XID(6), 403,
                 "\"asked\":\"POST https://api.example/no\",\"allowed\":[\"GET /r: allowed\"],"
                 "\"manifest\":\"http://countersign.internal/v1/manifest\"");
    expect_audit(&p, XID(6), "deny", "rule");
    play_close(&p);
}

static void settings_are_checked(void **state)
{
    struct play p;
    play_open(&p);
    assert_int_equal(judge_config(p.j, SPAN("hold.inline_wait_ms"), SPAN("10")), 0);
    assert_int_equal(judge_config(p.j, SPAN("hold.inline_wait_ms"), SPAN("-1")), -1);
    assert_int_equal(judge_config(p.j, SPAN("body_max"), SPAN("99999999999999")), -1);
    assert_int_equal(judge_config(p.j, SPAN("store_lost"), SPAN("allow")), -1);
    assert_int_equal(judge_config(p.j, SPAN("disclose"), SPAN("all")), -1);
    assert_int_equal(judge_config(p.j, SPAN("nonsense"), SPAN("1")), JUDGE_CONFIG_OTHER);
    play_close(&p);
}

enum told { NO_LEDGER, NO_WORD, NO_STORE, TOLD_AND_GONE, ALL_TOLD, TOLD_AND_LOST };

static void play_told(struct play *p, enum told told)
{
    play_open(p);
    play_policy(p, "allow read GET /\n");
    play_peer(p, ROLE_LOBBY, 0, "");
    play_peer(p, ROLE_KEEPER, 0, "");
    play_peer(p, ROLE_FRONT, FRONT, "sb");
    key(p);
    if (told != NO_LEDGER)
        play_peer(p, ROLE_LEDGER, 0, "");
    if (told >= TOLD_AND_GONE)
        give_bool(p, ROLE_LEDGER, M_STORE, 0, true);
    if (told == NO_STORE || told == TOLD_AND_LOST)
        give_bool(p, ROLE_LEDGER, M_STORE, 0, false);
    if (told == TOLD_AND_GONE) /* what it says until it is back is not heard */
        play_gone(p, ROLE_LEDGER, 0);
    p->up[ROLE_LEDGER] = false; /* the audit is another test's */
}

/* A judge that began anew knows nobody until the ledger has said all: what it is asked meanwhile is to come again,
 * and no client is told that its token, its sandbox or its connection is over. */
static void who_is_not_told_yet_who_there_is_says_later(void **state)
{
    for (enum told told = NO_LEDGER; told <= TOLD_AND_LOST; told++) {
        bool knows = told == ALL_TOLD || told == TOLD_AND_LOST;
        struct play p;
        struct wire_reply r;
        play_told(&p, told);
        expect_identity_is(&p, "token-of-sb", knows ? IDENTITY_UNKNOWN : IDENTITY_LATER, NULL);
        give_request(&p, XID(1), GET("/"));
        expect_reply(&p, XID(1), told == ALL_TOLD ? 403 : 503,
                     told == ALL_TOLD ? "unknown-sandbox" : "store-unavailable");
        ask_inside(&p, XID(2), FRONT, "GET", "/v1/whoami");
        expect_reply(&p, XID(2), knows ? 403 : 503, knows ? "unknown-sandbox" : "store-unavailable");
        connect_to(&p, XID(3), "api.example");
        struct msg_in m = expect(&p, ROLE_FRONT, M_LEAF, XID(3));
        assert_true(msg_get_span(&m, 256).n == 0 && msg_get_span(&m, 256).n == 0 && wire_get_reply(&m, &r) == 0);
        assert_int_equal(r.head.status, knows ? 403 : 503);
        play_close(&p);
    }
}

/* Nobody is told that the gateway is up before requests can be judged; also where the store cannot be written, which
 * they are told then. */
static void the_parent_hears_once_that_it_was_welcomed(void **state)
{
    for (int writable = 0; writable < 2; writable++) {
        struct play p;
        play_open(&p);
        p.up[ROLE_PARENT] = true;
        play_peer(&p, ROLE_LEDGER, 0, "");
        play_sandbox(&p, "sb", "ses", "token-of-sb", false);
        expect_nothing(&p);
        give_bool(&p, ROLE_LEDGER, M_STORE, 0, writable);
        expect(&p, ROLE_PARENT, M_WELCOMED, 0);
        give_bool(&p, ROLE_LEDGER, M_STORE, 0, true);
        play_gone(&p, ROLE_LEDGER, 0);
        play_peer(&p, ROLE_LEDGER, 0, "");
        give_bool(&p, ROLE_LEDGER, M_STORE, 0, true);
        play_close(&p); /* nothing more was sent */
    }
}

static void without_a_policy_nothing_passes(void **state)
{
    struct play p;
    play_open(&p);
    play_peer(&p, ROLE_FRONT, FRONT, "sb");
    give_request(&p, XID(1), GET("/"));
    expect_reply(&p, XID(1), 503, "store-unavailable");
    play_peer(&p, ROLE_LEDGER, 0, "");
    expect_audit(&p, XID(1), "deny", "store-unavailable");
    give_bool(&p, ROLE_LEDGER, M_STORE, 0, true);
    give_request(&p, XID(2), GET("/"));
    expect_reply(&p, XID(2), 403, "unknown-sandbox");
    expect_audit(&p, XID(2), "deny", "unknown-sandbox");
    play_sandbox(&p, "sb", "ses", NULL, false);
    give_request(&p, XID(3), GET("/"));
    expect_reply(&p, XID(3), 503, "policy-unavailable");
    expect_audit(&p, XID(3), "deny", "policy-unavailable");
    covers("INV7");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_one_sandboxs),
        cmocka_unit_test(a_front_serves_one_session),
        cmocka_unit_test(a_started_sandbox_that_goes_on_has_no_connection_of_before),
        cmocka_unit_test(without_a_token_no_earlier_one_is_good),
        cmocka_unit_test(a_leaf_is_minted_once),
        cmocka_unit_test(leafs_for_denied_hosts_have_a_budget),
        cmocka_unit_test(a_front_without_its_key_or_sandbox_gets_no_leaf),
        cmocka_unit_test(refusals_of_a_front_are_recorded),
        cmocka_unit_test(a_sandbox_sees_itself_and_its_own_tickets),
        cmocka_unit_test(a_sandbox_reads_its_manifest),
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(who_is_not_told_yet_who_there_is_says_later),
        cmocka_unit_test(the_parent_hears_once_that_it_was_welcomed),
        cmocka_unit_test(without_a_policy_nothing_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
