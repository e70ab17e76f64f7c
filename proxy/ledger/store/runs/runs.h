/* What ran in started sandboxes (schema_6.sql): a record of the audit before, one after, and a row that has both. */
#ifndef PROXY_LEDGER_STORE_RUNS_RUNS_H
#define PROXY_LEDGER_STORE_RUNS_RUNS_H

#include "common/runs/wire_run.h"
#include "proxy/ledger/store/store_in.h"

enum {
    STORE_RUNS_MAX = 1024,             /* rows of one sandbox, but for what runs; the first are forgotten */
    STORE_EFFECTS_MAX = 1000,          /* exchanges that are named of one command; the rest of them are counted */
    STORE_BLOB_MAX = 300 * 1024,       /* bytes that are kept by their digest; more are not kept ... */
    STORE_BLOBS_MAX = 64 * 1024 * 1024 /* ... and of a tenant, with some for each; what was named longest ago goes */
};
#define STORE_RUNS_AGE_MAX (30ull * 24 * 3600 * 1000) /* after their end; of a blob: unnamed for so long */

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

/* A task is over: the desk's note (ops.h) that says all of it, and its row, which *id names. */
int store_task(struct store *s, struct span tenant, struct span sandbox, uint64_t generation, struct span json,
               struct id *id) MUSTCHECK;
/* Bytes of a tenant's, by their digest (schema_7.sql). Too many, or no key yet: they are not kept, and that is
 * fine. */
int store_blob_put(struct store *s, struct span tenant, struct span bytes) MUSTCHECK;
/* 1, 0 they are not kept, -1. */
int store_blob_get(struct store *s, struct span tenant, const struct digest *sha256, struct dynbuf *out) MUSTCHECK;

/* Of what a step sent, beside the record that was written last, or would be. */
struct run_effect {
    uint64_t xid;
    bool begins;      /* it may be sent: nothing came of it yet */
    bool refused;     /* it was not sent; else it was, or begins */
    uint64_t out, in; /* bytes */
    bool again;       /* it has been counted: these bytes are more of it */
};
int runs_effect(struct store *s, const struct wire_record *r, const struct run_effect *e) MUSTCHECK;

/* "egress" of a command, as far as it is known by now. */
int runs_put_egress(struct store *s, struct jsonw *w, struct span id) MUSTCHECK;

/* For sandboxes.c, behind the record it has written: a generation begins; it is over; lost: nobody
 * told when, or how. */
int runs_generation(struct store *s, const struct wire_sandbox *b) MUSTCHECK;
int runs_over(struct store *s, const struct wire_sandbox *b, uint64_t generation, bool lost) MUSTCHECK;
/* The same as over, of one whose commands the warden has yet to end. */
int runs_put_aside(struct store *s, const struct wire_sandbox *b, uint64_t generation) MUSTCHECK;
/* Forget the old. */
int runs_sweep(struct store *s) MUSTCHECK;
int blobs_sweep(struct store *s) MUSTCHECK;

#endif
