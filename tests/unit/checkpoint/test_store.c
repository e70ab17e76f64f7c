/* Checkpoints on the disk: what was kept comes back, what was changed, cut or made up is refused, what was half
 * written is thrown away and nothing else; a process stands in for who is at the workspace. */
#include "tests/unit/checkpoint/store_world.h"

/* --- what is kept -------------------------------------------------------------------- */

static void what_was_kept_comes_back(void **state)
{
    unsigned before = open_fds();
    IN("cd work && mkdir -p d/e/empty && head -c 3000000 /dev/urandom > big && head -c 2097152 /dev/zero > even && : "
       "> "
       "none && echo x > d/e/x && ln -s /etc/passwd abs && ln -s ../.. d/up && chmod 555 d/e && chmod 400 none && "
       "touch -d "
       "@1000000000 big d d/e && touch -h -d @5 abs");
    assert_int_equal(save("first"), 0);
    assert_int_equal(told.files, 4);
    assert_int_equal(told.folders, 3);
    assert_int_equal(told.links, 2);
    assert_int_equal(told.bytes, 3000000 + 2097152 + 2);
    assert_in_range(told.added, 3000000, 3100000);
    assert_int_equal(load("first"), 0);
    alike();
    assert_int_equal(save(""), 0);
    assert_int_equal(told.added, 0);
    assert_int_equal(load(id), 0);
    alike();
    refused(save("first"), "a checkpoint of this name exists");
    assert_int_equal(how, STORE_TAKEN);
    refused(load("second"), "no such checkpoint");
    assert_int_equal(how, STORE_MISSING);
    assert_int_equal(open_fds(), before);
}

static void of_another_tenant_there_is_none(void **state)
{
    IN("echo secret > work/a");
    assert_int_equal(save("mine"), 0);
    const struct order named = {.what = ORDER_LOAD, .tenant = SPAN("other"), .which = SPAN("mine")},
                       numbered = {.what = ORDER_LOAD, .tenant = SPAN("other"), .which = span_str(id)},
                       none = {.what = ORDER_REMOVE, .tenant = SPAN("other"), .which = span_str(id)};
    refused(with("back", SPAN_NONE, &named), "no such checkpoint");
    refused(with("back", SPAN_NONE, &numbered), "no such checkpoint");
    refused(store_remove(&store, &none, &said, &err), "no such checkpoint");
    assert_int_equal(load("mine"), 0);
}

/* Somebody makes it, and was not as far as its key: that is no fault of whoever looks. One that has lost it is. */
static void one_that_is_being_made_is_none_yet(void **state)
{
    char name[SHELF_NAME + 1];
    struct shelf s;
    shelf_of(SPAN("default"), SPAN("root"), name);
    IN("mkdir -m 700 store/%s", name);
    assert_int_equal(shelf_open(store.dir, name, false, &s, &err), 1);
    shelf_close(&s);
    IN("test ! -e store/%s/lock", name);
    for (const char *const *mark = (const char *const[]){"up-key", "gone-ck-1", NULL}; *mark; mark++) {
        IN("touch store/%s/%s", name, *mark); /* it was made long ago: what this says would be passed over */
        refused(shelf_open(store.dir, name, false, &s, &err), "the key of the checkpoints cannot be read");
        shelf_close(&s);
        IN("rm store/%s/%s", name, *mark);
    }
    IN("echo x > work/a");
    assert_int_equal(save("mine"), 0);
    IN("rm store/%s/key", name);
    refused(shelf_open(store.dir, name, false, &s, &err), "the key of the checkpoints cannot be read");
    shelf_close(&s);
}

/* Nobody can tell any more whose a damaged one is: who merely knows its number learns nothing of it, and removes
 * nothing. */
static void a_damaged_one_is_the_operators_alone(void **state)
{
    IN("echo secret > work/a");
    assert_int_equal(save(""), 0);
    IN("truncate -s 20 store/*/%s", id);
    const struct order read = {.what = ORDER_LOAD, .tenant = SPAN("other"), .which = span_str(id)},
                       remove = {.what = ORDER_REMOVE, .tenant = SPAN("other"), .which = span_str(id)};
    refused(with("back", SPAN_NONE, &read), "no such checkpoint");
    refused(store_remove(&store, &remove, &said, &err), "no such checkpoint");
    assert_int_equal(how, STORE_MISSING);
    IN("test -e store/*/%s", id);
    refused(load(id), "damaged");
    assert_int_equal(gone(id), 0);
    IN("test ! -e store/*/%s", id);
}

