#include "common/crypto/seal.h"

#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>
#include <stdlib.h>

#include "common/crypto/aead.h"

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

int seal_bytes(const struct secret *key, struct span context, struct span plain, uint8_t *out)
{
    return aead_seal(secret_bytes(key), context, plain, out);
}

int seal_open(const struct secret *key, struct span context, struct span sealed, uint8_t *out)
{
    return aead_open(secret_bytes(key), context, sealed, out);
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
