/* Leases: who has which, and what became of them. */
#include "proxy/lease/lease_json.h"
#include "proxy/ledger/store/grants/grants.h"

static int read_row(struct store *s, sqlite3_stmt *q, struct wire_lease *l)
{
    struct msg_in m;
    *l = (struct wire_lease){.sandbox = store_copy(s, db_col(q, 2)),
                             .session = store_copy(s, db_col(q, 3)),
                             .generation = db_col_int(q, 4),
                             .credential = store_copy(s, db_col(q, 5)),
                             .format = lease_format_named(db_col(q, 7)),
                             .tag = store_copy(s, db_col(q, 8)),
                             .created_ms = db_col_int(q, 12),
                             .by = store_copy(s, db_col(q, 13)),
                             .expires_ms = db_col_int(q, 14),
                             .ended_ms = db_col_null(q, 15) ? 0 : db_col_int(q, 15),
                             .how = store_copy(s, db_col(q, 16))};
    for (int state = LEASE_LIVE; state <= LEASE_LEAKED; state++)
        if (span_eq(db_col(q, 11), span_str(lease_state_name((enum lease_state)state))))
            l->state = (enum lease_state)state;
    bool whole =
        id_parse(db_col(q, 0), &l->id) == 0 && (db_col_null(q, 1) || id_parse(db_col(q, 1), &l->parent) == 0);
    m = msg_in(store_copy(s, db_col(q, 10)));
    whole = whole && db_col_digest(q, 6, &l->meaning) && db_col_digest(q, 9, &l->text);
    if (!whole || wire_get_layers(&m, l->layer, &l->nlayers) != 0 || msg_end(&m) != 0 || l->format == LEASE_NONE)
        return db_doom(&s->db, "a lease in the store is damaged");
    return 0;
}

/* 1 found, 0 not, -1. */
static int find(struct store *s, const struct id *id, struct wire_lease *l)
{
    char text[ID_TEXT + 1];
    sqlite3_stmt *q = db_stmt(&s->db, SQL_LEASE_GET);
    if (q == NULL)
        return -1;
    id_text(id, text);
    db_text(q, 1, span_of(text, ID_TEXT));
    enum db_result got = db_step(&s->db, q);
    int found = got == DB_ROW ? (read_row(s, q, l) == 0 ? 1 : -1) : got == DB_DONE ? 0 : -1;
    sqlite3_reset(q);
    return found;
}

static void kv_id(struct jsonw *w, const char *key, const struct id *id)
{
    char text[ID_TEXT + 1];
    if (id_is_none(id))
        return;
    id_text(id, text);
    jsonw_kv(w, key, span_of(text, ID_TEXT));
}

static void begin_record(struct audit *a, struct store *s, const char *kind, const uint64_t *xid,
                         const struct wire_lease *l)
{
    audit_begin(a, s, kind, NULL, xid, SPAN_NONE);
    kv_id(&a->w, "lease", &l->id);
    kv_id(&a->w, "parent", &l->parent);
    jsonw_kv(&a->w, "sandbox", l->sandbox);
    jsonw_kv(&a->w, "session", l->session);
    jsonw_kv_u64(&a->w, "generation", l->generation);
    jsonw_kv(&a->w, "credential", l->credential);
}

static int end_record(struct audit *a, struct store *s, const struct wire_lease *l)
{
    if (audit_end(a) != 0)
        return -1;
    if (s->c.lease != NULL)
        s->c.lease(s->c.arg, s->now.seq, l);
    return 0;
}

/* Of the sandbox as it is now. 1, 0 there is none, or it has ended, -1. */
static int whose(struct store *s, struct wire_lease *l)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_SANDBOX_GET);
    if (q == NULL)
        return -1;
    db_text(q, 1, l->sandbox);
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW && (span_eq(db_col(q, 4), SPAN("ended")) || span_eq(db_col(q, 4), SPAN("idle"))))
        got = DB_DONE;
    if (got == DB_ROW) {
        l->session = store_copy(s, db_col(q, 1));
        l->generation = db_col_int(q, 5);
    }
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : got == DB_ROW;
}

static int count(struct store *s, enum sql_id id, struct span sandbox, uint64_t *n)
{
    sqlite3_stmt *q = db_stmt(&s->db, id);
    if (q == NULL)
        return -1;
    if (sandbox.n)
        db_text(q, 1, sandbox);
    if (id == SQL_LEASE_COUNT_TAKEN)
        db_text(q, 2, SPAN(LEASE_BY_ANSWER));
    enum db_result got = db_step(&s->db, q);
    *n = got == DB_ROW ? db_col_int(q, 0) : 0;
    sqlite3_reset(q);
    return got == DB_ROW ? 0 : -1;
}

