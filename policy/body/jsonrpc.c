/* JSON-RPC 2.0 in the body of a POST, a message or a list of them, and what MCP says with it. What is no message of
 * the one form that all servers read is not taken for any. */
#include "policy/body/parsers.h"
#include "policy/spelling/spelling.h"

enum { MESSAGES_MAX = 500, NAME_SHOWN = 100 };

struct message {
    struct span method; /* p is NULL: an answer of the client's */
    const struct json *params;
};
struct jsonrpc {
    struct message *message;
    size_t n, max;
};

/* ---- one message ---- */

struct parts {
    const struct json *version, *id, *method, *params, *answer;
};

/* Each at most once, or it would be no JSON here; a member that nobody knows may be one in other letters. */
static enum ambiguity_cause parts_of(const struct json *j, struct parts *p)
{
    bool known = true;
    for (const struct json *at = j->child; at != NULL; at = at->next) {
        if (span_eq(at->key, SPAN("jsonrpc")))
            p->version = at;
        else if (span_eq(at->key, SPAN("id")))
            p->id = at;
        else if (span_eq(at->key, SPAN("method")))
            p->method = at;
        else if (span_eq(at->key, SPAN("params")))
            p->params = at;
        else if (p->answer == NULL && (span_eq(at->key, SPAN("result")) || span_eq(at->key, SPAN("error"))))
            p->answer = at;
        else
            known = false;
    }
    if (p->version == NULL && p->method == NULL)
        return AMBIGUITY_KIND;
    return known ? AMBIGUITY_NONE : AMBIGUITY_JSONRPC;
}

static enum ambiguity_cause read_message(const struct json *j, struct message *out)
{
    struct parts p = {0};
    enum ambiguity_cause why = j->type == JSON_OBJECT ? parts_of(j, &p) : AMBIGUITY_KIND;
    if (why != AMBIGUITY_NONE)
        return why;
    bool good = p.version && p.version->type == JSON_STRING && span_eq(p.version->text, SPAN("2.0"));
    good &= p.id == NULL || p.id->type == JSON_STRING || p.id->type == JSON_NUMBER || p.id->type == JSON_NULL;
    if (p.method == NULL)
        return good && p.answer && p.id && p.params == NULL ? AMBIGUITY_NONE : AMBIGUITY_JSONRPC;
    good &= p.answer == NULL && p.method->type == JSON_STRING && p.method->text.n > 0;
    good &= span_index(p.method->text, 0) == p.method->text.n;
    good &= p.params == NULL || p.params->type == JSON_OBJECT || p.params->type == JSON_ARRAY;
    *out = (struct message){p.method->text, p.params};
    return good ? AMBIGUITY_NONE : AMBIGUITY_JSONRPC;
}

static enum ambiguity_cause add_message(struct jsonrpc *k, const struct json *j, struct arena *a)
{
    struct message one = {.method = SPAN_NONE};
    enum ambiguity_cause why = read_message(j, &one);
    if (why == AMBIGUITY_KIND)
        return why;
    struct message *more = k->n < MESSAGES_MAX ? arena_more(a, k->message, k->n, &k->max, sizeof(*more)) : NULL;
    if (more == NULL)
        return AMBIGUITY_BODY_LARGE;
    k->message = more;
    more[k->n++] = one;
    return why;
}

/* ---- what MCP calls things ---- */

/* What a message is about by its name: a tool, a prompt, a resource. doubt: nobody can tell. */
static struct span name_of(struct body_view *v, const struct message *m, enum ambiguity_cause *doubt, struct arena *a)
{
    bool uri = span_eq(m->method, SPAN("resources/read"));
    if (!uri && !span_eq(m->method, SPAN("tools/call")) && !span_eq(m->method, SPAN("prompts/get")))
        return SPAN_NONE;
    const struct json *j = m->params && m->params->type == JSON_OBJECT
                               ? body_json_child(v, m->params, uri ? SPAN("uri") : SPAN("name"), doubt, a)
                               : NULL;
    if (j == NULL || j->type != JSON_STRING || j->text.n == 0 || span_index(j->text, 0) < j->text.n)
        *doubt = *doubt != AMBIGUITY_NONE ? *doubt : AMBIGUITY_VALUE;
    return *doubt == AMBIGUITY_NONE ? j->text : SPAN_NONE;
}

