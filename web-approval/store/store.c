#include "web-approval/store/store_in.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/sqlite/read.h"
#include "common/time/clock.h"

enum { PROGRESS_STEPS = 1000 };

struct desk_store {
    const char *path;
    sqlite3 *db;
    uint64_t deadline;
};

static int too_long(void *arg)
{
    const struct desk_store *s = arg;
    return clock_ms(CLOCK_MONOTONIC) > s->deadline;
}

/* Run by root, SQLite gives a shared-memory file to the database's owner, also one it only reads. */
static int leave_owner(int fd, uid_t u, gid_t g)
{
    return 0;
}

struct desk_store *desk_store_new(const char *path)
{
    struct desk_store *s = calloc(1, sizeof(*s));
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

    if (vfs && vfs->iVersion >= 3)
        (void)vfs->xSetSystemCall(vfs, "fchown", (sqlite3_syscall_ptr)leave_owner);
    if (s)
        s->path = path;
    return s;
}

static void store_close(struct desk_store *s)
{
    (void)sqlite3_close_v2(s->db);
    s->db = NULL;
}

void desk_store_free(struct desk_store **s)
{
    if (!*s)
        return;
    store_close(*s);
    free(*s);
    *s = NULL;
}

/* Without a ledger that has the store open, its log cannot be read by somebody who may not write. */
static int unreadable(struct desk_store *s, int rc, struct err *e)
{
    bool ledger = (rc & 0xff) == SQLITE_READONLY || (rc & 0xff) == SQLITE_CANTOPEN;
    (void)err_set(e, "the store cannot be read now: %s",
                  ledger                   ? "the ledger is not running; it is started again by itself"
                  : rc == SQLITE_INTERRUPT ? "it took too long"
                                           : sqlite3_errmsg(s->db));
    store_close(s);
    return -1;
}

static int store_open(struct desk_store *s, struct err *e)
{
    if (s->db)
        return 0;
    int rc =
        sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(s->db, "PRAGMA query_only=1; PRAGMA trusted_schema=0; PRAGMA temp_store=2;", NULL, NULL,
                          NULL);
    if (rc != SQLITE_OK)
        return unreadable(s, rc, e);
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_busy_timeout(s->db, 200);
    sqlite3_progress_handler(s->db, PROGRESS_STEPS, too_long, s);
    return 0;
}

int store_query(struct desk_store *s, const char *sql, sqlite3_stmt **q, struct err *e)
{
    if (store_open(s, e) != 0)
        return -1;
    s->deadline = clock_ms(CLOCK_MONOTONIC) + STORE_MS;
    int rc = db_read_prepare(s->db, sql, q);
    /* No such table: the ledger is still making it; another file may be there next time. */
    return rc == SQLITE_OK ? 0 : unreadable(s, rc, e);
}

void store_bind(sqlite3_stmt *q, const char *name, struct span v)
{
    int i = sqlite3_bind_parameter_index(q, name);
    if (i > 0)
        (void)sqlite3_bind_text64(q, i, v.n ? (const char *)v.p : "", v.n, SQLITE_STATIC, SQLITE_UTF8);
}

void store_bind_u64(sqlite3_stmt *q, const char *name, uint64_t v)
{
    (void)sqlite3_bind_int64(q, sqlite3_bind_parameter_index(q, name), (sqlite3_int64)v);
}

int store_walk(struct desk_store *s, sqlite3_stmt *q, struct arena *a, row_fn *fn, void *ctx, struct err *e)
{
    struct row r = {.q = q, .a = a};
    int rc, end = 0;

    while ((rc = db_read_step(q)) == SQLITE_ROW && end == 0) {
        r.at = 0;
        end = fn(ctx, &r);
        if (r.full)
            break;
    }
    if (r.full) {
        (void)sqlite3_finalize(q);
        return err_set(e, "the answer is larger than the desk takes; ask for fewer rows");
    }
    (void)sqlite3_finalize(q);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? 0 : unreadable(s, rc, e);
}