/* What one that came from another has of that one: everything but its own layer. One that took the place of a token
 * in an answer names its own credential, and has its sandbox and its end of the lease that was asked with. */
static int inherit(struct store *s, struct wire_lease *l, const char **why)
{
    struct wire_lease up, above;
    size_t depth = 2;
    int found = find(s, &l->parent, &up);
    if (found == 1 && up.state != LEASE_LIVE)
        found = 0;
    if (found != 1) {
        *why = "the lease it is to come from does not live any more";
        return found;
    }
    if (l->credential.n == 0 && span_eq(up.by, SPAN(LEASE_BY_ANSWER))) { /* its token is found by its own id alone */
        *why = "no lease can come from one of a token in an answer; narrow that one itself";
        return 0;
    }
    for (above = up; !id_is_none(&above.parent); depth++)
        if (depth == LEASE_DEPTH_MAX || find(s, &above.parent, &above) != 1)
            break;
    if (!id_is_none(&above.parent)) {
        *why = "a lease can come from one that came from another only so many times";
        return s->db.doomed ? -1 : 0;
    }
    if (l->credential.n > 0 && !span_eq(l->sandbox, up.sandbox)) {
        *why = "the lease it was asked for with is another sandbox's";
        return 0;
    }
    if (l->credential.n == 0) {
        l->credential = up.credential;
        l->meaning = up.meaning;
        l->format = up.format;
    }
    l->sandbox = up.sandbox;
    if (l->expires_ms == 0 || l->expires_ms > up.expires_ms)
        l->expires_ms = up.expires_ms;
    return 1;
}

/* Can its bounds be kept, by themselves and with those of all others? *why: NULL, or not. */
static int check_layers(struct store *s, const struct wire_lease *l, const char **why)
{
    struct dynbuf b;
    uint64_t all = 0;
    *why = NULL;
    if (l->nlayers == 0)
        return 0;
    dynbuf_init(&b, LEASE_LAYERS_BYTES);
    wire_put_layers(&b, l->layer, l->nlayers);
    size_t own = b.n;
    bool over = !dynbuf_ok(&b);
    dynbuf_free(&b);
    if (over)
        *why = "its bounds are longer than can be kept; issue one with fewer";
    else if (count(s, SQL_LEASE_BYTES, SPAN_NONE, &all) != 0)
        return -1;
    else if (all + own > LEASES_LAYERS_BYTES)
        *why =
            "the bounds of all leases are longer than can be kept; revoke some, dead ones are forgotten after a day";
    return 0;
}

/* Tokens of answers come as often as their sandbox asks, and may end at once: its share counts dead ones too, so that
 * none fills the table for others. 1: one more fits, 0, -1. */
static int has_share(struct store *s, const struct wire_lease *l, uint64_t all)
{
    uint64_t taken = 0;
    if (!span_eq(l->by, SPAN(LEASE_BY_ANSWER)))
        return 1;
    if (all >= LEASES_TAKEN_EACH && count(s, SQL_LEASE_COUNT_TAKEN, l->sandbox, &taken) != 0)
        return -1;
    return all < LEASES_ANSWERS && taken < LEASES_TAKEN_EACH;
}

int store_lease_check(struct store *s, struct wire_lease *l, const char **why)
{
    uint64_t of_sandbox = 0, all = 0;
    *why = NULL;
    if (store_begin(s) != 0)
        return -1;
    if (!id_is_none(&l->parent)) {
        int ok = inherit(s, l, why);
        if (ok <= 0)
            return ok;
    }
    int known = whose(s, l);
    if (known == 0)
        *why = "there is no such sandbox, or it has ended";
    if (known <= 0)
        return known;
    if (count(s, SQL_LEASE_COUNT_LIVE, l->sandbox, &of_sandbox) != 0 ||
        count(s, SQL_LEASE_COUNT, SPAN_NONE, &all) != 0)
        return -1;
    int share = has_share(s, l, all);
    if (share < 0)
        return -1;
    l->created_ms = s->wall;
    if (l->expires_ms == 0)
        l->expires_ms = s->wall + LEASE_MS;
    if (l->expires_ms <= s->wall || l->expires_ms - s->wall > LEASE_MAX_MS)
        *why = "a lease ends in the future, and within seven days";
    else if (of_sandbox >= LEASES_EACH)
        *why = "this sandbox has as many leases as it may have; revoke some";
    else if (all >= LEASES_MAX)
        *why = "there are as many leases as can be kept; revoke some, dead ones are forgotten after a day";
    else if (share == 0)
        *why = "as many tokens of answers were taken as may be in ten minutes; wait";
    else if (l->nlayers > LEASE_LAYERS_MAX || l->format == LEASE_NONE)
        *why = "it has no form, or too many bounds";
    return *why == NULL ? check_layers(s, l, why) : 0;
}

