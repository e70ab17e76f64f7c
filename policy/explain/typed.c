/* The operations that the rules of one subject let through, one by one. What a deny is about wholly is left out, and
 * what a hold is about wholly is held, where that can be seen from the rules alone: the order of the decision. */
#include "policy/explain/typed.h"

#include <stdlib.h>

#include "policy/image/glob.h"
#include "policy/match/capture.h"

enum { STRICTER_MAX = 256, TEXT_MAX = 8 * 1024 };

struct collect {
    const struct policy *p;
    const struct manifest_want *want;
    struct arena *a;
    struct typed *out;
    uint32_t stricter[STRICTER_MAX]; /* rules that deny or hold, and ask for nothing that is not compared here */
    size_t nstricter;
};

/* ---- does another rule decide all of it? ---- */

static bool is_plain(const struct img_rule *r, const struct img_match *m)
{
    return r->verdict != VERDICT_ALLOW && r->except.n == 0 && r->windows.n == 0 && m->resources.n == 0 &&
           m->query.n == 0 && !m->query_only && m->header.n == 0 && m->git_refs.n == 0 && m->git_force == TRI_UNSET &&
           m->git_delete == TRI_UNSET && m->git_service == 0 && m->body.n == 0 && !m->ws;
}

static bool host_covers(const struct policy *p, const struct img_host *h, struct span host)
{
    struct span base = span_from(host, span_index(host, '.') + 1), text = img_span(p, h->text);
    if (host.n == 0 || host.p[0] != '*')
        return classify_host_fits(p, h, host);
    bool deep = span_starts(host, SPAN("**."));
    if (span_eq(base, text))
        return h->kind == HOST_ANY_LABELS || (h->kind == HOST_ONE_LABEL && !deep);
    return h->kind == HOST_ANY_LABELS && classify_host_fits(p, h, base);
}

static bool has_text(const struct policy *p, struct img_range texts, struct span s)
{
    for (uint32_t i = 0; i < texts.n; i++)
        if (span_eq(img_text(p, texts, i), s))
            return true;
    return texts.n == 0;
}

static bool place_covers(const struct policy *p, const struct img_match *m, bool denies, const struct typed_op *e)
{
    struct span scheme = e->scheme == SCHEME_HTTPS ? SPAN("https") : SPAN("http");
    uint32_t schemes = m->schemes || denies ? m->schemes : SCHEME_HTTPS;
    bool host = m->hosts.n == 0;
    for (uint32_t i = 0; i < m->hosts.n && !host; i++)
        host = host_covers(p, img_at(p, IMG_HOST, m->hosts.first + i), e->host);
    return host && (schemes == 0 || (schemes & e->scheme)) &&
           ((denies && m->ports.n == 0) || match_names_port(p, m, scheme, e->port));
}

static bool covers(const struct policy *p, const struct img_rule *r, const struct typed_op *e)
{
    const struct img_match *m = img_at(p, IMG_MATCH, r->match.first);
    bool denies = r->verdict == VERDICT_DENY, path = m->paths.n == 0;
    if (!place_covers(p, m, denies, e) || !has_text(p, m->methods, e->method) || (!denies && e->match->ws))
        return false;
    if (m->effects && (e->effects == 0 || (e->effects & ~m->effects)))
        return false;
    if (m->ops.n && (e->op == NULL || !match_names_op(p, m, img_span(p, e->op->op))))
        return false;
    for (uint32_t i = 0; i < m->paths.n && !path; i++)
        path = glob_covers(img_glob(p, m->paths, i), e->glob, '/');
    return path;
}

static void find_stricter(struct collect *c)
{
    for (uint32_t i = 0; i < c->p->n[IMG_RULE] && c->nstricter < STRICTER_MAX; i++) {
        const struct img_rule *r = img_at(c->p, IMG_RULE, i);
        if (is_plain(r, img_at(c->p, IMG_MATCH, r->match.first)) && match_scope(c->p, c->want->subject, r))
            c->stricter[c->nstricter++] = i;
    }
}

static enum verdict verdict_of(const struct collect *c, const struct typed_op *e)
{
    enum verdict v = (enum verdict)e->rule->verdict;
    for (size_t i = 0; i < c->nstricter && v != VERDICT_DENY; i++) {
        const struct img_rule *r = img_at(c->p, IMG_RULE, c->stricter[i]);
        if ((enum verdict)r->verdict < v && e->rule->over != c->stricter[i] && covers(c->p, r, e))
            v = (enum verdict)r->verdict;
    }
    return v;
}

