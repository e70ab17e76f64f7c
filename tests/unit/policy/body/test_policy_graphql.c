/* GraphQL: documents, requests, the conditions of rules about them, and what the pack makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/body/graphql.h"
#include "tests/unit/policy/policy_kit.h"

#define JSON    "Content-Type: application/json\n"
#define GRAPHQL "Content-Type: application/graphql\n"

/* ---- documents ---- */

/* Its operations, each with what it selects at its top: "query A:a,b mutation B:c" */
static void words_of(struct graphql_definition *first, char *to, size_t max)
{
    static const char *const types[] = {"fragment", "query", "mutation", "subscription"};
    size_t n = 0;
    *to = 0;
    for (struct graphql_definition *d = first; d != NULL; d = d->next) {
        n += (size_t)snprintf(to + n, max - n, "%s%s %.*s:", n ? " " : "", types[d->type], SPAN_FMT(d->name));
        for (struct graphql_selection *s = d->selections; s != NULL; s = s->next)
            if (s->top)
                n += (size_t)snprintf(to + n, max - n, "%s%s%.*s", s == d->selections ? "" : ",",
                                      s->fragment ? "..." : "", SPAN_FMT(s->name));
    }
}

static void expect_document(struct span text, const char *want)
{
    struct graphql_budget left = {GRAPHQL_TOKENS_MAX, GRAPHQL_ALIASES_MAX};
    enum ambiguity_cause why;
    struct arena a;
    char got[2000] = "none";
    uint8_t *own = malloc(text.n + 1);
    assert_non_null(own);
    memcpy(own, text.p, text.n);
    own[text.n] = 0;
    arena_init(&a, 8 << 20);
    struct graphql_definition *first = graphql_parse(span_of(own, text.n), &left, &a, &why);
    if (first != NULL)
        words_of(first, got, sizeof(got));
    if (strcmp(got, want) != 0)
        fail_msg("%.*s\n  is %s\n  wanted %s", SPAN_FMT(text), got, want);
    arena_free(&a);
    free(own);
}