int store_lease_stub(struct store *s, struct wire_lease *l, bool *there, const char **why)
{
    struct wire_lease last;
    uint64_t all = 0;
    *there = false;
    *why = NULL;
    if (store_begin(s) != 0)
        return -1;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_LEASE_STUB);
    if (q == NULL)
        return -1;
    db_text(q, 1, l->sandbox);
    db_text(q, 2, LEASE_STUB_BY);
    db_text(q, 3, l->credential);
    db_blob(q, 4, span_of(l->meaning.b, DIGEST_BYTES));
    enum db_result got = db_step(&s->db, q);
    int bad = got == DB_FAIL || (got == DB_ROW && read_row(s, q, &last) != 0);
    sqlite3_reset(q);
    if (!bad && got == DB_ROW) /* one that a person has narrowed is the last that it gets */
        *there = last.nlayers > 0 || last.expires_ms > s->wall + LEASE_STUB_MS / 5;
    if (*there)
        *l = last;
    if (bad || *there)
        return bad ? -1 : 0;
    l->by = LEASE_STUB_BY;
    l->expires_ms = s->wall + LEASE_STUB_MS;
    if (count(s, SQL_LEASE_COUNT, SPAN_NONE, &all) != 0)
        return -1;
    if (all >= LEASES_STUBS)
        *why =
            "there are so many leases that stubs get no new ones; revoke some, dead ones are forgotten after a day";
    return *why != NULL ? 0 : store_lease_check(s, l, why);
}

static int write_layers(struct store *s, sqlite3_stmt *q, int at, const struct wire_lease *l, struct dynbuf *b)
{
    dynbuf_init(b, LEASE_LAYERS_BYTES);
    wire_put_layers(b, l->layer, l->nlayers);
    if (!dynbuf_ok(b))
        return db_doom(&s->db, "a lease's bounds are too long");
    db_blob(q, at, dynbuf_span(b));
    return 0;
}

static int add(struct store *s, const struct wire_lease *l)
{
    char id[ID_TEXT + 1], parent[ID_TEXT + 1];
    struct dynbuf layers;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_LEASE_ADD);
    if (q == NULL)
        return -1;
    id_text(&l->id, id);
    id_text(&l->parent, parent);
    db_text(q, 1, span_of(id, ID_TEXT));
    if (!id_is_none(&l->parent))
        db_text(q, 2, span_of(parent, ID_TEXT));
    db_text(q, 3, l->sandbox);
    db_text(q, 4, l->session);
    db_int(q, 5, l->generation);
    db_text(q, 6, l->credential);
    db_blob(q, 7, span_of(l->meaning.b, DIGEST_BYTES));
    db_text(q, 8, span_str(lease_format_name(l->format)));
    db_text(q, 9, l->tag);
    db_blob(q, 10, span_of(l->text.b, DIGEST_BYTES));
    int bad = write_layers(s, q, 11, l, &layers);
    db_int(q, 12, l->created_ms);
    db_text(q, 13, l->by);
    db_int(q, 14, l->expires_ms);
    bad = bad != 0 ? bad : db_run(&s->db, q);
    dynbuf_free(&layers);
    return bad;
}

int store_lease_put(struct store *s, struct wire_lease *l, const char **why)
{
    struct audit a;
    if (store_lease_check(s, l, why) != 0)
        return -1;
    if (*why != NULL)
        return 0;
    l->state = LEASE_LIVE;
    if (id_is_none(&l->id) || l->tag.n != LEASE_TAG)
        return db_doom(&s->db, "a lease has no id or no tag");
    if (add(s, l) != 0)
        return -1;
    begin_record(&a, s, "lease-issued", NULL, l);
    jsonw_kv(&a.w, "by", l->by);
    jsonw_kv(&a.w, "format", span_str(lease_format_name(l->format)));
    jsonw_kv_u64(&a.w, "expires_ms", l->expires_ms);
    jsonw_key(&a.w, "layers");
    lease_json_layers(&a.w, l->layer, l->nlayers);
    return end_record(&a, s, l);
}

