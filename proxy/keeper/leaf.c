#include "proxy/keeper/leaf.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "common/http/http.h"
#include "common/id.h"
#include "proxy/keeper/ca.h"

enum { HOUR = 3600, SERIAL = 16, POINT = 65, KEY_ID = 20, SHARED = 4 };

struct leaf_parts {
    X509_EXTENSION *ext[SHARED];
    EC_GROUP *group;
};

struct leaf_parts *leaf_parts_new(X509 *ca)
{
    static const struct {
        int nid;
        const char *value;
    } shared[SHARED] = {
        {NID_basic_constraints, "critical,CA:FALSE"},
        {NID_key_usage, "critical,digitalSignature"},
        {NID_ext_key_usage, "serverAuth"},
        {NID_authority_key_identifier, "keyid:always"},
    };
    X509V3_CTX c;
    X509V3_set_ctx(&c, ca, NULL, NULL, NULL, 0);
    struct leaf_parts *p = calloc(1, sizeof(*p));
    bool ok = p != NULL && (p->group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1)) != NULL;
    for (int i = 0; ok && i < SHARED; i++)
        ok = (p->ext[i] = X509V3_EXT_conf_nid(NULL, &c, shared[i].nid, shared[i].value)) != NULL;
    if (!ok)
        leaf_parts_free(&p);
    return p;
}

void leaf_parts_free(struct leaf_parts **p)
{
    if (p == NULL || *p == NULL)
        return;
    for (int i = 0; i < SHARED; i++)
        X509_EXTENSION_free((*p)->ext[i]);
    EC_GROUP_free((*p)->group);
    free(*p);
    *p = NULL;
}

int leaf_serial(ASN1_INTEGER *to, uint8_t copy[16])
{
    if (RAND_bytes(copy, SERIAL) != 1)
        return -1;
    copy[0] = (uint8_t)((copy[0] & 0x7f) | 0x40); /* positive, and always of the same length */
    return ASN1_STRING_set(to, copy, SERIAL) == 1 ? 0 : -1;
}

/* The point inside a SubjectPublicKeyInfo that says P-256, uncompressed, and is on the curve; or empty. */
static struct span point_of(const struct leaf_parts *p, struct span spki)
{
    /* SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING of 65 bytes } */
    static const uint8_t head[CA_SPKI - POINT] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48,
                                                  0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
                                                  0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00};
    if (spki.n != CA_SPKI || memcmp(spki.p, head, sizeof(head)) != 0)
        return SPAN_NONE;
    struct span point = span_from(spki, sizeof(head));
    EC_POINT *at = EC_POINT_new(p->group);
    bool ok = point.p[0] == 0x04 && at != NULL && EC_POINT_oct2point(p->group, at, point.p, POINT, NULL) == 1;
    EC_POINT_free(at);
    return ok ? point : SPAN_NONE;
}

static int set_key(X509 *x, struct span point)
{
    uint8_t *copy = OPENSSL_memdup(point.p, point.n), id[DIGEST_BYTES];
    if (copy == NULL ||
        X509_PUBKEY_set0_param(X509_get_X509_PUBKEY(x), OBJ_nid2obj(NID_X9_62_id_ecPublicKey), V_ASN1_OBJECT,
                               OBJ_nid2obj(NID_X9_62_prime256v1), copy, (int)point.n) != 1) {
        OPENSSL_free(copy);
        return -1;
    }
    struct digest d;
    digest_of(point, &d); /* RFC 7093 section 2, method 1: the leftmost 160 bits of SHA-256 */
    memcpy(id, d.b, sizeof(id));
    ASN1_OCTET_STRING *o = ASN1_OCTET_STRING_new();
    int ok = o != NULL && ASN1_OCTET_STRING_set(o, id, KEY_ID) == 1 &&
             X509_add1_ext_i2d(x, NID_subject_key_identifier, o, 0, 0) == 1;
    ASN1_OCTET_STRING_free(o);
    return ok ? 0 : -1;
}

/* "[::1]", "192.0.2.1" or a name -> what goes into the SAN: its type and bytes. */
static int san_of(struct span host, int *type, uint8_t *bytes, size_t *n)
{
    char canonical[HTTP_HOST_MAX + 1], text[INET6_ADDRSTRLEN + 1];
    size_t len = 0;
    if (host.n == 0 || host.n > HTTP_HOST_MAX || http_canonical_host(host, canonical, &len) != 0 ||
        !span_eq(span_of(canonical, len), host))
        return -1;
    bool six = host.p[0] == '[';
    struct span literal = six ? span_of(host.p + 1, host.n - 2) : host;
    if (literal.n < sizeof(text)) {
        memcpy(text, literal.p, literal.n);
        text[literal.n] = '\0';
        *type = GEN_IPADD;
        *n = six ? 16 : 4;
        if (inet_pton(six ? AF_INET6 : AF_INET, text, bytes) == 1)
            return 0;
    }
    if (six)
        return -1;
    *type = GEN_DNS;
    *n = host.n;
    memcpy(bytes, host.p, host.n);
    return 0;
}

static int set_san(X509 *x, struct span host)
{
    uint8_t bytes[HTTP_HOST_MAX];
    size_t n = 0;
    int type = 0, r = -1;
    GENERAL_NAME *g = NULL;
    GENERAL_NAMES *all = NULL;
    ASN1_STRING *s = NULL;
    if (san_of(host, &type, bytes, &n) != 0)
        goto out;
    g = GENERAL_NAME_new();
    all = GENERAL_NAMES_new();
    s = type == GEN_DNS ? ASN1_IA5STRING_new() : ASN1_OCTET_STRING_new();
    if (g == NULL || all == NULL || s == NULL || ASN1_STRING_set(s, bytes, (int)n) != 1)
        goto out;
    GENERAL_NAME_set0_value(g, type, s);
    s = NULL;
    if (sk_GENERAL_NAME_push(all, g) <= 0)
        goto out;
    g = NULL;
    /* Critical, because the subject is empty (RFC 5280 section 4.2.1.6). */
    r = X509_add1_ext_i2d(x, NID_subject_alt_name, all, 1, 0) == 1 ? 0 : -1;
out:
    ASN1_STRING_free(s);
    GENERAL_NAME_free(g);
    GENERAL_NAMES_free(all);
    return r;
}

X509 *leaf_new(const struct leaf_parts *p, const X509 *ca, struct span host, struct span spki, int64_t now,
               int64_t end)
{
    uint8_t serial[SERIAL];
    time_t t = (time_t)now;
    struct span point = point_of(p, spki);
    X509 *x = point.n ? X509_new() : NULL;
    bool ok = x != NULL && X509_set_version(x, X509_VERSION_3) == 1 &&
              leaf_serial(X509_get_serialNumber(x), serial) == 0 &&
              X509_set_issuer_name(x, X509_get_subject_name(ca)) == 1 &&
              X509_time_adj_ex(X509_getm_notBefore(x), 0, -HOUR, &t) != NULL &&
              X509_time_adj_ex(X509_getm_notAfter(x), 0, (long)(end - now), &t) != NULL && set_key(x, point) == 0 &&
              set_san(x, host) == 0;
    for (int i = 0; ok && i < SHARED; i++)
        ok = X509_add_ext(x, p->ext[i], -1) == 1;
    if (!ok) {
        X509_free(x);
        return NULL;
    }
    return x;
}
