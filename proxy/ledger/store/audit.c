/* The audit chain: canonical JSON, each record's hash over the last one's and its own text. */
#include <stdio.h>
#include <time.h>

#include "common/time/clock.h"
#include "common/log.h"
#include "proxy/ledger/store/sign.h"
#include "proxy/ledger/store/store_in.h"

void audit_time(uint64_t ms, char out[32])
{
    static char text[UTC_TEXT]; /* of the second asked for last: records come in rows */
    static uint64_t second = UINT64_MAX;
    if (ms / 1000 != second) {
        second = ms / 1000;
        (void)utc_text(ms, false, text);
    }
    size_t n = text[0] != '\0' ? strlen(text) - 1 : 0;
    unsigned rest = (unsigned)(ms % 1000);
    char tail[] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10), (char)('0' + rest % 10), 'Z', '\0'};
    memcpy(out, text, n);
    memcpy(out + n, tail, sizeof(tail));
}

void audit_begin(struct audit *a, struct store *s, const char *kind, const char *boot, const uint64_t *xid,
                 struct span ticket)
{
    char when[32];
    *a = (struct audit){.s = s, .kind = kind, .ticket = ticket};
    dynbuf_reset(&s->json);
    jsonw_begin(&a->w, &s->json);
    jsonw_object(&a->w);
    jsonw_kv_u64(&a->w, "seq", s->now.seq + 1);
    audit_time(s->wall, when);
    jsonw_kv(&a->w, "time", span_str(when));
    jsonw_kv(&a->w, "kind", span_str(kind));
    if (xid != NULL) {
        snprintf(a->exchange, sizeof(a->exchange), "%s-%llu", boot ? boot : s->boot, (unsigned long long)*xid);
        jsonw_kv(&a->w, "exchange", span_str(a->exchange));
    }
    if (ticket.n)
        jsonw_kv(&a->w, "ticket", ticket);
}

static void put_digest(struct jsonw *w, const char *key, const struct digest *d)
{
    static const struct digest none;
    char text[2 * DIGEST_BYTES + 1];
    if (memcmp(d, &none, sizeof(none)) == 0)
        return;
    hex_text(span_of(d->b, DIGEST_BYTES), text);
    jsonw_kv(w, key, span_str(text));
}

static void put_if(struct jsonw *w, const char *key, struct span v)
{
    if (v.n)
        jsonw_kv(w, key, v);
}

static void put_true(struct jsonw *w, const char *key, bool v)
{
    if (!v)
        return;
    jsonw_kv_bool(w, key, true);
}

/* What else the policy saw: enough to put the same question to another one. */
static void put_seen(struct jsonw *w, const struct wire_record *r)
{
    struct span rest = r->refs;
    put_true(w, "body", r->has_body);
    put_if(w, "type", r->content_type);
    put_true(w, "upgrade", r->upgrade);
    if (rest.n == 0)
        return;
    jsonw_kv_array(w, "refs");
    while (rest.n) {
        struct span line;
        span_cut(rest, '\n', &line, &rest);
        jsonw_string(w, line);
    }
    jsonw_end_array(w);
}

void audit_record(struct audit *a, const struct wire_record *r)
{
    struct jsonw *w = &a->w;
    char step[WIRE_STEP_TEXT], lease[ID_TEXT + 1];
    put_if(w, "sandbox", r->sandbox);
    put_if(w, "session", r->session);
    if (r->generation)
        jsonw_kv_u64(w, "generation", r->generation);
    if (r->by.number)
        jsonw_kv(w, "step", wire_step_text(&r->by, step));
    if (!id_is_none(&r->lease)) {
        id_text(&r->lease, lease);
        jsonw_kv(w, "lease", span_of(lease, ID_TEXT));
    }
    put_if(w, "method", r->method);
    put_if(w, "scheme", r->scheme);
    put_if(w, "host", r->host);
    if (r->port)
        jsonw_kv_u64(w, "port", r->port);
    put_if(w, "path", r->path);
    put_if(w, "verdict", r->verdict);
    put_if(w, "code", r->code);
    put_if(w, "cause", r->cause);
    put_if(w, "op", r->op);
    put_if(w, "effect", r->effect);
    put_if(w, "resource", r->resource);
    put_if(w, "credential", r->credential);
    if (r->rule.id.n || r->rule.file.n) {
        jsonw_kv_object(w, "rule");
        jsonw_kv(w, "id", r->rule.id);
        jsonw_kv(w, "file", r->rule.file);
        jsonw_kv_u64(w, "line", r->rule.line);
        jsonw_end_object(w);
    }
    put_seen(w, r);
    put_if(w, "range", r->range);
    put_if(w, "range_sent", r->range_sent);
    put_digest(w, "policy", &r->policy);
    put_digest(w, "request", &r->request);
    if (r->shadow)
        jsonw_kv_bool(w, "enforced", false);
}

