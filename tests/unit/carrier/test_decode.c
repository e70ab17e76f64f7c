/* Encoded answers are looked into, whatever their coding: D5, D42, F5, F6. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <brotli/encode.h>
#include <cmocka.h>
#include <zlib.h>
#include <zstd.h>

#include "proxy/carrier/scrub/decode.h"

#define TOKEN "ghp_16C7e42F292c6912E7710c838347Ae178B4a"

static struct dynbuf packed(struct span plain, int bits, int level)
{
    struct dynbuf out;
    z_stream z = {0};
    dynbuf_init(&out, 64 * 1024 * 1024);
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = deflateBound(&z, plain.n);
    uint8_t *p = dynbuf_room(&out, room);
    assert_non_null(p);
    z.next_in = (Bytef *)(uintptr_t)plain.p;
    z.avail_in = (uInt)plain.n;
    z.next_out = p;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    dynbuf_grew(&out, room - z.avail_out);
    deflateEnd(&z);
    return out;
}

/* In br or zstd; metadata: a block of it in front (br), or a frame that is skipped (zstd). */
static struct dynbuf packed_large(enum coding c, struct span plain, struct span metadata)
{
    struct dynbuf out;
    dynbuf_init(&out, 128 * 1024 * 1024);
    size_t room = BrotliEncoderMaxCompressedSize(plain.n) + ZSTD_compressBound(plain.n) + metadata.n + 100;
    uint8_t *p = dynbuf_room(&out, room), *to = p;
    assert_non_null(p);
    if (c == CODING_ZSTD) {
        uint8_t skip[] = {0x50, 0x2a, 0x4d, 0x18, (uint8_t)metadata.n, (uint8_t)(metadata.n >> 8), 0, 0};
        if (metadata.n) {
            memcpy(to, skip, sizeof(skip));
            memcpy(to + sizeof(skip), metadata.p, metadata.n);
            to += sizeof(skip) + metadata.n;
        }
        size_t n = ZSTD_compress(to, room - (size_t)(to - p), plain.p, plain.n, 3);
        assert_false(ZSTD_isError(n));
        dynbuf_grew(&out, (size_t)(to - p) + n);
        return out;
    }
    BrotliEncoderState *e = BrotliEncoderCreateInstance(NULL, NULL, NULL);
    assert_non_null(e);
    assert_true(BrotliEncoderSetParameter(e, BROTLI_PARAM_QUALITY, 5));
    size_t left = room, n = metadata.n;
    const uint8_t *in = metadata.p;
    if (metadata.n)
        assert_true(BrotliEncoderCompressStream(e, BROTLI_OPERATION_EMIT_METADATA, &n, &in, &left, &to, NULL));
    n = plain.n;
    in = plain.p;
    assert_true(BrotliEncoderCompressStream(e, BROTLI_OPERATION_FINISH, &n, &in, &left, &to, NULL));
    assert_true(BrotliEncoderIsFinished(e));
    BrotliEncoderDestroyInstance(e);
    dynbuf_grew(&out, room - left);
    return out;
}

static const enum coding large[] = {CODING_BR, CODING_ZSTD};

static struct scrub *token_set(void)
{
    struct span s = SPAN(TOKEN);
    struct scrub *set = scrub_new(&(struct scrub_secret){s, false}, 1, NULL);
    assert_non_null(set);
    return set;
}

/* Feed in steps; -1 when refused. What came out is in *out. */
static int run(enum coding c, struct span in, size_t step, struct dynbuf *out)
{
    struct scrub *set = token_set();
    struct decode *d = decode_new(c, set);
    int rc = 0;
    assert_non_null(d);
    dynbuf_init(out, 64 * 1024 * 1024);
    for (size_t at = 0; rc == 0 && at < in.n; at += step)
        rc = decode_feed(d, span_first(span_from(in, at), step), false, out) == DECODE_OK ? 0 : -1;
    if (rc == 0)
        rc = decode_feed(d, SPAN_NONE, true, out) == DECODE_OK ? 0 : -1;
    decode_free(&d);
    scrub_unref(&set);
    return rc;
}

