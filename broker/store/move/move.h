/* All that a store has, copied to another one, whatever database each is in. Both are open for nobody else. */
#ifndef BROKER_STORE_MOVE_MOVE_H
#define BROKER_STORE_MOVE_MOVE_H

#include "broker/store/state.h"
#include "broker/store/store.h"
#include "common/id.h"

enum { MOVE_TABLES = 10, MOVE_ROWS_AT_ONCE = 32 };

struct move_counts {
    struct move_count {
        const char *table;
        uint64_t rows;
        struct digest digest; /* of all its rows, in the order of their keys; the same in every database */
    } of[MOVE_TABLES];
};

/* What is there, at one moment, read to its end; 0, or -1 with the reason. */
int move_count(struct bstore *s, struct move_counts *out, struct err *e) MUSTCHECK;
/* May one that was found in this state be moved to one in that? Asked before `to` is made (NULL: it is
 * BSTORE_ABSENT), and of what was made once more. 0, or -1 with words that say what to do. */
int move_may(struct bstore *from, enum bstore_state is, struct bstore *to, enum bstore_state will,
             struct err *e) MUSTCHECK;
/* Moves it. Until the end no broker takes `to`; at the end no broker takes `from` any more. Who is cut off anywhere
 * finds `from` as it was, or `to` whole, or (for the moment between) neither of them taken, and in each case the same
 * move may be begun anew: both have its id, and what one move has begun no other goes on with. 0, or -1 with the
 * reason: from is as it was then, or the next attempt goes on from there.
 */
int move_all(struct bstore *from, struct bstore *to, struct move_counts *out, struct err *e) MUSTCHECK;

#endif
