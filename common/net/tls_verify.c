/* What a server's certificate must be beyond what OpenSSL asks: RFC 5280, RFC 9525, and the
 * CA/Browser baseline where OpenSSL is lenient. */
#include "common/net/addr.h"
#include "common/net/tls_in.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

enum { SANS_MAX = 2000, RSA_BITS_MIN = 2048, EC_BITS_MIN = 224 };

static const char *key_fault(X509 *x)
{
    EVP_PKEY *k = X509_get0_pubkey(x);
    char curve[32];
    int bits = k == NULL ? 0 : EVP_PKEY_get_bits(k);
    switch (k == NULL ? EVP_PKEY_NONE : EVP_PKEY_get_base_id(k)) {
    case EVP_PKEY_RSA:
    case EVP_PKEY_RSA_PSS:
        return bits >= RSA_BITS_MIN && bits <= 16384 && bits % 8 == 0 ? NULL
                                                                      : "the certificate's RSA key has an unfit size";
    case EVP_PKEY_EC:
        if (EVP_PKEY_get_group_name(k, curve, sizeof(curve), NULL) == 1 &&
            (strcmp(curve, "prime256v1") == 0 || strcmp(curve, "secp384r1") == 0 || strcmp(curve, "secp521r1") == 0))
            return NULL;
        return "the certificate's key lies on a curve that is not accepted";
    case EVP_PKEY_ED25519: return NULL;
    default: return "the certificate's key is of a kind that is not accepted";
    }
}

static const char *san_fault(X509 *x)
{
    int crit;
    GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, &crit, NULL);
    const char *fault = NULL;
    if (names == NULL)
        return crit == -1 ? "the certificate has no subject alternative name"
                          : "the certificate's subject alternative names cannot be read";
    if (sk_GENERAL_NAME_num(names) > SANS_MAX)
        fault = "the certificate has too many subject alternative names";
    GENERAL_NAMES_free(names);
    return fault;
}

static const char *serial_fault(X509 *x)
{
    const ASN1_INTEGER *s = X509_get0_serialNumber(x);
    BIGNUM *n = ASN1_INTEGER_to_BN(s, NULL);
    bool fit = n != NULL && !BN_is_zero(n) && !BN_is_negative(n) && BN_num_bytes(n) <= 20;
    BN_free(n);
    return fit ? NULL : "the certificate's serial number is zero, negative or too long";
}

/* An extension that is there must be readable and there once. */
static const char *aia_fault(X509 *x)
{
    int crit;
    AUTHORITY_INFO_ACCESS *a = X509_get_ext_d2i(x, NID_info_access, &crit, NULL);
    bool fit = a != NULL || crit == -1;
    AUTHORITY_INFO_ACCESS_free(a);
    return fit ? NULL : "the certificate's authority information cannot be read";
}

/* The leaf with this one name in place of those it has. */
static X509 *probe_new(X509 *leaf, struct span name)
{
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    GENERAL_NAME *one = GENERAL_NAME_new();
    ASN1_IA5STRING *text = ASN1_IA5STRING_new();
    X509 *probe = X509_dup(leaf);
    bool ok = false;
    if (names == NULL || one == NULL || text == NULL || probe == NULL ||
        ASN1_STRING_set(text, name.p, (int)name.n) != 1)
        goto out;
    GENERAL_NAME_set0_value(one, GEN_DNS, text);
    text = NULL;
    if (sk_GENERAL_NAME_push(names, one) <= 0)
        goto out;
    one = NULL;
    X509_EXTENSION_free(X509_delete_ext(probe, X509_get_ext_by_NID(probe, NID_subject_alt_name, -1)));
    /* The last step makes OpenSSL look at the extensions: the check of constraints uses what it noted then. */
    ok = X509_add1_ext_i2d(probe, NID_subject_alt_name, names, 0, 0) == 1 && X509_check_purpose(probe, -1, 0) == 1;
out:
    ASN1_IA5STRING_free(text);
    GENERAL_NAME_free(one);
    GENERAL_NAMES_free(names);
    if (!ok) {
        X509_free(probe);
        return NULL;
    }
    return probe;
}

