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

static void of_another_owner_nothing_is_known(void **state)
{
    make("big", SIZE);
    assert_true(tells(SIZE));
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
    enum { HEAD = FORM_MAGIC + 4, NAMES = 3 * FORM_MAC, ROW = STREAM_MARK + 8 + NAMES };
    IN("f=$(echo store/*/seen) && cp $f swapped && a=%d && b=%d && n=%d && dd if=swapped of=$f bs=1 skip=$a seek=$b "
       "count=$n "
       "conv=notrunc 2>/dev/null && dd if=swapped of=$f bs=1 skip=$b seek=$a count=$n conv=notrunc 2>/dev/null && ! "
       "cmp "
       "-s swapped $f",
       HEAD + STREAM_MARK + 8, HEAD + ROW + STREAM_MARK + 8, NAMES);
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

/* So many, each of the same piece, are added; how many of them are known afterwards. */
static size_t known_of(const struct shelf *s, size_t many, size_t pieces)
{
    static uint8_t names[1000 * FORM_MAC];
    struct piece piece = {.size = FORM_PIECE};
    struct pieces all = {.fd = -1};
    struct seen seen;
    IN("rm -f store/*/seen");
    assert_int_equal(pieces_load(s, &all, &err), 0);
    assert_int_equal(pieces_add(&all, &piece), 0);
    assert_int_equal(seen_begin(&seen, s, &all), 0);
    for (size_t i = 0; i < many; i++) {
        struct seen_file f = {.size = (uint64_t)pieces * FORM_PIECE, .pieces = span_of(names, pieces * FORM_MAC)};
        memcpy(f.mark, &i, sizeof(i));
        seen_add(&seen, &f);
    }
    seen_write(&seen, s);
    seen_end(&seen);
    assert_int_equal(seen_begin(&seen, s, &all), 0);
    size_t n = seen.n;
    uint8_t mark[STREAM_MARK] = {0};
    assert_int_equal(seen_find(&seen, mark)->size, (uint64_t)pieces * FORM_PIECE);
    mark[STREAM_MARK - 1] = 1;
    assert_null(seen_find(&seen, mark));
    seen_end(&seen);
    pieces_free(&all);
    return n;
}

/* Whoever has more files than that has the others told again; nobody else has, whose list is another one. */
static void what_is_not_held_is_told(void **state)
{
    char name[SHELF_NAME + 1];
    struct shelf s;
    shelf_of(SPAN("default"), SPAN("root"), name);
    assert_int_equal(shelf_open(store.dir, name, true, &s, &err), 0);
    assert_int_equal(known_of(&s, 3, 2), 3);
    assert_int_equal(known_of(&s, 300, 1000), SEEN_BYTES_MAX / (STREAM_MARK + 8 + 1000 * FORM_MAC));
    assert_in_range(shelf_bytes(&s), SEEN_BYTES_MAX - 33000, SEEN_BYTES_MAX + 1000);
    make("big", SIZE);
    assert_int_equal(save_of("somebody", "", SPAN_NONE), 0);
    assert_int_equal(save_of("somebody", "", SPAN_NONE), 0);
    assert_false(told_bytes >= SIZE);
    assert_int_equal(known_of(&s, STREAM_MARKS_MAX + 5, 0), STREAM_MARKS_MAX);
    shelf_close(&s);
}

/* A mark comes at the end of a file, and so where there may be no room for its last piece. */
static void what_there_is_no_room_for_is_said(void **state)
{
    make("big", 500 * 1000);
    store.most = 100 * 1000;
    refused(save(""), "would need more than 100000 bytes");
    assert_int_equal(how, STORE_FULL);
}

/* --- what whoever is at a workspace says may be anything ------------------------------------ */

static void frame(struct dynbuf *b, uint32_t n, struct span bytes)
{
    msg_put_u32(b, n);
    (void)dynbuf_add(b, bytes);
}

static void end(struct dynbuf *b)
{
    static const uint8_t zero[2 * TAR_BLOCK + 14];
    frame(b, 2 * TAR_BLOCK, span_of(zero, 2 * TAR_BLOCK));
    (void)dynbuf_add(b, span_of(zero, 14));
}

static void says(struct dynbuf *b, const char *words)
{
    end(b);
    refused(save_of("root", "", dynbuf_span(b)), words);
    dynbuf_free(b);
}

static void marks_that_lie_are_refused(void **state)
{
    static const struct span mark = SPAN("0123456789abcdef"), hello = SPAN("hello");
    struct tar_member m = {.type = TAR_FILE, .mode = 0600, .name = "a-file-of-some-name"};
    uint8_t head[TAR_HEAD_MAX], data[TAR_BLOCK] = "hello";
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    frame(&b, 0x80000001, mark); /* of no file */
    says(&b, "a mark is of a file that was not told");
    frame(&b, 0x80000002, mark); /* of one that nobody knows */
    says(&b, "a mark is of a file that was not told");
    m.size = hello.n;
    size_t n = tar_head(head, &m);
    frame(&b, (uint32_t)n, span_of(head, n)); /* before its bytes */
    frame(&b, 0x80000001, mark);
    says(&b, "a mark is of a file that was not told");
    frame(&b, (uint32_t)n, span_of(head, n)); /* twice */
    frame(&b, TAR_BLOCK, span_of(data, TAR_BLOCK));
    frame(&b, 0x80000001, mark);
    frame(&b, 0x80000001, mark);
    says(&b, "a mark is of a file that was not told");
    frame(&b, (uint32_t)n, span_of(head, n)); /* as it should be */
    frame(&b, TAR_BLOCK, span_of(data, TAR_BLOCK));
    frame(&b, 0x80000001, mark);
    end(&b);
    assert_int_equal(save_of("root", "", dynbuf_span(&b)), 0);
    dynbuf_free(&b);
    frame(&b, 0x80000002, mark); /* with bytes of its own as well */
    frame(&b, (uint32_t)n, span_of(head, n));
    frame(&b, TAR_BLOCK, span_of(data, TAR_BLOCK));
    says(&b, "a mark is of a file that was not told");
    frame(&b, 0x80000002, mark);
    frame(&b, 0x80000002, mark);
    says(&b, "a mark is of a file that was not told");
    frame(&b, 0x80000003, mark);
    says(&b, "who read them has ended");
    m.size = 0;
    n = tar_head(head, &m);
    frame(&b, 0x80000002, mark);
    frame(&b, (uint32_t)n, span_of(head, n));
    end(&b);
    assert_int_equal(save_of("root", "", dynbuf_span(&b)), 0);
    assert_int_equal(told.bytes, hello.n);
    assert_int_equal(load(id), 0);
    IN("printf hello | cmp - back/a-file-of-some-name");
    dynbuf_free(&b);
    disk = 2 * hello.n - 1; /* and no more of them than its disk holds */
    for (int i = 0; i < 2; i++) {
        frame(&b, 0x80000002, mark);
        frame(&b, (uint32_t)n, span_of(head, n));
    }
    says(&b, "more bytes than its disk");
    dynbuf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_did_not_change_is_not_told_again, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_written_is_told, begin, finish),
        cmocka_unit_test_setup_teardown(of_another_owner_nothing_is_known, begin, finish),
        cmocka_unit_test_setup_teardown(what_changes_while_it_is_read_is_itself, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_known_is_believed_only_from_us, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_gone_is_told, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_not_held_is_told, begin, finish),
        cmocka_unit_test_setup_teardown(what_there_is_no_room_for_is_said, begin, finish),
        cmocka_unit_test_setup_teardown(marks_that_lie_are_refused, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
