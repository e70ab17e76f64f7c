/* Credentials that sign (inject: sigv4, tc3; hmac.h): what leaves is a signature over one request. Their value is
 * ID:KEY or ID:KEY:TOKEN; of a template that names no ID, the key alone. The keys of a day are kept, for it is from
 * them that each signature begins. */
#ifndef PROXY_KEEPER_SIGNER_H
#define PROXY_KEEPER_SIGNER_H

#include "common/crypto/secret.h"
#include "common/err.h"
#include "common/sign/sign.h"
#include "policy/policy.h"
#include "proxy/wire.h"

enum { SIGNER_KEYS = 32, SIGNER_FIELDS = 4, SIGNER_PART_MIN = 8 /* as VALUE_MIN */ };

struct signer;
struct signer *signer_new(void) MUSTCHECK;
void signer_free(struct signer **s);

/* The key of that day, region and service, SIGN_KEY bytes that are the signer's until it is next asked to keep one.
 * whose: by what the owner of the secret is told from others, such as the secret. Empty: it is not kept; or, of
 * signer_keep, it cannot be made. */
struct span signer_kept(const struct signer *s, const struct sign_scope *scope, struct span whose) MUSTCHECK;
struct span signer_keep(struct signer *s, const struct sign_scope *scope, struct span whose,
                        struct span secret) MUSTCHECK;

/* The parts of a value; they borrow from it. -1 with words that hold none of it: a part is missing or too short, or
 * the key is not written as the policy says. */
struct signer_pair {
    struct span id, key, token; /* id: empty where the key is all; token: empty for keys that last */
};
int signer_parts(const struct credential *c, struct span value, struct signer_pair *out, struct err *e) MUSTCHECK;
/* The bytes of a good key that is written in another way; NULL: it is its own text, or no memory. */
struct secret *signer_key_bytes(const struct credential *c, struct span key) MUSTCHECK;

/* Where it goes: the Host that the carrier will write is made of these. */
struct signer_place {
    struct span scheme, host;
    uint16_t port;
};
/* Its Host, as the carrier writes it, appended to out. */
int signer_put_host(struct dynbuf *out, const struct signer_place *at) MUSTCHECK;
/* What a signed request gets. */
struct signature {
    struct {
        struct span name; /* static, or the policy's */
        struct secret *value;
    } field[SIGNER_FIELDS];
    size_t nfields;
    struct dynbuf chunks; /* WIRE_CHUNK_SIGNED bytes each: u64 where it stands, the text */
};
/* now: Unix seconds. 0, or -1 with words; signature_clear after either. */
int signer_sign(struct signer *s, const struct credential *c, struct span value, const struct wire_sign *r,
                const struct signer_place *at, int64_t now, struct signature *out, struct err *e) MUSTCHECK;
void signature_clear(struct signature *s);

#endif
