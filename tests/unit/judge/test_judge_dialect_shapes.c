/* Refusals in the words of many APIs: whose client a request is taken for, and what it is told, to the byte. What
 * their programs print of these is in tests/e2e/clients/test_words.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "common/json/json.h"
#include "common/text/utf8.h"
#include "proxy/judge/replies/dialect.h"

#define SIGNED(service) " | Authorization: AWS4-HMAC-SHA256 Credential=AKIA/20261123/eu-1/" service "/aws4_request, x"
#define FORM            " | Content-Type: application/x-www-form-urlencoded; charset=utf-8"
#define OF_JSON         " | Content-Type: application/json"
#define RPC             " | {\"id\":1,\"jsonrpc\":\"2.0\"}"

/* Dialect, URL, fields and body, as these programs send them. */
static const char *const asked[] = {
    "git-info-refs git.test/a/b.git/info/refs?service=git-receive-pack | User-Agent: git/2.39.5",
    "problem git.test/a/info/refs?service=other",
    "git-receive-pack git.test/a.git/git-receive-pack | content-type: application/x-git-receive-pack-request",
    "npm r.test/a | user-agent: npm/10.8.2 node/v20.19.0 linux x64 workspaces/false",
    "npm r.test/a | npm-command: install",
    "npm r.test/a | user-agent: pnpm/9.0.0 npm/? node/v20.19.0 linux x64",
    "npm r.test/a | user-agent: yarn/1.22.22 npm/? node/v20.19.0 linux x64",
    "pip p.test/simple/a/ | User-Agent: pip/23.0.1 {}",
    "pip p.test/legacy/ | User-Agent: twine/4.0.2 requests/2.28.1",
    "git-lfs l.test/info/lfs/objects/batch | Accept: application/vnd.git-lfs+json",
    "git-lfs store.test/o/1 | User-Agent: git-lfs/3.3.0 (GitHub; linux amd64; go 1.19.8)",
    "s3 s.test/bucket/key" SIGNED("s3"),
    "s3 s.test/bucket/key" SIGNED("s3express"),
    "s3 s.test/bucket/key | Authorization: AWS AKIA:signature",
    "s3 s.test/b/k?X-Amz-Date=1&X-Amz-Credential=AKIA%2F20261123%2Feu-1%2Fs3%2Faws4_request&X-Amz-Expires=9",
    "s3 bucket.s3.eu-1.amazonaws.com/key",
    "s3 s3.amazonaws.com/bucket",
    "aws-ec2 ec2.test/" SIGNED("ec2") FORM,
    "aws-query sts.test/" SIGNED("sts") FORM,
    "aws-query sts.amazonaws.com/" FORM, /* by a web identity: unsigned */
    "aws-query route53.test/2013-04-01/hostedzone" SIGNED("route53"),
    "aws-json d.test/ | X-Amz-Target: DynamoDB_20120810.PutItem",
    "aws-json l.test/2015-03-31/functions" SIGNED("lambda") OF_JSON,
    "problem l.test/ | Authorization: AWS4-HMAC-SHA256 Credential=aws4_request",
    "problem l.test/ | Authorization: AWS4-HMAC-SHA256 Credential=a/s3/",
    "problem notamazonaws.com/" FORM,
    "kubernetes-discovery k.test/api | Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "kubernetes k.test/api/v1/x | User-Agent: kubectl/v1.32.4 (linux/amd64) kubernetes/59526cd",
    "kubernetes k.test/api/v1/x | Kubectl-Command: kubectl delete",
    "kubernetes k.test/api | User-Agent: operator/v0.0.0 (linux/amd64) kubernetes/$Format",
    "kubernetes k.test/api | Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "kubernetes k.test/api | Accept: application/vnd.kubernetes.protobuf,application/json",
    "oci r.test/v2/",
    "oci r.test/v2/library/app/manifests/latest",
    "oci r.test/v2/library/app/blobs/uploads/",
    "oci r.test/v2/library/app/referrers/sha256:0",
    "oci r.test/v2/library/app/tags/list",
    "problem api.test/v2/things",
    "stripe api.stripe.com/v1/charges",
    "stripe mock.test/v1/charges | Stripe-Version: 2026-01-28.preview",
    "stripe mock.test/v1/charges | X-Stripe-Client-User-Agent: {}",
    "problem notstripe.com/v1/charges",
    "slack slack.com/api/chat.postMessage",
    "slack m.test/x | User-Agent: @slack:web-api/8.2.0 node/20.20.2 linux/6.1",
    "slack m.test/x | User-Agent: Python/3.11.2 slackclient/3.19.5 Linux/6.1",
    "problem slack.com/help",
    "anthropic m.test/v1/messages | anthropic-version: 2023-06-01",
    "openai m.test/v1/chat/completions | User-Agent: OpenAI/JS 6.10.0",
    "openai api.openai.com/v1/responses | Accept: text/event-stream, application/json",
    "json-rpc m.test/mcp | Accept: application/json, text/event-stream",
    "json-rpc m.test/mcp | Accept: application/json | Accept: text/event-stream",
    "problem m.test/mcp | Accept: application/json",
    "json-rpc m.test/mcp | Mcp-Session-Id: 1",
    "json-rpc m.test/mcp | MCP-Protocol-Version: 2025-11-25",
    "json-rpc m.test/mcp | Mcp-Method: tools/call",
    "json-rpc m.test/rpc" OF_JSON RPC,
    "problem m.test/rpc | Content-Type: text/plain" RPC,
    "problem m.test/rpc" OF_JSON " | {\"id\":1,\"jsonrpc\":\"3.0\"}",
    "graphql api.github.com/graphql | Accept: application/vnd.github.v3+json",
    "graphql shop.test/admin/api/2026-01/graphql.json",
    "graphql g.test/query | Accept: application/graphql-response+json, application/json",
    "graphql g.test/query | Content-Type: application/graphql",
    "problem api.github.com/rate_limit | User-Agent: curl/7.88.1 | Accept: */*",
    "github ghe.test/api/v3/user | accept: application/vnd.github.v3+json",
    "github ghe.test/api/v3/user | X-GitHub-Api-Version: 2022-11-28",
    "problem upstream.test/w | User-Agent: curl/7.88.1 | Accept: */*",
};

