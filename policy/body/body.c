#include "policy/body/parsers.h"

#define AMOUNT_MAX (UINT64_C(1) << 53)

const struct body_parser body_parsers[] = {
    [COND_JSON] = {.name = "json",
                   .key = "pointer",
                   .words = "JSON",
                   .number = "a whole number, ",
                   .types = {SPAN("application/json"), SPAN("+json")},
                   .parse = body_json_look,
                   .fits = body_json_fits,
                   .doubt = body_json_doubt,
                   .digits = body_json_digits,
                   .param = body_json_param,
                   .show = body_json_show},
    [COND_FORM] = {.name = "form",
                   .key = "field",
                   .words = "a form",
                   .number = "", /* all of a form is text */
                   .types = {SPAN("application/x-www-form-urlencoded")},
                   .parse = body_form_look,
                   .fits = body_form_fits,
                   .doubt = body_form_doubt,
                   .digits = body_form_digits,
                   .param = body_form_param,
                   .show = body_form_show},
    [COND_GRAPHQL] = {.name = "graphql",
                      .key = "pointer",
                      .words = "GraphQL",
                      .number = "a whole number, ",
                      .look = body_graphql_look,
                      .fits = body_graphql_fits,
                      .doubt = body_graphql_doubt,
                      .show = body_graphql_show},
    [COND_JSONRPC] = {.name = "jsonrpc",
                      .key = "pointer",
                      .words = "JSON-RPC",
                      .number = "a whole number, ",
                      .look = body_jsonrpc_look,
                      .fits = body_jsonrpc_fits,
                      .doubt = body_jsonrpc_doubt,
                      .show = body_jsonrpc_show},
    [COND_MULTIPART] = {.name = "multipart",
                        .key = "field",
                        .words = "a form with files",
                        .number = "", /* all of a form is text */
                        .types = {SPAN("multipart/form-data")},
                        .parse = body_multipart_look,
                        .fits = body_multipart_fits,
                        .doubt = body_multipart_doubt,
                        .param = body_multipart_param,
                        .show = body_multipart_show},
    {.name = "git-receive-pack",
     .types = {SPAN("application/x-git-receive-pack-request")},
     .pack = BODY_GIT_RECEIVE_PACK,
     .other_type = AMBIGUITY_PUSH_TYPE,
     .coded = AMBIGUITY_PUSH_CODING,
     .malformed = AMBIGUITY_PUSH,
     .find = body_git_find},
    {.name = "graphql", .pack = BODY_GRAPHQL, .look = body_graphql_look, .find = body_graphql_find},
    {.name = "mcp", .pack = BODY_MCP, .look = body_jsonrpc_look, .find = body_mcp_find},
};
enum { PARSERS = sizeof(body_parsers) / sizeof(body_parsers[0]) };

/* ---- what it is ---- */

/* One type (RFC 6838 section 4.2), not a list of which some servers read the first and some the last. */
static bool is_type(struct span s)
{
    size_t slashes = 0;
    for (size_t i = 0; i < s.n; i++)
        slashes += s.p[i] == '/';
    return slashes == 1 && span_is_of(s, SPAN("/!#$&-^_.+"));
}

struct span body_media_type(struct span value)
{
    struct span type = span_trim(span_first(value, span_index(value, ';')));
    struct span rest = span_trim(span_from(value, span_index(value, ';') + 1));
    if (!is_type(type))
        return SPAN_NONE;
    if (rest.n == 0 || span_ieq(rest, SPAN("charset=utf-8")) || span_ieq(rest, SPAN("charset=\"utf-8\"")) ||
        span_ieq(type, SPAN("multipart/form-data")))
        return type;
    return SPAN_NONE;
}

static bool has_type(const struct body_parser *b, struct span type)
{
    for (size_t i = 0; i < 2 && b->types[i].n; i++)
        if (b->types[i].p[0] == '+' ? spelling_ends(type, b->types[i]) : span_ieq(type, b->types[i]))
            return true;
    return false;
}

enum ambiguity_cause body_type(const struct request *r, struct span *type)
{
    size_t types, codings;
    *type = body_media_type(spelling_field(r, SPAN("Content-Type"), &types));
    struct span coding = spelling_field(r, SPAN("Content-Encoding"), &codings);
    if (types != 1)
        return types ? AMBIGUITY_TYPES : AMBIGUITY_NO_TYPE;
    if (codings > 1 || (codings == 1 && !span_ieq(coding, SPAN("identity"))))
        return AMBIGUITY_CODING;
    return AMBIGUITY_NONE;
}

bool body_query(struct body_view *v, const struct request *r, struct arena *a)
{
    if (r->query.n == 0 && !path_hides_query(r->path))
        return false;
    params_of_query(&v->query, r->query, r->path, a);
    return true;
}

