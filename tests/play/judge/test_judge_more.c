/* The judge: intents, bodies, credentials, the store, limits, and peers that misbehave or go. */
#include "tests/play/judge/play.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define READS   "allow read GET /free rule=reads\n"
#define BODYMAX (64 * 1024 * 1024)

enum { ALL_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

static void answered(struct play *p, uint64_t xid)
{
    give_result(p, xid, OUTCOME_ANSWERED, 200, true, "");
    assert_int_equal(expect_outcome(p, xid, false), OUTCOME_ANSWERED);
}

static int cancel(struct play *p, uint64_t xid)
{
    from(p);
    return give(p, ROLE_FRONT, FRONT, M_CANCEL, xid, -1);
}

static void an_allowed_write_is_recorded_before_it_leaves(void **state)
{
    struct play p;
    struct span body;
    play_all(&p, "allow write POST /w rule=writes\n");
    give_request(&p, XID(1), POST("/w", "data"));
    expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
    expect_nothing(&p);
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    assert_false(expect_forward(&p, XID(1), &body).repeatable);
    assert_true(span_eq(body, SPAN("data")));
    answered(&p, XID(1));

    give_request(&p, XID(2), POST("/w", "data")); /* the store cannot keep it */
    expect(&p, ROLE_LEDGER, M_INTENT, XID(2));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(2), false);
    expect_reply(&p, XID(2), 503, "store-unavailable");
    expect_audit(&p, XID(2), "allow", "store-unavailable");

    give_request(&p, XID(3), POST("/w", "data")); /* the client goes before it is written down */
    expect(&p, ROLE_LEDGER, M_INTENT, XID(3));
    assert_int_equal(cancel(&p, XID(3)), 0);
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(3), true);
    assert_int_equal(expect_outcome(&p, XID(3), false), OUTCOME_NOT_SENT);

    give_request(&p, XID(4), POST("/w", "data")); /* the policy changes before it is written down */
    expect(&p, ROLE_LEDGER, M_INTENT, XID(4));
    play_policy(&p, "deny write POST /w\n");
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(4), true);
    expect_reply(&p, XID(4), 403, "denied");
    assert_int_equal(expect_outcome(&p, XID(4), false), OUTCOME_NOT_SENT);
    covers("INV5 INV7");
    play_close(&p);
}

static int give_whole(struct play *p, uint64_t xid, uint64_t size, const char *bytes, int fd)
{
    struct dynbuf *b = from(p);
    msg_put_u64(b, size);
    msg_put_span(b, span_str(bytes));
    return give(p, ROLE_FRONT, xid >> 40, M_BODY_WHOLE, xid, fd);
}

static void ask_with_body(struct play *p, uint64_t xid, const char *path, uint64_t declared)
{
    struct ask a = {.method = "POST", .path = path, .kind = 2, .declared = declared};
    give_request(p, xid, &a);
}

static void expect_wanted(struct play *p, uint64_t xid, uint8_t mode, uint64_t max)
{
    struct msg_in m = expect(p, ROLE_FRONT, M_BODY_WANTED, xid);
    assert_int_equal(msg_get_u8(&m), mode);
    assert_true(msg_get_u64(&m) == max);
    assert_int_equal(msg_end(&m), 0);
}

