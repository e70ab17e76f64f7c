/* Certificates made on the spot, right ones and each way wrong. */
#ifndef TESTS_UNIT_NET_CERTS_H
#define TESTS_UNIT_NET_CERTS_H

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "common/span.h"

struct cert_wish {
    const char *san;   /* "DNS:a.test,IP:127.0.0.1"; NULL: none */
    const char *cn;    /* NULL: "nobody" */
    const char *eku;   /* "serverAuth"; NULL: none */
    const char *usage; /* NULL: none */
    const char *nc;    /* name constraints of a CA: "excluded;DNS:bar.a.test" */
    const char *basic; /* "critical,CA:TRUE"; NULL: none */
    bool ids;          /* subject and authority key identifiers */
    const char *odd;   /* an authorityInfoAccess that is no such thing: any bytes */
    long from, to;     /* seconds from now; both 0: valid for a day around now */
    bool v1;
    const char *serial; /* decimal; NULL: 4711 */
    const EVP_MD *md;   /* NULL: SHA-256 */
};

/* A certificate for `key`, signed with `signer`, in the name of issuer (NULL: its own). Never NULL: a failure aborts.
 */
X509 *cert_make(const struct cert_wish *w, EVP_PKEY *key, const X509 *issuer, EVP_PKEY *signer);
EVP_PKEY *cert_key_ec(const char *curve);
EVP_PKEY *cert_key_rsa(unsigned bits);
EVP_PKEY *cert_key_dsa(void); /* of 2048 bits */
/* To be freed with OPENSSL_free. */
struct span cert_der(X509 *x);
/* To be freed with free(). */
struct span cert_pem(X509 *x);

#endif