struct span row_text(struct row *r)
{
    int i = r->at++;
    const void *p =
        sqlite3_column_type(r->q, i) == SQLITE_BLOB ? sqlite3_column_blob(r->q, i) : sqlite3_column_text(r->q, i);
    size_t n = (size_t)sqlite3_column_bytes(r->q, i);
    if (!p || n == 0)
        return SPAN_NONE;
    struct span s = arena_copy(r->a, span_of(p, n));
    r->full |= !s.p;
    return s;
}

static bool is_null(const struct row *r)
{
    return sqlite3_column_type(r->q, r->at) == SQLITE_NULL;
}

uint64_t row_number(struct row *r)
{
    sqlite3_int64 v = sqlite3_column_int64(r->q, r->at++);
    return v < 0 ? 0 : (uint64_t)v;
}

/* --- tickets -------------------------------------------------------------- */

static void ticket_listed(struct row *r, struct ticket *t)
{
    t->id = row_text(r);
    t->state = row_text(r);
    t->sandbox = row_text(r);
    t->session = row_text(r);
    t->tenant = row_text(r);
    t->method = row_text(r);
    t->scheme = row_text(r);
    t->host = row_text(r);
    t->port = row_number(r);
    t->path = row_text(r);
    t->has_query = !is_null(r);
    t->query = row_text(r);
    t->fields_json = row_text(r);
    t->body_size = row_number(r);
    t->op = row_text(r);
    t->effect = row_text(r);
    t->resource = row_text(r);
    t->credential = row_text(r);
    t->code = row_text(r);
    t->rule_id = row_text(r);
    t->summary = row_text(r);
    t->facts_json = row_text(r);
    t->agent_reason = row_text(r);
    t->repeats = row_number(r);
    t->created_ms = row_number(r);
    t->expires_ms = row_number(r);
    t->asker.waits = row_number(r) != 0;
    t->asker.since_ms = row_number(r);
    t->asker.until_ms = row_number(r);
    t->asker.later = row_number(r) != 0;
    t->looking.by = row_text(r);
    t->looking.since_ms = row_number(r);
    t->looking.until_ms = row_number(r);
    t->escalated_ms = row_number(r);
}

static void ticket_rest(struct row *r, struct ticket *t)
{
    t->body_sha256 = row_text(r);
    t->digest = row_text(r);
    t->rule_file = row_text(r);
    t->rule_line = row_number(r);
    t->policy = row_text(r);
    t->approve_by = row_text(r);
    t->dialect = row_text(r);
    t->reason_required = row_number(r) != 0;
    t->decided_ms = row_number(r);
    t->decided_by = row_text(r);
    t->decided_channel = row_text(r);
    t->decided_reason = row_text(r);
    t->claimed_ms = row_number(r);
    t->ended_ms = row_number(r);
    t->has_outcome = !is_null(r);
    t->status = row_number(r);
    t->bytes_out = row_number(r);
    t->bytes_in = row_number(r);
    t->delivered = row_number(r) != 0;
    t->quorum = row_number(r);
    t->self_approval = row_number(r);
    t->step_up = row_number(r);
    t->diff = row_number(r);
    t->gates = row_number(r);
}

static void ticket_row(struct row *r, bool listed, struct ticket *t)
{
    *t = (struct ticket){0};
    ticket_listed(r, t);
    if (!listed)
        ticket_rest(r, t);
}

struct ticket_walk {
    desk_store_ticket_fn *fn;
    void *ctx;
    bool listed;
};

static int ticket_step(void *ctx, struct row *r)
{
    struct ticket_walk *w = ctx;
    struct ticket t;
    ticket_row(r, w->listed, &t);
    return r->full ? 1 : w->fn(w->ctx, &t);
}

int store_tickets(struct desk_store *s, bool listed, sqlite3_stmt *q, struct arena *a, desk_store_ticket_fn *fn,
                  void *ctx, struct err *e)
{
    struct ticket_walk w = {fn, ctx, listed};
    return store_walk(s, q, a, ticket_step, &w, e);
}

