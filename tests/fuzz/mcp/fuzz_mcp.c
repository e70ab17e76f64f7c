/* What an MCP server writes leads to the same however it was cut; what is said to it is lines of JSON; its tools have
 * names that every model takes, and no bound is passed. Input: a byte for the cuts, then its standard output; each
 * time it rests one of its tools is called, and where a line is a single "!" its answer is late. */
#include "broker/mcp/mcp.h"
#include "common/json/json.h"
#include "tests/fuzz/fuzz.h"

enum { IN_MAX = 256 * 1024, OUT_MAX = 64 * 1024 * 1024 };
static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

/* All that was said: whole lines, each an object. */
static void is_lines(struct span out)
{
    struct span line;
    MUST_HOLD(out.n == 0 || out.p[out.n - 1] == '\n');
    while (span_cut(out, '\n', &line, &out)) {
        struct arena a;
        enum json_fault why = JSON_MALFORMED;
        arena_init(&a, OUT_MAX);
        const struct json *j = json_parse_or(line, &a, &why);
        MUST_HOLD(j != NULL ? j->type == JSON_OBJECT : why == JSON_OVER_LIMIT);
        arena_free(&a);
    }
}

static void after(struct mcp *m, enum mcp_event ev, struct dynbuf *log)
{
    MUST_HOLD((m->state == MCP_NONE) == (m->why.text[0] != '\0'));
    if (ev != MCP_NOTHING)
        (void)dynbuf_addf(log, "event %d, %zu tools, %zu not, %s\n", (int)ev, m->n, m->left_out, m->why.text);
    if (ev == MCP_ANSWERED) {
        MUST_HOLD(m->end == CALL_DONE || m->end == CALL_ERROR);
        (void)dynbuf_addf(log, "%d ", (int)m->end);
        (void)dynbuf_add(log, dynbuf_span(&m->result));
        reached = true;
    }
    MUST_HOLD(m->n <= MCP_TOOLS_MAX);
    for (size_t i = 0; i < m->n; i++)
        MUST_HOLD(m->tool[i].name.n <= MCP_NAME_MAX && span_is_of(m->tool[i].name, SPAN("_-")) &&
                  m->tool[i].schema.n <= MCP_SCHEMA_MAX && mcp_tool_of(m, m->tool[i].name) == &m->tool[i]);
    if (m->state == MCP_AT_REST && m->n > 0)
        MUST_HOLD(mcp_call(m, &m->tool[m->id % m->n], SPAN("{\"a\":1}"), SPAN_NONE) == 0);
    if (m->state != MCP_NONE)
        is_lines(dynbuf_span(&m->out));
    (void)dynbuf_add(log, dynbuf_span(&m->out));
    dynbuf_reset(&m->out);
}

static void fed(struct span in, size_t step, struct dynbuf *log)
{
    struct mcp m;
    struct span line;
    dynbuf_init(log, OUT_MAX);
    mcp_begin(&m, SPAN("s"), SPAN_NONE);
    after(&m, MCP_NOTHING, log);
    while (in.n > 0 && m.state != MCP_NONE) {
        bool whole = span_cut(in, '\n', &line, &in);
        if (span_eq(line, SPAN("!"))) {
            after(&m, mcp_late(&m), log);
            continue;
        }
        enum mcp_event ev = MCP_NOTHING;
        for (size_t at = 0; at < line.n && ev == MCP_NOTHING; at += step)
            ev = mcp_feed(&m, span_first(span_from(line, at), step));
        if (ev == MCP_NOTHING && whole)
            ev = mcp_feed(&m, SPAN("\n"));
        after(&m, ev, log);
    }
    mcp_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dynbuf whole, cut;
    if (n < 1 || n > IN_MAX)
        return 0;
    uint8_t *copy = fuzz_copy(span_of(data + 1, n - 1));
    struct span in = span_of(copy, n - 1);
    fed(in, IN_MAX, &whole);
    fed(in, data[0] + 1u, &cut);
    MUST_HOLD(!dynbuf_ok(&whole) || span_eq(dynbuf_span(&whole), dynbuf_span(&cut)));
    dynbuf_free(&whole);
    dynbuf_free(&cut);
    free(copy);
    return 0;
}
