#include "broker/store/postgres/link.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/store/postgres/postgres.h"
#include "common/time/clock.h"

/* So long for one attempt to connect, ms; and between two, as often as the one before took. */
enum { CONNECT_MS = 3000, PAUSE_TIMES = 5, PAUSE_LEAST_MS = 50, PAUSE_MOST_MS = 2000 };

#define IN_FAILED_TRANSACTION "25P02"

/* --- waiting --------------------------------------------------------------------------- */

static int failed(struct link *k, bool passes, const char *words)
{
    const char *end = strchr(words, '\n');
    k->passes = passes;
    return err_set(&k->why, "PostgreSQL: %.*s", (int)(end ? end - words : (long)strlen(words)), words);
}

void link_drop(struct link *k)
{
    if (k->c != NULL)
        PQfinish(k->c);
    k->c = NULL;
    k->telling = false;
    k->pulses++; /* what was said meanwhile was missed */
    memset(k->prepared, 0, sizeof(k->prepared));
}

static int lost(struct link *k, const char *words)
{
    (void)failed(k, true, words[0] ? words : "the connection was lost");
    link_drop(k);
    return -1;
}

void link_wait(const struct link *k, int fd, short events, uint64_t ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    if (k->face->wait != NULL)
        k->face->wait(k->face->wait_arg, fd, events, ms);
    else
        (void)poll(&p, 1, (int)ms);
}

/* 0 when the socket is as it is waited for. */
static int wait_for(const struct link *k, short events, uint64_t until)
{
    uint64_t now = clock_ms(CLOCK_MONOTONIC);
    int fd = PQsocket(k->c);
    if (fd < 0 || now >= until)
        return -1;
    link_wait(k, fd, events, until - now);
    return 0;
}

/* PQgetResult can be called and does not wait. */
static int ready(struct link *k)
{
    for (;;) {
        int left = PQflush(k->c);
        if (left < 0)
            return lost(k, PQerrorMessage(k->c));
        if (left == 0 && !PQisBusy(k->c))
            return 0;
        if (wait_for(k, (short)(POLLIN | (left ? POLLOUT : 0)), k->until) != 0)
            return lost(k, "it did not answer in time");
        if (!PQconsumeInput(k->c))
            return lost(k, PQerrorMessage(k->c));
    }
}

/* --- answers --------------------------------------------------------------------------- */

/* By SQLSTATE: may it go well if it is done once more? Two that waited for each other, who waited too long for a row,
 * and what ends with the connection. */
static bool may_pass(const char *state)
{
    static const char *const states[] = {"40001",
                                         "40P01",
                                         "55P03",
                                         "57014",
                                         "57P01",
                                         "57P02",
                                         "57P03",
                                         "53300",
                                         "25P03",
                                         "25006",
                                         IN_FAILED_TRANSACTION};
    if (state == NULL)
        return true;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (strcmp(state, states[i]) == 0)
            return true;
    return strncmp(state, "08", 2) == 0;
}

static bool is_error(const PGresult *r)
{
    ExecStatusType s = PQresultStatus(r);
    return s != PGRES_TUPLES_OK && s != PGRES_COMMAND_OK;
}

/* All results, of which one is kept: an error, else the last with rows. */
static PGresult *results(struct link *k)
{
    PGresult *kept = NULL, *r;
    for (;;) {
        if (ready(k) != 0) {
            PQclear(kept);
            return NULL;
        }
        if ((r = PQgetResult(k->c)) == NULL)
            return kept;
        if (kept == NULL || is_error(r) || (PQresultStatus(r) == PGRES_TUPLES_OK && !is_error(kept))) {
            PQclear(kept);
            kept = r;
        } else {
            PQclear(r);
        }
    }
}

PGresult *link_answer(struct link *k, int sent)
{
    PGresult *r;
    if (!sent) {
        (void)lost(k, PQerrorMessage(k->c));
        return NULL;
    }
    if ((r = results(k)) == NULL) {
        if (k->c != NULL)
            (void)lost(k, PQerrorMessage(k->c));
        return NULL;
    }
    if (!is_error(r))
        return r;
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    /* Without a state it is not the database that says so, and what that has done is not known; and a transaction
     * that failed and was not ended takes nothing any more. */
    bool over = state == NULL || strcmp(state, IN_FAILED_TRANSACTION) == 0 || PQstatus(k->c) == CONNECTION_BAD;
    (void)failed(k, may_pass(state), PQresultErrorMessage(r));
    PQclear(r);
    if (over)
        link_drop(k);
    return NULL;
}

