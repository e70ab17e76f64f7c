/* The judge in place of services that SDKs get their credentials from: what these refuse is refused, the rest is
 * answered with a lease that the ledger gives, one question a sandbox at a time, and never another one in place of
 * one that a person took away. */
#include "tests/play/judge/play_lease.h"

#include <stdio.h>

#define TOKEN "/latest/api/token"
#define ROLES "/latest/meta-data/iam/security-credentials/"

static struct ask *at(const char *method, const char *path)
{
    static struct ask a[8];
    static unsigned n;
    struct ask *one = &a[n++ % 8];
    *one = (struct ask){.host = "stub.example", .method = method, .path = path};
    return one;
}

static struct ask *with(struct ask *a, const char *name, const char *value)
{
    size_t n = 0;
    while (a->more[n].name.n)
        n++;
    a->more[n] = (struct http_field){span_str(name), span_str(value)};
    return a;
}

static struct wire_reply reply_of(struct play *p, unsigned n, unsigned status)
{
    struct wire_reply r;
    struct msg_in m = expect(p, ROLE_FRONT, M_REPLY, XID(n));
    assert_int_equal(wire_get_reply(&m, &r), 0);
    assert_int_equal(r.head.status, status);
    return r;
}

static void refused(struct play *p, unsigned n, unsigned status, const char *code)
{
    expect_reply(p, XID(n), status, code);
    expect_audit(p, XID(n), "allow", code);
}

static void says(struct play *p, unsigned n, const char *words)
{
    struct wire_reply r = reply_of(p, n, 200);
    if (span_find(r.body, span_str(words)) == r.body.n)
        fail_msg("expected \"%s\", got %.*s", words, SPAN_FMT(r.body));
    expect_audit(p, XID(n), "allow", "stub");
}

/* What a session token was fetched, good until the next call. */
static const char *session(struct play *p, unsigned n, const char *ttl)
{
    static char text[256];
    give_request(p, XID(n), with(at("PUT", TOKEN), "X-aws-ec2-metadata-token-ttl-seconds", ttl));
    struct wire_reply r = reply_of(p, n, 200);
    assert_true(r.body.n < sizeof(text));
    memcpy(text, r.body.p, r.body.n);
    text[r.body.n] = '\0';
    expect_audit(p, XID(n), "allow", "stub");
    return text;
}

static void asks_ledger(struct play *p, uint64_t xid, const char *sandbox)
{
    struct digest meaning;
    struct wire_lease l = lease_of(1);
    struct msg_in m = expect(p, ROLE_LEDGER, M_LEASE_STUB, xid);
    assert_true(span_eq(msg_get_span(&m, 256), span_str(sandbox)));
    assert_true(span_eq(msg_get_span(&m, 256), SPAN("leased")));
    msg_get_digest(&m, &meaning);
    assert_memory_equal(&meaning, &l.meaning, sizeof(meaning));
    assert_int_equal(msg_get_u8(&m), LEASE_GITHUB);
    assert_int_equal(msg_end(&m), 0);
}

static void give_lease(struct play *p, uint64_t xid, const struct wire_lease *l, bool ok)
{
    struct dynbuf *b = from(p);
    msg_put_u8(b, ok);
    msg_put_span(b, ok ? SPAN_NONE : SPAN("there is no such sandbox"));
    msg_put_id(b, &l->id);
    msg_put_u64(b, l->expires_ms);
    msg_put_span(b, ok ? SPAN("cs_lease") : SPAN_NONE);
    msg_put_span(b, ok ? SPAN("other-half") : SPAN_NONE);
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_LEASE_STUBBED, xid, -1), 0);
}

/* Lease n, as a stub has given it to "sb". */
static struct wire_lease stubbed(struct play *p, uint8_t n)
{
    struct wire_lease l = lease_of(n);
    l.by = LEASE_STUB_BY;
    l.created_ms = PLAY_WALL + p->now;
    l.expires_ms = l.created_ms + LEASE_STUB_MS;
    return l;
}