static bool is_call(const struct message *m)
{
    return span_eq(m->method, SPAN("tools/call"));
}

/* Servers and what stands before them may go by either: the field says the same, or it is not there. */
static bool field_says(const struct request *r, struct span field, struct span is)
{
    size_t n;
    struct span value = spelling_field(r, field, &n);
    return n == 0 || (n == 1 && is.n > 0 && span_eq(span_trim(value), is));
}

static bool fields_agree(struct body_view *v, const struct request *r, const struct jsonrpc *k, struct arena *a)
{
    enum ambiguity_cause doubt = AMBIGUITY_NONE;
    const struct message *m = k->n == 1 ? &k->message[0] : NULL;
    struct span name = m ? name_of(v, m, &doubt, a) : SPAN_NONE;
    return field_says(r, SPAN("Mcp-Method"), m ? m->method : SPAN_NONE) && field_says(r, SPAN("Mcp-Name"), name);
}

/* ---- one request ---- */

/* Some servers take a message from the query. */
static bool in_query(struct body_view *v, const struct request *r, struct arena *a)
{
    static const struct span names[] = {SPAN("method"), SPAN("params"), SPAN("jsonrpc")};
    bool found = false;
    if (!body_query(v, r, a))
        return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !found; i++)
        found = params_have(&v->query, names[i]);
    return found || v->query.failed;
}

static enum ambiguity_cause look(struct body_view *v, const struct request *r, struct jsonrpc *k, struct arena *a)
{
    enum ambiguity_cause why = AMBIGUITY_KIND, one;
    struct span type;
    bool asked = in_query(v, r, a);
    body_look(v, r, a);
    if (v->absent)
        return asked ? AMBIGUITY_JSONRPC : AMBIGUITY_NONE;
    if (!r->body_complete)
        return AMBIGUITY_BODY_CUT;
    if ((one = body_type(r, &type)) != AMBIGUITY_NONE)
        return one;
    if (v->is == NULL)
        return (enum ambiguity_cause)v->open;
    if (v->is != &body_parsers[COND_JSON])
        return AMBIGUITY_KIND;
    const struct json *list = v->json->type == JSON_ARRAY ? v->json->child : v->json;
    for (const struct json *at = list; at != NULL; at = v->json->type == JSON_ARRAY ? at->next : NULL) {
        one = add_message(k, at, a);
        why = body_list_cause(why, one, at == list, AMBIGUITY_JSONRPC);
    }
    if (why != AMBIGUITY_NONE)
        return why;
    return asked ? AMBIGUITY_QUERY : fields_agree(v, r, k, a) ? AMBIGUITY_NONE : AMBIGUITY_JSONRPC_FIELDS;
}

enum ambiguity_cause body_jsonrpc_look(struct body_view *v, const struct request *r, struct arena *a)
{
    struct jsonrpc *k = NULL;
    if (v->jsonrpc_looked)
        return (enum ambiguity_cause)v->jsonrpc_open;
    v->jsonrpc_looked = true;
    v->jsonrpc_open = AMBIGUITY_BODY_LARGE;
    if ((k = arena_alloc(a, sizeof(*k))) == NULL)
        return AMBIGUITY_BODY_LARGE;
    v->jsonrpc_open = (uint8_t)look(v, r, k, a);
    if (v->jsonrpc_open == AMBIGUITY_NONE && k->n > 0)
        v->jsonrpc = k;
    return (enum ambiguity_cause)v->jsonrpc_open;
}

/* ---- conditions ---- */

/* Some servers take a member "args" of params by name for those that stand by position. */
static const struct json *param_at(struct body_view *v, const struct message *m, struct span key,
                                   enum ambiguity_cause *doubt, struct arena *a)
{
    const struct json *params = m->params, *args;
    struct span name = span_from(key, 1);
    name = span_first(name, span_index(name, '/'));
    if (params == NULL || params->child == NULL)
        return NULL;
    if (params->type == JSON_OBJECT && body_json_child(v, params, name, doubt, a) == NULL &&
        *doubt == AMBIGUITY_NONE && (args = json_get(params, SPAN("args"))) != NULL && args->type == JSON_ARRAY &&
        args->child != NULL)
        *doubt = AMBIGUITY_VALUE;
    return *doubt == AMBIGUITY_NONE ? body_json_below(v, params, key, doubt, a) : NULL;
}

