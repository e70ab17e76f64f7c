/* How refusals look to their clients, to the byte; and what digest and join key cover. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "proxy/judge/replies/dialect.h"
#include "proxy/judge/tickets/digest.h"

static struct refusal sample(void)
{
    return (struct refusal){.status = 403,
                            .code = "denied",
                            .decision = "deny",
                            .title = SPAN("Not on Fridays"),
                            .detail = SPAN("Not on Fridays"),
                            .next = SPAN("Wait.")};
}

static struct span header(const struct wire_reply *r, const char *name)
{
    for (size_t i = 0; i < r->head.nfields; i++)
        if (span_ieq(r->head.field[i].name, span_str(name)))
            return r->head.field[i].value;
    return SPAN_NONE;
}

static struct wire_reply reply(enum dialect d, const struct git_push *push, const struct refusal *r, struct arena *a)
{
    struct dialect_client c = {.said = d, .push = push};
    struct wire_reply out;
    arena_init(a, 1 << 20);
    dialect_reply(&c, r, a, &out);
    assert_int_not_equal(out.body.n, 0);
    return out;
}

static void same(struct span got, struct span want)
{
    if (!span_eq(got, want))
        fail_msg("got:\n%.*s\nwanted:\n%.*s", SPAN_FMT(got), SPAN_FMT(want));
}

static const struct git_ref one_ref[] = {{SPAN("refs/heads/main"), SPAN("a"), SPAN("b")}};

static void a_push_is_refused_as_a_hook_would(void **state)
{
    struct arena a;
    struct refusal r = sample();
    struct git_push push = {one_ref, 1, true, true, false};
    struct wire_reply out = reply(DIALECT_GIT_RECEIVE_PACK, &push, &r, &a);
    assert_int_equal(out.head.status, 200);
    same(header(&out, "content-type"), SPAN("application/x-git-receive-pack-result"));
    same(header(&out, "countersign-decision"), SPAN("deny"));
    same(out.body, SPAN("0014\x02"
                        "Not on Fridays\n"
                        "000b\x02"
                        "Wait.\n"
                        "003d\x01"
                        "000eunpack ok\n"
                        "0026ng refs/heads/main Not on Fridays\n"
                        "0000"
                        "0000"));
    arena_free(&a);
    push.side_band = false;
    out = reply(DIALECT_GIT_RECEIVE_PACK, &push, &r, &a);
    same(out.body, SPAN("000eunpack ok\n"
                        "0026ng refs/heads/main Not on Fridays\n"
                        "0000"));
    arena_free(&a);
    push.report_status = false; /* a 200 that says nothing would look like success */
    out = reply(DIALECT_GIT_RECEIVE_PACK, &push, &r, &a);
    assert_int_equal(out.head.status, 403);
    arena_free(&a);
    out = reply(DIALECT_GIT_RECEIVE_PACK, NULL, &r, &a);
    assert_int_equal(out.head.status, 403);
    arena_free(&a);
    push.report_status = true; /* a credential that is asked for is asked for by the status */
    r.status = 401;
    r.challenge = SPAN("Basic realm=\"x\"");
    out = reply(DIALECT_GIT_RECEIVE_PACK, &push, &r, &a);
    assert_int_equal(out.head.status, 401);
    same(header(&out, "www-authenticate"), SPAN("Basic realm=\"x\""));
    arena_free(&a);
}

