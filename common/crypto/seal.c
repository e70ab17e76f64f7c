#include "common/crypto/seal.h"

#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>
#include <stdlib.h>

/* EVP takes int lengths; longer runs go in pieces. */
enum { PIECE = 1 << 30 };

struct secret *seal_key_new(void)
{
    struct secret *k = secret_room(SEAL_KEY);
    if (k != NULL && RAND_priv_bytes(secret_fill(k), SEAL_KEY) != 1)
        secret_free(&k);
    return k;
}

struct secret *seal_key_derive(const struct secret *master, struct span info)
{
    struct span m = secret_bytes(master);
    struct secret *k = secret_room(SEAL_KEY);
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    size_t n = SEAL_KEY;
    if (k == NULL || c == NULL || m.n != SEAL_KEY || info.n > 256 || EVP_PKEY_derive_init(c) != 1 ||
        EVP_PKEY_CTX_set_hkdf_md(c, EVP_sha256()) != 1 || EVP_PKEY_CTX_set1_hkdf_key(c, m.p, (int)m.n) != 1 ||
        EVP_PKEY_CTX_add1_hkdf_info(c, info.p, (int)info.n) != 1 || EVP_PKEY_derive(c, secret_fill(k), &n) != 1 ||
        n != SEAL_KEY)
        secret_free(&k);
    EVP_PKEY_CTX_free(c);
    return k;
}

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

static EVP_CIPHER_CTX *begin(const struct secret *key, const uint8_t *nonce, struct span context, int sealing)
{
    struct span k = secret_bytes(key);
    EVP_CIPHER_CTX *c = k.n == SEAL_KEY ? EVP_CIPHER_CTX_new() : NULL;
    if (c == NULL)
        return NULL;
    if (EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, k.p, nonce, sealing) == 1 && feed(c, context, NULL) == 0)
        return c;
    EVP_CIPHER_CTX_free(c);
    return NULL;
}

int seal_bytes(const struct secret *key, struct span context, struct span plain, uint8_t *out)
{
    int r = -1, n = 0;
    EVP_CIPHER_CTX *c = NULL;
    if (RAND_bytes(out, SEAL_NONCE) != 1 || (c = begin(key, out, context, 1)) == NULL ||
        feed(c, plain, out + SEAL_NONCE) != 0 || EVP_CipherFinal_ex(c, out + SEAL_NONCE + plain.n, &n) != 1 ||
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, SEAL_TAG, out + SEAL_NONCE + plain.n) != 1)
        goto out;
    r = 0;
out:
    EVP_CIPHER_CTX_free(c);
    return r;
}

int seal_open(const struct secret *key, struct span context, struct span sealed, uint8_t *out)
{
    int r = -1, n = 0;
    EVP_CIPHER_CTX *c = NULL;
    uint8_t tag[SEAL_TAG], none[1];
    if (sealed.n < SEAL_EXTRA)
        return -1;
    struct span cipher = span_of(sealed.p + SEAL_NONCE, sealed.n - SEAL_EXTRA);
    memcpy(tag, sealed.p + sealed.n - SEAL_TAG, SEAL_TAG);
    if ((c = begin(key, sealed.p, context, 0)) == NULL || feed(c, cipher, out) != 0 ||
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, SEAL_TAG, tag) != 1 || EVP_CipherFinal_ex(c, none, &n) != 1)
        goto out;
    r = 0;
out:
    EVP_CIPHER_CTX_free(c);
    if (r != 0 && cipher.n)
        explicit_bzero(out, cipher.n); /* unauthenticated bytes are nobody's to read */
    return r;
}

struct secret *seal_open_secret(const struct secret *key, struct span context, struct span sealed)
{
    if (sealed.n < SEAL_EXTRA)
        return NULL;
    struct secret *s = secret_room(sealed.n - SEAL_EXTRA);
    if (s != NULL && seal_open(key, context, sealed, secret_fill(s)) != 0)
        secret_free(&s);
    return s;
}
