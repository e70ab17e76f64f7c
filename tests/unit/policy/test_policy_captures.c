/* {name} in a rule's path: it matches as "*" does, and the rule's words say what stood there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/match/capture.h"
#include "policy/manifest.h"
#include "policy_kit.h"

#define RULES "version: 1\nrules:\n"

static void load(struct kit *k, const char *yaml)
{
    if (!kit_load(k, yaml, NULL))
        fail_msg("%s", k->nproblems ? k->problems[0] : k->e.text);
}

static void says(struct kit *k, const char *path, const char *say)
{
    char url[3000];
    snprintf(url, sizeof(url), "https://a.test%s", path);
    const struct decision *d = kit_get(k, url);
    if (!span_eq(d->say, span_str(say)))
        fail_msg("%s: \"%.*s\", not \"%s\" (%s)", path, SPAN_FMT(d->say), say, d->code);
}

static void what_stood_there_is_said(void **state)
{
    struct kit k;
    (void)state;
    load(&k,
         RULES "  - id: one\n    match: { host: a.test, path: \"/users/{user}/keys/{key_2}\" }\n    decide: hold\n"
               "    say: \"Key {key_2} of {user}, and {user} again.\"\n    instead: \"GET /users/{user}\"\n"
               "  - id: two\n    match: { host: a.test, path: [\"/x/{id}\", \"/y/z/{id}\", \"/w/**/{id}\", "
               "\"/v/**/{id}/end\"] "
               "}\n"
               "    decide: deny\n    say: \"no {id}.\"\n");
    kit_expect(kit_get(&k, "https://a.test/users/ann/keys/7"), VERDICT_HOLD, "rule", "one");
    says(&k, "/users/ann/keys/7", "Key 7 of ann, and ann again.");
    assert_true(span_eq(k.d.instead, SPAN("GET /users/ann")));
    kit_expect(kit_get(&k, "https://a.test/users/ann/x/keys/7"), VERDICT_DENY, "no-rule", "");
    kit_expect(kit_get(&k, "https://a.test/users/ann/keys"), VERDICT_DENY, "no-rule", "");
    says(&k, "/x/1", "no 1.");
    says(&k, "/y/z/2", "no 2.");
    says(&k, "/w/3", "no 3.");
    says(&k, "/w/a/b/4", "no 4.");
    says(&k, "/v/a/b/5/end", "no 5.");
    kit_free(&k);
}

/* B6: a deny reaches other spellings; then the place of the segment says what stands there. */
static void other_spellings_go_by_place(void **state)
{
    struct kit k;
    (void)state;
    load(&k,
         RULES "  - { id: no-hole, match: { host: a.test, path: \"/Del/{id}\" }, decide: deny, say: \"not {id}\" }\n"
               "  - { id: w, match: { host: a.test, path: \"/w/**/{id}\" }, decide: deny, say: \"not {id}\" }\n");
    says(&k, "/del/9", "not 9");
    says(&k, "/DEL/9/", "not 9");
    says(&k, "/w/a/9/", "not 9");
    says(&k, "/del/9;x=1", "not 9;x=1");
    assert_int_equal(k.d.verdict, VERDICT_DENY);
    kit_covered("B6");
    kit_free(&k);
}

/* What a client chose is shown without harm, and not at length. */
static void it_is_safe_to_show(void **state)
{
    struct kit k;
    char path[400], say[200];
    (void)state;
    load(&k, RULES "  - { id: a, match: { host: a.test, path: \"/x/{id}\" }, decide: hold, say: \"<{id}>\" }\n");
    memset(path, 'a', sizeof(path));
    snprintf(path, sizeof(path), "/x/%0120d", 1);
    snprintf(say, sizeof(say), "<%0100d>", 0);
    says(&k, path, say);
    says(&k, "/x/%E2%80%AE", "<%E2%80%AE>"); /* as it is compared: escaped */
    says(&k, "/x/{id}", "<{id}>");           /* no second round */
    /* And whatever a path might ever hold: */
    struct span raw = SPAN("/x/a\x1b[31m\n\xe2\x80\xae\xff\xc3\xa9");
    struct span shown = capture_fill(k.p, img_at(k.p, IMG_RULE, 0), raw, SPAN("<{id}>"), &k.a);
    if (!span_eq(shown, SPAN("<a?[31m?"
                             "?"
                             "?"
                             "\xc3\xa9>")))
        fail_msg("\"%.*s\"", SPAN_FMT(shown));
    kit_free(&k);
}

/* Past its limit an allow becomes a hold whose path need not fit: what stands nowhere stays as it was written. */
static void what_stands_nowhere_stays(void **state)
{
    struct kit k;
    (void)state;
    load(&k, RULES
         "  - { id: a, match: { host: a.test, path: \"/x/{id}/{more}\" }, decide: hold, say: \"{id} {more}\" }\n"
         "  - { id: b, match: { host: b.test }, decide: deny, say: \"{not a name} {} { x\" }\n");
    says(&k, "/x/1/", "1 {more}");
    assert_true(span_eq(kit_get(&k, "https://b.test/")->say, SPAN("{not a name} {} { x")));
    kit_free(&k);
}

