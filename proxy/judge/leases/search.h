/* Leases where none may stand: in the target, the fields, a body. Looked for as they are, in base64 at any offset and
 * in hex, and once more with %XX and \uXXXX undone, as often as that changes anything (three times at most). */
#ifndef PROXY_JUDGE_LEASES_SEARCH_H
#define PROXY_JUDGE_LEASES_SEARCH_H

#include "proxy/judge/exchange/exchange.h"
#include "proxy/judge/leases/brought.h"

struct lease_hit {
    struct span text; /* the lease's own text, to look it up by; empty: it could not be read */
    bool in_target, in_field, in_reason;
};

/* but: the lease in its slot, which is none of these; empty: there is none. */
bool lease_search_head(struct exchange *x, const struct brought *slot, struct span but, struct lease_hit *hit);
/* With the words of a form, which stood in the body until it was taken off (tickets/elicit.h). */
bool lease_search_body(struct exchange *x, struct lease_hit *hit);
/* The next bytes of what passes through. */
bool lease_search_piece(struct exchange *x, struct span piece, struct lease_hit *hit);

#endif
