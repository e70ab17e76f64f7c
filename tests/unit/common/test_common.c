/* common: bytes, buffers, ids, messages at their limits and one past. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/dynbuf.h"
#include "common/file.h"
#include "common/id.h"
#include "common/memfd.h"
#include "common/msg.h"
#include "common/text/nearest.h"
#include "common/time/clock.h"
#include "common/time/instant.h"

#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20
#endif
enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

static int memfd_with(int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "bytes", 5), 5);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void a_file_is_read_whole_or_not(void **state)
{
    int fd = memfd_with(0);
    struct dynbuf b;
    dynbuf_init(&b, 5);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(file_read_fd(fd, &b), 0);
    assert_true(span_eq(dynbuf_span(&b), SPAN("bytes")));
    assert_int_equal(file_read_fd(fd, &b), 0); /* at its end there is no more, and the buffer may be full */
    dynbuf_free(&b);
    dynbuf_init(&b, 4);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    errno = 0;
    assert_int_equal(file_read_fd(fd, &b), -1);
    assert_int_equal(errno, EFBIG);
    dynbuf_free(&b);
    close(fd);
    assert_int_equal(file_read("/nowhere/at/all", &b), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(file_read("/", &b), -1);
    assert_int_equal(errno, EISDIR);
    dynbuf_free(&b);
    (void)state;
}

static void memfd_maps_only_what_nobody_can_change(void **state)
{
    static const int each[] = {F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE};
    struct span map;
    for (size_t i = 0; i < 4; i++) {
        int fd = memfd_with(SEALS & ~each[i]);
        assert_int_equal(memfd_map(fd, 5, &map), -1);
        assert_int_equal(map.n, 0);
        close(fd);
    }
    int fd = memfd_of(SPAN("bytes"));
    assert_int_equal(memfd_map(fd, 4, &map), -1);
    assert_int_equal(memfd_map(fd, 5, &map), 0);
    close(fd);
    assert_memory_equal(map.p, "bytes", 5);
    memfd_unmap(&map);
    assert_null(map.p);
    fd = memfd_of(SPAN_NONE);
    assert_int_equal(memfd_map(fd, 5, &map), -1);
    close(fd);
    assert_int_equal(memfd_map(-1, 5, &map), -1);
}

/* Where the sysctl vm.memfd_noexec is set, every memfd has one seal more. */
static void memfd_takes_a_seal_of_the_kernels_own(void **state)
{
    struct span map;
    int fd = memfd_with(SEALS & ~F_SEAL_SEAL);
    int added = fcntl(fd, F_ADD_SEALS, F_SEAL_EXEC | F_SEAL_SEAL);
    if (added == 0) { /* before Linux 6.3 there is no such seal */
        assert_int_equal(memfd_map(fd, 5, &map), 0);
        memfd_unmap(&map);
    }
    close(fd);
}

static void dynbuf_overwrites_what_it_drops(void **state)
{
    struct dynbuf b;
    dynbuf_init(&b, 64);
    assert_int_equal(dynbuf_add(&b, SPAN("secretrest")), 0);
    dynbuf_drop(&b, 6);
    assert_memory_equal(b.p, "rest\0\0\0\0\0\0", 10);
    dynbuf_drop(&b, 9);
    assert_int_equal(b.n, 0);
    assert_memory_equal(b.p, "\0\0\0\0", 4);
    dynbuf_free(&b);
}

static void dynbuf_stops_at_its_limit(void **state)
{
    struct dynbuf b;
    dynbuf_init(&b, 4);
    assert_int_equal(dynbuf_add(&b, SPAN("abcd")), 0);
    assert_int_equal(dynbuf_add(&b, SPAN("e")), -1);
    assert_false(dynbuf_ok(&b));
    assert_int_equal(dynbuf_add(&b, SPAN("")), -1);
    dynbuf_free(&b);
    assert_true(dynbuf_ok(&b));
    dynbuf_init(&b, 0);
    assert_int_equal(dynbuf_add(&b, SPAN("a")), -1);
}

