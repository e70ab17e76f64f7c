/* A request whose credential signs as the policy's template says (inject: hmac; common/sign/template.h): may it, and
 * the parts that the keeper signs without looking into them. */
#ifndef PROXY_JUDGE_TEMPLATE_H
#define PROXY_JUDGE_TEMPLATE_H

#include "proxy/judge/exchange/exchange.h"

/* Is the body, or a digest of it, signed or told? */
bool template_of_body(const struct policy *p, const struct credential *c);
/* NULL, or why it cannot be signed, for the client. */
const char *template_refuses(const struct exchange *x, const struct credential *c);
/* Its parts (wire_sign), appended to b. -1: it cannot be signed, or no memory. */
int template_put(const struct exchange *x, const struct credential *c, struct dynbuf *b) MUSTCHECK;

#endif
