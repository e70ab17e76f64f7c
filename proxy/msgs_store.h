/* The messages to and from the ledger and the desk; the rest, and what holds for all of them, is proxy/msgs.h. */
#ifndef PROXY_MSGS_STORE_H
#define PROXY_MSGS_STORE_H
/* clang-format off */
enum msg_store_type {
    /* judge and ledger */
    M_TICKET_OPEN = 80,    /* J>Lg wire_ticket, limits (wire_limit.h; what a ticket reserves counts from its claim on, and while it is open always; freed when it ends unsent), u64 size, span inline or fd: the body */
    M_TICKET = 81,         /* Lg>J wire_ticket_state: of the ticket opened or joined; of none, for "over-limit": wire_over follows */
    M_TICKET_CHANGED = 82, /* Lg>J id 0; wire_ticket_state */
    M_CLAIM = 83,          /* J>Lg id ticket, span credential, span host, u16 port, digest policy, span rule, digest terms (identity.h): approved -> executing, and the intent, in one transaction */
    M_CLAIMED = 84,        /* Lg>J bool ok, u8 state, digest, span signature, wire_request, u64 size, span inline or fd: the bytes first held. Not ok: nothing after state */
    M_INTENT = 85,         /* J>Lg wire_record, digest join (zero: none of it can become a hold), limits: an allowed unsafe request, or one with limits, before it is sent; reserves them. A ticket this one would join (of this session and join key, live, with an answer that waits, or denied a moment ago) makes all of them past */
    M_INTENT_OVER = 94,    /* Lg>J wire_over: nothing was written or reserved; of none: the store failed */
    M_INTENT_OK = 86,      /* Lg>J bool ok: false, the store cannot keep it; nothing may be sent */
    M_SENT_MARK = 87,      /* J>Lg */
    M_OUTCOME = 88,        /* J>Lg wire_record, id ticket (none: all zero), u8 outcome, u16 status, u64 out, u64 in, bool delivered, bool kept, bool told: answer when it is written, [wire_answer, u64 size, span inline]. One that is written already changes nothing */
    M_OUTCOME_OK = 98,     /* Lg>J it is written: the judge need not say it again to the next ledger */
    M_AUDIT = 89,          /* J>Lg wire_record: decided without being sent (deny, refusal) */
    M_TICKET_VOID = 90,    /* J>Lg id ticket, span why: the policy of now would not hold this request so: pending or approved -> cancelled */
    M_REVIEW = 95,         /* J>Lg id: number of the policy: it is another now; show me what is open */
    M_TICKET_REVIEW = 96,  /* Lg>J id: as asked; one of them, the next when this one was answered: wire_review, u64 size, span inline or fd: the bytes first held */
    M_REVIEWED = 97,       /* J>Lg id: as asked; id ticket, bool keep: false, the policy of now would not hold it so: pending or approved -> cancelled */
    M_SANDBOX = 91,        /* Lg>J id 0; wire_sandbox, bool gone */
    M_WEBSOCKET = 93,      /* J>Lg wire_record, u64 messages out, u64 messages in, u64 bytes out, u64 bytes in, u16 close code: its end */
    M_STORE = 92,          /* Lg>J id 0; bool ok: when it changes, and as a sign of life every second it is spoken to */
    /* desk and ledger; id: the desk's own */
    M_DECIDE = 100,       /* D>Lg id ticket, u8 (1 approve, 2 deny, 3 cancel), span operator, span channel, span reason, digest shown */
    M_DECIDED = 101,      /* Lg>D u8 (0 store failed, 1 done, 2 not pending any more, 3 no such ticket, 4 expired, 5 another digest, 6 a reason is required), u8 state */
    M_AUDIT_KEY = 132,    /* Lg>D id 0; span public half (32 bytes) of the key that signs the audit: when it is known */
    M_BODY_GET = 102,     /* D>Lg id ticket */
    M_BODY_IS = 103,      /* Lg>D bool ok, u64 size, span inline or fd */
    M_SANDBOX_PUT = 104,  /* D>Lg, P>Lg wire_sandbox */
    M_SANDBOX_RM = 105,   /* D>Lg span name, bool end_session: true ends a session of a name of its own too (tickets, kept answers) */
    M_SANDBOX_TOKEN = 118, /* D>Lg span name, digest of one more token, bool alone: true ends the earlier ones; answered like M_SANDBOX_PUT */
    M_SANDBOX_DONE = 106, /* Lg>D bool ok, span why */
    M_EVENT = 107,        /* Lg>D id: sequence; span kind ("ticket", "sandbox"), span subject */
    M_FREEZE = 109,       /* D>Lg bool on, span operator, span reason: kept over restarts; Lg>D bool ok, span why; Lg>J id 0 bool on, when it changes and at once to a new judge */
    M_NOTE = 108,         /* D>Lg, P>Lg, K>Lg span kind, span json: an audit record of an operator's or the parent's act */
    /* desk and parent; id: the desk's own */
    M_SANDBOX_OPEN = 110,   /* D>P span name, bool captured: make its Unix listener (captured: LISTEN_CAPTURED_UNIX) */
    M_SANDBOX_OPENED = 111, /* P>D bool ok, span path or why */
    M_SANDBOX_CLOSE = 112,  /* D>P span name */
    M_RELOAD = 113,         /* D>P span operator */
    M_ROLLBACK = 119,       /* D>P span operator, span first digits of a version's digest (empty: back to the files); answered by M_RELOADED */
    M_VERSIONS = 117,       /* D>P; P>D span json: the versions of the policy that are kept */
    M_POLICY_NOTICE = 99,   /* P>D id 0; span version (empty: the policy is not pinned), span who, u64 since; span how (empty: the last change was not refused), span who, u64 when, span why */
    M_RELOADED = 114,       /* P>D bool ok, span text */
    M_STATUS = 115,         /* D>P; P>D span json */
    M_LOG_SET = 133,        /* D>P bool change: false, only say what is in force; u8 enum log_level (LOG_NONE: as it is), bool follow, span sandbox or exchange (empty: none), u64 for how many ms (0: until the next reload); P>D bool ok, span json or why */
    M_TRACE_OF = 134,       /* D>P span exchange; P>D bool ok, span json or why */
    M_SIGNIN = 116,         /* D>P span url: a sign-in link that opens once, for the terminal */
};
#endif
