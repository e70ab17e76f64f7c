#include "broker/store/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/store/postgres/link.h"
#include "broker/store/postgres/schema_2_sql.h"
#include "broker/store/postgres/schema_3_sql.h"
#include "broker/store/postgres/schema_sql.h"
#include "broker/store/postgres/words.h"
#include "broker/store/sql/sq.h"
#include "common/time/clock.h"

enum { TEXT_MAX = 2048, PAUSE_MS = 20, PAUSE_MOST_MS = 200, OID_INT8 = 20, OID_TEXT = 25, OID_BYTEA = 17 };

static const char *const words[SQL_COUNT] = {
#define X(name, sql) [SQL_##name] = sql,
    PG_WORDS(X)
#undef X
};
static const struct {
    const char *name, *text;
} statements[SQL_COUNT] = {
#define X(name, sql) [SQL_##name] = {#name, sql},
    SQL_STATEMENTS(X) SQL_MOVES(X)
#undef X
};

struct pg {
    struct sq sq; /* first */
    struct link link;
    bool reads, begun; /* a transaction is open */
    bool away;         /* it was given up once: until it is back, a call tries once */
    bool makes;        /* where there is none it is made */
    bool unmade;       /* it was not there yet: whoever comes to it first sees to the tables */
    enum bstore_state found;
    uint64_t mark;  /* of this transaction, in the writer's row */
    uint64_t since; /* when the call began, ms of CLOCK_MONOTONIC; 0: there is none */
    unsigned tries;
};

static struct pg *pg_of(struct sq *l)
{
    return (struct pg *)l;
}

static void at(struct sq *l, const char *point)
{
    if (l->test != NULL && l->test->at != NULL)
        l->test->at(l->test->arg, point);
}

static int doom(struct pg *p)
{
    return sq_doom(&p->sq, p->link.why.text);
}

static uint64_t patience(const struct pg *p)
{
    return p->sq.face.patience_ms > 0 ? p->sq.face.patience_ms : BSTORE_PG_PATIENCE_MS;
}

/* --- transactions ---------------------------------------------------------------------- */

#define NOW "(extract(epoch FROM clock_timestamp())*1000)::bigint"

static int add_writer(struct pg *p)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql), "INSERT INTO writer(id,n,seen_ms) VALUES('%s',0," NOW ") ON CONFLICT DO NOTHING",
                   p->link.id);
    PGresult *r = link_say(&p->link, sql);
    PQclear(r);
    return r != NULL ? 0 : -1;
}

/* What only reads sees one moment of the store. What changes it waits for rows and then sees them as they are: the
 * order of the locks (sq.h) and the fence are what holds it together, and its first row is the writer's own. */
static int begin(struct pg *p, bool reads)
{
    char sql[512];
    (void)snprintf(sql, sizeof(sql),
                   reads ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 0," NOW
                         : "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; UPDATE writer SET n=n+1,seen_ms=" NOW
                           " WHERE id='%s' RETURNING n,seen_ms",
                   p->link.id);
    p->begun = true; /* of both statements the first may have been done, and the second not */
    PGresult *r = link_say(&p->link, sql);
    if (r == NULL)
        return -1;
    bool there = PQntuples(r) == 1;
    p->mark = link_number(r, 0);
    p->sq.now = link_number(r, 1);
    PQclear(r);
    if (there)
        return 0;
    PQclear(link_say(&p->link, "ROLLBACK"));
    p->begun = false;
    return add_writer(p) == 0 ? begin(p, reads) : -1;
}

static int open_once(struct pg *p);

static int pg_begin(struct sq *l, bool reads)
{
    struct pg *p = pg_of(l);
    uint64_t now = clock_ms(CLOCK_MONOTONIC);
    if (p->since == 0) {
        p->since = now;
        p->tries = 0;
    }
    p->link.until = p->since + patience(p);
    if (p->link.until < now + PAUSE_MOST_MS)
        p->link.until = now + PAUSE_MOST_MS;
    p->reads = reads;
    p->link.passes = false;
    if ((p->unmade ? open_once(p) : link_up(&p->link)) != 0)
        return doom(p);
    p->away = p->unmade = false;
    link_hear(&p->link); /* a broker that nobody watches asks for no pulse */
    l->started = l->test == NULL || l->test->now_ms == NULL ? p->link.started : 0;
    at(l, "BEGIN");
    return begin(p, reads) == 0 ? 0 : doom(p);
}

