/* Inside the store: what its files share. */
#ifndef PROXY_LEDGER_STORE_STORE_IN_H
#define PROXY_LEDGER_STORE_STORE_IN_H

#include "common/arena.h"
#include "common/json/json.h"
#include "proxy/ledger/store/db.h"
#include "proxy/ledger/store/ops.h"

enum { STORE_ARENA_MAX = 2 * 1024 * 1024, STORE_JSON_MAX = 1024 * 1024, BOOT_TEXT = 64 };

struct chain {
    uint64_t seq;
    struct digest head;
    uint64_t signed_to; /* seq of the last one signed */
};

/* sent.c: a write whose first byte has left and whose outcome has not come. */
struct sent_mark {
    uint64_t xid, wall;
    bool spent; /* written down in this turn */
};

struct store {
    struct db db;
    struct store_config c;
    char boot[BOOT_TEXT + 1], kernel_boot[BOOT_TEXT + 1];
    uint64_t wall, uptime;
    uint64_t last_ms; /* newest audit record found at start */
    struct secret *data_key;
    struct signer *auditor; /* NULL: the keeper has not come yet */
    struct chain now, kept; /* in this turn; as committed */
    struct arena arena;     /* results of one operation */
    struct dynbuf json;
    uint64_t swept_ms;
    struct {
        struct sent_mark at[STORE_SENT_MAX];
        size_t n;
    } sent;
    bool read_intents; /* of reads with limits: since this process began there was one */
};

/* Every operation that may write starts with this. */
int store_begin(struct store *s) MUSTCHECK;
/* A copy that lives until the next operation; failing dooms the turn. */
struct span store_copy(struct store *s, struct span v);

/* audit.c: one record, built in place with the writer between begin and end. */
struct audit {
    struct store *s;
    struct jsonw w;
    const char *kind;
    char exchange[BOOT_TEXT + 24];
    struct span ticket;
};
/* xid NULL: none. ticket: text, or empty. boot NULL: this one. */
void audit_begin(struct audit *a, struct store *s, const char *kind, const char *boot, const uint64_t *xid,
                 struct span ticket);
void audit_record(struct audit *a, const struct wire_record *r);
int audit_end(struct audit *a) MUSTCHECK;
/* Sign the head, if it is not signed and there is a key. */
int audit_checkpoint(struct store *s) MUSTCHECK;
void audit_time(uint64_t ms, char out[32]);
int audit_resume(struct store *s, struct err *e) MUSTCHECK;

/* row.c: a ticket as it stands. Spans are copies that live until the next operation. */
struct row {
    struct span id, sandbox, session, credential, host, by, channel, reason, boot;
    struct span grant;                     /* by which it was approved, in this operation */
    const struct store_decision *decision; /* likewise: by a person */
    enum ticket_state state;
    struct wire_record record;
    struct digest digest, join, terms; /* terms all zero: none were kept */
    bool reason_required;
    uint16_t port;
    uint64_t created_ms, expires_ms, expires_boot_ms, decided_ms, xid, body_size;
};
/* The current row of a statement that selects SQL_TICKET_COLUMNS. */
int row_read(struct store *s, sqlite3_stmt *q, struct row *r) MUSTCHECK;
/* 1 found, 0 not, -1. */
int row_find(struct store *s, struct span id, struct row *r) MUSTCHECK;
/* The same, at the start of an operation. */
int row_begin(struct store *s, const struct id *ticket, struct row *r) MUSTCHECK;
void row_state(const struct row *r, struct wire_ticket_state *st);
bool row_overdue(const struct store *s, const struct row *r);

/* change.c: the one way a ticket's state changes: the row, its audit record and the word to others.
 * In r are the new state and what goes with it. */
int ticket_decide(struct store *s, struct row *r, enum ticket_state to, struct span by, struct span channel,
                  struct span reason) MUSTCHECK;
