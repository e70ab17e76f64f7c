/* The statements about people and their votes: a part of SQL_STATEMENTS (sql.h). */
#ifndef PROXY_LEDGER_STORE_PEOPLE_SQL_PEOPLE_H
#define PROXY_LEDGER_STORE_PEOPLE_SQL_PEOPLE_H

/* clang-format off */
#define SQL_PEOPLE_STATEMENTS(X) \
    X(OPERATOR_GET, "SELECT uid,groups FROM operator WHERE name=?1") \
    X(OPERATOR_COUNT, "SELECT count(*) FROM operator") \
    X(OPERATOR_OF_UID, "SELECT name FROM operator WHERE uid=?1") \
    X(OPERATOR_ADD, "INSERT INTO operator(name,uid,groups,password,generation,created_ms,changed_ms)" \
        " VALUES(?1,?2,?3,'',?4,?4,?4)") \
    X(OPERATOR_GROUPS, "UPDATE operator SET groups=?2,changed_ms=?3 WHERE name=?1") \
    X(OPERATOR_PASSWORD, "UPDATE operator SET password=?2,generation=max(generation+1,?3),changed_ms=?3 WHERE name=?1") \
    X(OPERATOR_REMOVE, "DELETE FROM operator WHERE name=?1") \
    X(VOTE_PUT, "INSERT INTO vote(ticket,operator,state,channel,how,reason,facts,passkey,at_ms)" \
        " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9) ON CONFLICT(ticket,operator) DO UPDATE SET" \
        " state=?3,channel=?4,how=?5,reason=?6,facts=?7,passkey=?8,at_ms=?9") \
    X(VOTE_OF, "SELECT count(*) FROM vote WHERE ticket=?1 AND operator=?2 AND state='approved'") \
    X(VOTE_COUNT, "SELECT count(*) FROM vote WHERE ticket=?1 AND state='approved'") \
    X(VOTES, "SELECT operator,facts,passkey FROM vote WHERE ticket=?1 AND state='approved' ORDER BY at_ms,operator LIMIT ?2") \
    X(VOTES_END, "DELETE FROM vote WHERE operator=?1 AND state='approved'" \
        " AND ticket IN (SELECT id FROM ticket WHERE state='pending')") \
    X(VOTED_UNSENT, "SELECT t.id FROM vote v JOIN ticket t ON t.id=v.ticket WHERE v.operator=?1 AND v.state='approved'" \
        " AND t.state='approved' LIMIT 64") \
    X(LOOKING_GET, "SELECT looker,looks_since_ms FROM looking WHERE ticket=?1 AND looks_since_ms<=?2 AND looks_until_ms>?2") \
    X(LOOKING_PUT, "INSERT INTO looking(ticket,looker,looks_since_ms,looks_until_ms) VALUES(?1,?2,?3,?4)" \
        " ON CONFLICT(ticket) DO UPDATE SET looker=?2,looks_since_ms=?3,looks_until_ms=?4") \
    X(LOOKING_END, "DELETE FROM looking WHERE ticket=?1") \
    X(LOOKING_PRUNE, "DELETE FROM looking WHERE looks_until_ms<=?1 OR looks_since_ms>?1" \
        " OR NOT EXISTS (SELECT 1 FROM ticket WHERE id=looking.ticket AND state='pending')") \
    X(PEOPLE_SET, "UPDATE ticket SET quorum=?2,self_approval=?3,step_up=?4,diff=?5," \
        "owner=coalesce((SELECT b.owner FROM sandbox b WHERE b.name=ticket.sandbox),'') WHERE id=?1") \
    X(PEOPLE_GET, "SELECT quorum,self_approval,step_up,owner FROM ticket WHERE id=?1") \
    X(PEOPLE_FACTS, "SELECT summary,facts_json,agent_reason,scheme,path,coalesce('?'||query,'') FROM ticket WHERE id=?1")
/* clang-format on */

#endif
