/* A file whose bytes an owner's checkpoints have is not told again for the next one, and every other one is, however
 * it was written; what is told, and what is believed of it, is what was read. */
#include "tests/unit/checkpoint/store_world.h"

#include <sys/mman.h>

#include "sandbox-shim/checkpoint/seen.h"

enum { SIZE = 3 * 1024 * 1024, SMALL = 512 };

static int work_file(const char *name, int flags)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/work/%s", top, name);
    int fd = open(path, flags | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static void make(const char *name, size_t n)
{
    IN("head -c %zu /dev/urandom > work/%s", n, name);
}

/* Whether bytes of that many were told: headers and small files are less. */
static bool tells(size_t n)
{
    assert_int_equal(save(""), 0);
    return told_bytes >= n;
}

static void is_right(void)
{
    assert_int_equal(load(id), 0);
    alike();
}

static void what_did_not_change_is_not_told_again(void **state)
{
    make("big", SIZE);
    make("small", SMALL);
    assert_true(tells(SIZE));
    assert_false(tells(SIZE));
    assert_int_equal(told.bytes, SIZE + SMALL);
    assert_int_equal(told.added, 0);
    is_right();
    IN("touch -d @5 work/small work/big && chmod 400 work/small"); /* which is in its header */
    assert_false(tells(SIZE));
    make("other", SIZE); /* is new; of the old one nothing is told */
    assert_true(tells(SIZE));
    assert_true(told_bytes < 2 * SIZE);
    IN("mv work/big work/moved && cp work/moved work/big && ln work/big work/link"); /* whatever it is called */
    assert_false(tells(SIZE));
    assert_int_equal(told.bytes, 4 * SIZE + SMALL);
    is_right();
    IN("rm work/*"); /* what the last one had not, one before may have */
    make("less", SIZE);
    assert_true(tells(SIZE));
    IN("cp back/other work/other");
    assert_false(tells(SIZE));
    is_right();
}

/* A byte in the middle; nothing but itself tells of it. */
static void write_mapped(const char *name, int flags)
{
    int fd = work_file(name, O_RDWR | flags);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    const struct timespec as_before[2] = {st.st_atim, st.st_mtim};
    uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    p[SIZE / 2]++;
    (void)munmap(p, SIZE);
    assert_int_equal(futimens(fd, as_before), 0);
    close(fd);
}

static void what_is_written_is_told(void **state)
{
    make("big", SIZE);
    assert_true(tells(SIZE));
    write_mapped("big", 0);
    assert_true(tells(SIZE));
    write_mapped("big", O_NOATIME);
    assert_true(tells(SIZE));
    assert_false(tells(SIZE));
    is_right();
    IN("truncate -s -1 work/big");
    assert_true(tells(SIZE - 1));
    IN("truncate -s +1 work/big"); /* a zero byte, which it had not */
    assert_true(tells(SIZE));
    is_right();
}

static void of_another_sandbox_or_owner_nothing_is_known(void **state)
{
    make("big", SIZE);
    assert_true(tells(SIZE));
    box = "twin";
    assert_true(tells(SIZE));
    assert_int_equal(told.added, 0); /* it is not kept twice, all the same */
    assert_false(tells(SIZE));
    box = "box";
    assert_false(tells(SIZE));
    assert_int_equal(save_of("somebody", "", SPAN_NONE), 0);
    assert_true(told_bytes >= SIZE);
    assert_int_equal(save_of("somebody", "", SPAN_NONE), 0);
    assert_false(told_bytes >= SIZE);
}

/* --- what somebody does just while it is read ----------------------------------------------- */

static void becomes_another(void)
{
    IN("cp work/big before && head -c %d /dev/urandom > work/big", (int)SIZE);
    before_bytes = NULL;
}

/* Its mark is of what was told, and not of what was read before that. */
static void what_changes_while_it_is_read_is_itself(void **state)
{
    make("other", SIZE);
    assert_true(tells(SIZE)); /* from now on there are marks, and files are read before they are told */
    make("big", SIZE);
    before_bytes = becomes_another;
    assert_true(tells(SIZE));
    is_right();
    IN("cp before work/big");
    assert_true(tells(SIZE));
    is_right();
}

/* --- what is known is of one key ------------------------------------------------------------ */

/* The bytes of two files change places, by whoever can write there and has no key. */
static void swap(void)
{
    enum { HEAD = FORM_MAGIC + 4, NAMES = 3 * FORM_MAC, ROW = 8 + MARK + 8 + NAMES };
    IN("f=$(echo store/*/seen) && cp $f swapped && a=%d && b=%d && n=%d && dd if=swapped of=$f bs=1 skip=$a seek=$b "
       "count=$n "
       "conv=notrunc 2>/dev/null && dd if=swapped of=$f bs=1 skip=$b seek=$a count=$n conv=notrunc 2>/dev/null && ! "
       "cmp "
       "-s swapped $f",
       HEAD + ROW - NAMES, HEAD + 2 * ROW - NAMES, NAMES);
}

static void what_is_known_is_believed_only_from_us(void **state)
{
    make("other", SIZE);
    make("big", SIZE);
    assert_true(tells(2 * SIZE));
    swap();
    assert_true(tells(2 * SIZE));
    assert_false(tells(SIZE));
    IN("for f in store/*/seen; do : > $f; done");
    assert_true(tells(2 * SIZE));
    IN("rm store/*/seen");
    assert_true(tells(2 * SIZE));
    assert_false(tells(SIZE));
    is_right();
}

/* What the last checkpoint had went with it. */
static void what_is_gone_is_told(void **state)
{
    make("big", SIZE);
    assert_int_equal(save("one"), 0);
    IN("cp store/*/seen kept");
    assert_int_equal(gone("one"), 0);
    IN("test ! -e store/*/seen && cp kept $(dirname store/*/key)/seen"); /* as if it had been written just then */
    assert_true(tells(SIZE));
    is_right();
}

/* --- how much ------------------------------------------------------------------------------- */

/* So many, each of the same piece, are added for a sandbox; how many of its own are known afterwards. */
static size_t known_of(const struct shelf *s, const char *sandbox, uint64_t most, size_t many, size_t pieces)
{
    static uint8_t names[1000 * FORM_MAC];
    struct piece piece = {.size = FORM_PIECE};
    struct pieces all = {.fd = -1};
    struct seen seen;
    uint8_t mark[MARK] = {0};
    assert_int_equal(pieces_load(s, &all, &err), 0);
    assert_int_equal(pieces_add(&all, &piece), 0);
    assert_int_equal(seen_begin(&seen, s, &all, span_str(sandbox), most), 0);
    for (size_t i = 0; i < many; i++) {
        memcpy(mark, &i, sizeof(i));
        seen_add(&seen, mark, (uint64_t)pieces * FORM_PIECE, span_of(names, pieces * FORM_MAC));
    }
    seen_write(&seen, s);
    seen_end(&seen);
    assert_int_equal(seen_begin(&seen, s, &all, span_str(sandbox), most), 0);
    size_t n = seen.nmarks;
    memset(mark, 0, sizeof(mark));
    assert_true(n == 0 || seen_find(&seen, mark)->size == (uint64_t)pieces * FORM_PIECE);
    mark[MARK - 1] = 1;
    assert_null(seen_find(&seen, mark));
    seen_end(&seen);
    pieces_free(&all);
    return n;
}

/* Whoever has more files than that has the others told again; nobody else has, whose list is another one. */
static void what_is_not_held_is_told(void **state)
{
    enum { ROW = 8 + MARK + 8 + 1000 * FORM_MAC };
    char name[SHELF_NAME + 1];
    struct shelf s;
    shelf_of(SPAN("default"), SPAN("root"), name);
    assert_int_equal(shelf_open(store.dir, name, true, &s, &err), 0);
    assert_int_equal(known_of(&s, "box", store.most, 3, 2), 3);
    assert_int_equal(known_of(&s, "other", store.most, 0, 0), 0);
    assert_int_equal(known_of(&s, "box", store.most, 0, 2), 3);
    make("big", SIZE);
    assert_int_equal(save_of("somebody", "", SPAN_NONE), 0);
    assert_int_equal(known_of(&s, "box", UINT64_MAX, 300, 1000), SEEN_BYTES_MAX / ROW);
    assert_int_equal(known_of(&s, "other", UINT64_MAX, STREAM_MARKS_MAX + 5, 0), STREAM_MARKS_MAX);
    assert_int_equal(known_of(&s, "box", 80 * ROW, 300, 1000), 10);
    assert_int_equal(save_of("somebody", "", SPAN_NONE), 0);
    assert_false(told_bytes >= SIZE);
    shelf_close(&s);
}

static void what_there_is_no_room_for_is_said(void **state)
{
    make("big", 500 * 1000);
    store.most = 100 * 1000;
    refused(save(""), "would need more than 100000 bytes");
    assert_int_equal(how, STORE_FULL);
}

/* A file with a hole of petabytes would be read for days: what it says is enough. */
static void what_does_not_fit_is_not_read(void **state)
{
    make("big", SIZE);
    assert_true(tells(SIZE));
    IN("truncate -s 4096T work/hole 2>/dev/null || truncate -s 8T work/hole");
    refused(save(""), "holes");
}

static void what_has_a_pattern_is_kept_short(void **state)
{
    make("block", 24 * 1024);
    IN("for i in $(seq 200); do cat work/block; done > work/big");
    assert_true(tells(SIZE));
    assert_in_range(told.added, 24 * 1024, SIZE / 2);
    make("noise", SIZE);
    assert_true(tells(SIZE));
    assert_in_range(told.added, SIZE, SIZE + 4096);
}

/* --- what whoever is at a workspace says may be anything ------------------------------------ */

enum { FILE_SIZE = 20 * 1000, FILE_ROOM = FILE_SIZE + TAR_BLOCK - FILE_SIZE % TAR_BLOCK };
static uint8_t file_bytes[FILE_ROOM], file_mark[MARK], file_head[TAR_HEAD_MAX];
static struct dynbuf told_instead;

static void frame(uint32_t n, struct span bytes)
{
    msg_put_u32(&told_instead, n);
    (void)dynbuf_add(&told_instead, bytes);
}

static void head(enum tar_type type, size_t size)
{
    struct tar_member m = {.type = type, .mode = 0600, .size = size, .name = "file"};
    size_t n = tar_head(file_head, &m);
    frame((uint32_t)n, span_of(file_head, n));
}

static void file(void)
{
    head(TAR_FILE, FILE_SIZE);
    frame(FILE_ROOM, span_of(file_bytes, FILE_ROOM));
}

static void same_as(const uint8_t mark[MARK])
{
    frame(0x80000001, span_of(mark, MARK));
}

static int says(void)
{
    static const uint8_t zero[2 * TAR_BLOCK + 14];
    frame(2 * TAR_BLOCK, span_of(zero, 2 * TAR_BLOCK));
    (void)dynbuf_add(&told_instead, span_of(zero, 14));
    int rc = save_of("root", "", dynbuf_span(&told_instead));
    dynbuf_free(&told_instead);
    dynbuf_init(&told_instead, 1 << 20);
    return rc;
}

static void has_file(uint8_t with)
{
    static uint8_t back[FILE_SIZE + 1];
    char path[128];
    assert_int_equal(load(id), 0);
    (void)snprintf(path, sizeof(path), "%s/back/file", top);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, back, sizeof(back)), FILE_SIZE);
    close(fd);
    memset(file_bytes, with, FILE_SIZE);
    assert_memory_equal(back, file_bytes, FILE_SIZE);
}

