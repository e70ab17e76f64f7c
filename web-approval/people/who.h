/* Who an operator is: a person (countersign operator), or a user of this machine. */
#ifndef WEB_APPROVAL_PEOPLE_WHO_H
#define WEB_APPROVAL_PEOPLE_WHO_H

#include "web-approval/desk.h"
#include "web-approval/store/people.h"

/* x->operator is a person's name, or "uid N", which becomes the name of the person who is this user as well; fills in
 * x->who. False: a person that there is not any more, or, of a name, it cannot be known now (*gone says which). */
bool who_find(struct exchange *x, bool *gone);
/* A user of this machine has no person's name. */
bool who_is_machine(const char *operator);
/* May x's operator, who is signed in, have conversations here, and see how models do? The users of this machine whom
 * the control socket admits, and whom countersign.yaml names, by their own name or a group's. Asked in route.c before
 * each page of them.
 */
bool who_may_talk(const struct exchange *x) MUSTCHECK;
/* For the audit and the page: "passkey", "password", "link", "oidc", "socket", "slack". */
const char *who_how(const struct exchange *x);

#endif
