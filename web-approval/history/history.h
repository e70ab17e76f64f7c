#ifndef WEB_APPROVAL_HISTORY_HISTORY_H
#define WEB_APPROVAL_HISTORY_HISTORY_H

#include "web-approval/page/page.h"

enum { HISTORY_ROWS = 50, HISTORY_EXPORTED = 500, HISTORY_WORDS = 200 };

/* What is searched for, as the query says it. -1, answered. */
int history_take(struct exchange *x, struct history_filter *f) MUSTCHECK;
/* Is it more than all of it? */
bool history_narrowed(const struct history_filter *f);
/* "?q=...&after=ID", as an address: percent-encoded, without anything that HTML would take for its own. */
void history_query(struct dynbuf *out, const struct history_filter *f, struct span after);

#endif
