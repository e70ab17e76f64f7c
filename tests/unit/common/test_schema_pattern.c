/* Patterns of schemas: what they find, what is refused, and that no pattern is slow. */
#include "common/schema/pattern.h"
#include "tests/kit.h"

enum { ARENA = 1 << 20, STEPS = 1000 * 1000 };

/* 1 found, 0 not, -1 too costly, -2 refused. */
static int finds(struct span pattern, struct span text, uint64_t steps, const char **why)
{
    struct arena a;
    arena_init(&a, ARENA);
    int found = -2;
    const struct pattern *p = pattern_compile(pattern, &a, why);
    if (p != NULL) {
        struct pattern_room *room = pattern_room_new(&a, pattern_size(p));
        assert_non_null(room);
        found = pattern_find(p, text, room, &steps);
        uint64_t more = STEPS; /* the room is as good as new */
        if (found >= 0)
            assert_int_equal(pattern_find(p, text, room, &more), found);
    }
    arena_free(&a);
    return found;
}

static const struct {
    const char *pattern, *text;
    int found;
} found_or_not_rows[] = {
    {"", "", 1},
    {"", "abc", 1},
    {"b", "abc", 1},
    {"b", "ac", 0},
    {"^b", "ab", 0},
    {"^a", "ab", 1},
    {"a$", "ab", 0},
    {"b$", "ab", 1},
    {"^$", "", 1},
    {"^$", "a", 0},
    {"a|b", "xb", 1},
    {"^(a|bc|d)$", "bc", 1},
    {"^(a|bc|d)$", "b", 0},
    {"^(a|bc|d)$", "d", 1},
    {"^(|a)$", "", 1},
    {"^(a|)$", "a", 1},
    {"^(?:ab)+$", "ababab", 1},
    {"^(?:ab)+$", "ababa", 0},
    {"^(?<name>ab)*$", "", 1},
    {"^a?$", "", 1},
    {"^a?$", "aa", 0},
    {"^a+?$", "aaa", 1},
    {"^(a*)*$", "aaa", 1},
    {"^(a*)+b$", "aaa", 0},
    {"^a{2}$", "aa", 1},
    {"^a{2}$", "a", 0},
    {"^a{2}$", "aaa", 0},
    {"^a{0}$", "", 1},
    {"^a{0}$", "a", 0},
    {"^a{2,}$", "aaaaa", 1},
    {"^a{2,}$", "a", 0},
    {"^a{0,}$", "", 1},
    {"^a{1,3}$", "aaa", 1},
    {"^a{1,3}$", "aaaa", 0},
    {"^a{0,2}$", "", 1},
    {"^a{0,2}$", "aa", 1},
    {"^a{0,2}$", "aaa", 0},
    {"^(ab|c){2,3}$", "abcab", 1},
    {"^(ab|c){2,3}$", "ab", 0},
    {"^(a{2}){2}$", "aaaa", 1},
    {"^(a{2}){2}$", "aaa", 0},
    {"^.$", "\xf0\x9f\x98\x80", 1},
    {"^..$", "\xc3\xa9", 0},
    {"^.$", "\n", 0},
    {"^.$", "\xe2\x80\xa8", 0},
    {"^[a-c]$", "b", 1},
    {"^[a-c]$", "d", 0},
    {"^[^a-c]$", "d", 1},
    {"^[^a-c]$", "b", 0},
    {"^[^]$", "\n", 1},
    {"[]", "a", 0},
    {"^[a-]$", "-", 1},
    {"^[-a]$", "-", 1},
    {"^[\\w-]+$", "a-b", 1},
    {"^[\\]]$", "]", 1},
    {"^[\\d.]+$", "1.5", 1},
    {"^[^\\d]$", "5", 0},
    {"^[\\D]$", "5", 0},
    {"^[\\W\\d]$", "5", 1},
    {"^\\d+$", "0123456789", 1},
    {"^\\d$", "\xd9\xa3", 0},
    {"^\\D$", "\xd9\xa3", 1},
    {"^\\D$", "9", 0},
    {"^\\W$", "z", 0},
    {"^\\w+$", "aZ_9", 1},
    {"^\\w$", "\xc3\xa9", 0},
    {"^\\s$", "\xc2\xa0", 1},
    {"^\\s$", "\xef\xbb\xbf", 1},
    {"^\\S$", "\xe2\x80\x89", 0},
    {"^[\xc3\xa0-\xc3\xb6]$", "\xc3\xa9", 1},
    {"\\bfoo\\b", "a foo b", 1},
    {"\\bfoo\\b", "afoo", 0},
    {"foo\\B", "foob", 1},
    {"foo\\B", "foo", 0},
    {"^\\t\\n\\v\\f\\r$", "\t\n\v\f\r", 1},
    {"^\\x41\\u0042\\u{1F600}\\ud83d\\ude00$", "AB\xf0\x9f\x98\x80\xf0\x9f\x98\x80", 1},
    {"^\\^\\$\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|\\/\\\\$", "^$.*+?()[]{}|/\\", 1},
    {"^[\\b]$", "\b", 1},
    {"^\xf0\x9f\x98\x80{2}$", "\xf0\x9f\x98\x80\xf0\x9f\x98\x80", 1},
    {"^https?://", "https://a.example", 1},
    {"^[a-z0-9]+(-[a-z0-9]+)*$", "a-b-c9", 1},
    {"^[a-z0-9]+(-[a-z0-9]+)*$", "a--b", 0},
};

