/* What is answered is a whole answer to that question, by whose rules the question is read a second time; and the
 * sandbox's own name server (countersign-shim) says the same, byte for byte. */
#include "proxy/resolver/answer.h"
#include "sandbox-shim/inside/shim_names.h"
#include "tests/fuzz/fuzz.h"

enum { HEADER = 12 };

static unsigned u16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* The question of an answer of ours, which must be in one piece; its length. */
static size_t question(const uint8_t *p, size_t n)
{
    size_t at = HEADER;
    while (at < n && p[at] != 0) {
        MUST_HOLD(p[at] <= 63);
        at += 1 + p[at];
    }
    MUST_HOLD(at + 5 <= n && at + 1 - HEADER <= 255);
    return at + 5 - HEADER;
}

static void check(struct span query, const uint8_t *out, size_t n)
{
    unsigned code = out[3] & 0xf, questions = u16(out + 4), answers = u16(out + 6), more = u16(out + 10);
    size_t at = HEADER;
    MUST_HOLD(memcmp(out, query.p, 2) == 0 && out[2] & 0x80 && (out[2] & 2) == 0); /* ours, and not truncated */
    MUST_HOLD(questions <= 1 && answers <= questions && more <= questions && u16(out + 8) == 0);
    MUST_HOLD(answers == 0 || code == 0);
    if (questions == 1) {
        size_t q = question(out, n);
        MUST_HOLD(HEADER + q <= query.n && memcmp(out + HEADER, query.p + HEADER, q) == 0);
        at += q;
        MUST_HOLD(answers == 0 || u16(out + at - 4) == 1); /* only A is ever answered */
    }
    if (answers == 1) {
        static const uint8_t address[] = {0, 4, 198, 18, 0, 1};
        MUST_HOLD(at + 16 <= n && memcmp(out + at + 10, address, sizeof(address)) == 0);
        at += 16;
    }
    MUST_HOLD(at + 11 * more == n && n <= query.n + 16 + 11);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t out[ANSWER_MAX], again[ANSWER_MAX], shim[NAMES_ANSWER_MAX];
    if (n > 8192)
        return 0;
    uint8_t *p = fuzz_copy(span_of(data, n));
    size_t m = answer_make(span_of(p, n), out);
    MUST_HOLD(m <= sizeof(out) && (m == 0 || (m >= HEADER && n >= HEADER)));
    if (m > 0)
        check(span_of(p, n), out, m);
    MUST_HOLD(names_answer(p, n, shim) == m && memcmp(shim, out, m) == 0);
    if (m > 0)
        MUST_HOLD(answer_make(span_of(out, m), again) == 0); /* nobody is answered for an answer */
    free(p);
    return 0;
}
