/* What of a policy can bear on a decision, as bytes: two rules of the same text decide alike. The order of lists is
 * kept, which at worst has a difference looked for that is none. */
#include "cli/policy/diff/diff_parts.h"

static void put(struct dynbuf *b, struct span s)
{
    (void)dynbuf_addf(b, "%zu:", s.n);
    (void)dynbuf_add(b, s);
}

static void put_number(struct dynbuf *b, uint64_t n)
{
    (void)dynbuf_addf(b, "%llu,", (unsigned long long)n);
}

static void put_str(struct dynbuf *b, const struct policy *p, struct img_str s)
{
    put(b, img_span(p, s));
}

static void put_texts(struct dynbuf *b, const struct policy *p, struct img_range r)
{
    put_number(b, r.n);
    for (uint32_t i = 0; i < r.n; i++)
        put(b, img_text(p, r, i));
}

static void put_globs(struct dynbuf *b, const struct policy *p, struct img_range r)
{
    put_number(b, r.n);
    for (uint32_t i = 0; i < r.n; i++)
        put(b, img_glob(p, r, i));
}

static void put_pairs(struct dynbuf *b, const struct policy *p, struct img_range r)
{
    put_number(b, r.n);
    for (uint32_t i = 0; i < r.n; i++) {
        const struct img_pair *v = img_at(p, IMG_PAIR, r.first + i);
        put_str(b, p, v->key);
        put_globs(b, p, v->values);
    }
}

static void put_hosts(struct dynbuf *b, const struct policy *p, struct img_range r)
{
    put_number(b, r.n);
    for (uint32_t i = 0; i < r.n; i++) {
        const struct img_host *h = img_at(p, IMG_HOST, r.first + i);
        put_str(b, p, h->text);
        put_number(b, h->kind);
        put_number(b, h->port);
    }
}

static void put_conds(struct dynbuf *b, const struct policy *p, struct img_range r)
{
    put_number(b, r.n);
    for (uint32_t i = 0; i < r.n; i++) {
        const struct img_cond *c = img_at(p, IMG_COND, r.first + i);
        put_number(b, c->kind);
        put_number(b, c->op);
        put_str(b, p, c->key);
        put_texts(b, p, c->texts);
        put_globs(b, p, c->globs);
        put_number(b, c->number);
    }
}

static void put_match(struct dynbuf *b, const struct policy *p, uint32_t at)
{
    const struct img_match *m = img_at(p, IMG_MATCH, at);
    const uint32_t words[] = {m->schemes,     m->effects,   m->git_force, m->git_delete,
                              m->git_service, m->any_place, m->ws,        m->query_only};
    put_hosts(b, p, m->hosts);
    put_number(b, m->ports.n);
    for (uint32_t i = 0; i < m->ports.n; i++)
        put_number(b, *(const uint32_t *)img_at(p, IMG_PORT, m->ports.first + i));
    put_texts(b, p, m->methods);
    put_globs(b, p, m->paths);
    put_pairs(b, p, m->query);
    put_pairs(b, p, m->header);
    put_globs(b, p, m->ops);
    put_globs(b, p, m->resources);
    put_globs(b, p, m->git_refs);
    put_globs(b, p, m->ws_protocols);
    put_conds(b, p, m->body);
    put_texts(b, p, m->query_names);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        put_number(b, words[i]);
}

static void put_scope(struct dynbuf *b, const struct policy *p, const struct img_scope *s)
{
    put_globs(b, p, s->sandboxes);
    put_pairs(b, p, s->labels);
    put_number(b, s->resident);
    put_texts(b, p, s->regions);
}

static void put_credential(struct dynbuf *b, const struct policy *p, uint32_t at)
{
    const struct img_cred *c = at == IMG_NONE ? NULL : img_at(p, IMG_CRED, at);
    put_number(b, c != NULL);
    if (c == NULL)
        return;
    put_str(b, p, c->name);
    put_number(b, c->only.n);
    for (uint32_t i = 0; i < c->only.n; i++) {
        const struct img_place *l = img_at(p, IMG_PLACE, c->only.first + i);
        put_str(b, p, l->host);
        put_number(b, l->port);
        put_number(b, l->scheme);
        put_globs(b, p, l->path);
    }
}

static void put_terms(struct dynbuf *b, const struct policy *p, const struct img_rule *r)
{
    put_number(b, r->limits.n);
    for (uint32_t i = 0; i < r->limits.n; i++) {
        const struct img_limit *l = img_at(p, IMG_LIMIT, r->limits.first + i);
        put_number(b, l->measure);
        put_number(b, l->per);
        put_str(b, p, l->key);
        put_number(b, l->max);
        put_number(b, l->window_ms);
    }
    put_number(b, r->windows.n);
    for (uint32_t i = 0; i < r->windows.n; i++) {
        const struct img_window *w = img_at(p, IMG_WINDOW, r->windows.first + i);
        const struct img_zone *z = w->zone == IMG_NONE ? NULL : img_at(p, IMG_ZONE, w->zone);
        put_number(b, w->days);
        put_number(b, w->from_min);
        put_number(b, w->to_min);
        put(b, z ? img_span(p, z->name) : SPAN_NONE);
    }
}