static const char *const wellformed[][2] = {
    {"{a}", "query :a"},
    {"query{a b,c}", "query :a,b,c"},
    {"query A($x: [Int!]! = [1, 2], $y: In = {a: [{b: \"c\"}]} @d(e: 1)) @f { a(x: $x) { b } }", "query A:a"},
    {"mutation M { x: createIssue(input: {t: $t}) @include(if: false) { y: id } }", "mutation M:createIssue"},
    {"subscription S { a }", "subscription S:a"},
    {"\xef\xbb\xbf # mutation {b}\r\n,,{\t#}\na}", "query :a"},
    {"#mutation\n{ mutation: query subscription }", "query :query,subscription"},
    {"fragment F on Q { a ...G } fragment G on Q { b { c } } { ...F ... on Q { d } ... @x { e } }",
     "fragment F:a,...G fragment G:b query :...F,d,e"},
    {"{ a(s: \"mutation { x }\\\"\\u0041\\ud83d\\ude00\\u{1F600}\") }", "query :a"},
    {"{ a(s: \"\"\"}\n mutation \\\"\"\" \"quoted\" { x }\n\"\"\") b }", "query :a,b"},
    {"{ a(s: \"\", t: \"\"\"\"\"\", i: -0, j: 12, f: 1.5e-3, g: 0E1, n: null, t2: true, e: RED, l: [], o: {}) }",
     "query :a"},
    {"{ on fragment(on: on) type input }", "query :on,fragment,type,input"},
    {"query A {a} query B {b} fragment A on T {c}", "query A:a query B:b fragment A:c"},
    {"{ ... on on { a } }", "query :a"},
};
static const struct span malformed[] = {
    SPAN(""),
    SPAN("#"),
    SPAN("{}"),
    SPAN("{a"),
    SPAN("{a}}"),
    SPAN("a"),
    SPAN("query"),
    SPAN("Query {a}"),
    SPAN("{a()}"),
    SPAN("{a(b)}"),
    SPAN("{a(b:)}"),
    SPAN("{a(b: c d)}"),
    SPAN("{a{}}"),
    SPAN("{a:}"),
    SPAN("{:a}"),
    SPAN("{a: b: c}"),
    SPAN("{1a}"),
    SPAN("{a-b}"),
    SPAN("{a.b}"),
    SPAN("{..a}"),
    SPAN("{....a}"),
    SPAN("{... }"),
    SPAN("{a(b: 01)}"),
    SPAN("{a(b: 1.)}"),
    SPAN("{a(b: .5)}"),
    SPAN("{a(b: 1e)}"),
    SPAN("{a(b: 1x)}"),
    SPAN("{a(b: -)}"),
    SPAN("{a(b: +1)}"),
    SPAN("{a(b: 0x1)}"),
    SPAN("{a(b: 1.2.3)}"),
    SPAN("{a(b: 00)}"),
    SPAN("{a(b: \")}"),
    SPAN("{a(b: \"\n\")}"),
    SPAN("{a(b: \"\\x41\")}"),
    SPAN("{a(b: \"\\u12\")}"),
    SPAN("{a(b: \"\\ud800\")}"),
    SPAN("{a(b: \"\\ude00\\ud83d\")}"),
    SPAN("{a(b: \"\\u{}\")}"),
    SPAN("{a(b: \"\\u{110000}\")}"),
    SPAN("{a(b: \"\\u{41\")}"),
    SPAN("{a(b: \"\"\" \"\" \")}"),
    SPAN("{a(b: 'c')}"),
    SPAN("{a(b: \"\x01\")}"),
    SPAN("{a\0}"),
    SPAN("{\xc2\xa0"
         "a}"),
    SPAN("{\x0b"
         "a}"),
    SPAN("#\xe2\x80\xa8mutation{b}\n{a}"),
    SPAN("#\xe2\x80\xa9\n{a}"),
    SPAN("#\rmutation #\n{a}"),
    SPAN("{a} #\r"),
    SPAN("{a(b: \"\"\"c\rd\"\"\")}"),
    SPAN("{a(b: \"\"\"c\r\nd\"\"\")}"),
    SPAN("{...F}"),
    SPAN("{a{...F}} fragment G on T {a}"),
    SPAN("{...F} fragment F on T {...F}"),
    SPAN("{a} fragment F on T {x{...G}} fragment G on T {...F}"),
    SPAN("fragment F on T {a} fragment F on T {b} {a}"),
    SPAN("fragment on on T {a} {a}"),
    SPAN("fragment F {a} {a}"),
    SPAN("fragment F on T"),
    SPAN("{...on}"),
    SPAN("{a} {b}"),
    SPAN("{a} query A {b}"),
    SPAN("query A {a} mutation A {b}"),
    SPAN("query A($x: Int, $x: Int) {a}"),
    SPAN("query A() {a}"),
    SPAN("query A($x) {a}"),
    SPAN("query A(x: Int) {a}"),
    SPAN("query A($x: Int = $y) {a}"),
    SPAN("query A($x: [Int) {a}"),
    SPAN("query A($x: Int!!) {a}"),
    SPAN("query A B {a}"),
    SPAN("query @ {a}"),
    SPAN("{a(b: 1, b: 2)}"),
    SPAN("{a(b: {c: 1, c: 2})}"),
    SPAN("{a @b(c: ]) }"),
    SPAN("{a(b: [1)}"),
    SPAN("type A {a: Int}"),
    SPAN("schema {query: A}"),
    SPAN("extend type A {a: Int}"),
    SPAN("{a} type A {a: Int}"),
    SPAN("\"words\" query A {a}"),
    SPAN("{a} ;"),
    SPAN("{a}\\"),
    SPAN("{a(b: $)}"),
    SPAN("{a(b: @c)}"),
    SPAN("{a!}"),
};

static void documents_are_read_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(wellformed) / sizeof(wellformed[0]); i++)
        expect_document(span_str(wellformed[i][0]), wellformed[i][1]);
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
        expect_document(malformed[i], "none");
}

/* `one` n times between what is before and behind it. */
static char *many(const char *before, const char *one, size_t n, const char *behind)
{
    size_t length = strlen(one);
    char *text = malloc(strlen(before) + n * length + strlen(behind) + 1), *to = text;
    assert_non_null(text);
    to += sprintf(to, "%s", before);
    for (size_t i = 0; i < n; i++)
        to += sprintf(to, "%s", one);
    sprintf(to, "%s", behind);
    return text;
}

