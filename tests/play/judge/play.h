/* Plays for the judge: the real code, a faked wire, a clock turned by hand, a policy of a few words. What the judge
 * sends is a queue; expect() takes its head, so that the order across all peers is part of the play.
 *
 * The policy is text, one rule a line, first match wins, nothing matched is a denial:
 *   VERDICT EFFECT METHOD PATH-PREFIX [rule=ID] [by=APPROVERS] [reason: required] [stands=MS: once approved]
 *   [cred=N] [say=WORDS_WITH_UNDERSCORES] [need] [dialect=N]
 *   [join=N: only the first N bytes of the body] [wait=MS] [op=OP] [bodymax=N] [wordless: no summary]
 *   [limit=MAX/MS: requests] [sum=MAX/MS amount=N: of json:/amount; without amount it cannot be counted]
 *   [over=RULE: the hold that takes what is past them] [opens=MS: held after so long] [unclear]
 *   [bulk=N: bytes of what it parses] [cost=US: the time each decision takes]
 *   [ws: WebSocket upgrades alone] [send=N] [max=N] [total=N] [within=MS]
 * Credential N is named "credN" and may go to api.example:443 alone; cred3 into its query, as "key". Number 4 is
 * "leased", in Authorization as Bearer, with leases; a comment `lease-required`, `leak-freezes`, `redefined`,
 * `lease-signs` (SigV4 for s3, in pairs), `signs-parts`, `signs-body` or `signs-head` (with a template, in
 * X-Signature and X-Time), `of-answers` (to requests with cred1;
 * `asks-beside`: cred1 goes with cred2; `asks-leased`: cred1 is as leased), `at-an-address` (all for [2001:db8::1]),
 * `renamed-credential` or `moved-elsewhere` (to elsewhere.example) in the text says more of it; `stub-aws`,
 * `stub-container`, `stub-google` or `stub-oauth`, that stub.example answers with leases of it what no rule fits. */
#ifndef TESTS_PLAY_JUDGE_PLAY_H
#define TESTS_PLAY_JUDGE_PLAY_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "policy/policy.h"
#include "proxy/judge/judge.h"
#include "proxy/judge/recording/recorder.h"
#include "proxy/wire_ticket.h"
#include "tests/kit.h"

enum { FRONT = 7, OTHER_FRONT = 9 };
#define PLAY_WALL 1767225600000u /* Unix time when `now` is 0 */
#define XID(n)    ((uint64_t)FRONT << 40 | (n))
#define OTHER(n)  ((uint64_t)OTHER_FRONT << 40 | (n))

struct sent {
    enum role_id to;
    uint64_t instance;
    uint16_t type;
    uint64_t id;
    struct dynbuf payload;
    int fd;
};

struct play {
    struct judge *j;
    uint64_t now, alarm;
    bool up[ROLE_COUNT];
    struct sent out[2048], open;
    size_t first, n;
    struct sent got; /* the last one expected */
    uint8_t digest;  /* of the policy, its first byte */
    struct wire_limits limits;
    bool held_back[512];       /* by a front's instance: it is not read */
    bool unwritten;            /* an outcome that is expected is not answered as written */
    const char *range_sent;    /* a result's word of it; NULL: none */
    struct recorder *recorder; /* of what goes to and fro; NULL: nothing is */
    bool clients;              /* show M_TICKET_CLIENT too, of each that waits */
    bool reviews;              /* show M_REVIEW too, which every policy and every ledger brings */
};

enum { ASK_MORE = 4 };
struct ask {
    const char *host; /* NULL: api.example */
    const char *method, *path, *query, *header, *value, *body, *reason;
    struct http_field more[ASK_MORE]; /* fields, to the first without a name */
    bool upgrade;                     /* a field Upgrade before all others */
    bool forwarded;                   /* it came with X-Forwarded-For */
    uint8_t kind;                     /* 0: none, or inline when there is a body; 2: to come */
    uint64_t declared;
};

#define GET(p)     (&(struct ask){.method = "GET", .path = (p)})
#define POST(p, b) (&(struct ask){.method = "POST", .path = (p), .body = (b)})

void play_open(struct play *p);                    /* a judge with nobody around */
void play_all(struct play *p, const char *policy); /* all peers, sandbox "sb" with session "ses", policy */
void play_close(struct play *p);                   /* nothing may be left over */
void play_policy(struct play *p, const char *text);
int play_policy_fd(const char *text, uint8_t digest, unsigned seals);
void play_peer(struct play *p, enum role_id r, uint64_t instance, const char *info);
void play_gone(struct play *p, enum role_id r, uint64_t instance);
void play_time(struct play *p, uint64_t ms); /* passes; the alarm goes off on its way */
void play_sandbox(struct play *p, const char *name, const char *session, const char *token, bool gone);

/* From a peer: begin, add fields with msg_put_*, end; or all in one. */
struct dynbuf *from(struct play *p);
int give(struct play *p, enum role_id r, uint64_t instance, uint16_t type, uint64_t id, int fd); /* what from() has */
void give_request(struct play *p, uint64_t xid, const struct ask *a);
void give_ticket(struct play *p, uint64_t xid, uint8_t n, enum ticket_state s);
void give_changed(struct play *p, uint8_t n, enum ticket_state s, const char *by, const char *words);
void give_claimed(struct play *p, uint64_t xid, const struct ask *first, const struct digest *d);
/* The same with a body in a memfd of so many bytes; takes fd over. */
void give_claimed_fd(struct play *p, uint64_t xid, const struct ask *first, const struct digest *d, uint64_t n,
                     int fd);
void give_result(struct play *p, uint64_t xid, enum outcome o, uint16_t status, bool relayed, const char *code);
void give_bool(struct play *p, enum role_id r, uint16_t type, uint64_t id, bool v);

/* The next frame is this one; its fields are read from the returned reader. */
struct msg_in expect(struct play *p, enum role_id to, uint16_t type, uint64_t id);
void expect_nothing(struct play *p);
/* M_REPLY with this status and code (in the body) and these words somewhere in it (NULL: any). */
struct wire_reply expect_reply(struct play *p, uint64_t xid, unsigned status, const char *words);
struct wire_forward expect_forward(struct play *p, uint64_t xid, struct span *inline_body);
struct wire_ticket expect_ticket_open(struct play *p, uint64_t xid); /* its limits: p->limits */
enum outcome expect_outcome(struct play *p, uint64_t xid, bool with_ticket);
void expect_audit(struct play *p, uint64_t xid, const char *verdict, const char *code);
/* True while the judge runs: when the torture play lets allocations fail. Then frames may fail to be built, too. */
extern bool play_inside, play_torture;
extern uint64_t play_spent_us; /* in this turn */

#endif
