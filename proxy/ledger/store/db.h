/* The ledger's store as a kind of SQLite file (common/sqlite/db.h). */
#ifndef PROXY_LEDGER_STORE_DB_H
#define PROXY_LEDGER_STORE_DB_H

#include "common/sqlite/db.h"
#include "proxy/ledger/store/sql.h"

enum { DB_SCHEMA = 20, DB_APPLICATION = 0x43736c67 /* "Cslg" */, DB_WAL_MAX = 64 * 1024 * 1024 };

extern const struct db_kind ledger_db;

#endif
