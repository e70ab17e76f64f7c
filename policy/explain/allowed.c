/* What is allowed instead, in sentences: for a denial. The index gives the rules about a host, however many rules
 * there are; a sandbox that may ask nothing there is told hosts. */
#include "policy/manifest.h"

#include "policy/explain/why.h"

enum { SENTENCE_MAX = 240, LOOK_MAX = 400 };

struct say {
    const struct policy *p;
    const struct subject *s;
    const struct request *q;
    struct arena *a;
    struct span *out;
    size_t n, max, looked;
};

static void add_list(struct dynbuf *b, const struct policy *p, struct img_range r, bool globs)
{
    for (uint32_t i = 0; i < r.n && i < 4; i++) {
        struct span one = globs ? img_glob(p, r, i) : img_text(p, r, i);
        (void)dynbuf_addf(b, "%s%.*s", i ? ", " : "", SPAN_FMT(one));
    }
    if (r.n > 4)
        (void)dynbuf_add(b, SPAN(", ..."));
}

static void add_what(struct dynbuf *b, const struct policy *p, const struct img_match *m)
{
    bool first = true;
    if (m->ws)
        (void)dynbuf_add(b, SPAN("a WebSocket"));
    else if (m->ops.n)
        add_list(b, p, m->ops, true);
    else if (m->methods.n)
        add_list(b, p, m->methods, false);
    else if (m->effects == 0)
        (void)dynbuf_add(b, SPAN("requests"));
    for (unsigned e = EFFECT_READ; e <= EFFECT_EXEC && !m->ws && m->ops.n + m->methods.n == 0; e++)
        if (m->effects & 1u << e) {
            (void)dynbuf_addf(b, "%s%s", first ? "" : ", ", effect_name((enum effect)e));
            first = false;
        }
}

static struct span sentence(struct say *y, const struct img_rule *r)
{
    const struct img_match *m = img_at(y->p, IMG_MATCH, r->match.first);
    struct dynbuf b;
    dynbuf_init(&b, 64 * 1024);
    add_what(&b, y->p, m);
    if (m->resources.n || m->paths.n)
        (void)dynbuf_add(&b, m->resources.n ? SPAN(" of ") : SPAN(" "));
    if (m->resources.n == 0 && m->written.n)
        add_list(&b, y->p, m->written, false);
    else
        add_list(&b, y->p, m->resources.n ? m->resources : m->paths, true);
    if (m->git_refs.n)
        (void)dynbuf_add(&b, SPAN(" to "));
    add_list(&b, y->p, m->git_refs, true);
    if (m->body.n || m->query.n || m->header.n || r->except.n || r->windows.n)
        (void)dynbuf_add(&b, SPAN(", under conditions"));
    if (dynbuf_ok(&b) && b.n > SENTENCE_MAX - 32) {
        b.n = SENTENCE_MAX - 32;
        (void)dynbuf_add(&b, SPAN("..."));
    }
    (void)dynbuf_add(&b, r->verdict == VERDICT_ALLOW ? SPAN(": allowed") : SPAN(": held for approval"));
    return arena_keep(y->a, &b);
}

static void keep(struct say *y, struct span one)
{
    for (size_t i = 0; i < y->n; i++)
        if (span_eq(y->out[i], one))
            return;
    if (one.n && y->n < y->max)
        y->out[y->n++] = one;
}

static bool is_offer(struct say *y, const struct img_rule *r)
{
    return r->verdict != VERDICT_DENY && y->looked++ < LOOK_MAX && y->n < y->max && match_scope(y->p, y->s, r);
}

/* Where a rule's requests go on this host, as the beginning of a URL. */
static void keep_origins(struct say *y, const struct img_match *m, struct span host)
{
    static const uint32_t schemes[] = {SCHEME_HTTPS, SCHEME_HTTP};
    for (size_t i = 0; i < 2; i++) {
        struct span name = schemes[i] == SCHEME_HTTPS ? SPAN("https") : SPAN("http");
        if (((m->schemes ? m->schemes : SCHEME_HTTPS) & schemes[i]) == 0)
            continue;
        for (uint32_t k = 0; k < (m->ports.n ? m->ports.n : 1) && y->n < y->max; k++) {
            uint16_t usual = classify_default_port(name), port = usual;
            struct dynbuf b;
            if (m->ports.n)
                port = (uint16_t) * (const uint32_t *)img_at(y->p, IMG_PORT, m->ports.first + k);
            dynbuf_init(&b, HTTP_HOST_MAX + 32);
            (void)dynbuf_addf(&b, "%.*s://%.*s", SPAN_FMT(name), SPAN_FMT(host));
            if (port != usual)
                (void)dynbuf_addf(&b, ":%u", port);
            keep(y, dynbuf_ok(&b) ? arena_copy(y->a, dynbuf_span(&b)) : SPAN_NONE);
            dynbuf_free(&b);
        }
    }
}

