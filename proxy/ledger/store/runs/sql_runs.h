/* The statements about what commands sent: a part of SQL_STATEMENTS (sql.h). */
#ifndef PROXY_LEDGER_STORE_RUNS_SQL_RUNS_H
#define PROXY_LEDGER_STORE_RUNS_SQL_RUNS_H

/* clang-format off */
#define SQL_RUN_STATEMENTS(X) \
    X(RUN_OF_STEP, "SELECT id,(SELECT count(*) FROM run_effect WHERE run=id) FROM run WHERE sandbox=?1 AND command=?2" \
        " AND what='command' ORDER BY nth DESC LIMIT 1") \
    X(RUN_EFFECT, "INSERT INTO run_effect(run,exchange,sent,lease) VALUES(?1,?2,?3,?4)" \
        " ON CONFLICT(run,exchange) DO UPDATE SET sent=max(sent,excluded.sent)," \
        "lease=CASE lease WHEN '' THEN excluded.lease ELSE lease END") \
    X(RUN_EGRESS, "UPDATE run SET requests=requests+?2,refused=refused+?3,bytes_out=bytes_out+?4,bytes_in=bytes_in+?5" \
        " WHERE id=?1") \
    X(RUN_EGRESS_OF, "SELECT requests,refused,bytes_out,bytes_in FROM run WHERE id=?1")
/* clang-format on */

#endif
