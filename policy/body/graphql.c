/* Requests of GraphQL: POST with a JSON object or a list of them, POST with the document itself, GET with a query.
 * What a server may look for elsewhere too (a query beside a body, a document that it has) is not taken for anything.
 */
#include "policy/body/graphql.h"
#include "common/text/utf8.h"
#include "policy/body/parsers.h"
#include "policy/spelling/letters.h"

struct asking {
    struct graphql *g;
    struct graphql_budget left;
    struct arena *a;
    size_t operations_max, roots_max, stored_max;
};

/* ---- one operation after the other ---- */

/* The fields at the top of the last operation, with those of fragments; each fragment once. -1: more than is looked
 * into. */
static int add_roots(struct asking *k, const struct graphql_definition *d)
{
    struct graphql *g = k->g;
    int rc = 0;
    for (const struct graphql_selection *s = d->selections; s != NULL && rc == 0; s = s->next) {
        if (!s->top || (s->fragment != NULL && s->fragment->mark == g->noperations))
            continue;
        if (s->fragment != NULL) {
            s->fragment->mark = (uint32_t)g->noperations;
            rc = add_roots(k, s->fragment);
            continue;
        }
        struct graphql_root *more =
            g->nroots < GRAPHQL_ROOTS_MAX ? arena_more(k->a, g->root, g->nroots, &k->roots_max, sizeof(*more)) : NULL;
        if (more == NULL)
            return -1;
        g->root = more;
        more[g->nroots++] = (struct graphql_root){g->noperations - 1, s};
    }
    return rc;
}

/* With a zero byte behind its end, as those of JSON have it. p is NULL: no memory. */
static struct span ended(struct asking *k, struct span text)
{
    struct span own = arena_join(k->a, text, SPAN("\0"));
    return own.p ? span_first(own, text.n) : own;
}

static enum ambiguity_cause add_document(struct asking *k, struct span text, const struct json *name,
                                         const struct json *values)
{
    enum ambiguity_cause why;
    struct graphql *g = k->g;
    size_t operations = 0;
    bool named = false;
    struct graphql_definition *first = graphql_parse(text, &k->left, k->a, &why);
    if (first == NULL)
        return why;
    for (struct graphql_definition *d = first; d != NULL; d = d->next) {
        if (d->type == GRAPHQL_FRAGMENT)
            continue;
        struct graphql_operation *more =
            g->noperations < GRAPHQL_OPERATIONS_MAX
                ? arena_more(k->a, g->operation, g->noperations, &k->operations_max, sizeof(*more))
                : NULL;
        if (more == NULL)
            return AMBIGUITY_BODY_LARGE;
        g->operation = more;
        more[g->noperations++] = (struct graphql_operation){d, values};
        operations++;
        named |= name != NULL && d->name.n > 0 && span_eq(name->text, d->name);
        if (add_roots(k, d) != 0)
            return AMBIGUITY_BODY_LARGE;
    }
    return name != NULL ? (named ? AMBIGUITY_NONE : AMBIGUITY_OPERATION)
                        : (operations == 1 ? AMBIGUITY_NONE : AMBIGUITY_OPERATION);
}

/* ---- one request ---- */

enum said { SAID_QUERY = 0, SAID_NAME, SAID_VALUES, SAID_EXTENSIONS, SAID_STORED, SAID_COUNT };
static const struct {
    struct span name;
    enum said part;
} members[] = {
    {SPAN("query"), SAID_QUERY},           {SPAN("operationName"), SAID_NAME}, {SPAN("variables"), SAID_VALUES},
    {SPAN("extensions"), SAID_EXTENSIONS}, {SPAN("id"), SAID_STORED},          {SPAN("documentId"), SAID_STORED},
    {SPAN("doc_id"), SAID_STORED},         {SPAN("queryId"), SAID_STORED},     {SPAN("operationId"), SAID_STORED},
};
enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

static size_t member_named(struct span name)
{
    size_t i = 0;
    while (i < MEMBERS && !span_eq(members[i].name, name))
        i++;
    return i;
}

/* extensions: { persistedQuery: { sha256Hash: "..." } }. */
static enum ambiguity_cause from_extensions(const struct json *extensions, const struct json *part[SAID_COUNT])
{
    for (const struct json *at = extensions->child; at != NULL; at = at->next) {
        if (!letters_same(at->key, SPAN("persistedQuery")))
            continue;
        const struct json *hash = json_get(at, SPAN("sha256Hash"));
        if (!span_eq(at->key, SPAN("persistedQuery")) || hash == NULL || part[SAID_STORED] != NULL)
            return AMBIGUITY_GRAPHQL_REQUEST;
        part[SAID_STORED] = hash;
    }
    return AMBIGUITY_NONE;
}

