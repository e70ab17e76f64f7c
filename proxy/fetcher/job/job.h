/* A job: a process of its own that reads one question, answers it and ends. It is told nothing else, reaches nothing
 * but what that question needs, and parses what comes back, so that no other process must. */
#ifndef PROXY_FETCHER_JOB_JOB_H
#define PROXY_FETCHER_JOB_JOB_H

#include "common/dynbuf.h"
#include "common/err.h"
#include "common/net/addr.h"
#include "proxy/fetcher/wire_fetch.h"

enum { JOB_ADDRS_MAX = 8, JOB_PATH_MAX = 4096, JOB_FD = 3 /* the channel to the fetcher */ };

struct job {
    uint64_t id;
    struct wire_fetch ask; /* borrows from payload */
    struct job_place {
        size_t naddrs;
        struct addr addr[JOB_ADDRS_MAX]; /* that may be dialled; one at least */
    } place[FETCH_HOSTS_MAX];            /* of each wire_place() of ask */
    char roots[JOB_PATH_MAX];            /* a file of certificates; empty: none */
    char crl[JOB_PATH_MAX];              /* a file of revocation lists that go with them; empty: none are asked for */
    struct dynbuf payload;
};

/* Wait for the question. Exits when there is none that can be read. */
void job_read(struct job *j);
/* Answer and exit. value: checked by the keeper; lifetime_ms 0: not known; keep: see wire_fetch.h. */
void job_done(const struct job *j, struct span value, uint64_t lifetime_ms, struct span keep)
    __attribute__((noreturn));
/* There is no value, but what is to be kept all the same: what it was asked with is used up. */
void job_kept(const struct job *j, struct span keep, const char *why) __attribute__((noreturn));
/* The same with why there is none, in words that hold no secret. */
void job_failed(const struct job *j, const char *fmt, ...) PRINTF(2, 3) __attribute__((noreturn));
/* The same where nobody was reached, or who was has no room now: it may be asked again shortly. */
void job_busy(const struct job *j, const char *fmt, ...) PRINTF(2, 3) __attribute__((noreturn));

#endif
