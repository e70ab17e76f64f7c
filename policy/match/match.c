#include "policy/match/match.h"

#include "policy/image/glob.h"

static struct glob glob_at(const struct policy *p, uint32_t i)
{
    const struct img_glob *g = img_at(p, IMG_GLOB, i);
    return (struct glob){img_span(p, g->text), g->head, g->tail, g->literal, g->deep, g->after};
}

static bool any_glob(const struct policy *p, struct img_range r, struct span s, uint8_t sep, bool fold)
{
    for (uint32_t i = 0; i < r.n; i++) {
        struct glob g = glob_at(p, r.first + i);
        if (glob_match(&g, s, sep, fold))
            return true;
    }
    return false;
}

/* Many servers take "/delete" for "/delete/" (B6). */
static bool fits_bare(struct span text, struct span s)
{
    if (text.n < 2 || text.p[text.n - 1] != '/')
        return false;
    struct glob g = glob_of(span_first(text, text.n - 1), '/');
    return glob_match(&g, s, '/', true);
}

static bool fits_either(struct span pattern, struct span s)
{
    struct glob g = glob_of(pattern, '/');
    return glob_match(&g, s, '/', true) || fits_bare(pattern, s);
}

/* The same, where a pattern may be written in another spelling than the request, too. Without memory it fits. */
static bool any_spelling(const struct ask *k, struct img_range r, struct span s)
{
    bool as_written = k->path.p == k->written.path.p;
    if (any_glob(k->p, r, s, '/', true))
        return true;
    for (uint32_t i = 0; i < r.n; i++) {
        struct span text = glob_at(k->p, r.first + i).text, is, folded;
        if (fits_bare(text, s))
            return true;
        if (as_written && span_index(text, '%') == text.n)
            continue;
        for (int slashes = 0; slashes < 2; slashes++)
            if (path_decoded(text, slashes, k->arena, &is) != 0 || fits_either(is, s))
                return true;
        if (path_folded(is, k->arena, &folded) != 0 || fits_either(folded, s))
            return true;
    }
    return false;
}

static bool path_fits(const struct ask *k, const struct img_match *m, enum strictness how)
{
    struct span s = k->path;
    if (how == AS_WRITTEN)
        return any_glob(k->p, m->paths, k->written.path, '/', false);
    if (any_spelling(k, m->paths, s))
        return true;
    /* Many servers take "/delete/" for "/delete" (B6). */
    return s.n > 1 && s.p[s.n - 1] == '/' && any_spelling(k, m->paths, span_first(s, s.n - 1));
}

static bool resource_fits(const struct ask *k, const struct img_match *m, enum strictness how)
{
    return how == AS_WRITTEN ? any_glob(k->p, m->resources, k->written.resource, '/', false)
                             : any_spelling(k, m->resources, k->resource);
}

static bool scheme_fits(const struct img_match *m, struct span scheme, enum strictness how)
{
    uint32_t bit = span_eq(scheme, SPAN("https")) ? SCHEME_HTTPS : span_eq(scheme, SPAN("http")) ? SCHEME_HTTP : 0;
    if (m->schemes)
        return (m->schemes & bit) != 0;
    return how == ANY_PLACE || m->any_place || bit == SCHEME_HTTPS;
}

static bool port_fits(const struct policy *p, const struct img_match *m, struct span scheme, uint16_t port,
                      enum strictness how)
{
    for (uint32_t i = 0; i < m->ports.n; i++)
        if (*(const uint32_t *)img_at(p, IMG_PORT, m->ports.first + i) == port)
            return true;
    return m->ports.n == 0 && (how == ANY_PLACE || m->any_place || port == classify_default_port(scheme));
}

bool match_names_port(const struct policy *p, const struct img_match *m, struct span scheme, uint16_t port)
{
    return port_fits(p, m, scheme, port, AS_WRITTEN);
}

bool match_names_place(const struct policy *p, const struct img_match *m, struct span scheme, struct span host,
                       uint16_t port, enum strictness how)
{
    bool named = m->hosts.n == 0;
    for (uint32_t i = 0; i < m->hosts.n && !named; i++)
        named = classify_host_fits(p, img_at(p, IMG_HOST, m->hosts.first + i), host);
    return named && scheme_fits(m, scheme, how) && port_fits(p, m, scheme, port, how);
}

