/* The statements of who waits for a ticket, and of what the gateway sends itself. */
#ifndef PROXY_LEDGER_STORE_SQL_ASKERS_H
#define PROXY_LEDGER_STORE_SQL_ASKERS_H

/* An exchange of the gateway's own (XID_LATER) has the highest bit, which is a number's sign here. */
/* clang-format off */
#define SQL_ASKERS(X) \
    X(ASKER_WAITS, "INSERT INTO asker(ticket,waits,since_ms,until_ms) SELECT id,1,?2,?3 FROM ticket WHERE id=?1" \
        " AND state IN ('pending','approved') ON CONFLICT(ticket) DO UPDATE SET" \
        " since_ms=CASE waits WHEN 1 THEN since_ms ELSE ?2 END,until_ms=max(until_ms,?3),waits=1") \
    X(ASKER_GONE, "UPDATE asker SET waits=0,since_ms=?2,until_ms=0 WHERE ticket=?1 AND waits=1") \
    X(ASKERS_GONE, "UPDATE asker SET waits=0,since_ms=?1,until_ms=0 WHERE waits=1") \
    X(ASKER_OVER, "DELETE FROM asker WHERE ticket=?1") \
    X(LATER_ADD, "INSERT INTO later(ticket,lease,narrowed,tries,told,next_ms) SELECT id,?2,?3,0,0,0 FROM ticket WHERE id=?1" \
        " AND state IN ('pending','approved') ON CONFLICT(ticket) DO UPDATE SET lease=excluded.lease," \
        "narrowed=excluded.narrowed") \
    X(LATER_OVER, "DELETE FROM later WHERE ticket=?1") \
    X(LATER_GET, "SELECT lease,narrowed,tries,told FROM later WHERE ticket=?1") \
    X(LATER_NEXT, "UPDATE later SET tries=?2,told=?3,next_ms=?4 WHERE ticket=?1") \
    X(LATER_ALL_AGAIN, "UPDATE later SET told=0,next_ms=0 WHERE next_ms>0") \
    X(LATER_DUE, "SELECT l.ticket FROM later l JOIN ticket t ON t.id=l.ticket WHERE t.state='approved'" \
        " AND l.next_ms<=?1 AND EXISTS (SELECT 1 FROM sandbox b WHERE b.name=t.sandbox AND b.session=t.session" \
        " AND b.tenant=t.tenant AND b.kind NOT IN ('ended','idle') AND b.frozen IS NULL)" \
        " AND (SELECT count(*) FROM ticket o WHERE o.state='executing' AND o.xid<0)<?2" \
        " AND (SELECT count(*) FROM ticket o WHERE o.state='executing' AND o.xid<0 AND o.session=t.session" \
        " AND o.sandbox=t.sandbox)<?3 ORDER BY l.next_ms,t.decided_ms LIMIT 1") \
    X(LATER_OF_SANDBOX, "DELETE FROM later WHERE ticket IN (SELECT id FROM ticket WHERE sandbox=?1 AND session=?2" \
        " AND state IN ('pending','approved','executing'))") \
    X(LATER_OF_SESSION, "DELETE FROM later WHERE ticket IN (SELECT id FROM ticket WHERE session=?1" \
        " AND state='executing')") \
    X(RESERVED_BACK, "UPDATE reserved SET at_ms=0 WHERE ticket=?1") \
    X(TICKET_BACK, "UPDATE ticket SET state='approved',claimed_ms=NULL,boot=NULL,xid=NULL WHERE id=?1 AND boot=?2" \
        " AND xid=?3 AND state='executing'") \
    X(ANSWER_UNTIL, "SELECT until_ms FROM answer WHERE ticket=?1 AND until_ms>?2 AND until_boot_ms>?3" \
        " AND length(sealed)>?4")
/* clang-format on */

#endif
