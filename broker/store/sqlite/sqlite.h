/* The store in a file of SQLite. */
#ifndef BROKER_STORE_SQLITE_SQLITE_H
#define BROKER_STORE_SQLITE_SQLITE_H

#include "broker/store/store.h"

enum { BSTORE_SCHEMA = 3, BSTORE_APPLICATION = 0x43736272 /* "Csbr" */, BSTORE_WAL_MAX = 64 * 1024 * 1024 };

/* For tests; all of it may be left out. */
struct bstore_sqlite_test {
    uint64_t (*now_ms)(void *arg);            /* instead of the clock */
    void (*at)(void *arg, const char *point); /* before each statement, and around a commit (common/sqlite/db.h) */
    void *arg;
    unsigned max_pages; /* of the file: a full disk */
};

/* Opens, or makes, the store at an absolute path; NULL with the reason. The first to open a new one is alone. test:
 * NULL, or what it is run with; it stays put while the store is open. */
struct bstore *bstore_sqlite_open(const char *path, const struct bstore_sqlite_test *test, struct err *e) MUSTCHECK;

#endif
