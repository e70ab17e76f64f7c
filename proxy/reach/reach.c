#include "proxy/reach/reach.h"

#include <stdio.h>

#include "common/http/uri.h"
#include "common/net/addr.h"
#include "proxy/reach/readings.h"

/* ---- one spelling ------------------------------------------------------------------------ */

static int spell_range(struct cidr *c, struct reach_what *out)
{
    const uint8_t *b = c->base.b;
    int n;

    if (readings_spell(c) != 0)
        return -1;
    out->range = true;
    out->all = c->bits == 0 ? c->base.family : 0;
    if (c->base.family == 4)
        n = snprintf(out->text, sizeof(out->text), "%u.%u.%u.%u/%u", b[0], b[1], b[2], b[3], c->bits);
    else
        n = snprintf(out->text, sizeof(out->text), "%x:%x:%x:%x:%x:%x:%x:%x/%u", b[0] << 8 | b[1], b[2] << 8 | b[3],
                     b[4] << 8 | b[5], b[6] << 8 | b[7], b[8] << 8 | b[9], b[10] << 8 | b[11], b[12] << 8 | b[13],
                     b[14] << 8 | b[15], c->bits);
    out->n = (size_t)n;
    return 0;
}

/* As requests have their host (common/http/uri.h), or not at all. */
static int spell_name(struct span name, struct reach_what *out)
{
    bool below = span_starts(name, SPAN("*."));
    char host[HTTP_HOST_MAX + 1];
    struct cidr c;
    size_t n;

    if (http_canonical_host(span_from(name, below ? 2 : 0), host, &n) != 0)
        return -1;
    if (addr_of_host(span_of(host, n), &c.base) == 0) { /* localhost, for an address was looked for before */
        c.bits = (unsigned)addr_bytes(&c.base) * 8;
        return below && !span_ends(span_of(host, n), SPAN("localhost")) ? -1 : spell_range(&c, out);
    }
    out->n = (size_t)snprintf(out->text, sizeof(out->text), "%s%.*s", below ? "*." : "", (int)n, host);
    return out->n < sizeof(out->text) ? 0 : -1;
}

int reach_read(struct span said, struct reach_what *out)
{
    struct cidr c;

    *out = (struct reach_what){.range = false};
    if (said.n >= REACH_WHAT_MAX)
        return -1;
    if (span_starts(said, SPAN("[")) && span_ends(said, SPAN("]")))
        return cidr_parse(span_of(said.p + 1, said.n - 2), &c) == 0 && c.base.family == 6 &&
                       span_index(said, '/') == said.n
                   ? spell_range(&c, out)
                   : -1;
    return cidr_parse(said, &c) == 0 ? spell_range(&c, out) : spell_name(said, out);
}

void reach_put(struct dynbuf *text, bool allows, const struct reach_what *w)
{
    (void)dynbuf_addf(text, "%c%c %.*s\n", allows ? '+' : '-', w->range ? 'a' : 'n', (int)w->n, w->text);
}

/* ---- a text ------------------------------------------------------------------------------ */

struct rule {
    bool allows;
    struct span name; /* empty: it is a range */
    struct cidr range;
};

/* 1: *rule is the next one of this layer, 0: the layer is over, -1: it is none. */
static int rule_next(struct span *layer, struct rule *r)
{
    struct reach_what w;
    struct span line;

    if (layer->n == 0)
        return 0;
    if (!span_cut(*layer, '\n', &line, layer) || line.n < 4 || line.p[2] != ' ' ||
        (line.p[0] != '+' && line.p[0] != '-') || (line.p[1] != 'n' && line.p[1] != 'a'))
        return -1;
    struct span what = span_from(line, 3);
    *r = (struct rule){.allows = line.p[0] == '+', .name = line.p[1] == 'n' ? what : SPAN_NONE};
    bool known = reach_read(what, &w) == 0 && w.range == (line.p[1] == 'a') && span_eq(span_of(w.text, w.n), what);
    return known && (!w.range || cidr_parse(what, &r->range) == 0) ? 1 : -1;
}

/* The next layer; none of them is empty. */
static bool layer_next(struct span *text, struct span *layer)
{
    size_t at = span_find(*text, SPAN("\n&\n"));

    *layer = at < text->n ? span_first(*text, at + 1) : *text;
    *text = at < text->n ? span_from(*text, at + 3) : SPAN_NONE;
    return layer->n > 0;
}

/* Lines: of a text that is one these are its rules, those between layers, and REACH_NOTHING. */
static bool is_bounded(struct span text)
{
    size_t rules = 0;

    if (text.n > REACH_MAX)
        return false;
    for (size_t i = 0; i < text.n; i++)
        rules += text.p[i] == '\n' && (i == 0 || text.p[i - 1] != '&');
    return rules <= REACH_ALL_MAX;
}

static bool layer_ok(struct span layer)
{
    struct rule r;
    size_t n = 0;
    int rc;

    if (span_eq(layer, REACH_NOTHING))
        return true;
    while ((rc = rule_next(&layer, &r)) == 1)
        n++;
    return rc == 0 && n > 0 && n <= REACH_RULES_MAX;
}

