/* A question that is signed with a key which stays here: a source's settings become the body and the fields of one
 * POST, as settings "body" and "field.NAME" beside "url". The settings of the STS of AWS and of Tencent Cloud:
 * countersign-policy(5). */
#ifndef PROXY_KEEPER_SIGNED_H
#define PROXY_KEEPER_SIGNED_H

#include "proxy/fetcher/wire_fetch.h"
#include "proxy/keeper/signer/signer.h"

enum { SIGNED_BODY_MAX = 15 * 1024 };

struct signed_ask {
    struct dynbuf body;
    struct signature signature;
};

/* w->to is known; now: Unix seconds. What w says after it borrows from out. Nothing is done for a source that is not
 * asked so. 0, or -1 with words that hold no secret; signed_clear after either. */
int signed_ask(struct wire_fetch *w, struct signer *s, int64_t now, struct signed_ask *out, struct err *e) MUSTCHECK;
void signed_clear(struct signed_ask *a);

#endif
