/* What is known of a sandbox besides what the warden knows: what its caller said when it was created. The ledger
 * keeps it, as JSON. */
#ifndef PROXY_DOCK_RECORD_H
#define PROXY_DOCK_RECORD_H

#include "proxy/dock/dock.h"

enum {
    RECORD_TEXTS_MAX = 64,        /* metadata, and variables, of a sandbox */
    RECORD_BYTES_MAX = 16 * 1024, /* of each of the two */
};

struct record {
    struct span template, from;         /* from: the template, where that is a snapshot; else empty */
    const struct json *metadata, *envs; /* objects of texts, or NULL */
    const struct json *allow, *deny;    /* of what it may reach: lists of texts, or NULL */
    bool alone;                         /* without a network, whatever its tenant's sandboxes have */
};

/* From the body of a create, of which every member is one that is known. -1, answered. */
int record_take(struct call *x, const struct json *body, struct record *r) MUSTCHECK;
/* What was said of one that is there, by its note. */
void record_of(const struct json *note, struct record *r);
/* What it may reach, as an object of this name with `allowOut` and `denyOut`; nothing where that is not narrowed. */
void record_put_reach(struct jsonw *w, const char *name, const struct record *r);
/* As it is kept; p NULL: no memory. */
struct span record_text(struct call *x, const struct record *r) MUSTCHECK;
/* An object of texts; of none {}. */
void record_put_texts(struct jsonw *w, const struct json *object);
/* Has it all the pairs of a query-like text ("a=b&c=d")? */
bool record_has(struct call *x, const struct json *object, struct span pairs);

#endif
