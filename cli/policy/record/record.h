/* One audit record, found by a strict scan of its JSON, and what a policy needs of it. Fast, because a replay reads a
 * million of them: nothing is allocated, and a text without escapes is where it was. */
#ifndef CLI_POLICY_RECORD_RECORD_H
#define CLI_POLICY_RECORD_RECORD_H

#include "common/span.h"

enum { RECORD_BYTES_MAX = 64 * 1024, RECORD_CUT = 2048, RECORD_REFS_MOST = 256 };

/* What is not recorded is empty, or false. */
struct record {
    struct span time, kind, exchange, ticket, sandbox, method, scheme, host, path, verdict, code, op, effect,
        resource;
    struct span credential, type, request, rule, rule_file, state; /* state: of its ticket, once it was decided */
    struct span refs;                                              /* a line each */
    uint64_t seq, port, rule_line;
    bool body, upgrade, shadow;
    bool again; /* what came of the ticket of one that was told before; source.h */
};

/* Unescaped texts are put into room, which has RECORD_BYTES_MAX bytes. False: this is no record; *why says where it
 * goes wrong. */
bool record_scan(struct span json, uint8_t *room, struct record *r, const char **why) MUSTCHECK;
/* "2026-11-22T10:20:30.123Z" (the fraction may be missing), Unix milliseconds; 0, or -1. */
int record_time(struct span text, uint64_t *ms) MUSTCHECK;

#endif