static void codings(void **state)
{
    assert_int_equal(coding_of(SPAN("identity")), CODING_IDENTITY);
    assert_int_equal(coding_of(SPAN("")), CODING_IDENTITY);
    assert_int_equal(coding_of(SPAN("GZip ")), CODING_GZIP);
    assert_int_equal(coding_of(SPAN("deflate")), CODING_DEFLATE);
    assert_int_equal(coding_of(SPAN("BR")), CODING_BR);
    assert_int_equal(coding_of(SPAN("zstd")), CODING_ZSTD);
    const struct span bad[] = {SPAN("dcb"), SPAN("br, gzip"), SPAN("gzip, gzip"), SPAN("gzip,identity"), SPAN("x")};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(coding_of(bad[i]), CODING_UNKNOWN);
}

static void clean_passes_as_it_came(void **state)
{
    const int bits[] = {15 + 16, 15};
    for (int v = 0; v < 2; v++)
        for (size_t step = 1; step < 200; step += 13) {
            struct dynbuf in = packed(SPAN("{\"login\":\"ghp_16C7e42\",\"id\":1}\n"), bits[v], 6), out;
            assert_int_equal(run(v ? CODING_DEFLATE : CODING_GZIP, dynbuf_span(&in), step, &out), 0);
            assert_true(span_eq(dynbuf_span(&in), dynbuf_span(&out)));
            dynbuf_free(&in);
            dynbuf_free(&out);
        }
    /* two members */
    struct dynbuf one = packed(SPAN("one"), 31, 6), two = packed(SPAN("two"), 31, 6), out;
    dynbuf_add(&one, dynbuf_span(&two));
    assert_int_equal(run(CODING_GZIP, dynbuf_span(&one), 7, &out), 0);
    assert_true(span_eq(dynbuf_span(&one), dynbuf_span(&out)));
    dynbuf_free(&one);
    dynbuf_free(&two);
    dynbuf_free(&out);
}

/* Whatever was let go before the refusal decodes to no byte of the secret: it may begin only after text. */
static void secret_is_refused(void **state)
{
    for (int level = 0; level <= 9; level += 3)
        for (size_t step = 1; step < 400; step += 7) {
            struct dynbuf plain, out;
            dynbuf_init(&plain, 10000);
            for (int i = 0; i < 20; i++)
                dynbuf_addf(&plain, "line %d of text, ", i * 7919);
            size_t before = plain.n;
            dynbuf_add(&plain, SPAN(TOKEN " and more"));
            struct dynbuf in = packed(dynbuf_span(&plain), 31, level);
            assert_int_equal(run(CODING_GZIP, dynbuf_span(&in), step, &out), -1);
            uint8_t seen[4096];
            z_stream z = {.next_in = out.p, .avail_in = (uInt)out.n, .next_out = seen, .avail_out = sizeof(seen)};
            assert_int_equal(inflateInit2(&z, 31), Z_OK);
            (void)inflate(&z, Z_SYNC_FLUSH);
            assert_true(sizeof(seen) - z.avail_out <= before);
            inflateEnd(&z);
            dynbuf_free(&plain);
            dynbuf_free(&in);
            dynbuf_free(&out);
        }
}

static void secret_across_members(void **state)
{
    struct dynbuf one = packed(SPAN("x ghp_16C7e42F292c69"), 31, 6),
                  two = packed(SPAN("12E7710c838347Ae178B4a"), 31, 6);
    struct dynbuf out;
    dynbuf_add(&one, dynbuf_span(&two));
    assert_int_equal(run(CODING_GZIP, dynbuf_span(&one), 5, &out), -1);
    dynbuf_free(&one);
    dynbuf_free(&two);
    dynbuf_free(&out);
}

