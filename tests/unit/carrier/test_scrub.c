/* D1-D4, D6, D26, D37, D39, D45 and INV4 as far as bytes go: what the scrub finds, wherever the stream was cut. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/id.h"
#include "proxy/carrier/scrub/forms.h"
#include "proxy/carrier/scrub/scrub.h"

#define TOKEN "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
#define ODD   "p/s+s w&rd=%x\"\\<7>~!"

static struct scrub *set_of(const char *a, const char *b)
{
    struct scrub_secret s[2] = {{span_str(a), false}, {span_str(b), false}};
    struct err e;
    struct scrub *set = scrub_new(s, b ? 2 : 1, &e);
    assert_non_null(set);
    return set;
}

/* Feed in pieces of these sizes, repeated; what comes out. */
static struct dynbuf feed(struct scrub *set, struct span in, size_t first, size_t rest, uint64_t *found)
{
    struct dynbuf out;
    struct scrub_stream t;
    dynbuf_init(&out, 64 * 1024 * 1024);
    scrub_begin(&t, set);
    for (size_t at = 0, n = first; at < in.n; n = rest) {
        struct span piece = span_first(span_from(in, at), n);
        assert_int_equal(scrub_feed(&t, piece, false, &out), 0);
        at += piece.n;
    }
    assert_int_equal(scrub_feed(&t, SPAN_NONE, true, &out), 0);
    if (found != NULL)
        *found = t.found;
    scrub_end(&t);
    assert_true(dynbuf_ok(&out));
    assert_int_equal(out.n, in.n);
    return out;
}

static void expect(struct scrub *set, struct span in, struct span want, size_t first, size_t rest)
{
    struct dynbuf out = feed(set, in, first, rest, NULL);
    if (!span_eq(dynbuf_span(&out), want))
        fail_msg("cut at %zu then %zu: got %.*s, want %.*s", first, rest, SPAN_FMT(dynbuf_span(&out)),
                 SPAN_FMT(want));
    dynbuf_free(&out);
}

/* At every cut, and byte by byte: the middle is covered, its neighbours are not. */
static void covered(struct scrub *set, const char *before, struct span middle, const char *after)
{
    struct dynbuf in, want;
    dynbuf_init(&in, 1 << 20);
    dynbuf_init(&want, 1 << 20);
    dynbuf_add(&in, span_str(before));
    dynbuf_add(&in, middle);
    dynbuf_add(&in, span_str(after));
    dynbuf_add(&want, dynbuf_span(&in));
    memset(want.p + strlen(before), '*', middle.n);
    for (size_t cut = 1; cut <= in.n; cut++)
        expect(set, dynbuf_span(&in), dynbuf_span(&want), cut, in.n);
    for (size_t step = 1; step < 20; step++)
        expect(set, dynbuf_span(&in), dynbuf_span(&want), step, step);
    dynbuf_free(&in);
    dynbuf_free(&want);
}

/* D1, D4 */
static void literal(void **state)
{
    struct scrub *set = set_of(TOKEN, NULL);
    covered(set, "{\"Authorization\": \"Bearer ", SPAN(TOKEN), "\"}\r\n");
    covered(set, "", SPAN(TOKEN), "");
    covered(set, "ghp_16C7ghp_16C7e42F292c6912E7710c838347Ae178B4", SPAN(TOKEN), "ghp_");
    scrub_unref(&set);
}

static size_t encode(size_t before, const char *secret, size_t after, bool url, char *text)
{
    uint8_t plain[256];
    size_t n = strlen(secret);
    memset(plain, 'u', before);
    memcpy(plain + before, secret, n);
    memset(plain + before + n, 0xff, after);
    size_t len = base64_encode(span_of(plain, before + n + after), text);
    for (size_t i = 0; url && i < len; i++)
        text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
    return len;
}

/* D3: every alignment, both alphabets, every length of what follows. Only characters that mix bits of the secret
 * with a neighbour's may remain: at most one at each end. */
