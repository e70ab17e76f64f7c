/* What an MCP server lists and answers, as it is taken: with bounds, and nothing that is only half understood. */
#include <stdio.h>

#include "broker/mcp/mcp_in.h"
#include "common/schema/schema.h"

enum { STATUS_WORDS_MAX = 1024, STATUS_TIMEOUT = 408, STATUS_CONFLICT = 409 };

/* --- tools ---------------------------------------------------------------------------------- */

/* At most so many bytes, of whole characters. */
static struct span first_of(struct span s, size_t most)
{
    struct span cut = span_first(s, most);
    while (cut.n < s.n && cut.n > 0 && (s.p[cut.n] & 0xc0) == 0x80)
        cut.n--;
    return cut;
}

static struct span text_of(struct arena *a, const struct json *value, size_t most)
{
    struct dynbuf b;
    struct jsonw w;
    dynbuf_init(&b, most);
    jsonw_begin(&w, &b);
    jsonw_tree(&w, value);
    return arena_keep(a, &b);
}

static bool says(const struct json *annotations, struct span hint, bool what)
{
    const struct json *h = json_get(annotations, hint);
    return h != NULL && h->type == JSON_BOOL && h->truth == what;
}

/* Of the server's own words those count that take something back. */
static bool says_it_writes(const struct json *tool)
{
    const struct json *a = json_get(tool, SPAN("annotations"));
    return says(a, SPAN("readOnlyHint"), false) || says(a, SPAN("destructiveHint"), true);
}

static bool compiles(struct span schema)
{
    struct schema *s = NULL;
    struct schema_fault f;
    bool ok = schema_compile(schema, SCHEMA_PLAIN, &s, &f) == 0;
    schema_free(&s);
    return ok;
}

static bool take_tool(struct mcp *m, const struct json *j)
{
    const struct json *schema = json_get(j, SPAN("inputSchema")), *output = json_get(j, SPAN("outputSchema"));
    struct span own = json_text(j, SPAN("name"));
    struct mcp_tool *t = &m->tool[m->n];
    if (m->n == MCP_TOOLS_MAX || own.n == 0 || !span_is_of(own, SPAN("_-")) ||
        own.n + span_str(m->server).n + 2 > MCP_NAME_MAX || schema == NULL || schema->type != JSON_OBJECT ||
        !span_eq(json_text(schema, SPAN("type")), SPAN("object")) || (m->http && !mcp_params_ok(schema)))
        return false;
    *t = (struct mcp_tool){.name = arena_printf(&m->arena, "%s__%.*s", m->server, SPAN_FMT(own)),
                           .own = arena_copy(&m->arena, own),
                           .description =
                               arena_copy(&m->arena, first_of(json_text(j, SPAN("description")), MCP_WORDS_MAX)),
                           .schema = text_of(&m->arena, schema, MCP_SCHEMA_MAX),
                           .writes = says_it_writes(j)};
    if (output != NULL)
        t->output = text_of(&m->arena, output, MCP_SCHEMA_MAX);
    if (t->name.p == NULL || t->own.p == NULL || t->schema.p == NULL || mcp_tool_of(m, t->name) != NULL ||
        (output != NULL && (t->output.p == NULL || !compiles(t->output))))
        return false;
    m->n++;
    return true;
}

void hear_tools(struct mcp *m, const struct json *list)
{
    for (const struct json *j = list != NULL ? list->child : NULL; j != NULL; j = j->next)
        m->left_out += !take_tool(m, j);
}

/* --- results ---------------------------------------------------------------------------------- */

void end_call(struct mcp *m, enum call_end end, struct span words)
{
    dynbuf_reset(&m->result);
    (void)dynbuf_add(&m->result, dynbuf_span(&m->notes));
    (void)dynbuf_add(&m->result, span_first(words, MCP_RESULT_MAX / 2));
    m->end = end;
}

void hear_refusal(struct mcp *m, const struct json *error)
{
    struct span words = json_text(error, SPAN("message"));
    end_call(m, CALL_ERROR, words.n > 0 ? words : SPAN("the server refused it, without a word"));
}

/* Whoever answers so has not done it; of the others, 409 among them, which the gateway answers when it lost a request
 * from sight, nobody knows. */
static bool was_not_done(unsigned status)
{
    return status < 500 && status != STATUS_TIMEOUT && status != STATUS_CONFLICT;
}

