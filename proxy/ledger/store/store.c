/* The store: opening, the turn, the clock. */
#include "proxy/ledger/store/store.h"
#include "proxy/ledger/store/tell/tell.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/crypto/seal.h"
#include "proxy/ledger/store/askers/later.h"
#include "proxy/ledger/store/grants/grants.h"
#include "proxy/ledger/store/people/people.h"
#include "proxy/ledger/store/runs/runs.h"
#include "proxy/ledger/store/sign.h"

enum { SWEEP_MS = 60000 };

static int configure(struct store *s, const struct store_config *c, struct err *e)
{
    if (c->boot.n == 0 || c->boot.n > BOOT_TEXT || c->kernel_boot.n > BOOT_TEXT)
        return err_set(e, "the ledger was told no boot id, or one that is too long");
    s->c = *c;
    memcpy(s->boot, c->boot.p, c->boot.n);
    if (c->kernel_boot.n)
        memcpy(s->kernel_boot, c->kernel_boot.p, c->kernel_boot.n);
    if (s->c.expires_ms == 0)
        s->c.expires_ms = STORE_EXPIRES_MS;
    if (s->c.pending_max == 0)
        s->c.pending_max = STORE_PENDING_MAX;
    if (s->c.open_max == 0)
        s->c.open_max = STORE_OPEN_MAX;
    if (s->c.sandbox_bytes == 0)
        s->c.sandbox_bytes = STORE_SANDBOX_BYTES;
    return 0;
}

struct store *store_open(const struct store_config *c, uint64_t wall_ms, uint64_t boot_ms, struct err *e)
{
    bool fresh = false;
    struct store *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_set(e, "out of memory");
        return NULL;
    }
    arena_init(&s->arena, STORE_ARENA_MAX);
    dynbuf_init(&s->json, STORE_JSON_MAX);
    store_clock(s, wall_ms, boot_ms);
    if (configure(s, c, e) != 0 || db_open(&s->db, &ledger_db, c->path, c->max_pages, &fresh, e) != 0 ||
        audit_resume(s, e) != 0 || recover_start(s, e) != 0)
        store_close(&s);
    else if (fresh && c->new_state)
        log_debug("made a new store: %s", c->path);
    else if (fresh)
        log_warn("%s was not there, though its gateway has run before; made a new store", c->path);
    return s;
}

void store_close(struct store **s)
{
    if (s == NULL || *s == NULL)
        return;
    if ((*s)->db.sqlite != NULL)
        db_close(&(*s)->db);
    secret_free(&(*s)->data_key);
    signer_free(&(*s)->auditor);
    arena_free(&(*s)->arena);
    dynbuf_free(&(*s)->json);
    free(*s);
    *s = NULL;
}

void store_clock(struct store *s, uint64_t wall_ms, uint64_t boot_ms)
{
    s->wall = wall_ms;
    s->uptime = boot_ms;
}

bool store_has_data_key(const struct store *s)
{
    return s->data_key != NULL;
}

void store_data_key(struct store *s, struct secret *key)
{
    struct secret *seed = seal_key_derive(key, SPAN("countersign audit 1"));
    secret_free(&s->data_key);
    s->data_key = key;
    signer_free(&s->auditor);
    if (seed == NULL || (s->auditor = signer_of(seed)) == NULL)
        log_error("there is no key to sign the audit with: out of memory");
    secret_free(&seed);
}

int store_sign(struct store *s)
{
    return store_begin(s) != 0 ? -1 : audit_checkpoint(s);
}

int store_audit_key(const struct store *s, uint8_t out[SIGN_PUBLIC])
{
    return s->auditor != NULL ? signer_public(s->auditor, out) : -1;
}

int store_begin(struct store *s)
{
    arena_free(&s->arena);
    return db_begin(&s->db);
}

int store_commit(struct store *s)
{
    arena_free(&s->arena);
    if (db_commit(&s->db) == 0) {
        s->kept = s->now;
        sent_settle(s, true);
        return 0;
    }
    db_rollback(&s->db);
    sent_settle(s, false);
    s->now = s->kept;
    return -1;
}

void store_fail(struct store *s, const char *why)
{
    db_doom(&s->db, why);
}

const char *store_why(const struct store *s)
{
    return s->db.why.text;
}

int store_probe(struct store *s)
{
    /* A write of its own, of no consequence: room on the disk is what failed most likely. */
    if (store_begin(s) == 0) {
        sqlite3_stmt *q = db_stmt(&s->db, SQL_META_SET);
        if (q != NULL) {
            db_text(q, 1, SPAN("probe"));
            db_text(q, 2, span_str(s->boot));
            if (db_run(&s->db, q) != 0)
                log_debug("the store still fails: %s", s->db.why.text);
        }
    }
    return store_commit(s);
}

int store_judge_came(struct store *s)
{
    if (store_begin(s) != 0 || store_sent_write(s) != 0 || askers_gone(s) != 0 || later_all_again(s) != 0)
        return -1;
    return recover_executing(s, "the judge ended while it was under way");
}

static int expire_due(struct store *s)
{
    char ids[256][ID_TEXT];
    size_t n = 0;
    struct row r;
    enum db_result got;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_TICKETS_OVERDUE);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->wall);
    db_int(q, 2, s->uptime);
    while ((got = db_step(&s->db, q)) == DB_ROW && n < 256)
        if (db_col(q, 0).n == ID_TEXT)
            memcpy(ids[n++], db_col(q, 0).p, ID_TEXT);
    sqlite3_reset(q);
    if (got == DB_FAIL)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (store_begin(s) != 0 || row_find(s, span_of(ids[i], ID_TEXT), &r) != 1 || ticket_expire(s, &r) != 0)
            return -1;
    }
    return 0;
}

static int sweep(struct store *s)
{
    sqlite3_stmt *q;
    if (store_begin(s) != 0 || (q = db_stmt(&s->db, SQL_ANSWERS_OLD)) == NULL)
        return -1;
    db_int(q, 1, s->wall);
    db_int(q, 2, s->uptime);
    if (db_run(&s->db, q) != 0 || (q = db_stmt(&s->db, SQL_BODIES_OLD)) == NULL)
        return -1;
    db_int(q, 1, s->wall > STORE_BODIES_MS ? s->wall - STORE_BODIES_MS : 0);
    return db_run(&s->db, q) == 0 && audit_checkpoint(s) == 0 && leases_sweep(s) == 0 && runs_sweep(s) == 0 &&
                   blobs_sweep(s) == 0 && grants_sweep(s) == 0
               ? reserve_prune(s)
               : -1;
}

/* An idle second costs a few SELECTs of nothing, and no transaction. */
int store_tick(struct store *s)
{
    if (expire_due(s) != 0 || deputies_tick(s) != 0 || escalate_tick(s) != 0 || store_sent_write(s) != 0 ||
        leases_tick(s) != 0 || tell_tick(s) != 0)
        return -1;
    if (s->uptime < s->swept_ms)
        return 0;
    s->swept_ms = s->uptime + SWEEP_MS;
    return sweep(s);
}