/* A gzip with room for a name (flag 8), a comment (16) or a field (4) in its header, and a member behind it. */
static struct dynbuf with_header(uint8_t flag, const char *text)
{
    struct dynbuf out, body = packed(SPAN("hello"), 31, 6);
    uint8_t head[] = {0x1f, 0x8b, 8, flag, 0, 0, 0, 0, 0, 3};
    uint8_t size[] = {(uint8_t)strlen(text), 0};
    dynbuf_init(&out, 10000);
    dynbuf_add(&out, span_of(head, sizeof(head)));
    if (flag == 4)
        dynbuf_add(&out, span_of(size, 2));
    dynbuf_add(&out, span_str(text));
    if (flag != 4)
        dynbuf_add_byte(&out, 0);
    dynbuf_add(&out, span_from(dynbuf_span(&body), 10));
    dynbuf_free(&body);
    return out;
}

/* D42: what no decoder shows is searched as well; so is what a later member says, and a dictionary is refused. */
static void beside_the_data(void **state)
{
    const uint8_t flags[] = {4, 8, 16};
    const char *const bad[] = {TOKEN, "a " TOKEN ".txt", "Z2hwXzE2QzdlNDJGMjkyYzY5MTJFNzcxMGM4MzgzNDdBZTE3OEI0YQ"};
    for (size_t f = 0; f < 3; f++)
        for (size_t member = 0; member < 2; member++)
            for (size_t step = 1; step < 120; step += 17) {
                struct dynbuf in = packed(SPAN("first"), 31, 6), more, out;
                if (member == 0)
                    dynbuf_reset(&in);
                more = with_header(flags[f], bad[step % 3]);
                dynbuf_add(&in, dynbuf_span(&more));
                assert_int_equal(run(CODING_GZIP, dynbuf_span(&in), step, &out), -1);
                assert_int_equal(span_find(dynbuf_span(&out), SPAN(TOKEN)), out.n);
                assert_true(out.n < 10 + sizeof("first") + 40);
                dynbuf_free(&in);
                dynbuf_free(&more);
                dynbuf_free(&out);
            }
    struct dynbuf in = with_header(8, "a-file.txt"), out;
    assert_int_equal(run(CODING_GZIP, dynbuf_span(&in), 5, &out), 0);
    assert_true(span_eq(dynbuf_span(&in), dynbuf_span(&out)));
    dynbuf_free(&in);
    dynbuf_free(&out);
    z_stream z = {0};
    uint8_t body[200];
    assert_int_equal(deflateInit(&z, 9), Z_OK);
    assert_int_equal(deflateSetDictionary(&z, (const Bytef *)TOKEN, sizeof(TOKEN) - 1), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)TOKEN;
    z.avail_in = sizeof(TOKEN) - 1;
    z.next_out = body;
    z.avail_out = sizeof(body);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(run(CODING_DEFLATE, span_of(body, sizeof(body) - z.avail_out), 7, &out), -1);
    assert_int_equal(out.n, 0);
    dynbuf_free(&out);
    deflateEnd(&z);
}

/* Blocks of no bytes, many to a byte of input: each of them is still decoded. */
static void empty_blocks(void **state)
{
    uint8_t body[2 + 40 * 5 + 5 + 4] = {0x78, 0x9c};
    size_t n = 2;
    struct dynbuf out;
    for (int i = 0; i < 10; i++) { /* "fixed, not last, no bytes" four times in five bytes */
        const uint8_t four[] = {0x02, 0x08, 0x20, 0x80, 0x00};
        memcpy(body + n, four, 5);
        n += 5;
    }
    memcpy(body + n, "\x01\x00\x00\xff\xff\x00\x00\x00\x01", 9);
    n += 9;
    for (size_t step = 1; step < 20; step++) {
        assert_int_equal(run(CODING_DEFLATE, span_of(body, n), step, &out), 0);
        assert_true(span_eq(dynbuf_span(&out), span_of(body, n)));
        dynbuf_free(&out);
    }
}

