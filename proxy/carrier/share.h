/* One loop works for all sandboxes, and what an upstream answers to one of them may be dear to search: gzip that
 * decodes to a hundred times as much, many long secrets, hundreds of answers at once. Whose exchange runs pays for it
 * (proxy/timeshare.h); who has overspent has no more of its answers read while another sandbox asks. */
#ifndef CARRIER_SHARE_H
#define CARRIER_SHARE_H

#include "proxy/carrier/carrier.h"

/* Microseconds, monotonic, of this very moment: what carrier.clock is outside tests. */
uint64_t share_clock(void);
/* Before and behind what is done for a front's exchange; the exchange may be gone by then. */
uint64_t share_begin(const struct carrier *c);
void share_end(struct front *f, uint64_t began_us);
/* The timer that share_end has set: let go on who need not wait any more. */
void share_look(void *carrier);

#endif