static void instance_metadata(void **state)
{
    struct play p;
    struct wire_lease l;
    play_all(&p, "stub-aws\n");
    give_request(&p, XID(1), at("GET", ROLES));
    refused(&p, 1, 401, "stub-token");
    give_request(&p, XID(2), at("PUT", TOKEN));
    refused(&p, 2, 400, "stub-bad-request");
    give_request(&p, XID(3), with(at("PUT", TOKEN), "X-aws-ec2-metadata-token-ttl-seconds", "21601"));
    refused(&p, 3, 400, "stub-bad-request");
    give_request(&p, XID(4), at("GET", TOKEN));
    refused(&p, 4, 405, "bad-method");
    const char *token = session(&p, 5, "21600");
    give_request(&p, XID(6), with(at("GET", ROLES), "x-aws-ec2-metadata-token", token));
    says(&p, 6, "leased");
    give_request(&p, XID(7), with(at("GET", "/latest/user-data"), "X-aws-ec2-metadata-token", token));
    refused(&p, 7, 404, "not-found");
    give_request(&p, XID(8), with(at("GET", ROLES "leased"), "X-aws-ec2-metadata-token", token));
    asks_ledger(&p, XID(8), "sb");
    l = stubbed(&p, 1);
    tell_lease(&p, &l);
    give_lease(&p, XID(8), &l, true);
    struct wire_reply r = reply_of(&p, 8, 200);
    static const char want[] =
        "{\"Code\":\"Success\",\"LastUpdated\":\"2026-01-01T00:16:40Z\",\"Type\":\"AWS-HMAC\",\"AccessKeyId\":\"cs_"
        "lease\","
        "\"SecretAccessKey\":\"other-half\",\"Token\":\"cs_lease\",\"Expiration\":\"2026-01-01T06:16:40Z\"}";
    assert_true(span_eq(r.body, span_str(want)));
    struct wire_record rec;
    struct msg_in m = expect(&p, ROLE_LEDGER, M_AUDIT, XID(8));
    assert_int_equal(wire_get_record(&m, &rec), 0);
    assert_true(span_eq(rec.code, SPAN("stub")) && span_eq(rec.credential, SPAN("leased")));
    assert_true(span_find(dynbuf_span(&p.got.payload), SPAN("cs_lease")) == p.got.payload.n);
    give_request(&p, XID(9), with(at("GET", ROLES "another"), "X-aws-ec2-metadata-token", token));
    refused(&p, 9, 404, "not-found");
    play_close(&p);
}

/* A token is one sandbox's, is what was given, and ends. */
static void session_tokens(void **state)
{
    char changed[256];
    struct play p;
    play_all(&p, "stub-aws\n");
    const char *token = session(&p, 1, "60");
    snprintf(changed, sizeof(changed), "%s", token);
    changed[3] = changed[3] == '0' ? '1' : '0'; /* a later end */
    give_request(&p, XID(2), with(at("GET", ROLES), "X-aws-ec2-metadata-token", changed));
    refused(&p, 2, 401, "stub-token");
    struct ask *twice = with(at("GET", ROLES), "X-aws-ec2-metadata-token", token);
    give_request(&p, XID(3), with(twice, "X-aws-ec2-metadata-token", token));
    refused(&p, 3, 401, "stub-token");
    play_sandbox(&p, "other", "ses", NULL, false);
    play_peer(&p, ROLE_FRONT, OTHER_FRONT, "other");
    give_request(&p, OTHER(4), with(at("GET", ROLES), "X-aws-ec2-metadata-token", token));
    expect_reply(&p, OTHER(4), 401, "stub-token");
    expect_audit(&p, OTHER(4), "allow", "stub-token");
    play_time(&p, 59 * 1000);
    give_bool(&p, ROLE_LEDGER, M_STORE, 0, true); /* a sign of life */
    give_request(&p, XID(5), with(at("GET", ROLES), "X-aws-ec2-metadata-token", token));
    says(&p, 5, "leased");
    play_time(&p, 1000);
    give_request(&p, XID(6), with(at("GET", ROLES), "X-aws-ec2-metadata-token", token));
    refused(&p, 6, 401, "stub-token");
    play_close(&p);
}

static void take_lease(struct play *p, unsigned n)
{
    asks_ledger(p, XID(n), "sb");
    struct wire_lease l = stubbed(p, 1);
    tell_lease(p, &l);
    give_lease(p, XID(n), &l, true);
}

