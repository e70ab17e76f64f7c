/* Each record's hash, computed here anew from what the database holds: what `audit verify` computes with the same
 * code that wrote it can be wrong in both. */
#include <openssl/sha.h>

#include "tests/unit/ledger/ledger_fix.h"

static const struct span no_body;

static void each_hash_covers_the_one_before_and_its_own_text(void **state)
{
    uint8_t last[SHA256_DIGEST_LENGTH] = {0}, hash[SHA256_DIGEST_LENGTH];
    sqlite3 *c = NULL;
    sqlite3_stmt *q = NULL;
    unsigned n = 0;
    struct wire_ticket_state t = fix_hold("s1", 1, 1, SPAN("the body"));
    assert_int_equal(fix_decide(&t.ticket, DECIDE_APPROVE, NULL), DECIDED_DONE);
    assert_true(fix_claim(&t.ticket, 7, NULL));
    fix_outcome(&t.ticket, 7, OUTCOME_ANSWERED, true, no_body);
    assert_int_equal(fix_count("SELECT count(*) FROM audit WHERE kind='intent' AND ticket IS NOT NULL"), 1);
    fix_reopen(); /* the chain goes on */
    (void)fix_hold("s2", 2, 2, no_body);
    assert_int_equal(sqlite3_open_v2(fix_path, &c, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(c, "SELECT seq,json,hash FROM audit ORDER BY seq", -1, &q, NULL), SQLITE_OK);
    for (; sqlite3_step(q) == SQLITE_ROW; n++) {
        uint8_t text[sizeof(last) + 16 * 1024];
        size_t size = (size_t)sqlite3_column_bytes(q, 1);
        assert_int_equal(sqlite3_column_int64(q, 0), n + 1);
        assert_true(size > 0 && size <= sizeof(text) - sizeof(last));
        memcpy(text, last, sizeof(last));
        memcpy(text + sizeof(last), sqlite3_column_blob(q, 1), size);
        SHA256(text, sizeof(last) + size, hash);
        assert_int_equal(sqlite3_column_bytes(q, 2), sizeof(hash));
        assert_memory_equal(sqlite3_column_blob(q, 2), hash, sizeof(hash));
        memcpy(last, hash, sizeof(last));
    }
    assert_true(n >= 5);
    sqlite3_finalize(q);
    sqlite3_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FRESH(each_hash_covers_the_one_before_and_its_own_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