struct span body_word(struct span s, size_t most, struct span else_)
{
    bool plain = s.n <= most;
    for (size_t i = 0; i < s.n && plain; i++)
        plain = s.p[i] > ' ' && s.p[i] < 0x7f;
    return plain ? s : else_;
}

enum ambiguity_cause body_list_cause(enum ambiguity_cause all, enum ambiguity_cause one, bool first,
                                     enum ambiguity_cause mixed)
{
    if (first || one == all)
        return one;
    if (all == AMBIGUITY_KIND || (all == AMBIGUITY_NONE && one == AMBIGUITY_KIND))
        return mixed;
    return all == AMBIGUITY_NONE ? one : all;
}

bool body_is_other(uint8_t open, bool meant)
{
    return open == AMBIGUITY_NONE || (open == AMBIGUITY_KIND && !meant);
}

/* AMBIGUITY_NONE: there is none, or v->is what it says that it is. */
static enum ambiguity_cause head(struct body_view *v, const struct request *r)
{
    struct span type;
    size_t types;
    v->absent = !r->has_body;
    v->content_type = spelling_field(r, SPAN("Content-Type"), &types);
    if (v->absent)
        return AMBIGUITY_NONE;
    if (!r->body_complete)
        return AMBIGUITY_BODY_CUT;
    enum ambiguity_cause why = body_type(r, &type);
    for (size_t i = 0; i < COND_KINDS && v->is == NULL && why == AMBIGUITY_NONE; i++)
        v->is = has_type(&body_parsers[i], type) ? &body_parsers[i] : NULL;
    return v->is || why ? why : AMBIGUITY_TYPE;
}

void body_look(struct body_view *v, const struct request *r, struct arena *a)
{
    if (v->looked)
        return;
    v->looked = true;
    enum ambiguity_cause why = head(v, r);
    if (v->is != NULL)
        why = v->is->parse(v, r->body, a);
    if (why != AMBIGUITY_NONE)
        v->is = NULL;
    v->open = (uint8_t)why;
}

bool body_seen(const struct body_view *v, uint32_t kind)
{
    if (kind == COND_GRAPHQL)
        return v->graphql != NULL;
    return kind == COND_JSONRPC ? v->jsonrpc != NULL : v->is == &body_parsers[kind];
}

/* ---- conditions ---- */

/* Servers differ on which of the two counts (B13), and on whether ';' parts (B12). */
bool body_in_query(struct body_view *v, const struct request *r, const struct body_parser *b, struct span key,
                   struct arena *a)
{
    uint32_t at = IMG_NONE;
    struct span name;
    if (r->query.n == 0 && !path_hides_query(r->path))
        return false;
    if (b->param(key, a, &name) != 0)
        return true;
    if (name.n == 0)
        return false;
    params_of_query(&v->query, r->query, r->path, a);
    if (v->query.failed || v->query.doubtful)
        return true;
    for (const struct param *one; (one = params_next(&v->query, params_key(name), &at)) != NULL;)
        if (one->name.n)
            return true;
    return false;
}

/* No body is an empty one to many servers, where the method is one that has bodies. */
static bool may_be_empty(const struct request *r)
{
    return !span_eq(r->method, SPAN("GET")) && !span_eq(r->method, SPAN("HEAD")) &&
           !span_eq(r->method, SPAN("OPTIONS"));
}

static enum fit looked_fits(struct body_view *v, const struct body_parser *b, const struct body_question *q,
                            const struct request *r, struct arena *a)
{
    enum ambiguity_cause why = b->look(v, r, a);
    if (why == AMBIGUITY_NONE)
        return b->fits(v, q, a);
    return why == AMBIGUITY_KIND && q->strictly ? FIT_NO : FIT_MAYBE;
}

static enum fit find_fit(struct body_view *v, const struct policy *p, const struct img_cond *c,
                         const struct request *r, bool strictly, struct arena *a)
{
    const struct body_parser *b = &body_parsers[c->kind];
    const struct body_question q = {p, c, strictly};
    if (b->look != NULL)
        return looked_fits(v, b, &q, r, a);
    body_look(v, r, a);
    if (body_in_query(v, r, b, img_span(p, c->key), a))
        return FIT_MAYBE;
    if (v->absent)
        return c->op == COND_ABSENT && !strictly && may_be_empty(r) ? FIT_YES : FIT_NO;
    if (v->is == b)
        return b->fits(v, &q, a);
    return v->is != NULL && strictly ? FIT_NO : FIT_MAYBE;
}

/* A path with several readings asks the same of a body for each of them. All that an answer depends on stands here:
 * where another thing is asked about, it is all forgotten. */
