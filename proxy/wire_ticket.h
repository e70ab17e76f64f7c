/* What the judge and the ledger tell each other of an exchange, a ticket, a sandbox: as pairs, put and
 * get in the same order, as in proxy/wire.h. */
#ifndef PROXY_WIRE_TICKET_H
#define PROXY_WIRE_TICKET_H

#include "proxy/egress/egress.h"
#include "proxy/reach/reach.h"
#include "proxy/wire.h"

struct wire_rule {
    struct span id, file;
    uint32_t line;
};

/* What the audit says of one exchange. */
#define WIRE_CODE_STUB "stub" /* its code when a stub of this gateway answered it: no denial */
struct wire_record {
    struct span sandbox, session;
    struct span method, scheme, host, path; /* path with query, at most 2 KiB, cut */
    uint16_t port;
    struct span verdict, code, op, effect, resource, credential;
    struct span cause; /* of the code "unclassified": policy/ambiguity.h */
    struct wire_rule rule;
    struct digest policy, request; /* digests; request all zero when none was computed */
    bool has_body, upgrade;        /* what else the policy saw of it: for replay and learn */
    struct span content_type;      /* of the body, lower case, without parameters; at most 100 bytes */
    struct span refs;              /* of a push: "create|update|delete REF" a line, at most 1 KiB; a last line "..."
                                      when there are more */
    struct span range, range_sent; /* of a GET: as it was asked for, and of the upstream; at most 96 bytes each. The
                                      second empty: not sent, or as it was asked for */
    uint64_t generation;           /* of a sandbox that the warden has started; else 0 */
    struct wire_step by;           /* which of its commands sent it */
    struct id lease;               /* that it brought; all zero: none */
    bool shadow;                   /* the verdict is what enforcement would have done; the request passed */
};
void wire_put_record(struct dynbuf *b, const struct wire_record *r);
int wire_get_record(struct msg_in *m, struct wire_record *r) MUSTCHECK;

/* What it has in common with others that one grant may cover (proxy/judge/tickets/shape.h); all zero: no grant covers
 * it. */
struct wire_shape {
    struct digest digest;
    struct span json;   /* in words, for a person: {"path", "query": [{"name", "value"}], "body", "names": the same};
                           a value only where it is part of the shape */
    uint32_t uses;      /* at most so many may be granted with it */
    uint64_t within_ms; /* and for so long */
};

/* A client that wants no connection to wait: once its request is approved the gateway sends it itself. */
struct wire_later {
    bool asked;
    struct id lease;      /* that it was asked with; all zero: none */
    struct span narrowed; /* what its holder had added to that (common/lease/narrowed.h) */
};
void wire_put_later(struct dynbuf *b, const struct wire_later *l);
int wire_get_later(struct msg_in *m, struct wire_later *l) MUSTCHECK;

/* Who may approve it too once nobody has decided for so long: entries of approvers: of the policy of its record. */
enum { WIRE_ESCALATE_MAX = 4 }; /* ESCALATE_OF_RULE of policy/decision.h */
struct wire_escalate {
    size_t n;
    struct {
        uint64_t after_ms;
        struct span to;
    } step[WIRE_ESCALATE_MAX];
};
/* Whose yes it needs: struct approval_terms of policy/decision.h. */
struct wire_people {
    uint8_t quorum, self; /* enum self_approval */
    bool step_up;
    uint8_t diff; /* enum diff_wish */
    struct wire_escalate escalate;
};

/* What is asked of it before a person may approve: their names, and digests of what the policy of its record means by
 * them (proxy/identity.h): a name outlives a policy, and what it means does not. */
enum { WIRE_GATES_MAX = 8 }; /* GATES_MAX of policy/decision.h */
struct wire_gates {
    size_t n;
    struct span name[WIRE_GATES_MAX];
    struct digest of[WIRE_GATES_MAX];
};

/* A request to be held. */
struct wire_ticket {
    struct wire_record record;
    struct digest join, terms; /* terms: on which it is held (proxy/identity.h) */
    struct wire_request request;
    struct span summary, facts_json, agent_reason, approve_by, dialect; /* facts_json empty: not made yet; to a
                                                                           request that no ticket is there for, the
                                                                           answer is "facts-wanted" */
    bool reason_required;
    struct wire_people people;
    struct wire_gates gates;
    uint64_t within_ms;
    struct wire_shape shape;
    struct wire_later later;
    bool take_back;    /* its user declined it in the agent's own client: nothing is opened, what is open ends;
                          agent_reason is why, as they said it there */
    uint64_t exchange; /* the frame's id, and not among the fields */
};
enum { WIRE_SELF_NO = 0, WIRE_SELF_OF_MACHINE, WIRE_SELF_YES };
void wire_put_ticket(struct dynbuf *b, const struct wire_ticket *t);
int wire_get_ticket(struct msg_in *m, struct wire_ticket *t) MUSTCHECK;

