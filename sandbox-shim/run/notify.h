/* What waits for a decision, said on standard error while a command runs: once when a request is held, with where to
 * decide it, and once when it is decided; what was refused or could not be sent, each reason at each host once; at
 * the end, what is still to be sent and until when. The lines themselves: notify_lines.h. */
#ifndef SANDBOX_SHIM_RUN_NOTIFY_H
#define SANDBOX_SHIM_RUN_NOTIFY_H

#include "common/err.h"

enum { NOTIFY_TICKETS_MAX = 256 /* past them it is said that there are more, once */ };

/* All text must outlive the notify. */
struct notify_of {
    const char *sock, *session; /* the gateway's, and whose tickets */
    const char *sandbox;        /* of this run */
    const char *state_dir;      /* what --state-dir named, or NULL */
    bool own;                   /* the gateway ends with this command */
};

struct notify;

/* Watch the tickets of the session (those that wait already are said first), in a process of its own that ends with
 * us. NULL: not possible, and nothing is watched. */
struct notify *notify_begin(const struct notify_of *of);
/* Stop watching, and say what was decided in the last moment and what is left. Takes NULL. */
void notify_end(struct notify **n);

#endif
