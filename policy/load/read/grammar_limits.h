/* limits: of a rule as written; the rest is grammar.h. */
#ifndef POLICY_LOAD_READ_GRAMMAR_LIMITS_H
#define POLICY_LOAD_READ_GRAMMAR_LIMITS_H

#include "policy/load/read/keys.h"

struct m_sum {
    const struct node *at;
    struct item field, pointer;
    struct number max, every;
};
struct m_limits {
    const struct node *at;
    struct number per;
    struct items requests; /* "20/1d" */
    struct list sum;       /* m_sum */
};

#define LIMIT_REQUESTS_MOST UINT64_C(10000)
#define LIMIT_SUM_MOST      (UINT64_C(1) << 53)
#define LIMIT_WINDOW_LEAST  UINT64_C(1000)
#define LIMIT_WINDOW_MOST   (31 * UINT64_C(86400000))

struct m_approver {
    const struct node *at;
    struct item name;
    struct items operators, groups;
    struct m_people {
        struct number quorum, self, step_up;
    } people;
};

struct m_escalate { /* one entry of escalate: */
    const struct node *at;
    struct number after;
    struct item to;
};
#define ESCALATE_AFTER_MOST (30 * UINT64_C(86400000))

/* One of program, webhook and model says what is asked; check_gate.c says what goes with which. */
struct m_gate {
    const struct node *at;
    struct item name;
    struct items program; /* its full path, and its arguments */
    struct item webhook;  /* its address */
    struct m_kept {
        const struct node *at;
        struct item store;
    } secret;                                         /* that signs what a webhook is sent */
    struct item model, url, credential, instructions; /* of a model: its name, and where and as whom it is asked */
    struct number api;                                /* enum gate_api */
    struct number body, timeout;
};

#endif