/* What came from it is dead with it, whatever it says itself: so that it ends here at that time, too. */
static int cap(struct store *s, const struct wire_lease *l)
{
    char text[ID_TEXT + 1];
    sqlite3_stmt *q = db_stmt(&s->db, SQL_LEASE_CAP);
    if (q == NULL)
        return -1;
    id_text(&l->id, text);
    db_text(q, 1, span_of(text, ID_TEXT));
    db_int(q, 2, l->expires_ms);
    return db_run(&s->db, q);
}

int store_lease_narrow(struct store *s, const struct id *id, const struct wire_layer *layer, uint64_t expires_ms,
                       struct span by, struct wire_lease *l, const char **why)
{
    char text[ID_TEXT + 1];
    struct dynbuf layers;
    struct audit a;
    *why = NULL;
    if (store_begin(s) != 0)
        return -1;
    int found = find(s, id, l);
    if (found == 0 || (found == 1 && l->state != LEASE_LIVE))
        *why = found == 0 ? "there is no such lease" : "this lease does not live any more";
    else if (found == 1 && l->nlayers == LEASE_LAYERS_MAX)
        *why = "this lease was narrowed as often as one can be; issue another one";
    if (found < 0 || *why != NULL)
        return found < 0 ? -1 : 0;
    l->layer[l->nlayers++] = *layer;
    int bad = check_layers(s, l, why);
    if (bad != 0 || *why != NULL) {
        l->nlayers--;
        return bad;
    }
    if (expires_ms > 0 && expires_ms < l->expires_ms)
        l->expires_ms = expires_ms;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_LEASE_NARROW);
    if (q == NULL)
        return -1;
    id_text(id, text);
    db_text(q, 1, span_of(text, ID_TEXT));
    bad = write_layers(s, q, 2, l, &layers);
    db_int(q, 3, l->expires_ms);
    bad = bad != 0 ? bad : db_run(&s->db, q);
    dynbuf_free(&layers);
    if (bad != 0 || cap(s, l) != 0)
        return -1;
    begin_record(&a, s, "lease-narrowed", NULL, l);
    jsonw_kv(&a.w, "by", by);
    jsonw_kv_u64(&a.w, "expires_ms", l->expires_ms);
    jsonw_key(&a.w, "layers");
    lease_json_layers(&a.w, layer, 1);
    return end_record(&a, s, l);
}

/* One of them: row, record, word to the judge. */
static int end_one(struct store *s, struct wire_lease *l, enum lease_state state, struct span by, struct span how)
{
    char text[ID_TEXT + 1];
    struct audit a;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_LEASE_END);
    if (q == NULL)
        return -1;
    l->state = state;
    l->ended_ms = l->ended_ms ? l->ended_ms : s->wall;
    l->how = how;
    id_text(&l->id, text);
    db_text(q, 1, span_of(text, ID_TEXT));
    db_text(q, 2, span_str(lease_state_name(state)));
    db_int(q, 3, s->wall);
    db_text(q, 4, how);
    if (db_run(&s->db, q) != 0)
        return -1;
    begin_record(&a, s, state == LEASE_EXPIRED ? "lease-expired" : "lease-revoked", NULL, l);
    jsonw_kv(&a.w, "by", by);
    jsonw_kv(&a.w, "how", how);
    return end_record(&a, s, l);
}

/* All that a query names, of which there are at most LEASES_EACH: of one sandbox, or for this second. */
static int end_all(struct store *s, enum sql_id id, struct span arg, enum lease_state state, struct span by,
                   struct span how)
{
    struct id ids[LEASES_EACH];
    size_t n = 0;
    sqlite3_stmt *q = db_stmt(&s->db, id);
    if (q == NULL)
        return -1;
    if (id == SQL_LEASE_DUE)
        db_int(q, 1, s->wall);
    else
        db_text(q, 1, arg);
    while (n < LEASES_EACH && db_step(&s->db, q) == DB_ROW)
        if (id_parse(db_col(q, 0), &ids[n]) == 0)
            n++;
    sqlite3_reset(q);
    if (n > 0 && db_begin(&s->db) != 0)
        return -1;
    for (size_t i = 0; i < n && !s->db.doomed; i++) {
        struct wire_lease l;
        if (find(s, &ids[i], &l) != 1 || end_one(s, &l, state, by, how) != 0)
            return -1;
    }
    return s->db.doomed ? -1 : 0;
}

