/* A message of JSON-RPC for the answers to the questions of conditions. */
#include "cli/policy/diff/diff_body.h"

struct said {
    struct span method, other_method, tool, other_tool;
    struct stands param[DIFF_FIELDS_MAX + 1]; /* and the tool's name */
    size_t nparams;
};

static bool is(struct span key, struct span name)
{
    return span_eq(key, name);
}

static int write_message(struct jsonw *w, const struct said *m, struct span method, struct span tool)
{
    struct stands param[DIFF_FIELDS_MAX + 1];
    size_t n = m->nparams;
    struct dynbuf name;
    struct jsonw quoted;
    int rc = 0;
    dynbuf_init(&name, 1 << 20);
    for (size_t i = 0; i < n; i++)
        param[i] = m->param[i];
    if (tool.n) {
        jsonw_begin(&quoted, &name);
        jsonw_string(&quoted, tool);
        param[n++] = (struct stands){SPAN("/name"), dynbuf_span(&name), SPAN_NONE};
    }
    jsonw_object(w);
    jsonw_kv(w, "jsonrpc", SPAN("2.0"));
    jsonw_kv_u64(w, "id", 1);
    jsonw_kv(w, "method", method.n ? method : tool.n ? SPAN("tools/call") : SPAN("ping"));
    if (n > 0) {
        jsonw_key(w, "params");
        rc = dynbuf_ok(&name) ? diff_write_json(w, param, n, 1) : -1;
    }
    jsonw_end_object(w);
    dynbuf_free(&name);
    return rc;
}

int diff_write_jsonrpc(struct dynbuf *b, const struct stands *v, size_t n)
{
    struct said m = {.method = SPAN_NONE};
    struct jsonw w;
    for (size_t i = 0; i < n; i++) {
        if (is(v[i].key, SPAN("method"))) {
            m.method = v[i].text;
            m.other_method = v[i].second;
        } else if (is(v[i].key, SPAN("tool"))) {
            m.tool = v[i].text;
            m.other_tool = v[i].second;
        } else {
            m.param[m.nparams++] = v[i];
        }
    }
    bool two = m.other_method.n || m.other_tool.n;
    jsonw_begin(&w, b);
    if (two)
        jsonw_array(&w);
    int rc = write_message(&w, &m, m.method, m.tool);
    if (two && rc == 0)
        rc = write_message(&w, &m, m.other_method.n ? m.other_method : m.method,
                           m.other_tool.n ? m.other_tool : m.tool);
    if (two)
        jsonw_end_array(&w);
    return rc;
}
