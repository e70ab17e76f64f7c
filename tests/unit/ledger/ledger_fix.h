/* What the ledger's tests share: a store in a folder of its own, a clock that is set by hand, requests to hold. */
#ifndef TESTS_UNIT_LEDGER_LEDGER_FIX_H
#define TESTS_UNIT_LEDGER_LEDGER_FIX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

#include "common/crypto/seal.h"
#include "proxy/ledger/store/db.h"
#include "proxy/ledger/store/ops.h"

#define T0 1800000000000ull

/* In memory where there is such a place: thousands of turns need no disk. */
extern const char *fix_base;
extern char fix_folder[64], fix_path[96];
extern struct store *fix;
extern uint64_t fix_wall, fix_boot;
extern struct store_config fix_config;
extern struct err fix_err;
extern unsigned fix_told[TICKET_UNKNOWN + 1], fix_sandboxes, fix_gone;
extern struct secret *fix_key;
extern bool fix_no_facts;             /* the judge has not made them yet */
extern struct digest fix_terms;       /* on which all is held and claimed */
extern struct wire_limits fix_limits; /* of what is held */
extern const struct store_grant no_grant;
extern struct wire_people fix_people; /* whose yes what is held needs */
extern struct wire_gates fix_gates;   /* what is asked of it first */
extern struct store_grant fix_grant;  /* that an approval is to give */
extern struct wire_shape fix_shape;   /* of what is held */
extern struct digest fix_policy;      /* by which it is held and claimed */
extern struct wire_over fix_over;     /* what of them was past, the last time */

void fix_changed(void *arg, enum store_change what, uint64_t seq, const struct wire_ticket_state *t,
                 const struct wire_sandbox *b);
void fix_open(void);
void fix_reopen(void);
void fix_time(uint64_t ms);
int fix_setup(void **state);
int fix_teardown(void **state);
int fix_sql(const char *sql);
int64_t fix_count(const char *sql);
struct digest fix_digest(unsigned n);
void fix_ticket(struct wire_ticket *t, const char *sandbox, unsigned join, unsigned digest);
struct wire_ticket_state fix_hold(const char *sandbox, unsigned join, unsigned digest, struct span body);
/* store_decide on the page; what store_decide returns. */
int fix_say(const struct id *id, enum decide what, const char *by, const char *reason, const struct digest *shown,
            const struct store_grant *grant, enum decided *r, uint8_t *state);
enum decided fix_decide(const struct id *id, enum decide what, const struct digest *shown);
bool fix_claim(const struct id *id, uint64_t xid, uint8_t *state);
void fix_outcome(const struct id *id, uint64_t xid, enum outcome o, bool delivered, struct span kept);

/* Of what store_decide is told: no digest was shown, and no grant is to be given. */
#define UNSEEN   &(const struct digest){{0}}, &no_grant
#define FRESH(f) cmocka_unit_test_setup_teardown(f, fix_setup, fix_teardown)

/* How many records the audit has; each one's number and hash must be right. */
uint64_t fix_chain(void);

#endif
