/* Checkpoints that are in a store elsewhere as well: what comes back without what lies here, what is told of it
 * there, and what of it was changed there. */
#include "tests/unit/checkpoint/away_world.h"

/* As alike(), which costs more, and is asked once. */
static void same(void)
{
    IN("diff -r --no-dereference work back");
}

static void what_is_lost_here_comes_back_from_there(void **state)
{
    char first[FORM_ID + 1];
    a_workspace();
    assert_int_equal(save("first"), 0);
    memcpy(first, id, sizeof(first));
    IN("rm -r work && mkdir work && echo more > work/more");
    assert_int_equal(save("second"), 0);
    lost();
    assert_int_equal(load("first"), 0);
    IN("grep -q 'a needle' back/d/small && test $(stat -c %%s back/big) = 150000");
    assert_int_equal(span_eq(told.id, span_str(first)), 1);
    assert_int_equal(load("second"), 0);
    alike();
    lost();
    struct order o = {.what = ORDER_LIST, .tenant = SPAN("default")};
    struct dynbuf b;
    dynbuf_init(&b, 65536);
    assert_int_equal(store_list(&store, &o, &b, &err), 0);
    assert_true(span_find(dynbuf_span(&b), SPAN("first")) < b.n && span_find(dynbuf_span(&b), SPAN("second")) < b.n);
    dynbuf_free(&b);
    o.tenant = SPAN("globex");
    o.which = SPAN("first");
    o.what = ORDER_LOAD;
    refused(with("back", SPAN_NONE, &o), ORDER_NO_SUCH); /* nor does it come to another tenant */
    assert_int_equal(save("first"), -1);                 /* the name is taken, there as here */
    assert_int_equal(how, STORE_TAKEN);
}

static void nothing_is_told_there(void **state)
{
    a_workspace();
    assert_int_equal(save_of("a-person", "named", SPAN_NONE), 0);
    IN("ls there | grep -q . && ! grep -rqaE 'a needle|a-person|named|default' there && ! ls there | grep -E "
       "'person|named|default'");
    IN("mv store/store-key k && head -c 32 /dev/urandom > store/store-key && find store -mindepth 1 ! -name "
       "store-key -delete");
    away_close(&away);
    assert_int_equal(away_begin(), 0);
    refused(load("named"), ORDER_NO_SUCH);
    refused(load(id), ORDER_NO_SUCH); /* whose key is another one does not even know where to look */
    IN("mv k store/store-key");
    away_close(&away);
    assert_int_equal(away_begin(), 0);
    assert_int_equal(load("named"), 0);
    same();
}

enum { EXCHANGED, CHANGED, CUT, EMPTIED, TRICKS };

static void change(const char *path, const char *other, int trick, struct span good)
{
    uint8_t x = good.p[good.n / 2] ^ 1;
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    if (trick == EXCHANGED)
        assert_int_equal(renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE), 0);
    else if (trick == CHANGED)
        assert_int_equal(pwrite(fd, &x, 1, (off_t)good.n / 2), 1);
    else
        assert_int_equal(ftruncate(fd, trick == CUT ? (off_t)good.n - 1 : 0), 0);
    close(fd);
}

static void change_back(const char *path, const char *other, int trick, struct span good)
{
    if (trick == EXCHANGED) {
        change(path, other, trick, good);
        return;
    }
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0 && file_write_fd(fd, good) == 0);
    close(fd);
}

/* Each of what lies there, each with another one's bytes, too. */
static void what_was_changed_or_exchanged_there_is_refused(void **state)
{
    struct dirent **all;
    char path[512], other[512];
    struct dynbuf good;
    IN("mkdir work/d && head -c 100000 /dev/urandom > work/big"); /* two parts */
    assert_int_equal(save("one"), 0);
    int n = objects(&all);
    assert_int_equal(n, 4);
    for (int i = 0; i < n; i++) {
        (void)snprintf(path, sizeof(path), "%s/there/%s", top, all[i]->d_name);
        (void)snprintf(other, sizeof(other), "%s/there/%s", top, all[i == 0]->d_name);
        dynbuf_init(&good, 2 * PART);
        assert_int_equal(file_read(path, &good), 0);
        for (int trick = 0; trick < TRICKS; trick++) {
            lost();
            change(path, other, trick, dynbuf_span(&good));
            assert_int_equal(load(id), -1);
            if (span_find(span_str(err.text), SPAN("damaged")) == strlen(err.text))
                fail_msg("%d %d: %s", i, trick, err.text);
            change_back(path, other, trick, dynbuf_span(&good));
        }
        dynbuf_free(&good);
    }
    for (int i = 0; i < n; i++)
        free(all[i]);
    free(all);
    IN("cp -r there good");
    IN("rm there/*pack.1-*"); /* a part is missing */
    lost();
    refused(load(id), "a part of it is missing");
    IN("rm -r there && cp -r good there");
    lost();
    assert_int_equal(load(id), 0);
    same();
}

