#include "common/sign/hmac.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <inttypes.h>
#include <time.h>

#include "common/id.h"

enum { TEXT_MAX = 2 * EVP_MAX_MD_SIZE + 1 };

/* ---- bytes as text ---- */

static int put_coded(struct dynbuf *out, struct span raw, enum sign_coding c)
{
    char text[TEXT_MAX + 1];
    size_t n = 2 * raw.n;
    if (raw.n > EVP_MAX_MD_SIZE || c == SIGN_AS_TEXT)
        return -1;
    if (c == SIGN_HEX)
        hex_text(raw, text);
    else
        n = base64_encode(raw, text);
    for (size_t i = 0; c == SIGN_BASE64URL && i < n; i++)
        text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
    while (c == SIGN_BASE64URL && n > 0 && text[n - 1] == '=')
        n--;
    return dynbuf_add(out, span_of(text, n));
}

int sign_body_part(enum sign_part_kind k, struct span body, struct dynbuf *out)
{
    bool base64 = k == PART_BODY_SHA256_BASE64 || k == PART_BODY_SHA512_BASE64;
    bool wide = k == PART_BODY_SHA512 || k == PART_BODY_SHA512_BASE64;
    uint8_t raw[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (!sign_part_of_body(k) || k == PART_BODY)
        return -1;
    if (EVP_Digest(body.p, body.n, raw, &n, wide ? EVP_sha512() : EVP_sha256(), NULL) != 1)
        return -1;
    return put_coded(out, span_of(raw, n), base64 ? SIGN_BASE64 : SIGN_HEX);
}

static int put_time(struct dynbuf *out, enum sign_part_kind k, uint64_t now_ms)
{
    char text[40];
    struct tm tm;
    time_t t = (time_t)(now_ms / 1000);
    if (k == PART_TIME || k == PART_TIME_MS)
        return dynbuf_addf(out, "%" PRIu64, k == PART_TIME ? now_ms / 1000 : now_ms);
    if (gmtime_r(&t, &tm) == NULL || tm.tm_year > 9999 - 1900)
        return -1;
    size_t n = strftime(text, sizeof(text), k == PART_DATE ? "%a, %d %b %Y %H:%M:%S GMT" : "%Y-%m-%dT%H:%M:%SZ", &tm);
    return n > 0 ? dynbuf_add(out, span_of(text, n)) : -1;
}

static int put_given(struct dynbuf *out, const struct sign_facts *f, struct span word)
{
    for (size_t i = 0; i < f->ngiven; i++)
        if (span_eq(f->given[i].name, word))
            return dynbuf_add(out, f->given[i].value);
    return -1;
}

static int put_part(struct dynbuf *out, const struct sign_facts *f, const struct sign_part *p)
{
    switch (p->kind) {
    case PART_TEXT: return dynbuf_add(out, p->text);
    case PART_METHOD: return dynbuf_add(out, f->method);
    case PART_PATH: return dynbuf_add(out, f->path);
    case PART_QUERY: return dynbuf_add(out, span_from(f->query, f->query.n > 0));
    case PART_TARGET: return dynbuf_add(out, f->path) == 0 ? dynbuf_add(out, f->query) : -1;
    case PART_HOST: return dynbuf_add(out, f->host);
    case PART_BODY: return dynbuf_add(out, f->body);
    case PART_TIME:
    case PART_TIME_MS:
    case PART_DATE:
    case PART_ISO_TIME: return put_time(out, p->kind, f->now_ms);
    case PART_ID: return f->id.n > 0 ? dynbuf_add(out, f->id) : -1;
    case PART_TOKEN: return f->token.n > 0 ? dynbuf_add(out, f->token) : -1;
    case PART_SIGNATURE: return f->signature.n > 0 ? dynbuf_add(out, f->signature) : -1;
    default: return put_given(out, f, p->text);
    }
}

int sign_expand(struct span text, const struct sign_facts *f, struct dynbuf *out)
{
    struct sign_part p;
    int more;
    while ((more = sign_part_next(&text, &p)) > 0)
        if (put_part(out, f, &p) != 0)
            return -1;
    return more;
}

/* ---- the key, and what it makes ---- */

static int decode_base64(struct span text, bool url, uint8_t *out, size_t *n)
{
    uint8_t usual[4 * ((SIGN_HMAC_KEY_MAX + 2) / 3) + 4];
    size_t len = text.n;
    if (len > sizeof(usual) - 4)
        return -1;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = text.p[i];
        if (url && (c == '+' || c == '/'))
            len = 0; /* of the other alphabet */
        else
            usual[i] = url && c == '-' ? '+' : url && c == '_' ? '/' : c;
    }
    while (url && len % 4 != 0) /* which may be without its '=' */
        usual[len++] = '=';
    int rc = len > 0 ? base64_decode(span_of(usual, len), out, n) : -1;
    explicit_bzero(usual, sizeof(usual));
    return rc;
}

int sign_hmac_key(enum sign_coding c, struct span text, uint8_t *out, size_t *n)
{
    *n = 0;
    if (text.n == 0 || text.n > SIGN_HMAC_KEY_MAX)
        return -1;
    if (c == SIGN_AS_TEXT) {
        memcpy(out, text.p, text.n);
        *n = text.n;
        return 0;
    }
    if (c != SIGN_HEX)
        return decode_base64(text, c == SIGN_BASE64URL, out, n) == 0 && *n > 0 ? 0 : -1;
    for (size_t i = 0; i + 1 < text.n; i += 2) { /* in either case: it is somebody else's */
        int byte = hex_number(span_of(text.p + i, 2), 2);
        if (byte < 0)
            return -1;
        out[(*n)++] = (uint8_t)byte;
    }
    return text.n % 2 == 0 ? 0 : -1;
}

int sign_hmac(enum sign_hash h, struct span key, struct span data, enum sign_coding c, struct dynbuf *out)
{
    static const uint8_t none[1];
    uint8_t raw[EVP_MAX_MD_SIZE];
    unsigned n = sizeof(raw);
    const EVP_MD *md = h == SIGN_SHA256 ? EVP_sha256() : h == SIGN_SHA512 ? EVP_sha512() : EVP_sha1();
    if (key.n > SIGN_HMAC_KEY_MAX || h >= SIGN_HASHES)
        return -1;
    if (HMAC(md, key.n ? key.p : none, (int)key.n, data.n ? data.p : none, data.n, raw, &n) == NULL)
        return -1;
    return put_coded(out, span_of(raw, n), c);
}
