/* The judge: what passes, what is refused, and what is written down of it. */
#include "tests/play/play.h"

#define READS "allow read GET /free rule=reads\n"

static void an_allowed_read_passes(void **state)
{
    struct play p;
    play_all(&p, READS);
    give_request(&p, XID(1), &(struct ask){.method = "GET", .path = "/free/x", .query = "a=1"});
    expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    struct wire_forward f = expect_forward(&p, XID(1), NULL);
    assert_false(f.unsafe);
    assert_int_equal(f.release, RELEASE_NONE);
    assert_int_equal(f.body, BODY_NONE);
    expect_nothing(&p);
    give_result(&p, XID(1), OUTCOME_ANSWERED, 200, true, "");
    assert_int_equal(expect_outcome(&p, XID(1), false), OUTCOME_ANSWERED);
    assert_int_equal(judge_exchanges(p.j), 0);

    give_request(&p, XID(2), GET("/free/y")); /* the upstream is told once */
    expect_forward(&p, XID(2), NULL);
    give_result(&p, XID(2), OUTCOME_ANSWERED, 200, true, "");
    expect_outcome(&p, XID(2), false);
    play_close(&p);
}

static void a_denial_says_why_and_is_recorded(void **state)
{
    struct play p;
    play_all(&p, "deny write POST /no rule=nope say=Not_on_Fridays\n");
    give_request(&p, XID(1), POST("/no/a", "x"));
    expect_reply(&p, XID(1), 403, "Not on Fridays");
    expect_audit(&p, XID(1), "deny", "rule");
    give_request(&p, XID(2), GET("/elsewhere"));
    expect_reply(&p, XID(2), 403, "\"code\":\"denied\"");
    expect_audit(&p, XID(2), "deny", "no-rule");
    covers("A33");
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allowed_read_passes),
        cmocka_unit_test(a_denial_says_why_and_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
