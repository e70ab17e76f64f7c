/* A store over a connection: what the database says no to, what nobody says, and who is held up by whom. */
#include "tests/unit/broker/store_fix.h"

#include <dlfcn.h>
#include <libpq-fe.h>
#include <poll.h>

#include "common/time/clock.h"
#include "tests/unit/broker/store_pg.h"

enum { LOOKS = 30000, LOOK_MS = 10 };

static unsigned begins, heard, sent;
static bool spoilt; /* the next answer is none */

/* libpq's own, for this program: an error that no database has said, over a connection that stands. */
PGresult *PQgetResult(PGconn *c)
{
    PGresult *(*real)(PGconn *) = (PGresult * (*)(PGconn *)) dlsym(RTLD_NEXT, "PQgetResult");
    PGresult *r = real(c);
    if (!spoilt || r == NULL)
        return r;
    spoilt = false;
    PQclear(r);
    return PQmakeEmptyPGresult(c, PGRES_FATAL_ERROR);
}

PGnotify *PQnotifies(PGconn *c)
{
    PGnotify *(*real)(PGconn *) = (PGnotify * (*)(PGconn *)) dlsym(RTLD_NEXT, "PQnotifies");
    PGnotify *n = real(c);
    heard += n != NULL;
    return n;
}

static void is(const char *sql, const char *value)
{
    char said[64] = "";
    assert_true(pg_one(sql, said, sizeof(said)));
    assert_string_equal(said, value);
}

static struct pg_where here(void)
{
    struct pg_where w;
    struct err e;
    assert_int_equal(pg_where_read(span_str(pg_url), &w, &e), 0);
    return w;
}

static void let_go_at_the_second(void *arg, const char *point)
{
    if (strcmp(point, "BEGIN") == 0 && ++begins == 2)
        pg_exec("ROLLBACK");
}

/* Of what begins a transaction the first half is done and the second fails: it is ended before it is begun again. */
static void what_cannot_begin_is_over(void **state)
{
    static const char ours[] = "SELECT pid FROM pg_stat_activity WHERE application_name='countersign-broker'";
    char pid[32];
    (void)fix_chat("acme", NULL);
    assert_true(pg_one(ours, pid, sizeof(pid)));
    begins = 0;
    fix_test.at = let_go_at_the_second;
    pg_exec("BEGIN; UPDATE writer SET n=n");
    (void)fix_chat("acme", NULL);
    assert_int_equal(begins, 2);
    fix_test.at = NULL;
    is(ours, pid); /* and the connection is the same */
}

static void spoil(void *arg, const char *point)
{
    if (strcmp(point, "SENT") == 0)
        spoilt = ++sent == 1;
}

static void an_error_that_no_database_said_is_looked_up(void **state)
{
    sent = 0;
    fix_test.at = spoil;
    (void)fix_chat("acme", NULL);
    fix_test.at = NULL;
    is("SELECT count(*) FROM turn", "1");
    is("SELECT count(*) FROM conversation", "1");
}

/* Though nobody asks for a pulse. */
static void what_others_tell_takes_no_memory(void **state)
{
    struct bstore *other = fix, *ours = fix_open();
    struct bstore_chatted t = fix_chat("acme", NULL);
    for (unsigned i = 0; i < 8; i++)
        (void)fix_chat("acme", NULL);
    fix = ours;
    heard = 0;
    for (unsigned i = 0; heard < 4 && i < LOOKS; i++) {
        (void)fix_row("acme", &t.turn);
        if (heard < 4)
            (void)poll(NULL, 0, LOOK_MS);
    }
    assert_true(heard >= 4);
    fix = other;
    bstore_close(&ours);
}

static void key_of(const char *tenant)
{
    const struct bstore_chat c = {.tenant = span_str(tenant), .key = SPAN("once"), .body = SPAN("{}")};
    struct bstore_chatted out;
    fix_ok(bstore_chat(fix, &c, &out));
}

static void a_tenant_that_is_held_holds_up_no_sweep(void **state)
{
    key_of("acme");
    key_of("other");
    fix_now += BSTORE_KEY_AGE_MAX;
    fix->patience_ms = 60 * 1000; /* else it asks for the tenant until then */
    pg_exec("BEGIN; SELECT 1 FROM tenant WHERE tenant='acme' FOR UPDATE");
    enum bstore_result r = bstore_sweep(fix);
    pg_exec("ROLLBACK");
    fix_ok(r);
    is("SELECT string_agg(convert_from(tenant,'UTF8'),' ') FROM chat_key", "acme");
    is("SELECT keys FROM tenant WHERE tenant='other'", "0");
    is("SELECT keys FROM tenant WHERE tenant='acme'", "1");
    fix_ok(bstore_sweep(fix));
    is("SELECT count(*) FROM chat_key", "0");
    is("SELECT sum(keys) FROM tenant", "0");
}

