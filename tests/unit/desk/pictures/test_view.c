/* What the viewer makes of pictures: of good ones their pixels, of all others words. Covers E19 as far as bodies are
 * pictures. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stdio.h>
#include <zlib.h>

#include "sandbox-shim/inside/shim_tar.h"
#include "tests/unit/desk/pictures/drawn.h"
#include "web-approval/viewer/packed.h"
#include "web-approval/viewer/view.h"

enum { MOST = 4 * 1024 * 1024 };

static const struct {
    enum view_format format;
    void (*draw)(const struct drawn *d, struct dynbuf *out);
    bool sharp; /* its pixels are as they were drawn */
} kinds[] = {{VIEW_PNG, drawn_png, true},
             {VIEW_JPEG, drawn_jpeg, false},
             {VIEW_GIF, drawn_gif, true},
             {VIEW_WEBP, drawn_webp, true}};
#define KINDS (sizeof kinds / sizeof kinds[0])

static struct dynbuf in, out;

static int setup(void **state)
{
    dynbuf_init(&in, MOST);
    dynbuf_init(&out, VIEW_PNG_MAX);
    return 0;
}

static int teardown(void **state)
{
    dynbuf_free(&in);
    dynbuf_free(&out);
    return 0;
}

static struct viewed seen(struct span s)
{
    struct viewed v, again;
    struct dynbuf wire;

    /* A copy of its own: one byte read behind it is one too many. */
    uint8_t *copy = malloc(s.n ? s.n : 1);
    assert_non_null(copy);
    if (s.n)
        memcpy(copy, s.p, s.n);
    dynbuf_free(&out);
    view_make(span_of(copy, s.n), &out, &v);
    free(copy);
    dynbuf_init(&wire, 64);
    viewed_put(&wire, &v);
    struct msg_in m = msg_in(dynbuf_span(&wire));
    assert_true(viewed_get(&m, &again) == 0 || v.end != VIEW_SHOWN);
    if (v.end == VIEW_SHOWN)
        assert_memory_equal(&again.w, &v.w, 2 * sizeof v.w);
    assert_true((v.end == VIEW_SHOWN) == (out.n > 0) || v.end == VIEW_FAILED);
    dynbuf_free(&wire);
    return v;
}

static struct viewed drawn(size_t kind, const struct drawn *d)
{
    dynbuf_free(&in);
    kinds[kind].draw(d, &in);
    assert_true(in.n > 0 && dynbuf_ok(&in));
    return seen(dynbuf_span(&in));
}

/* A pixel of the PNG that was made. */
static const uint8_t *pixel(uint32_t x, uint32_t y)
{
    static struct raster r;
    struct viewed v = {.end = VIEW_FAILED};

    free(r.rgba);
    r.rgba = NULL;
    assert_true(view_png(dynbuf_span(&out), &r, &v) && x < r.w && y < r.h);
    return r.rgba + 4 * ((size_t)y * r.w + x);
}

static bool near(const uint8_t *p, const uint8_t *want, unsigned by)
{
    for (size_t c = 0; c < 4; c++)
        if (p[c] > want[c] + by || want[c] > p[c] + by)
            return false;
    return true;
}

static void be(uint8_t *p, uint32_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> 8 * (n - 1 - i));
}

