/* Requests of one shape in a table: what differs, and which is the odd one. E21 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/kit.h"
#include "web-approval/reading/table.h"

static struct arena arena;
static struct asked asked[TABLE_ROWS];
static struct reading readings[TABLE_ROWS];
static const struct reading *rows[TABLE_ROWS];
static struct table table;

static void add(size_t i, const char *body, const char *fields)
{
    char whole[512];
    (void)snprintf(whole, sizeof(whole), "[[\"content-type\",\"application/json\"],[\"content-length\",\"%zu\"]%s]",
                   10 + i, fields);
    struct span text = arena_copy(&arena, span_str(whole));
    asked[i] = (struct asked){.method = SPAN("POST"),
                              .host = SPAN("api.example"),
                              .path = SPAN("/v1/invitations"),
                              .effect = SPAN("write"),
                              .fields = json_parse(text, &arena),
                              .body = arena_copy(&arena, span_str(body))};
    reading_make(&asked[i], &arena, &readings[i]);
    rows[i] = &readings[i];
}

static size_t column(const char *name)
{
    for (size_t c = 0; c < table.ncolumns; c++)
        if (span_eq(table.name[c], span_str(name)))
            return c;
    fail_msg("no column %s", name);
    return 0;
}

static int begin(void **state)
{
    arena_init(&arena, READING_ARENA);
    return 0;
}

static int end(void **state)
{
    arena_free(&arena);
    return 0;
}

static void what_all_but_one_share_makes_that_one_odd(void **state)
{
    static const char *const names[] = {"ann", "bob", "eve", "joe"};
    char body[128];
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(body, sizeof(body), "{\"email\":\"%s@e.example\",\"role\":\"%s\",\"team\":\"core\"}", names[i],
                       i == 2 ? "owner" : "member");
        add(i, body, "");
    }
    reading_table(rows, 4, &table);
    assert_int_equal(table.ncolumns, 2); /* what they share has none, nor has the length of a body */
    assert_int_equal(table.nodd, 1);
    assert_int_equal(column("/role"), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(table.cell[i][0].odd, i == 2);
        assert_false(table.cell[i][column("/email")].odd);
    }
    assert_true(span_eq(table.cell[2][0].value, SPAN("owner")));
    assert_true(span_eq(table.cell[3][0].value, SPAN("member")));
    assert_true(span_eq(table.cell[0][1].value, SPAN("ann@e.example")));
    covers("E21");
}

static void the_first_may_be_the_odd_one(void **state)
{
    for (size_t i = 0; i < 5; i++)
        add(i, i == 0 ? "{\"a\":1,\"admin\":true}" : "{\"a\":1}", "");
    reading_table(rows, 5, &table);
    assert_int_equal(table.ncolumns, 1);
    assert_true(table.cell[0][0].odd);
    assert_non_null(table.cell[0][0].value.p);
    for (size_t i = 1; i < 5; i++) {
        assert_false(table.cell[i][0].odd);
        assert_null(table.cell[i][0].value.p);
    }
}

static void a_field_of_the_head_differs_too(void **state)
{
    for (size_t i = 0; i < 3; i++)
        add(i, "{\"a\":1}", i == 1 ? ",[\"x-notify\",\"all@e.example\"]" : "");
    reading_table(rows, 3, &table);
    assert_int_equal(table.ncolumns, 1);
    assert_true(span_eq(table.name[0], SPAN("x-notify")));
    assert_true(table.cell[1][0].odd);
    for (size_t i = 0; i < 3; i++) /* and twice with another value: no two of one name are taken for the same */
        add(i, "{\"a\":1}", i == 2 ? ",[\"cc\",\"a\"],[\"cc\",\"b\"]" : ",[\"cc\",\"a\"]");
    reading_table(rows, 3, &table);
    assert_int_equal(table.ncolumns, 1);
    assert_true(span_eq(table.cell[2][0].value, SPAN("b")));
}

static void more_than_it_holds_is_counted(void **state)
{
    char body[2048];
    for (size_t i = 0; i < 3; i++) {
        size_t n = (size_t)snprintf(body, sizeof(body), "{");
        for (size_t k = 0; k <= TABLE_COLUMNS; k++)
            n += (size_t)snprintf(body + n, sizeof(body) - n, "%s\"k%zu\":\"%zu\"", k ? "," : "", k, i);
        (void)snprintf(body + n, sizeof(body) - n, "}");
        add(i, body, "");
    }
    reading_table(rows, 3, &table);
    assert_int_equal(table.ncolumns, TABLE_COLUMNS);
    assert_true(table.more > 0);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(body, sizeof(body), "{\"k\":%zu}", i);
        add(i, body, "");
    }
    reading_table(rows, 3, &table);
    assert_int_equal(table.more, 0);
    assert_int_equal(table.ncolumns, 1);
    assert_int_equal(table.nodd, 0); /* each has its own: none is odd */
}

static void at_most_so_many_rows(void **state)
{
    for (size_t i = 0; i < TABLE_ROWS; i++)
        add(i, i + 1 == TABLE_ROWS ? "{\"a\":2}" : "{\"a\":1}", "");
    reading_table(rows, TABLE_ROWS, &table);
    assert_true(table.cell[TABLE_ROWS - 1][0].odd);
    reading_table(rows, 1, &table);
    assert_int_equal(table.ncolumns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_all_but_one_share_makes_that_one_odd, begin, end),
        cmocka_unit_test_setup_teardown(the_first_may_be_the_odd_one, begin, end),
        cmocka_unit_test_setup_teardown(a_field_of_the_head_differs_too, begin, end),
        cmocka_unit_test_setup_teardown(more_than_it_holds_is_counted, begin, end),
        cmocka_unit_test_setup_teardown(at_most_so_many_rows, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
