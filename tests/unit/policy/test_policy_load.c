/* What the loader takes and what it refuses, each with its place (B51 and its kin). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/load/load.h"
#include "policy_kit.h"

#define V     "version: 1\n"
#define RULES V "rules:\n"
#define RULE  RULES "  - { id: a, match: { host: a.example"

struct refused {
    const char *yaml, *code, *where, *words;
};

static const struct refused refused[] = {
    /* files that are none */
    {"", "P010", "policy.yaml:1:1", "empty"},
    {"# only a comment\n", "P010", NULL, "empty"},
    {"rules: []\n", "P010", "policy.yaml:1:1", "needs the key \"version\""},
    {"version: 2\nrules: []\n", "P008", "policy.yaml:1:10", NULL},
    {"- version: 1\n", "P008", "policy.yaml:1:1", "mapping"},
    {"just words\n", "P008", NULL, "mapping"},
    {V "rules: [\n", "P001", "policy.yaml:3:1", "not YAML"},
    {V "name: No: ask first\n", "P001", "policy.yaml:2:9", "stands in quotes, such as \"No: ask first\""},
    {V "upstreams:\n  - host: a.example\n     port: 1\n", "P001", "policy.yaml:4:10",
     "if it is a key, it is indented too far"},
    {RULES "  - id: a\n   decide: deny\n", "P001", "policy.yaml:4:4", "indented unlike the list it belongs to"},
    {RULES "  - id: a\n    match: { host: a.example }\n     decide: deny\n", "P001", "policy.yaml:5:6",
     "indented unlike the keys it belongs to"},
    {RULES "  - { id: a, match: { host: a.example }\n  - { id: b }\n", "P001", NULL,
     "is missing to the { before (line 3)"},
    {V "name: \"open\n", "P001", NULL, "the quote is not closed (line 2)"},
    {V "name: @ops\n", "P001", "policy.yaml:2:7", "stands in quotes"},
    {V "rules:\n\t- id: a\n", "P002", "policy.yaml:3:1", "tab"},
    {"\xff\xfev\0", "P002", "policy.yaml:1:1", "UTF-8"},
    {V "name: \"\xc0\xaf\"\n", "P002", "policy.yaml:2:8", "UTF-8"},
    {"\xef\xbb\xbf" V, "P002", NULL, "invisible"},
    {V "name: \"a\xe2\x80\xae\"\n", "P002", NULL, "bidirectional"},
    {V "name: \"a\\0b\"\n", "P002", "policy.yaml:2:7", "NUL"},
    {V "name: \"a\\x1bb\"\n", "P008", NULL, "control"},
    {V "name: a\r\n", "P002", NULL, "carriage"},
    /* what YAML can do and a policy may not */
    {V "name: a\nname: b\n", "P004", "policy.yaml:3:1", "twice (first in line 2)"},
    {V "name: &x a\n", "P005", "policy.yaml:2:7", "anchors"},
    {V "name: *x\n", "P005", "policy.yaml:2:7", "aliases"},
    {V "defaults: { <<: { store_lost: deny } }\n", "P005", "policy.yaml:2:13", "merge"},
    {V "name: !!str a\n", "P005", "policy.yaml:2:7", "tags"},
    {V "name: !!binary aGk=\n", "P005", NULL, "tags"},
    {V "name: ! a\n", "P005", NULL, "tags"},
    {V "---\n" V, "P005", "policy.yaml:2:1", "second document"},
    {"%YAML 1.1\n---\n" V, "P005", NULL, "directives"},
    {V "? [a]\n: b\n", "P008", NULL, "key"},
    {V "name: [[[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]]]\n", "P003", "policy.yaml:2:", "16 levels"},
    /* words that are not what they seem */
    {V "name: no\n", "P009", "policy.yaml:2:7", "boolean"},
    {V "name: On\n", "P009", NULL, "boolean"},
    {V "name: ~\n", "P009", NULL, "nothing"},
    {V "name: null\n", "P009", NULL, "nothing"},
    {V "name:\n", "P008", NULL, "missing"},
    {V "name: \"\"\n", "P008", NULL, "empty"},
    {V "name: 010\n", "P009", NULL, "octal"},
    {V "name: 0x1f\n", "P009", NULL, "hexadecimal"},
    {V "name: 1_000\n", "P009", NULL, "number"},
    {V "name: 1.0\n", "P009", NULL, "number"},
    {V "name: .inf\n", "P009", NULL, "number"},
    {V "name: 22:22\n", "P009", NULL, "base 60"},
    {V "name: 2026-11-21\n", "P009", NULL, "date"},
    {RULES "  - { id: a, match: { host: 1.1.1.1:443 }, decide: deny }\n", "P009", "policy.yaml:3:29", "base 60"},
    {V "upstreams: [{ host: a.example, cleartext_credentials: yes }]\n", "P008", NULL, "true or false"},
    {RULE ", ws: {} }, decide: allow, messages: { send: both } }\n", "P008", NULL, "as in [text, binary]"},
    {V "upstreams: [{ host: a.example, cleartext_credentials: flase }]\n", "P008", NULL, "true or false"},
    {V "upstreams: [{ host: a.example, port: 0443 }]\n", "P008", NULL, "number"},
    {V "upstreams: [{ host: a.example, port: 65536 }]\n", "P008", NULL, "65535"},
    /* names that are nearly right, and paths in another language */
    {V "credentials: { key: { source: { env: K }, inject: { basic: true }, only: [{ host: a.example }] } }\n"
       "rules: [{ id: a, match: { host: a.example }, decide: allow, use: kye }]\n",
     "P011", NULL, "there is no credential \"kye\"; did you mean \"key\"?"},
    {V "scopes: { build: { sandboxes: [\"ci-*\"] } }\n"
       "rules: [{ id: a, scope: biuld, match: { host: a.example }, decide: deny }]\n",
     "P011", NULL, "there is no scope \"biuld\"; did you mean \"build\"?"},
    {RULE ", path: \"^/v1/.*\" }, decide: allow }\n", "P013", NULL, "is a regular expression, and a path is a glob"},
    {RULE ", path: \"/v1/(a|b)\" }, decide: allow }\n", "P013", NULL, "write a path for each alternative"},
    {RULE ", path: /v1/<id> }, decide: allow }\n", "P013", NULL, "{name} stands for one segment"},
    /* keys */
    {V "ruels: []\n", "P006", "policy.yaml:2:1", "did you mean \"rules\"?"},
    {RULES "  - { id: a, match: { host: a.example }, alow: true }\n", "P006", "policy.yaml:3:42", NULL},
    {RULE " } }\n", "P010", "policy.yaml:3:5", "\"decide\""},
    {RULE ", hsot: b }, decide: deny }\n", "P006", NULL, "did you mean \"host\"?"},
    {RULE " }, decide: alow }\n", "P008", NULL, "allow"},
    {RULE " }, decide: Allow }\n", "P008", NULL, "allow"},
    {RULE " }, decide: [allow] }\n", "P008", NULL, "single value"},
    {RULES "  a: b\n", "P008", NULL, "a list is wanted"},
    {RULE ", method: [] }, decide: deny }\n", "P008", NULL, "empty list"},
    {RULE ", query: {} }, decide: deny }\n", "P008", NULL, "empty mapping"},
    {RULE " }, except: [{}], decide: deny }\n", "P015", NULL, "empty exception"},
    /* known, not enforced, refused */
    {RULE ", aws: {} }, decide: deny }\n", "P007", "policy.yaml:3:40", "not available yet"},
    {RULE ", multipart: [] }, decide: deny }\n", "P008", NULL, "asks nothing"},
    {RULE ", multipart: [{ equals: x }] }, decide: deny }\n", "P015", NULL, "about one thing"},
    {RULE ", multipart: [{ field: a, file: a, equals: x }] }, decide: deny }\n", "P015", NULL, "about one thing"},
    {RULE ", multipart: [{ file: a, int_lte: 5 }] }, decide: deny }\n", "P015", NULL, "no numbers"},
    {RULE ", multipart: [{ content_type: a, equals: Image/png }] }, decide: deny }\n", "P013", NULL, "small letters"},
    {RULE ", multipart: [{ field: a, equals: x }], form: [{ field: a, equals: x }] }, decide: deny }\n", "P015", NULL,
     "two rules"},
    {RULE ", multipart: [{ field: a, equals: x }] }, decide: allow, limits: { sum: { field: a, max: 1, every: 1d } } "
          "}\n",
     "P015", NULL, "nothing of a form with files is added up"},
    {RULE ", body: {} }, decide: deny }\n", "P007", NULL, "not available yet"},
    {RULE ", k8s: {} }, decide: deny }\n", "P007", NULL, "not available yet"},
    {RULE ", ws: [a] }, decide: deny }\n", "P008", NULL, "mapping"},
    {RULE ", ws: { subprotocol: [] } }, decide: deny }\n", "P008", NULL, "empty list"},
    {RULE " }, decide: allow, messages: { send: text } }\n", "P015", NULL, "with ws:"},
    {RULE ", ws: {} }, decide: deny, messages: { send: text } }\n", "P015", NULL, "allows or holds"},
    {RULE ", ws: {} }, decide: allow, messages: { max: 1KiB } }\n", "P010", NULL, "\"send\""},
    {RULE ", ws: {} }, decide: allow, messages: { send: ping } }\n", "P008", NULL, "binary"},
    {RULE ", ws: {} }, decide: allow, messages: { send: text, max: 193KiB } }\n", "P008", NULL, "196608"},
    {RULE ", ws: {} }, decide: allow, messages: { send: text, within: 8d } }\n", "P008", NULL, NULL},
    {RULE " }, decide: hold, when: {} }\n", "P010", NULL, "\"zone\""},
    {RULE " }, decide: hold, limits: {} }\n", "P015", NULL, "how much"},
    {RULE " }, decide: hold, over: b }\n", "P015", NULL, "allows and has limits"},
    {RULE " }, decide: hold, approve: { quorum: 9 } }\n", "P008", NULL, NULL},
    {V "include: [a.yaml]\n", "P018", ":2:11", "(policy.yaml includes a.yaml)"},
    {V "learning: { until: x }\n", "P008", NULL, "until 20"},
    {V "learning: 2026-11-23T18:00:00Z\n", "P008", NULL, "until 20"},
    {V "learning: until tomorrow\n", "P008", NULL, "with its zone"},
    {V "learning: until 2026-11-23T18:00:00\n", "P008", NULL, "with its zone"},
    {V "learning: until 2026-11-23T18:00:00Z\n", "P015", "policy.yaml:2:11", "24 hours"},
    {V "defaults: { store_lost: allow-reads }\n", "P007", NULL, "not available yet"},
    {V "defaults: { unmatched_host: allow }\n", "P008", NULL, "one of deny"},
    {V "approvers: { m: { operators: [a], quorum: 2 } }\n", "P015", NULL, "can never be"},
    /* patterns */
    {RULES "  - { id: a, match: { host: \"*\" }, decide: allow }\n", "P013", NULL, "wildcard"},
    {RULES "  - { id: a, match: { host: \"*.com\" }, decide: allow }\n", "P013", NULL, "top-level"},
    {RULES "  - { id: a, match: { host: \"*.co.uk\" }, decide: allow }\n", "P013", "policy.yaml:3:29",
     "public suffix"},
    {RULES "  - { id: a, match: { host: [a.example, \"*.github.io\"] }, decide: hold }\n", "P013", "policy.yaml:3:41",
     "public suffix"},
    {RULES "  - { id: a, match: { host: \"**.s3.amazonaws.com\" }, decide: allow }\n", "P013", NULL, "public suffix"},
    {RULES "  - { id: a, match: { host: \"**.amazonaws.com\" }, decide: allow }\n", "P013", NULL, "any customer"},
    {RULES "  - { id: a, match: { host: \"*.xn--p1ai\" }, decide: allow }\n", "P013", NULL, "top-level"},
    {RULES "  - { id: a, match: { host: \"*.\u516c\u53f8.cn\" }, decide: allow }\n", "P013", NULL, "public suffix"},
    {V
     "packs: [{ pack: npm@1, hosts: [\"*.vercel.app\"] }]\nrules: [{ id: a, match: { op: npm.publish }, decide: hold "
     "}]\n",
     "P013", NULL, "public suffix"},
    {V "upstreams: [{ host: \"*.github.io\" }]\n", "P013", "policy.yaml:2:21", "exactly"},
    {V "credentials: { c: { source: { env: A }, inject: { basic: true }, only: [{ host: \"*.github.io\" }] } }\n",
     "P013", NULL, "exactly"},
    /* names of other scripts (C19) */
    {RULES "  - { id: a, match: { host: B\u00fccher.example }, decide: deny }\n", "P013", "policy.yaml:3:29",
     "lower case"},
    {RULES "  - { id: a, match: { host: a\u3002example }, decide: deny }\n", "P013", "policy.yaml:3:29", "IDNA2008"},
    {RULES "  - { id: a, match: { host: \uff47ithub.com }, decide: deny }\n", "P013", NULL, "IDNA2008"},
    {RULES "  - { id: a, match: { host: \u2460.example }, decide: deny }\n", "P013", NULL, "IDNA2008"},
    {RULES "  - { id: a, match: { host: a.example, path: /x }, except: [{ host: \u2665.example }], decide: deny }\n",
     "P013", NULL, "IDNA2008"},
    {RULES "  - { id: a, match: { host: xn--github-.com }, decide: deny }\n", "P013", "policy.yaml:3:29", "IDNA2008"},
    {RULES "  - { id: a, match: { host: xn--ls8h.example }, decide: deny }\n", "P013", NULL, "IDNA2008"},
    {V "upstreams: [{ host: b\u00fc_cher.example }]\n", "P013", "policy.yaml:2:21", "IDNA2008"},
    {V "upstreams: [{ host: b\u00fccher.example }, { host: xn--bcher-kva.example }]\n", "P012", NULL, "also at"},
    {RULES "  - { id: a, match: { host: \"a.*.com\" }, decide: allow }\n", "P013", NULL, "wildcard"},
    {RULES "  - { id: a, match: { host: \"https://a.example\" }, decide: allow }\n", "P013", NULL, "scheme"},
    {RULES "  - { id: a, match: { host: \"a.example:443\" }, decide: allow }\n", "P013", NULL, "port"},
    {RULES "  - { id: a, match: { host: A.example }, decide: allow }\n", "P013", NULL, "lower-case"},
    {RULES "  - { id: a, match: { host: a.example. }, decide: allow }\n", "P013", NULL, "dot"},
    {RULES "  - { id: a, match: { host: 127.1 }, decide: allow }\n", "P009", NULL, NULL},
    {RULES "  - { id: a, match: { host: \"0177.0.0.1\" }, decide: allow }\n", "P013", NULL, NULL},
    {RULES "  - { id: a, match: { host: \"[::0001]\" }, decide: allow }\n", "P013", NULL, NULL},
    {RULE ", path: a }, decide: allow }\n", "P013", NULL, "begin with '/'"},
    {RULE ", path: /a/../b }, decide: allow }\n", "P013", NULL, "spelling"},
    {RULE ", path: /a//b }, decide: allow }\n", "P013", NULL, "spelling"},
    {RULE ", path: /%61 }, decide: allow }\n", "P013", NULL, "spelling"},
    {RULE ", path: /%c3%a9 }, decide: allow }\n", "P013", NULL, "spelling"},
    {RULE ", path: \"/a?b=c\" }, decide: allow }\n", "P013", NULL, "query:"},
    {RULE ", path: \"/{id\" }, decide: allow }\n", "P013", NULL, "brace"},
    {RULE ", path: /a** }, decide: allow }\n", "P013", NULL, "whole segments"},
    {RULE ", method: get }, decide: allow }\n", "P013", NULL, "upper-case"},
    {RULE ", header: { \"a b\": c } }, decide: allow }\n", "P013", NULL, "header"},
    {RULES "  - { id: \"a b\", match: { host: a.example }, decide: deny }\n", "P008", NULL, "id"},
    {V "packs: [git@1]\n"
       "rules: [{ id: a, match: { host: a.example, git: { refs: main } }, decide: deny }]\n",
     "P013", NULL, "refs/"},
    /* names of things that are not there */
    {RULE ", op: git.push }, decide: deny }\n", "P011", NULL, "no pack"},
    {V "packs: [git@1]\nrules: [{ id: a, match: { host: a.example, op: git.psuh }, decide: deny }]\n", "P011", NULL,
     "did you mean \"git.push\"?"},
    {RULE ", git: { force: true } }, decide: deny }\n", "P011", NULL, "git@1"},
    {RULE ", resource: \"github:a/b\" }, decide: deny }\n", "P011", NULL, "pack"},
    {V "packs: [gti@1]\n", "P011", "policy.yaml:2:9", "no pack gti@1"},
    {V "packs: [git]\n", "P008", NULL, "version"},
    {V "packs: [git@2]\n", "P011", "policy.yaml:2:9", "the one that is there is git@1"},
    {RULE " }, decide: allow, use: c }\n", "P011", NULL, "no credential"},
    {RULE " }, decide: hold, approve: { by: m } }\n", "P011", NULL, "no approvers entry"},
    {RULE " }, decide: deny, scope: s }\n", "P011", NULL, "no scope"},
    {V "upstreams: [{ host: a.example, ca: none.pem }]\n", "P011", NULL, "none.pem"},
    {V "upstreams: [{ host: a.example, tls: { ca: none.pem } }]\n", "P011", "policy.yaml:2:43", "none.pem"},
    {V "upstreams: [{ host: a.example, tls: { crl: [crl.pem, none.pem] } }]\n", "P011", "policy.yaml:2:54", "CRL"},
    {V "upstreams: [{ host: a.example, tls: { crl: large.pem } }]\n", "P017", "policy.yaml:2:44", "revocation lists"},
    {V "upstreams: [{ host: a.example, tls: { ca: crl.pem } }]\n", "P011", "policy.yaml:2:43", "BEGIN CERTIFICATE"},
    {V "upstreams: [{ host: a.example, tls: { crl: ca.pem } }]\n", "P011", "policy.yaml:2:44", "BEGIN X509 CRL"},
    {V "upstreams: [{ host: a.example, tls: { ca: large-ca.pem } }]\n", "P017", "policy.yaml:2:43", "more than"},
    {V "upstreams: [{ host: a.example, tls: { pin: abc } }]\n", "P013", "policy.yaml:2:44", "no pin"},
    {V "upstreams: [{ host: a.example, tls: { pin: \"sha256/AAAA\" } }]\n", "P013", "policy.yaml:2:44", "no pin"},
    {V "upstreams: [{ host: a.example, tls: { pin: \"sha1/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\" } }]\n",
     "P013", NULL, "no pin"},
    {V "upstreams: [{ host: a.example, tls: { min: \"1.1\" } }]\n", "P008", "policy.yaml:2:44", "1.2"},
    {V "upstreams: [{ host: a.example, tls: { verify: false } }]\n", "P006", NULL, "verify"},
    {V "credentials: { c: { source: { env: A }, inject: { client_certificate: false }, only: [{ host: a.example }] } "
       "}\n",
     "P015", NULL, "is true"},
    {V "credentials: { c: { source: { env: A }, inject: { client_certificate: true, basic: true }, only: [{ host: "
       "a.example }] } }\n",
     "P015", NULL, "nothing else"},
    {V "credentials: { c: { source: { env: A }, inject: { client_certificate: true }, only: [{ host: a.example, "
       "scheme: "
       "http }] } }\n",
     "P015", NULL, "https only"},
    /* combinations */
    {V "upstreams: [{ host: a.example, ca: ca.pem, tls: { ca: ca.pem } }]\n", "P015", "policy.yaml:2:55", "beside"},
    {RULE " }, decide: deny, approve: { reason: required } }\n", "P015", NULL, "hold"},
    {RULES "  - { id: a, match: { method: GET }, decide: allow }\n", "P015", NULL, "every host"},
    {V "packs: [git@1]\nrules: [{ id: a, match: { op: git.push }, decide: hold }]\n", "P015", NULL, "every host"},
    {V "packs: [git@1]\nrules: [{ id: a, match: { resource: \"git:*/x\" }, decide: hold }]\n", "P015", NULL,
     "every host"},
    {RULES "  - { id: a, match: { host: a.example }, decide: deny }\n  - { id: a, match: { host: b.example }, "
           "decide: deny }\n",
     "P012", "policy.yaml:4:11", "policy.yaml:3"},
    {V "credentials: { c: { source: { env: A, file: /b }, inject: { basic: true }, only: [{ host: a.example }] } }\n",
     "P015", NULL, "one of"},
    {V "credentials: { c: { source: { env: A }, inject: { basic: true }, only: [] } }\n", "P015", NULL, "no place"},
    {V "credentials: { c: { source: { env: A }, inject: { basic: true }, only: [{ host: \"*.a.example\" }] } }\n",
     "P013", NULL, "exactly"},
    {V "credentials: { c: { source: { env: A }, inject: { header: Host, format: \"{}\" }, only: [{ host: a.example "
       "}] } }\n",
     "P008", NULL, "may stand in"},
    {V "credentials: { c: { source: { env: A }, inject: { header: X, format: \"Bearer\" }, only: [{ host: a.example "
       "}] } }\n",
     "P008", NULL, "{} once"},
    {V "upstreams: [{ host: a.example }, { host: a.example, port: 443 }]\n", "P012", NULL, "also at"},
    {V "upstreams: [{ host: a.example, allow_private: 10.0.0.0 }]\n", "P013", NULL, "range"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const struct refused *r = &refused[i];
        struct kit k;
        bool loaded = kit_load(&k, r->yaml, NULL);
        if (loaded || !kit_problem(&k, r->code, r->where, r->words) || k.e.text[0] == 0) {
            fprintf(stderr, "--- %s\nwanted %s %s %s\n", r->yaml, r->code, r->where ? r->where : "",
                    r->words ? r->words : "");
            for (size_t j = 0; j < k.nproblems; j++)
                fprintf(stderr, "got    %s\n", k.problems[j]);
            fail();
        }
        kit_free(&k);
    }
    printf("ok B51 policy\n");
}