/* Every pkt-line is as long as it says, none longer than the oldest side band takes, and words cannot forge one. */
static void packets_are_well_formed_whatever_the_words(void **state)
{
    struct arena a;
    struct git_ref refs[300];
    static char words[5000];
    struct refusal r = sample();
    struct git_push push = {refs, 300, true, true, true};
    memset(words, 'w', sizeof(words));
    memcpy(words, "0000\n000eunpack ok\n\x1b[2J\x02\x7f\xc2\x9b", 28);
    r.title = r.detail = span_of(words, sizeof(words));
    for (size_t i = 0; i < 300; i++)
        refs[i] = one_ref[0];
    refs[7].name = SPAN("refs/heads/a\nng refs/heads/b"); /* left out, not passed on */
    struct wire_reply out = reply(DIALECT_GIT_RECEIVE_PACK, &push, &r, &a);
    struct span rest = out.body;
    size_t flushes = 0;
    while (rest.n) {
        char size[5] = {0};
        unsigned n;
        assert_true(rest.n >= 4);
        memcpy(size, rest.p, 4);
        assert_int_equal(sscanf(size, "%4x", &n), 1);
        flushes += n == 0;
        assert_true(n == 0 || (n > 5 && n <= 1000 && n <= rest.n));
        assert_true(n == 0 || rest.p[4] == 1 || rest.p[4] == 2);
        if (n && rest.p[4] == 2)
            for (size_t i = 5; i < n; i++)
                assert_true(rest.p[i] == '\n' || (rest.p[i] >= 0x20 && rest.p[i] != 0x7f));
        rest = span_from(rest, n ? n : 4);
    }
    assert_int_equal(flushes, 1);
    assert_true(span_find(out.body, SPAN("\nng refs/heads/b")) == out.body.n);
    for (size_t i = 0; i < out.head.reason.n; i++)
        assert_true(out.head.reason.p[i] >= 0x20 && out.head.reason.p[i] < 0x7f);
    assert_true(out.head.reason.n <= 200);
    arena_free(&a);
}

static void info_refs_is_text(void **state)
{
    struct arena a;
    struct refusal r = sample();
    r.instead = SPAN("Push to agent/*.");
    struct wire_reply out = reply(DIALECT_GIT_INFO_REFS, NULL, &r, &a);
    assert_int_equal(out.head.status, 403);
    same(header(&out, "content-type"), SPAN("text/plain; charset=utf-8"));
    same(out.body, SPAN("Not on Fridays\nWait.\nPush to agent/*.\n"));
    arena_free(&a);
}

static void everybody_else_gets_a_problem(void **state)
{
    struct arena a;
    struct refusal r = sample();
    struct wire_reply out = reply(DIALECT_PROBLEM, NULL, &r, &a);
    same(header(&out, "content-type"), SPAN("application/problem+json"));
    same(out.head.reason, SPAN("Not on Fridays"));
    same(out.body, SPAN("{\"type\":\"urn:countersign:problem:denied\",\"title\":\"Not on Fridays\",\"status\":403,"
                        "\"detail\":\"Not on Fridays\",\"code\":\"denied\",\"error\":\"Not on Fridays\","
                        "\"message\":\"Not on Fridays\",\"retry\":false,\"next_steps\":\"Wait.\"}\n"));
    arena_free(&a);
    r.ticket = SPAN("t1");
    r.status_url = SPAN("http://countersign.internal/v1/tickets/t1");
    r.approval_url = SPAN("http://localhost:8088/tickets/t1");
    r.expires_ms = 1767225600000u;
    r.retry = true;
    r.retry_after = 5;
    r.rule = SPAN("rule-1");
    r.detail = SPAN("say \"it\"\n");
    out = reply(DIALECT_PROBLEM, NULL, &r, &a);
    same(header(&out, "countersign-ticket"), SPAN("t1"));
    same(header(&out, "retry-after"), SPAN("5"));
    same(header(&out, "link"), SPAN("<http://countersign.internal/v1/tickets/t1>; rel=\"status\""));
    assert_true(span_find(out.body, SPAN("\"expires\":\"2026-01-01T00:00:00Z\"")) < out.body.n);
    assert_true(span_find(out.body, SPAN("\"detail\":\"say \\\"it\\\"\\n\"")) < out.body.n);
    assert_true(span_find(out.body, SPAN("\"rule\":\"rule-1\"")) < out.body.n);
    arena_free(&a);
}

