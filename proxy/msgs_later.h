/* The messages of proxy/msgs.h, whose rules and numbers they share, about what the gateway sends itself once it is
 * approved, and what a sandbox asks of its own tickets. */
#ifndef PROXY_MSGS_LATER_H
#define PROXY_MSGS_LATER_H
/* clang-format off */
enum msg_type_later {
    /* judge and ledger */
    M_TICKET_LATER = 280, /* Lg>J id: the exchange that sends it, of no front (XID_LATER); wire_review, wire_later, u64 size, span inline or fd: approved, and nobody waits for it: claim it, send it, keep its answer. Said again as long as it is approved */
    M_TICKET_ASK = 281,   /* J>Lg id ticket, span session, bool answer: what has become of it? with answer: and what was answered */
    M_TICKET_IS = 282,    /* Lg>J u8 (0 this session has no such ticket, 1 it has, 2 it cannot be read now); of 1: wire_ticket_state, bool the gateway sends it itself, u64 tries that sent nothing, u64 Unix ms until which its answer is kept (0: it is not), and with has_answer as of M_TICKET */
};
/* clang-format on */
#endif