static int memfd_of(size_t n, unsigned seals)
{
    static char bytes[300000];
    memset(bytes, 'b', sizeof(bytes));
    int fd = memfd_create("body", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0 && n <= sizeof(bytes));
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void what_needs_its_body_is_read_whole_first(void **state)
{
    struct play p;
    struct span body;
    play_all(&p, "allow read POST /read rule=r need\nhold write POST /w rule=w\n");
    ask_with_body(&p, XID(1), "/read", UINT64_MAX);
    expect_wanted(&p, XID(1), 2, BODYMAX);
    assert_int_equal(give_whole(&p, XID(1), 5, "query", -1), 0);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    struct wire_forward f = expect_forward(&p, XID(1), &body);
    assert_int_equal(f.body, BODY_INLINE);
    assert_true(span_eq(body, SPAN("query")));
    answered(&p, XID(1));

    ask_with_body(&p, XID(2), "/read", 300000); /* more than a frame holds comes as a sealed memfd */
    expect_wanted(&p, XID(2), 2, BODYMAX);
    assert_int_equal(give_whole(&p, XID(2), 300000, "", memfd_of(300000, ALL_SEALS)), 0);
    assert_int_equal(expect_forward(&p, XID(2), NULL).body, BODY_FD);
    assert_true(p.got.fd >= 0);
    answered(&p, XID(2));

    ask_with_body(&p, XID(3), "/w", UINT64_MAX); /* what is held is read whole, whatever decided it */
    expect_wanted(&p, XID(3), 2, BODYMAX);
    assert_int_equal(give_whole(&p, XID(3), 300000, "", memfd_of(300000, ALL_SEALS)), 0);
    expect_ticket_open(&p, XID(3));
    assert_true(p.got.fd >= 0);
    give_ticket(&p, XID(3), 1, TICKET_DENIED);
    expect_reply(&p, XID(3), 403, "ticket-denied");
    expect_audit(&p, XID(3), "hold", "ticket-denied");

    ask_with_body(&p, XID(4), "/w", UINT64_MAX);
    expect_wanted(&p, XID(4), 2, BODYMAX);
    msg_put_u8(from(&p), 0);
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_BODY_END, XID(4), -1), 0);
    expect_reply(&p, XID(4), 400, "bad-body");
    expect_audit(&p, XID(4), "hold", "bad-body");
    covers("A36");
    play_close(&p);
}

/* The decision names a ref by bytes of the body; the ledger's copy takes the place of the client's at the claim, and
 * what the decision was read from must be there until the last word about it. */
static void a_large_body_is_there_until_its_outcome_is_recorded(void **state)
{
    static const struct ask none = {.method = "POST", .path = "/w"};
    struct play p;
    struct wire_record r;
    play_all(&p, "hold write POST /w rule=w dialect=2 refs=9\n");
    ask_with_body(&p, XID(1), "/w", UINT64_MAX);
    expect_wanted(&p, XID(1), 2, BODYMAX);
    assert_int_equal(give_whole(&p, XID(1), 300000, "", memfd_of(300000, ALL_SEALS)), 0);
    struct digest d = expect_ticket_open(&p, XID(1)).record.request;
    give_ticket(&p, XID(1), 1, TICKET_APPROVED);
    expect(&p, ROLE_LEDGER, M_CLAIM, XID(1));
    give_claimed_fd(&p, XID(1), &none, &d, 300000, memfd_of(300000, ALL_SEALS));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    assert_int_equal(expect_forward(&p, XID(1), NULL).body, BODY_FD);
    give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    struct msg_in m = expect(&p, ROLE_LEDGER, M_OUTCOME, XID(1));
    assert_int_equal(wire_get_record(&m, &r), 0);
    assert_true(span_eq(r.refs, SPAN("update bbbbbbbbb")));

    ask_with_body(&p, XID(2), "/w", UINT64_MAX); /* refused after the claim: the refs are told the client */
    expect_wanted(&p, XID(2), 2, BODYMAX);
    assert_int_equal(give_whole(&p, XID(2), 300000, "", memfd_of(300000, ALL_SEALS)), 0);
    d = expect_ticket_open(&p, XID(2)).record.request;
    give_ticket(&p, XID(2), 1, TICKET_APPROVED);
    expect(&p, ROLE_LEDGER, M_CLAIM, XID(2));
    give_claimed_fd(&p, XID(2), &none, &d, 300001, memfd_of(300000, ALL_SEALS)); /* not of its size */
    expect_reply(&p, XID(2), 200, "ng bbbbbbbbb ");
    expect(&p, ROLE_LEDGER, M_OUTCOME, XID(2));
    play_close(&p);
}

