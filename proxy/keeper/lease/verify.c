#include "proxy/keeper/lease/verify.h"

#include <openssl/crypto.h>

#include "common/lease/narrowed.h"

static bool same(const char made[SIGN_TEXT + 1], const uint8_t *said)
{
    return CRYPTO_memcmp(made, said, SIGN_TEXT) == 0;
}

static struct span key_of(struct signer *keys, const struct secret *root, const struct wire_signed *w,
                          const struct sign_scope *scope)
{
    struct span id = span_of(w->lease.b, ID_BYTES), key = signer_kept(keys, scope, id);
    struct lease_texts made;
    if (key.n || lease_derive(root, &w->lease, w->format, &made) != 0)
        return key;
    if (made.nsecret)
        key = signer_keep(keys, scope, id, span_of(made.secret, made.nsecret));
    explicit_bzero(&made, sizeof(made));
    return key;
}

/* Each signature follows from the one before, the first from the request's. */
static enum wire_verified verify_chunks(const struct wire_signed *w, const struct sign_scope *scope,
                                        const uint8_t *key, char last[SIGN_TEXT + 1])
{
    for (struct span rest = w->chunks; rest.n; rest = span_from(rest, WIRE_CHUNK_SAID)) {
        struct digest d;
        char next[SIGN_TEXT + 1];
        bool trailer = w->trailer && rest.n == WIRE_CHUNK_SAID;
        memcpy(d.b, rest.p, DIGEST_BYTES);
        if ((trailer ? sign_trailer : sign_chunk)(scope, key, last, &d, next) != 0)
            return VERIFIED_NOT;
        if (!same(next, rest.p + DIGEST_BYTES))
            return VERIFIED_CHUNK_WRONG;
        memcpy(last, next, sizeof(next));
    }
    return VERIFIED_RIGHT;
}

enum wire_verified lease_verify(struct signer *keys, const struct secret *root, const struct wire_signed *w)
{
    struct sign_scope scope;
    char made[SIGN_TEXT + 1];
    if (!lease_is_pair(w->format) || w->signature.n != SIGN_TEXT ||
        sign_scope_of(w->scheme, w->stamp, w->region, w->service, &scope) != 0)
        return VERIFIED_NOT;
    struct span key = key_of(keys, root, w, &scope);
    if (key.n != SIGN_KEY || sign_digest(&scope, key.p, &w->canonical, made) != 0)
        return VERIFIED_NOT;
    return same(made, w->signature.p) ? verify_chunks(w, &scope, key.p, made) : VERIFIED_WRONG;
}

enum wire_verified lease_verify_narrowed(const struct secret *root, const struct id *lease, enum lease_format f,
                                         struct span layers, const struct digest *mac)
{
    struct lease_texts made;
    struct digest right;
    if (lease_is_pair(f) || lease_derive(root, lease, f, &made) != 0)
        return VERIFIED_NOT;
    int bad = lease_narrowed_mac(span_of(made.text, made.ntext), layers, &right);
    enum wire_verified found = bad != 0                                            ? VERIFIED_NOT
                               : CRYPTO_memcmp(right.b, mac->b, DIGEST_BYTES) == 0 ? VERIFIED_RIGHT
                                                                                   : VERIFIED_WRONG;
    explicit_bzero(&made, sizeof(made));
    explicit_bzero(&right, sizeof(right));
    return found;
}
