/* A request changed in the one thing that a rule lacks, with a value taken from the rule. Whether that helps is for
 * the judge to say: here nothing is promised. */
#include "policy/explain/change.h"

#include <stdio.h>

#include "policy/image/glob.h"

static void put_pattern(struct dynbuf *b, struct span pattern)
{
    for (size_t i = 0; i < pattern.n; i++)
        if (pattern.p[i] != '*')
            (void)dynbuf_add_byte(b, pattern.p[i]);
        else if (i == 0 || pattern.p[i - 1] != '*')
            (void)dynbuf_add_byte(b, 'x');
}

/* A name that fits the pattern: where a segment has a wildcard, that of `like` in the same place if it fits. */
struct span change_witness(struct making *k, struct span pattern, struct span like, uint8_t sep)
{
    struct dynbuf b;
    bool first = true;
    dynbuf_init(&b, WORDS_MAX);
    while (pattern.n || first) {
        bool more = sep && span_index(pattern, sep) < pattern.n;
        struct span want = sep ? span_first(pattern, span_index(pattern, sep)) : pattern;
        struct span have = sep ? span_first(like, span_index(like, sep)) : like;
        pattern = span_from(pattern, want.n + more);
        like = span_from(like, have.n + 1);
        if (have.n && glob_segment(want, have, false))
            (void)dynbuf_add(&b, have);
        else
            put_pattern(&b, want);
        if (more)
            (void)dynbuf_add_byte(&b, sep);
        first = false;
    }
    return arena_keep(k->a, &b);
}

void change_say(struct making *k, const char *what, struct span name, struct span value)
{
    struct dynbuf b;
    dynbuf_init(&b, WORDS_MAX);
    (void)dynbuf_addf(&b, "with %s", what);
    if (name.n)
        (void)dynbuf_addf(&b, " ");
    why_value(&b, name);
    if (value.n)
        (void)dynbuf_addf(&b, name.n ? ": " : " ");
    why_value(&b, value);
    k->out->words = arena_keep(k->a, &b);
}

static bool change_host(struct making *k)
{
    if (k->nth >= k->m->hosts.n || k->nth > 3)
        return false;
    struct span pattern = why_host_pattern(k->p, img_at(k->p, IMG_HOST, k->m->hosts.first + k->nth), k->a);
    k->out->request.host = change_witness(k, pattern, SPAN_NONE, '.');
    change_say(k, "host", SPAN_NONE, k->out->request.host);
    return true;
}

/* The rule's port: as it was where it fits. */
static uint16_t place_port(const struct making *k, uint16_t usual, uint16_t was)
{
    uint16_t first = usual;
    for (uint32_t i = 0; i < k->m->ports.n; i++) {
        uint16_t port = (uint16_t) * (const uint32_t *)img_at(k->p, IMG_PORT, k->m->ports.first + i);
        if (port == was)
            return was;
        first = i == 0 ? port : first;
    }
    return first;
}

static bool change_place(struct making *k, bool scheme)
{
    struct request *r = &k->out->request;
    char digits[24];
    if (k->nth)
        return false;
    uint16_t was_usual = classify_default_port(r->scheme), was = r->port;
    if (scheme)
        r->scheme = k->m->schemes == SCHEME_HTTP ? SPAN("http") : SPAN("https");
    uint16_t usual = classify_default_port(r->scheme);
    r->port = place_port(k, usual, was);
    snprintf(digits, sizeof(digits), "%u", r->port);
    if (!scheme)
        change_say(k, "port", SPAN_NONE, span_str(digits));
    else if (r->port == was && was != was_usual) /* it is written in the URL, and stays there */
        change_say(k, "scheme", SPAN_NONE, r->scheme);
    else
        change_say(k, k->m->schemes == SCHEME_HTTP ? "scheme http and port" : "scheme https and port", SPAN_NONE,
                   span_str(digits));
    return true;
}

/* A GET or HEAD goes without a body: with one it is a write. */
static bool use_method(struct making *k, struct span method)
{
    struct request *r = &k->out->request;
    bool reads = span_eq(method, SPAN("GET")) || span_eq(method, SPAN("HEAD"));
    bool bare = reads && r->has_body;
    r->method = method;
    if (bare) {
        r->has_body = false;
        r->body = SPAN_NONE;
        r->body_complete = true;
    }
    change_say(k, bare ? "no body and method" : "method", SPAN_NONE, method);
    return true;
}

static bool change_method(struct making *k)
{
    static const char *const usual[] = {"GET", "POST", "DELETE", "PUT", "PATCH"};
    if (k->m->methods.n && k->nth < k->m->methods.n && k->nth < 5)
        return use_method(k, img_text(k->p, k->m->methods, k->nth));
    return k->m->methods.n == 0 && k->nth < 5 && use_method(k, span_str(usual[k->nth]));
}

