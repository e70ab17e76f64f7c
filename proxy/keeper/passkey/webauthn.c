#include "proxy/keeper/passkey/webauthn.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/x509.h>
#include <string.h>

#include "common/json/json.h"
#include "proxy/keeper/passkey/cbor.h"

enum { HASH = 32, DATA_LEAST = HASH + 1 + 4, AAGUID = 16, CHALLENGE_TEXT = 43, JSON_ARENA = 64 * 1024 };
enum { UP = 0x01, UV = 0x04, BE = 0x08, BS = 0x10, AT = 0x40, ED = 0x80 };
enum { ES256 = 6 /* -1 - n of -7 */, EDDSA = 7 /* -8 */, RS256 = 256 /* -257 */ };

/* --- clientDataJSON --------------------------------------------------------- */

static void base64url(const struct digest *d, char out[CHALLENGE_TEXT + 1])
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t at = 0;
    for (size_t i = 0; i < DIGEST_BYTES; i += 3) {
        uint32_t v = (uint32_t)d->b[i] << 16 | (i + 1 < DIGEST_BYTES ? (uint32_t)d->b[i + 1] << 8 : 0) |
                     (i + 2 < DIGEST_BYTES ? d->b[i + 2] : 0u);
        for (unsigned k = 0; k < 4 && at < CHALLENGE_TEXT; k++)
            out[at++] = set[v >> (18 - 6 * k) & 63];
    }
    out[at] = '\0';
}

static int read_json(const struct webauthn_site *s, const struct digest *challenge, struct span type,
                     struct span json, struct err *e)
{
    char want[CHALLENGE_TEXT + 1];
    struct arena a;
    int bad = 0;
    arena_init(&a, JSON_ARENA);
    const struct json *j = json.n <= WEBAUTHN_JSON_MAX ? json_parse(json, &a) : NULL, *cross = NULL;
    base64url(challenge, want);
    if (j == NULL || j->type != JSON_OBJECT)
        bad = err_set(e, "what the browser says of it cannot be read");
    else if (!span_eq(json_text(j, SPAN("type")), type))
        bad = err_set(e, "it was made for something else");
    else if (!span_eq_consttime(json_text(j, SPAN("challenge")), span_str(want)))
        bad = err_set(e, "it is about something else");
    else if (!span_eq(json_text(j, SPAN("origin")), s->origin) || json_get(j, SPAN("topOrigin")) != NULL)
        bad = err_set(e, "it was made on another page");
    else if ((cross = json_get(j, SPAN("crossOrigin"))) != NULL && (cross->type != JSON_BOOL || cross->truth))
        bad = err_set(e, "it was made in a frame of another page");
    arena_free(&a);
    return bad;
}

/* --- authenticatorData ------------------------------------------------------ */

/* Up to the counter; rest: what comes behind it. */
static int read_data(const struct webauthn_site *s, struct span data, unsigned *flags, uint32_t *count,
                     struct span *rest, struct err *e)
{
    struct digest rp;
    if (data.n < DATA_LEAST || data.n > WEBAUTHN_OBJECT_MAX)
        return err_set(e, "what the device says cannot be read");
    digest_of(s->rp, &rp);
    if (!span_eq_consttime(span_first(data, HASH), span_of(rp.b, DIGEST_BYTES)))
        return err_set(e, "it is a passkey of another site");
    *flags = data.p[HASH];
    *count = (uint32_t)data.p[HASH + 1] << 24 | (uint32_t)data.p[HASH + 2] << 16 | (uint32_t)data.p[HASH + 3] << 8 |
             data.p[HASH + 4];
    *rest = span_from(data, DATA_LEAST);
    if ((*flags & UP) == 0 || (*flags & UV) == 0)
        return err_set(e, "the device did not ask who is there (a PIN, a finger, a face)");
    if ((*flags & BS) != 0 && (*flags & BE) == 0)
        return err_set(e, "what the device says contradicts itself");
    return 0;
}

/* Extensions, where the flags say so, and nothing else. */
static bool ends_well(unsigned flags, struct span rest)
{
    struct span more = rest;
    struct cbor c;
    if ((flags & ED) == 0)
        return rest.n == 0;
    return cbor_next(&more, &c) == 0 && c.kind == CBOR_MAP && cbor_skip(&rest) == 0 && rest.n == 0;
}

/* --- the public key: COSE (RFC 9053) to SPKI -------------------------------- */