static void one_to_be_set_aside_holds_up_no_other(void **state)
{
    struct bstore_chatted bad = fix_chat("acme", NULL), good = fix_chat("other", NULL);
    struct id worker = fix_id(3);
    struct claim c;
    enum bstore_result r;
    (void)fix_claim(1);
    pg_exec("UPDATE turn SET ready_ms=ready_ms+5000 WHERE tenant='other'");
    fix_now += CLAIM_MS;
    c = fix_claim(2);
    assert_true(id_eq(&c.turn, &bad.turn));
    fix_now += 5000;
    pg_exec("DELETE FROM served"); /* who was served last is not next */
    pg_exec("BEGIN; SELECT 1 FROM tenant WHERE tenant='acme' FOR UPDATE");
    r = bstore_claim(fix, &worker, CLAIM_MS, &c);
    pg_exec("ROLLBACK");
    fix_ok(r);
    assert_true(id_eq(&c.turn, &good.turn));
    assert_true(span_eq(fix_row("acme", &bad.turn)->state, SPAN("running")));
    assert_int_equal(bstore_claim(fix, &worker, CLAIM_MS, &c), BS_NONE);
    assert_true(span_eq(fix_row("acme", &bad.turn)->state, SPAN("aside")));
}

static void no_writer_is_there_for_ever(void **state)
{
    is("SELECT count(*) FROM writer", "1");
    is("SELECT count(*) FROM writer WHERE seen_ms=0", "0");
}

static struct bstore *as(const char *user, const char *database, struct err *e)
{
    struct pg_where w = here();
    snprintf(w.user, sizeof(w.user), "%s", user);
    snprintf(w.database, sizeof(w.database), "%s", database);
    return bstore_postgres_open(&w, SPAN_NONE, NULL, e);
}

static void says(const struct err *e, const char *words)
{
    if (strstr(e->text, words) == NULL)
        fail_msg("%s", e->text);
}

/* At once, and in the database's words. */
static void what_the_database_refuses_is_said(void **state)
{
    struct err e;
    bstore_close(&fix);
    pg_quiet();
    pg_exec("DROP SCHEMA IF EXISTS countersign_broker CASCADE; DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN");
    uint64_t began = clock_ms(CLOCK_MONOTONIC);
    assert_null(as("poor", "postgres", &e));
    says(&e, "permission denied");
    assert_null(as("unknown", "postgres", &e));
    says(&e, "28000");
    assert_null(as("postgres", "unknown", &e));
    says(&e, "3D000");
    assert_true(clock_ms(CLOCK_MONOTONIC) - began < BSTORE_PG_MAKE_MS);
    pg_exec("DROP ROLE poor");
}

#define NO_PRIVATE                                                                                                   \
    "DROP TRIGGER turn_private ON turn; DROP FUNCTION runs_private(); ALTER TABLE conversation DROP COLUMN private;"

/* Of each version before this one: the first broker of this one brings it here, and it goes on. */
static void one_of_an_earlier_version_goes_on(void **state)
{
    static const char *const back[] = {NO_PRIVATE "UPDATE store SET version=2",
                                       NO_PRIVATE "DROP TABLE usage;"
                                                  "UPDATE store SET version=1"};
    for (size_t i = 0; i < sizeof(back) / sizeof(back[0]); i++) {
        struct bstore_chatted before = fix_chat("acme", NULL);
        bstore_close(&fix);
        pg_quiet();
        pg_exec(back[i]);
        fix = fix_open();
        is("SELECT version FROM store", "3");
        is("SELECT count(*) FROM information_schema.columns WHERE table_name='conversation' AND column_name='private'"
           " AND column_default IS NULL", /* who does not know of it makes no open copy */
           "1");
        struct claim c = fix_claim(1);
        assert_true(id_eq(&c.turn, &before.turn));
        assert_int_equal(fix_load(&c).private.n, 0);
        fix_plan(&c, 1, CALL_READ); /* which is metered */
        fix_ok(fix_call(&c, 1, "done"));
        fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN_NONE));
    }
    bstore_close(&fix);
    pg_quiet();
    pg_exec("UPDATE store SET version=4");
    struct err e;
    assert_null(as("postgres", "postgres", &e));
    says(&e, "has version 4, and this program is of version 3");
    pg_exec("UPDATE store SET version=3");
    fix = fix_open();
}

