/* Encoded answers: what goes on is a beginning of what came, however it was cut; all of it only where what it decodes
 * to has no secret in it, which is looked for once more here, in the plainest way; and what went on before a refusal
 * decodes to no byte behind the secret's first. */
#include "proxy/carrier/scrub/decode.h"
#include "tests/fuzz/fuzz.h"

#define SECRET SPAN("fuzz-secret-1234")

enum { PLAIN_MAX = 1024 * 1024 };

/* What the bytes decode to, as far as they do; -1: more than is looked at here. */
static int plain_of(enum coding coding, struct span in, struct dynbuf *plain)
{
    struct coder *c = coder_new(coding);
    struct coder_step s = {.in = in};
    uint8_t out[4096];
    MUST_HOLD(c != NULL);
    while (s.in.n > 0 || s.made == sizeof(out)) {
        if (coder_ended(c) && (s.in.n == 0 || !coder_again(c)))
            break;
        if (!coder_step(c, s.in, out, sizeof(out), &s) || dynbuf_add(plain, span_of(out, s.made)) != 0)
            break;
    }
    coder_free(&c);
    return dynbuf_ok(plain) ? 0 : -1;
}

static bool feed(enum coding coding, struct span in, size_t step, struct dynbuf *out)
{
    struct err e;
    struct span secret = SECRET;
    struct scrub *set = scrub_new(&(struct scrub_secret){secret, false}, 1, &e);
    MUST_HOLD(set != NULL);
    struct decode *d = decode_new(coding, set);
    MUST_HOLD(d != NULL);
    bool ok = true;
    for (size_t at = 0; ok && at < in.n; at += step) {
        struct span piece = span_first(span_from(in, at), step);
        uint8_t *p = fuzz_copy(piece);
        ok = decode_feed(d, span_of(p, piece.n), false, out) == DECODE_OK;
        free(p);
    }
    ok = ok && decode_feed(d, SPAN_NONE, true, out) == DECODE_OK;
    decode_free(&d);
    scrub_unref(&set);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const enum coding codings[] = {CODING_GZIP, CODING_DEFLATE, CODING_BR, CODING_ZSTD};
    struct dynbuf out, plain, gone;
    if (n < 2 || n > 64 * 1024)
        return 0;
    enum coding coding = codings[data[0] % 4];
    struct span in = span_of(data + 2, n - 2);
    dynbuf_init(&out, n);
    dynbuf_init(&plain, PLAIN_MAX);
    dynbuf_init(&gone, PLAIN_MAX);
    bool ok = feed(coding, in, 1 + data[1], &out);
    MUST_HOLD(dynbuf_ok(&out) && out.n <= in.n && (out.n == 0 || memcmp(out.p, in.p, out.n) == 0));
    MUST_HOLD(!ok || out.n == in.n);
    if (plain_of(coding, in, &plain) == 0) {
        size_t at = span_find(dynbuf_span(&plain), SECRET);
        MUST_HOLD(!ok || at == plain.n);
        MUST_HOLD(!ok || span_find(in, SECRET) == in.n);
        MUST_HOLD(plain_of(coding, dynbuf_span(&out), &gone) == 0 && gone.n <= plain.n &&
                  (at == plain.n || gone.n <= at));
    }
    dynbuf_free(&out);
    dynbuf_free(&plain);
    dynbuf_free(&gone);
    return 0;
}