/* D5: some servers send deflate without the zlib wrapper, and clients take it. */
static void deflate_without_its_wrapper(void **state)
{
    struct dynbuf text, in, out;
    dynbuf_init(&text, 10000);
    for (int i = 0; i < 40; i++)
        dynbuf_addf(&text, "line %d of text, ", i * 7919);
    for (int level = 0; level <= 9; level += 3)
        for (size_t step = 1; step < 60; step += 13) {
            in = packed(dynbuf_span(&text), -15, level);
            assert_int_equal(run(CODING_DEFLATE, dynbuf_span(&in), step, &out), 0);
            assert_true(span_eq(dynbuf_span(&in), dynbuf_span(&out)));
            dynbuf_free(&out);
            dynbuf_add_byte(&in, 0);
            assert_int_equal(run(CODING_DEFLATE, dynbuf_span(&in), step, &out), -1);
            dynbuf_free(&out);
            assert_int_equal(run(CODING_DEFLATE, span_first(dynbuf_span(&in), in.n - 2), step, &out), -1);
            dynbuf_free(&in);
            dynbuf_free(&out);
            in = packed(SPAN("a text with " TOKEN " in it"), -15, level);
            assert_int_equal(run(CODING_DEFLATE, dynbuf_span(&in), step, &out), -1);
            assert_true(out.n < 12);
            dynbuf_free(&in);
            dynbuf_free(&out);
        }
    dynbuf_free(&text);
    /* Stored, with the bit that tells a wrapper: nobody could say which of the two it is. */
    assert_int_equal(run(CODING_DEFLATE, SPAN("\x01\x02\x00\xfd\xffok"), 3, &out), 0);
    dynbuf_free(&out);
    assert_int_equal(run(CODING_DEFLATE, SPAN("\x09\x02\x00\xfd\xffok"), 3, &out), 0);
    dynbuf_free(&out);
    assert_int_equal(run(CODING_DEFLATE, SPAN("\x08\x02\x00\xfd\xffok\x01\x00\x00\xff\xff"), 3, &out), -1);
    dynbuf_free(&out);
}

static void broken_is_refused(void **state)
{
    struct dynbuf in = packed(SPAN("hello hello hello"), 31, 6), out;
    struct span whole = dynbuf_span(&in);
    for (size_t n = 1; n < whole.n; n++) {
        assert_int_equal(run(CODING_GZIP, span_first(whole, n), 3, &out), -1);
        dynbuf_free(&out);
    }
    assert_int_equal(run(CODING_GZIP, SPAN("plain text"), 3, &out), -1);
    dynbuf_free(&out);
    assert_int_equal(run(CODING_DEFLATE, whole, 3, &out), -1);
    dynbuf_free(&out);
    dynbuf_add(&in, SPAN("tail"));
    assert_int_equal(run(CODING_GZIP, dynbuf_span(&in), 3, &out), -1);
    dynbuf_free(&out);
    dynbuf_free(&in);
}

/* br and zstd: what is clean passes as it came; nothing of what is not goes on; nor of what is cut or has a tail. */
static void large_codings(void **state)
{
    struct dynbuf plain, out, tail;
    dynbuf_init(&plain, 1 << 20);
    for (unsigned i = 0; i < 6000; i++) /* more than any reach, so that a cut too early would show */
        dynbuf_addf(&plain, "line %x of text, ", i * 2654435761u);
    for (size_t v = 0; v < 2; v++)
        for (size_t secret = 0; secret < 2; secret++) {
            if (secret)
                dynbuf_add(&plain, SPAN(TOKEN));
            struct dynbuf in = packed_large(large[v], dynbuf_span(&plain), SPAN_NONE);
            for (size_t step = 1; step < 30000; step = step * 5 + 2) {
                assert_int_equal(run(large[v], dynbuf_span(&in), step, &out), secret ? -1 : 0);
                assert_true(secret ? out.n == 0 : span_eq(dynbuf_span(&in), dynbuf_span(&out)));
                dynbuf_free(&out);
            }
            plain.n -= secret ? sizeof(TOKEN) - 1 : 0;
            assert_int_equal(run(large[v], span_first(dynbuf_span(&in), in.n - 1), 100, &out), -1);
            assert_int_equal(out.n, 0);
            dynbuf_free(&out);
            dynbuf_free(&in);
        }
    for (size_t v = 0; v < 2; v++) {
        tail = packed_large(large[v], SPAN("hello"), SPAN_NONE);
        dynbuf_add(&tail, SPAN("tail"));
        assert_int_equal(run(large[v], dynbuf_span(&tail), 3, &out), -1);
        dynbuf_free(&out);
        assert_int_equal(run(large[v], SPAN("plain text"), 3, &out), -1);
        dynbuf_free(&out);
        dynbuf_free(&tail);
    }
    dynbuf_free(&plain);
}

