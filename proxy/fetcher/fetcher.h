/* The fetcher: one errand for each question of the keeper's. It has the destination's addresses looked up and
 * checked, has a job started that asks there, waits so long and no longer, and hands the answer on unread. */
#ifndef PROXY_FETCHER_FETCHER_H
#define PROXY_FETCHER_FETCHER_H

#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/fetcher/wire_fetch.h"

enum {
    ERRANDS_MAX = 40,     /* at once: as many as the parent starts jobs */
    ERRANDS_SIGN_IN = 8,  /* of these, for people who sign in, and for nothing else: neither waits for the other */
    ERRAND_SLACK_MS = 300 /* beyond its time, for the job's own words */
};

struct errand;
struct fetcher {
    struct loop *loop;
    struct chan *parent, *keeper, *resolver; /* parent: borrowed */
    struct errand *errands;
    size_t nerrands, nsign_in; /* all; of people who sign in */
    uint64_t last;
    char roots[4096], crl[4096]; /* files, for the jobs to read; empty: none */
};

/* The keeper's and the resolver's channel; each replaces the one before. Take fd over. */
void fetcher_keeper(struct fetcher *f, int fd);
void fetcher_resolver(struct fetcher *f, int fd);
/* Paths of the roots and of the revocation lists (empty: none), for jobs that start from now on; either may be that
 * of now. -1: too long. */
int fetcher_trust(struct fetcher *f, struct span roots, struct span crl) MUSTCHECK;
/* M_JOB_NONE of the parent. */
void fetcher_no_job(struct fetcher *f, uint64_t job);

#endif
