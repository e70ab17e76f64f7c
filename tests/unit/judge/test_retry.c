/* What the join key leaves out. Effects are made from a seed, and each is written twice, as two runs of an honest
 * client write it: those two join, with two digests; of two different effects neither joins the other. */
#include "tests/kit.h"

#include <stdlib.h>

#include "broker/mcp/mcp.h"
#include "common/dynbuf.h"
#include "proxy/judge/tickets/digest.h"
#include "proxy/judge/tickets/retry.h"

enum { EFFECTS = 300, TEXT_MAX = 4096, PATH_UUID = 36 };

static uint64_t random_state;

static unsigned below(unsigned n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % n);
}

static void seed(uint64_t n)
{
    random_state = n * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int i = 0; i < 8; i++)
        (void)below(2);
}

/* A request, and what it does, written so that two that do the same have the same words. */
struct made {
    struct wire_request r;
    struct dynbuf type, path, query, body, does;
    bool by_target;
    struct span target;
};

static void open_made(struct made *m)
{
    *m = (struct made){.r = {.scheme = SPAN("https"), .host = SPAN("h.test"), .method = SPAN("POST"), .port = 443}};
    struct dynbuf *all[] = {&m->type, &m->path, &m->query, &m->body, &m->does};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        dynbuf_init(all[i], TEXT_MAX);
}

static void close_made(struct made *m)
{
    struct dynbuf *all[] = {&m->type, &m->path, &m->query, &m->body, &m->does};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        assert_true(dynbuf_ok(all[i]));
        dynbuf_free(all[i]);
    }
}

static void field(struct made *m, struct span name, struct span value)
{
    m->r.field[m->r.nfields++] = (struct http_field){name, value};
}

static void finish(struct made *m)
{
    m->r.path = m->path.n ? dynbuf_span(&m->path) : SPAN("/x");
    m->r.query = dynbuf_span(&m->query);
    m->r.has_query = m->query.n > 0;
    field(m, SPAN("Accept"), SPAN("*/*"));
    if (m->type.n)
        field(m, SPAN("Content-Type"), dynbuf_span(&m->type));
    if (m->by_target)
        field(m, SPAN("X-Amz-Target"), m->target);
}

struct keys {
    struct digest digest, join;
};

static struct keys keys_of(const struct made *m, struct span body)
{
    struct keys k;
    struct digest_input in = {.session = SPAN("ses"), .request = &m->r, .body = body, .rule = SPAN("w")};
    request_digest(&in, &k.digest);
    request_join_key(&in, &k.join);
    return k;
}

