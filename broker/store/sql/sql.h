/* Every statement of the broker's store, once, in SQLite's words; what another database says otherwise is in its
 * room. Parameters are numbered as in the text; ?1 is the tenant, but for what is looked for over all of them. One
 * that is empty is for databases that have writers beside each other. */
#ifndef BROKER_STORE_SQL_SQL_H
#define BROKER_STORE_SQL_SQL_H

#include "broker/store/sql/move_sql.h"

/* clang-format off */
#define SQL_OPEN "('queued','running')"
/* Of a conversation c: does a turn of it go on; the message that it began with. */
#define SQL_BUSY "EXISTS (SELECT 1 FROM turn t WHERE t.tenant=c.tenant AND t.conversation=c.id AND t.state IN " SQL_OPEN ")"
#define SQL_FIRST "coalesce((SELECT m.body FROM message m WHERE m.tenant=c.tenant AND m.conversation=c.id AND m.seq=1),'')"
#define SQL_LARGEST "9223372036854775807"
/* A sum that stands still at the largest number: how much it may grow. */
#define SQL_MORE(is, more) "CASE WHEN " more ">" SQL_LARGEST "-" is " THEN " SQL_LARGEST "-" is " ELSE " more " END"
/* What counts of a number: as broker/budgets.h has it (BUDGET_MOST). */
#define SQL_BOUND(is) "CASE WHEN " is ">8796093022208 THEN 8796093022208 ELSE " is " END"
#define SQL_METER(sum) sum "=usage." sum "+" SQL_MORE("usage." sum, "excluded." sum)
#define SQL_METERED "SELECT day,conversation,model,task,input,output,cache_read,cache_write,asked,cost FROM usage"
#define SQL_METERED_OF " WHERE tenant=?1 AND conversation=?2 AND day>=?3 AND (day,model,task)>(?3,?4,?5) AND day<=?6" \
    " ORDER BY day,model,task LIMIT ?7"
