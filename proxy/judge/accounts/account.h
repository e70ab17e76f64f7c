/* What one sandbox has spent here: time of the judge, which does one thing at a time, and places in tables that all
 * sandboxes share. It is kept by name: another session, other labels or a new policy fill nothing up again. */
#ifndef PROXY_JUDGE_ACCOUNT_H
#define PROXY_JUDGE_ACCOUNT_H

#include "proxy/timeshare.h"

enum { ACCOUNT_LEAF_US = 300 /* what the keeper spends on a leaf */ };

struct account {
    unsigned refs;
    size_t upstreams; /* places of the table in upstreams.h */
    size_t records;   /* that wait for the ledger: record.h */
    size_t record_bytes;
    size_t exchanges, connects; /* open, at its own front and at those of its commands */
    bool stub_asks;             /* the ledger is asked for a lease of it (stubs/stub.h) */
    struct timeshare time;
};

/* NULL: no memory. */
struct account *account_new(void) MUSTCHECK;
struct account *account_ref(struct account *a);
void account_unref(struct account *a); /* NULL is fine */

#endif
