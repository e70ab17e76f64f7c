/* What waits for a decision, said on the caller's terminal while a command runs: once when a request is held, with
 * where to decide it, and once when it is decided. Words of a request are foreign text and are shown escaped; no
 * sign-in link is printed, since what stands on stderr may be read inside the sandbox. */
#ifndef SANDBOX_SHIM_RUN_NOTIFY_H
#define SANDBOX_SHIM_RUN_NOTIFY_H

#include "common/err.h"

enum { NOTIFY_TICKETS_MAX = 256 /* past them it is said that there are more, once */ };

struct notify;

/* Watch the tickets of `session` (those that wait already are said first) at the gateway behind `sock`, in a process
 * of its own that ends with us. state_dir: what --state-dir named, or NULL. NULL: not possible, and nothing is
 * watched. */
struct notify *notify_begin(const char *sock, const char *session, const char *state_dir);
/* Stop watching, and say what was decided in the last moment. Takes NULL. */
void notify_end(struct notify **n);

#endif