static void base64(void **state)
{
    const char *secrets[] = {TOKEN, ODD, "12345678", "\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7"};
    for (size_t i = 0; i < 4; i++)
        for (size_t before = 0; before < 9; before++)
            for (size_t v = 0; v < 8; v++) {
                char text[512], clean[512];
                struct scrub *set = set_of(secrets[i], NULL);
                size_t n = encode(before, secrets[i], v % 4, v >= 4, text);
                size_t from = (8 * before + 5) / 6, to = 8 * (before + strlen(secrets[i])) / 6;
                memcpy(clean, text, n);
                memset(clean + from, '*', to - from);
                for (size_t cut = 1; cut <= n; cut++)
                    expect(set, span_of(text, n), span_of(clean, n), cut, 3);
                scrub_unref(&set);
            }
}

/* D3, D26, D37 */
static void other_forms(void **state)
{
    struct scrub *set = set_of(ODD, NULL);
    covered(set, "?key=", SPAN("p%2Fs%2Bs%20w%26rd%3D%25x%22%5C%3C7%3E~%21"), "&x");
    covered(set, "?key=", SPAN("p%2fs%2bs%20w%26rd%3d%25x%22%5c%3c7%3e~%21"), "&x");
    covered(set, "?key=", SPAN("p/s%2Bs%20w%26rd%3D%25x%22%5C%3C7%3E~%21"), "&x");
    covered(set, "?key=", SPAN("p%2Fs%2Bs+w%26rd%3D%25x%22%5C%3C7%3E%7E%21"), "&x");
    covered(set, "?key=", SPAN("p%2Fs%2Bs%20w%26rd%3D%25x%22%5C%3C7%3E~!"), "&x");
    covered(set, "%7", SPAN("%70%2F%73%2B%73%20%77%26%72%64%3D%25%78%22%5C%3C%37%3E%7E%21"), "%70");
    covered(set, "\"", SPAN("p/s+s w&rd=%x\\\"\\\\<7>~!"), "\"");
    covered(set, "\"", SPAN("p\\/s+s w&rd=%x\\\"\\\\<7>~!"), "\"");
    covered(set, "<p>", SPAN("p/s+s w&amp;rd=%x&quot;\\&lt;7&gt;~!"), "</p>");
    covered(set, "", SPAN("702f732b7320772672643d2578225c3c373e7e21"), "0");
    covered(set, "", SPAN("702F732B7320772672643D2578225C3C373E7E21"), "0");
    scrub_unref(&set);
}

/* D45: as encoders write it unless they are told otherwise. */
static void default_escapes(void **state)
{
    struct scrub *set = set_of(ODD, NULL);
    covered(set, "\"", SPAN("p/s\\u002Bs w\\u0026rd=%x\\u0022\\\\\\u003C7\\u003E~!"), "\"");    /* .NET */
    covered(set, "\"", SPAN("p/s+s w\\u0026rd=%x\\\"\\\\\\u003c7\\u003e~!"), "\"");             /* Go */
    covered(set, "\"", SPAN("p/s+s w\\u0026rd\\u003d%x\\\"\\\\\\u003c7\\u003e~!"), "\"");       /* Gson */
    covered(set, "\"", SPAN("p\\/s+s w\\u0026rd=%x\\u0022\\\\\\u003C7\\u003E~!"), "\"");        /* PHP, JSON_HEX */
    covered(set, "\"", SPAN("p/s+s w\\u0026rd\\u003D%x\\u0022\\u005C\\u003C7\\u003E~!"), "\""); /* escapejs */
    covered(set, "<p>", SPAN("p/s&#43;s w&amp;rd=%x&#34;\\&lt;7&gt;~!"), "</p>");               /* Go */
    covered(set, "<p>", SPAN("p/s&#43;s&#32;w&amp;rd&#61;%x&#34;\\&lt;7&gt;~!"), "</p>");       /* Go, no quotes */
    covered(set, "<p>", SPAN("p/s&#x2B;s w&amp;rd=%x&quot;\\&lt;7&gt;~!"), "</p>");             /* .NET */
    covered(set, "<p>", SPAN("p&#x2F;s+s w&amp;rd&#x3D;%x&quot;\\&lt;7&gt;~!"), "</p>");        /* Mustache */
    covered(set, "<p>", SPAN("p/s+s w&amp;rd=%x\"\\&lt;7&gt;~!"), "</p>");                      /* between tags */
    scrub_unref(&set);
    set = set_of("it's\xc3\xa9\xf0\x9f\x94\x91 8", NULL);
    covered(set, "\"", SPAN("it's\\u00e9\\ud83d\\udd11 8"), "\""); /* Python, PHP */
    covered(set, "\"", SPAN("it\\u0027s\\u00E9\\uD83D\\uDD11 8"), "\"");
    covered(set, "\"", SPAN("\\u0069\\u0074\\u0027\\u0073\\u00e9\\ud83d\\udd11\\u0020\\u0038"), "\"");
    covered(set, "<", SPAN("it&#039;s\xc3\xa9\xf0\x9f\x94\x91 8"), ">");
    covered(set, "<", SPAN("it&apos;s\xc3\xa9\xf0\x9f\x94\x91 8"), ">");
    scrub_unref(&set);
    set = set_of("~~?>~~?>~~?>", NULL); /* in base64: fn4/Pn5+Pz5+fj8+ */
    const char *const whole[] = {
        "fn4\\/Pn5+Pz5+fj8+",           "fn4/Pn5\\u002BPz5\\u002Bfj8\\u002B", "fn4\\u002FPn5+Pz5+fj8+",
        "fn4/Pn5&#43;Pz5&#43;fj8&#43;", "fn4/Pn5&#x2B;Pz5&#x2B;fj8&#x2B;",    "fn4&#x2F;Pn5+Pz5+fj8+"};
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
        covered(set, "\"", span_str(whole[i]), "\"");
    scrub_unref(&set);
}

