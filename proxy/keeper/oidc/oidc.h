/* People who sign in through their organisation's provider (OpenID Connect): the code that their browser brought back
 * is given to the token endpoint, with the client's secret, which the desk never has. Whom that is asked of, and what
 * its answer must say, is what the configuration told this process: nothing of it is the desk's to choose. */
#ifndef PROXY_KEEPER_OIDC_OIDC_H
#define PROXY_KEEPER_OIDC_OIDC_H

#include "proxy/keeper/keeper.h"

enum {
    OIDC_ASKED_MOST = 8,   /* at once; the desk leaves half of them to browsers in which somebody has signed in so */
    OIDC_CODE_MAX = 4096,  /* bytes of a code; the desk's is the same */
    OIDC_PROOF_MAX = 128,  /* of a verifier, of a nonce */
    OIDC_TEXT_MAX = 1024,  /* of each setting */
    OIDC_ASK_MS = 8 * 1000 /* sooner than the desk loses its patience */
};
/* Numbers of questions to the fetcher that are about a sign-in, the keeper's own. */
#define OIDC_FETCH (UINT64_C(1) << 60)

/* A setting of the configuration; false: it is about something else. */
bool keeper_oidc_setting(struct span key, struct span value);
/* M_OIDC of the desk. */
void keeper_oidc(struct keeper *k, struct frame *f);
/* M_FETCHED of a question with OIDC_FETCH. */
void keeper_oidc_fetched(struct keeper *k, struct frame *f);
/* Nobody answers what was asked so far. */
void keeper_oidc_lost(struct keeper *k);
/* Who asked has gone: nobody is told what comes. The next one numbers its own. */
void keeper_oidc_forget(void);

#endif
