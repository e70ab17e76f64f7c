/* A request as a person, a test or a record writes it, asked as the gateway would ask it. */
#ifndef POLICY_TEST_ASKED_H
#define POLICY_TEST_ASKED_H

#include "common/dynbuf.h"
#include "policy/explain.h"

/* What is used up of a limit already; the measure as struct limit has it. */
struct used {
    struct span rule, measure;
    uint64_t n;
};

/* A request, made canonical as the gateway would. */
struct asked {
    struct arena a;
    struct subject subject;
    struct request request;
    struct decision decision;
    const char *note; /* what is to be known about how it was read; NULL: nothing */
    uint64_t now_ms;  /* Unix time it is judged at */
    const struct used *used;
    size_t nused;
    bool recorded;     /* the request's fields are not known, nor its body but for the refs of a push */
    struct span wrote; /* of a record: the operation that counted as a write */
};
void asked_init(struct asked *q);
void asked_free(struct asked *q);
int asked_url(struct asked *q, struct span url, struct err *e) MUSTCHECK;
int asked_header(struct asked *q, struct span name, struct span value) MUSTCHECK;
int asked_label(struct asked *q, struct span key, struct span value) MUSTCHECK;
/* The body of a push that git would send: refs are name, old and new. */
int asked_push(struct asked *q, struct span url, const struct git_ref *refs, size_t n, struct err *e) MUSTCHECK;
/* "create NAME", "update NAME" or "delete NAME" as a ref of a push, with ids that stand for some. False: it is none.
 */
bool asked_ref(struct span text, struct git_ref *out) MUSTCHECK;
/* The same body alone. */
int asked_refs(struct arena *a, const struct git_ref *refs, size_t n, struct span *out) MUSTCHECK;
void asked_judge(struct asked *q, const struct policy *p);
/* Of what a record says, without an upgrade: did a field ask for another method? wrote: its op, if it was a write. */
bool asked_overrides(struct span method, bool body, struct span op, struct span wrote);
/* The same, now that the decision says what it is without such a field. */
bool asked_overrode(const struct decision *d, struct span wrote);
/* As the gateway would end it: a body that is all there and not enough is a denial. */
void asked_decide(const struct policy *p, const struct subject *s, const struct request *r, uint64_t now_ms,
                  struct arena *a, struct decision *d);
/* used.c: what follows of what is used up (what is not named: nothing); why it cannot be, or NULL. */
void asked_past_limits(const struct policy *p, const struct request *r, uint64_t now_ms, const struct used *used,
                       size_t nused, struct arena *a, struct decision *d);
const char *asked_why_unused(const struct asked *q, const struct policy *p);

#endif