static void a_memfd_that_can_change_is_refused(void **state)
{
    static const unsigned missing[] = {F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE};
    struct play p;
    play_all(&p, "hold write POST /w rule=w\n");
    for (uint64_t i = 0; i < 4; i++) {
        ask_with_body(&p, XID(i), "/w", UINT64_MAX);
        expect_wanted(&p, XID(i), 2, BODYMAX);
        assert_int_equal(give_whole(&p, XID(i), 9, "", memfd_of(9, ALL_SEALS & ~missing[i])), -1);
        assert_int_equal(cancel(&p, XID(i)), 0);
    }
    ask_with_body(&p, XID(5), "/w", UINT64_MAX); /* nor one of another size */
    expect_wanted(&p, XID(5), 2, BODYMAX);
    assert_int_equal(give_whole(&p, XID(5), 10, "", memfd_of(9, ALL_SEALS)), -1);
    int fd = play_policy_fd("allow read GET / rule=all\n", 9, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    struct digest d = {{9}};
    msg_put_digest(from(&p), &d);
    assert_int_equal(give(&p, ROLE_PARENT, 0, M_IMAGE, 0, fd), -1);
    covers("E1");
    play_close(&p);
}

/* Whoever asked for another policy is told that it is in force: the judge ends rather than go on by the old one. */
static void a_policy_that_cannot_be_taken_is_its_end(void **state)
{
    static const char *const text[] = {"allow read GET / rule=all\n", ""};
    static const uint8_t said[] = {8, 9};
    struct play p;
    play_all(&p, "hold write POST /w rule=w\n");
    for (unsigned i = 0; i < 3; i++) {
        struct digest d = {{said[i & 1]}};
        int fd = i < 2 ? play_policy_fd(text[i], 9, i == 0 ? ALL_SEALS : ALL_SEALS & ~F_SEAL_WRITE) : -1;
        msg_put_digest(from(&p), &d);
        assert_int_equal(give(&p, ROLE_PARENT, 0, M_IMAGE, 0, fd), -1);
    }
    play_close(&p);
}

static void a_body_over_the_limit_is_a_413(void **state)
{
    struct play p;
    char whole[101] = {0};
    play_all(&p, "hold write POST /w rule=w bodymax=100\n");
    ask_with_body(&p, XID(1), "/w", 101);
    expect_reply(&p, XID(1), 413, "over 100 bytes");
    expect_audit(&p, XID(1), "hold", "body-too-large");
    ask_with_body(&p, XID(2), "/w", UINT64_MAX);
    expect_wanted(&p, XID(2), 2, 100);
    assert_int_equal(give_whole(&p, XID(2), 101, "", -1), 0);
    expect_reply(&p, XID(2), 413, "body-too-large");
    expect_audit(&p, XID(2), "hold", "body-too-large");
    ask_with_body(&p, XID(3), "/w", 100);
    expect_wanted(&p, XID(3), 2, 100);
    memset(whole, 'x', 100);
    assert_int_equal(give_whole(&p, XID(3), 100, whole, -1), 0);
    expect_ticket_open(&p, XID(3));
    assert_int_equal(cancel(&p, XID(3)), 0);
    play_close(&p);
}

static void a_body_streams_when_its_head_was_enough(void **state)
{
    struct play p;
    play_all(&p, "allow write POST /s rule=s\n");
    ask_with_body(&p, XID(1), "/s", UINT64_MAX);
    expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    assert_int_equal(expect_forward(&p, XID(1), NULL).body, BODY_STREAM);
    expect_wanted(&p, XID(1), 1, UINT64_MAX);
    dynbuf_add(from(&p), SPAN("some bytes"));
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_BODY, XID(1), -1), 0);
    struct msg_in m = expect(&p, ROLE_CARRIER, M_BODY, XID(1));
    assert_true(span_eq(m.rest, SPAN("some bytes")));
    msg_put_u32(from(&p), 10);
    assert_int_equal(give(&p, ROLE_CARRIER, 0, M_BODY_CREDIT, XID(1), -1), 0);
    m = expect(&p, ROLE_FRONT, M_BODY_CREDIT, XID(1));
    assert_int_equal(msg_get_u32(&m), 10);
    msg_put_u8(from(&p), 1);
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_BODY_END, XID(1), -1), 0);
    expect(&p, ROLE_CARRIER, M_BODY_END, XID(1));
    answered(&p, XID(1));

    ask_with_body(&p, XID(2), "/s", UINT64_MAX); /* bytes nobody asked for end the channel */
    expect(&p, ROLE_LEDGER, M_INTENT, XID(2));
    dynbuf_add(from(&p), SPAN("too early"));
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_BODY, XID(2), -1), -1);
    play_gone(&p, ROLE_FRONT, FRONT);
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(2), true);
    assert_int_equal(expect_outcome(&p, XID(2), false), OUTCOME_NOT_SENT);
    covers("A34");
    play_close(&p);
}

