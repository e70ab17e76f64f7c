/* Credentials that sign as the policy's template says (inject: hmac). */
#ifndef PROXY_KEEPER_SIGNER_HMAC_H
#define PROXY_KEEPER_SIGNER_HMAC_H

#include "proxy/keeper/signer/signer.h"

/* As signer_sign; p: whose credential c is; now_ms: Unix. */
int hmac_sign(const struct policy *p, const struct credential *c, struct span value, const struct wire_sign *r,
              const struct signer_place *at, uint64_t now_ms, struct signature *out, struct err *e) MUSTCHECK;

#endif
