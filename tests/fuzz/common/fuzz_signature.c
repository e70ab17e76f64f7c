/* First byte: which format. The rest: a signature of that format, and after a NUL a file of signers; the keys are not
 * ours, so that whatever it says, nothing is signed. What is taken of signers is taken line for line. */
#include "common/crypto/signature.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct span ns = {(const uint8_t *)"countersign-policy", 18};
    struct signers s = {.n = 0};
    struct err e = {""};
    struct span text, keys, in = span_of(data, size);
    if (in.n < 2)
        return 0;
    enum signature_format format = (enum signature_format)(in.p[0] % 3);
    (void)span_cut(span_from(in, 1), 0, &text, &keys);
    int rc = signers_parse(keys, ns, &s, &e);
    MUST_HOLD((rc == 0) == (s.n > 0) && s.n <= SIGNERS_MAX);
    for (size_t i = 0; i < s.n; i++)
        MUST_HOLD(s.v[i].format == SIGNATURE_SSH || s.v[i].format == SIGNATURE_MINISIGN);
    MUST_HOLD(signature_check(&s, format, ns, text, SPAN("never signed by anybody"), &e) != 0 && e.text[0]);
    return 0;
}