static void body_bytes_stay_within_the_credit(void **state)
{
    struct play p;
    play_all(&p, "allow read POST /s rule=s\n");
    ask_with_body(&p, XID(1), "/s", UINT64_MAX);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(&p, XID(1), NULL);
    expect_wanted(&p, XID(1), 1, UINT64_MAX);
    struct dynbuf *b = from(&p);
    uint8_t *room = dynbuf_room(b, BODY_WINDOW);
    memset(room, 'x', BODY_WINDOW);
    dynbuf_grew(b, BODY_WINDOW);
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_BODY, XID(1), -1), 0);
    expect(&p, ROLE_CARRIER, M_BODY, XID(1));
    dynbuf_add(from(&p), SPAN("x"));
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_BODY, XID(1), -1), -1);
    play_close(&p);
}

static void a_credential_is_released_or_nothing_is_sent(void **state)
{
    struct play p;
    play_all(&p, "allow read GET /outside rule=o cred=1\nallow read GET / rule=r cred=1\n");
    give_request(&p, XID(1), GET("/a"));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    assert_int_equal(expect_forward(&p, XID(1), NULL).release, RELEASE_COMES);
    play_time(&p, 999);
    give_request(&p, XID(2), GET("/b")); /* it was released just now */
    assert_int_equal(expect_forward(&p, XID(2), NULL).release, RELEASE_LIVE);
    msg_put_u64(from(&p), 0);
    assert_int_equal(give(&p, ROLE_CARRIER, 0, M_NEED_RELEASE, XID(2), -1), 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(2)); /* but the carrier has it no longer */
    answered(&p, XID(1));
    struct dynbuf *b = from(&p);
    msg_put_span(b, SPAN("no-such-file"));
    msg_put_span(b, SPAN("the file is gone"));
    assert_int_equal(give(&p, ROLE_KEEPER, 0, M_RELEASE_FAILED, XID(2), -1), 0);
    expect(&p, ROLE_CARRIER, M_CANCEL, XID(2));
    expect_reply(&p, XID(2), 502, "credential-unavailable");
    assert_true(span_find(dynbuf_span(&p.got.payload), SPAN("cred1")) == p.got.payload.n); /* B54 */
    assert_true(span_find(dynbuf_span(&p.got.payload), SPAN("file")) == p.got.payload.n);
    give_result(&p, XID(2), OUTCOME_NOT_SENT, 0, false, "credential-unavailable");
    assert_int_equal(expect_outcome(&p, XID(2), false), OUTCOME_NOT_SENT);

    give_request(&p, XID(3), GET("/c")); /* what failed is not taken for released */
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(3));
    assert_int_equal(expect_forward(&p, XID(3), NULL).release, RELEASE_COMES);
    answered(&p, XID(3));
    give_request(&p, XID(4), GET("/outside")); /* where its only: list does not reach */
    expect_reply(&p, XID(4), 403, "denied");
    expect_audit(&p, XID(4), "deny", "credential-not-here");
    play_gone(&p, ROLE_KEEPER, 0);
    play_time(&p, 1000);
    give_request(&p, XID(5), GET("/d"));
    expect_reply(&p, XID(5), 502, "credential-unavailable");
    expect_audit(&p, XID(5), "allow", "credential-unavailable");
    covers("B50 INV7");
    play_close(&p);
}

