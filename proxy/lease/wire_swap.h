/* Tokens in an answer, whose places leases take: which they are, as the judge tells the carrier, and what carrier,
 * keeper and judge then say of each. As pairs, put and get in the same order, as in proxy/wire.h.
 *
 *   judge ──M_FORWARD──► carrier ──M_SWAP──► keeper    the tokens, which stay there
 *                        carrier ◄─M_SWAPPED─ keeper   the leases' texts
 *   ledger ◄─M_LEASE_TAKE─ judge ◄─M_SWAP_TAKE─ carrier   whose they are; written down before the answer goes on
 *   ledger ──M_LEASE──► judge ──M_TOKEN_END──► keeper  a lease is dead, and its token forgotten */
#ifndef PROXY_LEASE_WIRE_SWAP_H
#define PROXY_LEASE_WIRE_SWAP_H

#include "common/lease/lease.h"
#include "common/msg.h"

enum { SWAPS_MAX = 4 /* tokens of one answer */, SWAP_POINTERS_MAX = 8, SWAP_POINTER_BYTES = 4096 };

/* One that is to be taken out. */
struct wire_swap {
    struct span credential; /* whose value it is */
    struct span expires;    /* JSON pointer to the seconds it lives; empty: it does not say */
    struct span ends;       /* to the time at which it ends; empty: it does not say */
    struct span key;        /* of keys to sign with: token is the id, this the key; empty: it is in one piece */
    struct span session;    /* and this the session token; empty: they have none */
    uint64_t lifetime_ms;   /* the longest, and where it does not say */
    size_t ntoken, nkeep;
    struct span token[SWAP_POINTERS_MAX]; /* JSON pointers: where it is */
    struct span keep[SWAP_POINTERS_MAX];  /* texts that go on */
};
void wire_put_swap(struct dynbuf *b, const struct wire_swap *w);
int wire_get_swap(struct msg_in *m, struct wire_swap *w) MUSTCHECK;

/* The lease of one that was. */
struct wire_swapped {
    struct span credential;
    struct id lease;
    struct span tag;    /* LEASE_TAG characters */
    struct digest text; /* SHA-256 of the lease's text */
    uint64_t expires_ms;
};
void wire_put_swapped(struct dynbuf *b, const struct wire_swapped *w);
int wire_get_swapped(struct msg_in *m, struct wire_swapped *w) MUSTCHECK;

#endif
