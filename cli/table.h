/* A table on stdout. On a terminal it has a head, and its columns stand under it; elsewhere, for programs, it has
 * none and two blanks part the columns. Of an empty one a word is said: on the terminal, else on stderr. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "common/dynbuf.h"

enum { TABLE_COLUMNS = 13 };

struct table {
    bool people; /* stdout is a terminal: a cell need not repeat what its column's head says */
    const char *heads;
    struct dynbuf rows;          /* not printed yet: cells end with a tab, rows with a line feed */
    size_t width[TABLE_COLUMNS]; /* of what was printed so far */
    bool headed;
};

/* heads: of at most TABLE_COLUMNS columns, parted by tabs. Must be ended with table_end. */
void table_begin(struct table *t, const char *heads);
/* A cell of our own words. */
void table_cell(struct table *t, const char *fmt, ...) PRINTF(2, 3);
/* More of the cell at hand: our own words, or foreign text, of which nothing reaches the terminal as a control
 * character. */
void table_add(struct table *t, const char *words);
void table_add_text(struct table *t, struct span s);
/* The cell at hand is whole; the row is. */
void table_next(struct table *t);
/* Foreign text as a cell. */
void table_text(struct table *t, struct span s);
void table_row(struct table *t);
/* Print the rows so far; later ones stand under them. */
void table_flush(struct table *t);
/* The same, and nothing is left of it. empty: what is said when there was no row. */
void table_end(struct table *t, const char *empty);

#endif