int ticket_expire(struct store *s, struct row *r) MUSTCHECK;
/* An open ticket that was held on other terms than these ends here. 1 it goes on, 0 it was cancelled, -1. */
int ticket_keeps_terms(struct store *s, struct row *r, const struct digest *terms) MUSTCHECK;
/* Returns 1 changed, 0 it was not there to be changed, -1. o NULL: nobody knows. */
int ticket_end(struct store *s, struct row *r, enum ticket_state to, const struct store_outcome *o) MUSTCHECK;
int ticket_told(struct store *s, const struct row *r);

/* askers/askers.c: somebody waits for it until then (0: not known yet); it ended; nobody waits for any. */
int asker_waits(struct store *s, struct span ticket, uint64_t until_ms) MUSTCHECK;
int asker_over(struct store *s, struct span ticket) MUSTCHECK;
int askers_gone(struct store *s) MUSTCHECK;

/* bodies.c */
int body_keep(struct store *s, struct span ticket, struct span body) MUSTCHECK;
/* 1, 0 there is none or it does not open, -1. */
int body_fetch(struct store *s, struct span ticket, struct dynbuf *out) MUSTCHECK;
/* Without a head: there was an answer, nobody took it, and it cannot be given again. */
int answer_keep(struct store *s, struct span ticket, struct span head, struct span body) MUSTCHECK;
int answer_fetch(struct store *s, struct span ticket, struct store_bytes *out) MUSTCHECK;

/* effects.c: the request and the bytes first held. 1, 0 they are gone, -1. */
int ticket_request(struct store *s, const struct row *r, struct store_bytes *out) MUSTCHECK;

/* tickets.c: would the same request, if it were held, join something? A live ticket, an answer that waits for it, a
 * denial of a moment ago. 1, 0, -1. */
int ticket_joinable(struct store *s, struct span session, const struct digest *join) MUSTCHECK;

/* sent.c: when its first byte left, ms, if that was not written down; 0: not known here. The caller writes it. */
uint64_t sent_take(struct store *s, uint64_t xid);
/* The turn is over: kept or undone. */
void sent_settle(struct store *s, bool kept);

/* reserve.c: what limits count (table reserved), in the turn's transaction. */
/* 1: all of them are reserved for the ticket, or else the exchange; 0: not one, over says which are past.
 * What a ticket has already it is not asked for again. */
int reserve(struct store *s, const struct wire_limits *l, const struct wire_record *r, struct span ticket,
            uint64_t xid, struct wire_over *over) MUSTCHECK;
int reserve_claimed(struct store *s, struct span ticket) MUSTCHECK; /* counts from now on as of now */
int reserve_free_ticket(struct store *s, struct span ticket) MUSTCHECK;
int reserve_free_exchange(struct store *s, uint64_t xid) MUSTCHECK;
int reserve_prune(struct store *s) MUSTCHECK;

/* sandboxes.c: its writes are stopped, and why (empty: they are not any more); all that are stopped go on. */
int sandbox_freeze(struct store *s, struct span name, struct span why) MUSTCHECK;
int sandboxes_thaw(struct store *s) MUSTCHECK;

/* tokens/tokens.c: nothing lets into this sandbox any more. */
int tokens_end_sandbox(struct store *s, struct span sandbox) MUSTCHECK;
/* leases.c: all that a sandbox has ends. */
int leases_end_sandbox(struct store *s, struct span sandbox, const char *how) MUSTCHECK;
/* Those whose time is over end. */
int leases_tick(struct store *s) MUSTCHECK;
/* What died long ago is forgotten. */
int leases_sweep(struct store *s) MUSTCHECK;

/* recover.c */
int recover_start(struct store *s, struct err *e) MUSTCHECK;
int recover_executing(struct store *s, const char *why) MUSTCHECK;
/* One of the store's own settings. */
int meta_set(struct store *s, struct span key, struct span value) MUSTCHECK;

#endif