static bool same(const struct digest *a, const struct digest *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* ---- the kinds: what it does from does, what varies from run ---- */

static void uuid(struct dynbuf *b)
{
    for (int i = 0; i < PATH_UUID; i++)
        dynbuf_addf(b, i == 8 || i == 13 || i == 18 || i == 23 ? "-" : "%x", below(16));
}

static void boundary(struct dynbuf *b, unsigned style)
{
    static const char *const begin[] = {
        "------------------------", "", "----formdata-undici-0", "===============", "----WebKitFormBoundary", "a b:"};
    dynbuf_addf(b, "%s", begin[style]);
    for (int i = 0; i < 16; i++)
        dynbuf_addf(b, "%x", below(16));
    dynbuf_addf(b, "%s", style == 3 ? "==" : "");
}

static void a_multipart(struct made *m, uint64_t does, uint64_t run)
{
    static const struct span bits[] = {
        SPAN(""),   SPAN("x"),     SPAN("\r\n"),         SPAN("--"), SPAN("\r\n--"),  SPAN("a"),
        SPAN("\n"), SPAN("--a--"), SPAN("a\r\n\r\nb=c"), SPAN("\0"), SPAN("; name=x")};
    struct dynbuf b;
    dynbuf_init(&b, 128);
    seed(run);
    boundary(&b, (unsigned)(does % 6));
    seed(does);
    bool quoted = does % 6 == 3 || does % 6 == 5;
    static const char *const types[] = {"multipart/form-data", "multipart/mixed", "multipart/related; type=a/b"};
    const char *type = types[below(3)];
    dynbuf_addf(&m->type, quoted ? "%s; boundary=\"%.*s\"" : "%s; boundary=%.*s", type, SPAN_FMT(dynbuf_span(&b)));
    dynbuf_addf(&m->does, "%s", type);
    for (unsigned n = below(4); n > 0; n--) {
        size_t from = m->body.n;
        dynbuf_addf(&m->body, "--%.*s\r\n", SPAN_FMT(dynbuf_span(&b)));
        from = m->body.n;
        dynbuf_addf(&m->body, "Content-Disposition: form-data; name=\"%c\"\r\n", 'a' + (int)below(2));
        dynbuf_addf(&m->body, "%s\r\n", below(2) ? "Content-Type: a/b\r\n" : "");
        for (unsigned k = below(3); k > 0; k--)
            dynbuf_add(&m->body, bits[below(sizeof(bits) / sizeof(bits[0]))]);
        dynbuf_addf(&m->does, "|%zu:", m->body.n - from);
        dynbuf_add(&m->does, span_of(m->body.p + from, m->body.n - from));
        dynbuf_addf(&m->body, "\r\n");
    }
    bool ends = below(2);
    dynbuf_addf(&m->body, "--%.*s--%s", SPAN_FMT(dynbuf_span(&b)), ends ? "\r\n" : "");
    dynbuf_addf(&m->does, "|%d", ends);
    dynbuf_free(&b);
}

static void an_oci_upload(struct made *m, uint64_t does, uint64_t run)
{
    static const char *const names[] = {"a", "a/b", "a/blobs/uploads", "b"};
    struct dynbuf state;
    seed(does);
    bool put = below(2);
    const char *name = names[below(4)];
    unsigned digest = below(3), body = below(3);
    m->r.method = put ? SPAN("PUT") : SPAN("PATCH");
    dynbuf_addf(&m->type, "application/octet-stream");
    dynbuf_addf(&m->body, "%.*s", (int)body, "xy");
    dynbuf_addf(&m->path, "/v2/%s/blobs/uploads/", name);
    dynbuf_addf(&m->does, "%d %s %u %u", put, name, digest, body);
    dynbuf_init(&state, 64);
    seed(run);
    uuid(&m->path);
    bool first = below(2), any = below(3);
    for (int i = 0; any && i < 16; i++)
        dynbuf_addf(&state, "%x", below(16));
    if (any && first)
        dynbuf_addf(&m->query, "_state=%.*s%s", SPAN_FMT(dynbuf_span(&state)), digest ? "&" : "");
    if (digest)
        dynbuf_addf(&m->query, "digest=sha256:%u", digest);
    if (any && !first)
        dynbuf_addf(&m->query, "%s_state=%.*s", digest ? "&" : "", SPAN_FMT(dynbuf_span(&state)));
    dynbuf_free(&state);
}

static void an_aws_form(struct made *m, uint64_t does, uint64_t run)
{
    static const char *const rest[] = {"", "&Name=a", "&Name=b", "&Name=a&Name=b", "&Tag.1=ClientToken%3Dx"};
    seed(does);
    unsigned action = below(3), other = below(5), last = below(5);
    dynbuf_addf(&m->type, "application/x-www-form-urlencoded; charset=utf-8");
    dynbuf_addf(&m->does, "%u%s|%s", action, rest[other], rest[last]);
    dynbuf_addf(&m->body, "Action=Run%u&Version=2016-11-15%s&ClientToken=", action, rest[other]);
    seed(run);
    uuid(&m->body);
    dynbuf_addf(&m->body, "%s", rest[last]);
}

static void aws_json(struct made *m, uint64_t does, uint64_t run)
{
    static const char *const values[] = {"1",     "1.0",  "\"1\"",           "[1]",     "[[1]]",  "{\"b\":1}", "null",
                                         "[1,2]", "true", "\"ClientToken\"", "[[1],2]", "[[1,2]]"};
    static const char *const tokens[] = {"ClientToken", "clientToken", "ClientRequestToken"};
    seed(does);
    unsigned token = below(3), a = below(12), b = below(12);
    m->by_target = true;
    m->target = token == 2 ? SPAN("DynamoDB_20120810.TransactWriteItems") : SPAN("Service_1.Make");
    dynbuf_addf(&m->type, "application/x-amz-json-1.%u", token & 1);
    dynbuf_addf(&m->does, "%u %s %s", token, values[a], values[b]);
    dynbuf_addf(&m->body, "{\"A\":%s,\"%s\":\"", values[a], tokens[token]);
    seed(run);
    uuid(&m->body);
    dynbuf_addf(&m->body, "\",%s\"B\":%s}", below(2) ? " " : "", values[b]);
}

static void json_rpc(struct made *m, uint64_t does, uint64_t run)
{
    static const char *const values[] = {"1", "\"1\"", "{\"id\":1}", "{\"_meta\":{\"a\":1}}", "{}", "[]", "null"};
    seed(does);
    bool text = below(2), token = below(2), first = below(2);
    unsigned method = below(3), value = below(7), traced = below(3);
    dynbuf_addf(&m->type, "application/json");
    dynbuf_addf(&m->does, "%d %d %d %u %s %u", text, token, first, method, values[value], traced);
    seed(run);
    unsigned id = 100 + below(900);
    const char *quote = text ? "\"" : "";
    dynbuf_addf(&m->body, "{\"jsonrpc\":\"2.0\",");
    if (first)
        dynbuf_addf(&m->body, "\"id\":%s%u%s,", quote, id, quote);
    dynbuf_addf(&m->body, "\"method\":\"m%u\",%s\"params\":{\"v\":%s", method, below(2) ? " " : "", values[value]);
    if (token || traced)
        dynbuf_addf(&m->body, ",\"_meta\":{");
    if (token)
        dynbuf_addf(&m->body, "\"progressToken\":%u%s", 100 + below(900), traced ? "," : "");
    if (traced)
        dynbuf_addf(&m->body, "\"traceparent\":\"00-%032x-%016x-01\"", below(1 << 30), below(1 << 30));
    if (traced > 1)
        dynbuf_addf(&m->body, ",\"tracestate\":\"a=%u\",\"baggage\":\"b=%u\"", below(1 << 30), below(1 << 30));
    if (token || traced)
        dynbuf_addf(&m->body, "}");
    dynbuf_addf(&m->body, "}");
    if (!first)
        dynbuf_addf(&m->body, ",\"id\":%s%u%s", quote, id, quote);
    dynbuf_addf(&m->body, "}");
}

static void (*const kinds[])(struct made *m, uint64_t does, uint64_t run) = {a_multipart, an_oci_upload, an_aws_form,
                                                                             aws_json, json_rpc};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void make(struct made *m, size_t kind, uint64_t does, uint64_t run)
{
    open_made(m);
    kinds[kind](m, does, run);
    finish(m);
}

static void two_runs_join_and_two_effects_never(void **state)
{
    static struct made one[EFFECTS];
    static struct keys keys[EFFECTS];
    for (size_t kind = 0; kind < KINDS; kind++) {
        size_t different = 0;
        for (size_t i = 0; i < EFFECTS; i++) {
            struct made again;
            struct retry t;
            make(&one[i], kind, i, 1000 + i);
            make(&again, kind, i, 2000 + i);
            retry_of(&again.r, dynbuf_span(&again.body), &t);
            assert_int_not_equal(t.row, 0);
            keys[i] = keys_of(&one[i], dynbuf_span(&one[i].body));
            struct keys second = keys_of(&again, dynbuf_span(&again.body));
            assert_true(same(&keys[i].join, &second.join));
            assert_false(same(&keys[i].digest, &second.digest));
            close_made(&again);
        }
        for (size_t i = 0; i < EFFECTS; i++)
            for (size_t k = 0; k < i; k++) {
                bool does = span_eq(dynbuf_span(&one[i].does), dynbuf_span(&one[k].does));
                if (same(&keys[i].join, &keys[k].join) != does)
                    fail_msg("kind %zu: `%.*s` and `%.*s`", kind, SPAN_FMT(dynbuf_span(&one[i].does)),
                             SPAN_FMT(dynbuf_span(&one[k].does)));
                different += !does;
            }
        assert_true(different > EFFECTS);
        for (size_t i = 0; i < EFFECTS; i++)
            close_made(&one[i]);
    }
    printf("ok E2 unit\n");
}

static bool in_number(struct span s, size_t i)
{
    return i < s.n && s.p[i] >= '0' && s.p[i] <= '9';
}

/* In what says of which trace it is. */
static bool is_traced(struct span body, size_t i)
{
    static const struct span name[] = {SPAN("\"traceparent\":\""), SPAN("\"tracestate\":\""), SPAN("\"baggage\":\"")};
    bool in = false;
    for (size_t k = 0; k < sizeof(name) / sizeof(name[0]); k++) {
        size_t from = span_find(body, name[k]) + name[k].n;
        in |= i >= from && i < from + span_index(span_from(body, from), '"');
    }
    return in;
}

/* A ClientToken; an id, which is a number of three digits. */
static bool is_left_out(size_t kind, struct span body, size_t i)
{
    struct span token = kind == 2 ? SPAN("oken=") : SPAN("oken\":\"");
    size_t from = span_find(body, token) + token.n;
    if (kind == 2 || kind == 3)
        return i >= from && i < from + PATH_UUID;
    if (kind == 4 && is_traced(body, i))
        return true;
    while (kind == 4 && i > 0 && in_number(body, i) && in_number(body, i - 1))
        i--;
    return kind == 4 && in_number(body, i) && in_number(body, i + 1) && in_number(body, i + 2);
}

/* Each byte of a body but those that are left out. */
static void a_byte_makes_another_request(void **state)
{
    for (size_t kind = 0; kind < KINDS; kind++)
        for (uint64_t does = 0; does < 40; does++) {
            struct made m;
            make(&m, kind, does, 7);
            struct keys first = keys_of(&m, dynbuf_span(&m.body));
            for (size_t i = 0; i < m.body.n; i++) {
                if (is_left_out(kind, dynbuf_span(&m.body), i))
                    continue;
                m.body.p[i] ^= 1;
                struct keys other = keys_of(&m, dynbuf_span(&m.body));
                if (same(&first.join, &other.join))
                    fail_msg("kind %zu, effect %u: byte %zu does not count", kind, (unsigned)does, i);
                m.body.p[i] ^= 1;
            }
            close_made(&m);
        }
}

struct near_one {
    const char *method, *path, *query, *type, *target, *body;
};

static uint32_t row_of(const struct near_one *n, const char *second_type)
{
    struct wire_request r = {.method = span_str(n->method),
                             .path = span_str(n->path),
                             .query = span_str(n->query ? n->query : ""),
                             .has_query = n->query != NULL};
    struct retry t;
    if (n->type)
        r.field[r.nfields++] = (struct http_field){SPAN("content-type"), span_str(n->type)};
    if (second_type)
        r.field[r.nfields++] = (struct http_field){SPAN("content-type"), span_str(second_type)};
    if (n->target)
        r.field[r.nfields++] = (struct http_field){SPAN("x-amz-target"), span_str(n->target)};
    retry_of(&r, span_str(n->body), &t);
    return t.row;
}

#define MP(type, body)                                                                                               \
    {                                                                                                                \
        "POST", "/", NULL, type, NULL, body                                                                          \
    }
#define UP(method, path, query)                                                                                      \
    {                                                                                                                \
        method, path, query, NULL, NULL, "x"                                                                         \
    }
#define ID "01234567-89ab-cdef-0123-456789abcdef"
#define FORM(method, body)                                                                                           \
    {                                                                                                                \
        method, "/", NULL, "application/x-www-form-urlencoded", NULL, body                                           \
    }
#define CALL(method, body)                                                                                           \
    {                                                                                                                \
        method, "/", NULL, "application/json", NULL, body                                                            \
    }
#define TARGET(type, target, body)                                                                                   \
    {                                                                                                                \
        "POST", "/", NULL, type, target, body                                                                        \
    }

/* What one reader may cut in another place, or is only nearly of a kind, counts as it is. */
static const struct near_one near[] = {
    MP("multipart/form-data; boundary=b1", "--b1\n\nx\n--b1--\n"),
    MP("multipart/form-data; boundary=b1", "before\r\n--b1\r\n\r\nx\r\n--b1--\r\n"),
    MP("multipart/form-data; boundary=b1", "--b1 \r\n\r\nx\r\n--b1--\r\n"),
    MP("multipart/form-data; boundary=b1", "--b1\r\n\r\nx\r\n--b1--\r\nbehind"),
    MP("multipart/form-data; boundary=b1", "--b1\r\n\r\nx\r\n--b1"),
    MP("multipart/form-data; boundary=b1", "--b1\r\n\r\nx\r\n--b12\r\n\r\n--b1--\r\n"),
    MP("multipart/form-data; boundary=b1", "--b1\r\n\r\nx\n--b1\r\n\r\ny\r\n--b1--\r\n"),
    MP("multipart/form-data; boundary=b1", "--b1\r\n\r\nb1\r\n--b1--\r\n"),
    MP("multipart/form-data; boundary=b1", "--b1\r\n--b1--\r\n"),
    MP("multipart/form-data; boundary=b2; boundary=b1", "--b1\r\n\r\nx\r\n--b1--\r\n"),
    MP("multipart/form-data; boundary*=b1", "--b1\r\n\r\nx\r\n--b1--\r\n"),
    MP("multipart/form-data; boundary*0=b1; boundary=b1", "--b1\r\n\r\nx\r\n--b1--\r\n"),
    MP("multipart/form-data; name=\"a; boundary=b2\"; boundary=b1", "--b1\r\n\r\nx\r\n--b1--\r\n"),
    MP("multipart/form-data; boundary=b1,b2", "--b1,b3\r\n\r\nx\r\n--b1,b3--\r\n"),
    MP("multipart/form-data; boundary=\"b\\1\"", "--b\\1\r\n\r\nx\r\n--b\\1--\r\n"),
    MP("multipart/form-data; boundary=", "--\r\n\r\nx\r\n----\r\n"),
    MP("multipart/form-data", "--b1\r\n\r\nx\r\n--b1--\r\n"),
    MP("text/plain; boundary=b1", "--b1\r\n\r\nx\r\n--b1--\r\n"),
    MP(NULL, "--b1\r\n\r\nx\r\n--b1--\r\n"),
    UP("DELETE", "/v2/a/blobs/uploads/" ID, NULL),
    UP("POST", "/v2/a/blobs/uploads/" ID, NULL),
    UP("PUT", "/v2/blobs/uploads/" ID, NULL),
    UP("PUT", "/v2/a/manifests/" ID, NULL),
    UP("PUT", "/v1/a/blobs/uploads/" ID, NULL),
    UP("PUT", "/v2/a/blobs/uploads/" ID "0", NULL),
    UP("PUT", "/v2/a/blobs/uploads/17", NULL),
    UP("PUT", "/v2/a/blobs/uploads/0123456g-89ab-cdef-0123-456789abcdef", NULL),
    UP("PUT", "/v2/a/blobs/uploads/" ID, "digest=sha256:1&digest=sha256:2"),
    UP("PUT", "/v2/a/blobs/uploads/" ID, "_state=1&_state=2"),
    UP("PUT", "/v2/a/blobs/uploads/" ID, "mount=x"),
    UP("PUT", "/v2/a/blobs/uploads/" ID, ""),
    FORM("POST", "Action=a&Version=1"),
    FORM("POST", "Action=a&ClientToken=t"),
    FORM("POST", "Action=a&Version=1&ClientToken=t&ClientToken=t"),
    FORM("POST", "Action=a&Action=b&Version=1&ClientToken=t"),
    FORM("POST", "Action=a&Version=1&Client%54oken=t"),
    FORM("PUT", "Action=a&Version=1&ClientToken=t"),
    TARGET("application/x-amz-json-1.1", NULL, "{\"ClientToken\":\"a\"}"),
    TARGET("application/json", "S.Make", "{\"ClientToken\":\"a\"}"),
    TARGET("application/x-amz-json-1.1", "S.Make", "{\"ClientToken\":\"a\"} x"),
    TARGET("application/x-amz-json-1.1", "S.Make", "{\"ClientToken\":\"a\",\"ClientToken\":\"b\"}"),
    TARGET("application/x-amz-json-1.1", "S.Make", "{\"ClientToken\":{\"a\":1}}"),
    TARGET("application/x-amz-json-1.1", "S.Make", "{\"a\":{\"ClientToken\":\"b\"}}"),
    TARGET("application/x-amz-json-1.1", "S.Make", "[{\"ClientToken\":\"b\"}]"),
    CALL("POST", "{\"id\":1,\"method\":\"m\"}"),
    CALL("POST", "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\"}"),
    CALL("POST", "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}"), /* a notification */
    CALL("POST", "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}"),
    CALL("POST", "{\"jsonrpc\":\"2.0\",\"id\":1}"),
    CALL("POST", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}"), /* an answer to the server */
    CALL("POST", "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"m\"}"),
    CALL("POST", "{\"jsonrpc\":\"2.0\",\"id\":-1,\"method\":\"m\"}"),
    CALL("POST", "{\"jsonrpc\":\"2.0\",\"id\":1234567890123456,\"method\":\"m\"}"),
    CALL("POST", "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"m\"}"),
    CALL("POST", "{\"jsonrpc\":\"2.0\",\"id\":\"a b\",\"method\":\"m\"}"),
    CALL("POST", "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"\",\"method\":\"m\"}"),
    CALL("POST", "{\"jsonrpc\":\"2.0\",\"id\":"
                 "\"0123456789012345678901234567890123456789012345678901234567890123\",\"method\":\"m\"}"),
    CALL("POST", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}]"),
    CALL("PUT", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}"),
    TARGET("application/x-amz-json-1.1", "secretsmanager.PutSecretValue", "{\"ClientRequestToken\":\"a\"}"),
};
static const struct near_one is[] = {
    MP("multipart/form-data; boundary=b1", "--b1\r\n\r\nx\r\n--b1--\r\n"),
    UP("PUT", "/v2/a/blobs/uploads/" ID, NULL),
    FORM("POST", "Action=a&Version=1&ClientToken=t"),
    TARGET("application/x-amz-json-1.1", "S.Make", "{\"ClientToken\":\"a\"}"),
    CALL("POST", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}"),
};

