/* The operations of ops.h, which includes this, on what the gateway sends itself and what a sandbox asks of its own.
 */
#ifndef PROXY_LEDGER_STORE_OPS_LATER_H
#define PROXY_LEDGER_STORE_OPS_LATER_H

/* What the gateway sends itself once it is approved (askers/schema_13.sql). The next that the judge is due to be told
 * of: 1, 0 there is none, -1. */
int store_later_next(struct store *s, struct id *ticket) MUSTCHECK;
/* As store_review, with what it was asked with; it is due again in STORE_LATER_MS, then in twice as long and so on,
 * if it is still approved then. */
int store_later(struct store *s, const struct id *ticket, struct wire_review *r, struct wire_later *l,
                struct store_bytes *request) MUSTCHECK;
/* What a sandbox is told of a ticket of its session; with answer, it gets what was answered, in kept. */
struct store_asked {
    bool known, later;
    struct wire_ticket_state state;
    uint64_t tries, until_ms; /* tries: that sent nothing; until_ms: its answer is kept, 0: it is not */
};
int store_asked(struct store *s, const struct id *ticket, struct span session, bool answer, struct store_asked *out,
                struct store_bytes *kept) MUSTCHECK;

#endif
