/* The lines that notify.c says on standard error, each once and whole. Words of a request are foreign text and are
 * shown escaped; no sign-in link is printed, since what stands on stderr may be read inside the sandbox. */
#ifndef SANDBOX_SHIM_RUN_NOTIFY_LINES_H
#define SANDBOX_SHIM_RUN_NOTIFY_LINES_H

#include "common/json/json.h"

enum { NOTIFY_SHORT_ID = 10 };

/* What of a ticket is told (JSON of the operator API): it waits, and where to decide it; --state-dir is named when it
 * is not NULL, the page when it is not empty. */
void line_waiting(const struct json *ticket, const char *state_dir, const char *page);
/* It waits, and it was not this run that asked: one line. */
void line_other_waits(const struct json *ticket);
/* "approved by maria", "denied by maria: not on a Monday", "expired" */
void line_decided(const struct json *ticket);
/* This request was denied before, and the denial stands. */
void line_still_denied(const struct json *ticket);
/* The command has ended, and its request was not sent: what is left to do, and until when. own: the gateway ends too.
 */
void line_open(const struct json *ticket, bool own);
/* Of an audit record: what was refused, or allowed and not sent, why, and what can be done. */
void line_refused(const struct json *record);
/* "more WHAT; see countersign HOW" */
void line_more(const char *what, const char *how);

#endif
