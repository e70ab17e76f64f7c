#include "proxy/ledger/store/sign.h"

#include <openssl/evp.h>

#include "proxy/wire_ticket.h"

/* struct signer is OpenSSL's key under another name. */
struct signer *signer_new(void)
{
    return (struct signer *)EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
}

struct signer *signer_of(const struct secret *seed)
{
    struct span s = secret_bytes(seed);
    return (struct signer *)EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, s.p, s.n);
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

/* Takes b. */
static int sign(const struct signer *s, struct dynbuf *b, uint8_t out[SIGN_BYTES])
{
    size_t n = SIGN_BYTES;
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    int ok = dynbuf_ok(b) && c != NULL && EVP_DigestSignInit(c, NULL, NULL, NULL, (EVP_PKEY *)s) == 1 &&
             EVP_DigestSign(c, out, &n, b->p, b->n) == 1 && n == SIGN_BYTES;
    EVP_MD_CTX_free(c);
    dynbuf_free(b);
    return ok ? 0 : -1;
}

int signer_release(const struct signer *s, uint64_t xid, struct span credential, struct span host, uint16_t port,
                   const struct digest *d, struct span proof, uint8_t out[SIGN_BYTES])
{
    struct dynbuf b;
    dynbuf_init(&b, 4096 + proof.n);
    wire_release_statement(&b, xid, credential, host, port, d);
    dynbuf_add(&b, proof);
    return sign(s, &b, out);
}

int signer_head(const struct signer *s, uint64_t seq, const struct digest *head, uint8_t out[SIGN_BYTES])
{
    struct dynbuf b;
    dynbuf_init(&b, 256);
    msg_put_span(&b, SPAN("countersign audit 1"));
    msg_put_u64(&b, seq);
    msg_put_digest(&b, head);
    return sign(s, &b, out);
}
