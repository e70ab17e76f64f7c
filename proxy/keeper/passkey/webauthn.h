/* WebAuthn (W3C, level 2): what a browser says of a passkey when it is made, and when it signs. Strict: of CBOR the
 * canonical part that CTAP 2 has, of flags user present and user verified, of algorithms ES256, EdDSA (Ed25519) and
 * RS256. Which maker's device it is (the attestation) is not asked. Pure. */
#ifndef PROXY_KEEPER_PASSKEY_WEBAUTHN_H
#define PROXY_KEEPER_PASSKEY_WEBAUTHN_H

#include "common/err.h"
#include "common/id.h"

enum {
    WEBAUTHN_ID_MAX = 255,    /* of a credential's id */
    WEBAUTHN_SPKI_MAX = 600,  /* of a public key, DER: RSA of 4096 bits */
    WEBAUTHN_JSON_MAX = 2048, /* of clientDataJSON */
    WEBAUTHN_OBJECT_MAX = 8192,
    WEBAUTHN_SIGNATURE_MAX = 520,
};

/* What it must be about. */
struct webauthn_site {
    struct span origin, rp; /* "https://approve.example:8443", "approve.example" */
};

/* A key that was made: spans point into what was read, but for spki. */
struct webauthn_key {
    struct span id;
    uint8_t spki[WEBAUTHN_SPKI_MAX];
    size_t nspki;
    uint32_t count;
};
/* navigator.credentials.create: clientDataJSON and attestationObject. -1 with words. */
int webauthn_made(const struct webauthn_site *s, const struct digest *challenge, struct span json, struct span object,
                  struct webauthn_key *out, struct err *e) MUSTCHECK;

/* navigator.credentials.get: clientDataJSON, authenticatorData and the signature, by the key of this SPKI. */
struct webauthn_signed {
    struct span json, data, signature;
};
int webauthn_signed_by(const struct webauthn_site *s, const struct digest *challenge, const struct webauthn_signed *w,
                       struct span spki, uint32_t *count, struct err *e) MUSTCHECK;

#endif
