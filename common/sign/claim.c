#include "common/sign/claim.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "common/id.h"

static const struct sign_words schemes[SIGN_SCHEMES] = {
    [SIGN_AWS4] = {SPAN("AWS4-HMAC-SHA256"), SPAN("AWS4"), SPAN("aws4_request"), true},
    [SIGN_TC3] = {SPAN("TC3-HMAC-SHA256"), SPAN("TC3"), SPAN("tc3_request"), false},
};

const struct sign_words *sign_words(enum sign_scheme s)
{
    return (unsigned)s < SIGN_SCHEMES && s != SIGN_NONE ? &schemes[s] : NULL;
}

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

int64_t sign_scope_time(const struct sign_scope *s)
{
    struct span stamp = span_str(s->stamp);
    struct sign_scope again;
    struct tm tm = {.tm_year = 0};
    uint64_t v;
    if (s->scheme == SIGN_TC3)
        return span_u64(stamp, INT64_MAX, &v) == 0 ? (int64_t)v : -1;
    if (s->scheme != SIGN_AWS4 || sscanf(s->stamp, "%4d%2d%2dT%2d%2d%2dZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
                                         &tm.tm_hour, &tm.tm_min, &tm.tm_sec) != 6)
        return -1;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    int64_t t = (int64_t)timegm(&tm);
    /* The 31st of June is none, though it can be counted to. */
    if (sign_scope_at(s->scheme, t, s->region, s->service, &again) != 0 || !span_eq(span_str(again.stamp), stamp))
        return -1;
    return t;
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
    const struct sign_words *scheme = &schemes[out->scheme];
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