static bool asks_name(struct span key)
{
    return span_eq(key, SPAN("method")) || span_eq(key, SPAN("tool"));
}

/* A condition of one message; an answer is asked nothing, and what lets through does not mean it. */
static enum fit one_fits(struct body_view *v, const struct body_question *q, const struct message *m, struct arena *a)
{
    struct span key = img_span(q->p, q->c->key), name = m->method;
    enum ambiguity_cause doubt = AMBIGUITY_NONE;
    if (m->method.p == NULL)
        return FIT_NO;
    if (!asks_name(key)) {
        const struct json *j = param_at(v, m, key, &doubt, a);
        return doubt != AMBIGUITY_NONE ? FIT_MAYBE : body_json_value_fits(v, j, q, a);
    }
    if (span_eq(key, SPAN("tool"))) {
        if (!is_call(m)) /* to some servers it is one all the same */
            return !q->strictly && cond_name_is(m->method, SPAN("tools/call"), a) ? FIT_MAYBE : FIT_NO;
        name = name_of(v, m, &doubt, a);
    }
    return doubt != AMBIGUITY_NONE ? FIT_MAYBE : cond_name_fits(q, name, a);
}

enum fit body_jsonrpc_fits(struct body_view *v, const struct body_question *q, struct arena *a)
{
    const struct jsonrpc *k = v->jsonrpc;
    struct fit_sum s = {.all = q->strictly};
    for (size_t i = 0; k != NULL && i < k->n; i++)
        fit_sum_add(&s, one_fits(v, q, &k->message[i], a));
    return s.some ? s.fit : FIT_NO;
}

enum ambiguity_cause body_jsonrpc_doubt(struct body_view *v, struct span key, struct arena *a)
{
    const struct jsonrpc *k = v->jsonrpc;
    enum ambiguity_cause doubt = AMBIGUITY_NONE;
    for (size_t i = 0; k != NULL && i < k->n && doubt == AMBIGUITY_NONE; i++) {
        if (span_eq(key, SPAN("tool")))
            (void)name_of(v, &k->message[i], &doubt, a);
        else if (!asks_name(key))
            (void)param_at(v, &k->message[i], key, &doubt, a);
    }
    return doubt != AMBIGUITY_NONE ? doubt : AMBIGUITY_VALUE;
}

/* Of the first that does not fit. */
struct body_shown body_jsonrpc_show(struct body_view *v, const struct body_question *q, struct arena *a)
{
    const struct jsonrpc *k = v->jsonrpc;
    struct span key = img_span(q->p, q->c->key);
    enum ambiguity_cause doubt = AMBIGUITY_NONE;
    size_t i = 0;
    while (k != NULL && i < k->n && one_fits(v, q, &k->message[i], a) == FIT_YES)
        i++;
    if (k == NULL || i == k->n || k->message[i].method.p == NULL)
        return (struct body_shown){.before = "not there"};
    const struct message *m = &k->message[i];
    if (!asks_name(key))
        return body_json_shown(param_at(v, m, key, &doubt, a));
    struct span name = span_eq(key, SPAN("tool")) ? (is_call(m) ? name_of(v, m, &doubt, a) : SPAN_NONE) : m->method;
    return name.n ? (struct body_shown){"\"", name, "\""} : (struct body_shown){.before = "not there"};
}

/* ---- packs ---- */

