/* What the ledger knows and may do, without a loop or a channel: each operation is
 * one function over the store, in the turn's transaction. Nothing counts before
 * store_commit has returned 0; after a failure everything of the turn is undone.
 *
 *   pending -> approved | denied | expired | cancelled
 *   approved -> executing | denied | expired | cancelled
 *   executing -> done | failed (provably not sent) | unknown | approved (not sent, and the gateway tries it again)
 *   unknown -> done | failed, when the word of that very exchange comes late
 *
 * Operations return 0, or -1: the store failed, and with it the turn. Times are
 * Unix ms, and ms of CLOCK_BOOTTIME, set by the caller; spans in results live
 * until the next operation. */
#ifndef PROXY_LEDGER_STORE_STORE_H
#define PROXY_LEDGER_STORE_STORE_H

#include "common/err.h"
#include "common/crypto/secret.h"
#include "proxy/wire_ticket.h"

/* Counts, bytes, and times in ms. */
enum {
    STORE_PENDING_MAX = 64,
    STORE_OPEN_MAX = 1024,    /* tickets pending or approved, of all sandboxes */
    STORE_TENANTS_LEAST = 16, /* parts of it and of STORE_ALL_BYTES: one is had by whoever has none of them open */
    STORE_ANSWER_MS = 600000,
    STORE_LATER_MS = 5000, /* after which the judge is told again of what it is to send; twice that, and so on, of
                              what it could not */
    AUDIT_SIGNED = 256,    /* records between two signatures */
    STORE_SANDBOXES_MAX = 4096,
    STORE_SENT_MAX = 256, /* marks that wait for their outcome; further ones are written at once */
    STORE_BODY_MAX = 64 * 1024 * 1024,
};
#define STORE_EXPIRES_MS     (30u * 60 * 1000)
#define STORE_EXPIRES_MAX_MS (7ull * 24 * 3600 * 1000)
#define STORE_BODIES_MS      (24ull * 3600 * 1000)
#define STORE_SANDBOX_BYTES  (256ull * 1024 * 1024) /* held for one sandbox */
#define STORE_ALL_BYTES      (1024ull * 1024 * 1024)

struct store;
struct wire_lease;
struct tell_targets;

/* Said of an open ticket that ends because it was held on other terms than the policy of now would. */
#define TICKET_OTHER_TERMS "the policy would not hold it like this any more"

enum store_change {
    CHANGE_NONE = 0,
    CHANGE_TICKET,
    CHANGE_ASKER, /* of a ticket: only its id is told */
    CHANGE_SANDBOX,
    CHANGE_SANDBOX_GONE,
    CHANGE_FROZEN,
    CHANGE_THAWED
};

struct store_config {
    const char *path;
    struct span boot;        /* of the gateway: exchanges are numbered within it */
    struct span kernel_boot; /* while it is the same, CLOCK_BOOTTIME goes on */
    uint64_t expires_ms;     /* 0: the default; likewise the next three */
    unsigned pending_max, open_max;
    uint64_t sandbox_bytes;
    bool audit_reads;
    bool new_state;     /* no store is expected: nothing of a gateway was there before this start */
    bool secrets_only;  /* no gateway: it is opened to write down that a secret was sealed */
    unsigned max_pages; /* for tests of a full disk */
    /* Told of each change within the turn; sequence is its audit record's. */
    void (*changed)(void *arg, enum store_change what, uint64_t sequence, const struct wire_ticket_state *ticket,
                    const struct wire_sandbox *sandbox);
    /* Told of each lease that is new, narrowed or dead, likewise. NULL: nobody. */
    void (*lease)(void *arg, uint64_t sequence, const struct wire_lease *lease);
    const struct tell_targets *tell; /* who is told outside the page (tell/told.h); NULL: nobody */
    void *arg;
};

/* Opens and mends: what an earlier process left executing becomes unknown. */
struct store *store_open(const struct store_config *c, uint64_t wall_ms, uint64_t boot_ms, struct err *e) MUSTCHECK;
void store_close(struct store **s);
void store_clock(struct store *s, uint64_t wall_ms, uint64_t boot_ms);
/* Takes key: what bodies are sealed with, and what the key follows from that signs the audit. Without it a request
 * with a body cannot be held, and nothing is signed. */
void store_data_key(struct store *s, struct secret *key);
/* Has it come? Until then no body that is held can be read. */
bool store_has_data_key(const struct store *s);
/* Sign the last audit record, if that was not done yet. Else it is done every AUDIT_SIGNED records, and once a
 * minute. */
int store_sign(struct store *s) MUSTCHECK;
/* The public half of that key; -1: there is none yet. */
int store_audit_key(const struct store *s, uint8_t out[32]) MUSTCHECK;
int store_commit(struct store *s) MUSTCHECK;
/* The turn cannot be kept: what it did is undone at its commit, which fails. */
void store_fail(struct store *s, const char *why);
const char *store_why(const struct store *s); /* of the last failure */
/* Can it be written to again? */
int store_probe(struct store *s) MUSTCHECK;
/* Once a second: expiry, marks that wait, kept answers, old bodies. */
int store_tick(struct store *s) MUSTCHECK;
/* A judge has come; what its forerunner began has no witness. */
int store_judge_came(struct store *s) MUSTCHECK;

#endif