/* ---- one template ---- */

/* Names of a policy have no capitals, so that these are none of them. */
static void add_place(struct dynbuf *path, struct dynbuf *shape, struct span name, bool deep, unsigned n)
{
    if (name.n)
        (void)dynbuf_addf(path, "{%.*s}", SPAN_FMT(name));
    else
        (void)dynbuf_addf(path, deep ? "{+pathRest%u}" : "{pathPart%u}", n);
    (void)dynbuf_add(shape, SPAN("{}"));
}

static void add_segment(struct dynbuf *path, struct dynbuf *shape, struct span s, unsigned *n)
{
    struct span name = SPAN_NONE;
    bool deep = span_eq(s, SPAN("**"));
    if (deep || capture_segment(s, &name)) {
        add_place(path, shape, name, deep, ++*n);
        return;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '*') {
            add_place(path, shape, SPAN_NONE, false, ++*n);
        } else { /* a brace would be a name's */
            dynbuf_add_percent(path, span_of(s.p + i, 1), "-._~!$&'()+,;=:@%");
            dynbuf_add_percent(shape, span_of(s.p + i, 1), "-._~!$&'()+,;=:@%");
        }
    }
}

/* Of a pattern, or of what the rule wrote in its place. False: no memory. */
static bool make_template(struct collect *c, struct span written, struct typed_op *e)
{
    struct dynbuf path, shape;
    unsigned n = 0;
    dynbuf_init(&path, TEXT_MAX);
    dynbuf_init(&shape, TEXT_MAX);
    for (struct span rest = span_from(written, 1); rest.n || n == 0;) {
        struct span one = span_first(rest, span_index(rest, '/'));
        (void)dynbuf_add_byte(&path, '/');
        (void)dynbuf_add_byte(&shape, '/');
        add_segment(&path, &shape, one, &n);
        bool ends = one.n == rest.n;
        rest = span_from(rest, one.n + 1);
        if (ends)
            break;
    }
    e->path = arena_keep(c->a, &path);
    e->shape = arena_keep(c->a, &shape);
    return e->path.p && e->shape.p;
}

bool typed_param(struct span path, size_t *at, struct span *name, bool *deep)
{
    for (size_t i = *at; i < path.n; i++) {
        if (path.p[i] != '{')
            continue;
        *deep = i + 1 < path.n && path.p[i + 1] == '+';
        *name = span_from(path, i + 1 + *deep);
        *name = span_first(*name, span_index(*name, '}'));
        *at = i + 1;
        return true;
    }
    return false;
}

/* ---- every place of a rule ---- */

static void add_op(struct collect *c, const struct typed_op *e)
{
    if (c->out->n == TYPED_MAX) {
        c->out->left++;
        return;
    }
    enum verdict v = verdict_of(c, e);
    if (v == VERDICT_DENY)
        return;
    struct typed_op *to = &c->out->v[c->out->n++];
    *to = *e;
    to->verdict = v;
}

static void add_ports(struct collect *c, struct typed_op *e)
{
    static const uint32_t schemes[] = {SCHEME_HTTPS, SCHEME_HTTP};
    const struct img_match *m = e->match;
    for (size_t i = 0; i < 2; i++) {
        struct span name = schemes[i] == SCHEME_HTTPS ? SPAN("https") : SPAN("http");
        uint16_t usual = classify_default_port(name);
        struct span host = e->host.p[0] == '*' ? SPAN("{hostName}") : e->host;
        if (((m->schemes ? m->schemes : SCHEME_HTTPS) & schemes[i]) == 0)
            continue;
        for (uint32_t k = 0; k < (m->ports.n ? m->ports.n : 1); k++) {
            e->scheme = schemes[i];
            e->port = m->ports.n ? (uint16_t) * (const uint32_t *)img_at(c->p, IMG_PORT, m->ports.first + k) : usual;
            e->origin = e->port == usual
                            ? arena_printf(c->a, "%.*s://%.*s", SPAN_FMT(name), SPAN_FMT(host))
                            : arena_printf(c->a, "%.*s://%.*s:%u", SPAN_FMT(name), SPAN_FMT(host), e->port);
            if (e->pack && !classify_pack_fits(c->p, e->pack, name, e->host, e->port))
                continue;
            if (e->origin.p)
                add_op(c, e);
            else
                c->out->left++;
        }
    }
}

