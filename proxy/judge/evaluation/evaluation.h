/* A decision and all that its spans point into; and what the ledger found of its limits. */
#ifndef PROXY_JUDGE_EVALUATION_H
#define PROXY_JUDGE_EVALUATION_H

#include "policy/limit.h"
#include "policy/ambiguity.h"
#include "proxy/judge/evaluation/body.h"
#include "proxy/judge/evaluation/image.h"
#include "proxy/judge/accounts/sandbox.h"

struct evaluation {
    struct image *image;
    struct arena facts;
    struct body *body; /* what d.push and d.join_body are read from */
    struct decision d;
    struct span credential;     /* its name, empty for none */
    struct ambiguity ambiguity; /* of a denial as "unclassified", once it is known that it is one; word NULL before */
    uint64_t at_ms;             /* Unix time it was judged at; what follows of its limits is of then too */
};

/* Limits of a request that were found used up, by rule and measure: they outlive a reload. Bytes in the exchange's
 * arena. */
struct exceeded {
    size_t n;
    struct limit past[LIMITS_MAX];
    uint64_t room_ms; /* Unix ms when there may be room; 0: not known */
};

/* Decide by the policy of now. *out is always filled; drop it with evaluation_drop. body: the request's, of which
 * *out keeps a reference; r->body is not looked at, here and below. over: what is known to be used up, or NULL. lane:
 * as sandbox_who. */
void evaluation_make(struct judge *j, const struct sandbox *s, struct span lane, const struct request *r,
                     struct body *body, const struct exceeded *over, struct evaluation *out);
void evaluation_drop(struct evaluation *v);
/* Before a wait: a body taken apart is many times as large as it was, and one sandbox may have hundreds that wait.
 * What was decided stays, and so do its words, refs and limits; the facts for a ticket, join_body and the body go.
 * Below EVALUATION_PACKED bytes, and without memory, nothing changes. */
enum { EVALUATION_PACKED = 16 * 1024 };
void evaluation_pack(struct evaluation *v);
/* Why it was not understood, if it was not. */
void evaluation_ambiguity(struct evaluation *v, const struct sandbox *s, struct span lane, const struct request *r);
/* policy_each_judged, by its policy and at its time; r->body is looked at. */
bool evaluation_each_judged(const struct evaluation *v, const struct sandbox *s, struct span lane,
                            const struct request *r, bool (*fn)(const struct judged *j, void *arg),
                            void *arg) MUSTCHECK;
/* As if these were used up: the decision that follows. False: it asks for none of them. */
bool evaluation_over(struct evaluation *v, const struct sandbox *s, const struct request *r,
                     const struct exceeded *over);
/* Do both stand on the same terms (proxy/identity.h)? Without memory to tell they do not. */
bool evaluation_terms_same(const struct evaluation *a, const struct evaluation *b);
/* Do both ask for the same counts? */
bool evaluation_counts_same(const struct decision *a, const struct decision *b);

#endif
