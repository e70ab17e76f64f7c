/* One request in many spellings: what restricts fits each of them, what lets through fits what is written (B60 to
 * B63). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/spelling/spelling.h"
#include "policy_kit.h"

static const char rules[] =
    "version: 1\n"
    "packs: [npm@1, git@1, pypi@1]\n"
    "rules:\n"
    "  - { id: all, match: { host: [a.test, registry.npmjs.org, upload.pypi.org] }, decide: allow }\n"
    "  - { id: iam, match: { host: a.test, path: \"/v1/projects/*:setIamPolicy\" }, decide: deny }\n"
    "  - { id: core, match: { host: a.test, path: /v1/teams/@core/members }, decide: hold }\n"
    "  - { id: odd, match: { host: a.test, path: \"/v1/odd%20name%3Ax\" }, decide: deny }\n"
    "  - { id: less, match: { host: a.test, path: /less/** }, except: [{ path: /less/a+b }, { path: \"/less/*/*\" "
    "}], "
    "decide: deny }\n"
    "  - { id: acme, match: { resource: \"npm:@acme/app\", op: npm.publish }, decide: deny }\n"
    "  - { id: tags, match: { host: registry.npmjs.org, op: npm.tag.set }, decide: hold }\n"
    "  - { id: slash, match: { host: registry.npmjs.org, path: \"/@corp/**\" }, decide: deny }\n"
    "  - { id: danger, match: { host: a.test, header: { X-Danger: \"1\" } }, decide: deny }\n"
    "  - { id: pair, match: { host: a.test, header: { X-Pair: \"1, 2\" } }, decide: deny }\n"
    "  - { id: words, match: { host: a.test, header: { X-Words: \"safe mode\" } }, decide: hold }\n"
    "  - { id: json, match: { host: a.test, path: /json, json: [{ pointer: /mode, equals: wipe }] }, decide: deny }\n"
    "  - { id: many, match: { host: a.test, path: /json, json: [{ pointer: /num, equals: \"5\" }] }, decide: deny }\n"
    "  - { id: form, match: { host: a.test, path: /form, form: [{ field: mode, equals: wipe }] }, decide: deny }\n"
    "  - { id: five, match: { host: a.test, path: /form, form: [{ field: num, equals: \"5\" }] }, decide: deny }\n"
    "  - { id: query, match: { host: a.test, query: { mode: [wipe, \"7\"] } }, decide: deny }\n"
    "  - { id: shut, match: { host: a.test, path: [/shut/, \"/shut/*/x%21/\"] }, decide: deny }\n"
    "  - { id: app, match: { resource: \"git:a.test/acme/app\" }, decide: deny }\n"
    "  - { id: upload, match: { op: pypi.upload }, decide: deny }\n"
    "  - { id: delete, match: { host: a.test, method: DELETE }, decide: deny }\n"
    "  - { id: only, match: { host: a.test, path: /only, query_names: [a] }, decide: deny }\n"
    "  - { id: every, match: { host: a.test, path: /every, query_names: [] }, decide: deny }\n"
    "  - { id: nokey, match: { host: a.test, path: /once, form: [{ field: key, absent: true }] }, "
    "decide: deny }\n"
    "  - { id: nodry, match: { host: a.test, path: /dry, method: POST, json: [{ pointer: /dry, absent: true }] }, "
    "decide: hold }\n"
    "  - { id: end, match: { host: a.test, path: [/v1/wipe/all, /v1/items/5, \"/v1/caf%C3%A9/x%20y\"] }, decide: "
    "deny }\n"
    "  - { id: force, match: { host: a.test, query: { force: \"true\" } }, decide: deny }\n"
    "  - { id: fast, match: { host: a.test, query: { fast: \"1\" } }, decide: deny }\n"
    "  - { id: id, match: { host: a.test, query: { id: \"15\" } }, decide: deny }\n"
    "  - { id: aye, match: { host: a.test, path: /json, json: [{ pointer: /yes, equals: \"true\" }] }, decide: deny "
    "}\n"
    "  - { id: nay, match: { host: a.test, path: /json, json: [{ pointer: /no, equals: \"false\" }] }, decide: deny "
    "}\n"
    "  - { id: say, match: { host: a.test, header: { X-Say: [\"a b\", \"wi\\\\pe\", \"true\"] } }, decide: deny }\n"
    "  - { id: spaced, match: { host: a.test, query: { w: \"a  b\" } }, decide: deny }\n";

