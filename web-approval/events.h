/* Server-sent events (WHATWG HTML section 9.2). The id of an event is the audit
 * chain's sequence number, so that a stream resumes where it broke. */
#ifndef WEB_APPROVAL_EVENTS_H
#define WEB_APPROVAL_EVENTS_H

#include "common/dynbuf.h"

/* The first of a stream: from where it goes on. */
void events_hello(struct dynbuf *out, uint64_t seq);
/* One event: its name is ticket, asker (of a ticket: a client waits for its decision, or nobody does any more),
 * refused (something was refused or not sent: which, the audit says) or sandbox; data is {"kind","subject"}. seq 0:
 * none of its own, a stream does not resume from it. */
void events_write(struct dynbuf *out, uint64_t seq, struct span kind, struct span subject);

#endif
