/* What check reports of rules that mean nothing: each report for a rule that is so, and silence for its neighbour
 * that is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/load/read/set.h"
#include "policy/load/check/warn.h"
#include "policy_kit.h"

/* Past its limits "a" asks "h", which is about nothing else. */
#define LIMITED(when_a, when_h)                                                                                      \
    "{ id: a, decide: allow, match: { host: a.example, method: POST }, when: " when_a ",\n"                          \
    "      limits: { requests: 5/1h }, over: h }\n"                                                                  \
    "  - { id: h, decide: hold, match: { host: a.example, method: POST }, except: [{ method: POST }],\n"             \
    "      when: " when_h " }"

static const struct row {
    const char *rules, *code, *words; /* words NULL: no such code at all */
} rows[] = {
    /* a hold over an allow */
    {"{ id: a, decide: allow, match: { host: a.example, effect: read, path: /x } }\n"
     "  - { id: h, decide: hold, match: { host: a.example } }",
     "P103", "\"a\" never decides: the rule \"h\" at policy.yaml:4 holds all it is about"},
    {"{ id: a, decide: allow, match: { host: a.example, effect: read, path: /x } }\n"
     "  - { id: h, decide: hold, match: { host: a.example, effect: write } }",
     "P103", NULL},
    {"{ id: a, decide: allow, match: { host: a.example, effect: read, port: 8443 } }\n"
     "  - { id: h, decide: hold, match: { host: a.example } }",
     "P103", NULL},
    {"{ id: a, decide: allow, match: { host: a.example, effect: read, scheme: http } }\n"
     "  - { id: h, decide: hold, match: { host: a.example } }",
     "P103", NULL},
    {"{ id: a, decide: allow, match: { host: a.example, ws: {} } }\n"
     "  - { id: h, decide: hold, match: { host: a.example } }",
     "P103", NULL},
    {"{ id: a, decide: allow, match: { host: a.example, effect: read, path: /x } }\n"
     "  - { id: h, decide: hold, match: { host: a.example }, except: [{ path: /x }] }",
     "P103", NULL},
    {"{ id: a, decide: allow, match: { host: a.example, method: POST }, when: { days: mon, zone: UTC } }\n"
     "  - { id: h, decide: hold, match: { host: a.example } }",
     "P103", "give it a when: of the other hours"},
    {"{ id: a, decide: allow, match: { host: a.example, method: POST } }\n"
     "  - { id: h, decide: hold, match: { host: a.example } }",
     "P103", "give it an except:"},
    /* what a method can do, the hold takes by its effect */
    {"{ id: a, decide: allow, match: { host: a.example, method: [POST, PATCH] } }\n"
     "  - { id: h, decide: hold, match: { host: a.example, effect: [write, delete] } }",
     "P103", "\"a\" never decides: the rule \"h\" at policy.yaml:4 holds all it is about"},
    {"{ id: a, decide: allow, match: { host: a.example, method: [POST, DELETE] } }\n"
     "  - { id: h, decide: hold, match: { host: a.example, effect: write } }",
     "P103", NULL},
    {"{ id: a, decide: allow, match: { host: a.example, method: [GET, POST] } }\n"
     "  - { id: h, decide: hold, match: { host: a.example, effect: [write, delete] } }",
     "P103", NULL},
    {"{ id: a, decide: hold, match: { host: a.example, method: POST }, except: [{ effect: write }] }", "P102",
     "takes everything away"},
    /* words of something else */
    {"{ id: a, decide: deny, match: { host: a.example, path: \"/v1/.*\" } }", "P119",
     "\"/v1/.*\" is taken as it is written, and looks like \".*\" of a regular expression"},
    {"{ id: a, decide: deny, match: { host: a.example, path: \"/v1/users$\" } }", "P119", "an anchor"},
    {"{ id: a, decide: deny, match: { host: a.example, path: \"/v1/[0-9]+/x\" } }", "P119", "a class"},
    {"{ id: a, decide: deny, match: { host: a.example, path: \"/v1/:id\" } }", "P119",
     "{name} stands for one segment"},
    {"{ id: a, decide: deny, match: { host: a.example }, except: [{ path: \"/v1/:id\" }] }", "P119", "a template"},
    {"{ id: a, decide: deny, match: { host: a.example, path: \"/v1/{id}/*:cancel\" } }", "P119", NULL},
    {"{ id: a, decide: deny, match: { host: a.example, path: [\"/v1/**\", \"/a.b/c(d)\", \"/x/*.json\"] } }", "P119",
     NULL},
    /* an address that is not dialled */
    {"{ id: a, decide: deny, match: { host: a.example } }\n"
     "upstreams:\n  - { host: a.example, address: 10.0.0.7 }",
     "P120", "10.0.0.7 is a private address, which no range of allow_private: has"},
    {"{ id: a, decide: deny, match: { host: a.example } }\n"
     "upstreams:\n  - { host: a.example, address: 10.0.0.7, allow_private: [10.0.0.0/24] }",
     "P120", NULL},
    {"{ id: a, decide: deny, match: { host: a.example } }\n"
     "upstreams:\n  - { host: a.example, address: 10.0.0.7, allow_private: [10.0.1.0/24] }",
     "P120", "add allow_private: [10.0.0.7/32]"},
    {"{ id: a, decide: deny, match: { host: 127.0.0.1 } }\nupstreams:\n  - { host: 127.0.0.1, port: 8443 }", "P120",
     "loopback address"},
    {"{ id: a, decide: deny, match: { host: a.example } }\nupstreams:\n  - { host: a.example, address: 8.8.8.8 }",
     "P120", NULL},
    {"{ id: a, decide: allow, match: { host: 10.1.2.3, effect: read } }", "P120",
     "10.1.2.3 is a private address, and upstreams: does not say that it may be dialled"},
    {"{ id: a, decide: hold, match: { host: [a.example, localhost] } }", "P120", "localhost is a loopback address"},
    {"{ id: a, decide: hold, match: { host: api.localhost } }\n"
     "upstreams:\n  - { host: api.localhost }",
     "P120",
     "api.localhost is a loopback address, which no range of allow_private: has: every request will be refused; "
     "add allow_private: [127.0.0.1/32]"},
    {"{ id: a, decide: deny, match: { host: 10.1.2.3 } }\n"
     "  - { id: b, decide: hold, match: { host: [8.8.8.8, a.example, localhost.example] } }\n"
     "  - { id: c, decide: hold, match: { host: 10.1.2.4 } }\n"
     "upstreams:\n  - { host: 10.1.2.4, allow_private: [10.1.2.4/32] }",
     "P120", NULL},
    /* a body asked about wherever it is sent */
    {"{ id: a, decide: deny, match: { host: x.b.example, json: [{ pointer: /x, equals: v }] } }\n"
     "  - { id: b, decide: hold, match: { host: [c.example, \"*.b.example\"], method: POST } }",
     "P127", "also by rule b: one that is not JSON is refused as unclassified"},
    {"{ id: a, decide: hold, match: { host: \"*.b.example\", form: [{ field: x, equals: v }] } }\n"
     "  - { id: b, decide: allow, match: { host: x.b.example, effect: write, json: [{ pointer: /x, equals: v }] } }",
     "P127", "one that is not a form is refused"},
    {"{ id: a, decide: deny, match: { host: a.example, method: POST, json: [{ pointer: /x, equals: v }] } }\n"
     "  - { id: b, decide: hold, match: { host: a.example, method: [PUT, DELETE] } }\n"
     "  - { id: c, decide: hold, match: { host: b.example } }\n"
     "  - { id: d, decide: allow, match: { host: a.example, effect: read } }\n"
     "  - { id: e, decide: hold, match: { host: a.example, method: POST, json: [{ pointer: /x, equals: z }] } }\n"
     "  - { id: f, decide: deny, match: { host: a.example, path: /f } }\n"
     "  - { id: g, decide: hold, match: { host: a.example, port: 8443, scheme: https } }",
     "P127", NULL},
    {"{ id: a, decide: deny, match: { host: a.example, path: /v1, json: [{ pointer: /x, equals: v }] } }\n"
     "  - { id: b, decide: hold, match: { host: a.example } }",
     "P127", NULL},
    {"{ id: a, decide: allow, match: { host: a.example, effect: write, json: [{ pointer: /x, equals: v }] } }\n"
     "  - { id: b, decide: hold, match: { host: a.example } }",
     "P127", NULL},
    {"{ id: a, decide: deny, match: { host: a.example, multipart: [{ file: x, exists: true }] } }\n"
     "  - { id: b, decide: hold, match: { host: a.example } }",
     "P127", "one that is not a form with files is refused"},
    {"{ id: a, decide: deny, match: { host: a.example, graphql: { fields: drop } } }\n"
     "  - { id: b, decide: allow, match: { host: a.example, effect: write, json: [{ pointer: /x, equals: v }] } }",
     "P127", "one that is not GraphQL is refused"},
    {"{ id: a, decide: deny, match: { host: a.example, jsonrpc: { method: drop } } }\n"
     "  - { id: b, decide: hold, match: { host: a.example, graphql: { type: mutation } } }",
     "P127", "one that is not JSON-RPC is refused"},
    {"{ id: a, decide: hold, match: { host: a.example, mcp: { tool: drop } } }\n"
     "  - { id: b, decide: hold, match: { host: a.example } }",
     "P127", "one that is not MCP is refused"},
    {"{ id: a, decide: deny, match: { host: a.example, mcp: { tool: drop } } }\n"
     "  - { id: b, decide: hold, match: { host: a.example, jsonrpc: { method: ask } } }\n"
     "  - { id: c, decide: deny, match: { host: b.example, path: /graphql, graphql: { fields: drop } } }\n"
     "  - { id: d, decide: hold, match: { host: b.example } }",
     "P127", NULL},
    /* a host that is nearly an upstream */
    {"{ id: a, decide: hold, match: { host: my.serv } }\nupstreams:\n  - { host: my.server, port: 8000 }", "P125",
     "upstreams: has no my.serv, but my.server, which no rule is about; did you mean that?"},
    {"{ id: a, decide: hold, match: { host: [a1.example, a2.example] } }\nupstreams:\n  - { host: a1.example }",
     "P125", NULL},
    {"{ id: a, decide: hold, match: { host: [\"**.c.example\", b1.c.example] } }\nupstreams:\n  - { host: "
     "b2.c.example }",
     "P125", NULL},
    {"{ id: a, decide: hold, match: { host: 10.1.2.3 } }\nupstreams:\n  - { host: 10.1.2.4 }", "P125", NULL},
    /* a port or scheme that is named elsewhere */
    {"{ id: a, decide: hold, match: { host: a.example, port: [443, 8000] } }", "P124",
     "is about https, which is seldom spoken on port 8000: add scheme: http, or write scheme: https if a.example"},
    {"{ id: a, decide: hold, match: { host: a.example, port: 8000 } }\nupstreams:\n  - { host: a.example, port: 8000 "
     "}",
     "P124", "seldom spoken on port 8000"},
    {"{ id: a, decide: hold, match: { host: a.example, port: [443, 8443, 9443, 6443] } }\n"
     "  - { id: b, decide: hold, match: { host: b.example, port: 8000 } }\n"
     "  - { id: c, decide: hold, match: { host: c.example, port: 8000, scheme: https } }\n"
     "  - { id: d, decide: deny, match: { host: d.example, port: 8000 } }\n"
     "upstreams:\n  - { host: b.example, port: 8000, tls: { min: \"1.3\" } }",
     "P124", NULL},
    {"{ id: a, decide: hold, match: { host: a.example } }\nupstreams:\n  - { host: a.example, port: 8000 }", "P124",
     "a rule without port: is about port 443, and upstreams: has a.example with 8000, not with that: add port: 8000 "
     "(and scheme: http, unless it speaks TLS), or write port: 443"},
    {"{ id: a, decide: hold, match: { host: a.example, scheme: http } }\n"
     "upstreams:\n  - { host: a.example, port: 8000 }\n  - { host: a.example, port: 9000 }",
     "P124", "is about port 80 over http, and upstreams: has a.example with 8000, not with that: add port: 8000, or"},
    {"{ id: a, decide: hold, match: { host: a.example } }\n"
     "  - { id: b, decide: allow, match: { host: a.example, port: 8000, scheme: http, effect: read } }\n"
     "upstreams:\n  - { host: a.example, port: 8000 }",
     "P124", "add port: 8000 and scheme: http, or"},
    {"{ id: a, decide: hold, match: { host: [b.example, a.example], port: 8000 } }\n"
     "  - { id: b, decide: allow, match: { host: a.example, port: 8000, scheme: http, effect: read } }\n"
     "upstreams:\n  - { host: a.example, port: 8000 }",
     "P124", "a.example port 8000 speaks http for another rule or for credentials: add scheme: http, or"},
    {"{ id: a, decide: hold, match: { host: a.example, port: 80 } }\n"
     "upstreams:\n  - { host: a.example, port: 80, cleartext_credentials: true }",
     "P124", "a.example port 80 speaks http"},
    {"{ id: a, decide: hold, match: { host: a.example, port: 443, effect: write } }\n"
     "  - { id: b, decide: hold, match: { host: a.example, port: 8000, scheme: [http], effect: read } }\n"
     "  - { id: c, decide: hold, match: { host: a.example, port: 8000, scheme: https, effect: delete } }\n"
     "  - { id: d, decide: hold, match: { host: b.example } }\n"
     "  - { id: e, decide: deny, match: { host: a.example } }\n"
     "  - { id: f, decide: deny, match: { host: a.example, port: 8000 } }\n"
     "  - { id: g, decide: hold, match: { host: c.example } }\n"
     "upstreams:\n  - { host: a.example, port: 8000 }\n"
     "  - { host: c.example, port: 8000 }\n  - { host: c.example }",
     "P124", NULL},
    /* a deny over others, in both orders of id */
    {"{ id: a, decide: deny, match: { host: a.example } }\n"
     "  - { id: b, decide: hold, match: { host: a.example, scheme: http, port: 81 } }",
     "P103", "\"b\" never decides: the rule \"a\" at policy.yaml:3 denies all it is about"},
    {"{ id: a, decide: hold, match: { host: a.example } }\n"
     "  - { id: b, decide: deny, match: { host: \"**.example\" } }",
     "P103", "\"a\" never decides"},
    {"{ id: a, decide: deny, match: { host: a.example } }\n"
     "  - { id: b, decide: hold, match: { host: b.example } }",
     "P103", NULL},
    /* a "*" is one segment, and a "**" any number of them */
    {"{ id: a, decide: deny, match: { host: a.example, path: /y/* } }\n"
     "  - { id: b, decide: hold, match: { host: a.example, path: /y/** } }",
     "P103", NULL},
    {"{ id: a, decide: deny, match: { host: a.example, path: /y/** } }\n"
     "  - { id: b, decide: hold, match: { host: a.example, path: [/y/*/**, /y, /y/**/z] } }",
     "P103", "\"b\" never decides: the rule \"a\" at policy.yaml:3 denies all it is about"},
    /* twice the same */
    {"{ id: a, decide: allow, match: { host: a.example, effect: read } }\n"
     "  - { id: b, decide: allow, match: { host: a.example, effect: read } }",
     "P103", "\"b\" says what \"a\" at policy.yaml:3 says"},
    {"{ id: a, decide: allow, match: { host: a.example, effect: read } }\n"
     "  - { id: b, decide: allow, match: { host: a.example, effect: read, path: /x } }",
     "P103", NULL},
    {"{ id: a, decide: allow, match: { host: a.example, effect: read, query: { a: b } } }\n"
     "  - { id: b, decide: allow, match: { host: a.example, effect: read, query: { a: b } } }",
     "P103", NULL},
    /* what excludes itself */
    {"{ id: a, decide: hold, match: { host: a.example, json: [{ pointer: /n, int_lte: 4 }, { pointer: /n, int_gte: 5 "
     "}] } }",
     "P102", "exclude each other"},
    {"{ id: a, decide: hold, match: { host: a.example, json: [{ pointer: /n, int_lte: 5 }, { pointer: /n, int_gte: 5 "
     "}] } }",
     "P102", NULL},
    {"{ id: a, decide: hold, match: { host: a.example, json: [{ pointer: /n, int_lte: 4 }, { pointer: /m, int_gte: 5 "
     "}] } }",
     "P102", NULL},
    {"{ id: a, decide: hold, match: { host: a.example, form: [{ field: amount, equals: a }, { field: amount, in: [b, "
     "c] }] } }",
     "P102", "exclude each other"},
    {"{ id: a, decide: hold, match: { host: a.example, form: [{ field: amount, equals: c }, { field: amount, in: [b, "
     "c] }] } }",
     "P102", NULL},
    {"{ id: a, decide: hold, match: { host: a.example, form: [{ field: amount, absent: true }, { field: amount, "
     "exists: true "
     "}] } }",
     "P102", "exclude each other"},
    {"{ id: a, decide: hold, match: { host: a.example, method: DELETE, effect: read } }", "P102",
     "none of its methods has this effect"},
    {"{ id: a, decide: hold, match: { host: a.example, method: GET, effect: write } }", "P102", NULL},
    {"{ id: a, decide: hold, match: { host: a.example, method: [DELETE, GET], effect: read } }", "P102", NULL},
    /* the hold of an over: */
    {LIMITED(
         "{ days: [mon-fri], hours: \"08:00-18:00\", zone: UTC }",
         "[{ days: mon-fri, hours: [\"00:00-08:00\", \"18:00-24:00\"], zone: UTC }, { days: sat-sun, zone: UTC }]"),
     "P118", "\"h\" is never in force when \"a\" is"},
    {LIMITED(
         "{ days: [mon-fri], hours: \"08:00-18:00\", zone: UTC }",
         "[{ days: mon-fri, hours: [\"00:00-08:01\", \"18:00-24:00\"], zone: UTC }, { days: sat-sun, zone: UTC }]"),
     "P118", NULL},
    {LIMITED("{ hours: \"08:00-18:00\", zone: UTC }", "{ hours: [\"18:00-08:00\", \"19:00-07:00\"], zone: UTC }"),
     "P118", "never in force"},
    {LIMITED("{ days: mon, zone: UTC }", "{ days: sun, hours: \"23:00-01:00\", zone: UTC }"), "P118", NULL},
    {LIMITED("{ days: mon, zone: UTC }", "{ days: sun, hours: \"23:00-24:00\", zone: UTC }"), "P118",
     "never in force"},
    {LIMITED("{ days: sun, hours: \"22:00-23:00\", zone: UTC }", "{ days: mon, zone: Europe/Berlin }"), "P118", NULL},
    {LIMITED("{ days: mon, zone: UTC }", "{ days: mon, zone: UTC }"), "P118", NULL},
    {LIMITED("{ days: mon, zone: UTC }", "{ days: mon, zone: UTC }"), "P102", NULL}, /* its match is not asked */
    {"{ id: a, decide: allow, match: { host: a.example, method: POST }, when: { days: mon, zone: UTC },\n"
     "      limits: { requests: 5/1h }, over: h }\n"
     "  - { id: h, decide: hold, match: { host: a.example } }",
     "P113", "add except: to that one, and hold the other hours by one with a when:"},
    /* exceptions */
    {"{ id: a, decide: hold, match: { host: a.example, method: POST }, except: [{ method: GET }] }", "P102",
     "takes nothing away"},
    {"{ id: a, decide: hold, match: { host: a.example, method: [POST, GET] }, except: [{ method: GET }] }", "P102",
     NULL},
    {"{ id: a, decide: hold, match: { host: a.example }, except: [{ host: b.example }] }", "P102",
     "takes nothing away"},
    {"{ id: a, decide: hold, match: { host: a.example, effect: write }, except: [{ effect: read, path: /x }] }",
     "P102", "takes nothing away"},
    {"{ id: a, decide: hold, match: { host: a.example, path: \"/x/**\" }, except: [{ path: /x/y }] }", "P102", NULL},
    {"{ id: a, decide: hold, match: { host: a.example, path: /x/y }, except: [{ path: \"/x/**\" }] }", "P102",
     "takes everything away"},
};