static void each_of_key(const struct policy *p, uint32_t hash, why_rule_fn *fn, void *arg)
{
    struct img_range r = img_find(p, img_hash_end(hash));
    for (uint32_t i = 0; i < r.n; i++)
        fn(arg, *(const uint32_t *)img_at(p, IMG_RULE_REF, r.first + i));
}

void why_host_rules(const struct policy *p, struct span host, why_rule_fn *fn, void *arg)
{
    each_of_key(p, img_hash_add(img_hash_begin('N'), host), fn, arg);
    for (struct span rest = host; rest.n;) {
        rest = span_from(rest, span_index(rest, '.') + 1);
        if (rest.n)
            each_of_key(p, img_hash_add(img_hash_begin('M'), rest), fn, arg);
    }
}

static void say_here(void *arg, uint32_t index)
{
    struct say *y = arg;
    const struct img_rule *rule = img_at(y->p, IMG_RULE, index);
    const struct img_match *m = img_at(y->p, IMG_MATCH, rule->match.first);
    if (is_offer(y, rule) && m->hosts.n &&
        match_names_place(y->p, m, y->q->scheme, y->q->host, y->q->port, AS_WRITTEN))
        keep(y, sentence(y, rule));
}

/* Not what the rules about this place say, but at which other scheme and port they are about this host. */
static void say_elsewhere(void *arg, uint32_t index)
{
    struct say *y = arg;
    const struct img_rule *rule = img_at(y->p, IMG_RULE, index);
    const struct img_match *m = img_at(y->p, IMG_MATCH, rule->match.first);
    if (is_offer(y, rule) && m->hosts.n && classify_hosts_fit(y->p, m->hosts, y->q->host) &&
        region_lets(y->p, y->s, m, y->q->host))
        keep_origins(y, m, y->q->host);
}

/* What was kept as one sentence. */
static void join(struct say *y, const char *words)
{
    struct dynbuf b;
    if (y->n == 0)
        return;
    dynbuf_init(&b, 8 * 1024);
    (void)dynbuf_addf(&b, "%s", words);
    for (size_t i = 0; i < y->n; i++)
        (void)dynbuf_addf(&b, "%s%.*s", i ? ", " : "", SPAN_FMT(y->out[i]));
    y->out[0] = arena_keep(y->a, &b);
    y->n = y->out[0].n > 0;
}

/* Exact names only: a pattern is no host to go to. */
static void say_hosts(struct say *y)
{
    for (uint32_t i = 0; i < y->p->n[IMG_RULE] && y->n < y->max && y->looked < LOOK_MAX; i++) {
        const struct img_rule *r = img_at(y->p, IMG_RULE, i);
        const struct img_match *m = img_at(y->p, IMG_MATCH, r->match.first);
        if (!is_offer(y, r))
            continue;
        for (uint32_t k = 0; k < m->hosts.n; k++) {
            const struct img_host *h = img_at(y->p, IMG_HOST, m->hosts.first + k);
            if (h->kind == HOST_EXACT && region_lets(y->p, y->s, m, img_span(y->p, h->text)))
                keep_origins(y, m, img_span(y->p, h->text));
        }
    }
    join(y, "nothing at this host; hosts that can be reached: ");
}

size_t policy_allowed_here(const struct policy *p, const struct subject *s, const struct request *r, struct arena *a,
                           struct span *out, size_t max)
{
    struct say y = {.p = p, .s = s, .q = r, .a = a, .out = out, .max = max};
    if (region_keeps_out(p, s, r->host, r->port))
        return 0;
    why_host_rules(p, r->host, say_here, &y);
    if (y.n == 0) {
        why_host_rules(p, r->host, say_elsewhere, &y);
        join(&y, "nothing at this scheme and port; the host can be reached as: ");
    }
    if (y.n == 0)
        say_hosts(&y);
    return y.n;
}
