/* A file that cannot have changed is not read again for the next checkpoint, and every other one is: also one that
 * was written in a way that changes none of its times. */
#include "tests/unit/checkpoint/store_world.h"

#include "sandbox-shim/checkpoint/seen.h"

#include <sys/mman.h>
#include <time.h>

enum { SIZE = 3 * 1024 * 1024, SMALL = 512 };

static int work_file(const char *name, int flags)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/work/%s", top, name);
    int fd = open(path, flags | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

/* The times of files are taken from a clock that goes in steps. */
static void clock_goes_on(void)
{
    const struct timespec t = {.tv_nsec = 2 * MARKS_CLOCK_MS * 1000000L};
    assert_int_equal(nanosleep(&t, NULL), 0);
}

static void make(const char *name, size_t n)
{
    IN("head -c %zu /dev/urandom > work/%s", n, name);
    clock_goes_on();
}

/* Whether bytes of that many were told: headers and small files are less. */
static bool tells(size_t n)
{
    assert_int_equal(save(""), 0);
    return told_bytes >= n;
}

/* The last one is right. All files have been read then, which is written down. */
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
    IN("touch -d @5 work/small && chmod 400 work/small"); /* which is in its header */
    assert_false(tells(SIZE));
    make("other", SIZE); /* is new; of the old one nothing is told */
    assert_true(tells(SIZE));
    assert_true(told_bytes < 2 * SIZE);
    assert_false(tells(SIZE));
    is_right();
}

static void what_is_written_is_told(void **state)
{
    make("big", SIZE);
    assert_true(tells(SIZE));
    struct stat st;
    int fd = work_file("big", O_WRONLY);
    assert_int_equal(fstat(fd, &st), 0);
    const struct timespec as_before[2] = {st.st_atim, st.st_mtim};
    assert_int_equal(pwrite(fd, "0123456789", 10, SIZE / 2), 10);
    assert_int_equal(futimens(fd, as_before), 0); /* as its times may be set, but for that of the last change */
    close(fd);
    clock_goes_on();
    assert_true(tells(SIZE));
    assert_false(tells(SIZE));
    IN("mv work/big work/moved && cp work/moved work/big && rm work/moved");
    assert_true(tells(SIZE));
    is_right();
}

/* Read first, so that the page is there to be written without a fault, and nothing at all tells of it. */
static uint8_t *write_mapped(const char *name, uint8_t with, bool stays)
{
    int fd = work_file(name, O_RDWR);
    uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    volatile uint8_t before = p[SIZE / 2];
    p[SIZE / 2] = with != before ? with : with + 1;
    close(fd);
    if (!stays)
        (void)munmap(p, SIZE);
    return stays ? p : NULL;
}

static void what_is_written_through_a_mapping_is_told(void **state)
{
    make("big", SIZE);
    assert_true(tells(SIZE));
    assert_false(tells(SIZE));
    (void)write_mapped("big", 1, false);
    assert_true(tells(SIZE));
    clock_goes_on();
    assert_true(tells(SIZE));
    (void)write_mapped("big", 2, false); /* it has been read by now: a second reading is not written down */
    assert_true(tells(SIZE));
    assert_true(tells(SIZE));
    is_right();
}

static void what_may_be_written_still_is_told(void **state)
{
    make("big", SIZE);
    uint8_t *p = write_mapped("big", 1, true);
    IN("touch work/big"); /* its times are as if nobody had read it */
    clock_goes_on();
    assert_true(tells(SIZE));
    p[SIZE / 3] ^= 1;
    (void)munmap(p, SIZE);
    clock_goes_on();
    assert_true(tells(SIZE));
    assert_false(tells(SIZE));
    int fd = work_file("big", O_WRONLY);
    IN("touch work/big");
    clock_goes_on();
    assert_true(tells(SIZE));
    assert_int_equal(pwrite(fd, "y", 1, 5), 1);
    close(fd);
    assert_true(tells(SIZE));
    is_right();
}

/* --- what somebody does just while it is read ----------------------------------------------- */

static uint8_t *mapped;
static int open_file;

