/* Every statement the ledger runs, once. Prepared when first used, kept until the
 * store is closed. Parameters are numbered as in the text. */
#ifndef PROXY_LEDGER_STORE_SQL_H
#define PROXY_LEDGER_STORE_SQL_H

#include "proxy/ledger/store/gates/sql_gates.h"
#include "proxy/ledger/store/askers/sql_askers.h"
#include "proxy/ledger/store/grants/sql_grants.h"
#include "proxy/ledger/store/people/sql_people.h"
#include "proxy/ledger/store/tell/sql_tell.h"
#include "proxy/ledger/store/egress/sql_egress.h"
#include "proxy/ledger/store/idle/sql_idle.h"
#include "proxy/ledger/store/runs/sql_runs.h"

/* clang-format off */
#define SQL_TICKET_COLUMNS \
    "id,state,sandbox,session,method,scheme,host,port,path,query,op,effect,resource,credential,code," \
    "rule_id,rule_file,rule_line,policy,digest,join_key,reason_required,created_ms,expires_ms,expires_boot_ms," \
    "decided_ms,decided_by,decided_channel,decided_reason,boot,xid,body_size,has_body,upgrade,content_type,refs,terms"
#define SQL_LEASE_COLUMNS \
    "id,parent,sandbox,session,generation,credential,meaning,format,tag,text_sha256,layers,state,created_ms,created_by," \
    "expires_ms,ended_ms,how"
#define SQL_LIVE "('pending','approved','executing')"

