/* The store in a PostgreSQL. */
#ifndef BROKER_STORE_POSTGRES_POSTGRES_H
#define BROKER_STORE_POSTGRES_POSTGRES_H

#include "broker/store/hooks.h"
#include "broker/store/state.h"
#include "broker/store/store.h"
#include "common/postgres/where.h"

enum {
    BSTORE_PG_VERSION = 3,
    BSTORE_PG_PATIENCE_MS = 5000,
    BSTORE_PG_MAKE_MS = 30000,
    BSTORE_PG_ALONE_MS = 7 * 24 * 3600 * 1000 /* all of a store is read in one transaction */
};

/* Connects, and makes the tables where there are none; NULL with the reason. password: empty for none; both are
 * copied. A call waits for a database that is away, or for others, up to bstore.patience_ms, and is done once more
 * when that is what it failed by; one whose end got lost is looked up. test: NULL, or what it is run with; it stays
 * put while the store is open. */
struct bstore *bstore_postgres_open(const struct pg_where *where, struct span password,
                                    const struct bstore_test *test, struct err *e) MUSTCHECK;
/* The same store, of which nobody waits for the database: the first call connects, and makes the tables where there
 * are none; it fails like any other as long as it cannot. NULL: out of memory, or the password is too long. */
struct bstore *bstore_postgres_later(const struct pg_where *where, struct span password,
                                     const struct bstore_test *test, struct err *e) MUSTCHECK;
/* For who moves a store: as long as it is connected nobody else uses it, and while somebody does it is refused.
 * *state: what it was found as; make: where there is none it is made, as BSTORE_COPYING. NULL with the reason, or
 * BSTORE_ABSENT and none. */
struct bstore *bstore_postgres_alone(const struct pg_where *where, struct span password, bool make,
                                     const struct bstore_test *test, enum bstore_state *state,
                                     struct err *e) MUSTCHECK;

#endif