static void arena_keeps_texts_and_lists(void **state)
{
    struct arena a;
    struct dynbuf b;
    unsigned *v = NULL;
    size_t max = 0;
    (void)state;
    arena_init(&a, 4096);
    dynbuf_init(&b, 8);
    struct span none = arena_keep(&a, &b); /* nothing is no failure */
    assert_true(none.p != NULL && none.n == 0);
    dynbuf_add_percent(&b, SPAN("a/%"), "/");
    assert_true(span_eq(arena_keep(&a, &b), SPAN("a/%25")) && b.p == NULL);
    assert_int_equal(dynbuf_add(&b, SPAN("nine here")), -1);
    assert_null(arena_keep(&a, &b).p);
    assert_true(span_eq(arena_join(&a, SPAN("a\0b"), SPAN("c")), SPAN("a\0bc")));
    assert_true(span_eq(arena_printf(&a, "%s:%u", "host", 443u), SPAN("host:443")));
    for (unsigned i = 0; i < 100; i++) {
        unsigned *more = arena_more(&a, v, i, &max, sizeof(*v));
        assert_non_null(more);
        v = more;
        v[i] = i;
    }
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(v[i], i);
    size_t many = 128;
    assert_null(arena_more(&a, v, many, &many, 64));
    assert_int_equal(many, 128);
    assert_null(arena_join(&a, span_of(v, SIZE_MAX), SPAN("x")).p);
    arena_free(&a);
}

/* Also where somebody else's bytes lay before. */
static void an_arena_hands_out_zeroes(void **state)
{
    static const uint8_t zero[512];
    struct arena a;
    arena_init(&a, 64 * 1024);
    for (size_t round = 0; round < 4; round++) {
        for (size_t i = 0; i < 16; i++) {
            uint8_t *p = arena_alloc(&a, sizeof(zero) - i);
            assert_non_null(p);
            assert_memory_equal(p, zero, sizeof(zero) - i);
            memset(p, 0xa5, sizeof(zero) - i);
        }
        arena_free(&a);
    }
}

static void a_number_is_added_in_digits(void **state)
{
    static const struct {
        uint64_t v;
        const char *text;
    } rows[] = {{0, "0"}, {7, "7"}, {10, "10"}, {404, "404"}, {UINT64_MAX, "18446744073709551615"}};
    struct dynbuf b;
    dynbuf_init(&b, 20);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        dynbuf_reset(&b);
        assert_int_equal(dynbuf_add_u64(&b, rows[i].v), 0);
        assert_true(span_eq(dynbuf_span(&b), span_str(rows[i].text)));
    }
    assert_int_equal(dynbuf_add_u64(&b, 1), -1);
    assert_false(dynbuf_ok(&b));
    assert_int_equal(dynbuf_add_u64(&b, 1), -1); /* it sticks */
    dynbuf_free(&b);
}

/* Each width, its largest value and its order of bytes; one byte short is bad. */
static void numbers_of_a_message_come_back(void **state)
{
    struct dynbuf b;
    dynbuf_init(&b, 64);
    msg_put_u8(&b, 0xfe);
    msg_put_u16(&b, 0xfedc);
    msg_put_u32(&b, 0xfedcba98);
    msg_put_u64(&b, 0xfedcba9876543210);
    const uint8_t wire[] = {0xfe, 0xfe, 0xdc, 0xfe, 0xdc, 0xba, 0x98, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10};
    assert_true(span_eq(dynbuf_span(&b), span_of(wire, sizeof(wire))));
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_int_equal(msg_get_u8(&m), 0xfe);
    assert_int_equal(msg_get_u16(&m), 0xfedc);
    assert_int_equal(msg_get_u32(&m), 0xfedcba98);
    struct msg_in cut = {span_first(m.rest, 7), false};
    assert_true(msg_get_u64(&m) == 0xfedcba9876543210 && msg_end(&m) == 0);
    assert_true(msg_get_u64(&cut) == 0 && msg_end(&cut) == -1);
    dynbuf_free(&b);
}

static void arena_stops_at_its_limit(void **state)
{
    struct arena a;
    arena_init(&a, 64);
    assert_non_null(arena_alloc(&a, 64));
    assert_null(arena_alloc(&a, 1));
    arena_free(&a);
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 8));
}