static uint32_t crc_of(const uint8_t *p, size_t n)
{
    uint32_t crc = ~0u;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void each_format_is_shown(void **state)
{
    struct drawn d = {40, 20, {200, 30, 30, 255}, {10, 40, 220, 255}, 1, false};

    for (size_t i = 0; i < 2 * KINDS; i++) {
        d.interlaced = i >= KINDS;
        size_t k = i % KINDS;
        struct viewed v = drawn(k, &d);
        assert_int_equal(v.end, VIEW_SHOWN);
        assert_int_equal(v.format, kinds[k].format);
        assert_true(v.width == 40 && v.height == 20 && v.w == 40 && v.h == 20 && v.frames == 1 && v.behind == 0);
        assert_false(v.clear);
        assert_true(viewed_png(dynbuf_span(&out), &v));
        assert_true(near(pixel(3, 3), d.left, kinds[k].sharp ? 0 : 6));
        assert_true(near(pixel(36, 16), d.right, kinds[k].sharp ? 0 : 6));
        if (kinds[k].sharp) /* its edge stands where it stood */
            assert_true(near(pixel(19, 19), d.left, 0) && near(pixel(20, 0), d.right, 0));
    }
    print_message("ok E19 unit\n");
}

static void what_is_clear_is_said(void **state)
{
    const struct drawn d = {16, 16, {1, 2, 3, 255}, {0, 0, 0, 0}, 1, false};

    for (size_t k = 0; k < KINDS; k++) {
        struct viewed v = drawn(k, &d);
        assert_int_equal(v.end, VIEW_SHOWN);
        assert_int_equal(v.clear, kinds[k].format != VIEW_JPEG);
        assert_int_equal(pixel(12, 8)[3], v.clear ? 0 : 255);
    }
}

/* The PNG of in, with so many times what behind the 33 bytes of its head. */
static struct viewed with_chunks(struct span what, size_t times)
{
    struct dynbuf b;
    struct viewed v;

    dynbuf_init(&b, MOST);
    (void)dynbuf_add(&b, span_first(dynbuf_span(&in), 33));
    while (times-- > 0)
        (void)dynbuf_add(&b, what);
    (void)dynbuf_add(&b, span_from(dynbuf_span(&in), 33));
    v = seen(dynbuf_span(&b));
    dynbuf_free(&b);
    return v;
}

static void how_many_follow_is_said(void **state)
{
    struct drawn d = {8, 8, {255, 0, 0, 255}, {0, 255, 0, 255}, 3, false};

    struct viewed v = drawn(2, &d);
    assert_true(v.end == VIEW_SHOWN && v.frames == 3);
    assert_true(near(pixel(0, 0), d.left, 0)); /* the first */
    d.pictures = 1;
    (void)drawn(0, &d);
    /* an APNG says it in a chunk before its pixels, which is behind the 33 bytes of its head */
    uint8_t actl[20] = {0, 0, 0, 8, 'a', 'c', 'T', 'L', 0, 0, 0, 5};
    be(actl + 16, crc_of(actl + 4, 12), 4);
    v = with_chunks(span_of(actl, sizeof actl), 1);
    assert_true(v.end == VIEW_SHOWN && v.frames == 5);
    actl[11] = 1; /* its one frame need not be what is shown as if there were none */
    be(actl + 16, crc_of(actl + 4, 12), 4);
    v = with_chunks(span_of(actl, sizeof actl), 1);
    assert_true(v.end == VIEW_SHOWN && v.frames == 2);
}

/* What says that it moves, or its gamma, could stand behind more than is looked through. */
static void much_before_its_pixels(void **state)
{
    static const uint8_t none[] = {0, 0, 0, 0, 'n', 'o', 'N', 'e', 0, 0, 0, 0};
    uint8_t chunk[12];

    (void)drawn(0, &(struct drawn){8, 8, {9, 9, 9, 255}, {99, 99, 99, 255}, 1, false});
    memcpy(chunk, none, sizeof chunk);
    be(chunk + 8, crc_of(chunk + 4, 4), 4);
    assert_int_equal(with_chunks(span_of(chunk, sizeof chunk), 10).end, VIEW_SHOWN);
    assert_int_equal(with_chunks(span_of(chunk, sizeof chunk), 1100).end, VIEW_DAMAGED);
}

/* One picture to programs that go by its gamma, and another to those that do not. */
static void two_pictures_by_gamma(void **state)
{
    static const struct {
        uint32_t gamma;
        enum view_end end;
    } rows[] = {{45455, VIEW_SHOWN}, {100000, VIEW_SHOWN}, {2000, VIEW_DAMAGED}, {10000000, VIEW_DAMAGED}};

    (void)drawn(0, &(struct drawn){8, 8, {9, 9, 9, 255}, {99, 99, 99, 255}, 1, false});
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t gama[16] = {0, 0, 0, 4, 'g', 'A', 'M', 'A'};
        be(gama + 8, rows[i].gamma, 4);
        be(gama + 12, crc_of(gama + 4, 8), 4);
        assert_int_equal(with_chunks(span_of(gama, sizeof gama), 1).end, rows[i].end);
    }
}

