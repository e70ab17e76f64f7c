/* The statements about idle sandboxes: a part of SQL_STATEMENTS (sql.h). */
#ifndef PROXY_LEDGER_STORE_IDLE_SQL_IDLE_H
#define PROXY_LEDGER_STORE_IDLE_SQL_IDLE_H

/* clang-format off */
#define SQL_IDLE_STATEMENTS(X) \
    X(IDLE_PUT, "INSERT OR REPLACE INTO idle(name,tenant,checkpoint,box,cpu_percent,strict,left_ms,since_ms)" \
        " VALUES(?1,?2,?3,?4,?5,?6,?7,?8)") \
    X(IDLE_GET, "SELECT 1 FROM idle WHERE name=?1") \
    X(IDLE_OVER, "DELETE FROM idle WHERE name=?1") \
    X(SANDBOX_IDLE, "UPDATE sandbox SET kind='idle',generation=generation+1,changed_ms=?2 WHERE name=?1") \
    X(SANDBOX_RESTORED, "UPDATE sandbox SET restored=restored+1 WHERE name=?1") \
    X(TOKEN_SHUT_SANDBOX, "UPDATE token SET hash=NULL WHERE scope=?1")
/* clang-format on */

#endif
