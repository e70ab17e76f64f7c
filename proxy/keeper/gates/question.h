/* What a gate is asked with, and by what: made here, where its secret is. */
#ifndef PROXY_KEEPER_GATES_QUESTION_H
#define PROXY_KEEPER_GATES_QUESTION_H

#include "proxy/fetcher/wire_fetch.h"
#include "proxy/keeper/keeper.h"

/* A request as the ledger writes it down. input: JSON whose end is left out, behind its body's size and hash;
 * body: its body in base64, or empty; complete: that is all of it. */
struct gate_shown {
    const struct id *ticket;
    const struct digest *of; /* the gate's own */
    struct span input, body;
    bool complete;
};

/* Adds the fetcher's question to out (a wire_fetch). *secret: what it is asked with and must not come back, owned by
 * the caller; NULL: nothing. 0; or -1 with words that hold no secret, and *never: it can never be asked so. */
int gate_question(struct keeper *k, const struct gate *g, const struct gate_shown *s, struct dynbuf *out,
                  struct secret **secret, bool *never, struct err *e) MUSTCHECK;
/* Does what came back have the secret in it, as it is, in base64 or in hexadecimal? Who reads it is a person, or the
 * sandbox. */
bool gate_says_secret(struct span words, const struct secret *s);

#endif
