/* The crash matrix: who is killed, at which point of the store (broker/store/hooks.h), while calls of which class can
 * be lost or doubled. The simulation (tests/unit/broker/sim.h) asks for it at each thing that is done with the store,
 * and goes on with what is left. */
#ifndef TESTS_UNIT_BROKER_MATRIX_KILLS_H
#define TESTS_UNIT_BROKER_MATRIX_KILLS_H

#include "tests/unit/broker/sim.h"

/* The worker and the broker that serves are processes, which end by SIGKILL; the database is a PostgreSQL, which ends
 * by SIGQUIT and is started again; the gateway and the sandbox are the simulation's. */
enum victim { KILL_WORKER = 0, KILL_BROKER, KILL_GATEWAY, KILL_SANDBOX, KILL_DATABASE, KILLS };

/* Off, nothing here is ever called for. */
extern bool kills_on;

/* The store that is open is one gateway's. */
void kills_home(void);
/* All cells are open again, for the database that the tests run with now (fix_postgres); of each sort at most so many
 * are killed. */
enum { KILLS_ALL = 1000000 };
void kills_anew(unsigned of_each);
/* Every cell is looked for. */
bool kills_all(void);
/* What comes is of this kind (below KILLS_KINDS), by a process that is `who`; classes: 1 << class of each call that
 * is at stake. */
enum { KILLS_KINDS = 48, SERVE_KINDS = 32 }; /* from SERVE_KINDS on: who serves */
void kills_begin(enum victim who, unsigned kind, unsigned classes);
/* True: it was done in a process that was killed at it, at a cell that was open; *said is BS_OK if what it changed in
 * the store is kept, else BS_FAIL. False: nothing was done. In that process does() is called, which leaves in *said
 * what the store said last; false: something is wrong. */
bool kills_in(bool (*does)(void *arg), void *arg, enum bstore_result *said);

struct kills_sum {
    unsigned points, hit, cells, done, killed[KILLS];
    unsigned cut, lost; /* connections before a commit; answers to one */
};
/* Cells that cannot be are not counted: of a class before any of it can be at stake, of a point that has another's
 * statements only. */
void kills_count(struct kills_sum *out);
/* What is missing, one a line; false: nothing. cells: not only the points. */
bool kills_missing(bool cells);

/* --- who serves, and who reads --------------------------------------------------------- */

struct serving {
    struct bstore_chatted *turns;
    unsigned *asked; /* so many of them are asked for */
    struct bstore_chat (*chat_of)(unsigned turn);
    const char *(*tenant_of)(unsigned turn);
    unsigned classes; /* at stake */
};
/* A run begins, with the store that is open. */
void serve_anew(void);
/* One request to who serves, which may be killed at it: then it is asked again. NULL, or what is wrong. */
const char *serve_something(const struct serving *s);
/* A turn that calls nothing, but gives what another one's calls gave. */
void serve_replay(const struct claim *c);

#endif
