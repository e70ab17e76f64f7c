/* Signing in through an organisation's OpenID Connect provider (countersign.yaml(5), desk: { oidc: ... }): the
 * authorization code flow with PKCE. The desk sends a browser there and takes what it brings back; who that is the
 * keeper finds out (proxy/keeper/oidc/), which has the client's secret. */
#ifndef WEB_APPROVAL_PEOPLE_OIDC_H
#define WEB_APPROVAL_PEOPLE_OIDC_H

#include "web-approval/people/people.h"

enum {
    OIDC_STRANGERS = 4, /* exchanges at once of browsers in which nobody has signed in so; the keeper has 8 places */
    OIDC_BROUGHT = 4096 /* bytes of a code (OIDC_CODE_MAX of proxy/keeper/oidc/oidc.h) */
};

/* The button, where there is a provider. */
void oidc_button(struct exchange *x);
/* GET /sign-in/oidc/go: away, to the provider. */
void page_oidc_go(struct exchange *x);
/* GET /sign-in/oidc: back from it. */
void page_oidc(struct exchange *x);

#endif