struct cose {
    uint64_t kty, alg, crv;
    bool alg_known;
    struct span x, y; /* labels -2 and -3: of RSA the exponent and nothing; its modulus has label -1 */
    struct span n;
};

static int read_cose(struct span *rest, struct cose *k)
{
    struct cbor map, label, value;
    *k = (struct cose){.kty = 0};
    if (cbor_next(rest, &map) != 0 || map.kind != CBOR_MAP || map.n > 8)
        return -1;
    for (uint64_t i = 0; i < map.n; i++) {
        if (cbor_next(rest, &label) != 0 || cbor_next(rest, &value) != 0)
            return -1;
        bool bytes = value.kind == CBOR_BYTES;
        if (label.kind == CBOR_UINT && label.n == 1 && value.kind == CBOR_UINT)
            k->kty = value.n;
        else if (label.kind == CBOR_UINT && label.n == 3 && value.kind == CBOR_NINT && !k->alg_known) {
            k->alg = value.n;
            k->alg_known = true;
        } else if (label.kind == CBOR_NINT && label.n == 0 && value.kind == CBOR_UINT)
            k->crv = value.n;
        else if (label.kind == CBOR_NINT && label.n == 0 && bytes)
            k->n = value.bytes;
        else if (label.kind == CBOR_NINT && label.n == 1 && bytes && k->x.n == 0)
            k->x = value.bytes;
        else if (label.kind == CBOR_NINT && label.n == 2 && bytes && k->y.n == 0)
            k->y = value.bytes;
        else
            return -1;
    }
    return k->alg_known ? 0 : -1;
}

static int spki_of(EVP_PKEY *key, struct webauthn_key *out)
{
    uint8_t *at = out->spki;
    int n = key ? i2d_PUBKEY(key, NULL) : -1;
    if (n <= 0 || n > WEBAUTHN_SPKI_MAX || i2d_PUBKEY(key, &at) != n)
        return -1;
    out->nspki = (size_t)n;
    return 0;
}

/* A point on P-256, or of Ed25519: the SPKI is a constant before it. */
static int from_point(struct span before, struct span a, struct span b, struct webauthn_key *out)
{
    uint8_t der[128];
    const uint8_t *at = der;
    size_t n = before.n + a.n + b.n;
    if (n > sizeof(der))
        return -1;
    memcpy(der, before.p, before.n);
    memcpy(der + before.n, a.p, a.n);
    if (b.n)
        memcpy(der + before.n + a.n, b.p, b.n);
    EVP_PKEY *key = d2i_PUBKEY(NULL, &at, (long)n); /* which looks whether it is on the curve */
    int bad = key == NULL || at != der + n ? -1 : spki_of(key, out);
    EVP_PKEY_free(key);
    return bad;
}

static int from_rsa(struct span modulus, struct span exponent, struct webauthn_key *out)
{
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    OSSL_PARAM *p = NULL;
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    EVP_PKEY *key = NULL;
    BIGNUM *n = BN_bin2bn(modulus.p, (int)modulus.n, NULL);
    int bad = -1;
    bool fits = modulus.n >= 256 && modulus.n <= 512 && modulus.p[0] >= 0x80 && (modulus.p[modulus.n - 1] & 1) &&
                span_eq(exponent, SPAN("\x01\x00\x01"));
    if (fits && b && c && n && OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
        OSSL_PARAM_BLD_push_ulong(b, OSSL_PKEY_PARAM_RSA_E, 65537) == 1 && (p = OSSL_PARAM_BLD_to_param(b)) != NULL &&
        EVP_PKEY_fromdata_init(c) == 1 && EVP_PKEY_fromdata(c, &key, EVP_PKEY_PUBLIC_KEY, p) == 1)
        bad = spki_of(key, out);
    EVP_PKEY_free(key);
    OSSL_PARAM_free(p);
    OSSL_PARAM_BLD_free(b);
    EVP_PKEY_CTX_free(c);
    BN_free(n);
    return bad;
}

static int take_key(const struct cose *k, struct webauthn_key *out)
{
    static const struct span p256 = SPAN("\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48"
                                         "\xce\x3d\x03\x01\x07\x03\x42\x00\x04"),
                             ed25519 = SPAN("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00");
    if (k->alg == ES256 && k->kty == 2 && k->crv == 1 && k->x.n == 32 && k->y.n == 32 && k->n.n == 0)
        return from_point(p256, k->x, k->y, out);
    if (k->alg == EDDSA && k->kty == 1 && k->crv == 6 && k->x.n == 32 && k->y.n == 0 && k->n.n == 0)
        return from_point(ed25519, k->x, SPAN_NONE, out);
    if (k->alg == RS256 && k->kty == 3 && k->crv == 0 && k->y.n == 0)
        return from_rsa(k->n, k->x, out);
    return -1;
}