/* D42: beside their data, and in pieces of two frames. */
static void beside_the_data_of_large_codings(void **state)
{
    struct dynbuf in, out;
    for (size_t v = 0; v < 2; v++)
        for (size_t step = 1; step < 100; step += 9) {
            in = packed_large(large[v], SPAN("hello"), SPAN("a " TOKEN ".txt"));
            assert_int_equal(run(large[v], dynbuf_span(&in), step, &out), -1);
            assert_int_equal(out.n, 0);
            dynbuf_free(&in);
            dynbuf_free(&out);
            in = packed_large(large[v], SPAN("hello"), SPAN("a-file.txt"));
            assert_int_equal(run(large[v], dynbuf_span(&in), step, &out), 0);
            assert_true(span_eq(dynbuf_span(&in), dynbuf_span(&out)));
            dynbuf_free(&in);
            dynbuf_free(&out);
            in = packed_large(CODING_ZSTD, SPAN("x ghp_16C7e42F292c69"), SPAN_NONE);
            struct dynbuf two = packed_large(CODING_ZSTD, SPAN("12E7710c838347Ae178B4a"), SPAN_NONE);
            dynbuf_add(&in, dynbuf_span(&two));
            assert_int_equal(run(CODING_ZSTD, dynbuf_span(&in), step, &out), -1);
            assert_int_equal(out.n, 0);
            dynbuf_free(&two);
            dynbuf_free(&in);
            dynbuf_free(&out);
        }
}

/* What needs a dictionary, or a window beyond RFC 9659, cannot be looked into. */
static void zstd_that_asks_for_more(void **state)
{
    enum { N = 1 << 20 };
    uint8_t *to = malloc(2 * N), *from = calloc(1, N);
    struct dynbuf out;
    ZSTD_CCtx *c = ZSTD_createCCtx();
    assert_true(to != NULL && from != NULL && c != NULL);
    size_t n = ZSTD_compress_usingDict(c, to, 2 * N, TOKEN, sizeof(TOKEN) - 1, TOKEN, sizeof(TOKEN) - 1, 19);
    assert_false(ZSTD_isError(n));
    assert_int_equal(run(CODING_ZSTD, span_of(to, n), 7, &out), -1);
    assert_int_equal(out.n, 0);
    dynbuf_free(&out);
    for (int log = CODER_ZSTD_WINDOW_LOG; log <= CODER_ZSTD_WINDOW_LOG + 1; log++) {
        ZSTD_inBuffer in = {from, N, 0};
        ZSTD_outBuffer o = {to, 2 * N, 0};
        (void)ZSTD_CCtx_reset(c, ZSTD_reset_session_and_parameters);
        assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, log)));
        assert_false(ZSTD_isError(ZSTD_compressStream2(c, &o, &in, ZSTD_e_continue))); /* of unknown length */
        assert_int_equal(ZSTD_compressStream2(c, &o, &in, ZSTD_e_end), 0);
        assert_int_equal(run(CODING_ZSTD, span_of(to, o.pos), 16384, &out), log == CODER_ZSTD_WINDOW_LOG ? 0 : -1);
        dynbuf_free(&out);
    }
    ZSTD_freeCCtx(c);
    free(to);
    free(from);
}