static void forget_rows(struct sq *l)
{
    for (unsigned i = 0; i < SQL_COUNT; i++)
        sq_reset(&l->stmt[i]);
}

static void pause_for(struct pg *p, uint64_t ms)
{
    link_wait(&p->link, -1, 0, ms);
}

/* Was this change kept, whose commit was sent and not answered? Whoever asks for the writer's row waits until that
 * transaction is over. 1: yes, 0: no, -1: it cannot be known now. */
static int kept(struct pg *p)
{
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "SELECT n FROM writer WHERE id='%s' FOR UPDATE", p->link.id);
    for (uint64_t until = p->since + patience(p);;) {
        p->link.until = until;
        PGresult *r = link_up(&p->link) == 0 ? link_say(&p->link, sql) : NULL;
        if (r != NULL) {
            int is = PQntuples(r) == 1 ? link_number(r, 0) == p->mark : -1;
            PQclear(r);
            return is;
        }
        if (clock_ms(CLOCK_MONOTONIC) + PAUSE_MS >= until)
            return -1;
        pause_for(p, PAUSE_MS);
    }
}

static int in_doubt(struct pg *p)
{
    struct err first = p->link.why;
    int is = kept(p);
    p->begun = false;
    if (is == 1)
        return 0;
    p->link.passes = is == 0;
    p->link.why = first;
    if (is < 0)
        err_set(&p->link.why, "%.200s; whether the last change was kept is not known yet", first.text);
    return -1;
}

static int commit(struct pg *p)
{
    PGresult *r;
    at(&p->sq, "COMMIT");
    int sent = PQsendQuery(p->link.c, "COMMIT");
    if (sent)
        (void)PQflush(p->link.c);
    at(&p->sq, "SENT");
    if ((r = link_answer(&p->link, sent)) == NULL)
        /* Said so over a connection that stands: it is not kept. Else nobody has said so. */
        return p->link.c != NULL ? -1 : in_doubt(p);
    bool done = strcmp(PQcmdStatus(r), "COMMIT") == 0;
    PQclear(r);
    p->begun = false;
    if (!done)
        return err_set(&p->link.why, "PostgreSQL did not keep a change that it had taken");
    at(&p->sq, "COMMITTED");
    return 0;
}

static int pg_commit(struct sq *l)
{
    struct pg *p = pg_of(l);
    forget_rows(l);
    if (p->reads) { /* what was read was so, whatever becomes of the connection now */
        PQclear(link_say(&p->link, "COMMIT"));
        p->begun = false;
    } else if (p->link.c == NULL || commit(p) != 0) {
        return doom(p);
    } else if (l->told) {
        link_tell(&p->link);
    }
    p->since = 0;
    return 0;
}

static void pg_rollback(struct sq *l)
{
    struct pg *p = pg_of(l);
    struct err why = p->link.why;
    bool passes = p->link.passes;
    forget_rows(l);
    if (p->begun && p->link.c != NULL) {
        PGresult *r = link_say(&p->link, "ROLLBACK");
        if (r == NULL && p->link.c != NULL)
            link_drop(&p->link); /* its transaction must not stay */
        PQclear(r);
    }
    p->begun = false;
    p->link.why = why;
    p->link.passes = passes;
    if (!l->doomed)
        p->since = 0;
}