static void found_or_not(void **state)
{
    const char *why;
    for (size_t i = 0; i < sizeof found_or_not_rows / sizeof found_or_not_rows[0]; i++) {
        int found = finds(span_str(found_or_not_rows[i].pattern), span_str(found_or_not_rows[i].text), STEPS, &why);
        if (found != found_or_not_rows[i].found)
            fail_msg("/%s/ on \"%s\": %d%s%s", found_or_not_rows[i].pattern, found_or_not_rows[i].text, found,
                     found == -2 ? " " : "", found == -2 ? why : "");
    }
    assert_int_equal(finds(SPAN("^a\\0b$"), SPAN("a\0b"), STEPS, &why), 1);
    assert_int_equal(finds(SPAN("^[^a]$"), SPAN("\0"), STEPS, &why), 1);
}

static const struct {
    const char *pattern, *words;
} refused_rows[] = {
    {"(?=a)", "looking ahead"},
    {"(?!a)", "looking ahead"},
    {"(?<=a)", "looking ahead"},
    {"(?<!a)", "looking ahead"},
    {"(?i:a)", "looking ahead"},
    {"(a)\\1", "refers to a group"},
    {"(?<n>a)\\k<n>", "refers to a group"},
    {"\\p{L}", "\\p{...}"},
    {"[\\P{L}]", "\\p{...}"},
    {"*", "nothing to repeat"},
    {"a**", "nothing to repeat"},
    {"+a", "nothing to repeat"},
    {"^*", "nothing to repeat"},
    {"\\b+", "nothing to repeat"},
    {"(?:^)|?", "nothing to repeat"},
    {"a{1", "in { }"},
    {"a{}", "in { }"},
    {"a{,2}", "in { }"},
    {"a{2,1}", "wrong way round"},
    {"a{1001}", "in { }"},
    {"a{1,1001}", "in { }"},
    {"a{99999999999}", "in { }"},
    {"{", "bracket or brace"},
    {"}", "bracket or brace"},
    {"]", "bracket or brace"},
    {"(", "not closed"},
    {"(a", "not closed"},
    {"a)", "has no ("},
    {"[a", "not closed"},
    {"[", "not closed"},
    {"[b-a]", "backwards"},
    {"[\\d-a]", "from a character"},
    {"[a-\\d]", "from a character"},
    {"\\", "nothing behind"},
    {"[\\", "nothing behind"},
    {"\\y", "no escape"},
    {"\\-", "no escape"},
    {"\\00", "no escape"},
    {"\\xg0", "no escape"},
    {"\\u12", "no escape"},
    {"\\u{110000}", "no escape"},
    {"\\u{}", "no escape"},
    {"\\u{41", "no escape"},
    {"\\ud800", "no escape"},
    {"\\ud83d\\u0041", "no escape"},
    {"\\udc00", "no escape"},
    {"(?<>a)", "name"},
    {"(?<a-b>a)", "name"},
    {"((a{1000}){1000})", "too large"},
    {"a{1000}b{1000}c{1000}d{1000}e{1000}", "too large"},
};

static void refused(void **state)
{
    const char *why;
    for (size_t i = 0; i < sizeof refused_rows / sizeof refused_rows[0]; i++) {
        why = "";
        int found = finds(span_str(refused_rows[i].pattern), SPAN("a"), STEPS, &why);
        if (found != -2 || strstr(why, refused_rows[i].words) == NULL)
            fail_msg("/%s/: %d %s", refused_rows[i].pattern, found, why);
    }
}

static void bounds(void **state)
{
    static uint8_t text[PATTERN_TEXT_MAX + 1];
    const char *why;
    memset(text, 'a', sizeof text);
    assert_int_equal(finds(span_of(text, PATTERN_TEXT_MAX), span_of(text, sizeof text), 10 * STEPS, &why), 1);
    assert_int_equal(finds(span_of(text, sizeof text), SPAN("a"), STEPS, &why), -2);
    assert_non_null(strstr(why, "longer than"));
    memset(text, '(', PATTERN_DEPTH_MAX + 1);
    memset(text + PATTERN_DEPTH_MAX + 1, ')', PATTERN_DEPTH_MAX + 1);
    assert_int_equal(finds(span_of(text, 2 * PATTERN_DEPTH_MAX + 2), SPAN("a"), STEPS, &why), -2);
    assert_non_null(strstr(why, "nested"));
    assert_int_equal(finds(span_of(text + 1, 2 * PATTERN_DEPTH_MAX), SPAN("a"), STEPS, &why), 1);
}

/* What takes engines that try one way after another longer than the sun burns. */
static void linear(void **state)
{
    static uint8_t text[20000];
    const char *why;
    static const char *const slow[] = {"^(a+)+$", "^(a|aa)+$", "^(a|a)*$", "(.*a){12}$", "^(a*)*b"};
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '!';
    for (size_t i = 0; i < sizeof slow / sizeof slow[0]; i++)
        assert_int_equal(finds(span_str(slow[i]), span_of(text, sizeof text), 100 * sizeof text, &why), 0);
    assert_int_equal(finds(SPAN("^(a+)+$"), span_of(text, sizeof text), 1000, &why), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_or_not),
        cmocka_unit_test(refused),
        cmocka_unit_test(bounds),
        cmocka_unit_test(linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
