/* D41: what goes on, when and in which pieces is the same for any two secrets of a length, whatever the upstream
 * sends and however it is cut; and what may go on without telling anything does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>
#include <zlib.h>

#include "proxy/carrier/scrub/decode.h"
#include "proxy/carrier/plan/plan.h"
#include "proxy/carrier/scrub/forms.h"
#include "proxy/carrier/scrub/scrub.h"

#define RIGHT "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
#define WRONG "zzz_99X9x99Z999x9999Z9999x999999Zx999X9x"

enum { CUTS_MAX = 8192 };

static struct scrub *set_of(const char *secret)
{
    struct span s = span_str(secret);
    struct scrub *set = scrub_new(&(struct scrub_secret){s, false}, 1, NULL);
    assert_non_null(set);
    return set;
}

/* How much went on after each piece. */
struct shape {
    size_t n, went[CUTS_MAX];
};

static void shape_of(const char *secret, struct span in, size_t first, size_t rest, struct shape *out)
{
    struct scrub *set = set_of(secret);
    struct scrub_stream t;
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    scrub_begin(&t, set);
    out->n = 0;
    for (size_t at = 0, n = first; at < in.n; n = rest) {
        struct span piece = span_first(span_from(in, at), n);
        assert_int_equal(scrub_feed(&t, piece, false, &b), 0);
        assert_true(out->n < CUTS_MAX);
        out->went[out->n++] = b.n;
        at += piece.n;
    }
    assert_int_equal(scrub_feed(&t, SPAN_NONE, true, &b), 0);
    assert_true(span_eq(dynbuf_span(&b), in)); /* neither is in it whole */
    scrub_end(&t);
    scrub_unref(&set);
    dynbuf_free(&b);
}

static void same_shape(struct span in, size_t first, size_t rest)
{
    static struct shape a, b;
    shape_of(RIGHT, in, first, rest, &a);
    shape_of(WRONG, in, first, rest, &b);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.went, b.went, a.n * sizeof(a.went[0]));
}