static void what_is_only_nearly_so_counts_as_it_is(void **state)
{
    for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++)
        if (row_of(&near[i], NULL) != 0)
            fail_msg("row %zu is taken for one that varies", i);
    for (size_t i = 0; i < sizeof(is) / sizeof(is[0]); i++) {
        assert_int_equal(row_of(&is[i], NULL), i + 1);
        if (is[i].type)
            assert_int_equal(row_of(&is[i], is[i].type), 0); /* said twice, nobody knows which is meant */
    }
}

/* A call of an MCP server's tool that says of which trace it is, as large as one that does, of nothing but this. */
static void call_of(struct dynbuf *b, const char *values, const char *trace)
{
    struct span one = span_str(values);
    dynbuf_init(b, RETRY_JSON_MAX);
    (void)dynbuf_addf(
        b,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"_meta\":{\"traceparent\":"
        "\"%s\"},\"name\":\"t\",\"arguments\":{\"a\":[",
        trace);
    for (size_t n = sizeof("{'a':[]}") - 1; n + one.n <= MCP_TRACED_MAX; n += one.n)
        (void)dynbuf_add(b, one);
    b->n--; /* the last comma */
    (void)dynbuf_add(b, SPAN("]}}}"));
    assert_true(dynbuf_ok(b));
}