#ifdef COMMON_POISON
int __asan_address_is_poisoned(void const volatile *p);

static bool is_gone(const void *p)
{
    return __asan_address_is_poisoned(p) != 0;
}

static bool is_unmapped(const void *p) /* the kernel reads it for us */
{
    int fd = memfd_create("probe", MFD_CLOEXEC);
    bool gone = write(fd, p, 1) < 0 && errno == EFAULT;
    close(fd);
    return gone;
}

/* Else a span that outlives its bytes is seen by nobody: the memory is still there. */
static void what_is_used_again_cannot_be_read_in_between(void **state)
{
    struct dynbuf b;
    struct arena a;
    struct span map;
    dynbuf_init(&b, 4096);
    assert_int_equal(dynbuf_add(&b, SPAN("0123456789")), 0);
    const uint8_t *p = b.p;
    assert_true(!is_gone(p + 9) && is_gone(p + 10));
    dynbuf_drop(&b, 4);
    assert_true(!is_gone(p + 5) && is_gone(p + 6));
    dynbuf_reset(&b);
    assert_true(is_gone(p));
    assert_int_equal(dynbuf_addf(&b, "%s", "ab"), 0);
    assert_true(b.p == p && !is_gone(p + 1) && is_gone(p + 2));
    dynbuf_wipe(&b);
    arena_init(&a, 4096);
    uint8_t *one = arena_alloc(&a, 3), *two = arena_alloc(&a, 3);
    assert_true(two > one && !is_gone(one + 2) && is_gone(one + 3) && !is_gone(two + 2) && is_gone(two + 3));
    arena_free(&a);
    int fd = memfd_of(SPAN("bytes"));
    assert_int_equal(memfd_map(fd, 5, &map), 0);
    const void *was = map.p;
    assert_false(is_unmapped(was));
    memfd_unmap(&map);
    assert_true(is_unmapped(was));
    void *next = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(next != was);
    munmap(next, 4096);
    close(fd);
}
#endif

static void ids_round_trip(void **state)
{
    struct id a, b;
    char text[ID_TEXT + 1];
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(id_new(&a), 0);
        id_text(&a, text);
        assert_int_equal(id_parse(span_str(text), &b), 0);
        assert_true(id_eq(&a, &b));
    }
    text[25] = 'l'; /* not in the alphabet */
    assert_int_equal(id_parse(span_str(text), &b), -1);
    text[25] = '1'; /* a bit past the 128th */
    assert_int_equal(id_parse(span_str(text), &b), -1);
}

