#include "proxy/keeper/lease/lease.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "common/crypto/seal.h"

struct secret *lease_root(const struct secret *master)
{
    return seal_key_derive(master, SPAN("countersign leases 1"));
}

/* HMAC-SHA256 in counter mode (NIST SP 800-108): key, [counter | what for | id]. */
static int expand(const struct secret *root, const char *what, const struct id *id, uint8_t *out, size_t n)
{
    uint8_t in[1 + 8 + ID_BYTES] = {0}, block[EVP_MAX_MD_SIZE];
    struct span key = secret_bytes(root);
    int bad = 0;
    for (size_t i = 0; what[i] != '\0' && i < 8; i++)
        in[1 + i] = (uint8_t)what[i];
    memcpy(in + 9, id->b, ID_BYTES);
    for (size_t at = 0; bad == 0 && at < n; at += DIGEST_BYTES, in[0]++) {
        unsigned made = 0;
        if (HMAC(EVP_sha256(), key.p, (int)key.n, in, sizeof(in), block, &made) == NULL || made != DIGEST_BYTES)
            bad = -1;
        else
            memcpy(out + at, block, n - at < DIGEST_BYTES ? n - at : DIGEST_BYTES);
    }
    explicit_bzero(block, sizeof(block));
    return bad;
}

int lease_derive(const struct secret *root, const struct id *id, enum lease_format f, struct lease_texts *out)
{
    static const struct id of_all;
    uint8_t stream[LEASE_STREAM], seed[5];
    *out = (struct lease_texts){.ntext = 0};
    int bad = expand(root, "tag", &of_all, seed, sizeof(seed));
    lease_tag(seed, out->tag);
    bad = bad != 0 ? bad : expand(root, "text", id, stream, sizeof(stream));
    if (bad == 0 && (out->ntext = lease_text(f, out->tag, stream, out->text)) == 0)
        bad = -1;
    if (bad == 0 && lease_is_pair(f)) {
        bad = expand(root, "secret", id, stream, sizeof(stream));
        out->nsecret = bad == 0 ? lease_secret(f, stream, out->secret) : 0;
    }
    explicit_bzero(stream, sizeof(stream));
    if (bad != 0)
        explicit_bzero(out, sizeof(*out));
    return bad;
}