/* Whoever does not say that it knows of them, as one of an earlier version that still runs does not, takes none. */
static void no_older_one_runs_a_private_conversation(void **state)
{
    static const char takes[] = "BEGIN; UPDATE turn SET epoch=epoch+1; ROLLBACK";
    static const char says_less[] = "SET countersign_broker.version=2";
    static const char is_refused[] = "DO $$ BEGIN UPDATE turn SET epoch=epoch+1; RAISE 'taken' USING ERRCODE='22000';"
                                     "EXCEPTION WHEN raise_exception THEN NULL; END $$";
    const struct bstore_chat c = {.tenant = SPAN("acme"), .body = SPAN("{}"), .private = SPAN("small")};
    struct bstore_chatted out;
    (void)fix_chat("other", NULL);
    pg_exec(takes);
    fix_ok(bstore_chat(fix, &c, &out));
    pg_exec(is_refused);
    pg_exec(says_less);
    pg_exec(is_refused);
    pg_exec("RESET countersign_broker.version");
    pg_exec(is_refused); /* where it was said once it is empty, and not unknown */
    (void)fix_claim(1);
    (void)fix_claim(2);
    is("SELECT count(*) FROM turn WHERE state='running'", "2");
}

/* Nobody waits for it: it is there when the database is. */
static void a_database_may_come_later(void **state)
{
    const struct bstore_chat c = {.tenant = SPAN("acme"), .body = SPAN("{}")};
    struct bstore_chatted out;
    struct pg_where w = here();
    struct err e;
    bstore_close(&fix);
    pg_quiet();
    pg_exec("DROP SCHEMA IF EXISTS countersign_broker CASCADE");
    pg_down();
    fix = bstore_postgres_later(&w, SPAN_NONE, &fix_test, &e);
    assert_non_null(fix);
    fix->patience_ms = 100;
    assert_int_equal(bstore_chat(fix, &c, &out), BS_FAIL);
    assert_non_null(strstr(bstore_why(fix), "PostgreSQL"));
    (void)bstore_pulse(fix);
    pg_restart();
    fix->patience_ms = 300 * 1000;
    enum bstore_result r;
    while ((r = bstore_chat(fix, &c, &out)) == BS_FAIL)
        (void)poll(NULL, 0, LOOK_MS);
    assert_int_equal(r, BS_OK);
    is("SELECT count(*) FROM turn", "1");
}

/* Two versions beside each other: what a newer release has made of the tables, an older one that runs goes on with,
 * over a new connection, too; one that starts is refused, and told why. */
static void one_that_runs_goes_on_beside_a_newer_one(void **state)
{
    const struct bstore_chat c = {.tenant = SPAN("acme"), .body = SPAN("{}")};
    struct bstore_chatted out;
    struct pg_where w = here();
    struct err e;
    (void)fix_chat("acme", NULL);
    pg_exec("CREATE TABLE countersign_broker.newer (n bigint); ALTER TABLE countersign_broker.turn ADD COLUMN newer "
            "bigint;"
            "UPDATE countersign_broker.store SET version=version+1");
    (void)fix_chat("acme", NULL);
    pg_cut();
    (void)fix_chat("acme", NULL);
    struct claim taken = fix_claim(1);
    fix_ok(bstore_finish(fix, &taken, END_COMPLETED, SPAN_NONE));
    assert_null(as("postgres", "postgres", &e));
    says(&e, "has version 4, and this program is of version 3");
    says(&e, "install the release that made it");
    struct bstore *late = bstore_postgres_later(&w, SPAN_NONE, NULL, &e); /* as a broker's process does */
    assert_non_null(late);
    assert_int_equal(bstore_chat(late, &c, &out), BS_FAIL);
    assert_non_null(strstr(bstore_why(late), "install the release that made it"));
    bstore_close(&late);
    is("SELECT count(*) FROM turn", "3");
    bstore_close(&fix);
    pg_quiet();
    pg_exec("DROP SCHEMA countersign_broker CASCADE");
    fix = fix_open();
}

#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(what_cannot_begin_is_over),
                                       T(an_error_that_no_database_said_is_looked_up),
                                       T(what_others_tell_takes_no_memory),
                                       T(a_tenant_that_is_held_holds_up_no_sweep),
                                       T(one_to_be_set_aside_holds_up_no_other),
                                       T(no_writer_is_there_for_ever),
                                       T(what_the_database_refuses_is_said),
                                       T(one_of_an_earlier_version_goes_on),
                                       T(no_older_one_runs_a_private_conversation),
                                       T(one_that_runs_goes_on_beside_a_newer_one),
                                       T(a_database_may_come_later)};
    fix_postgres = true;
    pg_start();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pg_stop();
    return failed;
}