static void a_document_has_bounds(void **state)
{
    static const struct {
        const char *before, *one, *behind;
        size_t most;
    } rows[] = {
        {"{a(b: ", "[", "", GRAPHQL_DEPTH_MAX - 1},
        {"{a(b: ", "{c:", "", GRAPHQL_DEPTH_MAX - 1},
        {"", "{a", "", GRAPHQL_DEPTH_MAX},
        {"{", "...{", "a", GRAPHQL_DEPTH_MAX - 1},
        {"{", "a:b ", "}", GRAPHQL_ALIASES_MAX},
        {"{", "a ", "}", GRAPHQL_TOKENS_MAX - 3},
        {"{a(b: [", "1 ", "])}", GRAPHQL_MEMBERS_MAX},
    };
    struct arena a;
    enum ambiguity_cause why;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t more = 0; more < 2; more++) {
            char close[400] = "", last = rows[i].one[0] == '[' ? ']' : '}';
            size_t n = rows[i].most + more, ends = rows[i].most < 400 && !strchr(rows[i].behind, '}') ? n : 0;
            struct graphql_budget left = {GRAPHQL_TOKENS_MAX, GRAPHQL_ALIASES_MAX};
            memset(close, last, ends < 300 ? ends : 0);
            bool value = strncmp(rows[i].before, "{a(", 3) == 0 && ends;
            char *text = many(rows[i].before, rows[i].one, n, rows[i].behind);
            char *whole = malloc(strlen(text) + strlen(close) + 8);
            assert_non_null(whole);
            sprintf(whole, "%s%s%s%s", text, value && last == '}' ? "1" : "", close,
                    value                                 ? ")}"
                    : strncmp(rows[i].one, "...", 3) == 0 ? "}"
                                                          : "");
            arena_init(&a, 64 << 20);
            bool taken = graphql_parse(span_str(whole), &left, &a, &why) != NULL;
            if (taken == (more == 1) || (more && why != AMBIGUITY_BODY_LARGE))
                fail_msg("%zu of %s: %d %s", n, rows[i].one, taken, ambiguity_words(why));
            arena_free(&a);
            free(whole);
            free(text);
        }
}

/* ---- rules ---- */

static const char rules[] =
    "version: 1\n"
    "rules:\n"
    "  - { id: read, match: { host: g.test, path: /graphql, graphql: { type: query, fields: [repository, viewer, "
    "\"__*\"], arguments: [{ pointer: /repository/owner, equals: acme }] } }, decide: allow }\n"
    "  - { id: comment, match: { host: g.test, path: /graphql, graphql: { type: mutation, fields: [addComment], "
    "arguments: [{ pointer: /addComment/input/labels/0, in: [bug, \"5\"] }, { pointer: /addComment/input/lock, "
    "absent: "
    "true }] } }, decide: allow }\n"
    "  - { id: stored, match: { host: g.test, path: /graphql, graphql: { persisted: [abc, def] } }, decide: allow }\n"
    "  - { id: owner, match: { host: g.test, path: /owner, graphql: { type: query, arguments: [{ pointer: "
    "/repository/owner, equals: acme }] } }, decide: allow }\n"
    "  - { id: others, match: { host: e.test, path: /graphql }, except: [{ graphql: { arguments: [{ pointer: "
    "/repository/owner, equals: acme }] } }], decide: hold }\n"
    "  - { id: named, match: { host: g.test, path: /named, graphql: { operation: \"Get*\" } }, decide: allow }\n"
    "  - { id: any, match: { host: d.test }, decide: allow }\n"
    "  - { id: no-delete, match: { host: d.test, path: /graphql, graphql: { type: mutation, fields: \"delete*\" } }, "
    "decide: deny }\n"
    "  - { id: no-main, match: { host: d.test, path: /graphql, graphql: { arguments: [{ pointer: "
    "/merge/input/branch, equals: main }, { pointer: /merge/input/force/0, equals: \"true\" }] } }, decide: deny }\n"
    "  - { id: write, match: { host: h.test, path: /graphql }, except: [{ graphql: { type: query } }], decide: hold "
    "}\n"
    "  - { id: reads, match: { host: h.test, path: /graphql, graphql: { type: query } }, decide: allow }\n";

