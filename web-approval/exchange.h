/* One request to the desk and its answer (struct exchange of desk.h): made, and freed with what it holds. */
#ifndef WEB_APPROVAL_EXCHANGE_H
#define WEB_APPROVAL_EXCHANGE_H

#include "web-approval/desk.h"

enum { EXCHANGE_IN_MAX = HTTP_HEAD_MAX + DESK_BODY_MAX };

/* operator and caller are copied. NULL: no memory. */
struct exchange *exchange_new(struct desk *d, enum desk_place place, const char *operator,
                              const struct caller * caller) MUSTCHECK;
void exchange_free(struct exchange *x);

#endif