static void put_outcome(struct dynbuf *b, const struct policy *p, const struct img_rule *r)
{
    const uint64_t words[] = {r->verdict, r->floor,   r->scoped,   r->reason_required, r->within_ms,
                              r->ws_send, r->ws_max,  r->ws_total, r->ws_within_ms,    r->quorum,
                              r->self,    r->step_up, r->diff};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        put_number(b, words[i]);
    put_credential(b, p, r->credential);
    if (r->approver != IMG_NONE) {
        const struct img_approver *v = img_at(p, IMG_APPROVER, r->approver);
        put_str(b, p, v->name); /* two holds that ask two of them deny, whoever these are */
        put_texts(b, p, v->operators);
        put_texts(b, p, v->groups);
    }
    for (uint32_t i = 0; i < p->n[IMG_ESCALATE]; i++) {
        const struct img_escalate *s = img_at(p, IMG_ESCALATE, i);
        const struct img_approver *v = img_at(p, IMG_APPROVER, s->approver);
        if ((r->escalate >> i & 1) == 0)
            continue;
        put_number(b, s->after_ms);
        put_str(b, p, v->name);
        put_texts(b, p, v->operators);
        put_texts(b, p, v->groups);
    }
    for (uint32_t i = 0; i < p->n[IMG_GATE]; i++) {
        const struct img_gate *g = img_at(p, IMG_GATE, i);
        if ((r->gates >> i & 1) == 0)
            continue;
        put_str(b, p, g->name);
        put_texts(b, p, g->program);
        put_number(b, g->timeout_ms);
        put_number(b, g->kind);
        put_number(b, g->body);
        put_str(b, p, g->url);
        put_str(b, p, g->secret);
        put_number(b, g->api);
        put_str(b, p, g->model);
        put_str(b, p, g->instructions);
        put_credential(b, p, g->credential);
    }
    put_terms(b, p, r);
}

static void put_rule(struct dynbuf *b, const struct policy *p, const struct img_rule *r)
{
    put_str(b, p, r->id);
    put_outcome(b, p, r);
    put_number(b, r->scopes.n);
    for (uint32_t i = 0; i < r->scopes.n; i++)
        put_scope(b, p, img_at(p, IMG_SCOPE, *(const uint32_t *)img_at(p, IMG_SCOPE_REF, r->scopes.first + i)));
    put_match(b, p, r->match.first);
    put_number(b, r->except.n);
    for (uint32_t i = 0; i < r->except.n; i++)
        put_match(b, p, r->except.first + i);
    if (r->over == IMG_NONE)
        return;
    const struct img_rule *hold = img_at(p, IMG_RULE, r->over);
    put_str(b, p, hold->id); /* what is used of its limits is counted under it */
    put_outcome(b, p, hold);
}

struct span *diff_rule_texts(const struct policy *p, struct arena *a)
{
    struct span *v = arena_alloc(a, (p->n[IMG_RULE] + 1) * sizeof(*v));
    for (uint32_t i = 0; v && i < p->n[IMG_RULE]; i++) {
        struct dynbuf b;
        dynbuf_init(&b, 64 << 20);
        put_rule(&b, p, img_at(p, IMG_RULE, i));
        v[i] = arena_keep(a, &b);
        if (v[i].p == NULL)
            v = NULL;
    }
    return v;
}

static void put_pack(struct dynbuf *b, const struct policy *p, const struct img_pack *k)
{
    put_str(b, p, k->name);
    put_hosts(b, p, k->hosts);
    put_number(b, k->keep_slash);
    for (uint32_t i = 0; i < k->ops.n; i++) {
        const struct img_op *o = img_at(p, IMG_OP, k->ops.first + i);
        const struct img_str texts[] = {o->op,    o->query,    o->content_type, o->resource,
                                        o->strip, o->could_op, o->could_method, o->could_path};
        for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
            put_str(b, p, texts[t]);
        put_texts(b, p, o->methods);
        put_globs(b, p, o->path);
        put_number(b, o->effect);
        put_number(b, o->body);
        put_number(b, o->query_rule);
        put_number(b, o->body_max);
    }
    for (uint32_t i = 0; i < k->resources.n; i++) {
        const struct img_resource *r = img_at(p, IMG_RESOURCE, k->resources.first + i);
        put_str(b, p, r->host);
        put_str(b, p, r->text);
    }
}

struct span diff_pack_text(const struct policy *p, const struct img_pack *k, struct arena *a)
{
    struct dynbuf b;
    dynbuf_init(&b, 64 << 20);
    put_pack(&b, p, k);
    return arena_keep(a, &b);
}

struct span diff_around(const struct policy *p, struct span host, struct arena *a)
{
    struct dynbuf b;
    dynbuf_init(&b, 64 << 20);
    put_number(&b, p->head->learning_until_ms);
    for (uint32_t i = 0; i < p->n[IMG_SCOPE]; i++) {
        const struct img_scope *s = img_at(p, IMG_SCOPE, i);
        if (s->resident)
            put_scope(&b, p, s);
    }
    for (uint32_t i = 0; i < p->n[IMG_PACK]; i++) {
        const struct img_pack *k = img_at(p, IMG_PACK, i);
        if (classify_hosts_fit(p, k->hosts, host))
            put_pack(&b, p, k);
    }
    for (uint32_t i = 0; i < p->n[IMG_UPSTREAM]; i++) {
        const struct img_upstream *u = img_at(p, IMG_UPSTREAM, i);
        if (!span_eq(img_span(p, u->host), host))
            continue;
        put_number(&b, u->port);
        put_number(&b, u->cleartext);
        put_str(&b, p, u->region);
    }
    return arena_keep(a, &b);
}