/* What was told has been taken, or the connection is gone. */
static int told(struct link *k)
{
    if (k->telling) {
        k->telling = false;
        PQclear(results(k));
    }
    return k->c != NULL ? 0 : -1;
}

PGresult *link_say(struct link *k, const char *sql)
{
    return told(k) == 0 ? link_answer(k, PQsendQuery(k->c, sql)) : NULL;
}

uint64_t link_number(const PGresult *r, int at)
{
    return r != NULL && PQntuples(r) > 0 ? strtoull(PQgetvalue(r, 0, at), NULL, 10) : 0;
}

/* --- hints ----------------------------------------------------------------------------- */

void link_tell(struct link *k)
{
    /* A transaction of its own: those that notify wait for each other, and this one waits for no disk. */
    static const char sql[] = "SELECT set_config('synchronous_commit','off',true),pg_notify('countersign_broker','')";
    if (k->c != NULL && told(k) == 0 && PQsendQuery(k->c, sql)) {
        k->telling = true;
        (void)PQflush(k->c);
    }
}

void link_hear(struct link *k)
{
    PGnotify *n;
    while (k->c != NULL && (n = PQnotifies(k->c)) != NULL) {
        k->pulses += n->be_pid != PQbackendPID(k->c);
        PQfreemem(n);
    }
}

void link_listen(struct link *k)
{
    if (k->c == NULL || !PQconsumeInput(k->c)) {
        if (k->c != NULL)
            link_drop(k);
        return;
    }
    while (k->telling && !PQisBusy(k->c)) {
        PGresult *r = PQgetResult(k->c);
        k->telling = r != NULL;
        PQclear(r);
    }
    link_hear(k);
}

/* --- connecting ------------------------------------------------------------------------ */

static void unheard(void *arg, const char *message)
{
}

/* Nothing is taken from a file of the user's, the environment or a name service; what is not said here is not done.
 */
static PGconn *start(const struct link *k)
{
    const struct pg_where *w = &k->where;
    bool local = w->folder[0] != '\0', tls = w->roots[0] != '\0';
    char port[8];
    const char *const keys[] = {"user",
                                "dbname",
                                "password",
                                "host",
                                "hostaddr",
                                "port",
                                "sslmode",
                                "sslrootcert",
                                "gssencmode",
                                "passfile",
                                "sslcert",
                                "sslkey",
                                "sslcrl",
                                "krbsrvname",
                                "target_session_attrs",
                                "options",
                                "application_name",
                                "client_encoding",
                                "tcp_user_timeout",
                                NULL};
    const char *const values[] = {w->user,
                                  w->database,
                                  k->password,
                                  local ? w->folder : w->name,
                                  local ? "" : w->address,
                                  port,
                                  tls ? "verify-full" : "disable",
                                  tls ? w->roots : "/nonexistent",
                                  "disable",
                                  "/nonexistent",
                                  "/nonexistent",
                                  "/nonexistent",
                                  "",
                                  "",
                                  "read-write",
                                  "",
                                  "countersign-broker",
                                  "UTF8",
                                  "10000",
                                  NULL};
    (void)snprintf(port, sizeof(port), "%u", w->port);
    return PQconnectStartParams(keys, values, 0);
}

/* The database is there, and says no: to this user, this password, this name of a database. Before there is a
 * connection its SQLSTATE is in the words alone. */
static bool refuses(const char *words)
{
    static const char *const states[] = {" 28P01: ", " 28000: ", " 3D000: "};
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (strstr(words, states[i]) != NULL)
            return true;
    return false;
}

static int connected(struct link *k, uint64_t until)
{
    (void)PQsetErrorVerbosity(k->c, PQERRORS_VERBOSE);
    for (;;) {
        PostgresPollingStatusType s = PQconnectPoll(k->c);
        if (s == PGRES_POLLING_OK) {
            (void)PQsetErrorVerbosity(k->c, PQERRORS_DEFAULT);
            return 0;
        }
        if (s == PGRES_POLLING_FAILED) {
            bool passes = !refuses(PQerrorMessage(k->c));
            (void)lost(k, PQerrorMessage(k->c));
            k->passes = passes;
            return -1;
        }
        if (wait_for(k, s == PGRES_POLLING_READING ? POLLIN : POLLOUT, until) != 0)
            return lost(k, "it did not answer in time");
    }
}

