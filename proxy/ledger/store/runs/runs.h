/* What ran in started sandboxes (schema_6.sql): a record of the audit before, one after, and a row that has both. */
#ifndef PROXY_LEDGER_STORE_RUNS_RUNS_H
#define PROXY_LEDGER_STORE_RUNS_RUNS_H

#include "common/runs/wire_run.h"
#include "proxy/ledger/store/store_in.h"

enum { STORE_RUNS_MAX = 1024 /* rows of one sandbox, but for what runs; the first are forgotten */ };
#define STORE_RUNS_AGE_MAX (30ull * 24 * 3600 * 1000) /* and how long after their end */

#define RUNS_UNHEARD "the warden or the ledger ended meanwhile, and its end was not told"

/* A command is about to be ordered; *id is what its end is told by. */
int store_run_begin(struct store *s, const struct wire_run *r, struct id *id) MUSTCHECK;
/* Of one that runs by this store; else nothing: an end is written once. */
int store_run_end(struct store *s, const struct id *id, const struct wire_run_end *e) MUSTCHECK;
/* Commands that run by this store and are not among these: nobody knows how they ended. */
int store_runs_unknown(struct store *s, const struct id *but, size_t n, const char *why) MUSTCHECK;
/* The warden's word of what became of a sandbox: a note (ops.h), which settles what was begun by it. */
int store_run_life(struct store *s, struct span kind, struct span sandbox, uint64_t generation,
                   struct span json) MUSTCHECK;
/* The policy that is in force from now on, as the parent noted it. */
int store_run_policy(struct store *s, struct span json) MUSTCHECK;

/* For sandboxes.c, behind the record it has written: a generation begins; it is over; lost: nobody
 * told when, or how. */
int runs_generation(struct store *s, const struct wire_sandbox *b) MUSTCHECK;
int runs_over(struct store *s, const struct wire_sandbox *b, uint64_t generation, bool lost) MUSTCHECK;
/* Forget the old. */
int runs_sweep(struct store *s) MUSTCHECK;

#endif
