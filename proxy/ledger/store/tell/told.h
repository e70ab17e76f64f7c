/* What the ledger does with what is to be told outside the page. */
#ifndef PROXY_LEDGER_STORE_TELL_TOLD_H
#define PROXY_LEDGER_STORE_TELL_TOLD_H

#include "proxy/ledger/store/store.h"
#include "proxy/tell/wire_tell.h"

/* Of one target. Past these a message is not written: one stands for all of them, TELL_MANY_MS later. */
enum {
    TELL_SANDBOX_MINUTE = 10, /* messages of one sandbox in a minute, */
    TELL_MINUTE = 30,         /* of all of them, */
    TELL_QUEUE = 64,          /* and those that wait; an operator's are counted by themselves, as are tests */
    TELL_FIRST = 32,          /* so many more, one a sandbox: of which there is none yet */
    TELL_GIVEN_UP = 100,      /* the last so many that were given up are kept */
    TELL_MANY_MS = 10 * 1000,
    TELL_BACKOFF_MS = 2000, /* after the first try; twice that, and so on, up to */
    TELL_BACKOFF_MAX_MS = 10 * 60 * 1000,
    TELL_DIGEST_MS = 10 * 60 * 1000, /* past a target's budget of an hour: then one stands for them, */
    TELL_BUDGET_MS = 3600 * 1000,
    TELL_TOLD_MS = TELL_BUDGET_MS /* for so long it is remembered that it was told, and that it was not for: */
};
#define TELL_GIVEN_UP_MS (7ull * 24 * 3600 * 1000)

struct tell_targets {
    size_t n;
    struct wire_tell_target target[TELL_TARGETS_MAX];
    struct span desk; /* the page's URL */
};

/* The next one that is due to this target, as it is sent: 1, 0 there is none, -1. The spans live until the next
 * operation. */
struct store_tell {
    struct span id, title, body;
};
int store_tell_next(struct store *s, const struct wire_tell_target *t, struct store_tell *out) MUSTCHECK;
/* What became of a try. It is due again, later each time, until the target's give_up is over. */
int store_told(struct store *s, struct span id, enum tell_outcome what, struct span words) MUSTCHECK;
/* Tell this one something now. *why: a sentence when it may not be, else NULL. */
int store_tell_test(struct store *s, struct span name, struct span by, const char **why) MUSTCHECK;

#endif