/* Another worker that sends such a call once more has no second ticket, however dense it is. */
static void a_call_of_another_trace_joins(void **state)
{
    static const char *const values[] = {"1,", "[],", "{},", "\"\",", "\"a\",", "{\"\":1},"};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct made m;
        struct dynbuf first, then;
        open_made(&m);
        (void)dynbuf_add(&m.type, SPAN("application/json"));
        finish(&m);
        call_of(&first, values[i], "00-a");
        call_of(&then, values[i], "00-b");
        struct keys a = keys_of(&m, dynbuf_span(&first)), b = keys_of(&m, dynbuf_span(&then));
        if (same(&a.digest, &b.digest) || !same(&a.join, &b.join))
            fail_msg("%s", values[i]);
        dynbuf_free(&first);
        dynbuf_free(&then);
        close_made(&m);
    }
}

/* A part that reads like a parameter, and one that reads like two. */
static void parts_cannot_be_cut_anew(void **state)
{
    static const struct near_one a[] = {
        MP("multipart/x; p; boundary=b1", "--b1\r\nx\r\n--b1--"),
        MP("multipart/x; p=1; boundary=b1", "--b1\r\nx\r\n--b1--"),
        MP("multipart/x; boundary=b1", "--b1\r\np=1\r\n--b1\r\nx\r\n--b1--"),
        MP("multipart/x; boundary=b1", "--b1\r\np=1\r\n\r\nx\r\n--b1--"),
        MP("multipart/x; boundary=b1", "--b1\r\np=1x\r\n--b1--"),
        MP("multipart/x; boundary=b1", "--b1\r\n\r\n--b1\r\np=1x\r\n--b1--"),
        MP("multipart/x; boundary=b1", "--b1\r\np=1x\r\n--b1\r\n\r\n--b1--"),
        MP("multipart/x; boundary=b1", "--b1\r\np=1x\r\n--b1--\r\n"),
    };
    enum { N = sizeof(a) / sizeof(a[0]) };
    struct digest join[N];
    for (size_t i = 0; i < N; i++) {
        struct wire_request r = {.method = SPAN("POST"), .path = SPAN("/"), .nfields = 1};
        r.field[0] = (struct http_field){SPAN("Content-Type"), span_str(a[i].type)};
        struct digest_input in = {.request = &r, .body = span_str(a[i].body)};
        request_join_key(&in, &join[i]);
        for (size_t k = 0; k < i; k++)
            assert_false(same(&join[i], &join[k]));
    }
}