static enum verdict ask(struct kit *k, const char *method, const char *url, const char *fields, const char *body)
{
    return kit_judge(k, "vm", method, url, fields, body, body ? strlen(body) : 0, true)->verdict;
}

struct row {
    const char *method, *url, *fields, *body;
    enum verdict most; /* looser than this it must not be; exactly this where `exact` */
    bool exact;
};

static void run(const struct row *rows, size_t n, const char *ids)
{
    struct kit k;
    if (!kit_load(&k, rules, NULL))
        fail_msg("%s", k.problems[0]);
    for (size_t i = 0; i < n; i++) {
        enum verdict is = ask(&k, rows[i].method, rows[i].url, rows[i].fields, rows[i].body);
        if (is > rows[i].most || (rows[i].exact && is != rows[i].most))
            fail_msg("%s %s %s %s: %s by %.*s", rows[i].method, rows[i].url, rows[i].fields ? rows[i].fields : "",
                     rows[i].body ? rows[i].body : "", verdict_name(is), (int)k.d.rule.id.n,
                     (const char *)k.d.rule.id.p);
    }
    kit_free(&k);
    kit_covered(ids);
}
#define RUN(rows, ids) run(rows, sizeof(rows) / sizeof((rows)[0]), ids)

static void paths(void **state)
{
    static const struct row rows[] = {
        {"POST", "https://a.test/v1/projects/p:setIamPolicy", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/v1/projects/p%3AsetIamPolicy", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/v1/projects/p%3asetIAMpolicy/", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/v1//projects/p%3AsetIamPolicy;v=1", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/v1/projects/p%3AsetIamPolicy%3Fx", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/v1/projects/p:getIamPolicy", NULL, "x", VERDICT_ALLOW, true},
        {"PUT", "https://a.test/v1/teams/@core/members", NULL, "x", VERDICT_HOLD, true},
        {"PUT", "https://a.test/v1/teams/%40core/members", NULL, "x", VERDICT_HOLD, true},
        {"PUT", "https://a.test/v1/teams/%40core/members/", NULL, "x", VERDICT_HOLD, true},
        {"PUT", "https://a.test/v1/teams/%40core%23/members", NULL, "x", VERDICT_ALLOW, true},
        {"PUT", "https://a.test/v1/teams/%40core/members%23", NULL, "x", VERDICT_HOLD, true},
        {"GET", "https://a.test/v1/odd%20name%3Ax", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/odd%20name:x", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/less/a+b", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/less/a%2Bb", NULL, NULL, VERDICT_DENY, true}, /* what takes away is what is written */
        {"GET", "https://a.test/less/x/", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/shut", NULL, NULL, VERDICT_DENY, true}, /* a pattern with a slash at its end */
        {"GET", "https://a.test/Shut;a=1", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/shut/a/x!", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/shut/a", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/acme/app.git/info/refs?service=git-upload-pack", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/acme/app.GIT/info/refs?service=git-upload-pack", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/acme/apps.git/info/refs?service=git-upload-pack", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/a/%2E%2E/b", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/a/..%3Fx", NULL, NULL, VERDICT_DENY, true},
    };
    (void)state;
    RUN(rows, "B60");
}

static void resources(void **state)
{
    static const struct row rows[] = {
        {"PUT", "https://registry.npmjs.org/@acme%2fapp", NULL, "{}", VERDICT_DENY, true},
        {"PUT", "https://registry.npmjs.org/%40acme%2Fapp", NULL, "{}", VERDICT_DENY, true},
        {"PUT", "https://registry.npmjs.org/%40acme/app", NULL, "{}", VERDICT_DENY, true},
        {"PUT", "https://registry.npmjs.org/@acme/app/", NULL, "{}", VERDICT_DENY, true},
        {"PUT", "https://registry.npmjs.org/@acme%2Fother", NULL, "{}", VERDICT_ALLOW, true},
        {"PUT", "https://registry.npmjs.org/-/package/@x%2Fy/dist-tags/latest", NULL, "1", VERDICT_HOLD, true},
        {"PUT", "https://registry.npmjs.org/-/package/%40x%2Fy/dist-tags/latest", NULL, "1", VERDICT_HOLD, true},
        {"PUT", "https://registry.npmjs.org/-%2Fpackage%2Fx%2Fdist-tags%2Flatest", NULL, "1", VERDICT_HOLD, true},
        {"POST", "https://upload.pypi.org/legacy/", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://upload.pypi.org/legacy", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://upload.pypi.org//legacy", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://upload.pypi.org/legacy//", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://upload.pypi.org/legacy;x", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://upload.pypi.org/other", NULL, "x", VERDICT_ALLOW, true},
        {"GET", "https://registry.npmjs.org/@corp/app", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://registry.npmjs.org/%40corp%2Fapp", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://registry.npmjs.org/@x%2Fy", NULL, NULL, VERDICT_ALLOW, true},
    };
    (void)state;
    RUN(rows, "B61");
}

static void fields(void **state)
{
    static const char *const danger[] = {"X-Danger: 1",
                                         "X-Danger: 1\xa0",
                                         "X_Danger: \xb9",
                                         "X-Danger: 2, \xff",
                                         "X-Danger: 2\nX-Danger: \xe9",
                                         "X-Danger: \u00e91",
                                         "X-Danger: 2, \"\u00e91\u00df\"",
                                         "x-danger: 1",
                                         "X_Danger: 1",
                                         "X.Danger: 1",
                                         "X-Danger: 1, 2",
                                         "X-Danger: 2,1",
                                         "X-Danger: 2 ,\t1 ",
                                         "X-Danger: 01",
                                         "X-Danger: +1",
                                         "X-Danger: 1.0",
                                         "X-Danger: \"1\"",
                                         "X-Danger: 1;q=0",
                                         "X-Danger: 2\nX-Danger: 1",
                                         "X-Danger: 1\nX_Danger: 2",
                                         "X-Pair: 1, 2",
                                         "X-Pair: 1,2",
                                         "X_Pair: 1 ,2,",
                                         "X-Pair: 1\nX-Pair: 2",
                                         "X-Pair: 1\nX_PAIR: 2"};
    static const char *const words[] = {"X-Words: safe mode", "X-Words: safe  mode", "X-Words: safe\tmode",
                                        "X_Words: SAFE \t mode", "X-Words: a, safe mode"};
    struct kit k;
    (void)state;
    assert_true(kit_load(&k, rules, NULL));
    for (size_t i = 0; i < sizeof(danger) / sizeof(danger[0]); i++)
        if (ask(&k, "GET", "https://a.test/x", danger[i], NULL) != VERDICT_DENY)
            fail_msg("%s passes", danger[i]);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (ask(&k, "GET", "https://a.test/x", words[i], NULL) != VERDICT_HOLD)
            fail_msg("%s is not held", words[i]);
    assert_int_equal(ask(&k, "GET", "https://a.test/x", "X-Danger: 12\nX-Pair: 1\nX-Words: safemode", NULL),
                     VERDICT_ALLOW);
    assert_int_equal(ask(&k, "GET", "https://a.test/x", "X-Danger: gr\u00f6\u00dfe\nX-Other: \xff", NULL),
                     VERDICT_ALLOW);
    kit_free(&k);
    kit_covered("B62");
}

/* Where a field lets something through, it must be all that any server sees of that name. */
static void fields_that_allow(void **state)
{
    struct kit k;
    (void)state;
    assert_true(kit_load(
        &k, "version: 1\nrules:\n  - { id: r, match: { host: a.test, header: { X-Safe: \"1\" } }, decide: allow }\n",
        NULL));
    assert_int_equal(ask(&k, "GET", "https://a.test/x", "X-Safe: 1", NULL), VERDICT_ALLOW);
    assert_int_equal(ask(&k, "GET", "https://a.test/x", "X_Safe: 1", NULL), VERDICT_DENY);
    assert_int_equal(ask(&k, "GET", "https://a.test/x", "X-Safe: 1\nX_Safe: 2", NULL), VERDICT_DENY);
    assert_int_equal(ask(&k, "GET", "https://a.test/x", "X-Safe: 1, 2", NULL), VERDICT_DENY);
    assert_int_equal(ask(&k, "GET", "https://a.test/x", "X-Safe: 01", NULL), VERDICT_DENY);
    assert_int_equal(ask(&k, "GET", "https://a.test/x", "X-Safe: 1\xa0", NULL), VERDICT_DENY);
    kit_free(&k);
}

#define JSON "Content-Type: application/json"
#define FORM "Content-Type: application/x-www-form-urlencoded"

static void bodies(void **state)
{
    static const struct row rows[] = {
        {"POST", "https://a.test/json", JSON, "{\"mode\": \"wipe\"}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"mode\": \"wipe\\u0000\"}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"mode\": \"wi\\u0000pe\"}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"mode\": \"\\u0000wipe\"}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"mode\": \" wipe\\n\"}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"mode\": \"list\"}", VERDICT_ALLOW, true},
        {"POST", "https://a.test/json", JSON, "{\"num\": 5}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"num\": \"05\"}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"num\": \"5.0\"}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"num\": 5e0}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON "\nContent_Type: text/plain", "{\"mode\": \"list\"}", VERDICT_DENY,
         true},
        {"POST", "https://a.test/json", JSON, "{\"num\": \"15\"}", VERDICT_ALLOW, true},
        {"POST", "https://a.test/form", FORM, "mode=wipe", VERDICT_DENY, true},
        {"POST", "https://a.test/form", FORM, "mode=wipe%00", VERDICT_DENY, true},
        {"POST", "https://a.test/form", FORM, "mode=wi%00pe", VERDICT_DENY, true},
        {"POST", "https://a.test/form", FORM, "mode=+wipe+", VERDICT_DENY, true},
        {"POST", "https://a.test/form", FORM, "mode=wip%2565", VERDICT_DENY, true},
        {"POST", "https://a.test/form", FORM, "num=05", VERDICT_DENY, true},
        {"POST", "https://a.test/form", FORM, "num=%2B5", VERDICT_DENY, true},
        {"POST", "https://a.test/form", FORM, "mode=list&num=6", VERDICT_ALLOW, true},
        {"GET", "https://a.test/q?mode=wip%2565", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?mode=+wipe", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?mode=07", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?mode=list", NULL, NULL, VERDICT_ALLOW, true},
    };
    (void)state;
    RUN(rows, "B63");
}

/* A name in another spelling, and what is no name at all. */
static void names(void **state)
{
    static const struct row rows[] = {
        {"GET", "https://a.test/q?%6Dode=wipe", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?mod%2565=wipe", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?mode%255B0%255D=wipe", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?mod%65x=wipe", NULL, NULL, VERDICT_ALLOW, true},
        {"POST", "https://a.test/form", FORM, "mod%2565=wipe", VERDICT_DENY, true},
        {"GET", "https://a.test/only?a=1", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/only?%2561=1", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/only?a=1&=2", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/only?a=1&b=2", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/every", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/every?;", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/every?=", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/every?;b", NULL, NULL, VERDICT_ALLOW, true},
        {"POST", "https://a.test/x?_method=DELETE", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/x?+_method=DELETE", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/x?%20_method=DELETE", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/x?_method%5B%5D=DELETE", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/x?[_method]=DELETE", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/x?a;%255Fmethod=DELETE", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/x?%24method=DELETE", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/x?method=list", NULL, "x", VERDICT_ALLOW, true},
    };
    (void)state;
    RUN(rows, "B60");
}

/* What is nothing, or is not there at all, is absent to what restricts. */
static void absent(void **state)
{
    static const struct row rows[] = {
        {"POST", "https://a.test/once", FORM, "key=1", VERDICT_ALLOW, true},
        {"POST", "https://a.test/once", FORM, "a=1", VERDICT_DENY, true},
        {"POST", "https://a.test/once", FORM, "a=1&key=", VERDICT_DENY, true},
        {"POST", "https://a.test/once", FORM, "a=1&key", VERDICT_DENY, true},
        {"POST", "https://a.test/once", FORM, "key=1&key=", VERDICT_DENY, true},
        {"POST", "https://a.test/once", NULL, NULL, VERDICT_DENY, true},
        {"PUT", "https://a.test/once", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/once", NULL, NULL, VERDICT_ALLOW, true},
        {"POST", "https://a.test/dry", JSON, "{\"dry\": true}", VERDICT_ALLOW, true},
        {"POST", "https://a.test/dry", JSON, "{}", VERDICT_HOLD, true},
        {"POST", "https://a.test/dry", JSON, "{\"dry\": null}", VERDICT_HOLD, true},
        {"POST", "https://a.test/dry", JSON, "{\"dry\": \"\"}", VERDICT_HOLD, true},
        {"POST", "https://a.test/dry", NULL, NULL, VERDICT_HOLD, true},
    };
    (void)state;
    RUN(rows, "B63");
}

/* A letter above ASCII that is one of it to who changes its case. */
static void letters(void **state)
{
    static const struct row rows[] = {
        {"POST", "https://a.test/json", JSON, "{\"mode\": \"w\xc4\xb1pe\"}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"mode\": \"W\\u0130PE\"}", VERDICT_DENY, true},
        {"POST", "https://a.test/form", FORM, "mode=w%C4%B1pe", VERDICT_DENY, true},
        {"GET", "https://a.test/q?mode=w%C4%B1pe", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?mode=w%C4%B2pe", NULL, NULL, VERDICT_ALLOW, true},
    };
    (void)state;
    RUN(rows, "B63");
}

/* What names end with, and what is a letter, a digit or nothing to who folds them. */
static void ends(void **state)
{
    static const struct row rows[] = {
        {"GET", "https://a.test/v1/wipe/all", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/wipe/all.", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/wipe./all...", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/wipe/all%20", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/wipe+/all%20.", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/%20wipe%20/all/", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/wipe/%E3%80%80all%C2%A0", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/wipe.;x=1/all", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/%EF%BD%97ipe/all", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1%EF%BC%8Fwipe%EF%BC%BCall", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/W%C4%B1PE/%F0%9D%90%9All", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/wi%CC%81pe/al%C2%ADl", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/items/%D9%A5", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/cafe/x+y", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/CAFE%CC%81/x%20%20y", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/%EF%BC%8E%EF%BC%8E/x", NULL, NULL, VERDICT_DENY, true}, /* dot segments */
        {"GET", "https://a.test/v1/%E2%80%A5%20/x", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/v1/wipe/.all", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/v1/wipe/a%20ll.", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/v1/items/%D9%A6", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/v1/%E5%89%8A/all", NULL, NULL, VERDICT_ALLOW, true},
    };
    (void)state;
    RUN(rows, "B10 B11");
}

/* A query that is decoded before it is cut apart, or that begins in the path; bytes that are more than they need. */
static void cut_late(void **state)
{
    static const struct row rows[] = {
        {"GET", "https://a.test/q?y=%26mode=wipe", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?y=1%3Bmode=wipe", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?mode%3Dwipe", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?mode%253Dwipe", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?y=%2526mode%253Dwip%65", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q%3Fmode=wipe", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q%3Fx%26mode%3Dwipe?y=1", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?y=%26mode=list", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/q?y=mode%3Dwipe", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/only?a%3D1", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/only?a=1%26b=2", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/only?b%26a=1", NULL, NULL, VERDICT_ALLOW, true},
        {"POST", "https://a.test/x?y=%26_method=DELETE", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/x%3F_method=DELETE", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/x?_%EF%BD%8Dethod=DELETE", NULL, "x", VERDICT_DENY, true},
        {"POST", "https://a.test/form", FORM, "y=1%26mode=wipe", VERDICT_DENY, true},
        {"POST", "https://a.test/form", FORM, "y=1%26z=wipe", VERDICT_ALLOW, true},
        {"POST", "https://a.test/form?y=%26mode=x", FORM, "mode=list", VERDICT_DENY, true},
        {"GET", "https://a.test/q?mode=%C1%B7ipe", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?mod%E0%81%A5=wipe", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?%EF%BD%8Dode=%EF%BC%B7%EF%BC%A9pe", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?mode=%C1%B8ipe", NULL, NULL, VERDICT_ALLOW, true},
    };
    (void)state;
    RUN(rows, "B12");
}

/* Words for yes and no, and numbers, as programs find them in a text. */
static void words(void **state)
{
    static const struct row rows[] = {
        {"GET", "https://a.test/q?force=TRUE", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?force=1", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?force=yes", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?force", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?force=x", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?force=false", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/q?force=0", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/q?fast=true", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?fast=2", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/q?fast=x", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/q?id=0xf", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?id=017", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?id=1_5", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?id=15abc", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?id=15.7", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?id=%D9%A1%D9%A5", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?id=%EF%BC%91%EF%BC%95", NULL, NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/q?id=150", NULL, NULL, VERDICT_ALLOW, true},
        {"GET", "https://a.test/q?id=x15", NULL, NULL, VERDICT_ALLOW, true},
        {"POST", "https://a.test/json", JSON, "{\"yes\": true}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"yes\": 1}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"yes\": 0}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"yes\": \"true\"}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"yes\": \"false\"}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"yes\": \"x\"}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"yes\": false}", VERDICT_ALLOW, true},
        {"POST", "https://a.test/json", JSON, "{\"yes\": null}", VERDICT_ALLOW, true},
        {"POST", "https://a.test/json", JSON, "{\"no\": null}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"no\": 0}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"no\": \"\"}", VERDICT_DENY, true},
        {"POST", "https://a.test/json", JSON, "{\"no\": true}", VERDICT_ALLOW, true},
        {"GET", "https://a.test/x", "X-Say: \"a\\ b\"", NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/x", "X-Say: x, \"\\a b\";q=1", NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/x", "X-Say: wi\\pe", NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/x", "X-Say: \"wi\\\\pe\"", NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/x", "X-Say: on", NULL, VERDICT_DENY, true},
        {"GET", "https://a.test/x", "X-Say: a\\ b c", NULL, VERDICT_ALLOW, true},
    };
    (void)state;
    RUN(rows, "B63");
}

/* What lets through is what is written: a name that only some find, or that comes with another value to them, is not.
 */
static void cut_late_that_allow(void **state)
{
    struct kit k;
    (void)state;
    assert_true(kit_load(&k,
                         "version: 1\nrules:\n  - { id: r, match: { host: a.test, query: { mode: list } }, decide: "
                         "allow }\n  - { id: t, match: { host: b.test, query: { aye: \"true\" } }, decide: allow }\n",
                         NULL));
    assert_int_equal(ask(&k, "GET", "https://a.test/x?mode=list&y=a%26b=c", NULL, NULL), VERDICT_ALLOW);
    assert_int_equal(ask(&k, "GET", "https://a.test/x?y=%26mode=list", NULL, NULL), VERDICT_DENY);
    assert_int_equal(ask(&k, "GET", "https://a.test/x%3Fmode=list", NULL, NULL), VERDICT_DENY);
    assert_int_equal(ask(&k, "GET", "https://a.test/x?mode=list&y=%26mode=wipe", NULL, NULL), VERDICT_DENY);
    assert_int_equal(ask(&k, "GET", "https://a.test/x?mode=li%EF%BD%93t", NULL, NULL), VERDICT_DENY);
    assert_int_equal(ask(&k, "GET", "https://b.test/x?aye=true", NULL, NULL), VERDICT_ALLOW);
    assert_int_equal(ask(&k, "GET", "https://b.test/x?aye=1", NULL, NULL), VERDICT_DENY);
    kit_free(&k);
}

/* A literal whose plain spelling cannot be made: nobody knows, and so it fits. */
static void without_memory(void **state)
{
    struct arena none;
    (void)state;
    arena_init(&none, 0);
    assert_true(spelling_same(SPAN("a b"), SPAN("a  b"), &none));
    assert_true(spelling_same(SPAN("x"), SPAN("a  b"), &none));
    assert_false(spelling_same(SPAN("x"), SPAN("a b"), &none));
    arena_free(&none);
}

/* A credential goes only where every reading of the path is one that its only: names. */
static void narrowing(void **state)
{
    static const struct {
        const char *url;
        bool goes;
    } rows[] = {
        {"/@acme%2Fapp", true},
        {"/@acme/app", true},
        {"/@acme%2Fapp%3Ax", true},
        {"/pub/x", true},
        {"/pub/a%2Fb", false},
        {"/pub/%40acme", true},
        {"/one:two", true},
        {"/one%3Atwo", false},
        {"/pub/", true},
        {"/one:two.", false},
        {"/c++/x", true},
        {"/pub/x.", true},
        {"/pub/caf%C3%A9", true},
        {"/pub/a%EF%BC%8Fb", false},
        {"/pub/%EF%BC%8E%EF%BC%8E", false},
        {"/pub%20/x", false},
    };
    struct kit k;
    (void)state;
    assert_true(kit_load(
        &k,
        "version: 1\npacks: [npm@1]\ncredentials:\n  c:\n    source: { env: T }\n    inject: { header: A, format: "
        "\"{}\" }\n"
        "    only: [{ host: registry.npmjs.org, path: \"/@acme%2F*\" }, { host: registry.npmjs.org, path: "
        "\"/@acme/*\" },\n"
        "      { host: registry.npmjs.org, path: \"/pub/*\" }, { host: registry.npmjs.org, path: \"/c++/x\" }, { "
        "host: registry.npmjs.org, path: \"/one:two\" }]\n"
        "rules:\n  - { id: r, match: { host: registry.npmjs.org, effect: read }, decide: allow, use: c }\n",
        NULL));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (policy_credential_may_go(k.p, 0, SPAN("https"), SPAN("registry.npmjs.org"), 443, span_str(rows[i].url)) !=
            rows[i].goes)
            fail_msg("%s: not %d", rows[i].url, rows[i].goes);
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(paths),          cmocka_unit_test(resources),
                                       cmocka_unit_test(fields),         cmocka_unit_test(fields_that_allow),
                                       cmocka_unit_test(bodies),         cmocka_unit_test(names),
                                       cmocka_unit_test(absent),         cmocka_unit_test(letters),
                                       cmocka_unit_test(ends),           cmocka_unit_test(cut_late),
                                       cmocka_unit_test(words),          cmocka_unit_test(cut_late_that_allow),
                                       cmocka_unit_test(without_memory), cmocka_unit_test(narrowing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
