#include "common/lease/lease.h"

enum { CHECKSUM = 6 };

struct row {
    const char *name;
    struct span prefix;
    enum lease_alphabet alphabet, secret_alphabet;
    size_t n, secret;
    enum lease_checksum checksum;
};

static const struct row rows[LEASE_FORMAT_COUNT] = {
#define X(id, name, prefix, alphabet, n, checksum, secret, secret_alphabet)                                          \
    [LEASE_##                                                                                                        \
        id] = {name, {(const uint8_t *)prefix, sizeof(prefix) - 1}, alphabet, secret_alphabet, n, secret, checksum},
    LEASE_FORMATS(X)
#undef X
};

#define X(id, name, prefix, alphabet, n, checksum, secret, secret_alphabet)                                          \
    _Static_assert((n) >= LEASE_TAG + CHECKSUM + 4 && (n) <= LEASE_BODY_MAX &&                                       \
                       (n) + sizeof(prefix) - 1 <= LEASE_TEXT_MAX && (secret) <= LEASE_TEXT_MAX,                     \
                   "the lengths of a lease of form " name);
LEASE_FORMATS(X)
#undef X
_Static_assert(2 * LEASE_TEXT_MAX <= LEASE_STREAM, "two bytes for a character");

static const char *const alphabets[] = {
    [LEASE_BASE62] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    [LEASE_BASE32] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    [LEASE_URL] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_",
    [LEASE_BASE64] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/"};
static const size_t sizes[] = {[LEASE_BASE62] = 62, [LEASE_BASE32] = 32, [LEASE_URL] = 64, [LEASE_BASE64] = 64};

static const struct row *row_of(enum lease_format f)
{
    return (unsigned)f > LEASE_NONE && (unsigned)f < LEASE_FORMAT_COUNT ? &rows[f] : NULL;
}

const char *lease_format_name(enum lease_format f)
{
    const struct row *r = row_of(f);
    return r ? r->name : NULL;
}

enum lease_format lease_format_named(struct span name)
{
    for (unsigned i = LEASE_NONE + 1; i < LEASE_FORMAT_COUNT; i++)
        if (span_eq(name, span_str(rows[i].name)))
            return (enum lease_format)i;
    return LEASE_NONE;
}

bool lease_is_pair(enum lease_format f)
{
    const struct row *r = row_of(f);
    return r != NULL && r->secret > 0;
}

/* Two bytes for a character: the first characters of an alphabet come up by less than a thousandth more often. */
static void spell(enum lease_alphabet a, const uint8_t *stream, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = alphabets[a][(size_t)(stream[2 * i] << 8 | stream[2 * i + 1]) % sizes[a]];
}

/* IEEE 802.3, as zlib's crc32. */
static uint32_t crc32_of(const char *s, size_t n)
{
    uint32_t c = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        c ^= (uint8_t)s[i];
        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    }
    return ~c;
}

/* As GitHub's tokens have it since 2021, and npm's: over the characters between prefix and checksum. */
static void put_checksum(char *body, size_t n)
{
    uint32_t c = crc32_of(body, n);
    for (size_t i = CHECKSUM; i-- > 0; c /= 62)
        body[n + i] = alphabets[LEASE_BASE62][c % 62];
}

size_t lease_text(enum lease_format f, const char *tag, const uint8_t *stream, char *out)
{
    const struct row *r = row_of(f);
    if (r == NULL)
        return 0;
    size_t random = r->n - LEASE_TAG - (r->checksum == LEASE_CRC62 ? CHECKSUM : 0);
    char *body = out + r->prefix.n;
    memcpy(out, r->prefix.p, r->prefix.n);
    memcpy(body, tag, LEASE_TAG);
    spell(r->alphabet, stream, random, body + LEASE_TAG);
    if (r->checksum == LEASE_CRC62)
        put_checksum(body, LEASE_TAG + random);
    return r->prefix.n + r->n;
}

size_t lease_secret(enum lease_format f, const uint8_t *stream, char *out)
{
    const struct row *r = row_of(f);
    if (r == NULL || r->secret == 0)
        return 0;
    spell(r->secret_alphabet, stream, r->secret, out);
    return r->secret;
}

void lease_tag(const uint8_t seed[5], char out[LEASE_TAG + 1])
{
    uint64_t v = 0;
    for (size_t i = 0; i < 5; i++)
        v = v << 8 | seed[i];
    for (size_t i = 0; i < LEASE_TAG; i++, v >>= 5)
        out[i] = alphabets[LEASE_BASE32][v & 31];
    out[LEASE_TAG] = '\0';
}

/* Does the prefix stand before it, and behind it what belongs to the form? */
static bool stands(const struct row *r, struct span s, size_t at)
{
    size_t n = 0;
    if (at < r->prefix.n || !span_eq(span_of(s.p + at - r->prefix.n, r->prefix.n), r->prefix))
        return false;
    while (n < r->n && at + n < s.n && s.p[at + n] != 0 && strchr(alphabets[r->alphabet], s.p[at + n]) != NULL)
        n++;
    return n == r->n;
}

struct span lease_around(struct span s, size_t at)
{
    for (unsigned i = LEASE_NONE + 1; i < LEASE_FORMAT_COUNT; i++)
        if (stands(&rows[i], s, at))
            return span_of(s.p + at - rows[i].prefix.n, rows[i].prefix.n + rows[i].n);
    return SPAN_NONE;
}

enum lease_format lease_format_of(struct span text, size_t *tag)
{
    for (unsigned i = LEASE_NONE + 1; i < LEASE_FORMAT_COUNT; i++)
        if (text.n == rows[i].prefix.n + rows[i].n && stands(&rows[i], text, rows[i].prefix.n)) {
            *tag = rows[i].prefix.n;
            return (enum lease_format)i;
        }
    return LEASE_NONE;
}