/* --- both -------------------------------------------------------------------- */

static int authenticator_data(struct span object, struct span *data)
{
    struct cbor map, key, value;
    bool fmt = false, statement = false;
    *data = SPAN_NONE;
    if (object.n > WEBAUTHN_OBJECT_MAX || cbor_next(&object, &map) != 0 || map.kind != CBOR_MAP || map.n != 3)
        return -1;
    for (unsigned i = 0; i < 3; i++) {
        if (cbor_next(&object, &key) != 0 || key.kind != CBOR_TEXT)
            return -1;
        if (span_eq(key.bytes, SPAN("attStmt"))) {
            if (statement || cbor_skip(&object) != 0)
                return -1;
            statement = true;
        } else if (cbor_next(&object, &value) != 0) {
            return -1;
        } else if (span_eq(key.bytes, SPAN("fmt")) && value.kind == CBOR_TEXT && !fmt) {
            fmt = true;
        } else if (span_eq(key.bytes, SPAN("authData")) && value.kind == CBOR_BYTES && data->n == 0) {
            *data = value.bytes;
        } else {
            return -1;
        }
    }
    return fmt && statement && data->n > 0 && object.n == 0 ? 0 : -1;
}

int webauthn_made(const struct webauthn_site *s, const struct digest *challenge, struct span json, struct span object,
                  struct webauthn_key *out, struct err *e)
{
    struct span data, rest;
    struct cose k;
    unsigned flags;
    memset(out, 0, sizeof(*out));
    if (read_json(s, challenge, SPAN("webauthn.create"), json, e) != 0)
        return -1;
    if (authenticator_data(object, &data) != 0)
        return err_set(e, "what the browser says of the new passkey cannot be read");
    if (read_data(s, data, &flags, &out->count, &rest, e) != 0)
        return -1;
    size_t n = rest.n > AAGUID + 2 ? (size_t)rest.p[AAGUID] << 8 | rest.p[AAGUID + 1] : 0;
    if ((flags & AT) == 0 || n == 0 || n > WEBAUTHN_ID_MAX || rest.n < AAGUID + 2 + n)
        return err_set(e, "there is no passkey in it");
    out->id = span_of(rest.p + AAGUID + 2, n);
    rest = span_from(rest, AAGUID + 2 + n);
    if (read_cose(&rest, &k) != 0 || take_key(&k, out) != 0)
        return err_set(e, "it is of a kind that is not taken: ES256, EdDSA and RS256 are");
    return ends_well(flags, rest) ? 0 : err_set(e, "there is more in it than a passkey");
}

int webauthn_signed_by(const struct webauthn_site *s, const struct digest *challenge, const struct webauthn_signed *w,
                       struct span spki, uint32_t *count, struct err *e)
{
    struct digest hash;
    struct span rest;
    unsigned flags;
    uint8_t over[WEBAUTHN_OBJECT_MAX + DIGEST_BYTES];
    const uint8_t *at = spki.p;
    if (read_json(s, challenge, SPAN("webauthn.get"), w->json, e) != 0 ||
        read_data(s, w->data, &flags, count, &rest, e) != 0)
        return -1;
    if ((flags & AT) != 0 || !ends_well(flags, rest) || w->signature.n > WEBAUTHN_SIGNATURE_MAX)
        return err_set(e, "what the device says cannot be read");
    digest_of(w->json, &hash);
    memcpy(over, w->data.p, w->data.n);
    memcpy(over + w->data.n, hash.b, DIGEST_BYTES);
    EVP_PKEY *key = d2i_PUBKEY(NULL, &at, (long)spki.n);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    const EVP_MD *md = key && EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? NULL : EVP_sha256();
    bool good = key && c && EVP_DigestVerifyInit(c, NULL, md, NULL, key) == 1 &&
                EVP_DigestVerify(c, w->signature.p, w->signature.n, over, w->data.n + DIGEST_BYTES) == 1;
    EVP_MD_CTX_free(c);
    EVP_PKEY_free(key);
    return good ? 0 : err_set(e, "its signature is not this passkey's");
}
