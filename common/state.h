/* A thing that is in one state at a time, and a table of the changes it may go through. Each kind of state has one
 * setter, which asks here first: a change that the table does not have is a fault of the program, and the setter's
 * owner ends what it is about, as a refusal. */
#ifndef COMMON_STATE_H
#define COMMON_STATE_H

#include "common/span.h"

#define STATE(s) (UINT32_C(1) << (s))

struct state_kind {
    const char *what; /* "connection": for the log */
    size_t n;         /* states; at most 32 */
    const struct state_row {
        const char *name;
        uint32_t next; /* STATE(a) | STATE(b): what may follow */
    } * row;
};

/* Of an array of rows, as an argument of state_may. */
#define STATE_KIND(what, rows) (&(const struct state_kind){what, sizeof(rows) / sizeof((rows)[0]), rows})

/* May it change so? Marked in the trace of this exchange (0: of none); what may not be is logged as an error.
 */
bool state_may(const struct state_kind *k, uint64_t exchange, unsigned from, unsigned to) MUSTCHECK;

#endif
