/* What a client brings in place of a credential: what stood, or stands, where that credential will be written. */
#ifndef PROXY_JUDGE_LEASES_BROUGHT_H
#define PROXY_JUDGE_LEASES_BROUGHT_H

#include "common/sign/claim.h"
#include "proxy/judge/exchange/exchange.h"

enum { BROUGHT_TEXTS = 3 };

struct brought {
    size_t field; /* index of the request's field with the slot; its nfields: it is none, or not there */
    size_t token; /* that of a session token, if it is the lease once more; else its nfields */
    bool twice;   /* there is more than one such value */
    struct sign_claim
        claim; /* of a credential that signs: what it says it is signed with; scheme SIGN_NONE: nothing */
    size_t n;
    struct span text[BROUGHT_TEXTS]; /* what may be the lease: the value in this credential's format or another usual
                                        one, Basic's user and password; or what stood where its mark is now; or the
                                        id in a signature */
};

/* Never fails: without memory there is less in it, and what is not in it is elsewhere. */
void brought_find(struct exchange *x, const struct credential *c, struct brought *out);
/* Take the client's value out of the request: nothing of it is held, shown or sent. */
void brought_clear(struct wire_request *r, const struct brought *b);

#endif