static void link_hash(const struct digest *last, struct span json, struct digest *out)
{
    struct digest_ctx *d = digest_begin();
    digest_add(d, span_of(last->b, DIGEST_BYTES));
    digest_add(d, json);
    digest_end(d, out);
}

int audit_checkpoint(struct store *s)
{
    uint8_t key[SIGN_PUBLIC], signature[SIGN_BYTES];
    if (s->auditor == NULL || s->now.seq <= s->now.signed_to)
        return 0;
    if (signer_public(s->auditor, key) != 0 || signer_head(s->auditor, s->now.seq, &s->now.head, signature) != 0)
        return db_doom(&s->db, "the audit cannot be signed");
    sqlite3_stmt *q = db_stmt(&s->db, SQL_CHECKPOINT_ADD);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->now.seq);
    db_int(q, 2, s->wall);
    db_blob(q, 3, span_of(key, sizeof(key)));
    db_blob(q, 4, span_of(signature, sizeof(signature)));
    if (db_run(&s->db, q) != 0)
        return -1;
    s->now.signed_to = s->now.seq;
    return 0;
}

int audit_end(struct audit *a)
{
    struct store *s = a->s;
    jsonw_end_object(&a->w);
    if (!dynbuf_ok(&s->json))
        return db_doom(&s->db, "an audit record is too large");
    struct digest hash;
    link_hash(&s->now.head, dynbuf_span(&s->json), &hash);
    sqlite3_stmt *q = db_stmt(&s->db, SQL_AUDIT_ADD);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->now.seq + 1);
    db_int(q, 2, s->wall);
    db_text(q, 3, span_str(a->kind));
    db_text_or_null(q, 4, span_str(a->exchange));
    db_text_or_null(q, 5, a->ticket);
    db_text(q, 6, dynbuf_span(&s->json));
    db_blob(q, 7, span_of(hash.b, DIGEST_BYTES));
    if (db_run(&s->db, q) != 0)
        return -1;
    s->now.seq++;
    s->now.head = hash;
    return s->now.seq >= s->now.signed_to + AUDIT_SIGNED ? audit_checkpoint(s) : 0;
}

int audit_resume(struct store *s, struct err *e)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_AUDIT_LAST);
    enum db_result r = db_step(&s->db, q);
    s->now = (struct chain){.seq = 0};
    if (r == DB_ROW) {
        s->now.seq = db_col_int(q, 0);
        s->last_ms = db_col_int(q, 1);
        if (!db_col_digest(q, 2, &s->now.head))
            return err_set(e, "the last audit record has no hash; the store was tampered with or is damaged");
        sqlite3_reset(q);
    }
    if (r != DB_FAIL && (r = db_step(&s->db, q = db_stmt(&s->db, SQL_CHECKPOINT_LAST))) == DB_ROW) {
        s->now.signed_to = db_col_int(q, 0);
        sqlite3_reset(q);
    }
    if (s->now.signed_to > s->now.seq)
        log_error(
            "audit record %llu was signed and is not there: the last one is %llu. `countersign audit verify` will "
            "fail from now on",
            (unsigned long long)s->now.signed_to, (unsigned long long)s->now.seq);
    s->kept = s->now;
    return r == DB_FAIL ? err_set(e, "the audit chain cannot be read: %s", s->db.why.text) : 0;
}
