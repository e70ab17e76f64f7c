/* The name server of captured sandboxes: every host name has the same address, one of ours, and no question is ever
 * asked of anybody for it (C16). Where a connection to that address is meant to go is told by its SNI or Host.
 * Sans-io. RFC 1035 section 4.1, RFC 6891 (EDNS), RFC 2308 (an empty answer).
 *
 *   A              198.18.0.1 (ANSWER_ADDRESS; RFC 2544's range for benchmarks: no real host is behind it)
 *   AAAA           nothing, no error: a client with both takes IPv4, which is captured
 *   anything else  nothing, no error: HTTPS and SVCB would lead to QUIC, TXT and the rest are ways in and out
 *
 * No error without a record is also what a name that is no host name (underscores) gets for other types than A; for A
 * it does not exist, like `localhost` and literal addresses. One question, class IN, no compression; at most one OPT
 * record and no other; nothing behind it. What is malformed gets FORMERR, and what has no whole header or is itself
 * an answer gets silence. An answer is never much longer than its question: nobody gains by a forged source. */
#ifndef RESOLVER_ANSWER_H
#define RESOLVER_ANSWER_H

#include "common/span.h"

enum {
    ANSWER_ADDRESS = 0xc6120001,
    ANSWER_TTL = 60,       /* s */
    ANSWER_MAX = 300,      /* 12 of header, 259 of question, 16 of record, 11 of OPT: never truncated */
    ANSWER_ASK_MAX = 4096, /* longer questions are malformed */
};

/* The answer's length, 0 for silence. */
size_t answer_make(struct span query, uint8_t out[ANSWER_MAX]) MUSTCHECK;

#endif
