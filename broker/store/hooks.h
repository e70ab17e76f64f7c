/* What a store is run with in tests; all of it may be left out. */
#ifndef BROKER_STORE_HOOKS_H
#define BROKER_STORE_HOOKS_H

#include <stdint.h>

struct bstore_test {
    uint64_t (*now_ms)(void *arg); /* instead of the store's clock */
    /* Before each statement, with its name, and around a commit: BEGIN, COMMIT, COMMITTED; and where the answer to a
     * commit has to come over a connection, SENT. */
    void (*at)(void *arg, const char *point);
    void *arg;
    unsigned max_pages; /* of a file: a full disk */
};

#endif
