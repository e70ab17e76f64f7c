/* One string for every class: against all short strings, asked with the matcher that rules are asked with. */
#include "tests/kit.h"

#include <stdio.h>

#include "cli/policy/diff/minterms.h"
#include "policy/image/glob.h"

enum { PATTERNS_MAX = 8, SHORT = 5 };

struct asked {
    const struct pattern *v;
    size_t n;
    enum minterm_kind kind;
    const struct minterms *found;
    size_t strings, classes;
};

static uint64_t fits_of(const struct asked *q, struct span s)
{
    uint8_t sep = q->kind == MINTERM_PATH || q->kind == MINTERM_REF ? '/' : 0;
    uint64_t fits = 0;
    for (size_t i = 0; i < q->n; i++) {
        struct glob g = glob_of(q->v[i].text, sep);
        fits |= glob_match(&g, s, sep, q->v[i].fold) ? UINT64_C(1) << i : 0;
    }
    return fits;
}

static bool is_kind(const struct asked *q, struct span s)
{
    bool slash_ends = s.n && s.p[s.n - 1] == '/';
    switch (q->kind) {
    case MINTERM_TEXT: return true;
    case MINTERM_NAME: return s.n > 0;
    case MINTERM_PATH: return s.n > 0 && s.p[0] == '/' && span_find(s, SPAN("//")) == s.n;
    case MINTERM_REF: return s.n > 0 && s.p[0] != '/' && !slash_ends && span_find(s, SPAN("//")) == s.n;
    }
    return false;
}

static void look(struct asked *q, struct span s)
{
    uint64_t fits = fits_of(q, s);
    bool known = false;
    if (!is_kind(q, s))
        return;
    q->strings++;
    for (size_t i = 0; i < q->found->n && !known; i++)
        known = q->found->v[i].fits[0] == fits;
    if (!known)
        fprintf(stderr, "no string for the class of \"%.*s\"\n", SPAN_FMT(s));
    assert_true(known);
}

static void look_at_all(struct asked *q, const char *alphabet, uint8_t *text, size_t n)
{
    look(q, span_of(text, n));
    if (n == SHORT)
        return;
    for (const char *c = alphabet; *c; c++) {
        text[n] = (uint8_t)*c;
        look_at_all(q, alphabet, text, n + 1);
    }
}

/* Every class that a short string is in was found; what was found is in the class it is said to be in; none twice. */
static void check(const char *const *patterns, enum minterm_kind kind, const char *alphabet)
{
    struct pattern v[PATTERNS_MAX];
    struct minterms found;
    struct arena a;
    uint8_t text[SHORT];
    size_t n = 0;
    for (; patterns[n]; n++) /* "~" in front: in any case */
        v[n] = (struct pattern){span_str(patterns[n] + (patterns[n][0] == '~')), patterns[n][0] == '~'};
    arena_init(&a, 64 << 20);
    assert_int_equal(minterms_find(v, n, kind, &a, &found), 0);
    struct asked q = {.v = v, .n = n, .kind = kind, .found = &found};
    look_at_all(&q, alphabet, text, 0);
    assert_true(q.strings > 1000);
    for (size_t i = 0; i < found.n; i++) {
        assert_true(is_kind(&q, found.v[i].text));
        assert_true(found.v[i].fits[0] == fits_of(&q, found.v[i].text));
        for (size_t k = 0; k < i; k++)
            assert_true(found.v[i].fits[0] != found.v[k].fits[0]);
    }
    arena_free(&a);
}

static void paths(void **state)
{
    (void)state;
    static const char *const sets[][PATTERNS_MAX] = {
        {"/a", "/a/*", "/a/**", "~/A/", NULL}, {"/**/a", "/a/**/b", "/*/b", "~/**/A/", NULL},
        {"/a*", "/*b", "/a*b", "/**", NULL},   {"/*a*/b", "/ab/**", "~/aB", "/", NULL},
        {"/**/a/**", "/b/*/", "/*/*", NULL},   {"/**/a/*/b", "/a", NULL},
    };
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
        check(sets[i], MINTERM_PATH, "abA/xy");
}

static void names_and_texts(void **state)
{
    (void)state;
    static const char *const sets[][PATTERNS_MAX] = {
        {"ci-*", "*-ci", "ci-ci", NULL}, {"a*b*a", "*ab*", "~AB", NULL}, {"a", "b", "~A", "*", NULL}, {"*", NULL},
        {"a*", "aa*", "aaa", NULL},
    };
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        check(sets[i], MINTERM_NAME, "abAci-xz");
        check(sets[i], MINTERM_TEXT, "abAci-xz");
    }
}

static void refs(void **state)
{
    (void)state;
    static const char *const set[] = {"a/*", "a/**", "~A/b", "*/x/**", NULL};
    check(set, MINTERM_REF, "abA/xy");
}

static struct minterms of(struct arena *a, const char *pattern, enum minterm_kind kind)
{
    struct pattern v = {span_str(pattern), false};
    struct minterms found;
    assert_int_equal(minterms_find(&v, 1, kind, a, &found), 0);
    return found;
}

/* An escape is one character: half of one would be no path. Dot segments are none either. */
static void escapes_and_dots(void **state)
{
    struct arena a;
    (void)state;
    arena_init(&a, 16 << 20);
    struct minterms found = of(&a, "/%C3%A9*", MINTERM_PATH);
    for (size_t i = 0; i < found.n; i++)
        for (size_t k = 0; k < found.v[i].text.n; k++)
            if (found.v[i].text.p[k] == '%')
                assert_true(found.v[i].text.n - k >= 3 && found.v[i].text.p[k + 1] == (k == 1 ? 'C' : 'A'));
    found = of(&a, "/.*", MINTERM_PATH);
    for (size_t i = 0; i < found.n; i++) {
        assert_false(span_starts(found.v[i].text, SPAN("/./")) || span_eq(found.v[i].text, SPAN("/.")));
        assert_false(span_eq(found.v[i].text, SPAN("/..")));
    }
    assert_true(found.n == 2);
    arena_free(&a);
}

/* Too many is said, not cut short. */
static void too_many(void **state)
{
    struct pattern v[14];
    char text[14][8];
    struct minterms found;
    struct arena a;
    (void)state;
    arena_init(&a, 512 << 20);
    for (size_t i = 0; i < 14; i++) {
        int n = snprintf(text[i], sizeof(text[i]), "*%c*", (char)('a' + i));
        v[i] = (struct pattern){span_of(text[i], (size_t)n), false};
    }
    assert_int_equal(minterms_find(v, 14, MINTERM_NAME, &a, &found), -1);
    assert_int_equal(minterms_find(v, 10, MINTERM_NAME, &a, &found), 0);
    assert_int_equal(found.n, 1 << 10);
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(paths), cmocka_unit_test(names_and_texts),
                                       cmocka_unit_test(refs), cmocka_unit_test(escapes_and_dots),
                                       cmocka_unit_test(too_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