static bool change_path(struct making *k)
{
    if (k->nth >= k->m->paths.n || k->nth > 3)
        return false;
    k->out->request.path = change_witness(k, img_glob(k->p, k->m->paths, k->nth), k->out->request.path, '/');
    change_say(k, "path", SPAN_NONE, k->out->request.path);
    return true;
}

/* Pieces of a resource stand in the path as segments, or begin one: "/demo/app.git/info/refs". */
static struct span path_with(struct making *k, struct span path, struct span old, struct span new)
{
    struct dynbuf b;
    bool done = false;
    dynbuf_init(&b, WORDS_MAX);
    for (struct span rest = span_from(path, 1); rest.n || b.n == 0;) {
        struct span one = span_first(rest, span_index(rest, '/'));
        bool hit = !done && old.n && span_starts(one, old) && (one.n == old.n || one.p[old.n] == '.');
        (void)dynbuf_add_byte(&b, '/');
        (void)dynbuf_add(&b, hit ? new : one);
        (void)dynbuf_add(&b, hit ? span_from(one, old.n) : SPAN_NONE);
        done |= hit;
        rest = span_from(rest, one.n + 1);
        if (one.n == 0 && rest.n == 0)
            break;
    }
    return arena_keep(k->a, &b);
}

static bool change_resource(struct making *k, struct span resource)
{
    if (k->nth >= k->m->resources.n || k->nth > 3)
        return false;
    struct span pattern = img_glob(k->p, k->m->resources, k->nth), want = change_witness(k, pattern, resource, '/');
    struct span old = resource, new = want;
    while (old.n && new.n) {
        struct span a = span_first(old, span_index(old, '/')), b = span_first(new, span_index(new, '/'));
        old = span_from(old, a.n + 1);
        new = span_from(new, b.n + 1);
        a = span_from(a, span_index(a, ':') < a.n ? span_index(a, ':') + 1 : 0);
        b = span_from(b, span_index(b, ':') < b.n ? span_index(b, ':') + 1 : 0);
        if (!span_eq(a, b))
            k->out->request.path = path_with(k, k->out->request.path, a, b);
    }
    change_say(k, "path", SPAN_NONE, k->out->request.path);
    return true;
}

/* name=value in place of every parameter of that name; SPAN_NONE for value.p: without it. */
struct span change_params_with(struct making *k, struct span params, struct span name, struct span value)
{
    struct dynbuf b;
    struct span one, key, was;
    dynbuf_init(&b, BODY_MADE_MAX);
    while (params.n) {
        (void)span_cut(params, '&', &one, &params);
        (void)span_cut(one, '=', &key, &was);
        if (span_eq(key, name))
            continue;
        (void)dynbuf_add(&b, b.n ? SPAN("&") : SPAN_NONE);
        (void)dynbuf_add(&b, one);
    }
    if (value.p) {
        (void)dynbuf_add(&b, b.n ? SPAN("&") : SPAN_NONE);
        dynbuf_add_percent(&b, name, "-._");
        (void)dynbuf_add_byte(&b, '=');
        dynbuf_add_percent(&b, value, "-._");
    }
    return arena_keep(k->a, &b);
}

static bool change_query(struct making *k)
{
    if (k->nth >= k->m->query.n)
        return false;
    const struct img_pair *want = img_at(k->p, IMG_PAIR, k->m->query.first + k->nth);
    struct span name = img_span(k->p, want->key),
                value = change_witness(k, img_glob(k->p, want->values, 0), SPAN_NONE, 0);
    k->out->request.query = change_params_with(k, k->out->request.query, name, value);
    k->out->request.has_query = true;
    change_say(k, "query parameter", name, value);
    return true;
}

static bool set_field(struct making *k, struct span name, struct span value)
{
    struct request *r = &k->out->request;
    struct http_field *f = arena_alloc(k->a, (r->nfields + 1) * sizeof(*f));
    size_t n = 0;
    for (size_t i = 0; f && i < r->nfields; i++)
        if (!span_ieq(r->fields[i].name, name))
            f[n++] = r->fields[i];
    if (f && value.n)
        f[n++] = (struct http_field){name, value};
    r->fields = f;
    r->nfields = n;
    return f != NULL;
}

static bool change_header(struct making *k)
{
    if (k->nth >= k->m->header.n)
        return false;
    const struct img_pair *want = img_at(k->p, IMG_PAIR, k->m->header.first + k->nth);
    struct span name = img_span(k->p, want->key),
                value = change_witness(k, img_glob(k->p, want->values, 0), SPAN_NONE, 0);
    change_say(k, "header", name, value);
    return set_field(k, name, value);
}

