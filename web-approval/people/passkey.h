/* Passkeys on the page: a new one, signing in with one, and a yes with one over that very request. What they sign is
 * looked at by the keeper alone, which has their public halves. */
#ifndef WEB_APPROVAL_PEOPLE_PASSKEY_H
#define WEB_APPROVAL_PEOPLE_PASSKEY_H

#include "web-approval/people/people.h"

/* The form to sign in with one; nothing where the page has no name that a passkey can be for. */
void passkey_sign_in(struct exchange *x);
/* What it sent back: seed as the form had it, said: what the script made of the answer. */
void passkey_signed_in(struct exchange *x, struct span seed, struct span said);
/* "Who am I": those that there are, and a new one for whoever came with a link that lets them. */
void passkey_section(struct exchange *x);
void page_me_passkey(struct exchange *x);
/* Attributes of the form that approves t: what is signed, and by which of this person's. */
void passkey_of_ticket(struct exchange *x, const struct ticket *t);
/* Has this person's passkey signed over t? Then `then`, with x->passkey; else it is answered. x->step stays. */
void passkey_step_up(struct exchange *x, const struct ticket *t, struct span said, void (*then)(struct exchange *x));

#endif
