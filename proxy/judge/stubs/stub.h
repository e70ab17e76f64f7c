/* Services that SDKs insist on getting their credentials from, answered here with a lease of a credential that says
 * stub: in the policy: instance and container metadata of AWS, metadata of Google, the token endpoint of OAuth. No
 * request of these goes anywhere; whom the address belongs to is never asked. */
#ifndef PROXY_JUDGE_STUB_H
#define PROXY_JUDGE_STUB_H

#include "common/lease/wire_lease.h"
#include "proxy/judge/exchange/exchange.h"
#include "proxy/judge/replies/refuse.h"

enum {
    STUB_WAIT_MS = 10 * 1000,
    STUB_BODY_MAX = 64 * 1024, /* of a question to a token endpoint */
    STUB_TTL_MAX = 21600,      /* seconds; of a session token of AWS' metadata */
};

/* Is this exchange, by its decision of now, a stub's to answer? A rule that denies or holds it stands, and a floor.
 */
bool stub_is(struct exchange *x);
/* What it asks is in its body. */
bool stub_wants_body(const struct exchange *x);
/* Answer it; it may wait first for its turn, and for the lease. */
enum walk_next stub_answer(struct exchange *x);
/* The ledger's word, M_LEASE_STUBBED. -1: it is none. */
int stub_given(struct judge *j, uint64_t xid, struct span payload) MUSTCHECK;
/* It asks no more: the next of its sandbox may, when the turn ends. */
void stub_settle(struct exchange *x);
/* The end of a turn: those whose turn it is to ask go on. False: there were none. */
bool stub_turns(struct judge *j);
/* A lease as the ledger tells of it: what a person did to one of a stub's stays, so no other is given. */
void stub_lease_told(struct judge *j, const struct wire_lease *w);

/* For the files below: an answer in the making. What it says is text that lives as long as the exchange. */
struct stub_says {
    struct exchange *x;
    struct credential credential;
    struct wire_reply reply;
    bool wants_lease; /* that is not here yet */
    struct span body;
};
/* One for each kind: REFUSE_COUNT, and it is filled or wants a lease first; else why it is refused. */
enum refuse_why stub_aws(struct stub_says *s);
enum refuse_why stub_aws_container(struct stub_says *s);
enum refuse_why stub_google(struct stub_says *s);
enum refuse_why stub_oauth(struct stub_says *s);

/* The value of the only field of this name; empty: there is none, an empty one, or more than one. */
struct span stub_field(const struct exchange *x, struct span name);
bool stub_is_get(const struct exchange *x);
/* Seconds that its lease still lives. */
uint64_t stub_seconds(const struct exchange *x);
/* Say this, of our own making. -1: no memory. */
int stub_say(struct stub_says *s, const char *type, struct span body) MUSTCHECK;

/* Session tokens of AWS' metadata: they mean something to this process and one sandbox. */
enum { STUB_TOKEN_BYTES = 8 + DIGEST_BYTES, STUB_TOKEN_TEXT = 2 * STUB_TOKEN_BYTES };
int stub_token_make(struct exchange *x, uint64_t seconds, char out[STUB_TOKEN_TEXT + 1]) MUSTCHECK;
bool stub_token_good(struct exchange *x, struct span text);

#endif
