#include "proxy/parent/truststore.h"

#include <stdio.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>

/* The JDK's own attribute; "for any purpose" is its value. */
#define TRUSTED_KEY_USAGE "2.16.840.1.113894.746875.1.1"

enum { CERTIFICATES_MAX = 2000, ROUNDS = 2048 };

struct trust {
    STACK_OF(PKCS12_SAFEBAG) * bags;
    STACK_OF(PKCS7) * safes;
    PKCS12 *store;
};

static int add(struct trust *t, X509 *cert, const char *alias)
{
    const void *any = OBJ_nid2obj(NID_anyExtendedKeyUsage);
    PKCS12_SAFEBAG *bag = PKCS12_add_cert(&t->bags, cert);

    /* With -1 for a length the value is taken as the object it is, not as bytes. */
    return bag && PKCS12_add_friendlyname_utf8(bag, alias, -1) &&
                   PKCS12_add1_attr_by_txt(bag, TRUSTED_KEY_USAGE, V_ASN1_OBJECT, any, -1)
               ? 0
               : -1;
}

/* How many there were; -1: no memory. Numbered, for Java keeps one entry an alias. */
static int add_all(struct trust *t, struct span pem, const char *name)
{
    BIO *in = BIO_new_mem_buf(pem.p, pem.n > INT_MAX ? -1 : (int)pem.n);
    char alias[64];
    X509 *cert;
    int n = 0, bad = in == NULL;

    while (!bad && n < CERTIFICATES_MAX && (cert = PEM_read_bio_X509(in, NULL, NULL, NULL)) != NULL) {
        (void)snprintf(alias, sizeof(alias), "%s-%d", name, n + 1);
        bad = add(t, cert, alias) != 0;
        X509_free(cert);
        n++;
    }
    ERR_clear_error(); /* the end of the text is an error to it */
    BIO_free(in);
    return bad ? -1 : n;
}

static int put_out(struct trust *t, struct dynbuf *out)
{
    unsigned char *der = NULL;
    int n, rc = -1;

    if (!PKCS12_add_safe(&t->safes, t->bags, -1, 0, NULL) || (t->store = PKCS12_add_safes(t->safes, 0)) == NULL ||
        !PKCS12_set_mac(t->store, TRUSTSTORE_PASSWORD, -1, NULL, 0, ROUNDS, EVP_sha256()))
        return -1;
    n = i2d_PKCS12(t->store, &der);
    if (n > 0)
        rc = dynbuf_add(out, span_of(der, (size_t)n));
    OPENSSL_free(der);
    return rc;
}

int truststore_make(struct span roots, struct span ca, struct dynbuf *out)
{
    struct trust t = {NULL, NULL, NULL};
    int rc = -1;

    if (ca.n && add_all(&t, ca, "countersign") > 0 && (roots.n == 0 || add_all(&t, roots, "root") >= 0))
        rc = put_out(&t, out);
    PKCS12_free(t.store);
    sk_PKCS7_pop_free(t.safes, PKCS7_free);
    sk_PKCS12_SAFEBAG_pop_free(t.bags, PKCS12_SAFEBAG_free);
    ERR_clear_error();
    return rc;
}