int desk_store_tickets(struct desk_store *s, const struct ticket_filter *f, struct arena *a, desk_store_ticket_fn *fn,
                       void *ctx, struct err *e)
{
    struct ticket_walk w = {fn, ctx, false};
    sqlite3_stmt *q;

    if (store_query(s,
                    "SELECT " TICKET_COLUMNS " FROM " TICKETS " WHERE (:state = '' OR state = :state OR "
                    "(:state = 'open' AND state IN ('pending', 'approved', 'executing')) OR "
                    "(:state = 'decided' AND state <> 'pending')) "
                    "AND (:after = '' OR (created_ms, id) < (SELECT created_ms, id FROM ticket WHERE id = :after)) "
                    "AND (:prefix = '' OR substr(id, 1, length(:prefix)) = :prefix) "
                    "AND (:session = '' OR session = :session) AND (:tenant = '' OR tenant = :tenant) "
                    "ORDER BY created_ms DESC, id DESC LIMIT :limit",
                    &q, e) != 0)
        return -1;
    store_bind(q, ":state", f->state);
    store_bind(q, ":after", f->after);
    store_bind(q, ":prefix", f->prefix);
    store_bind(q, ":session", f->session);
    store_bind(q, ":tenant", f->tenant);
    store_bind_u64(q, ":limit", f->limit < STORE_ROWS_MAX ? f->limit : STORE_ROWS_MAX);
    return store_walk(s, q, a, ticket_step, &w, e);
}

int desk_store_like(struct desk_store *s, const struct ticket *t, bool waiting, size_t max, struct arena *a,
                    desk_store_ticket_fn *fn, void *ctx, struct err *e)
{
    struct ticket_walk w = {fn, ctx, false};
    sqlite3_stmt *q;

    if (store_query(
            s,
            "SELECT " TICKET_COLUMNS " FROM " TICKETS " WHERE id IN (SELECT id FROM ticket WHERE "
            "(:waiting AND state = 'pending') OR (NOT :waiting AND state IN ('approved', 'executing', 'done')) "
            "ORDER BY created_ms DESC LIMIT :back) AND tenant = :tenant AND host = :host AND port = :port "
            "AND method = :method AND op = :op AND id <> :id AND (NOT :waiting OR sandbox = :sandbox) "
            "ORDER BY created_ms DESC LIMIT :max",
            &q, e) != 0)
        return -1;
    store_bind_u64(q, ":waiting", waiting);
    store_bind_u64(q, ":back", STORE_LOOKED_BACK);
    store_bind_u64(q, ":port", t->port);
    store_bind_u64(q, ":max", max);
    store_bind(q, ":tenant", t->tenant);
    store_bind(q, ":host", t->host);
    store_bind(q, ":method", t->method);
    store_bind(q, ":op", t->op);
    store_bind(q, ":id", t->id);
    store_bind(q, ":sandbox", t->sandbox);
    return store_walk(s, q, a, ticket_step, &w, e);
}

struct ticket_one {
    struct ticket *t;
    int found;
};

static int ticket_first(void *ctx, struct row *r)
{
    struct ticket_one *one = ctx;
    ticket_row(r, false, one->t);
    one->found = 1;
    return 0;
}

int desk_store_ticket(struct desk_store *s, struct span id, struct arena *a, struct ticket *t, struct err *e)
{
    struct ticket_one one = {t, 0};
    sqlite3_stmt *q;

    if (store_query(s, "SELECT " TICKET_COLUMNS " FROM " TICKETS " WHERE id = :id", &q, e) != 0)
        return -1;
    store_bind(q, ":id", id);
    return store_walk(s, q, a, ticket_first, &one, e) == 0 ? one.found : -1;
}

static int number_first(void *ctx, struct row *r)
{
    *(uint64_t *)ctx = row_number(r);
    return 0;
}

static int one_number(struct desk_store *s, const char *sql, uint64_t *n, struct err *e)
{
    sqlite3_stmt *q;
    *n = 0;
    return store_query(s, sql, &q, e) != 0 ? -1 : store_walk(s, q, NULL, number_first, n, e);
}

static int text_first(void *ctx, struct row *r)
{
    *(struct span *)ctx = row_text(r);
    return 0;
}

int desk_store_frozen(struct desk_store *s, struct arena *a, struct span *json, struct err *e)
{
    sqlite3_stmt *q;

    *json = SPAN_NONE;
    return store_query(s, "SELECT value FROM meta WHERE key = 'frozen'", &q, e) != 0
               ? -1
               : store_walk(s, q, a, text_first, json, e);
}

