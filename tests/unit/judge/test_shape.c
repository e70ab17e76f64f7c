/* What a grant may cover, with a policy of rules and a pack: two requests are of one shape or they are not, and most
 * have none (E2, E23). */
#include "tests/kit.h"

#include "common/dynbuf.h"
#include "proxy/judge/tickets/shape.h"
#include "tests/unit/policy/policy_kit.h"

static const char pack[] =
    "pack: own@1\nhosts: [api.test]\n"
    "resources:\n  - { resource: \"own:{1}/{2}\" }\n"
    "operations:\n"
    "  - { op: own.issue.make, effect: write, method: POST, path: \"/repos/*/*/issues\" }\n"
    "  - { op: own.comment.make, effect: write, method: POST, path: \"/repos/*/*/issues/*/comments\" }\n"
    "  - { op: own.issue.drop, effect: delete, method: DELETE, path: \"/repos/*/*/issues/*\" }\n"
    "  - { op: own.rest, effect: write, method: POST, path: \"/repos/*/*/**\" }\n";
static const char yaml[] =
    "version: 1\npacks: [own@1]\n"
    "rules:\n"
    "  - { id: held, match: { host: api.test }, decide: hold }\n"
    "  - { id: plain, match: { host: plain.test }, decide: hold }\n"
    "  - { id: said, match: { host: said.test }, decide: hold, approve: { grants: { uses: 20, within: 2h, effects: "
    "[write, delete] } } }\n"
    "  - { id: zero, match: { host: none.test }, decide: hold, approve: { grants: { uses: 0 } } }\n"
    "  - { id: fixed, match: { host: fixed.test, json: [{ pointer: /base, in: [main, dev] }] }, decide: hold, "
    "approve: { "
    "grants: { uses: 5 } } }\n"
    "  - { id: form, match: { host: form.test, form: [{ field: amount, int_lte: 50 }] }, decide: hold, approve: { "
    "grants: "
    "{ uses: 5 } } }\n"
    "  - { id: query, match: { host: query.test, query: { to: [a, b] } }, decide: hold, approve: { grants: { uses: 5 "
    "} } "
    "}\n"
    "  - { id: only-query, match: { host: only-query.test }, except: [{ query: { dry_run: \"true\" } }], decide: "
    "hold, "
    "approve: { grants: { uses: 5, effects: [write] } } }\n"
    "  - { id: only-form, match: { host: only-form.test }, except: [{ form: [{ field: dry_run, in: [\"true\"] }] }], "
    "decide: hold, approve: { grants: { uses: 5, effects: [write] } } }\n"
    "  - { id: only-json, match: { host: only-json.test }, except: [{ json: [{ pointer: /dry_run, in: [\"true\"] }] "
    "}], "
    "decide: hold, approve: { grants: { uses: 5, effects: [write] } } }\n"
    "  - { id: except, match: { host: except.test }, except: [{ query: { dry_run: \"true\" } }, "
    "{ json: [{ pointer: /dry_run, in: [\"true\"] }] }, { form: [{ field: dry_run, in: [\"true\"] }] }], decide: "
    "hold, "
    "approve: { grants: { uses: 5, effects: [write] } } }\n"
    "  - { id: two, match: { host: two.test }, decide: hold, approve: { grants: { uses: 20 } } }\n"
    "  - { id: two-more, match: { host: two.test, path: /less }, decide: hold, approve: { grants: { uses: 3, within: "
    "5m "
    "} } }\n"
    "  - { id: never, match: { host: said.test, path: /no }, decide: deny }\n";
#define JSON_TYPE "Content-Type: application/json"
#define FORM_TYPE "Content-Type: application/x-www-form-urlencoded"

static struct kit kit;
static struct arena arena;
static const char *session = "s1";

static int setup(void **state)
{
    kit_own_pack = pack;
    arena_init(&arena, 16 * 1024 * 1024);
    if (!kit_load(&kit, yaml, NULL))
        fail_msg("%s %s", kit.e.text, kit.nproblems ? kit.problems[0] : "");
    return 0;
}

static int teardown(void **state)
{
    kit_free(&kit);
    arena_free(&arena);
    return 0;
}

static void fields_of(const char *text, struct wire_request *r)
{
    struct span rest = span_str(text ? text : ""), line, name, value;
    while (rest.n > 0) {
        (void)span_cut(rest, '\n', &line, &rest);
        (void)span_cut(line, ':', &name, &value);
        r->field[r->nfields++] = (struct http_field){name, span_trim(value)};
    }
}

