/* The audit's hash chain, computed again over every record (`audit verify`), for others who look at records. */
#ifndef CLI_VERBS_CHAIN_H
#define CLI_VERBS_CHAIN_H

#include "cli/verb.h"

/* A record that is in order: its text, and the same parsed, both until this returns. CLI_OK, or what to exit with
 * after words on stderr. */
typedef int chain_fn(void *arg, uint64_t seq, struct span json, const struct json *record);
/* As `audit verify` with the options --head and --key of c. CLI_OK: unbroken and signed, *records of them. */
int chain_walk(const struct cli_call *c, chain_fn *each, void *arg, uint64_t *records) MUSTCHECK;

#endif