static void a_container(void **state)
{
    struct play p;
    play_all(&p, "stub-container\n");
    give_request(&p, XID(1), at("GET", "/v2/credentials"));
    refused(&p, 1, 401, "stub-token");
    give_request(&p, XID(2), with(at("POST", "/v2/credentials"), "Authorization", "x"));
    refused(&p, 2, 405, "bad-method");
    give_request(&p, XID(3), with(at("GET", "/v2/credentials"), "Authorization", "x"));
    take_lease(&p, 3);
    says(&p, 3,
         "{\"AccessKeyId\":\"cs_lease\",\"SecretAccessKey\":\"other-half\",\"Token\":\"cs_lease\","
         "\"Expiration\":\"2026-01-01T06:16:40Z\"}");
    play_close(&p);
}

static void googles_server(void **state)
{
    static const char base[] = "/computeMetadata/v1/instance/service-accounts/default/";
    char path[256];
    struct play p;
    play_all(&p, "stub-google\n");
    give_request(&p, XID(1), at("GET", "/"));
    refused(&p, 1, 403, "stub-header");
    give_request(&p, XID(2), with(at("GET", "/"), "Metadata-Flavor", "google"));
    refused(&p, 2, 403, "stub-header");
    give_request(&p, XID(3), with(at("GET", "/"), "metadata-flavor", "Google"));
    struct wire_reply r = reply_of(&p, 3, 200);
    bool shown = false;
    for (size_t i = 0; i < r.head.nfields; i++)
        shown |=
            span_eq(r.head.field[i].name, SPAN("Metadata-Flavor")) && span_eq(r.head.field[i].value, SPAN("Google"));
    assert_true(shown);
    expect_audit(&p, XID(3), "allow", "stub");
    struct ask *whole = with(at("GET", base), "Metadata-Flavor", "Google");
    whole->query = "recursive=true";
    give_request(&p, XID(4), whole);
    says(&p, 4, "{\"aliases\":[\"default\"],\"email\":\"leased@countersign.internal\",\"scopes\":[");
    snprintf(path, sizeof(path), "%stoken", base);
    give_request(&p, XID(5), with(at("GET", path), "Metadata-Flavor", "Google"));
    take_lease(&p, 5);
    says(&p, 5, "{\"access_token\":\"cs_lease\",\"expires_in\":21600,\"token_type\":\"Bearer\"}");
    snprintf(path, sizeof(path), "%sidentity", base);
    give_request(&p, XID(6), with(at("GET", path), "Metadata-Flavor", "Google"));
    refused(&p, 6, 404, "not-found");
    play_close(&p);
}

/* The fake's form is the query. */
static void a_token_endpoint(void **state)
{
    struct play p;
    play_all(&p, "stub-oauth\n");
    give_request(&p, XID(1), at("GET", "/token"));
    refused(&p, 1, 405, "bad-method");
    struct ask a = {.host = "stub.example", .method = "POST", .path = "/token", .query = "magic"};
    give_request(&p, XID(2), &a);
    expect_reply(&p, XID(2), 400, "{\"error\":\"unsupported_grant_type\"}");
    expect_audit(&p, XID(2), "allow", "stub");
    a.query = NULL;
    give_request(&p, XID(3), &a);
    expect_reply(&p, XID(3), 400, "{\"error\":\"invalid_request\"}");
    expect_audit(&p, XID(3), "allow", "stub");
    a.query = "client_credentials";
    give_request(&p, XID(4), &a);
    take_lease(&p, 4);
    says(&p, 4, "{\"access_token\":\"cs_lease\",\"token_type\":\"Bearer\",\"expires_in\":21600}");
    a.kind = 2; /* its body is read first, and not too much of it */
    a.declared = 64 * 1024 + 1;
    give_request(&p, XID(5), &a);
    refused(&p, 5, 413, "body-too-large");
    a.declared = 64 * 1024;
    give_request(&p, XID(6), &a);
    struct msg_in m = expect(&p, ROLE_FRONT, M_BODY_WANTED, XID(6));
    assert_int_equal(msg_get_u8(&m), 2);
    assert_int_equal(msg_get_u64(&m), 64 * 1024);
    play_gone(&p, ROLE_FRONT, FRONT);
    play_close(&p);
}