void hear_status(struct mcp *m, unsigned status, const struct json *error, struct span body)
{
    bool no = was_not_done(status);
    struct dynbuf b;
    if (error != NULL) {
        hear_refusal(m, error);
    } else {
        dynbuf_init(&b, STATUS_WORDS_MAX + 128);
        (void)dynbuf_addf(&b, "%sthe request was answered with status %u%s", no ? "it was not done: " : "", status,
                          body.n > 0 ? ": " : "");
        (void)dynbuf_add(&b, first_of(body, STATUS_WORDS_MAX));
        end_call(m, CALL_ERROR, dynbuf_span(&b));
        dynbuf_free(&b);
    }
    if (!no)
        m->end = CALL_UNKNOWN;
}

/* What is no text is said to be there: a model is given no bytes of a kind that it did not ask for. */
static void put_part(struct dynbuf *b, const struct json *part)
{
    struct span type = json_text(part, SPAN("type"));
    const struct json *resource = json_get(part, SPAN("resource"));
    struct span text =
        span_eq(type, SPAN("text")) ? json_text(part, SPAN("text")) : json_text(resource, SPAN("text"));
    if (b->n > 0 && b->p[b->n - 1] != '\n')
        (void)dynbuf_add_byte(b, '\n');
    if (span_eq(type, SPAN("resource_link")))
        (void)dynbuf_addf(b, "[resource %.*s]", SPAN_FMT(span_first(json_text(part, SPAN("uri")), 512)));
    else if (span_eq(type, SPAN("text")) || text.n > 0)
        (void)dynbuf_add(b, span_first(text, MCP_RESULT_MAX / 2 < b->n ? 0 : MCP_RESULT_MAX / 2 - b->n));
    else
        (void)dynbuf_addf(b, "[%.*s %.*s: it is not shown]", SPAN_FMT(span_first(type, 32)),
                          SPAN_FMT(span_first(json_text(part, SPAN("mimeType")), 64)));
}

/* What its own schema does not let through is shown to nobody: where it breaks it, is. */
static bool fits(struct mcp *m, const struct json *structured)
{
    struct schema_miss miss = {.keyword = NULL};
    struct schema_fault f;
    struct schema *s = NULL;
    struct arena a;
    char words[SCHEMA_POINTER_MAX + 128];
    enum schema_verdict v = SCHEMA_MISFIT;
    arena_init(&a, 2 * MCP_LINE_MAX);
    struct span text = structured != NULL ? text_of(&a, structured, MCP_LINE_MAX) : SPAN_NONE;
    if (text.p != NULL && schema_compile(m->called->output, SCHEMA_PLAIN, &s, &f) == 0)
        v = schema_validate(s, text, &miss);
    if (v != SCHEMA_FITS) {
        int n = snprintf(words, sizeof(words), "the result breaks the tool's own schema: %s%s%s at \"%s\"",
                         schema_verdict_name(v), miss.keyword != NULL ? ", " : "",
                         miss.keyword != NULL ? miss.keyword : "", miss.path);
        end_call(m, CALL_ERROR, span_of(words, n > 0 ? (size_t)n : 0));
    }
    schema_free(&s);
    arena_free(&a);
    return v == SCHEMA_FITS;
}

void hear_result(struct mcp *m, const struct json *result)
{
    const struct json *content = json_get(result, SPAN("content")), *is = json_get(result, SPAN("isError"));
    const struct json *structured = json_get(result, SPAN("structuredContent"));
    bool failed = is != NULL && is->type == JSON_BOOL && is->truth;
    struct dynbuf b;
    struct jsonw w;
    if ((content == NULL || content->type != JSON_ARRAY) && structured == NULL) {
        end_call(m, CALL_ERROR, SPAN("what the server answered is no result of a tool"));
        return;
    }
    if (m->called->output.p != NULL && !failed && !fits(m, structured))
        return;
    dynbuf_init(&b, MCP_RESULT_MAX);
    for (const struct json *part = content != NULL ? content->child : NULL; part != NULL && dynbuf_ok(&b);
         part = part->next)
        put_part(&b, part);
    if (b.n == 0 && structured != NULL) {
        jsonw_begin(&w, &b);
        jsonw_tree(&w, structured);
    }
    if (!dynbuf_ok(&b))
        end_call(m, CALL_ERROR, SPAN("the result is larger than is kept"));
    else
        end_call(m, failed ? CALL_ERROR : CALL_DONE, dynbuf_span(&b));
    dynbuf_free(&b);
}
