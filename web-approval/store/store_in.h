/* How a row is asked for and read. */
#ifndef WEB_APPROVAL_STORE_IN_H
#define WEB_APPROVAL_STORE_IN_H

#include <sqlite3.h>

#include "web-approval/store/store.h"

/* A row being read: columns are taken one after the other, in the order of the SELECT. */
struct row {
    sqlite3_stmt *q;
    struct arena *a;
    int at;
    bool full; /* the arena is */
};
typedef int row_fn(void *ctx, struct row *r); /* not 0: no more of them */

/* -1: it cannot be asked now, and *e says why. */
int store_query(struct desk_store *s, const char *sql, sqlite3_stmt **q, struct err *e) MUSTCHECK;
void store_bind(sqlite3_stmt *q, const char *name, struct span v);
void store_bind_u64(sqlite3_stmt *q, const char *name, uint64_t v);
/* Each row to fn, its texts in the arena; q is over then. */
int store_walk(struct desk_store *s, sqlite3_stmt *q, struct arena *a, row_fn *fn, void *ctx,
               struct err *e) MUSTCHECK;
/* The next column. */
struct span row_text(struct row *r);
uint64_t row_number(struct row *r);

/* A ticket, and how its rows are walked through. Listed: what a row of a list shows, groups and glances compare;
 * hundreds are read at once. */
#define TICKET_LISTED                                                                                                \
    "id, state, sandbox, session, tenant, method, scheme, host, port, path, query, fields_json, body_size, "         \
    "op, effect, resource, credential, code, rule_id, summary, facts_json, agent_reason, repeats, created_ms, "      \
    "expires_ms, coalesce(waits, 0), coalesce(since_ms, 0), coalesce(until_ms, 0), "                                 \
    "EXISTS (SELECT 1 FROM later WHERE later.ticket = id), "                                                         \
    "coalesce(looker, ''), coalesce(looks_since_ms, 0), coalesce(looks_until_ms, 0), "                               \
    "coalesce((SELECT min(nullif(e.since_ms, 0)) FROM escalation e WHERE e.ticket = ticket.id), 0)"
#define TICKET_COLUMNS                                                                                               \
    TICKET_LISTED ", body_sha256, digest, rule_file, rule_line, policy, approve_by, dialect, reason_required, "      \
                  "decided_ms, decided_by, decided_channel, decided_reason, claimed_ms, ended_ms, status, "          \
                  "bytes_out, bytes_in, delivered, quorum, self_approval, step_up, diff, "                           \
                  "(SELECT count(*) FROM gate WHERE gate.ticket = ticket.id)"
#define TICKETS                                                                                                      \
    "ticket LEFT JOIN asker ON asker.ticket = ticket.id LEFT JOIN looking ON looking.ticket = ticket.id AND "        \
    "ticket.state = 'pending' AND (julianday('now') - 2440587.5) * 86400000.0 BETWEEN looks_since_ms - 2000 AND "    \
    "looks_until_ms"
/* listed: of TICKET_LISTED; else of TICKET_COLUMNS. */
int store_tickets(struct desk_store *s, bool listed, sqlite3_stmt *q, struct arena *a, desk_store_ticket_fn *fn,
                  void *ctx, struct err *e) MUSTCHECK;

#endif