static bool pg_again(struct sq *l)
{
    struct pg *p = pg_of(l);
    uint64_t pause = (uint64_t)PAUSE_MS << (p->tries < 4 ? p->tries : 4), now = clock_ms(CLOCK_MONOTONIC);
    bool again = p->link.passes && !p->away;
    pause = pause < PAUSE_MOST_MS ? pause : PAUSE_MOST_MS;
    if (again && now + pause >= p->since + patience(p)) {
        p->away = p->link.c == NULL;
        again = false;
    }
    p->link.passes = false;
    if (!again)
        p->since = 0;
    else
        pause_for(p, pause);
    p->tries++;
    return again;
}

/* --- statements -------------------------------------------------------------------------- */

/* ?N is $N here. */
static bool write_text(const char *from, char text[TEXT_MAX])
{
    size_t n = 0;
    for (; *from != '\0' && n + 1 < TEXT_MAX; from++)
        text[n++] = (char)(*from == '?' ? '$' : *from);
    text[n] = '\0';
    return *from == '\0';
}

struct sent {
    Oid type[SQ_VALUES_MAX];
    const char *value[SQ_VALUES_MAX];
    int length[SQ_VALUES_MAX], format[SQ_VALUES_MAX];
    uint8_t number[SQ_VALUES_MAX][8];
};

static int bind(const struct sq_stmt *q, struct sent *s)
{
    for (size_t i = 0; i < q->values; i++) {
        const struct sq_value *v = &q->value[i];
        s->format[i] = 1;
        if (v->kind == SQ_INT) {
            for (unsigned b = 0; b < 8; b++)
                s->number[i][b] = (uint8_t)(v->number >> (56 - 8 * b));
            s->type[i] = OID_INT8;
            s->value[i] = (const char *)s->number[i];
            s->length[i] = 8;
        } else {
            if (v->bytes.n > INT32_MAX)
                return -1;
            s->type[i] = v->kind == SQ_TEXT ? OID_TEXT : OID_BYTEA;
            s->value[i] = v->bytes.n ? (const char *)v->bytes.p : "";
            s->length[i] = (int)v->bytes.n;
        }
        if (v->null)
            s->value[i] = NULL;
    }
    return (int)q->values;
}

static PGresult *run(struct pg *p, const struct sq_stmt *q, const char *words_of)
{
    struct link *k = &p->link;
    struct sent s;
    char text[TEXT_MAX];
    int n = bind(q, &s);
    if (n < 0 || !write_text(words_of, text)) {
        k->passes = false;
        (void)err_set(&k->why, "a statement is larger than it may be");
        return NULL;
    }
    if (!k->prepared[q->id]) {
        PGresult *r = link_answer(k, PQsendPrepare(k->c, statements[q->id].name, text, n, s.type));
        PQclear(r);
        if (r == NULL)
            return NULL;
        k->prepared[q->id] = true;
    }
    return link_answer(k, PQsendQueryPrepared(k->c, statements[q->id].name, n, s.value, s.length, s.format, 1));
}

static enum sq_result pg_step(struct sq_stmt *q)
{
    struct pg *p = pg_of(q->of);
    const char *text = words[q->id] != NULL ? words[q->id] : statements[q->id].text;
    if (text[0] == '\0')
        return SQ_DONE;
    if (!q->ran) {
        at(q->of, statements[q->id].name);
        if (p->link.c == NULL || (q->native = run(p, q, text)) == NULL) {
            (void)doom(p);
            return SQ_FAIL;
        }
        q->changes = strtoull(PQcmdTuples(q->native), NULL, 10);
        q->row = -1;
        q->ran = true;
    }
    if (q->row + 1 < PQntuples(q->native)) {
        q->row++;
        return SQ_ROW;
    }
    sq_reset(q);
    return SQ_DONE;
}

static void pg_reset(struct sq_stmt *q)
{
    PQclear(q->native);
    q->native = NULL;
}

static struct span pg_col(struct sq_stmt *q, int at)
{
    if (q->native == NULL || PQgetisnull(q->native, q->row, at))
        return SPAN_NONE;
    return span_of(PQgetvalue(q->native, q->row, at), (size_t)PQgetlength(q->native, q->row, at));
}

