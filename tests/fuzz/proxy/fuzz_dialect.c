/* Whatever a request and the words of its refusal are, what the client gets is an error with that status, of the kind
 * that it says, and no field of it is more than one line. Input: a byte for the dialect, one for the status, then
 * lines: host, path, query, words, fields; an empty line; the body. */
#include "common/json/json.h"
#include "common/text/utf8.h"
#include "proxy/judge/replies/dialect.h"
#include "tests/fuzz/fuzz.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static struct span line(struct span *rest)
{
    struct span one;
    span_cut(*rest, '\n', &one, rest);
    return one;
}

static void one_line(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        MUST_HOLD(s.p[i] >= 0x20 && s.p[i] < 0x7f);
}

static void sound_xml(struct span s)
{
    MUST_HOLD(utf8_run(s) == s.n);
    for (size_t i = 0; i < s.n; i++) {
        struct span e = span_from(s, i);
        MUST_HOLD(s.p[i] >= 0x20 || s.p[i] == '\n');
        MUST_HOLD(s.p[i] != '&' || span_starts(e, SPAN("&lt;")) || span_starts(e, SPAN("&gt;")) ||
                  span_starts(e, SPAN("&amp;")));
    }
}

static void sound(const struct wire_reply *out)
{
    struct arena a;
    struct span type = SPAN_NONE;
    one_line(out->head.reason);
    for (size_t i = 0; i < out->head.nfields; i++) {
        one_line(out->head.field[i].value);
        if (span_eq(out->head.field[i].name, SPAN("Content-Type")))
            type = out->head.field[i].value;
    }
    arena_init(&a, 1 << 24);
    if (span_find(type, SPAN("json")) < type.n)
        MUST_HOLD(json_parse(out->body, &a) != NULL);
    else if (span_find(type, SPAN("xml")) < type.n)
        sound_xml(out->body);
    else
        MUST_HOLD(type.n || out->body.n == 0);
    arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const unsigned status[] = {400, 401, 403, 409, 413, 429, 502, 503};
    struct wire_request q = {0};
    struct wire_reply out;
    struct arena a;
    if (n < 2 || n > 1 << 18)
        return 0;
    uint8_t *p = fuzz_copy(span_of(data, n));
    struct span rest = span_of(p + 2, n - 2), words, field;
    struct dialect_client c = {.said = p[0] % (DIALECT_COUNT + 1), .request = &q};
    q.host = line(&rest);
    q.path = line(&rest);
    q.query = line(&rest);
    words = line(&rest);
    while ((field = line(&rest)).n && q.nfields < HTTP_FIELDS_MAX) {
        struct http_field *f = &q.field[q.nfields++];
        span_cut(field, ':', &f->name, &f->value);
        f->value = span_trim(f->value);
    }
    c.body = rest;
    struct refusal r = {.status = status[p[1] % 8],
                        .code = "denied",
                        .decision = "deny",
                        .title = words,
                        .detail = words,
                        .next = SPAN("Wait."),
                        .rule = words,
                        .ticket = SPAN("t1")};
    arena_init(&a, 3 << 20);
    dialect_reply(&c, &r, &a, &out);
    MUST_HOLD(dialect_of(&c) > DIALECT_UNSAID && dialect_of(&c) < DIALECT_COUNT);
    /* What its SDKs would repeat in vain may have another status; what passes by itself has its own. */
    MUST_HOLD(out.head.status == r.status || (!r.retry && r.status >= 400));
    sound(&out);
    reached |= dialect_of(&c) != DIALECT_PROBLEM;
    arena_free(&a);
    free(p);
    return 0;
}
