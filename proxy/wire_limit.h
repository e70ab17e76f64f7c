/* Limits on their way to the ledger (policy/limit.h says what one is), as pairs like those of proxy/wire.h. The list
 * stands in M_INTENT and M_TICKET_OPEN: u8 n, n x limit. */
#ifndef PROXY_WIRE_LIMIT_H
#define PROXY_WIRE_LIMIT_H

#include "proxy/wire.h"

enum { WIRE_LIMITS_MAX = 16 };                                 /* LIMITS_MAX of policy/limit.h */
enum { WIRE_PER_SANDBOX = 0, WIRE_PER_SESSION, WIRE_PER_ALL }; /* LIMIT_PER_* of policy/image/records_terms.h */

struct wire_limit {
    struct span rule, measure;
    uint8_t per; /* WIRE_PER_* */
    uint64_t max, window_ms, amount;
    bool uncountable;
};
struct wire_limits {
    size_t n;
    struct wire_limit limit[WIRE_LIMITS_MAX];
};
void wire_put_limits(struct dynbuf *b, const struct wire_limits *l);
int wire_get_limits(struct msg_in *m, struct wire_limits *l) MUSTCHECK;

/* What the ledger found of them: u8 n, n x bool past, u64 room_ms. n 0: it could not look. */
struct wire_over {
    size_t n;
    bool past[WIRE_LIMITS_MAX];
    uint64_t room_ms; /* Unix ms when there may be room in all of them; 0: not known */
};
void wire_put_over(struct dynbuf *b, const struct wire_over *o);
int wire_get_over(struct msg_in *m, struct wire_over *o) MUSTCHECK;

#endif
