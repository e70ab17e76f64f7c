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
    struct span operator, state, channel, how, reason, facts;
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
/* The first that was said first. */
int desk_store_votes(struct desk_store *s, struct span ticket, struct arena *a, desk_store_vote_fn *fn, void *ctx,
                     struct err *e) MUSTCHECK;

#endif
