/* What is said of those who are told outside the page (notify:): to each role what it needs. */
#ifndef PROXY_PARENT_SECRETS_PLACES_H
#define PROXY_PARENT_SECRETS_PLACES_H

#include "proxy/parent/parent.h"

/* For the ledger: u8 n, n x wire_tell_target. */
void parent_put_targets(const struct config *c, struct dynbuf *out);
/* For the desk: "NAME KIND\n" each, or "NAME KIND signing\n". */
void parent_name_targets(const struct config *c, char *to, size_t cap);
/* M_TELL_PLACE of each, to the keeper. */
void parent_give_places(const struct parent *p, struct child *keeper);

#endif