/* A constraint is a plain name: one with a wildcard means nothing, and would exclude nothing. */
static bool plain_names(STACK_OF(GENERAL_SUBTREE) * trees)
{
    for (int i = 0; i < sk_GENERAL_SUBTREE_num(trees); i++) {
        const GENERAL_NAME *g = sk_GENERAL_SUBTREE_value(trees, i)->base;
        const ASN1_STRING *s = g->type == GEN_DNS ? g->d.dNSName : NULL;
        struct span text = s == NULL ? SPAN_NONE : span_of(ASN1_STRING_get0_data(s), (size_t)ASN1_STRING_length(s));
        for (size_t k = 0; k < text.n; k++) {
            uint8_t c = text.p[k], low = c | 0x20;
            if (!(low >= 'a' && low <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '.' && c != '_')
                return false;
        }
    }
    return true;
}

/* OpenSSL holds name constraints against the names in the leaf. A wildcard there passes although the very host it
 * is used for may be excluded, so they are held against that host too. */
static const char *constraint_fault(STACK_OF(X509) * chain, struct span name)
{
    const char *fault = NULL;
    X509 *probe = NULL; /* made only when there are constraints: it costs as much as the rest together */
    for (int i = 1; i < sk_X509_num(chain) && fault == NULL; i++) {
        int crit;
        NAME_CONSTRAINTS *nc = X509_get_ext_d2i(sk_X509_value(chain, i), NID_name_constraints, &crit, NULL);
        if (nc == NULL && crit == -1)
            continue;
        if (probe == NULL)
            probe = probe_new(sk_X509_value(chain, 0), name);
        if (nc == NULL || probe == NULL || !plain_names(nc->permittedSubtrees) || !plain_names(nc->excludedSubtrees))
            fault = "the certificate's issuer cannot be checked for this name";
        else if (NAME_CONSTRAINTS_check(probe, nc) != X509_V_OK)
            fault = "the certificate's issuer may not vouch for this name";
        NAME_CONSTRAINTS_free(nc);
    }
    X509_free(probe);
    return fault;
}

const char *tls_pin_fault(STACK_OF(X509) * chain, const uint8_t (*pin)[TLS_PIN_BYTES], size_t npins)
{
    uint8_t got[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    for (int i = 0; npins > 0 && i < sk_X509_num(chain); i++) {
        uint8_t *der = NULL;
        int len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(sk_X509_value(chain, i)), &der);
        bool hashed = len > 0 && EVP_Digest(der, (size_t)len, got, &n, EVP_sha256(), NULL) == 1;
        OPENSSL_free(der);
        for (size_t k = 0; hashed && n == TLS_PIN_BYTES && k < npins; k++)
            if (memcmp(got, pin[k], TLS_PIN_BYTES) == 0)
                return NULL;
    }
    return npins == 0 ? NULL : "no key of the certificate's chain is among the pins of this upstream";
}

/* Of what may sign others more kinds pass than of a leaf, but no DSA and nothing small. */
static const char *issuer_key_fault(STACK_OF(X509) * chain)
{
    for (int i = 1; i < sk_X509_num(chain); i++) {
        EVP_PKEY *k = X509_get0_pubkey(sk_X509_value(chain, i));
        int bits = k == NULL ? 0 : EVP_PKEY_get_bits(k);
        switch (k == NULL ? EVP_PKEY_NONE : EVP_PKEY_get_base_id(k)) {
        case EVP_PKEY_RSA:
        case EVP_PKEY_RSA_PSS:
            if (bits < RSA_BITS_MIN)
                return "an RSA key of the certificate's issuers is too small";
            break;
        case EVP_PKEY_EC:
            if (bits < EC_BITS_MIN)
                return "an EC key of the certificate's issuers is too small";
            break;
        case EVP_PKEY_ED25519:
        case EVP_PKEY_ED448: break;
        default: return "a key of the certificate's issuers is of a kind that is not accepted";
        }
    }
    return NULL;
}

/* Where anybody can have a name, only the name itself says whose the host is. */
static bool is_too_wide(X509 *leaf, struct span name, bool (*public_suffix)(struct span))
{
    struct span above = span_from(name, span_index(name, '.') + 1);
    unsigned plain = X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
    if (public_suffix == NULL || above.n == 0 || !public_suffix(above))
        return false;
    return X509_check_host(leaf, (const char *)name.p, name.n, plain, NULL) != 1;
}

/* As OpenSSL with X509_V_FLAG_X509_STRICT. */
const char *tls_ca_fault(X509 *x)
{
    uint32_t flags = X509_get_extension_flags(x);
    if (X509_get_version(x) != X509_VERSION_3)
        return "is not of version 3";
    if (flags & EXFLAG_INVALID)
        return "has extensions that cannot be read";
    if (!(flags & EXFLAG_CA))
        return "is not a CA's";
    if (!(flags & EXFLAG_BCONS_CRITICAL))
        return "has basic constraints that are not critical";
    if (!(flags & EXFLAG_KUSAGE) || !(X509_get_key_usage(x) & KU_KEY_CERT_SIGN))
        return "has no key usage that lets it sign certificates";
    if (X509_NAME_entry_count(X509_get_subject_name(x)) == 0 || X509_NAME_entry_count(X509_get_issuer_name(x)) == 0)
        return "has no name";
    if (X509_get0_subject_key_id(x) == NULL)
        return "has no subject key identifier";
    if (flags & (EXFLAG_AKID_CRITICAL | EXFLAG_SKID_CRITICAL))
        return "has a key identifier that is critical";
    return NULL;
}

int tls_roots_strict(struct span roots_pem, struct err *e)
{
    X509 *x;
    char name[80];
    int n = 0;
    const char *fault = NULL;
    BIO *b = roots_pem.n > 0 && roots_pem.n <= INT32_MAX ? BIO_new_mem_buf(roots_pem.p, (int)roots_pem.n) : NULL;
    while (b != NULL && fault == NULL && (x = PEM_read_bio_X509(b, NULL, tls_no_password, NULL)) != NULL) {
        /* Not a CA in any reading: it is trusted as the server's own. */
        fault = X509_check_ca(x) == 0 ? NULL : tls_ca_fault(x);
        if (fault != NULL && X509_NAME_oneline(X509_get_subject_name(x), name, sizeof(name)) != NULL)
            err_set(e, "the CA \"%s\" %s", name, fault);
        X509_free(x);
        n++;
    }
    BIO_free(b);
    ERR_clear_error();
    return n > 0 && fault == NULL ? 0 : -1;
}

const char *tls_leaf_fault(STACK_OF(X509) * chain, struct span name, bool (*public_suffix)(struct span))
{
    X509 *leaf = chain == NULL ? NULL : sk_X509_value(chain, 0);
    struct addr a;
    const char *fault = NULL;
    if (leaf == NULL)
        return "there is no certificate";
    uint32_t flags = X509_get_extension_flags(leaf);
    if (X509_get_version(leaf) != X509_VERSION_3)
        return "the certificate is not of version 3";
    if (flags & EXFLAG_INVALID)
        return "the certificate's extensions cannot be read";
    if (flags & EXFLAG_CA)
        return "the certificate is a CA's, not a server's";
    if (!(flags & EXFLAG_XKUSAGE) || !(X509_get_extended_key_usage(leaf) & XKU_SSL_SERVER))
        return "the certificate is not for servers (no extended key usage serverAuth)";
    if ((fault = san_fault(leaf)) != NULL || (fault = key_fault(leaf)) != NULL ||
        (fault = serial_fault(leaf)) != NULL || (fault = aia_fault(leaf)) != NULL ||
        (fault = issuer_key_fault(chain)) != NULL)
        return fault;
    if (X509_get_ext_by_NID(leaf, NID_name_constraints, -1) >= 0)
        return "the certificate has name constraints, which only a CA's may have";
    if (addr_parse(name, &a) == 0)
        return NULL;
    if (is_too_wide(leaf, name, public_suffix))
        return "the certificate has a wildcard over a public suffix, which vouches for nobody";
    return constraint_fault(chain, name);
}
