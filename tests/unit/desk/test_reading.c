/* What is found in a held request that is apt to deceive, and what is not found in honest ones. Covers E16, E17, E18,
 * E19, E20 as far as it is taken apart; whole requests: tests/deceptive/. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <zlib.h>

#include "common/dynbuf.h"
#include "web-approval/reading/reading.h"

static struct arena arena;
static struct asked asked;
static struct reading reading;

static int setup(void **state)
{
    arena_init(&arena, READING_ARENA);
    return 0;
}

static int teardown(void **state)
{
    arena_free(&arena);
    return 0;
}

/* fields: JSON; NULL: none. */
static void made(const char *method, const char *path, const char *fields, struct span body)
{
    arena_free(&arena);
    asked =
        (struct asked){.method = span_str(method), .host = SPAN("h.example"), .effect = SPAN("write"), .body = body};
    if (!span_cut(span_str(path), '?', &asked.path, &asked.query))
        asked.query = SPAN_NONE;
    asked.fields = fields ? json_parse(span_str(fields), &arena) : NULL;
    assert_true(!fields || asked.fields);
    reading_make(&asked, &arena, &reading);
}

static const struct flag *flagged(const char *words)
{
    for (size_t i = 0; i < reading.nflags; i++)
        if (strstr(reading.flag[i].words, words))
            return &reading.flag[i];
    return NULL;
}

#define JSON_TYPE  "[[\"Content-Type\",\"application/json\"]]"
#define FORM_TYPE  "[[\"content-type\",\"application/x-www-form-urlencoded; charset=utf-8\"]]"
#define FILES_TYPE "[[\"Content-Type\",\"multipart/form-data; boundary=b\"]]"
#define PARTS_TYPE "[[\"Content-Type\",\"multipart/form-data; boundary=Q7\"]]"
#define PART(says) SPAN("--Q7\r\nContent-Disposition: form-data; " says "\r\n\r\n1\r\n--Q7--")
#define PNG        "\x89PNG\r\n\x1a\n"