/* The upstream refused its credential, and it is to leave once more: by the policy of now. */
static void what_is_repeated_is_decided_again(void **state)
{
    struct play p;
    play_all(&p, "allow read GET / rule=r cred=1\n");
    give_request(&p, XID(1), GET("/a"));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    expect_forward(&p, XID(1), NULL);
    msg_put_u64(from(&p), 7);
    assert_int_equal(give(&p, ROLE_CARRIER, 0, M_NEED_RELEASE, XID(1), -1), 0);
    expect(&p, ROLE_KEEPER, M_RELEASE, XID(1));
    play_policy(&p, "deny read GET / rule=no\n");
    expect_nothing(&p); /* an answer may be on its way */
    msg_put_u64(from(&p), 7);
    assert_int_equal(give(&p, ROLE_CARRIER, 0, M_NEED_RELEASE, XID(1), -1), 0);
    expect(&p, ROLE_CARRIER, M_CANCEL, XID(1));
    expect_nothing(&p); /* the keeper is not asked */
    play_close(&p);
}

/* F12: it does not answer, and its channel stands. */
static void a_ledger_that_says_nothing_is_a_lost_one(void **state)
{
    struct play p;
    play_all(&p, READS "deny write POST /d rule=d\n");
    give_bool(&p, ROLE_LEDGER, M_STORE, 0, true); /* it was asked what is held, and lives */
    play_time(&p, 60000);                         /* nobody spoke to it */
    give_request(&p, XID(1), POST("/d", ""));
    expect_reply(&p, XID(1), 403, "denied");
    expect_audit(&p, XID(1), "deny", "rule");
    play_time(&p, 4999);
    give_request(&p, XID(2), POST("/d", ""));
    expect_reply(&p, XID(2), 403, "denied");
    expect_audit(&p, XID(2), "deny", "rule");
    play_time(&p, 1);
    give_request(&p, XID(3), GET("/free"));
    expect_reply(&p, XID(3), 503, "store-unavailable");
    expect_audit(&p, XID(3), "deny", "store-unavailable");
    give_bool(&p, ROLE_LEDGER, M_STORE, 0, true);
    give_request(&p, XID(4), POST("/d", ""));
    expect_reply(&p, XID(4), 403, "denied");
    expect_audit(&p, XID(4), "deny", "rule");
    play_close(&p);
}

static void the_store_lost_refuses_reads_too(void **state)
{
    struct play p;
    play_all(&p, READS "allow write POST /w rule=w\n");
    give_bool(&p, ROLE_LEDGER, M_STORE, 0, false);
    give_request(&p, XID(1), GET("/free"));
    expect_reply(&p, XID(1), 503, "store-unavailable");
    expect_audit(&p, XID(1), "deny", "store-unavailable");
    assert_int_equal(judge_config(p.j, SPAN("store_lost"), SPAN("allow-reads")), 0);
    give_request(&p, XID(2), GET("/free"));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(&p, XID(2), NULL);
    answered(&p, XID(2));
    give_request(&p, XID(3), POST("/w", ""));
    expect_reply(&p, XID(3), 503, "store-unavailable");
    expect_audit(&p, XID(3), "allow", "store-unavailable");
    give_bool(&p, ROLE_LEDGER, M_STORE, 0, true);
    give_request(&p, XID(4), POST("/w", ""));
    expect(&p, ROLE_LEDGER, M_INTENT, XID(4));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(4), true);
    expect_forward(&p, XID(4), NULL);
    answered(&p, XID(4));
    covers("INV7 E6");
    play_close(&p);
}

static void what_comes_under_a_foreign_id_ends_the_channel(void **state)
{
    struct play p;
    uint64_t foreign = (uint64_t)OTHER_FRONT << 40 | 1;
    struct wire_request r = {.scheme = SPAN("https"), .host = SPAN("api.example"), .port = 443};
    play_all(&p, READS);
    r.method = SPAN("GET");
    r.path = SPAN("/free");
    struct dynbuf *b = from(&p);
    wire_put_request(b, &r);
    msg_put_span(b, SPAN_NONE);
    msg_put_u8(b, 0);
    msg_put_u64(b, 0);
    msg_put_span(b, SPAN_NONE);
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_REQUEST, foreign, -1), -1);
    assert_int_equal(cancel(&p, foreign), -1);
    from(&p);
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_RESULT, XID(1), -1), -1);
    from(&p);
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_BODY, XID(99), -1), 0); /* late is no breach */
    from(&p);
    assert_int_equal(give(&p, ROLE_FRONT, OTHER_FRONT, M_CANCEL, foreign, -1), -1);
    give_request(&p, XID(1), GET("/free"));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(&p, XID(1), NULL);
    b = from(&p); /* an id that is in use */
    wire_put_request(b, &r);
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_REQUEST, XID(1), -1), -1);
    answered(&p, XID(1));
    assert_int_equal(judge_exchanges(p.j), 0);
    play_close(&p);
}

