/* See addr.h; pure but for addr_own. Ranges: IANA special-purpose registries (RFC 6890) and the metadata addresses of
 * clouds. */
#include "common/net/addr.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>

/* inet_pton is strict for IPv4 (no octal, hex or short forms), but takes a leading zero where its value stays small;
 * so the dotted form is read here. */
static int parse4(struct span s, uint8_t out[4])
{
    for (int i = 0; i < 4; i++) {
        struct span part;
        uint64_t v;
        if (span_cut(s, '.', &part, &s) != (i < 3) || span_u64(part, 255, &v) != 0)
            return -1;
        out[i] = (uint8_t)v;
    }
    return 0;
}

static int parse6(struct span s, uint8_t out[16])
{
    char text[INET6_ADDRSTRLEN];
    if (s.n < 2 || s.n >= sizeof(text))
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.'))
            return -1;
    }
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    return inet_pton(AF_INET6, text, out) == 1 ? 0 : -1;
}

int addr_parse(struct span s, struct addr *out)
{
    *out = (struct addr){0};
    if (span_starts(s, SPAN("["))) {
        if (!span_ends(s, SPAN("]")))
            return -1;
        s = span_of(s.p + 1, s.n - 2);
    } else if (parse4(s, out->b) == 0) {
        out->family = 4;
        return 0;
    }
    memset(out->b, 0, sizeof(out->b));
    if (parse6(s, out->b) != 0)
        return -1;
    out->family = 6;
    return 0;
}

int addr_of_host(struct span host, struct addr *out)
{
    bool local = span_eq(host, SPAN("localhost")) || span_ends(host, SPAN(".localhost"));
    return addr_parse(local ? SPAN("127.0.0.1") : host, out);
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, left = bits % 8;
    if (memcmp(a, b, whole) != 0)
        return false;
    return left == 0 || (uint8_t)((a[whole] ^ b[whole]) >> (8 - left)) == 0;
}

int cidr_parse(struct span s, struct cidr *out)
{
    struct span base, bits;
    struct addr net = {0};
    uint64_t v;
    bool prefix = span_cut(s, '/', &base, &bits);
    if (addr_parse(base, &out->base) != 0 || span_starts(base, SPAN("[")))
        return -1;
    unsigned max = out->base.family == 4 ? 32 : 128;
    if (prefix && span_u64(bits, max, &v) != 0)
        return -1;
    out->bits = prefix ? (unsigned)v : max;
    /* "10.0.0.1/8" is more likely a slip than a wish. */
    memcpy(net.b, out->base.b, (out->bits + 7) / 8);
    if (out->bits % 8)
        net.b[out->bits / 8] &= (uint8_t)(0xff << (8 - out->bits % 8));
    return memcmp(net.b, out->base.b, sizeof(net.b)) == 0 ? 0 : -1;
}

int addr_from_bytes(unsigned family, struct span bytes, struct addr *out)
{
    *out = (struct addr){.family = family};
    if ((family != 4 && family != 6) || bytes.n != addr_bytes(out)) {
        out->family = 0;
        return -1;
    }
    memcpy(out->b, bytes.p, bytes.n);
    return 0;
}

bool addr_eq(const struct addr *a, const struct addr *b)
{
    return a->family == b->family && memcmp(a->b, b->b, addr_bytes(a)) == 0;
}

bool cidr_has(const struct cidr *c, const struct addr *a)
{
    return a->family != 0 && c->base.family == a->family && c->bits <= addr_bytes(a) * 8 &&
           same_bits(c->base.b, a->b, c->bits);
}

struct range {
    uint8_t b[16];
    uint8_t bits;
    enum addr_class class;
};

/* Order matters only where one lies within another: the narrower comes first. */
static const struct range v4[] = {
    {{169, 254, 169, 254}, 32, ADDR_METADATA},
    {{169, 254, 170, 2}, 32, ADDR_METADATA},  /* container credentials */
    {{169, 254, 170, 23}, 32, ADDR_METADATA}, /* pod identity */
    {{100, 100, 100, 200}, 32, ADDR_METADATA},
    {{168, 63, 129, 16}, 32, ADDR_METADATA},
    {{192, 0, 0, 192}, 32, ADDR_METADATA},
    {{0}, 8, ADDR_BAD},
    {{127}, 8, ADDR_LOOPBACK},
    {{10}, 8, ADDR_PRIVATE},
    {{172, 16}, 12, ADDR_PRIVATE},
    {{192, 168}, 16, ADDR_PRIVATE},
    {{169, 254}, 16, ADDR_LINK_LOCAL},
    {{100, 64}, 10, ADDR_PRIVATE},
    {{192, 0, 0}, 24, ADDR_PRIVATE},
    {{192, 0, 2}, 24, ADDR_PRIVATE},
    {{192, 88, 99}, 24, ADDR_PRIVATE},
    {{198, 18}, 15, ADDR_PRIVATE},
    {{198, 51, 100}, 24, ADDR_PRIVATE},
    {{203, 0, 113}, 24, ADDR_PRIVATE},
    {{224}, 4, ADDR_BAD},
    {{240}, 4, ADDR_BAD},
};

static const struct range v6[] = {
    {{0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, 128, ADDR_METADATA},
    {{0xfd, 0x00, 0x0e, 0xc2, [15] = 0x23}, 128, ADDR_METADATA},
    {{[15] = 1}, 128, ADDR_LOOPBACK},
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01},
     48,
     ADDR_PRIVATE}, /* NAT64 of one's own: where the IPv4 address lies is local */
    {{0xfe, 0x80}, 10, ADDR_LINK_LOCAL},
    {{0xfe, 0xc0}, 10, ADDR_PRIVATE},
    {{0xfc}, 7, ADDR_PRIVATE},
    {{0xff}, 8, ADDR_BAD},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, ADDR_PRIVATE}, /* documentation */
    {{0x20, 0x01}, 23, ADDR_PRIVATE},             /* protocol assignments */
    {{0x3f, 0xff}, 20, ADDR_PRIVATE},
    {{0x20}, 3, ADDR_PUBLIC}, /* global unicast; everything else is not assigned to anybody */
};

