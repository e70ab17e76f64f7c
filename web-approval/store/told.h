/* What is told outside the page, as the desk reads it (proxy/ledger/store/tell/schema_14.sql). */
#ifndef WEB_APPROVAL_STORE_TOLD_H
#define WEB_APPROVAL_STORE_TOLD_H

#include "web-approval/store/store.h"

/* Of one target: told of the last minutes, given up of the last week. */
struct told_row {
    uint64_t waiting, told, given_up;
    uint64_t told_ms, given_up_ms; /* the last of them; 0: none */
    struct span words;             /* what was answered last, or why it failed; empty: nothing yet */
    uint64_t test_ms, test_tries;  /* of the last test; 0: there is none */
    struct span test_state;
};
int desk_store_told(struct desk_store *s, struct span target, struct arena *a, struct told_row *r,
                    struct err *e) MUSTCHECK;

#endif
