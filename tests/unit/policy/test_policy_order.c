/* The decision against a plain one in a few lines, over made-up policies and requests: the order of
 * rules never matters (B46), a read that passes has a rule that says so (B55), a spelling gains nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy_kit.h"

struct plain_rule {
    unsigned host, path, method, effect, decide, floor;
};

/* host 0 is "any" (only for denies); patterns and what they match are spelt out, nothing is computed. */
static const char *const hosts[] = {"", "a.example", "b.example", "*.a.example", "**.a.example"};
static const char *const host_of[] = {"a.example",     "b.example",  "x.a.example",
                                      "x.y.a.example", "xa.example", "a.example.evil"};
static const bool host_hit[5][6] = {
    {1, 1, 1, 1, 1, 1}, {1, 0, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0}, {0, 0, 1, 0, 0, 0}, {0, 0, 1, 1, 0, 0}};
static const char *const paths[] = {"", "/p", "/p/*", "/p/**", "/*/q", "/**/q", "/p/q/r"};
static const char *const path_of[] = {"/p", "/p/q", "/p/q/r", "/z/q", "/q", "/p/z", "/"};
static const bool path_hit[7][7] = {{1, 1, 1, 1, 1, 1, 1}, {1, 0, 0, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 1, 0},
                                    {1, 1, 1, 0, 0, 1, 0}, {0, 1, 0, 1, 0, 0, 0}, {0, 1, 0, 1, 1, 0, 0},
                                    {0, 0, 1, 0, 0, 0, 0}};
static const char *const methods[] = {"", "GET", "POST", "DELETE"};
static const char *const effects[] = {"", "read", "write", "delete"};
static const char *const decides[] = {"deny", "hold", "allow"};

static unsigned seed = 1;

static unsigned pick(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % n;
}

static struct plain_rule make_rule(void)
{
    struct plain_rule r = {pick(5), pick(7), pick(4), pick(4), pick(3), 0};
    r.floor = pick(8) == 0;
    if (r.floor)
        r.decide = 0;
    if (r.host == 0 && r.decide != 0)
        r.host = 1 + pick(4);
    return r;
}

static void write_rule(char *dst, size_t max, const struct plain_rule *r, unsigned id)
{
    int n = snprintf(dst + strlen(dst), max - strlen(dst), "  - { id: r%u, decide: %s, match: { ", id,
                     decides[r->decide]);
    (void)n;
    const char *keys[] = {"host", "path", "method", "effect"};
    const char *values[] = {hosts[r->host], paths[r->path], methods[r->method], effects[r->effect]};
    for (size_t i = 0, any = 0; i < 4; i++)
        if (values[i][0]) {
            snprintf(dst + strlen(dst), max - strlen(dst), "%s%s: \"%s\"", any ? ", " : "", keys[i], values[i]);
            any = 1;
        }
    snprintf(dst + strlen(dst), max - strlen(dst), " } }\n");
}

/* floor or deny, else hold, else allow, else deny: over all rules, however they stand. */
static unsigned plain_decision(const struct plain_rule *r, size_t n, unsigned host, unsigned path, unsigned method)
{
    unsigned effect = method; /* GET read, POST write, DELETE delete */
    bool hit[3] = {false};
    for (size_t i = 0; i < n; i++)
        if (host_hit[r[i].host][host] && path_hit[r[i].path][path] && (r[i].method == 0 || r[i].method == method) &&
            (r[i].effect == 0 || r[i].effect == effect))
            hit[r[i].decide] = true;
    return hit[0] ? VERDICT_DENY : hit[1] ? VERDICT_HOLD : hit[2] ? VERDICT_ALLOW : VERDICT_DENY;
}

static void load_rules(struct kit *k, const struct plain_rule *r, const size_t *order, size_t n)
{
    static char yaml[8192], floors[8192];
    snprintf(yaml, sizeof(yaml), "version: 1\nrules:\n  - { id: z, decide: deny, match: { host: never.example } }\n");
    snprintf(floors, sizeof(floors),
             "version: 1\nrules:\n  - { id: zf, decide: deny, match: { host: never.example } }\n");
    for (size_t i = 0; i < n; i++)
        write_rule(r[order[i]].floor ? floors : yaml, sizeof(yaml), &r[order[i]], (unsigned)order[i]);
    if (!kit_load(k, yaml, floors)) {
        fprintf(stderr, "%s%s\n%s", yaml, floors, k->e.text);
        fail();
    }
}

