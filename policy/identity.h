/* What a name of the policy stands for, as bytes to compare or to take a digest of: a name is redefined by the next
 * policy, and what outlives an image is compared by this instead. Two images that mean the same write the same. */
#ifndef POLICY_IDENTITY_H
#define POLICY_IDENTITY_H

#include "common/dynbuf.h"
#include "policy/policy.h"

/* One credential, by its index, with its whole definition. Nothing when there is none. */
void policy_put_credential(const struct policy *p, size_t i, struct dynbuf *out);
/* Every credential that may go to this place, each with its whole definition: source, field, where it may go. Nothing
 * for a place without any. A failed out (dynbuf_ok) is equal to nothing. */
void policy_put_place(const struct policy *p, struct span scheme, struct span host, uint16_t port,
                      struct dynbuf *out);
/* On what terms d stands: its rule and operation, the definition of its credential, who may approve it (by name and
 * one by one), whether a reason is wanted, how long it lives, what a WebSocket may send. Not the request itself, and
 * not the limits, which the ledger counts at every use. */
void policy_put_terms(const struct policy *p, const struct decision *d, struct dynbuf *out);
/* One gate, with its whole definition, as the terms of what it is asked about have it. */
void policy_put_gate(const struct policy *p, const struct gate *g, struct dynbuf *out);

#endif
