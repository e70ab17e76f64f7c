/* However the bytes are cut: what comes out is what went in, with every byte of every form of the secret covered; and
 * how much of it comes out when is the same for another secret of its length. */
#include "proxy/carrier/scrub/forms.h"
#include "proxy/carrier/scrub/scrub.h"
#include "tests/fuzz/fuzz.h"

enum { FORMS_MAX = 256, STREAM_MAX = 64 * 1024 };

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

/* How much is out after each piece does not depend on which secret of this length is looked for. */
static void same_plan(struct scrub *set, struct span secret, struct span in, size_t step)
{
    uint8_t other[128];
    struct err e;
    for (size_t i = 0; i < secret.n; i++)
        other[i] = (uint8_t)(secret.p[i] == '\n' + 1 ? '!' : secret.p[i] - 1);
    struct span one = span_of(other, secret.n);
    struct scrub *set2 = scrub_new(&(struct scrub_secret){one, false}, 1, &e);
    struct scrub_stream a, b;
    struct dynbuf out, out2;
    MUST_HOLD(set2 != NULL);
    dynbuf_init(&out, STREAM_MAX);
    dynbuf_init(&out2, STREAM_MAX);
    scrub_begin(&a, set);
    scrub_begin(&b, set2);
    for (size_t at = 0; at < in.n; at += step) {
        struct span piece = span_first(span_from(in, at), step);
        MUST_HOLD(scrub_feed(&a, piece, false, &out) == 0 && scrub_feed(&b, piece, false, &out2) == 0);
        MUST_HOLD(out.n == out2.n);
        MUST_HOLD(piece.p[piece.n - 1] != '\n' || out.n == at + piece.n);
    }
    scrub_end(&a);
    scrub_end(&b);
    dynbuf_free(&out);
    dynbuf_free(&out2);
    scrub_unref(&set2);
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
    bool refuse;
    if (n < 12 || n > 4096)
        return 0;
    struct span secret = span_of(data + 2, 8 + data[0] % (n - 2 - 8 < 64 ? n - 2 - 8 : 64));
    struct err e;
    struct scrub *set = scrub_new(&(struct scrub_secret){secret, false}, 1, &e);
    MUST_HOLD((set != NULL) == (span_index(secret, '\n') == secret.n)); /* such a one is refused */
    if (set == NULL)
        return 0;
    MUST_HOLD(scrub_forms(secret, note, &f) == 0);
    dynbuf_init(&in, STREAM_MAX);
    dynbuf_init(&want, STREAM_MAX);
    dynbuf_init(&out, STREAM_MAX);
    spell(&in, span_from(span_of(data, n), 2 + secret.n), secret, &f);
    cover(&want, &in, &f);
    feed(set, dynbuf_span(&in), 1 + data[1] % 97, &out);
    MUST_HOLD(span_eq(dynbuf_span(&out), dynbuf_span(&want)));
    MUST_HOLD(span_index(secret, '*') < secret.n || span_find(dynbuf_span(&out), secret) == out.n);
    cut_everywhere(set, dynbuf_span(&in), &want);
    same_plan(set, secret, dynbuf_span(&in), 1 + data[1] % 97);
    MUST_HOLD(scrub_cover(set, in.p, in.n, &refuse) >= 0 && !refuse);
    MUST_HOLD(span_eq(dynbuf_span(&in), dynbuf_span(&want)));
    for (size_t i = 0; i < f.n; i++)
        free((void *)(uintptr_t)f.form[i].p);
    dynbuf_free(&in);
    dynbuf_free(&want);
    dynbuf_free(&out);
    scrub_unref(&set);
    return 0;
}