/* As judged, and as it would leave. */
static struct wire_shape shape(const char *method, const char *url, const char *fields, struct span body)
{
    static struct wire_request r;
    struct wire_shape out;
    struct span rest = span_from(span_str(url), 8), host, target;
    const struct decision *d =
        kit_judge(&kit, "s1", method, url, fields, body.n ? (const char *)body.p : NULL, body.n, true);
    memset(&r, 0, sizeof(r));
    (void)span_cut(rest, '/', &host, &target);
    target = span_of(host.p + host.n, rest.n - host.n);
    r = (struct wire_request){.scheme = SPAN("https"), .host = host, .method = span_str(method), .port = 443};
    r.has_query = span_cut(target, '?', &r.path, &r.query);
    fields_of(fields, &r);
    struct digest_input in = {
        .session = span_str(session), .request = &r, .body = body, .rule = d->rule.id, .op = d->op};
    shape_of(kit.p, d, &in, &arena, &out);
    return out;
}

static struct wire_shape post(const char *url, const char *type, const char *body)
{
    return shape("POST", url, type, span_str(body));
}

static bool is(const struct wire_shape *s)
{
    static const struct digest none;
    bool there = memcmp(&s->digest, &none, sizeof(none)) != 0;
    assert_int_equal(there, s->uses > 0 && s->json.n > 0 && s->within_ms > 0);
    return there;
}

static void alike(struct wire_shape a, struct wire_shape b, bool want)
{
    assert_true(is(&a));
    if (want != (is(&b) && memcmp(&a.digest, &b.digest, sizeof(a.digest)) == 0))
        fail_msg("%.*s and %.*s", SPAN_FMT(a.json), SPAN_FMT(b.json));
}

#define ISSUES "https://api.test/repos/acme/app/issues"

static void values_are_open(void **state)
{
    struct wire_shape a = post(ISSUES, JSON_TYPE, "{\"title\":\"a\",\"labels\":[\"x\"]}");
    alike(a, post(ISSUES, JSON_TYPE, "{\"labels\":[\"y\",\"z\"],\"title\":\"Another, \\u00fc and \\ttab\"}"), true);
    assert_true(span_find(a.json, SPAN("\"path\":\"/repos/acme/app/issues\"")) < a.json.n);
    assert_true(span_find(a.json, SPAN("{\"name\":\"labels/*\"},{\"name\":\"title\"}")) < a.json.n);
    assert_int_equal(a.uses, 10);
    assert_true(a.within_ms == 3600 * 1000);
    /* a step that neither the operation nor the resource says */
    struct wire_shape c = post(ISSUES "/7/comments", JSON_TYPE, "{\"body\":\"a\"}");
    alike(c, post(ISSUES "/8/comments", JSON_TYPE, "{\"body\":\"b\"}"), true);
    assert_true(span_find(c.json, SPAN("/repos/acme/app/issues/{any}/comments")) < c.json.n);
    a = post("https://said.test/x?a=1&b=2", FORM_TYPE, "to=x&text=hello+there");
    alike(a, post("https://said.test/x?b=3&a=", FORM_TYPE, "text=%C3%BC&to=y"), true);
    alike(shape("DELETE", "https://said.test/x/1", NULL, SPAN_NONE),
          shape("DELETE", "https://said.test/x/1", NULL, SPAN_NONE), true);
}

