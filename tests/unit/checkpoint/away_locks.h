/* Whether somebody waits for who asks a store elsewhere. Included by away_world.h alone. */
#ifndef TESTS_UNIT_CHECKPOINT_AWAY_LOCKS_H
#define TESTS_UNIT_CHECKPOINT_AWAY_LOCKS_H

#include "tests/unit/checkpoint/store_world.h"

#include <sys/file.h>

static bool locked_by_test; /* the test itself has one meanwhile: nobody else is asked about */

/* Is it to be had by another process, too? */
static int free_for(int lock, const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    int rc = flock(fd, lock | LOCK_NB);
    close(fd);
    return rc;
}

static int one_lock(const char *path, const struct stat *st, int type, struct FTW *at)
{
    if (!locked_by_test && strcmp(path + at->base, "lock") == 0)
        assert_int_equal(free_for(at->level == 1 ? LOCK_EX : LOCK_SH, path), 0);
    return 0;
}

/* However slow it is: who needs no store does not wait for who asks one. */
static void nobody_waits(void)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/store", top);
    assert_int_equal(nftw(path, one_lock, 8, FTW_PHYS), 0);
}

#endif
