/* countersign policy diff. The decision is a function of finitely many questions ("does the path fit this glob?"), so
 * requests fall into finitely many classes. For each host: collect the questions of both policies (diff_atoms.c,
 * diff_body.c), one value for every combination of answers of each dimension, and let the judge itself decide every
 * combination of values under both policies (diff_points.c). What no request shows is compared as lists. */
#ifndef CLI_POLICY_DIFF_DIFF_H
#define CLI_POLICY_DIFF_DIFF_H

#include "cli/policy/diff/minterms.h"
#include "cli/policy/loaded.h"
#include "policy/limit.h"
#include "policy/match/match.h"
#include "policy/test/asked.h"

enum { OLD = 0, NEW = 1, DIMS_MAX = 48, DIFF_BUDGET = 2 * 1000 * 1000, DIFF_MEMORY = 512 * 1024 * 1024 };

/* One value of one dimension. */
struct option {
    uint64_t mask[2]; /* of the rules that differ: which of them may fit it; [1]: where it may mean any method */
    struct span text, second; /* method, path, parameter; a field's value and its second; a body and its type */
    bool body, upgrade, ref, override;
    uint16_t port;
    const struct label *labels;
    size_t nlabels;
    struct git_ref push;
    uint64_t now_ms;
};
enum dim_kind {
    DIM_PLACE = 0,
    DIM_METHOD,
    DIM_PATH,
    DIM_WHO,
    DIM_UPGRADE,
    DIM_MASKED,
    DIM_TIME = DIM_MASKED,
    DIM_BODY,
    DIM_QUERY,
    DIM_PARAM,
    DIM_HEADER
};
struct dim {
    enum dim_kind kind;
    struct span name; /* of a header */
    struct option *v;
    size_t n, max;
};

/* A rule of one of the policies that can be about the host. */
struct site {
    const struct policy *p;
    const struct img_rule *rule;
    const struct img_match *match;
    uint64_t mask; /* its bit, when the other policy does not have the very same; else 0 */
};
/* The match of such a rule, or one of its excepts. */
struct part {
    const struct policy *p;
    const struct img_match *match;
};
/* An operation of a pack that is about the host. */
struct known_op {
    const struct policy *p;
    const struct img_pack *pack;
    const struct img_op *op;
};
struct space {
    const struct policy *p[2];
    struct span host;
    bool all;   /* more than rules differs: every request is looked at */
    bool could; /* a pack takes another path and method for the one that decides */
    uint64_t now_ms;
    struct arena *a;
    struct site *site; /* from keep_sites on: those alone that can meet a rule that differs */
    size_t nsites;
    struct part *part; /* of these */
    size_t nparts;
    struct known_op *op;
    size_t nops;
    struct dim dim[DIMS_MAX];
    size_t ndims;
    const char *why; /* it is too much: which dimension */
};

#endif
