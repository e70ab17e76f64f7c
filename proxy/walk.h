/* The walk of one request, start here.
 *
 *   sandbox ──► lobby ──► front ──────► judge ──────────► carrier ──► upstream
 *               (who?)    (TLS, parse)  (evaluate, lease,   (inject, send,
 *                                        enforce, hold,     scrub)
 *                                        record)
 *                           ◄───────────────────────────────┘ answer
 *               keeper: mints leafs for the front, releases credentials to the carrier
 *               ledger: tickets, intents, outcomes, the audit chain · desk: people decide
 *
 * Each row: the step, the role that runs it, its name in logs, the code a client usually sees when it is refused
 * there (all of the judge's: proxy/judge/replies/refuse.c), and the file that has the step. The runner of each role
 * (walk.c in its folder) calls its rows in this order, from the step where the exchange or the connection stands,
 * until one waits or it is over. A listener that belongs to one sandbox has no lobby: its walk begins with ACCEPT. */
#ifndef PROXY_WALK_H
#define PROXY_WALK_H

#define WALK_STEPS(X)                                                                                                \
    /* step              role     name                usual code of a refusal     file */                            \
    X(IDENTIFY, LOBBY, "identify", "unknown-sandbox", "proxy/lobby/walk.c")                                          \
    X(ACCEPT, FRONT, "accept", "too-many-connections", "proxy/front/ways.c")                                         \
    X(INTERCEPT, FRONT, "intercept", "tls-refused", "proxy/front/connect.c")                                         \
    X(PARSE, FRONT, "parse", "bad-request", "proxy/front/request.c")                                                 \
    X(EVALUATE, JUDGE, "evaluate", "unclassified", "proxy/judge/steps/step_evaluate.c")                              \
    X(CHECK_LEASE, JUDGE, "check-lease", "lease-required", "proxy/judge/steps/step_check_lease.c")                   \
    X(ENFORCE, JUDGE, "enforce", "denied", "proxy/judge/steps/step_enforce.c")                                       \
    X(HOLD, JUDGE, "hold", "held", "proxy/judge/steps/step_hold.c")                                                  \
    X(RECORD_INTENT, JUDGE, "record-intent", "store-unavailable", "proxy/judge/steps/step_record_intent.c")          \
    X(RELEASE, JUDGE, "release", "credential-unavailable", "proxy/judge/steps/step_release.c")                       \
    X(AWAIT_CREDENTIAL, CARRIER, "await-credential", "credential-unavailable", "proxy/carrier/await_credential.c")   \
    X(FORWARD, CARRIER, "forward", "upstream-failed", "proxy/carrier/send.c") /* the credential is put in there */   \
    X(SCRUB, CARRIER, "scrub", "answer-refused", "proxy/carrier/answer.c")                                           \
    X(RECORD_RESULT, JUDGE, "record-result", "store-unavailable", "proxy/judge/steps/step_record_result.c")

enum walk_step {
    WALK_NONE = 0,
#define X(step, role, name, code, file) WALK_##step,
    WALK_STEPS(X)
#undef X
        WALK_END
};

/* What a step says. FAIL is zero: a step that forgets to answer refuses. */
enum walk_next {
    WALK_FAIL = 0, /* refuse, in the client's dialect */
    WALK_NEXT,     /* done here, go on with the next row */
    WALK_WAIT,     /* what it waits for will run this step again (exchange_resume, carry_resume) */
    WALK_REWIND, /* the judge: evaluate again, for a limit is used up or dropped facts are wanted; the carrier: await
                    another credential, for the upstream refused this one */
    WALK_REPLY,  /* an answer of our own is ready; skip to RECORD_RESULT */
    WALK_DONE    /* the exchange is over */
};

const char *walk_name(enum walk_step s);
const char *walk_code(enum walk_step s);
/* "fail", "next", "wait", "rewind", "reply", "done" */
const char *walk_next_name(enum walk_next n);

#endif
