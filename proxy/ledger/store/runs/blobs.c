/* Bytes that records name by their digest (schema_7.sql), sealed with the keeper's data key. */
#include <stdlib.h>

#include "common/crypto/seal.h"
#include "proxy/ledger/store/runs/runs.h"

enum { SWEPT = 64, BESIDE = 4096 /* that each counts for more than its bytes, so that there are never too many */ };

/* "blob " and a digest of both: one tenant's bytes cannot stand in for another's. */
struct context {
    uint8_t b[5 + DIGEST_BYTES];
};

static struct span context_of(struct context *c, struct span tenant, const struct digest *sha256)
{
    struct digest_ctx *d = digest_begin();
    struct digest both;
    digest_add_field(d, tenant);
    digest_add_field(d, span_of(sha256->b, DIGEST_BYTES));
    digest_end(d, &both);
    memcpy(c->b, "blob ", 5);
    memcpy(c->b + 5, both.b, DIGEST_BYTES);
    return span_of(c->b, sizeof(c->b));
}

static int add(struct store *s, struct span tenant, const struct digest *sha256, size_t size, struct span sealed)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_BLOB_ADD);
    if (q == NULL)
        return -1;
    db_text(q, 1, tenant);
    db_blob(q, 2, span_of(sha256->b, DIGEST_BYTES));
    db_int(q, 3, s->wall);
    db_int(q, 4, size);
    db_blob(q, 5, sealed);
    int rc = db_run(&s->db, q);
    sqlite3_clear_bindings(q);
    if (rc != 0 || (q = db_stmt(&s->db, SQL_BLOBS_PAST)) == NULL)
        return -1;
    db_text(q, 1, tenant);
    db_blob(q, 2, span_of(sha256->b, DIGEST_BYTES));
    db_int(q, 3, STORE_BLOBS_MAX);
    rc = db_run(&s->db, q);
    sqlite3_clear_bindings(q);
    return rc;
}

int store_blob_put(struct store *s, struct span tenant, struct span bytes)
{
    struct context c;
    struct digest sha256;
    int r = -1;
    if (store_begin(s) != 0)
        return -1;
    if (bytes.n > STORE_BLOB_MAX || !store_has_data_key(s)) /* a record is worth more than what it names */
        return 0;
    digest_of(bytes, &sha256);
    uint8_t *sealed = malloc(bytes.n + SEAL_EXTRA);
    if (sealed == NULL || seal_bytes(s->data_key, context_of(&c, tenant, &sha256), bytes, sealed) != 0)
        db_doom(&s->db, "bytes to be kept cannot be sealed: no memory");
    else
        r = add(s, tenant, &sha256, bytes.n + BESIDE, span_of(sealed, bytes.n + SEAL_EXTRA));
    free(sealed);
    return r;
}

int store_blob_get(struct store *s, struct span tenant, const struct digest *sha256, struct dynbuf *out)
{
    struct context c;
    if (store_begin(s) != 0)
        return -1;
    sqlite3_stmt *q = db_stmt(&s->db, SQL_BLOB_GET);
    if (q == NULL)
        return -1;
    db_text(q, 1, tenant);
    db_blob(q, 2, span_of(sha256->b, DIGEST_BYTES));
    enum db_result got = db_step(&s->db, q);
    int r = got == DB_FAIL ? -1 : 0;
    if (got == DB_ROW && s->data_key != NULL) {
        struct span sealed = db_col(q, 0);
        size_t n = sealed.n > SEAL_EXTRA ? sealed.n - SEAL_EXTRA : 0;
        uint8_t *to = dynbuf_room(out, n + 1); /* one more: room for nothing is no room */
        if (to != NULL && seal_open(s->data_key, context_of(&c, tenant, sha256), sealed, to) == 0) {
            dynbuf_grew(out, n);
            r = 1;
        }
    }
    sqlite3_reset(q);
    return r;
}

int blobs_sweep(struct store *s)
{
    sqlite3_stmt *q = db_stmt(&s->db, SQL_BLOBS_OLD);
    if (q == NULL)
        return -1;
    db_int(q, 1, s->wall > STORE_RUNS_AGE_MAX ? s->wall - STORE_RUNS_AGE_MAX : 0);
    db_int(q, 2, SWEPT);
    return db_run(&s->db, q);
}
