/* Inside the store: whose yes a ticket needs, and whose it has. */
#ifndef PROXY_LEDGER_STORE_PEOPLE_PEOPLE_H
#define PROXY_LEDGER_STORE_PEOPLE_PEOPLE_H

#include "proxy/ledger/store/store_in.h"

/* Of a ticket that was just added. */
int people_set(struct store *s, struct span ticket, const struct wire_people *p) MUSTCHECK;
/* The digest of what a page shows of it. */
int people_facts(struct store *s, const struct row *r, struct digest *out) MUSTCHECK;

/* escalate.c: of a ticket that was just added; those whose time has come may approve too, and are told of. Once a
 * second. */
int escalate_set(struct store *s, struct span ticket, const struct wire_escalate *e) MUSTCHECK;
int escalate_tick(struct store *s) MUSTCHECK;
/* CLOCK_BOOTTIME begins anew: what was left when the store last wrote something down is left now. A clock that is
 * fast at boot makes nobody an approver; how long the machine was off makes it later. */
int escalate_new_boot(struct store *s) MUSTCHECK;

/* tally.c: a person decided it just now. */
int tally_add(struct store *s, const struct row *r, bool approved) MUSTCHECK;

/* deputies.c. Is this one the deputy of that person now? 1, 0, -1. */
int deputy_is(struct store *s, struct span who, struct span instead_of) MUSTCHECK;
/* Does what is owner's belong to somebody who decides for this one now, or for whom this one does? 1, 0, -1. */
int deputy_owns(struct store *s, struct span who, struct span owner) MUSTCHECK;
/* How many different people agreed to it: those of whom one is the deputy of the other, or said it in the other's
 * place, are one. d NULL, or with this one as well. -1. */
int deputies_agreed(struct store *s, struct span ticket, const struct store_decision *d) MUSTCHECK;
/* This person is gone: whoever decided for them does no more, nor do they for anybody. */
int deputies_end_of(struct store *s, struct span name, struct span by) MUSTCHECK;
/* Whom this person named does no more: who named them may have been somebody else with their password. */
int deputies_end_named(struct store *s, struct span instead_of, struct span by) MUSTCHECK;
/* All end: nobody knows how old they are. */
int deputies_end_all(struct store *s, const char *how) MUSTCHECK;
int deputies_tick(struct store *s) MUSTCHECK;
int deputies_new_boot(struct store *s) MUSTCHECK;

/* May this one say this of it? 1, 0 and *result says why not, -1. */
int vote_may(struct store *s, const struct row *r, const struct store_decision *d, enum decided *result) MUSTCHECK;
/* Write it down. 1: with it there are enough, 0: others must agree, -1. */
int vote_put(struct store *s, const struct row *r, const struct store_decision *d) MUSTCHECK;
/* The others who agreed before, for the audit: as a JSON array of names, where more than one had to. */
void votes_json(struct store *s, const struct row *r, struct jsonw *w);

/* What passkeys signed for it (struct store_claim); nothing of a ticket that needs none. */
int votes_proof(struct store *s, const struct row *r, struct dynbuf *out) MUSTCHECK;

#endif