#define TRY(k, v)  kit_rows(k, v, sizeof(v) / sizeof((v)[0]))
#define G          "https://g.test/graphql"
#define Q(text)    "{\"query\":\"" text "\"}"
#define ALLOWED(r) VERDICT_ALLOW, "rule", r
#define NO_RULE    VERDICT_DENY, "no-rule", ""
#define OPEN       VERDICT_DENY, "unclassified", ""

/* What lets through means every operation and every field, whatever they are called. */
static void an_allow_means_all_of_it(void **state)
{
    static const struct kit_row rows[] = {
#define ACME "repository(owner:\\\"acme\\\")"
        {"POST", G, JSON, Q("{" ACME "{id}}"), ALLOWED("read")},
        {"POST", G, JSON, Q("query A{x:" ACME "{id} viewer{login} __typename}"), ALLOWED("read")},
        {"POST", G, JSON, Q("{" ACME "{id} y:repository(owner:\\\"evil\\\"){id}}"), NO_RULE},
        {"POST", G, JSON, Q("{" ACME "{id} repository{id}}"), NO_RULE},
        {"POST", G, JSON, Q("{" ACME "{id} viewer:organization{id}}"), NO_RULE},
        {"POST", G, JSON, Q("mutation{" ACME "{id}}"), NO_RULE},
        {"POST", G, JSON, Q("{...F} fragment F on Query{" ACME "{id} ...on Query{search{id}}}"), NO_RULE},
        {"POST", G, JSON, Q("{...F} fragment F on Query{" ACME "{id} ...on Query{viewer{id}}}"), ALLOWED("read")},
        {"POST", G, JSON, Q("{" ACME "{id} search @skip(if:true){id}}"), NO_RULE},
        {"POST", G, JSON, Q("query A{" ACME "{id}} mutation B{drop}"), OPEN},
        {"POST", G, JSON, "{\"query\":\"query A{" ACME "{id}} mutation B{drop}\",\"operationName\":\"A\"}", NO_RULE},
        {"POST", G, JSON, "{\"query\":\"query A{" ACME "{id}} query B{viewer{id}}\",\"operationName\":\"A\"}",
         ALLOWED("read")},
        {"POST", G, JSON, "{\"query\":\"query A{" ACME "{id}}\",\"operationName\":\"B\"}", OPEN},
        {"POST", G, JSON, "{\"query\":\"query A{" ACME "{id}}\",\"operationName\":\"\"}", OPEN},
        {"POST", G, JSON, "{\"query\":\"query A{" ACME "{id}}\",\"operationName\":null,\"variables\":null}",
         ALLOWED("read")},
        {"POST", G, JSON, "{\"query\":\"query A{" ACME "{id}}\",\"operationName\":7}", OPEN},
        /* variables, with and without a default; a null is no default */
        {"POST", G, JSON,
         "{\"query\":\"query($o:String!){repository(owner:$o){id}}\",\"variables\":{\"o\":\"acme\"}}",
         ALLOWED("read")},
        {"POST", G, JSON,
         "{\"query\":\"query($o:String!){repository(owner:$o){id}}\",\"variables\":{\"o\":\"evil\"}}", NO_RULE},
        {"POST", G, JSON, Q("query($o:String=\\\"acme\\\"){repository(owner:$o){id}}"), ALLOWED("read")},
        {"POST", G, JSON,
         "{\"query\":\"query($o:String=\\\"acme\\\"){repository(owner:$o){id}}\",\"variables\":{\"o\":"
         "null}}",
         NO_RULE},
        {"POST", G, JSON, Q("query($o:String){repository(owner:$o){id}}"), NO_RULE},
        {"POST", G, JSON, "{\"query\":\"{repository(owner:$o){id}}\",\"variables\":{\"o\":\"acme\"}}", OPEN},
        {"POST", G, JSON, "{\"query\":\"{" ACME "{id}}\",\"variables\":[]}", OPEN},
        {"POST", G, JSON, Q("{repository(owner:\\\"\\\"\\\"\\n  acme\\n\\\"\\\"\\\"){id}}"), ALLOWED("read")},
        {"POST", G, JSON, Q("{repository(owner:\\\"\\\\u0061cme\\\"){id}}"), ALLOWED("read")},
        {"POST", G, JSON, Q("{repository(owner:[\\\"acme\\\"]){id}}"), NO_RULE},
        {"POST", G, JSON, Q("mutation{addComment(input:{labels:[bug]}){id}}"), ALLOWED("comment")},
        {"POST", G, JSON, Q("mutation{addComment(input:{labels:[5, x]}){id}}"), ALLOWED("comment")},
        {"POST", G, JSON, Q("mutation{addComment(input:{labels:bug}){id}}"), OPEN},
        {"POST", G, JSON, Q("mutation{addComment(input:[{labels:[bug]}]){id}}"), OPEN},
        {"POST", G, JSON, Q("mutation{addComment(input:{labels:[bug],lock:true}){id}}"), NO_RULE},
        {"POST", G, JSON,
         "{\"query\":\"mutation($i:I){addComment(input:$i){id}}\",\"variables\":{\"i\":{\"labels\":"
         "[\"bug\"]}}}",
         ALLOWED("comment")},
        {"POST", G, JSON, "{\"query\":\"mutation($i:[I],$l:L=bug){addComment(input:{labels:[$l,$i]}){id}}\"}",
         ALLOWED("comment")},
        {"POST", "https://g.test/named", JSON, Q("query GetIt{a}"), ALLOWED("named")},
        {"POST", "https://g.test/named", JSON, Q("query Other{a}"), NO_RULE},
        {"POST", "https://g.test/named", JSON, Q("{a}"), NO_RULE},
    };
    struct kit k;
    (void)state;
    if (!kit_load(&k, rules, NULL))
        fail_msg("%s: %s", k.e.text, k.problems[0]);
    TRY(&k, rows);
    kit_covered("B24 B25 B31");
    kit_free(&k);
}

