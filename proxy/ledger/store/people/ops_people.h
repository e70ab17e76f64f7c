/* The operations of ops.h, which includes this, on the people who decide. */
#ifndef PROXY_LEDGER_STORE_OPS_PEOPLE_H
#define PROXY_LEDGER_STORE_OPS_PEOPLE_H

/* The people who decide (people/schema_10.sql). */
enum operator_act { OPERATOR_NONE = 0, OPERATOR_ADD, OPERATOR_GROUPS, OPERATOR_PASSWORD, OPERATOR_REMOVE };
struct store_operator {
    enum operator_act what;
    struct span by, name;
    struct span uid;      /* OPERATOR_ADD: "uid 1000", or empty */
    struct span groups;   /* OPERATOR_ADD, OPERATOR_GROUPS: in order, a space between */
    struct span password; /* OPERATOR_PASSWORD: as crypt(3) made it; empty: none any more */
};
/* *why: a sentence when it may not be, else NULL. */
int store_operator_put(struct store *s, const struct store_operator *o, const char **why) MUSTCHECK;

/* Who decides in whose place, for a while (people/schema_18.sql). As long as it lasts the two are one: what is
 * either's own neither approves, and where several must agree they count once. */
#define STORE_DEPUTY_LEAST (60ull * 1000)
#define STORE_DEPUTY_MOST  (90ull * 24 * 3600 * 1000)
struct store_deputy {
    struct span by, instead_of;
    struct span deputy; /* who is it from now on, in place of any other; empty: nobody is any more */
    uint64_t for_ms;
    bool machine; /* it is said on this machine, over the control socket; by whatever name its user has */
};
/* One is named by whom they stand in for alone; it is ended by either of the two, or a user of this machine. *why: a
 * sentence when it may not be, else NULL. */
int store_deputy_put(struct store *s, const struct store_deputy *d, const char **why) MUSTCHECK;

#endif
