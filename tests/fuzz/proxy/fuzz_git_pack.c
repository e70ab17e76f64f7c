/* Whatever a push holds: its facts are JSON, fit where they were told to, and say how it ended.
 * Input: a byte (1: sha256), the id that the ref is set to, the pack. */
#include "common/id.h"
#include "proxy/judge/tickets/pack.h"
#include "proxy/judge/tickets/push_facts.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t id = n && data[0] & 1 ? 32 : 20, room = 2048 + 64 * (n ? (size_t)data[0] : 0);
    char tip[65];
    struct dynbuf b;
    struct jsonw w;
    struct arena a;
    if (n < 1 + id + 1)
        return 0;
    hex_text(span_of(data + 1, id), tip);
    struct span pack = span_from(span_of(data, n), 1 + id);
    uint8_t *own = fuzz_copy(pack);
    struct git_ref ref = {SPAN("refs/heads/main"), SPAN("0"), span_str(tip)};
    struct git_push push = {.refs = &ref, .nrefs = 1};
    dynbuf_init(&b, room + 2);
    jsonw_begin(&w, &b);
    jsonw_array(&w);
    push_facts(&w, room, &push, span_of(own, pack.n));
    jsonw_end_array(&w);
    MUST_HOLD(dynbuf_ok(&b));
    arena_init(&a, 8 << 20);
    const struct json *rows = json_parse(dynbuf_span(&b), &a);
    MUST_HOLD(rows != NULL && rows->type == JSON_ARRAY && rows->count > 0);
    arena_free(&a);
    dynbuf_free(&b);
    free(own);
    return 0;
}
