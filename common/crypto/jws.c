#include "common/crypto/jws.h"

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>

#include "common/id.h"

enum { COORDINATE = 32, NUMBER_MAX = JWS_RSA_BITS_MAX / 8, TEXT_MAX = 4 * 1024 };

struct jws_key {
    EVP_PKEY *key;
    bool ec;
    char kid[JWS_KID + 1];
};

/* RFC 7515 section 2: base64 in the alphabet of URLs, without padding. */
static void add_base64url(struct dynbuf *out, struct span in)
{
    uint8_t *to = dynbuf_room(out, 4 * ((in.n + 2) / 3) + 1);
    size_t n = to != NULL ? base64_encode(in, (char *)to) : 0;
    for (size_t i = 0; i < n; i++)
        to[i] = to[i] == '+' ? '-' : to[i] == '/' ? '_' : to[i];
    while (n > 0 && to[n - 1] == '=')
        n--;
    dynbuf_grew(out, n);
}

/* "NAME":"..." of a number of the key: as long as it is, or in so many bytes. */
static int add_number(const struct jws_key *k, struct dynbuf *out, const char *name, const char *param, int bytes)
{
    BIGNUM *n = NULL;
    uint8_t raw[NUMBER_MAX];
    int rc = -1;
    if (EVP_PKEY_get_bn_param(k->key, param, &n) == 1 && BN_num_bytes(n) <= (int)sizeof(raw)) {
        int len = bytes ? bytes : BN_num_bytes(n);
        if (BN_bn2binpad(n, raw, len) == len) {
            (void)dynbuf_addf(out, "\"%s\":\"", name);
            add_base64url(out, span_of(raw, (size_t)len));
            (void)dynbuf_add_byte(out, '"');
            rc = dynbuf_ok(out) ? 0 : -1;
        }
    }
    BN_free(n);
    return rc;
}

/* The members that a thumbprint is made of, in its order and form (RFC 7638 section 3). */
static int add_members(const struct jws_key *k, struct dynbuf *out)
{
    int bad;
    if (k->ec) {
        (void)dynbuf_add(out, SPAN("\"crv\":\"P-256\",\"kty\":\"EC\","));
        bad = add_number(k, out, "x", OSSL_PKEY_PARAM_EC_PUB_X, COORDINATE);
        (void)dynbuf_add_byte(out, ',');
        return bad == 0 ? add_number(k, out, "y", OSSL_PKEY_PARAM_EC_PUB_Y, COORDINATE) : -1;
    }
    bad = add_number(k, out, "e", OSSL_PKEY_PARAM_RSA_E, 0);
    (void)dynbuf_add(out, SPAN(",\"kty\":\"RSA\","));
    return bad == 0 ? add_number(k, out, "n", OSSL_PKEY_PARAM_RSA_N, 0) : -1;
}

static int name_key(struct jws_key *k)
{
    struct dynbuf members, text;
    struct digest d;
    int rc = -1;
    dynbuf_init(&members, TEXT_MAX);
    dynbuf_init(&text, 64);
    (void)dynbuf_add_byte(&members, '{');
    if (add_members(k, &members) == 0 && dynbuf_add_byte(&members, '}') == 0) {
        digest_of(dynbuf_span(&members), &d);
        add_base64url(&text, span_of(d.b, sizeof(d.b)));
        if (text.n == JWS_KID) {
            memcpy(k->kid, text.p, JWS_KID);
            rc = 0;
        }
    }
    dynbuf_free(&members);
    dynbuf_free(&text);
    return rc;
}

/* A key with a passphrase has nobody to ask for it. */
static int no_passphrase(char *to, int n, int writing, void *arg)
{
    return -1;
}

static bool usable(struct jws_key *k)
{
    char group[32];
    size_t n = 0;
    int bits = EVP_PKEY_get_bits(k->key);
    k->ec = EVP_PKEY_is_a(k->key, "EC") == 1;
    if (k->ec)
        return EVP_PKEY_get_group_name(k->key, group, sizeof(group), &n) == 1 && strcmp(group, "prime256v1") == 0;
    return EVP_PKEY_is_a(k->key, "RSA") == 1 && bits >= JWS_RSA_BITS && bits <= JWS_RSA_BITS_MAX;
}