static void npm_and_pip_show_what_they_can(void **state)
{
    struct arena a;
    struct refusal r = sample();
    struct wire_reply out = reply(DIALECT_NPM, NULL, &r, &a);
    same(out.body,
         SPAN("{\"error\":\"Not on Fridays Wait.\",\"countersign\":{\"code\":\"denied\",\"retry\":false}}"));
    arena_free(&a);
    r.title = SPAN("caf\xc3\xa9\r\nX: y");
    out = reply(DIALECT_PIP, NULL, &r, &a);
    same(out.head.reason, SPAN("caf??? X: y"));
    arena_free(&a);
    for (unsigned d = DIALECT_UNSAID; d <= DIALECT_COUNT; d++) {
        struct dialect_client c = {.said = (enum dialect)d};
        arena_init(&a, 32); /* no room for words is a failure, not half a reply: the status alone */
        dialect_reply(&c, &r, &a, &out);
        assert_true(out.head.status == r.status && out.body.n == 0 && out.close);
        arena_free(&a);
    }
}

static struct wire_request request(void)
{
    struct wire_request r = {.scheme = SPAN("https"),
                             .host = SPAN("h.example"),
                             .method = SPAN("POST"),
                             .path = SPAN("/p"),
                             .query = SPAN("q=1"),
                             .has_query = true,
                             .port = 443};
    r.field[r.nfields++] = (struct http_field){SPAN("Content-Type"), SPAN("application/json")};
    r.field[r.nfields++] = (struct http_field){SPAN("X-Mode"), SPAN("fast")};
    r.field[r.nfields++] = (struct http_field){SPAN("User-Agent"), SPAN("git/2.39")};
    r.field[r.nfields++] = (struct http_field){SPAN("Idempotency-Key"), SPAN("k1")};
    return r;
}

struct keys {
    struct digest digest, join;
};

static struct keys keys(const struct wire_request *r, const char *session, const char *credential, const char *body)
{
    struct keys k;
    struct digest_input in = {
        .session = span_str(session), .credential = span_str(credential), .request = r, .body = span_str(body)};
    request_digest(&in, &k.digest);
    request_join_key(&in, &k.join);
    return k;
}