/* Whoever passes on what somebody else asks for says so, and gets nothing, of any of them. */
static void forwarded_requests(void **state)
{
    static const char *const kinds[] = {"stub-aws\n", "stub-container\n", "stub-google\n", "stub-oauth\n"};
    for (size_t i = 0; i < 4; i++) {
        struct play p;
        play_all(&p, kinds[i]);
        struct ask a = {.host = "stub.example", .method = "GET", .path = ROLES, .forwarded = true};
        give_request(&p, XID(1), &a);
        refused(&p, 1, 403, "stub-forwarded");
        a.method = "PUT";
        a.path = TOKEN;
        give_request(&p, XID(2), &a);
        refused(&p, 2, 403, "stub-forwarded");
        play_close(&p);
    }
}

/* However many of a sandbox ask, the ledger has one question of it; a neighbour's does not wait. */
static void one_question_a_sandbox(void **state)
{
    struct play p;
    struct wire_lease l;
    play_all(&p, "stub-container\n");
    play_sandbox(&p, "other", "ses", NULL, false);
    play_peer(&p, ROLE_FRONT, OTHER_FRONT, "other");
    for (unsigned n = 1; n <= 4; n++)
        give_request(&p, XID(n), with(at("GET", "/v2/credentials"), "Authorization", "x"));
    asks_ledger(&p, XID(1), "sb");
    give_request(&p, OTHER(1), with(at("GET", "/v2/credentials"), "Authorization", "x"));
    asks_ledger(&p, OTHER(1), "other");
    expect_nothing(&p);
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CANCEL, XID(2), -1), 0); /* it leaves the line */
    assert_int_equal(give(&p, ROLE_FRONT, FRONT, M_CANCEL, XID(1), -1), 0); /* its answer comes all the same */
    expect_nothing(&p);
    l = stubbed(&p, 1);
    tell_lease(&p, &l);
    give_lease(&p, XID(1), &l, true);
    asks_ledger(&p, XID(3), "sb");
    expect_nothing(&p);
    give_lease(&p, XID(3), &l, false);
    refused(&p, 3, 503, "lease-unavailable");
    asks_ledger(&p, XID(4), "sb");
    play_gone(&p, ROLE_LEDGER, 0);
    expect_reply(&p, OTHER(1), 503, "store-unavailable");
    expect_reply(&p, XID(4), 503, "store-unavailable");
    play_close(&p);
}

static void an_answer_that_does_not_come(void **state)
{
    struct play p;
    play_all(&p, "stub-container\n");
    give_request(&p, XID(1), with(at("GET", "/v2/credentials"), "Authorization", "x"));
    asks_ledger(&p, XID(1), "sb");
    play_time(&p, 10 * 1000);
    refused(&p, 1, 503, "store-unavailable");
    give_bool(&p, ROLE_LEDGER, M_STORE, 0, true); /* a sign of life */
    give_request(&p, XID(2), with(at("GET", "/v2/credentials"), "Authorization", "x"));
    take_lease(&p, 2);
    says(&p, 2, "cs_lease");
    play_close(&p);
}

/* Who waited for its answer asks itself, as soon as it has given up. */
static void the_next_asks_when_one_gives_up(void **state)
{
    struct play p;
    play_all(&p, "stub-container\n");
    give_request(&p, XID(1), with(at("GET", "/v2/credentials"), "Authorization", "x"));
    asks_ledger(&p, XID(1), "sb");
    for (unsigned n = 0; n < 2; n++) {
        play_time(&p, 4 * 1000);
        give_bool(&p, ROLE_LEDGER, M_STORE, 0, true); /* a sign of life */
    }
    give_request(&p, XID(2), with(at("GET", "/v2/credentials"), "Authorization", "x"));
    expect_nothing(&p);
    play_time(&p, 2 * 1000);
    refused(&p, 1, 503, "store-unavailable");
    take_lease(&p, 2);
    says(&p, 2, "cs_lease");
    play_close(&p);
}

