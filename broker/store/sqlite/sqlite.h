/* The store in a file of SQLite. */
#ifndef BROKER_STORE_SQLITE_SQLITE_H
#define BROKER_STORE_SQLITE_SQLITE_H

#include "broker/store/hooks.h"
#include "broker/store/state.h"
#include "broker/store/store.h"

enum { BSTORE_SCHEMA = 6, BSTORE_WAL_MAX = 64 * 1024 * 1024 };
/* What its file says that it is. */
#define BSTORE_APPLICATION         0x43736272 /* "Csbr": a store */
#define BSTORE_APPLICATION_COPYING 0x43736263 /* "Csbc": one that is being copied to */
#define BSTORE_APPLICATION_MOVED   0x4373626d /* "Csbm": one that was moved */

/* Opens, or makes, the store at an absolute path; NULL with the reason. The first to open a new one is alone. test:
 * NULL, or what it is run with; it stays put while the store is open. */
struct bstore *bstore_sqlite_open(const char *path, const struct bstore_test *test, struct err *e) MUSTCHECK;
/* For who moves a store: as long as it is open nobody else has it, and while somebody has it it is refused. *state:
 * what it was found as; make: where there is none it is made, as BSTORE_COPYING. NULL with the reason, or
 * BSTORE_ABSENT and none. */
struct bstore *bstore_sqlite_alone(const char *path, bool make, const struct bstore_test *test,
                                   enum bstore_state *state, struct err *e) MUSTCHECK;

#endif