static unsigned rnd(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static int note_form(void *arg, struct span form)
{
    struct dynbuf *all = arg;
    uint16_t n = (uint16_t)form.n;
    return dynbuf_add(all, span_of(&n, sizeof(n))) == 0 ? dynbuf_add(all, form) : -1;
}

/* Some form of RIGHT. */
static struct span pick(const struct dynbuf *all, unsigned nth)
{
    struct span rest = dynbuf_span(all);
    for (;; nth--) {
        uint16_t n;
        memcpy(&n, rest.p, sizeof(n));
        struct span form = span_first(span_from(rest, sizeof(n)), n);
        if (nth == 0)
            return form;
        rest = span_from(rest, sizeof(n) + n);
        if (rest.n == 0)
            rest = dynbuf_span(all);
    }
}

/* Beginnings of every form of the one secret, at the end of the stream and inside it. */
static void beginnings(void **state)
{
    struct dynbuf all;
    (void)state;
    dynbuf_init(&all, 1 << 20);
    assert_int_equal(scrub_forms(SPAN(RIGHT), note_form, &all), 0);
    unsigned count = 0;
    for (struct span r = dynbuf_span(&all); r.n; count++) {
        uint16_t n;
        memcpy(&n, r.p, sizeof(n));
        r = span_from(r, sizeof(n) + n);
    }
    for (unsigned i = 0; i < count; i++) {
        struct span form = pick(&all, i);
        for (size_t n = 1 + i % 3; n < form.n; n += 1 + form.n / 8) {
            struct dynbuf in;
            dynbuf_init(&in, 8192);
            for (int k = 0; k < 40; k++)
                dynbuf_addf(&in, "chosen bytes %d, ", k);
            dynbuf_add(&in, span_first(form, n));
            same_shape(dynbuf_span(&in), in.n, in.n);
            same_shape(dynbuf_span(&in), in.n - n / 2, 1);
            dynbuf_add(&in, SPAN("! and more"));
            same_shape(dynbuf_span(&in), in.n - 10, 3);
            dynbuf_free(&in);
        }
    }
    dynbuf_free(&all);
}

/* Streams of any pieces of forms and line ends, cut anyhow. */
static void any_stream(void **state)
{
    struct dynbuf all;
    unsigned seed = 41;
    (void)state;
    dynbuf_init(&all, 1 << 20);
    assert_int_equal(scrub_forms(SPAN(RIGHT), note_form, &all), 0);
    for (int round = 0; round < 200; round++) {
        struct dynbuf in;
        dynbuf_init(&in, 1 << 16);
        size_t want = 1 + rnd(&seed) % 3000;
        while (in.n < want) {
            struct span form = pick(&all, rnd(&seed) % 20);
            dynbuf_add(&in, span_first(form, rnd(&seed) % form.n));
            if (rnd(&seed) % 4 == 0)
                dynbuf_add_byte(&in, '\n');
            dynbuf_add_byte(&in, '!');
        }
        same_shape(dynbuf_span(&in), 1 + rnd(&seed) % in.n, 1 + rnd(&seed) % 100);
        dynbuf_free(&in);
    }
    dynbuf_free(&all);
}

/* Each event is out when its last byte is in; of a line without an end all but what a form can reach. */
static void events_flow(void **state)
{
    struct scrub *set = set_of(RIGHT);
    struct scrub_stream t;
    struct dynbuf b;
    (void)state;
    size_t reach = scrub_reach(set);
    assert_int_equal(reach, plan_reach(sizeof(RIGHT) - 1));
    dynbuf_init(&b, 1 << 20);
    scrub_begin(&t, set);
    for (int i = 0; i < 100; i++) {
        struct span event = i % 2 ? SPAN("event: a\ndata: ghp_16C7e42F292c\n\n") : SPAN("data: tick\r\n\r\n");
        dynbuf_reset(&b);
        for (size_t at = 0; at < event.n; at++)
            assert_int_equal(scrub_feed(&t, span_first(span_from(event, at), 1), false, &b), 0);
        assert_true(span_eq(dynbuf_span(&b), event));
    }
    dynbuf_reset(&b);
    for (size_t i = 1; i <= 3 * reach; i++) {
        assert_int_equal(scrub_feed(&t, SPAN("x"), false, &b), 0);
        assert_int_equal(b.n, i < reach ? 0 : i - (reach - 1));
    }
    scrub_end(&t);
    scrub_unref(&set);
    dynbuf_free(&b);
}

/* The limits of the plan itself: lengths alone, in classes; none is shorter than a form can be. */
static void classes(void **state)
{
    uint8_t all[1000];
    (void)state;
    memset(all, 'x', sizeof(all));
    assert_int_equal(plan_reach(0), 0);
    assert_int_equal(plan_reach(1), plan_reach(PLAN_CLASS));
    assert_int_equal(plan_reach(PLAN_CLASS + 1), plan_reach(2 * (size_t)PLAN_CLASS));
    for (size_t n = 1; n < 100; n++)
        assert_true(plan_reach(n) >= n * PLAN_FORM_MOST);
    assert_int_equal(plan_release(0, span_of(all, 7)), 7);
    assert_int_equal(plan_release(100, span_of(all, 99)), 0);
    assert_int_equal(plan_release(100, span_of(all, 100)), 1);
    all[50] = '\n';
    assert_int_equal(plan_release(100, span_of(all, 99)), 51);
    assert_int_equal(plan_release(100, span_of(all, 51)), 51);
    assert_int_equal(plan_release(100, span_of(all, 150)), 51);
    assert_int_equal(plan_release(100, span_of(all, 151)), 52);
    assert_int_equal(plan_release(100, SPAN_NONE), 0);
}

/* No form is longer than the plan says, the worst secrets included: what every escaper escapes, base64 of nothing but
 * '+' and '/', bytes that are no characters. */
static int within(void *arg, struct span form)
{
    size_t secret = *(const size_t *)arg;
    assert_true(form.n <= secret * PLAN_FORM_MOST);
    assert_int_equal(span_index(form, '\n'), form.n);
    return 0;
}

static void no_form_is_longer(void **state)
{
    uint8_t worst[64];
    static const uint8_t units[][3] = {{0xfb, 0xef, 0xbe}, {'"', '"', '"'},  {'\'', '+', '/'},  {0xff, 0xff, 0xff},
                                       {0xc3, 0xa9, '&'},  {0x7f, '`', '='}, {0xe2, 0x80, 0xa8}};
    (void)state;
    for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++)
        for (size_t n = 8; n <= sizeof(worst); n++) {
            for (size_t i = 0; i < n; i++)
                worst[i] = units[u][i % 3];
            assert_int_equal(scrub_forms(span_of(worst, n), within, &n), 0);
            struct span s = span_of(worst, n);
            struct scrub *set = scrub_new(&(struct scrub_secret){s, false}, 1, NULL);
            assert_non_null(set);
            scrub_unref(&set);
        }
}