static void ends_its_mapping(void)
{
    mapped[SIZE - 1] ^= 1; /* which has been read already */
    (void)munmap(mapped, SIZE);
    before_told = NULL;
}

static void opens_it(void)
{
    open_file = work_file("big", O_RDWR);
    before_told = NULL;
}

static void writes_to_it(void)
{
    int fd = work_file("big", O_WRONLY);
    assert_int_equal(pwrite(fd, "0123456789abcdef", 16, 0), 16);
    close(fd);
    before_told = NULL;
}

static void what_changes_while_it_is_read_is_told(void **state)
{
    make("big", SIZE);
    mapped = write_mapped("big", 1, true);
    mapped[SIZE - 1] ^= 1; /* once: from then on no time tells of it */
    IN("touch work/big");
    clock_goes_on();
    before_told = ends_its_mapping;
    assert_true(tells(SIZE));
    assert_true(tells(SIZE));
    assert_false(tells(SIZE));
    make("big", SIZE);
    before_told = opens_it;
    assert_true(tells(SIZE));
    close(open_file);
    assert_true(tells(SIZE));
    assert_false(tells(SIZE));
    make("big", SIZE);
    before_told = writes_to_it;
    assert_true(tells(SIZE));
    clock_goes_on();
    assert_true(tells(SIZE));
    assert_false(tells(SIZE));
    is_right();
}

/* Two changes in one step of the clock have one time. */
static void what_changed_just_now_is_told(void **state)
{
    young_ms = UINT64_C(24) * 3600 * 1000; /* which nobody is as slow as */
    make("big", SIZE);
    IN("touch -a -d @5 work/big");
    assert_true(tells(SIZE));
    assert_true(tells(SIZE));
    young_ms = MARKS_CLOCK_MS;
    clock_goes_on();
    assert_true(tells(SIZE));
    assert_false(tells(SIZE));
    is_right();
}

/* --- what is known is of one sandbox, boot and key ----------------------------------------- */

