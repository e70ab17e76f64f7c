/* Tokens in the JSON or XML of an answer, and the same once more with leases in their places. Pure.
 *
 * What goes on is written anew: numbers, truth values and null; texts that have a usual name of what is no secret
 * (token_type, scope ...) or stand in a list of one; what is named by the policy (keep:), with all below it; and the
 * leases. No other text; and no name of a member that is no word, with what is below it, unless some of that is named
 * by the policy. The elements of XML are its members, and all is text there; the namespace of the outermost one goes
 * on too, if it has the form of an address (http:, https:, urn:) of at most 96 letters. */
#ifndef CARRIER_SWAP_SWAP_H
#define CARRIER_SWAP_SWAP_H

#include "common/arena.h"
#include "common/err.h"
#include "proxy/lease/wire_swap.h"

enum { SWAP_BODY_MAX = 64 * 1024, SWAP_TOKEN_MIN = 8 /* shorter ones turn up by chance */ };

struct json;
struct swap_token {
    struct wire_swap what;
    size_t nnodes;
    const struct json *node[SWAP_POINTERS_MAX]; /* all say the same: the token, */
    const struct json *key, *session;           /* or of keys to sign with the id; and the rest of them, or NULL */
    uint64_t lives_ms;
};
struct swap {
    struct arena a; /* it holds tokens: swap_end overwrites it */
    const struct json *answer;
    bool is_xml;
    size_t n;
    struct swap_token token[SWAPS_MAX];
    size_t nkept; /* while it is written: what keep: names and is there */
    const struct json *kept[SWAPS_MAX * SWAP_POINTERS_MAX];
};

/* swaps: as wire_forward has them, which must outlive *s; body: a whole answer; now: Unix ms. -1, with words that
 * repeat nothing of it: it is neither JSON nor XML, too long, or a token is missing, too short, said twice in two
 * ways, or has ended. swap_end after either. */
int swap_read(struct swap *s, struct span swaps, struct span body, uint64_t now_ms, struct err *e) MUSTCHECK;
/* Borrowed until swap_end; what it has not is empty. */
enum swap_part { SWAP_TOKEN = 0, SWAP_KEY, SWAP_SESSION, SWAP_PARTS };
struct span swap_value(const struct swap *s, size_t i, enum swap_part part);
/* lease: of each token a text, which takes the place of a session token too, and a secret in that of a key. -1: out
 * is full. */
struct swap_lease {
    struct span text, secret;
};
int swap_write(struct swap *s, const struct swap_lease *lease, struct dynbuf *out) MUSTCHECK;
void swap_end(struct swap *s);

#endif
