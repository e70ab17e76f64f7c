/* Gates: written down with their ticket, asked once, and what they said. */
#include "proxy/ledger/store/gates/gates.h"

#include <stdio.h>

#include "proxy/ledger/store/gates/asked.h"

enum { FACTS_MOST = 32 * 1024 };

static int step_set(struct store *s, struct span ticket, struct span name, const char *from, const char *to,
                    struct span words)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_GATE_SET);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    db_text(q, 2, name);
    db_text(q, 3, span_str(from));
    db_text(q, 4, span_str(to));
    db_text(q, 5, words);
    db_int(q, 6, s->wall);
    return db_run(&s->db, q) != 0 ? -1 : db_changes(&s->db) == 1;
}

int gates_set(struct store *s, struct span ticket, const struct wire_gates *g)
{
    for (size_t i = 0; i < g->n; i++) {
        sqlite3_stmt *q = db_stmt(&s->db, SQL_GATE_ADD);
        if (q == NULL)
            return -1;
        db_text(q, 1, ticket);
        db_text(q, 2, g->name[i]);
        db_int(q, 3, s->wall);
        db_blob(q, 4, span_of(g->of[i].b, DIGEST_BYTES));
        if (db_run(&s->db, q) != 0)
            return -1;
    }
    return 0;
}

int gates_open(struct store *s, struct span ticket)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_GATES_OPEN);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    int n = db_step(&s->db, q) == DB_ROW ? (int)db_col_int(q, 0) : -1;
    sqlite3_reset(q);
    return n;
}

int gates_lost(struct store *s, struct span why)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_GATES_LOST);
    if (q == NULL)
        return -1;
    db_text(q, 1, why);
    db_int(q, 2, s->wall);
    return db_run(&s->db, q);
}

static void kv_hex(struct jsonw *w, const char *key, struct span bytes)
{
    char hex[2 * DIGEST_BYTES + 1];
    if (bytes.n != DIGEST_BYTES)
        return;
    hex_text(bytes, hex);
    jsonw_kv(w, key, span_str(hex));
}

/* All of it, or its size and hash alone: half a body would be judged as if it were the whole. Who is asked ends this
 * object and what it is in, with the body or without. */
static int put_body(struct store *s, struct store_gate *g, sqlite3_stmt *q, struct jsonw *w)
{
    static char text[GATE_BODY_TEXT_MAX + 1];
    struct dynbuf body;
    uint64_t size = db_col_int(q, 22);
    int got = 0;
    dynbuf_init(&body, GATE_BODY_MAX + 1);
    jsonw_kv_object(w, "body");
    jsonw_kv_u64(w, "size", size);
    jsonw_kv(w, "content_type", db_col(q, 21));
    kv_hex(w, "sha256", db_col(q, 23));
    if (size > 0 && size <= GATE_BODY_MAX && (got = body_fetch(s, g->ticket, &body)) == 1)
        (void)dynbuf_add(g->body, span_of(text, base64_encode(dynbuf_span(&body), text)));
    g->complete = size == 0 || got == 1;
    explicit_bzero(text, sizeof(text));
    dynbuf_wipe(&body);
    return got < 0 ? -1 : 0;
}

/* The facts that the page shows; what the agent says of them stands apart. */
static int put_input(struct store *s, struct store_gate *g, sqlite3_stmt *q, struct jsonw *w)
{
    static const char *const first[] = {"method", "scheme", "host"};
    static const char *const then[] = {"path", "query", "op", "effect", "resource", "credential"};
    struct span facts = db_col(q, 17);
    jsonw_object(w);
    jsonw_kv_u64(w, "version", 1);
    jsonw_kv(w, "ticket", g->ticket);
    kv_hex(w, "digest", db_col(q, 19));
    kv_hex(w, "policy", db_col(q, 20));
    for (int i = 0; i < 3; i++)
        jsonw_kv(w, first[i], db_col(q, i));
    jsonw_kv_u64(w, "port", db_col_int(q, 3));
    for (int i = 0; i < 6; i++)
        jsonw_kv(w, then[i], db_col(q, 4 + i));
    jsonw_kv_raw(w, "fields", db_col(q, 24));
    jsonw_kv_object(w, "rule");
    jsonw_kv(w, "id", db_col(q, 10));
    jsonw_kv(w, "file", db_col(q, 11));
    jsonw_kv_u64(w, "line", db_col_int(q, 12));
    jsonw_end_object(w);
    jsonw_kv(w, "sandbox", db_col(q, 13));
    jsonw_kv(w, "owner", db_col(q, 14));
    jsonw_kv(w, "tenant", db_col(q, 15));
    jsonw_kv(w, "summary", db_col(q, 16));
    if (facts.n > 0 && facts.n <= FACTS_MOST)
        jsonw_kv_raw(w, "facts", facts);
    jsonw_kv_object(w, "untrusted");
    jsonw_kv(w, "agent_reason", db_col(q, 18));
    jsonw_end_object(w);
    return put_body(s, g, q, w);
}