struct jws_key *jws_key_new(struct span pem, struct err *e)
{
    struct jws_key *k = calloc(1, sizeof(*k));
    BIO *in = pem.n <= INT32_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
    if (k != NULL && in != NULL)
        k->key = PEM_read_bio_PrivateKey(in, NULL, no_passphrase, NULL);
    BIO_free(in);
    if (k == NULL || k->key == NULL)
        err_set(e, "it is no private key in PEM (\"-----BEGIN PRIVATE KEY-----\") without a passphrase");
    else if (!usable(k))
        err_set(e, "its kind signs neither RS256 nor ES256: RSA of %d to %d bits, or EC on P-256, is wanted",
                JWS_RSA_BITS, JWS_RSA_BITS_MAX);
    else if (name_key(k) == 0)
        return k;
    else
        err_set(e, "out of memory");
    jws_key_free(&k);
    return NULL;
}

void jws_key_free(struct jws_key **k)
{
    if (*k == NULL)
        return;
    EVP_PKEY_free((*k)->key);
    free(*k);
    *k = NULL;
}

const char *jws_kid(const struct jws_key *k)
{
    return k->kid;
}

/* Of ECDSA as two numbers of a fixed length, where OpenSSL gives DER (RFC 7518 section 3.4). */
static int fixed(const uint8_t *der, size_t n, uint8_t out[2 * COORDINATE])
{
    ECDSA_SIG *s = d2i_ECDSA_SIG(NULL, &der, (long)n);
    int rc = s != NULL && BN_bn2binpad(ECDSA_SIG_get0_r(s), out, COORDINATE) == COORDINATE &&
                     BN_bn2binpad(ECDSA_SIG_get0_s(s), out + COORDINATE, COORDINATE) == COORDINATE
                 ? 0
                 : -1;
    ECDSA_SIG_free(s);
    return rc;
}

static int sign(const struct jws_key *k, struct span text, struct dynbuf *out)
{
    uint8_t raw[NUMBER_MAX], both[2 * COORDINATE];
    size_t n = sizeof(raw);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool ok = c != NULL && EVP_DigestSignInit(c, NULL, EVP_sha256(), NULL, k->key) == 1 &&
              EVP_DigestSign(c, raw, &n, text.p, text.n) == 1;
    EVP_MD_CTX_free(c);
    if (!ok || (k->ec && fixed(raw, n, both) != 0))
        return -1;
    (void)dynbuf_add_byte(out, '.');
    add_base64url(out, k->ec ? span_of(both, sizeof(both)) : span_of(raw, n));
    return 0;
}

int jws_sign(const struct jws_key *k, struct span kid, struct span claims, struct dynbuf *out)
{
    struct dynbuf head, text;
    int rc = -1;
    dynbuf_init(&head, TEXT_MAX);
    dynbuf_init(&text, JWS_MAX);
    (void)dynbuf_addf(&head, "{\"alg\":\"%s\",\"typ\":\"JWT\"", k->ec ? "ES256" : "RS256");
    if (kid.n)
        (void)dynbuf_addf(&head, ",\"kid\":\"%.*s\"", SPAN_FMT(kid));
    (void)dynbuf_add_byte(&head, '}');
    add_base64url(&text, dynbuf_span(&head));
    (void)dynbuf_add_byte(&text, '.');
    add_base64url(&text, claims);
    if (dynbuf_ok(&head) && dynbuf_ok(&text) && dynbuf_add(out, dynbuf_span(&text)) == 0)
        rc = sign(k, dynbuf_span(&text), out);
    dynbuf_free(&head);
    dynbuf_wipe(&text);
    return rc == 0 && dynbuf_ok(out) ? 0 : -1;
}

int jws_public(const struct jws_key *k, struct dynbuf *out)
{
    (void)dynbuf_addf(out, "{\"alg\":\"%s\",\"use\":\"sig\",\"kid\":\"%s\",", k->ec ? "ES256" : "RS256", k->kid);
    int rc = add_members(k, out);
    (void)dynbuf_add_byte(out, '}');
    return rc == 0 && dynbuf_ok(out) ? 0 : -1;
}