static void nothing_else_is(void **state)
{
    static const char *const bodies[] = {"{\"title\":\"a\",\"body\":\"b\",\"admin\":\"c\"}",
                                         "{\"title\":\"a\"}",
                                         "{\"title\":{\"body\":\"a\"},\"body\":\"b\"}",
                                         "{\"title\":[\"a\"],\"body\":\"b\"}",
                                         "{\"Title\":\"a\",\"body\":\"b\"}",
                                         "{\"title\":\"a\",\"title\":\"b\",\"body\":\"c\"}",
                                         "{\"title\":\"a\",\"tit\\u006ce\":\"b\",\"body\":\"c\"}",
                                         "{\"title\":\"a\\u202eb\",\"body\":\"b\"}",
                                         "{\"title\":\"a\",\"body\":\"b\"} {}",
                                         "[{\"title\":\"a\",\"body\":\"b\"}]"};
    static const char *const urls[] = {"https://api.test/repos/acme/other/issues",
                                       "https://api.test/repos/evil/app/issues",
                                       ISSUES "?a=1",
                                       ISSUES "?",
                                       "https://api.test/repos/acme/app/issues%2F",
                                       "https://api.test/repos/acme/app%2Fissues",
                                       "https://api.test/repos/acme/app/issues/",
                                       "https://api.test/repos/acme/app/Issues",
                                       "https://api.test//repos/acme/app/issues"};
    static const char *const types[] = {FORM_TYPE,
                                        "Content-Type: application/merge-patch+json",
                                        JSON_TYPE "\nX-More: 1",
                                        JSON_TYPE "\nContent-Type: application/json",
                                        JSON_TYPE "\nContent-Encoding: identity",
                                        JSON_TYPE "\nX-HTTP-Method-Override: DELETE"};
    struct wire_shape a = post(ISSUES, JSON_TYPE, "{\"title\":\"a\",\"body\":\"b\"}");
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        alike(a, post(ISSUES, JSON_TYPE, bodies[i]), false);
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
        alike(a, post(urls[i], JSON_TYPE, "{\"title\":\"a\",\"body\":\"b\"}"), false);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        alike(a, post(ISSUES, types[i], "{\"title\":\"a\",\"body\":\"b\"}"), false);
    alike(a, shape("PUT", ISSUES, JSON_TYPE, SPAN("{\"title\":\"a\",\"body\":\"b\"}")), false);
    session = "s2";
    alike(a, post(ISSUES, JSON_TYPE, "{\"title\":\"a\",\"body\":\"b\"}"), false);
    session = "s1";
    /* an open step is one step, and a plain one */
    static const char *const steps[] = {"*", "%2a", "a%2Fb", "..", "{any}", "7;x=1", ""};
    struct wire_shape c = post(ISSUES "/7/comments", JSON_TYPE, "{\"body\":\"a\"}");
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        char url[256];
        snprintf(url, sizeof(url), ISSUES "/%s/comments", steps[i]);
        alike(c, post(url, JSON_TYPE, "{\"body\":\"a\"}"), false);
    }
}

/* What the rule has a condition on is a part of the shape. */
static void a_rules_own_values_are_not(void **state)
{
    struct wire_shape a = post("https://fixed.test/x", JSON_TYPE, "{\"base\":\"main\",\"title\":\"a\"}");
    alike(a, post("https://fixed.test/x", JSON_TYPE, "{\"base\":\"main\",\"title\":\"b\"}"), true);
    alike(a, post("https://fixed.test/x", JSON_TYPE, "{\"base\":\"dev\",\"title\":\"a\"}"), false);
    a = post("https://form.test/x", FORM_TYPE, "amount=20&to=a");
    alike(a, post("https://form.test/x", FORM_TYPE, "amount=20&to=b"), true);
    alike(a, post("https://form.test/x", FORM_TYPE, "amount=21&to=a"), false);
    alike(a, post("https://form.test/x", FORM_TYPE, "amount=%32%30&to=a"), false); /* nor in another spelling */
    a = post("https://query.test/x?to=a&n=1", NULL, "");
    alike(a, post("https://query.test/x?to=a&n=2", NULL, ""), true);
    alike(a, post("https://query.test/x?to=b&n=1", NULL, ""), false);
}

/* Whoever reads a name as the rule's own decides by a value that was never shown to be part of the shape: whatever
 * the condition is on, in every place, in every spelling. */
static void a_name_that_is_the_rules_to_some_has_no_shape(void **state)
{
    static const char *const names[] = {"Dry_Run",  "DRY_RUN",   "dryRun",     "dryrun",     "dry-run",  "dry.run",
                                        "_dry_run", "dry_run[]", "dry_run[x]", "Dry-Run[a]", "dry[run]", "dry_run_"};
    static const char *const others[] = {"dry", "run", "dry_runs", "dry_ru", "adry_run", "dry_rum"};
    char text[256];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) + sizeof(others) / sizeof(others[0]); i++) {
        bool own = i < sizeof(names) / sizeof(names[0]);
        const char *name = own ? names[i] : others[i - sizeof(names) / sizeof(names[0])];
        struct wire_shape s[3];
        snprintf(text, sizeof(text), "https://except.test/x?%s=true&n=1", name);
        s[0] = post(text, JSON_TYPE, "{\"a\":1}");
        snprintf(text, sizeof(text), "%s=true&n=1", name);
        s[1] = post("https://except.test/x", FORM_TYPE, text);
        snprintf(text, sizeof(text), "{\"%s\":true,\"n\":1}", name);
        s[2] = post("https://except.test/x", JSON_TYPE, text);
        for (size_t k = 0; k < 3; k++)
            if (is(&s[k]) == own)
                fail_msg("%s, %zu: %.*s", name, k, SPAN_FMT(s[k].json));
    }
    struct wire_shape a = post("https://query.test/x?To=a&n=1", NULL, ""),
                      b = post("https://query.test/x?to=a&To=b", NULL, "");
    assert_false(is(&a) || is(&b)); /* held for what it may be, and may be anything */
}