/* A whole number or a truth, of whatever size it has in the tables. */
static uint64_t pg_col_int(struct sq_stmt *q, int at)
{
    struct span v = pg_col(q, at);
    uint64_t n = v.n > 0 && v.n < 8 && v.p[0] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = 0; i < v.n && i < 8; i++)
        n = n << 8 | v.p[i];
    return n;
}

static bool pg_col_null(struct sq_stmt *q, int at)
{
    return q->native == NULL || PQgetisnull(q->native, q->row, at);
}

static int pg_mark(struct sq *l, enum bstore_state state)
{
    struct pg *p = pg_of(l);
    const char *sql = state == BSTORE_WHOLE   ? "UPDATE store SET state='whole'"
                      : state == BSTORE_MOVED ? "UPDATE store SET state='moved'"
                                              : "UPDATE store SET state='copying'";
    at(l, "MARK");
    PGresult *r = p->link.c != NULL ? link_say(&p->link, sql) : NULL;
    PQclear(r);
    return r != NULL ? 0 : doom(p);
}

/* Beside transactions only. Away, it is looked for now and then. */
static uint64_t pg_pulse(struct sq *l)
{
    struct pg *p = pg_of(l);
    link_listen(&p->link);
    return p->link.pulses + (p->link.c == NULL ? clock_ms(CLOCK_MONOTONIC) / PAUSE_MOST_MS : 0);
}

static void pg_close(struct sq *l)
{
    struct pg *p = pg_of(l);
    forget_rows(l);
    link_drop(&p->link);
    explicit_bzero(p->link.password, sizeof(p->link.password));
    free(p);
}

static const struct sq_base base = {
    .close = pg_close,
    .begin = pg_begin,
    .commit = pg_commit,
    .rollback = pg_rollback,
    .again = pg_again,
    .step = pg_step,
    .reset = pg_reset,
    .col = pg_col,
    .col_int = pg_col_int,
    .col_null = pg_col_null,
    .mark = pg_mark,
    .pulse = pg_pulse,
};

/* --- opened ---------------------------------------------------------------------------- */

static uint64_t asked(struct link *k, const char *sql, bool *ok)
{
    PGresult *r = *ok ? link_say(k, sql) : NULL;
    uint64_t n = link_number(r, 0);
    *ok = r != NULL;
    PQclear(r);
    return n;
}

/* One of an earlier version is made one of this; a new one is made as version 1. */
static int is_ours(struct link *k, bool *ok)
{
    static const char which[] = "SELECT version FROM countersign_broker.store WHERE application='countersign-broker'";
    static const char *const next[BSTORE_PG_VERSION] = {NULL, schema_2_sql, schema_3_sql};
    uint64_t version = asked(k, which, ok);
    while (*ok && version > 0 && version < BSTORE_PG_VERSION) {
        uint64_t before = version;
        (void)asked(k, next[before], ok);
        version = asked(k, which, ok);
        if (version <= before)
            break;
    }
    if (!*ok || version == BSTORE_PG_VERSION)
        return *ok ? 0 : -1;
    k->passes = false;
    return err_set(&k->why,
                   "PostgreSQL: the schema countersign_broker of this database has version %llu, and this program is "
                   "of version %d: install the release that made it, or a later one",
                   (unsigned long long)version, BSTORE_PG_VERSION);
}

static enum bstore_state state_of(struct link *k, bool *ok)
{
    return (enum bstore_state)asked(k,
                                    "SELECT CASE state WHEN 'whole' THEN 1 WHEN 'copying' THEN 2 ELSE 3 END"
                                    " FROM countersign_broker.store",
                                    ok);
}

/* For who moves it: it is found as it is, and what is made is not whole. */
static int make_alone(struct pg *p, bool there, bool ok)
{
    struct link *k = &p->link;
    p->found = BSTORE_ABSENT;
    if (ok && !there && p->makes)
        (void)asked(k, schema_sql, &ok);
    if (ok && !there && p->makes)
        (void)asked(k, "UPDATE countersign_broker.store SET state='copying'", &ok);
    if (ok && (there || p->makes)) {
        if (is_ours(k, &ok) != 0)
            return -1;
        p->found = state_of(k, &ok);
    }
    (void)asked(k, "COMMIT", &ok);
    return ok ? 0 : -1;
}

