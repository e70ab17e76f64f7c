/* What one sandbox has spent here: time of the judge, which does one thing at a time, and places in tables that all
 * sandboxes share. It is kept by name: another session, other labels or a new policy fill nothing up again. */
#ifndef PROXY_JUDGE_ACCOUNT_H
#define PROXY_JUDGE_ACCOUNT_H

#include "common/span.h"

/* A sandbox may spend so much of the judge's time at once, and one part in ACCOUNT_SHARE of all time for ever. It is
 * measured by the clock and not in processor time: on a busy machine, too, it is what the others wait. */
enum {
    ACCOUNT_BURST_US = 250 * 1000,
    ACCOUNT_SHARE = 4,
    ACCOUNT_DEBT_US = 2 * 1000 * 1000, /* what is owed past this is forgiven */
    ACCOUNT_LEAF_US = 300,             /* what the keeper spends on a leaf */
};

struct account {
    unsigned refs;
    size_t upstreams; /* places of the table in upstreams.h */
    size_t records;   /* that wait for the ledger: record.h */
    size_t record_bytes;
    int64_t left_us;    /* below 0 it is owed */
    uint64_t filled_ms; /* monotonic: left_us is of then */
    uint64_t said_ms;   /* when it was logged that it waits */
    uint64_t asked_ms;  /* when its front last said something */
};

/* NULL: no memory. */
struct account *account_new(void) MUSTCHECK;
struct account *account_ref(struct account *a);
void account_unref(struct account *a); /* NULL is fine */
void account_spend(struct account *a, uint64_t now_ms, uint64_t us);
/* 0: something is left; else in how many ms there will be. */
uint64_t account_wait(struct account *a, uint64_t now_ms);

#endif