/* Who asks about the arguments of a field means that field, and the variables of those names alone. */
static void arguments_mean_their_fields(void **state)
{
    static const struct kit_row rows[] = {
        /* a name of a variable in other letters may be the one that counts */
        {"POST", G, JSON,
         "{\"query\":\"query($o:String!){repository(owner:$o){id}}\",\"variables\":{\"o\":\"acme\",\"O\":\"evil\"}}",
         OPEN},
        {"POST", G, JSON,
         "{\"query\":\"query($o:String=\\\"acme\\\"){repository(owner:$o){id}}\",\"variables\":{\"O\":\"evil\"}}",
         OPEN},
    /* arguments of a field that is named nowhere else mean that field alone */
#define OWNER "https://g.test/owner"
        {"POST", OWNER, JSON, Q("{" ACME "{id}}"), ALLOWED("owner")},
        {"POST", OWNER, JSON, Q("{a:" ACME "{id} ...F} fragment F on Q{b:" ACME "{id}}"), ALLOWED("owner")},
        {"POST", OWNER, JSON, Q("{" ACME "{id} deleteAll}"), NO_RULE},
        {"POST", OWNER, JSON, Q("{" ACME "{id} repository:deleteAll}"), NO_RULE},
        {"POST", OWNER, JSON, Q("{" ACME "{id} ...F} fragment F on Q{deleteAll}"), NO_RULE},
        {"POST", OWNER, JSON, "[" Q("{" ACME "{id}}") "," Q("{deleteAll}") "]", NO_RULE},
        {"POST", "https://e.test/graphql", JSON, Q("{" ACME "{id}}"), NO_RULE},
        {"POST", "https://e.test/graphql", JSON, Q("{" ACME "{id} deleteAll}"), VERDICT_HOLD, "rule", "others"},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    TRY(&k, rows);
    kit_covered("B24 B31");
    kit_free(&k);
}

/* One request in one of its forms; what a server may find elsewhere is nobody's. */
static const struct kit_row forms[] = {
    {"POST", G, JSON, "[" Q("{viewer{id} " ACME "{id}}") "," Q("{" ACME "{id}}") "]", ALLOWED("read")},
    {"POST", G, JSON, "[" Q("{" ACME "{id}}") "," Q("mutation{drop}") "]", NO_RULE},
    {"POST", G, JSON, "[[" Q("{" ACME "{id}}") "]]", NO_RULE},
    {"POST", G, JSON, "[]", NO_RULE},
    {"POST", G, JSON, "[" Q("{" ACME "{id}}") ",[]]", OPEN},
    {"POST", G, JSON, "[{\"a\":1}," Q("{" ACME "{id}}") "]", OPEN},
    {"POST", G, JSON, "[{\"a\":1},{\"b\":2}]", NO_RULE},
    {"POST", G, JSON, "[" Q("{" ACME "{id}}") ",{\"query\":\"{\"}]", OPEN},
    {"POST", G, JSON, "{\"query\":\"{" ACME "{id}}\",\"query\":\"mutation{drop}\"}", OPEN},
    {"POST", G, JSON, "{\"query\":\"{" ACME "{id}}\",\"Query\":\"mutation{drop}\"}", OPEN},
    {"POST", G, JSON, "{\"query\":\"{" ACME "{id}}\",\"query\\u0000\":\"mutation{drop}\"}", OPEN},
    {"POST", G, JSON, "{\"query\":\"{" ACME "{id}}\",\"other\":1}", OPEN},
    {"POST", G, JSON, "{\"query\":[\"{" ACME "{id}}\"]}", OPEN},
    {"POST", G, JSON, "{\"query\":\"{" ACME "{id}}\",\"extensions\":{\"clientLibrary\":{\"name\":\"x\"}}}",
     ALLOWED("read")},
    {"POST", G, JSON "Content-Encoding: gzip\n", Q("{" ACME "{id}}"), OPEN},
    {"POST", G, "Content-Type: text/plain\n", Q("{" ACME "{id}}"), OPEN},
    {"POST", G, "Content-Type: application/json; charset=utf-16\n", Q("{" ACME "{id}}"), OPEN},
    {"POST", G, JSON JSON, Q("{" ACME "{id}}"), OPEN},
    {"POST", G, "Content-Type: application/x-www-form-urlencoded\n", "query={viewer{id}}", NO_RULE},
    {"POST", G, "Content-Type: multipart/form-data; boundary=x\n",
     "--x\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n{}\r\n--x--\r\n", NO_RULE},
    {"POST", G, "Content-Type: multipart/form-data; boundary=x\n",
     "--x\nContent-Disposition: form-data; name=\"operations\"\n\n{}\n--x--\n", OPEN},
    {"POST", G, GRAPHQL, "{repository(owner:\"acme\"){id}}", ALLOWED("read")},
    {"POST", G, GRAPHQL, "mutation{repository(owner:\"acme\"){id}}", NO_RULE},
    {"POST", G, GRAPHQL, Q("{" ACME "{id}}"), OPEN},
    {"POST", G, GRAPHQL, "{viewer(a:\"\xff\")}", OPEN},
    {"POST", G "?operationName=B", GRAPHQL, "query A{repository(owner:\"acme\"){id}}", OPEN},
    {"POST", G "?query=mutation{drop}", JSON, Q("{" ACME "{id}}"), OPEN},
    {"POST", G "?x=1;%71uery=mutation{drop}", JSON, Q("{" ACME "{id}}"), OPEN},
    {"POST", G "?x=1", JSON, Q("{" ACME "{id}}"), ALLOWED("read")},
    {"POST", G, JSON, NULL, NO_RULE},
    {"GET", G "?query=%7Brepository(owner:%22acme%22)%7Bid%7D%7D", NULL, NULL, ALLOWED("read")},
    {"GET", G "?query=query($o:S)%7Brepository(owner:$o)%7Bid%7D%7D&variables=%7B%22o%22:%22acme%22%7D", NULL, NULL,
     ALLOWED("read")},
    {"GET", G "?query=mutation%7Brepository(owner:%22acme%22)%7Bid%7D%7D", NULL, NULL, NO_RULE},
    {"GET", G "?query=%7Brepository(owner:%22acme%22)%7Bid%7D%7D&query=mutation%7Bx%7D", NULL, NULL, OPEN},
    {"GET", G "?query=%7Brepository(owner:%22acme%22)%7Bid%7D%7D&Query=mutation%7Bx%7D", NULL, NULL, OPEN},
    {"GET", G "?query=%7Brepository(owner:%22acme%22)%7Bid%7D%7D&x=1", NULL, NULL, OPEN},
    {"GET", G "?query=%7Brepository(owner:%22acme%22)%7Bid%7D%7D;x=1", NULL, NULL, OPEN},
    {"GET", G "?query=%7Brepository(owner:%22acme%22)%7Bid%7D%7D", JSON, Q("mutation{x}"), OPEN},
    /* variables to who decodes before he cuts, and a comment to others */
    {"GET",
     G "?query=query($o:S=%22evil%22)%7Brepository(owner:$o)%7Bid%7D%7D%23%26variables=%7B%22o%22:%22acme%22%7D",
     NULL, NULL, OPEN},
    {"GET", G "?x=1", NULL, NULL, NO_RULE},
    {"GET", G "?documentId=xyz", NULL, NULL, NO_RULE},
    {"GET", G "?documentId=abc", NULL, NULL, ALLOWED("stored")},
    /* documents that the server has */
    {"POST", G, JSON, "{\"id\":\"abc\"}", ALLOWED("stored")},
    {"POST", G, JSON, "{\"doc_id\":\"def\",\"variables\":{\"a\":1}}", ALLOWED("stored")},
    {"POST", G, JSON, "{\"query\":null,\"extensions\":{\"persistedQuery\":{\"version\":1,\"sha256Hash\":\"abc\"}}}",
     ALLOWED("stored")},
    {"POST", G, JSON, "{\"extensions\":{\"persistedQuery\":{\"sha256Hash\":\"zzz\"}}}", NO_RULE},
    {"POST", G, JSON, "{\"extensions\":{\"PersistedQuery\":{\"sha256Hash\":\"abc\"}}}", OPEN},
    {"POST", G, JSON, "{\"query\":\"{" ACME "{id}}\",\"extensions\":{\"persistedQuery\":{\"sha256Hash\":\"abc\"}}}",
     OPEN},
    {"POST", G, JSON, "{\"query\":\"{" ACME "{id}}\",\"id\":\"abc\"}", OPEN},
    {"POST", G, JSON, "{\"id\":\"abc\",\"documentId\":\"def\"}", NO_RULE},
    {"POST", G, JSON, "[{\"id\":\"abc\"},{\"id\":\"zzz\"}]", NO_RULE},
    {"POST", G, JSON, "[{\"id\":\"abc\"}," Q("{viewer{id}}") "]", NO_RULE},
    {"POST", G, JSON, "{\"variables\":{}}", OPEN},
};

static void only_clear_requests_are_read(void **state)
{
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    TRY(&k, forms);
    char *batch = many("[", Q("{viewer{id} " ACME "{id}}") ",", GRAPHQL_OPERATIONS_MAX - 1, Q("{" ACME "{id}}") "]");
    char *over = many("[", Q("{viewer{id} " ACME "{id}}") ",", GRAPHQL_OPERATIONS_MAX, Q("{" ACME "{id}}") "]");
    const struct kit_row bounds[] = {{"POST", G, JSON, batch, ALLOWED("read")}, {"POST", G, JSON, over, OPEN}};
    TRY(&k, bounds);
    free(batch);
    free(over);
    kit_covered("B26 B27 B28 B29");
    kit_free(&k);
}

/* What restricts means any of it, in every spelling. */
static void a_deny_means_any_of_it(void **state)
{
#define D       "https://d.test/graphql"
#define ANY     ALLOWED("any")
#define DENY(r) VERDICT_DENY, "rule", r
    static const struct kit_row rows[] = {
        {"POST", D, JSON, Q("{deleteIt}"), ANY},
        {"POST", D, JSON, Q("mutation{addComment(deleteIt:1){deleteIt}}"), ANY},
        {"POST", D, JSON, Q("mutation{a:addComment b:deleteIssue}"), DENY("no-delete")},
        {"POST", D, JSON, Q("mutation{addComment ...F} fragment F on M{...{deleteIssue @skip(if:true)}}"),
         DENY("no-delete")},
        {"POST", D, JSON, "{\"query\":\"query A{a} mutation B{deleteIssue}\",\"operationName\":\"A\"}",
         DENY("no-delete")},
        {"POST", D, JSON, "[" Q("{a}") "," Q("mutation{deleteIssue}") "]", DENY("no-delete")},
        {"GET", D "?query=mutation%7BdeleteIssue%7D", NULL, NULL, DENY("no-delete")},
        {"POST", D, JSON, Q("mutation{deleteIssue"), OPEN},
        {"POST", D, JSON, "{\"id\":\"abc\"}", OPEN},
        {"POST", D, JSON, "{\"title\":\"x\"}", OPEN},
        {"POST", D, "Content-Type: application/x-www-form-urlencoded\n", "query=mutation{deleteIssue}", OPEN},
        {"GET", D "?documentId=abc", NULL, NULL, OPEN},
        {"GET", D "?docId=abc", NULL, NULL, OPEN},
        {"GET", D "?sha256Hash=abc", NULL, NULL, OPEN},
        {"GET", D "?Mutation=%7BdeleteIssue%7D", NULL, NULL, OPEN},
        {"GET", D "?operations%5B%5D=%7B%7D", NULL, NULL, OPEN},
        {"POST", D "?hash=abc", JSON, Q("{a}"), OPEN},
        {"GET", D "?page=1", NULL, NULL, ANY},
        {"GET", D, NULL, NULL, ANY},
        {"POST", D, JSON, Q("mutation{merge(input:{branch:\\\"topic\\\",force:[true]})}"), ANY},
        {"POST", D, JSON, Q("mutation{merge(input:{branch:\\\"main\\\",force:[true]})}"), DENY("no-main")},
        {"POST", D, JSON, Q("mutation{merge(input:{branch:\\\"main\\\",force:true})}"), OPEN},
        {"POST", D, JSON, Q("mutation{merge(input:{branch:[\\\"main\\\"],force:[true]})}"), OPEN},
        {"POST", D, JSON, Q("mutation{merge(input:[{branch:\\\"main\\\",force:[true]}])}"), OPEN},
        {"POST", D, JSON, Q("mutation{Merge(input:{branch:\\\"main\\\",force:[true]})}"), DENY("no-main")},
        {"POST", D, JSON, Q("mutation{x:merge(input:{branch:MAIN,force:[false]}) merge(input:{force:[true]})}"),
         DENY("no-main")},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    TRY(&k, rows);
    kit_covered("B24 B26 B27 B31");
    kit_free(&k);
}

/* What is not understood is held as a write, where the hold's except: alone asks about it. */
static void what_is_open_is_no_read(void **state)
{
    static const struct {
        const char *fields, *body, *word;
    } rows[] = {
        {JSON, Q("{a"), "bad-graphql"},
        {JSON, Q("{...F}"), "bad-graphql"},
        {JSON, "{\"query\":\"query A{a} query B{b}\"}", "graphql-operation"},
        {JSON, "{\"query\":\"fragment F on Q{a}\"}", "graphql-operation"},

        {JSON, "{\"query\":\"{a}\",\"id\":\"abc\"}", "graphql-stored"},
        {JSON, "{\"query\":\"{a}\",\"x\":1}", "graphql-request"},
        {JSON, "{\"query\":", "bad-json"},
        {"Content-Type: text/plain\n", "{a}", "body-type"},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct decision *d = kit_judge(&k, "sb", "POST", "https://h.test/graphql", rows[i].fields, rows[i].body,
                                             strlen(rows[i].body), true);
        if (d->verdict == VERDICT_ALLOW || strcmp(k.ambiguity.word, rows[i].word) != 0)
            fail_msg("%s: verdict %d, %s, wanted %s", rows[i].body, d->verdict, k.ambiguity.word, rows[i].word);
        /* A refusal says nothing of what the rules ask about. */
        if (strncmp(rows[i].word, "graphql", 7) == 0 || strcmp(rows[i].word, "bad-graphql") == 0)
            assert_string_equal(k.ambiguity.told, "ambiguous");
    }
    kit_expect(kit_judge(&k, "sb", "POST", "https://h.test/graphql", JSON, Q("{a}"), 15, true), VERDICT_ALLOW, "rule",
               "reads");
    kit_expect(kit_judge(&k, "sb", "POST", "https://h.test/graphql", JSON, Q("mutation{a}"), 23, true), VERDICT_HOLD,
               "rule", "write");
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_read_whole),     cmocka_unit_test(a_document_has_bounds),
        cmocka_unit_test(an_allow_means_all_of_it),     cmocka_unit_test(arguments_mean_their_fields),
        cmocka_unit_test(only_clear_requests_are_read), cmocka_unit_test(a_deny_means_any_of_it),
        cmocka_unit_test(what_is_open_is_no_read),
    };
    return cmocka_run_group_tests_name("policy graphql", tests, NULL, NULL);
}
