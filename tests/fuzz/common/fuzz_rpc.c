/* An answer of JSON-RPC with another id is the same however it was cut, does not change when the id is written once
 * more, and stays JSON. Input: a byte for its type, one for the cuts, then the answer. */
#include "common/json/json.h"
#include "common/json/rpc.h"
#include "tests/fuzz/fuzz.h"

#define ID "\"mine-1\""
enum { OUT_MAX = 4 * RPC_MESSAGE_MAX };

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

static void fed(struct span type, struct span in, size_t step, struct dynbuf *out)
{
    struct rpc_answer a;
    dynbuf_init(out, OUT_MAX);
    rpc_answer_begin(&a, type);
    MUST_HOLD(a.is);
    for (size_t at = 0; at < in.n; at += step)
        MUST_HOLD(rpc_answer_feed(&a, SPAN(ID), span_first(span_from(in, at), step), false, out) == 0);
    MUST_HOLD(rpc_answer_feed(&a, SPAN(ID), SPAN_NONE, true, out) == 0);
    rpc_answer_end(&a);
}

static bool is_json(struct span s)
{
    struct arena a;
    arena_init(&a, 1 << 24);
    bool is = json_parse(s, &a) != NULL;
    arena_free(&a);
    return is;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dynbuf whole, cut, again;
    if (n < 2 || n > RPC_MESSAGE_MAX)
        return 0;
    struct span type = data[0] & 1 ? SPAN("text/event-stream") : SPAN("application/json");
    uint8_t *p = fuzz_copy(span_of(data + 2, n - 2));
    struct span in = span_of(p, n - 2);
    fed(type, in, n, &whole);
    fed(type, in, data[1] % 7 + 1u, &cut);
    fed(type, dynbuf_span(&whole), n, &again);
    MUST_HOLD(span_eq(dynbuf_span(&whole), dynbuf_span(&cut)) && span_eq(dynbuf_span(&whole), dynbuf_span(&again)));
    if (!(data[0] & 1) && is_json(in))
        MUST_HOLD(is_json(dynbuf_span(&whole)));
    reached |= !span_eq(in, dynbuf_span(&whole));
    dynbuf_free(&whole);
    dynbuf_free(&cut);
    dynbuf_free(&again);
    free(p);
    return 0;
}