/* Fields that a client makes anew each time: they count for what is approved, and not for what a retry joins. */
static void fields_that_vary_count_for_the_digest(void **state)
{
    static const char *const names[] = {"X-Tc-Timestamp",           "Kubectl-Session",
                                        "X-Goog-Api-Client",        "X-Ms-Date",
                                        "X-Ms-Client-Request-Id",   "X-Goog-Gcs-Idempotency-Token",
                                        "Repeatability-Request-Id", "Idempotency-Key"};
    static const char *const others[] = {"Kubectl-Command", "Mcp-Session-Id", "Content-Range",
                                         "If-Match",        "X-Ms-Version",   "X-Goog-If-Generation-Match"};
    struct made m;
    make(&m, 2, 1, 1);
    for (int count = 0; count < 2; count++)
        for (size_t i = 0; i < (count ? sizeof(others) / sizeof(others[0]) : sizeof(names) / sizeof(names[0])); i++) {
            m.r.field[m.r.nfields++] = (struct http_field){span_str(count ? others[i] : names[i]), SPAN("1")};
            struct keys a = keys_of(&m, dynbuf_span(&m.body));
            m.r.field[m.r.nfields - 1].value = SPAN("2");
            struct keys b = keys_of(&m, dynbuf_span(&m.body));
            assert_false(same(&a.digest, &b.digest));
            assert_int_equal(same(&a.join, &b.join), !count);
            m.r.nfields--;
        }
    close_made(&m);
}