static void reports(void **state)
{
    static char yaml[4096];
    struct kit k;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(yaml, sizeof(yaml), "version: 1\nrules:\n  - %s\n", rows[i].rules);
        if (!kit_load(&k, yaml, NULL))
            fail_msg("%s: %s", rows[i].rules, k.e.text);
        if (kit_problem(&k, rows[i].code, NULL, rows[i].words) != (rows[i].words != NULL))
            fail_msg("%s: %s %s; got %s", rows[i].rules, rows[i].words ? "no" : "there is a", rows[i].code,
                     k.nproblems ? k.problems[0] : "nothing");
        kit_free(&k);
    }
}

/* A floor is no rule of the policy's: the same words in both are no slip. */
static void floors(void **state)
{
    struct kit k;
    (void)state;
    assert_true(
        kit_load(&k, "version: 1\nrules:\n  - { id: a, decide: allow, match: { host: a.example, effect: read } }\n",
                 "version: 1\nrules:\n  - { id: f, decide: deny, match: { host: a.example } }\n"));
    assert_true(kit_problem(&k, "P103", NULL, "the floor \"f\" at floors.yaml:3 denies all it is about"));
    kit_free(&k);
    assert_true(kit_load(&k, "version: 1\nrules:\n  - { id: a, decide: deny, match: { host: a.example } }\n",
                         "version: 1\nrules:\n  - { id: f, decide: deny, match: { host: a.example } }\n"));
    assert_false(kit_problem(&k, "P103", NULL, NULL));
    kit_free(&k);
}

