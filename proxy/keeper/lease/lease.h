/* Leases are derived here and kept nowhere: from the lease's id, under a key that follows from the master key. So a
 * copy of the ledger's store, which has ids and digests, opens none, and what was signed with a pair's secret can be
 * checked as long as the master key is there. */
#ifndef PROXY_KEEPER_LEASE_LEASE_H
#define PROXY_KEEPER_LEASE_LEASE_H

#include "common/crypto/secret.h"
#include "common/id.h"
#include "common/lease/lease.h"

struct lease_texts {
    char tag[LEASE_TAG + 1];
    char text[LEASE_TEXT_MAX], secret[LEASE_TEXT_MAX];
    size_t ntext, nsecret; /* nsecret 0: it is no pair */
};

/* The key that all of them are derived from; NULL: no memory. */
struct secret *lease_root(const struct secret *master) MUSTCHECK;
/* 0, or -1: no such form, or no HMAC. The caller wipes *out. */
int lease_derive(const struct secret *root, const struct id *id, enum lease_format f,
                 struct lease_texts *out) MUSTCHECK;

#endif