/* Into its parts, each once or null, and none that nobody knows; an object without any is another kind of JSON. */
static enum ambiguity_cause parts_of(const struct json *j, const struct json *part[SAID_COUNT])
{
    static const enum json_type type[SAID_COUNT] = {JSON_STRING, JSON_STRING, JSON_OBJECT, JSON_OBJECT, JSON_STRING};
    enum ambiguity_cause why = AMBIGUITY_NONE;
    bool some = false;
    if (j->type != JSON_OBJECT)
        return AMBIGUITY_KIND;
    for (const struct json *at = j->child; at != NULL; at = at->next) {
        size_t i = member_named(at->key);
        some |= i < MEMBERS && members[i].part != SAID_STORED;
        if (i == MEMBERS || part[members[i].part] != NULL ||
            (at->type != JSON_NULL && at->type != type[members[i].part]))
            why = AMBIGUITY_GRAPHQL_REQUEST;
        else if (at->type != JSON_NULL)
            part[members[i].part] = at;
    }
    if (!some && (part[SAID_STORED] == NULL || why != AMBIGUITY_NONE))
        return AMBIGUITY_KIND;
    return why == AMBIGUITY_NONE && part[SAID_EXTENSIONS] ? from_extensions(part[SAID_EXTENSIONS], part) : why;
}

static enum ambiguity_cause add_request(struct asking *k, const struct json *j)
{
    const struct json *part[SAID_COUNT] = {NULL};
    enum ambiguity_cause why = parts_of(j, part);
    const struct json *stored = part[SAID_STORED];
    if (why != AMBIGUITY_NONE)
        return why;
    if (stored == NULL)
        return part[SAID_QUERY] ? add_document(k, part[SAID_QUERY]->text, part[SAID_NAME], part[SAID_VALUES])
                                : AMBIGUITY_GRAPHQL_REQUEST;
    /* A server may take either. */
    if (part[SAID_QUERY] != NULL || stored->type != JSON_STRING || stored->text.n == 0)
        return AMBIGUITY_GRAPHQL_STORED;
    struct span *more = k->g->nstored < GRAPHQL_OPERATIONS_MAX
                            ? arena_more(k->a, k->g->stored, k->g->nstored, &k->stored_max, sizeof(*more))
                            : NULL;
    if (more == NULL)
        return AMBIGUITY_BODY_LARGE;
    k->g->stored = more;
    more[k->g->nstored++] = stored->text;
    return AMBIGUITY_NONE;
}

/* ---- where it stands ---- */

static enum ambiguity_cause of_json(struct asking *k, const struct json *j)
{
    enum ambiguity_cause why = AMBIGUITY_KIND, one;
    if (j->type != JSON_ARRAY)
        return add_request(k, j);
    for (const struct json *at = j->child; at != NULL; at = at->next) {
        one = add_request(k, at);
        why = body_list_cause(why, one, at == j->child, AMBIGUITY_GRAPHQL_REQUEST);
    }
    return why;
}

/* Does the query have a name that a server of GraphQL may look for? Those that are no member here ask it something,
 * too, and nobody knows what. */
static bool in_query(struct body_view *v, const struct request *r, struct arena *a)
{
    static const struct span others[] = {
        SPAN("mutation"), SPAN("subscription"), SPAN("operations"), SPAN("document"),       SPAN("doc"),
        SPAN("docId"),    SPAN("hash"),         SPAN("sha256Hash"), SPAN("persistedQuery"),
    };
    bool found = false;
    if (!body_query(v, r, a))
        return false;
    for (size_t i = 0; i < MEMBERS && !found; i++)
        found = params_have(&v->query, members[i].name);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && !found; i++)
        found = params_have(&v->query, others[i]);
    return found || v->query.failed;
}