static const struct {
    const char *path, *fields;
    struct span body;
    const char *words, *name, *value;
    bool blocks;
} deceptive[] = {
    {"/a", JSON_TYPE, SPAN("{\"a\":{\"b\":1,\"b\":2}}"), "more than once", "/a/b", "", false},
    {"/a?x=1&y=2&x=3", NULL, SPAN(""), "more than once", "x", "3", false},
    {"/a", FORM_TYPE, SPAN("x=1&%78=2"), "more than once", "x", "2", false},
    {"/a", FORM_TYPE, SPAN("n=a%E2%80%AEb"), "turn the direction", "n",
     "a\xe2\x80\xae"
     "b",
     false},
    {"/a%E2%80%8Bb", NULL, SPAN(""), "do not show", "path",
     "a\xe2\x80\x8b"
     "b",
     false},
    {"/a", JSON_TYPE, SPAN("{\"p\xd0\xb0y\":1}"), "several scripts", "/p\xd0\xb0y", "p\xd0\xb0y", false},
    {"/a%2Fb", NULL, SPAN(""), "encoded slash", "", "/a%2Fb", false},
    {"/a%5cb", NULL, SPAN(""), "encoded slash", "", "/a%5cb", false},
    {"/a%252fb", NULL, SPAN(""), "encoded twice", "", "/a%252fb", false},
    {"/v1/removeMember", NULL, SPAN(""), "asks to delete", "path", "/v1/removeMember", false},
    {"/users/7/delete", NULL, SPAN(""), "asks to delete", "path", "/users/7/delete", false},
    {"/a?_method=DELETE", NULL, SPAN(""), "asks to delete", "_method", "DELETE", false},
    {"/a", "[[\"X-HTTP-Method-Override\",\"DELETE\"]]", SPAN(""), "another method", "X-HTTP-Method-Override",
     "DELETE", false},
    {"/a?u=https://a.example%40b.example/x", NULL, SPAN(""), "before its host", "u", "b.example", false},
    {"/a?u=https://a.example%5C%40b.example", NULL, SPAN(""), "before its host", "u", "b.example", false},
    {"/a", JSON_TYPE, SPAN("[\"http://xn--pypal-4ve.example\"]"), "A URL to a host", "/0",
     "xn--pypal-4ve.example, spelled p\\u{430}ypal.example", false},
    {"/a", JSON_TYPE, SPAN("{\"n\":-1.25e-2}"), "exponent", "/n", "-0.0125", false},
    {"/a", JSON_TYPE, SPAN("{\"n\":1E+9}"), "exponent", "/n", "1000000000", false},
    {"/a", JSON_TYPE, SPAN("{\"n\":1e999999999999999999999}"), "exponent", "/n", "longer than anybody counts", false},
    {"/a", JSON_TYPE, SPAN("{\"n\":9007199254740993}"), "more digits", "/n", "9007199254740993", false},
    {"/a", JSON_TYPE, SPAN("{\"amount\":\"1.000\"}"), "unusual spelling", "/amount", "1.000", false},
    {"/a", FORM_TYPE, SPAN("total=1e3"), "unusual spelling", "total", "1e3", false},
    {"/a", FORM_TYPE, SPAN("currency=jpy"), "without smaller units", "currency", "jpy", false},
    {"/a", FORM_TYPE, SPAN("currency=kwd"), "thousandths", "currency", "kwd", false},
    {"/a", JSON_TYPE, SPAN("{\"x\":{\"unit\":\"million\"}}"), "unusual unit", "/x/unit", "million", false},
    {"/a", JSON_TYPE, SPAN("{\"k\":\"ZGVsZXRlIGV2ZXJ5dGhpbmc\"}"), "Base64 inside", "/k", "delete everything", false},
    {"/a", JSON_TYPE, SPAN("{\"k\":\"data:text/plain;base64,ZGVsZXRlIGV2ZXJ5dGhpbmc=\"}"), "Base64 inside", "/k",
     "delete everything", false},
    {"/a", JSON_TYPE, SPAN("{\"k\":\"H4sIAAAAAAACA0tJzUktSVVILUvMKU0sycxLBwCVGuFZEQAAAA==\"}"), "bytes of", "/k",
     "gzip", false},
    {"/a", JSON_TYPE, SPAN("{\"operations\":[{\"a\":1},{\"a\":2},{\"a\":3}]}"), "Several operations", "/operations",
     "3", false},
    {"/a", JSON_TYPE, SPAN("{\"query\":\" query Q { a(x: {y: 1}) { z } b: c }\"}"), "Several operations", "/query",
     "2", false},
    {"/a", JSON_TYPE,
     SPAN("{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":\"x\"}}}}}}}}}}}}"),
     "deep", "/a/a/a/a/a/a/a/a/a/a/a/a", "x", false},
    {"/a", JSON_TYPE, SPAN("a=1"), "not what its content type", "application/json", "some other text", true},
    {"/a", JSON_TYPE, SPAN("{\"a\":\"\xff\"}"), "not what its content type", "application/json", NULL, true},
    {"/a", JSON_TYPE, SPAN(PNG), "not what its content type", "application/json", "a picture (PNG)", true},
    {"/a", FORM_TYPE, SPAN("a=\0\1\2\3"), "not what its content type", NULL, NULL, true},
    {"/a", FORM_TYPE, SPAN("{\"a\":1}"), "does not say so", NULL, NULL, false},
    {"/a", "[[\"Content-Type\",\"image/png\"]]", SPAN("#!/bin/sh\n"), "not what its content type", "image/png",
     "a script", true},
    {"/a", "[[\"Content-Type\",\"text/plain\"]]", SPAN("PK\3\4\0\0\0\0\0\0\0\0\0"), "not what its content type", NULL,
     "a zip archive", true},
    {"/a", "[[\"Content-Type\",\"text/html; charset=UTF-7\"]]", SPAN("+ADw-b+AD4-"), "another charset",
     "Content-Type", "UTF-7", false},
    {"/a", "[[\"content-type\",\"text/plain\"],[\"Content-Type\",\"application/json\"]]", SPAN("{}"),
     "stands more than once", "content-type", "text/plain", true},
    {"/a", "[[\"Content-Encoding\",\"br\"]]", SPAN("xx"), "not opened here", NULL, "br", true},
    {"/a", "[[\"Content-Encoding\",\"gzip, gzip\"]]", SPAN("xx"), "not opened here", NULL, "gzip, gzip", true},
    {"/a", "[[\"Content-Encoding\",\"gzip\"]]", SPAN("xx"), "cannot be opened", NULL, "gzip", true},
    {"/a", FILES_TYPE, SPAN("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b\r\n"),
     "cannot be taken apart", NULL, NULL, true},
    {"/a", FILES_TYPE,
     SPAN("--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"x.png\"\r\nContent-Type: "
          "image/png\r\n\r\n<svg>\r\n--b--"),
     "a picture", "a", NULL, true},
    {"/a", FILES_TYPE, SPAN("--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"../x\"\r\n\r\n1\r\n--b--"),
     "another folder", "a", "../x", false},
    {"/a", FILES_TYPE,
     SPAN(
         "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"x;y\"; filename*=utf-8''z\r\n\r\n1\r\n--b--"),
     "two names", "x;y", "utf-8''z", false},
    {"/a", FILES_TYPE,
     SPAN("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; "
          "name=a\r\n\r\n2\r\n--b--"),
     "more than once", "a", "2", false},
    /* Whatever its type says, a text is looked at. */
    {"/a", "[[\"Content-Type\",\"application/x-ndjson\"]]", SPAN("{\"a\":\"\xe2\x80\xae\"}\n{}\n"),
     "turn the direction", "body", NULL, false},
    {"/a", "[[\"Content-Type\",\"application/graphql\"]]", SPAN("mutation { drop(all: true) { id } }"),
     "reads as GraphQL", "body", NULL, false},
    {"/a", FORM_TYPE, SPAN("{\"a\":\"&role=admin&role=owner&b=\"}"), "goes by its content type", "", NULL, false},
    {"/a", FORM_TYPE, SPAN("{\"a\":\"&role=admin&role=owner&b=\"}"), "more than once", "role", "owner", false},
    {"/a", JSON_TYPE, SPAN("{\"x\":{\"amount\":5,\"b\":1,\"Amount\":900}}"), "capitals alone", "/x/Amount", "amount",
     false},
    {"/a", "[[\"Content-Type\",\"text/plain; charset =utf-16\"]]", SPAN("x"), "another charset", "Content-Type",
     "utf-16", false},
    {"/a", "[[\"Content-Type\",\"text/xml\"]]", SPAN("<?xml version='1.0' encoding = 'UTF-7'?><a>+ADw-</a>"),
     "another charset", "<?xml", "UTF-7", false},
    {"/a", "[[\"Content-Type\",\"application/soap+xml\"]]", SPAN("<!DOCTYPE a [<!ENTITY n '900'>]><a>&n;</a>"),
     "names for other text", "", NULL, false},
    {"/a", JSON_TYPE,
     SPAN("{\"p\":\"\xea\x93\xaa"
          "dmin\"}"),
     "several scripts", "/p", NULL, false}, /* Lisu */
    {"/a", JSON_TYPE,
     SPAN("{\"p\":\"\xe2\xb2\x9f"
          "wner\"}"),
     "several scripts", "/p", NULL, false}, /* Coptic */
    /* What a form's part is called, in two ways or in one that is not plain. */
    {"/a", PARTS_TYPE, PART("name=\"a\"; filename*=UTF-8''gpj.%e2%80%aetxt"), "turn the direction", "a", NULL, false},
    {"/a", PARTS_TYPE, PART("name=\"a\"; filename*=UTF-8''%2fetc%2fpasswd"), "another folder", "a", "/etc/passwd",
     false},
    {"/a", PARTS_TYPE, PART("name=\"a\"; filename=\"x\"; filename*=UTF-8''..%2fx"), "another folder", "a", "../x",
     false},
    {"/a", PARTS_TYPE, PART("name=\"a\"; filename*=utf-7''+AC8-x"), "another charset", "a", "utf-7''+AC8-x", false},
    {"/a", PARTS_TYPE, PART("name=\"a\"; name=\"b\""), "cannot be taken apart", NULL, NULL, true},
    {"/a", PARTS_TYPE, PART("name=\"a\"; name*=utf-8''b"), "cannot be taken apart", NULL, NULL, true},
    {"/a", PARTS_TYPE, PART("name=\"a\"; filename=\"x\"; filename=\"y\""), "cannot be taken apart", NULL, NULL, true},
    {"/a", PARTS_TYPE, PART("name=\"a\"; filename*=utf-8''x; filename*=utf-8''y"), "cannot be taken apart", NULL,
     NULL, true},
    {"/a", PARTS_TYPE, PART("name=\"a\"\r\nContent-Disposition: form-data; name=\"b\""), "cannot be taken apart",
     NULL, NULL, true},
    {"/a", PARTS_TYPE, PART("name=\"a\";\r\n name=\"b\""), "cannot be taken apart", NULL, NULL, true},
    {"/a", PARTS_TYPE, PART("name=\"a\"\n\nfor some this is the content: yes"), "cannot be taken apart", NULL, NULL,
     true},
    {"/a", PARTS_TYPE, PART("name=\"a\"\rX: y"), "cannot be taken apart", NULL, NULL, true},
    {"/a", PARTS_TYPE, PART("name=\"a\"\r\nno field"), "cannot be taken apart", NULL, NULL, true},
    {"/a", PARTS_TYPE, PART("name=\"a\"\r\nContent-Transfer-Encoding: base64"), "cannot be taken apart", NULL, NULL,
     true},
};

