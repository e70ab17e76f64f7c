/* The forms of a conversation. */
#ifndef WEB_APPROVAL_TALKS_FORM_H
#define WEB_APPROVAL_TALKS_FORM_H

#include "web-approval/page/page.h"

/* The form that says something in this conversation (empty: that begins one). Its key is this page's own: sent twice
 * it is one turn. */
void talk_composer(struct exchange *x, struct span conversation, const char *button);
/* The form that ends a turn. */
void talk_canceller(struct exchange *x, struct span conversation, struct span turn);

#endif
