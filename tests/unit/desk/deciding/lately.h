/* What was decided lately, in the list: a part of test_rooms.c, with its store and its page. */
#ifndef TESTS_UNIT_DESK_DECIDING_LATELY_H
#define TESTS_UNIT_DESK_DECIDING_LATELY_H

/* Of every state that a ticket may have, by the store's own word: what is not pending was decided, the newest first.
 */
static void what_was_decided_lately_is_of_any_state(void **state)
{
    sqlite3_stmt *q;
    char words[64];
    unsigned n = 0;

    assert_int_equal(sqlite3_prepare_v2(db, "SELECT sql FROM sqlite_master WHERE name = 'ticket'", -1, &q, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    struct span left = span_str((const char *)sqlite3_column_text(q, 0));
    left = span_from(left, span_find(left, SPAN("state IN (")));
    left = span_first(left, span_index(left, ')'));
    for (size_t at; (at = span_index(left, '\'')) < left.n; left = span_from(left, span_index(left, '\'') + 1)) {
        left = span_from(left, at + 1);
        struct span name = span_first(left, span_index(left, '\''));
        if (span_eq(name, SPAN("pending")))
            continue;
        waits("dddd", ++n);
        char *text = sqlite3_mprintf("UPDATE ticket SET state='%.*s' WHERE sandbox='sb-dddd' AND path='/p/%u'",
                                     SPAN_FMT(name), n);
        sql(text);
        sqlite3_free(text);
    }
    sqlite3_finalize(q);
    assert_int_equal(n, 8);
    assert_int_equal(get("/"), 200);
    struct span page = dynbuf_span(&x.out);
    size_t above = span_find(page, SPAN("Lately decided"));
    for (size_t at; n > 0; n--) {
        (void)snprintf(words, sizeof(words), "Number %u of dddd", n);
        at = span_find(page, span_str(words));
        assert_true(at < page.n && at > above);
        above = at;
    }
    sql("DELETE FROM ticket");
}

#endif