/* Servers that put query and body together: each place, of a rule that has a condition in one of them alone. */
static void a_name_that_is_the_rules_in_another_place_has_no_shape(void **state)
{
    static const char *const hosts[] = {"only-query.test", "only-form.test", "only-json.test"};
    static const char *const names[] = {"dry_run", "dry-run", "n"};
    char text[256];
    for (size_t h = 0; h < 3; h++)
        for (size_t i = 0; i < 3; i++) {
            struct wire_shape s[3];
            snprintf(text, sizeof(text), "https://%s/x?%s=0", hosts[h], names[i]);
            s[0] = post(text, h == 1 ? FORM_TYPE : JSON_TYPE, h == 1 ? "a=1" : "{\"a\":1}");
            snprintf(text, sizeof(text), "https://%s/x", hosts[h]);
            char body[64];
            snprintf(body, sizeof(body), "%s=0", names[i]);
            s[1] = post(text, FORM_TYPE, body);
            snprintf(body, sizeof(body), "{\"%s\":0}", names[i]);
            s[2] = post(text, JSON_TYPE, body);
            for (size_t k = 0; k < 3; k++)
                if (is(&s[k]) != (i == 2 || (i == 0 && h == k)))
                    fail_msg("%s, %s, %zu: %.*s", hosts[h], names[i], k, SPAN_FMT(s[k].json));
        }
}

/* One more than may be of each; what is at the limit has a shape. */
static char large[SHAPE_BODY_MAX + 64], many[4096], deep[64], name[128], value[1024];

static void fill_up_to_the_limits(void)
{
    memset(large, ' ', SHAPE_BODY_MAX);
    memcpy(large, "{\"a\":1}", 7);
    large[SHAPE_BODY_MAX] = '\0';
    assert_true(is(&(struct wire_shape[]){post("https://said.test/x", JSON_TYPE, large)}[0]));
    large[SHAPE_BODY_MAX] = ' ';
    size_t n = 0;
    for (int i = 0; i <= SHAPE_NAMES_MAX; i++) {
        if (i == SHAPE_NAMES_MAX)
            assert_true(is(&(struct wire_shape[]){post("https://said.test/x", FORM_TYPE, many)}[0]));
        n += (size_t)snprintf(many + n, sizeof(many) - n, "%sn%d=1", i ? "&" : "", i);
    }
    snprintf(deep, sizeof(deep), "{\"a\":%.*s1%.*s}", SHAPE_DEPTH_MAX - 1, "[[[[[[[[[[", SHAPE_DEPTH_MAX - 1,
             "]]]]]]]]]]");
    assert_true(is(&(struct wire_shape[]){post("https://said.test/x", JSON_TYPE, deep)}[0]));
    snprintf(deep, sizeof(deep), "{\"a\":%.*s1%.*s}", SHAPE_DEPTH_MAX, "[[[[[[[[[[", SHAPE_DEPTH_MAX, "]]]]]]]]]]");
    memset(name, 'n', SHAPE_NAME_MAX);
    assert_true(is(&(struct wire_shape[]){post("https://said.test/x", FORM_TYPE, name)}[0]));
    name[SHAPE_NAME_MAX] = 'n';
    snprintf(value, sizeof(value), "{\"base\":\"main\",\"title\":\"%0*d\"}", 600, 1);
    assert_true(is(&(struct wire_shape[]){post("https://fixed.test/x", JSON_TYPE, value)}[0]));
    snprintf(value, sizeof(value), "{\"base\":[\"main\",\"%0*d\"]}", SHAPE_FIXED_MAX, 1);
}