static void what_follows_is_counted(void **state)
{
    const struct drawn d = {8, 8, {9, 9, 9, 255}, {99, 99, 99, 255}, 1, false};

    for (size_t k = 0; k < KINDS; k++) {
        (void)drawn(k, &d);
        (void)dynbuf_add(&in, SPAN("PK\3\4 another file"));
        struct viewed v = seen(dynbuf_span(&in));
        assert_int_equal(v.end, VIEW_SHOWN);
        assert_int_equal(v.behind, sizeof("PK\3\4 another file") - 1);
    }
}

/* Whatever is missing of one, it is not shown; whatever byte is another, no more than that becomes of it. */
static void cut_or_changed_anywhere(void **state)
{
    struct drawn d = {24, 24, {200, 30, 30, 255}, {10, 40, 220, 255}, 2, true};
    struct dynbuf whole;

    dynbuf_init(&whole, MOST);
    for (size_t k = 0; k < KINDS; k++) {
        (void)drawn(k, &d);
        dynbuf_free(&whole);
        (void)dynbuf_add(&whole, dynbuf_span(&in));
        for (size_t n = 0; n < whole.n; n++) {
            struct viewed v = seen(span_first(dynbuf_span(&whole), n));
            if (v.end == VIEW_SHOWN || v.end == VIEW_FAILED)
                fail_msg("%s: %zu of %zu bytes: %d", viewed_format(&v), n, whole.n, v.end);
        }
        for (size_t n = 0; n < whole.n; n++) {
            whole.p[n] ^= 0x55;
            (void)seen(dynbuf_span(&whole));
            whole.p[n] ^= 0x55;
        }
        assert_int_equal(seen(dynbuf_span(&whole)).end, VIEW_SHOWN);
    }
    dynbuf_free(&whole);
}

/* The sides that a head says, put into a small picture; of PNG the sum of the head is made anew. */
static void head_says(size_t kind, uint32_t w, uint32_t h)
{
    uint8_t *p = in.p;
    size_t sof = 2;

    switch (kinds[kind].format) {
    case VIEW_PNG:
        be(p + 16, w, 4);
        be(p + 20, h, 4);
        be(p + 29, crc_of(p + 12, 17), 4);
        break;
    case VIEW_JPEG:
        while (p[sof + 1] != 0xc0)
            sof += 2 + ((size_t)p[sof + 2] << 8 | p[sof + 3]);
        be(p + sof + 5, h, 2);
        be(p + sof + 7, w, 2);
        break;
    case VIEW_GIF: p[6] = (uint8_t)w, p[7] = (uint8_t)(w >> 8), p[8] = (uint8_t)h, p[9] = (uint8_t)(h >> 8); break;
    default: /* lossless: 14 bits each, less one, behind its signature */
        w = (w - 1) & 0x3fff, h = (h - 1) & 0x3fff;
        p[21] = (uint8_t)w, p[22] = (uint8_t)(w >> 8 | h << 6), p[23] = (uint8_t)(h >> 2);
        p[24] = (uint8_t)((p[24] & 0xf0) | h >> 10);
        break;
    }
}

/* A small file that would be a picture of gigabytes is refused by its head, before there is memory for it. */
static void too_large(void **state)
{
    const struct drawn d = {8, 8, {9, 9, 9, 255}, {99, 99, 99, 255}, 1, false};
    static const uint32_t sides[][2] = {{16383, 16383}, {60000, 60000}, {60000, 1}, {1, 60000}};

    for (size_t k = 0; k < KINDS; k++)
        for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
            if (kinds[k].format == VIEW_WEBP && i > 0)
                continue;
            (void)drawn(k, &d);
            head_says(k, sides[i][0], sides[i][1]);
            struct viewed v = seen(dynbuf_span(&in));
            if (v.end != VIEW_LARGE)
                fail_msg("%s, %u x %u: %d", viewed_format(&v), sides[i][0], sides[i][1], v.end);
        }
    (void)drawn(0, &d);
    head_says(0, 0x7fffffff, 0x7fffffff);
    assert_int_equal(seen(dynbuf_span(&in)).end, VIEW_LARGE);
}

