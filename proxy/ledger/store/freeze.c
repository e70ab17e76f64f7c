/* Freeze: an operator's word that no write leaves. Kept in the store, so that a restart does not lift it. A thaw also
 * lifts what stopped single sandboxes (leases/leases.c). */
#include "proxy/ledger/store/askers/later.h"
#include "proxy/ledger/store/store_in.h"
#include "proxy/ledger/store/tell/tell.h"

static const struct span key = {(const uint8_t *)"frozen", 6};

int store_frozen(struct store *s, bool *frozen)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_META_GET);
    *frozen = true;
    if (q == NULL)
        return -1;
    db_text(q, 1, key);
    enum db_result got = db_step(&s->db, q);
    *frozen = got == DB_FAIL || (got == DB_ROW && db_col(q, 0).n > 0);
    sqlite3_reset(q);
    return got == DB_FAIL ? -1 : 0;
}

/* What the page shows of it: {"by":..,"reason":..,"since_ms":..}. */
static int write_down(struct store *s, bool on, struct span by, struct span reason)
{
    struct dynbuf json;
    struct jsonw w;
    dynbuf_init(&json, 16 * 1024);
    if (on) {
        jsonw_begin(&w, &json);
        jsonw_object(&w);
        jsonw_kv(&w, "by", by);
        jsonw_kv(&w, "reason", reason);
        jsonw_kv_u64(&w, "since_ms", s->wall);
        jsonw_end_object(&w);
    }
    int bad = dynbuf_ok(&json) ? meta_set(s, key, dynbuf_span(&json)) : db_doom(&s->db, "a reason is too long");
    dynbuf_free(&json);
    return bad;
}

int store_freeze(struct store *s, bool on, struct span by, struct span reason)
{
    struct audit a;
    bool was;
    if (store_begin(s) != 0 || store_frozen(s, &was) != 0 ||
        (!on && (sandboxes_thaw(s) != 0 || later_all_again(s) != 0)))
        return -1;
    if (was == on)
        return 0;
    if (write_down(s, on, by, reason) != 0)
        return -1;
    audit_begin(&a, s, on ? "freeze" : "thaw", NULL, NULL, SPAN_NONE);
    jsonw_kv(&a.w, "by", by);
    jsonw_kv(&a.w, "reason", reason);
    if (audit_end(&a) != 0 || tell_frozen(s, on, by) != 0)
        return -1;
    if (s->c.changed != NULL)
        s->c.changed(s->c.arg, on ? CHANGE_FROZEN : CHANGE_THAWED, s->now.seq, NULL, NULL);
    return 0;
}
