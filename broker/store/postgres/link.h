/* One connection to the database, for the files here: it is asked, and answers within a time, or is given up. */
#ifndef BROKER_STORE_POSTGRES_LINK_H
#define BROKER_STORE_POSTGRES_LINK_H

#include <libpq-fe.h>

#include "broker/store/sql/sql.h"
#include "broker/store/store.h"
#include "common/err.h"
#include "common/id.h"
#include "common/postgres/where.h"

struct link {
    const struct bstore *face; /* who waits, and how */
    struct pg_where where;
    char password[PG_PASSWORD_MAX + 1];
    char id[ID_TEXT + 1]; /* of this store's writer row */
    PGconn *c;            /* NULL: there is none */
    bool prepared[SQL_COUNT];
    bool alone;              /* nobody else may be connected while this is, for who moves the store */
    bool once;               /* it is not made again: somebody else may have been there meanwhile */
    bool serves;             /* it was found whole, and has to be so whenever it is connected to again */
    bool telling;            /* what was said last has an answer that nobody has read yet */
    uint64_t until;          /* nothing is waited for longer, ms of CLOCK_MONOTONIC */
    uint64_t wait_ms;        /* the database gives up a statement after so long */
    uint64_t started;        /* when the database was started, ms of Unix */
    uint64_t tried, took_ms; /* the last attempt to connect that failed: its end, and how long it was */
    bool tried_passes;       /* what that failed by may go well another time */
    uint64_t pulses;
    bool passes; /* what failed last may go well another time */
    struct err why;
};

/* Waits for a descriptor, or (-1) for nothing. */
void link_wait(const struct link *k, int fd, short events, uint64_t ms);
/* Connected, or -1 with why and passes. */
int link_up(struct link *k) MUSTCHECK;
void link_drop(struct link *k);
/* What is sent is one string of our own; the last rows that come back, or NULL with why and passes. PQclear it. */
PGresult *link_say(struct link *k, const char *sql) MUSTCHECK;
/* The answer to what was sent by PQsend*; sent: what that returned. */
PGresult *link_answer(struct link *k, int sent) MUSTCHECK;
/* A number in the first row, as text. */
uint64_t link_number(const PGresult *r, int at);
/* Is it nobody else's who moves it, or was moved meanwhile? 0, or -1 with why and passes. */
int link_is_whole(struct link *k) MUSTCHECK;
/* Others are to look; nobody waits for it. */
void link_tell(struct link *k);
/* What of it has come in meanwhile is in pulses, and takes no memory any more. */
void link_hear(struct link *k);
/* What the others said since it was asked last is in pulses. */
void link_listen(struct link *k);

#endif
