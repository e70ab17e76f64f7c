#include "common/sign/sign.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <time.h>

static const struct scheme {
    struct span algorithm, prefix, end;
    bool region;
} schemes[SIGN_SCHEMES] = {
    [SIGN_AWS4] = {SPAN("AWS4-HMAC-SHA256"), SPAN("AWS4"), SPAN("aws4_request"), true},
    [SIGN_TC3] = {SPAN("TC3-HMAC-SHA256"), SPAN("TC3"), SPAN("tc3_request"), false},
};

enum { SECRET_MAX = 1024, SCOPE_MAX = 512 };

static int finish(enum sign_scheme scheme, struct span region, struct span service, struct sign_scope *out)
{
    bool wanted = schemes[scheme].region;
    if (!sign_name_ok(service) || (wanted ? !sign_name_ok(region) : region.n != 0))
        return -1;
    out->scheme = scheme;
    out->region = region;
    out->service = service;
    return 0;
}

int sign_scope_at(enum sign_scheme scheme, int64_t now, struct span region, struct span service,
                  struct sign_scope *out)
{
    const int64_t last = 253402300799; /* of the year 9999 */
    bool tc3 = scheme == SIGN_TC3;
    time_t t = (time_t)now;
    struct tm tm;
    if ((scheme != SIGN_AWS4 && !tc3) || now < 0 || now > last || gmtime_r(&t, &tm) == NULL)
        return -1;
    *out = (struct sign_scope){.scheme = SIGN_NONE};
    if (strftime(out->day, sizeof(out->day), tc3 ? "%Y-%m-%d" : "%Y%m%d", &tm) == 0)
        return -1;
    if (tc3)
        snprintf(out->stamp, sizeof(out->stamp), "%" PRId64, now);
    else if (strftime(out->stamp, sizeof(out->stamp), "%Y%m%dT%H%M%SZ", &tm) == 0)
        return -1;
    return finish(scheme, region, service, out);
}

int sign_scope_of(enum sign_scheme scheme, struct span stamp, struct span region, struct span service,
                  struct sign_scope *out)
{
    uint64_t v;
    if (scheme == SIGN_TC3)
        return span_u64(stamp, INT64_MAX, &v) == 0 ? sign_scope_at(scheme, (int64_t)v, region, service, out) : -1;
    if (scheme != SIGN_AWS4 || stamp.n != 16 || stamp.p[8] != 'T' || stamp.p[15] != 'Z')
        return -1;
    for (size_t i = 0; i < 15; i++)
        if (i != 8 && (stamp.p[i] < '0' || stamp.p[i] > '9'))
            return -1;
    *out = (struct sign_scope){.scheme = SIGN_NONE};
    memcpy(out->stamp, stamp.p, stamp.n);
    memcpy(out->day, stamp.p, 8);
    return finish(scheme, region, service, out);
}

static int hmac(struct span key, struct span data, uint8_t out[SIGN_KEY])
{
    unsigned n = SIGN_KEY;
    return HMAC(EVP_sha256(), key.p, (int)key.n, data.p, data.n, out, &n) != NULL && n == SIGN_KEY ? 0 : -1;
}

int sign_key(const struct sign_scope *s, struct span secret, uint8_t key[SIGN_KEY])
{
    const struct scheme *scheme = &schemes[s->scheme];
    uint8_t first[SECRET_MAX + 8];
    int rc = -1;
    if (s->scheme == SIGN_NONE || secret.n == 0 || secret.n > SECRET_MAX)
        return -1;
    memcpy(first, scheme->prefix.p, scheme->prefix.n);
    memcpy(first + scheme->prefix.n, secret.p, secret.n);
    if (hmac(span_of(first, scheme->prefix.n + secret.n), span_str(s->day), key) != 0)
        goto out;
    if (scheme->region && hmac(span_of(key, SIGN_KEY), s->region, key) != 0)
        goto out;
    if (hmac(span_of(key, SIGN_KEY), s->service, key) == 0 && hmac(span_of(key, SIGN_KEY), scheme->end, key) == 0)
        rc = 0;
out:
    explicit_bzero(first, sizeof(first));
    if (rc != 0)
        explicit_bzero(key, SIGN_KEY);
    return rc;
}

static void add_scope(const struct sign_scope *s, struct dynbuf *out)
{
    const struct scheme *scheme = &schemes[s->scheme];
    (void)dynbuf_add(out, span_str(s->day));
    (void)dynbuf_add_byte(out, '/');
    if (scheme->region) {
        (void)dynbuf_add(out, s->region);
        (void)dynbuf_add_byte(out, '/');
    }
    (void)dynbuf_add(out, s->service);
    (void)dynbuf_add_byte(out, '/');
    (void)dynbuf_add(out, scheme->end);
}

static void add_hex(const struct digest *d, struct dynbuf *out)
{
    char text[2 * DIGEST_BYTES + 1];
    hex_text(span_of(d->b, DIGEST_BYTES), text);
    (void)dynbuf_add(out, span_of(text, 2 * DIGEST_BYTES));
}

