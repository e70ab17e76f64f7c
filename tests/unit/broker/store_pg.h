/* A PostgreSQL of a test's own: below its folder, a Unix socket and no TCP, as a user who is not root, ended with it.
 */
#ifndef TESTS_UNIT_BROKER_STORE_PG_H
#define TESTS_UNIT_BROKER_STORE_PG_H

#include <stddef.h>

/* postgresql://..., of the database that runs. */
extern char pg_url[160];

void pg_start(void);
void pg_stop(void);
/* As after a power cut of the database alone (immediate), and up again; it does not wait until it serves. */
void pg_restart(void);
/* The first half of that; pg_restart is the other. */
void pg_down(void);
/* Statements, as the database's owner. */
void pg_exec(const char *sql);
/* The first value that comes back, as text; false: there is no row. */
int pg_one(const char *sql, char *out, size_t cap);
/* The store's tables are as if they were new. */
void pg_empty(void);
/* Nobody else is connected any more: what a killed process had open is over. */
void pg_quiet(void);
/* What the database has answered this process is lost, and the connections with it. */
void pg_lose(void);
/* Every connection but this is cut off, now. */
void pg_cut(void);

#endif
