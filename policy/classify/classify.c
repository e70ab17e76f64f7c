#include "policy/classify/classify.h"

#include "policy/image/glob.h"
#include "policy/spelling/params.h"

uint16_t classify_default_port(struct span scheme)
{
    return span_eq(scheme, SPAN("https")) ? 443 : 80;
}

bool classify_host_fits(const struct policy *p, const struct img_host *h, struct span host)
{
    struct span text = img_span(p, h->text);
    if (h->kind == HOST_EXACT)
        return span_eq(text, host);
    /* "*.example.com": a dot before the suffix, and labels before the dot (B53). */
    if (host.n < text.n + 2 || !span_ends(host, text) || host.p[host.n - text.n - 1] != '.')
        return false;
    struct span labels = span_first(host, host.n - text.n - 1);
    return h->kind == HOST_ANY_LABELS || span_index(labels, '.') == labels.n;
}

bool classify_hosts_fit(const struct policy *p, struct img_range hosts, struct span host)
{
    for (uint32_t i = 0; i < hosts.n; i++)
        if (classify_host_fits(p, img_at(p, IMG_HOST, hosts.first + i), host))
            return true;
    return hosts.n == 0;
}

bool classify_pack_fits(const struct policy *p, const struct img_pack *k, struct span scheme, struct span host,
                        uint16_t port)
{
    for (uint32_t i = 0; i < k->hosts.n; i++) {
        const struct img_host *h = img_at(p, IMG_HOST, k->hosts.first + i);
        if ((h->port ? h->port : classify_default_port(scheme)) == port && classify_host_fits(p, h, host))
            return true;
    }
    return k->hosts.n == 0;
}

enum effect classify_rest_effect(struct span method, bool has_body)
{
    if (span_eq(method, SPAN("DELETE")))
        return EFFECT_DELETE;
    if (!has_body &&
        (span_eq(method, SPAN("GET")) || span_eq(method, SPAN("HEAD")) || span_eq(method, SPAN("OPTIONS"))))
        return EFFECT_READ;
    return EFFECT_WRITE;
}

