#include "common/sign/sign.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { SECRET_MAX = 1024, SCOPE_MAX = 512 };

static int hmac(struct span key, struct span data, uint8_t out[SIGN_KEY])
{
    unsigned n = SIGN_KEY;
    return HMAC(EVP_sha256(), key.p, (int)key.n, data.p, data.n, out, &n) != NULL && n == SIGN_KEY ? 0 : -1;
}

int sign_key(const struct sign_scope *s, struct span secret, uint8_t key[SIGN_KEY])
{
    const struct sign_words *scheme = sign_words(s->scheme);
    uint8_t first[SECRET_MAX + 8];
    int rc = -1;
    if (scheme == NULL || secret.n == 0 || secret.n > SECRET_MAX)
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
    const struct sign_words *scheme = sign_words(s->scheme);
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
    (void)dynbuf_add(&b, sign_words(s->scheme)->algorithm);
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

int sign_digest(const struct sign_scope *s, const uint8_t key[SIGN_KEY], const struct digest *canonical,
                char out[SIGN_TEXT + 1])
{
    return sign(s, key, SPAN_NONE, NULL, (const struct digest *const[]){canonical}, 1, out);
}

int sign_request(const struct sign_scope *s, const uint8_t key[SIGN_KEY], const struct sign_request *r,
                 char out[SIGN_TEXT + 1])
{
    struct digest canonical;
    sign_canonical(r, &canonical);
    return sign_digest(s, key, &canonical, out);
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
    (void)dynbuf_add(out, sign_words(s->scheme)->algorithm);
    (void)dynbuf_add(out, SPAN(" Credential="));
    (void)dynbuf_add(out, id);
    (void)dynbuf_add_byte(out, '/');
    add_scope(s, out);
    (void)dynbuf_add(out, SPAN(", SignedHeaders="));
    int rc = sign_names(r, out);
    (void)dynbuf_add(out, SPAN(", Signature="));
    return dynbuf_add(out, span_of(signature, SIGN_TEXT)) == 0 ? rc : -1;
}
