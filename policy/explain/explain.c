#include "policy/explain.h"

#include "policy/decide/evaluate.h"
#include "policy/image/glob.h"
#include "policy/explain/why.h"

static const char *const miss_names[] = {"host",   "scheme", "port",     "method", "path",     "op",
                                         "effect", "ws",     "resource", "query",  "header",   "git",
                                         "body",   "scope",  "when",     "except", "outranked"};

const char *miss_name(enum miss m)
{
    return (size_t)m < sizeof(miss_names) / sizeof(miss_names[0]) ? miss_names[m] : "";
}

/* The match with all else left out: what place it does not say is any. */
static enum fit miss_fits(const struct ask *k, const struct img_match *m, enum miss key, enum strictness how)
{
    struct img_match one = {.any_place = 1};
    bool any = how == ANY_PLACE || m->any_place;
    switch (key) {
    case MISS_HOST: one.hosts = m->hosts; break;
    case MISS_SCHEME: one.schemes = m->schemes || any ? m->schemes : SCHEME_HTTPS; break;
    case MISS_PORT:
        if (m->ports.n == 0)
            return any || k->request->port == classify_default_port(k->request->scheme) ? FIT_YES : FIT_NO;
        one.ports = m->ports;
        break;
    case MISS_METHOD: one.methods = m->methods; break;
    case MISS_PATH: one.paths = m->paths; break;
    case MISS_OP: one.ops = m->ops; break;
    case MISS_EFFECT: one.effects = m->effects; break;
    case MISS_WS:
        if (!m->ws && k->upgrade && !any)
            return FIT_NO;
        one.ws = m->ws;
        one.ws_protocols = m->ws_protocols;
        break;
    case MISS_RESOURCE: one.resources = m->resources; break;
    case MISS_QUERY:
        one.query = m->query;
        one.query_only = m->query_only;
        one.query_names = m->query_names;
        break;
    case MISS_HEADER: one.header = m->header; break;
    case MISS_GIT:
        one.git_refs = m->git_refs;
        one.git_force = m->git_force;
        one.git_delete = m->git_delete;
        one.git_service = m->git_service;
        break;
    case MISS_BODY: one.body = m->body; break;
    default: break;
    }
    return match_fits(k, &one, how);
}

static bool excepted(const struct ask *k, const struct img_rule *r)
{
    for (uint32_t i = 0; i < r->except.n; i++)
        if (rule_except_fits(k, r, i) == FIT_YES)
            return true;
    return false;
}

/* Bits 1 << enum miss of what does not fit; *open: of those that nobody can tell. */
static unsigned rule_misses(const struct ask *k, const struct img_rule *r, unsigned *open)
{
    const struct img_match *m = img_at(k->p, IMG_MATCH, r->match.first);
    enum strictness how = rule_strictness(k, r);
    unsigned bits = 0;
    for (unsigned key = MISS_HOST; key <= MISS_BODY; key++) {
        enum fit fit = miss_fits(k, m, (enum miss)key, how);
        if (k->could && key == MISS_GIT && fit == FIT_MAYBE && r->verdict != VERDICT_DENY)
            continue; /* what stands before a push needs no more than that one might be */
        bits |= fit == FIT_YES ? 0 : 1u << key;
        *open |= fit == FIT_MAYBE ? 1u << key : 0;
        if (bits == (1u << MISS_SCHEME | 1u << MISS_PORT))
            bits = 1u << MISS_SCHEME; /* one thing: the host is meant, at another place */
        if (bits & (bits - 1))
            return bits; /* two are no near miss */
    }
    if (!match_scope(k->p, k->subject, r))
        bits |= 1u << MISS_SCOPE;
    if (!when_in_force(k->p, r, k->now_ms))
        bits |= 1u << MISS_WHEN;
    if (bits == 0 && excepted(k, r))
        bits |= 1u << MISS_EXCEPT;
    return bits;
}

/* The question that the decision speaks of, in the end that of the class which was taken last. */
struct decisive {
    struct ask asked, k;
    bool found;
};

static void see_asked(void *arg, const struct ask *k, const struct class *c)
{
    ((struct decisive *)arg)->asked = *k;
}

static void see_taken(void *arg)
{
    struct decisive *x = arg;
    x->k = x->asked;
    x->k.member = NULL;
    x->found = true;
}