static struct span rest_op(struct span method)
{
    static const struct {
        struct span method, op;
    } names[] = {
        {SPAN("GET"), SPAN("http.get")},         {SPAN("HEAD"), SPAN("http.head")},
        {SPAN("POST"), SPAN("http.post")},       {SPAN("PUT"), SPAN("http.put")},
        {SPAN("PATCH"), SPAN("http.patch")},     {SPAN("DELETE"), SPAN("http.delete")},
        {SPAN("OPTIONS"), SPAN("http.options")},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (span_eq(names[i].method, method))
            return names[i].op;
    return SPAN("http.other");
}

static bool content_type_is(const struct request *r, struct span want)
{
    size_t count;
    struct span type = spelling_field(r, SPAN("Content-Type"), &count);
    return count == 1 && span_ieq(type, want);
}

static bool is_override_name(struct span name)
{
    if (name.n < 7 || name.n > 22)
        return false;
    return spelling_of_name(name, SPAN("x-http-method-override")) || spelling_of_name(name, SPAN("x-http-method")) ||
           spelling_of_name(name, SPAN("x-method-override")) || spelling_of_name(name, SPAN("-method"));
}

/* Of a query: decoded, without what PHP and Rack cut off in front, and without the brackets of a list. */
static bool is_override_param(struct span name, struct arena *a)
{
    for (unsigned again = 0; again < 2; again++) {
        struct span is;
        if (spelling_decode(name, true, a, &name) != 0 || spelling_tidy(name, a, &is) != 0)
            return true;
        while (is.n && (is.p[0] <= ' ' || is.p[0] == '[' || is.p[0] == ']'))
            is = span_from(is, 1);
        is = span_first(is, span_index(is, '['));
        if (is_override_name(span_trim(span_first(is, span_index(is, ']')))))
            return true;
    }
    return false;
}

static bool overrides_in(struct span query, struct arena *a)
{
    while (query.n) {
        struct span param = span_first(query, span_index(query, '&'));
        query = span_from(query, param.n + 1);
        while (param.n) {
            struct span piece = span_first(param, span_index(param, ';'));
            param = span_from(param, piece.n + 1);
            if (is_override_param(span_first(piece, span_index(piece, '=')), a))
                return true;
        }
    }
    return false;
}

/* Does anything ask the server to take another method than the one that stands there (B1, B2)? */
static bool overrides_method(const struct request *r, struct arena *a)
{
    for (size_t i = 0; i < r->nfields; i++) {
        struct span name = r->fields[i].name;
        if (name.n > 2 && (name.p[0] | 0x20) == 'x' && is_override_name(name))
            return true;
    }
    struct param_texts texts;
    if (r->query.n == 0 && !path_hides_query(r->path))
        return false;
    if (param_texts_of(r->query, r->path, a, &texts) != 0)
        return true;
    for (size_t i = 0; i < texts.n; i++)
        if (overrides_in(texts.v[i], a))
            return true;
    return false;
}

/* Fill a template: {host}, {method}, {1} to {4}. A %2F of a capture is a separator to the server that
 * asked to keep it, so it is one in the resource. */
static int fill(struct arena *a, struct span text, const struct request *r, const struct span *cap, size_t ncap,
                struct span *out)
{
    size_t max = text.n;
    for (size_t i = 0; i < ncap; i++)
        max += 2 * cap[i].n;
    max += 2 * r->host.n + 2 * r->method.n;
    uint8_t *dst = arena_alloc(a, max);
    size_t n = 0;
    if (dst == NULL)
        return -1;
    for (size_t i = 0; i < text.n;) {
        struct span rest = span_from(text, i), put = span_of(rest.p, 1);
        size_t used = 1;
        if (span_starts(rest, SPAN("{host}"))) {
            put = r->host;
            used = 6;
        } else if (span_starts(rest, SPAN("{method}"))) {
            put = r->method;
            used = 8;
        } else if (rest.n >= 3 && rest.p[0] == '{' && rest.p[1] >= '1' && rest.p[1] <= '4' && rest.p[2] == '}') {
            size_t k = (size_t)(rest.p[1] - '1');
            put = k < ncap ? cap[k] : SPAN_NONE;
            used = 3;
        }
        if (put.n > max - n)
            return -1;
        for (size_t k = 0; k < put.n;) {
            bool slash =
                used > 1 && put.n - k >= 3 && put.p[k] == '%' && put.p[k + 1] == '2' && (put.p[k + 2] | 0x20) == 'f';
            dst[n++] = slash ? '/' : put.p[k];
            k += slash ? 3 : 1;
        }
        i += used;
    }
    *out = span_of(dst, n);
    return 0;
}

static struct span resource_template(const struct policy *p, const struct img_pack *k, const struct img_op *row,
                                     struct span host)
{
    if (row->resource.n)
        return img_span(p, row->resource);
    for (uint32_t i = 0; i < k->resources.n; i++) {
        const struct img_resource *s = img_at(p, IMG_RESOURCE, k->resources.first + i);
        if (s->host.n == 0 || span_eq(img_span(p, s->host), host))
            return img_span(p, s->text);
    }
    return SPAN_NONE;
}

static void ambiguity(struct class *c, enum ambiguity_cause why)
{
    c->bad = "unclassified";
    c->ambiguity = (uint8_t)why;
}

static int fill_words(const struct policy *p, const struct img_pack *k, const struct img_op *row,
                      const struct request *r, struct span path, struct arena *a, struct class *c)
{
    const struct img_glob *g = img_at(p, IMG_GLOB, row->path.first);
    struct span cap[GLOB_CAPTURES], strip = img_span(p, row->strip);
    size_t ncap = glob_capture(img_span(p, g->text), path, '/', cap);
    int rc = 0;
    if (row->could_path.n)
        rc |= fill(a, img_span(p, row->could_path), r, cap, ncap, &c->could_path);
    for (size_t i = 0; strip.n && i < ncap; i++)
        if (span_ends(cap[i], strip))
            cap[i].n -= strip.n;
        else if (spelling_ends(cap[i], strip))
            ambiguity(c, AMBIGUITY_PATH); /* "app.GIT" is app to some servers, and another to others (B8) */
    struct span text = resource_template(p, k, row, r->host);
    if (text.n)
        rc |= fill(a, text, r, cap, ncap, &c->resource);
    if (row->summary.n)
        rc |= fill(a, img_span(p, row->summary), r, cap, ncap, &c->summary);
    if (row->body == BODY_NONE && !c->rest)
        rc |= classify_open_path(img_span(p, g->text), text, path, a, &c->open_path);
    return rc;
}

static bool method_listed(const struct policy *p, struct img_range methods, struct span method)
{
    for (uint32_t i = 0; i < methods.n; i++) {
        const struct img_str *s = img_at(p, IMG_STR, methods.first + i);
        if (span_eq(img_span(p, *s), method))
            return true;
    }
    return methods.n == 0;
}

static void by_body(const struct request *r, const struct img_op *row, struct body_view *body, struct arena *a,
                    struct class *c)
{
    enum ambiguity_cause why;
    if (row->body == BODY_NONE)
        return;
    c->bad = body_find(row->body, body, r, c->resource, a, &c->pending, &why, &c->found);
    if (c->bad)
        c->ambiguity = (uint8_t)why;
    if (c->bad == NULL && c->found.asks.n) {
        c->could_op = c->op;
        c->op = c->found.asks;
        c->effect = EFFECT_READ;
    }
    if (c->found.summary.n)
        c->summary = c->found.summary;
}

/* One pack's word on the request; false when it has none. What a row that reads was passed over for is no read by
 * another row, nor for want of one. */
static bool by_pack(const struct policy *p, const struct img_pack *k, const struct request *r, struct span path,
                    struct body_view *body, struct arena *a, struct class *c)
{
    bool changes = false;
    for (uint32_t i = 0; i < k->ops.n; i++) {
        const struct img_op *row = img_at(p, IMG_OP, k->ops.first + i);
        const struct img_glob *g = img_at(p, IMG_GLOB, row->path.first);
        struct glob glob = {img_span(p, g->text), g->head, g->tail, g->literal, g->deep, g->after};
        if (!method_listed(p, row->methods, r->method) || !glob_match(&glob, path, '/', true))
            continue;
        if (row->query_rule == QUERY_EXACT && !span_eq(img_span(p, row->query), r->query))
            continue;
        if (row->content_type.n && !content_type_is(r, img_span(p, row->content_type)))
            continue;
        /* A body is taken for a read by its path and type alone; a query nobody described could say anything. */
        if (row->content_type.n && row->effect == EFFECT_READ && row->query_rule == QUERY_ANY && r->query.n)
            continue;
        *c = (struct class){.op = img_span(p, row->op),
                            .pack = img_span(p, k->name),
                            .effect = (enum effect)row->effect,
                            .dialect = (enum dialect)row->dialect,
                            .body_max = row->body_max,
                            .rest = span_ends(glob.text, SPAN("**")),
                            .could_op = img_span(p, row->could_op),
                            .could_method = img_span(p, row->could_method)};
        if (span_starts(c->op, SPAN("git.fetch")))
            c->git_service = GIT_UPLOAD_PACK;
        else if (span_starts(c->op, SPAN("git.push")))
            c->git_service = GIT_RECEIVE_PACK;
        if (!glob_match(&glob, path, '/', false))
            ambiguity(c, AMBIGUITY_PATH); /* only another spelling of what the pack knows (B8) */
        if (fill_words(p, k, row, r, path, a, c) != 0)
            c->bad = "no-memory";
        if (c->bad == NULL)
            by_body(r, row, body, a, c);
        if (c->bad || c->effect != EFFECT_READ || !(changes |= c->found.changes))
            return true;
        c->effect = EFFECT_WRITE;
    }
    if (changes)
        c->op = rest_op(r->method); /* the row's name means a read */
    return changes;
}

size_t classify(const struct policy *p, const struct request *r, struct span path, struct body_view *body,
                struct arena *a, struct class out[CLASSES_MAX])
{
    size_t n = 0;
    struct class c;
    for (uint32_t i = 0; i < p->n[IMG_PACK]; i++) {
        const struct img_pack *k = img_at(p, IMG_PACK, i);
        if (!classify_pack_fits(p, k, r->scheme, r->host, r->port) || !by_pack(p, k, r, path, body, a, &c))
            continue;
        if (n < CLASSES_MAX - 1)
            out[n++] = c;
        else
            ambiguity(&out[0], AMBIGUITY_PACKS); /* more readings than are judged */
    }
    if (n == 0)
        out[n++] = (struct class){.op = rest_op(r->method), .effect = classify_rest_effect(r->method, r->has_body)};
    if (!overrides_method(r, a))
        return n;
    /* The same request twice: as it stands, and as the server may take it. */
    out[n] = (struct class){.op = SPAN("http.override"),
                            .resource = out[0].resource,
                            .effect = EFFECT_WRITE,
                            .dialect = out[0].dialect,
                            .overridden = true,
                            .beside = out[0].op};
    return n + 1;
}
