/* What every play and world of the tests needs. */
#ifndef TESTS_KIT_H
#define TESTS_KIT_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>

#include "common/span.h"

/* At the end of a test: which attacks it covers, by their ids. */
static inline void covers(const char *ids)
{
    struct span rest = span_str(ids), id;
    while (rest.n) {
        span_cut(rest, ' ', &id, &rest);
        printf("ok %.*s play\n", SPAN_FMT(id));
    }
}

/* How many descriptors are open, to compare with later. */
static inline unsigned open_fds(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static inline uint64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

#endif
