/* The words that the rooms of the broker share. */
#include "broker/turn.h"
#include "tests/kit.h"

static void a_key_is_of_its_place_and_its_words(void **state)
{
    struct id turn = {{1}}, other = {{2}};
    struct digest key[7];
    call_key(&turn, 1, 2, SPAN("tool"), SPAN("args"), &key[0]);
    call_key(&turn, 1, 2, SPAN("tool"), SPAN("args"), &key[6]);
    assert_memory_equal(&key[0], &key[6], sizeof(key[0]));
    call_key(&other, 1, 2, SPAN("tool"), SPAN("args"), &key[1]);
    call_key(&turn, 2, 2, SPAN("tool"), SPAN("args"), &key[2]);
    call_key(&turn, 1, 3, SPAN("tool"), SPAN("args"), &key[3]);
    call_key(&turn, 1, 2, SPAN("toola"), SPAN("rgs"), &key[4]);
    call_key(&turn, 1, 2, SPAN("tool"), SPAN("args "), &key[5]);
    for (unsigned i = 1; i < 6; i++)
        assert_memory_not_equal(&key[0], &key[i], sizeof(key[0]));
}

static void every_word_has_its_way_back(void **state)
{
    for (unsigned i = 0; i < CALL_CLASSES; i++)
        assert_int_equal(call_class_of(span_str(call_class_name(i))), i);
    for (unsigned i = 0; i < CALL_ENDS; i++)
        assert_int_equal(call_end_of(span_str(call_end_name(i))), i);
    for (unsigned i = 0; i < TURN_ENDS; i++) {
        assert_int_equal(turn_end_of(span_str(turn_end_name(i))), i);
        assert_true(turn_end_words(i)[0] != '\0');
    }
    assert_int_equal(call_class_of(SPAN("harmless")), CALL_UNSAFE);
    assert_string_equal(call_class_name(99), "unsafe");
    assert_int_equal(call_stricter(CALL_READ, CALL_UNSAFE), CALL_UNSAFE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_key_is_of_its_place_and_its_words),
                                       cmocka_unit_test(every_word_has_its_way_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
