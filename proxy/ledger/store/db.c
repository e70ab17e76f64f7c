#include "proxy/ledger/store/db.h"

#include "proxy/ledger/store/schema_10_sql.h"
#include "proxy/ledger/store/schema_11_sql.h"
#include "proxy/ledger/store/schema_12_sql.h"
#include "proxy/ledger/store/schema_13_sql.h"
#include "proxy/ledger/store/schema_14_sql.h"
#include "proxy/ledger/store/schema_15_sql.h"
#include "proxy/ledger/store/schema_16_sql.h"
#include "proxy/ledger/store/schema_17_sql.h"
#include "proxy/ledger/store/schema_18_sql.h"
#include "proxy/ledger/store/schema_19_sql.h"
#include "proxy/ledger/store/schema_20_sql.h"
#include "proxy/ledger/store/schema_2_sql.h"
#include "proxy/ledger/store/schema_3_sql.h"
#include "proxy/ledger/store/schema_4_sql.h"
#include "proxy/ledger/store/schema_5_sql.h"
#include "proxy/ledger/store/schema_6_sql.h"
#include "proxy/ledger/store/schema_7_sql.h"
#include "proxy/ledger/store/schema_8_sql.h"
#include "proxy/ledger/store/schema_9_sql.h"
#include "proxy/ledger/store/schema_sql.h"

static const struct db_statement statements[SQL_COUNT] = {
#define X(name, sql) [SQL_##name] = {#name, sql},
    SQL_STATEMENTS(X)
#undef X
};
static const char *const schemas[DB_SCHEMA] = {
    schema_sql,    schema_2_sql,  schema_3_sql,  schema_4_sql,  schema_5_sql,  schema_6_sql,  schema_7_sql,
    schema_8_sql,  schema_9_sql,  schema_10_sql, schema_11_sql, schema_12_sql, schema_13_sql, schema_14_sql,
    schema_15_sql, schema_16_sql, schema_17_sql, schema_18_sql, schema_19_sql, schema_20_sql};
static const unsigned tables[DB_SCHEMA] = {7,  8,  9,  10, 11, 12, 13, 14, 15, 17,
                                           18, 19, 20, 21, 22, 22, 23, 26, 26, 27};

const struct db_kind ledger_db = {
    .application = DB_APPLICATION,
    .versions = DB_SCHEMA,
    .schema = schemas,
    .tables = " meta sandbox ticket body answer effect audit reserved checkpoint lease token run blob grants asker "
              "operator vote run_effect gate later tell egress looking escalation deputy tally idle ",
    .count = tables,
    .statement = statements,
    .statements = SQL_COUNT,
    .busy_ms = 200, /* one writer; whoever else holds it is wrong, and traffic waits */
    .wal_max = DB_WAL_MAX,
    .mode = 0640, /* the desk reads it through its group */
};