/* By definition: every byte in any occurrence of any form. */
struct oracle {
    const struct dynbuf *in;
    struct dynbuf out;
};

static int oracle_form(void *arg, struct span form)
{
    struct oracle *o = arg;
    for (size_t at = 0; at + form.n <= o->in->n; at++)
        if (memcmp(o->in->p + at, form.p, form.n) == 0)
            memset(o->out.p + at, '*', form.n);
    return 0;
}

static unsigned rnd(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

/* Forms that overlap themselves and each other, random cuts, against the definition. */
static void overlapping(void **state)
{
    const char *pairs[][2] = {
        {"abababab", "babababa"},
        {"aaaaaaaa", "aaaaaaaaaaab"},
        {"aabaabaab", "abaabaabb"},
        {"abcabcabcabcabcabcabcabcabcabcabcabcabcabcab", "bcabcabcabcaaaaaaaaaaaaaaaaaaaaaaaaaaa"}};
    unsigned seed = 7;
    for (size_t i = 0; i < 4; i++) {
        struct scrub *set = set_of(pairs[i][0], pairs[i][1]);
        for (int round = 0; round < 400; round++) {
            struct dynbuf in;
            bool refuse;
            struct oracle o = {.in = &in};
            dynbuf_init(&in, 4096);
            dynbuf_init(&o.out, 4096);
            size_t want = 1 + rnd(&seed) % 300;
            while (in.n < want) {
                const char *from = pairs[i][rnd(&seed) % 2];
                size_t skip = rnd(&seed) % 8, len = strlen(from) - skip;
                dynbuf_add(&in, span_of(from + skip, 1 + rnd(&seed) % len));
            }
            dynbuf_add(&o.out, dynbuf_span(&in));
            for (int k = 0; k < 2; k++)
                assert_int_equal(scrub_forms(span_str(pairs[i][k]), oracle_form, &o), 0);
            expect(set, dynbuf_span(&in), dynbuf_span(&o.out), 1 + rnd(&seed) % in.n, 1 + rnd(&seed) % 40);
            assert_true(scrub_cover(set, in.p, in.n, &refuse) >= 0 && !refuse);
            assert_true(span_eq(dynbuf_span(&in), dynbuf_span(&o.out)));
            dynbuf_free(&in);
            dynbuf_free(&o.out);
        }
        scrub_unref(&set);
    }
}

/* D6: no number of near misses, and no amount of bytes, ends the search. */
static void decoys(void **state)
{
    struct scrub *set = set_of(TOKEN, NULL);
    struct dynbuf in;
    uint64_t found = 0;
    dynbuf_init(&in, 16 * 1024 * 1024);
    for (int i = 0; i < 200000; i++)
        dynbuf_addf(&in, "ghp_16C7e42F292c6912E7710c838347Ae%06d ", i);
    assert_true(dynbuf_ok(&in));
    dynbuf_add(&in, SPAN(TOKEN));
    struct dynbuf out = feed(set, dynbuf_span(&in), 16384, 16384, &found);
    assert_true(found >= 1);
    assert_int_equal(span_find(dynbuf_span(&out), SPAN(TOKEN)), out.n);
    memset(in.p + in.n - strlen(TOKEN), '*', strlen(TOKEN));
    assert_true(span_eq(dynbuf_span(&in), dynbuf_span(&out)));
    dynbuf_free(&out);
    dynbuf_free(&in);
    scrub_unref(&set);
}

/* D38: 10 MB in which nothing is found come out as they went in. */
static void clean_body(void **state)
{
    struct scrub *set = set_of(TOKEN, ODD);
    struct dynbuf in;
    unsigned seed = 3;
    uint64_t found = 0;
    dynbuf_init(&in, 10 * 1024 * 1024);
    uint8_t *p = dynbuf_room(&in, in.max);
    assert_non_null(p);
    for (size_t i = 0; i < in.max; i++)
        p[i] = (uint8_t)rnd(&seed);
    dynbuf_grew(&in, in.max);
    struct dynbuf out = feed(set, dynbuf_span(&in), 1, 16000, &found);
    assert_int_equal(found, 0);
    assert_true(span_eq(dynbuf_span(&in), dynbuf_span(&out)));
    dynbuf_free(&out);
    dynbuf_free(&in);
    scrub_unref(&set);
}

/* A secret that is given twice refuses if either did, in all its forms; its neighbours in the set do not. */
static void who_refuses(void **state)
{
    struct err e;
    struct scrub_secret one = {.refuse = false};
    for (int first = 0; first < 2; first++) {
        struct scrub_secret s[] = {{SPAN(ODD), first}, {SPAN(TOKEN), false}, {SPAN(ODD), !first}};
        struct scrub *set = scrub_new(s, 3, &e);
        const struct {
            const char *text;
            bool refuse;
        } rows[] = {{"a " TOKEN, false},
                    {"a " ODD, true},
                    {"702f732b7320772672643d2578225c3c373e7e21", true},
                    {TOKEN " " ODD, true}};
        assert_non_null(set);
        assert_true(scrub_secret(set, 1, &one) && !one.refuse && !scrub_secret(set, 2, &one));
        assert_true(scrub_find(set, SPAN(ODD), &one) && one.refuse);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            struct scrub_stream t;
            struct dynbuf out;
            bool refuse = !rows[i].refuse;
            dynbuf_init(&out, 1000);
            dynbuf_add(&out, span_str(rows[i].text));
            assert_true(scrub_cover(set, out.p, out.n, &refuse) > 0);
            assert_int_equal(refuse, rows[i].refuse);
            scrub_begin(&t, set);
            assert_int_equal(scrub_feed(&t, span_str(rows[i].text), true, &out), 0);
            assert_int_equal(t.refuse, rows[i].refuse);
            scrub_end(&t);
            dynbuf_free(&out);
        }
        scrub_unref(&set);
    }
}

