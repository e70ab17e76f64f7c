/* Checkpoints of before a step, on the disk: what was there is there again, and nothing of them stays. */
#include "tests/unit/checkpoint/store_world.h"

/* What is there goes, whatever it is, once all that comes instead is known to be as it was written. */
static void before_a_step_is_what_there_is_again(void **state)
{
    IN("echo a > work/a; mkdir work/d; head -c 2000000 /dev/urandom > work/d/big; chmod 555 work/d");
    assert_int_equal(save(".undo"), 0);
    const struct order o = {
        .what = ORDER_LOAD, .tenant = SPAN("default"), .name = SPAN(".undo"), .which = span_str(id)};
    IN("mkdir -p back/d/e/f back/shut/x && echo b > back/a && echo c > back/shut/x/c && ln -s / back/root && mkfifo "
       "back/p && "
       "chmod 500 back/d/e && chmod 0 back/shut/x && chmod 0 back/shut");
    assert_int_equal(with("back", SPAN_NONE, &o), 0);
    alike();
    IN("echo later > back/later; printf x | dd of=$(ls store/*/%s.pack) bs=1 seek=1000 conv=notrunc 2>/dev/null", id);
    refused(with("back", SPAN_NONE, &o), "is not what was written");
    IN("test -e back/later");
}

static void what_is_kept_of_steps_goes_with_its_sandbox(void **state)
{
    const struct order of_box = {.what = ORDER_SWEEP,
                                 .tenant = SPAN("default"),
                                 .name = SPAN(".undo"),
                                 .which = SPAN("box"),
                                 .generation = 7},
                       before = {.what = ORDER_SWEEP,
                                 .tenant = SPAN("default"),
                                 .name = SPAN(".undo"),
                                 .which = SPAN("box"),
                                 .generation = 6},
                       forks = {.what = ORDER_SWEEP, .tenant = SPAN("default")},
                       list = {.what = ORDER_LIST, .tenant = SPAN("default")},
                       all = {.what = ORDER_SWEEP, .tenant = SPAN("default"), .name = SPAN(".undo")};
    IN("echo kept > work/a");
    assert_int_equal(save("mine"), 0);
    assert_int_equal(save(".undo"), 0);
    refused(gone(id), "no such checkpoint");
    dynbuf_free(&said);
    dynbuf_init(&said, 4096);
    assert_int_equal(store_list(&store, &list, &said, &err), 0);
    assert_true(span_find(dynbuf_span(&said), span_str(id)) == said.n);
    assert_int_equal(store_sweep(&store, &before, &err), 0);
    assert_int_equal(store_sweep(&store, &forks, &err), 0);
    IN("test -e store/*/%s", id);
    assert_int_equal(store_sweep(&store, &of_box, &err), 0);
    IN("test ! -e store/*/%s", id);
    assert_int_equal(save(".undo"), 0);
    assert_int_equal(save(".fork"), 0);
    assert_int_equal(store_sweep(&store, &all, &err), 0);
    IN("test $(ls store/*/ck-* | grep -vc pack) = 1");
    assert_int_equal(load("mine"), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(before_a_step_is_what_there_is_again),
        TEST(what_is_kept_of_steps_goes_with_its_sandbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
