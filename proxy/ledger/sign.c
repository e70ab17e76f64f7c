#include "proxy/ledger/sign.h"

#include <openssl/evp.h>

#include "proxy/wire_ticket.h"

/* struct signer is OpenSSL's key under another name. */
struct signer *signer_new(void)
{
    return (struct signer *)EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
}

void signer_free(struct signer **s)
{
    if (s == NULL)
        return;
    EVP_PKEY_free((EVP_PKEY *)*s);
    *s = NULL;
}

int signer_public(const struct signer *s, uint8_t out[SIGN_PUBLIC])
{
    size_t n = SIGN_PUBLIC;
    return EVP_PKEY_get_raw_public_key((const EVP_PKEY *)s, out, &n) == 1 && n == SIGN_PUBLIC ? 0 : -1;
}

int signer_release(const struct signer *s, uint64_t xid, struct span credential, struct span host, uint16_t port,
                   const struct digest *d, uint8_t out[SIGN_BYTES])
{
    struct dynbuf b;
    size_t n = SIGN_BYTES;
    dynbuf_init(&b, 4096);
    wire_release_statement(&b, xid, credential, host, port, d);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    int ok = dynbuf_ok(&b) && c != NULL && EVP_DigestSignInit(c, NULL, NULL, NULL, (EVP_PKEY *)s) == 1 &&
             EVP_DigestSign(c, out, &n, b.p, b.n) == 1 && n == SIGN_BYTES;
    EVP_MD_CTX_free(c);
    dynbuf_free(&b);
    return ok ? 0 : -1;
}
