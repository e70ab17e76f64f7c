#include "common/crypto/audit_head.h"

#include <openssl/evp.h>

#include "common/msg.h"

bool audit_head_signed(uint64_t seq, const struct digest *hash, const uint8_t key[AUDIT_KEY],
                       const uint8_t signature[AUDIT_SIGNATURE])
{
    EVP_PKEY *k = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, AUDIT_KEY);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    struct dynbuf b;
    bool ok;

    dynbuf_init(&b, 256);
    msg_put_span(&b, SPAN("countersign audit 1"));
    msg_put_u64(&b, seq);
    msg_put_digest(&b, hash);
    ok = k && c && dynbuf_ok(&b) && EVP_DigestVerifyInit(c, NULL, NULL, NULL, k) == 1 &&
         EVP_DigestVerify(c, signature, AUDIT_SIGNATURE, b.p, b.n) == 1;
    EVP_MD_CTX_free(c);
    EVP_PKEY_free(k);
    dynbuf_free(&b);
    return ok;
}
