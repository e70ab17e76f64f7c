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
    assert_int_equal(how, STORE_REFUSED); /* nothing was touched */
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

/* As somebody who runs on may make it between: what is in the way goes, and what may not be written into may be. */
static void what_comes_between_gives_way(void **state)
{
    const struct order o = {.what = ORDER_LOAD, .tenant = SPAN("default"), .which = SPAN("mine")};
    IN("echo a > work/a; ln -s a work/l; mkdir work/d work/e; echo b > work/d/b; echo c > work/e/c; chmod 555 "
       "work/d");
    assert_int_equal(save("mine"), 0);
    IN("mkdir -p back/a/x/y back/l/x back/d && echo x > back/a/x/y/z && chmod 0 back/a/x && echo x > back/e && "
       "chmod 500 back/d");
    assert_int_equal(with("back", SPAN_NONE, &o), 0);
    alike();
}

/* G20: its owner has as much as may be kept, so that one goes before another is; and a list of names takes room. */
static void one_goes_before_another_is_kept(void **state)
{
    char first[FORM_ID + 1];
    store.most = 300000;
    IN("head -c 200000 /dev/urandom > work/a");
    assert_int_equal(save(".undo"), 0);
    assert_in_range(listed, 33, 300);
    memcpy(first, id, sizeof(first));
    IN("head -c 200000 /dev/urandom > work/a");
    refused(save(".undo"), "`countersign sandbox undo` or `sandbox destroy`");
    assert_int_equal(how, STORE_FULL);
    goes = first;
    assert_int_equal(save(".undo"), 0);
    IN("test ! -e store/*/%s && test $(ls store/*/*.pack | wc -l) = 1", first);
    IN("head -c 200000 /dev/urandom > work/a");
    refused(save(".undo"), "300000 bytes"); /* what went before is not there any more */
    goes = "";
    IN("test -e store/*/%s", id);
}

/* Nobody begins with one by its id, unless the step was named. */
static void only_who_names_the_step_begins_with_it(void **state)
{
    struct order o = {.what = ORDER_LOOK, .tenant = SPAN("default")};
    IN("echo kept > work/a");
    assert_int_equal(save(".undo"), 0);
    dynbuf_free(&said);
    dynbuf_init(&said, 4096);
    o.which = span_str(id);
    how = STORE_FAILED;
    refused(store_look(&store, &o, &said, &err), "no such checkpoint");
    assert_int_equal(how, STORE_MISSING);
    assert_int_equal(said.n, 0);
    o.what = ORDER_LOOK_STEP;
    assert_int_equal(store_look(&store, &o, &said, &err), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(before_a_step_is_what_there_is_again),   TEST(what_is_kept_of_steps_goes_with_its_sandbox),
        TEST(what_comes_between_gives_way),           TEST(one_goes_before_another_is_kept),
        TEST(only_who_names_the_step_begins_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
