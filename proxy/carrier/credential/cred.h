/* Credentials as the keeper released them (M_CREDENTIAL): for one exchange, or live for a while.
 * Each holds its secret value and the scrub set of its host; wiped when the last reference goes. */
#ifndef CARRIER_CRED_H
#define CARRIER_CRED_H

#include "common/arena.h"
#include "common/crypto/secret.h"
#include "common/http/slot.h"
#include "proxy/carrier/credential/origins.h"
#include "proxy/carrier/upstream/upstream.h"
#include "proxy/wire.h"

enum { CREDS_MAX = 1024, CRED_TTL_MAX = 15 * 60 * 1000, CRED_SIGNATURE_MAX = 4 };

struct cred {
    unsigned refs;
    struct err bad; /* text not empty: it must not be used, and why */
    struct arena a;
    struct span scheme, host, name, header; /* name empty: nothing to inject, patterns only */
    enum slot_kind slot;                    /* where its mark stands; SLOT_HEADER: it has none */
    uint16_t port;
    struct digest bound;  /* what was bound to that origin when it was released: the name alone is no identity */
    uint64_t version;     /* of a value whose source can be asked again; 0: it cannot */
    struct secret *value; /* NULL: a certificate alone, or patterns only */
    struct secret *pem;   /* of a client certificate, a key and its chain, for a connection of this exchange's own */
    /* Of a credential that signs, in place of a value: fields, and signatures for places in the body. */
    struct {
        struct span name;
        struct secret *value;
    } signature[CRED_SIGNATURE_MAX];
    size_t nsignature;
    uint8_t *chunks; /* WIRE_CHUNK_SIGNED bytes each, by place */
    size_t nchunks;
    struct scrub *set;
};

struct cred_slot; /* a place in one of the lists */
struct cred_list {
    struct cred_slot *first;
    size_t n;
};

struct creds {
    struct cred_list live, unclaimed;
};

/* Read M_CREDENTIAL; chunks: of the M_SIGNED before it; *ttl in ms. NULL: no memory. Malformed, or with a secret that
 * cannot be recognised: bad says so. origins remember what its origin is given; the set is of all that this origin
 * ever was. */
struct cred *cred_read(struct origins *origins, struct span payload, struct span chunks, uint32_t *ttl) MUSTCHECK;
void cred_unref(struct cred **c);
/* Write the signatures into a piece of the body, n bytes from place at on. */
void cred_sign_piece(const struct cred *c, uint64_t at, uint8_t *piece, size_t n);
/* Is it for exactly this upstream, under this name, by a policy that binds the same to it? */
bool cred_fits(const struct cred *c, const struct upstream *u, struct span name);

/* Remember as live for one front; replaces an older one of the same name and origin. Takes a reference of its own. */
void creds_live(struct creds *s, struct cred *c, uint64_t front, uint64_t until);
/* A new reference, or NULL. */
struct cred *creds_find(struct creds *s, const struct upstream *u, struct span name, uint64_t front,
                        uint64_t now) MUSTCHECK;
/* Keep for the exchange whose M_FORWARD has not come yet. */
void creds_keep(struct creds *s, struct cred *c, uint64_t xid, uint64_t until);
/* The reference that was kept, or NULL. */
struct cred *creds_claim(struct creds *s, uint64_t xid) MUSTCHECK;
void creds_expire(struct creds *s, uint64_t now);
void creds_clear(struct creds *s);

#endif