/* What can be cut at its end alone has to fit as a whole. */
static void large_ones_have_a_limit(void **state)
{
    size_t n = DECODE_HELD_MAX + 100000;
    uint8_t *noise = malloc(n);
    unsigned seed = 9;
    struct dynbuf out;
    assert_non_null(noise);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        noise[i] = (uint8_t)(seed >> 16);
    }
    for (size_t v = 0; v < 2; v++)
        for (size_t over = 0; over < 2; over++) {
            size_t size = over ? n : DECODE_HELD_MAX - 10000;
            struct dynbuf in = packed_large(large[v], span_of(noise, size), SPAN_NONE);
            assert_int_equal(run(large[v], dynbuf_span(&in), 16384, &out), over ? -1 : 0);
            assert_true(over ? out.n == 0 : out.n == in.n);
            dynbuf_free(&in);
            dynbuf_free(&out);
        }
    free(noise);
}

/* F5, F6 */
static void bomb(void **state)
{
    size_t n = 32 * 1024 * 1024;
    uint8_t *zeros = calloc(1, n);
    struct dynbuf out;
    assert_non_null(zeros);
    struct dynbuf in = packed(span_of(zeros, n), 31, 9);
    assert_int_equal(run(CODING_GZIP, dynbuf_span(&in), 16384, &out), -1);
    dynbuf_free(&out);
    dynbuf_free(&in);
    in = packed(span_of(zeros, DECODE_RATIO_FROM), 31, 9);
    assert_int_equal(run(CODING_GZIP, dynbuf_span(&in), 16384, &out), 0);
    dynbuf_free(&out);
    dynbuf_free(&in);
    for (size_t v = 0; v < 2; v++) {
        in = packed_large(large[v], span_of(zeros, n), SPAN_NONE);
        assert_int_equal(run(large[v], dynbuf_span(&in), 16384, &out), -1);
        dynbuf_free(&out);
        dynbuf_free(&in);
    }
    free(zeros);
}

/* A long secret at the very end, in small pieces: what gathered last is looked at before the end goes. */
static void long_secret_at_the_end(void **state)
{
    enum { SECRET = 4000, ALL = 12 * SECRET };
    char *text = malloc(ALL);
    uint32_t seed = 5;
    struct dynbuf out;
    assert_non_null(text);
    for (size_t i = 0; i < ALL; i++) {
        seed = seed * 1664525u + 1013904223u;
        text[i] = (char)('a' + (seed >> 16) % 26);
    }
    struct span secret = span_of(text + ALL - SECRET, SECRET);
    struct scrub *set = scrub_new(&(struct scrub_secret){secret, false}, 1, NULL);
    assert_non_null(set);
    struct dynbuf in = packed(span_of(text, ALL), 31, 6);
    struct decode *d = decode_new(CODING_GZIP, set);
    assert_non_null(d);
    dynbuf_init(&out, in.n);
    bool refused = false;
    for (size_t at = 0; !refused && at < in.n; at++)
        refused = decode_feed(d, span_of(in.p + at, 1), false, &out) != DECODE_OK;
    assert_true(refused || decode_feed(d, SPAN_NONE, true, &out) == DECODE_REFUSED);
    decode_free(&d);
    dynbuf_free(&in);
    dynbuf_free(&out);
    scrub_unref(&set);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codings),
        cmocka_unit_test(clean_passes_as_it_came),
        cmocka_unit_test(secret_is_refused),
        cmocka_unit_test(secret_across_members),
        cmocka_unit_test(deflate_without_its_wrapper),
        cmocka_unit_test(broken_is_refused),
        cmocka_unit_test(large_codings),
        cmocka_unit_test(beside_the_data_of_large_codings),
        cmocka_unit_test(zstd_that_asks_for_more),
        cmocka_unit_test(large_ones_have_a_limit),
        cmocka_unit_test(bomb),
        cmocka_unit_test(beside_the_data),
        cmocka_unit_test(empty_blocks),
        cmocka_unit_test(long_secret_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
