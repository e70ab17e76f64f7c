#include "tests/unit/broker/store_fix.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/broker/store_pg.h"

enum { PATIENCE_MS = 300 * 1000 };

char fix_folder[64], fix_path[96];
struct bstore *fix;
uint64_t fix_now;
struct arena fix_arena;
bool fix_postgres;
static struct bstore_turn_row row;

static uint64_t now_of(void *arg)
{
    (void)arg;
    return fix_now;
}

const struct bstore_asked fix_asked = {SPAN("small"), SPAN("code"), 5, 3, 1, 1};
struct bstore_test fix_test = {.now_ms = now_of};

const struct budgets *fix_budgets;

struct bstore *fix_open(void)
{
    struct err e;
    struct pg_where where;
    struct bstore *s = NULL;
    if (!fix_postgres)
        s = bstore_sqlite_open(fix_path, &fix_test, &e);
    else if (pg_where_read(span_str(pg_url), &where, &e) == 0)
        s = bstore_postgres_open(&where, SPAN_NONE, &fix_test, &e);
    if (s == NULL)
        fail_msg("%s", e.text);
    s->patience_ms = PATIENCE_MS;
    s->budgets = fix_budgets;
    return s;
}

void fix_reopen(void)
{
    bstore_close(&fix);
    fix = fix_open();
}

void fix_quiet(void)
{
    if (fix_postgres)
        pg_quiet();
}

bool fix_one(const char *sql, char *out, size_t cap)
{
    sqlite3 *c = NULL;
    sqlite3_stmt *q = NULL;
    if (fix_postgres)
        return pg_one(sql, out, cap);
    assert_int_equal(sqlite3_open(fix_path, &c), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(c, sql, -1, &q, NULL), SQLITE_OK);
    bool there = sqlite3_step(q) == SQLITE_ROW;
    if (there)
        snprintf(out, cap, "%s", (const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
    sqlite3_close(c);
    return there;
}

void fix_exec(const char *sql)
{
    sqlite3 *c = NULL;
    if (fix_postgres) {
        pg_exec(sql);
        return;
    }
    assert_int_equal(sqlite3_open(fix_path, &c), SQLITE_OK);
    assert_int_equal(sqlite3_exec(c, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(c);
}

int fix_main(const struct CMUnitTest *tests, size_t n)
{
    int failed = _cmocka_run_group_tests("SQLite", tests, n, NULL, NULL);
    fix_postgres = true;
    pg_start();
    failed += _cmocka_run_group_tests("PostgreSQL", tests, n, NULL, NULL);
    pg_stop();
    return failed;
}

int fix_setup(void **state)
{
    /* In memory where there is such a place: thousands of transactions need no disk. */
    snprintf(fix_folder, sizeof(fix_folder), "%s/cs-broker-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(fix_folder) == NULL)
        return -1;
    snprintf(fix_path, sizeof(fix_path), "%s/broker.db", fix_folder);
    fix_now = 1000000;
    arena_init(&fix_arena, 64 << 20);
    if (fix_postgres) {
        pg_cut(); /* what a test that failed left open */
        pg_quiet();
        pg_empty();
    }
    fix = fix_open();
    return 0;
}

int fix_teardown(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm", ".new", ".new-journal"};
    char path[128];
    bstore_close(&fix);
    arena_free(&fix_arena);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", fix_path, ends[i]);
        (void)unlink(path);
    }
    return rmdir(fix_folder);
}

struct id fix_id(unsigned n)
{
    struct id id = {{0}};
    id.b[0] = 1;
    memcpy(&id.b[8], &n, sizeof(n));
    return id;
}

struct bstore_chatted fix_chat(const char *tenant, const struct id *in)
{
    struct bstore_chat c = {.tenant = span_str(tenant), .body = SPAN("{\"text\":\"hello\"}")};
    struct bstore_chatted out;
    fix_now++; /* who came first is next */
    if (in != NULL)
        c.conversation = *in;
    fix_ok(bstore_chat(fix, &c, &out));
    return out;
}

struct claim fix_claim(unsigned worker)
{
    struct id id = fix_id(worker);
    struct claim c;
    fix_ok(bstore_claim(fix, &id, CLAIM_MS, &c));
    return c;
}

struct bstore_turn fix_load(const struct claim *c)
{
    struct bstore_turn t;
    fix_ok(bstore_load(fix, c, &fix_arena, &t));
    return t;
}

void fix_plan(const struct claim *c, uint64_t n, enum call_class class)
{
    const struct bstore_call call = {SPAN("shell"), SPAN("{\"command\":\"make\"}"), class};
    const struct bstore_plan plan = {SPAN("[\"answer\"]"), {0, 10, 3}, &call, 1, fix_asked};
    uint64_t attempts;
    fix_ok(bstore_step(fix, c, n, SPAN("model"), &attempts));
    fix_ok(bstore_plan(fix, c, n, &plan));
}

enum bstore_result fix_call(const struct claim *c, uint64_t n, const char *result)
{
    const struct bstore_settled how = {CALL_DONE, span_str(result), SPAN("boot-7")};
    return bstore_call(fix, c, n, 0, &how);
}

enum bstore_result fix_settle(const struct claim *c, uint64_t n, const char *state)
{
    const struct bstore_message m[] = {{SPAN("assistant"), SPAN("[\"answer\"]")}, {SPAN("tool"), SPAN("{}")}};
    const struct bstore_event e = {SPAN("step.settled"), SPAN("{}")};
    const struct bstore_settle s = {
        .checkpoint = {SPAN("{\"messages\":3}"), SPAN("snap-1"), span_str(state), SPAN("[\"boot-7\"]")},
        .phase = SPAN("building"),
        .message = m,
        .messages = 2,
        .event = &e,
        .events = 1};
    return bstore_settle(fix, c, n, &s);
}

unsigned fix_events(const char *tenant, const struct id *conversation, const char *type)
{
    struct bstore_log log;
    unsigned n = 0;
    uint64_t after = 0, epoch = 0;
    do {
        fix_ok(bstore_events(fix, span_str(tenant), conversation, epoch, after, &fix_arena, &log));
        for (size_t i = 0; i < log.n; i++) {
            n += span_eq(log.event[i].type, span_str(type));
            if (epoch != 0)
                assert_int_equal(log.event[i].seq, after + i + 1); /* no gap */
        }
        after = log.n ? log.event[log.n - 1].seq : after;
        epoch = log.epoch;
    } while (log.n);
    return n;
}

const struct bstore_turn_row *fix_row(const char *tenant, const struct id *turn)
{
    fix_ok(bstore_turn(fix, span_str(tenant), turn, &fix_arena, &row));
    return &row;
}