static void what_an_idle_one_is_kept_in_is_nobodys_by_its_id(void **state)
{
    assert_int_equal(save(".idle"), 0);
    const struct order forget = {.what = ORDER_FORGET, .tenant = SPAN("default"), .which = span_str(id)};
    refused(store_look(&store, &forget, &said, &err), "no such checkpoint");
    refused(gone(id), "no such checkpoint");
    assert_int_equal(store_remove(&store, &forget, &said, &err), 0);
}

/* Whoever was killed on the way: what nobody asked for is no more, what somebody did is there. */
static void what_nobody_asked_for_is_swept(void **state)
{
    static const struct order all = {.what = ORDER_SWEEP, .tenant = SPAN("default")},
                              others[] = {{.what = ORDER_SWEEP, .tenant = SPAN("default"), .which = SPAN("two")},
                                          {.what = ORDER_SWEEP, .tenant = SPAN("acme"), .which = SPAN("box")}};
    IN("echo kept > work/a");
    assert_int_equal(save("mine"), 0);
    IN("head -c 3000000 /dev/urandom > work/big");
    assert_int_equal(save(".fork"), 0);
    assert_int_equal(save(".fork"), 0); /* as many as there are forks */
    for (int i = 0; i < 2; i++)
        assert_int_equal(store_sweep(&store, &others[i], &err), 0);
    IN("test -e store/*/%s && touch $(dirname store/*/%s)/tmp-ck-1", id, id);
    struct shelf s;
    char name[SHELF_NAME + 1];
    shelf_of(SPAN("default"), SPAN("root"), name);
    assert_int_equal(shelf_open(store.dir, name, false, &s, &err), 0);
    assert_int_equal(shelf_share(&s), 0); /* who writes or reads one just now */
    assert_int_equal(store_sweep(&store, &all, &err), 0);
    IN("test -e store/*/tmp-ck-1");
    shelf_close(&s);
    assert_int_equal(store_sweep(&store, &all, &err), 0);
    IN("test ! -e store/*/tmp-ck-1 && test ! -e store/*/%s && test $(cat store/*/ck-* | wc -c) -lt 100000", id);
    IN("rm work/big");
    assert_int_equal(load("mine"), 0);
    alike();
}

/* The same file of two owners has two names and is there twice: nobody learns from a name, a size, or what is added,
 * that another one has it. */
static void nobody_learns_what_another_has(void **state)
{
    struct shelf a, b;
    uint8_t first[FORM_MAC], second[FORM_MAC];
    char name[SHELF_NAME + 1];
    IN("head -c 100000 /dev/urandom > work/same");
    assert_int_equal(save_of("one", "", SPAN_NONE), 0);
    uint64_t added = told.added;
    assert_int_equal(save_of("two", "", SPAN_NONE), 0);
    assert_int_equal(told.added, added);
    shelf_of(SPAN("default"), SPAN("one"), name);
    assert_int_equal(shelf_open(store.dir, name, false, &a, &err), 0);
    shelf_of(SPAN("default"), SPAN("two"), name);
    assert_int_equal(shelf_open(store.dir, name, false, &b, &err), 0);
    shelf_mac(&a, 'p', SPAN("same"), SPAN_NONE, first);
    shelf_mac(&b, 'p', SPAN("same"), SPAN_NONE, second);
    assert_memory_not_equal(first, second, FORM_MAC);
    shelf_mac(&a, 'h', SPAN("same"), SPAN_NONE, second);
    assert_memory_not_equal(first, second, FORM_MAC);
    shelf_close(&a);
    shelf_close(&b);
}

/* --- what is not as it was ------------------------------------------------------------ */