/* What the row's request is taken for; *want: what it begins with. */
static enum dialect taken_for(const char *row, enum dialect said, struct span *want)
{
    struct wire_request q = {0};
    struct dialect_client c = {.said = said, .request = &q};
    struct span rest = span_str(row), url;
    span_cut(rest, ' ', want, &rest);
    size_t end = span_find(rest, SPAN(" | "));
    url = span_first(rest, end);
    q.host = span_first(url, span_index(url, '/'));
    q.has_query = span_cut(span_from(url, q.host.n), '?', &q.path, &q.query);
    while (end < rest.n) {
        struct http_field *f = &q.field[q.nfields];
        rest = span_from(rest, end + 3);
        end = span_find(rest, SPAN(" | "));
        if (rest.p[0] == '{') {
            c.body = rest;
        } else {
            span_cut(span_first(rest, end), ':', &f->name, &f->value);
            f->value = span_trim(f->value);
            q.nfields++;
        }
    }
    return dialect_of(&c);
}

static void a_client_is_known_by_what_it_sends(void **state)
{
    bool known[DIALECT_COUNT] = {false};
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        struct span want;
        enum dialect d = taken_for(asked[i], DIALECT_UNSAID, &want);
        if (!span_eq(span_str(dialect_name(d)), want))
            fail_msg("%s: %s", asked[i], dialect_name(d));
        known[d] = true;
        assert_int_equal(taken_for(asked[i], DIALECT_PIP, &want), DIALECT_PIP); /* a pack's word is above it */
        assert_int_equal(taken_for(asked[i], DIALECT_PROBLEM, &want), DIALECT_PROBLEM);
        assert_int_equal(taken_for(asked[i], DIALECT_COUNT, &want), d);
    }
    for (unsigned d = DIALECT_UNSAID + 1; d < DIALECT_COUNT; d++)
        if (!known[d])
            fail_msg("no row for %s", dialect_name((enum dialect)d));
    assert_int_equal(dialect_of(&(struct dialect_client){.body = SPAN("{\"jsonrpc\":\"2.0\"}")}), DIALECT_PROBLEM);
    assert_string_equal(dialect_name(DIALECT_COUNT), "unsaid");
}

