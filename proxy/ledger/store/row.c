/* A ticket's row, read. */
#include "proxy/ledger/store/store_in.h"

/* Where SQL_TICKET_COLUMNS puts what. */
enum {
    COL_ID,
    COL_STATE,
    COL_SANDBOX,
    COL_SESSION,
    COL_METHOD,
    COL_SCHEME,
    COL_HOST,
    COL_PORT,
    COL_PATH,
    COL_QUERY,
    COL_OP,
    COL_EFFECT,
    COL_RESOURCE,
    COL_CREDENTIAL,
    COL_CODE,
    COL_RULE_ID,
    COL_RULE_FILE,
    COL_RULE_LINE,
    COL_POLICY,
    COL_DIGEST,
    COL_JOIN,
    COL_REASON_REQUIRED,
    COL_CREATED,
    COL_EXPIRES,
    COL_EXPIRES_BOOT,
    COL_DECIDED,
    COL_BY,
    COL_CHANNEL,
    COL_REASON,
    COL_BOOT,
    COL_XID,
    COL_BODY_SIZE,
    COL_HAS_BODY,
    COL_UPGRADE,
    COL_TYPE,
    COL_REFS,
    COL_TERMS,
};

struct span store_copy(struct store *s, struct span v)
{
    if (v.n == 0)
        return SPAN_NONE;
    struct span c = arena_copy(&s->arena, v);
    if (c.p == NULL)
        db_doom(&s->db, "out of memory");
    return c;
}

static enum ticket_state state_of(struct span name)
{
    for (enum ticket_state t = TICKET_PENDING; t <= TICKET_UNKNOWN; t++)
        if (span_eq(span_str(ticket_state_name(t)), name))
            return t;
    return TICKET_NONE;
}

/* Path with query, as the audit shows it. */
static struct span whole_path(struct store *s, sqlite3_stmt *q)
{
    struct dynbuf b;
    dynbuf_init(&b, 8 * HTTP_TARGET_MAX);
    dynbuf_add(&b, db_col(q, COL_PATH));
    if (!db_col_null(q, COL_QUERY)) {
        dynbuf_add(&b, SPAN("?"));
        dynbuf_add(&b, db_col(q, COL_QUERY));
    }
    struct span out = store_copy(s, span_first(dynbuf_span(&b), 2048));
    dynbuf_free(&b);
    return out;
}

static int read_record(struct store *s, sqlite3_stmt *q, struct wire_record *r)
{
    *r = (struct wire_record){
        .sandbox = store_copy(s, db_col(q, COL_SANDBOX)),
        .session = store_copy(s, db_col(q, COL_SESSION)),
        .method = store_copy(s, db_col(q, COL_METHOD)),
        .scheme = store_copy(s, db_col(q, COL_SCHEME)),
        .host = store_copy(s, db_col(q, COL_HOST)),
        .path = whole_path(s, q),
        .port = (uint16_t)db_col_int(q, COL_PORT),
        .verdict = SPAN("hold"),
        .code = store_copy(s, db_col(q, COL_CODE)),
        .op = store_copy(s, db_col(q, COL_OP)),
        .effect = store_copy(s, db_col(q, COL_EFFECT)),
        .resource = store_copy(s, db_col(q, COL_RESOURCE)),
        .credential = store_copy(s, db_col(q, COL_CREDENTIAL)),
        .rule = {store_copy(s, db_col(q, COL_RULE_ID)), store_copy(s, db_col(q, COL_RULE_FILE)),
                 (uint32_t)db_col_int(q, COL_RULE_LINE)},
        .has_body = db_col_int(q, COL_HAS_BODY) != 0 || db_col_int(q, COL_BODY_SIZE) != 0,
        .upgrade = db_col_int(q, COL_UPGRADE) != 0,
        .content_type = store_copy(s, db_col(q, COL_TYPE)),
        .refs = store_copy(s, db_col(q, COL_REFS)),
    };
    if (!db_col_digest(q, COL_POLICY, &r->policy) || !db_col_digest(q, COL_DIGEST, &r->request))
        return db_doom(&s->db, "a ticket in the store is damaged");
    return 0;
}

int row_read(struct store *s, sqlite3_stmt *q, struct row *r)
{
    *r = (struct row){
        .id = store_copy(s, db_col(q, COL_ID)),
        .state = state_of(db_col(q, COL_STATE)),
        .by = store_copy(s, db_col(q, COL_BY)),
        .channel = store_copy(s, db_col(q, COL_CHANNEL)),
        .reason = store_copy(s, db_col(q, COL_REASON)),
        .boot = store_copy(s, db_col(q, COL_BOOT)),
        .reason_required = db_col_int(q, COL_REASON_REQUIRED) != 0,
        .created_ms = db_col_int(q, COL_CREATED),
        .expires_ms = db_col_int(q, COL_EXPIRES),
        .expires_boot_ms = db_col_int(q, COL_EXPIRES_BOOT),
        .decided_ms = db_col_int(q, COL_DECIDED),
        .xid = db_col_int(q, COL_XID),
        .body_size = db_col_int(q, COL_BODY_SIZE),
    };
    if (read_record(s, q, &r->record) != 0)
        return -1;
    if (!db_col_null(q, COL_TERMS) && !db_col_digest(q, COL_TERMS, &r->terms))
        return db_doom(&s->db, "a ticket in the store is damaged");
    r->sandbox = r->record.sandbox;
    r->session = r->record.session;
    r->credential = r->record.credential;
    r->host = r->record.host;
    r->port = r->record.port;
    r->digest = r->record.request;
    if (r->state == TICKET_NONE || !db_col_digest(q, COL_JOIN, &r->join))
        return db_doom(&s->db, "a ticket in the store is damaged");
    return s->db.doomed ? -1 : 0;
}

int row_find(struct store *s, struct span id, struct row *r)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKET_BY_ID);
    if (q == NULL)
        return -1;
    db_text(q, 1, id);
    enum db_result got = db_step(&s->db, q);
    int found = got == DB_ROW ? (row_read(s, q, r) == 0 ? 1 : -1) : got == DB_DONE ? 0 : -1;
    sqlite3_reset(q);
    return found;
}

int row_begin(struct store *s, const struct id *ticket, struct row *r)
{
    char text[ID_TEXT + 1];
    id_text(ticket, text);
    return store_begin(s) != 0 ? -1 : row_find(s, span_of(text, ID_TEXT), r);
}

void row_state(const struct row *r, struct wire_ticket_state *st)
{
    *st = (struct wire_ticket_state){
        .state = (uint8_t)r->state, .expires_ms = r->expires_ms, .by = r->by, .words = r->reason};
    if (id_parse(r->id, &st->ticket) != 0)
        st->state = TICKET_NONE;
}

bool row_overdue(const struct store *s, const struct row *r)
{
    return s->wall >= r->expires_ms || s->uptime >= r->expires_boot_ms;
}
