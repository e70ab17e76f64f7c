/* A policy loaded for a verb, and what was said about it. */
#ifndef CLI_POLICY_LOADED_H
#define CLI_POLICY_LOADED_H

#include "cli/verb.h"
#include "policy/load/disk.h"

/* A loaded policy with what was said about it. */
struct loaded {
    struct policy *p;
    struct dynbuf image;
    struct policy_problem *v;
    struct policy_problems problems;
    struct err e;
};
/* Of a place (policy/load/disk.h) at the present time. */
int loaded_open(struct loaded *l, struct policy_place from) MUSTCHECK;
/* Of these files, with the call's --packs and --signers; floors: NULL for none. */
int loaded_open_for(struct loaded *l, const struct cli_call *c, const char *const *paths, size_t n,
                    const char *floors) MUSTCHECK;
void loaded_close(struct loaded *l);
/* On stderr, or as JSON on stdout; -1: it did not fit, which is said. */
void loaded_print(const struct loaded *l, bool json);
int loaded_json(const struct loaded *l);

#endif