static void large_ones_are_made_smaller(void **state)
{
    static const uint32_t sides[][2] = {{1920, 1080}, {3000, 2000}, {9000, 20}, {20, 9000}, {16000, 1}};
    struct drawn d = {0, 0, {255, 255, 255, 255}, {0, 0, 0, 255}, 1, false};

    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        d.w = sides[i][0];
        d.h = sides[i][1];
        struct viewed v = drawn(0, &d);
        assert_int_equal(v.end, VIEW_SHOWN);
        assert_true(v.width == d.w && v.height == d.h);
        assert_true((uint64_t)v.w * v.h <= VIEW_SHOWN_MAX && v.w <= VIEW_SHOWN_SIDE_MAX &&
                    v.h <= VIEW_SHOWN_SIDE_MAX);
        assert_true(i > 0 || (v.w == 1920 && v.h == 1080)); /* a screen is shown as it is */
        assert_true(near(pixel(0, 0), d.left, 0) && near(pixel(v.w - 1, v.h - 1), d.right, 0));
    }
}

static void other_kinds_are_named(void **state)
{
    static const char *const others[] = {
        "", "<svg xmlns='http://www.w3.org/2000/svg'/>", "BM\x9a\0\0\0", "II*\0", "RIFF\4\0\0\0WAVE", "\0\0\1\0"};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(seen(span_str(others[i])).end, VIEW_KIND);
}

/* A viewer that was taken over says what it likes: what is not within its bounds is no word. */
static void what_it_may_not_say(void **state)
{
    const struct viewed good = {VIEW_SHOWN, VIEW_PNG, 100, 80, 50, 40, 1, 0, false};
    struct viewed rows[11];
    struct viewed got;
    struct dynbuf b;
    struct msg_in m;

    for (size_t i = 0; i < 11; i++)
        rows[i] = good;
    rows[1].end = VIEW_BUSY;
    rows[2].format = VIEW_NO_FORMAT;
    rows[3].format = VIEW_FORMATS;
    rows[4].w = 101;
    rows[5].h = 0;
    rows[6].frames = 0;
    rows[7].frames = VIEW_FRAMES_MAX + 1;
    rows[8].width = VIEW_SIDE_MAX + 1;
    rows[9].width = rows[9].height = rows[9].w = rows[9].h = VIEW_SHOWN_SIDE_MAX;
    rows[10].behind = VIEW_BYTES_MAX + 1ull;
    dynbuf_init(&b, 128);
    for (size_t i = 0; i < 11; i++) {
        dynbuf_reset(&b);
        viewed_put(&b, &rows[i]);
        m = msg_in(dynbuf_span(&b));
        if ((viewed_get(&m, &got) == 0) != (i == 0) || (i > 0 && got.end != VIEW_FAILED))
            fail_msg("row %zu", i);
        m = msg_in(span_first(dynbuf_span(&b), b.n - 1));
        assert_int_not_equal(viewed_get(&m, &got), 0);
    }
    (void)drawn(0, &(struct drawn){8, 8, {1, 1, 1, 255}, {2, 2, 2, 255}, 1, false});
    struct viewed v = {.w = 8, .h = 8};
    assert_true(viewed_png(dynbuf_span(&out), &v));
    assert_false(viewed_png(span_first(dynbuf_span(&out), out.n - 1), &v));
    assert_false(viewed_png(span_from(dynbuf_span(&out), 1), &v));
    v.w = 9;
    assert_false(viewed_png(dynbuf_span(&out), &v));
    dynbuf_free(&b);
}

/* --- packages ------------------------------------------------------------------- */

static z_stream packing;

static void pack(const void *bytes, size_t n, int how)
{
    packing.next_in = (Bytef *)(uintptr_t)bytes;
    packing.avail_in = (uInt)n;
    do {
        uint8_t *room = dynbuf_room(&in, 64 * 1024);
        assert_non_null(room);
        packing.next_out = room;
        packing.avail_out = 64 * 1024;
        assert_true(deflate(&packing, how) != Z_STREAM_ERROR);
        dynbuf_grew(&in, 64 * 1024 - packing.avail_out);
    } while (packing.avail_out == 0);
}