static struct dynbuf zipped(struct span plain, int flush_each)
{
    struct dynbuf out;
    z_stream z = {0};
    dynbuf_init(&out, 1 << 20);
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    for (size_t at = 0; at <= plain.n; at += (size_t)flush_each) {
        struct span part = span_first(span_from(plain, at), (size_t)flush_each);
        uint8_t *p = dynbuf_room(&out, deflateBound(&z, part.n) + 64);
        assert_non_null(p);
        z.next_in = (Bytef *)(uintptr_t)part.p;
        z.avail_in = (uInt)part.n;
        z.next_out = p;
        z.avail_out = (uInt)(deflateBound(&z, part.n) + 64);
        assert_true(deflate(&z, at + part.n >= plain.n ? Z_FINISH : Z_SYNC_FLUSH) >= 0);
        dynbuf_grew(&out, (size_t)(z.next_out - p));
        if (at + part.n >= plain.n)
            break;
    }
    deflateEnd(&z);
    return out;
}

static void encoded_shape(const char *secret, struct span in, size_t step, struct shape *out)
{
    struct scrub *set = set_of(secret);
    struct decode *d = decode_new(CODING_GZIP, set);
    struct dynbuf b;
    assert_non_null(d);
    dynbuf_init(&b, 1 << 20);
    out->n = 0;
    for (size_t at = 0; at < in.n; at += step) {
        assert_int_equal(decode_feed(d, span_first(span_from(in, at), step), false, &b), DECODE_OK);
        assert_true(out->n < CUTS_MAX);
        out->went[out->n++] = b.n;
    }
    assert_int_equal(decode_feed(d, SPAN_NONE, true, &b), DECODE_OK);
    assert_true(span_eq(dynbuf_span(&b), in));
    decode_free(&d);
    scrub_unref(&set);
    dynbuf_free(&b);
}

/* The same of what came encoded. */
static void encoded(void **state)
{
    static struct shape a, b;
    unsigned seed = 3;
    (void)state;
    for (int round = 0; round < 60; round++) {
        struct dynbuf plain;
        dynbuf_init(&plain, 1 << 16);
        for (int i = 0; i < 60; i++) {
            dynbuf_add(&plain, span_first(SPAN(RIGHT), rnd(&seed) % 40));
            dynbuf_addf(&plain, " %u%s", rnd(&seed), rnd(&seed) % 3 ? "" : "\n");
        }
        struct dynbuf in = zipped(dynbuf_span(&plain), 1 + (int)(rnd(&seed) % 900));
        size_t step = 1 + rnd(&seed) % 60;
        encoded_shape(RIGHT, dynbuf_span(&in), step, &a);
        encoded_shape(WRONG, dynbuf_span(&in), step, &b);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.went, b.went, a.n * sizeof(a.went[0]));
        dynbuf_free(&in);
        dynbuf_free(&plain);
    }
    /* Events, flushed each: all but the encoded bytes that a form can reach are out. */
    struct dynbuf plain;
    dynbuf_init(&plain, 1 << 16);
    for (int i = 0; i < 200; i++)
        dynbuf_addf(&plain, "data: %08x\n\n", rnd(&seed) * 65537u);
    struct dynbuf in = zipped(dynbuf_span(&plain), 16);
    encoded_shape(RIGHT, dynbuf_span(&in), 1, &a);
    for (size_t i = 0; i < a.n; i++)
        assert_true(i - a.went[i] < plan_reach(sizeof(RIGHT) - 1) + 64);
    dynbuf_free(&in);
    dynbuf_free(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beginnings), cmocka_unit_test(any_stream),        cmocka_unit_test(events_flow),
        cmocka_unit_test(classes),    cmocka_unit_test(no_form_is_longer), cmocka_unit_test(encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