static void what_it_does_not_take_is_not_kept_here_either(void **state)
{
    a_workspace();
    int n = 0; /* key, three parts of a pack, and the list; what was taken needs not be taken again */
    for (puts_left = n; save("one") != 0; puts_left = ++n) {
        refused(-1, "takes nothing");
        IN("! find store -name 'ck-*' ! -name '*.pack' | grep .");
    }
    assert_in_range(n, 3, 5);
    puts_left = 1000;
    lost();
    assert_int_equal(load("one"), 0);
    same();
}

static void what_is_removed_is_gone_there_too(void **state)
{
    a_workspace();
    assert_int_equal(save("one"), 0);
    IN("rm work/big && echo x > work/x");
    assert_int_equal(save("two"), 0);
    IN("ls there | grep -q 'pack[.]0-3'");
    assert_int_equal(gone("one"), 0);
    assert_int_equal(tidy(), 0);
    IN("! ls there | grep 'pack[.].-3'"); /* what is needed of its pack is in another one */
    lost();
    assert_int_equal(load("two"), 0);
    same();
    refused(load("one"), ORDER_NO_SUCH);
    assert_int_equal(gone("two"), 0);
    assert_int_equal(tidy(), 0);
    assert_true(only_the_key_is_there());
}

static void what_was_kept_before_goes_there_with_the_next(void **state)
{
    store.away = NULL;
    a_workspace();
    assert_int_equal(save("before"), 0);
    IN("! ls there | grep .");
    store.away = &away;
    assert_int_equal(save("after"), 0); /* its pieces are in a pack of before */
    lost();
    assert_int_equal(load("after"), 0);
    same();
}

static int undo(const char *which)
{
    const struct order o = {
        .what = ORDER_LOAD, .tenant = SPAN("default"), .name = SPAN(".undo"), .which = span_str(which)};
    return with("back", SPAN_NONE, &o);
}

static void what_is_of_a_fork_or_idle_stays_here(void **state)
{
    char idle[FORM_ID + 1];
    a_workspace();
    is_away = true; /* and needs no store, from the first one on */
    assert_int_equal(save_of("root", ".fork", SPAN_NONE), 0);
    IN("head -c 150000 /dev/urandom > work/idle");
    assert_int_equal(save_of("root", ".idle", SPAN_NONE), 0);
    memcpy(idle, id, sizeof(idle));
    assert_int_equal(load(idle), 0);
    same();
    IN("rm work/idle");
    assert_int_equal(save("one"), -1);
    assert_int_equal(how, STORE_FAILED);
    IN("! ls there | grep .");
    is_away = false;
    assert_int_equal(save("one"), 0);
    IN("test $(ls there | grep -c 'pack[.]0-') = 1"); /* nor a pack that no other one needs */
    assert_int_equal(forget(idle), 0);
    assert_int_equal(save("two"), 0);
    lost();
    assert_int_equal(load("two"), 0);
    same();
}

static void what_is_of_a_step_stays_here(void **state)
{
    const struct order sweep = {.what = ORDER_SWEEP, .tenant = SPAN("default"), .name = SPAN(".undo")};
    char first[FORM_ID + 1], second[FORM_ID + 1];
    a_workspace();
    is_away = true;
    assert_int_equal(save(".undo"), 0);
    memcpy(first, id, sizeof(first));
    IN("head -c 150000 /dev/urandom > work/step");
    assert_int_equal(save(".undo"), 0);
    memcpy(second, id, sizeof(second));
    assert_int_equal(undo(second), 0);
    same();
    IN("rm work/step && ! ls there | grep .");
    is_away = false;
    assert_int_equal(save("one"), 0); /* shares the pack of the first */
    IN("ls there | grep -q %s.pack && ! ls there | grep %s && ! ls there | grep '%s[.].-'", first, second, first);
    refused(gone(first), ORDER_NO_SUCH);
    IN("ls there > before");
    is_away = true;
    assert_int_equal(undo(first), 0);
    same();
    assert_int_equal(forget(second), 0);
    refused(undo(second), ORDER_NO_SUCH); /* nor is it looked for */
    is_away = false;
    IN("ls there | cmp - before");
    /* What a step needs alone goes from there with the last that needs it there, and is here. */
    assert_int_equal(gone("one"), 0);
    assert_int_equal(tidy(), 0);
    assert_true(only_the_key_is_there());
    is_away = true;
    assert_int_equal(undo(first), 0);
    same();
    is_away = false;
    assert_int_equal(save("two"), 0);
    is_away = true;
    assert_int_equal(store_sweep(&store, &sweep, &err), 0);
    is_away = false;
    IN("test ! -e store/*/%s", first);
    lost();
    assert_int_equal(load("two"), 0);
    same();
}