/* algorithm and suffix, stamp, scope, then the lines of b; signed. */
static int sign(const struct sign_scope *s, const uint8_t key[SIGN_KEY], struct span suffix, const char *previous,
                const struct digest *const *hash, size_t nhash, char out[SIGN_TEXT + 1])
{
    struct dynbuf b;
    uint8_t raw[SIGN_KEY];
    int rc = -1;
    if (s->scheme == SIGN_NONE)
        return -1;
    dynbuf_init(&b, SCOPE_MAX + 4 * SIGN_TEXT);
    (void)dynbuf_add(&b, schemes[s->scheme].algorithm);
    (void)dynbuf_add(&b, suffix);
    (void)dynbuf_add_byte(&b, '\n');
    (void)dynbuf_add(&b, span_str(s->stamp));
    (void)dynbuf_add_byte(&b, '\n');
    add_scope(s, &b);
    if (previous != NULL) {
        (void)dynbuf_add_byte(&b, '\n');
        (void)dynbuf_add(&b, span_of(previous, SIGN_TEXT));
    }
    for (size_t i = 0; i < nhash; i++) {
        (void)dynbuf_add_byte(&b, '\n');
        add_hex(hash[i], &b);
    }
    if (dynbuf_ok(&b) && hmac(span_of(key, SIGN_KEY), dynbuf_span(&b), raw) == 0) {
        hex_text(span_of(raw, sizeof(raw)), out);
        rc = 0;
    }
    dynbuf_free(&b);
    return rc;
}

int sign_request(const struct sign_scope *s, const uint8_t key[SIGN_KEY], const struct sign_request *r,
                 char out[SIGN_TEXT + 1])
{
    struct digest canonical;
    sign_canonical(r, &canonical);
    return sign(s, key, SPAN_NONE, NULL, (const struct digest *const[]){&canonical}, 1, out);
}

int sign_chunk(const struct sign_scope *s, const uint8_t key[SIGN_KEY], const char previous[SIGN_TEXT + 1],
               const struct digest *data, char out[SIGN_TEXT + 1])
{
    struct digest none;
    digest_of(SPAN_NONE, &none);
    return sign(s, key, SPAN("-PAYLOAD"), previous, (const struct digest *const[]){&none, data}, 2, out);
}

int sign_trailer(const struct sign_scope *s, const uint8_t key[SIGN_KEY], const char previous[SIGN_TEXT + 1],
                 const struct digest *fields, char out[SIGN_TEXT + 1])
{
    return sign(s, key, SPAN("-TRAILER"), previous, (const struct digest *const[]){fields}, 1, out);
}

int sign_authorization(const struct sign_scope *s, struct span id, const struct sign_request *r,
                       const char signature[SIGN_TEXT + 1], struct dynbuf *out)
{
    if (s->scheme == SIGN_NONE || !sign_name_ok(id))
        return -1;
    (void)dynbuf_add(out, schemes[s->scheme].algorithm);
    (void)dynbuf_add(out, SPAN(" Credential="));
    (void)dynbuf_add(out, id);
    (void)dynbuf_add_byte(out, '/');
    add_scope(s, out);
    (void)dynbuf_add(out, SPAN(", SignedHeaders="));
    int rc = sign_names(r, out);
    (void)dynbuf_add(out, SPAN(", Signature="));
    return dynbuf_add(out, span_of(signature, SIGN_TEXT)) == 0 ? rc : -1;
}

static bool is_signature(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (hex_digit(s.p[i]) < 0 || (s.p[i] >= 'A' && s.p[i] <= 'F'))
            return false;
    return s.n == SIGN_TEXT;
}

/* ID/day/[region/]service/end */
static int read_credential(struct span s, struct sign_claim *out)
{
    const struct scheme *scheme = &schemes[out->scheme];
    if (!span_cut(s, '/', &out->id, &s) || !span_cut(s, '/', &out->day, &s))
        return -1;
    if (scheme->region && (!span_cut(s, '/', &out->region, &s) || !sign_name_ok(out->region)))
        return -1;
    if (!span_cut(s, '/', &out->service, &s) || !sign_name_ok(out->service) || !sign_name_ok(out->id))
        return -1;
    return span_eq(s, scheme->end) && out->day.n == (out->scheme == SIGN_TC3 ? 10 : 8) ? 0 : -1;
}

int sign_claim_read(struct span authorization, struct sign_claim *out)
{
    struct span word, rest, part;
    static const struct span key[] = {SPAN("Credential="), SPAN("SignedHeaders="), SPAN("Signature=")};
    struct span value[3];
    *out = (struct sign_claim){.scheme = SIGN_NONE};
    if (!span_cut(authorization, ' ', &word, &rest))
        return -1;
    enum sign_scheme scheme = SIGN_NONE;
    for (size_t i = SIGN_AWS4; i < SIGN_SCHEMES; i++)
        if (span_eq(word, schemes[i].algorithm))
            scheme = (enum sign_scheme)i;
    if (scheme == SIGN_NONE)
        return -1;
    for (size_t i = 0; i < 3; i++) {
        bool more = span_cut(rest, ',', &part, &rest);
        part = span_trim(part);
        if (more != (i < 2) || !span_starts(part, key[i]))
            return -1;
        value[i] = span_from(part, key[i].n);
    }
    out->scheme = scheme;
    out->names = value[1];
    out->signature = value[2];
    if (read_credential(value[0], out) == 0 && out->names.n > 0 && is_signature(out->signature))
        return 0;
    *out = (struct sign_claim){.scheme = SIGN_NONE};
    return -1;
}

bool sign_claims(const struct sign_claim *c, struct span name)
{
    struct span rest = c->names, one;
    for (bool more = rest.n > 0; more;) {
        more = span_cut(rest, ';', &one, &rest);
        if (span_ieq(one, name))
            return true;
    }
    return false;
}
