/* Bytes that claim to be JSON-RPC, behind a byte that says what the field Mcp-Method is. What is read has a message,
 * whoever approves is shown something, and blanks around it change nothing. */
#include "policy/body/parsers.h"
#include "tests/fuzz/fuzz.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

struct seen {
    enum ambiguity_cause why;
    bool changes, more;
    uint32_t requests;
    size_t nfacts;
};

static struct seen look(struct span body, bool named)
{
    const struct http_field fields[] = {{SPAN("Content-Type"), SPAN("application/json")},
                                        {SPAN("Mcp-Method"), SPAN("tools/call")}};
    struct request r = {.scheme = SPAN("https"), .host = SPAN("a.test"), .path = SPAN("/mcp"), .port = 443};
    struct body_view v = {.looked = false};
    struct body_found found = {.nfacts = 0};
    struct seen s = {.why = AMBIGUITY_NONE};
    struct arena a;
    r.method = SPAN("POST");
    r.has_body = r.body_complete = true;
    r.body = body;
    r.fields = fields;
    r.nfields = named ? 2 : 1;
    arena_init(&a, 32 << 20);
    s.why = body_jsonrpc_look(&v, &r, &a);
    MUST_HOLD(s.why == AMBIGUITY_NONE || v.jsonrpc == NULL);
    MUST_HOLD(body_mcp_find(&v, &r, SPAN_NONE, &a, &found) == NULL && found.nfacts > 0);
    MUST_HOLD(found.changes || v.jsonrpc != NULL);
    for (size_t i = 0; i < found.nfacts; i++)
        MUST_HOLD(found.facts[i].value.n > 0);
    s.requests = body_requests(&v, &s.more);
    MUST_HOLD((s.requests == 0) == (v.jsonrpc == NULL && s.why != AMBIGUITY_NONE));
    s.changes = found.changes;
    s.nfacts = found.nfacts;
    reached |= v.jsonrpc != NULL;
    arena_free(&a);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1 || n > 1 << 16)
        return 0;
    uint8_t *own = fuzz_copy(span_of(data + 1, n - 1)), *wide = malloc(n + 1);
    MUST_HOLD(wide != NULL);
    wide[0] = ' ';
    if (n > 1)
        memcpy(wide + 1, own, n - 1);
    wide[n] = '\n';
    struct seen one = look(span_of(own, n - 1), data[0] & 1), other = look(span_of(wide, n + 1), data[0] & 1);
    /* What is not understood may not be for another reason: a blank ends no string. */
    MUST_HOLD((one.why == AMBIGUITY_NONE) == (other.why == AMBIGUITY_NONE));
    if (one.why == AMBIGUITY_NONE)
        MUST_HOLD(one.changes == other.changes && one.requests == other.requests && one.nfacts == other.nfacts);
    free(wide);
    free(own);
    return 0;
}
