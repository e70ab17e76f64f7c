/* Leases for the plays of the judge, as the keeper would make them and the ledger would tell of them. */
#ifndef TESTS_PLAY_JUDGE_PLAY_LEASE_H
#define TESTS_PLAY_JUDGE_PLAY_LEASE_H

#include "common/lease/lease.h"
#include "common/lease/wire_lease.h"
#include "tests/play/judge/play.h"

/* The text of lease n, from a stream of bytes that are n. */
const char *text_of(uint8_t n);
/* A live one of the sandbox "sb", with no bounds, for the credential "leased". */
struct wire_lease lease_of(uint8_t n);
void tell_lease(struct play *p, const struct wire_lease *l);
/* A play that has this policy and lease 1, which is put into *l. */
void open_with(struct play *p, const char *policy, struct wire_lease *l);

void expect_recorded(struct play *p, unsigned n, const char *code);
void expect_refused(struct play *p, unsigned n, const char *code);
void expect_passes(struct play *p, unsigned n);

#endif