struct body_memo {
    const struct policy *p;
    const struct request *r;
    struct span path, query, method;
    uint8_t fit[][2]; /* of each condition, strictly or not: enum fit + 1; 0: not known */
};

static bool is_same(struct span a, struct span b)
{
    return a.p == b.p && a.n == b.n;
}

static bool is_of(const struct body_memo *m, const struct policy *p, const struct request *r)
{
    return m->p == p && m->r == r && is_same(m->path, r->path) && is_same(m->query, r->query) &&
           is_same(m->method, r->method);
}

/* Where it is kept; NULL: no memory. */
static uint8_t *kept_fit(struct body_view *v, const struct policy *p, const struct img_cond *c,
                         const struct request *r, bool strictly, struct arena *a)
{
    const struct img_cond *first = img_at(p, IMG_COND, 0);
    size_t n = p->n[IMG_COND] * sizeof(v->memo->fit[0]);
    if (v->memo == NULL || !is_of(v->memo, p, r)) {
        struct body_memo *m = v->memo && v->memo->p == p ? v->memo : arena_alloc(a, sizeof(*m) + n);
        if (m == NULL)
            return NULL;
        m->p = p;
        m->r = r;
        m->path = r->path;
        m->query = r->query;
        m->method = r->method;
        memset(m->fit, 0, n);
        v->memo = m;
    }
    return &v->memo->fit[c - first][strictly];
}

enum fit body_fits(struct body_view *v, const struct policy *p, const struct img_cond *c, const struct request *r,
                   bool strictly, struct arena *a)
{
    uint8_t *kept = kept_fit(v, p, c, r, strictly, a);
    if (kept != NULL && *kept != 0)
        return (enum fit)(*kept - 1);
    enum fit fit = find_fit(v, p, c, r, strictly, a);
    if (kept != NULL)
        *kept = (uint8_t)(fit + 1);
    return fit;
}

enum ambiguity_cause body_ambiguity(struct body_view *v, const struct policy *p, const struct img_cond *c,
                                    const struct request *r, struct arena *a)
{
    const struct body_parser *b = &body_parsers[c->kind];
    struct span key = img_span(p, c->key);
    enum ambiguity_cause why = b->look ? b->look(v, r, a) : AMBIGUITY_NONE;
    if (b->look != NULL)
        return why != AMBIGUITY_NONE ? why : b->doubt(v, key, a);
    if (v->is == NULL && !v->absent)
        return (enum ambiguity_cause)v->open; /* first: whatever the rule asks about */
    if (body_in_query(v, r, b, key, a))
        return AMBIGUITY_QUERY;
    return v->is != b ? AMBIGUITY_KIND : b->doubt(v, key, a);
}

enum amount body_amount(struct body_view *v, uint32_t kind, struct span key, const struct request *r, struct arena *a,
                        uint64_t *out)
{
    const struct body_parser *b = &body_parsers[kind];
    int64_t n;
    body_look(v, r, a);
    *out = 0;
    if (v->is == NULL && !v->absent)
        return AMOUNT_OPEN;
    if (v->is != b || body_in_query(v, r, b, key, a) || !cond_whole_number(b->digits(v, key, a), &n) || n < 0 ||
        n > (int64_t)AMOUNT_MAX)
        return AMOUNT_NONE;
    *out = (uint64_t)n;
    return AMOUNT_SEEN;
}

uint32_t body_requests(const struct body_view *v, bool *more)
{
    *more = false;
    uint32_t one = v->graphql_looked ? body_graphql_requests(v, more) : 1;
    uint32_t other = v->jsonrpc_looked ? body_jsonrpc_requests(v) : 1;
    return one == 0 || other == 0 ? 0 : one > other ? one : other;
}

/* ---- packs ---- */

const char *body_find(uint32_t pack, struct body_view *v, const struct request *r, struct span resource,
                      struct arena *a, bool *pending, enum ambiguity_cause *why, struct body_found *found)
{
    const struct body_parser *b = body_parsers + COND_KINDS;
    size_t types, codings;
    struct span type = spelling_field(r, SPAN("Content-Type"), &types);
    (void)spelling_field(r, SPAN("Content-Encoding"), &codings);
    while (b < body_parsers + PARSERS - 1 && b->pack != pack)
        b++;
    if (b->look != NULL && b->pack == pack) {
        *pending = found->untold = r->has_body && !r->body_complete;
        return *pending ? NULL : b->find(v, r, resource, a, found);
    }
    *why = b->other_type;
    if (b->pack != pack || !r->has_body || types != 1 || !has_type(b, type))
        return "unclassified";
    *why = b->coded;
    if (codings > 0)
        return "unclassified";
    *pending = !r->body_complete;
    *why = b->malformed;
    return *pending ? NULL : b->find(v, r, resource, a, found);
}