/* Where a credential may go, and rules with another idea of it: patterns of hosts, ports and schemes. */
static void places(void **state)
{
    static const char head[] =
        "version: 1\ncredentials:\n  c:\n    source: { env: T }\n    inject: { header: A, format: \"{}\" }\n"
        "    only: [{ host: a.x.corp.example }, { host: b.y.x.corp.example, port: 8443 }, { host: x.corp.example, "
        "scheme: http }]\n"
        "rules:\n  - { id: r, decide: hold, use: c, match: { %s } }\n";
    static const struct row of[] = {
        {"host: [\"*.x.corp.example\", \"**.corp.example\"]", "P101", NULL},
        {"host: [\"*.x.corp.example\", \"*.y.x.corp.example\", x.corp.example]", "P101", NULL},
        {"host: \"*.x.corp.example\"", "P101", "may go to b.y.x.corp.example, but no rule"},
        {"host: \"**.x.corp.example\"", "P101", "may go to x.corp.example, but no rule"},
        {"host: \"*.x.corp.example\"", "P106", NULL},
        {"host: \"*.y.x.corp.example\"", "P106", "names *.y.x.corp.example, but with another port"},
        {"host: \"*.y.x.corp.example\", port: 8443", "P106", NULL},
        {"host: \"*.y.x.corp.example\", port: [8443, 8444]", "P106",
         "names *.y.x.corp.example, but not its port 8444"},
        {"host: [b.y.x.corp.example, a.x.corp.example], port: [8443, 443]", "P106",
         "names b.y.x.corp.example, but not its port 443"},
        {"host: [b.y.x.corp.example, a.x.corp.example], port: [8443, 443]", "P106",
         "names a.x.corp.example, but not its port 8443"},
        {"host: ax.corp.example", "P106", "about ax.corp.example, where only:"},
        {"host: \"*.a.x.corp.example\"", "P106", "about *.a.x.corp.example, where only:"},
        {"host: \"**.corp.example\", scheme: [https, http]", "P106", NULL},
        {"host: a.x.corp.example, scheme: [https, http]", "P106", "a.x.corp.example, but not over http"},
        {"host: \"**.corp.example\", scheme: http", "P111", "would travel to http://x.corp.example:80"},
        {"host: \"**.corp.example\"", "P111", NULL},
    };
    static char yaml[4096];
    struct kit k;
    (void)state;
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        snprintf(yaml, sizeof(yaml), head, of[i].rules);
        if (!kit_load(&k, yaml, NULL))
            fail_msg("%s: %s", of[i].rules, k.e.text);
        if (kit_problem(&k, of[i].code, NULL, of[i].words) != (of[i].words != NULL))
            fail_msg("%s: %s %s; got %s", of[i].rules, of[i].words ? "no" : "there is a", of[i].code,
                     k.nproblems ? k.problems[0] : "nothing");
        kit_free(&k);
    }
}

