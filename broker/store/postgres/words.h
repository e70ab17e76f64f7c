/* What PostgreSQL says otherwise than broker/store/sql/sql.h, and what only it needs, since its writers are not
 * alone. Parameters are written as there, and sent as $1. */
#ifndef BROKER_STORE_POSTGRES_WORDS_H
#define BROKER_STORE_POSTGRES_WORDS_H

#include "broker/store/sql/sql.h"

/* clang-format off */
/* The rows up to so many bytes: the row that reaches them is the last. */
#define PG_UP_TO(columns, table) \
    "SELECT " columns " FROM (SELECT " columns ",sum(length(body)) OVER (ORDER BY seq)-length(body) AS so_far FROM" \
    " (SELECT " columns " FROM " table " WHERE tenant=?1 AND conversation=?2 AND seq>?3 ORDER BY seq LIMIT ?4) a) b" \
    " WHERE so_far<?5 ORDER BY seq"
#define PG_WORDS(X) \
    X(TENANT_ADD, "INSERT INTO tenant(tenant,conversations,open,keys) VALUES(?1,0,0,0) ON CONFLICT DO NOTHING") \
    X(TENANT_LOCK_NEW, "INSERT INTO tenant(tenant,conversations,open,keys) VALUES(?1,0,0,0)" \
        " ON CONFLICT(tenant) DO UPDATE SET open=tenant.open") \
    X(TENANT_LOCK, "SELECT 1 FROM tenant WHERE tenant=?1 FOR UPDATE") \
    X(TENANT_TRY, "SELECT 1 FROM tenant WHERE tenant=?1 FOR UPDATE SKIP LOCKED") \
    X(KEYS_OLD, "WITH old AS MATERIALIZED (SELECT tenant,key FROM chat_key WHERE at_ms<=?1 ORDER BY at_ms LIMIT 16384)," \
        " held AS MATERIALIZED (SELECT tenant FROM tenant WHERE tenant IN (SELECT tenant FROM old) ORDER BY tenant" \
        " FOR UPDATE SKIP LOCKED), gone AS (DELETE FROM chat_key c USING old,held WHERE held.tenant=old.tenant" \
        " AND c.tenant=old.tenant AND c.key=old.key AND c.at_ms<=?1 RETURNING c.tenant) UPDATE tenant t SET keys=t.keys-g.n" \
        " FROM (SELECT tenant,count(*) AS n FROM gone GROUP BY tenant) g WHERE t.tenant=g.tenant") \
    X(KEYS_COUNT, "") \
    X(TENANT_SERVED, "INSERT INTO served(tenant,served) VALUES(?1,1+(SELECT coalesce(max(served),0) FROM served))" \
        " ON CONFLICT(tenant) DO UPDATE SET served=excluded.served") \
    X(SHARE_OVER, "SELECT 1 WHERE (SELECT count(*) FROM turn WHERE tenant=?1 AND state='running' AND claimed_until>?2)>?3") \
    X(CONVERSATION_OPEN, "SELECT count(*) FROM turn WHERE tenant=?1 AND conversation=?2 AND state IN " SQL_OPEN) \
    X(CLAIM_NEXT, "SELECT t.tenant,t.id,t.conversation,t.state,t.lost-CASE WHEN t.state='running'" \
        " AND ?3>t.claimed_until-t.claim_ms THEN 1 ELSE 0 END,t.replays LIKE '% %' FROM (SELECT k.tenant,coalesce(s.served,0) AS served" \
        " FROM tenant k LEFT JOIN served s ON s.tenant=k.tenant WHERE k.open>0 AND (SELECT count(*) FROM turn r" \
        " WHERE r.tenant=k.tenant AND r.state='running' AND r.claimed_until>?1)<?2 OFFSET 0) k JOIN turn t" \
        " ON t.tenant=k.tenant JOIN conversation v ON v.tenant=t.tenant AND v.id=t.conversation WHERE t.state IN " SQL_OPEN \
        " AND t.ready_ms<=?1 AND (t.state='queued' OR t.claimed_until<=?1) AND NOT EXISTS (SELECT 1 FROM turn u" \
        " WHERE u.tenant=t.tenant AND u.conversation=t.conversation AND u.state IN " SQL_OPEN " AND u.nth<t.nth)" \
        " AND (t.state='queued' OR t.lost-CASE WHEN ?3>t.claimed_until-t.claim_ms THEN 1 ELSE 0 END+1<?4)" \
        " ORDER BY k.served,t.ready_ms,t.created_ms LIMIT 1 FOR UPDATE OF t,v SKIP LOCKED") \
    X(TURN_CANCEL, "UPDATE turn SET cancelled=1,ready_ms=least(ready_ms,?3) WHERE tenant=?1 AND id=?2 AND state IN " SQL_OPEN \
        " RETURNING epoch,conversation") \
    X(CALL_STRICTER, "UPDATE tool_call SET class=least(class,?5) WHERE tenant=?1 AND turn=?2 AND step=?3 AND ord=?4") \
    X(CLAIMS_END, "UPDATE turn SET claimed_until=least(claimed_until,?2) WHERE worker=?1 AND state='running'") \
    X(QUEUED, "SELECT nth,id,'user',asked FROM turn WHERE tenant=?1 AND conversation=?2 AND state IN " SQL_OPEN \
        " AND asked IS NOT NULL AND nth>?3 ORDER BY nth LIMIT ?4") \
    X(USAGE_OF, SQL_METERED SQL_METERED_OF) \
    X(RECORD_SIZE, "SELECT count(*),coalesce(sum(length(body)),0),coalesce(min(length(body))=0,false) FROM recorded" \
        " WHERE tenant=?1 AND turn=?2") \
    X(RECORD_COUNT, "INSERT INTO recorded_size(tenant,bytes) VALUES(?1,?2) ON CONFLICT(tenant) DO UPDATE SET" \
        " bytes=recorded_size.bytes+excluded.bytes RETURNING bytes") \
    X(RECORD_OLDEST, "SELECT turn FROM recorded WHERE tenant=?1 AND turn<>?2 ORDER BY at_ms LIMIT 1") \
    X(MOVE_GET_TENANT, "SELECT k.tenant,coalesce(s.served,0),k.conversations,k.open,k.keys,coalesce(z.bytes,0) FROM tenant k" \
        " LEFT JOIN served s ON s.tenant=k.tenant LEFT JOIN recorded_size z ON z.tenant=k.tenant WHERE k.tenant>?1" \
        " ORDER BY k.tenant LIMIT ?2") \
    X(MOVE_PUT_TENANT, "WITH a AS (INSERT INTO served(tenant,served) VALUES(?1,?2)), b AS (INSERT INTO recorded_size(tenant," \
        "bytes) VALUES(?1,?6)) INSERT INTO tenant(tenant,conversations,open,keys) VALUES(?1,?3,?4,?5)") \
    X(MOVE_END_TENANT, "WITH a AS (DELETE FROM served), b AS (DELETE FROM recorded_size) DELETE FROM tenant") \
    X(MESSAGES, PG_UP_TO("seq,turn,role,body", "message")) \
    X(EVENTS, PG_UP_TO("seq,turn,epoch,type,body", "display"))
/* clang-format on */

#endif
