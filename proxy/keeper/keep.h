/* The keeper's folder at start: either all of it is there and in order, or none of
 * it is and it is made. Anything between is refused with words and left as it is,
 * because a key made anew in silence would make every sealed secret worthless.
 *
 *   master.key      32 random bytes; the keys below are derived from it. It is not there when it is kept elsewhere
 *   ca.key, ca.crt  the certificate authority; its key sealed
 *   secrets.sealed  the secret store (vault.h)
 *   first-start     there only while the others are being made: a start that was
 *                   cut short is begun again, for nobody can have used its keys */
#ifndef PROXY_KEEPER_KEEP_H
#define PROXY_KEEPER_KEEP_H

#include "proxy/keeper/ca.h"
#include "proxy/keeper/vault.h"

struct keep {
    struct secret *master;
    struct ca *ca;
    struct vault *vault;
    bool first; /* it was made just now */
};

/* now: Unix seconds. master: the key, where countersign.yaml says that it is elsewhere, copied; NULL: it lies in the
 * folder. Borrows dir. 0, or -1 with words and *k empty. */
int keep_open(struct keep *k, int dir, const struct secret *master, int64_t now, struct err *e) MUSTCHECK;
void keep_close(struct keep *k);
/* The ledger's key for held bodies. */
struct secret *keep_data_key(const struct keep *k) MUSTCHECK;

#endif
