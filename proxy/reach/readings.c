#include "proxy/reach/readings.h"

#include <string.h>

enum { READINGS_MAX = 8 };

static const struct cidr mapped = {{6, {[10] = 0xff, [11] = 0xff}}, 96};

/* Where each of the ways has the four bytes, and their mask. */
static const struct way {
    struct cidr of;
    uint8_t at[4], mask;
} ways[] = {
    {{{6, {0}}, 96}, {12, 13, 14, 15}, 0},                                  /* ::a.b.c.d */
    {{{6, {0x00, 0x64, 0xff, 0x9b}}, 96}, {12, 13, 14, 15}, 0},             /* NAT64 */
    {{{6, {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}}, 48}, {6, 7, 9, 10}, 0},    /* and of one's own, RFC 6052 */
    {{{6, {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}}, 48}, {7, 9, 10, 11}, 0},   /* section 2.2: by the length */
    {{{6, {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}}, 48}, {9, 10, 11, 12}, 0},  /* of its prefix */
    {{{6, {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}}, 48}, {12, 13, 14, 15}, 0}, /* */
    {{{6, {0x20, 0x02}}, 16}, {2, 3, 4, 5}, 0},                             /* 6to4 */
    {{{6, {0x20, 0x01}}, 32}, {4, 5, 6, 7}, 0},                             /* Teredo: its server */
    {{{6, {0x20, 0x01}}, 32}, {12, 13, 14, 15}, 0xff},                      /* and its client */
};

static struct addr norm(const struct addr *a)
{
    struct addr v4 = {.family = 4};

    if (!cidr_has(&mapped, a))
        return *a;
    memcpy(v4.b, a->b + 12, 4);
    return v4;
}

static struct addr taken(const struct way *w, const struct addr *a)
{
    struct addr v4 = {.family = 4};

    for (size_t i = 0; i < 4; i++)
        v4.b[i] = a->b[w->at[i]] ^ w->mask;
    return v4;
}

/* A node of a site's own tunnel has it behind 5efe, whatever its network is (RFC 5214 section 6.1). */
static bool is_isatap(const struct addr *a)
{
    return a->family == 6 && (a->b[8] & 0xfd) == 0 && a->b[9] == 0 && a->b[10] == 0x5e && a->b[11] == 0xfe;
}

static size_t readings(const struct addr *a, struct addr out[READINGS_MAX])
{
    static const struct way isatap = {.at = {12, 13, 14, 15}};
    size_t n = 0;

    out[n++] = norm(a);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (cidr_has(&ways[i].of, a))
            out[n++] = taken(&ways[i], a);
    if (is_isatap(a))
        out[n++] = taken(&isatap, a);
    return n;
}

int readings_spell(struct cidr *c)
{
    if (c->base.family != 6 || c->bits == 0)
        return 0;
    if (c->bits < mapped.bits)
        return cidr_has(c, &mapped.base) ? -1 : 0;
    if (cidr_has(&mapped, &c->base))
        *c = (struct cidr){norm(&c->base), c->bits - mapped.bits};
    return 0;
}

/* Of a part of one of those ways, as IPv4: what NAT64 or 6to4 calls so is as little to be reached without them. */
static bool part_has(const struct cidr *c, const struct addr *v4)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        const struct way *w = &ways[i];
        unsigned before = w->at[0] * 8u;
        if (w->of.bits != before || w->at[3] != w->at[0] + 3 || c->bits <= before || !cidr_has(&w->of, &c->base))
            continue;
        const struct cidr inner = {taken(w, &c->base), c->bits - before < 32 ? c->bits - before : 32};
        if (cidr_has(&inner, v4))
            return true;
    }
    return false;
}

bool readings_in(const struct cidr *c, const struct addr *a)
{
    struct addr is[READINGS_MAX];
    size_t n = readings(a, is);

    for (size_t i = 0; i < n; i++)
        if (cidr_has(c, &is[i]) || (is[i].family == 4 && part_has(c, &is[i])))
            return true;
    return false;
}

bool readings_is_in(const struct cidr *c, const struct addr *a)
{
    const struct addr one = norm(a);

    return cidr_has(c, &one);
}