/* Lists are compared name by name, and so long ones only so far; the same list in the same order at once. */
static void bounded(void **state)
{
    enum { MANY = 20000, ENOUGH = 20 * 1000 * 1000 };
    static struct item up[MANY], down[MANY];
    static char text[MANY][8];
    struct m_match x = {.paths = {NULL, up, MANY}}, y = {.paths = {NULL, down, MANY}};
    struct loader l = {0};
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof(text[i]), "/%zu", i);
        up[i].text = down[MANY - 1 - i].text = span_str(text[i]);
    }
    assert_true(warn_match_covers(&l, &x, &x));
    assert_in_range(l.compared, 0, MANY);
    assert_false(warn_match_covers(&l, &x, &y));
    assert_in_range(l.compared, ENOUGH - MANY, ENOUGH + MANY);
    x.paths.n = y.paths.n = 1;
    assert_false(warn_match_covers(&l, &x, &y));
    l.compared = 0;
    x.paths.n = y.paths.n = 1000;
    y.paths.v = down + MANY - 1000;
    assert_true(warn_match_covers(&l, &x, &y));
}

static void sets(void **state)
{
    enum { MANY = 5000 };
    static char text[MANY][8];
    struct loader l = {0};
    struct set s = {0};
    (void)state;
    assert_false(set_has(&s, SPAN("0")));
    for (size_t i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof(text[i]), "%zu", i);
        assert_true(set_add(&l, &s, span_str(text[i])));
        assert_false(set_add(&l, &s, span_str(text[i / 2])));
    }
    for (size_t i = 0; i < MANY; i++)
        assert_true(set_has(&s, span_str(text[i])));
    assert_false(set_has(&s, SPAN("5000")));
    assert_false(set_has(&s, SPAN_NONE));
    set_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reports), cmocka_unit_test(floors), cmocka_unit_test(places),
                                       cmocka_unit_test(bounded), cmocka_unit_test(sets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
