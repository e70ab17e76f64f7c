/* A store is moved from SQLite to PostgreSQL and back: all of it is there and nothing else is, whoever is cut off
 * where, and never do brokers take both. */
#include "tests/unit/broker/store_fix.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/store/move/move.h"
#include "tests/unit/broker/store_pg.h"

enum { POINTS_MAX = 4000, TALKS = 40 };

static char back_path[96];
static struct bstore_test hooks;

static struct bstore *file_of(const char *path, bool make, enum bstore_state *state, struct err *e)
{
    return bstore_sqlite_alone(path, make, &hooks, state, e);
}

static struct bstore *pg_of(bool make, enum bstore_state *state, struct err *e)
{
    struct pg_where where;
    assert_int_equal(pg_where_read(span_str(pg_url), &where, e), 0);
    return bstore_postgres_alone(&where, SPAN_NONE, make, &hooks, state, e);
}

static struct bstore *serving(const char *path, struct err *e)
{
    struct pg_where where;
    struct bstore *s;
    if (path != NULL)
        return bstore_sqlite_open(path, NULL, e);
    assert_int_equal(pg_where_read(span_str(pg_url), &where, e), 0);
    s = bstore_postgres_open(&where, SPAN_NONE, NULL, e);
    return s;
}

/* NULL stands for the PostgreSQL. 0, or -1 with the reason. */
static int move(const char *from, const char *to, struct move_counts *n, struct err *e)
{
    enum bstore_state is, will;
    struct bstore *a = from ? file_of(from, false, &is, e) : pg_of(false, &is, e), *b = NULL;
    int r = a != NULL ? 0 : -1;
    for (int make = 0; r == 0 && b == NULL && make < 2; make++) { /* it is made when it is known that it may be */
        b = to ? file_of(to, make, &will, e) : pg_of(make, &will, e);
        r = b == NULL && (make || e->text[0] != '\0') ? -1 : move_may(a, is, b, will, e);
    }
    if (r == 0)
        r = move_all(a, b, n, e);
    bstore_close(&a);
    bstore_close(&b);
    return r;
}

static void same(const struct move_counts *a, const struct move_counts *b)
{
    for (size_t i = 0; i < MOVE_TABLES; i++) {
        assert_string_equal(a->of[i].table, b->of[i].table);
        if (a->of[i].rows != b->of[i].rows || memcmp(a->of[i].digest.b, b->of[i].digest.b, DIGEST_BYTES) != 0)
            fail_msg("%s: %llu rows and %llu, or others", a->of[i].table, (unsigned long long)a->of[i].rows,
                     (unsigned long long)b->of[i].rows);
    }
}

static void says(const struct err *e, const char *words)
{
    if (strstr(e->text, words) == NULL)
        fail_msg("%s", e->text);
}

/* Something in every table, with what is NULL and what is empty, bytes that are no characters, and more rows than are
 * read at once. */
static void fill(void)
{
    static const char bytes[] = {0, 1, (char)0xff, (char)0xfe, '\'', '\\', 0};
    struct bstore_chat key = {.tenant = SPAN("acme"),
                              .key = SPAN("k'\\\"\xc3\xa9"),
                              .body = SPAN("{\"content\":\"'\\\\\\u0000 \xc3\xa9\",\"by\":\"ann\"}")};
    struct bstore_chatted t, again;
    struct claim c;
    uint64_t seq;
    key.private = SPAN("one\n\xfftwo");
    fix_ok(bstore_chat(fix, &key, &t));
    c = fix_claim(1);
    const struct bstore_event e = {SPAN("text"), span_of(bytes, sizeof(bytes))};
    fix_ok(bstore_log(fix, &c, &e, 1, &seq));
    fix_ok(bstore_record(fix, &c, SPAN("heard\n")));
    fix_plan(&c, 1, CALL_READ);
    fix_ok(fix_call(&c, 1, "done"));
    fix_ok(fix_settle(&c, 1, "{}"));
    fix_ok(bstore_finish(fix, &c, END_COMPLETED, SPAN("why \xe2\x82\xac")));
    fix_ok(bstore_replay(fix, SPAN("acme"), &t.turn, &again));
    for (unsigned i = 0; i < TALKS; i++) {
        struct bstore_chatted o = fix_chat(i % 2 ? "other" : "a tenant \xc3\xbc", NULL);
        (void)fix_chat(i % 2 ? "other" : "a tenant \xc3\xbc", &o.conversation);
    }
    c = fix_claim(2); /* and one that is left in the middle of a call */
    fix_plan(&c, 1, CALL_UNSAFE);
}