bool match_names_op(const struct policy *p, const struct img_match *m, struct span op)
{
    return m->ops.n == 0 || any_glob(p, m->ops, op, '.', false);
}

/* A rule about overrides says so by name. */
static bool names_override(const struct ask *k, const struct img_match *m)
{
    for (uint32_t i = 0; i < m->ops.n; i++)
        if (span_eq(glob_at(k->p, m->ops.first + i).text, SPAN("http.override")))
            return true;
    return false;
}

static bool method_fits(const struct ask *k, const struct img_match *m, enum strictness how)
{
    if (k->overridden && how == AS_WRITTEN && m->methods.n && !names_override(k, m))
        return false;
    for (uint32_t i = 0; i < m->methods.n; i++) {
        const struct img_str *s = img_at(k->p, IMG_STR, m->methods.first + i);
        struct span one = img_span(k->p, *s);
        if (how != AS_WRITTEN ? span_ieq(one, k->method) : span_eq(one, k->method))
            return true;
    }
    return m->methods.n == 0 || (k->overridden && how != AS_WRITTEN);
}

static bool tri_fits(uint32_t want, bool is)
{
    return want == TRI_UNSET || (want == TRI_TRUE) == is;
}

static enum fit git_fits(const struct ask *k, const struct img_match *m, enum strictness how)
{
    if (m->git_service && (m->git_service & k->git_service) == 0)
        return FIT_NO;
    if (m->git_refs.n == 0 && m->git_force == TRI_UNSET && m->git_delete == TRI_UNSET)
        return FIT_YES;
    if (k->push_unknown)
        return FIT_MAYBE;
    if (k->member == NULL)
        return FIT_NO;
    if (m->git_refs.n && !any_glob(k->p, m->git_refs, k->member->ref, '/', how != AS_WRITTEN))
        return FIT_NO;
    return tri_fits(m->git_force, k->member->force) && tri_fits(m->git_delete, k->member->delete) ? FIT_YES : FIT_NO;
}

bool match_is_upgrade(const struct request *r)
{
    for (size_t i = 0; i < r->nfields; i++)
        if (r->fields[i].name.n == 7 && span_ieq(r->fields[i].name, SPAN("upgrade")))
            return true;
    return false;
}

/* The next subprotocol that is offered, over all fields of the name; start with both at nothing. */
static bool next_offer(const struct request *r, size_t *field, struct span *rest, struct span *out)
{
    for (;;) {
        while (rest->n) {
            *out = span_first(*rest, span_index(*rest, ','));
            *rest = span_from(*rest, out->n + 1);
            *out = span_trim(*out);
            if (out->n)
                return true;
        }
        while (*field < r->nfields && !span_ieq(r->fields[*field].name, SPAN("sec-websocket-protocol")))
            ++*field;
        if (*field == r->nfields)
            return false;
        *rest = r->fields[(*field)++].value;
    }
}

/* An upgrade is covered only by a rule that speaks of upgrades; a deny and an exception reach it all the same. */
static enum fit ws_fits(const struct ask *k, const struct img_match *m, enum strictness how)
{
    size_t field = 0;
    struct span rest = SPAN_NONE, offer;
    if (!k->upgrade || !m->ws)
        return (k->upgrade ? how == ANY_PLACE || m->any_place : !m->ws) ? FIT_YES : FIT_NO;
    while (m->ws_protocols.n && next_offer(k->request, &field, &rest, &offer))
        if (any_glob(k->p, m->ws_protocols, offer, 0, how != AS_WRITTEN))
            return FIT_YES;
    return m->ws_protocols.n == 0 ? FIT_YES : k->request->fields_unknown ? FIT_MAYBE : FIT_NO;
}

