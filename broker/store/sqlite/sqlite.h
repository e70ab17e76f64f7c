/* The store in a file of SQLite. */
#ifndef BROKER_STORE_SQLITE_SQLITE_H
#define BROKER_STORE_SQLITE_SQLITE_H

#include "broker/store/hooks.h"
#include "broker/store/store.h"

enum { BSTORE_SCHEMA = 2, BSTORE_APPLICATION = 0x43736272 /* "Csbr" */, BSTORE_WAL_MAX = 64 * 1024 * 1024 };

/* Opens, or makes, the store at an absolute path; NULL with the reason. The first to open a new one is alone. test:
 * NULL, or what it is run with; it stays put while the store is open. */
struct bstore *bstore_sqlite_open(const char *path, const struct bstore_test *test, struct err *e) MUSTCHECK;

#endif
