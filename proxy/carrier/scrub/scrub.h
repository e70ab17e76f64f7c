/* Finding secrets in a stream of bytes and covering them with '*'. Pure.
 *
 *   secrets -> forms (forms.c) -> one set -> any number of streams
 *
 * Every byte that lies in any occurrence of any form is replaced, so the result
 * has the length of the input and does not depend on where the input was cut.
 * What a stream holds back does not depend on the secrets' bytes (plan/plan.h): never
 * anything before a line feed. What is caught and what is not: proxy/carrier/SCRUB.md. */
#ifndef CARRIER_SCRUB_H
#define CARRIER_SCRUB_H

#include "common/dynbuf.h"
#include "common/err.h"

enum {
    SCRUB_SECRET_MIN = 8, /* bytes; anything shorter turns up by chance */
    SCRUB_SECRET_MAX = 16 * 1024,
    SCRUB_SECRETS_MAX = 256,
    SCRUB_FORMS_MAX = 32768,
    SCRUB_BYTES_MAX = 4 * 1000 * 1000, /* of all forms of a set together */
};

struct scrub_secret {
    struct span bytes;
    bool refuse; /* an answer in which it is found must not go on: scrub_stream says so, and scrub_cover */
};

struct scrub;

/* NULL: a secret is shorter or longer than the limits or has a line feed in it, there are too many, or no memory; e
 * says which, without their bytes. n 0 gives a set that finds nothing. */
struct scrub *scrub_new(const struct scrub_secret *secret, size_t n, struct err *e) MUSTCHECK;
struct scrub *scrub_ref(struct scrub *s);
void scrub_unref(struct scrub **s);
bool scrub_is_empty(const struct scrub *s);
/* The most bytes a form can have, from the length of the longest secret alone (plan/plan.h); 0 when there is none. */
size_t scrub_reach(const struct scrub *s);
/* Is it one of the set's secrets? *out as scrub_secret has it, borrowed. */
bool scrub_find(const struct scrub *s, struct span secret, struct scrub_secret *out);
/* The i-th of its different secrets, borrowed; false past the last. One that was given twice refuses if either did.
 */
bool scrub_secret(const struct scrub *s, size_t i, struct scrub_secret *out);

/* Cover what is found in a complete run of bytes. How often something was found, or -1: no memory. *refuse: one of
 * them says so. */
int scrub_cover(const struct scrub *s, uint8_t *p, size_t n, bool *refuse) MUSTCHECK;

struct scrub_stream {
    struct scrub *set;
    struct dynbuf held; /* a form that is not complete may begin in it; not yet given out */
    size_t covered;     /* the first bytes of held belong to something found already */
    size_t fresh;       /* the last bytes of held were not searched yet */
    uint64_t found;
    bool refuse;   /* one of those found says so */
    uint64_t work; /* of scrub_watch: windows looked up and bytes moved, so that a test can count them */
};

/* Takes a reference of set. */
void scrub_begin(struct scrub_stream *t, struct scrub *set);
/* Append to out what can be given out, covered. last: nothing follows, give everything. -1: no memory or out is full;
 * the stream cannot go on and the answer has to be cut. */
int scrub_feed(struct scrub_stream *t, struct span in, bool last, struct dynbuf *out) MUSTCHECK;
/* The same of a stream of which nothing waits, because its owner asks behind each piece whether found has grown:
 * nothing is given out. What it costs rests on the length of in, not on that of the secrets. -1: no memory. */
int scrub_watch(struct scrub_stream *t, struct span in) MUSTCHECK;
/* Wipe and release; also after a failure. */
void scrub_end(struct scrub_stream *t);

#endif