#define SQL_STATEMENTS(X) \
    X(META_GET, "SELECT value FROM meta WHERE key=?1") \
    X(META_SET, "INSERT INTO meta(key,value) VALUES(?1,?2) ON CONFLICT(key) DO UPDATE SET value=?2") \
    X(AUDIT_ADD, "INSERT INTO audit(seq,time_ms,kind,exchange,ticket,json,hash) VALUES(?1,?2,?3,?4,?5,?6,?7)") \
    X(AUDIT_LAST, "SELECT seq,time_ms,hash FROM audit ORDER BY seq DESC LIMIT 1") \
    X(CHECKPOINT_ADD, "INSERT INTO checkpoint(seq,time_ms,key,signature) VALUES(?1,?2,?3,?4)") \
    X(CHECKPOINT_LAST, "SELECT coalesce(max(seq),0) FROM checkpoint") \
    X(TICKET_BY_ID, "SELECT " SQL_TICKET_COLUMNS " FROM ticket WHERE id=?1") \
    X(TICKET_LIVE, "SELECT " SQL_TICKET_COLUMNS " FROM ticket WHERE session=?1 AND join_key=?2 AND state IN " SQL_LIVE) \
    X(TICKET_ANSWERED, "SELECT t.id FROM ticket t JOIN answer a ON a.ticket=t.id WHERE t.session=?1 AND t.join_key=?2" \
        " AND t.state='done' AND t.delivered=0 AND a.until_ms>?3 AND a.until_boot_ms>?4 ORDER BY t.created_ms DESC LIMIT 1") \
    X(TICKET_DENIED, "SELECT id FROM ticket WHERE session=?1 AND join_key=?2 AND terms=?5 AND state='denied'" \
        " AND expires_ms>?3 AND expires_boot_ms>?4 ORDER BY decided_ms DESC LIMIT 1") \
    X(TICKET_MEMORY, "SELECT 1 FROM ticket t LEFT JOIN answer a ON a.ticket=t.id WHERE t.session=?1 AND t.join_key=?2" \
        " AND ((t.state='done' AND t.delivered=0 AND a.until_ms>?3 AND a.until_boot_ms>?4) OR (t.state='denied'" \
        " AND t.expires_ms>?3 AND t.expires_boot_ms>?4)) LIMIT 1") \
    X(TICKET_REPEAT, "UPDATE ticket SET repeats=repeats+1 WHERE id=?1") \
    X(PENDING_OF_SANDBOX, "SELECT p.n+c.n,p.b+c.b FROM" \
      "(SELECT count(*) n,coalesce(sum(body_size),0) b FROM ticket WHERE sandbox=?1 AND state='pending') p," \
      "(SELECT count(*) n,coalesce(sum(body_size),0) b FROM ticket WHERE state='cancelled' AND created_ms>?2 AND sandbox=?1 " \
      "AND decided_by='client' AND decided_channel='') c") \
    X(OPEN_ALL, "SELECT count(*),coalesce(sum(body_size),0) FROM ticket WHERE state IN ('pending','approved')") \
    X(OPEN_OF_TENANT, "SELECT count(*),coalesce(sum(body_size),0) FROM ticket WHERE state IN ('pending','approved')" \
        " AND tenant=coalesce((SELECT tenant FROM sandbox WHERE name=?1),'')") \
    X(TENANT_ALONE, "SELECT 1 FROM sandbox WHERE tenant<>coalesce((SELECT tenant FROM sandbox WHERE name=?1),'') LIMIT 1") \
    X(TICKET_ADD, "INSERT INTO ticket(id,state,sandbox,session,tenant,method,scheme,host,port,path,query,fields_json,head," \
        "body_size,body_sha256,digest,join_key,op,effect,resource,credential,code,rule_id,rule_file,rule_line,policy," \
        "summary,facts_json,agent_reason,approve_by,dialect,reason_required,created_ms,expires_ms,expires_boot_ms," \
        "has_body,upgrade,content_type,refs,terms)" \
        " VALUES(?1,'pending',?2,?3,coalesce((SELECT tenant FROM sandbox WHERE name=?2),''),?4,?5,?6,?7,?8,?9,?10,?11,?12," \
        "?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25,?26,?27,?28,?29,?30,?31,?32,?33,?34,?35,?36,?37,?38)") \
    X(TICKET_DECIDE, "UPDATE ticket SET state=?3,decided_ms=?4,decided_by=?5,decided_channel=?6,decided_reason=?7," \
        "ended_ms=?8 WHERE id=?1 AND state=?2") \
    X(TICKET_CLAIM, "UPDATE ticket SET state='executing',claimed_ms=?2,boot=?3,xid=?4 WHERE id=?1 AND state='approved'") \
    X(TICKET_END, "UPDATE ticket SET state=?2,ended_ms=?3,status=?4,bytes_out=?5,bytes_in=?6,delivered=?7" \
        " WHERE id=?1 AND boot=?8 AND xid=?9 AND state IN ('executing','unknown')") \
    X(TICKET_TAKEN, "UPDATE ticket SET delivered=1 WHERE id=?1 AND delivered=0") \
    SQL_ASKERS(X) \
    X(TICKET_HEAD, "SELECT head FROM ticket WHERE id=?1") \
    X(TICKETS_OVERDUE, "SELECT id FROM ticket WHERE state IN ('pending','approved')" \
        " AND (expires_ms<=?1 OR expires_boot_ms<=?2) LIMIT 256") \
    X(TICKETS_OPEN, "SELECT id FROM ticket WHERE state IN ('pending','approved') LIMIT 256") \
    X(TICKETS_OPEN_ALL, "SELECT id FROM ticket INDEXED BY ticket_open WHERE state IN ('pending','approved')" \
        " ORDER BY expires_ms DESC") \
    X(TICKETS_OF_SESSION, "SELECT id FROM ticket WHERE session=?1 AND state IN ('pending','approved') LIMIT 256") \
    X(TICKETS_EXECUTING, "SELECT id FROM ticket WHERE state='executing' LIMIT 256") \
    X(TICKETS_NEW_BOOT, "UPDATE ticket SET expires_boot_ms=?2+max(0,min(expires_ms-?1,expires_ms-created_ms))" \
        " WHERE state IN ('pending','approved')") \
    SQL_GRANTS(X) \
    X(BODY_ADD, "INSERT INTO body(ticket,sealed) VALUES(?1,?2)") \
    X(BODY_GET, "SELECT sealed FROM body WHERE ticket=?1") \
    X(BODIES_OLD, "DELETE FROM body WHERE ticket IN (SELECT t.id FROM ticket t JOIN body b ON b.ticket=t.id" \
        " WHERE t.ended_ms<?1 AND t.state NOT IN " SQL_LIVE " LIMIT 64)") \
    X(ANSWER_ADD, "INSERT OR REPLACE INTO answer(ticket,until_ms,until_boot_ms,sealed) VALUES(?1,?2,?3,?4)") \
    X(ANSWER_GET, "SELECT sealed FROM answer WHERE ticket=?1") \
    X(ANSWER_REMOVE, "DELETE FROM answer WHERE ticket=?1") \
    X(ANSWERS_OLD, "DELETE FROM answer WHERE until_ms<=?1 OR until_boot_ms<=?2") \
    X(ANSWERS_ALL, "DELETE FROM answer") \
    X(TICKETS_LEFT, "UPDATE ticket SET join_key=randomblob(32),session=session||' (ended)' WHERE session=?1") \
    X(ANSWERS_OF_SESSION, "DELETE FROM answer WHERE ticket IN (SELECT id FROM ticket WHERE session=?1)") \
    X(EFFECT_ADD, "INSERT OR IGNORE INTO effect(boot,xid,ticket,state,sandbox,intent_ms) VALUES(?1,?2,?3,'intent',?4,?5)") \
    X(EFFECT_DROP, "DELETE FROM effect WHERE boot=?1 AND xid=?2 AND state='intent'") \
    X(EFFECT_SENT, "UPDATE effect SET state='sent',sent_ms=?3 WHERE boot=?1 AND xid=?2 AND state='intent'" \
        " RETURNING ticket,sandbox") \
    X(EFFECT_GET, "SELECT state FROM effect WHERE boot=?1 AND xid=?2") \
    X(EFFECT_END, "UPDATE effect SET state=?3,ended_ms=?4,status=?5,sent_ms=coalesce(sent_ms,?6)" \
        " WHERE boot=?1 AND xid=?2 AND state=?7") \
    X(EFFECTS_OPEN, "SELECT boot,xid,ticket,sandbox,state FROM effect WHERE state IN ('intent','sent') LIMIT 256") \
    X(RESERVED_SUM, "SELECT coalesce(sum(amount>>32),0),coalesce(sum(amount&4294967295),0),count(*) FROM reserved" \
        " WHERE who=?1 AND rule=?2 AND measure=?3 AND at_ms BETWEEN ?4 AND ?5") \
    X(RESERVED_FROM, "SELECT at_ms,amount FROM reserved WHERE who=?1 AND rule=?2 AND measure=?3 AND at_ms>?4 ORDER BY at_ms") \
    X(RESERVED_HAS, "SELECT 1 FROM reserved INDEXED BY reserved_ticket WHERE who=?1 AND rule=?2 AND measure=?3" \
        " AND ticket=?4") \
    X(RESERVED_ADD, "INSERT INTO reserved(who,rule,measure,at_ms,amount,ticket,boot,xid) VALUES(?1,?2,?3,?4,?5,?6,?7,?8)") \
    X(RESERVED_CLAIM, "UPDATE reserved SET at_ms=?2 WHERE ticket=?1 AND at_ms=0") \
    X(RESERVED_FREE_TICKET, "DELETE FROM reserved WHERE ticket=?1") \
    X(RESERVED_FREE_EXCHANGE, "DELETE FROM reserved WHERE boot=?1 AND xid=?2") \
    X(RESERVED_OLD, "DELETE FROM reserved WHERE rowid IN" \
        " (SELECT rowid FROM reserved WHERE at_ms>0 AND at_ms<=?1 LIMIT 4096)") \
    X(SANDBOX_ALL, "SELECT name,session,owner,tenant,kind,generation,token_hash,labels_json,frozen," \
        "egress_requests,egress_bytes,egress_epoch,reach FROM sandbox ORDER BY name") \
    X(SANDBOX_GET, "SELECT name,session,owner,tenant,kind,generation,token_hash,labels_json,frozen," \
        "egress_requests,egress_bytes,egress_epoch,reach FROM sandbox WHERE name=?1") \
    X(SANDBOX_TOKEN, "SELECT 1 FROM sandbox WHERE instr(token_hash,?1)>0 AND name<>?2") \
    X(SANDBOX_COUNT, "SELECT count(*) FROM sandbox") \
    X(SANDBOX_PUT, "INSERT INTO sandbox(name,session,owner,tenant,kind,generation,token_hash,labels_json,created_ms," \
        "changed_ms,egress_requests,egress_bytes,egress_epoch,reach) VALUES(?1,?2,?3,?4,?5,1,?6,?7,?8,?8,?9,?10,1,?12) ON CONFLICT(name) DO UPDATE SET session=?2,owner=?3,tenant=?4," \
        "kind=?5,generation=generation+(kind<>'ended'),token_hash=?6,labels_json=?7,changed_ms=?8," \
        "egress_requests=?9,egress_bytes=?10,egress_epoch=iif(?11,egress_epoch,generation+(kind<>'ended')),reach=iif(?11,reach,?12)") \
    X(SANDBOX_END, "UPDATE sandbox SET kind='ended',generation=generation+1,changed_ms=?2 WHERE name=?1") \
    X(SANDBOX_NEXT, "SELECT name,generation FROM sandbox WHERE kind='started' AND name>?1 ORDER BY name LIMIT 1") \
    X(SANDBOX_TOKENS, "UPDATE sandbox SET token_hash=?2,changed_ms=?3 WHERE name=?1") \
    X(SESSION_OF_OTHERS, "SELECT 1 FROM sandbox WHERE session=?1 AND name<>?2 LIMIT 1") \
    X(SANDBOX_REMOVE, "DELETE FROM sandbox WHERE name=?1") \
    X(SANDBOX_FREEZE, "UPDATE sandbox SET frozen=?2,changed_ms=?3 WHERE name=?1") \
    X(SANDBOX_FROZEN, "SELECT name FROM sandbox WHERE frozen IS NOT NULL LIMIT 1") \
    X(SANDBOX_ENDED_FIRST, "SELECT name FROM sandbox WHERE kind='ended' ORDER BY changed_ms LIMIT 1") \
    X(TOKEN_PUT, "INSERT INTO token(kind,scope,name,tenant,hash,note,created_ms) VALUES(?1,?2,?3,?4,?5,?6,?7)" \
        " ON CONFLICT(kind,scope,name) DO UPDATE SET hash=?5," \
        "note=CASE ?6 WHEN '' THEN note ELSE ?6 END") \
    X(TOKEN_THERE, "SELECT count(*) FROM token WHERE kind=?1 AND scope='' AND name=?2") \
    X(TOKEN_COUNT, "SELECT count(*) FROM token WHERE kind=?1 AND scope=?2") \
    X(TOKEN_SANDBOX, "SELECT count(*) FROM sandbox WHERE name=?1 AND tenant=?2 AND kind='started'") \
    X(TOKEN_END, "UPDATE token SET hash=NULL WHERE name=?1 AND kind='access'") \
    X(KEY_END, "DELETE FROM token WHERE name=?1 AND kind='key'") \
    X(TOKEN_END_SANDBOX, "DELETE FROM token WHERE scope=?1") \
    X(RUN_TENANT, "SELECT tenant FROM sandbox WHERE name=?1") \
    X(RUN_LAST, "SELECT coalesce(max(nth),0) FROM run WHERE sandbox=?1") \
    X(RUN_FIRST, "DELETE FROM run WHERE sandbox=?1 AND nth<=?2 AND state<>'running'") \
    X(RUN_ADD, "INSERT INTO run(id,what,sandbox,nth,tenant,generation,command,state,began_ms,ended_ms,begin_seq,end_seq)" \
        " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)") \
    X(RUN_GET, "SELECT sandbox,generation,command FROM run WHERE id=?1") \
    X(RUN_END, "UPDATE run SET state=?2,ended_ms=?3,end_seq=?4 WHERE id=?1 AND state='running'") \
    SQL_RUN_STATEMENTS(X) \
    SQL_EGRESS_STATEMENTS(X) \
    SQL_IDLE_STATEMENTS(X) \
    X(RUN_STARTED, "UPDATE run SET what=?3,state=?4,ended_ms=?5,end_seq=?6 WHERE sandbox=?1 AND generation=?2" \
        " AND what='start' AND state='running'") \
    X(RUNS_OPEN, "SELECT id FROM run WHERE state='running' AND what='command' AND (?1='' OR sandbox=?1) AND id>?2" \
        " ORDER BY id LIMIT 256") \
    X(RUN_OLD, "DELETE FROM run WHERE id IN (SELECT id FROM run WHERE state<>'running' AND ended_ms<=?1 LIMIT ?2)") \
    X(BLOB_ADD, "INSERT INTO blob(tenant,sha256,used_ms,size,sealed) VALUES(?1,?2,?3,?4,?5)" \
        " ON CONFLICT(tenant,sha256) DO UPDATE SET used_ms=?3,sealed=?5") \
    X(BLOB_GET, "SELECT sealed FROM blob WHERE tenant=?1 AND sha256=?2") \
    X(BLOBS_PAST, "DELETE FROM blob WHERE sha256<>?2 AND rowid IN (SELECT rowid FROM (SELECT rowid,sum(size)" \
        " OVER (ORDER BY used_ms DESC,rowid DESC) AS past FROM blob WHERE tenant=?1) WHERE past>?3)") \
    X(BLOBS_OLD, "DELETE FROM blob WHERE rowid IN (SELECT rowid FROM blob WHERE used_ms<=?1 LIMIT ?2)") \
    X(LEASE_GET, "SELECT " SQL_LEASE_COLUMNS " FROM lease WHERE id=?1") \
    X(LEASE_STUB, "SELECT " SQL_LEASE_COLUMNS " FROM lease WHERE sandbox=?1 AND state='live' AND created_by=?2" \
        " AND credential=?3 AND meaning=?4 ORDER BY created_ms DESC LIMIT 1") \
    X(LEASE_ALL, "SELECT " SQL_LEASE_COLUMNS " FROM lease ORDER BY created_ms,id") \
    X(LEASE_COUNT, "SELECT count(*) FROM lease") \
    X(LEASE_BYTES, "SELECT coalesce(sum(length(layers)),0) FROM lease") \
    X(LEASE_COUNT_LIVE, "SELECT count(*) FROM lease WHERE sandbox=?1 AND state='live'") \
    X(LEASE_COUNT_TAKEN, "SELECT count(*) FROM lease WHERE sandbox=?1 AND created_by=?2") \
    X(LEASE_ADD, "INSERT INTO lease(id,parent,sandbox,session,generation,credential,meaning,format,tag,text_sha256," \
        "layers,state,created_ms,created_by,expires_ms) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,'live',?12,?13,?14)") \
    X(LEASE_NARROW, "UPDATE lease SET layers=?2,expires_ms=?3 WHERE id=?1 AND state='live'") \
    X(LEASE_CAP, "WITH RECURSIVE t(id) AS (SELECT ?1 UNION SELECT l.id FROM lease l JOIN t ON l.parent=t.id)" \
        " UPDATE lease SET expires_ms=?2 WHERE state='live' AND expires_ms>?2 AND id IN (SELECT id FROM t)") \
    X(LEASE_END, "UPDATE lease SET state=?2,ended_ms=coalesce(ended_ms,?3),how=?4 WHERE id=?1") \
    X(LEASE_TREE, "WITH RECURSIVE t(id) AS (SELECT ?1 UNION SELECT l.id FROM lease l JOIN t ON l.parent=t.id)" \
        " SELECT l.id FROM lease l JOIN t ON l.id=t.id WHERE l.state='live' LIMIT 256") \
    X(LEASE_OF_SANDBOX, "SELECT id FROM lease WHERE sandbox=?1 AND state='live' LIMIT 256") \
    X(LEASE_DUE, "SELECT id FROM lease WHERE state='live' AND expires_ms<=?1 LIMIT 256") \
    X(LEASE_OLD, "DELETE FROM lease WHERE state<>'live' AND (ended_ms<=?1 OR (created_by=?3 AND ended_ms<=?2))" \
        " AND id NOT IN (SELECT parent FROM lease WHERE parent IS NOT NULL)") \
    SQL_GATES_STATEMENTS(X) \
    SQL_PEOPLE_STATEMENTS(X) \
    SQL_TELL_STATEMENTS(X)
/* clang-format on */

enum sql_id {
#define X(name, text) SQL_##name,
    SQL_STATEMENTS(X)
#undef X
        SQL_COUNT
};

#endif