int desk_store_ticket_exchange(struct desk_store *s, struct span id, struct arena *a, struct span *out, struct err *e)
{
    sqlite3_stmt *q;

    *out = SPAN_NONE;
    if (store_query(
            s, "SELECT exchange FROM audit WHERE ticket = :id AND exchange IS NOT NULL ORDER BY seq DESC LIMIT 1", &q,
            e) != 0)
        return -1;
    store_bind(q, ":id", id);
    return store_walk(s, q, a, text_first, out, e);
}

int desk_store_pending(struct desk_store *s, uint64_t *n, struct err *e)
{
    return one_number(s, "SELECT count(*) FROM ticket WHERE state = 'pending'", n, e);
}

int desk_store_oldest(struct desk_store *s, uint64_t *created_ms, struct err *e)
{
    return one_number(s, "SELECT coalesce(min(created_ms), 0) FROM ticket WHERE state = 'pending'", created_ms, e);
}

int desk_store_head(struct desk_store *s, uint64_t *seq, struct err *e)
{
    return one_number(s, "SELECT coalesce(max(seq), 0) FROM audit", seq, e);
}

/* --- sandboxes ------------------------------------------------------------ */

#define SANDBOX_COLUMNS                                                                                              \
    "name, session, owner, tenant, kind, labels_json, generation, created_ms, changed_ms, token_hash IS NOT NULL, "  \
    "(SELECT count(*) FROM ticket WHERE ticket.sandbox = name AND state = 'pending'), coalesce(token_hash, x''), "   \
    "reach, restored"

static void sandbox_row(struct row *r, struct sandbox_row *s)
{
    s->name = row_text(r);
    s->session = row_text(r);
    s->owner = row_text(r);
    s->tenant = row_text(r);
    s->kind = row_text(r);
    s->labels_json = row_text(r);
    s->generation = row_number(r);
    s->created_ms = row_number(r);
    s->changed_ms = row_number(r);
    s->has_token = row_number(r) != 0;
    s->pending = row_number(r);
    s->token_hash = row_text(r);
    s->reach = row_text(r);
    s->restored = row_number(r);
}

struct sandbox_walk {
    desk_store_sandbox_fn *fn;
    void *ctx;
};

static int sandbox_step(void *ctx, struct row *r)
{
    struct sandbox_walk *w = ctx;
    struct sandbox_row s;
    sandbox_row(r, &s);
    return r->full ? 1 : w->fn(w->ctx, &s);
}

int desk_store_sandboxes(struct desk_store *s, struct arena *a, desk_store_sandbox_fn *fn, void *ctx, struct err *e)
{
    struct sandbox_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (store_query(s, "SELECT " SANDBOX_COLUMNS " FROM sandbox ORDER BY name LIMIT 1000", &q, e) != 0)
        return -1;
    return store_walk(s, q, a, sandbox_step, &w, e);
}

struct sandbox_one {
    struct sandbox_row *s;
    int found;
};

static int sandbox_first(void *ctx, struct row *r)
{
    struct sandbox_one *one = ctx;
    sandbox_row(r, one->s);
    one->found = 1;
    return 0;
}

int desk_store_sandbox(struct desk_store *s, struct span name, struct arena *a, struct sandbox_row *r, struct err *e)
{
    struct sandbox_one one = {r, 0};
    sqlite3_stmt *q;

    if (store_query(s, "SELECT " SANDBOX_COLUMNS " FROM sandbox WHERE name = :name", &q, e) != 0)
        return -1;
    store_bind(q, ":name", name);
    return store_walk(s, q, a, sandbox_first, &one, e) == 0 ? one.found : -1;
}

/* --- tokens of the dock ---------------------------------------------------- */

struct token_walk {
    desk_store_token_fn *fn;
    void *ctx;
};

static int token_step(void *ctx, struct row *r)
{
    struct token_walk *w = ctx;
    struct token_row t = {.name = row_text(r), .tenant = row_text(r)};
    t.hash = row_text(r);
    t.note = row_text(r);
    t.created_ms = row_number(r);
    return r->full ? 1 : w->fn(w->ctx, &t);
}

