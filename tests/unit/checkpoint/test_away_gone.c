/* Checkpoints that are in a store elsewhere as well: what is to go from there goes, whoever is killed or refused, and
 * never comes back. */
#include "tests/unit/checkpoint/away_world.h"

static bool is_listed(const char *name)
{
    const struct order o = {.what = ORDER_LIST, .tenant = SPAN("default")};
    struct dynbuf b;
    dynbuf_init(&b, 65536);
    assert_int_equal(store_list(&store, &o, &b, &err), 0);
    bool is = span_find(dynbuf_span(&b), span_str(name)) < b.n;
    dynbuf_free(&b);
    return is;
}

/* Before and behind each put: the key, three parts of a pack, and the list. What nobody was told of is not there. */
static void who_is_killed_while_it_writes_there_leaves_nothing(void **state)
{
    int status = SIGKILL, n = 3;
    a_workspace();
    for (; WIFSIGNALED(status); n++) {
        pid_t pid = fork();
        if (pid == 0) {
            killed_at = n;
            _exit(save("one") == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(is_listed("one"), WIFEXITED(status));
        assert_int_equal(tidy(), 0);
        assert_int_equal(only_the_key_is_there(), WIFSIGNALED(status));
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_in_range(n, 10, 14);
}

static void it_is_found_and_removed(void)
{
    assert_true(is_listed("one"));
    assert_int_equal(gone("one"), 0);
    assert_int_equal(tidy(), 0);
}

/* A list that was begun before has it in its hands. */
static void what_is_removed_while_a_list_is_read_stays_removed(void **state)
{
    a_workspace();
    assert_int_equal(save("one"), 0);
    IN("rm store/*/%s", id);
    during = it_is_found_and_removed;
    assert_false(is_listed("one"));
    assert_true(during == NULL);
    IN("test ! -e store/*/%s", id);
    refused(load("one"), ORDER_NO_SUCH);
    assert_int_equal(tidy(), 0);
    assert_true(only_the_key_is_there());
}

/* Whoever has the store puts back all that once was there. */
static void what_was_removed_is_not_believed_again(void **state)
{
    char mine[FORM_ID + 1];
    a_workspace();
    assert_int_equal(save("one"), 0);
    memcpy(mine, id, sizeof(mine));
    IN("cp -r there before");
    is_away = true; /* it is removed here, whether the store is there or not */
    assert_int_equal(gone("one"), 0);
    assert_int_equal(tidy(), -1);
    is_away = false;
    drops_left = 2; /* and goes there bit by bit */
    assert_false(is_listed("one"));
    assert_int_equal(tidy(), -1);
    drops_left = 1000;
    assert_int_equal(tidy(), 0);
    assert_true(only_the_key_is_there());
    IN("cp before/* there && rm -f store/*/gone-*");
    assert_false(is_listed("one"));
    refused(load(mine), ORDER_NO_SUCH);
    refused(load("one"), ORDER_NO_SUCH);
    IN("echo more > work/more");
    assert_int_equal(save("one"), 0); /* the name is free, and with the next one that goes they go as well */
    assert_int_equal(gone("one"), 0);
    assert_int_equal(tidy(), 0);
    assert_true(only_the_key_is_there());
}

/* As a backup of before has it: this machine does not know that anything of that owner lies there. */
static void what_is_only_found_there_can_be_removed(void **state)
{
    a_workspace();
    assert_int_equal(save("one"), 0);
    IN("rm store/*/up-* store/*/ck-*");
    assert_true(is_listed("one"));
    assert_int_equal(gone("one"), 0);
    assert_false(is_listed("one"));
    assert_int_equal(tidy(), 0);
    assert_true(only_the_key_is_there());
}

/* The configuration tells of no store for a while. */
static void what_is_removed_while_there_is_no_store_stays_removed(void **state)
{
    a_workspace();
    assert_int_equal(save("one"), 0);
    store.away = NULL;
    assert_int_equal(gone("one"), 0);
    store.away = &away;
    assert_false(is_listed("one"));
    assert_int_equal(tidy(), 0);
    assert_true(only_the_key_is_there());
}

/* Who removes it is killed behind its mark, and somebody has the shelf when it goes there. */
static void what_is_half_removed_is_not_found_again(void **state)
{
    a_workspace();
    assert_int_equal(save("one"), 0);
    IN("for d in store/*/; do touch $d/gone-%s; done; ls -d store/*/ | tr -d '\\n' > shelf", id);
    char path[64], shelf[64] = "";
    (void)snprintf(path, sizeof(path), "%s/shelf", top);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && read(fd, shelf, sizeof(shelf) - 1) > 0);
    close(fd);
    char lock[160];
    (void)snprintf(lock, sizeof(lock), "%s/%slock", top, shelf);
    fd = open(lock, O_RDWR);
    assert_true(fd >= 0 && flock(fd, LOCK_SH) == 0);
    for (int i = 0; i < 2; i++) {
        assert_false(is_listed("one"));
        refused(load("one"), ORDER_NO_SUCH);
        refused(load(id), ORDER_NO_SUCH);
        assert_int_equal(tidy(), 0);
    }
    close(fd);
    assert_int_equal(tidy(), 0);
    IN("test ! -e store/*/%s", id);
    assert_true(only_the_key_is_there());
    assert_false(is_listed("one"));
}

static void what_a_fork_left_there_goes(void **state)
{
    a_workspace();
    IN("head -c 600000 /dev/urandom > work/large");
    assert_int_equal(save(".fork"), 0);
    char fork_id[FORM_ID + 1];
    memcpy(fork_id, id, sizeof(fork_id));
    IN("rm work/large");
    assert_int_equal(save("one"), 0); /* needs some of the fork's pack */
    IN("ls there | grep -q '%s.pack[.]0-12'", fork_id);
    is_away = true;
    assert_int_equal(forget(fork_id), 0);
    assert_int_equal(tidy(), -1);
    is_away = false;
    assert_int_equal(tidy(), 0);
    IN("! ls there | grep '%s' && ls there | grep -q 'pack[.]0-3'", fork_id);
    lost();
    assert_int_equal(load("one"), 0);
    alike();
}

static void nobody_sees_it(void)
{
    assert_false(is_listed("one"));
}

static void what_is_on_its_way_is_not_listed(void **state)
{
    a_workspace();
    during = nobody_sees_it; /* all of it lies there then */
    assert_int_equal(save("one"), 0);
    assert_true(during == NULL);
    assert_true(is_listed("one"));
}

static void another_one_takes_the_name(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(save_of("somebody", "one", SPAN_NONE) == 0 ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* All of it lies there then, and nobody was told of it. */
static void what_fails_behind_its_last_part_is_no_ghost(void **state)
{
    a_workspace();
    assert_int_equal(save("two"), 0);
    IN("ls there > before");
    during = another_one_takes_the_name;
    assert_int_equal(save("one"), -1);
    assert_int_equal(how, STORE_TAKEN);
    struct order o = {.what = ORDER_LIST, .tenant = SPAN("default")};
    struct dynbuf b;
    dynbuf_init(&b, 65536);
    assert_int_equal(store_list(&store, &o, &b, &err), 0);
    size_t at = span_find(dynbuf_span(&b), SPAN("one"));
    assert_true(at < b.n && span_find(span_from(dynbuf_span(&b), at + 1), SPAN("one")) == b.n - at - 1);
    dynbuf_free(&b);
    assert_int_equal(tidy(), 0);
    assert_int_equal(gone("one"), 0); /* the other one's */
    assert_int_equal(tidy(), 0);
    refused(load("one"), ORDER_NO_SUCH);
    IN("ls there | grep -v '[+]key' > after; grep -v '[+]key' before | cmp - after");
}

/* Nor is it asked for what another tenant has, whatever it tells. */
static void a_tenant_looks_for_its_own_alone(void **state)
{
    struct order o = {.what = ORDER_LIST, .tenant = SPAN("globex")};
    char mine[sizeof(asked)];
    struct dynbuf b;
    a_workspace();
    assert_int_equal(save("one"), 0);
    gets = 0;
    assert_true(is_listed("one"));
    assert_int_equal(gets, 0); /* all of it is here */
    memcpy(mine, asked, sizeof(mine));
    assert_int_equal(strlen(mine), 33);
    lost();
    dynbuf_init(&b, 65536);
    assert_int_equal(store_list(&store, &o, &b, &err), 0);
    dynbuf_free(&b);
    assert_int_equal(strlen(asked), 33);
    assert_string_not_equal(asked, mine);
    IN("! ls store | grep '[0-9a-f]\\{32\\}'"); /* nothing of it came here */
    assert_true(is_listed("one"));
    assert_string_equal(asked, mine);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, opened, closed)
    const struct CMUnitTest tests[] = {
        TEST(who_is_killed_while_it_writes_there_leaves_nothing),
        TEST(what_is_removed_while_a_list_is_read_stays_removed),
        TEST(what_was_removed_is_not_believed_again),
        TEST(what_is_only_found_there_can_be_removed),
        TEST(what_is_removed_while_there_is_no_store_stays_removed),
        TEST(what_is_half_removed_is_not_found_again),
        TEST(what_a_fork_left_there_goes),
        TEST(what_is_on_its_way_is_not_listed),
        TEST(what_fails_behind_its_last_part_is_no_ghost),
        TEST(a_tenant_looks_for_its_own_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
