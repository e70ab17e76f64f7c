#include "common/text/idna.h"

/* RFC 3492 section 5. */
enum { BASE = 36, T_MIN = 1, T_MAX = 26, SKEW = 38, DAMP = 700, BIAS = 72, FIRST = 0x80, LABEL_MAX = 63 };

struct points {
    uint32_t v[LABEL_MAX];
    size_t n;
};

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

bool idna_is_alabel(struct span label)
{
    return span_ieq(span_first(label, 4), SPAN("xn--"));
}

static uint32_t adapt(uint32_t delta, uint32_t points, bool first)
{
    uint32_t k = 0;
    delta = first ? delta / DAMP : delta / 2;
    delta += delta / points;
    for (; delta > (BASE - T_MIN) * T_MAX / 2; k += BASE)
        delta /= BASE - T_MIN;
    return k + (BASE - T_MIN + 1) * delta / (delta + SKEW);
}

static uint32_t threshold(uint32_t k, uint32_t bias)
{
    return k <= bias ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias;
}

static uint32_t digit(uint8_t c)
{
    c = lower(c);
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= '0' && c <= '9' ? c - '0' + 26 : BASE;
}

/* One number of variable length, times and plus as section 6.2 has it. -1: cut short, no digit, or too large. */
static int number(struct span *s, uint32_t bias, uint32_t *i)
{
    uint64_t w = 1, sum = *i;
    for (uint32_t k = BASE;; k += BASE) {
        uint32_t d = s->n ? digit(s->p[0]) : BASE, t = threshold(k, bias);
        if (d == BASE)
            return -1;
        *s = span_from(*s, 1);
        sum += d * w;
        if (sum > INT32_MAX)
            return -1;
        *i = (uint32_t)sum;
        if (d < t)
            return 0;
        w *= BASE - t;
        if (w > INT32_MAX)
            return -1;
    }
}

static int decode(struct span s, struct points *out)
{
    uint32_t next = FIRST, i = 0, bias = BIAS;
    size_t basic = 0;
    for (size_t k = 0; k < s.n; k++)
        if (s.p[k] == '-')
            basic = k;
    for (out->n = 0; out->n < basic; out->n++)
        out->v[out->n] = lower(s.p[out->n]);
    s = span_from(s, basic + (basic > 0));
    while (s.n > 0) {
        uint32_t old = i, len = (uint32_t)out->n + 1;
        if (len > LABEL_MAX || number(&s, bias, &i) != 0)
            return -1;
        bias = adapt(i - old, len, old == 0);
        next += i / len;
        i %= len;
        if (next > 0x10ffff)
            return -1;
        memmove(&out->v[i + 1], &out->v[i], (out->n - i) * sizeof(out->v[0]));
        out->v[i++] = next;
        out->n++;
    }
    return 0;
}

static int put(uint8_t *to, size_t *n, uint8_t c)
{
    if (*n == LABEL_MAX)
        return -1;
    to[(*n)++] = c;
    return 0;
}

static int put_number(uint8_t *to, size_t *n, uint32_t q, uint32_t bias)
{
    for (uint32_t k = BASE;; k += BASE) {
        uint32_t t = threshold(k, bias), d = q < t ? q : t + (q - t) % (BASE - t);
        if (put(to, n, (uint8_t)(d < 26 ? 'a' + d : '0' + d - 26)) != 0)
            return -1;
        if (q < t)
            return 0;
        q = (q - t) / (BASE - t);
    }
}

/* Section 6.3. */
static int encode(const struct points *in, uint8_t *to, size_t *n)
{
    uint32_t next = FIRST, delta = 0, bias = BIAS, done = 0, basic;
    *n = 0;
    for (size_t i = 0; i < in->n; i++)
        if (in->v[i] < FIRST && put(to, n, (uint8_t)in->v[i]) != 0)
            return -1;
    basic = done = (uint32_t)*n;
    if (basic > 0 && put(to, n, '-') != 0)
        return -1;
    while (done < in->n) {
        uint32_t least = UINT32_MAX;
        for (size_t i = 0; i < in->n; i++)
            if (in->v[i] >= next && in->v[i] < least)
                least = in->v[i];
        delta += (least - next) * (done + 1); /* no overflow: decode bounded both */
        next = least;
        for (size_t i = 0; i < in->n; i++) {
            delta += in->v[i] < next;
            if (in->v[i] != next)
                continue;
            if (put_number(to, n, delta, bias) != 0)
                return -1;
            bias = adapt(delta, done + 1, done == basic);
            delta = 0;
            done++;
        }
        delta++;
        next++;
    }
    return 0;
}

/* Characters that IDNA2008 lets into no name (RFC 5892) and that are taken for others, or not seen. */
static bool never_in_names(uint32_t c)
{
    static const uint32_t range[][2] = {
        {0x00, 0x2c},       {0x2e, 0x2f},       {0x3a, 0x60},        {0x7b, 0xb6}, /* ASCII but LDH, Latin-1 signs */
        {0xb8, 0xde},       {0xf7, 0xf7},       {0x2b0, 0x2b8},      {0x2e0, 0x2e4},
        {0x34f, 0x34f},     {0x391, 0x3ab},     {0x400, 0x42f},      {0x61c, 0x61c},
        {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},    {0x1d2c, 0x1d2e},
        {0x2000, 0x2bff},   {0x2ff0, 0x3004},   {0x3164, 0x3164}, /* punctuation, symbols, letter-like forms */
        {0x3200, 0x33ff},   {0xd800, 0xfa0d},   {0xfb00, 0xfe1f}, /* surrogates, private use, presentation */
        {0xfe30, 0xfe72},   {0xfe74, 0xffff},   {0x1d100, 0x1d7ff},  {0x1f000, 0x1faff},
        {0x1fbf0, 0x1fbff}, {0x2f800, 0x2fa1f}, {0xe0000, 0x10ffff},
    };
    for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++)
        if (c >= range[i][0] && c <= range[i][1])
            return true;
    return false;
}

bool idna_alabel_ok(struct span label)
{
    uint8_t back[LABEL_MAX];
    struct points p = {.n = 0};
    size_t n = 0, other = 0;
    struct span code = span_from(label, 4);
    if (!idna_is_alabel(label) || label.n > LABEL_MAX || code.n == 0 || decode(code, &p) != 0)
        return false;
    for (size_t i = 0; i < p.n; i++) {
        if (never_in_names(p.v[i]))
            return false;
        other += p.v[i] >= FIRST;
    }
    /* A label neither begins nor ends with a hyphen, nor passes for one that is encoded. */
    if (other == 0 || p.v[0] == '-' || p.v[p.n - 1] == '-' || (p.n > 3 && p.v[2] == '-' && p.v[3] == '-'))
        return false;
    return encode(&p, back, &n) == 0 && span_ieq(span_of(back, n), code);
}

static void spell_label(struct dynbuf *out, struct span label)
{
    struct points p = {.n = 0};

    if (!idna_alabel_ok(label) || decode(span_from(label, 4), &p) != 0) {
        (void)dynbuf_add(out, label);
        return;
    }
    for (size_t i = 0; i < p.n; i++)
        if (p.v[i] < FIRST)
            (void)dynbuf_add_byte(out, (uint8_t)p.v[i]);
        else
            (void)dynbuf_addf(out, "\\u{%x}", (unsigned)p.v[i]);
}

void idna_spell(struct dynbuf *out, struct span host)
{
    struct span label;

    for (bool more = true; more;) {
        more = span_cut(host, '.', &label, &host);
        spell_label(out, label);
        if (more)
            (void)dynbuf_add_byte(out, '.');
    }
}