/* What a page shows of a ticket, and a yes with a passkey is signed over. digest: of the request. */
struct wire_facts {
    struct span ticket, effect, op, resource, credential, sandbox, method, scheme, host, path, query;
    struct span summary, facts_json, agent_reason;
    struct digest digest;
    uint16_t port;
};
/* query with its question mark, or empty. */
void wire_facts_digest(const struct wire_facts *f, struct digest *out);

struct wire_ticket_state {
    struct id ticket;
    uint8_t state; /* enum ticket_state; TICKET_NONE: refused, `words` says why ("too-many-pending", "over-limit",
                      "facts-wanted", "store") */
    bool joined;   /* there before */
    uint64_t expires_ms;   /* Unix time */
    struct span by, words; /* who decided, and what they said */
    bool granted;    /* pending, and a grant fits: M_CLAIM is answered as if it were approved, if it still does */
    bool has_answer; /* done, and its answer was kept: wire_answer, u64 size, span inline or fd follow */
};
/* Of what they said, what the sandbox may read. A model was shown what the operator told it, the rule and who owns
 * the sandbox, beside what the sandbox wrote: its words are for people alone. */
struct span wire_ticket_told(const struct wire_ticket_state *s);
void wire_put_ticket_state(struct dynbuf *b, const struct wire_ticket_state *s);
int wire_get_ticket_state(struct msg_in *m, struct wire_ticket_state *s) MUSTCHECK;

/* Limits on their way to the ledger (policy/limit.h says what one is). The list stands in M_INTENT and M_TICKET_OPEN:
 * u8 n, n x limit. */
enum { WIRE_LIMITS_MAX = 16 };                                 /* LIMITS_MAX of policy/limit.h */
enum { WIRE_PER_SANDBOX = 0, WIRE_PER_SESSION, WIRE_PER_ALL }; /* LIMIT_PER_* of policy/image/records.h */

struct wire_limit {
    struct span rule, measure;
    uint8_t per; /* WIRE_PER_* */
    uint64_t max, window_ms, amount;
    bool uncountable;
};
struct wire_limits {
    size_t n;
    struct wire_limit limit[WIRE_LIMITS_MAX];
};
void wire_put_limits(struct dynbuf *b, const struct wire_limits *l);
int wire_get_limits(struct msg_in *m, struct wire_limits *l) MUSTCHECK;

/* What the ledger found of them: u8 n, n x bool past, u64 room_ms. n 0: it could not look. */
struct wire_over {
    size_t n;
    bool past[WIRE_LIMITS_MAX];
    uint64_t room_ms; /* Unix ms when there may be room in all of them; 0: not known */
};
void wire_put_over(struct dynbuf *b, const struct wire_over *o);
int wire_get_over(struct msg_in *m, struct wire_over *o) MUSTCHECK;

/* An open ticket, for a judge that has another policy by now. */
struct wire_review {
    struct id ticket;
    struct span sandbox, session, code;
    struct digest terms; /* on which it was held; all zero: of a store that kept none */
    bool has_body;
    struct wire_request request;
};
void wire_put_review(struct dynbuf *b, const struct wire_review *r);
int wire_get_review(struct msg_in *m, struct wire_review *r) MUSTCHECK;

enum { WIRE_TOKENS_OLDER = 7 };
struct wire_sandbox {
    struct span name, session, owner, tenant, kind; /* kind: run, token, channel */
    uint64_t generation;
    struct span frozen;               /* why its writes are stopped; empty: they are not */
    uint64_t egress[EGRESS_MEASURES]; /* how much it may (proxy/egress/); 0: no limit */
    uint64_t egress_epoch; /* since which generation that is counted; put: not 0 for one that goes on, as before */
    struct span
        reach; /* what it may reach of what the policy lets it (proxy/reach/); put of one that goes on: as before */
    bool has_token;
    struct digest token_hash; /* SHA-256 of the token's text */
    size_t nolder;            /* earlier tokens that are still good, the newest first */
    struct digest older[WIRE_TOKENS_OLDER];
    size_t nlabels;
    struct {
        struct span key, value;
    } label[16];
};
void wire_put_sandbox(struct dynbuf *b, const struct wire_sandbox *s);
int wire_get_sandbox(struct msg_in *m, struct wire_sandbox *s) MUSTCHECK;

/* What the ledger signs (Ed25519) and the keeper verifies before a held write's credential is released. */
void wire_release_statement(struct dynbuf *b, uint64_t xid, struct span credential, struct span host, uint16_t port,
                            const struct digest *d);

#endif