static void what_deceives_is_said(void **state)
{
    for (size_t i = 0; i < sizeof deceptive / sizeof deceptive[0]; i++) {
        made("POST", deceptive[i].path, deceptive[i].fields, deceptive[i].body);
        const struct flag *f = flagged(deceptive[i].words);
        if (!f)
            fail_msg("row %zu: no \"%s\"; the first is \"%s\"", i, deceptive[i].words,
                     reading.nflags ? reading.flag[0].words : "");
        if (deceptive[i].name && !span_eq(f->name, span_str(deceptive[i].name)))
            fail_msg("row %zu: it is about %.*s", i, SPAN_FMT(f->name));
        if (deceptive[i].value && !span_eq(f->value, span_str(deceptive[i].value)))
            fail_msg("row %zu: it says %.*s", i, SPAN_FMT(f->value));
        if (f->blocks != deceptive[i].blocks || reading.blocks != deceptive[i].blocks)
            fail_msg("row %zu: blocks: %d", i, reading.blocks);
    }
    print_message("ok E16 unit\nok E18 unit\nok E19 unit\n");
}

/* A page that warns of everything warns of nothing. */
static const struct {
    const char *path, *fields;
    struct span body;
} honest[] = {
    {"/repos/acme/app/pulls", JSON_TYPE,
     SPAN("{\"title\":\"Fix the race in session.c\",\"head\":\"agent/fix-12\",\"base\":\"main\",\"body\":\"Closes "
          "#12.\\n\\n\\tThe lock\\r\\n\",\"draft\":false}")},
    {"/v1/charges?expand[]=a&expand[]=b", FORM_TYPE,
     SPAN("amount=2000&currency=usd&source=tok_visa&metadata%5Border%5D=6735&tag[]=a&tag[]=b")},
    {"/v1/dropbox/removed", JSON_TYPE, SPAN("{\"type\":\"customer.deleted\"}")},
    {"/v1/users/42", JSON_TYPE,
     SPAN("{\"name\":\"J\xc3\xb6rg Stra\xc3\x9f"
          "e\",\"city\":\"\xe6\x9d\xb1\xe4\xba\xac\",\"amount\":12.50,\"price\":\"12.5\",\"id\":"
          "\"9f8e7d6c5b4a39281706f5e4d3c2b1a098765432\"}")},
    {"/v1/x", JSON_TYPE,
     SPAN("{\"token\":\"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln\",\"uuid\":\"123e4567-e89b-12d3-a456-"
          "426614174000\",\"url\":\"https://h.example/a?b=c\",\"mail\":\"a@b.example\"}")},
    {"/acme/app.git/git-receive-pack", "[[\"content-type\",\"application/x-git-receive-pack-request\"]]",
     SPAN("00a80000PACK\0\0\0\2\xff\xfe")},
    {"/acme/app.git/git-receive-pack", "[[\"content-type\",\"application/x-git-receive-pack-request\"]]",
     SPAN("00759f8e refs/heads/old-and-long-enough-to-be-text-but-for-one-byte\0 report-status\n0000")},
    {"/bucket/key", "[[\"content-encoding\",\"aws-chunked\"],[\"content-type\",\"application/octet-stream\"]]",
     SPAN("5;chunk-signature=00\r\nhello\r\n")},
    {"/bucket/a.png", "[[\"content-type\",\"application/octet-stream\"]]", SPAN(PNG)},
    {"/a", FILES_TYPE,
     SPAN("--b\r\nContent-Disposition: form-data; name=\"a\"; "
          "filename=\"notes.txt\"\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; "
          "name=\"c\"\r\n\r\n2\r\n--b--\r\n")},
    {"/a", "[[\"Content-Type\",\"text/plain\"]]", SPAN("Some words of a person, removed and dropped.\n")},
    {"/a", "[[\"Content-Type\",\"text/xml; charset=utf-8\"]]", SPAN("<a><b>1</b></a>")},
    {"/a", "[[\"Content-Type\",\"application/soap+xml\"]]",
     SPAN("<?xml version=\"1.0\" encoding=\"UTF-8\"?><a x=\"&amp;\"/>")},
    {"/a", "[[\"Content-Type\",\"application/sql\"]]", SPAN("INSERT INTO t VALUES (1);\n")},
    {"/a", PARTS_TYPE,
     PART("name=\"a\"; filename=\"x.bin\"\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: "
          "binary")},
    {"/a", FORM_TYPE, SPAN("a={\"b\":1}&c=2")},
    {"/a", JSON_TYPE, SPAN("{\"a\":{\"id\":1},\"A1\":2,\"b\":{\"ID\":1}}")},
};

