/* What a yes needs beside the operator's right to it: a request that can be shown, and for what is grave its name,
 * typed. Asked of each yes by whatever way it comes; a no needs none of it. */
#ifndef WEB_APPROVAL_DECIDING_DECIDING_H
#define WEB_APPROVAL_DECIDING_DECIDING_H

#include "web-approval/page/page.h"

enum { DECIDING_NAME_MAX = 100 };
/* Of the page a form proves that they were shown; nothing else shows them. */
#define DECIDING_PICTURE "It has pictures, which only its own page shows"

/* Read the body of t and take it apart, then go on, at once or when the ledger has answered; v is good until then()
 * returns. own: given back by deciding_own while then() runs. Without memory it answers instead: 503. */
void deciding_read(struct exchange *x, const struct ticket *t, void *own,
                   void (*then)(struct exchange *x, struct view *v));
void *deciding_own(const struct exchange *x);

/* Does it delete, spend, or change who may do what? */
bool deciding_is_grave(const struct ticket *t);
/* What is typed before a yes to it; empty: nothing. Of what spends the amount, if the request has one; else what it
 * is done to, without the word before its colon ("acme/app" of "github:acme/app"); else the last step of its path;
 * else its host. Always printable ASCII, for it must be typed. Borrowed. */
struct span deciding_name(const struct view *v);
/* NULL: nothing is in the way of a yes with this name typed; else why not, in words, and *status. In x's arena. */
const char *deciding_refuses(struct exchange *x, const struct view *v, struct span typed, unsigned *status);

#endif