/* What follows from a mistake is not said besides. */
static void test_one_mistake_is_one_problem(void **state)
{
#define USES                                                                                                         \
    V "credentials: { c: { source: { env: A }, inject: { basic: true }, only: [{ host: a.example }] } }\nrules:\n"
#define DECIDES USES "  - { id: a, match: { host: a.example }, use: c, approve: { within: 30m }, decide: "
#define LIMITS  RULES "  - { id: a, match: { host: a.example }, limits: { requests: 1/1d }, over: b, decide: "
    static const struct refused once[] = {
        {DECIDES "alow }\n", "P008", NULL, NULL},
        {DECIDES "holdd }\n", "P008", NULL, NULL},
        {DECIDES "[hold] }\n", "P008", NULL, NULL},
        {DECIDES "\"\" }\n", "P008", NULL, NULL},
        {LIMITS "alow }\n  - { id: b, match: { host: a.example }, decide: hold }\n", "P008", ":3:", NULL},
        {LIMITS "allow }\n  - { id: b, match: { host: a.example }, decide: ask }\n", "P008", ":4:", NULL},
        {RULES "  - { id: a, match: { hosts: a.example }, decide: allow }\n", "P006", NULL, "did you mean \"host\"?"},
        {RULES "  - id: a\n    match:\n    decide: allow\n", "P008", ":4:", "has no value"},
        {RULES "  - { id: a, macth: { host: a.example }, decide: allow }\n", "P006", NULL, "did you mean \"match\"?"},
        {V "upstreams: [{ hosts: a.example }]\n", "P006", NULL, "did you mean \"host\"?"},
        {V "upstreams: [{ host: a.example, regoin: eu }]\nscopes: { s: { sandboxes: x, regions: eu } }\n", "P006",
         NULL, NULL},
        {V
         "packs: [gti@1]\nrules:\n  - { id: a, match: { op: git.fetch }, decide: allow }\n  - { id: b, match: { op: "
         "[git.push, npm.publish], resource: \"git:x/y\", git: {} }, decide: hold }\n",
         "P011", ":2:9", "no pack gti@1"},
        {V "packs: [git@2]\nrules: [{ id: a, match: { op: git.fetch }, decide: allow }]\n", "P011", "policy.yaml:2:9",
         "there is no pack git@2: the one that is there is git@1"},
        {V "packs: [git]\nrules: [{ id: a, match: { op: git.fetch }, decide: allow }]\n", "P008", ":2:9",
         "named with its version"},
        {RULES "  - { id: a, match: { op: git.fetch }, decide: allow }\n", "P011", NULL, "git.fetch"},
        {V "credentials: { c: { source: { envv: A }, lease: github, inject: { basic: true }, only: [] } }\n"
           "rules: [{ id: a, match: { host: a.example, effect: read }, use: c, decide: allow }]\n",
         "P006", NULL, NULL},
        {V "scopes: { s: { sandbox: x } }\nrules: [{ id: a, scope: s, match: { host: a.example }, decide: deny }]\n",
         "P006", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++) {
        struct kit k;
        bool loaded = kit_load(&k, once[i].yaml, NULL);
        if (loaded || k.nproblems != 1 || !kit_problem(&k, once[i].code, once[i].where, once[i].words)) {
            fprintf(stderr, "--- %s\nwanted %s alone\n", once[i].yaml, once[i].code);
            for (size_t j = 0; j < k.nproblems; j++)
                fprintf(stderr, "got    %s\n", k.problems[j]);
            fail();
        }
        kit_free(&k);
    }
}

static void test_accepted(void **state)
{
    static const char *const good[] = {
        V,
        V "rules: []\n",
        V "name: \"no\"\nrules: [{ id: \"1\", match: {}, decide: deny }]\n",
        RULE ", path: [/, /a/, \"/a/*/b\", \"/**\", \"/a/v*-x/**/z\", /%C3%A9] }, decide: deny }\n",
        RULES "  - { id: a, match: { host: [\"127.0.0.1\", \"[::1]\", \"*.b.example\", \"**.c.example\", "
              "xn--bcher-kva.example, \"*.b\u00fccher.example\"] }, "
              "decide: allow }\n",
        RULES "  - { id: a, match: { host: [\"*.github.io\", \"**.co.uk\"] }, decide: deny }\n",
        RULE ", port: [443, 8443], scheme: [http, https], method: [GET, M-SEARCH], effect: [read, spend], query: { "
             "a: [b, \"c*\"] }, "
             "header: { Accept: \"*/*\" } }, except: [{ path: /x }], decide: hold, approve: { within: 90s, "
             "inline_wait: 0s, reason: "
             "optional }, say: \"two\\nlines\", instead: x }\n",
        V "packs: [{ pack: npm@1, hosts: [\"registry.demo.test:4873\", npm.demo.test] }]\nrules: [{ id: a, match: { "
          "op: npm.publish }, "
          "decide: hold }]\n",
        V "defaults: { unmatched_host: deny, store_lost: deny }\n",
        V "upstreams: [{ host: a.example, port: 8443, address: \"::1\", ca: ca.pem, allow_private: [10.0.0.0/8, "
          "\"fd00::/8\"] }]\n",
        V "upstreams: [{ host: a.example, tls: { ca: ca.pem, crl: [crl.pem, crl.pem], min: \"1.3\", pin: "
          "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= } }]\n",
        "# yaml\n---\n" V "...\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct kit k;
        if (!kit_load(&k, good[i], NULL)) {
            fprintf(stderr, "--- %s\n", good[i]);
            for (size_t j = 0; j < k.nproblems; j++)
                fprintf(stderr, "got %s\n", k.problems[j]);
            fail();
        }
        kit_free(&k);
    }
}

#define CRED                                                                                                         \
    "credentials: { c: { source: { env: A }, inject: { basic: true }, only: [{ host: a.example }, { host: "          \
    "b.example }] } }\n"

#define OPEN_CRED                                                                                                    \
    "credentials: { c: { source: { env: A }, inject: { basic: true }, only: [{ host: a.example, scheme: http }, "    \
    "{ host: a.example, port: 8443 }] } }\n"
#define OPEN_RULE                                                                                                    \
    "rules: [{ id: a, match: { host: a.example, scheme: http, effect: read }, decide: allow, use: c }, { id: b, "    \
    "match: { host: a.example, port: 8443, effect: read }, decide: allow, use: c }]\n"

/* The same, in order. */
static void test_not_warned(void **state)
{
    struct kit k;
    (void)state;
    assert_true(kit_load(
        &k, V OPEN_CRED OPEN_RULE "upstreams: [{ host: a.example, port: 80, cleartext_credentials: true }]\n", NULL));
    assert_false(kit_problem(&k, "P106", NULL, NULL) || kit_problem(&k, "P111", NULL, NULL));
    assert_int_equal(kit_get(&k, "http://a.example/")->verdict, VERDICT_ALLOW);
    kit_free(&k);
    assert_true(kit_load(&k, V OPEN_CRED OPEN_RULE, NULL));
    assert_string_equal(kit_get(&k, "http://a.example/")->code, "credential-cleartext");
    assert_int_equal(kit_get(&k, "http://a.example/")->verdict, VERDICT_DENY);
    assert_int_equal(kit_get(&k, "https://a.example:8443/")->verdict, VERDICT_ALLOW);
    kit_free(&k);
}

static void test_warned(void **state)
{
    static const struct refused warned[] = {
        {V CRED "rules: [{ id: a, match: { host: a.example, effect: read }, decide: allow, use: c }]\n", "P101", NULL,
         "b.example"},
        {V CRED, "P105", NULL, "no rule uses"},
        {V CRED "rules: [{ id: a, match: { host: d.example, effect: read }, decide: allow, use: c }]\n", "P106", NULL,
         "d.example"},
        {V CRED "rules: [{ id: a, match: { host: a.example, port: 8443, effect: read }, decide: allow, use: c }]\n",
         "P106", NULL, "another port or scheme"},
        {V CRED
         "rules: [{ id: a, match: { host: a.example, port: [443, 8443], effect: read }, decide: allow, use: c }]\n",
         "P106", NULL, "not its port 8443"},
        {V CRED
         "rules: [{ id: a, match: { host: a.example, scheme: [https, http], effect: read }, decide: allow, use: "
         "c }]\n",
         "P106", NULL, "not over http"},
        {V OPEN_CRED OPEN_RULE, "P111", NULL, "http://a.example:80 in clear text"},
        {V OPEN_CRED OPEN_RULE "upstreams: [{ host: a.example, cleartext_credentials: true }]\n", "P111", NULL,
         "this host and port"},
        {RULE " }, decide: allow }\n", "P104", NULL, "writes"},
        {RULE ", jsonrpc: { params: [{ pointer: /0, exists: true }] } }, decide: allow }\n", "P104", NULL, "writes"},
        {RULE ", effect: read }, decide: allow }\n  - { id: b, match: { host: a.example }, decide: deny }\n", "P103",
         "policy.yaml:3", "\"b\""},
        {V "packs: [git@1]\nrules: [{ id: a, match: { host: a.example, op: git.fetch, effect: write }, decide: hold "
           "}]\n",
         "P102", NULL, "never"},
        {V, "P107", NULL, "everything is denied"},
        {RULE ", effect: read, ws: {} }, decide: allow, messages: { send: text } }\n", "P110", NULL, "freeze"},
        {RULES "  - { id: a, match: { host: b\u00fccher.example, effect: read }, decide: allow }\n", "P108",
         "policy.yaml:3:29", "is xn--bcher-kva.example on the wire"},
        {RULES "  - { id: a, match: { host: \u0430pi.example, effect: read }, decide: allow }\n", "P108", NULL,
         "xn--pi-"},
        {RULES "  - { id: a, match: { host: \"*.atlassian.net\", effect: read }, decide: allow }\n", "P109",
         "policy.yaml:3:29", "an attacker too"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(warned) / sizeof(warned[0]); i++) {
        struct kit k;
        assert_true(kit_load(&k, warned[i].yaml, NULL));
        if (!kit_problem(&k, warned[i].code, warned[i].where, warned[i].words)) {
            fprintf(stderr, "--- %s\nwanted %s\n", warned[i].yaml, warned[i].code);
            fail();
        }
        kit_free(&k);
    }
    printf("ok B45 policy\n");
}

static void test_floors(void **state)
{
    struct kit k;
    (void)state;
    assert_false(kit_load(&k, V, V "rules: [{ id: f, match: { host: a.example }, decide: hold }]\n"));
    assert_true(kit_problem(&k, "P014", "floors.yaml:2:", "only deny"));
    kit_free(&k);
    assert_false(kit_load(&k, V, V "credentials: {}\nrules: []\n"));
    assert_true(kit_problem(&k, "P006", "floors.yaml:2:1", "a floors file has no key"));
    kit_free(&k);
    assert_false(kit_load(&k, RULE " }, decide: deny }\n",
                          V "rules: [{ id: a, match: { host: a.example }, decide: deny }]\n"));
    assert_true(kit_problem(&k, "P012", "floors.yaml:2:", "policy.yaml:3"));
    kit_free(&k);
    assert_true(kit_load(&k, RULE " }, decide: allow }\n",
                         V "rules: [{ id: f, match: { host: a.example, path: /no }, decide: deny }]\n"));
    assert_string_equal(kit_get(&k, "https://a.example/no")->code, "floor");
    assert_int_equal(kit_get(&k, "https://a.example/yes")->verdict, VERDICT_ALLOW);
    kit_free(&k);
}

/* A limit: taken at it, refused one past it. */
static void test_size(void **state)
{
    size_t n = POLICY_FILE_MAX;
    char *text = malloc(n + 2);
    struct kit k;
    (void)state;
    memset(text, '#', n + 1);
    memcpy(text, V, sizeof(V) - 1);
    text[n] = 0;
    assert_true(kit_load(&k, text, NULL));
    kit_free(&k);
    text[n] = '#';
    text[n + 1] = 0;
    assert_false(kit_load(&k, text, NULL));
    assert_true(kit_problem(&k, "P002", NULL, "8388608"));
    kit_free(&k);
    free(text);
}

/* What costs the square of its number before it is refused is refused by its number. */
static void test_number(void **state)
{
    static char text[256 * 1024];
    struct kit k;
    size_t n = 0;
    (void)state;
    for (int i = 0; i < 101; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%%TAG !a%d! x\n", i);
    (void)snprintf(text + n, sizeof(text) - n, "---\n%s", V);
    assert_false(kit_load(&k, text, NULL));
    assert_true(kit_problem(&k, "P005", "policy.yaml:101:1", "directives"));
    kit_free(&k);
    static struct policy_problem kept[1100];
    struct policy_problems all = {kept, 0, 1100};
    struct dynbuf image;
    struct err e = {""};
    n = (size_t)snprintf(text, sizeof(text), "%s  - { id: a, match: { host: a.example }, decide: deny, when: [",
                         RULES);
    for (int i = 0; i <= 1000; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s{ days: mon, zone: \"?%d\" }", i ? ",\n" : "", i);
    (void)snprintf(text + n, sizeof(text) - n, "] }\n");
    const struct policy_file file = {"policy.yaml", span_str(text), false};
    dynbuf_init(&image, POLICY_IMAGE_MAX);
    assert_int_equal(policy_load(&file, 1, NULL, NULL, 0, &image, &all, &e), -1);
    size_t many = 0;
    while (many < all.n && strcmp(kept[many].text, "more than 1000 time zones in one policy") != 0)
        many++;
    assert_true(all.n > 1000 && many < all.n);
    assert_string_equal(kept[many].code, "P017");
    dynbuf_free(&image);
}

/* The path in the image is the one to open, wherever the daemon stands. */
static void test_source_file(void **state)
{
    static const struct {
        const char *policy, *written, *opened;
    } cases[] = {
        {"/etc/cs/policy.yaml", "key", "/etc/cs/key"},
        {"/etc/cs/policy.yaml", "../keys/api.txt", "/etc/cs/../keys/api.txt"},
        {"/etc/cs/policy.yaml", "/run/keys/api", "/run/keys/api"},
        {"conf/policy.yaml", "key", "conf/key"},
        {"policy.yaml", "sub/key", "sub/key"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[300];
        struct dynbuf image;
        struct err e = {""};
        struct credential c;
        snprintf(
            text, sizeof(text),
            V "credentials: { c: { source: { file: %s }, inject: { basic: true }, only: [{ host: a.example }] } }\n",
            cases[i].written);
        struct policy_file f = {cases[i].policy, span_str(text), false};
        dynbuf_init(&image, POLICY_IMAGE_MAX);
        assert_int_equal(policy_load(&f, 1, NULL, NULL, 0, &image, NULL, &e), 0);
        struct policy *p = policy_open(dynbuf_span(&image), &e);
        assert_non_null(p);
        assert_true(policy_credential(p, 0, &c));
        assert_int_equal(c.source, SOURCE_FILE);
        if (!span_eq(c.source_arg, span_str(cases[i].opened)))
            fail_msg("%s: %.*s", cases[i].opened, SPAN_FMT(c.source_arg));
        policy_close(p);
        dynbuf_free(&image);
    }
}

/* Found by different checks, one after the other, and told in the order of the file. */
static void test_problems_are_told_in_the_order_of_the_lines(void **state)
{
    struct kit k;
    (void)state;
    assert_false(kit_load(&k,
                          V "packs: [gti@1]\nrules:\n"
                            "  - { id: a, match: { host: a.example, path: v1 }, decide: allow, use: none }\n"
                            "  - { id: b, match: { host: a.example, effect: wirte }, decide: deny }\n",
                          NULL));
    assert_true(k.nproblems >= 3);
    for (size_t i = 1; i < k.nproblems; i++)
        assert_true(strcmp(strchr(k.problems[i - 1], 'p'), strchr(k.problems[i], 'p')) <= 0);
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_warned),      cmocka_unit_test(test_not_warned),
        cmocka_unit_test(test_floors),      cmocka_unit_test(test_size),
        cmocka_unit_test(test_number),      cmocka_unit_test(test_problems_are_told_in_the_order_of_the_lines),
        cmocka_unit_test(test_source_file), cmocka_unit_test(test_one_mistake_is_one_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
