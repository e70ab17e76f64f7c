/* People and what they said of tickets, as the desk reads them (proxy/ledger/store/people/schema_10.sql). */
#ifndef WEB_APPROVAL_STORE_PEOPLE_H
#define WEB_APPROVAL_STORE_PEOPLE_H

#include "web-approval/store/store.h"

struct person_row {
    struct span name, uid, groups, password;
    uint64_t generation, created_ms;
};
/* By name, or by "uid N". 1, 0: nobody, -1. */
int desk_store_person(struct desk_store *s, struct span by, bool uid, struct arena *a, struct person_row *r,
                      struct err *e) MUSTCHECK;
typedef int desk_store_person_fn(void *ctx, const struct person_row *r);
int desk_store_people(struct desk_store *s, struct arena *a, desk_store_person_fn *fn, void *ctx,
                      struct err *e) MUSTCHECK;

struct vote_row {
    struct span operator, state, channel, how, reason, facts, instead_of;
    uint64_t passkey, at_ms; /* passkey: 1, one signed it */
};
typedef int desk_store_vote_fn(void *ctx, const struct vote_row *r);
/* A gate that was to be asked, and what it said (proxy/ledger/store/gates/schema_12.sql). */
struct gate_row {
    struct span name, state, words;
    uint64_t at_ms;
};
typedef int desk_store_gate_fn(void *ctx, const struct gate_row *r);
int desk_store_gates(struct desk_store *s, struct span ticket, struct arena *a, desk_store_gate_fn *fn, void *ctx,
                     struct err *e) MUSTCHECK;
/* Who may approve a ticket too once nobody has decided for a while (proxy/ledger/store/people/schema_18.sql). */
struct escalation_row {
    struct span entry;
    uint64_t due_ms, since_ms; /* since_ms 0: not yet */
};
typedef int desk_store_escalation_fn(void *ctx, const struct escalation_row *r);
int desk_store_escalations(struct desk_store *s, struct span ticket, struct arena *a, desk_store_escalation_fn *fn,
                           void *ctx, struct err *e) MUSTCHECK;
/* Who decides in whose place at now_ms; uid and groups: of whom they stand in for. Either empty: anybody. */
struct deputy_row {
    struct span instead_of, uid, groups, deputy;
    uint64_t since_ms, until_ms;
};
typedef int desk_store_deputy_fn(void *ctx, const struct deputy_row *r);
int desk_store_deputies(struct desk_store *s, struct span deputy, struct span instead_of, uint64_t now_ms,
                        struct arena *a, desk_store_deputy_fn *fn, void *ctx, struct err *e) MUSTCHECK;
/* How often people decided, and after how long (proxy/ledger/store/people/schema_18.sql). */
enum { TALLY_BUCKETS = 8 };
struct tally_row {
    struct span op, effect;
    uint64_t approved, denied, ms, under[TALLY_BUCKETS];
};
typedef int desk_store_tally_fn(void *ctx, const struct tally_row *r);
int desk_store_tally(struct desk_store *s, struct arena *a, desk_store_tally_fn *fn, void *ctx,
                     struct err *e) MUSTCHECK;
/* The first that was said first. */
int desk_store_votes(struct desk_store *s, struct span ticket, struct arena *a, desk_store_vote_fn *fn, void *ctx,
                     struct err *e) MUSTCHECK;

#endif
