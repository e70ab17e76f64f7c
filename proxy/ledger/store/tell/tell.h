/* Inside the store: what people are told outside the page is written down where it happens. */
#ifndef PROXY_LEDGER_STORE_TELL_TELL_H
#define PROXY_LEDGER_STORE_TELL_TELL_H

#include "proxy/ledger/store/store_in.h"
#include "proxy/ledger/store/tell/told.h"

/* A ticket is in another state now (or new); writes are frozen, or go on. */
int tell_ticket(struct store *s, const struct row *r) MUSTCHECK;
/* One that waits still, and these are asked now, too. */
int tell_escalated(struct store *s, const struct row *r, struct span to) MUSTCHECK;
int tell_frozen(struct store *s, bool on, struct span by) MUSTCHECK;
/* Once a second: what is over is forgotten. */
int tell_tick(struct store *s) MUSTCHECK;
/* As it starts: what is due to one that is there no more, or is another now, is dropped, and said. */
int tell_start(struct store *s) MUSTCHECK;

#endif
