/* Values that somebody else is asked for, through the fetcher: what is known of each now, when it is asked for again,
 * and what it was before.
 *
 * A value is known by what its source says (kind and settings, and what the policy says of the server it names),
 * never by the name of a credential. It is asked for by the first decided use that finds none, or one past 80 % of
 * its life, which is used meanwhile; never by a clock. One question at a time for each, whoever waits, and for each
 * secret of the store that asking uses up. A failure is remembered for FETCH_FAILED_MS, in words without a secret. A
 * JWT that is the value is signed here (minted.h) and there at once.
 *
 * A source with settings "downscope." is asked in two steps: without these as if they were not there, for a token
 * that others may share; and with these alone, their prefix taken off, and "subject_token", which is that token. The
 * answer to the second is the value, lives no longer than what it was asked with, and what goes wrong there is said
 * to have gone wrong there. */
#ifndef PROXY_KEEPER_FETCH_H
#define PROXY_KEEPER_FETCH_H

#include "common/err.h"
#include "proxy/keeper/sources/sources.h"

enum {
    FETCHES_MAX = 64,     /* values known at once */
    FETCHES_PREVIOUS = 3, /* earlier ones of each, for the scrubber */
    FETCH_FAILED_MS = 5000,
    FETCH_RENEW_MS = 30 * 1000, /* between two questions for an upstream that says 401 */
    FETCH_BACK_MS = 5000, /* after which a source that holds what a value replaced is asked once more, to end that */
    FETCH_LIFE_MS = 5 * 60 * 1000, /* where neither answer nor policy says */
    FETCH_LIFE_MIN_MS = 1000,
    FETCH_LIFE_MAX_MS = 24 * 3600 * 1000,
    FETCH_PAYLOAD_MAX = 300 * 1024
};

struct fetch_ops {
    uint64_t (*now)(void *arg); /* ms, monotonic */
    int64_t (*wall)(void *arg); /* Unix seconds, for what is signed */
    /* A wire_fetch to the fetcher; -1: there is none. */
    int (*send)(void *arg, uint64_t id, struct span payload);
    /* What takes the place of the secret it was asked with, which is used up (a refresh token), in the sealed store.
     * Only while that one is still there. */
    int (*keep)(void *arg, struct span name, struct span value, struct err *e);
};

/* Borrows sources, for the secrets that settings name. */
struct fetches *fetches_new(struct sources *s, const struct fetch_ops *ops, void *arg) MUSTCHECK;
void fetches_free(struct fetches **f);
/* The policy of now, whose credentials the rest is asked about; borrowed. */
void fetches_policy(struct fetches *f, const struct policy *p);

enum fetch_found { FETCH_REFUSED = 0, FETCH_HERE, FETCH_LATER };
/* Before a decided use: is there a value? It is asked for when it must be. refused: the version that the upstream
 * would not take (0: none); if that is still the newest it is asked for too, at most every FETCH_RENEW_MS.
 * FETCH_LATER: *wait is the question whose answer must come first. FETCH_REFUSED: e says why. */
enum fetch_found fetch_need(struct fetches *f, const struct credential *c, uint64_t refused, uint64_t *wait,
                            struct err *e) MUSTCHECK;
/* Of the value of now; 0: there is none. No two values of a credential have the same while this process lives. */
uint64_t fetch_version(const struct fetches *f, const struct credential *c) MUSTCHECK;
/* Ask whether or not there is one, for somebody who looks whether it works. */
enum fetch_found fetch_again(struct fetches *f, const struct credential *c, uint64_t *wait, struct err *e) MUSTCHECK;
/* A question of fetch_again is answered: FETCH_LATER, another one follows. */
enum fetch_found fetch_go_on(struct fetches *f, const struct credential *c, uint64_t *wait, struct err *e) MUSTCHECK;
/* How the last question ended: 0, or -1 with why; of one that nobody has asked yet 0. */
int fetch_outcome(const struct fetches *f, const struct credential *c, struct err *e) MUSTCHECK;
/* The value while it lives; NULL with words. Never asks. */
struct secret *fetch_value(const struct fetches *f, const struct credential *c, struct err *e) MUSTCHECK;
/* Value i of those that live no more, newest first; NULL past the last. */
struct secret *fetch_previous(const struct fetches *f, const struct credential *c, size_t i) MUSTCHECK;
/* A wire_fetched came for this question. -1: nobody asked that. */
int fetch_answered(struct fetches *f, uint64_t id, struct span payload) MUSTCHECK;
/* Is a source asked with a token that can be used once only, so that the answer has the one to ask with next time? */
bool fetches_rotate(const struct fetches *f);
/* The fetcher is gone, and with it all that it was asked. */
void fetches_lost(struct fetches *f);

#endif
