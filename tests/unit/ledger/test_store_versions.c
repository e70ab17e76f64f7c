/* Stores of earlier versions are brought to this one, others are refused: F12. */
#include "tests/unit/ledger/ledger_fix.h"

#include <stdlib.h>

static const struct span no_body;

static void refused(const char *word)
{
    struct store *s = store_open(&fix_config, fix_wall, fix_boot, &fix_err);
    assert_null(s);
    if (strstr(fix_err.text, word) == NULL)
        fail_msg("\"%s\" does not say %s", fix_err.text, word);
}

static void f12_another_schema_is_refused(void **state)
{
    store_close(&fix);
    assert_int_equal(fix_sql("PRAGMA user_version=8"), SQLITE_OK);
    refused("schema version 8");
    assert_int_equal(fix_sql("PRAGMA user_version=0"), SQLITE_OK);
    refused("schema version 0");
    assert_int_equal(fix_sql("PRAGMA user_version=1"), SQLITE_OK); /* it is not: two tables more */
    refused("schema version 1");
    assert_int_equal(fix_sql("PRAGMA user_version=7; DROP TABLE answer"), SQLITE_OK);
    refused("schema version");
}

static void run_file(sqlite3 *c, const char *file)
{
    char name[512], schema[16384];
    const char *src = getenv("srcdir");
    snprintf(name, sizeof(name), "%s/proxy/ledger/store/%s", src ? src : ".", file);
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    schema[fread(schema, 1, sizeof(schema) - 1, f)] = '\0';
    fclose(f);
    assert_int_equal(sqlite3_exec(c, schema, NULL, NULL, NULL), SQLITE_OK);
}

/* The file of fix_path as an earlier version would have written it: its own schema, the same rows. */
static void as_version(int version)
{
    static const char *const tables[] = {"meta",   "sandbox", "ticket", "body",
                                         "answer", "effect",  "audit",  "reserved"};
    char sql[2048], old[120];
    sqlite3 *c = NULL;
    snprintf(old, sizeof(old), "%s/earlier.db", fix_folder);
    assert_int_equal(sqlite3_open(old, &c), SQLITE_OK);
    run_file(c, "schema.sql");
    if (version > 1)
        run_file(c, "schema_2.sql");
    snprintf(sql, sizeof(sql), "PRAGMA application_id=%d; PRAGMA user_version=%d; ATTACH '%s' AS now", DB_APPLICATION,
             version, fix_path);
    assert_int_equal(sqlite3_exec(c, sql, NULL, NULL, NULL), SQLITE_OK);
    for (size_t i = 0; i < 6u + (unsigned)version; i++) {
        sqlite3_stmt *s = NULL;
        snprintf(sql, sizeof(sql), "SELECT group_concat(name) FROM pragma_table_info('%s')", tables[i]);
        assert_int_equal(sqlite3_prepare_v2(c, sql, -1, &s, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(s), SQLITE_ROW);
        const char *columns = (const char *)sqlite3_column_text(s, 0);
        snprintf(sql, sizeof(sql), "INSERT INTO main.%s(%s) SELECT %s FROM now.%s", tables[i], columns, columns,
                 tables[i]);
        sqlite3_finalize(s);
        assert_int_equal(sqlite3_exec(c, sql, NULL, NULL, NULL), SQLITE_OK);
    }
    sqlite3_close(c);
    snprintf(sql, sizeof(sql), "%s-wal", fix_path);
    (void)unlink(sql);
    assert_int_equal(rename(old, fix_path), 0);
    assert_int_equal(fix_count("PRAGMA user_version"), version);
}

static void brought_here(int version)
{
    uint64_t before, after;
    struct wire_ticket_state open = fix_hold("s1", 1, 1, SPAN("the body"));
    before = fix_chain();
    store_close(&fix);
    as_version(version);
    fix_open();
    assert_int_equal(fix_count("PRAGMA user_version"), DB_SCHEMA);
    after = fix_chain();
    assert_int_equal(after, before + 1); /* and the record of this start */
    /* What was open was held on terms that nobody wrote down: it is asked for again. */
    uint8_t is;
    assert_int_equal(fix_decide(&open.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_false(fix_claim(&open.ticket, 7, &is));
    assert_int_equal(is, TICKET_CANCELLED);
    struct wire_ticket_state again = fix_hold("s1", 1, 1, SPAN("the body"));
    assert_int_equal(fix_decide(&again.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&again.ticket, 8, NULL));
    assert_int_equal(fix_count("SELECT count(*) FROM reserved"), 0);
    fix_reopen(); /* once is enough */
}

static void a_store_of_version_1_is_brought_to_this_one(void **state)
{
    brought_here(1);
}

static void a_store_of_version_2_is_brought_to_this_one(void **state)
{
    brought_here(2);
}

static void a_store_that_cannot_be_brought_here_stays_what_it_was(void **state)
{
    (void)fix_hold("s1", 1, 1, no_body);
    store_close(&fix);
    as_version(1);
    assert_int_equal(fix_sql("CREATE INDEX reserved_old ON audit (kind)"),
                     SQLITE_OK); /* in the way of the last step */
    refused("cannot be brought from version 1");
    assert_int_equal(fix_count("PRAGMA user_version"), 1);
    assert_int_equal(fix_count("SELECT count(*) FROM pragma_table_info('ticket') WHERE name='refs'"), 0);
    assert_int_equal(fix_count("SELECT count(*) FROM sqlite_schema WHERE name='reserved'"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(f12_another_schema_is_refused),
        FRESH(a_store_of_version_1_is_brought_to_this_one),
        FRESH(a_store_of_version_2_is_brought_to_this_one),
        FRESH(a_store_that_cannot_be_brought_here_stays_what_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
