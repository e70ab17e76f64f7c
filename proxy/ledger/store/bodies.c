/* Held bodies and kept answers, sealed with the keeper's data key. */
#include <stdlib.h>

#include "common/crypto/seal.h"
#include "proxy/ledger/store/store_in.h"

enum { CONTEXT_MAX = 64 };

/* "body 0123...": what the seal is bound to, so that one ticket's bytes cannot stand in for another's. */
static struct span context(char out[CONTEXT_MAX], struct span what, struct span ticket)
{
    memcpy(out, what.p, what.n);
    size_t n = ticket.n < CONTEXT_MAX - what.n ? ticket.n : CONTEXT_MAX - what.n;
    memcpy(out + what.n, ticket.p, n);
    return span_of(out, what.n + n);
}

static int seal_into(struct store *s, enum sql_id id, struct span what, struct span ticket, struct span plain,
                     const uint64_t until[2])
{
    char text[CONTEXT_MAX];
    uint8_t *sealed = malloc(plain.n + SEAL_EXTRA);
    int r = -1;
    if (sealed == NULL || seal_bytes(s->data_key, context(text, what, ticket), plain, sealed) != 0) {
        db_doom(&s->db, "bytes to be kept cannot be sealed: no memory, or no key from the keeper yet");
        goto out;
    }
    sqlite3_stmt *q = db_stmt(&s->db, id);
    if (q == NULL)
        goto out;
    db_text(q, 1, ticket);
    if (until != NULL) {
        db_int(q, 2, until[0]);
        db_int(q, 3, until[1]);
    }
    db_blob(q, until ? 4 : 2, span_of(sealed, plain.n + SEAL_EXTRA));
    r = db_run(&s->db, q);
    sqlite3_clear_bindings(q);
out:
    free(sealed);
    return r;
}

static int fetch(struct store *s, enum sql_id id, struct span what, struct span ticket, struct dynbuf *out)
{
    char text[CONTEXT_MAX];
    sqlite3_stmt *q = db_stmt(&s->db, id);
    if (q == NULL)
        return -1;
    db_text(q, 1, ticket);
    enum db_result got = db_step(&s->db, q);
    int r = got == DB_FAIL ? -1 : 0;
    if (got == DB_ROW) {
        struct span sealed = db_col(q, 0);
        size_t n = sealed.n > SEAL_EXTRA ? sealed.n - SEAL_EXTRA : 0;
        uint8_t *to = dynbuf_room(out, n + 1); /* one more: room for nothing is no room */
        if (to != NULL && seal_open(s->data_key, context(text, what, ticket), sealed, to) == 0) {
            dynbuf_grew(out, n);
            r = 1;
        }
    }
    sqlite3_reset(q);
    return r;
}

int body_keep(struct store *s, struct span ticket, struct span body)
{
    return seal_into(s, SQL_BODY_ADD, SPAN("body "), ticket, body, NULL);
}

int body_fetch(struct store *s, struct span ticket, struct dynbuf *out)
{
    return fetch(s, SQL_BODY_GET, SPAN("body "), ticket, out);
}

int answer_keep(struct store *s, struct span ticket, struct span head, struct span body)
{
    struct dynbuf b;
    const uint64_t until[2] = {s->wall + STORE_ANSWER_MS, s->uptime + STORE_ANSWER_MS};
    dynbuf_init(&b, 2 * HTTP_ANSWER_HEAD_MAX + ANSWER_KEPT_MAX);
    msg_put_span(&b, head);
    dynbuf_add(&b, body);
    int r = dynbuf_ok(&b) ? seal_into(s, SQL_ANSWER_ADD, SPAN("answer "), ticket, dynbuf_span(&b), until) : 0;
    dynbuf_free(&b);
    return r;
}

int answer_fetch(struct store *s, struct span ticket, struct store_bytes *out)
{
    struct dynbuf b;
    dynbuf_init(&b, 2 * HTTP_ANSWER_HEAD_MAX + ANSWER_KEPT_MAX + 1);
    int r = fetch(s, SQL_ANSWER_GET, SPAN("answer "), ticket, &b);
    if (r == 1) {
        struct msg_in m = msg_in(dynbuf_span(&b));
        out->head = store_copy(s, msg_get_span(&m, 2 * HTTP_ANSWER_HEAD_MAX));
        if (m.bad || dynbuf_add(&out->body, m.rest) != 0)
            r = 0;
    }
    dynbuf_free(&b);
    return r;
}
