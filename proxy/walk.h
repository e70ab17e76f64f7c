/* The walk of one request, start here.
 *
 *   sandbox ──► lobby ──► front ──────► judge ──────────► carrier ──► upstream
 *               (who?)    (TLS, parse)  (classify, decide, (inject, send,
 *                                        hold, record)      scrub)
 *                           ◄───────────────────────────────┘ answer
 *               keeper: mints leafs for the front, releases credentials to the carrier
 *               ledger: tickets, intents, outcomes, the audit chain · desk: people decide
 *
 * Each row: the step, the role that runs it, its name in logs, and the code a
 * client sees when it refuses there. A role's runner (front/walk.c, judge/walk.c,
 * carrier/walk.c) calls its rows in this order, from the step where the exchange
 * stands, until one does not say NEXT. */
#ifndef PROXY_WALK_H
#define PROXY_WALK_H

#define WALK_STEPS(X)                                                                                                \
    /* step            role     name             code when it refuses */                                             \
    X(ACCEPT, FRONT, "accept", "too-many-connections")                                                               \
    X(IDENTIFY, LOBBY, "identify", "unknown-sandbox")                                                                \
    X(INTERCEPT, FRONT, "intercept", "tls-refused")                                                                  \
    X(PARSE, FRONT, "parse", "bad-request")                                                                          \
    X(CLASSIFY, JUDGE, "classify", "unclassified")                                                                   \
    X(DECIDE, JUDGE, "decide", "denied")                                                                             \
    X(HOLD, JUDGE, "hold", "held")                                                                                   \
    X(RECORD_INTENT, JUDGE, "record-intent", "store-unavailable")                                                    \
    X(RELEASE, JUDGE, "release", "credential-unavailable")                                                           \
    X(INJECT, CARRIER, "inject", "credential-unavailable")                                                           \
    X(FORWARD, CARRIER, "forward", "upstream-failed")                                                                \
    X(SCRUB, CARRIER, "scrub", "answer-refused")                                                                     \
    X(RECORD_RESULT, JUDGE, "record-result", "store-unavailable")

enum walk_step {
    WALK_NONE = 0,
#define X(step, role, name, code) WALK_##step,
    WALK_STEPS(X)
#undef X
        WALK_END
};

/* What a step says. FAIL is zero: a step that forgets to answer refuses. */
enum walk_next {
    WALK_FAIL = 0, /* refuse with the step's code, in the client's dialect */
    WALK_NEXT,     /* done here, go on with the next row */
    WALK_WAIT,     /* exchange_resume(id) will come back to this step */
    WALK_REPLY,    /* an answer of our own is ready; skip to RECORD_RESULT */
    WALK_DONE      /* the exchange is over */
};

const char *walk_name(enum walk_step s);
const char *walk_code(enum walk_step s);
/* "fail", "next", "wait", "reply", "done" */
const char *walk_next_name(enum walk_next n);

#endif
