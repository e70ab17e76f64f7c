/* A decision and all that its spans point into; and what the ledger found of its limits. */
#ifndef PROXY_JUDGE_JUDGED_H
#define PROXY_JUDGE_JUDGED_H

#include "policy/limit.h"
#include "policy/ambiguity.h"
#include "proxy/judge/body.h"
#include "proxy/judge/image.h"
#include "proxy/judge/sandbox.h"

struct judged {
    struct image *image;
    struct arena facts;
    struct body *body; /* what d.push and d.join_body are read from */
    struct decision d;
    struct span credential;   /* its name, empty for none */
    struct ambiguity unclear; /* of a denial as "unclassified", once it is known that it is one; word NULL before */
    uint64_t at_ms;           /* Unix time it was judged at; what follows of its limits is of then too */
};

/* Limits of a request that were found used up, by rule and measure: they outlive a reload. Bytes in the exchange's
 * arena. */
struct over {
    size_t n;
    struct limit past[LIMITS_MAX];
    uint64_t room_ms; /* Unix ms when there may be room; 0: not known */
};

/* Decide by the policy of now. *out is always filled; drop it with judged_drop. body: the request's, of which *out
 * keeps a reference; r->body is not looked at, here and below. over: what is known to be used up, or NULL. */
void judged_make(struct judge *j, const struct sandbox *s, const struct request *r, struct body *body,
                 const struct over *over, struct judged *out);
void judged_drop(struct judged *v);
/* Before a wait: a body taken apart is many times as large as it was, and one sandbox may have hundreds that wait.
 * What was decided stays, and so do its words, refs and limits; the facts for a ticket, join_body and the body go.
 * Below JUDGED_PACKED bytes, and without memory, nothing changes. */
enum { JUDGED_PACKED = 16 * 1024 };
void judged_pack(struct judged *v);
/* Why it was not understood, if it was not. */
void judged_unclear(struct judged *v, const struct sandbox *s, const struct request *r);
/* As if these were used up: the decision that follows. False: it asks for none of them. */
bool judged_over(struct judged *v, const struct request *r, const struct over *over);
/* Do both stand on the same terms (proxy/identity.h)? Without memory to tell they do not. */
bool judged_terms_same(const struct judged *a, const struct judged *b);
/* Do both ask for the same counts? */
bool judged_counts_same(const struct decision *a, const struct decision *b);

#endif
