#include "common/crypto/aead.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

/* EVP takes int lengths; longer runs go in pieces. */
enum { PIECE = 1 << 30 };

/* out NULL: additional data. */
static int feed(EVP_CIPHER_CTX *c, struct span in, uint8_t *out)
{
    for (size_t off = 0; off < in.n;) {
        int n = in.n - off > PIECE ? PIECE : (int)(in.n - off), written = 0;
        if (EVP_CipherUpdate(c, out ? out + off : NULL, &written, in.p + off, n) != 1 || written != n)
            return -1;
        off += (size_t)n;
    }
    return 0;
}

static EVP_CIPHER_CTX *begin(struct span key, const uint8_t *nonce, struct span context, int sealing)
{
    EVP_CIPHER_CTX *c = key.n == AEAD_KEY ? EVP_CIPHER_CTX_new() : NULL;
    if (c == NULL)
        return NULL;
    if (EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, key.p, nonce, sealing) == 1 && feed(c, context, NULL) == 0)
        return c;
    EVP_CIPHER_CTX_free(c);
    return NULL;
}

int aead_seal(struct span key, struct span context, struct span plain, uint8_t *out)
{
    int r = -1, n = 0;
    EVP_CIPHER_CTX *c = NULL;
    if (RAND_bytes(out, AEAD_NONCE) != 1 || (c = begin(key, out, context, 1)) == NULL ||
        feed(c, plain, out + AEAD_NONCE) != 0 || EVP_CipherFinal_ex(c, out + AEAD_NONCE + plain.n, &n) != 1 ||
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, AEAD_TAG, out + AEAD_NONCE + plain.n) != 1)
        goto out;
    r = 0;
out:
    EVP_CIPHER_CTX_free(c);
    return r;
}

int aead_open(struct span key, struct span context, struct span sealed, uint8_t *out)
{
    int r = -1, n = 0;
    EVP_CIPHER_CTX *c = NULL;
    uint8_t tag[AEAD_TAG], none[1];
    if (sealed.n < AEAD_EXTRA)
        return -1;
    struct span cipher = span_of(sealed.p + AEAD_NONCE, sealed.n - AEAD_EXTRA);
    memcpy(tag, sealed.p + sealed.n - AEAD_TAG, AEAD_TAG);
    if ((c = begin(key, sealed.p, context, 0)) == NULL || feed(c, cipher, out) != 0 ||
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, AEAD_TAG, tag) != 1 || EVP_CipherFinal_ex(c, none, &n) != 1)
        goto out;
    r = 0;
out:
    EVP_CIPHER_CTX_free(c);
    if (r != 0 && cipher.n)
        explicit_bzero(out, cipher.n); /* unauthenticated bytes are nobody's to read */
    return r;
}