/* What cannot be recognised is refused, at the limit and one past it; the words never hold its bytes. */
static void limits(void **state)
{
    struct err e;
    char *big = malloc(SCRUB_SECRET_MAX + 1);
    struct scrub_secret many[SCRUB_SECRETS_MAX + 1];
    assert_non_null(big);
    for (size_t i = 0; i <= SCRUB_SECRET_MAX; i++)
        big[i] = (char)('a' + (i * 7 + i / 26) % 26);
    struct span s = SPAN("1234567");
    assert_null(scrub_new(&(struct scrub_secret){s, false}, 1, &e));
    assert_null(strstr(e.text, "1234567"));
    s = SPAN("1234\n5678");
    assert_null(scrub_new(&(struct scrub_secret){s, false}, 1, &e));
    s = SPAN("12345678");
    struct scrub *set = scrub_new(&(struct scrub_secret){s, false}, 1, &e);
    assert_non_null(set);
    scrub_unref(&set);
    s = span_of(big, SCRUB_SECRET_MAX + 1);
    assert_null(scrub_new(&(struct scrub_secret){s, false}, 1, &e));
    s = span_of(big, SCRUB_SECRET_MAX);
    set = scrub_new(&(struct scrub_secret){s, false}, 1, &e);
    assert_non_null(set);
    scrub_unref(&set);
    for (size_t i = 0; i <= SCRUB_SECRETS_MAX; i++)
        many[i] = (struct scrub_secret){span_of(big + 10 * i, 20), false};
    assert_null(scrub_new(many, SCRUB_SECRETS_MAX + 1, &e));
    set = scrub_new(many, SCRUB_SECRETS_MAX, &e);
    assert_non_null(set);
    struct dynbuf out = feed(set, many[SCRUB_SECRETS_MAX - 1].bytes, 5, 7, NULL);
    assert_true(span_eq(dynbuf_span(&out), SPAN("********************")));
    dynbuf_free(&out);
    scrub_unref(&set);
    free(big);
}