static void a_lost_client_cancels_what_is_under_way(void **state)
{
    struct play p;
    play_all(&p, READS);
    give_request(&p, XID(1), GET("/free"));
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(&p, XID(1), NULL);
    give_request(&p, XID(2), GET("/free"));
    expect_forward(&p, XID(2), NULL);
    assert_int_equal(cancel(&p, XID(1)), 0);
    expect(&p, ROLE_CARRIER, M_CANCEL, XID(1));
    play_gone(&p, ROLE_FRONT, FRONT);
    expect(&p, ROLE_CARRIER, M_CANCEL, XID(2));
    give_result(&p, XID(1), OUTCOME_NOT_SENT, 0, false, "cancelled");
    assert_int_equal(expect_outcome(&p, XID(1), false), OUTCOME_NOT_SENT);
    give_result(&p, XID(2), OUTCOME_UNKNOWN, 0, false, "cancelled");
    expect_outcome(&p, XID(2), false);
    play_close(&p);
}

static void upstream_failures_are_coarse(void **state)
{
    static const char *const codes[] = {"connect-refused", "address-refused", "dns-failed", "tls-bad-certificate"};
    struct play p;
    play_all(&p, READS);
    for (uint64_t i = 0; i < 4; i++) {
        give_request(&p, XID(i), GET("/free"));
        if (i == 0)
            expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
        expect_forward(&p, XID(i), NULL);
        give_result(&p, XID(i), OUTCOME_NOT_SENT, 0, false, codes[i]);
        expect_reply(&p, XID(i), 502, "\"code\":\"upstream-failed\"");
        assert_true(span_find(dynbuf_span(&p.got.payload), SPAN("10.0.0.1")) == p.got.payload.n);
        expect_outcome(&p, XID(i), false);
    }
    give_request(&p, XID(9), GET("/free"));
    expect_forward(&p, XID(9), NULL);
    give_result(&p, XID(9), OUTCOME_NOT_SENT, 0, false, "connect-timeout");
    expect_reply(&p, XID(9), 504, "upstream-timeout");
    expect_outcome(&p, XID(9), false);
    covers("C38");
    play_close(&p);
}

/* An answer that was refused is known to have come: the write was carried out, and the words say so. */
static void a_refused_answer_is_no_unknown_outcome(void **state)
{
    static const char *const codes[] = {"answer-refused", "answer-encoded", "secret-in-answer"};
    struct play p;
    play_all(&p, "allow write POST /w rule=w\n");
    for (uint64_t i = 0; i < 3; i++) {
        give_request(&p, XID(i), POST("/w", "x"));
        expect(&p, ROLE_LEDGER, M_INTENT, XID(i));
        give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(i), true);
        if (i == 0)
            expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
        expect_forward(&p, XID(i), NULL);
        give_result(&p, XID(i), OUTCOME_ANSWERED, 200, false, codes[i]);
        expect_reply(&p, XID(i), 409, "\"code\":\"answer-refused\"");
        assert_true(span_find(dynbuf_span(&p.got.payload), SPAN("it was carried out")) < p.got.payload.n);
        assert_int_equal(expect_outcome(&p, XID(i), false), OUTCOME_ANSWERED);
    }
    play_close(&p);
}