static const char *const counts_of[] = {"SELECT count(*) FROM tenant WHERE served>0 OR recorded>0",
                                        "SELECT count(*) FROM turn WHERE asked IS NOT NULL",
                                        "SELECT count(*) FROM turn WHERE replays<>''",
                                        "SELECT count(*) FROM tool_call WHERE settled_ms IS NULL",
                                        "SELECT count(*) FROM turn WHERE worker<>'' AND state='running'",
                                        "SELECT count(*) FROM conversation WHERE length(private)=8"};

static void all_of_it_goes_there_and_back(void **state)
{
    struct move_counts out, home, again;
    char was[sizeof(counts_of) / sizeof(counts_of[0])][32], is[32];
    enum bstore_state found;
    struct err e;
    fill();
    bstore_close(&fix);
    for (size_t i = 0; i < sizeof(counts_of) / sizeof(counts_of[0]); i++) {
        assert_true(fix_one(counts_of[i], was[i], sizeof(was[i])));
        assert_string_not_equal(was[i], "0");
    }
    if (move(fix_path, NULL, &out, &e) != 0)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < MOVE_TABLES; i++)
        assert_true(out.of[i].rows > 0);
    assert_true(out.of[2].rows > MOVE_ROWS_AT_ONCE);
    assert_null(serving(fix_path, &e));
    says(&e, "was moved");
    /* It goes on there: what was planned here is not looked for in another gateway's record. */
    fix = serving(NULL, &e);
    assert_non_null(fix);
    bstore_close(&fix);
    assert_int_equal(move(fix_path, NULL, &home, &e), -1);
    says(&e, "moved before");
    if (move(NULL, back_path, &home, &e) != 0)
        fail_msg("%s", e.text);
    same(&out, &home);
    assert_null(serving(NULL, &e));
    says(&e, "was moved");
    struct bstore *s = file_of(back_path, false, &found, &e);
    assert_true(s != NULL && found == BSTORE_WHOLE);
    assert_int_equal(move_count(s, &again, &e), 0);
    same(&out, &again);
    bstore_close(&s);
    memcpy(fix_path, back_path, sizeof(back_path)); /* and by other means than its own */
    for (size_t i = 0; i < sizeof(counts_of) / sizeof(counts_of[0]); i++) {
        assert_true(fix_one(counts_of[i], is, sizeof(is)));
        assert_string_equal(is, was[i]);
    }
    fix = serving(back_path, &e);
    assert_non_null(fix);
    fix_now += 2 * CLAIM_MS;
    struct id worker = fix_id(3);
    struct claim c;
    fix_ok(bstore_claim(fix, &worker, CLAIM_MS, &c));
}

static void what_somebody_uses_is_not_moved(void **state)
{
    struct move_counts n;
    struct err e;
    enum bstore_state found;
    struct bstore *alone;
    assert_int_equal(move(fix_path, NULL, &n, &e), -1);
    says(&e, "in use");
    bstore_close(&fix);
    struct bstore *pg = serving(NULL, &e);
    assert_non_null(pg);
    assert_int_equal(move(NULL, back_path, &n, &e), -1);
    says(&e, "in use");
    assert_int_equal(move(fix_path, NULL, &n, &e), -1);
    says(&e, "in use");
    bstore_close(&pg);
    /* Nor used while it is moved. */
    alone = file_of(fix_path, false, &found, &e);
    assert_non_null(alone);
    assert_null(serving(fix_path, &e));
    says(&e, "in use");
    bstore_close(&alone);
    fix = serving(fix_path, &e);
    assert_non_null(fix);
}

