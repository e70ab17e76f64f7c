/* Grants on the page and in the API: an approval that covers the next ones of its shape too. */
#ifndef WEB_APPROVAL_GRANTS_GRANTS_H
#define WEB_APPROVAL_GRANTS_GRANTS_H

#include "web-approval/page/page.h"
#include "web-approval/store/grants.h"

/* What may be granted with this ticket now; uses 0: nothing. */
struct grant_offer grants_offer(struct exchange *x, const struct ticket *t);
/* What stands at this moment: live, used, expired, revoked, ended; or "other-policy": it is live, and fits nothing.
 */
const char *grants_state(const struct exchange *x, const struct grant_row *g);
/* The third choice on a ticket's page, where there is one. */
void page_grant_offer(struct exchange *x, const struct view *v);
/* As deciding_refuses (web-approval/deciding/deciding.h), of a yes with a grant: what is flagged has none. */
const char *grants_refuse(struct exchange *x, const struct view *v, struct span typed, unsigned *status);
/* What a grant covers, as a list. */
void page_grant_covers(struct exchange *x, struct span method, struct span scheme, struct span host, uint64_t port,
                       struct span shape_json);

#endif
