/* Inside the store: whose yes a ticket needs, and whose it has. */
#ifndef PROXY_LEDGER_STORE_PEOPLE_PEOPLE_H
#define PROXY_LEDGER_STORE_PEOPLE_PEOPLE_H

#include "proxy/ledger/store/store_in.h"

/* Of a ticket that was just added. */
int people_set(struct store *s, struct span ticket, const struct wire_people *p) MUSTCHECK;
/* The digest of what a page shows of it. */
int people_facts(struct store *s, const struct row *r, struct digest *out) MUSTCHECK;

/* May this one say this of it? 1, 0 and *result says why not, -1. */
int vote_may(struct store *s, const struct row *r, const struct store_decision *d, enum decided *result) MUSTCHECK;
/* Write it down. 1: with it there are enough, 0: others must agree, -1. */
int vote_put(struct store *s, const struct row *r, const struct store_decision *d) MUSTCHECK;
/* The others who agreed before, for the audit: as a JSON array of names, where more than one had to. */
void votes_json(struct store *s, const struct row *r, struct jsonw *w);

/* What passkeys signed for it (struct store_claim); nothing of a ticket that needs none. */
int votes_proof(struct store *s, const struct row *r, struct dynbuf *out) MUSTCHECK;

#endif