struct at_host {
    struct collect *c;
    struct typed_op *e;
};

static void add_host(void *arg, struct span host)
{
    struct at_host *at = arg;
    at->e->host = host;
    if (host.n)
        add_ports(at->c, at->e);
}

static void add_hosts(struct collect *c, struct typed_op *e)
{
    struct at_host at = {c, e};
    static const char *const before[] = {[HOST_EXACT] = "", [HOST_ONE_LABEL] = "*.", [HOST_ANY_LABELS] = "**."};
    if (manifest_within(c->p, c->want->subject, e->rule)) {
        (void)manifest_reached(c->p, e->match, c->want->subject, add_host, &at);
        return;
    }
    for (uint32_t i = 0; i < e->match->hosts.n; i++) {
        const struct img_host *h = img_at(c->p, IMG_HOST, e->match->hosts.first + i);
        struct span text = img_span(c->p, h->text);
        if (c->want->host.n && !classify_host_fits(c->p, h, c->want->host))
            continue;
        if (c->want->host.n)
            text = c->want->host;
        else if (h->kind != HOST_EXACT)
            text = arena_printf(c->a, "%s%.*s", before[h->kind], SPAN_FMT(text));
        add_host(&at, text);
    }
}

/* Where a rule says nothing of methods: those that are usual for what it lets be done. */
static const struct {
    struct span name;
    uint32_t effects;
} usual[] = {{SPAN("GET"), 1u << EFFECT_READ},
             {SPAN("HEAD"), 1u << EFFECT_READ},
             {SPAN("POST"), ~(1u << EFFECT_READ | 1u << EFFECT_DELETE)},
             {SPAN("PUT"), ~(1u << EFFECT_READ | 1u << EFFECT_DELETE)},
             {SPAN("PATCH"), ~(1u << EFFECT_READ | 1u << EFFECT_DELETE)},
             {SPAN("DELETE"), ~(1u << EFFECT_READ | 1u << EFFECT_WRITE)}};

static void add_methods(struct collect *c, struct typed_op *e)
{
    struct img_range own = e->match->methods, packs = {0, 0};
    if (e->op)
        packs = e->op->methods;
    if (own.n == 0)
        own = packs;
    for (uint32_t i = 0; i < own.n; i++) {
        e->method = img_text(c->p, own, i);
        if (has_text(c->p, packs, e->method))
            add_hosts(c, e);
    }
    for (size_t i = 0; own.n == 0 && i < sizeof(usual) / sizeof(usual[0]); i++) {
        struct typed_op one = *e;
        one.method = usual[i].name;
        one.effects &= usual[i].effects;
        if (e->match->ws ? i == 0 : e->effects == 0 || one.effects)
            add_hosts(c, &one);
    }
}

/* Is there a path that fits both? Of what stands for a part of a segment it is enough that it might. */
static bool globs_meet(struct span a, struct span b, unsigned depth)
{
    if (a.n == 0 || b.n == 0 || depth == 0)
        return span_eq(a, b) || span_eq(a.n ? a : b, SPAN("/**")) || depth == 0;
    struct span x = span_from(a, 1), y = span_from(b, 1);
    x = span_first(x, span_index(x, '/'));
    y = span_first(y, span_index(y, '/'));
    struct span after_a = span_from(a, 1 + x.n), after_b = span_from(b, 1 + y.n);
    if (span_eq(x, SPAN("**")))
        return globs_meet(after_a, b, depth - 1) || globs_meet(a, after_b, depth - 1);
    if (span_eq(y, SPAN("**")))
        return globs_meet(a, after_b, depth - 1) || globs_meet(after_a, b, depth - 1);
    bool wild = span_index(x, '*') < x.n || span_index(y, '*') < y.n;
    return (wild || span_eq(x, y)) && globs_meet(after_a, after_b, depth - 1);
}

static void add_paths(struct collect *c, struct typed_op *e)
{
    struct span packs = e->op && e->op->path.n ? img_glob(c->p, e->op->path, 0) : SPAN_NONE;
    struct img_range own = e->match->paths;
    for (uint32_t i = 0; i < (own.n ? own.n : 1); i++) {
        struct span mine = own.n ? img_glob(c->p, own, i) : SPAN_NONE, written = mine;
        if (own.n && e->match->written.n)
            written = img_text(c->p, e->match->written, i);
        if (mine.n && packs.n && !globs_meet(mine, packs, 12))
            continue;
        if (c->out->n == TYPED_MAX) {
            c->out->left++; /* at least one: no more than that is worth the time */
            continue;
        }
        e->narrower = mine.n && packs.n && !glob_covers(packs, mine, '/');
        e->glob = mine.n && !e->narrower ? mine : packs.n ? packs : SPAN("/**");
        if (make_template(c, mine.n && !e->narrower ? written : e->glob, e))
            add_methods(c, e);
        else
            c->out->left++;
    }
}