static void a_flipped_bit_is_refused(void **state)
{
    char path[256];
    struct stat st;
    IN("echo some words, more than once, more than once > work/a; ln -s a work/b; head -c 40 /dev/urandom > work/c");
    assert_int_equal(save(""), 0);
    for (int pack = 0; pack < 2; pack++) {
        (void)snprintf(path, sizeof(path), "%s/path", top);
        IN("ls $PWD/store/*/%s%s | tr -d '\\n' > path", id, pack ? ".pack" : "");
        int fd = open(path, O_RDONLY);
        ssize_t n = read(fd, path, sizeof(path) - 1);
        close(fd);
        path[n] = '\0';
        fd = open(path, O_RDWR);
        assert_int_equal(fstat(fd, &st), 0);
        for (off_t at = 0; at < st.st_size; at++) {
            uint8_t good, bad;
            assert_int_equal(pread(fd, &good, 1, at), 1);
            bad = good ^ (uint8_t)(1 << at % 8);
            assert_int_equal(pwrite(fd, &bad, 1, at), 1);
            refused(load(id), "damaged");
            assert_int_equal(pwrite(fd, &good, 1, at), 1);
        }
        for (off_t at = 0; at < st.st_size; at += 7) {
            IN("cp %s whole; truncate -s %ld %s", path, (long)at, path);
            refused(load(id), "damaged");
            IN("cp whole %s", path);
        }
        close(fd);
    }
    assert_int_equal(load(id), 0);
}

/* Rows of a list that has the right keyed hashes, so that nothing but their own sense refuses them. */
static int made_up(const struct form_row *r, size_t n, size_t pieces)
{
    struct dynbuf b, head, rows;
    struct shelf s;
    uint8_t mac[FORM_MAC];
    char name[SHELF_NAME + 1], file[64] = "ck-10000000000000000000000000";
    const struct form_head h = {
        .id = span_str(file), .tenant = SPAN("default"), .owner = SPAN("root"), .sandbox = SPAN("box"), .folders = n};
    dynbuf_init(&b, 65536);
    dynbuf_init(&head, 65536);
    dynbuf_init(&rows, 65536);
    form_put_head(&head, &h);
    for (size_t i = 0; i < n; i++)
        form_put_row(&rows, &r[i]);
    for (size_t i = 0; i < pieces; i++)
        (void)dynbuf_add(&rows, span_of(mac, FORM_MAC));
    shelf_of(SPAN("default"), SPAN("root"), name);
    assert_int_equal(shelf_open(store.dir, name, true, &s, &err), 0);
    (void)dynbuf_add(&b, FORM_CHECKPOINT);
    msg_put_span(&b, dynbuf_span(&head));
    shelf_mac(&s, 'h', dynbuf_span(&head), SPAN_NONE, mac);
    (void)dynbuf_add(&b, span_of(mac, FORM_MAC));
    msg_put_span(&b, dynbuf_span(&rows));
    shelf_mac(&s, 'r', dynbuf_span(&head), dynbuf_span(&rows), mac);
    (void)dynbuf_add(&b, span_of(mac, FORM_MAC));
    int fd = openat(s.dir, file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(file_write_fd(fd, dynbuf_span(&b)), 0);
    close(fd);
    shelf_close(&s);
    dynbuf_free(&b);
    dynbuf_free(&head);
    dynbuf_free(&rows);
    return load(file);
}

static void a_list_that_lies_is_refused(void **state)
{
    static const char *const names[] = {"/abs", "../up", "a/../../up", "a//b", "a/.", "", "..", "a/"};
    struct form_row r = {.type = TAR_FOLDER, .mode = 0755, .name = SPAN("good")};
    assert_int_equal(made_up(&r, 1, 0), 0);
    IN("test -d back/good");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        r.name = span_str(names[i]);
        refused(made_up(&r, 1, 0), "damaged");
    }
    r.name = span_of("a\0b", 3);
    refused(made_up(&r, 1, 0), "damaged");
    r = (struct form_row){.type = TAR_LINK, .name = SPAN("link")};
    refused(made_up(&r, 1, 0), "damaged"); /* to nowhere */
    r.type = TAR_HARD_LINK;
    refused(made_up(&r, 1, 0), "damaged");
    r = (struct form_row){.type = TAR_FILE, .size = FORM_PIECE + 1, .name = SPAN("file")};
    refused(made_up(&r, 1, 0), "damaged");
    refused(made_up(&r, 1, 1), "damaged");
    refused(made_up(&r, 1, 2), "damaged"); /* of pieces that are not there */
    r.size = UINT64_MAX;
    refused(made_up(&r, 1, 2), "damaged");
    r = (struct form_row){.type = TAR_FOLDER, .mode = 010000, .name = SPAN("mode")};
    refused(made_up(&r, 1, 0), "damaged");
    IN("test -z \"$(ls -A back)\"");
}