/* A request whose members are parameters, in their one spelling. */
static enum ambiguity_cause of_query(struct asking *k, const struct params *ps)
{
    struct json whole = {.type = JSON_OBJECT}, *last = NULL;
    if (ps->failed || ps->doubtful || ps->n != ps->whole)
        return AMBIGUITY_GRAPHQL_REQUEST;
    for (size_t i = 0; i < ps->n; i++) {
        const struct param *one = &ps->v[i];
        size_t is = member_named(one->name);
        struct json *j = arena_alloc(k->a, sizeof(*j));
        if (j == NULL)
            return AMBIGUITY_BODY_LARGE;
        if (is == MEMBERS || utf8_run(one->value) < one->value.n || span_index(one->value, 0) < one->value.n)
            return AMBIGUITY_GRAPHQL_REQUEST;
        if (members[is].part == SAID_VALUES || members[is].part == SAID_EXTENSIONS) {
            const struct json *said = json_parse(one->value, k->a);
            if (said == NULL)
                return AMBIGUITY_GRAPHQL_REQUEST;
            *j = *said;
        } else {
            *j = (struct json){.type = JSON_STRING, .text = ended(k, one->value)};
            if (j->text.p == NULL)
                return AMBIGUITY_BODY_LARGE;
        }
        j->key = one->name;
        *(last ? &last->next : &whole.child) = j;
        last = j;
    }
    return add_request(k, &whole);
}

static enum ambiguity_cause of_text(struct asking *k, struct span text)
{
    struct span own = ended(k, text);
    if (own.p == NULL)
        return AMBIGUITY_BODY_LARGE;
    return utf8_run(own) == own.n ? add_document(k, own, NULL, NULL) : AMBIGUITY_GRAPHQL;
}

static enum ambiguity_cause look(struct body_view *v, const struct request *r, struct asking *k)
{
    struct span type;
    bool asked = in_query(v, r, k->a);
    body_look(v, r, k->a);
    if (v->absent)
        return asked ? of_query(k, &v->query) : AMBIGUITY_NONE;
    if (!r->body_complete)
        return AMBIGUITY_BODY_CUT;
    enum ambiguity_cause why = body_type(r, &type);
    if (why != AMBIGUITY_NONE)
        return why;
    if (asked)
        return AMBIGUITY_QUERY;
    if (span_ieq(type, SPAN("application/graphql")))
        return of_text(k, r->body);
    if (v->is == NULL)
        return (enum ambiguity_cause)v->open;
    return v->is == &body_parsers[COND_JSON] ? of_json(k, v->json) : AMBIGUITY_KIND;
}

enum ambiguity_cause body_graphql_look(struct body_view *v, const struct request *r, struct arena *a)
{
    struct asking k = {.left = {GRAPHQL_TOKENS_MAX, GRAPHQL_ALIASES_MAX}, .a = a};
    if (v->graphql_looked)
        return (enum ambiguity_cause)v->graphql_open;
    v->graphql_looked = true;
    v->graphql_open = AMBIGUITY_BODY_LARGE;
    k.g = arena_alloc(a, sizeof(*k.g));
    if (k.g == NULL)
        return AMBIGUITY_BODY_LARGE;
    v->graphql_open = (uint8_t)look(v, r, &k);
    if (v->graphql_open == AMBIGUITY_NONE && k.g->noperations + k.g->nstored > 0)
        v->graphql = k.g;
    return (enum ambiguity_cause)v->graphql_open;
}

/* ---- conditions ---- */

static struct span type_word(enum graphql_type t)
{
    return t == GRAPHQL_QUERY ? SPAN("query") : t == GRAPHQL_MUTATION ? SPAN("mutation") : SPAN("subscription");
}

/* What is not there yet of a value. */
static const struct json *filled(struct body_view *v, const struct graphql_operation *in, const struct json *j,
                                 enum ambiguity_cause *doubt, struct arena *a)
{
    if (j == NULL || j->type != JSON_BAD)
        return j;
    for (const struct graphql_variable *one = in->of->variables; one != NULL; one = one->next)
        if (span_eq(one->name, j->text)) {
            const struct json *given = in->values ? body_json_child(v, in->values, one->name, doubt, a) : NULL;
            return given ? given : one->usual;
        }
    *doubt = AMBIGUITY_GRAPHQL; /* a variable that the operation does not have */
    return NULL;
}

/* pointer: behind the field. */
static const struct json *argument_at(struct body_view *v, const struct graphql_root *r, struct span pointer,
                                      enum ambiguity_cause *doubt, struct arena *a)
{
    const struct json *j = r->field->arguments;
    struct span token;
    for (bool more = true; more && j != NULL && *doubt == AMBIGUITY_NONE;) {
        more = span_cut(pointer, '/', &token, &pointer);
        j = filled(v, &v->graphql->operation[r->in], body_json_child(v, j, token, doubt, a), doubt, a);
    }
    return j;
}

