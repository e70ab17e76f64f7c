/* What a match asks of a body. */
#include "policy/image/glob.h"
#include "policy/load/check/check.h"
#include "policy/load/read/scalar.h"

static void check_conds(struct loader *l, const struct list *conds)
{
    const struct m_cond *v = conds->v;
    if (conds->at && conds->n == 0)
        load_problem(l, conds->at, "P008", "an empty list asks nothing: name a condition, or leave the key out");
    for (size_t i = 0; i < conds->n; i++) {
        const struct m_cond *c = &v[i];
        int asked = (c->equals.at != NULL) + (c->in.at != NULL) + (c->glob.at != NULL) + (c->at_most.at != NULL) +
                    (c->at_least.at != NULL) + (c->exists.at != NULL) + (c->absent.at != NULL);
        if (c->pointer.at)
            check_value(l, &c->pointer, "P013", scalar_pointer(c->pointer.text));
        check_texts(l, &c->glob, check_why_free);
        if (c->at && asked != 1)
            load_problem(l, c->at, "P015",
                         "a condition asks one thing: equals, in, glob, int_lte, int_gte, exists or absent");
        const struct number *flag = c->exists.at ? &c->exists : &c->absent;
        if (flag->at && !flag->v)
            load_problem(l, flag->at, "P015",
                         "only true says something here; its opposite is the other of exists and absent");
    }
}

/* ---- multipart: ---- */

static const char *why_small(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] >= 'A' && s.p[i] <= 'Z')
            return "fits nothing: types are compared in small letters, such as image/png";
    return NULL;
}

static void check_multipart(struct loader *l, const struct list *conds)
{
    const struct m_cond *v = conds->v;
    check_conds(l, conds);
    for (size_t i = 0; i < conds->n; i++) {
        const struct m_cond *c = &v[i];
        if (c->at && (c->field.at != NULL) + (c->file.at != NULL) + (c->content_type.at != NULL) != 1)
            load_problem(l, c->at, "P015", "a condition is about one thing: field:, file: or content_type:");
        if (c->field.at == NULL && (c->at_most.at || c->at_least.at))
            load_problem(l, c->at, "P015",
                         "a file's name and a type are no numbers: int_lte and int_gte are of field:");
        if (c->content_type.at == NULL)
            continue;
        check_texts(l, &c->equals, why_small);
        check_texts(l, &c->in, why_small);
        check_texts(l, &c->glob, why_small);
    }
}

/* ---- graphql: ---- */

static const char *why_type(struct span s)
{
    return span_eq(s, SPAN("query")) || span_eq(s, SPAN("mutation")) || span_eq(s, SPAN("subscription"))
               ? NULL
               : "is no type of an operation: query, mutation or subscription";
}

static bool is_name(struct span s, bool pattern)
{
    for (size_t i = 0; i < s.n; i++) {
        bool digit = s.p[i] >= '0' && s.p[i] <= '9', letter = (s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z';
        if (!letter && s.p[i] != '_' && (!pattern || s.p[i] != '*') && (!digit || i == 0))
            return false;
    }
    return s.n > 0;
}

static const char *why_name(struct span s)
{
    return is_name(s, true) ? scalar_glob(s, 0)
                            : "is no name of GraphQL: letters, digits and '_', and '*' for any run of them";
}

static bool is_named(const struct items *fields, struct span name)
{
    for (size_t i = 0; i < fields->n; i++) {
        struct glob g = glob_of(fields->v[i].text, 0);
        if (glob_match(&g, name, 0, false))
            return true;
    }
    return false;
}

static void check_argument(struct loader *l, const struct m_graphql *g, const struct item *pointer)
{
    struct span field, rest, argument;
    if (pointer->at == NULL || scalar_pointer(pointer->text) != NULL)
        return;
    (void)span_cut(span_from(pointer->text, 1), '/', &field, &rest);
    (void)span_cut(rest, '/', &argument, &rest);
    if (!is_name(field, false) || !is_name(argument, false))
        check_value(l, pointer, "P013",
                    "names no argument of a field: such as /createIssue/input/title, both by their whole names");
    else if (g->fields.n && !is_named(&g->fields, field))
        load_problem(l, pointer->at, "P015", "fields: does not have \"%.*s\", which this is about: add it there",
                     SPAN_FMT(span_first(field, 60)));
}

static void check_graphql(struct loader *l, const struct m_graphql *g)
{
    const struct m_cond *v = g->arguments.v;
    check_texts(l, &g->types, why_type);
    check_texts(l, &g->fields, why_name);
    check_texts(l, &g->operations, why_name);
    check_conds(l, &g->arguments);
    for (size_t i = 0; i < g->arguments.n; i++)
        check_argument(l, g, &v[i].pointer);
    bool asks = g->types.n || g->fields.n || g->operations.n || g->arguments.n;
    if (g->at && !asks && g->persisted.n == 0)
        load_problem(l, g->at, "P015",
                     "graphql: asks nothing: say type:, fields:, arguments:, operation: or persisted:");
    if (g->persisted.n && asks)
        load_problem(l, g->persisted.at, "P015",
                     "a document that only the server has cannot be looked into: persisted: stands alone");
}

/* ---- jsonrpc: and mcp: ---- */

static void check_jsonrpc(struct loader *l, const struct m_jsonrpc *m, const char *words)
{
    check_texts(l, &m->methods, check_why_free);
    check_texts(l, &m->tools, check_why_free);
    check_conds(l, &m->params);
    check_conds(l, &m->arguments);
    if (m->at && m->methods.n + m->tools.n + m->params.n + m->arguments.n == 0)
        load_problem(l, m->at, "P015", "%s", words);
}

void check_body(struct loader *l, const struct m_match *t)
{
    check_conds(l, &t->json);
    check_conds(l, &t->form);
    check_multipart(l, &t->multipart);
    check_graphql(l, &t->graphql);
    check_jsonrpc(l, &t->jsonrpc, "jsonrpc: asks nothing: say method: or params:");
    check_jsonrpc(l, &t->mcp, "mcp: asks nothing: say method:, tool: or arguments:");
    const struct node *const kinds[] = {t->form.at,    t->json.at,    t->multipart.at,
                                        t->graphql.at, t->jsonrpc.at, t->mcp.at};
    const struct node *one = NULL;
    size_t n = 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        n += kinds[i] != NULL;
        one = one ? one : kinds[i];
    }
    if (n > 1)
        load_problem(
            l, one, "P015",
            "a body is asked about by one of json:, form:, multipart:, graphql:, jsonrpc: and mcp:, so write "
            "two rules");
}