int desk_store_tokens(struct desk_store *s, const char *kind, struct span scope, struct arena *a,
                      desk_store_token_fn *fn, void *ctx, struct err *e)
{
    struct token_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (store_query(s,
                    "SELECT name, tenant, coalesce(hash, x''), note, created_ms FROM token WHERE kind = :kind"
                    " AND scope = :scope ORDER BY name LIMIT 1000",
                    &q, e) != 0)
        return -1;
    store_bind(q, ":kind", span_str(kind));
    store_bind(q, ":scope", scope);
    return store_walk(s, q, a, token_step, &w, e);
}

/* --- leases --------------------------------------------------------------- */

struct lease_walk {
    desk_store_lease_fn *fn;
    void *ctx;
};

static int lease_step(void *ctx, struct row *r)
{
    struct lease_walk *w = ctx;
    struct lease_row l = {.id = row_text(r), .parent = row_text(r)};
    l.sandbox = row_text(r);
    l.session = row_text(r);
    l.credential = row_text(r);
    l.format = row_text(r);
    l.state = row_text(r);
    l.by = row_text(r);
    l.how = row_text(r);
    l.layers = row_text(r);
    l.generation = row_number(r);
    l.created_ms = row_number(r);
    l.expires_ms = row_number(r);
    l.ended_ms = row_number(r);
    return r->full ? 1 : w->fn(w->ctx, &l);
}

int desk_store_leases(struct desk_store *s, struct span sandbox, struct span prefix, struct arena *a,
                      desk_store_lease_fn *fn, void *ctx, struct err *e)
{
    struct lease_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (store_query(
            s,
            "SELECT id, coalesce(parent, ''), sandbox, session, credential, format, state, created_by, how, layers,"
            " generation, created_ms, expires_ms, coalesce(ended_ms, 0) FROM lease"
            " WHERE (:sandbox = '' OR sandbox = :sandbox) AND substr(id, 1, length(:prefix)) = :prefix"
            " ORDER BY created_ms DESC, id LIMIT 1000",
            &q, e) != 0)
        return -1;
    store_bind(q, ":sandbox", sandbox);
    store_bind(q, ":prefix", prefix);
    return store_walk(s, q, a, lease_step, &w, e);
}

/* --- audit ---------------------------------------------------------------- */

int desk_store_signed(struct desk_store *s, uint64_t *seq, struct err *e)
{
    return one_number(s, "SELECT coalesce(max(seq), 0) FROM checkpoint", seq, e);
}

struct audit_walk {
    desk_store_audit_fn *fn;
    void *ctx;
};

static int audit_step(void *ctx, struct row *r)
{
    struct audit_walk *w = ctx;
    struct audit_row row;
    row.seq = row_number(r);
    row.time_ms = row_number(r);
    row.kind = row_text(r);
    row.exchange = row_text(r);
    row.ticket = row_text(r);
    row.json = row_text(r);
    row.hash = row_text(r);
    row.key = row_text(r);
    row.signature = row_text(r);
    return r->full ? 1 : w->fn(w->ctx, &row);
}

int desk_store_audit(struct desk_store *s, uint64_t after, size_t limit, bool tickets_only, struct arena *a,
                     desk_store_audit_fn *fn, void *ctx, struct err *e)
{
    struct audit_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (store_query(
            s,
            "SELECT a.seq, a.time_ms, a.kind, a.exchange, a.ticket, a.json, a.hash, c.key, c.signature FROM audit a "
            "LEFT JOIN checkpoint c ON c.seq = a.seq WHERE a.seq > :after AND "
            "(:some = 0 OR (a.ticket IS NOT NULL AND substr(a.kind, 1, 7) = 'ticket-')) ORDER BY a.seq LIMIT :limit",
            &q, e) != 0)
        return -1;
    store_bind_u64(q, ":after", after);
    store_bind_u64(q, ":some", tickets_only);
    store_bind_u64(q, ":limit", limit < STORE_ROWS_MAX ? limit : STORE_ROWS_MAX);
    return store_walk(s, q, a, audit_step, &w, e);
}