#define AWS(id, day, place, names, byte)                                                                             \
    "AWS4-HMAC-SHA256 Credential=" id "/" day "/" place "/aws4_request, SignedHeaders=" names ", Signature=" SIG(byte)
#define SIG(byte) byte byte byte byte byte byte byte byte
#define TC3(id, day, byte)                                                                                           \
    "TC3-HMAC-SHA256 Credential=" id "/" day "/cvm/tc3_request, SignedHeaders=content-type;host, Signature=" SIG(byte)
#define A "0a1b2c3d"
#define B "0a1b2c3e"

/* Who signs with a key of its own does so anew for each try. */
static void a_retry_signed_anew_joins(void **state)
{
    static const struct {
        const char *first, *then;
        bool joins;
    } rows[] = {
        {AWS("AKIA", "20261123", "eu-1/s3", "host;x-amz-date", A),
         AWS("AKIA", "20261124", "eu-1/s3", "host;x-amz-date", B), true},
        {TC3("AKID", "2026-11-23", A), TC3("AKID", "2026-11-24", B), true},
        {AWS("AKIA", "20261123", "eu-1/s3", "host", A), AWS("AKIB", "20261123", "eu-1/s3", "host", A), false},
        {AWS("AKIA", "20261123", "eu-1/s3", "host", A), AWS("AKIA", "20261123", "us-1/s3", "host", A), false},
        {AWS("AKIA", "20261123", "eu-1/s3", "host", A), AWS("AKIA", "20261123", "eu-1/sts", "host", A), false},
        {AWS("AKIA", "20261123", "eu-1/s3", "host", A), AWS("AKIA", "20261123", "eu-1/s3", "host;range", A), false},
        {AWS("AKIA", "20261123", "eu-1/s3", "host", A), "(signed)", false},
        /* what is not exactly of this form counts as it is */
        {AWS("AKIA", "20261123", "eu-1/s3", "host", A), AWS("AKIA", "20261123", "eu-1/s3", "host", "0A1B2C3D"),
         false},
        {AWS("AKIA", "20261123", "eu-1/s3", "host", A) ",x", AWS("AKIA", "20261123", "eu-1/s3", "host", B) ",x",
         false},
        {"AWS AKIA:" A, "AWS AKIA:" B, false},
        {"Bearer " A, "Bearer " B, false},
    };
    static const char *const names[] = {"Authorization", "X-Authorization"};
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        struct made m;
        make(&m, 2, 1, 1);
        struct http_field *f = &m.r.field[m.r.nfields++];
        *f = (struct http_field){span_str(names[i % 2]), span_str(rows[i / 2].first)};
        struct keys a = keys_of(&m, dynbuf_span(&m.body));
        f->value = span_str(rows[i / 2].then);
        struct keys b = keys_of(&m, dynbuf_span(&m.body));
        assert_false(same(&a.digest, &b.digest));
        if (same(&a.join, &b.join) != (rows[i / 2].joins && i % 2 == 0))
            fail_msg("%s: %s", names[i % 2], rows[i / 2].then);
        close_made(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_runs_join_and_two_effects_never),    cmocka_unit_test(a_byte_makes_another_request),
        cmocka_unit_test(what_is_only_nearly_so_counts_as_it_is), cmocka_unit_test(parts_cannot_be_cut_anew),
        cmocka_unit_test(fields_that_vary_count_for_the_digest),  cmocka_unit_test(a_retry_signed_anew_joins),
        cmocka_unit_test(a_call_of_another_trace_joins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
