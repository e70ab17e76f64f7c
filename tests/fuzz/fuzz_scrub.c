/* However the bytes are cut: what comes out is what went in, with every byte of every form of the secret covered. */
#include "proxy/carrier/scrub.h"
#include "tests/fuzz/fuzz.h"

enum { FORMS_MAX = 64, STREAM_MAX = 64 * 1024 };

struct forms {
    struct span form[FORMS_MAX];
    size_t n;
};

static int note(void *arg, struct span form)
{
    struct forms *f = arg;
    if (f->n < FORMS_MAX)
        f->form[f->n++] = span_of(fuzz_copy(form), form.n);
    return 0;
}

/* Small bytes stand for beginnings and whole forms of the secret, or random bytes would hardly ever hit. */
static void spell(struct dynbuf *out, struct span in, struct span secret, const struct forms *f)
{
    for (size_t i = 0; i < in.n && out->n + 512 < STREAM_MAX; i++) {
        uint8_t c = in.p[i];
        if (c < 0x10)
            (void)dynbuf_add(out, span_first(secret, c % secret.n + 1));
        else if (c < 0x10 + f->n && c < 0x60)
            (void)dynbuf_add(out, f->form[c - 0x10]);
        else
            (void)dynbuf_add_byte(out, c);
    }
}

static void cover(struct dynbuf *b, const struct dynbuf *in, const struct forms *f)
{
    (void)dynbuf_add(b, dynbuf_span(in));
    for (size_t k = 0; k < f->n; k++)
        for (size_t at = 0; at + f->form[k].n <= in->n; at++)
            if (memcmp(in->p + at, f->form[k].p, f->form[k].n) == 0)
                memset(b->p + at, '*', f->form[k].n);
}

static void feed(struct scrub *set, struct span in, size_t step, struct dynbuf *out)
{
    struct scrub_stream t;
    scrub_begin(&t, set);
    for (size_t at = 0; at < in.n; at += step) {
        struct span piece = span_first(span_from(in, at), step);
        uint8_t *p = fuzz_copy(piece);
        MUST_HOLD(scrub_feed(&t, span_of(p, piece.n), false, out) == 0);
        free(p);
    }
    MUST_HOLD(scrub_feed(&t, SPAN_NONE, true, out) == 0);
    scrub_end(&t);
}

/* Two pieces, cut at every offset of what is short and at some of what is long. */
static void cut_everywhere(struct scrub *set, struct span in, const struct dynbuf *want)
{
    size_t stride = 1 + in.n / 128;
    for (size_t cut = 1; cut < in.n; cut += stride) {
        struct scrub_stream t;
        struct dynbuf out;
        uint8_t *a = fuzz_copy(span_first(in, cut)), *b = fuzz_copy(span_from(in, cut));
        dynbuf_init(&out, STREAM_MAX);
        scrub_begin(&t, set);
        MUST_HOLD(scrub_feed(&t, span_of(a, cut), false, &out) == 0);
        free(a);
        MUST_HOLD(scrub_feed(&t, span_of(b, in.n - cut), true, &out) == 0);
        free(b);
        scrub_end(&t);
        MUST_HOLD(span_eq(dynbuf_span(&out), dynbuf_span(want)));
        dynbuf_free(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct forms f = {.n = 0};
    struct dynbuf in, want, out;
    if (n < 12 || n > 4096)
        return 0;
    struct span secret = span_of(data + 2, 8 + data[0] % (n - 2 - 8 < 64 ? n - 2 - 8 : 64));
    struct scrub *set = scrub_new(&secret, 1, NULL);
    MUST_HOLD(set != NULL && scrub_forms(secret, note, &f) == 0);
    dynbuf_init(&in, STREAM_MAX);
    dynbuf_init(&want, STREAM_MAX);
    dynbuf_init(&out, STREAM_MAX);
    spell(&in, span_from(span_of(data, n), 2 + secret.n), secret, &f);
    cover(&want, &in, &f);
    feed(set, dynbuf_span(&in), 1 + data[1] % 97, &out);
    MUST_HOLD(span_eq(dynbuf_span(&out), dynbuf_span(&want)));
    MUST_HOLD(span_index(secret, '*') < secret.n || span_find(dynbuf_span(&out), secret) == out.n);
    cut_everywhere(set, dynbuf_span(&in), &want);
    MUST_HOLD(scrub_cover(set, in.p, in.n) >= 0);
    MUST_HOLD(span_eq(dynbuf_span(&in), dynbuf_span(&want)));
    for (size_t i = 0; i < f.n; i++)
        free((void *)(uintptr_t)f.form[i].p);
    dynbuf_free(&in);
    dynbuf_free(&want);
    dynbuf_free(&out);
    scrub_unref(&set);
    return 0;
}