static bool change_upgrade(struct making *k)
{
    if (k->nth || (k->m->ws && match_is_upgrade(&k->out->request)))
        return false;
    change_say(k, k->m->ws ? "a WebSocket upgrade" : "no WebSocket upgrade", SPAN_NONE, SPAN_NONE);
    return set_field(k, SPAN("Upgrade"), k->m->ws ? SPAN("websocket") : SPAN_NONE);
}

static bool hex4(struct span s, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < 4; i++) {
        uint8_t c = i < s.n ? s.p[i] : 0;
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        *n = *n * 16 + (size_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

/* Every ref of the push that is not one the rule names becomes one. A command is "old new name[NUL caps]". */
static bool change_ref(struct making *k)
{
    struct request *r = &k->out->request;
    struct span rest = r->body, made = SPAN_NONE;
    struct dynbuf b;
    size_t n;
    if (k->nth || k->m->git_refs.n == 0)
        return false;
    struct glob g = glob_of(img_glob(k->p, k->m->git_refs, 0), '/');
    dynbuf_init(&b, BODY_MADE_MAX);
    while (hex4(rest, &n) && n > 4 + 82 && n <= rest.n) {
        struct span line = span_first(rest, n), ids = span_first(span_from(line, 4), 82);
        struct span name = span_from(line, 4 + 82);
        name = span_first(name, span_index(name, 0));
        name = span_first(name, span_index(name, '\n'));
        struct span after = span_from(line, 4 + 82 + name.n);
        if (!glob_match(&g, name, '/', false))
            name = made = change_witness(k, g.text, name, '/');
        (void)dynbuf_addf(&b, "%04zx", 4 + 82 + name.n + after.n);
        (void)dynbuf_add(&b, ids);
        (void)dynbuf_add(&b, name);
        (void)dynbuf_add(&b, after);
        rest = span_from(rest, n);
    }
    (void)dynbuf_add(&b, rest);
    r->body = arena_keep(k->a, &b);
    change_say(k, "ref", SPAN_NONE, made);
    return made.n > 0 && r->body.n > 0;
}

static struct span label_value(struct making *k, const struct img_pair *want)
{
    return change_witness(k, img_glob(k->p, want->values, 0), SPAN_NONE, 0);
}

/* The sandbox and the labels that one of the rule's scopes names. */
static bool change_scope(struct making *k, const struct img_rule *r)
{
    struct subject *s = &k->out->subject;
    enum { LABELS = sizeof(k->out->label) / sizeof(k->out->label[0]) };
    if (k->nth >= r->scopes.n || k->nth > 3 || s->nlabels > LABELS)
        return false;
    uint32_t at = *(const uint32_t *)img_at(k->p, IMG_SCOPE_REF, r->scopes.first + k->nth);
    const struct img_scope *c = img_at(k->p, IMG_SCOPE, at);
    if (c->sandboxes.n)
        s->sandbox = change_witness(k, img_glob(k->p, c->sandboxes, 0), s->sandbox, 0);
    size_t n = 0;
    for (; n < s->nlabels; n++)
        k->out->label[n] = s->labels[n];
    for (uint32_t i = 0; i < c->labels.n && n < LABELS; i++) {
        const struct img_pair *want = img_at(k->p, IMG_PAIR, c->labels.first + i);
        k->out->label[n++] = (struct label){img_span(k->p, want->key), label_value(k, want)};
    }
    s->labels = k->out->label;
    s->nlabels = n;
    change_say(k, "a sandbox of scope", SPAN_NONE, img_span(k->p, c->name));
    return true;
}

bool policy_change(const struct policy *p, const struct subject *s, const struct request *r,
                   const struct near_miss *miss, unsigned nth, struct arena *a, struct change *out)
{
    const struct img_rule *rule = img_at(p, IMG_RULE, miss->index);
    struct making k = {.p = p, .m = img_at(p, IMG_MATCH, rule->match.first), .a = a, .out = out, .nth = nth};
    *out = (struct change){.subject = *s, .request = *r};
    switch (miss->miss) {
    case MISS_HOST: return change_host(&k);
    case MISS_SCHEME: return change_place(&k, true);
    case MISS_PORT: return change_place(&k, false);
    case MISS_METHOD:
    case MISS_OP:
    case MISS_EFFECT: return change_method(&k);
    case MISS_PATH: return change_path(&k);
    case MISS_WS: return change_upgrade(&k);
    case MISS_RESOURCE: return change_resource(&k, miss->resource);
    case MISS_QUERY: return change_query(&k);
    case MISS_HEADER: return change_header(&k);
    case MISS_GIT: return change_ref(&k);
    case MISS_BODY: return change_body(&k);
    case MISS_SCOPE: return change_scope(&k, rule);
    case MISS_WHEN:
    case MISS_EXCEPT:
    case MISS_NONE: break;
    }
    return false;
}
