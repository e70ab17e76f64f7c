/* Credentials that sign (inject: sigv4, tc3): what leaves is a signature over one request. Their value is ID:KEY or
 * ID:KEY:TOKEN. The keys of a day are kept, for it is from them that each signature begins. */
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

/* The parts of a value; they borrow from it. -1 with words that hold none of it. */
struct signer_pair {
    struct span id, key, token; /* token: empty for keys that last */
};
int signer_pair(struct span value, struct signer_pair *out, struct err *e) MUSTCHECK;

/* Where it goes: the Host that the carrier will write is made of these. */
struct signer_place {
    struct span scheme, host;
    uint16_t port;
};
/* What a signed request gets. */
struct signature {
    struct {
        struct span name; /* static */
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