static void pack_begin(void)
{
    dynbuf_free(&in);
    packing = (z_stream){.next_in = NULL};
    assert_int_equal(deflateInit2(&packing, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
}

static void pack_file(const char *name, uint64_t size)
{
    uint8_t head[TAR_HEAD_MAX];
    struct tar_member m = {.type = TAR_FILE, .mode = 0644, .size = size};

    (void)snprintf(m.name, sizeof m.name, "%s", name);
    pack(head, tar_head(head, &m), Z_NO_FLUSH);
}

static struct viewed packed(void)
{
    static const uint8_t end[2 * TAR_BLOCK];

    pack(end, sizeof end, Z_FINISH);
    (void)deflateEnd(&packing);
    return seen(dynbuf_span(&in));
}

static void packages_with_more_than_is_listed(void **state)
{
    static uint8_t zeros[1024 * 1024];
    char name[32];

    for (unsigned more = 0; more < 2; more++) {
        pack_begin();
        for (unsigned i = 0; i < PACKED_FILES_MAX + more; i++) {
            (void)snprintf(name, sizeof name, "package/%u", i);
            pack_file(name, 0);
        }
        struct viewed v = packed();
        assert_int_equal(v.end, more ? VIEW_LARGE : VIEW_SHOWN);
        assert_true(more ||
                    (v.format == VIEW_PACKAGE && v.width == PACKED_FILES_MAX && viewed_made(dynbuf_span(&out), &v)));
        v.width--;
        assert_false(viewed_made(dynbuf_span(&out), &v));
    }
    for (unsigned more = 0; more < 2; more++) {
        pack_begin();
        pack_file("package/package.json", PACKED_MANIFEST_MAX + more);
        pack(zeros, PACKED_MANIFEST_MAX + more + tar_pad(PACKED_MANIFEST_MAX + more), Z_NO_FLUSH);
        assert_int_equal(packed().end, more ? VIEW_LARGE : VIEW_SHOWN);
    }
    pack_begin();
    pack_file("package/x", PACKED_BYTES_MAX);
    pack(NULL, 0, Z_FULL_FLUSH);
    size_t before = in.n;
    pack(zeros, sizeof zeros, Z_FULL_FLUSH); /* the same each time: what was before it is forgotten */
    size_t one = in.n - before;
    for (uint64_t n = sizeof zeros; n < PACKED_BYTES_MAX; n += sizeof zeros) {
        uint8_t *room = dynbuf_room(&in, one);
        assert_non_null(room);
        memcpy(room, in.p + before, one);
        dynbuf_grew(&in, one);
    }
    assert_int_equal(packed().end, VIEW_LARGE);
}

static void what_is_no_whole_package_is_not_listed(void **state)
{
    pack_begin();
    pack_file("package/a", 0);
    assert_int_equal(packed().end, VIEW_SHOWN);
    for (size_t n = in.n - 1; n > 20; n--) /* cut anywhere */
        assert_int_not_equal(seen(span_first(dynbuf_span(&in), n)).end, VIEW_SHOWN);
    assert_int_equal(dynbuf_add(&in, dynbuf_span(&in)), 0); /* two, one behind the other */
    assert_true(seen(dynbuf_span(&in)).behind > 0);
    pack_begin();
    pack_file("package/a", 0);
    pack_file("package/../../a", 0);
    assert_int_equal(packed().end, VIEW_DAMAGED);
    pack_begin();
    pack("no tar", 6, Z_NO_FLUSH);
    assert_int_equal(packed().end, VIEW_KIND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packages_with_more_than_is_listed),
        cmocka_unit_test(what_is_no_whole_package_is_not_listed),
        cmocka_unit_test(each_format_is_shown),
        cmocka_unit_test(what_is_clear_is_said),
        cmocka_unit_test(how_many_follow_is_said),
        cmocka_unit_test(much_before_its_pixels),
        cmocka_unit_test(what_follows_is_counted),
        cmocka_unit_test(cut_or_changed_anywhere),
        cmocka_unit_test(too_large),
        cmocka_unit_test(large_ones_are_made_smaller),
        cmocka_unit_test(other_kinds_are_named),
        cmocka_unit_test(what_it_may_not_say),
        cmocka_unit_test(two_pictures_by_gamma),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
