/* What token endpoints, vaults and programs answer, and the messages about it. First byte: which. A value that is
 * taken stands in the answer's text or is what its escapes mean: never longer than the answer; what is refused says
 * why, in words; a message that is read, written again, is the same. */
#include "common/arena.h"
#include "proxy/fetcher/job/gates/model.h"
#include "proxy/fetcher/job/program.h"
#include "proxy/fetcher/job/sources.h"
#include "proxy/fetcher/job/gates/verdict.h"
#include "tests/fuzz/fuzz.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

/* Of a gate: a verdict, or why it is none; its words are short and on one line. */
static void verdict(uint8_t which, struct span text)
{
    static const struct wire_fetch model[] = {
        {.nsettings = 2, .setting = {{SPAN("api"), SPAN("anthropic")}, {SPAN("model"), SPAN("m")}}},
        {.nsettings = 2, .setting = {{SPAN("api"), SPAN("chat")}, {SPAN("model"), SPAN("m")}}}};
    struct err e = {{0}};
    struct span reason;
    struct arena a;
    arena_init(&a, 8 * 1024 * 1024);
    enum gate_said said =
        which == 0 ? verdict_read(text, &a, &reason, &e) : model_answer(&model[which - 1], text, &a, &reason, &e);
    MUST_HOLD((said == GATE_FAILED) == (e.text[0] != '\0'));
    MUST_HOLD(said == GATE_FAILED || reason.n <= VERDICT_WORDS_MAX);
    for (size_t i = 0; said != GATE_FAILED && i < reason.n; i++)
        MUST_HOLD(reason.p[i] >= 0x20 && reason.p[i] != 0x7f);
    reached |= said != GATE_FAILED;
    arena_free(&a);
}

static void answer(uint8_t which, struct span text)
{
    static const struct wire_fetch program = {
        .nsettings = 2, .setting = {{SPAN("value"), SPAN("/a/t")}, {SPAN("expires_in"), SPAN("/s")}}};
    static const struct wire_fetch sign_in = {.nsettings = 4,
                                              .setting = {{SPAN("issuer"), SPAN("https://a.example")},
                                                          {SPAN("client_id"), SPAN("desk")},
                                                          {SPAN("nonce"), SPAN("n")},
                                                          {SPAN("claim"), SPAN("sub")}}};
    struct wire_fetched got = {.ok = false};
    struct dynbuf keys;
    struct err e = {{0}};
    struct arena a;
    arena_init(&a, 8 * 1024 * 1024);
    dynbuf_init(&keys, 1024 * 1024);
    int rc = which == 0   ? oauth2_answer(text, &a, &got, &e)
             : which == 1 ? vault_answer(text, SPAN("/data/data/t"), &a, &got, &e)
             : which == 5 ? github_app_answer(text, 1, &a, &got, &e)
             : which == 6 ? aws_answer(text, 1, &a, &keys, &got, &e)
             : which == 8 ? oidc_answer(text, &sign_in, 1700000000, &a, &got, &e)
             : which == 7 ? tencent_answer(text, 1, &a, &keys, &got, &e)
                          : program_value(&program, text, &a, &got.value, &got.lifetime_ms, &e);
    MUST_HOLD(rc == 0 || e.text[0] != '\0');
    MUST_HOLD(rc != 0 || got.value.n <= text.n);
    reached |= rc == 0;
    uint64_t life_ms;
    for (int of_token = 0; of_token < 2; of_token++)
        MUST_HOLD(vault_renewed(text, of_token, &a, &life_ms) != 0 || life_ms <= UINT64_C(1000) * UINT32_MAX);
    struct span code = source_error_code(text, &a);
    for (size_t i = 0; i < code.n; i++)
        MUST_HOLD((code.p[i] >= 'a' && code.p[i] <= 'z') || code.p[i] == '_');
    code = aws_error_code(text, &a);
    for (size_t i = 0; i < code.n; i++)
        MUST_HOLD((code.p[i] | 0x20) >= 'a' && (code.p[i] | 0x20) <= 'z');
    dynbuf_free(&keys);
    arena_free(&a);
}

static void message(bool question, struct span bytes)
{
    static struct wire_fetch f;
    struct wire_fetched d;
    struct dynbuf b;
    struct msg_in m = msg_in(bytes);
    dynbuf_init(&b, 1024 * 1024);
    int bad = question ? wire_get_fetch(&m, &f) : wire_get_fetched(&m, &d);
    if (bad == 0 && msg_end(&m) == 0) {
        if (question)
            wire_put_fetch(&b, &f);
        else
            wire_put_fetched(&b, &d);
        MUST_HOLD(span_eq(dynbuf_span(&b), bytes));
    }
    dynbuf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    uint8_t *copy = fuzz_copy(span_of(data + 1, n - 1));
    uint8_t which = data[0] % 12;
    if (which == 3 || which == 4)
        message(which == 3, span_of(copy, n - 1));
    else if (which >= 9)
        verdict((uint8_t)(which - 9), span_of(copy, n - 1));
    else
        answer(which, span_of(copy, n - 1));
    free(copy);
    return 0;
}