static void names_must_be_there(void **state)
{
    static const struct {
        const char *rule, *code, *words;
    } bad[] = {
        {"path: \"/x/{item}\" }, decide: deny, say: \"no {itm}\"", "P020", "did you mean {item}?"},
        {"path: \"/x/{id}\" }, decide: deny, instead: \"{Id}\"", "P020", "instead: has {Id}"},
        {"path: /x/* }, decide: deny, say: \"no {id}\"", "P020", "no path of the rule has"},
        {"method: GET }, decide: deny, say: \"no {id}\"", "P020", "no path of the rule has"},
        {"path: [\"/x/{id}\", /y/*] }, decide: deny, say: \"no {id}\"", "P020", "the path /y/* does not"},
        {"path: [\"/x/{id}\", \"/y/{other}\"] }, decide: deny, say: \"no {id}\"", "P020", "/y/{other} does not"},
        {"path: \"/**/{id}/**\" }, decide: deny, say: \"no {id}\"", "P020", "between two **"},
        {"path: \"/{id}/x/{id}\" }, decide: deny", "P013", "{id} twice"},
        {"path: \"/x{id}\" }, decide: deny", "P013", "brace"},
        {"path: \"/{id}x\" }, decide: deny", "P013", "brace"},
        {"path: \"/{a}{b}\" }, decide: deny", "P013", "brace"},
        {"path: \"/{}\" }, decide: deny", "P013", "brace"},
        {"path: \"/{ID}\" }, decide: deny", "P013", "brace"},
        {"path: \"/{a-b}\" }, decide: deny", "P013", "brace"},
        {"path: \"{id}\" }, decide: deny", "P013", "begin with '/'"},
        {"path: \"/{id}\" }, decide: deny, say: \"{id}{id}{id}{id}{id}{id}{id}{id}{id}\"", "P017", "more than 8"},
        {"path: \"/{id}\" }, except: [{ path: \"/{x\" }], decide: deny", "P013", "brace"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct kit k;
        char yaml[1000];
        snprintf(yaml, sizeof(yaml), RULES "  - { id: a, match: { host: a.test, %s }\n", bad[i].rule);
        if (kit_load(&k, yaml, NULL) || !kit_problem(&k, bad[i].code, NULL, bad[i].words))
            fail_msg("%s: %s", bad[i].rule, k.nproblems ? k.problems[0] : "accepted");
        kit_free(&k);
    }
}

/* Everything that walks paths sees "*": the index, the warnings, an exception. */
static void it_is_a_star_to_all_others(void **state)
{
    struct kit k;
    (void)state;
    load(&k, RULES "  - { id: a, match: { host: a.test, path: \"/v1/{x}/b\" }, decide: deny }\n"
                   "  - { id: b, match: { host: a.test, path: \"/v1/{y}/b\", method: GET }, decide: allow }\n"
                   "  - { id: c, match: { host: c.test, path: \"/{a}/{b}\" }, decide: allow,\n"
                   "      except: [{ path: \"/{a}/no\" }] }\n");
    assert_true(kit_problem(&k, "P103", NULL, "\"b\" never decides"));
    kit_expect(kit_get(&k, "https://a.test/v1/q/b"), VERDICT_DENY, "rule", "a");
    kit_expect(kit_get(&k, "https://c.test/q/b"), VERDICT_ALLOW, "rule", "c");
    kit_expect(kit_get(&k, "https://c.test/q/no"), VERDICT_DENY, "no-rule", "");
    kit_free(&k);
}

/* An agent sees which segments are parameters. */
static void a_sandbox_is_told_the_names(void **state)
{
    struct kit k;
    struct dynbuf b;
    struct jsonw w;
    struct span v[4];
    struct subject s = {.sandbox = SPAN("s")};
    struct request r = {.scheme = SPAN("https"), .host = SPAN("a.test"), .port = 443};
    struct manifest_want want = {.subject = &s, .room = 1 << 16};
    (void)state;
    load(&k, RULES "  - { id: a, match: { host: a.test, method: GET, path: [\"/u/{user}\", /v/*] }, decide: allow,\n"
                   "      except: [{ path: \"/u/{no}\", method: PUT }] }\n");
    dynbuf_init(&b, 1 << 16);
    jsonw_begin(&w, &b);
    assert_int_equal(policy_manifest(k.p, &want, &w), 0);
    struct span text = dynbuf_span(&b);
    assert_true(span_find(text, SPAN("\"path\":[\"/u/{user}\",\"/v/*\"]")) < text.n);
    assert_true(span_find(text, SPAN("\"path\":[\"/u/{no}\"]")) < text.n);
    dynbuf_free(&b);
    assert_int_equal(policy_allowed_here(k.p, &s, &r, &k.a, v, 4), 1);
    assert_true(span_eq(v[0], SPAN("GET /u/{user}, /v/*, under conditions: allowed")));
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stood_there_is_said),   cmocka_unit_test(other_spellings_go_by_place),
        cmocka_unit_test(it_is_safe_to_show),         cmocka_unit_test(what_stands_nowhere_stays),
        cmocka_unit_test(names_must_be_there),        cmocka_unit_test(it_is_a_star_to_all_others),
        cmocka_unit_test(a_sandbox_is_told_the_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
