/* Requests whose credential is a signature (inject: sigv4, tc3, hmac): may they be signed anew, and their canonical
 * form, which the keeper signs without looking into them. What the client signed with does not leave; whether it is a
 * lease's pair: leases/proof.h. */
#ifndef PROXY_JUDGE_SIGNING_H
#define PROXY_JUDGE_SIGNING_H

#include "common/id.h"
#include "proxy/judge/exchange/exchange.h"
#include "proxy/outbound.h"

/* Is its credential, as decided, one that signs? */
bool signing_is(const struct exchange *x);
/* Is that only possible with the body, whole? */
bool signing_wants_body(const struct exchange *x);
/* Is it the body itself that is signed, by the keeper? Then it may have BODY_INLINE_MAX at most. */
bool signing_takes_body(const struct exchange *x);
/* The fields that the gateway writes for a credential, in place of the client's. */
void signing_slots(const struct policy *p, const struct credential *c, struct outbound *l);
/* NULL: it can be signed, as far as is known of it; else why not, for the client. */
const char *signing_refuses(const struct exchange *x);
/* Its canonical parts, without any field: what the gateway's signature and the client's have in common. They borrow
 * from the exchange. -1: it cannot be signed, or no memory. signing_drop after either. */
struct signing {
    struct wire_sign w;
    struct dynbuf path, query, chunks;
    char hex[2 * DIGEST_BYTES + 1];
};
int signing_take(const struct exchange *x, struct signing *out) MUSTCHECK;
void signing_drop(struct signing *s);
/* Its canonical form (wire_sign), appended to b. -1: it cannot be signed, or no memory. */
int signing_put(const struct exchange *x, struct dynbuf *b) MUSTCHECK;
/* Of a body with signatures in it: a digest without them, by which a retry is told. False: it has none. */
bool signing_join(const struct exchange *x, struct digest *out);

#endif
