/* The statements about gates: a part of SQL_STATEMENTS (sql.h). */
#ifndef PROXY_LEDGER_STORE_GATES_SQL_GATES_H
#define PROXY_LEDGER_STORE_GATES_SQL_GATES_H

/* clang-format off */
#define SQL_GATES_STATEMENTS(X) \
    X(GATE_ADD, "INSERT INTO gate(ticket,name,state,words,at_ms,of,tries,next_ms) VALUES(?1,?2,'due','',?3,?4,0,0)") \
    X(GATE_DUE, "SELECT g.ticket,g.name,g.of FROM gate g JOIN ticket t ON t.id=g.ticket WHERE g.state='due'" \
        " AND t.state='pending' AND NOT g.next_ms BETWEEN ?1+1 AND ?1+60000 AND t.sandbox NOT IN (SELECT u.sandbox" \
        " FROM gate h JOIN ticket u ON u.id=h.ticket WHERE h.state='asked' GROUP BY u.sandbox HAVING count(*)>=?2)" \
        " ORDER BY t.sandbox IN (SELECT u.sandbox FROM gate h JOIN ticket u ON u.id=h.ticket WHERE h.state='asked')," \
        " g.at_ms,g.ticket,g.name LIMIT 1") \
    X(GATE_SET, "UPDATE gate SET state=?4,words=?5,at_ms=?6 WHERE ticket=?1 AND name=?2 AND state=?3") \
    X(GATE_LATER, "UPDATE gate SET state='due',at_ms=?3,next_ms=?3+(1000<<tries),tries=tries+1" \
        " WHERE ticket=?1 AND name=?2 AND state='asked' AND tries<6") \
    X(GATE_HELD, "UPDATE gate SET next_ms=max(next_ms,?3+min(8000,(SELECT h.next_ms-?3 FROM gate h WHERE h.ticket=?1" \
        " AND h.name=?2))) WHERE name=?2 AND state='due' AND of=(SELECT h.of FROM gate h WHERE h.ticket=?1 AND h.name=?2)") \
    X(GATE_TIMES, "SELECT tries+1 FROM gate WHERE ticket=?1 AND name=?2") \
    X(GATE_ASKED, "SELECT ticket,name FROM gate WHERE state='asked' ORDER BY at_ms,ticket,name LIMIT 1 OFFSET ?1") \
    X(GATES_OPEN, "SELECT count(*) FROM gate WHERE ticket=?1 AND state IN ('due','asked')") \
    X(GATES_LOST, "UPDATE gate SET state='failed',words=?1,at_ms=?2 WHERE state='asked'") \
    X(GATE_FACTS, "SELECT method,scheme,host,port,path,query,op,effect,resource,credential,rule_id,rule_file,rule_line," \
        "sandbox,owner,tenant,summary,facts_json,agent_reason,digest,policy,content_type,body_size,body_sha256,fields_json" \
        " FROM ticket WHERE id=?1")
/* clang-format on */

#endif