/* The request is evaluated once more. False: no rule is asked about it. */
static bool ask_again(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
                      struct body_view *body, struct arena *a, struct ask *k)
{
    struct decisive x = {.found = false};
    const struct observer look = {see_asked, see_taken, &x};
    struct decision d;
    evaluate(p, s, r, now_ms, body, a, &look, &d);
    *k = x.k;
    return x.found;
}

/* Of a body with members every one must fit: what one of them lacks, the rule lacks. *of: the first that lacks
 * something. */
static unsigned members_miss(struct ask *k, const struct img_rule *r, struct member *of, unsigned *open)
{
    unsigned all = k->nmembers ? 0 : rule_misses(k, r, open);
    for (size_t i = 0; i < k->nmembers && (all & (all - 1)) == 0; i++) {
        k->member = &k->members[i];
        unsigned bits = rule_misses(k, r, open);
        if (bits && all == 0)
            *of = *k->member;
        all |= bits;
    }
    if (k->nmembers && all == 0)
        *of = (struct member){k->members[0].ref, false, false};
    k->member = k->nmembers ? of : NULL;
    return all;
}

static enum miss miss_of(unsigned bits)
{
    unsigned key = 0;
    while (key < MISS_NONE && (bits & 1u << key) == 0)
        key++;
    return (enum miss)key;
}

/* It all fits, and yet another rule, or none, decided. */
static void outranked_words(const struct img_rule *r, const struct decision *d, struct dynbuf *out)
{
    const char *kind = strcmp(d->code, "floor") == 0 ? "floor" : verdict_name(d->verdict);
    if (d->rule.id.n && (enum verdict)r->verdict == d->verdict) {
        (void)dynbuf_addf(out, "all of it fits too; of several such rules one is named");
    } else if ((enum verdict)r->verdict < d->verdict && span_starts(d->op, SPAN("git.push."))) {
        (void)dynbuf_addf(out, "it is about the push, not about what git asks for before it");
    } else if (d->rule.id.n && (strcmp(kind, "floor") == 0 || strcmp(d->code, "rule") == 0)) {
        (void)dynbuf_addf(out, "all of it fits, but the %s \"%.*s\" goes before it", kind, SPAN_FMT(d->rule.id));
        if (strcmp(kind, "floor") != 0)
            (void)dynbuf_addf(out, r->windows.n ? ": a when: of the other hours there would let it decide"
                                                : ": an except: there would let it decide");
    } else {
        (void)dynbuf_addf(out, "all of it fits, but the answer is: %s", d->code);
    }
}

size_t policy_near_misses(const struct policy *p, const struct subject *s, const struct request *r,
                          const struct decision *d, uint64_t now_ms, struct arena *a, struct near_miss out[NEAR_MAX])
{
    struct body_view body = {.looked = false};
    struct member member = {0};
    struct dynbuf words;
    struct ask k;
    size_t n = 0;
    if (!ask_again(p, s, r, now_ms, &body, a, &k))
        return 0;
    for (uint32_t i = 0; i < p->n[IMG_RULE] && n < NEAR_MAX; i++) {
        const struct img_rule *rule = img_at(p, IMG_RULE, i);
        unsigned open = 0, bits = members_miss(&k, rule, &member, &open);
        if ((bits & (bits - 1)) || span_eq(img_span(p, rule->id), d->rule.id))
            continue;
        enum miss miss = miss_of(bits);
        dynbuf_init(&words, WORDS_MAX);
        if (miss == MISS_NONE)
            outranked_words(rule, d, &words);
        else
            why_words(&k, rule, miss, &words);
        out[n++] = (struct near_miss){.index = i,
                                      .id = img_span(p, rule->id),
                                      .file = img_span(p, rule->file),
                                      .line = rule->line,
                                      .verdict = (enum verdict)rule->verdict,
                                      .miss = miss,
                                      .open = (open & bits) != 0,
                                      .resource = d->resource,
                                      .words = arena_keep(a, &words)};
    }
    return n;
}

static bool place_lets(const struct policy *p, const struct img_place *l, const struct request *r)
{
    uint32_t bit = span_eq(r->scheme, SPAN("https")) ? SCHEME_HTTPS : SCHEME_HTTP;
    if ((l->scheme & bit) == 0 || l->port != r->port || !span_eq(img_span(p, l->host), r->host))
        return false;
    struct glob g = {0};
    if (l->path.n)
        g = glob_of(img_glob(p, l->path, 0), '/');
    return l->path.n == 0 || glob_match(&g, r->path, '/', false);
}