/* The lease that came is another sandbox's, of an earlier generation, dead, or of another credential by now. */
static void what_is_given_is_good(void **state)
{
    for (int i = 0; i < 5; i++) {
        struct play p;
        play_all(&p, "stub-container\n");
        give_request(&p, XID(1), with(at("GET", "/v2/credentials"), "Authorization", "x"));
        asks_ledger(&p, XID(1), "sb");
        struct wire_lease l = stubbed(&p, 1);
        if (i == 0)
            l.sandbox = SPAN("other");
        if (i == 1)
            l.generation++;
        if (i == 2)
            l.state = LEASE_EXPIRED;
        if (i == 3)
            play_policy(&p, "stub-container redefined\n");
        if (i != 4) /* nobody told of it */
            tell_lease(&p, &l);
        give_lease(&p, XID(1), &l, true);
        refused(&p, 1, 503, "lease-unavailable");
        play_close(&p);
    }
}

static void give_generation(struct play *p, uint64_t generation)
{
    struct wire_sandbox s = {.name = SPAN("sb"), .session = SPAN("ses"), .generation = generation};
    struct dynbuf *b = from(p);
    wire_put_sandbox(b, &s);
    msg_put_u8(b, false);
    assert_int_equal(give(p, ROLE_LEDGER, 0, M_SANDBOX, 0, -1), 0);
}

/* What a person did to a lease of a stub stays done, and a leak of any; the end of its time is none of these. */
static void none_in_place_of_one_that_was_taken(void **state)
{
    enum { EXPIRED = 0, REVOKED, LEAKED, NARROWED, BY_HAND, OLDER, CASES };
    for (int i = 0; i < CASES; i++) {
        struct play p;
        bool over = i >= REVOKED && i <= NARROWED;
        play_all(&p, "stub-container\n");
        struct wire_lease l = stubbed(&p, 1);
        l.state = i == REVOKED || i == BY_HAND || i == OLDER ? LEASE_REVOKED
                  : i == LEAKED                              ? LEASE_LEAKED
                                                             : LEASE_EXPIRED;
        l.nlayers = i == NARROWED;
        l.generation += i == OLDER;
        if (i == BY_HAND)
            l.by = SPAN("alice");
        tell_lease(&p, &l);
        give_generation(&p, 0); /* other labels, say */
        give_request(&p, XID(1), with(at("GET", "/v2/credentials"), "Authorization", "x"));
        if (over)
            refused(&p, 1, 403, "lease-ended");
        else
            asks_ledger(&p, XID(1), "sb");
        if (over) { /* it began anew */
            give_generation(&p, 1);
            give_request(&p, XID(2), with(at("GET", "/v2/credentials"), "Authorization", "x"));
            asks_ledger(&p, XID(2), "sb");
        }
        play_gone(&p, ROLE_FRONT, FRONT);
        play_gone(&p, ROLE_LEDGER, 0);
        play_close(&p);
    }
}

static void shadow_mode_has_no_leases(void **state)
{
    struct play p;
    play_all(&p, "stub-google\n");
    assert_int_equal(judge_config(p.j, SPAN("mode"), SPAN("shadow")), JUDGE_CONFIG_OK);
    give_request(&p, XID(1), with(at("GET", "/"), "Metadata-Flavor", "Google"));
    (void)expect(&p, ROLE_LEDGER, M_INTENT, XID(1)); /* it goes on as any other */
    play_gone(&p, ROLE_LEDGER, 0);
    (void)reply_of(&p, 1, 503);
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instance_metadata),
        cmocka_unit_test(session_tokens),
        cmocka_unit_test(a_container),
        cmocka_unit_test(googles_server),
        cmocka_unit_test(a_token_endpoint),
        cmocka_unit_test(forwarded_requests),
        cmocka_unit_test(one_question_a_sandbox),
        cmocka_unit_test(an_answer_that_does_not_come),
        cmocka_unit_test(the_next_asks_when_one_gives_up),
        cmocka_unit_test(what_is_given_is_good),
        cmocka_unit_test(none_in_place_of_one_that_was_taken),
        cmocka_unit_test(shadow_mode_has_no_leases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