/* That a key is about the arguments of; empty: it is about something else. */
static struct span field_of(struct span key)
{
    struct span name = key.n > 0 && key.p[0] == '/' ? span_from(key, 1) : SPAN_NONE;
    return span_first(name, span_index(name, '/'));
}

/* What one of those that a condition is about says; false: there are no more, or it is about an argument. */
static bool nth_text(const struct graphql *g, struct span key, size_t i, struct span *out)
{
    if (span_eq(key, SPAN("persisted")) && i < g->nstored)
        *out = g->stored[i];
    else if (span_eq(key, SPAN("type")) && i < g->noperations)
        *out = type_word(g->operation[i].of->type);
    else if (span_eq(key, SPAN("operation")) && i < g->noperations)
        *out = g->operation[i].of->name;
    else if (span_eq(key, SPAN("fields")) && i < g->nroots)
        *out = g->root[i].field->name;
    else
        return false;
    return true;
}

static void add_arguments(struct fit_sum *s, struct body_view *v, const struct body_question *q, struct span key,
                          struct arena *a)
{
    const struct graphql *g = v->graphql;
    struct span field = field_of(key);
    for (size_t i = 0; i < g->nroots; i++) {
        enum ambiguity_cause doubt = AMBIGUITY_NONE;
        struct span name = g->root[i].field->name;
        if (q->strictly ? !span_eq(name, field) : !letters_same(name, field))
            continue;
        const struct json *j = argument_at(v, &g->root[i], span_from(key, field.n + 2), &doubt, a);
        fit_sum_add(s, doubt != AMBIGUITY_NONE ? FIT_MAYBE : body_json_value_fits(v, j, q, a));
    }
}

enum fit body_graphql_fits(struct body_view *v, const struct body_question *q, struct arena *a)
{
    const struct graphql *g = v->graphql;
    struct span key = img_span(q->p, q->c->key), text;
    struct fit_sum s = {.all = q->strictly};
    if (g == NULL)
        return FIT_NO;
    add_arguments(&s, v, q, key, a);
    for (size_t i = 0; nth_text(g, key, i, &text); i++)
        fit_sum_add(&s, cond_name_fits(q, text, a));
    /* A document that is not here may say anything, and is not written; one that is here is none of those. */
    bool stored = span_eq(key, SPAN("persisted"));
    if (stored ? g->noperations > 0 : g->nstored > 0)
        fit_sum_add(&s, stored || q->strictly ? FIT_NO : FIT_MAYBE);
    return s.some ? s.fit : FIT_NO;
}

enum ambiguity_cause body_graphql_doubt(struct body_view *v, struct span key, struct arena *a)
{
    const struct graphql *g = v->graphql;
    struct span field = field_of(key);
    enum ambiguity_cause doubt = g && g->nstored > 0 ? AMBIGUITY_GRAPHQL_STORED : AMBIGUITY_NONE;
    for (size_t i = 0; g != NULL && i < g->nroots && doubt == AMBIGUITY_NONE; i++)
        if (span_eq(g->root[i].field->name, field))
            (void)argument_at(v, &g->root[i], span_from(key, field.n + 2), &doubt, a);
    return doubt != AMBIGUITY_NONE ? doubt : AMBIGUITY_VALUE;
}

/* The first that does not fit. */
struct body_shown body_graphql_show(struct body_view *v, const struct body_question *q, struct arena *a)
{
    const struct graphql *g = v->graphql;
    struct span key = img_span(q->p, q->c->key), text, field = field_of(key);
    for (size_t i = 0; nth_text(g, key, i, &text); i++)
        if (cond_name_fits(q, text, a) != FIT_YES)
            return text.n ? (struct body_shown){"\"", text, "\""} : (struct body_shown){.before = "without a name"};
    if (g->nstored > 0 && !span_eq(key, SPAN("persisted")))
        return (struct body_shown){.before = "in a document that only the server has"};
    for (size_t i = 0; i < g->nroots; i++) {
        enum ambiguity_cause doubt = AMBIGUITY_NONE;
        if (!span_eq(g->root[i].field->name, field))
            continue;
        const struct json *j = argument_at(v, &g->root[i], span_from(key, field.n + 2), &doubt, a);
        if (doubt == AMBIGUITY_NONE && body_json_value_fits(v, j, q, a) != FIT_YES)
            return body_json_shown(j);
    }
    return (struct body_shown){.before = "not there"};
}

/* ---- packs ---- */

enum { FACT_MAX = 500, NAME_SHOWN = 100 };