/* As every session of ours is, whatever the server's defaults are. */
static int set_up(struct link *k)
{
    char sql[1024];
    (void)snprintf(sql, sizeof(sql),
                   "SET search_path=pg_catalog,countersign_broker; SET statement_timeout=%llu; SET lock_timeout=%llu;"
                   "SET idle_in_transaction_session_timeout=20000; SET jit=off; SET client_min_messages=error;"
                   "SET bytea_output=hex; SET countersign_broker.version=%d;"
                   "LISTEN countersign_broker;"
                   "SELECT set_config('synchronous_commit','on',false) WHERE current_setting('synchronous_commit')"
                   " IN ('off','local');"
                   "SELECT (extract(epoch FROM pg_postmaster_start_time())*1000)::bigint,"
                   " CASE WHEN %s THEN 1 ELSE 0 END",
                   (unsigned long long)k->wait_ms, (unsigned long long)(k->wait_ms / 2 + 1), BSTORE_PG_VERSION,
                   k->alone ? "pg_advisory_lock(1131635315)::text IS NOT NULL"
                            : "pg_try_advisory_lock_shared(1131635315)");
    PGresult *r = link_say(k, sql);
    if (r == NULL) /* who wants it alone waits for the others, as long as for any lock */
        return k->alone && k->c != NULL
                   ? failed(k, false, "the store is in use: end the brokers that have it as store:, and try again")
                   : -1;
    k->started = link_number(r, 0);
    bool ours = link_number(r, 1) == 1;
    PQclear(r);
    if (!ours)
        return failed(k, true, "countersign-broker migrate has the store just now");
    if (k->alone) { /* nobody waits for it: to empty a large store, or to read it, may take long */
        r = link_say(k, "SET statement_timeout=0; SET idle_in_transaction_session_timeout=0");
        PQclear(r);
        if (r == NULL)
            return -1;
    }
    return k->serves ? link_is_whole(k) : 0;
}

int link_is_whole(struct link *k)
{
    PGresult *r = link_say(k, "SELECT CASE state WHEN 'whole' THEN 1 WHEN 'copying' THEN 2 ELSE 3 END"
                              " FROM countersign_broker.store WHERE application='countersign-broker'");
    if (r == NULL)
        return -1;
    uint64_t state = link_number(r, 0);
    PQclear(r);
    if (state == 1)
        return 0;
    return failed(k, false,
                  state == 2 ? "the store is not all there: countersign-broker migrate has not ended; let it end, or "
                               "begin it anew"
                             : "the store was moved by countersign-broker migrate: say the new one as store:");
}

int link_up(struct link *k)
{
    uint64_t now = clock_ms(CLOCK_MONOTONIC), pause = PAUSE_TIMES * k->took_ms;
    if (k->c != NULL)
        return told(k);
    if (k->once)
        return failed(k, false, "the connection was lost; begin the move anew");
    pause = pause < PAUSE_LEAST_MS ? PAUSE_LEAST_MS : pause > PAUSE_MOST_MS ? PAUSE_MOST_MS : pause;
    if (k->tried != 0 && now < k->tried + pause) {
        k->passes = k->tried_passes;
        return -1; /* the words are those of the last attempt */
    }
    if ((k->c = start(k)) == NULL)
        return failed(k, true, "out of memory");
    (void)PQsetNoticeProcessor(k->c, unheard, NULL);
    int r = connected(k, now + CONNECT_MS < k->until ? now + CONNECT_MS : k->until);
    if (r == 0)
        r = PQsetnonblocking(k->c, 1) == 0 ? set_up(k) : lost(k, "out of memory");
    k->tried = r == 0 ? 0 : clock_ms(CLOCK_MONOTONIC);
    k->took_ms = r == 0 ? 0 : k->tried - now;
    k->tried_passes = k->passes;
    if (r != 0 && k->c != NULL)
        link_drop(k);
    return r;
}
