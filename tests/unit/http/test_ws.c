/* WebSocket frames: what is taken, what is refused, the same for every cut (A41, B42). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/http/ws.h"

enum { MAX = 70000 };

static const char *op_name(enum ws_op op)
{
    return op == WS_TEXT     ? "text"
           : op == WS_BINARY ? "binary"
           : op == WS_CLOSE  ? "close"
           : op == WS_PING   ? "ping"
           : op == WS_PONG   ? "pong"
                             : "?";
}

static void note(FILE *f, const struct ws_message *m)
{
    if (m->data.n > 200)
        fprintf(f, "%s of %zu; ", op_name(m->op), m->data.n);
    else if (m->op == WS_CLOSE)
        fprintf(f, "close %u %.*s; ", m->code, SPAN_FMT(m->data));
    else
        fprintf(f, "%s %.*s; ", op_name(m->op), SPAN_FMT(m->data));
}

/* Everything that comes out of `in` when it arrives in pieces that end at `first` and then at every `step` bytes. */
static char *deliver(enum ws_side side, size_t max, struct span in, size_t first, size_t step)
{
    struct ws_reader r;
    struct ws_message m;
    size_t at = 0, end = first, used, size = 0;
    uint16_t code;
    char *text = NULL;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    ws_reader_init(&r, side, max);
    for (;;) {
        size_t n = end - at;
        uint8_t *p = malloc(n ? n : 1);
        assert_non_null(p);
        memcpy(p, in.p + at, n);
        enum ws_result got = ws_read(&r, span_of(p, n), &used, &m, &code);
        free(p); /* what came out does not point into it */
        assert_true(used <= n);
        assert_true(got == WS_BAD || code == 0);
        at += used;
        if (got == WS_OK)
            note(f, &m);
        if (got == WS_BAD)
            fprintf(f, "bad %u", code);
        if (got == WS_BAD || (got == WS_OK && m.op == WS_CLOSE))
            break;
        if (got == WS_MORE) {
            assert_true(end - at < WS_HEADER_MAX);
            if (end == in.n)
                break;
            end = end + step < in.n ? end + step : in.n;
        }
    }
    assert_int_equal(ws_read(&r, SPAN_NONE, &used, &m, &code) == WS_BAD, r.broken);
    ws_reader_free(&r);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void check(const char *id, enum ws_side side, size_t max, struct span in, const char *want)
{
    for (size_t cut = 0; cut <= in.n + 1; cut += in.n > 2000 ? 997 : 1) {
        char *got = cut > in.n ? deliver(side, max, in, 0, 1) : deliver(side, max, in, cut, in.n);
        if (strcmp(got, want) != 0)
            fail_msg("%s: cut at %zu\nwanted %s\ngot    %s", id, cut, want, got);
        free(got);
    }
}

struct ws_case {
    const char *id;
    struct span in; /* as from a server */
    const char *want;
};

static const struct ws_case cases[] = {
    {"text", SPAN("\x81\x02hi"), "text hi; "},
    {"binary", SPAN("\x82\x02\0\x01"), "binary \0"},
    {"empty text", SPAN("\x81\0"), "text ; "},
    {"two",
     SPAN("\x81\x01"
          "a\x81\x01"
          "b"),
     "text a; text b; "},
    {"ping and pong", SPAN("\x89\x01p\x8a\0"), "ping p; pong ; "},
    {"B42 fragments",
     SPAN("\x01\x02se\0\x02"
          "cr\x80\x02"
          "et"),
     "text secret; "},
    {"B42 control between fragments",
     SPAN("\x01\x01"
          "a\x89\x01p\x80\x01"
          "b"),
     "ping p; text ab; "},
    {"empty fragments", SPAN("\x01\0\0\0\x80\0\x82\x01x"), "text ; binary x; "},
    {"close", SPAN("\x88\0"), "close 0 ; "},
    {"close 1000",
     SPAN("\x88\x05\x03\xe8"
          "bye"),
     "close 1000 bye; "},
    {"close 1014, 3000, 4999", SPAN("\x88\x02\x03\xf6"), "close 1014 ; "},
    {"close 3000", SPAN("\x88\x02\x0b\xb8"), "close 3000 ; "},
    {"close 4999", SPAN("\x88\x02\x13\x87"), "close 4999 ; "},
    {"close amid a message",
     SPAN("\x01\x01"
          "a\x88\0"),
     "close 0 ; "},
    {"UTF-8 over fragments", SPAN("\x01\x01\xc3\x80\x01\xbc"), "text \303\274; "},
    {"cut",
     SPAN("\x81\x05"
          "abc"),
     ""},
    {"B42 permessage-deflate",
     SPAN("\xc1\x01"
          "a"),
     "bad 1002"},
    {"RSV2",
     SPAN("\xa1\x01"
          "a"),
     "bad 1002"},
    {"RSV3",
     SPAN("\x91\x01"
          "a"),
     "bad 1002"},
    {"RSV1 on a continuation",
     SPAN("\x01\x01"
          "a\xc0\x01"
          "b"),
     "bad 1002"},
    {"opcode 3", SPAN("\x83\0"), "bad 1002"},
    {"opcode 7", SPAN("\x87\0"), "bad 1002"},
    {"opcode 11", SPAN("\x8b\0"), "bad 1002"},
    {"opcode 15", SPAN("\x8f\0"), "bad 1002"},
    {"masked from a server",
     SPAN("\x81\x81"
          "kkkka"),
     "bad 1002"},
    {"ping in fragments", SPAN("\x09\x01p"), "bad 1002"},
    {"close in fragments", SPAN("\x08\0"), "bad 1002"},
    {"ping of 126", SPAN("\x89\x7e\0\x7e"), "bad 1002"},
    {"continuation of nothing",
     SPAN("\x80\x01"
          "a"),
     "bad 1002"},
    {"continuation after the end",
     SPAN("\x81\x01"
          "a\x80\x01"
          "b"),
     "text a; bad 1002"},
    {"text inside a message",
     SPAN("\x01\x01"
          "a\x81\x01"
          "b"),
     "bad 1002"},
    {"binary inside a text",
     SPAN("\x01\x01"
          "a\x02\x01"
          "b"),
     "bad 1002"},
    {"125 in two bytes", SPAN("\x82\x7e\0\x7d"), "bad 1002"},
    {"65535 in eight bytes", SPAN("\x82\x7f\0\0\0\0\0\0\xff\xff"), "bad 1002"},
    {"top bit of the length", SPAN("\x82\x7f\x80\0\0\0\0\0\0\0"), "bad 1002"},
    {"longest there is", SPAN("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), "bad 1009"},
    {"close of 1", SPAN("\x88\x01\x03"), "bad 1002"},
    {"close 0", SPAN("\x88\x02\0\0"), "bad 1002"},
    {"close 999", SPAN("\x88\x02\x03\xe7"), "bad 1002"},
    {"close 1004", SPAN("\x88\x02\x03\xec"), "bad 1002"},
    {"close 1005", SPAN("\x88\x02\x03\xed"), "bad 1002"},
    {"close 1006", SPAN("\x88\x02\x03\xee"), "bad 1002"},
    {"close 1015", SPAN("\x88\x02\x03\xf7"), "bad 1002"},
    {"close 2999", SPAN("\x88\x02\x0b\xb7"), "bad 1002"},
    {"close 5000", SPAN("\x88\x02\x13\x88"), "bad 1002"},
    {"close, reason not UTF-8", SPAN("\x88\x03\x03\xe8\xff"), "bad 1007"},
    {"text, not UTF-8", SPAN("\x81\x01\xff"), "bad 1007"},
    {"text, half a character", SPAN("\x81\x01\xc3"), "bad 1007"},
    {"text, surrogate", SPAN("\x81\x03\xed\xa0\x80"), "bad 1007"},
    {"text, overlong", SPAN("\x81\x02\xc0\xaf"), "bad 1007"},
    {"HTTP", SPAN("HTTP/1.1 101 \r\n"), "bad 1002"},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (i != 1) /* a NUL in the text */
            check(cases[i].id, WS_FROM_SERVER, MAX, cases[i].in, cases[i].want);
}

/* The same with masks: every frame of a case, masked, from a client. */
static void test_masked(void **state)
{
    (void)state;
    check("masked", WS_FROM_CLIENT, MAX, SPAN("\x81\x82\x01\x02\x03\x04\x69\x6b"), "text hi; ");
    check("masked by nothing", WS_FROM_CLIENT, MAX, SPAN("\x81\x82\0\0\0\0hi"), "text hi; ");
    check("masks differ", WS_FROM_CLIENT, MAX, SPAN("\x01\x81\x01\x02\x03\x04\x69\x80\x81\x02\0\0\0\x6b"),
          "text hi; ");
    check("unmasked from a client", WS_FROM_CLIENT, MAX, SPAN("\x81\x02hi"), "bad 1002");
    check("unmasked close", WS_FROM_CLIENT, MAX, SPAN("\x88\0"), "bad 1002");
    check("empty, masked", WS_FROM_CLIENT, MAX,
          SPAN("\x81\x80"
               "abcd"),
          "text ; ");
    check("no side", (enum ws_side)0, MAX, SPAN("\x81\x02hi"), "bad 1002");
}

/* At the limit and one past it, in one frame and over fragments. */
static void test_limits(void **state)
{
    (void)state;
    check("at", WS_FROM_SERVER, 4,
          SPAN("\x81\x04"
               "abcd"),
          "text abcd; ");
    check("past", WS_FROM_SERVER, 4,
          SPAN("\x81\x05"
               "abcde"),
          "bad 1009");
    check("at, fragments", WS_FROM_SERVER, 4,
          SPAN("\x01\x02"
               "ab\x80\x02"
               "cd"),
          "text abcd; ");
    check("past, fragments", WS_FROM_SERVER, 4,
          SPAN("\x01\x02"
               "ab\x80\x03"
               "cde"),
          "bad 1009");
    check("a second at", WS_FROM_SERVER, 4,
          SPAN("\x81\x04"
               "abcd\x81\x04"
               "efgh"),
          "text abcd; text efgh; ");
    check("a ping is not part of it", WS_FROM_SERVER, 1,
          SPAN("\x01\x01"
               "a\x89\x03"
               "abc\x80\0"),
          "ping abc; text a; ");
    check("nothing at all", WS_FROM_SERVER, 0,
          SPAN("\x81\0\x81\x01"
               "a"),
          "text ; bad 1009");
}

/* What is written reads the same, at each length where the header grows; masked and not. */
static void test_write(void **state)
{
    static const size_t lengths[] = {0, 1, 125, 126, 127, 65535, 65536, MAX};
    static const size_t headers[] = {2, 2, 2, 4, 4, 4, 10, 10};
    static uint8_t bytes[MAX];
    const uint8_t mask[4] = {1, 2, 3, 4};
    (void)state;
    for (size_t i = 0; i < MAX; i++)
        bytes[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < 16; i++) {
        size_t n = lengths[i / 2];
        bool masked = i % 2;
        struct dynbuf out;
        struct ws_reader r;
        struct ws_message m;
        size_t used;
        uint16_t code;
        char want[64];
        dynbuf_init(&out, MAX + WS_HEADER_MAX);
        assert_int_equal(ws_write(&out, WS_BINARY, span_of(bytes, n), masked ? mask : NULL), 0);
        assert_int_equal(out.n, headers[i / 2] + (masked ? 4u : 0u) + n);
        ws_reader_init(&r, masked ? WS_FROM_CLIENT : WS_FROM_SERVER, MAX);
        assert_int_equal(ws_read(&r, dynbuf_span(&out), &used, &m, &code), WS_OK);
        assert_true(used == out.n && m.op == WS_BINARY && span_eq(m.data, span_of(bytes, n)));
        if (n > 200) {
            snprintf(want, sizeof want, "binary of %zu; ", n);
            check("long", masked ? WS_FROM_CLIENT : WS_FROM_SERVER, MAX, dynbuf_span(&out), want);
        }
        ws_reader_free(&r);
        dynbuf_free(&out);
    }
}

static void test_write_refuses(void **state)
{
    struct dynbuf out;
    uint8_t long_ping[126] = {0};
    (void)state;
    dynbuf_init(&out, 200);
    assert_int_equal(ws_write(&out, WS_PING, span_of(long_ping, 126), NULL), -1);
    assert_int_equal(ws_write(&out, WS_CLOSE, SPAN(""), NULL), -1); /* has its own function */
    assert_int_equal(ws_write(&out, WS_NONE, SPAN(""), NULL), -1);
    assert_int_equal(ws_write(&out, (enum ws_op)3, SPAN(""), NULL), -1);
    assert_int_equal(ws_write_close(&out, 1005, SPAN(""), NULL), -1);
    assert_int_equal(ws_write_close(&out, 999, SPAN(""), NULL), -1);
    assert_int_equal(out.n, 0);
    assert_int_equal(ws_write(&out, WS_PONG, span_of(long_ping, 125), NULL), 0);
    assert_int_equal(ws_write(&out, WS_PONG, span_of(long_ping, 125), NULL), -1); /* its cap */
    assert_false(dynbuf_ok(&out));
    dynbuf_free(&out);
}

static void test_write_close(void **state)
{
    struct dynbuf out;
    char reason[130];
    const uint8_t mask[4] = {9, 8, 7, 6};
    (void)state;
    dynbuf_init(&out, 500);
    assert_int_equal(ws_write_close(&out, 0, SPAN("lost"), NULL), 0);
    check("close without a code", WS_FROM_SERVER, 0, dynbuf_span(&out), "close 0 ; ");
    dynbuf_reset(&out);
    assert_int_equal(ws_write_close(&out, WS_POLICY, SPAN("no"), mask), 0);
    check("close, masked", WS_FROM_CLIENT, 0, dynbuf_span(&out), "close 1008 no; ");
    dynbuf_reset(&out);
    memset(reason, 'a', sizeof reason);
    memcpy(reason + 122, "\303\274", 2); /* the character that would be cut is left out */
    assert_int_equal(ws_write_close(&out, WS_TOO_BIG, span_of(reason, sizeof reason), NULL), 0);
    assert_int_equal(out.n, 2 + 2 + 122);
    dynbuf_reset(&out);
    assert_int_equal(ws_write_close(&out, WS_TOO_BIG, SPAN("a\xff"), NULL), 0);
    check("reason that is no text", WS_FROM_SERVER, 0, dynbuf_span(&out), "close 1009 a; ");
    dynbuf_free(&out);
}

/* A long message is not kept when it is done with. */
static void test_memory(void **state)
{
    struct ws_reader r;
    struct ws_message m;
    struct dynbuf out;
    size_t used;
    uint16_t code;
    static const uint8_t bytes[MAX];
    (void)state;
    dynbuf_init(&out, MAX + WS_HEADER_MAX);
    ws_reader_init(&r, WS_FROM_SERVER, MAX);
    assert_int_equal(ws_write(&out, WS_BINARY, span_of(bytes, MAX), NULL), 0);
    assert_int_equal(ws_read(&r, dynbuf_span(&out), &used, &m, &code), WS_OK);
    assert_true(r.whole.cap >= MAX);
    assert_int_equal(ws_read(&r, SPAN_NONE, &used, &m, &code), WS_MORE);
    assert_int_equal(r.whole.cap, 0);
    ws_reader_free(&r);
    dynbuf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),         cmocka_unit_test(test_masked),      cmocka_unit_test(test_limits),
        cmocka_unit_test(test_write),         cmocka_unit_test(test_write_close), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_write_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