#define SQL_STATEMENTS(X) \
    X(TENANT_ADD, "INSERT INTO tenant(tenant,served,conversations,open,keys) VALUES(?1,0,0,0,0) ON CONFLICT DO NOTHING") \
    X(TENANT_LOCK_NEW, "") \
    X(TENANT_LOCK, "") \
    X(TENANT_TRY, "SELECT 1") \
    X(TENANT_GET, "SELECT conversations,open,keys FROM tenant WHERE tenant=?1") \
    X(TENANT_COUNT, "UPDATE tenant SET conversations=conversations+?2,open=open+?3,keys=keys+?4 WHERE tenant=?1") \
    X(TENANT_SERVED, "UPDATE tenant SET served=1+(SELECT max(served) FROM tenant) WHERE tenant=?1") \
    X(SHARE_OVER, "") \
    X(KEY_GET, "SELECT request,conversation,turn,log_epoch,log_seq FROM chat_key WHERE tenant=?1 AND key=?2") \
    X(KEY_ADD, "INSERT INTO chat_key(tenant,key,request,conversation,turn,log_epoch,log_seq,at_ms)" \
        " VALUES(?1,?2,?3,?4,?5,?6,?7,?8)") \
    X(KEYS_OLD, "DELETE FROM chat_key WHERE at_ms<=?1") \
    X(KEYS_COUNT, "UPDATE tenant SET keys=(SELECT count(*) FROM chat_key c WHERE c.tenant=tenant.tenant) WHERE keys>0") \
    X(CONVERSATION_ADD, "INSERT INTO conversation(tenant,id,phase,created_ms,changed_ms,turns,messages,log_epoch," \
        "log_first,log_next,log_bytes,private) VALUES(?1,?2,'coding',?3,?3,0,0,1,1,1,0,?4)") \
    X(CONVERSATION_PRIVATE, "SELECT private FROM conversation WHERE tenant=?1 AND id=?2") \
    X(CONVERSATION_GET, "SELECT log_epoch,log_first,log_next FROM conversation WHERE tenant=?1 AND id=?2") \
    X(CONVERSATION_TURN, "UPDATE conversation SET turns=turns+1,changed_ms=?3 WHERE tenant=?1 AND id=?2" \
        " RETURNING turns") \
    X(CONVERSATION_MESSAGE, "UPDATE conversation SET messages=messages+1 WHERE tenant=?1 AND id=?2 RETURNING messages") \
    X(CONVERSATION_PHASE, "UPDATE conversation SET phase=?3 WHERE tenant=?1 AND id=?2") \
    X(CONVERSATION_OPEN, "SELECT count(*) FROM turn INDEXED BY turn_talk WHERE tenant=?1 AND conversation=?2 AND state IN " SQL_OPEN) \
    X(LOG_TAKE, "UPDATE conversation SET log_next=log_next+?3,log_bytes=log_bytes+?4,changed_ms=?5" \
        " WHERE tenant=?1 AND id=?2 RETURNING log_first,log_next,log_bytes") \
    X(LOG_ADD, "INSERT INTO display(tenant,conversation,seq,turn,epoch,type,body,at_ms) VALUES(?1,?2,?3,?4,?5,?6,?7,?8)") \
    X(LOG_CUT, "DELETE FROM display WHERE tenant=?1 AND conversation=?2 AND seq<?3") \
    X(LOG_FIRST, "UPDATE conversation SET log_first=?3,log_bytes=(SELECT coalesce(sum(length(body)),0) FROM display" \
        " WHERE tenant=?1 AND conversation=?2) WHERE tenant=?1 AND id=?2 RETURNING log_bytes") \
    X(TURN_ADD, "INSERT INTO turn(tenant,id,conversation,nth,state,ready_ms,created_ms,steps_max,tokens_max,cost_max," \
        "wall_max_ms,same_max,asked) VALUES(?1,?2,?3,?4,'queued',?5,?5,?6,?7,?8,?9,?10,?11)") \
    X(TURN_ASKED, "SELECT asked FROM turn WHERE tenant=?1 AND id=?2 AND asked IS NOT NULL") \
    X(TURN_SAID, "UPDATE turn SET asked=NULL WHERE tenant=?1 AND id=?2") \
    X(CLAIM_NEXT, "SELECT t.tenant,t.id,t.conversation,t.state,t.lost-(t.state='running'" \
        " AND ?3>t.claimed_until-t.claim_ms),t.replays LIKE '% %' FROM tenant k CROSS JOIN turn t ON t.tenant=k.tenant" \
        " WHERE k.open>0 AND t.state IN " SQL_OPEN " AND t.ready_ms<=?1 AND (t.state='queued' OR t.claimed_until<=?1)" \
        " AND NOT EXISTS (SELECT 1 FROM turn u WHERE u.tenant=t.tenant AND u.conversation=t.conversation" \
        " AND u.state IN " SQL_OPEN " AND u.nth<t.nth) AND (SELECT count(*) FROM turn r WHERE r.tenant=k.tenant" \
        " AND r.state='running' AND r.claimed_until>?1)<?2 ORDER BY k.served,t.ready_ms,t.created_ms LIMIT 1") \
    X(WAITING, "SELECT count(*),coalesce(min(CASE WHEN t.claimed_until>t.ready_ms THEN t.claimed_until ELSE t.ready_ms END),0)," \
        "(SELECT count(*) FROM turn r WHERE r.state='running' AND r.claimed_until>?1) FROM tenant k CROSS JOIN turn t" \
        " WHERE t.tenant=k.tenant AND k.open>0 AND t.state IN " SQL_OPEN " AND t.ready_ms<=?2" \
        " AND (t.state='queued' OR t.claimed_until<=?2) AND NOT EXISTS (SELECT 1 FROM turn u WHERE u.tenant=t.tenant" \
        " AND u.conversation=t.conversation AND u.state IN " SQL_OPEN " AND u.nth<t.nth) AND NOT EXISTS (SELECT 1 FROM turn e" \
        " WHERE e.tenant=t.tenant AND e.conversation=t.conversation AND e.nth=t.nth-1 AND e.ended_ms>?2)") \
    X(CLAIM_TAKE, "UPDATE turn SET state='running',epoch=epoch+1,worker=?3,claimed_until=?4+?5,claim_ms=?5,lost=?6," \
        "started_ms=coalesce(started_ms,?4) WHERE tenant=?1 AND id=?2 RETURNING epoch") \
    X(FENCE, "UPDATE turn SET claimed_until=?5+claim_ms WHERE tenant=?1 AND id=?2 AND epoch=?3 AND worker=?4" \
        " AND state='running' AND claimed_until>?5 AND conversation=?6 RETURNING cancelled") \
    X(TURN_RELEASE, "UPDATE turn SET state='queued',ready_ms=?3,worker='',claimed_until=0 WHERE tenant=?1 AND id=?2") \
    X(TURN_END, "UPDATE turn SET state=?3,ending=?4,why=?5,ended_ms=?6,asked=NULL WHERE tenant=?1 AND id=?2") \
    X(TURN_CANCEL, "UPDATE turn SET cancelled=1,ready_ms=min(ready_ms,?3) WHERE tenant=?1 AND id=?2 AND state IN " SQL_OPEN \
        " RETURNING epoch,conversation") \
    X(TURN_GET, "SELECT conversation,state,ending,why,steps,tokens,cost,replays FROM turn WHERE tenant=?1 AND id=?2") \
    X(TURN_USED, "UPDATE turn SET tokens=tokens+" SQL_MORE("tokens", "?3") ",cost=cost+" SQL_MORE("cost", "?4") \
        " WHERE tenant=?1 AND id=?2") \
    X(USAGE_ADD, "INSERT INTO usage(tenant,day,conversation,model,task,asked,input,output,cache_read,cache_write,cost)" \
        " VALUES(?1,?3,?2,?4,?5,1,?6,?7,?8,?9,?10) ON CONFLICT(tenant,day,conversation,model,task) DO UPDATE SET" \
        " asked=usage.asked+1," SQL_METER("input") "," SQL_METER("output") "," SQL_METER("cache_read") "," \
        SQL_METER("cache_write") "," SQL_METER("cost")) \
    X(USAGE, SQL_METERED " WHERE tenant=?1 AND day>=?3 AND (day,conversation,model,task)>(?3,?2,?4,?5) AND day<=?6" \
        " ORDER BY day,conversation,model,task LIMIT ?7") \
    X(USAGE_OF, SQL_METERED " INDEXED BY usage_talk" SQL_METERED_OF) \
    X(BUDGET_SPENT, "SELECT CAST(coalesce(sum(" SQL_BOUND("input") "+" SQL_BOUND("output") "+" SQL_BOUND("cache_read") "+" \
        SQL_BOUND("cache_write") "),0) AS bigint),CAST(coalesce(sum(" SQL_BOUND("cost") "),0) AS bigint) FROM usage" \
        " WHERE tenant=?1 AND day>=?2 AND day<=?3") \
    X(ASKED_BESIDE, "SELECT s.kind FROM turn t JOIN step s ON s.tenant=t.tenant AND s.turn=t.id WHERE t.tenant=?1" \
        " AND t.state='running' AND t.claimed_until>?3 AND t.id<>?2 AND s.state='open'") \
    X(STEP_ASKS, "UPDATE step SET kind=?4 WHERE tenant=?1 AND turn=?2 AND n=?3 AND state='open'") \
    X(TENANT_AFTER, "SELECT tenant FROM tenant WHERE tenant>?1 ORDER BY tenant LIMIT 1") \
    X(TURN_STEP, "UPDATE turn SET steps=steps+1,lost=0 WHERE tenant=?1 AND id=?2") \
    X(LOAD_TURN, "SELECT started_ms,lost,cancelled,steps_max,tokens_max,cost_max,wall_max_ms,same_max,steps,tokens,cost," \
        "replays,(SELECT v.private FROM conversation v WHERE v.tenant=turn.tenant AND v.id=turn.conversation) FROM turn" \
        " WHERE tenant=?1 AND id=?2") \
    X(LOAD_SETTLED, "SELECT message_state,filesystem_state_ref,execution_state,effect_log,n FROM step WHERE tenant=?1" \
        " AND turn=?2 AND state='settled' ORDER BY n DESC LIMIT 1") \
    X(LOAD_BEFORE, "SELECT s.message_state,s.filesystem_state_ref FROM turn now JOIN turn t ON t.tenant=now.tenant" \
        " AND t.conversation=now.conversation AND t.nth<now.nth JOIN step s ON s.tenant=t.tenant AND s.turn=t.id" \
        " AND s.state='settled' WHERE now.tenant=?1 AND now.id=?2 ORDER BY t.nth DESC,s.n DESC LIMIT 1") \
    X(LOAD_OPEN, "SELECT n,attempts,state,answer,kind FROM step WHERE tenant=?1 AND turn=?2 AND state<>'settled'" \
        " ORDER BY n DESC LIMIT 1") \
    X(LOAD_CALLS, "SELECT tool,args,class,key,ending,result,effect,intent_ms FROM tool_call WHERE tenant=?1 AND turn=?2 AND step=?3" \
        " ORDER BY ord") \
    X(STEP_GET, "SELECT state,answer FROM step WHERE tenant=?1 AND turn=?2 AND n=?3") \
    X(STEP_NEXT, "SELECT steps+1 FROM turn WHERE tenant=?1 AND id=?2") \
    X(STEP_ADD, "INSERT INTO step(tenant,turn,n,state,kind,attempts,began_ms) VALUES(?1,?2,?3,'open',?4,1,?5)") \
    X(STEP_AGAIN, "UPDATE step SET attempts=attempts+1,kind=?4 WHERE tenant=?1 AND turn=?2 AND n=?3 RETURNING attempts") \
    X(STEP_PLAN, "UPDATE step SET state='planned',answer=?4 WHERE tenant=?1 AND turn=?2 AND n=?3 AND state='open'") \
    X(STEP_HOME, "UPDATE step SET home=?4 WHERE tenant=?1 AND turn=?2 AND n=?3") \
    X(LOAD_ELSEWHERE, "SELECT 1 FROM step WHERE tenant=?1 AND turn=?2 AND n=?3 AND home<>?4") \
    X(STEP_SETTLE, "UPDATE step SET state='settled',ended_ms=?4,message_state=?5,filesystem_state_ref=?6," \
        "execution_state=?7,effect_log=?8 WHERE tenant=?1 AND turn=?2 AND n=?3 AND state<>'settled'") \
    X(CALL_ADD, "INSERT INTO tool_call(tenant,turn,step,ord,tool,args,class,key,ending,intent_ms)" \
        " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,'open',?9)") \
    X(CALL_GET, "SELECT ending,result,effect FROM tool_call WHERE tenant=?1 AND turn=?2 AND step=?3 AND ord=?4") \
    X(CALL_KEYS, "SELECT key FROM tool_call WHERE tenant=?1 AND turn=?2 AND step=?3 ORDER BY ord") \
    X(CALL_STRICTER, "UPDATE tool_call SET class=min(class,?5) WHERE tenant=?1 AND turn=?2 AND step=?3 AND ord=?4") \
    X(CALL_SETTLE, "UPDATE tool_call SET ending=?5,result=?6,effect=?7,settled_ms=?8 WHERE tenant=?1 AND turn=?2" \
        " AND step=?3 AND ord=?4 AND ending='open'") \
    X(CALLS_OPEN, "SELECT count(*) FROM tool_call WHERE tenant=?1 AND turn=?2 AND step=?3 AND ending='open'") \
    X(CALLS_COUNT, "SELECT count(*) FROM tool_call WHERE tenant=?1 AND turn=?2 AND step=?3") \
    X(MESSAGE_ADD, "INSERT INTO message(tenant,conversation,seq,turn,role,body) VALUES(?1,?2,?3,?4,?5,?6)") \
    X(MESSAGES, "SELECT seq,turn,role,body FROM message WHERE tenant=?1 AND conversation=?2 AND seq>?3 ORDER BY seq" \
        " LIMIT ?4") \
    X(QUEUED, "SELECT nth,id,'user',asked FROM turn INDEXED BY turn_talk WHERE tenant=?1 AND conversation=?2 AND state IN " SQL_OPEN \
        " AND asked IS NOT NULL AND nth>?3 ORDER BY nth LIMIT ?4") \
    X(CONVERSATIONS, "SELECT c.id,c.created_ms,c.changed_ms,c.turns,c.messages,c.phase,EXISTS (SELECT 1 FROM turn t WHERE" \
        " t.tenant=c.tenant AND t.conversation=c.id AND t.state IN " SQL_OPEN "),EXISTS (SELECT 1 FROM turn r WHERE" \
        " r.tenant=c.tenant AND r.conversation=c.id AND r.nth=1 AND r.replays<>''),c.private FROM conversation c WHERE c.tenant=?1" \
        " AND c.id>?2 ORDER BY c.id LIMIT ?3") \
    X(LATELY, "SELECT c.id,c.created_ms,c.changed_ms,c.turns,c.messages,c.phase," SQL_BUSY "," SQL_FIRST ",c.private FROM (SELECT * FROM conversation" \
        " WHERE tenant=?1 ORDER BY changed_ms DESC,id LIMIT ?2) c ORDER BY c.changed_ms DESC,c.id") \
    X(CONVERSATION_ONE, "SELECT c.id,c.created_ms,c.changed_ms,c.turns,c.messages,c.phase," SQL_BUSY "," SQL_FIRST \
        ",c.private FROM conversation c WHERE c.tenant=?1 AND c.id=?2") \
    X(FORK_MESSAGES, "INSERT INTO message(tenant,conversation,seq,turn,role,body) SELECT tenant,?3,seq,turn,role,body" \
        " FROM message WHERE tenant=?1 AND conversation=?2 AND seq<=?4") \
    X(FORK_CUTS, "SELECT count(*) FROM message WHERE tenant=?1 AND conversation=?2 AND seq=?3+1 AND role=?4") \
    X(FORK_BYTES, "SELECT coalesce(sum(length(body)),0) FROM message WHERE tenant=?1 AND conversation=?2 AND seq<=?3") \
    X(FORK_COUNT, "UPDATE conversation SET messages=(SELECT count(*) FROM message WHERE tenant=?1 AND conversation=?2)" \
        " WHERE tenant=?1 AND id=?2 RETURNING messages") \
    X(CLAIMS_END, "UPDATE turn SET claimed_until=min(claimed_until,?2) WHERE worker=?1 AND state='running'") \
    X(RECORD_SIZE, "SELECT count(*),coalesce(sum(length(body)),0),coalesce(min(length(body))=0,0) FROM recorded WHERE tenant=?1" \
        " AND turn=?2") \
    X(RECORD_ADD, "INSERT INTO recorded(tenant,turn,part,at_ms,body) VALUES(?1,?2,?3,?4,?5)") \
    X(RECORD_COUNT, "UPDATE tenant SET recorded=recorded+?2 WHERE tenant=?1 RETURNING recorded") \
    X(RECORD_OLDEST, "SELECT turn FROM recorded INDEXED BY recorded_age WHERE tenant=?1 AND turn<>?2 ORDER BY at_ms LIMIT 1") \
    X(RECORD_FORGET, "DELETE FROM recorded WHERE tenant=?1 AND turn=?2") \
    X(RECORDED_TURN, "SELECT conversation,state,ending,steps,tokens,cost,steps_max,tokens_max,cost_max,wall_max_ms,same_max" \
        " FROM turn WHERE tenant=?1 AND id=?2") \
    X(RECORDED, "SELECT body FROM recorded WHERE tenant=?1 AND turn=?2 ORDER BY part") \
    X(REPLAY_OF, "SELECT conversation,steps_max,tokens_max,cost_max,wall_max_ms,same_max,ending<>'' AND replays='' FROM turn" \
        " WHERE tenant=?1 AND id=?2") \
    X(REPLAY_ASKED, "SELECT seq,body FROM message WHERE tenant=?1 AND conversation=?2 AND turn=?3 AND role='user' ORDER BY seq" \
        " LIMIT 1") \
    X(REPLAY_FILES, "SELECT count(*) FROM turn now JOIN turn t ON t.tenant=now.tenant AND t.conversation=now.conversation" \
        " AND t.nth<now.nth JOIN step s ON s.tenant=t.tenant AND s.turn=t.id WHERE now.tenant=?1 AND now.id=?2" \
        " AND (s.filesystem_state_ref<>'' OR s.state<>'settled' OR EXISTS (SELECT 1 FROM tool_call k" \
        " WHERE k.tenant=s.tenant AND k.turn=s.turn AND k.step=s.n AND k.tool<>'broken-call'))") \
    X(REPLAY_SET, "UPDATE turn SET replays=?3 WHERE tenant=?1 AND id=?2") \
    X(REPLAY_NTH, "SELECT count(*) FROM tool_call WHERE tenant=?1 AND turn=?2 AND tool=?3 AND args=?4 AND (step<?5 OR step=?5 AND ord<?6)") \
    X(REPLAYED, "SELECT c.ending,c.result FROM turn t JOIN tool_call c ON c.tenant=t.tenant AND c.turn=t.replays WHERE t.tenant=?1" \
        " AND t.id=?2 AND c.tool=?3 AND c.args=?4 ORDER BY c.step,c.ord LIMIT 1 OFFSET ?5") \
    X(TURNS, "SELECT t.nth,t.id,t.state,t.ending,EXISTS (SELECT 1 FROM recorded r WHERE r.tenant=t.tenant AND r.turn=t.id)" \
        " FROM turn t WHERE t.tenant=?1 AND t.conversation=?2 AND t.nth>?3 ORDER BY t.nth LIMIT ?4") \
    X(EVENTS, "SELECT seq,turn,epoch,type,body FROM display WHERE tenant=?1 AND conversation=?2 AND seq>?3 ORDER BY seq" \
        " LIMIT ?4")
/* clang-format on */

enum sql_id {
#define X(name, sql) SQL_##name,
    SQL_STATEMENTS(X) SQL_MOVES(X)
#undef X
        SQL_COUNT
};

#endif