bool reach_ok(struct span text)
{
    struct span layer;
    bool ok = is_bounded(text) && !span_ends(text, SPAN("&\n"));

    while (ok && text.n > 0)
        ok = layer_next(&text, &layer) && layer_ok(layer);
    return ok;
}

static bool has_layer(struct span text, struct span wanted)
{
    for (struct span one; layer_next(&text, &one);)
        if (span_eq(one, wanted))
            return true;
    return false;
}

int reach_both(struct dynbuf *out, struct span a, struct span b)
{
    bool nothing = has_layer(a, REACH_NOTHING) || has_layer(b, REACH_NOTHING);

    (void)dynbuf_add(out, nothing ? REACH_NOTHING : a);
    for (struct span one; !nothing && layer_next(&b, &one);)
        if (!has_layer(a, one))
            (void)dynbuf_addf(out, "%s%.*s", out->n > 0 ? "&\n" : "", SPAN_FMT(one));
    return dynbuf_ok(out) && is_bounded(dynbuf_span(out)) ? 0 : -1;
}

/* ---- what it lets ------------------------------------------------------------------------ */

struct asked {
    char host[HTTP_HOST_MAX + 1];
    size_t n;
    struct addr is;             /* the host is an address; family 0: a name */
    const struct addr *dialled; /* NULL: that is not known yet */
};

/* -1: it is no host, and may be none. */
static int ask(struct asked *a, struct span host, const struct addr *dialled)
{
    a->dialled = dialled;
    a->is = (struct addr){0};
    if (http_canonical_host(host, a->host, &a->n) == 0) {
        (void)!addr_of_host(span_of(a->host, a->n), &a->is);
        return 0;
    }
    a->n = 0;
    return addr_parse(host, &a->is); /* of IPv6 without its brackets */
}

static bool name_fits(struct span pattern, struct span host)
{
    if (!span_starts(pattern, SPAN("*.")))
        return span_eq(pattern, host);
    struct span below = span_from(pattern, 1); /* with its dot */
    return host.n > below.n && span_ends(host, below);
}

static bool is_denied(const struct rule *r, const struct asked *a)
{
    if (r->name.n > 0)
        return a->is.family == 0 && name_fits(r->name, span_of(a->host, a->n));
    return (a->is.family != 0 && readings_in(&r->range, &a->is)) ||
           (a->dialled != NULL && readings_in(&r->range, a->dialled));
}

/* What is asked for by an address is in the range as it is asked for and as it is dialled, where that is known. */
static bool is_allowed(const struct rule *r, const struct asked *a)
{
    if (r->name.n > 0)
        return a->is.family == 0 && name_fits(r->name, span_of(a->host, a->n));
    return (a->is.family == 0 || readings_is_in(&r->range, &a->is)) &&
           (a->dialled == NULL || readings_is_in(&r->range, a->dialled));
}

static enum reach_said by_layer(struct span layer, const struct asked *a)
{
    bool allows = false, allowed = false, named = false, denies_ranges = false;
    struct rule r;
    int rc;

    while ((rc = rule_next(&layer, &r)) == 1) {
        if (!r.allows && is_denied(&r, a))
            return REACH_NO;
        bool fits = r.allows && is_allowed(&r, a);
        allows |= r.allows;
        allowed |= fits;
        named |= fits && r.name.n > 0;
        denies_ranges |= !r.allows && r.name.n == 0;
    }
    if (rc != 0 || (allows && !allowed))
        return REACH_NO;
    bool known = a->dialled != NULL || (!denies_ranges && (named || !allows));
    return known ? REACH_YES : REACH_BY_ADDRESS;
}

static enum reach_said said(struct span text, const struct asked *a)
{
    enum reach_said all = REACH_YES;

    if (!is_bounded(text) || span_ends(text, SPAN("&\n")))
        return REACH_NO;
    for (struct span layer; text.n > 0;) {
        enum reach_said one = layer_next(&text, &layer) ? by_layer(layer, a) : REACH_NO;
        if (one == REACH_NO)
            return REACH_NO;
        if (one == REACH_BY_ADDRESS)
            all = one;
    }
    return all;
}

enum reach_said reach_by_name(struct span text, struct span host, struct span address)
{
    struct asked a;
    struct addr at;

    if (text.n == 0)
        return REACH_YES;
    if (ask(&a, host, NULL) != 0)
        return REACH_NO;
    enum reach_said by = said(text, &a);
    if (address.n == 0)
        at = a.is;
    else if (addr_parse(address, &at) != 0)
        at.family = 0;
    a.dialled = &at;
    return by == REACH_BY_ADDRESS && at.family != 0 && said(text, &a) == REACH_NO ? REACH_NO : by;
}

bool reach_by_address(struct span text, struct span host, const struct addr *dialled)
{
    struct asked a;

    return text.n == 0 || (ask(&a, host, dialled) == 0 && said(text, &a) == REACH_YES);
}