/* As whoever has the key makes it. */
static void mark_file(uint8_t with)
{
    uint8_t key[MARK];
    char name[SHELF_NAME + 1];
    struct shelf s;
    struct mark m;
    memset(file_bytes, with, FILE_SIZE);
    shelf_of(SPAN("default"), SPAN("root"), name);
    assert_int_equal(shelf_open(store.dir, name, true, &s, &err), 0);
    seen_key(&s, key);
    assert_int_equal(mark_open(&m, key), 0);
    mark_begin(&m);
    mark_add(&m, file_bytes, 1000);
    mark_add(&m, file_bytes + 1000, FILE_SIZE - 1000);
    mark_end(&m, file_mark);
    mark_close(&m);
    shelf_close(&s);
}

static void a_mark_is_of_what_was_told(void **state)
{
    static const char *const nothing = "a mark is of a file that was not told";
    dynbuf_init(&told_instead, 1 << 20);
    mark_file('b');
    same_as(file_mark); /* nobody has told of it */
    refused(says(), nothing);
    mark_file('a');
    file();
    assert_int_equal(says(), 0);
    has_file('a');
    same_as(file_mark); /* which is so by the bytes, and by nothing that was said */
    head(TAR_FILE, 0);
    assert_int_equal(says(), 0);
    assert_int_equal(told.bytes, FILE_SIZE);
    assert_int_equal(told.added, 0);
    has_file('a');
    mark_file('b');
    same_as(file_mark);
    head(TAR_FILE, 0);
    refused(says(), nothing);
    mark_file('a');
    same_as(file_mark); /* with bytes of its own as well */
    file();
    refused(says(), nothing);
    same_as(file_mark);
    head(TAR_FOLDER, 0);
    refused(says(), nothing);
    same_as(file_mark); /* twice */
    same_as(file_mark);
    refused(says(), nothing);
    same_as(file_mark); /* of no file */
    refused(says(), "ends too soon");
    frame(0x80000002, span_of(file_mark, MARK));
    refused(says(), "who read them has ended");
    disk = 2 * FILE_SIZE - 1; /* and no more of them than its disk holds */
    for (int i = 0; i < 2; i++) {
        same_as(file_mark);
        head(TAR_FILE, 0);
    }
    refused(says(), "more bytes than its disk");
    dynbuf_free(&told_instead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_did_not_change_is_not_told_again, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_written_is_told, begin, finish),
        cmocka_unit_test_setup_teardown(of_another_sandbox_or_owner_nothing_is_known, begin, finish),
        cmocka_unit_test_setup_teardown(what_changes_while_it_is_read_is_itself, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_known_is_believed_only_from_us, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_gone_is_told, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_not_held_is_told, begin, finish),
        cmocka_unit_test_setup_teardown(what_there_is_no_room_for_is_said, begin, finish),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_not_read, begin, finish),
        cmocka_unit_test_setup_teardown(what_has_a_pattern_is_kept_short, begin, finish),
        cmocka_unit_test_setup_teardown(a_mark_is_of_what_was_told, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