static void place_words(const struct policy *p, const struct img_place *l, struct dynbuf *out)
{
    (void)dynbuf_addf(out, "%s://%.*s", l->scheme == SCHEME_HTTP ? "http" : "https", SPAN_FMT(img_span(p, l->host)));
    if (l->port != (l->scheme == SCHEME_HTTP ? 80 : 443))
        (void)dynbuf_addf(out, ":%u", l->port);
    if (l->path.n)
        why_value(out, img_glob(p, l->path, 0));
}

int policy_only_entry(const struct policy *p, size_t credential, const struct request *r, struct arena *a,
                      struct span *words)
{
    struct dynbuf b;
    int found = -1;
    *words = SPAN_NONE;
    if (credential >= p->n[IMG_CRED])
        return -1;
    const struct img_cred *c = img_at(p, IMG_CRED, (uint32_t)credential);
    dynbuf_init(&b, WORDS_MAX);
    for (uint32_t i = 0; i < c->only.n && found < 0; i++) {
        const struct img_place *l = img_at(p, IMG_PLACE, c->only.first + i);
        if (place_lets(p, l, r)) {
            found = (int)i;
            dynbuf_reset(&b);
        } else if (b.n > WORDS_MAX / 2) {
            continue;
        } else if (b.n) {
            (void)dynbuf_addf(&b, ", ");
        }
        place_words(p, l, &b);
    }
    *words = arena_keep(a, &b);
    return found;
}

struct span policy_operators(const struct policy *p, struct span approvers, struct arena *a)
{
    struct dynbuf b;
    dynbuf_init(&b, WORDS_MAX);
    for (uint32_t i = 0; i < p->n[IMG_APPROVER] && approvers.n; i++) {
        const struct img_approver *v = img_at(p, IMG_APPROVER, i);
        if (!span_eq(img_span(p, v->name), approvers))
            continue;
        if (v->operators.n)
            why_list(&b, p, IMG_STR, v->operators);
        if (v->groups.n) {
            (void)dynbuf_addf(&b, "%s", v->operators.n ? ", or of a group: " : "of a group: ");
            why_list(&b, p, IMG_STR, v->groups);
        }
    }
    return arena_keep(a, &b);
}

struct span policy_gates_asked(const struct policy *p, uint32_t gates, struct arena *a)
{
    struct dynbuf b;
    struct gate g;
    dynbuf_init(&b, WORDS_MAX);
    for (size_t i = 0; policy_gate(p, i, &g); i++)
        if (gates >> i & 1)
            (void)dynbuf_addf(&b, "%s%.*s", b.n ? ", " : "", SPAN_FMT(g.name));
    return arena_keep(a, &b);
}

size_t policy_rules(const struct policy *p)
{
    return p->n[IMG_RULE];
}

struct rule_ref policy_rule(const struct policy *p, size_t i)
{
    if (i >= p->n[IMG_RULE])
        return (struct rule_ref){0};
    const struct img_rule *r = img_at(p, IMG_RULE, (uint32_t)i);
    return (struct rule_ref){img_span(p, r->id), img_span(p, r->file), r->line};
}

int policy_rule_credential(const struct policy *p, struct span id)
{
    int at = img_rule_named(p, id);
    const struct img_rule *r = at < 0 ? NULL : img_at(p, IMG_RULE, (uint32_t)at);
    return r == NULL || r->credential == IMG_NONE ? -1 : (int)r->credential;
}

size_t policy_rule_excepts(const struct policy *p, size_t i)
{
    return i < p->n[IMG_RULE] ? ((const struct img_rule *)img_at(p, IMG_RULE, (uint32_t)i))->except.n : 0;
}

void policy_cover(const struct policy *p, const struct subject *s, const struct request *r, const struct decision *d,
                  uint64_t now_ms, struct arena *a, policy_cover_fn *fn, void *arg)
{
    struct body_view body = {.looked = false};
    struct member member = {0};
    struct ask k;
    bool asked = ask_again(p, s, r, now_ms, &body, a, &k);
    for (uint32_t i = 0; i < p->n[IMG_RULE]; i++) {
        const struct img_rule *rule = img_at(p, IMG_RULE, i);
        unsigned open = 0;
        if (d->rule.id.n && span_eq(img_span(p, rule->id), d->rule.id))
            fn(arg, i, -1);
        if (rule->except.n == 0 || !asked || members_miss(&k, rule, &member, &open) != 1u << MISS_EXCEPT)
            continue;
        for (uint32_t e = 0; e < rule->except.n; e++)
            if (rule_except_fits(&k, rule, e) == FIT_YES)
                fn(arg, i, (int)e);
    }
}
