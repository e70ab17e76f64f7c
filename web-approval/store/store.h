/* What the desk reads of the ledger's store: a read-only connection, each question
 * bounded to STORE_MS. Nothing here writes. Rows are copied into the caller's arena. */
#ifndef WEB_APPROVAL_STORE_H
#define WEB_APPROVAL_STORE_H

#include "common/arena.h"
#include "common/err.h"
#include "common/id.h"

enum { STORE_MS = 2000, STORE_ROWS_MAX = 1000, STORE_LOOKED_BACK = 1000 };

struct desk_store;

/* Does a client wait for the decision (proxy/ledger/store/askers/schema_9.sql)? */
struct asker {
    bool waits;
    uint64_t since_ms; /* it waits, or nobody does; 0: not known */
    uint64_t until_ms; /* when it is told to ask again; 0: not known */
    bool later;        /* it need not wait: once it is approved the gateway sends it itself */
};

/* Who says that they are looking at it now (proxy/ledger/store/people/schema_17.sql); empty: nobody. */
struct looking {
    struct span by;
    uint64_t since_ms, until_ms;
};

struct ticket {
    struct span id, state, sandbox, session, tenant;
    struct span method, scheme, host, path, query, fields_json;
    bool has_query;
    uint64_t port, body_size;
    struct span body_sha256, digest; /* 32 bytes each */
    struct span op, effect, resource, credential, code, rule_id, rule_file, policy;
    uint64_t rule_line;
    struct span summary, facts_json, agent_reason, approve_by, dialect;
    bool reason_required;
    uint64_t repeats, created_ms, expires_ms, decided_ms, claimed_ms, ended_ms; /* 0: not yet */
    struct span decided_by, decided_channel, decided_reason;
    uint64_t status, bytes_out, bytes_in;
    bool has_outcome, delivered;
    struct asker asker;
    struct looking looking;
    uint64_t quorum, self_approval, step_up; /* struct wire_people */
    uint64_t gates;                          /* so many are asked of it */
    uint64_t diff;                           /* enum diff_wish */
    uint64_t escalated_ms;                   /* since when others are asked as well; 0: they are not */
};

struct ticket_filter {
    struct span state;           /* empty: any; "open": not at its end; "decided": any but pending */
    struct span after;           /* id: those made before it (the list goes back in time) */
    struct span prefix;          /* of the id */
    struct span session, tenant; /* empty: any */
    size_t limit;                /* at most STORE_ROWS_MAX */
};

struct sandbox_row {
    struct span name, session, owner, tenant, kind, labels_json;
    uint64_t generation, created_ms, changed_ms, pending, restored; /* restored: so often, after it was idle */
    bool has_token;
    struct span reach;      /* what of the policy's it may reach (proxy/reach/); empty: all */
    struct span token_hash; /* of all its tokens, one behind the other, the newest first; empty: it has none */
};

struct audit_row {
    uint64_t seq, time_ms;
    struct span kind, exchange, ticket, json, hash;
    struct span key, signature; /* where a checkpoint ends with it; else empty */
};

struct lease_row {
    struct span id, parent, sandbox, session, credential, format, state, by, how,
        layers;                                            /* layers: wire_put_layers */
    uint64_t generation, created_ms, expires_ms, ended_ms; /* ended_ms 0: it lives */
};

/* path: of ledger.db. It need not exist yet: every question tries again. Borrowed for good. */
struct desk_store *desk_store_new(const char *path) MUSTCHECK;
void desk_store_free(struct desk_store **s);
/* 0, or -1 with *e: the store cannot be read now. fn returning not 0 ends the walk. */
typedef int desk_store_ticket_fn(void *ctx, const struct ticket *t);
int desk_store_tickets(struct desk_store *s, const struct ticket_filter *f, struct arena *a, desk_store_ticket_fn *fn,
                       void *ctx, struct err *e) MUSTCHECK;
/* The sandboxes of which something waits, that which waits for the longest first, and how much of each does. */
struct desk_waits_box {
    struct span sandbox;
    uint64_t waiting;
};
struct desk_waits {
    struct desk_waits_box box[STORE_ROWS_MAX];
    size_t n;
};
/* What waits: of each sandbox the first that were asked, each at most, and as many fewer as limit rows of all want;
 * in no order, without what no list shows: of who decides, how, and by what words of the policy. Into w, whose texts
 * are in the arena: all that wait (waiting.c). */
int desk_store_waiting(struct desk_store *s, size_t each, size_t limit, struct arena *a, struct desk_waits *w,
                       desk_store_ticket_fn *fn, void *ctx, struct err *e) MUSTCHECK;
/* What does not wait any more, the newest first (waiting.c). */
int desk_store_lately(struct desk_store *s, size_t limit, struct arena *a, desk_store_ticket_fn *fn, void *ctx,
                      struct err *e) MUSTCHECK;
/* A search through tickets of any state. Each empty: any. */
struct history_filter {
    struct span state;                   /* exactly */
    struct span sandbox, host, by, text; /* part of it, in either case of ASCII letters; text: of what it asks for, or
                                            of what was said about it */
    struct span after;                   /* id: those made before it */
    size_t limit;                        /* at most STORE_ROWS_MAX */
};
enum { STORE_SEARCHED = 20000 }; /* of the newest, at one go */
/* The newest first. *further: with which `after` the search goes on where this one ended, empty: all were looked at.
 */
