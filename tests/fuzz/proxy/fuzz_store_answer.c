/* What a store of S3's API answers is taken apart without a look outside of it: names in their order, each once and
 * none within another one; of a refusal a code that can be shown; and a list that says how it goes on. */
#include "sandbox-shim/checkpoint/away/answer.h"
#include "tests/fuzz/fuzz.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static void within(struct span part, struct span all)
{
    MUST_HOLD(part.n == 0 || (part.p >= all.p && part.p + part.n <= all.p + all.n));
}

static void names(struct span all)
{
    struct span rest = all, name;
    const uint8_t *behind = all.p;

    while (answer_name(&rest, &name)) {
        within(name, all);
        within(rest, all);
        MUST_HOLD(name.n == 0 || (name.p >= behind + 5 && span_find(name, SPAN("</Key>")) == name.n));
        behind = rest.n > 0 ? rest.p : all.p + all.n;
        reached = true;
    }
    MUST_HOLD(rest.n == 0);
}

static void refusal(struct span all)
{
    struct span code = answer_code(all);

    within(code, all);
    MUST_HOLD(code.n <= 64);
    for (size_t i = 0; i < code.n; i++)
        MUST_HOLD(code.p[i] > ' ' && code.p[i] < 0x7f && code.p[i] != '<' && code.p[i] != '"');
    reached |= code.n > 0;
}

static void more(struct span all)
{
    struct dynbuf token;

    dynbuf_init(&token, 64);
    if (answer_more(all, &token) == 0) {
        MUST_HOLD(dynbuf_ok(&token) && token.n <= 64 && (token.n > 0 || span_find(all, SPAN("false")) < all.n));
        reached = true;
    }
    dynbuf_free(&token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t *copy = fuzz_copy(span_of(data, n));
    const struct span all = span_of(copy, n);
    struct answer_lease l;

    names(all);
    refusal(all);
    more(all);
    if (answer_lease(all, &l) == 0) {
        MUST_HOLD(l.id.n > 0 && l.secret.n > 0);
        reached = true;
    }
    within(l.id, all);
    within(l.secret, all);
    within(l.token, all);
    within(l.expires, all);
    free(copy);
    return 0;
}