static enum addr_class find(const struct range *r, size_t n, const uint8_t *b, enum addr_class otherwise)
{
    for (size_t i = 0; i < n; i++)
        if (same_bits(r[i].b, b, r[i].bits))
            return r[i].class;
    return otherwise;
}

static struct addr inner(const struct addr *a, size_t at, uint8_t mask)
{
    struct addr v = {.family = 4};
    for (size_t i = 0; i < 4; i++)
        v.b[i] = a->b[at + i] ^ mask;
    return v;
}

struct addr addr_unwrap(const struct addr *a)
{
    static const uint8_t zero[16], mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t nat64[12] = {0, 0x64, 0xff, 0x9b};
    static const uint8_t teredo[4] = {0x20, 0x01};
    if (a->family != 6)
        return *a;
    if (memcmp(a->b, mapped, 12) == 0 || memcmp(a->b, nat64, 12) == 0)
        return inner(a, 12, 0);
    /* ::a.b.c.d, but not :: and ::1. */
    if (memcmp(a->b, zero, 12) == 0 && (a->b[12] | a->b[13] | a->b[14] || a->b[15] > 1))
        return inner(a, 12, 0);
    if (a->b[0] == 0x20 && a->b[1] == 0x02)
        return inner(a, 2, 0);
    if (memcmp(a->b, teredo, 4) == 0)
        return inner(a, 12, 0xff);
    return *a;
}

enum addr_class addr_class(const struct addr *a)
{
    struct addr in = addr_unwrap(a);
    if (in.family == 4)
        return find(v4, sizeof(v4) / sizeof(*v4), in.b, ADDR_PUBLIC);
    if (in.family == 6)
        return find(v6, sizeof(v6) / sizeof(*v6), in.b, ADDR_BAD);
    return ADDR_BAD;
}

const char *addr_class_name(enum addr_class c)
{
    switch (c) {
    case ADDR_METADATA: return "metadata";
    case ADDR_LOOPBACK: return "loopback";
    case ADDR_LINK_LOCAL: return "link-local";
    case ADDR_PRIVATE: return "private";
    case ADDR_PUBLIC: return "public";
    case ADDR_BAD: break;
    }
    return "unusable";
}

bool addr_among(const struct addr *a, const struct addr *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (addr_eq(&list[i], a))
            return true;
    return false;
}

bool cidrs_have(const struct cidr *c, size_t n, const struct addr *a)
{
    for (size_t i = 0; i < n; i++)
        if (cidr_has(&c[i], a))
            return true;
    return false;
}

bool addr_may_dial(const struct addr *a, const struct cidr *allowed, size_t n)
{
    struct addr in = addr_unwrap(a);
    enum addr_class class = addr_class(a);
    /* ::ffff:10.0.0.1 is 10.0.0.1, and 64:ff9b::10.0.0.1 is translated to it (RFC 6052). A tunnel's (6to4, Teredo)
     * goes to whoever offers the tunnel. */
    static const uint8_t prefix[2][12] = {{[10] = 0xff, [11] = 0xff}, {0, 0x64, 0xff, 0x9b}};
    bool mapped = a->family == 6 && (memcmp(a->b, prefix[0], 12) == 0 || memcmp(a->b, prefix[1], 12) == 0);
    if (class == ADDR_PUBLIC || class == ADDR_BAD)
        return class == ADDR_PUBLIC;
    for (size_t i = 0; i < n; i++) {
        bool host = allowed[i].bits == addr_bytes(&allowed[i].base) * 8;
        if (class == ADDR_METADATA && !host)
            continue;
        if (cidr_has(&allowed[i], a) || (mapped && cidr_has(&allowed[i], &in)))
            return true;
    }
    return false;
}

socklen_t addr_sockaddr(const struct addr *a, uint16_t port, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof(*out));
    if (a->family == 4) {
        struct sockaddr_in *s = (struct sockaddr_in *)out;
        s->sin_family = AF_INET;
        s->sin_port = htons(port);
        memcpy(&s->sin_addr, a->b, 4);
        return sizeof(*s);
    }
    if (a->family == 6) {
        struct sockaddr_in6 *s = (struct sockaddr_in6 *)out;
        s->sin6_family = AF_INET6;
        s->sin6_port = htons(port);
        memcpy(&s->sin6_addr, a->b, 16);
        return sizeof(*s);
    }
    return 0;
}

int addr_of_sockaddr(const struct sockaddr *sa, struct addr *out, uint16_t *port)
{
    *out = (struct addr){0};
    if (sa == NULL)
        return -1;
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *s = (const struct sockaddr_in *)sa;
        out->family = 4;
        memcpy(out->b, &s->sin_addr, 4);
        *port = ntohs(s->sin_port);
        return 0;
    }
    if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *s = (const struct sockaddr_in6 *)sa;
        out->family = 6;
        memcpy(out->b, &s->sin6_addr, 16);
        *port = ntohs(s->sin6_port);
        return 0;
    }
    return -1;
}

int addr_own(struct addr *out, size_t max)
{
    struct ifaddrs *list;
    size_t n = 0;
    if (getifaddrs(&list) != 0)
        return -1;
    for (struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
        struct addr a;
        uint16_t port;
        if (addr_of_sockaddr(i->ifa_addr, &a, &port) != 0)
            continue;
        if (n < max)
            out[n] = a;
        n++;
    }
    freeifaddrs(list);
    return (int)n;
}