static struct refusal sample(void)
{
    return (struct refusal){.status = 403,
                            .code = "held",
                            .decision = "hold",
                            .title = SPAN("Held"),
                            .detail = SPAN("Put <a> & \"b\": held."),
                            .next = SPAN("Repeat the same request."),
                            .ticket = SPAN("t1"),
                            .status_url = SPAN("http://countersign.internal/v1/tickets/t1"),
                            .expires_ms = 1767225600000u,
                            .retry = true};
}

static struct span header(const struct wire_reply *r, const char *name)
{
    struct span found = SPAN_NONE;
    for (size_t i = 0; i < r->head.nfields; i++)
        if (span_ieq(r->head.field[i].name, span_str(name))) {
            assert_int_equal(found.n, 0);
            found = r->head.field[i].value;
        }
    return found;
}

static struct wire_reply reply(enum dialect d, struct span body, const struct refusal *r, struct arena *a)
{
    struct dialect_client c = {.said = d, .body = body};
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

#define WORDS "\"Put <a> & \\\"b\\\": held. Repeat the same request.\""
#define OWN                                                                                                          \
    "\"countersign\":{\"code\":\"held\",\"ticket\":\"t1\","                                                          \
    "\"status_url\":\"http://countersign.internal/v1/tickets/t1\",\"expires\":\"2026-01-01T00:00:00Z\","             \
    "\"retry\":true}"
#define XML "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define IN_XML                                                                                                       \
    "<Message>Put &lt;a&gt; &amp; \"b\": held. Repeat the same request.</Message>"                                   \
    "<CountersignCode>held</CountersignCode>"
#define JSON    "application/json"
#define TEXT    "Put <a> & \"b\": held.\nRepeat the same request.\n"
#define IN_TEXT "text/plain; charset=utf-8"

static const struct {
    const char *type, *body; /* NULL: in test_judge_dialect.c */
} golden[DIALECT_COUNT] = {
    [DIALECT_GIT_INFO_REFS] = {IN_TEXT, TEXT},
    [DIALECT_GIT_RECEIVE_PACK] = {IN_TEXT, TEXT}, /* of a push that is not understood */
    [DIALECT_NPM] = {JSON, "{\"error\":" WORDS "," OWN "}"},
    [DIALECT_PIP] = {IN_TEXT, TEXT},
    [DIALECT_GIT_LFS] = {"application/vnd.git-lfs+json", "{\"message\":" WORDS "," OWN "}"},
    [DIALECT_S3] = {"application/xml",
                    XML "<Error><Code>AccessDenied</Code>" IN_XML "<RequestId>t1</RequestId></Error>\n"},
    [DIALECT_AWS_EC2] = {"text/xml;charset=UTF-8", XML "<Response><Errors><Error><Code>AccessDenied</Code>" IN_XML
                                                       "</Error></Errors><RequestID>t1</RequestID></Response>\n"},
    [DIALECT_AWS_QUERY] = {"text/xml;charset=UTF-8",
                           XML "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>" IN_XML
                               "</Error><RequestId>t1</RequestId></ErrorResponse>\n"},
    [DIALECT_AWS_JSON] = {"application/x-amz-json-1.1",
                          "{\"__type\":\"AccessDeniedException\",\"message\":" WORDS "," OWN "}"},
    [DIALECT_KUBERNETES_DISCOVERY] = {IN_TEXT, TEXT},
    [DIALECT_KUBERNETES] = {JSON, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                                  "\"status\":\"Failure\",\"message\":" WORDS
                                  ",\"reason\":\"Forbidden\",\"code\":403," OWN "}"},
    [DIALECT_OCI] = {JSON, "{\"errors\":[{\"code\":\"DENIED\",\"message\":" WORDS ",\"detail\":{" OWN "}}]}"},
    [DIALECT_STRIPE] = {JSON, "{\"error\":{\"type\":\"invalid_request_error\",\"message\":" WORDS "," OWN "}}"},
    [DIALECT_SLACK] = {JSON, "{\"ok\":false,\"error\":" WORDS "," OWN "}"},
    [DIALECT_ANTHROPIC] = {JSON, "{\"type\":\"error\",\"error\":{\"type\":\"permission_error\",\"message\":" WORDS
                                 "}," OWN "}"},
    [DIALECT_OPENAI] = {JSON, "{\"error\":{\"message\":" WORDS
                              ",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null," OWN "}}"},
    [DIALECT_JSON_RPC] = {JSON, "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32010,\"message\":" WORDS
                                ",\"data\":{" OWN "}}}"},
    [DIALECT_GRAPHQL] = {JSON, "{\"errors\":[{\"message\":" WORDS ",\"extensions\":{" OWN "}}]}"},
    [DIALECT_GITHUB] = {JSON, "{\"message\":" WORDS "," OWN "}"},
};

static void each_is_told_in_its_own_words(void **state)
{
    for (unsigned d = DIALECT_UNSAID + 1; d < DIALECT_PROBLEM; d++) {
        struct arena a;
        struct refusal r = sample();
        struct wire_reply out = reply((enum dialect)d, SPAN("{\"jsonrpc\":\"2.0\",\"id\":7}"), &r, &a);
        assert_non_null(golden[d].body);
        same(out.body, span_str(golden[d].body));
        same(header(&out, "content-type"), span_str(golden[d].type));
        same(header(&out, "x-amzn-errortype"), d == DIALECT_AWS_JSON ? SPAN("AccessDeniedException") : SPAN_NONE);
        arena_free(&a);
    }
}

/* Whatever the words, a refusal is an error to who looks at the status alone, and names its ticket. */
static void the_head_is_the_same_for_all(void **state)
{
    const unsigned status[] = {400, 403, 409, 413, 429, 502, 503};
    for (unsigned d = DIALECT_UNSAID; d < DIALECT_COUNT; d++)
        for (size_t i = 0; i < 2 * sizeof(status) / sizeof(status[0]); i++) {
            struct arena a;
            struct refusal r = sample();
            r.status = status[i / 2];
            r.retry = i % 2;
            struct wire_reply out = reply((enum dialect)d, SPAN_NONE, &r, &a);
            bool octokit = d == DIALECT_GITHUB && r.status >= 409 && !r.retry; /* it would repeat it */
            assert_int_equal(out.head.status, octokit ? 422 : r.status);
            same(header(&out, "countersign-decision"), SPAN("hold"));
            same(header(&out, "countersign-ticket"), SPAN("t1"));
            same(header(&out, "cache-control"), SPAN("no-store"));
            same(out.head.reason, SPAN("Held"));
            assert_true(header(&out, "content-type").n > 0);
            arena_free(&a);
        }
}

/* Who would repeat a 409 or a 502 by itself is told not to, where that could do it twice. */
static void an_sdk_repeats_what_may_be_repeated(void **state)
{
    struct arena a;
    for (unsigned d = DIALECT_UNSAID + 1; d < DIALECT_COUNT; d++)
        for (int retry = 0; retry < 2; retry++) {
            struct refusal r = sample();
            r.retry = retry;
            struct wire_reply out = reply((enum dialect)d, SPAN_NONE, &r, &a);
            same(header(&out, "stripe-should-retry"), d == DIALECT_STRIPE && !retry ? SPAN("false") : SPAN_NONE);
            same(header(&out, "x-should-retry"), retry ? SPAN_NONE : SPAN("false"));
            arena_free(&a);
        }
    struct refusal r = sample();
    r.status = 409; /* kubectl repeats a Conflict */
    struct wire_reply out = reply(DIALECT_KUBERNETES, SPAN_NONE, &r, &a);
    assert_true(span_find(out.body, SPAN("\"reason\":\"Forbidden\",\"code\":409")) < out.body.n);
    arena_free(&a);
}

/* Slack says all but 429 with 200, and its SDK repeats all others: so it is said by its methods, with `ok` at false,
 * and nowhere else. What passes by itself may be repeated. */
static void slack_is_told_as_slack_tells_it(void **state)
{
    static const struct {
        const char *path, *challenge;
        unsigned status, is;
        bool retry;
    } rows[] = {
        {"/api/chat.postMessage", "", 403, 200, false},
        {"/api/chat.postMessage", "", 403, 200, true},
        {"/api/chat.postMessage", "", 409, 409, true},
        {"/api/chat.postMessage", "", 409, 200, false},
        {"/api/chat.postMessage", "", 502, 200, false},
        {"/api/chat.postMessage", "", 503, 503, true},
        {"/api/chat.postMessage", "", 429, 429, true},
        {"/api/chat.postMessage", "Basic", 401, 401, false},
        {"/upload/v1/file", "", 403, 403, false},
        {"/services/T/B/x", "", 502, 502, false},
        {"/apis/x", "", 403, 403, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct arena a;
        struct refusal r = sample();
        struct wire_request q = {.host = SPAN("slack.com"), .path = span_str(rows[i].path)};
        struct dialect_client c = {.said = DIALECT_SLACK, .request = &q};
        struct wire_reply out;
        r.status = rows[i].status;
        r.retry = rows[i].retry;
        r.challenge = span_str(rows[i].challenge);
        arena_init(&a, 1 << 20);
        dialect_reply(&c, &r, &a, &out);
        assert_int_equal(out.head.status, rows[i].is);
        assert_true(span_starts(out.body, SPAN("{\"ok\":false,\"error\":")));
        same(header(&out, "countersign-decision"), SPAN("hold"));
        arena_free(&a);
        arena_init(&a, 64); /* where the words have no room, a status alone must not say that it was done */
        dialect_reply(&c, &r, &a, &out);
        assert_int_equal(out.head.status, rows[i].status);
        assert_int_equal(out.body.n, 0);
        arena_free(&a);
    }
}

static void is_sound_xml(struct span s)
{
    size_t tags = 0;
    assert_int_equal(utf8_run(s), s.n);
    for (size_t i = 0; i < s.n; i++) {
        assert_true(s.p[i] >= 0x20 || s.p[i] == '\n');
        tags += s.p[i] == '<';
        if (s.p[i] == '&') {
            struct span e = span_from(s, i);
            assert_true(span_starts(e, SPAN("&lt;")) || span_starts(e, SPAN("&gt;")) ||
                        span_starts(e, SPAN("&amp;")));
        }
    }
    assert_true(tags <= 15); /* the shape's own */
}

/* Words may hold any bytes, in any number: what comes out is of its kind, and no longer than there is room for. */
static void words_stay_words(void **state)
{
    static char words[100 * 1024];
    const char end[] = "\"}]}]]></Message></Error><x>&bogus;'\\\xc2\x9b\xef\xbf\xbe\xed\xa0\x80\xff\xf0\x9f";
    for (size_t i = 0; i < sizeof(words); i++)
        words[i] = (char)i;
    for (unsigned d = DIALECT_UNSAID + 1; d < DIALECT_COUNT; d++)
        for (size_t n = 0; n < 3; n++) {
            struct arena a;
            struct refusal r = sample();
            r.detail = n == 0 ? span_of(end, sizeof(end) - 1) : span_of(words, n == 1 ? 4096 : sizeof(words));
            if (n == 2 && (golden[d].type == NULL || span_eq(span_str(golden[d].type), SPAN(IN_TEXT))))
                continue; /* not shapes: of what no buffer holds the status is left, see test_judge_dialect.c */
            r.rule = r.detail;
            r.rule.n = n ? 200 : r.rule.n;
            struct wire_reply out = reply((enum dialect)d, SPAN_NONE, &r, &a);
            struct span type = header(&out, "content-type");
            if (span_find(type, SPAN("xml")) < type.n)
                is_sound_xml(out.body);
            else if (span_find(type, SPAN("json")) < type.n)
                assert_non_null(json_parse(out.body, &a));
            assert_true(out.body.n <= 160 * 1024 || d == DIALECT_PROBLEM);
            arena_free(&a);
        }
}

static void many_words_are_cut(void **state)
{
    static char words[20000];
    struct arena a;
    struct refusal r = sample();
    memset(words, 'a', sizeof(words));
    r.detail = span_of(words, sizeof(words));
    for (unsigned d = DIALECT_UNSAID + 1; d < DIALECT_PROBLEM; d++)
        if (!span_eq(span_str(golden[d].type), SPAN(IN_TEXT))) {
            struct wire_reply out = reply((enum dialect)d, SPAN_NONE, &r, &a);
            assert_in_range(out.body.n, 8 * 1024, 9 * 1024);
            arena_free(&a);
        }
}

static void a_call_is_answered_by_its_id(void **state)
{
    static char longer[64 * 1024 + 64], padded[64 * 1024 + 64];
    static const struct {
        const char *body, *id;
    } call[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":7}", "7"},
        {"{\"id\":-1.5e3,\"jsonrpc\":\"2.0\"}", "-1.5e3"},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"},<\\u0007\"}", "\"a\\\"},<\\u0007\""},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", "null"},
        {"{\"jsonrpc\":\"2.0\",\"id\":null}", "null"},
        {"{\"jsonrpc\":\"2.0\",\"id\":{\"a\":1}}", "null"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2}", "null"},
        {"[{\"jsonrpc\":\"2.0\",\"id\":7}]", "null"},
        {"[]", "null"},
        {"{\"jsonrpc\":\"2.0\",\"id\":", "null"},
        {longer, "null"},
        {padded, "null"},
    };
    memset(longer, '1', 400);
    memcpy(longer, "{\"jsonrpc\":\"2.0\",\"id\":\"", 23);
    memcpy(longer + 400, "\"}", 2);
    memset(padded, ' ', sizeof(padded) - 1);
    memcpy(padded, "{\"jsonrpc\":\"2.0\",\"id\":7}", 24);
    for (size_t i = 0; i < sizeof(call) / sizeof(call[0]); i++) {
        struct arena a;
        struct refusal r = sample();
        struct wire_reply out = reply(DIALECT_JSON_RPC, span_str(call[i].body), &r, &a);
        struct span id = span_from(out.body, span_find(out.body, SPAN("\"id\":")) + 5);
        assert_non_null(json_parse(out.body, &a));
        same(span_first(id, strlen(call[i].id)), span_str(call[i].id));
        assert_int_equal(id.p[strlen(call[i].id)], ',');
        arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_is_known_by_what_it_sends), cmocka_unit_test(each_is_told_in_its_own_words),
        cmocka_unit_test(the_head_is_the_same_for_all),       cmocka_unit_test(an_sdk_repeats_what_may_be_repeated),
        cmocka_unit_test(slack_is_told_as_slack_tells_it),    cmocka_unit_test(words_stay_words),
        cmocka_unit_test(a_call_is_answered_by_its_id),       cmocka_unit_test(many_words_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