/* As a backup of this machine has it: what came after that is not here, and needs the same pieces. */
static void what_one_there_needs_that_is_not_here_stays(void **state)
{
    a_workspace();
    assert_int_equal(save("one"), 0);
    IN("cp -r store backup && echo more > work/more");
    assert_int_equal(save("two"), 0);
    lost();
    IN("rm store/* && cp -r backup/. store");
    assert_int_equal(gone("one"), 0);
    assert_int_equal(tidy(), 0);
    IN("ls there | grep -q 'pack[.]0-3'");
    assert_int_equal(load("two"), 0);
    same();
    assert_int_equal(gone("two"), 0);
    assert_int_equal(tidy(), 0);
    assert_true(only_the_key_is_there());
}

/* Another gateway with the same store-key that has begun by itself: neither reads the other's as its own. */
static void two_keys_of_one_owner_are_not_mixed(void **state)
{
    a_workspace();
    assert_int_equal(save("one"), 0);
    IN("for d in store/*/; do head -c 32 /dev/urandom > $d/key && rm $d/up-* $d/ck-*; done");
    refused(save("two"), "by another key");
    assert_int_equal(how, STORE_FAILED);
}

/* Whoever has the store, a rule of it, or a backup of it takes away one after another what was there. */
static void what_is_not_there_any_more_goes_there_again(void **state)
{
    struct dirent **all;
    a_workspace();
    assert_int_equal(save("one"), 0);
    int n = objects(&all);
    assert_int_equal(n, 5);
    for (int i = 0; i < n; i++) {
        char name[] = {'a', (char)('0' + i), 0};
        IN("rm there/%s", all[i]->d_name);
        assert_int_equal(save(name), 0);
        lost();
        assert_int_equal(load(name), 0);
        same();
    }
    IN("rm there/*");
    IN("mv there old && mkdir there");
    assert_int_equal(save("all"), 0);
    lost();
    assert_int_equal(load("all"), 0);
    same();
    while (n-- > 0)
        free(all[n]);
    free(all);
}

/* The configuration tells of another store, or the same again. */
static void in_store(const char *place)
{
    away_close(&away);
    carrier.place = place;
    assert_int_equal(away_begin(), 0);
}

/* What is known of one store, and is to go from there, is of that alone. */
static void another_store_is_another_one(void **state)
{
    a_workspace();
    assert_int_equal(save("one"), 0);
    IN("cp -r store mine && mv there old && mkdir there && for d in store/*/; do head -c 32 /dev/urandom > $d/key && "
       "rm "
       "$d/up-* $d/ck-*; done");
    in_store("elsewhere");
    assert_int_equal(save("other"), 0); /* by another gateway with the same store-key, say */
    IN("rm -r store/* && cp -r mine/. store");
    in_store("elsewhere");
    refused(save("two"), "by another key");
    assert_int_equal(gone("one"), 0);
    assert_int_equal(tidy(), 0);
    IN("rm -r there && mv old there");
    in_store("here");
    assert_int_equal(tidy(), 0);
    assert_true(only_the_key_is_there());
}

