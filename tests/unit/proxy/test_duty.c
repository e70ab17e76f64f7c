/* What a process of the broker does, by its words: what is none is refused by its name. */
#include "proxy/duty/duty.h"

#include "tests/kit.h"

static void words_are_read(void **state)
{
    static const struct {
        const char *list;
        unsigned duties;
    } good[] = {{"stream", DUTY_STREAM}, {"turn", DUTY_TURN}, {"stream,turn", DUTY_ALL}, {"turn,stream", DUTY_ALL}};
    struct err e;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        unsigned duties = 99;
        assert_int_equal(duty_read(span_str(good[i].list), &duties, &e), 0);
        assert_int_equal(duties, good[i].duties);
    }
    assert_string_equal(duty_words(DUTY_STREAM), "stream");
    assert_string_equal(duty_words(DUTY_TURN), "turn");
    assert_string_equal(duty_words(DUTY_ALL), "stream,turn");
    assert_string_equal(duty_words(0), "nothing");
}

/* Where there is no broker, nothing is done; that is no part which is done alone. */
static void what_is_done_alone_is_one_of_them(void **state)
{
    assert_string_equal(duty_alone(DUTY_STREAM), "stream");
    assert_string_equal(duty_alone(DUTY_TURN), "turn");
    assert_string_equal(duty_alone(DUTY_ALL), "");
    assert_string_equal(duty_alone(0), "");
}

static void what_is_none_is_refused_by_its_name(void **state)
{
    static const struct {
        const char *list, *said;
    } bad[] = {{"", "\"\" is neither"},
               {"stream,", "\"\" is neither"},
               {",turn", "\"\" is neither"},
               {"Stream", "\"Stream\" is neither"},
               {"stream, turn", "\" turn\" is neither"},
               {"planner", "\"planner\" is neither"},
               {"tools", "\"tools\" is neither"},
               {"turn,turn", "turn stands there twice"},
               {"model", "model is no process of its own"},
               {"stream,model", "model is no process of its own"},
               {"tool", "tool is no process of its own"},
               {"tool:command", "tool:command is no process of its own"}};
    struct err e;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        unsigned duties;
        assert_int_equal(duty_read(span_str(bad[i].list), &duties, &e), -1);
        if (strstr(e.text, bad[i].said) == NULL)
            fail_msg("%s: %s", bad[i].list, e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_are_read),
                                       cmocka_unit_test(what_is_done_alone_is_one_of_them),
                                       cmocka_unit_test(what_is_none_is_refused_by_its_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
