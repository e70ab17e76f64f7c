/* Many requests of one shape in a table: a row each, a column for each thing in which they differ. Pure. */
#ifndef WEB_APPROVAL_READING_TABLE_H
#define WEB_APPROVAL_READING_TABLE_H

#include "web-approval/reading/reading.h"

enum {
    TABLE_ROWS = 50,
    TABLE_COLUMNS = 24, /* kept; what differs in more ways is counted */
};

struct table_cell {
    struct span value; /* p NULL: it has none */
    bool odd;          /* nearly all others have another value, the same */
};

struct table {
    struct span name[TABLE_COLUMNS]; /* those with an odd cell first */
    size_t ncolumns, nodd, more;     /* nodd: columns with an odd cell; more: names that are not kept */
    struct table_cell cell[TABLE_ROWS][TABLE_COLUMNS];
};

/* n at most TABLE_ROWS. Odd is what one in four at most has in place of what all others share, of four rows or more;
 * of three, what one has. */
void reading_table(const struct reading *const *rows, size_t n, struct table *out);

#endif
