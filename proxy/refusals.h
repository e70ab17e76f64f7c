/* What was turned away before a sandbox was known, counted by listener and code: M_REFUSED of proxy/msgs.h. Codes are
 * our own literals; a peer's message is checked for being words, since the parent prints them. The table is capped:
 * what finds no row is counted as listener "other", code "other", so that no refusal goes uncounted. */
#ifndef PROXY_REFUSALS_H
#define PROXY_REFUSALS_H

#include "common/msg.h"

enum { REFUSALS_MAX = 128, REFUSALS_NAME = 64, REFUSALS_EVERY_MS = 250 };

struct refusals {
    size_t n;
    struct {
        char listener[REFUSALS_NAME], code[REFUSALS_NAME];
        uint64_t count;
    } row[REFUSALS_MAX];
};

void refusals_count(struct refusals *r, struct span listener, struct span code, uint64_t more);
/* All rows as the payload of one message; the sender then zeroes r->n. */
void wire_put_refusals(struct dynbuf *b, const struct refusals *r);
/* Adds what the message says. only: the one listener the sender may speak for; empty: any. -1: malformed, and what
 * stood before the fault is counted. */
int wire_get_refusals(struct msg_in *m, struct span only, struct refusals *r) MUSTCHECK;

#endif