static struct span without_slash(struct span path)
{
    return path.n > 1 && path.p[path.n - 1] == '/' ? span_first(path, path.n - 1) : path;
}

/* A row that says of requests which only look like another row's that they are as those: with a slash more at the
 * end, or with any method. */
static bool is_lookalike(const struct policy *p, const struct img_pack *k, const struct img_op *op)
{
    struct span path = img_glob(p, op->path, 0), bare = without_slash(path);
    for (uint32_t i = 0; i < k->ops.n; i++) {
        const struct img_op *other = img_at(p, IMG_OP, k->ops.first + i);
        if (other->effect == op->effect && span_eq(img_span(p, other->op), img_span(p, op->op)) &&
            span_eq(img_glob(p, other->path, 0), bare) &&
            (path.n > bare.n || (op->methods.n == 0 && other->methods.n)))
            return true;
    }
    return false;
}

struct at_op {
    struct collect *c;
    struct typed_op *e;
};

static void add_pack_op(void *arg, const struct img_pack *k, const struct img_op *op)
{
    struct at_op *at = arg;
    struct typed_op *e = at->e;
    e->pack = k;
    e->op = op;
    e->effects = 1u << op->effect;
    if ((e->match->effects == 0 || (e->match->effects & e->effects)) && !is_lookalike(at->c->p, k, op))
        add_paths(at->c, e);
}

static void add_rule(struct collect *c, uint32_t index)
{
    const struct img_rule *r = img_at(c->p, IMG_RULE, index);
    const struct img_match *m = img_at(c->p, IMG_MATCH, r->match.first);
    struct typed_op e = {.index = index, .rule = r, .match = m, .effects = m->effects};
    struct at_op at = {c, &e};
    if (r->verdict == VERDICT_DENY || !manifest_wanted(c->p, c->want, r))
        return;
    if (m->ops.n == 0)
        add_paths(c, &e);
    manifest_ops(c->p, m, add_pack_op, &at);
}

/* ---- their order ---- */

/* What says that a part is deep goes before names, and names of a rule before those that are made here. */
static int rank(struct span path)
{
    bool deep = span_find(path, SPAN("{+")) < path.n, made = span_find(path, SPAN("{pathPart")) < path.n;
    return deep ? 0 : made ? 2 : 1;
}

static int by_shape(const void *one, const void *other)
{
    const struct typed_op *a = one, *b = other;
    int d = span_cmp(a->shape, b->shape);
    d = d ? d : rank(a->path) - rank(b->path);
    return d ? d : span_cmp(a->path, b->path);
}

static int in_order(const void *one, const void *other)
{
    const struct typed_op *a = one, *b = other;
    int d = span_cmp(a->shape, b->shape);
    d = d ? d : span_cmp(a->method, b->method);
    d = d ? d : span_cmp(a->origin, b->origin);
    d = d ? d : span_cmp(a->host, b->host);
    d = d ? d : (int)a->verdict - (int)b->verdict;
    d = d ? d : (a->index > b->index) - (a->index < b->index);
    return d ? d : (a->op > b->op) - (a->op < b->op);
}

void typed_collect(const struct policy *p, const struct manifest_want *want, struct arena *a, struct typed *out)
{
    struct collect c = {.p = p, .want = want, .a = a, .out = out};
    *out = (struct typed){.v = arena_alloc(a, TYPED_MAX * sizeof(*out->v))};
    if (out->v == NULL) {
        out->left = p->n[IMG_RULE];
        return;
    }
    find_stricter(&c);
    for (uint32_t i = 0; i < p->n[IMG_RULE]; i++)
        add_rule(&c, i);
    qsort(out->v, out->n, sizeof(*out->v), by_shape);
    for (size_t i = 1; i < out->n; i++) /* of one shape one template: the first, in which what is deep is said so */
        if (span_eq(out->v[i].shape, out->v[i - 1].shape))
            out->v[i].path = out->v[i - 1].path;
    qsort(out->v, out->n, sizeof(*out->v), in_order);
}