/* Who throws away what was half written is alone meanwhile: who makes the folder here waits, and writes nothing. */
static void who_makes_a_folder_waits_for_who_clears_up(void **state)
{
    char name[SHELF_NAME + 1], path[128], key[128], held;
    int fd[2], status;
    a_workspace();
    assert_int_equal(save("one"), 0);
    lost();
    shelf_of(SPAN("default"), SPAN("root"), name);
    IN("mkdir -m 700 store/%s", name);
    (void)snprintf(path, sizeof(path), "%s/store/%s/lock", top, name);
    (void)snprintf(key, sizeof(key), "%s/store/%s/key", top, name);
    assert_int_equal(pipe(fd), 0);
    pid_t child = fork();
    if (child == 0) {
        int lock = open(path, O_RDWR | O_CREAT, 0600);
        if (flock(lock, LOCK_EX) != 0 || write(fd[1], "x", 1) != 1)
            _exit(2);
        (void)usleep(300 * 1000);
        _exit(access(key, F_OK) == 0);
    }
    assert_int_equal(read(fd[0], &held, 1), 1);
    locked_by_test = true;
    assert_int_equal(load("one"), 0);
    locked_by_test = false;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(fd[0]);
    close(fd[1]);
}

static void a_pack_that_is_lost_here_is_not_removed_there(void **state)
{
    a_workspace();
    assert_int_equal(save("one"), 0);
    IN("echo more > work/more");
    assert_int_equal(save("two"), 0);
    IN("rm store/*/ck-*.pack");
    assert_int_equal(gone("two"), 0);
    assert_int_equal(load("one"), 0);
    IN("rm work/more");
    same();
}

/* Two owners, of two tenants, with the same file: nothing of it is alike there, and nothing fits in another's place.
 */
static void two_tenants_have_nothing_alike_there(void **state)
{
    char mine[FORM_ID + 1];
    a_workspace();
    assert_int_equal(save("one"), 0);
    memcpy(mine, id, sizeof(mine));
    IN("ls there > mine");
    const struct order other = {.what = ORDER_SAVE,
                                .tenant = SPAN("globex"),
                                .owner = SPAN("root"),
                                .name = SPAN("one"),
                                .sandbox = SPAN("box"),
                                .generation = 1,
                                .disk = disk};
    assert_int_equal(with("work", SPAN_NONE, &other), 0);
    IN("test $(sha256sum there/* | cut -c1-64 | sort | uniq -d | wc -l) = 0");
    IN("test $(ls there | sed 's/+.*//' | sort -u | wc -l) = 2");
    /* each of mine has the bytes of the other's that is like it */
    IN("for f in $(cat mine); do d=${f%%+*}; n=${f##*.}; case $f in *pack*) k=pack;; *key*) k=key;; *) k=ck-;; esac; "
       "for g in there/*$k*.$n; do case $g in *$d*) ;; *pack*) test $k = pack && cp $g there/$f;; *) cp $g "
       "there/$f;; "
       "esac; done; done");
    lost();
    assert_int_equal(load(mine), -1);
    refused(load("one"), ORDER_NO_SUCH);
}

static void what_a_listing_makes_up_is_passed_over(void **state)
{
    a_workspace();
    assert_int_equal(save("one"), 0);
    IN("cd there && f=$(ls | head -1) && d=${f%%+*} && for n in $d+key.0-1x $d+key.00-1 $d+..+..+x.0-1 "
       "$d+ck-..+..+store-key.0-1 $d+store-key.0-1 $d+ck-00000000000000000000000000.0-99999999999 x+key.0-1 "
       "00000000000000000000000000000000+ck-00000000000000000000000000.0-1; do echo x > $n; done");
    lost();
    assert_int_equal(load("one"), 0);
    same();
    IN("test $(ls store | grep -vc '^[0-9a-f]*$') -le 2"); /* lock, store-key */
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, opened, closed)
    const struct CMUnitTest tests[] = {
        TEST(what_is_lost_here_comes_back_from_there),
        TEST(nothing_is_told_there),
        TEST(what_was_changed_or_exchanged_there_is_refused),
        TEST(what_it_does_not_take_is_not_kept_here_either),
        TEST(what_is_removed_is_gone_there_too),
        TEST(what_was_kept_before_goes_there_with_the_next),
        TEST(what_is_of_a_fork_or_idle_stays_here),
        TEST(what_is_of_a_step_stays_here),
        TEST(what_one_there_needs_that_is_not_here_stays),
        TEST(two_keys_of_one_owner_are_not_mixed),
        TEST(what_is_not_there_any_more_goes_there_again),
        TEST(another_store_is_another_one),
        TEST(who_makes_a_folder_waits_for_who_clears_up),
        TEST(a_pack_that_is_lost_here_is_not_removed_there),
        TEST(two_tenants_have_nothing_alike_there),
        TEST(what_a_listing_makes_up_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
