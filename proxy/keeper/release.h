/* The question RELEASE and its answer: which bytes go to the carrier for one
 * exchange, and which it must scrub from that host's answers.
 *
 *   allowed   the credential's only: list must name the place
 *   held      that, and the ledger's signature over {exchange, credential, host,
 *             port, digest}: a person approved these bytes; once for each exchange
 *
 * In both cases keeper and judge must mean the same by the names of credentials at that place: while a reload has
 * reached one of them and not yet the other, nothing of what it redefines is released.
 *
 * Everything not proven is refused, with a code and words that hold no secret. */
#ifndef PROXY_KEEPER_RELEASE_H
#define PROXY_KEEPER_RELEASE_H

#include "common/id.h"
#include "proxy/keeper/signer/signer.h"
#include "proxy/keeper/sources/sources.h"

enum {
    RELEASE_TTL_MS = 2000,   /* of an allowed one: the carrier may use it again that long */
    RELEASE_SCRUB_MAX = 256, /* secrets bound to one host, in all their versions */
    RELEASE_BYTES_MAX = 256 * 1024,
    RELEASE_ONCE = 4096, /* exchanges remembered, so that none is served twice */
    RELEASE_SIGNATURE = 64,
    RELEASE_KEY = 32,
    RELEASE_QUORUM = 8, /* people whose passkeys may be asked for */
    RELEASE_PROOF_MAX = 64 * 1024,
};

struct release_ask {
    uint64_t xid;
    struct span credential; /* empty: only what to scrub */
    struct span scheme, host, path;
    uint16_t port;
    bool held;
    struct digest digest;
    struct span signature;
    struct digest place;          /* what the judge's policy binds to that place (proxy/identity.h) */
    uint64_t refused;             /* the version of its value that the upstream said 401 to; 0: none */
    const struct wire_sign *sign; /* NULL: nothing is to be signed */
    uint64_t now_ms;              /* Unix: for a signature, and for what has ended */
    struct id lease;              /* that the request brought; all zero: none */
};

struct release {
    uint32_t ttl_ms; /* 0: this exchange only */
    enum slot_kind slot;
    struct span header; /* of SLOT_HEADER; borrowed from the policy; empty with an empty credential */
    struct secret
        *value; /* NULL of a client certificate alone, and of a credential that signs: then all that goes out is */
    uint64_t version; /* of a value that was fetched; 0: of another source */
    struct signature signature;
    struct secret *pem; /* a key and its chain, alone or beside the value; NULL: none */
    struct secret *scrub[RELEASE_SCRUB_MAX];
    bool refuse[RELEASE_SCRUB_MAX]; /* an answer with that one, instead of covering it */
    size_t nscrub;
    uint64_t wait;    /* the question (fetch.h) whose answer must come first */
    const char *code; /* when refused */
    struct err why;
};

struct releaser;
struct tokens;

/* Borrows all; fetches may be NULL. */
struct releaser *releaser_new(struct sources *s, struct fetches *f, const struct tokens *t) MUSTCHECK;
void releaser_free(struct releaser **r);
/* The policy of now; borrowed; NULL: nothing is released. */
void releaser_policy(struct releaser *r, const struct policy *p);
/* The ledger's Ed25519 public key, from its own channel. -1: it is none, and until one comes no held write is
 * released; the same after releaser_ledger_gone. */
int releaser_ledger_key(struct releaser *r, struct span key) MUSTCHECK;
void releaser_ledger_gone(struct releaser *r);
/* Zero refuses, with code and why. RELEASE_LATER: ask the same once more when out->wait is answered. release_clear
 * frees it after any of them. */
/* Whose are asked where the ledger's word has a proof with it (release_proof). */
struct passkeys;
void releaser_passkeys(struct releaser *r, struct passkeys *p);
enum release_answer { RELEASE_REFUSED = 0, RELEASE_GIVEN, RELEASE_LATER };
enum release_answer releaser_ask(struct releaser *r, const struct release_ask *ask, struct release *out) MUSTCHECK;
void release_clear(struct release *out);

#endif