static void what_is_honest_is_not(void **state)
{
    for (size_t i = 0; i < sizeof honest / sizeof honest[0]; i++) {
        made("POST", honest[i].path, honest[i].fields, honest[i].body);
        if (reading.nflags || reading.blocks)
            fail_msg("row %zu: %s %.*s", i, reading.flag[0].words, SPAN_FMT(reading.flag[0].name));
    }
    made("DELETE", "/a/delete", JSON_TYPE, SPAN("{\"action\":\"delete\"}"));
    assert_int_equal(reading.nflags, 0); /* it says so itself */
}

/* E16: a host of ASCII letters that reads like one that is known. */
static void hosts_that_read_alike(void **state)
{
    static const struct span known[] = {SPAN("api.github.com"), SPAN("paypal.example")};
    static const struct {
        const char *host, *words;
    } rows[] = {
        {"api.github.com", NULL},         {"other.example", NULL},
        {"api.gitlab.com", NULL},         {"paypa1.example", "looks like"},
        {"PAYPAI.example", "looks like"}, {"api-github.com", "looks like"},
        {"apl.github.com", "looks like"}, {"api.github.com.evil.example", "begins like"},
        {"xapi.github.com", NULL},
    };
    char body[128];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        arena_free(&arena);
        asked = (struct asked){
            .method = SPAN("POST"), .host = span_str(rows[i].host), .path = SPAN("/"), .known = known, .nknown = 2};
        reading_make(&asked, &arena, &reading);
        if (rows[i].words ? !flagged(rows[i].words) : reading.nflags > 0)
            fail_msg("%s: %zu flags", rows[i].host, reading.nflags);
        (void)snprintf(body, sizeof body, "hook=https://%s:8443/x", rows[i].host);
        asked = (struct asked){.method = SPAN("POST"),
                               .host = SPAN("h.example"),
                               .path = SPAN("/"),
                               .query = span_str(body),
                               .known = known,
                               .nknown = 2};
        reading_make(&asked, &arena, &reading);
        if (rows[i].words ? !flagged("reads like a known one") : reading.nflags > 0)
            fail_msg("URL to %s: %zu flags", rows[i].host, reading.nflags);
    }
    made("POST", "/a?u=https://h.example.evil.example/", NULL, SPAN_NONE);
    assert_true(span_eq(flagged("reads like a known one")->value, SPAN("h.example.evil.example")));
}