struct words {
    struct arena *a;
    struct fact *facts;
    size_t n, max;
};

static int add_fact(struct words *w, struct span label, struct span value)
{
    struct fact *more = arena_more(w->a, w->facts, w->n, &w->max, sizeof(*more));
    if (more == NULL || value.p == NULL)
        return -1;
    w->facts = more;
    more[w->n++] = (struct fact){label, value};
    return 0;
}

/* How often its operation selects a field of this name at its top; 0: it was named before. */
static size_t times_of(const struct graphql *g, size_t i)
{
    size_t n = 0;
    for (size_t k = 0; k < g->nroots; k++) {
        if (g->root[k].in != g->root[i].in || !span_eq(g->root[k].field->name, g->root[i].field->name))
            continue;
        if (k < i)
            return 0;
        n++;
    }
    return n;
}

static void add_name(struct dynbuf *b, const char *before, struct span name)
{
    (void)dynbuf_add(b, span_str(before));
    (void)dynbuf_add(b, span_first(name, NAME_SHOWN));
    if (name.n > NAME_SHOWN)
        (void)dynbuf_add(b, SPAN("..."));
}

/* "mutation CreateIssue: createIssue (3 times), addLabels": all that it does, in as many facts as that takes. */
static int add_operation(struct words *w, const struct graphql *g, size_t in)
{
    const struct graphql_definition *of = g->operation[in].of;
    size_t i = 0, times;
    while (i < g->nroots && g->root[i].in != in)
        i++;
    for (bool first = true; i < g->nroots && g->root[i].in == in; first = false) {
        struct dynbuf b;
        const char *before = ": ";
        dynbuf_init(&b, 3 * FACT_MAX);
        (void)dynbuf_add(&b, type_word(of->type));
        if (of->name.n)
            add_name(&b, " ", of->name);
        for (; i < g->nroots && g->root[i].in == in && b.n < FACT_MAX; i++) {
            if ((times = times_of(g, i)) == 0)
                continue;
            add_name(&b, before, g->root[i].field->name);
            if (times > 1)
                (void)dynbuf_addf(&b, " (%zu times)", times);
            before = ", ";
        }
        bool some = before[0] == ',';
        struct span words = arena_keep(w->a, &b);
        if (words.p == NULL || (some && add_fact(w, first ? SPAN("GraphQL") : SPAN("GraphQL, more"), words) != 0))
            return -1;
    }
    return 0;
}

static int take(const struct graphql *g, enum ambiguity_cause why, struct arena *a, struct body_found *found)
{
    struct words w = {.a = a};
    int rc = 0;
    found->changes = g == NULL || g->nstored > 0;
    for (size_t i = 0; g != NULL && i < g->noperations && rc == 0; i++) {
        found->changes |= g->operation[i].of->type != GRAPHQL_QUERY;
        rc = add_operation(&w, g, i);
    }
    for (size_t i = 0; g != NULL && i < g->nstored && rc == 0; i++)
        rc = add_fact(&w, SPAN("Stored document"),
                      body_word(g->stored[i], FACT_MAX, SPAN("one with a name that is not shown")));
    if (g == NULL)
        rc = add_fact(&w, SPAN("Not understood"), span_str(ambiguity_words(why ? why : AMBIGUITY_GRAPHQL_REQUEST)));
    found->facts = w.facts;
    found->nfacts = w.n;
    return rc;
}

const char *body_graphql_find(struct body_view *v, const struct request *r, struct span resource, struct arena *a,
                              struct body_found *found)
{
    (void)resource;
    v->graphql_meant = true;
    if (v->found == NULL) {
        enum ambiguity_cause why = body_graphql_look(v, r, a);
        struct body_found *kept = arena_alloc(a, sizeof(*kept));
        if (kept == NULL || take(v->graphql, why, a, kept) != 0)
            return "no-memory";
        v->found = kept;
    }
    *found = *v->found;
    return NULL;
}

uint32_t body_graphql_requests(const struct body_view *v, bool *more)
{
    const struct graphql *g = v->graphql;
    size_t n = 0;
    if (g == NULL)
        return body_is_other(v->graphql_open, v->graphql_meant) ? 1 : 0;
    *more = g->nstored > 0;
    for (size_t i = 0; i < g->noperations; i++)
        n += g->operation[i].of->type == GRAPHQL_QUERY;
    for (size_t i = 0; i < g->nroots; i++)
        n += g->operation[g->root[i].in].of->type != GRAPHQL_QUERY;
    return (uint32_t)(n + g->nstored);
}
