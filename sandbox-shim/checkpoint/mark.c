#include "sandbox-shim/checkpoint/mark.h"

#include <openssl/evp.h>
#include <stdlib.h>

/* Without them nothing can be told of any file. */
static void must(bool ok)
{
    if (!ok)
        abort();
}

int mark_open(struct mark *m, const uint8_t key[MARK])
{
    *m = (struct mark){.gcm = EVP_CIPHER_CTX_new()};
    return m->gcm != NULL && EVP_EncryptInit_ex(m->gcm, EVP_aes_128_gcm(), NULL, key, NULL) == 1 ? 0 : -1;
}

void mark_close(struct mark *m)
{
    EVP_CIPHER_CTX_free(m->gcm);
    *m = (struct mark){.gcm = NULL};
}

/* One nonce for all: what is asked of a mark is that nobody who neither knows the key nor sees a mark finds two files
 * with one, and that is so. */
void mark_begin(struct mark *m)
{
    static const uint8_t nonce[12];

    must(EVP_EncryptInit_ex(m->gcm, NULL, NULL, NULL, nonce) == 1);
    m->n = 0;
}

void mark_add(struct mark *m, const uint8_t *p, size_t n)
{
    int out;

    m->n += n;
    must(n <= INT32_MAX && EVP_EncryptUpdate(m->gcm, NULL, &out, p, (int)n) == 1);
}

void mark_end(struct mark *m, uint8_t out[MARK])
{
    uint8_t none[EVP_MAX_BLOCK_LENGTH];
    int n;

    must(EVP_EncryptFinal_ex(m->gcm, none, &n) == 1 &&
         EVP_CIPHER_CTX_ctrl(m->gcm, EVP_CTRL_AEAD_GET_TAG, MARK, out) == 1);
}