static bool eq(const struct digest *a, const struct digest *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* INV6: each field that counts, changed by a little, is another request. */
static void every_field_that_counts_is_covered(void **state)
{
    struct wire_request r = request();
    struct keys first = keys(&r, "ses", "cred", "body"), k[20];
    size_t n = 0;
    k[n++] = keys(&r, "ses2", "cred", "body");
    k[n++] = keys(&r, "ses", "cred2", "body");
    k[n++] = keys(&r, "ses", "cred", "bodz");
    k[n++] = keys(&r, "sesc", "red", "body"); /* fields cannot be re-cut */
#define WITH(change)                                                                                                 \
    r = request();                                                                                                   \
    change;                                                                                                          \
    k[n++] = keys(&r, "ses", "cred", "body")
    WITH(r.scheme = SPAN("http"));
    WITH(r.host = SPAN("i.example"));
    WITH(r.method = SPAN("PUT"));
    WITH(r.path = SPAN("/q"));
    WITH(r.query = SPAN("q=2"));
    WITH(r.has_query = false; r.query = SPAN_NONE);
    WITH(r.port = 444);
    WITH(r.field[0].value = SPAN("text/plain"));
    WITH(r.field[1].value = SPAN("slow"));
    WITH(r.field[1].name = SPAN("X-Made"));
    WITH(r.field[2] = ((struct http_field){SPAN("Authorization"), SPAN("Bearer one")})); /* E44 */
    WITH(r.field[2] = ((struct http_field){SPAN("authorization"), SPAN("Bearer two")}));
    WITH(r.field[2] = ((struct http_field){SPAN("Cookie"), SPAN("id=1")}));
    WITH(r.field[2] = ((struct http_field){SPAN("X_Api_Key"), SPAN("k")}));
#undef WITH
    for (size_t i = 0; i < n; i++) {
        assert_false(eq(&first.digest, &k[i].digest));
        assert_false(eq(&first.join, &k[i].join));
        for (size_t m = 0; m < i; m++)
            assert_false(eq(&k[m].digest, &k[i].digest));
    }
    printf("ok INV6 unit\nok E2 unit\n");
}

/* Who waits, and for how long, is not what is asked for. */
static void whether_anybody_waits_does_not_count(void **state)
{
    struct wire_request r = request();
    struct keys first = keys(&r, "ses", "cred", "body"), k;
    const size_t had = r.nfields++;
    static const struct {
        const char *is;
        bool ours;
    } prefers[] = {
        {"respond-async", true},           {"wait=5", true},           {"Respond-Async, wait=\"100\"; x=1", true},
        {"wait=5, return=minimal", false}, {"handling=strict", false}, {"respond-async, \"wait\"", false}};
    for (size_t i = 0; i < sizeof(prefers) / sizeof(prefers[0]); i++) {
        r.field[had] = (struct http_field){SPAN("Prefer"), span_str(prefers[i].is)};
        k = keys(&r, "ses", "cred", "body");
        assert_false(eq(&first.digest, &k.digest));
        assert_int_equal(eq(&first.join, &k.join), prefers[i].ours);
    }
}

static void what_honest_clients_vary_does_not_count(void **state)
{
    struct wire_request r = request();
    struct keys first = keys(&r, "ses", "cred", "body"), k;
    r.field[2].value = SPAN("git/2.45");
    struct http_field swap = r.field[0];
    r.field[0] = r.field[1];
    r.field[1] = swap;
    r.field[1].name = SPAN("content-type");
    r.field[r.nfields++] = (struct http_field){SPAN("traceparent"), SPAN("00-1")};
    r.field[r.nfields++] = (struct http_field){SPAN("X-Stainless-Retry-Count"), SPAN("1")};
    k = keys(&r, "ses", "cred", "body");
    assert_true(eq(&first.digest, &k.digest));
    assert_true(eq(&first.join, &k.join));
    r.field[3].value = SPAN("k2"); /* a new key is the same request, but not the same bytes */
    k = keys(&r, "ses", "cred", "body");
    assert_false(eq(&first.digest, &k.digest));
    assert_true(eq(&first.join, &k.join));
    struct digest_input in = {.session = SPAN("ses"),
                              .credential = SPAN("cred"),
                              .request = &r,
                              .body = SPAN("cmdsPACK1"),
                              .has_join_body = true,
                              .join_body = SPAN("cmds")};
    request_join_key(&in, &first.join);
    request_digest(&in, &first.digest);
    in.body = SPAN("cmdsPACK2");
    request_join_key(&in, &k.join);
    request_digest(&in, &k.digest);
    assert_true(eq(&first.join, &k.join));
    assert_false(eq(&first.digest, &k.digest));
    first = k; /* another rule, or another op, asks anew; the request is the same */
    in.rule = SPAN("r");
    request_join_key(&in, &k.join);
    assert_false(eq(&first.join, &k.join));
    in.rule = SPAN_NONE;
    in.op = SPAN("r");
    request_join_key(&in, &k.join);
    request_digest(&in, &k.digest);
    assert_false(eq(&first.join, &k.join));
    assert_true(eq(&first.digest, &k.digest));
    first = keys(&r, "ses", "cred", ""); /* an upgrade is another request, one for another subprotocol too */
    r.field[0] = (struct http_field){SPAN("Upgrade"), SPAN("websocket")};
    k = keys(&r, "ses", "cred", "");
    assert_false(eq(&first.digest, &k.digest) || eq(&first.join, &k.join));
    first = k;
    r.field[1] = (struct http_field){SPAN("Sec-WebSocket-Protocol"), SPAN("admin")};
    k = keys(&r, "ses", "cred", "");
    assert_false(eq(&first.digest, &k.digest) || eq(&first.join, &k.join));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_is_refused_as_a_hook_would),
        cmocka_unit_test(packets_are_well_formed_whatever_the_words),
        cmocka_unit_test(info_refs_is_text),
        cmocka_unit_test(everybody_else_gets_a_problem),
        cmocka_unit_test(npm_and_pip_show_what_they_can),
        cmocka_unit_test(every_field_that_counts_is_covered),
        cmocka_unit_test(what_honest_clients_vary_does_not_count),
        cmocka_unit_test(whether_anybody_waits_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