/* The bytes of two files change places, by whoever can write there and has no key. */
static void swap(void)
{
    enum { HEAD = FORM_MAGIC + 4 + 3 + 8 + 4, NAMES = 3 * FORM_MAC, ROW = STREAM_MARK + 8 + NAMES };
    IN("cp store/*/seen-* swapped && a=%d && b=%d && n=%d && f=$(echo store/*/seen-*) && dd if=swapped of=$f bs=1 "
       "skip=$a seek=$b count=$n conv=notrunc 2>/dev/null && dd if=swapped of=$f bs=1 skip=$b seek=$a count=$n "
       "conv=notrunc 2>/dev/null && ! cmp -s swapped $f",
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
    IN("for f in store/*/seen-*; do printf X | dd of=$f bs=1 seek=30 conv=notrunc "
       "2>/dev/null; "
       "done");
    assert_true(tells(SIZE));
    assert_false(tells(SIZE));
    IN("for f in store/*/seen-*; do : > $f; done");
    assert_true(tells(SIZE));
    IN("rm store/*/seen-*");
    assert_true(tells(SIZE));
    assert_false(tells(SIZE));
    born++; /* a sandbox of the same name, started anew: its files are others, whatever they look like */
    assert_true(tells(SIZE));
    assert_false(tells(SIZE));
    is_right();
}

/* What the last checkpoint had went with it: it is read again. */
static void what_is_gone_is_told(void **state)
{
    make("big", SIZE);
    assert_int_equal(save("one"), 0);
    assert_int_equal(gone("one"), 0);
    assert_true(tells(SIZE));
    is_right();
}

/* So many, each of the same piece, are added; how many of them are known afterwards. */
static size_t known_of(const struct shelf *s, const char *sandbox, size_t many, size_t pieces)
{
    static uint8_t names[1000 * FORM_MAC];
    struct seen_file f = {.size = (uint64_t)pieces * FORM_PIECE, .pieces = span_of(names, pieces * FORM_MAC)};
    struct piece piece = {.size = FORM_PIECE};
    struct pieces all = {.fd = -1};
    struct seen seen;
    assert_int_equal(pieces_load(s, &all, &err), 0);
    assert_int_equal(pieces_add(&all, &piece), 0);
    assert_int_equal(seen_begin(&seen, s, &all, span_str(sandbox), born), 0);
    for (size_t i = 0; i < many; i++) {
        memcpy(f.mark, &i, sizeof(i));
        seen_add(&seen, &f);
    }
    if (many > 0)
        seen_write(&seen, s, span_str(sandbox), born);
    seen_end(&seen);
    assert_int_equal(seen_begin(&seen, s, &all, span_str(sandbox), born), 0);
    size_t n = seen.n;
    memset(f.mark, 0, sizeof(f.mark));
    assert_true(n == 0 || seen_find(&seen, f.mark)->size == f.size);
    f.mark[STREAM_MARK - 1] = 1;
    assert_null(seen_find(&seen, f.mark));
    seen_end(&seen);
    pieces_free(&all);
    return n;
}

/* Whoever has more files than that has the others read again, and nobody else has. */
static void what_is_not_held_is_told(void **state)
{
    char name[SHELF_NAME + 1];
    struct shelf s;
    shelf_of(SPAN("default"), SPAN("root"), name);
    assert_int_equal(shelf_open(store.dir, name, true, &s, &err), 0);
    assert_int_equal(known_of(&s, "calm", 3, 2), 3);
    assert_int_equal(known_of(&s, "box", 300, 1000), SEEN_BYTES_MAX / (STREAM_MARK + 8 + 1000 * FORM_MAC));
    assert_int_equal(known_of(&s, "box", STREAM_MARKS_MAX + 5, 0), STREAM_MARKS_MAX);
    assert_int_equal(known_of(&s, "calm", 0, 2), 3);
    shelf_close(&s);
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
    struct tar_member m = {.type = TAR_FILE, .mode = 0600, .name = "a"};
    uint8_t head[TAR_HEAD_MAX], data[TAR_BLOCK] = "hello";
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    frame(&b, 0x80000001, mark); /* of no file */
    says(&b, "of another one than there is");
    frame(&b, 0x80000002, mark); /* of one that nobody knows */
    says(&b, "of another one than there is");
    m.size = hello.n;
    size_t n = tar_head(head, &m);
    frame(&b, (uint32_t)n, span_of(head, n)); /* before its bytes */
    frame(&b, 0x80000001, mark);
    says(&b, "of another one than there is");
    frame(&b, (uint32_t)n, span_of(head, n)); /* twice */
    frame(&b, TAR_BLOCK, span_of(data, TAR_BLOCK));
    frame(&b, 0x80000001, mark);
    frame(&b, 0x80000001, mark);
    says(&b, "of another one than there is");
    frame(&b, (uint32_t)n, span_of(head, n)); /* as it should be */
    frame(&b, TAR_BLOCK, span_of(data, TAR_BLOCK));
    frame(&b, 0x80000001, mark);
    end(&b);
    assert_int_equal(save_of("root", "", dynbuf_span(&b)), 0);
    dynbuf_free(&b);
    frame(&b, 0x80000002, mark); /* with bytes of its own as well */
    frame(&b, (uint32_t)n, span_of(head, n));
    frame(&b, TAR_BLOCK, span_of(data, TAR_BLOCK));
    says(&b, "of another one than there is");
    frame(&b, 0x80000002, mark);
    frame(&b, 0x80000002, mark);
    says(&b, "of another one than there is");
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
    IN("printf hello | cmp - back/a");
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
        cmocka_unit_test_setup_teardown(what_is_written_through_a_mapping_is_told, begin, finish),
        cmocka_unit_test_setup_teardown(what_may_be_written_still_is_told, begin, finish),
        cmocka_unit_test_setup_teardown(what_changes_while_it_is_read_is_told, begin, finish),
        cmocka_unit_test_setup_teardown(what_changed_just_now_is_told, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_known_is_believed_only_from_us, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_gone_is_told, begin, finish),
        cmocka_unit_test_setup_teardown(what_is_not_held_is_told, begin, finish),
        cmocka_unit_test_setup_teardown(marks_that_lie_are_refused, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