static void what_is_told_of_files_may_be_anything(void **state)
{
    static uint8_t block[4 + 512];
    refused(save_of("root", "", SPAN("")), "has ended");
    refused(save_of("root", "", SPAN("\xff\xff\xff\xff")), "has ended");
    refused(save_of("root", "", SPAN("\0\0\0\4what")), "has ended");
    block[2] = 2;
    memset(block + 4, 'x', 512);
    refused(save_of("root", "", span_of(block, sizeof(block))), "cannot be read");
    refused(save_of("root", "", SPAN("\0\0\0\0\0\0\0\0\0\0\0\0\0\0")), "ends too soon");
    refused(save_of("root", "", SPAN("\0\0\0\0\0\0\0\x0d\0\0\0\0\0\3x/y")), "Permission denied: x/y");
    IN("truncate -s 200M work/hole; truncate -s 100M work/other");
    refused(save(""), "holes");
    assert_int_equal(how, STORE_REFUSED);
    IN("test -z \"$(find store -name 'ck-*' -o -name 'tmp-*')\"");
}

/* --- what is thrown away ------------------------------------------------------------------ */

static void what_was_half_written_goes_and_nothing_else(void **state)
{
    IN("head -c 50000 /dev/urandom > work/a");
    assert_int_equal(save("first"), 0);
    IN("head -c 50000 /dev/urandom > work/b");
    assert_int_equal(save("second"), 0);
    /* who was killed between the names of its pieces and its list */
    IN("cd store/* && mv %s tmp-%s && test $(ls *.pack | wc -l) = 2", id, id);
    IN("rm work/b; echo c > work/c");
    assert_int_equal(save("third"), 0);
    IN("cd store/* && ! ls tmp-* && test $(ls *.pack | wc -l) = 2");
    assert_int_equal(load("first"), 0);
    assert_int_equal(load("third"), 0);
    alike();
    /* nothing goes while somebody reads or writes there */
    struct shelf other;
    char name[SHELF_NAME + 1];
    shelf_of(SPAN("default"), SPAN("root"), name);
    assert_int_equal(shelf_open(store.dir, name, false, &other, &err), 0);
    assert_int_equal(shelf_share(&other), 0);
    IN("cd store/* && touch tmp-x");
    assert_int_equal(save("fourth"), 0);
    IN("ls store/*/tmp-x");
    shelf_close(&other);
    assert_int_equal(save("fifth"), 0);
    IN("! ls store/*/tmp-x");
}

static void what_others_need_stays(void **state)
{
    IN("head -c 500000 /dev/urandom > work/shared; head -c 2500000 /dev/urandom > work/own");
    assert_int_equal(save("first"), 0);
    IN("rm work/own");
    assert_int_equal(save("second"), 0);
    assert_int_equal(told.added, 0);
    assert_int_equal(gone("first"), 0);
    IN("test $(cat store/*/*.pack | wc -c) -lt 600000");
    assert_int_equal(load("second"), 0);
    alike();
    /* with a list that cannot be read nobody knows what it needs */
    IN("echo more > work/more");
    assert_int_equal(save("third"), 0);
    IN("printf x | dd of=$(ls store/*/%s) bs=1 seek=150 conv=notrunc status=none", id);
    assert_int_equal(gone("second"), 0);
    IN("test $(cat store/*/*.pack | wc -c) -gt 500000");
    assert_int_equal(gone(id), 0); /* by its id, though its name cannot be read */
    IN("! ls store/*/*.pack");
    refused(gone("second"), "no such checkpoint");
}

static void one_owner_has_so_much_and_no_more(void **state)
{
    store.most = 300000;
    IN("head -c 200000 /dev/urandom > work/a");
    assert_int_equal(save("first"), 0);
    IN("head -c 200000 /dev/urandom > work/a");
    refused(save("second"), "300000 bytes");
    assert_int_equal(how, STORE_FULL);
    IN("! ls store/*/tmp-*");
    assert_int_equal(save_of("other", "second", SPAN_NONE), 0); /* who has as much */
    assert_int_equal(gone("first"), 0);
    assert_int_equal(save("third"), 0);
    assert_int_equal(load("third"), 0);
    alike();
}

/* F36: of empty ones as well. Whoever looks for one looks at all there are, and would wait for as many as one owner
 * likes. */
static void one_owner_has_so_many_and_no_more(void **state)
{
    assert_int_equal(save("first"), 0);
    IN("cd store/* && seq -f 'ck-0000000000000000000%%06.0f0' %d | xargs touch", SHELF_KEPT_MAX - 2);
    assert_int_equal(save("last"), 0);
    refused(save("another"), "4096 checkpoints");
    assert_int_equal(how, STORE_FULL);
    IN("! ls store/*/tmp-*");
    assert_int_equal(save_of("other", "its", SPAN_NONE), 0); /* a neighbour has as many */
    IN("rm store/*/ck-00000000000000000000000010");
    assert_int_equal(save("another"), 0);
}

