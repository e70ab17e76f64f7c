/* Which records are one request. Its exchange is the same in its intent, its result and what a WebSocket made of it;
 * a ticket that nothing came of yet has only its digest. Bounded: what is forgotten is counted twice, never lost. */
#ifndef CLI_POLICY_RECORD_ONCE_H
#define CLI_POLICY_RECORD_ONCE_H

#include "cli/policy/record/record.h"

enum { ONCE_SLOTS = 1 << 14 };
struct once {
    uint64_t open[ONCE_SLOTS];
};
enum once_is { ONCE_NEW = 0, ONCE_AGAIN, ONCE_OTHER };
/* ONCE_OTHER: a record of no request. */
enum once_is once_ask(struct once *o, const struct record *r);
/* Is this the result of an exchange whose intent was told? Then nothing of it need be read. */
bool once_ends(struct once *o, struct span exchange);
uint64_t once_hash(uint64_t seed, struct span s);

#endif
