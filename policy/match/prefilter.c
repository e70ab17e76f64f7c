#include "policy/match/prefilter.h"

/* Bits of each kind, side by side. */
enum {
    METHODS = 16,
    EFFECTS = EFFECT_EXEC + 1,
    OPS = 16,
    PORTS = 16,
    PLACES = 4, /* https and http, each on its own port and on another */
    METHOD_0 = 0,
    EFFECT_0 = METHOD_0 + METHODS,
    OP_0 = EFFECT_0 + EFFECTS,
    PORT_0 = OP_0 + OPS,
    PLACE_0 = PORT_0 + PORTS,
    PLAIN = PLACE_0 + PLACES, /* no upgrade */
    UPGRADE,
    NO_QUERY,
    CLASSES
};
_Static_assert(CLASSES <= 64, "one word has them all");

static uint64_t bit(unsigned first, unsigned n)
{
    return UINT64_C(1) << (first + n);
}

static uint64_t bits(unsigned first, unsigned n)
{
    return ((UINT64_C(1) << n) - 1) << first;
}

/* The same in upper and lower case; different ones for the methods that most requests have. */
static uint64_t method_class(struct span s)
{
    unsigned h = s.n ? (s.p[0] | 0x20u) + 1u * (s.p[s.n - 1] | 0x20u) + 1u * (unsigned)s.n : 0;
    return bit(METHOD_0, h % METHODS);
}

/* By its last bytes: operations of one pack begin alike. The factor keeps those without a pack apart. */
static uint64_t op_class(struct span s)
{
    uint64_t end = 0;
    size_t n = s.n < sizeof(end) ? s.n : sizeof(end);
    if (n)
        memcpy(&end, s.p + s.n - n, n);
    return bit(OP_0, (unsigned)((end * UINT64_C(0xa648a7dd06839eb9)) >> 60) % OPS);
}

static uint64_t port_class(uint32_t port)
{
    return bit(PORT_0, (port ^ port >> 4) % PORTS);
}

static uint64_t never_method(const struct policy *p, const struct img_match *m)
{
    uint64_t some = 0;
    for (uint32_t i = 0; i < m->methods.n; i++)
        some |= method_class(img_text(p, m->methods, i));
    return m->methods.n ? bits(METHOD_0, METHODS) & ~some : 0;
}

static uint64_t never_op(const struct policy *p, const struct img_match *m)
{
    uint64_t some = 0;
    for (uint32_t i = 0; i < m->ops.n; i++) {
        const struct img_glob *g = img_at(p, IMG_GLOB, m->ops.first + i);
        if (!g->literal)
            return 0;
        some |= op_class(img_span(p, g->text));
    }
    return m->ops.n ? bits(OP_0, OPS) & ~some : 0;
}

static uint64_t never_port(const struct policy *p, const struct img_match *m)
{
    uint64_t some = 0;
    for (uint32_t i = 0; i < m->ports.n; i++)
        some |= port_class(*(const uint32_t *)img_at(p, IMG_PORT, m->ports.first + i));
    return m->ports.n ? bits(PORT_0, PORTS) & ~some : 0;
}

/* anywhere: a deny, which is about each scheme and port that it does not name. */
static uint64_t never_place(const struct img_match *m, bool anywhere)
{
    uint64_t never = 0;
    for (unsigned i = 0; i < PLACES; i++) {
        uint32_t scheme = i < 2 ? SCHEME_HTTPS : SCHEME_HTTP;
        bool own_port = i % 2 == 0;
        bool over = m->schemes ? (m->schemes & scheme) != 0 : anywhere || scheme == SCHEME_HTTPS;
        if (!over || !(own_port || anywhere || m->ports.n))
            never |= bit(PLACE_0, i);
    }
    return never;
}

uint64_t prefilter_never(const struct policy *p, const struct img_rule *r)
{
    const struct img_match *m = img_at(p, IMG_MATCH, r->match.first);
    bool anywhere = (r->verdict != VERDICT_HOLD && r->verdict != VERDICT_ALLOW) || m->any_place;
    uint64_t never = never_method(p, m) | never_op(p, m) | never_port(p, m) | never_place(m, anywhere);
    if (m->effects)
        never |= bits(EFFECT_0, EFFECTS) & ~((uint64_t)m->effects << EFFECT_0);
    if (m->ws)
        never |= bit(PLAIN, 0);
    else if (!anywhere)
        never |= bit(UPGRADE, 0);
    return never | (m->query.n ? bit(NO_QUERY, 0) : 0);
}

uint64_t prefilter_classes(const struct ask *k)
{
    const struct request *r = k->request;
    uint64_t is = port_class(r->port) | bit(k->upgrade ? UPGRADE : PLAIN, 0);
    bool https = span_eq(r->scheme, SPAN("https"));
    if (https || span_eq(r->scheme, SPAN("http")))
        is |= bit(PLACE_0, https ? r->port != 443 : 2u + (r->port != 80));
    if (r->query.n == 0 && !path_hides_query(r->path))
        is |= bit(NO_QUERY, 0);
    if (k->overridden) /* any method may be meant, and so any effect and operation */
        return is;
    is |= method_class(k->method);
    if (k->op.p == k->written.op.p)
        is |= op_class(k->op);
    return k->lifted || k->effect != k->written.effect ? is : is | bit(EFFECT_0, k->effect);
}
