#include "proxy/keeper/ca.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "common/id.h"
#include "proxy/keeper/leaf.h"

enum { DAY = 86400, SERIAL = 16 };

struct ca {
    EVP_PKEY *key;
    X509 *cert;
    int64_t until;
    uint8_t der[CA_DER_MAX];
    size_t nder;
    struct leaf_parts *parts; /* of every leaf the same */
};

void ca_free(struct ca **ca)
{
    if (ca == NULL || *ca == NULL)
        return;
    leaf_parts_free(&(*ca)->parts);
    EVP_PKEY_free((*ca)->key);
    X509_free((*ca)->cert);
    free(*ca);
    *ca = NULL;
}

static int add(X509 *x, int nid, const char *value)
{
    X509V3_CTX c;
    X509V3_set_ctx(&c, x, x, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &c, nid, value);
    int ok = ext != NULL && X509_add_ext(x, ext, -1) == 1;
    X509_EXTENSION_free(ext);
    return ok ? 0 : -1;
}

static int name_it(X509 *x, const uint8_t *serial)
{
    char cn[64] = "Countersign CA ";
    hex_text(span_of(serial, 4), cn + strlen(cn)); /* so that two deployments can be told apart */
    X509_NAME *n = X509_get_subject_name(x);
    return X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_ASC, (const uint8_t *)cn, -1, -1, 0) == 1 &&
                   X509_set_issuer_name(x, n) == 1
               ? 0
               : -1;
}