static void what_has_no_shape(void **state)
{
    static const struct {
        const char *url, *type, *body;
    } none[] = {
        {"https://plain.test/x", JSON_TYPE, "{\"a\":1}"},                 /* no pack names it */
        {"https://none.test/x", JSON_TYPE, "{\"a\":1}"},                  /* the rule says none */
        {"https://api.test/repos/acme/app/keys", JSON_TYPE, "{\"a\":1}"}, /* a row for all that is not named */
        {"https://said.test/no", JSON_TYPE, "{\"a\":1}"},                 /* denied */
        {"https://said.test/x", "Content-Type: text/plain", "{\"a\":1}"},
        {"https://said.test/x", NULL, "{\"a\":1}"},
        {"https://said.test/x", "Content-Type: application/json; charset=utf-7", "{\"a\":1}"},
        {"https://said.test/x", "Content-Type: multipart/form-data; boundary=b", "--b\r\n\r\na\r\n--b--\r\n"},
        {"https://said.test/x", JSON_TYPE "\nContent-Encoding: gzip", "{\"a\":1}"},
        {"https://said.test/x", JSON_TYPE, "a=1"},
        {"https://said.test/x", JSON_TYPE, "\"a\""},
        {"https://said.test/x", JSON_TYPE, "{\"query\":\"mutation { drop }\"}"},
        {"https://said.test/x", JSON_TYPE, "{\"jsonrpc\":\"2.0\",\"method\":\"drop\",\"id\":1}"},
        {"https://said.test/x", JSON_TYPE, "{\"_method\":\"DELETE\"}"},
        {"https://said.test/x", JSON_TYPE, "{\"a b\":1}"},
        {"https://said.test/x", JSON_TYPE, "{\"a\":\"\\u200b\"}"},
        {"https://said.test/x", FORM_TYPE, "a=1&a=2"},
        {"https://said.test/x", FORM_TYPE, "a=1&_method=DELETE"},
        {"https://said.test/x", FORM_TYPE, "a=1&_method[]=DELETE"},
        {"https://said.test/x", FORM_TYPE, "a=1&_method[a]=DELETE"},
        {"https://said.test/x", FORM_TYPE, "a=1&X-HTTP-Method_=DELETE"},
        {"https://said.test/x", FORM_TYPE, "a=1&Action[]=drop"},
        {"https://said.test/x", FORM_TYPE, "a=1&action[a]=drop"},
        {"https://said.test/x", FORM_TYPE, "a=1&operation_name=drop"},
        {"https://said.test/x?json.rpc=2.0", FORM_TYPE, "a=1"},
        {"https://said.test/x", JSON_TYPE, "{\"Operation_Name\":\"drop\"}"},
        {"https://said.test/x", FORM_TYPE, "a=1;b=2"},
        {"https://said.test/x", FORM_TYPE, "a=%zz"},
        {"https://said.test/x", FORM_TYPE, "a=%e2%80%ae"},
        {"https://said.test/x", FORM_TYPE, "%61=1"},
        {"https://said.test/x?a=1&a=2", JSON_TYPE, "{\"a\":1}"},
        {"https://said.test/x?query=a", JSON_TYPE, "{\"a\":1}"},
        {"https://said.test/x", JSON_TYPE, large},
        {"https://said.test/x", FORM_TYPE, many},
        {"https://said.test/x", JSON_TYPE, deep},
        {"https://said.test/x", FORM_TYPE, name},
        {"https://fixed.test/x", JSON_TYPE, value},
    };
    fill_up_to_the_limits();
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        struct wire_shape s = post(none[i].url, none[i].type, none[i].body);
        if (is(&s))
            fail_msg("%zu: %.*s", i, SPAN_FMT(s.json));
    }
    struct wire_shape drop = shape("DELETE", ISSUES "/7", NULL, SPAN_NONE);
    assert_false(is(&drop)); /* no rule says that it may be */
}

static void the_narrowest_rule_counts(void **state)
{
    struct wire_shape a = post("https://two.test/x", JSON_TYPE, "{}"),
                      b = post("https://two.test/less", JSON_TYPE, "{}");
    assert_true(is(&a) && is(&b));
    assert_int_equal(a.uses, 20);
    assert_int_equal(b.uses, 3);
    assert_true(b.within_ms == 5 * 60 * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_open),
        cmocka_unit_test(nothing_else_is),
        cmocka_unit_test(a_rules_own_values_are_not),
        cmocka_unit_test(a_name_that_is_the_rules_to_some_has_no_shape),
        cmocka_unit_test(a_name_that_is_the_rules_in_another_place_has_no_shape),
        cmocka_unit_test(what_has_no_shape),
        cmocka_unit_test(the_narrowest_rule_counts),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
