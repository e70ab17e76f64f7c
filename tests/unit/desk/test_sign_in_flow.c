/* A sign-in by way of a provider belongs to one browser. Covers E11, E26 (oidc). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "web-approval/guard.h"

static struct guard g;

static int setup(void **state)
{
    return guard_init(&g, SPAN("https://desk.example"));
}

/* A request of a browser with this cookie. */
static const struct http_head *with(const char *cookie)
{
    static char text[1024];
    static struct http_head h;
    struct http_err e;
    size_t seen = 0, used;
    int n =
        snprintf(text, sizeof(text),
                 "GET / HTTP/1.1\r\nHost: desk.example\r\nCookie: a=b; __Host-countersign-flow=%s\r\n\r\n", cookie);
    assert_int_equal(http_parse_request(span_of(text, (size_t)n), HTTP_ORIGIN_SERVER, &seen, &h, &used, &e), HTTP_OK);
    return &h;
}

static void begins(const char *cookie, uint64_t now, struct guard_flow *f)
{
    assert_int_equal(guard_flow_new(&g, with(cookie), now, f), 0);
}

static void it_comes_back_to_the_browser_it_began_in(void **state)
{
    struct guard_flow mine, other, back;
    char changed[GUARD_SEED_TEXT + 1];
    begins("", 1000, &mine);
    begins("", 1000, &other);
    assert_false(mine.known);
    assert_true(strlen(mine.verifier) >= 43); /* RFC 7636 section 4.1 */
    assert_string_not_equal(mine.state, mine.nonce);
    assert_string_not_equal(mine.state, mine.verifier);
    assert_string_not_equal(mine.nonce, mine.verifier);
    assert_string_not_equal(mine.state, other.state);
    assert_string_not_equal(mine.nonce, other.nonce);
    assert_string_not_equal(mine.verifier, other.verifier);
    assert_null(strstr(mine.state, mine.text));
    assert_true(guard_flow_of(&g, with(mine.text), 1000 + GUARD_FLOW_MS - 1, &back));
    assert_string_equal(back.state, mine.state);
    assert_string_equal(back.nonce, mine.nonce);
    assert_string_equal(back.verifier, mine.verifier);
    assert_true(guard_flow_of(&g, with(other.text), 1000, &back));
    assert_string_not_equal(back.state, mine.state);
    assert_false(guard_flow_of(&g, with(mine.text), 1000 + GUARD_FLOW_MS, &back));
    assert_false(guard_flow_of(&g, with(mine.text), 999, &back));
    assert_false(guard_flow_of(&g, with(""), 1000, &back));
    assert_false(guard_flow_of(&g, with(mine.state), 1000, &back));
    for (size_t i = 0; i < strlen(mine.text); i++) {
        memcpy(changed, mine.text, sizeof(changed));
        changed[i] = changed[i] == '1' ? '2' : '1';
        assert_false(guard_flow_of(&g, with(changed), 2000, &back));
        changed[i] = '\0';
        assert_false(guard_flow_of(&g, with(changed), 2000, &back));
    }
    assert_int_equal(guard_seed(&g, 1000, changed), 0);
    assert_false(guard_flow_of(&g, with(changed), 1000, &back)); /* what was made for something else */
    assert_int_equal(guard_init(&g, SPAN("https://desk.example")), 0);
    assert_false(guard_flow_of(&g, with(mine.text), 1000, &back)); /* of another start */
}

static void somebody_signs_in_with_it_once(void **state)
{
    struct guard_flow mine, back;
    char known[GUARD_SEED_TEXT + 1];
    begins("", 1000, &mine);
    assert_false(guard_flow_use(&g, &mine, 1000 + GUARD_FLOW_MS, known));
    assert_true(guard_flow_use(&g, &mine, 2000, known));
    assert_false(guard_flow_use(&g, &mine, 2000, known));
    assert_false(guard_flow_of(&g, with(mine.text), 2000, &back));
    struct guard_flow forged = mine;
    forged.known = true;
    assert_false(guard_flow_use(&g, &forged, 2000, known));
}

/* Its tries are counted by its id, which it keeps; and a cookie says only what it was given for. */
static void a_browser_is_known_afterwards(void **state)
{
    struct guard_flow first, next, third;
    char known[GUARD_SEED_TEXT + 1];
    begins("", 1000, &first);
    begins(first.text, 1100, &next);
    assert_false(next.known); /* who has only begun is not */
    assert_memory_not_equal(next.text, first.text, ID_TEXT);
    assert_true(guard_flow_use(&g, &first, 2000, known));
    begins(known, 3000, &next);
    assert_true(next.known);
    assert_memory_equal(next.text, first.text, ID_TEXT);
    assert_string_not_equal(next.state, first.state);
    assert_true(guard_flow_of(&g, with(next.text), 3000, &third) && third.known);
    begins(next.text, 4000, &third); /* another attempt, after one that was not finished */
    assert_true(third.known);
    begins(known, 3000 + GUARD_FLOW_MS, &next); /* long after it was given */
    assert_true(guard_flow_of(&g, with(next.text), 4000 + GUARD_FLOW_MS, &third) && third.known);
    begins(known, 3000 + (uint64_t)GUARD_BROWSER_DAYS * 24 * 3600 * 1000, &next);
    assert_false(next.known);
    assert_memory_not_equal(next.text, first.text, ID_TEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(it_comes_back_to_the_browser_it_began_in, setup),
                                       cmocka_unit_test_setup(somebody_signs_in_with_it_once, setup),
                                       cmocka_unit_test_setup(a_browser_is_known_afterwards, setup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