static void base64_is_strict(void **state)
{
    char out[64];
    uint8_t raw[64];
    size_t n;
    assert_int_equal(base64_encode(SPAN("user:pass"), out), 12);
    assert_string_equal(out, "dXNlcjpwYXNz");
    assert_int_equal(base64_decode(SPAN("dXNlcjpwYXM="), raw, &n), 0);
    assert_int_equal(n, 8);
    assert_int_equal(base64_decode(SPAN("dXNlcjpwYXN="), raw, &n), -1); /* loose bits */
    assert_int_equal(base64_decode(SPAN("dXNl\ncjpw"), raw, &n), -1);
    assert_int_equal(base64_decode(SPAN("dX=l"), raw, &n), -1);
    assert_int_equal(websocket_accept(SPAN("dGhlIHNhbXBsZSBub25jZQ=="), out), 0); /* RFC 6455 section 1.3 */
    assert_string_equal(out, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_int_equal(websocket_accept(SPAN("dGhlIHNhbXBsZSBub25jZQ="), out), -1);
}

static void a_bad_message_sticks(void **state)
{
    struct dynbuf b;
    dynbuf_init(&b, 100);
    msg_put_u16(&b, 7);
    msg_put_span(&b, SPAN("abc"));
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_int_equal(msg_get_u16(&m), 7);
    assert_int_equal(msg_get_span(&m, 2).n, 0); /* over the caller's limit */
    assert_int_equal(msg_end(&m), -1);
    m = msg_in(dynbuf_span(&b));
    (void)msg_get_u16(&m);
    assert_true(span_eq(msg_get_span(&m, 3), SPAN("abc")));
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(msg_get_u8(&m), 0);
    assert_int_equal(msg_end(&m), -1);
    dynbuf_free(&b);
}

static void numbers_are_digits_only(void **state)
{
    uint64_t v;
    assert_true(span_cmp(SPAN("ab"), SPAN("b")) < 0 && span_cmp(SPAN("b"), SPAN("ab")) > 0);
    assert_true(span_cmp(SPAN("ab"), SPAN("abc")) < 0 && span_cmp(SPAN("\xff"), SPAN("abc")) > 0);
    assert_true(span_cmp(SPAN("ab"), SPAN("ab")) == 0 && span_cmp(SPAN_NONE, SPAN("")) == 0);
    assert_int_equal(span_u64(SPAN("18446744073709551615"), UINT64_MAX, &v), 0);
    assert_true(v == UINT64_MAX);
    assert_int_equal(span_u64(SPAN("18446744073709551616"), UINT64_MAX, &v), -1);
    assert_int_equal(span_u64(SPAN("07"), 10, &v), -1);
    assert_int_equal(span_u64(SPAN("+7"), 10, &v), -1);
    assert_int_equal(span_u64(SPAN(""), 10, &v), -1);
    assert_int_equal(span_u64(SPAN("9"), 8, &v), -1);
}

static void letters_digits_and_others_are_nothing_else(void **state)
{
    for (unsigned c = 0; c < 256; c++) {
        uint8_t one[3] = {'a', (uint8_t)c, 'Z'};
        bool is = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        assert_int_equal(span_is_of(span_of(one, 3), SPAN("")), is);
        assert_int_equal(span_is_of(span_of(one, 3), SPAN("-\0")), is || c == '-' || c == 0);
    }
    assert_true(span_is_of(SPAN_NONE, SPAN("")));
}

static void test_hex_digits(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++)
        assert_int_equal(hex_digit((uint8_t)c),
                         c != 0 && isxdigit(c) ? (int)strtol((char[]){(char)c, 0}, NULL, 16) : -1);
    assert_int_equal(hex_number(SPAN("fFz"), 2), 0xff);
    assert_int_equal(hex_number(SPAN("00e9"), 4), 0xe9);
    assert_int_equal(hex_number(SPAN("f"), 2), -1);
    assert_int_equal(hex_number(SPAN("g0"), 2), -1);
    assert_int_equal(hex_number(SPAN_NONE, 2), -1);
}

static void a_name_is_found_that_was_meant(void **state)
{
    static const char *const names[] = {"approve", "deny", "host", "path", NULL};
    static const struct {
        struct span word;
        const char *meant;
    } rows[] = {
        {SPAN("aprove"), "approve"}, {SPAN("appr"), "approve"}, {SPAN("dney"), "deny"},   {SPAN("hsot"), "host"},
        {SPAN("hostname"), "host"},  {SPAN("pth"), "path"},     {SPAN("deny8z3k"), NULL}, {SPAN("x"), NULL},
        {SPAN("hq"), NULL},          {SPAN(""), NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *found = nearest_name(rows[i].word, names);
        if (rows[i].meant == NULL)
            assert_null(found);
        else
            assert_string_equal(found, rows[i].meant);
    }
}

static uint64_t seconds(const char *text)
{
    uint64_t ms = 77;
    if (instant_seconds(span_str(text), &ms) != 0) {
        assert_int_equal(ms, 77);
        return UINT64_MAX;
    }
    return ms;
}

static void test_seconds_as_numbers(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } rows[] = {{"0", 0},
                {"60", 60000},
                {"0.5", 500},
                {"3599.9999", 3599999},
                {"1.7e9", 1700000000000},
                {"1.795424410123456789E+09", 1795424410123},
                {"12345e-1", 1234500},
                {"5e-3", 5},
                {"5e-4", 0},
                {"1e-99", 0},
                {"0e99", 0},
                {"0.00000000017e19", 1700000000000},
                {"4294967295.999", 4294967295999},
                {"429496729500e-2", 4294967295000}};
    static const char *const none[] = {"",
                                       "-1",
                                       "+1",
                                       "01",
                                       "00",
                                       ".5",
                                       "1.",
                                       "1.e3",
                                       "1e",
                                       "1e+",
                                       "1e100",
                                       "1 ",
                                       " 1",
                                       "1,5",
                                       "0x10",
                                       "1.5.5",
                                       "1e3e3",
                                       "1e1.5",
                                       "e9",
                                       "NaN",
                                       "inf",
                                       "soon",
                                       "4294967296",
                                       "1e10",
                                       "9e99",
                                       "1.7e12",
                                       "99999999999999999999",
                                       "1.0000000000000000000000000000000"};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (seconds(rows[i].text) != rows[i].ms)
            fail_msg("%s: %llu", rows[i].text, (unsigned long long)seconds(rows[i].text));
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        if (seconds(none[i]) != UINT64_MAX)
            fail_msg("taken: %s", none[i]);
}

