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
    X(VOTE_PUT, "INSERT INTO vote(ticket,operator,state,channel,how,reason,facts,passkey,at_ms,instead_of)" \
        " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10) ON CONFLICT(ticket,operator) DO UPDATE SET" \
        " state=?3,channel=?4,how=?5,reason=?6,facts=?7,passkey=?8,at_ms=?9,instead_of=?10") \
    X(VOTE_OF, "SELECT count(*) FROM vote WHERE ticket=?1 AND operator=?2 AND state='approved'") \
    X(VOTES, "SELECT operator,facts,passkey,instead_of FROM vote WHERE ticket=?1 AND state='approved' ORDER BY at_ms,operator LIMIT ?2") \
    X(VOTES_END, "DELETE FROM vote WHERE (operator=?1 OR instead_of=?1) AND state='approved'" \
        " AND ticket IN (SELECT id FROM ticket WHERE state='pending')") \
    X(VOTED_UNSENT, "SELECT t.id FROM vote v JOIN ticket t ON t.id=v.ticket WHERE (v.operator=?1 OR v.instead_of=?1) AND v.state='approved'" \
        " AND t.state='approved' LIMIT 64") \
    X(VOTES_INSTEAD_END, "DELETE FROM vote WHERE instead_of=?1 AND state='approved'" \
        " AND ticket IN (SELECT id FROM ticket WHERE state='pending')") \
    X(DEPUTY_PUT, "INSERT INTO deputy(instead_of,deputy,since_ms,until_ms,until_boot_ms) VALUES(?1,?2,?3,?4,?5)") \
    X(DEPUTY_GET, "SELECT deputy FROM deputy WHERE instead_of=?1") \
    X(DEPUTY_END, "DELETE FROM deputy WHERE instead_of=?1") \
    X(DEPUTY_IS, "SELECT 1 FROM deputy WHERE instead_of=?1 AND deputy=?2 AND until_ms>?3 AND until_boot_ms>?4") \
    X(DEPUTY_OWNS, "SELECT 1 FROM deputy d JOIN operator o ON (d.deputy=?1 AND o.name=d.instead_of)" \
        " OR (d.instead_of=?1 AND o.name=d.deputy) WHERE d.until_ms>?3 AND d.until_boot_ms>?4 AND ?2 IN (o.name,o.uid)") \
    X(DEPUTIES_NOW, "SELECT instead_of,deputy FROM deputy WHERE until_ms>?1 AND until_boot_ms>?2") \
    X(DEPUTIES_OF, "SELECT instead_of,deputy FROM deputy WHERE instead_of=?1 OR deputy=?1 LIMIT 1") \
    X(DEPUTIES_OVER, "SELECT instead_of,deputy FROM deputy WHERE until_ms<=?1 OR until_boot_ms<=?2 LIMIT 1") \
    X(DEPUTIES_ANY, "SELECT instead_of,deputy FROM deputy LIMIT 1") \
    X(DEPUTIES_NEW_BOOT, "UPDATE deputy SET until_boot_ms=?2+max(0,min(until_ms-?1,until_ms-since_ms))") \
    X(ESCALATE_ADD, "INSERT INTO escalation(ticket,entry,after_ms,due_ms,due_boot_ms,since_ms) VALUES(?1,?2,?3,?4,?5,0)") \
    X(ESCALATE_DUE, "SELECT e.ticket,e.entry,e.after_ms,t.state='pending' FROM escalation e JOIN ticket t ON t.id=e.ticket" \
        " WHERE e.since_ms=0 AND e.due_boot_ms<=?1 ORDER BY e.due_boot_ms,e.ticket,e.entry LIMIT 1") \
    X(ESCALATE_SINCE, "UPDATE escalation SET since_ms=?3 WHERE ticket=?1 AND entry=?2") \
    X(ESCALATE_DROP, "DELETE FROM escalation WHERE ticket=?1 AND since_ms=0") \
    X(ESCALATE_NEW_BOOT, "UPDATE escalation SET due_boot_ms=?2+max(0,min(due_ms-?1,after_ms)) WHERE since_ms=0") \
    X(TALLY_ROOM, "SELECT count(*)<?3 OR EXISTS (SELECT 1 FROM tally WHERE op=?1 AND effect=?2) FROM tally") \
    X(TALLY_ADD, "INSERT INTO tally VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13) ON CONFLICT(op,effect) DO UPDATE" \
        " SET approved=approved+?3,denied=denied+?4,ms=ms+?5,s1=s1+?6,s3=s3+?7,s10=s10+?8,s30=s30+?9,s60=s60+?10," \
        "s300=s300+?11,s1800=s1800+?12,s7200=s7200+?13") \
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
