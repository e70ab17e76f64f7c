/* Checkpoints that are in a store elsewhere as well: what comes back without what lies here, what is told of it
 * there, and what of it was changed there. A folder stands in for the store. */
#include "tests/unit/checkpoint/checkpoints.h"

#include "sandbox-shim/checkpoint/away/away.h"

static struct away away;
static int puts_left;

static void object(const char *key, char path[512])
{
    (void)snprintf(path, 512, "%s/there/%s", top, key);
    for (char *c = path + strlen(top) + 7; *c; c++)
        if (*c == '/')
            *c = '+';
}

static int put(void *arg, const char *key, struct span bytes, struct err *e)
{
    char path[512];
    object(key, path);
    if (puts_left-- <= 0)
        return err_set(e, "the store takes nothing");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && file_write_fd(fd, bytes) == 0);
    return close(fd);
}

static int get(void *arg, const char *key, struct dynbuf *b, struct err *e)
{
    char path[512];
    object(key, path);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return 1;
    int rc = file_read_fd(fd, b);
    close(fd);
    return rc == 0 ? 0 : err_set(e, "too long");
}

static int drop(void *arg, const char *key, struct err *e)
{
    char path[512];
    object(key, path);
    return unlink(path);
}

static int list(void *arg, const char *begins, away_name_fn *fn, void *ctx, struct err *e)
{
    char line[512];
    (void)snprintf(line, sizeof(line), "ls %s/there | LC_ALL=C sort", top);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        for (char *c = line; *c; c++)
            *c = *c == '+' ? '/' : *c;
        if (strncmp(line, begins, strlen(begins)) == 0 && fn(ctx, line) < 0)
            return err_set(e, "too many");
    }
    return pclose(f);
}

static const struct away_carrier carrier = {NULL, put, get, drop, list};

static int opened(void **state)
{
    int rc = begin(state);
    puts_left = 1000;
    store.away = &away;
    return rc == 0 && in("mkdir there") == 0 ? away_open(&away, store.dir, store.most, &carrier, &err) : -1;
}

static int closed(void **state)
{
    away_close(&away);
    store.away = NULL;
    return finish(state);
}

/* All that lay here is gone, but the key of all. */
static void lost(void)
{
    IN("find store -mindepth 1 ! -name store-key -delete");
}

static void a_workspace(void)
{
    IN("cd work && mkdir d && head -c 9000000 /dev/urandom > big && echo a needle that is found > d/small && ln -s d "
       "l");
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
    IN("grep -q 'a needle' back/d/small && test $(stat -c %%s back/big) = 9000000");
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
    IN("for f in there/*; do ! gzip -t < $f 2>/dev/null || exit 1; done");
    IN("mv store/store-key k && head -c 32 /dev/urandom > store/store-key && find store -mindepth 1 ! -name "
       "store-key -delete");
    away_close(&away);
    assert_int_equal(away_open(&away, store.dir, store.most, &carrier, &err), 0);
    refused(load("named"), ORDER_NO_SUCH);
    refused(load(id), "damaged, or of another key");
    IN("mv k store/store-key");
    away_close(&away);
    assert_int_equal(away_open(&away, store.dir, store.most, &carrier, &err), 0);
    assert_int_equal(load("named"), 0);
    alike();
}

static void what_was_changed_or_exchanged_there_is_refused(void **state)
{
    a_workspace();
    assert_int_equal(save("one"), 0);
    IN("cp -r there good && ls there > names");
    for (int n = 1; in("test -n \"$(sed -n %dp names)\"", n) == 0; n++) {
        static const char *const tricks[] = {
            "f=there/$(sed -n %dp names); s=$(stat -c %%s $f); printf X | dd of=$f bs=1 seek=$((s/2)) conv=notrunc "
            "2>/dev/null",
            "f=there/$(sed -n %dp names); truncate -s -1 $f", "f=there/$(sed -n %dp names); : > $f",
            "f=there/$(sed -n %dp names); o=$(ls there/* | grep -v $f | head -1); mv $f t && mv $o $f && mv t $o"};
        for (size_t i = 0; i < sizeof(tricks) / sizeof(*tricks); i++) {
            lost();
            IN(tricks[i], n);
            assert_int_equal(load(id), -1);
            if (span_find(span_str(err.text), SPAN("damaged")) == strlen(err.text))
                fail_msg("%d %zu: %s", n, i, err.text);
            IN("rm -r there && cp -r good there");
        }
    }
    IN("rm there/*pack.1-*"); /* a part is missing */
    lost();
    refused(load(id), "a part of it is missing");
    IN("rm -r there && cp -r good there");
    lost();
    assert_int_equal(load(id), 0);
    alike();
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
    alike();
}

static void what_is_removed_is_gone_there_too(void **state)
{
    a_workspace();
    assert_int_equal(save("one"), 0);
    IN("rm work/big && echo x > work/x");
    assert_int_equal(save("two"), 0);
    assert_int_equal(gone("one"), 0);
    lost();
    assert_int_equal(load("two"), 0);
    alike();
    refused(load("one"), ORDER_NO_SUCH);
    assert_int_equal(gone("two"), 0);
    IN("test \"$(ls there | sed 's/.*+//')\" = key.0-1");
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
    alike();
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