#define NOW UINT64_C(1795424400000) /* 2026-11-23T09:00:00Z */

static void test_until_when(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms; /* 0: it is none */
    } rows[] = {{"2026-11-23T09:00:10Z", 10000},
                {"2026-11-23T10:00:10.999+01:00", 10000},
                {"1795424410", 10000},
                {"1795424410.25", 10250},
                {"1.79542441E9", 10000},
                {"1795424410250", 10250},
                {"2026-11-23T08:00:00Z", 1},
                {"1795424399.5", 1},
                {"60", 1},
                {"1000000000000", 1},
                {"999999999999", 0}, /* neither seconds nor milliseconds of our time */
                {"4294967296", 0},
                {"4294967296000", 0},
                {"1795424410250.5", 0},
                {"1.79542441025e12", 0},
                {"-1795424410", 0},
                {"2026-11-23T09:00:10", 0},
                {"2026-11-23T09:00:10.Z", 0},
                {"2026-11-23 09:00:10Z", 0},
                {"Mon, 23 Nov 2026 09:00:10 GMT", 0},
                {"", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t ms = 7;
        int rc = instant_left(span_str(rows[i].text), NOW, &ms);
        if (rc != (rows[i].ms ? 0 : -1) || ms != rows[i].ms)
            fail_msg("%s: %d, %llu", rows[i].text, rc, (unsigned long long)ms);
    }
}

static void test_moments(void **state)
{
    char text[UTC_TEXT];
    (void)state;
    assert_true(utc_text(1763805600123, false, text));
    assert_string_equal(text, "2025-11-22T10:00:00Z");
    assert_true(utc_text(1763805600007, true, text));
    assert_string_equal(text, "2025-11-22T10:00:00.007Z");
    assert_false(utc_text(UINT64_MAX, true, text));
    assert_string_equal(text, "");
    uint64_t before = clock_ms(CLOCK_MONOTONIC);
    assert_true(clock_ns(CLOCK_MONOTONIC) / 1000000 >= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hex_digits),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_seconds_as_numbers),
        cmocka_unit_test(test_until_when),
        cmocka_unit_test(a_name_is_found_that_was_meant),
        cmocka_unit_test(dynbuf_stops_at_its_limit),
        cmocka_unit_test(dynbuf_overwrites_what_it_drops),
        cmocka_unit_test(arena_keeps_texts_and_lists),
        cmocka_unit_test(an_arena_hands_out_zeroes),
        cmocka_unit_test(a_number_is_added_in_digits),
        cmocka_unit_test(numbers_of_a_message_come_back),
        cmocka_unit_test(arena_stops_at_its_limit),
#ifdef COMMON_POISON
        cmocka_unit_test(what_is_used_again_cannot_be_read_in_between),
#endif
        cmocka_unit_test(ids_round_trip),
        cmocka_unit_test(base64_is_strict),
        cmocka_unit_test(a_bad_message_sticks),
        cmocka_unit_test(numbers_are_digits_only),
        cmocka_unit_test(letters_digits_and_others_are_nothing_else),
        cmocka_unit_test(a_file_is_read_whole_or_not),
        cmocka_unit_test(memfd_maps_only_what_nobody_can_change),
        cmocka_unit_test(memfd_takes_a_seal_of_the_kernels_own),
    };
    return cmocka_run_group_tests_name("common", tests, NULL, NULL);
}