int desk_store_history(struct desk_store *s, const struct history_filter *f, struct arena *a,
                       desk_store_ticket_fn *fn, void *ctx, struct span *further, struct err *e) MUSTCHECK;
/* Of the last STORE_LOOKED_BACK tickets that are pending, or were approved, those to the same tenant's same host by
 * the same operation and method, the newest first, at most max; waiting: of the same sandbox. t itself is none. */
int desk_store_like(struct desk_store *s, const struct ticket *t, bool waiting, size_t max, struct arena *a,
                    desk_store_ticket_fn *fn, void *ctx, struct err *e) MUSTCHECK;
/* 1, 0: none of that id, -1. */
int desk_store_ticket(struct desk_store *s, struct span id, struct arena *a, struct ticket *t,
                      struct err *e) MUSTCHECK;
/* How many are pending. */
int desk_store_pending(struct desk_store *s, uint64_t *n, struct err *e) MUSTCHECK;
/* Since when the oldest of them waits; 0: none does. */
int desk_store_oldest(struct desk_store *s, uint64_t *created_ms, struct err *e) MUSTCHECK;
typedef int desk_store_sandbox_fn(void *ctx, const struct sandbox_row *r);
int desk_store_sandboxes(struct desk_store *s, struct arena *a, desk_store_sandbox_fn *fn, void *ctx,
                         struct err *e) MUSTCHECK;
int desk_store_sandbox(struct desk_store *s, struct span name, struct arena *a, struct sandbox_row *r,
                       struct err *e) MUSTCHECK;
typedef int desk_store_lease_fn(void *ctx, const struct lease_row *r);
/* The newest first, at most STORE_ROWS_MAX. sandbox: only its own; empty: all. prefix: of the id; empty: any. */
int desk_store_leases(struct desk_store *s, struct span sandbox, struct span prefix, struct arena *a,
                      desk_store_lease_fn *fn, void *ctx, struct err *e) MUSTCHECK;
typedef int desk_store_audit_fn(void *ctx, const struct audit_row *r);
/* Rows with seq > after, oldest first. tickets_only: those of kind "ticket-...". */
int desk_store_audit(struct desk_store *s, uint64_t after, size_t limit, bool tickets_only, struct arena *a,
                     desk_store_audit_fn *fn, void *ctx, struct err *e) MUSTCHECK;
/* most: 0 for no limit. */
struct egress_row {
    uint64_t requests_most, bytes_most, requests, bytes;
};
int desk_store_egress(struct desk_store *s, struct span sandbox, struct arena *a, struct egress_row *o,
                      struct err *e) MUSTCHECK;
/* The sequence number of the last record that is signed, 0: none yet. */
int desk_store_signed(struct desk_store *s, uint64_t *seq, struct err *e) MUSTCHECK;
/* The newest sequence number, 0: none yet. */
int desk_store_head(struct desk_store *s, uint64_t *seq, struct err *e) MUSTCHECK;

/* What ran in a started sandbox, or became of one (proxy/ledger/store/runs/schema_6.sql), and the records of the
 * audit that say so; end: empty while it runs. */
struct run_row {
    struct span id, what, sandbox, tenant, command, state;
    uint64_t generation, began_ms, ended_ms, begin_seq, end_seq;
    struct span begin, begin_hash, end, end_hash;
};
struct run_filter {
    struct span sandbox, prefix; /* of the id; empty: any */
    uint64_t after, before;      /* begin_seq between these */
    bool newest;                 /* first */
    size_t limit;
};
typedef int desk_store_run_fn(void *ctx, const struct run_row *r);
int desk_store_runs(struct desk_store *s, const struct run_filter *f, struct arena *a, desk_store_run_fn *fn,
                    void *ctx, struct err *e) MUSTCHECK;
/* What a command sent, by its step (proxy/ledger/store/runs/schema_11.sql): how much, and the first of it by name. */
enum { RUN_EFFECTS_NAMED = 64, RUN_LEASES_NAMED = 16 };
struct run_effects {
    uint64_t requests, refused, bytes_out, bytes_in;
    uint64_t sent;                           /* that left, or may have: those among what is named */
    struct span exchange[RUN_EFFECTS_NAMED]; /* of the first of these */
    size_t n;
    struct span lease[RUN_LEASES_NAMED]; /* that any of them was sent with; the first of these */
    size_t nleases;
};
int desk_store_effects(struct desk_store *s, struct span run, struct arena *a, struct run_effects *o,
                       struct err *e) MUSTCHECK;

/* A token of those who speak to the dock (proxy/ledger/store/tokens/schema_5.sql). */
struct token_row {
    struct span name, tenant, hash, note;
    uint64_t created_ms;
};
typedef int desk_store_token_fn(void *ctx, const struct token_row *r);
/* Those of one kind and sandbox (of keys: empty). */
int desk_store_tokens(struct desk_store *s, const char *kind, struct span scope, struct arena *a,
                      desk_store_token_fn *fn, void *ctx, struct err *e) MUSTCHECK;

/* The exchange that last had to do with this ticket, as the audit has it; empty: none. */
int desk_store_ticket_exchange(struct desk_store *s, struct span id, struct arena *a, struct span *out,
                               struct err *e) MUSTCHECK;
/* What the ledger wrote down when writes were frozen, empty when they are not. */
int desk_store_frozen(struct desk_store *s, struct arena *a, struct span *json, struct err *e) MUSTCHECK;

#endif