static int input(struct store *s, struct store_gate *g)
{
    struct jsonw w;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_GATE_FACTS);
    if (q == NULL)
        return -1;
    db_text(q, 1, g->ticket);
    int bad = db_step(&s->db, q) == DB_ROW ? 0 : -1;
    jsonw_begin(&w, g->input);
    if (bad == 0)
        bad = put_input(s, g, q, &w);
    sqlite3_reset(q);
    return bad;
}

int store_gate_next(struct store *s, struct store_gate *g)
{
    sqlite3_stmt *q = store_begin(s) == 0 ? db_stmt(&s->db, SQL_GATE_DUE) : NULL;
    if (q == NULL)
        return -1;
    db_int(q, 1, s->wall);
    db_int(q, 2, g->each);
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW) {
        g->ticket = store_copy(s, db_col(q, 0));
        g->name = store_copy(s, db_col(q, 1));
        if (db_col(q, 2).n == DIGEST_BYTES)
            memcpy(g->of.b, db_col(q, 2).p, DIGEST_BYTES);
    }
    sqlite3_reset(q);
    if (got != DB_ROW)
        return got == DB_FAIL ? -1 : 0;
    return input(s, g) != 0 ? -1 : step_set(s, g->ticket, g->name, "due", "asked", SPAN_NONE) < 0 ? -1 : 1;
}

static int tell(struct store *s, const struct row *r)
{
    struct wire_ticket_state st;
    row_state(r, &st);
    if (s->c.changed != NULL)
        s->c.changed(s->c.arg, CHANGE_ASKER, s->now.seq, &st, NULL);
    return 0;
}

/* Its no is the end of the ticket, as that of a person; of one that is decided already it is only written down. */
static int deny(struct store *s, struct row *r, struct span name, struct span words)
{
    char by[320];
    snprintf(by, sizeof(by), "gate %.*s", SPAN_FMT(span_first(name, 256)));
    struct span who = store_copy(s, span_str(by));
    return ticket_decide(s, r, TICKET_DENIED, who, SPAN("gate"), words);
}

/* How often it was asked, or was to be. */
static uint64_t times(struct store *s, struct span ticket, struct span name)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_GATE_TIMES);
    uint64_t n = 0;
    if (q == NULL)
        return 0;
    db_text(q, 1, ticket);
    db_text(q, 2, name);
    if (db_step(&s->db, q) == DB_ROW)
        n = (uint64_t)sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    return n;
}

int store_gate_answered(struct store *s, const struct id *ticket, struct span name, enum gate_said said,
                        struct span words)
{
    static const char *const states[] = {
        [GATE_FAILED] = "failed", [GATE_ALLOW] = "agreed", [GATE_DENY] = "denied", [GATE_ABSTAIN] = "abstained"};
    struct row r;
    struct audit a;
    int got = row_begin(s, ticket, &r);
    if (got == 1)
        got = step_set(s, r.id, name, "asked", states[said <= GATE_ABSTAIN ? said : GATE_FAILED], words);
    if (got <= 0)
        return got;
    uint64_t asked = times(s, r.id, name);
    audit_begin(&a, s, "gate-answered", NULL, NULL, r.id);
    jsonw_kv(&a.w, "gate", name);
    jsonw_kv_u64(&a.w, "asked", asked);
    jsonw_kv(&a.w, "said", span_str(states[said <= GATE_ABSTAIN ? said : GATE_FAILED]));
    jsonw_kv(&a.w, "words", words);
    kv_hex(&a.w, "of", span_of(r.digest.b, DIGEST_BYTES));
    audit_record(&a, &r.record);
    if (audit_end(&a) != 0)
        return -1;
    return said == GATE_DENY && r.state == TICKET_PENDING ? deny(s, &r, name, words) : tell(s, &r);
}

static int later(struct store *s, enum sql_id statement, struct span ticket, struct span name)
{
    sqlite3_stmt *q = db_stmt(&s->db, statement);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    db_text(q, 2, name);
    db_int(q, 3, s->wall);
    return db_run(&s->db, q) != 0 ? -1 : db_changes(&s->db) == 1;
}

/* Who has no room for one has none for the others: they wait a little, too, and lose none of their tries by it. */
int store_gate_later(struct store *s, const struct id *ticket, struct span name, struct span why)
{
    char id[ID_TEXT + 1];
    id_text(ticket, id);
    int got = store_begin(s) == 0 ? later(s, SQL_GATE_LATER, span_str(id), name) : -1;
    if (got == 0)
        return store_gate_answered(s, ticket, name, GATE_FAILED, why);
    return got < 0 || later(s, SQL_GATE_HELD, span_str(id), name) < 0 ? -1 : 0;
}

int store_gate_asked(struct store *s, unsigned i, struct span *ticket, struct span *name)
{
    sqlite3_stmt *q = store_begin(s) == 0 ? db_stmt(&s->db, SQL_GATE_ASKED) : NULL;
    if (q == NULL)
        return -1;
    db_int(q, 1, i);
    enum db_result got = db_step(&s->db, q);
    if (got == DB_ROW) {
        *ticket = store_copy(s, db_col(q, 0));
        *name = store_copy(s, db_col(q, 1));
    }
    sqlite3_reset(q);
    return got == DB_ROW ? 1 : got == DB_FAIL ? -1 : 0;
}
