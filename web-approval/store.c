#include "web-approval/store.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/time/clock.h"

enum { PROGRESS_STEPS = 1000 };

struct desk_store {
    const char *path;
    sqlite3 *db;
    uint64_t deadline;
};

/* A row being read: columns are taken one after the other, in the order of the SELECT. */
struct row {
    sqlite3_stmt *q;
    struct arena *a;
    int at;
    bool full; /* the arena is */
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

static int query(struct desk_store *s, const char *sql, sqlite3_stmt **q, struct err *e)
{
    if (store_open(s, e) != 0)
        return -1;
    s->deadline = clock_ms(CLOCK_MONOTONIC) + STORE_MS;
    int rc = sqlite3_prepare_v2(s->db, sql, -1, q, NULL);
    /* No such table: the ledger is still making it; another file may be there next time. */
    return rc == SQLITE_OK ? 0 : unreadable(s, rc, e);
}

static void bind(sqlite3_stmt *q, const char *name, struct span v)
{
    int i = sqlite3_bind_parameter_index(q, name);
    if (i > 0)
        (void)sqlite3_bind_text64(q, i, v.n ? (const char *)v.p : "", v.n, SQLITE_STATIC, SQLITE_UTF8);
}

static void bind_u64(sqlite3_stmt *q, const char *name, uint64_t v)
{
    (void)sqlite3_bind_int64(q, sqlite3_bind_parameter_index(q, name), (sqlite3_int64)v);
}

typedef int row_fn(void *ctx, struct row *r);

/* Steps through; always finalises. 0, or -1. */
static int walk(struct desk_store *s, sqlite3_stmt *q, struct arena *a, row_fn *fn, void *ctx, struct err *e)
{
    struct row r = {.q = q, .a = a};
    int rc, end = 0;

    while ((rc = sqlite3_step(q)) == SQLITE_ROW && end == 0) {
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

static struct span text(struct row *r)
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

static uint64_t number(struct row *r)
{
    sqlite3_int64 v = sqlite3_column_int64(r->q, r->at++);
    return v < 0 ? 0 : (uint64_t)v;
}

/* --- tickets -------------------------------------------------------------- */

#define TICKET_COLUMNS                                                                                               \
    "id, state, sandbox, session, tenant, method, scheme, host, port, path, query, fields_json, body_size, "         \
    "body_sha256, digest, op, effect, resource, credential, code, rule_id, rule_file, rule_line, policy, summary, "  \
    "facts_json, agent_reason, approve_by, dialect, reason_required, repeats, created_ms, expires_ms, decided_ms, "  \
    "decided_by, decided_channel, decided_reason, claimed_ms, ended_ms, status, bytes_out, bytes_in, delivered"

static void ticket_life(struct row *r, struct ticket *t)
{
    t->reason_required = number(r) != 0;
    t->repeats = number(r);
    t->created_ms = number(r);
    t->expires_ms = number(r);
    t->decided_ms = number(r);
    t->decided_by = text(r);
    t->decided_channel = text(r);
    t->decided_reason = text(r);
    t->claimed_ms = number(r);
    t->ended_ms = number(r);
    t->has_outcome = !is_null(r);
    t->status = number(r);
    t->bytes_out = number(r);
    t->bytes_in = number(r);
    t->delivered = number(r) != 0;
}

static void ticket_row(struct row *r, struct ticket *t)
{
    *t = (struct ticket){0};
    t->id = text(r);
    t->state = text(r);
    t->sandbox = text(r);
    t->session = text(r);
    t->tenant = text(r);
    t->method = text(r);
    t->scheme = text(r);
    t->host = text(r);
    t->port = number(r);
    t->path = text(r);
    t->has_query = !is_null(r);
    t->query = text(r);
    t->fields_json = text(r);
    t->body_size = number(r);
    t->body_sha256 = text(r);
    t->digest = text(r);
    t->op = text(r);
    t->effect = text(r);
    t->resource = text(r);
    t->credential = text(r);
    t->code = text(r);
    t->rule_id = text(r);
    t->rule_file = text(r);
    t->rule_line = number(r);
    t->policy = text(r);
    t->summary = text(r);
    t->facts_json = text(r);
    t->agent_reason = text(r);
    t->approve_by = text(r);
    t->dialect = text(r);
    ticket_life(r, t);
}

struct ticket_walk {
    desk_store_ticket_fn *fn;
    void *ctx;
};

static int ticket_step(void *ctx, struct row *r)
{
    struct ticket_walk *w = ctx;
    struct ticket t;
    ticket_row(r, &t);
    return r->full ? 1 : w->fn(w->ctx, &t);
}

int desk_store_tickets(struct desk_store *s, const struct ticket_filter *f, struct arena *a, desk_store_ticket_fn *fn,
                       void *ctx, struct err *e)
{
    struct ticket_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (query(s,
              "SELECT " TICKET_COLUMNS " FROM ticket WHERE (:state = '' OR state = :state OR "
              "(:state = 'open' AND state IN ('pending', 'approved', 'executing')) OR "
              "(:state = 'decided' AND state <> 'pending')) "
              "AND (:after = '' OR (created_ms, id) < (SELECT created_ms, id FROM ticket WHERE id = :after)) "
              "AND (:prefix = '' OR substr(id, 1, length(:prefix)) = :prefix) "
              "ORDER BY created_ms DESC, id DESC LIMIT :limit",
              &q, e) != 0)
        return -1;
    bind(q, ":state", f->state);
    bind(q, ":after", f->after);
    bind(q, ":prefix", f->prefix);
    bind_u64(q, ":limit", f->limit < STORE_ROWS_MAX ? f->limit : STORE_ROWS_MAX);
    return walk(s, q, a, ticket_step, &w, e);
}

int desk_store_like(struct desk_store *s, const struct ticket *t, bool waiting, size_t max, struct arena *a,
                    desk_store_ticket_fn *fn, void *ctx, struct err *e)
{
    struct ticket_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (query(s,
              "SELECT " TICKET_COLUMNS " FROM ticket WHERE id IN (SELECT id FROM ticket WHERE "
              "(:waiting AND state = 'pending') OR (NOT :waiting AND state IN ('approved', 'executing', 'done')) "
              "ORDER BY created_ms DESC LIMIT :back) AND tenant = :tenant AND host = :host AND port = :port "
              "AND method = :method AND op = :op AND id <> :id AND (NOT :waiting OR sandbox = :sandbox) "
              "ORDER BY created_ms DESC LIMIT :max",
              &q, e) != 0)
        return -1;
    bind_u64(q, ":waiting", waiting);
    bind_u64(q, ":back", STORE_LOOKED_BACK);
    bind_u64(q, ":port", t->port);
    bind_u64(q, ":max", max);
    bind(q, ":tenant", t->tenant);
    bind(q, ":host", t->host);
    bind(q, ":method", t->method);
    bind(q, ":op", t->op);
    bind(q, ":id", t->id);
    bind(q, ":sandbox", t->sandbox);
    return walk(s, q, a, ticket_step, &w, e);
}

struct ticket_one {
    struct ticket *t;
    int found;
};

static int ticket_first(void *ctx, struct row *r)
{
    struct ticket_one *one = ctx;
    ticket_row(r, one->t);
    one->found = 1;
    return 0;
}

int desk_store_ticket(struct desk_store *s, struct span id, struct arena *a, struct ticket *t, struct err *e)
{
    struct ticket_one one = {t, 0};
    sqlite3_stmt *q;

    if (query(s, "SELECT " TICKET_COLUMNS " FROM ticket WHERE id = :id", &q, e) != 0)
        return -1;
    bind(q, ":id", id);
    return walk(s, q, a, ticket_first, &one, e) == 0 ? one.found : -1;
}

static int number_first(void *ctx, struct row *r)
{
    *(uint64_t *)ctx = number(r);
    return 0;
}

static int one_number(struct desk_store *s, const char *sql, uint64_t *n, struct err *e)
{
    sqlite3_stmt *q;
    *n = 0;
    return query(s, sql, &q, e) != 0 ? -1 : walk(s, q, NULL, number_first, n, e);
}

static int text_first(void *ctx, struct row *r)
{
    *(struct span *)ctx = text(r);
    return 0;
}

int desk_store_frozen(struct desk_store *s, struct arena *a, struct span *json, struct err *e)
{
    sqlite3_stmt *q;

    *json = SPAN_NONE;
    return query(s, "SELECT value FROM meta WHERE key = 'frozen'", &q, e) != 0 ? -1
                                                                               : walk(s, q, a, text_first, json, e);
}

int desk_store_ticket_exchange(struct desk_store *s, struct span id, struct arena *a, struct span *out, struct err *e)
{
    sqlite3_stmt *q;

    *out = SPAN_NONE;
    if (query(s, "SELECT exchange FROM audit WHERE ticket = :id AND exchange IS NOT NULL ORDER BY seq DESC LIMIT 1",
              &q, e) != 0)
        return -1;
    bind(q, ":id", id);
    return walk(s, q, a, text_first, out, e);
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
    "(SELECT count(*) FROM ticket WHERE ticket.sandbox = name AND state = 'pending')"

static void sandbox_row(struct row *r, struct sandbox_row *s)
{
    s->name = text(r);
    s->session = text(r);
    s->owner = text(r);
    s->tenant = text(r);
    s->kind = text(r);
    s->labels_json = text(r);
    s->generation = number(r);
    s->created_ms = number(r);
    s->changed_ms = number(r);
    s->has_token = number(r) != 0;
    s->pending = number(r);
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

    if (query(s, "SELECT " SANDBOX_COLUMNS " FROM sandbox ORDER BY name LIMIT 1000", &q, e) != 0)
        return -1;
    return walk(s, q, a, sandbox_step, &w, e);
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

    if (query(s, "SELECT " SANDBOX_COLUMNS " FROM sandbox WHERE name = :name", &q, e) != 0)
        return -1;
    bind(q, ":name", name);
    return walk(s, q, a, sandbox_first, &one, e) == 0 ? one.found : -1;
}

/* --- tokens of the dock ---------------------------------------------------- */

struct token_walk {
    desk_store_token_fn *fn;
    void *ctx;
};

static int token_step(void *ctx, struct row *r)
{
    struct token_walk *w = ctx;
    struct token_row t = {.name = text(r), .tenant = text(r)};
    t.hash = text(r);
    t.note = text(r);
    t.created_ms = number(r);
    return r->full ? 1 : w->fn(w->ctx, &t);
}

int desk_store_tokens(struct desk_store *s, const char *kind, struct span scope, struct arena *a,
                      desk_store_token_fn *fn, void *ctx, struct err *e)
{
    struct token_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (query(s,
              "SELECT name, tenant, coalesce(hash, x''), note, created_ms FROM token WHERE kind = :kind"
              " AND scope = :scope ORDER BY name LIMIT 1000",
              &q, e) != 0)
        return -1;
    bind(q, ":kind", span_str(kind));
    bind(q, ":scope", scope);
    return walk(s, q, a, token_step, &w, e);
}

/* --- leases --------------------------------------------------------------- */

struct lease_walk {
    desk_store_lease_fn *fn;
    void *ctx;
};

static int lease_step(void *ctx, struct row *r)
{
    struct lease_walk *w = ctx;
    struct lease_row l = {.id = text(r), .parent = text(r)};
    l.sandbox = text(r);
    l.session = text(r);
    l.credential = text(r);
    l.format = text(r);
    l.state = text(r);
    l.by = text(r);
    l.how = text(r);
    l.layers = text(r);
    l.generation = number(r);
    l.created_ms = number(r);
    l.expires_ms = number(r);
    l.ended_ms = number(r);
    return r->full ? 1 : w->fn(w->ctx, &l);
}

int desk_store_leases(struct desk_store *s, struct span sandbox, struct span prefix, struct arena *a,
                      desk_store_lease_fn *fn, void *ctx, struct err *e)
{
    struct lease_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (query(s,
              "SELECT id, coalesce(parent, ''), sandbox, session, credential, format, state, created_by, how, layers,"
              " generation, created_ms, expires_ms, coalesce(ended_ms, 0) FROM lease"
              " WHERE (:sandbox = '' OR sandbox = :sandbox) AND substr(id, 1, length(:prefix)) = :prefix"
              " ORDER BY created_ms DESC, id LIMIT 1000",
              &q, e) != 0)
        return -1;
    bind(q, ":sandbox", sandbox);
    bind(q, ":prefix", prefix);
    return walk(s, q, a, lease_step, &w, e);
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
    row.seq = number(r);
    row.time_ms = number(r);
    row.kind = text(r);
    row.exchange = text(r);
    row.ticket = text(r);
    row.json = text(r);
    row.hash = text(r);
    row.key = text(r);
    row.signature = text(r);
    return r->full ? 1 : w->fn(w->ctx, &row);
}

int desk_store_audit(struct desk_store *s, uint64_t after, size_t limit, bool tickets_only, struct arena *a,
                     desk_store_audit_fn *fn, void *ctx, struct err *e)
{
    struct audit_walk w = {fn, ctx};
    sqlite3_stmt *q;

    if (query(
            s,
            "SELECT a.seq, a.time_ms, a.kind, a.exchange, a.ticket, a.json, a.hash, c.key, c.signature FROM audit a "
            "LEFT JOIN checkpoint c ON c.seq = a.seq WHERE a.seq > :after AND "
            "(:some = 0 OR (a.ticket IS NOT NULL AND substr(a.kind, 1, 7) = 'ticket-')) ORDER BY a.seq LIMIT :limit",
            &q, e) != 0)
        return -1;
    bind_u64(q, ":after", after);
    bind_u64(q, ":some", tickets_only);
    bind_u64(q, ":limit", limit < STORE_ROWS_MAX ? limit : STORE_ROWS_MAX);
    return walk(s, q, a, audit_step, &w, e);
}

/* --- what ran ------------------------------------------------------------- */

struct run_walk {
    desk_store_run_fn *fn;
    void *ctx;
};
static int run_step(void *ctx, struct row *r)
{
    struct run_walk *w = ctx;
    struct run_row o;
    struct span *const texts[] = {&o.id,    &o.what,  &o.sandbox,    &o.tenant, &o.command,
                                  &o.state, &o.begin, &o.begin_hash, &o.end,    &o.end_hash};
    uint64_t *const numbers[] = {&o.generation, &o.began_ms, &o.ended_ms, &o.begin_seq, &o.end_seq};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        *texts[i] = text(r);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        *numbers[i] = number(r);
    return r->full ? 1 : w->fn(w->ctx, &o);
}

#define RUNS                                                                                                         \
    "SELECT r.id, r.what, r.sandbox, r.tenant, r.command, r.state, b.json, b.hash, e.json, e.hash, r.generation, "   \
    "r.began_ms, r.ended_ms, r.begin_seq, r.end_seq FROM run r LEFT JOIN audit b ON b.seq = r.begin_seq "            \
    "LEFT JOIN audit e ON e.seq = r.end_seq WHERE (:sandbox = '' OR r.sandbox = :sandbox) "                          \
    "AND substr(r.id, 1, length(:prefix)) = :prefix AND r.begin_seq > :after AND r.begin_seq < :before "

int desk_store_runs(struct desk_store *s, const struct run_filter *f, struct arena *a, desk_store_run_fn *fn,
                    void *ctx, struct err *e)
{
    struct run_walk w = {fn, ctx};
    sqlite3_stmt *q;
    if (query(s, f->newest ? RUNS "ORDER BY r.begin_seq DESC LIMIT :limit" : RUNS "ORDER BY r.begin_seq LIMIT :limit",
              &q, e) != 0)
        return -1;
    bind(q, ":sandbox", f->sandbox);
    bind(q, ":prefix", f->prefix);
    bind_u64(q, ":after", f->after);
    bind_u64(q, ":before", f->before);
    bind_u64(q, ":limit", f->limit);
    return walk(s, q, a, run_step, &w, e);
}

static int effect_step(void *ctx, struct row *r)
{
    struct run_effects *o = ctx;
    uint64_t sent = number(r);
    o->sent += sent;
    o->refused += !sent;
    if (sent && o->n < RUN_EFFECTS_NAMED)
        o->exchange[o->n++] = text(r);
    return r->full;
}

int desk_store_effects(struct desk_store *s, const struct run_row *of, struct arena *a, struct run_effects *o,
                       struct err *e)
{
    sqlite3_stmt *q;
    *o = (struct run_effects){.n = 0};
    if (query(s,
              "SELECT kind = 'intent', exchange FROM audit WHERE seq > :after AND seq < :before AND kind IN "
              "('intent', 'denied') "
              "AND json_extract(json, '$.sandbox') = :sandbox ORDER BY seq LIMIT :limit",
              &q, e) != 0)
        return -1;
    bind(q, ":sandbox", of->sandbox);
    bind_u64(q, ":after", of->begin_seq);
    bind_u64(q, ":before", of->end_seq ? of->end_seq : INT64_MAX);
    bind_u64(q, ":limit", RUN_EFFECTS_SEEN);
    return walk(s, q, a, effect_step, o, e);
}