/* D6: what waits is not searched again for each byte that comes where it is much; and what is found is the same. */
static void byte_by_byte(void **state)
{
    enum { SECRET = 4000, FEEDS = 3 * 8 * SECRET };
    char *text = malloc(FEEDS);
    struct err e;
    unsigned seed = 11;
    assert_non_null(text);
    for (size_t i = 0; i < FEEDS; i++)
        text[i] = (char)('a' + rnd(&seed) % 26);
    struct span secret = span_of(text + FEEDS - SECRET, SECRET);
    struct scrub *set = scrub_new(&(struct scrub_secret){secret, false}, 1, &e);
    assert_non_null(set);
    struct scrub_stream t, now;
    struct dynbuf out;
    size_t turns = 0;
    dynbuf_init(&out, 2 * (size_t)FEEDS);
    scrub_begin(&t, set);
    for (size_t i = 0, before = 0; i < FEEDS; i++, before = out.n) {
        assert_int_equal(scrub_feed(&t, span_of(text + i, 1), false, &out), 0);
        turns += out.n != before;
    }
    assert_in_range(turns, 2, FEEDS / 1000);
    assert_int_equal(scrub_feed(&t, SPAN("\n"), false, &out), 0); /* it goes at once */
    assert_int_equal(out.n, FEEDS + 1);
    for (size_t i = 0; i < SECRET; i++)
        assert_int_equal(out.p[FEEDS - SECRET + i], '*');
    assert_int_equal(t.found, 1);
    scrub_end(&t);
    scrub_begin(&now, set); /* and watched, one byte is as dear as any: it is found at once, with little work */
    for (size_t i = 0; i < FEEDS; i++) {
        assert_int_equal(now.found, 0);
        assert_int_equal(scrub_watch(&now, span_of(text + i, 1)), 0);
    }
    assert_int_equal(now.found, 1);
    assert_in_range(now.work, 1, 5 * FEEDS);
    scrub_end(&now);
    dynbuf_free(&out);
    scrub_unref(&set);
    free(text);
}

/* D39: no room for the result is a failure, not bytes that were not looked at. */
static void no_room(void **state)
{
    struct scrub *set = set_of(TOKEN, NULL);
    struct scrub_stream t;
    struct dynbuf out;
    dynbuf_init(&out, 8);
    scrub_begin(&t, set);
    assert_int_equal(scrub_feed(&t, SPAN("nine byte"), false, &out), -1);
    assert_int_equal(out.n, 0);
    scrub_end(&t);
    dynbuf_free(&out);
    scrub_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(literal),         cmocka_unit_test(base64),       cmocka_unit_test(other_forms),
        cmocka_unit_test(overlapping),     cmocka_unit_test(decoys),       cmocka_unit_test(clean_body),
        cmocka_unit_test(limits),          cmocka_unit_test(who_refuses),  cmocka_unit_test(no_room),
        cmocka_unit_test(default_escapes), cmocka_unit_test(byte_by_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
