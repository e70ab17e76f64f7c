/* The statements about egress: a part of SQL_STATEMENTS (sql.h). */
#ifndef PROXY_LEDGER_STORE_EGRESS_SQL_EGRESS_H
#define PROXY_LEDGER_STORE_EGRESS_SQL_EGRESS_H

/* clang-format off */
#define SQL_EGRESS_STATEMENTS(X) \
    X(EGRESS_PUT, "INSERT INTO egress(whose,name,epoch,requests,bytes) SELECT ?1,?2,?3,?4,?5 WHERE ?1<>0 OR EXISTS(" \
        "SELECT 1 FROM sandbox WHERE name=?2 AND egress_epoch=?3) ON CONFLICT(whose,name) DO UPDATE SET epoch=?3," \
        "requests=?4,bytes=?5") \
    X(EGRESS_ALL, "SELECT whose,name,epoch,requests,bytes FROM egress") \
    X(EGRESS_FORGET, "DELETE FROM egress WHERE whose=0 AND name=?1")
/* clang-format on */

#endif