static void what_has_conversations_is_not_written_over(void **state)
{
    struct move_counts n;
    struct err e;
    fill();
    bstore_close(&fix);
    struct bstore *s = serving(NULL, &e);
    struct bstore *keep = fix;
    assert_non_null(s);
    fix = s;
    (void)fix_chat("theirs", NULL);
    bstore_close(&s);
    fix = keep;
    assert_int_equal(move(fix_path, NULL, &n, &e), -1);
    says(&e, "conversations of its own");
    assert_int_equal(move(NULL, fix_path, &n, &e), -1);
    says(&e, "conversations of its own");
    s = serving(fix_path, &e); /* and both go on */
    assert_non_null(s);
    bstore_close(&s);
    s = serving(NULL, &e);
    assert_non_null(s);
    bstore_close(&s);
}

/* Whoever takes up what a broker goes on with elsewhere would do each call twice. */
static void what_was_moved_is_moved_nowhere_else(void **state)
{
    struct move_counts n;
    struct err e;
    enum bstore_state found;
    fill();
    bstore_close(&fix);
    if (move(fix_path, NULL, &n, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(move(fix_path, back_path, &n, &e), -1);
    says(&e, "moved before");
    assert_int_not_equal(access(back_path, F_OK), 0); /* nor is it made */
    struct bstore *made = file_of(back_path, true, &found, &e);
    assert_true(made != NULL && found == BSTORE_COPYING);
    bstore_close(&made);
    assert_int_equal(move(fix_path, back_path, &n, &e), -1);
    says(&e, "moved before");
}

/* Emptied for a move that is begun anew, or read, it takes as long as it takes. */
static void a_large_database_is_waited_for(void **state)
{
    struct move_counts n;
    struct err e;
    fill();
    bstore_close(&fix);
    struct bstore *s = serving(NULL, &e);
    assert_non_null(s);
    bstore_close(&s);
    pg_quiet();
    pg_exec(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(5.2); RETURN NULL; END';"
        "CREATE TRIGGER slow AFTER DELETE ON tenant FOR EACH STATEMENT EXECUTE FUNCTION slow()");
    if (move(fix_path, NULL, &n, &e) != 0)
        fail_msg("%s", e.text);
}

/* --- killed ------------------------------------------------------------------------------ */

struct shared {
    volatile unsigned point;
};
static struct shared *shared;
static unsigned kill_at;

static void killer(void *arg, const char *point)
{
    (void)arg;
    (void)point;
    if (++shared->point == kill_at)
        (void)kill(getpid(), SIGKILL);
}

/* Is it one that brokers take? */
static bool taken(const char *path)
{
    struct err e;
    struct bstore *s = path != NULL && access(path, F_OK) != 0 ? NULL : serving(path, &e);
    bool is = s != NULL;
    bstore_close(&s);
    return is;
}

static bool pg_is(const char *state)
{
    char is[32] = "";
    char there[8];
    if (!pg_one("SELECT 1 FROM pg_namespace WHERE nspname='countersign_broker'", there, sizeof(there)))
        return false;
    assert_true(pg_one("SELECT state FROM store", is, sizeof(is)));
    return strcmp(is, state) == 0;
}

/* How it ends that is killed at its so-many-th point, or is not. */
static int killed_move(const char *from, const char *to)
{
    struct move_counts n;
    struct err e;
    int status;
    shared->point = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        hooks.at = killer;
        int r = move(from, to, &n, &e);
        if (r != 0)
            (void)fprintf(stderr, "%s\n", e.text);
        _exit(r != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    pg_quiet();
    return status;
}

/* One move is killed at its so-many-th point, then done anew: nothing is lost. Returns whether it was killed. */
static bool killed_at(const char *from, const char *to, const struct move_counts *all)
{
    struct move_counts n;
    struct err e;
    int status = killed_move(from, to);
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
        return false;
    }
    const char *file = from ? from : to;
    bool new_is = to ? access(file, F_OK) == 0 && taken(file) : pg_is("whole");
    bool old_is = from ? taken(file) : pg_is("whole");
    assert_false(new_is && old_is);
    if (new_is)
        return true;
    if (move(from, to, &n, &e) != 0)
        fail_msg("at %u: %s", kill_at, e.text);
    same(all, &n);
    return true;
}

/* Both are as they were before: the marks are all that is changed of what is moved. */
static void restore(void)
{
    char sql[64];
    pg_empty();
    pg_exec("UPDATE store SET state='whole'");
    snprintf(sql, sizeof(sql), "PRAGMA application_id=%d", BSTORE_APPLICATION);
    fix_exec(sql);
}

static void cut_off_anywhere_nothing_is_lost(void **state)
{
    struct move_counts all;
    enum bstore_state found;
    struct err e;
    unsigned n = 0;
    unsigned step = getenv("BROKER_STORE_ALL") ? 1 : 61;
    fill();
    bstore_close(&fix);
    struct bstore *s = file_of(fix_path, false, &found, &e);
    assert_int_equal(move_count(s, &all, &e), 0);
    bstore_close(&s);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    for (kill_at = 1; killed_at(fix_path, NULL, &all); kill_at += step, n++) {
        assert_true(kill_at < POINTS_MAX && pg_is("whole"));
        restore();
    }
    /* And each of the last ones, where both are marked. */
    unsigned last = shared->point;
    for (kill_at = last > 10 ? last - 10 : 1; kill_at <= last; kill_at++, n++) {
        restore();
        assert_true(killed_at(fix_path, NULL, &all));
    }
    for (kill_at = last > 10 ? last - 10 : 1; kill_at <= last; kill_at++, n++) {
        (void)unlink(back_path);
        pg_exec("UPDATE store SET state='whole'");
        if (!killed_at(NULL, back_path, &all))
            break;
    }
    assert_true(n > 15);
    print_message("killed at %u points\n", n);
    munmap(shared, sizeof(*shared));
}

/* What one move has begun no other goes on with: its rows may be all that there is of them. */
static void what_another_move_has_begun_is_left_alone(void **state)
{
    struct move_counts n;
    struct err e;
    fill();
    bstore_close(&fix);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    kill_at = 200;
    assert_true(WIFSIGNALED(killed_move(fix_path, NULL)));
    assert_true(pg_is("copying"));
    if (move(fix_path, back_path, &n, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(move(fix_path, NULL, &n, &e), -1);
    says(&e, "moved before");
    assert_int_equal(move(back_path, NULL, &n, &e), -1);
    says(&e, "of another move");
    assert_true(pg_is("copying"));
    munmap(shared, sizeof(*shared));
}

static int setup(void **state)
{
    int r;
    fix_postgres = false;
    pg_quiet();
    pg_exec("DROP SCHEMA IF EXISTS countersign_broker CASCADE");
    r = fix_setup(state);
    hooks = (struct bstore_test){.now_ms = fix_test.now_ms};
    snprintf(back_path, sizeof(back_path), "%s/back.db", fix_folder);
    return r;
}

static int teardown(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm", ".new", ".new-journal"};
    char path[128];
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", back_path, ends[i]);
        (void)unlink(path);
        snprintf(path, sizeof(path), "%s/broker.db%s", fix_folder, ends[i]);
        (void)unlink(path);
    }
    return fix_teardown(state);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(all_of_it_goes_there_and_back),
                                       T(what_somebody_uses_is_not_moved),
                                       T(what_has_conversations_is_not_written_over),
                                       T(what_was_moved_is_moved_nowhere_else),
                                       T(a_large_database_is_waited_for),
                                       T(what_another_move_has_begun_is_left_alone),
                                       T(cut_off_anywhere_nothing_is_lost)};
    pg_start();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pg_stop();
    return failed;
}
