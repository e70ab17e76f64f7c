/* The rules of one subject as JSON: something to generate requests against. */
#include "policy/explain/typed.h"

enum { ONE_MAX = 64 * 1024 };

static void put_strs(const struct policy *p, struct jsonw *w, const char *key, struct img_range r)
{
    if (r.n == 0)
        return;
    jsonw_kv_array(w, key);
    for (uint32_t i = 0; i < r.n; i++)
        jsonw_string(w, img_text(p, r, i));
    jsonw_end_array(w);
}

static void put_globs(const struct policy *p, struct jsonw *w, const char *key, struct img_range r)
{
    if (r.n == 0)
        return;
    jsonw_kv_array(w, key);
    for (uint32_t i = 0; i < r.n; i++)
        jsonw_string(w, img_glob(p, r, i));
    jsonw_end_array(w);
}

static void put_pairs(const struct policy *p, struct jsonw *w, const char *key, struct img_range r)
{
    if (r.n == 0)
        return;
    jsonw_kv_array(w, key);
    for (uint32_t i = 0; i < r.n; i++) {
        const struct img_pair *one = img_at(p, IMG_PAIR, r.first + i);
        jsonw_object(w);
        jsonw_kv(w, "name", img_span(p, one->key));
        put_globs(p, w, "value", one->values);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void put_host(const struct policy *p, struct jsonw *w, const struct img_host *h)
{
    static const char *const before[] = {[HOST_EXACT] = "", [HOST_ONE_LABEL] = "*.", [HOST_ANY_LABELS] = "**."};
    char text[HTTP_HOST_MAX + 4];
    struct span name = span_first(img_span(p, h->text), HTTP_HOST_MAX);
    size_t n = strlen(before[h->kind]);
    memcpy(text, before[h->kind], n);
    if (name.n)
        memcpy(text + n, name.p, name.n);
    jsonw_string(w, span_of(text, n + name.n));
}

bool manifest_reached(const struct policy *p, const struct img_match *m, const struct subject *s,
                      manifest_host_fn *fn, void *arg)
{
    bool any = false;
    for (uint32_t i = 0; i < m->hosts.n && (fn || !any); i++) {
        const struct img_host *h = img_at(p, IMG_HOST, m->hosts.first + i);
        struct span last = SPAN_NONE, host = img_span(p, h->text);
        if (h->kind == HOST_EXACT && region_lets(p, s, m, host)) {
            any = true;
            if (fn)
                fn(arg, host);
        }
        for (uint32_t u = 0; h->kind != HOST_EXACT && u < p->n[IMG_UPSTREAM] && (fn || !any); u++) {
            host = img_span(p, ((const struct img_upstream *)img_at(p, IMG_UPSTREAM, u))->host);
            if (span_eq(host, last) || !classify_host_fits(p, h, host) || !region_lets(p, s, m, host))
                continue;
            last = host; /* the next entry may be another port of it */
            any = true;
            if (fn)
                fn(arg, host);
        }
    }
    return any;
}

static void put_reached(void *w, struct span host)
{
    jsonw_string(w, host);
}

/* within: of whom only the hosts count that it may reach; NULL: all. */
static void put_hosts(const struct policy *p, struct jsonw *w, const struct img_match *m,
                      const struct subject *within)
{
    if (m->hosts.n) {
        jsonw_kv_array(w, "host");
        if (within)
            (void)manifest_reached(p, m, within, put_reached, w);
        for (uint32_t i = 0; i < m->hosts.n && within == NULL; i++)
            put_host(p, w, img_at(p, IMG_HOST, m->hosts.first + i));
        jsonw_end_array(w);
    }
    if (m->ports.n) {
        jsonw_kv_array(w, "port");
        for (uint32_t i = 0; i < m->ports.n; i++)
            jsonw_u64(w, *(const uint32_t *)img_at(p, IMG_PORT, m->ports.first + i));
        jsonw_end_array(w);
    }
    if (m->schemes == 0)
        return;
    jsonw_kv_array(w, "scheme");
    if (m->schemes & SCHEME_HTTPS)
        jsonw_string(w, SPAN("https"));
    if (m->schemes & SCHEME_HTTP)
        jsonw_string(w, SPAN("http"));
    jsonw_end_array(w);
}

static void put_effects(struct jsonw *w, uint32_t effects)
{
    if (effects == 0)
        return;
    jsonw_kv_array(w, "effect");
    for (unsigned e = EFFECT_READ; e <= EFFECT_EXEC; e++)
        if (effects & 1u << e)
            jsonw_string(w, span_str(effect_name((enum effect)e)));
    jsonw_end_array(w);
}

static void put_tri(struct jsonw *w, const char *key, uint32_t v)
{
    if (v == TRI_UNSET)
        return;
    jsonw_kv_bool(w, key, v == TRI_TRUE);
}

static void put_git(const struct policy *p, struct jsonw *w, const struct img_match *m)
{
    if (m->git_refs.n == 0 && m->git_force == TRI_UNSET && m->git_delete == TRI_UNSET && m->git_service == 0)
        return;
    jsonw_kv_object(w, "git");
    put_globs(p, w, "refs", m->git_refs);
    put_tri(w, "force", m->git_force);
    put_tri(w, "delete", m->git_delete);
    if (m->git_service) {
        jsonw_kv_array(w, "service");
        if (m->git_service & GIT_UPLOAD_PACK)
            jsonw_string(w, SPAN("upload-pack"));
        if (m->git_service & GIT_RECEIVE_PACK)
            jsonw_string(w, SPAN("receive-pack"));
        jsonw_end_array(w);
    }
    jsonw_end_object(w);
}

static void put_cond(const struct policy *p, struct jsonw *w, const struct img_cond *c)
{
    const char *key = body_parsers[c->kind].key;
    struct span is = img_span(p, c->key);
    if (c->kind == COND_MULTIPART)
        key = body_multipart_asks(is, &is);
    jsonw_object(w);
    jsonw_kv(w, key, is);
    put_strs(p, w, "in", c->texts);
    put_globs(p, w, "glob", c->globs);
    if (c->op == COND_AT_MOST)
        jsonw_kv_u64(w, "int_lte", c->number);
    if (c->op == COND_AT_LEAST)
        jsonw_kv_u64(w, "int_gte", c->number);
    if (c->op == COND_EXISTS || c->op == COND_ABSENT)
        jsonw_kv_bool(w, c->op == COND_EXISTS ? "exists" : "absent", true);
    jsonw_end_object(w);
}

/* Names, and pointers with what is asked of them. */
static void put_asked(const struct policy *p, struct jsonw *w, struct img_range r, const char *pointers)
{
    static const char *const names[] = {"type", "operation", "fields", "persisted", "method", "tool"};
    bool some = false;
    jsonw_object(w);
    for (uint32_t i = 0; i < r.n; i++) {
        const struct img_cond *c = img_at(p, IMG_COND, r.first + i);
        bool name = false;
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
            if (span_eq(img_span(p, c->key), span_str(names[k]))) {
                put_strs(p, w, names[k], c->texts);
                put_globs(p, w, names[k], c->globs);
                name = true;
            }
        if (name)
            continue;
        if (!some)
            jsonw_kv_array(w, pointers);
        some = true;
        put_cond(p, w, c);
    }
    if (some)
        jsonw_end_array(w);
    jsonw_end_object(w);
}

/* A body has conditions of one kind: the loader takes no rule with both. */
static void put_body(const struct policy *p, struct jsonw *w, const struct img_match *m)
{
    if (m->body.n == 0)
        return;
    uint32_t kind = ((const struct img_cond *)img_at(p, IMG_COND, m->body.first))->kind;
    jsonw_key(w, body_parsers[kind].name);
    if (body_parsers[kind].look != NULL) {
        put_asked(p, w, m->body, kind == COND_GRAPHQL ? "arguments" : "params");
        return;
    }
    jsonw_array(w);
    for (uint32_t i = 0; i < m->body.n; i++)
        put_cond(p, w, img_at(p, IMG_COND, m->body.first + i));
    jsonw_end_array(w);
}

static void put_match(const struct policy *p, struct jsonw *w, const struct img_match *m,
                      const struct subject *within)
{
    jsonw_object(w);
    put_hosts(p, w, m, within);
    put_strs(p, w, "method", m->methods);
    if (m->written.n)
        put_strs(p, w, "path", m->written);
    else
        put_globs(p, w, "path", m->paths);
    put_globs(p, w, "op", m->ops);
    put_effects(w, m->effects);
    put_globs(p, w, "resource", m->resources);
    put_pairs(p, w, "query", m->query);
    if (m->query_only) {
        jsonw_kv_bool(w, "no_other_query", true);
        put_strs(p, w, "query_names", m->query_names);
    }
    put_pairs(p, w, "header", m->header);
    put_git(p, w, m);
    put_body(p, w, m);
    if (m->ws) {
        jsonw_kv_object(w, "websocket");
        put_globs(p, w, "subprotocol", m->ws_protocols);
        jsonw_end_object(w);
    }
    jsonw_end_object(w);
}

static void put_limits(const struct policy *p, struct jsonw *w, const struct img_rule *r)
{
    static const char *const per[LIMIT_PERS] = {
        [LIMIT_PER_SANDBOX] = "sandbox", [LIMIT_PER_SESSION] = "session", [LIMIT_PER_ALL] = "all"};
    if (r->limits.n == 0)
        return;
    jsonw_kv_array(w, "limits");
    for (uint32_t i = 0; i < r->limits.n; i++) {
        const struct img_limit *l = img_at(p, IMG_LIMIT, r->limits.first + i);
        jsonw_object(w);
        if (l->measure == LIMIT_REQUESTS)
            jsonw_kv(w, "of", SPAN("requests"));
        else
            jsonw_kv(w, l->measure == LIMIT_FORM ? "field" : "pointer", img_span(p, l->key));
        jsonw_kv_u64(w, "max", l->max);
        jsonw_kv_u64(w, "every_seconds", l->window_ms / 1000);
        jsonw_kv(w, "per", span_str(per[l->per]));
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_kv(w, "past_limit", r->over == IMG_NONE ? SPAN("deny") : SPAN("hold"));
}

static void put_windows(const struct policy *p, struct jsonw *w, const struct img_rule *r)
{
    static const char *const days[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
    if (r->windows.n == 0)
        return;
    jsonw_kv_array(w, "when");
    for (uint32_t i = 0; i < r->windows.n; i++) {
        const struct img_window *v = img_at(p, IMG_WINDOW, r->windows.first + i);
        const struct img_zone *z = img_at(p, IMG_ZONE, v->zone);
        jsonw_object(w);
        jsonw_kv_array(w, "days");
        for (unsigned d = 0; d < 7; d++)
            if (v->days & 1u << d)
                jsonw_string(w, span_str(days[d]));
        jsonw_end_array(w);
        jsonw_kv_u64(w, "from_minute", v->from_min);
        jsonw_kv_u64(w, "to_minute", v->to_min);
        jsonw_kv(w, "zone", img_span(p, z->name));
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static bool shares_host(const struct policy *p, const struct img_pack *k, const struct img_match *m)
{
    for (uint32_t i = 0; i < m->hosts.n; i++) {
        const struct img_host *h = img_at(p, IMG_HOST, m->hosts.first + i);
        if (h->kind == HOST_EXACT && k->hosts.n && classify_hosts_fit(p, k->hosts, img_span(p, h->text)))
            return true;
    }
    return false;
}

void manifest_ops(const struct policy *p, const struct img_match *m, manifest_op_fn *fn, void *arg)
{
    for (uint32_t i = 0; i < p->n[IMG_PACK]; i++) {
        const struct img_pack *k = img_at(p, IMG_PACK, i);
        if (m->ops.n == 0 && (m->effects == 0 || m->ws || !shares_host(p, k, m)))
            continue;
        for (uint32_t o = 0; o < k->ops.n; o++) {
            const struct img_op *op = img_at(p, IMG_OP, k->ops.first + o);
            bool effect = m->effects == 0 || (m->effects & 1u << op->effect);
            if (m->ops.n ? match_names_op(p, m, img_span(p, op->op)) : effect)
                fn(arg, k, op);
        }
    }
}

struct putting {
    const struct policy *p;
    struct jsonw *w;
    bool some;
};

static void put_operation(void *arg, const struct img_pack *k, const struct img_op *o)
{
    struct putting *to = arg;
    if (!to->some)
        jsonw_kv_array(to->w, "operations");
    to->some = true;
    jsonw_object(to->w);
    jsonw_kv(to->w, "op", img_span(to->p, o->op));
    jsonw_kv(to->w, "effect", span_str(effect_name((enum effect)o->effect)));
    put_strs(to->p, to->w, "method", o->methods);
    put_globs(to->p, to->w, "path", o->path);
    jsonw_end_object(to->w);
}

static void put_operations(const struct policy *p, struct jsonw *w, const struct img_match *m)
{
    struct putting to = {p, w, false};
    manifest_ops(p, m, put_operation, &to);
    if (to.some)
        jsonw_end_array(w);
}

const struct subject *manifest_within(const struct policy *p, const struct subject *s, const struct img_rule *r)
{
    return r->verdict != VERDICT_DENY && region_keeps_out(p, s, SPAN_NONE, 0) ? s : NULL;
}

static void put_rule(const struct policy *p, const struct img_rule *r, const struct manifest_want *want,
                     struct jsonw *w)
{
    const struct img_match *m = img_at(p, IMG_MATCH, r->match.first);
    jsonw_object(w);
    jsonw_kv(w, "decision", span_str(verdict_name((enum verdict)r->verdict)));
    if (want->ids)
        jsonw_kv(w, "rule", img_span(p, r->id));
    jsonw_key(w, "request");
    put_match(p, w, m, manifest_within(p, want->subject, r));
    put_operations(p, w, m);
    if (r->except.n) {
        jsonw_kv_array(w, "except");
        for (uint32_t i = 0; i < r->except.n; i++)
            put_match(p, w, img_at(p, IMG_MATCH, r->except.first + i), NULL);
        jsonw_end_array(w);
    }
    if (r->verdict != VERDICT_DENY)
        jsonw_kv_bool(w, "credential_added", r->credential != IMG_NONE);
    if (r->verdict == VERDICT_HOLD && r->within_ms)
        jsonw_kv_u64(w, "ticket_lives_seconds", r->within_ms / 1000);
    put_limits(p, w, r);
    put_windows(p, w, r);
    if (!when_in_force(p, r, want->now_ms))
        jsonw_kv_bool(w, "in_force", false);
    if (r->say.n)
        jsonw_kv(w, "say", img_span(p, r->say));
    if (r->instead.n)
        jsonw_kv(w, "instead", img_span(p, r->instead));
    jsonw_end_object(w);
}

bool manifest_wanted(const struct policy *p, const struct manifest_want *want, const struct img_rule *r)
{
    const struct img_match *m = img_at(p, IMG_MATCH, r->match.first);
    if (!match_scope(p, want->subject, r))
        return false;
    bool named = want->host.n == 0 || classify_hosts_fit(p, m->hosts, want->host);
    return named &&
           (manifest_within(p, want->subject, r) == NULL || manifest_reached(p, m, want->subject, NULL, NULL));
}

size_t policy_manifest(const struct policy *p, const struct manifest_want *want, struct jsonw *w)
{
    size_t left = 0, room = want->room;
    jsonw_array(w);
    for (uint32_t i = 0; i < p->n[IMG_RULE]; i++) {
        const struct img_rule *r = img_at(p, IMG_RULE, i);
        struct dynbuf one;
        struct jsonw own;
        if (!manifest_wanted(p, want, r))
            continue;
        dynbuf_init(&one, ONE_MAX);
        jsonw_begin(&own, &one);
        put_rule(p, r, want, &own);
        if (dynbuf_ok(&one) && one.n + 1 <= room) {
            jsonw_raw(w, dynbuf_span(&one));
            room -= one.n + 1;
        } else {
            left++;
        }
        dynbuf_free(&one);
    }
    jsonw_end_array(w);
    return left;
}
