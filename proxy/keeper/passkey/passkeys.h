/* Passkeys of the people who decide: their public halves, sealed in the keeper's folder, where nobody else can put
 * one. A new one needs a code, which the keeper gives to the gateway's owner alone (door.c) and takes once; so that a
 * desk that is taken over later can neither add one nor sign with one. */
#ifndef PROXY_KEEPER_PASSKEY_PASSKEYS_H
#define PROXY_KEEPER_PASSKEY_PASSKEYS_H

#include "common/crypto/secret.h"
#include "common/dynbuf.h"
#include "common/msg.h"
#include "proxy/keeper/passkey/webauthn.h"

enum {
    PASSKEYS_MAX = 2000,
    PASSKEYS_OF_ONE = 8,
    PASSKEYS_NAME = 40,
    PASSKEYS_FILE_MAX = 4 * 1024 * 1024,
    PASSKEYS_CODES = 64,
    PASSKEYS_CODE_MS = 24 * 3600 * 1000,
    PASSKEYS_PROOF_MAX = 8 * 1024, /* of what one signed: wire_passkey */
};

struct passkeys;

/* What is there, or nothing yet. NULL with words: the file is damaged, or of another master key. site: borrowed;
 * an empty rp: the page has no name, and there can be none. */
struct passkeys *passkeys_open(int dir, const struct secret *master, const struct webauthn_site *site,
                               struct err *e) MUSTCHECK;
void passkeys_free(struct passkeys **p);

/* With this, once and within a day, this person may add a passkey. */
int passkeys_code(struct passkeys *p, struct span name, uint64_t now_ms, char code[ID_TEXT + 1],
                  struct err *e) MUSTCHECK;
/* Over what a new one is made: the challenge. */
void passkeys_challenge(struct span name, struct span code, struct digest *out);
int passkeys_add(struct passkeys *p, struct span name, struct span code, struct span json, struct span object,
                 uint64_t now_ms, struct err *e) MUSTCHECK;
/* proof: id, clientDataJSON, authenticatorData, signature. name: whose it must be; empty: anybody's, and then *whose
 * says whose it is. again: it was looked at when it was given, and its counter is known. 0, or -1 with words. */
int passkeys_check(struct passkeys *p, struct span name, const struct digest *challenge, struct span proof,
                   bool again, struct span *whose, struct err *e) MUSTCHECK;
/* All of one person's; how many, or -1. */
int passkeys_remove(struct passkeys *p, struct span name, struct err *e) MUSTCHECK;
/* u16 n, n x (span name, span id, u64 created_ms) */
void passkeys_list(const struct passkeys *p, struct dynbuf *out);

#endif