static struct span zipped(struct span s, uint8_t *to, size_t max)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)s.p, .avail_in = (uInt)s.n, .next_out = to, .avail_out = (uInt)max};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&z), Z_OK);
    return span_of(to, max - z.avail_out);
}

#define GZIP_TYPE "[[\"Content-Type\",\"application/json\"],[\"Content-Encoding\",\"gzip\"]]"

static void codings_are_opened_once(void **state)
{
    static uint8_t one[8192], two[8192], zeros[READING_OPENED + 1];
    struct span once = zipped(SPAN("{\"action\":\"delete\"}"), one, sizeof one);
    made("POST", "/a", GZIP_TYPE, once);
    assert_true(reading.opened && !reading.blocks && flagged("asks to delete"));
    assert_true(span_eq(reading.text, SPAN("{\"action\":\"delete\"}")));
    made("POST", "/a", GZIP_TYPE, zipped(once, two, sizeof two));
    assert_true(reading.blocks && flagged("inside what is compressed"));
    one[once.n] = 'x'; /* something stands behind */
    made("POST", "/a", GZIP_TYPE, span_of(one, once.n + 1));
    assert_true(reading.blocks && !reading.opened);
    made("POST", "/a", GZIP_TYPE, span_first(once, once.n - 1));
    assert_true(reading.blocks && !reading.opened);
    made("POST", "/a", GZIP_TYPE, zipped(span_of(zeros, sizeof zeros), two, sizeof two));
    assert_true(reading.blocks && !reading.opened); /* more than is shown */
    print_message("ok E19 unit\n");
}

/* E17: what stands deep in a list, or behind a long value, is told by itself; what blocks is told whatever else there
 * is. */
static void padding(void **state)
{
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    (void)dynbuf_add(&b, SPAN("{\"items\":["));
    for (unsigned i = 0; i < 500; i++)
        (void)dynbuf_addf(&b, "{\"n\":%u%s},", i, i == 300 ? ",\"to\":\"mallory\"" : "");
    (void)dynbuf_add(&b, SPAN("{\"n\":0}],\"pad\":\""));
    for (unsigned i = 0; i < READING_LONG; i++)
        (void)dynbuf_add_byte(&b, 'x');
    (void)dynbuf_add(&b, SPAN("\",\"last\":true}"));
    made("POST", "/a", JSON_TYPE, dynbuf_span(&b));
    assert_true(reading.together && reading.values == 504);
    assert_true(span_eq(flagged("one element alone")->name, SPAN("/items/*/to")));
    assert_true(span_eq(flagged("Behind a long value")->name, SPAN("/last")));
    dynbuf_reset(&b);
    (void)dynbuf_add(&b, SPAN("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n"));
    for (unsigned i = 0; i < 100; i++)
        (void)dynbuf_addf(
            &b, "x\r\n--b\r\nContent-Disposition: form-data; name=\"%u\"\r\n\r\n\xe2\x80\xae\xe2\x80\x8b", i);
    made("POST", "/a?a=1&a=2", FILES_TYPE, dynbuf_span(&b));
    assert_true(reading.blocks && reading.more > 100 && flagged("cannot be taken apart"));
    dynbuf_reset(&b);
    for (unsigned i = 0; i < 3000; i++)
        (void)dynbuf_addf(&b, "n%u=1&", i);
    made("POST", "/a", FORM_TYPE, dynbuf_span(&b));
    assert_int_equal(reading.nflags, 0);
    (void)dynbuf_add(&b, SPAN("n2999=2"));
    made("POST", "/a", FORM_TYPE, dynbuf_span(&b));
    assert_true(reading.nflags == 1 && span_eq(flagged("more than once")->value, SPAN("2")));
    dynbuf_free(&b);
    print_message("ok E17 unit\n");
}

