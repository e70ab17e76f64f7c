/* What the gateway and a store of S3's API answer, taken apart: pure, and linear in what came, which may be anything.
 * Of a list nothing is believed but the form of its names (away_in.h); of a refusal nothing but a code. */
#ifndef SANDBOX_SHIM_CHECKPOINT_AWAY_ANSWER_H
#define SANDBOX_SHIM_CHECKPOINT_AWAY_ANSWER_H

#include "common/dynbuf.h"

/* Spans of the answer. AWS, "Retrieve security credentials from instance metadata". */
struct answer_lease {
    struct span id, secret, token, expires; /* token and expires: empty where there is none */
};
/* 0; -1: there is none in it. */
int answer_lease(struct span all, struct answer_lease *out) MUSTCHECK;

/* The code of an error, the gateway's own first, of letters, digits, - and _, 64 of them at most; else empty. */
struct span answer_code(struct span all);
/* Is it the gateway's own refusal, in either of its forms? */
bool answer_is_ours(struct span all);

/* ListObjectsV2 (Amazon S3 API Reference). The next name in *rest, which is what comes behind it then; false: there
 * is no other one, nor is one looked for behind one that does not end. */
bool answer_name(struct span *rest, struct span *name);
/* How the list goes on: 0, and token, which the caller has begun, is what to ask with, or empty behind the end of the
 * list. -1: that is not said, or is too long. */
int answer_more(struct span all, struct dynbuf *token) MUSTCHECK;

#endif
