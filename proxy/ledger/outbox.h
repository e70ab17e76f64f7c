/* What is to be said when the turn has been committed, and what instead if it was
 * not: replies with a refusal of their own, news without one (they are dropped).
 *
 *   frames of a turn -> store operations -> outbox -> COMMIT -> said   | failed -> refusals said
 */
#ifndef PROXY_LEDGER_OUTBOX_H
#define PROXY_LEDGER_OUTBOX_H

#include "common/dynbuf.h"

enum outbox_to { TO_NONE = 0, TO_JUDGE, TO_DESK, TO_WARDEN, TO_KEEPER };
enum { OUTBOX_BYTES = 32 * 1024 * 1024, OUTBOX_FULL = 8 * 1024 * 1024, OUTBOX_REPLIES = 2048 };

struct outbox_entry {
    enum outbox_to to;
    uint16_t type;
    uint64_t id;
    size_t ok, nok, fail, nfail; /* in bytes */
    bool has_fail;
    int fd; /* goes with ok; -1 */
};

struct outbox {
    struct dynbuf bytes;
    struct outbox_entry entry[2 * OUTBOX_REPLIES];
    size_t n;
};

typedef void outbox_send_fn(void *arg, enum outbox_to to, uint16_t type, uint64_t id, struct span payload, int fd);

void outbox_init(struct outbox *o);
void outbox_free(struct outbox *o);
/* Takes fd (-1: none). fail NULL: nothing is said on failure. -1: full or no memory; then only the refusal is left,
 * and the turn must be failed. */
int outbox_put(struct outbox *o, enum outbox_to to, uint16_t type, uint64_t id, struct span ok, int fd,
               const struct span *fail) MUSTCHECK;
/* Time to commit before the turn is over. */
bool outbox_full(const struct outbox *o);
/* Say all of it, one way or the other, and forget it. */
void outbox_flush(struct outbox *o, bool committed, outbox_send_fn *send, void *arg);

#endif
