/* SHA-256 of what a policy means by a name (policy/identity.h), for what roles tell each other and the store keeps:
 * it is the same in two images that mean the same, and another one when a reload has redefined the name.
 * -1: no memory, and nothing may be taken for the same. */
#ifndef PROXY_IDENTITY_H
#define PROXY_IDENTITY_H

#include "common/id.h"
#include "policy/identity.h"

/* What may be sent to a place; all zero when the policy binds nothing to it. */
int identity_of_place(const struct policy *p, struct span scheme, struct span host, uint16_t port,
                      struct digest *out) MUSTCHECK;
/* One credential of the policy, by its index; all zero when there is none. */
int identity_of_credential(const struct policy *p, size_t i, struct digest *out) MUSTCHECK;
/* One gate. */
int identity_of_gate(const struct policy *p, const struct gate *g, struct digest *out) MUSTCHECK;
/* The terms of a decision. */
int identity_of_terms(const struct policy *p, const struct decision *d, struct digest *out) MUSTCHECK;

#endif
