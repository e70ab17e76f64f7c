/* Who is told outside the page (notify: of countersign.yaml), and what became of it: on the page and in the API. */
#ifndef WEB_APPROVAL_ROOMS_TOLD_H
#define WEB_APPROVAL_ROOMS_TOLD_H

#include "web-approval/store/told.h"

struct exchange;
/* The i-th of those that the configuration names, with its kind; false past the last. */
bool told_target(const struct exchange *x, size_t i, struct span *name, struct span *kind);
/* Is what comes back taken of this one (signing:)? */
bool told_signs(const struct exchange *x, struct span name);
/* A section of the health page; nothing where nobody is told. */
void told_section(struct exchange *x);
/* /api/v1/notify: all of them; /api/v1/notify/NAME/test: tell one something now. */
void api_told(struct exchange *x);
void api_told_test(struct exchange *x);

#endif
