/* The closed lists that travel between processes. Zero is never a good answer. */
#ifndef PROXY_WORDS_H
#define PROXY_WORDS_H

enum role_id {
    ROLE_NONE = 0,
    ROLE_PARENT,
    ROLE_LOBBY,
    ROLE_FRONT,
    ROLE_JUDGE,
    ROLE_RESOLVER,
    ROLE_CARRIER,
    ROLE_KEEPER,
    ROLE_LEDGER,
    ROLE_DESK,
    ROLE_COUNT
};

enum outcome { OUTCOME_UNKNOWN = 0, OUTCOME_NOT_SENT, OUTCOME_ANSWERED };
enum ticket_state {
    TICKET_NONE = 0,
    TICKET_PENDING,
    TICKET_APPROVED,
    TICKET_DENIED,
    TICKET_EXPIRED,
    TICKET_CANCELLED,
    TICKET_EXECUTING,
    TICKET_DONE,
    TICKET_FAILED,
    TICKET_UNKNOWN
};

const char *role_name(enum role_id r);
const char *ticket_state_name(enum ticket_state s);
const char *outcome_name(enum outcome o);

#endif