int store_lease_revoke(struct store *s, const struct id *id, struct span by, struct span reason, const char **why)
{
    char text[ID_TEXT + 1];
    struct wire_lease l;
    *why = NULL;
    if (store_begin(s) != 0)
        return -1;
    int found = find(s, id, &l);
    if (found == 0)
        *why = "there is no such lease";
    if (found <= 0)
        return found;
    id_text(id, text);
    return end_all(s, SQL_LEASE_TREE, span_of(text, ID_TEXT), LEASE_REVOKED, by,
                   reason.n ? reason : SPAN("an operator revoked it"));
}

static int write_leak(struct store *s, const struct wire_lease *l, const struct lease_leak *leak)
{
    struct audit a;
    begin_record(&a, s, "lease-leaked", &leak->xid, l);
    jsonw_kv(&a.w, "used_by", leak->sandbox);
    jsonw_kv(&a.w, "used_session", leak->session);
    jsonw_kv(&a.w, "host", leak->host);
    jsonw_kv_u64(&a.w, "port", leak->port);
    jsonw_kv(&a.w, "how", leak->what);
    jsonw_kv_bool(&a.w, "freeze", leak->freeze);
    return end_record(&a, s, l);
}

int store_lease_leaked(struct store *s, const struct lease_leak *leak)
{
    static const struct span frozen = {(const uint8_t *)"a lease was used elsewhere than it was given to", 47};
    char text[ID_TEXT + 1];
    struct wire_lease l;
    sqlite3_stmt *q;
    if (store_begin(s) != 0)
        return -1;
    int found = find(s, &leak->lease, &l);
    if (found <= 0 || l.state == LEASE_LEAKED)
        return found < 0 ? -1 : 0;
    if ((q = db_stmt(&s->db, SQL_LEASE_END)) == NULL)
        return -1;
    id_text(&l.id, text);
    db_text(q, 1, span_of(text, ID_TEXT));
    db_text(q, 2, span_str(lease_state_name(LEASE_LEAKED)));
    db_int(q, 3, s->wall);
    db_text(q, 4, leak->what);
    l.state = LEASE_LEAKED;
    l.how = leak->what;
    l.ended_ms = l.ended_ms ? l.ended_ms : s->wall;
    if (db_run(&s->db, q) != 0 || write_leak(s, &l, leak) != 0 ||
        end_all(s, SQL_LEASE_OF_SANDBOX, l.sandbox, LEASE_REVOKED, SPAN("tripwire"),
                SPAN("another lease of its sandbox was used elsewhere")) != 0 ||
        grants_end_sandbox(s, l.sandbox, "a lease of its sandbox was used elsewhere") != 0)
        return -1;
    if (!leak->freeze)
        return 0;
    if (sandbox_freeze(s, l.sandbox, frozen) != 0)
        return -1;
    return span_eq(l.sandbox, leak->sandbox) ? 0 : sandbox_freeze(s, leak->sandbox, frozen);
}

int leases_end_sandbox(struct store *s, struct span sandbox, const char *how)
{
    return end_all(s, SQL_LEASE_OF_SANDBOX, sandbox, LEASE_REVOKED, SPAN("session"), span_str(how));
}

int leases_tick(struct store *s)
{
    return end_all(s, SQL_LEASE_DUE, SPAN_NONE, LEASE_EXPIRED, SPAN("time"), SPAN("its time is over"));
}

int leases_sweep(struct store *s)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_LEASE_OLD);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->wall > LEASE_DEAD_MS ? s->wall - LEASE_DEAD_MS : 0);
    db_int(q, 2, s->wall > LEASE_BRIEF_MS ? s->wall - LEASE_BRIEF_MS : 0);
    db_text(q, 3, SPAN(LEASE_BY_ANSWER));
    return db_run(&s->db, q);
}

int store_leases(struct store *s, void (*each)(void *arg, const struct wire_lease *l), void *arg)
{
    struct wire_lease l;
    enum db_result got;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_LEASE_ALL);
    while ((got = db_step(&s->db, q)) == DB_ROW) {
        arena_free(&s->arena);
        if (read_row(s, q, &l) != 0)
            break;
        each(arg, &l);
    }
    sqlite3_reset(q);
    return got == DB_DONE ? 0 : -1;
}