static X509 *self_sign(EVP_PKEY *key, int64_t now)
{
    uint8_t serial[SERIAL];
    time_t t = (time_t)now;
    X509 *x = X509_new();
    if (x == NULL || leaf_serial(X509_get_serialNumber(x), serial) != 0 || X509_set_version(x, X509_VERSION_3) != 1 ||
        name_it(x, serial) != 0 || X509_set_pubkey(x, key) != 1 ||
        X509_time_adj_ex(X509_getm_notBefore(x), -1, 0, &t) == NULL ||
        X509_time_adj_ex(X509_getm_notAfter(x), CA_YEARS * 365 + 2, 0, &t) == NULL ||
        add(x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") != 0 ||
        add(x, NID_key_usage, "critical,keyCertSign,cRLSign") != 0 ||
        add(x, NID_subject_key_identifier, "hash") != 0 || X509_sign(x, key, EVP_sha256()) == 0) {
        X509_free(x);
        return NULL;
    }
    return x;
}

static int64_t time_of(const ASN1_TIME *t)
{
    struct tm tm;
    return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

/* Takes key and cert. */
static struct ca *make(EVP_PKEY *key, X509 *cert, struct err *e)
{
    struct ca *ca = calloc(1, sizeof(*ca));
    if (ca == NULL) {
        EVP_PKEY_free(key);
        X509_free(cert);
        err_set(e, "out of memory");
        return NULL;
    }
    ca->key = key;
    ca->cert = cert;
    ca->until = time_of(X509_get0_notAfter(cert));
    uint8_t *to = ca->der;
    int n = i2d_X509(cert, NULL);
    if (n <= 0 || n > CA_DER_MAX || i2d_X509(cert, &to) != n || (ca->parts = leaf_parts_new(cert)) == NULL) {
        err_set(e, "the CA certificate cannot be used");
        ca_free(&ca);
        return NULL;
    }
    ca->nder = (size_t)n;
    return ca;
}

struct ca *ca_new(int64_t now, struct err *e)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    X509 *x = key ? self_sign(key, now) : NULL;
    if (x == NULL) {
        EVP_PKEY_free(key);
        err_set(e, "OpenSSL cannot make a CA key or certificate");
        return NULL;
    }
    return make(key, x, e);
}

/* What ca_new made, and nothing that a certificate put in its place could be instead. */
static int check(X509 *x, EVP_PKEY *key, int64_t now, struct err *e)
{
    char group[32];
    size_t n;
    if (EVP_PKEY_get_group_name(key, group, sizeof(group), &n) != 1 || strcmp(group, "prime256v1") != 0)
        return err_set(e, "keeper/ca.key is not a P-256 key");
    if (X509_check_private_key(x, key) != 1 || X509_verify(x, key) != 1)
        return err_set(e, "keeper/ca.crt does not belong to keeper/ca.key");
    if (X509_check_ca(x) != 1 || X509_get_pathlen(x) != 0 ||
        (X509_get_key_usage(x) & (KU_KEY_CERT_SIGN | KU_CRL_SIGN)) != (KU_KEY_CERT_SIGN | KU_CRL_SIGN) ||
        X509_get0_subject_key_id(x) == NULL)
        return err_set(e, "keeper/ca.crt is not a CA certificate of ours");
    if (time_of(X509_get0_notBefore(x)) > now)
        return err_set(e, "keeper/ca.crt is not valid yet; is the clock right?");
    if (time_of(X509_get0_notAfter(x)) <= now)
        return err_set(e, "keeper/ca.crt has expired; is the clock right? If it is, make a new CA");
    return 0;
}

struct ca *ca_load(const struct secret *key_der, struct span pem, int64_t now, struct err *e)
{
    struct span k = secret_bytes(key_der);
    const uint8_t *at = k.p;
    EVP_PKEY *key = k.n ? d2i_AutoPrivateKey(NULL, &at, (long)k.n) : NULL;
    BIO *b = BIO_new_mem_buf(pem.p, (int)pem.n);
    X509 *x = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
    BIO_free(b);
    if (key == NULL || x == NULL) {
        err_set(e, "keeper/%s is damaged; restore it from a backup", key == NULL ? "ca.key" : "ca.crt");
        goto fail;
    }
    if (check(x, key, now, e) != 0)
        goto fail;
    return make(key, x, e);
fail:
    EVP_PKEY_free(key);
    X509_free(x);
    return NULL;
}

struct secret *ca_key_der(const struct ca *ca)
{
    int n = i2d_PrivateKey(ca->key, NULL);
    struct secret *s = n > 0 ? secret_room((size_t)n) : NULL;
    uint8_t *to = s ? secret_fill(s) : NULL;
    if (s != NULL && i2d_PrivateKey(ca->key, &to) != n)
        secret_free(&s);
    return s;
}

int ca_pem(const struct ca *ca, struct dynbuf *out)
{
    BIO *b = BIO_new(BIO_s_mem());
    const uint8_t *p = NULL;
    int r = -1;
    if (b != NULL && PEM_write_bio_X509(b, ca->cert) == 1) {
        long n = BIO_get_mem_data(b, &p);
        r = n > 0 ? dynbuf_add(out, span_of(p, (size_t)n)) : -1;
    }
    BIO_free(b);
    return r;
}

struct span ca_der(const struct ca *ca)
{
    return span_of(ca->der, ca->nder);
}

int ca_mint(const struct ca *ca, struct span host, struct span spki, int64_t now, struct dynbuf *out, int64_t *until)
{
    int r = -1;
    int64_t end = now + (int64_t)CA_LEAF_DAYS * DAY;
    X509 *x = NULL;
    if (end > ca->until)
        end = ca->until;
    if (end <= now || (x = leaf_new(ca->parts, ca->cert, host, spki, now, end)) == NULL ||
        X509_sign(x, ca->key, EVP_sha256()) == 0)
        goto out;
    int n = i2d_X509(x, NULL);
    uint8_t *to = n > 0 && n <= CA_DER_MAX ? dynbuf_room(out, (size_t)n) : NULL;
    if (to == NULL || i2d_X509(x, &to) != n)
        goto out;
    dynbuf_grew(out, (size_t)n);
    *until = end;
    r = 0;
out:
    X509_free(x);
    return r;
}
