#include "proxy/words.h"

const char *role_name(enum role_id r)
{
    static const char *const names[ROLE_COUNT] = {"none",     "parent",  "lobby",  "front",  "judge",
                                                  "resolver", "carrier", "keeper", "ledger", "desk",
                                                  "fetcher",  "warden",  "dock",   "broker"};
    return (unsigned)r < ROLE_COUNT ? names[r] : "none";
}

const char *ticket_state_name(enum ticket_state s)
{
    static const char *const names[] = {"none",      "pending",   "approved", "denied", "expired",
                                        "cancelled", "executing", "done",     "failed", "unknown"};
    return (unsigned)s <= TICKET_UNKNOWN ? names[s] : "none";
}

const char *outcome_name(enum outcome o)
{
    static const char *const names[] = {"unknown", "not-sent", "answered"};
    return (unsigned)o <= OUTCOME_ANSWERED ? names[o] : "unknown";
}