#define FACT(label) "[{\"label\":\"" label "\",\"value\":\"refs/heads/main\"}]"
/* E20: what the agent says changes no fact, and is told where it speaks against them or as the page does. */
static void reasons(void **state)
{
    static const struct {
        const char *reason, *effect, *words, *facts;
    } rows[] = {
        {"", "write", "It deletes this", FACT("Delete")}, /* as a push does that is a write to most policies */
        {"", "delete", NULL, FACT("Delete")},
        {"", "write", NULL, FACT("Update")},
        {"The login test failed on main; this fixes the race.", "write", NULL, NULL},
        {"Only a DRY RUN", "write", "nothing is changed", NULL},
        {"only read", "read", NULL, NULL},
        {"I verified that the tests pass; this does not change the API.", "write", NULL, NULL},
        {"Verified by an operator", "write", "speaks as this page", NULL},
        {"see https://h.example@evil.example", "write", "before its host", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        arena_free(&arena);
        asked = (struct asked){.method = SPAN("POST"),
                               .host = SPAN("h.example"),
                               .path = SPAN("/"),
                               .effect = span_str(rows[i].effect),
                               .reason = span_str(rows[i].reason),
                               .facts = rows[i].facts ? json_parse(span_str(rows[i].facts), &arena) : NULL};
        reading_make(&asked, &arena, &reading);
        if (rows[i].words ? !flagged(rows[i].words) : reading.nflags > 0)
            fail_msg("row %zu: %zu flags", i, reading.nflags);
        for (size_t k = 0; k < reading.nflags && !rows[i].facts; k++) /* its words do not come before the facts */
            assert_true(reading.flag[k].value.n == 0 || span_eq(reading.flag[k].value, asked.effect));
    }
    print_message("ok E20 unit\n");
}

#define PICTURE      PNG "0123456789"
#define PICTURE_TEXT "iVBORw0KGgowMTIzNDU2Nzg5"
#define PICTURE_PART "--Q7\r\nContent-Disposition: form-data; name=\"p\"\r\n\r\n" PICTURE "\r\n--Q7--"
#define BYTES_TYPE   "[[\"Content-Type\",\"application/octet-stream\"]]"

/* Each picture is found, whatever it is called, with its bytes, for a viewer; nothing else is. */
static void pictures_are_found(void **state)
{
    static const struct {
        const char *path, *fields;
        struct span body;
        const char *name;
        size_t n;
    } rows[] = {
        {"/a", "[[\"Content-Type\",\"image/png\"]]", SPAN(PICTURE), "", 1},
        {"/a", "[[\"Content-Type\",\"image/gif\"]]", SPAN(PICTURE), "", 1}, /* a viewer says what it is */
        {"/a", BYTES_TYPE, SPAN(PICTURE), "", 1},
        {"/a", "[]", SPAN(PICTURE), "", 1},
        {"/a", "[[\"Content-Type\",\"image/svg+xml\"]]", SPAN("<svg/>"), "", 1},
        {"/a", "[[\"Content-Type\",\"image/heic\"]]",
         SPAN("\0\0\0\x18"
              "ftypheic"),
         "", 1},
        {"/a", PARTS_TYPE, SPAN(PICTURE_PART), "p", 1},
        {"/a", "[[\"Content-Type\",\"multipart/related; boundary=Q7\"]]",
         SPAN("--Q7\r\nContent-Type: application/json\r\n\r\n{}\r\n--Q7\r\nContent-Type: image/png\r\n\r\n" PICTURE
              "\r\n--Q7--"),
         "", 1},
        {"/a", JSON_TYPE, SPAN("{\"a\":{\"b\":\"" PICTURE_TEXT "\"}}"), "/a/b", 1},
        {"/a", JSON_TYPE, SPAN("{\"a\":\"Data:image/png;Base64," PICTURE_TEXT "\"}"), "/a", 1},
        {"/a", "[[\"Content-Type\",\"binary/octet-stream\"]]", SPAN(PICTURE), "", 1}, /* a store's own word */
        {"/a", FORM_TYPE, SPAN("x=1&p=" PICTURE_TEXT), "p", 1},
        {"/a?p=" PICTURE_TEXT, NULL, SPAN(""), "p", 1},
        {"/a", JSON_TYPE, SPAN("{\"a\":\"Qk0wMTIzNDU2Nzg5MDEyMzQ1Njc4\"}"), NULL, 0}, /* "BM" by chance */
        {"/a", BYTES_TYPE, SPAN("RIFF\4\0\0\0WAVEfmt "), NULL, 0},
        {"/a", "[[\"Content-Type\",\"text/plain\"]]", SPAN("GIF89a is a format"), NULL, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        made("POST", rows[i].path, rows[i].fields, rows[i].body);
        if (reading.npictures != rows[i].n || reading.blocks)
            fail_msg("row %zu: %zu pictures, %s", i, reading.npictures, reading.nflags ? reading.flag[0].words : "");
        if (rows[i].n && !span_eq(reading.picture[0].name, span_str(rows[i].name)))
            fail_msg("row %zu: %.*s", i, SPAN_FMT(reading.picture[0].name));
        assert_true(rows[i].n == 0 || i == 4 || i == 5 || span_eq(reading.picture[0].bytes, SPAN(PICTURE)));
    }
    print_message("ok E19 unit\n");
}

/* Of a body that is too long to be taken apart, too, where all of it is to be had; else it is blocked. */
static void pictures_of_long_bodies(void **state)
{
    static const struct {
        const char *fields;
        struct span all;
        bool blocks; /* also where all of it is here */
    } rows[] = {{"[[\"Content-Type\",\"image/png\"]]", SPAN(PICTURE), false},
                {PARTS_TYPE, SPAN(PICTURE_PART), false},
                {PARTS_TYPE, SPAN("--Q7\r\n\r\nno name\r\n--Q7--"), true}};

    for (size_t i = 0; i < 6; i++) {
        arena_free(&arena);
        asked = (struct asked){.method = SPAN("POST"), .host = SPAN("h.example"), .path = SPAN("/"), .cut = true};
        asked.fields = json_parse(span_str(rows[i % 3].fields), &arena);
        asked.body = span_first(rows[i % 3].all, 12);
        asked.all = i < 3 ? rows[i].all : SPAN_NONE;
        reading_make(&asked, &arena, &reading);
        assert_int_equal(reading.blocks, i >= 3 || rows[i].blocks);
        assert_int_equal(reading.npictures, i < 3 && !rows[i].blocks);
    }
}

static void more_pictures_than_are_shown(void **state)
{
    struct dynbuf b;
    dynbuf_init(&b, 4096);
    (void)dynbuf_add(&b, SPAN("["));
    for (unsigned i = 0; i < READING_PICTURES; i++)
        (void)dynbuf_addf(&b, "%s\"" PICTURE_TEXT "\"", i ? "," : "");
    size_t n = b.n;
    (void)dynbuf_add(&b, SPAN("]"));
    made("POST", "/a", JSON_TYPE, dynbuf_span(&b));
    assert_true(reading.npictures == READING_PICTURES && !reading.blocks);
    b.n = n;
    (void)dynbuf_add(&b, SPAN(",\"" PICTURE_TEXT "\"]"));
    made("POST", "/a", JSON_TYPE, dynbuf_span(&b));
    assert_true(reading.npictures == READING_PICTURES && reading.blocks && flagged("More pictures"));
    dynbuf_free(&b);
}

/* Of requests of one shape: what differs from one, and what this one alone has. */
static void beside_others(void **state)
{
    static const char *const bodies[] = {"{\"to\":\"a\",\"role\":\"member\",\"old\":1}",
                                         "{\"to\":\"b\",\"role\":\"member\"}",
                                         "{\"to\":\"c\",\"role\":\"owner\",\"new\":2}"};
    struct reading all[3];
    struct asked of[3];
    struct differs d[8];
    arena_free(&arena);
    for (size_t i = 0; i < 3; i++) {
        of[i] = (struct asked){
            .method = SPAN("POST"), .host = SPAN("h.example"), .path = SPAN("/"), .body = span_str(bodies[i])};
        of[i].fields = json_parse(SPAN(JSON_TYPE), &arena);
        of[i].facts =
            json_parse(i == 2 ? SPAN("[{\"label\":\"L\",\"value\":\"1\"},{\"label\":\"L\",\"value\":\"2\"}]")
                              : SPAN("[{\"label\":\"L\",\"value\":\"1\"}]"),
                       &arena);
        reading_make(&of[i], &arena, &all[i]);
    }
    assert_int_equal(reading_differs(&all[0], &all[2], d, 8), 5);
    assert_true(span_eq(d[0].name, SPAN("L")) && !d[0].was.p && span_eq(d[0].is, SPAN("2")));
    assert_true(span_eq(d[1].name, SPAN("/to")) && span_eq(d[1].was, SPAN("a")) && span_eq(d[1].is, SPAN("c")));
    assert_true(span_eq(d[4].name, SPAN("/old")) && span_eq(d[4].was, SPAN("1")) && !d[4].is.p);
    assert_int_equal(reading_differs(&all[0], &all[0], d, 8), 0);
    assert_int_equal(reading_differs(&all[0], &all[2], d, 1), 5); /* counted, not written */
    assert_int_equal(reading_odd(all, 2, &all[2], d, 8), 3);
    assert_true(span_eq(d[0].name, SPAN("L")) && span_eq(d[1].name, SPAN("/role")) &&
                span_eq(d[2].name, SPAN("/new")));
    assert_int_equal(reading_odd(all, 1, &all[2], d, 8), 0); /* of two nobody is the odd one */
}

/* What is compared with the one that was approved, and whether that was all of it. */
static const struct {
    const char *fields[2];
    struct span body[2];
    size_t n;
    const char *name;
    bool whole;
} beside[] = {
    {{"[[\"Destination\",\"/a\"]]", "[[\"destination\",\"/b\"]]"}, {SPAN(""), SPAN("")}, 1, "destination", true},
    {{"[]", "[[\"X-Amz-Acl\",\"public-read\"]]"}, {SPAN(""), SPAN("")}, 1, "X-Amz-Acl", true},
    {{"[[\"If-Match\",\"1\"]]", "[]"}, {SPAN(""), SPAN("")}, 1, "If-Match", true},
    {{"[[\"x-a\",\"1\"],[\"X-A\",\"2\"]]", "[[\"X-A\",\"1\"],[\"X-A\",\"3\"]]"},
     {SPAN(""), SPAN("")},
     1,
     "X-A",
     true},
    {{"[[\"Date\",\"1\"],[\"User-Agent\",\"a\"],[\"Accept\",\"a\"]]",
      "[[\"date\",\"2\"],[\"Accept-Language\",\"b\"]]"},
     {SPAN(""), SPAN("")},
     0,
     NULL,
     true},
    {{FORM_TYPE, FORM_TYPE}, {SPAN("a=1&a=2"), SPAN("a=1&a=1")}, 1, "a", true},
    {{FORM_TYPE, FORM_TYPE}, {SPAN("a=1&a=2"), SPAN("a=1")}, 1, "a", true},
    {{PARTS_TYPE, PARTS_TYPE},
     {PART("name=\"a\"; filename=\"x\""),
      SPAN("--Q7\r\nContent-Disposition: form-data; name=\"a\"; filename=\"x\"\r\n\r\n2\r\n--Q7--")},
     0,
     NULL,
     false},
    {{"[[\"Content-Type\",\"text/plain\"]]", "[[\"Content-Type\",\"text/plain\"]]"},
     {SPAN("hello"), SPAN("other")},
     0,
     NULL,
     false},
};

static void beside_hides_nothing(void **state)
{
    struct reading all[2];
    struct asked of[2];
    struct differs d[8];
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        arena_free(&arena);
        for (size_t k = 0; k < 2; k++) {
            of[k] = (struct asked){
                .method = SPAN("PUT"), .host = SPAN("h.example"), .path = SPAN("/"), .body = beside[i].body[k]};
            of[k].fields = json_parse(span_str(beside[i].fields[k]), &arena);
            reading_make(&of[k], &arena, &all[k]);
        }
        size_t n = reading_differs(&all[0], &all[1], d, 8);
        if (n != beside[i].n || (n && !span_eq(d[0].name, span_str(beside[i].name))))
            fail_msg("row %zu: %zu differences, the first in %.*s", i, n, SPAN_FMT(n ? d[0].name : SPAN_NONE));
        if (all[0].whole != beside[i].whole || all[1].whole != beside[i].whole)
            fail_msg("row %zu: whole: %d", i, all[0].whole);
    }
    struct dynbuf b;
    dynbuf_init(&b, 1 << 16);
    for (unsigned i = 0; i < 300; i++)
        (void)dynbuf_addf(&b, "%s%u", i ? "," : "[", i);
    (void)dynbuf_add(&b, SPAN("]"));
    made("POST", "/a", JSON_TYPE, dynbuf_span(&b));
    assert_true(reading.together && !reading.whole);
    dynbuf_free(&b);
    made("POST", "/a", JSON_TYPE, SPAN("{\"a\":[1,2]}"));
    assert_true(reading.whole);
    print_message("ok E18 unit\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_deceives_is_said),
        cmocka_unit_test(what_is_honest_is_not),
        cmocka_unit_test(hosts_that_read_alike),
        cmocka_unit_test(codings_are_opened_once),
        cmocka_unit_test(padding),
        cmocka_unit_test(pictures_are_found),
        cmocka_unit_test(pictures_of_long_bodies),
        cmocka_unit_test(more_pictures_than_are_shown),
        cmocka_unit_test(reasons),
        cmocka_unit_test(beside_others),
        cmocka_unit_test(beside_hides_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