/* Who comes first makes the tables; the others wait for that. Rows of writers that have not been seen for a month go.
 */
static int make(struct pg *p)
{
    struct link *k = &p->link;
    static const char first[] = "BEGIN; SELECT pg_advisory_xact_lock(1131635314); SELECT CASE WHEN"
                                " to_regclass('countersign_broker.store') IS NULL THEN 0 ELSE 1 END";
    bool ok = true;
    uint64_t there = asked(k, first, &ok);
    if (k->alone)
        return make_alone(p, there, ok);
    if (ok && !there)
        (void)asked(k, schema_sql, &ok);
    if (!ok || is_ours(k, &ok) != 0 || link_is_whole(k) != 0)
        return -1;
    k->serves = true;
    (void)asked(k, "DELETE FROM writer WHERE seen_ms<" NOW "-2592000000; COMMIT", &ok);
    return ok ? 0 : -1;
}

static int open_once(struct pg *p)
{
    if (link_up(&p->link) != 0 || make(p) != 0 || (!p->link.alone && add_writer(p) != 0)) {
        if (p->link.c != NULL)
            link_drop(&p->link);
        return -1;
    }
    return 0;
}

static struct pg *new_pg(const struct pg_where *where, struct span password, const struct bstore_test *test,
                         struct err *e)
{
    struct id id;
    struct pg *p = calloc(1, sizeof(*p));
    if (p == NULL || password.n > PG_PASSWORD_MAX || id_new(&id) != 0) {
        err_set(e, password.n > PG_PASSWORD_MAX ? "the password is too long" : "out of memory");
        free(p);
        return NULL;
    }
    sq_init(&p->sq, &base, test);
    p->link.face = &p->sq.face;
    p->link.where = *where;
    if (password.n > 0)
        memcpy(p->link.password, password.p, password.n);
    id_text(&id, p->link.id);
    p->link.wait_ms = BSTORE_PG_PATIENCE_MS;
    return p;
}

static struct bstore *open_in(struct pg *p, uint64_t ms, struct err *e)
{
    uint64_t end = clock_ms(CLOCK_MONOTONIC) + ms;
    do {
        p->link.until = end;
        if (open_once(p) == 0)
            return &p->sq.face;
        pause_for(p, PAUSE_MS);
    } while (p->link.passes && clock_ms(CLOCK_MONOTONIC) < end);
    if (e != NULL)
        *e = p->link.why;
    pg_close(&p->sq);
    return NULL;
}

struct bstore *bstore_postgres_open(const struct pg_where *where, struct span password,
                                    const struct bstore_test *test, struct err *e)
{
    struct pg *p = new_pg(where, password, test, e);
    return p != NULL ? open_in(p, BSTORE_PG_MAKE_MS, e) : NULL;
}

struct bstore *bstore_postgres_later(const struct pg_where *where, struct span password,
                                     const struct bstore_test *test, struct err *e)
{
    struct pg *p = new_pg(where, password, test, e);
    if (p == NULL)
        return NULL;
    p->unmade = true;
    return &p->sq.face;
}

struct bstore *bstore_postgres_alone(const struct pg_where *where, struct span password, bool make,
                                     const struct bstore_test *test, enum bstore_state *state, struct err *e)
{
    struct pg *p = new_pg(where, password, test, e);
    *state = BSTORE_ABSENT;
    if (p == NULL)
        return NULL;
    p->link.alone = true;
    p->makes = make;
    struct bstore *s = open_in(p, BSTORE_PG_MAKE_MS, e); /* one that is in use is refused before that */
    if (s == NULL)
        return NULL;
    *state = p->found;
    if (p->found == BSTORE_ABSENT) {
        *e = (struct err){""};
        bstore_close(&s);
        return NULL;
    }
    s->patience_ms = BSTORE_PG_ALONE_MS;
    p->link.once = true;
    return s;
}
