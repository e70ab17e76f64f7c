#include "tests/unit/net/certs.h"

#include <openssl/dsa.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void ext(X509 *x, const X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    if (value == NULL)
        return;
    X509V3_set_ctx(&ctx, (X509 *)(issuer != NULL ? issuer : x), x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    must(e != NULL && X509_add_ext(x, e, -1) == 1);
    X509_EXTENSION_free(e);
}

static void ext_odd(X509 *x, const char *bytes)
{
    if (bytes == NULL)
        return;
    ASN1_OCTET_STRING *s = ASN1_OCTET_STRING_new();
    must(s != NULL && ASN1_OCTET_STRING_set(s, (const unsigned char *)bytes, (int)strlen(bytes)) == 1);
    X509_EXTENSION *e = X509_EXTENSION_create_by_NID(NULL, NID_info_access, 0, s);
    must(e != NULL && X509_add_ext(x, e, -1) == 1);
    X509_EXTENSION_free(e);
    ASN1_OCTET_STRING_free(s);
}

X509 *cert_make(const struct cert_wish *w, EVP_PKEY *key, const X509 *issuer, EVP_PKEY *signer)
{
    X509 *x = X509_new();
    X509_NAME *name = X509_NAME_new();
    BIGNUM *serial = NULL;
    must(x != NULL && name != NULL && BN_dec2bn(&serial, w->serial != NULL ? w->serial : "4711") > 0);
    BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(x));
    BN_free(serial);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)(w->cn ? w->cn : "nobody"), -1, -1,
                               0);
    X509_set_subject_name(x, name);
    X509_set_issuer_name(x, issuer != NULL ? X509_get_subject_name(issuer) : name);
    X509_NAME_free(name);
    X509_gmtime_adj(X509_getm_notBefore(x), w->from == 0 && w->to == 0 ? -86400 : w->from);
    X509_gmtime_adj(X509_getm_notAfter(x), w->from == 0 && w->to == 0 ? 86400 : w->to);
    must(X509_set_version(x, w->v1 ? X509_VERSION_1 : X509_VERSION_3) == 1 && X509_set_pubkey(x, key) == 1);
    if (!w->v1) {
        ext(x, issuer, NID_basic_constraints, w->basic);
        ext(x, issuer, NID_key_usage, w->usage);
        ext(x, issuer, NID_ext_key_usage, w->eku);
        ext(x, issuer, NID_subject_alt_name, w->san);
        ext(x, issuer, NID_name_constraints, w->nc);
        ext(x, issuer, NID_subject_key_identifier, w->ids ? "hash" : NULL);
        ext(x, issuer, NID_authority_key_identifier, w->ids ? "keyid:always" : NULL);
        ext_odd(x, w->odd);
    }
    must(X509_sign(x, signer, w->md != NULL ? w->md : EVP_sha256()) > 0);
    return x;
}

EVP_PKEY *cert_key_ec(const char *curve)
{
    EVP_PKEY *k = EVP_EC_gen(curve);
    must(k != NULL);
    return k;
}

EVP_PKEY *cert_key_rsa(unsigned bits)
{
    EVP_PKEY *k = EVP_RSA_gen(bits);
    must(k != NULL);
    return k;
}

EVP_PKEY *cert_key_dsa(void)
{
    EVP_PKEY *params = NULL, *k = NULL;
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, "DSA", NULL), *d = NULL;
    must(c != NULL && EVP_PKEY_paramgen_init(c) == 1 && EVP_PKEY_CTX_set_dsa_paramgen_bits(c, 2048) == 1 &&
         EVP_PKEY_paramgen(c, &params) == 1);
    d = EVP_PKEY_CTX_new_from_pkey(NULL, params, NULL);
    must(d != NULL && EVP_PKEY_keygen_init(d) == 1 && EVP_PKEY_keygen(d, &k) == 1);
    EVP_PKEY_CTX_free(c);
    EVP_PKEY_CTX_free(d);
    EVP_PKEY_free(params);
    return k;
}

struct span cert_der(X509 *x)
{
    unsigned char *p = NULL;
    int n = i2d_X509(x, &p);
    must(n > 0);
    return span_of(p, (size_t)n);
}

struct span cert_pem(X509 *x)
{
    char *p;
    BIO *b = BIO_new(BIO_s_mem());
    must(b != NULL && PEM_write_bio_X509(b, x) == 1);
    long n = BIO_get_mem_data(b, &p);
    uint8_t *copy = malloc((size_t)n);
    must(copy != NULL);
    memcpy(copy, p, (size_t)n);
    BIO_free(b);
    return span_of(copy, (size_t)n);
}