static void an_answer_nobody_took_goes_to_the_ledger(void **state)
{
    struct play p;
    struct wire_answer a = {.status = 201, .reason = SPAN("Created")};
    struct wire_record r;
    struct id ticket;
    play_all(&p, "allow write POST /w rule=w\n");
    give_request(&p, XID(1), POST("/w", "x"));
    expect(&p, ROLE_LEDGER, M_INTENT, XID(1));
    give_bool(&p, ROLE_LEDGER, M_INTENT_OK, XID(1), true);
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    expect_forward(&p, XID(1), NULL);
    struct dynbuf *b = from(&p);
    wire_put_answer(b, &a);
    msg_put_u64(b, 4);
    msg_put_span(b, SPAN("made"));
    assert_int_equal(give(&p, ROLE_CARRIER, 0, M_KEPT, XID(1), -1), 0);
    give_result(&p, XID(1), OUTCOME_ANSWERED, 201, false, "");
    struct msg_in m = expect(&p, ROLE_LEDGER, M_OUTCOME, XID(1));
    assert_int_equal(wire_get_record(&m, &r), 0);
    msg_get_id(&m, &ticket);
    assert_int_equal(msg_get_u8(&m), OUTCOME_ANSWERED);
    assert_int_equal(msg_get_u16(&m), 201);
    (void)msg_get_u64(&m);
    (void)msg_get_u64(&m);
    assert_false(msg_get_bool(&m)); /* delivered */
    assert_true(msg_get_bool(&m));  /* kept */
    assert_true(msg_get_bool(&m));  /* told */
    assert_false(msg_get_bool(&m)); /* its client left */
    assert_int_equal(wire_get_answer(&m, &a), 0);
    assert_true(msg_get_u64(&m) == 4);
    assert_true(span_eq(msg_get_span(&m, 10), SPAN("made")));
    assert_int_equal(msg_end(&m), 0);
    play_close(&p);
}

static void the_limits_of_one_sandbox(void **state)
{
    struct play p;
    play_all(&p, READS "hold write POST /w rule=w\n");
    for (uint64_t i = 0; i < 256; i++) {
        give_request(&p, XID(i), GET("/free"));
        if (i == 0)
            expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
        expect_forward(&p, XID(i), NULL);
    }
    give_request(&p, XID(256), GET("/free"));
    expect_reply(&p, XID(256), 429, "too-many-requests");
    for (uint64_t i = 0; i < 256; i++)
        answered(&p, XID(i));
    for (uint64_t i = 0; i < 4; i++) { /* 4 x 64 MiB of bodies of unknown length, and no byte more */
        ask_with_body(&p, XID(i), "/w", UINT64_MAX);
        expect_wanted(&p, XID(i), 2, BODYMAX);
    }
    ask_with_body(&p, XID(4), "/w", 1);
    expect_reply(&p, XID(4), 429, "too-many-bytes");
    expect_audit(&p, XID(4), "hold", "too-many-bytes");
    assert_int_equal(cancel(&p, XID(0)), 0);
    ask_with_body(&p, XID(5), "/w", 1);
    expect_wanted(&p, XID(5), 2, BODYMAX);
    covers("E21");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allowed_write_is_recorded_before_it_leaves),
        cmocka_unit_test(what_needs_its_body_is_read_whole_first),
        cmocka_unit_test(a_large_body_is_there_until_its_outcome_is_recorded),
        cmocka_unit_test(a_memfd_that_can_change_is_refused),
        cmocka_unit_test(a_policy_that_cannot_be_taken_is_its_end),
        cmocka_unit_test(a_body_over_the_limit_is_a_413),
        cmocka_unit_test(a_body_streams_when_its_head_was_enough),
        cmocka_unit_test(body_bytes_stay_within_the_credit),
        cmocka_unit_test(what_is_repeated_is_decided_again),
        cmocka_unit_test(a_credential_is_released_or_nothing_is_sent),
        cmocka_unit_test(a_ledger_that_says_nothing_is_a_lost_one),
        cmocka_unit_test(the_store_lost_refuses_reads_too),
        cmocka_unit_test(what_comes_under_a_foreign_id_ends_the_channel),
        cmocka_unit_test(a_lost_client_cancels_what_is_under_way),
        cmocka_unit_test(upstream_failures_are_coarse),
        cmocka_unit_test(a_refused_answer_is_no_unknown_outcome),
        cmocka_unit_test(an_answer_nobody_took_goes_to_the_ledger),
        cmocka_unit_test(the_limits_of_one_sandbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