static void shuffle(size_t *order, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = pick((unsigned)i), t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
}

static void check_requests(struct kit *a, struct kit *b, const struct plain_rule *r, size_t n)
{
    char url[200], rule[80];
    for (unsigned host = 0; host < 6; host++)
        for (unsigned path = 0; path < 7; path++)
            for (unsigned method = 1; method < 4; method++) {
                snprintf(url, sizeof(url), "https://%s%s", host_of[host], path_of[path]);
                const struct decision *d = kit_judge(a, "s", methods[method], url, NULL, NULL, 0, true);
                unsigned want = plain_decision(r, n, host, path, method);
                if (d->verdict != want) {
                    fprintf(stderr, "%s %s: %s, wanted %s\n", methods[method], url, decides[d->verdict],
                            decides[want]);
                    fail();
                }
                snprintf(rule, sizeof(rule), "%.*s %s", SPAN_FMT(d->rule.id), d->code);
                assert_true(d->verdict != VERDICT_ALLOW || d->rule.id.n > 0);
                enum verdict v = d->verdict;
                d = kit_judge(b, "s", methods[method], url, NULL, NULL, 0, true);
                char other[80];
                snprintf(other, sizeof(other), "%.*s %s", SPAN_FMT(d->rule.id), d->code);
                assert_int_equal(d->verdict, v);
                assert_string_equal(other, rule);
            }
    arena_free(&a->a);
    arena_free(&b->a);
}

static void test_order(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 150; round++) {
        struct plain_rule r[12];
        size_t order[12], n = 1 + pick(12);
        struct kit a, b;
        for (size_t i = 0; i < n; i++) {
            r[i] = make_rule();
            order[i] = i;
        }
        load_rules(&a, r, order, n);
        shuffle(order, n);
        load_rules(&b, r, order, n);
        check_requests(&a, &b, r, n);
        kit_free(&a);
        kit_free(&b);
    }
    printf("ok B46 policy\nok B53 policy\nok B55 policy\n");
}

/* B4 to B9: another spelling of a request gets the same or a stricter answer. */
static void test_spellings(void **state)
{
    static const char *const spellings[] = {
        "/p//q", "/p/q/",  "/p;x/q",   "/P/q",     "/p/q;v=1", "/p/./q",  "/p/%71", "/p%2Fq", "//p/q",  "/p/q%20",
        "/p/q.", "/p/;/q", "/p/..;/q", "/p/%2571", "/p\\q",    "/p/q%00", "/p/Q",   "/%70/q", "/p///q", "/p/q//"};
    char url[200];
    (void)state;
    for (unsigned round = 0; round < 150; round++) {
        struct plain_rule r[8];
        size_t order[8];
        struct kit k;
        for (size_t i = 0; i < 8; i++) {
            r[i] = make_rule();
            order[i] = i;
        }
        load_rules(&k, r, order, 8);
        enum verdict straight = kit_get(&k, "https://a.example/p/q")->verdict;
        for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
            snprintf(url, sizeof(url), "https://a.example%s", spellings[i]);
            enum verdict v = kit_get(&k, url)->verdict;
            /* "/p/q." and the like are other names to most servers: at worst what the tree allows. */
            if (v > straight && v > kit_get(&k, "https://a.example/p/zz")->verdict &&
                v > kit_get(&k, "https://a.example/zz/q")->verdict &&
                v > kit_get(&k, "https://a.example/p/q/zz")->verdict) {
                fprintf(stderr, "%s passes where /p/q does not\n", url);
                fail();
            }
        }
        kit_free(&k);
    }
    printf("ok B4 policy\nok B5 policy\nok B6 policy\nok B7 policy\nok B8 policy\nok B9 policy\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_spellings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
