/* The statements about what is told outside the page: a part of SQL_STATEMENTS (sql.h). */
#ifndef PROXY_LEDGER_STORE_TELL_SQL_TELL_H
#define PROXY_LEDGER_STORE_TELL_SQL_TELL_H

/* clang-format off */
#define SQL_TELL_STATEMENTS(X) \
    X(TELL_ADD, "INSERT INTO tell(id,target,of,event,ticket,sandbox,state,title,body,count,at_ms,tries,next_ms,ended_ms,words)" \
        " VALUES(?1,?2,?3,?4,?5,?6,'due',?7,?8,?9,?10,0,?11,0,'')") \
    X(TELL_ROOM, "SELECT coalesce(sum(at_ms BETWEEN ?2+1 AND ?3),0),coalesce(sum(own AND at_ms BETWEEN ?2+1 AND ?3),0)," \
        "coalesce(sum(state='due'),0),coalesce(sum(own AND state='due'),0) FROM (SELECT at_ms,state,sandbox=?4 AND (event='test')=?5 AS own" \
        " FROM tell WHERE target=?1 AND event<>'many' AND (state='due' OR at_ms>?2))") \
    X(TELL_PROMPTS, "SELECT count(*),coalesce(sum(sandbox=?4),0) FROM tell WHERE target=?1" \
        " AND event=?5 AND at_ms BETWEEN ?2+1 AND ?3") \
    X(TELL_MORE, "UPDATE tell SET count=count+1,next_ms=min(next_ms,?3) WHERE target=?1 AND of=?2 AND event='many' AND state='due' AND body=''") \
    X(TELL_DUE, "SELECT id,event,title,body,count,at_ms FROM tell WHERE target=?1 AND of=?2 AND state='due'" \
        " AND NOT next_ms BETWEEN ?3+1 AND ?3+?4 AND (body<>'' OR NOT EXISTS(SELECT 1 FROM tell m" \
        " WHERE m.target=?1 AND m.state='due' AND m.event='many' AND m.body<>'')) ORDER BY next_ms,at_ms,id LIMIT 1") \
    X(TELL_BODY, "UPDATE tell SET title=?2,body=?3 WHERE id=?1 AND state='due'") \
    X(TELL_GET, "SELECT target,event,ticket,tries,at_ms,count FROM tell WHERE id=?1 AND state='due'") \
    X(TELL_LATER, "UPDATE tell SET tries=tries+1,next_ms=?2,words=?3 WHERE id=?1 AND state='due'") \
    X(TELL_END, "UPDATE tell SET state=?2,tries=tries+1,ended_ms=?3,words=?4,body='' WHERE id=?1 AND state='due'") \
    X(TELL_TARGETS, "SELECT DISTINCT target,of FROM tell WHERE state='due' ORDER BY target,of LIMIT 1 OFFSET ?1") \
    X(TELL_DROP, "DELETE FROM tell WHERE state='due' AND target=?1 AND of=?2") \
    X(TELL_MOST, "DELETE FROM tell WHERE id IN (SELECT id FROM tell WHERE target=?1 AND state='given-up'" \
        " ORDER BY ended_ms DESC,id LIMIT -1 OFFSET ?2)") \
    X(TELL_OLD, "DELETE FROM tell WHERE id IN (SELECT id FROM tell WHERE (state='told' AND ended_ms<?1)" \
        " OR (state='given-up' AND ended_ms<?2) LIMIT 256)") \
    X(TELL_WAITING, "SELECT sandbox,tenant,count(*) FROM ticket WHERE state='pending' GROUP BY sandbox,tenant" \
        " ORDER BY 3 DESC,1") \
    X(TELL_FACTS, "SELECT tenant FROM ticket WHERE id=?1")
/* clang-format on */

#endif