static int look(const char *which, struct dynbuf *b)
{
    const struct order o = {.what = ORDER_LOOK, .tenant = SPAN("default"), .which = span_str(which)};
    dynbuf_reset(b);
    how = STORE_FAILED;
    int rc = store_look(&store, &o, b, &err);
    struct msg_in m = msg_in(dynbuf_span(b));
    assert_true(rc != 0 || (form_get_head(&m, &told) == 0 && msg_end(&m) == 0));
    return rc;
}

/* What its sandbox might reach is kept with it, and said of it alone: a list stays short. */
static void what_might_be_reached_stays_with_it(void **state)
{
    const struct order list = {.what = ORDER_LIST, .tenant = SPAN("default")},
                       other = {.what = ORDER_LOOK, .tenant = SPAN("acme"), .which = SPAN("narrow")};
    struct form_head h;
    struct dynbuf b;
    reach = "+n api.test\n&\n-a 10.0.0.0/8\n";
    assert_int_equal(save("narrow"), 0);
    reach = "";
    dynbuf_init(&b, 65536);
    assert_int_equal(load("narrow"), 0);
    assert_true(span_eq(told.reach, SPAN("+n api.test\n&\n-a 10.0.0.0/8\n")));
    assert_int_equal(look("narrow", &b), 0);
    assert_true(span_eq(told.id, span_str(id)));
    assert_true(span_eq(told.reach, SPAN("+n api.test\n&\n-a 10.0.0.0/8\n")));
    assert_int_equal(look(id, &b), 0);
    assert_int_equal(look("wide", &b), -1);
    assert_int_equal(how, STORE_MISSING);
    how = STORE_FAILED;
    assert_int_equal(store_look(&store, &other, &b, &err), -1);
    assert_int_equal(how, STORE_MISSING);
    dynbuf_reset(&b);
    assert_int_equal(store_list(&store, &list, &b, &err), 0);
    struct msg_in m = msg_in(dynbuf_span(&b));
    (void)msg_get_bool(&m);
    assert_int_equal(form_get_head(&m, &h), 0);
    assert_int_equal(h.reach.n, 0);
    dynbuf_free(&b);
}

static void the_newest_comes_first(void **state)
{
    struct order o = {.what = ORDER_LIST, .tenant = SPAN("default")};
    struct form_head h;
    char first[FORM_ID + 1];
    struct dynbuf b;
    for (int i = 0; i < 3; i++) {
        const uint64_t before = told.created_ms;
        do
            assert_int_equal(save(""), 0);
        while (told.created_ms == before); /* two of one moment have no order */
    }
    memcpy(first, id, sizeof(first));
    assert_int_equal(save(".fork"), 0); /* which nobody is told of */
    dynbuf_init(&b, 65536);
    assert_int_equal(store_list(&store, &o, &b, &err), 0);
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_false(msg_get_bool(&m));
    assert_int_equal(form_get_head(&m, &h), 0);
    assert_true(span_eq(h.id, span_str(first)));
    size_t rest = m.rest.n;
    dynbuf_reset(&b);
    o.which = span_str(first); /* those behind it */
    assert_int_equal(store_list(&store, &o, &b, &err), 0);
    assert_int_equal(b.n, 1 + rest);
    dynbuf_free(&b);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(what_was_kept_comes_back),
        TEST(of_another_tenant_there_is_none),
        TEST(one_that_is_being_made_is_none_yet),
        TEST(a_damaged_one_is_the_operators_alone),
        TEST(what_an_idle_one_is_kept_in_is_nobodys_by_its_id),
        TEST(what_nobody_asked_for_is_swept),
        TEST(nobody_learns_what_another_has),
        TEST(a_flipped_bit_is_refused),
        TEST(a_list_that_lies_is_refused),
        TEST(what_is_told_of_files_may_be_anything),
        TEST(what_was_half_written_goes_and_nothing_else),
        TEST(what_others_need_stays),
        TEST(one_owner_has_so_much_and_no_more),
        TEST(one_owner_has_so_many_and_no_more),
        TEST(the_newest_comes_first),
        TEST(what_might_be_reached_stays_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