int match_subprotocols(const struct ask *k, const struct img_match *m, bool all, struct span *out)
{
    struct span rest = SPAN_NONE, offer;
    size_t field = 0, n = 0, max = 0;
    for (size_t i = 0; i < k->request->nfields; i++)
        max += 2 * k->request->fields[i].value.n;
    uint8_t *list = arena_alloc(k->arena, max ? max : 1);
    if (list == NULL)
        return -1;
    while (next_offer(k->request, &field, &rest, &offer)) {
        if (m->ws_protocols.n ? !any_glob(k->p, m->ws_protocols, offer, 0, false) : !all)
            continue;
        if (n)
            list[n++] = ',';
        if (n)
            list[n++] = ' ';
        memcpy(list + n, offer.p, offer.n);
        n += offer.n;
    }
    *out = span_of(list, n);
    return 0;
}

/* A rule about upgrades may say that this one is a read; a deny of reads means it too. All others do not fit. */
static bool effect_fits(const struct ask *k, const struct img_match *m, enum strictness how)
{
    uint32_t is = 1u << (how == AS_WRITTEN ? k->written.effect : k->effect);
    if (how == AS_WRITTEN ? k->written.lifted : k->lifted)
        is |= 1u << EFFECT_READ;
    if (k->overridden)
        is |= 1u << EFFECT_WRITE | 1u << EFFECT_DELETE;
    if (k->overridden && how == AS_WRITTEN && !names_override(k, m))
        return m->effects == 0 || (m->effects & is) == is;
    return m->effects == 0 || (m->effects & is) != 0;
}

/* Asked last: it may parse the body, which all before it did not need. */
static enum fit conds_fit(const struct ask *k, const struct img_match *m, enum strictness how)
{
    enum fit fit = FIT_YES;
    for (uint32_t i = 0; i < m->body.n && fit != FIT_NO; i++) {
        const struct img_cond *c = img_at(k->p, IMG_COND, m->body.first + i);
        enum fit one = body_fits(k->body, k->p, c, k->request, how == AS_WRITTEN, k->arena);
        fit = one < fit ? one : fit;
    }
    return fit;
}

enum fit match_fits(const struct ask *k, const struct img_match *m, enum strictness how)
{
    const struct request *r = k->request;
    enum fit w = ws_fits(k, m, how);
    if (w == FIT_NO || !effect_fits(k, m, how))
        return FIT_NO;
    if (!match_names_place(k->p, m, r->scheme, r->host, r->port, how) || !method_fits(k, m, how))
        return FIT_NO;
    if (m->paths.n && !path_fits(k, m, how))
        return FIT_NO;
    bool any_op = k->overridden && how != AS_WRITTEN; /* nobody can say which */
    if (!any_op && !match_names_op(k->p, m, how == AS_WRITTEN ? k->written.op : k->op))
        return FIT_NO;
    if (m->resources.n && !any_op && !resource_fits(k, m, how))
        return FIT_NO;
    enum fit a = pairs_fit(k, m, how == AS_WRITTEN);
    enum fit b = a == FIT_NO ? FIT_NO : git_fits(k, m, how);
    enum fit c = b == FIT_NO ? FIT_NO : conds_fit(k, m, how);
    a = a < b ? a : b;
    a = a < w ? a : w;
    return a < c ? a : c;
}

bool match_label(const struct policy *p, const struct subject *s, const struct img_pair *want)
{
    for (size_t i = 0; i < s->nlabels; i++)
        if (span_eq(s->labels[i].key, img_span(p, want->key)) &&
            any_glob(p, want->values, s->labels[i].value, 0, false))
            return true;
    return false;
}

bool match_one_scope(const struct policy *p, const struct subject *s, const struct img_scope *c)
{
    if (c->sandboxes.n && !any_glob(p, c->sandboxes, s->sandbox, 0, false))
        return false;
    for (uint32_t i = 0; i < c->labels.n; i++)
        if (!match_label(p, s, img_at(p, IMG_PAIR, c->labels.first + i)))
            return false;
    return true;
}

bool match_scope(const struct policy *p, const struct subject *s, const struct img_rule *r)
{
    for (uint32_t i = 0; i < r->scopes.n; i++) {
        uint32_t at = *(const uint32_t *)img_at(p, IMG_SCOPE_REF, r->scopes.first + i);
        if (match_one_scope(p, s, img_at(p, IMG_SCOPE, at)))
            return true;
    }
    return !r->scoped;
}
