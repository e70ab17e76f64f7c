/* The statements of grants (schema_8.sql). */
#ifndef PROXY_LEDGER_STORE_GRANTS_SQL_GRANTS_H
#define PROXY_LEDGER_STORE_GRANTS_SQL_GRANTS_H

/* clang-format off */
#define SQL_GRANTS(X) \
    X(GRANT_SHAPE, "UPDATE ticket SET shape=?2,shape_json=?3,grant_uses=?4,grant_within_ms=?5," \
        "generation=(SELECT b.generation FROM sandbox b WHERE b.name=sandbox) WHERE id=?1") \
    X(GRANT_SHAPE_GET, "SELECT shape_json FROM ticket WHERE id=?1") \
    X(GRANT_FIT, "SELECT g.id,g.granted_by,g.reason,g.uses FROM ticket t JOIN sandbox b ON b.name=t.sandbox" \
        " JOIN grants g ON g.session=t.session AND g.shape=t.shape WHERE t.id=?1 AND t.state='pending'" \
        " AND g.state='live' AND g.uses<g.uses_max AND g.expires_ms>?2 AND g.expires_boot_ms>?3" \
        " AND g.created_ms<=?2 AND g.sandbox=t.sandbox AND g.tenant=t.tenant AND g.generation=t.generation" \
        " AND b.session=g.session AND b.tenant=g.tenant AND b.generation=g.generation AND g.terms=t.terms" \
        " AND g.policy=t.policy AND g.policy=coalesce(?4,g.policy) AND g.credential=t.credential AND g.host=t.host" \
        " AND g.port=t.port AND NOT EXISTS(SELECT 1 FROM gate WHERE ticket=t.id) ORDER BY g.expires_ms,g.id LIMIT 1") \
    X(GRANT_USE, "UPDATE grants SET uses=uses+1,state=CASE WHEN uses+1=uses_max THEN 'used' ELSE 'live' END," \
        "ended_ms=CASE WHEN uses+1=uses_max THEN ?3 END WHERE id=?1 AND state='live' AND uses=?2 AND uses<uses_max") \
    X(GRANT_USED, "UPDATE ticket SET grant_id=?1 WHERE id=?2") \
    X(GRANT_ADD, "INSERT INTO grants(id,ticket,sandbox,session,tenant,generation,shape,terms,policy,credential,host,port," \
        "uses_max,state,created_ms,expires_ms,expires_boot_ms,granted_by,channel,reason)" \
        " SELECT ?2,t.id,t.sandbox,t.session,t.tenant,t.generation,t.shape,t.terms,t.policy,t.credential,t.host,t.port," \
        "?3,'live',?5,?5+?4,?6+?4,?7,?8,?9 FROM ticket t JOIN sandbox b ON b.name=t.sandbox AND b.session=t.session" \
        " AND b.tenant=t.tenant AND b.generation=t.generation WHERE t.id=?1 AND t.shape IS NOT NULL AND t.terms IS NOT NULL" \
        " AND ?3<=t.grant_uses AND ?4<=t.grant_within_ms" \
        " AND (SELECT count(*) FROM grants g WHERE g.sandbox=t.sandbox AND g.state='live')<?10") \
    X(GRANT_END, "UPDATE grants SET state=?2,ended_ms=?3,how=?4 WHERE id=?1 AND state='live'") \
    X(GRANTS_OF_SANDBOX, "SELECT id FROM grants WHERE sandbox=?1 AND state='live' LIMIT 64") \
    X(GRANTS_BY, "SELECT id FROM grants WHERE granted_by=?1 AND state='live' LIMIT 64") \
    X(GRANTS_LIVE, "SELECT id FROM grants WHERE state='live' LIMIT 64") \
    X(GRANTS_DUE, "UPDATE grants SET state='expired',ended_ms=?1 WHERE state='live'" \
        " AND (expires_ms<=?1 OR expires_boot_ms<=?2)") \
    X(GRANTS_OLD, "DELETE FROM grants WHERE ended_ms<?1")
/* clang-format on */

#endif
