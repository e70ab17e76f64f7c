/* Where may a sandbox's requests go, as far as the place of the data is concerned? Every scope with regions: that
 * covers it must agree; a host without an entry in upstreams:, or without a region there, is in none. */
#include "common/dynbuf.h"
#include "policy/match/match.h"

enum { WORDS = 512 };

static int upstream_cmp(const struct policy *p, const struct img_upstream *u, struct span host, uint16_t port)
{
    int c = span_cmp(img_span(p, u->host), host);
    return c ? c : (int)u->port - (int)port;
}

const struct img_upstream *region_upstream(const struct policy *p, struct span host, uint16_t port)
{
    uint32_t lo = 0, hi = p->n[IMG_UPSTREAM];
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        const struct img_upstream *e = img_at(p, IMG_UPSTREAM, mid);
        int c = upstream_cmp(p, e, host, port);
        if (c < 0) {
            lo = mid + 1;
        } else if (c > 0) {
            hi = mid;
        } else {
            return e;
        }
    }
    return NULL;
}

static bool has_region(const struct policy *p, const struct img_scope *c, const struct img_upstream *u)
{
    struct span is = u ? img_span(p, u->region) : SPAN_NONE;
    for (uint32_t i = 0; i < c->regions.n && is.n; i++)
        if (span_eq(img_text(p, c->regions, i), is))
            return true;
    return false;
}

const struct img_scope *region_keeps_out(const struct policy *p, const struct subject *s, struct span host,
                                         uint16_t port)
{
    struct img_range all = p->head->residents;
    const struct img_upstream *u = all.n ? region_upstream(p, host, port) : NULL;
    for (uint32_t i = 0; i < all.n; i++) {
        const struct img_scope *c = img_at(p, IMG_SCOPE, *(const uint32_t *)img_at(p, IMG_SCOPE_REF, all.first + i));
        if (!has_region(p, c, u) && match_one_scope(p, s, c))
            return c;
    }
    return NULL;
}

bool region_lets(const struct policy *p, const struct subject *s, const struct img_match *m, struct span host)
{
    uint32_t schemes = m->schemes ? m->schemes : SCHEME_HTTPS;
    bool lets = m->ports.n == 0 && (((schemes & SCHEME_HTTPS) && region_keeps_out(p, s, host, 443) == NULL) ||
                                    ((schemes & SCHEME_HTTP) && region_keeps_out(p, s, host, 80) == NULL));
    for (uint32_t i = 0; i < m->ports.n && !lets; i++)
        lets = region_keeps_out(p, s, host, (uint16_t) * (const uint32_t *)img_at(p, IMG_PORT, m->ports.first + i)) ==
               NULL;
    return lets;
}

struct span region_words(const struct policy *p, const struct img_scope *c, struct span host, struct arena *a)
{
    struct dynbuf b;
    dynbuf_init(&b, WORDS);
    (void)dynbuf_addf(&b, "%.*s is not in a region (", SPAN_FMT(span_first(host, 253)));
    for (uint32_t i = 0; i < c->regions.n && b.n < WORDS - 150; i++)
        (void)dynbuf_addf(&b, "%s%.*s", i ? ", " : "", SPAN_FMT(img_text(p, c->regions, i)));
    (void)dynbuf_addf(&b, ") that this sandbox may reach");
    return arena_keep(a, &b);
}