/* Of MCP, up to the version of 2026-07-28: what asks the server for something and changes nothing there. */
static bool only_asks(struct span method)
{
    static const struct span names[] = {
        SPAN("initialize"),
        SPAN("server/discover"),
        SPAN("ping"),
        SPAN("tools/list"),
        SPAN("prompts/list"),
        SPAN("prompts/get"),
        SPAN("resources/list"),
        SPAN("resources/templates/list"),
        SPAN("resources/read"),
        SPAN("completion/complete"),
        SPAN("tasks/list"),
        SPAN("tasks/get"),
        SPAN("tasks/result"),
        SPAN("notifications/initialized"),
        SPAN("notifications/cancelled"),
        SPAN("notifications/progress"),
        SPAN("notifications/roots/list_changed"),
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (span_eq(method, names[i]))
            return true;
    return false;
}

static struct span plain(struct span s)
{
    return body_word(s, NAME_SHOWN, SPAN("(a name that is not shown)"));
}

/* "tools/call create_issue"; p NULL: no memory. */
static struct span words_of(struct body_view *v, const struct message *m, struct arena *a)
{
    enum ambiguity_cause doubt = AMBIGUITY_NONE;
    struct span method = m->method.p ? plain(m->method) : SPAN("an answer to the server");
    struct span name = plain(name_of(v, m, &doubt, a));
    bool some = name.n > 0 || doubt != AMBIGUITY_NONE;
    name = doubt != AMBIGUITY_NONE ? SPAN("(of no clear name)") : name;
    return arena_printf(a, "%.*s%s%.*s", SPAN_FMT(method), some ? " " : "", SPAN_FMT(name));
}

/* How many there are of these words; 0: they stood there before. */
static size_t times_of(const struct span *words, size_t n, size_t i)
{
    size_t times = 0;
    for (size_t k = 0; k < n; k++) {
        if (!span_eq(words[k], words[i]))
            continue;
        if (k < i)
            return 0;
        times++;
    }
    return times;
}

/* Each once, and first what changes something: a person does not look for it among hundreds that do not. */
static int add_facts(struct body_view *v, struct arena *a, struct body_found *found)
{
    const struct jsonrpc *k = v->jsonrpc;
    struct span *words = arena_alloc(a, k->n * sizeof(*words));
    struct fact *facts = arena_alloc(a, k->n * sizeof(*facts));
    size_t times;
    if (words == NULL || facts == NULL)
        return -1;
    for (size_t i = 0; i < k->n; i++) {
        words[i] = words_of(v, &k->message[i], a);
        if (words[i].p == NULL)
            return -1;
    }
    for (size_t i = 0; i < 2 * k->n; i++) {
        size_t at = i % k->n;
        bool changes = !only_asks(k->message[at].method);
        found->changes |= changes;
        if (changes != (i < k->n) || (times = times_of(words, k->n, at)) == 0)
            continue;
        struct span is = times == 1 ? words[at] : arena_printf(a, "%.*s (%zu times)", SPAN_FMT(words[at]), times);
        if (is.p == NULL)
            return -1;
        facts[found->nfacts++] = (struct fact){SPAN("MCP"), is};
    }
    found->facts = facts;
    return 0;
}

static int take(struct body_view *v, enum ambiguity_cause why, struct arena *a, struct body_found *found)
{
    if (v->jsonrpc != NULL)
        return add_facts(v, a, found);
    struct fact *fact = arena_alloc(a, sizeof(*fact));
    if (fact == NULL)
        return -1;
    *fact = (struct fact){SPAN("Not understood"), span_str(ambiguity_words(why ? why : AMBIGUITY_JSONRPC))};
    *found = (struct body_found){.changes = true, .facts = fact, .nfacts = 1};
    return 0;
}

const char *body_mcp_find(struct body_view *v, const struct request *r, struct span resource, struct arena *a,
                          struct body_found *found)
{
    (void)resource;
    v->jsonrpc_meant = true;
    if (v->mcp_found == NULL) {
        enum ambiguity_cause why = body_jsonrpc_look(v, r, a);
        struct body_found *kept = arena_alloc(a, sizeof(*kept));
        if (kept == NULL || take(v, why, a, kept) != 0)
            return "no-memory";
        v->mcp_found = kept;
    }
    *found = *v->mcp_found;
    return NULL;
}

uint32_t body_jsonrpc_requests(const struct body_view *v)
{
    if (v->jsonrpc == NULL)
        return body_is_other(v->jsonrpc_open, v->jsonrpc_meant) ? 1 : 0;
    return (uint32_t)v->jsonrpc->n;
}
