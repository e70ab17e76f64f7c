/* Answers with tokens, and the messages about them. First byte: 0 a message of what is swapped, 1 of a lease that
 * was, else an answer. One that is taken becomes JSON or XML that has the lease wherever its token stood, and no text
 * but that below names that are known; a message that is read, written again, is the same. */
#include "common/json/xml.h"
#include "proxy/carrier/swap/swap.h"
#include "tests/fuzz/fuzz.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static void message(bool of_lease, struct span bytes)
{
    struct wire_swap w;
    struct wire_swapped d;
    struct dynbuf b;
    struct msg_in m = msg_in(bytes);
    dynbuf_init(&b, 1 << 20);
    if ((of_lease ? wire_get_swapped(&m, &d) : wire_get_swap(&m, &w)) == 0 && msg_end(&m) == 0) {
        if (of_lease)
            wire_put_swapped(&b, &d);
        else
            wire_put_swap(&b, &w);
        MUST_HOLD(span_eq(dynbuf_span(&b), bytes));
        reached = true;
    }
    dynbuf_free(&b);
}

static void texts_are_leases(const struct json *j)
{
    if (j->type == JSON_STRING && !span_ieq(j->key, SPAN("scope")))
        MUST_HOLD(span_eq(j->text, SPAN("cs_ONE")) || span_eq(j->text, SPAN("cs_TWO")));
    for (const struct json *c = j->child; c != NULL; c = c->next)
        if (!span_eq(c->key, SPAN("keep")) && !span_ieq(c->key, SPAN("scope")))
            texts_are_leases(c);
}

/* But for the other names that carrier/swap knows: an answer that has one is left out. */
static bool has_other_names(struct span text)
{
    static const char *const names[] = {"type",       "expires_", "issued_",  "not_before",
                                        "expiration", "resource", "requestid"};
    uint8_t *low = fuzz_copy(text);
    bool has = span_index(text, '\\') < text.n; /* names of XML have none */
    for (size_t i = 0; i < text.n; i++)
        low[i] |= text.p[i] >= 'A' && text.p[i] <= 'Z' ? 0x20 : 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        has |= span_find(span_of(low, text.n), span_str(names[i])) < text.n;
    free(low);
    return has;
}

#define NOW UINT64_C(1795424400000)

/* In XML the same stands in an element <r>, or in <a>. */
static void answer(struct span text)
{
    static const struct swap_lease lease[] = {{SPAN("cs_ONE"), SPAN_NONE}, {SPAN("cs_TWO"), SPAN("cs_ONE")}};
    struct wire_swap what[] = {{.credential = SPAN("a"),
                                .expires = SPAN("/s"),
                                .ends = SPAN("/r/e"),
                                .lifetime_ms = 5000,
                                .ntoken = 4,
                                .token = {SPAN("/token"), SPAN("/a/0/t"), SPAN("/r/token"), SPAN("/r/a/0/t")},
                                .nkeep = 2,
                                .keep = {SPAN("/keep"), SPAN("/r/keep")}},
                               {.credential = SPAN("b"),
                                .lifetime_ms = 5000,
                                .key = SPAN("/key"),
                                .session = SPAN("/session"),
                                .ntoken = 1,
                                .token = {SPAN("/more")}}};
    struct dynbuf q, out;
    struct swap s;
    struct arena a;
    struct err e = {{0}};
    dynbuf_init(&q, 4096);
    dynbuf_init(&out, 1 << 20);
    arena_init(&a, 8 << 20);
    msg_put_u8(&q, 1 + (text.n > 0 && text.p[0] == ' '));
    wire_put_swap(&q, &what[0]);
    if (text.n > 0 && text.p[0] == ' ')
        wire_put_swap(&q, &what[1]);
    if (swap_read(&s, dynbuf_span(&q), text, NOW, &e) != 0) {
        MUST_HOLD(e.text[0] != '\0');
    } else if (swap_write(&s, lease, &out) == 0) {
        const struct json *j = s.is_xml ? xml_parse(dynbuf_span(&out), &a) : json_parse(dynbuf_span(&out), &a);
        reached = true;
        MUST_HOLD(j != NULL && swap_value(&s, 0, SWAP_TOKEN).n >= SWAP_TOKEN_MIN && s.token[0].lives_ms <= 5000);
        if (!has_other_names(text))
            texts_are_leases(j);
    }
    swap_end(&s);
    arena_free(&a);
    dynbuf_free(&q);
    dynbuf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct span in = span_of(data, n), rest = span_from(in, 1);
    uint8_t *copy = fuzz_copy(rest);
    if (n > 0 && data[0] < 2)
        message(data[0] == 1, span_of(copy, rest.n));
    else
        answer(span_of(copy, rest.n));
    free(copy);
    return 0;
}
